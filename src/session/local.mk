noinst_LIBRARIES += libkith_session.a
libkith_session_a_CFLAGS = $(C11)
libkith_session_a_SOURCES =

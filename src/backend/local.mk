noinst_LIBRARIES += libkith_backend.a
libkith_backend_a_CFLAGS = $(C11)
libkith_backend_a_SOURCES =

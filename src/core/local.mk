noinst_LIBRARIES += libkith_core.a
libkith_core_a_CFLAGS = $(C11)
libkith_core_a_SOURCES =

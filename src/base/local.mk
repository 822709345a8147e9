noinst_LIBRARIES += libkith_base.a
libkith_base_a_CFLAGS = $(C11)
libkith_base_a_SOURCES =

noinst_LIBRARIES += libkith_data.a
libkith_data_a_CFLAGS = $(C11)
libkith_data_a_SOURCES =

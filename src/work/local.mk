noinst_LIBRARIES += libkith_work.a
libkith_work_a_CFLAGS = $(C11)
libkith_work_a_SOURCES =

noinst_LIBRARIES += libkith_lab.a
libkith_lab_a_CFLAGS = $(GNU11)
libkith_lab_a_SOURCES =

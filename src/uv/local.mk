noinst_LIBRARIES += libkith_uv.a
libkith_uv_a_CFLAGS = $(GNU11)
libkith_uv_a_SOURCES =

noinst_LIBRARIES += libkith_data.a
libkith_data_a_CFLAGS = $(GNU11) $(ZLIB_CFLAGS)
libkith_data_a_SOURCES = \
  src/data/dataset.c \
  src/data/idx.c \
  src/data/split.c

noinst_LIBRARIES += libkith_data.a
libkith_data_a_CFLAGS = $(GNU11) $(ZLIB_CFLAGS)
libkith_data_a_SOURCES = \
  src/data/dataset.c \
  src/data/idx.c \
  src/data/split.c
EXTRA_DIST += \
  examples/data/digits/ORIGIN.md \
  examples/data/digits/t10k-images-idx3-ubyte.gz \
  examples/data/digits/t10k-labels-idx1-ubyte.gz \
  examples/data/digits/train-images-idx3-ubyte.gz \
  examples/data/digits/train-labels-idx1-ubyte.gz \
  examples/data/make_digits.py

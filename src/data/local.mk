noinst_LIBRARIES += libkith_data.a
libkith_data_a_CFLAGS = $(GNU11) $(SODIUM_CFLAGS) $(ZLIB_CFLAGS)
libkith_data_a_SOURCES = \
  src/data/bytes.c \
  src/data/cache.c \
  src/data/cifar.c \
  src/data/dataset.c \
  src/data/datasets.def \
  src/data/file.c \
  src/data/gaussian.c \
  src/data/guard.c \
  src/data/idx.c \
  src/data/loader.c \
  src/data/npy.c \
  src/data/open.c \
  src/data/pixels.c \
  src/data/private.h \
  src/data/registry.c \
  src/data/split.c \
  src/data/synthetic.c \
  src/data/text.c \
  src/data/tokens.c
EXTRA_DIST += \
  examples/data/digits/ORIGIN.md \
  examples/data/digits/t10k-images-idx3-ubyte.gz \
  examples/data/digits/t10k-labels-idx1-ubyte.gz \
  examples/data/digits/train-images-idx3-ubyte.gz \
  examples/data/digits/train-labels-idx1-ubyte.gz \
  examples/data/make_digits.py

noinst_LIBRARIES += libkith_base.a
libkith_base_a_CFLAGS = $(C11)
libkith_base_a_SOURCES = \
  src/base/archive.c \
  src/base/build.c \
  src/base/err.c \
  src/base/hash.c \
  src/base/heap.c \
  src/base/rng.c \
  src/base/rng_table.h \
  src/base/text.c \
  src/base/units.c

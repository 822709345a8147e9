noinst_LIBRARIES += libkith_store.a
libkith_store_a_CFLAGS = $(GNU11)
libkith_store_a_SOURCES = src/store/build.c src/store/schema.h \
  src/store/store.c src/store/summary.c

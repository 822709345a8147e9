noinst_LIBRARIES += libkith_store.a
libkith_store_a_CFLAGS = $(GNU11)
libkith_store_a_SOURCES = src/store/ahead.c src/store/private.h src/store/reopen.c \
  src/store/journal.c src/store/journal_read.c \
  src/store/marks.c src/store/open.c src/store/plan.c src/store/plan.h \
  src/store/runs.c \
  src/store/schema.h \
  src/store/store.c src/store/summary.c
libkith_store_a_SOURCES += src/store/keys.c src/store/keys_file.c \
  src/store/keys_file.h src/store/keys_show.c src/store/keys_trust.c

noinst_LIBRARIES += libkith_work.a
libkith_work_a_CFLAGS = $(C11) $(SODIUM_CFLAGS) $(JANSSON_CFLAGS) $(PCRE2_CFLAGS)
libkith_work_a_SOURCES = \
  src/work/baseline.c \
  src/work/checkpoint.h \
  src/work/estimate.c \
  src/work/evaluate.c \
  src/work/file.c \
  src/work/file.h \
  src/work/init.c \
  src/work/items.c \
  src/work/machine.c \
  src/work/private.h \
  src/work/restore.c \
  src/work/safetensors.c \
  src/work/sample.c \
  src/work/save.c \
  src/work/save.h \
  src/work/speed.c \
  src/work/tokenizer.c \
  src/work/tokenizer.h \
  src/work/tokenizer_file.c \
  src/work/weights.c \
  src/work/worker.c

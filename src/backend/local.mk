noinst_LIBRARIES += libkith_backend.a
libkith_backend_a_CFLAGS = $(C11) $(OPENBLAS_CFLAGS)
libkith_backend_a_SOURCES = \
  src/backend/backends.def \
  src/backend/cpu.c \
  src/backend/cpu.h \
  src/backend/cpu_avx2.c \
  src/backend/cpu_avx512.c \
  src/backend/cpu_loops.inc.h \
  src/backend/cpu_portable.c \
  src/backend/naive.inc.h \
  src/backend/naive32.c \
  src/backend/naive64.c \
  src/backend/registry.c \
  src/backend/series.h

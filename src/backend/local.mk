noinst_LIBRARIES += libkith_backend.a
libkith_backend_a_CFLAGS = $(C11) $(OPENBLAS_CFLAGS)
libkith_backend_a_CPPFLAGS = $(AM_CPPFLAGS) \
  -DKITH_LIBRARY_FOLDER='"$(pkglibdir)"'
libkith_backend_a_SOURCES = \
  src/backend/backends.def \
  src/backend/cpu.c \
  src/backend/cpu.h \
  src/backend/cpu.inc.h \
  src/backend/cpu_attention.c \
  src/backend/cpu_avx2.c \
  src/backend/cpu_avx512.c \
  src/backend/cpu_bf16.c \
  src/backend/cpu_conv.c \
  src/backend/cpu_conv.inc.h \
  src/backend/cpu_finish.inc.h \
  src/backend/cpu_heads.inc.h \
  src/backend/cpu_group.c \
  src/backend/cpu_image.h \
  src/backend/cpu_image_avx2.c \
  src/backend/cpu_image_avx512.c \
  src/backend/cpu_image_portable.c \
  src/backend/cpu_linear.c \
  src/backend/cpu_loops.inc.h \
  src/backend/cpu_norm.c \
  src/backend/cpu_norm.h \
  src/backend/cpu_norm.inc.h \
  src/backend/cpu_ops.c \
  src/backend/cpu_ops.h \
  src/backend/cpu_pools.c \
  src/backend/cpu_portable.c \
  src/backend/cpu_products.inc.h \
  src/backend/cpu_rows.inc.h \
  src/backend/cpu_text.c \
  src/backend/cpu_text.h \
  src/backend/cpu_text_avx2.c \
  src/backend/cpu_text_avx512.c \
  src/backend/cpu_text_kernels.inc.h \
  src/backend/cpu_text_portable.c \
  src/backend/cuda.c \
  src/backend/cuda.inc.h \
  src/backend/cuda_bf16.c \
  src/backend/cuda_module.c \
  src/backend/cuda_module.h \
  src/backend/dropout.h \
  src/backend/f16_avx2.h \
  src/backend/f16_avx512.h \
  src/backend/f16_portable.h \
  src/backend/memory.c \
  src/backend/memory.h \
  src/backend/naive.inc.h \
  src/backend/naive32.c \
  src/backend/naive64.c \
  src/backend/naive_dense.inc.h \
  src/backend/naive_image.inc.h \
  src/backend/naive_ops.inc.h \
  src/backend/naive_text.inc.h \
  src/backend/onednn.c \
  src/backend/onednn.h \
  src/backend/peak.c \
  src/backend/pool.c \
  src/backend/pool.h \
  src/backend/products.c \
  src/backend/products.h \
  src/backend/registry.c \
  src/backend/series.h

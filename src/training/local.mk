# Everything that touches floats, from kernels to checkpoints.
noinst_LIBRARIES += libkith_backend.a
libkith_backend_a_CFLAGS = $(C11) $(OPENBLAS_CFLAGS)
libkith_backend_a_CPPFLAGS = $(AM_CPPFLAGS) \
  -DKITH_LIBRARY_FOLDER='"$(pkglibdir)"'
libkith_backend_a_SOURCES = \
  src/training/backend/backends.def \
  src/training/backend/choose.c \
  src/training/backend/cpu.c \
  src/training/backend/cpu.h \
  src/training/backend/cpu.inc.h \
  src/training/backend/cpu_attention.c \
  src/training/backend/cpu_avx2.c \
  src/training/backend/cpu_avx512.c \
  src/training/backend/cpu_bf16.c \
  src/training/backend/cpu_conv.c \
  src/training/backend/cpu_conv.inc.h \
  src/training/backend/cpu_finish.inc.h \
  src/training/backend/cpu_group.c \
  src/training/backend/cpu_heads.inc.h \
  src/training/backend/cpu_image.h \
  src/training/backend/cpu_linear.c \
  src/training/backend/cpu_loops.inc.h \
  src/training/backend/cpu_norm.c \
  src/training/backend/cpu_norm.h \
  src/training/backend/cpu_norm.inc.h \
  src/training/backend/cpu_ops.c \
  src/training/backend/cpu_ops.h \
  src/training/backend/cpu_pools.c \
  src/training/backend/cpu_portable.c \
  src/training/backend/cpu_products.inc.h \
  src/training/backend/cpu_rms_norm.c \
  src/training/backend/cpu_rotary.c \
  src/training/backend/cpu_rows.inc.h \
  src/training/backend/cpu_text.c \
  src/training/backend/cpu_text.h \
  src/training/backend/cpu_variant.inc.h \
  src/training/backend/cuda.c \
  src/training/backend/cuda.inc.h \
  src/training/backend/cuda_bf16.c \
  src/training/backend/cuda_module.c \
  src/training/backend/f16.h \
  src/training/backend/f16_avx2.h \
  src/training/backend/f16_avx512.h \
  src/training/backend/f16_portable.h \
  src/training/backend/f16_x86.h \
  src/training/backend/magnitudes.inc.h \
  src/training/backend/memory.c \
  src/training/backend/memory.h \
  src/training/backend/module.c \
  src/training/backend/naive.inc.h \
  src/training/backend/naive32.c \
  src/training/backend/naive64.c \
  src/training/backend/naive_dense.inc.h \
  src/training/backend/naive_image.inc.h \
  src/training/backend/naive_magnitudes.inc.h \
  src/training/backend/naive_ops.inc.h \
  src/training/backend/naive_rms_norm.inc.h \
  src/training/backend/naive_rotary.inc.h \
  src/training/backend/naive_text.inc.h \
  src/training/backend/onednn.c \
  src/training/backend/onednn.h \
  src/training/backend/peak.c \
  src/training/backend/pool.c \
  src/training/backend/pool.h \
  src/training/backend/products.c \
  src/training/backend/products.h \
  src/training/backend/residues.inc.h

noinst_LIBRARIES += libkith_model.a
libkith_model_a_CFLAGS = $(C11)
libkith_model_a_SOURCES = \
  src/training/model/cnn.c \
  src/training/model/config.c \
  src/training/model/config.h \
  src/training/model/consensus.c \
  src/training/model/gpt.c \
  src/training/model/layers.c \
  src/training/model/layers.h \
  src/training/model/logistic.c \
  src/training/model/mlp.c \
  src/training/model/model_builder.c \
  src/training/model/models.def \
  src/training/model/noise.c \
  src/training/model/none.c \
  src/training/model/program.c \
  src/training/model/operations/attention.c \
  src/training/model/operations/conv.c \
  src/training/model/operations/dropout.c \
  src/training/model/operations/embed.c \
  src/training/model/operations/linear.c \
  src/training/model/operations/max_pool.c \
  src/training/model/operations/mean_pool.c \
  src/training/model/operations/norm.c \
  src/training/model/operations/rms_norm.c \
  src/training/model/operations/rotary.c \
  src/training/model/operations/sum.c \
  src/training/model/quadratic.c \
  src/training/model/resnet.c \
  src/training/model/vector.c \
  src/training/model/vector.h \
  src/training/model/vgg.c \
  src/training/optimiser/adamw.c \
  src/training/optimiser/clip.c \
  src/training/optimiser/lars.c \
  src/training/optimiser/lars_parts.c \
  src/training/optimiser/muon.c \
  src/training/optimiser/optimisers.def \
  src/training/optimiser/schedule.c \
  src/training/optimiser/sgd.c \
  src/training/optimiser/terms.h

noinst_LIBRARIES += libkith_graph.a
libkith_graph_a_CFLAGS = $(C11)
libkith_graph_a_SOURCES = \
  src/training/graph/arena.c \
  src/training/graph/backward.c \
  src/training/graph/graph.c \
  src/training/graph/graph_run.c \
  src/training/graph/graph_state.h \
  src/training/graph/layout.c \
  src/training/graph/balance.c \
  src/training/graph/layer_schedule.c \
  src/training/graph/measure.c \
  src/training/graph/progress.c \
  src/training/graph/step_list.c

noinst_LIBRARIES += libkith_data.a
libkith_data_a_CFLAGS = $(GNU11) $(SODIUM_CFLAGS) $(ZLIB_CFLAGS)
libkith_data_a_SOURCES = \
  src/training/data/bus_error.c \
  src/training/data/bytes.c \
  src/training/data/cache.c \
  src/training/data/cifar.c \
  src/training/data/data_files.c \
  src/training/data/data_files.h \
  src/training/data/data_store.c \
  src/training/data/dataset.c \
  src/training/data/datasets.def \
  src/training/data/gaussian.c \
  src/training/data/idx.c \
  src/training/data/loader.c \
  src/training/data/manifest.c \
  src/training/data/manifest_make.c \
  src/training/data/npy.c \
  src/training/data/npz.c \
  src/training/data/piece_disk.c \
  src/training/data/piece_origin.c \
  src/training/data/piece_peers.c \
  src/training/data/pieces.c \
  src/training/data/pixels.c \
  src/training/data/plain_file.c \
  src/training/data/sampler.c \
  src/training/data/sampler.h \
  src/training/data/split.c \
  src/training/data/synthetic.c \
  src/training/data/text.c \
  src/training/data/tokens.c
EXTRA_DIST += \
  examples/data/digits/ORIGIN.md \
  examples/data/digits/t10k-images-idx3-ubyte.gz \
  examples/data/digits/t10k-labels-idx1-ubyte.gz \
  examples/data/digits/train-images-idx3-ubyte.gz \
  examples/data/digits/train-labels-idx1-ubyte.gz \
  examples/data/make_digits.py

noinst_LIBRARIES += libkith_worker.a
libkith_worker_a_CFLAGS = $(C11) $(SODIUM_CFLAGS) $(JANSSON_CFLAGS) \
  $(PCRE2_CFLAGS)
libkith_worker_a_SOURCES = \
  src/training/checkpoint/atomic_file.c \
  src/training/checkpoint/atomic_file.h \
  src/training/checkpoint/initial_weights.c \
  src/training/checkpoint/misfits.c \
  src/training/checkpoint/names.c \
  src/training/checkpoint/restore.c \
  src/training/checkpoint/safetensors.c \
  src/training/checkpoint/save.c \
  src/training/checkpoint/save.h \
  src/training/checkpoint/saver.c \
  src/training/checkpoint/weights.c \
  src/training/checkpoint/weights.h \
  src/training/evaluation/baseline.c \
  src/training/evaluation/baseline_saves.c \
  src/training/evaluation/baseline_saves.h \
  src/training/evaluation/batch_statistics.c \
  src/training/evaluation/curve.c \
  src/training/evaluation/evaluate.c \
  src/training/evaluation/evaluator.h \
  src/training/text/sample.c \
  src/training/text/tokenizer.c \
  src/training/text/tokenizer_file.c \
  src/training/text/tokenizer_state.h \
  src/training/worker/worker_archive.c \
  src/training/worker/machine_digest.c \
  src/training/worker/packed_merge.c \
  src/training/worker/packing.c \
  src/training/worker/packing_modular.c \
  src/training/worker/comparing.c \
  src/training/worker/guarding.c \
  src/training/worker/lying.c \
  src/training/worker/median_step.c \
  src/training/worker/outside.c \
  src/training/worker/train_item.c \
  src/training/worker/trainer.c \
  src/training/worker/recovery.c \
  src/training/worker/snapshot.c \
  src/training/worker/speed.c \
  src/training/worker/step_parts.c \
  src/training/worker/vectors.c \
  src/training/worker/norms.c \
  src/training/worker/work_items.c \
  src/training/worker/worker.c \
  src/training/worker/worker_state.h

# The CUDA module: kith-cuda.so, compiled by nvcc where there is one, loaded at
# run time (include/kith/cuda_module.h). CUDA_TARGETS says for which devices:
# machine code for Hopper, and PTX that newer and some older ones translate.
CUDA_UNITS = \
  src/training/cuda/attention.cu \
  src/training/cuda/attention_mma.cu \
  src/training/cuda/backend.cu \
  src/training/cuda/combine.cu \
  src/training/cuda/compressors.cu \
  src/training/cuda/conv.cu \
  src/training/cuda/cudnn.cu \
  src/training/cuda/gather.cu \
  src/training/cuda/linear.cu \
  src/training/cuda/memory.cu \
  src/training/cuda/ms_top_k.cu \
  src/training/cuda/norm.cu \
  src/training/cuda/outside.cu \
  src/training/cuda/packing.cu \
  src/training/cuda/products.cu \
  src/training/cuda/residues.cu \
  src/training/cuda/rms_norm.cu \
  src/training/cuda/rotary.cu \
  src/training/cuda/simple.cu \
  src/training/cuda/sparse.cu \
  src/training/cuda/state.cu \
  src/training/cuda/text.cu \
  src/training/cuda/top_k.cu \
  src/training/cuda/vector.cu
CUDA_INCLUDED = \
  include/kith/backend.h \
  include/kith/compressed.h \
  include/kith/cuda_module.h \
  include/kith/dropout.h \
  include/kith/grid.h \
  include/kith/half.h \
  include/kith/magnitudes.h \
  include/kith/ops.h \
  include/kith/outside.h \
  include/kith/residues.h \
  src/training/cuda/attention.cuh \
  src/training/cuda/columns.cuh \
  src/training/cuda/common.cuh \
  src/training/cuda/cudnn.cuh \
  src/training/cuda/philox.cuh \
  src/training/cuda/platform.cuh \
  src/training/cuda/products.cuh \
  src/training/cuda/reduce.cuh \
  src/training/cuda/rows.cuh \
  src/training/cuda/sparse.cuh \
  src/training/cuda/state.cuh \
  src/training/cuda/tile.cuh \
  src/training/cuda/warps.cuh \
  src/training/cuda/wire.cuh
CUDA_DEFINES = -DPACKAGE_VERSION='"$(PACKAGE_VERSION)"' \
  -I$(srcdir)/include -I$(srcdir) -I$(srcdir)/src/training/cuda
EXTRA_DIST += $(CUDA_UNITS) $(CUDA_INCLUDED)

if HAVE_NVCC
CUDA_TARGETS = -gencode arch=compute_90,code=sm_90 \
  -gencode arch=compute_80,code=compute_80
CUDA_OBJECTS = $(CUDA_UNITS:.cu=.o)
cudadir = $(pkglibdir)
cuda_DATA = kith-cuda.so
CLEANFILES += kith-cuda.so $(CUDA_OBJECTS)
$(CUDA_OBJECTS): %.o: %.cu $(CUDA_INCLUDED)
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(NVCC) -std=c++17 -O3 --extended-lambda $(CUDA_TARGETS) $(CUDA_DEFINES) \
	  -Xcompiler -fPIC,-fvisibility=hidden,-Wall $(NVCCFLAGS) -c -o $@ $<
kith-cuda.so: $(CUDA_OBJECTS)
	$(AM_V_GEN)$(NVCC) -shared -cudart static -o $@.new $(CUDA_OBJECTS) \
	  -Xlinker -z,relro,-z,now -ldl -lpthread && mv $@.new $@
endif

# The same sources on the host, for tests: tests/cuda/emulate.h.
if HAVE_CXX
EMULATED = $(CUDA_UNITS:.cu=.host.o) tests/cuda/emulate.host.o
check_DATA += tests/cuda/kith-cuda-host.so
CLEANFILES += tests/cuda/kith-cuda-host.so $(EMULATED)
EMULATE = $(CXX) -std=c++17 -O2 -g -Wall -Wextra -fPIC -ffp-contract=off \
  -fvisibility=hidden -I$(srcdir)/tests/cuda $(CUDA_DEFINES)
%.host.o: %.cu $(CUDA_INCLUDED) tests/cuda/emulate.h
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(EMULATE) -x c++ -c -o $@ $<
tests/cuda/emulate.host.o: tests/cuda/emulate.cc tests/cuda/emulate.h
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(EMULATE) -c -o $@ $(srcdir)/tests/cuda/emulate.cc
tests/cuda/kith-cuda-host.so: $(EMULATED)
	$(AM_V_GEN)$(CXX) -shared -o $@ $(EMULATED) -lpthread
endif
EXTRA_DIST += tests/cuda/emulate.cc tests/cuda/emulate.h

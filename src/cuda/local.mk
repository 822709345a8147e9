# The CUDA module: kith-cuda.so, compiled by nvcc where there is one, loaded at
# run time (src/backend/cuda_module.h). CUDA_TARGETS says for which devices:
# machine code for Hopper, and PTX that newer and some older ones translate.
CUDA_UNITS = \
  src/cuda/attention.cu \
  src/cuda/attention_mma.cu \
  src/cuda/backend.cu \
  src/cuda/conv.cu \
  src/cuda/cudnn.cu \
  src/cuda/linear.cu \
  src/cuda/memory.cu \
  src/cuda/norm.cu \
  src/cuda/products.cu \
  src/cuda/simple.cu \
  src/cuda/state.cu \
  src/cuda/text.cu \
  src/cuda/vector.cu
CUDA_INCLUDED = \
  include/kith/backend.h \
  include/kith/ops.h \
  src/backend/cuda_module.h \
  src/cuda/attention.cuh \
  src/cuda/columns.cuh \
  src/cuda/common.cuh \
  src/cuda/cudnn.cuh \
  src/cuda/platform.cuh \
  src/cuda/products.cuh \
  src/cuda/state.cuh \
  src/cuda/tile.cuh
CUDA_DEFINES = -DPACKAGE_VERSION='"$(PACKAGE_VERSION)"' \
  -I$(srcdir)/include -I$(srcdir) -I$(srcdir)/src/cuda
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
	$(AM_V_GEN)$(NVCC) -std=c++17 -O3 $(CUDA_TARGETS) $(CUDA_DEFINES) \
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

noinst_LIBRARIES += libkith_plugins.a
libkith_plugins_a_CFLAGS = $(C11)
libkith_plugins_a_SOURCES = \
  src/algorithm/adpsgd.c \
  src/algorithm/algorithms.c \
  src/algorithm/algorithms.def \
  src/algorithm/dpsgd.c \
  src/algorithm/local.c \
  src/algorithm/sgp.c \
  src/compressor/compressors.def \
  src/compressor/none.c \
  src/compressor/registry.c \
  src/guard/guards.def \
  src/guard/none.c \
  src/guard/registry.c \
  src/model/consensus.c \
  src/model/layers.c \
  src/model/layers.h \
  src/model/logistic.c \
  src/model/mlp.c \
  src/model/models.def \
  src/model/none.c \
  src/model/quadratic.c \
  src/model/registry.c \
  src/model/vector.c \
  src/model/vector.h \
  src/optimiser/adamw.c \
  src/optimiser/clip.c \
  src/optimiser/lars.c \
  src/optimiser/muon.c \
  src/optimiser/optimisers.def \
  src/optimiser/private.h \
  src/optimiser/registry.c \
  src/optimiser/schedule.c \
  src/optimiser/sgd.c \
  src/topology/complete.c \
  src/topology/exponential.c \
  src/topology/one_peer_exponential.c \
  src/topology/random.c \
  src/topology/registry.c \
  src/topology/rho.c \
  src/topology/ring.c \
  src/topology/topologies.def \
  src/topology/topology.c

noinst_LIBRARIES += libkith_plugins.a
libkith_plugins_a_CFLAGS = $(C11)
libkith_plugins_a_SOURCES = \
  src/topology/complete.c \
  src/topology/exponential.c \
  src/topology/one_peer_exponential.c \
  src/topology/random.c \
  src/topology/registry.c \
  src/topology/rho.c \
  src/topology/ring.c \
  src/topology/topologies.def \
  src/topology/topology.c

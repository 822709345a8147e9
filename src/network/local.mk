noinst_LIBRARIES += libkith_network.a
libkith_network_a_CFLAGS = $(C11)
libkith_network_a_SOURCES = \
  src/network/arena.c \
  src/network/backward.c \
  src/network/layout.c \
  src/network/measure.c \
  src/network/network.c \
  src/network/plan.c \
  src/network/private.h \
  src/network/run.c

noinst_LIBRARIES += libkith_sim.a
libkith_sim_a_CFLAGS = $(C11)
libkith_sim_a_SOURCES = \
  sim/channel.c \
  sim/engine.c \
  sim/fault.c \
  sim/ledger.c \
  sim/link.c \
  sim/memory.c \
  sim/memory.h \
  sim/network.c \
  sim/outbox.c \
  sim/queue.c \
  sim/queue.h \
  sim/result.c \
  sim/run.c \
  sim/sort.c \
  sim/sort.h \
  sim/table.c \
  sim/table.h \
  sim/trace.c \
  sim/work.c \
  sim/world.h

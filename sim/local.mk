noinst_LIBRARIES += libkith_sim.a
libkith_sim_a_CFLAGS = $(C11)
libkith_sim_a_SOURCES = \
  sim/central/bounds.c \
  sim/central/central.h \
  sim/central/collective.c \
  sim/central/desk.c \
  sim/central/doubling.c \
  sim/central/easgd.c \
  sim/central/engine.c \
  sim/central/mpca.c \
  sim/central/naive.c \
  sim/central/quorum.c \
  sim/central/result.c \
  sim/central/ring.c \
  sim/central/run.c \
  sim/central/run.h \
  sim/central/scatter.c \
  sim/central/server.c \
  sim/central/server.h \
  sim/central/stages.c \
  sim/central/sync.c \
  sim/central/tree.c \
  sim/central/treeeasgd.c \
  sim/central/vertical.c \
  sim/central/vertical.h \
  sim/channel.c \
  sim/delay.c \
  sim/delay.h \
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
  sim/table.c \
  sim/table.h \
  sim/tally.c \
  sim/trace.c \
  sim/work.c \
  sim/world.h

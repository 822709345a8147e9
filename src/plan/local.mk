# Closed forms of a cluster's speed and memory: pure functions.
noinst_LIBRARIES += libkith_plan.a
libkith_plan_a_CFLAGS = $(C11)
libkith_plan_a_SOURCES = \
  src/plan/consensus_step.c \
  src/plan/hiding.c \
  src/plan/join_rate.c \
  src/plan/knapsack.c \
  src/plan/memory_bound.c \
  src/plan/minibatch.c \
  src/plan/mixing.c \
  src/plan/parameter_servers.c \
  src/plan/plan_range.c \
  src/plan/plan_range.h \
  src/plan/speedup.c

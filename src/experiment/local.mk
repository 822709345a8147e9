noinst_LIBRARIES += libkith_experiment.a
libkith_experiment_a_CFLAGS = $(GNU11)
libkith_experiment_a_SOURCES = src/check/accuracy.c \
  src/check/accuracy_mean.c src/check/accuracy_worst.c src/check/check.c \
  src/check/checks.def src/check/conserved.c \
  src/check/consensus_distance.c src/check/correlation.c src/check/done.c src/check/failed.c \
  src/check/finite.c src/check/loss.c src/check/registry.c \
  src/check/torn.c src/check/waiting_share.c \
  src/experiment/central.c \
  src/experiment/choices.c src/experiment/coefficients.c \
  src/experiment/compression.c \
  src/experiment/data.c src/experiment/derive.c \
  src/experiment/differ.c \
  src/experiment/faults.c src/experiment/graph.c \
  src/experiment/keys.c src/experiment/keys.h \
  src/experiment/load.c src/experiment/match.c src/experiment/peer_file.c \
  src/experiment/read.h src/experiment/rules.c src/experiment/schema.c \
  src/experiment/schema.h src/experiment/train.c \
  src/experiment/tree.c src/experiment/tree.h \
  src/experiment/write.c \
  src/fault/atoms.c src/fault/crash.c src/fault/expand.c \
  src/fault/expand.h src/fault/faults.def src/fault/partition.c \
  src/fault/pause.c src/fault/registry.c src/fault/selector.c \
  src/fault/slow.c src/fault/spread.c

noinst_LIBRARIES += libkith_experiment.a
libkith_experiment_a_CFLAGS = $(GNU11)
libkith_experiment_a_SOURCES = \
  src/experiment/central_rules.c \
  src/experiment/choices.c \
  src/experiment/coefficients.c \
  src/experiment/combination_rules.c \
  src/experiment/data_rules.c \
  src/experiment/derive.c \
  src/experiment/experiment_hash.c \
  src/experiment/fault_statements.c \
  src/experiment/key_table.c \
  src/experiment/key_table.h \
  src/experiment/link_law.c \
  src/experiment/load.c \
  src/experiment/machine_file.c \
  src/experiment/names_file.c \
  src/experiment/peer_file.c \
  src/experiment/latencies.c \
  src/experiment/latency_files.c \
  src/experiment/read_file.h \
  src/experiment/readers.c \
  src/experiment/registry.c \
  src/experiment/rules.c \
  src/experiment/schema.c \
  src/experiment/schema.h \
  src/experiment/swarm_draw.c \
  src/experiment/task.c \
  src/experiment/topology_rules.c \
  src/experiment/train_rules.c \
  src/experiment/yaml_tree.c \
  src/experiment/yaml_tree.h \
  src/experiment/yaml_write.c \
  src/experiment/check/check.c \
  src/experiment/check/liveness.c \
  src/experiment/check/quantities.c \
  src/experiment/fault/atoms.c \
  src/experiment/fault/crash.c \
  src/experiment/fault/expand.c \
  src/experiment/fault/faults.def \
  src/experiment/fault/hostile.c \
  src/experiment/fault/huge.c \
  src/experiment/fault/partition.c \
  src/experiment/fault/pause.c \
  src/experiment/fault/selector.c \
  src/experiment/fault/sides.c \
  src/experiment/fault/slow.c \
  src/experiment/fault/spread.c

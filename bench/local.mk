# A benchmark is bench/bench_NAME.c and one line here, sorted.
BENCHES = \
  bench/bench_wire
EXTRA_PROGRAMS += $(BENCHES)

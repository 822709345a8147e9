# A benchmark is bench/bench_NAME.c and one name here.
BENCHES =
EXTRA_PROGRAMS += $(BENCHES)

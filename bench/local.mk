# A benchmark is bench/bench_NAME.c and one line here, sorted.
BENCHES = \
  bench/bench_merge \
  bench/bench_train \
  bench/bench_wire
EXTRA_PROGRAMS += $(BENCHES)
bench_bench_train_CPPFLAGS = $(AM_CPPFLAGS) \
  -DBENCH_FOLDER='"$(abs_srcdir)/bench"'
EXTRA_DIST += bench/train_torch.py

# A benchmark is bench/bench_NAME.c and one line here, sorted.
BENCHES = \
  bench/bench_algorithms \
  bench/bench_channel \
  bench/bench_conv \
  bench/bench_events \
  bench/bench_exchange \
  bench/bench_gossip \
  bench/bench_guard \
  bench/bench_handshake \
  bench/bench_handshake_session \
  bench/bench_library \
  bench/bench_loader \
  bench/bench_merge \
  bench/bench_ops \
  bench/bench_packing \
  bench/bench_record \
  bench/bench_record_threads \
  bench/bench_recovery \
  bench/bench_rules \
  bench/bench_sketch \
  bench/bench_sparse \
  bench/bench_top_k \
  bench/bench_tensors \
  bench/bench_train \
  bench/bench_transport \
  bench/bench_wire
EXTRA_PROGRAMS += $(BENCHES)
bench_bench_train_CPPFLAGS = $(AM_CPPFLAGS) \
  -DBENCH_FOLDER='"$(abs_srcdir)/bench"'
# The linker puts a recorder around what the simulator calls.
bench_bench_algorithms_CPPFLAGS = $(AM_CPPFLAGS) \
  -DBENCH_FOLDER='"$(abs_srcdir)/bench"'
bench_bench_algorithms_LDFLAGS = $(AM_LDFLAGS) \
  -Wl,--wrap=kith_worker_open,--wrap=kith_worker_close \
  -Wl,--wrap=kith_worker_run,--wrap=kith_worker_prepare \
  -Wl,--wrap=sim_copy_slot \
  -Wl,--wrap=sim_copy_forget \
  -Wl,--wrap=kith_worker_swap,--wrap=kith_worker_read \
  -Wl,--wrap=kith_evaluator_score
bench_bench_conv_SOURCES = bench/bench_conv.c bench/peak.h
bench_bench_train_SOURCES = bench/bench_train.c bench/peak.h
EXTRA_DIST += bench/conv_torch.py bench/top_k_torch.py
EXTRA_DIST += bench/mlp_worker.h bench/calendar.h bench/steps_alone.h bench/train_torch.py bench/quality_torch.py \
  bench/bf16_loss.py

# Two sessions joined by memory, as in the tests.
bench_bench_record_SOURCES = bench/bench_record.c $(SESSIONS)
bench_bench_record_threads_SOURCES = bench/bench_record_threads.c $(SESSIONS)
bench_bench_handshake_session_SOURCES = bench/bench_handshake_session.c \
  $(SESSIONS)
bench_bench_record_CPPFLAGS = $(AM_CPPFLAGS)
if HAVE_LIBCRYPTO
bench_bench_record_CPPFLAGS += -DKITH_HAVE_LIBCRYPTO $(CRYPTO_CFLAGS)
endif

# Real peers, as in the tests, beside gloo's.
bench_bench_exchange_SOURCES = bench/bench_exchange.c bench/bare_exchange.h bench/plain.h bench/network.h $(PEERS)
bench_bench_exchange_CPPFLAGS = $(AM_CPPFLAGS) \
  -DBENCH_FOLDER='"$(abs_srcdir)/bench"'
bench_bench_channel_SOURCES = bench/bench_channel.c bench/plain.h $(PEERS) \
  $(SESSIONS)
bench_bench_handshake_SOURCES = bench/bench_handshake.c bench/plain.h $(PEERS) \
  $(SESSIONS)
bench_bench_tensors_SOURCES = bench/bench_tensors.c bench/plain.h \
  bench/tensor_ways.h
bench_bench_transport_SOURCES = bench/bench_transport.c bench/plain.h
EXTRA_DIST += bench/exchange_gloo.py bench/library.py bench/mean_hivemind.py \
  bench/mean_torchft.py bench/two_ranks.py

# Two peers of a program's, in C and from Python.
bench_bench_library_SOURCES = bench/bench_library.c $(LIBRARY_FILES)
bench_bench_library_CPPFLAGS = $(AM_CPPFLAGS) \
  -DBENCH_FOLDER='"$(abs_srcdir)/bench"'

# What runs on a machine with a GPU builds itself: bench/gpu/run.sh.
EXTRA_DIST += $(wildcard $(srcdir)/bench/gpu/*.*)

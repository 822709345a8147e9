# A fuzz target is tests/fuzz/fuzz_NAME.c, one line in FUZZERS and its LDFLAGS
# line; seeds, if any, in tests/fuzz/corpus/NAME/.
#
#   make fuzz                       10^6 executions of every target
#   make fuzz FUZZERS=tests/fuzz/fuzz_unpack FUZZ_RUNS=100000
#
# The targets live in a build of their own, fuzz-build/, made with clang,
# libFuzzer's coverage and the sanitizers.
FUZZERS = \
  tests/fuzz/fuzz_certificate \
  tests/fuzz/fuzz_cifar \
  tests/fuzz/fuzz_compressor \
  tests/fuzz/fuzz_experiment \
  tests/fuzz/fuzz_format \
  tests/fuzz/fuzz_frame \
  tests/fuzz/fuzz_handshake \
  tests/fuzz/fuzz_http \
  tests/fuzz/fuzz_idx \
  tests/fuzz/fuzz_journal \
  tests/fuzz/fuzz_machine \
  tests/fuzz/fuzz_manifest \
  tests/fuzz/fuzz_member \
  tests/fuzz/fuzz_names \
  tests/fuzz/fuzz_npy \
  tests/fuzz/fuzz_pieces \
  tests/fuzz/fuzz_places \
  tests/fuzz/fuzz_safetensors \
  tests/fuzz/fuzz_shard \
  tests/fuzz/fuzz_tokenizer \
  tests/fuzz/fuzz_unpack
FUZZ_RUNS = 1000000
FUZZ_FLAGS = -fsanitize=fuzzer

VICTIM = tests/fuzz/certified.c tests/fuzz/certified.h \
  tests/fuzz/victim.c tests/fuzz/victim.h $(SESSIONS)

EXTRA_DIST += tests/fuzz/fuzz_folder.h
EXTRA_PROGRAMS += $(FUZZERS) tests/fuzz/fuzz_canary
tests_fuzz_fuzz_canary_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_certificate_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_certificate_SOURCES = tests/fuzz/fuzz_certificate.c $(SESSIONS)
tests_fuzz_fuzz_cifar_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_compressor_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_experiment_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_format_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_frame_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_frame_SOURCES = tests/fuzz/fuzz_frame.c $(SESSIONS)
tests_fuzz_fuzz_handshake_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_handshake_SOURCES = tests/fuzz/fuzz_handshake.c $(SESSIONS)
tests_fuzz_fuzz_http_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_idx_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_journal_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_machine_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_manifest_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_member_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_member_SOURCES = tests/fuzz/fuzz_member.c $(VICTIM)
tests_fuzz_fuzz_names_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_npy_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_pieces_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_pieces_SOURCES = tests/fuzz/fuzz_pieces.c $(VICTIM)
tests_fuzz_fuzz_places_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_safetensors_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_shard_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_tokenizer_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_unpack_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)

fuzz-build/Makefile: $(srcdir)/configure
	@test -n '$(FUZZ_CC)' || { echo 'make fuzz needs clang' >&2; exit 1; }
	$(MKDIR_P) fuzz-build
	cd fuzz-build && $(abs_srcdir)/configure -q CC='$(FUZZ_CC)' \
	  --enable-sanitize=fuzzer-no-link,address,undefined

fuzz: fuzz-build/Makefile
	cd fuzz-build && $(MAKE) $(AM_MAKEFLAGS) $(noinst_LIBRARIES) && \
	  $(MAKE) $(AM_MAKEFLAGS) $(FUZZERS) tests/fuzz/fuzz_canary
	cd fuzz-build && $(abs_srcdir)/tests/fuzz/fuzz.sh $(FUZZ_RUNS) $(FUZZERS)

clean-local:
	rm -rf coverage-build findings fuzz-build
.PHONY: fuzz

noinst_LIBRARIES += libkith_cli.a
libkith_cli_a_CFLAGS = $(GNU11)
libkith_cli_a_CPPFLAGS = $(AM_CPPFLAGS) -DKITH_DATA_DIR='"$(pkgdatadir)"'
libkith_cli_a_SOURCES = src/cli/calibrate.c src/cli/calibrate.h src/cli/cli.h \
  src/cli/codec.c src/cli/compute.c src/cli/doctor.c src/cli/eval.c src/cli/export.c \
  src/cli/grid.c \
  src/cli/keys.c src/cli/lab.c src/cli/list.c src/cli/member.c \
  src/cli/member.h src/cli/model.c src/cli/model.h src/cli/options.c \
  src/cli/peer.c src/cli/replay.c src/cli/report.c src/cli/resume.c src/cli/run.c \
  src/cli/sample.c src/cli/sends.c src/cli/sim.c src/cli/sweep.c src/cli/sweep.h \
  src/cli/terminal.c src/cli/topology.c src/cli/train.c

bin_PROGRAMS += kith
kith_SOURCES = src/cli/main.c
kith_CFLAGS = $(GNU11)
kith_LDADD = $(KITH_LIBS)

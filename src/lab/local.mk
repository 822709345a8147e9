# Many real peers on one machine, and their launcher.
noinst_LIBRARIES += libkith_lab.a
libkith_lab_a_CFLAGS = $(GNU11) $(MSGPACK_CFLAGS)
libkith_lab_a_SOURCES = \
  src/lab/average.c \
  src/lab/average.h \
  src/lab/child.c \
  src/lab/child.h \
  src/lab/cluster.c \
  src/lab/cluster.h \
  src/lab/interrupted_run.c \
  src/lab/lab.c \
  src/lab/lab_faults.c \
  src/lab/lab_liveness.c \
  src/lab/lab_result.c \
  src/lab/launcher.c \
  src/lab/launcher.h \
  src/lab/place.c \
  src/lab/process.c \
  src/lab/process.h \
  src/lab/program.c \
  src/lab/records.c \
  src/lab/records.h \
  src/lab/save_folder.c \
  src/lab/scoring.c \
  src/lab/speaker.c

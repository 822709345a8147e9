noinst_LIBRARIES += libkith_lab.a
libkith_lab_a_CFLAGS = $(GNU11)
libkith_lab_a_SOURCES = \
  src/lab/average.c src/lab/average.h \
  src/lab/child.c src/lab/child.h \
  src/lab/cluster.c src/lab/cluster.h \
  src/lab/fault.c \
  src/lab/folder.c src/lab/folder.h \
  src/lab/lab.c src/lab/past.c \
  src/lab/launcher.c src/lab/launcher.h \
  src/lab/process.c src/lab/process.h \
  src/lab/result.c \
  src/lab/rows.c src/lab/rows.h

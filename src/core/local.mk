noinst_LIBRARIES += libkith_core.a
libkith_core_a_CFLAGS = $(C11)
libkith_core_a_SOURCES = \
  src/core/active.c \
  src/core/estimate.c \
  src/core/mailbox.c \
  src/core/names.c \
  src/core/node.c \
  src/core/private.h \
  src/core/round.c \
  src/core/round_catch.c \
  src/core/round_edge.c \
  src/core/round_list.c \
  src/core/served.c

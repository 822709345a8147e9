noinst_LIBRARIES += libkith_wire.a
libkith_wire_a_CFLAGS = $(C11) $(MSGPACK_CFLAGS)
libkith_wire_a_SOURCES = \
  src/wire/layout.h \
  src/wire/names.c \
  src/wire/pack.c \
  src/wire/scan.c \
  src/wire/unpack.c

noinst_LIBRARIES += libkith_wire.a
libkith_wire_a_CFLAGS = $(C11)
libkith_wire_a_SOURCES =

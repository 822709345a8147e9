noinst_LIBRARIES += libkith_cli.a
libkith_cli_a_CFLAGS = $(GNU11)
libkith_cli_a_SOURCES =

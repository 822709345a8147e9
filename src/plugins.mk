noinst_LIBRARIES += libkith_plugins.a
libkith_plugins_a_CFLAGS = $(C11)
libkith_plugins_a_SOURCES =

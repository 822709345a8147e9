noinst_LIBRARIES += libkith_store.a
libkith_store_a_CFLAGS = $(C11)
libkith_store_a_SOURCES =

# libkith: one shared library that exports what kith.h declares and nothing else.
noinst_LIBRARIES += libkith_library.a
libkith_library_a_CFLAGS = $(GNU11)
libkith_library_a_SOURCES = \
  src/library/library.c \
  src/library/member_file.c

LIBRARY_MAP = src/library/libkith.map
LIBRARY_ARCHIVES = libkith_library.a libkith_peer.a libkith_keys.a \
  $(SIM_ARCHIVES)
EXTRA_DIST += $(LIBRARY_MAP)
CLEANFILES += libkith.so.0
libkith.so.0: $(LIBRARY_ARCHIVES) $(LIBRARY_MAP)
	$(AM_V_CCLD)$(CC) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS) -shared -o $@ \
	  -Wl,-soname,$@ -Wl,--version-script,$(srcdir)/$(LIBRARY_MAP) \
	  -Wl,-z,nodelete -Wl,--no-undefined -Wl,--whole-archive \
	  libkith_library.a -Wl,--no-whole-archive \
	  libkith_peer.a libkith_keys.a $(SIM_ARCHIVES) $(UV_LIBS) $(SIM_EXTERNAL)
all-local: libkith.so.0

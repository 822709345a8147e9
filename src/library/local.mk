# libkith: one shared library and one archive; both export what kith.h declares
# and nothing else.
noinst_LIBRARIES += libkith_library.a
libkith_library_a_CFLAGS = $(GNU11)
libkith_library_a_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS)
libkith_library_a_SOURCES = \
  src/library/calls.c \
  src/library/handles.c \
  src/library/handles.h \
  src/library/in_lab.c \
  src/library/in_lab.h \
  src/library/library.c \
  src/library/library.h \
  src/library/member_file.c \
  src/library/program_fit.c \
  src/library/program_fit.h \
  src/library/simulate.c \
  src/library/take_vectors.c

LIBRARY_MAP = src/library/libkith.map
LIBRARY_PARTS = libkith_lab.a libkith_peer.a libkith_keys.a $(SIM_ARCHIVES)
LIBRARY_ARCHIVES = libkith_library.a $(LIBRARY_PARTS)
EXTRA_DIST += $(LIBRARY_MAP)
CLEANFILES += libkith.so.0 libkith.a $(wildcard *.whl)
libkith.so.0: $(LIBRARY_ARCHIVES) $(LIBRARY_MAP)
	$(AM_V_CCLD)$(CC) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS) -shared -o $@ \
	  -Wl,-soname,$@ -Wl,--version-script,$(srcdir)/$(LIBRARY_MAP) \
	  -Wl,-z,nodelete -Wl,--no-undefined -Wl,--whole-archive \
	  libkith_library.a -Wl,--no-whole-archive \
	  $(LIBRARY_PARTS) $(UV_LIBS) $(SIM_EXTERNAL)
# One object, whose names but the public ones are its own.
libkith.a: $(LIBRARY_ARCHIVES) $(LIBRARY_MAP)
	$(AM_V_AR)sed -n 's/^ *\(kith_[a-z_]*\);$$/\1/p' $(srcdir)/$(LIBRARY_MAP) >$@.public
	$(AM_V_at)$(CC) -r -nostdlib -o $@.o -Wl,--whole-archive \
	  libkith_library.a -Wl,--no-whole-archive $(LIBRARY_PARTS)
	$(AM_V_at)$(OBJCOPY) --keep-global-symbols=$@.public $@.o
	$(AM_V_at)rm -f $@ && $(AR) crs $@ $@.o && rm -f $@.o $@.public

all-local: libkith.so.0 libkith.a

# kith.pc is written as it is installed, so that `make install prefix=` is heard.
install-exec-local: libkith.so.0 libkith.a
	$(MKDIR_P) '$(DESTDIR)$(libdir)/pkgconfig' '$(DESTDIR)$(includedir)/kith'
	$(INSTALL_DATA) libkith.so.0 libkith.a '$(DESTDIR)$(libdir)'
	ln -sf libkith.so.0 '$(DESTDIR)$(libdir)/libkith.so'
	$(INSTALL_DATA) $(srcdir)/include/kith/kith.h '$(DESTDIR)$(includedir)/kith'
	printf '%s\n' 'Name: kith' 'Version: $(PACKAGE_VERSION)' \
	  'Description: a training loop of yours becomes a peer that gossips' \
	  'Cflags: -I$(includedir)' 'Libs: -L$(libdir) -lkith' \
	  'Libs.private: $(UV_LIBS) $(SIM_EXTERNAL)' \
	  >'$(DESTDIR)$(libdir)/pkgconfig/kith.pc'

wheel: kith libkith.so.0
	python3 $(srcdir)/python/make_wheel.py $(PACKAGE_VERSION) .
.PHONY: wheel

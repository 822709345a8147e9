noinst_LIBRARIES += libkith_base.a
libkith_base_a_CFLAGS = $(C11)
libkith_base_a_SOURCES = \
  src/base/archive.c \
  src/base/build.c \
  src/base/err.c \
  src/base/hash.c \
  src/base/heap.c \
  src/base/rng.c \
  src/base/rng_table.h \
  src/base/text.c \
  src/base/units.c

# Looked at by every make, written when a source has changed: then build.c alone
# is compiled anew.
source_digest.h: FORCE
	$(AM_V_at)digest=`$(SHELL) $(srcdir)/src/base/source_digest.sh \
	  $(srcdir)` && test -n "$$digest" && \
	line="#define SOURCE_DIGEST \"$$digest\"" && \
	{ { test -f $@ && test "`cat $@`" = "$$line"; } || \
	  { printf '%s\n' "$$line" >$@.new && mv $@.new $@; }; }
src/base/libkith_base_a-build.$(OBJEXT): source_digest.h
CLEANFILES += source_digest.h source_digest.h.new
EXTRA_DIST += src/base/source_digest.sh
.PHONY: FORCE

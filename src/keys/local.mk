# Keys, certificates and revocation lists on disk.
noinst_LIBRARIES += libkith_keys.a
libkith_keys_a_CFLAGS = $(GNU11) $(SODIUM_CFLAGS)
libkith_keys_a_SOURCES = \
  src/keys/keys.c \
  src/keys/keys_file.c \
  src/keys/keys_file.h \
  src/keys/keys_ranks.c \
  src/keys/keys_show.c \
  src/keys/keys_trust.c

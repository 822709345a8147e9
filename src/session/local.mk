# The session: certificates, Noise, records. Plain C, no heap, no clock.
noinst_LIBRARIES += libkith_session.a
libkith_session_a_CFLAGS = $(C11)
libkith_session_a_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS)
libkith_session_a_SOURCES = \
  src/session/aead.c \
  src/session/aead.h \
  src/session/aead_sodium.c \
  src/session/bytes.h \
  src/session/certificate.c \
  src/session/certificate.h \
  src/session/cipher.c \
  src/session/cipher.h \
  src/session/crl.c \
  src/session/digest.c \
  src/session/digest.h \
  src/session/noise.c \
  src/session/noise.h \
  src/session/session.c \
  src/session/session_handshake.c \
  src/session/session_record.c \
  src/session/session_state.h \
  src/session/trust.c

# The provider over OpenSSL allocates, so it is an archive of its own.
EXTRA_DIST += src/session/aead_libcrypto.c
if HAVE_LIBCRYPTO
noinst_LIBRARIES += libkith_libcrypto.a
libkith_libcrypto_a_CFLAGS = $(C11)
libkith_libcrypto_a_CPPFLAGS = $(AM_CPPFLAGS) $(CRYPTO_CFLAGS)
libkith_libcrypto_a_SOURCES = src/session/aead_libcrypto.c
libkith_session_a_CPPFLAGS += -DKITH_HAVE_LIBCRYPTO
endif

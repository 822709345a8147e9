# What peers say to each other: bytes, sealed channels, one peer's decisions.
noinst_LIBRARIES += libkith_wire.a
libkith_wire_a_CFLAGS = $(C11) $(MSGPACK_CFLAGS)
libkith_wire_a_SOURCES = \
  src/protocol/wire/layout.h \
  src/protocol/wire/message_names.c \
  src/protocol/wire/pack.c \
  src/protocol/wire/scan.c \
  src/protocol/wire/unpack.c

# Certificates, Noise, records. Plain C, no heap, no clock.
noinst_LIBRARIES += libkith_session.a
libkith_session_a_CFLAGS = $(C11)
libkith_session_a_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS)
libkith_session_a_SOURCES = \
  src/protocol/session/aead.c \
  src/protocol/session/aead.h \
  src/protocol/session/aead_aegis.c \
  src/protocol/session/aead_sodium.c \
  src/protocol/session/aegis.h \
  src/protocol/session/aegis.inc.h \
  src/protocol/session/aegis_aesni.c \
  src/protocol/session/aegis_vaes.c \
  src/protocol/session/bytes.h \
  src/protocol/session/certificate.c \
  src/protocol/session/certificate.h \
  src/protocol/session/cipher.c \
  src/protocol/session/cipher.h \
  src/protocol/session/crl.c \
  src/protocol/session/digest.c \
  src/protocol/session/digest.h \
  src/protocol/session/noise.c \
  src/protocol/session/noise.h \
  src/protocol/session/session.c \
  src/protocol/session/session_burst.c \
  src/protocol/session/session_handshake.c \
  src/protocol/session/session_record.c \
  src/protocol/session/session_state.h \
  src/protocol/session/suite.c \
  src/protocol/session/trust.c

# The provider over OpenSSL allocates, so it is an archive of its own.
EXTRA_DIST += src/protocol/session/aead_libcrypto.c
if HAVE_LIBCRYPTO
noinst_LIBRARIES += libkith_libcrypto.a
libkith_libcrypto_a_CFLAGS = $(C11)
libkith_libcrypto_a_CPPFLAGS = $(AM_CPPFLAGS) $(CRYPTO_CFLAGS)
libkith_libcrypto_a_SOURCES = src/protocol/session/aead_libcrypto.c
libkith_session_a_CPPFLAGS += -DKITH_HAVE_LIBCRYPTO
endif

# So does that over ipsec-mb.
EXTRA_DIST += src/protocol/session/aead_ipsec_mb.c
if HAVE_IPSEC_MB
noinst_LIBRARIES += libkith_ipsec_mb.a
libkith_ipsec_mb_a_CFLAGS = $(C11)
libkith_ipsec_mb_a_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS)
libkith_ipsec_mb_a_SOURCES = src/protocol/session/aead_ipsec_mb.c
libkith_session_a_CPPFLAGS += -DKITH_HAVE_IPSEC_MB
endif

# The node: events in, effects out.
noinst_LIBRARIES += libkith_core.a
libkith_core_a_CFLAGS = $(C11)
libkith_core_a_SOURCES = \
  src/protocol/core/exchange.c \
  src/protocol/core/exchange.h \
  src/protocol/core/exchange_initiator.c \
  src/protocol/core/exchange_partner.c \
  src/protocol/core/exchange_responder.c \
  src/protocol/core/exchange_turns.c \
  src/protocol/core/mark_names.c \
  src/protocol/core/mode.h \
  src/protocol/core/node.c \
  src/protocol/core/node_state.h \
  src/protocol/core/presence.c \
  src/protocol/core/round.c \
  src/protocol/core/round.h \
  src/protocol/core/round_cast.c \
  src/protocol/core/round_edge.c \
  src/protocol/core/round_late.c \
  src/protocol/core/round_mailbox.c \
  src/protocol/core/round_message.c \
  src/protocol/core/round_mutual.c \
  src/protocol/core/round_neighbours.c \
  src/protocol/core/round_rejoin.c \
  src/protocol/core/round_settle.c \
  src/protocol/core/round_trip.c \
  src/protocol/core/round_trip.h \
  src/protocol/core/round_work.c \
  src/protocol/core/suspects.c \
  src/protocol/core/timeouts.c \
  src/protocol/core/trigger.c

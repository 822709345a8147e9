# The real-world driver: sockets, connections, the training thread, one peer.
noinst_LIBRARIES += libkith_peer.a
libkith_peer_a_CFLAGS = $(GNU11)
libkith_peer_a_CPPFLAGS = $(AM_CPPFLAGS) $(UV_CFLAGS) $(SODIUM_CFLAGS)
libkith_peer_a_SOURCES = \
  src/peer/account.h \
  src/peer/address.c \
  src/peer/address.h \
  src/peer/caller.c \
  src/peer/caller_seat.h \
  src/peer/choose_suite.c \
  src/peer/choose_suite.h \
  src/peer/connection.c \
  src/peer/connection.h \
  src/peer/connection_life.c \
  src/peer/control_pipe.c \
  src/peer/data_gathering.c \
  src/peer/diagnose.c \
  src/peer/driver.c \
  src/peer/driver.h \
  src/peer/ending.c \
  src/peer/event_journal.c \
  src/peer/frame_bytes.h \
  src/peer/fork_gate.c \
  src/peer/fork_loop.h \
  src/peer/gathering.c \
  src/peer/guest.c \
  src/peer/half_open.c \
  src/peer/half_open.h \
  src/peer/hand_over.c \
  src/peer/hand_over.h \
  src/peer/identify.c \
  src/peer/listen.c \
  src/peer/log_limit.c \
  src/peer/log_limit.h \
  src/peer/measure_link.c \
  src/peer/measure_link.h \
  src/peer/member.c \
  src/peer/own_curve.c \
  src/peer/own_curve.h \
  src/peer/peer.c \
  src/peer/peer_settings.c \
  src/peer/piece_exchange.c \
  src/peer/piece_exchange.h \
  src/peer/senders.c \
  src/peer/sent_vectors.c \
  src/peer/sent_vectors.h \
  src/peer/reception.c \
  src/peer/record_threads.c \
  src/peer/record_threads.h \
  src/peer/series.c \
  src/peer/revocation.c \
  src/peer/session_expiry.c \
  src/peer/shared_burst.c \
  src/peer/shared_vectors.c \
  src/peer/shared_vectors.h \
  src/peer/socket.c \
  src/peer/socket.h \
  src/peer/timer.c \
  src/peer/timer.h \
  src/peer/training_thread.c \
  src/peer/training_thread.h \
  src/peer/transfer.c \
  src/peer/transport.c \
  src/peer/transport.h \
  src/peer/visit.c \
  src/peer/visit.h

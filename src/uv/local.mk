# The real-world driver: sockets, links, the training thread, one peer.
noinst_LIBRARIES += libkith_uv.a
libkith_uv_a_CFLAGS = $(GNU11)
libkith_uv_a_CPPFLAGS = $(AM_CPPFLAGS) $(UV_CFLAGS) $(SODIUM_CFLAGS)
libkith_uv_a_SOURCES = \
  src/uv/account.h \
  src/uv/address.c \
  src/uv/address.h \
  src/uv/alarm.c \
  src/uv/alarm.h \
  src/uv/contact.c \
  src/uv/control.c \
  src/uv/doctor.c \
  src/uv/driver.c \
  src/uv/driver.h \
  src/uv/halfopen.c \
  src/uv/halfopen.h \
  src/uv/identify.c \
  src/uv/journal.c \
  src/uv/link.c \
  src/uv/listen.c \
  src/uv/net.c \
  src/uv/peer.c \
  src/uv/recheck.c \
  src/uv/repeat.c \
  src/uv/repeat.h \
  src/uv/rows.c \
  src/uv/settings.c \
  src/uv/shaper.c \
  src/uv/shaper.h \
  src/uv/socket.c \
  src/uv/socket.h \
  src/uv/socket_private.h \
  src/uv/thread.c \
  src/uv/thread.h \
  src/uv/traffic.c \
  src/uv/transport.c \
  src/uv/transport.h

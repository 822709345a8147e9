/* Strangers in great number: a process that connects to a peer so many times a
 * second from 200 loopback addresses, each of another /24, until it is ended.
 */
#ifndef KITH_TESTS_FLOOD_H
#define KITH_TESTS_FLOOD_H

#include "tests/support/peers.h"

enum flood_kind {
    FLOOD_SILENT, /* says nothing, for three seconds */
    FLOOD_RESET,  /* resets the connection at once */
    FLOOD_HELLO   /* a good preface and a first message, then nothing */
};

/* `core`: where it runs, -1: anywhere. */
pid_t flood_begin(const struct peers *peers, kith_id rank, enum flood_kind kind,
                  unsigned per_s, int core);
void flood_end(pid_t pid);

#endif

/* A certified member in a fuzz target: sessions of its own with a victim, over
 * a handshake that was made once and is restored for each run; what it hears it
 * keeps. Test: fuzz_member.c. */
#ifndef KITH_TESTS_CERTIFIED_H
#define KITH_TESTS_CERTIFIED_H

#include "src/protocol/session/session_state.h"
#include "tests/fuzz/victim.h"
#include "tests/support/sessions.h"

#define CERTIFIED_HEARD 8u

/* The victim's side of a handshake up to the other's HELLO; the member's side
 * to the end. */
struct certified {
    struct sessions pair;
    uint8_t *theirs, *ours; /* saved */
    uint8_t hello[KITH_HELLO_BYTES_MAX + KITH_RECORD_OVERHEAD];
    size_t hello_bytes, answer_bytes;
    kith_id rank;

    /* Of this run. */
    struct victim *victim;
    bool lost; /* its session is of no use any more */
    size_t skip;
    uint8_t partial[KITH_RECORD_BYTES_MAX + 2u];
    size_t partial_bytes;
    struct kith_message heard[CERTIFIED_HEARD];
    uint32_t heard_count;
    uint64_t transfers; /* models that it has announced */
};

/* Of the record that is sent next. */
extern uint8_t certified_bytes[KITH_RECORD_BYTES_MAX + 64u];

void certified_open(struct certified *member, kith_id rank);
/* A new connection of this member's; the old one, if there is one, stays. */
void certified_connect(struct certified *member, struct victim *victim);
/* Hears what the victim has sent. */
void certified_listen(struct certified *member);
/* So many of certified_bytes, `how`: bit 6: in small pieces; bit 7: one bit of
 * them is spoiled. */
void certified_wire(struct certified *member, size_t size, uint8_t how);
/* One control frame; one burst. */
void certified_frame(struct certified *member, const uint8_t *frame,
                     size_t bytes);
void certified_burst(struct certified *member, uint64_t transfer,
                     uint64_t offset, const uint8_t *payload, size_t length);

#endif

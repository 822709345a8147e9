/* A certified member in a fuzz target; see certified.h. */
#include "tests/fuzz/certified.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "kith/assert.h"
#include "kith/wire.h"
#include "src/protocol/session/aead.h"

uint8_t certified_bytes[KITH_RECORD_BYTES_MAX + 64u];

static void *kept(const struct sessions_end *end)
{
    void *memory = malloc(kith_session_size());
    KITH_ASSERT(memory != NULL);
    return memcpy(memory, end->memory, kith_session_size());
}

static void certify(struct sessions *pair, struct kith_identity *identity,
                    kith_id rank)
{
    char name[16];
    snprintf(name, sizeof name, "peer-%u", rank);
    sessions_identity(identity, name, &pair->cluster);
    struct kith_certificate certificate =
        sessions_certificate(identity, name, &pair->cluster);
    certificate.rank = rank;
    certificate.not_after_s = INT64_C(1) << 40; /* the driver's clock is real */
    sessions_certify(identity, &certificate, &pair->cluster);
}

/* Everything but the member's HELLO and what answers it; then those. */
static void shake_hands(struct certified *member)
{
    struct sessions_end *ours = &member->pair.ends[0];
    struct sessions_end *theirs = &member->pair.ends[1];
    uint8_t bytes[KITH_PREAUTH_BYTES];
    KITH_ASSERT(sessions_start(&member->pair));
    size_t n = kith_session_output(ours->session, bytes, sizeof bytes);
    KITH_ASSERT(sessions_feed(theirs, bytes, n) == KITH_OK);
    n = kith_session_output(theirs->session, bytes, sizeof bytes);
    KITH_ASSERT(sessions_feed(ours, bytes, n) == KITH_OK);
    n = kith_session_output(ours->session, bytes, sizeof bytes);
    const size_t message3 = 2u + ((size_t)bytes[0] << 8 | bytes[1]);
    KITH_ASSERT(message3 < n && n - message3 <= sizeof member->hello);
    member->hello_bytes = n - message3;
    memcpy(member->hello, bytes + message3, member->hello_bytes);
    KITH_ASSERT(sessions_feed(theirs, bytes, message3) == KITH_OK);
    member->theirs = kept(theirs);
    memcpy(bytes, member->hello, member->hello_bytes);
    KITH_ASSERT(sessions_feed(theirs, bytes, member->hello_bytes) == KITH_OK);
    n = kith_session_output(theirs->session, bytes, sizeof bytes);
    member->answer_bytes = n;
    KITH_ASSERT(sessions_feed(ours, bytes, n) == KITH_OK);
    KITH_ASSERT(kith_session_is_open(ours->session));
    member->ours = kept(ours);
}

void certified_open(struct certified *member, kith_id rank)
{
    struct sessions *pair = &member->pair;
    sessions_setup(pair, KITH_SUITE_CHACHAPOLY, &kith_aead_sodium, rank);
    member->rank = rank;
    for (int i = 0; i < 2; i++) {
        const kith_id who = i == 0 ? rank : VICTIM_SELF;
        certify(pair, &pair->ends[i].identity, who);
        pair->ends[i].config.hello.rank = who;
    }
    shake_hands(member);
}

static void hear(struct certified *member,
                 const struct kith_session_event *event)
{
    struct kith_session *s = (struct kith_session *)member->pair.ends[0].memory;
    struct kith_message message;
    if (event->kind == KITH_SESSION_BULK)
        kith_session_sink(s, NULL);
    if (event->kind == KITH_SESSION_CONTROL &&
        kith_wire_unpack(event->frame, event->frame_bytes, &message) == KITH_OK)
        member->heard[member->heard_count++ % CERTIFIED_HEARD] = message;
}

void certified_listen(struct certified *member)
{
    struct kith_session *s = (struct kith_session *)member->pair.ends[0].memory;
    uint8_t *bytes = member->partial;
    while (member->victim->wires[member->rank] >= 0 && !member->lost) {
        const size_t room = sizeof member->partial - member->partial_bytes;
        const ssize_t n = recv(member->victim->wires[member->rank],
                               bytes + member->partial_bytes, room, 0);
        if (n <= 0)
            return;
        size_t end = member->partial_bytes + (size_t)n, at = 0, used;
        const size_t skip = member->skip < end ? member->skip : end;
        member->skip -= skip;
        at += skip;
        struct kith_session_event event = {.kind = KITH_SESSION_CONTROL};
        while (!member->lost && event.kind != KITH_SESSION_NONE) {
            used = 0;
            member->lost = kith_session_read(s, bytes + at, end - at, &used,
                                             &event) != KITH_OK;
            at += used;
            if (!member->lost)
                hear(member, &event);
        }
        member->partial_bytes = end - at;
        memmove(bytes, bytes + at, end - at);
    }
}

void certified_connect(struct certified *member, struct victim *victim)
{
    member->victim = victim;
    victim_link(member->victim, member->rank, member->theirs);
    memcpy(member->pair.ends[0].memory, member->ours, kith_session_size());
    member->skip = member->answer_bytes;
    member->partial_bytes = 0;
    member->transfers = 0;
    member->lost = !victim_feed(member->victim, member->rank, member->hello,
                                member->hello_bytes, SIZE_MAX);
    certified_listen(member);
}

void certified_wire(struct certified *member, size_t size, uint8_t how)
{
    if (how & 128)
        certified_bytes[size - 1 - (how & 1)] ^= 1;
    if (!victim_feed(member->victim, member->rank, certified_bytes, size,
                     how & 64 ? 7 : SIZE_MAX))
        member->lost = true;
    certified_listen(member);
}

void certified_frame(struct certified *member, const uint8_t *frame,
                     size_t bytes)
{
    struct kith_session *s = (struct kith_session *)member->pair.ends[0].memory;
    size_t size;
    if (!member->lost &&
        kith_session_seal_control(s, frame, bytes, certified_bytes,
                                  sizeof certified_bytes, &size) == KITH_OK)
        certified_wire(member, size, 0);
}

void certified_burst(struct certified *member, uint64_t transfer,
                     uint64_t offset, const uint8_t *payload, size_t length)
{
    struct kith_session *s = (struct kith_session *)member->pair.ends[0].memory;
    const struct kith_session_burst burst = {transfer, offset, payload, length};
    size_t size;
    if (!member->lost && length > 0 &&
        kith_session_seal_burst(s, &burst, certified_bytes,
                                sizeof certified_bytes, &size) == KITH_OK)
        certified_wire(member, size, 0);
}

/* Bursts within a host: a frame says where one lies in its sender's memory, and
 * the receiver copies it from there (shared_vectors.h, hand_over.h).
 *
 *   0xc4 3 | slot u32 | its count u64 | place u64 | transfer u64 | offset u64
 *
 * little-endian; its length is that of the burst which is due. Announcement,
 * order, inbox, gate and the end of a transfer are those of any burst
 * (reception.c); what is saved are sealing, opening, and the kernel's copies.
 */
#include <string.h>

#include "kith/assert.h"
#include "transport.h"

_Static_assert(KITH_SHARED_BURST_BYTES == 2 + 4 + 4 * 8, "as above");

/* ---- out */

/* Little-endian, whatever this machine is: both ends are one machine, but a
 * frame is a frame. */
static uint8_t *put(uint8_t *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
    return at + bytes;
}

static uint64_t get(const uint8_t **at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)(*at)[i] << 8 * i;
    *at += bytes;
    return value;
}

/* A frame that says where the burst lies; 0: it is to be sent. A link that is
 * shaped carries its bytes itself. */
size_t kith_shared_burst_place(const struct kith_link *link,
                               const struct kith_transfer *transfer,
                               const uint8_t *source, size_t length,
                               uint8_t frame[KITH_SHARED_BURST_BYTES])
{
    const struct kith_shared *shared = link->transport->options.shared;
    struct kith_shared_place place;
    if (!link->sharing.ready || shared == NULL ||
        !kith_link_is_plain(&link->socket.flow->terms) ||
        !kith_shared_find(shared, transfer->message.slot,
                          source + transfer->offset, length, &place))
        return 0;
    frame[0] = KITH_FRAME_SHARED;
    frame[1] = KITH_SHARED_BURST;
    uint8_t *at = put(frame + 2, place.slot, 4);
    at = put(at, place.filled, 8);
    at = put(at, place.at, 8);
    at = put(at, link->traffic.out_id - 1, 8);
    at = put(at, transfer->offset, 8);
    KITH_ASSERT(at == frame + KITH_SHARED_BURST_BYTES);
    return KITH_SHARED_BURST_BYTES;
}

/* ---- in */

/* One burst on its way from their memory into our inbox. */
struct copy {
    const struct kith_link *link;
    const uint8_t *from;
    size_t bytes;
    bool checked, passed[KITH_BURST_RECORDS];
};

/* By the record, so that the gate finds in the cache what was copied, on any of
 * the threads that open records. */
static void copy_record(void *context, unsigned lane, size_t i)
{
    struct copy *copy = context;
    const struct kith_traffic *traffic = &copy->link->traffic;
    const size_t at = i * KITH_BULK_BYTES;
    const size_t left = copy->bytes - at;
    const size_t bytes = left < KITH_BULK_BYTES ? left : KITH_BULK_BYTES;
    (void)lane;
    KITH_ASSERT(i < KITH_BURST_RECORDS && at < copy->bytes);
    memcpy(traffic->target + traffic->in_offset + at, copy->from + at, bytes);
    copy->passed[i] =
        !copy->checked || kith_burst_passes(copy->link, at, bytes);
}

/* The threads that open records copy them, where there are some; else the loop
 * does it alone, record by record. */
static void copy_burst(struct kith_link *link, const uint8_t *from,
                       size_t bytes)
{
    const struct kith_session_threads *threads =
        &link->transport->threads.session;
    struct copy copy = {.link = link,
                        .from = from,
                        .bytes = bytes,
                        .checked = kith_burst_is_checked(link)};
    const size_t records = (bytes + KITH_BULK_BYTES - 1) / KITH_BULK_BYTES;
    if (threads->lanes > 1)
        threads->run(threads->arg, records, copy_record, &copy);
    for (size_t i = 0; i < records; i++) {
        if (threads->lanes <= 1)
            copy_record(&copy, 0, i);
        link->traffic.finite = link->traffic.finite && copy.passed[i];
    }
}

/* Copied while it stands, or thrown away: then the model is one that nobody
 * waited for, as where its inbox was given up. Long models leave the loop its
 * turns. */
bool kith_shared_burst_comes(struct kith_link *link, const uint8_t *frame)
{
    struct kith_traffic *traffic = &link->traffic;
    struct kith_shared_view *view = &link->sharing.view;
    const uint8_t *at = frame + 2;
    struct kith_shared_place place = {.slot = (uint32_t)get(&at, 4)};
    place.filled = get(&at, 8);
    place.at = get(&at, 8);
    const uint64_t transfer = get(&at, 8), offset = get(&at, 8);
    const size_t length = kith_burst_next(traffic);
    const uint8_t *from = kith_shared_look(view, &place, length);
    if (from == NULL)
        return kith_link_refuse(link, KITH_REFUSAL_TRANSFER,
                                "a burst that lies outside shared memory");
    if (!kith_burst_begins(link, transfer, offset, length))
        return false;
    if (traffic->in_filled == 0)
        traffic->in_filled = place.filled + 1;
    const bool copies = traffic->target != NULL;
    if (traffic->target != NULL) {
        kith_account_switch(&link->transport->net.account, KITH_ACCOUNT_AEAD);
        copy_burst(link, from, length);
        kith_account_switch(&link->transport->net.account, KITH_ACCOUNT_OTHER);
        if (traffic->in_filled != place.filled + 1 ||
            !kith_shared_stands(view, &place))
            kith_traffic_discard(traffic);
    }
    kith_burst_ends(link);
    if (copies && traffic->receiving && link->state == KITH_LINK_OPEN)
        kith_link_rest(link);
    return link->state == KITH_LINK_OPEN;
}

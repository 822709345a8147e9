/* A visitor that measures the way here (`kith doctor --links`, `kith plan
 * --measure --to`): what it says comes back as it is, bulk is opened and
 * dropped.
 *
 * It has proved that it may be here and gets nothing that is ours, but time:
 * one guest at a time, one a second in the long run, so many bytes, so many
 * seconds.
 * Test: integration/test_cli_links.sh, integration/test_peer_guest.c */
#include <string.h>

#include "kith/assert.h"
#include "transport.h"

/* At 64 MB each, and a thousand answers: a few hundredths of the loop's time.
 */
#define GUESTS_PER_S 1
#define GUESTS_BURST 8

/* False: it is seen off, as any visitor is. */
bool kith_guest_welcome(struct kith_link *link)
{
    struct kith_transport *transport = link->transport;
    KITH_ASSERT(!link->initiator && link->rank == KITH_NOBODY);
    if (transport->guest != NULL || transport->stopping)
        return kith_link_close(link, "another visitor measures");
    if (memcmp(transport->guest_key, kith_session_peer_key(link->session),
               KITH_KEY_BYTES) == 0 &&
        (kith_ns)uv_hrtime() < transport->guest_rests_ns)
        return kith_link_tell(link, KITH_REFUSAL_RATE, KITH_NOTICE_RATE,
                              kith_session_peer(link->session)->name);
    if (!kith_bucket_take(&transport->guest_tokens, (kith_ns)uv_hrtime(),
                          GUESTS_PER_S, GUESTS_BURST))
        return kith_link_tell(link, KITH_REFUSAL_RATE, KITH_NOTICE_RATE,
                              kith_session_peer(link->session)->name);
    transport->guest = link;
    transport->guest_since_ns = (kith_ns)uv_hrtime();
    memcpy(transport->guest_key, kith_session_peer_key(link->session),
           KITH_KEY_BYTES);
    kith_transport_log(transport, "visited name=%s address=%s measures=way",
                       kith_session_peer(link->session)->name, link->address);
    return true;
}

/* One at a time, so that the link needs no mark of its own. */
bool kith_link_is_guest(const struct kith_link *link)
{
    return link->transport->guest == link;
}

/* Whatever ended it: the next one may come, with a count of its own; the same
 * one once it has been away as long as it was here, so that others have a turn.
 */
void kith_guest_closed(struct kith_link *link)
{
    struct kith_transport *transport = link->transport;
    const kith_ns now_ns = (kith_ns)uv_hrtime();
    if (!kith_link_is_guest(link))
        return;
    transport->guest_rests_ns = now_ns + (now_ns - transport->guest_since_ns);
    transport->guest = NULL;
    transport->guest_bytes = 0;
}

/* Of a frame and of a burst, however short: a loop that answered as many as fit
 * the bytes would do nothing else. */
#define FRAME_COST 65536u
#define BURST_COST 32768u

/* Bytes that a read may ask for. */
size_t kith_guest_expected(const struct kith_link *link)
{
    KITH_ASSERT(link->transport->guest_bytes <= KITH_GUEST_BYTES_MAX);
    return KITH_GUEST_BYTES_MAX - link->transport->guest_bytes;
}

/* The sum of all that it sends, counted before anything is done with it. */
static bool takes(struct kith_link *link, uint64_t bytes)
{
    if (bytes > kith_guest_expected(link))
        return kith_link_close(link, "a visitor has measured enough");
    link->transport->guest_bytes += (size_t)bytes;
    return true;
}

/* Nothing of it is a member's: neither a transfer nor a frame of theirs. */
bool kith_guest_event(struct kith_link *link,
                      const struct kith_session_event *event)
{
    KITH_ASSERT(kith_link_is_guest(link) && link->state == KITH_LINK_OPEN);
    switch (event->kind) {
    case KITH_SESSION_CONTROL:
        if (event->frame_bytes > KITH_GUEST_FRAME_MAX)
            return kith_link_close(link, "a visitor's frame is too long");
        return takes(link, event->frame_bytes + FRAME_COST) &&
               kith_link_control(link, event->frame, event->frame_bytes);
    case KITH_SESSION_BULK:
        if (!takes(link,
                   event->length > BURST_COST ? event->length : BURST_COST))
            return false;
        kith_session_sink(link->session, NULL);
        return true;
    case KITH_SESSION_FIN:
        return kith_link_close(link, "a visitor");
    case KITH_SESSION_NONE:
    case KITH_SESSION_OPEN:
    case KITH_SESSION_RECORD:
    case KITH_SESSION_BURST:
    default:
        return true;
    }
}

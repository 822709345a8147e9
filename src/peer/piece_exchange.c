/* Frames and bursts of pieces over a link: see piece_exchange.h. */
#include "piece_exchange.h"

#include <string.h>

#include "frame_bytes.h"
#include "kith/assert.h"
#include "transport.h"

enum { ROOT_BYTES = 8, ROOT_AT = 2, PIECE_AT = ROOT_AT + ROOT_BYTES };
_Static_assert(PIECE_AT + 4 == KITH_PIECE_FRAME_BYTES, "the frame's length");
_Static_assert(KITH_PIECE_BYTES_MAX <= KITH_BURST_BYTES,
               "a piece is one burst");

static struct kith_piece_exchange *exchange_of(const struct kith_link *link)
{
    return &link->transport->pieces;
}

/* False: the link is broken, or on its way out. */
static bool say(struct kith_link *link, enum kith_piece_frame kind,
                const uint8_t *root, uint32_t piece)
{
    uint8_t frame[KITH_PIECE_FRAME_BYTES] = {KITH_FRAME_PIECE, (uint8_t)kind};
    memcpy(frame + ROOT_AT, root, ROOT_BYTES);
    kith_frame_put(frame + PIECE_AT, piece, 4);
    return kith_link_control(link, frame, sizeof frame);
}

/* ---- asking */

/* A link that still owes an answer is passed over, so that a late piece is
 * never taken for the one that was asked for behind it. */
bool kith_piece_ask(struct kith_link *link, uint32_t piece)
{
    struct kith_piece_exchange *const exchange = exchange_of(link);
    KITH_ASSERT(exchange->bytes != NULL && exchange->link == NULL);
    if (link->pieces.asked ||
        !say(link, KITH_PIECE_ASK, exchange->store->root, piece))
        return false;
    link->pieces.asked = true;
    link->pieces.piece = exchange->piece = piece;
    exchange->link = link;
    exchange->answer = KITH_EAGAIN;
    return true;
}

/* Whole seconds of bytes are enough, and keep the product in 64 bits. Rates of
 * a single piece would not do: who gives every piece just in time is as slow as
 * who gives none, and there may be 2^20 of them. */
kith_ns kith_piece_patience_left(const struct kith_piece_patience *patience,
                                 size_t size)
{
    const uint64_t seconds = (patience->bytes + size) / KITH_PIECE_RATE_LEAST;
    const kith_ns may = KITH_PIECE_SLACK_NS + (kith_ns)seconds * KITH_S;
    KITH_ASSERT(size <= KITH_PIECE_BYTES_MAX);
    return patience->is_over || may <= patience->waited_ns
               ? 0
               : may - patience->waited_ns;
}

/* Over for good: whoever dripped is not to be waited for anew because others
 * were slow, too. */
bool kith_piece_patience_took(struct kith_piece_patience *patience,
                              kith_ns waited_ns, size_t size)
{
    const bool was_over = patience->is_over;
    patience->waited_ns += waited_ns;
    patience->bytes += size;
    patience->is_over = kith_piece_patience_left(patience, 0) == 0;
    return patience->is_over && !was_over;
}

/* Late answers come to a place that is gone, and are forgotten. */
static void answered(struct kith_link *link, enum kith_err answer)
{
    struct kith_piece_exchange *const exchange = exchange_of(link);
    link->pieces.asked = link->pieces.coming = false;
    if (exchange->link != link)
        return; /* it was given up */
    exchange->link = NULL;
    exchange->answer = answer;
}

void kith_piece_give_up(struct kith_piece_exchange *exchange)
{
    struct kith_link *const link = exchange->link;
    exchange->link = NULL;
    if (link != NULL && link->pieces.coming)
        kith_link_close(link, "a piece took too long");
}

size_t kith_piece_expected(const struct kith_link *link)
{
    return link->pieces.asked
               ? kith_manifest_size(&exchange_of(link)->store->manifest,
                                    link->pieces.piece)
               : 0;
}

/* The hash is looked at by who asked, off this path. */
bool kith_piece_event(struct kith_link *link,
                      const struct kith_session_event *event)
{
    struct kith_piece_exchange *const exchange = exchange_of(link);
    if (event->kind == KITH_SESSION_BULK) {
        if (!link->pieces.asked || link->pieces.coming ||
            event->offset != link->pieces.piece ||
            event->length != kith_piece_expected(link))
            return kith_link_refuse(link, KITH_REFUSAL_TRANSFER,
                                    "a piece that was not asked for");
        link->pieces.coming = true;
        kith_session_sink(link->session,
                          exchange->link == link ? exchange->bytes : NULL);
    } else if (event->kind == KITH_SESSION_BURST) {
        KITH_ASSERT(link->pieces.coming);
        answered(link, KITH_OK);
    }
    return true;
}

/* ---- giving */

/* The piece, where it is here and the link may have it: a home's may cost a
 * read of the origin, which is once for each, and of what is not here a few
 * times (kith_pieces_serve). Who has asked for nothing so often is told AWAY
 * without a look. */
static const uint8_t *find(struct kith_link *link, uint32_t piece)
{
    struct kith_data_store *const store = exchange_of(link)->store;
    char error[KITH_PIECES_ERROR_BYTES];
    const uint8_t *bytes;
    const uint64_t most = store->manifest.count + KITH_PIECES_AGAIN;
    if (link->pieces.given >= most || link->pieces.missed >= most ||
        link->socket.queued >= KITH_PIECES_QUEUED_MAX)
        return NULL;
    if (kith_pieces_serve(store->pieces, piece, &bytes, error) == KITH_OK)
        return bytes;
    link->pieces.missed++;
    return NULL;
}

/* The link then rests: the others have their turn. */
static bool give(struct kith_link *link, const uint8_t *root, uint32_t piece)
{
    struct kith_piece_exchange *const exchange = exchange_of(link);
    const struct kith_manifest *const manifest = &exchange->store->manifest;
    if (piece >= manifest->count)
        return kith_link_refuse(link, KITH_REFUSAL_RECORD,
                                "it asks for a piece that is none");
    const uint8_t *const bytes = find(link, piece);
    if (bytes == NULL)
        return say(link, KITH_PIECE_AWAY, root, piece);
    link->pieces.given++;
    exchange->given++;
    exchange->given_ns = (kith_ns)uv_hrtime();
    if (!kith_link_bulk(link, KITH_PIECE_TRANSFER, piece, bytes,
                        kith_manifest_size(manifest, piece)))
        return false;
    kith_link_rest(link);
    return true;
}

/* Of another manifest: told AWAY, and logged once. */
static bool differ(struct kith_link *link, unsigned kind, const uint8_t *root,
                   uint32_t piece)
{
    if (!link->pieces.differs)
        kith_transport_log(link->transport,
                           "pieces-differ rank=%u reason=\"it has another "
                           "data.manifest\"",
                           link->rank);
    link->pieces.differs = true;
    return kind != KITH_PIECE_ASK || say(link, KITH_PIECE_AWAY, root, piece);
}

/* From the length on everything is compared with what is known here; what
 * follows from a frame is at most one burst. */
bool kith_piece_frame(struct kith_link *link, const uint8_t *frame, size_t size)
{
    const struct kith_piece_exchange *const exchange = exchange_of(link);
    if (exchange->store == NULL || size != KITH_PIECE_FRAME_BYTES ||
        frame[1] < KITH_PIECE_ASK || frame[1] > KITH_PIECE_COMPLETE)
        return kith_link_refuse(link, KITH_REFUSAL_RECORD,
                                "a control frame that is no message");
    const uint8_t *const root = frame + ROOT_AT;
    const uint32_t piece = (uint32_t)kith_frame_get(frame + PIECE_AT, 4);
    if (memcmp(root, exchange->store->root, ROOT_BYTES) != 0)
        return differ(link, frame[1], root, piece);
    if (frame[1] == KITH_PIECE_ASK)
        return give(link, root, piece);
    if (frame[1] == KITH_PIECE_COMPLETE) {
        link->transport->members[link->rank].has_all = true;
        return true;
    }
    if (!link->pieces.asked || link->pieces.coming ||
        piece != link->pieces.piece)
        return kith_link_refuse(link, KITH_REFUSAL_RECORD,
                                "a piece is away that was not asked for");
    answered(link, KITH_ENOENT);
    return true;
}

/* ---- links */

void kith_piece_opened(struct kith_link *link)
{
    const struct kith_piece_exchange *const exchange = exchange_of(link);
    if (exchange->complete)
        (void)say(link, KITH_PIECE_COMPLETE, exchange->store->root, 0);
}

void kith_piece_closed(struct kith_link *link)
{
    if (link->pieces.asked)
        answered(link, KITH_ECLOSED);
}

void kith_piece_complete(struct kith_transport *transport)
{
    transport->pieces.complete = true;
    for (struct kith_link *l = transport->links; l != NULL; l = l->next)
        if (l->known && l->state == KITH_LINK_OPEN)
            kith_piece_opened(l);
}

/* Dishonest claims, deterministic: the stream SWARM of (seed; peer), one draw a
 * message.
 *
 *   rounds  half of the messages of a round name another, mostly a far one
 *   ahead   half of them say that it is in a later round than it is
 *   silent  asks and accepts, and never sends a model
 *   probes  asks four times over what became of an exchange, and answers every
 *           question with "still at it"
 *   huge    asks for exchanges of a model larger than anybody's */
#include "sim/dishonest.h"

#include <string.h>

#include "kith/assert.h"
#include "kith/hash.h"
#include "kith/rng.h"
#include "kith/text.h"
#include "sim/world.h"

static const char *const names[] = {
#define KITH_X(name, text) [SIM_CLAIM_##name] = (text),
    SIM_CLAIMS(KITH_X)
#undef KITH_X
};
#define NAME_COUNT (sizeof names / sizeof *names)

bool sim_claims_parse(const char *text, uint32_t peers, uint8_t *claims)
{
    memset(claims, SIM_CLAIM_NONE, peers);
    while (*text != '\0') {
        const size_t digits = strspn(text, "0123456789");
        const size_t length = strcspn(text, ",");
        char number[16];
        uint64_t peer;
        size_t claim = SIM_CLAIM_NONE + 1;
        if (digits == 0 || digits >= sizeof number || text[digits] != '=')
            return false;
        memcpy(number, text, digits);
        number[digits] = '\0';
        const char *word = text + digits + 1;
        const size_t rest = length - digits - 1;
        while (claim < NAME_COUNT && (strlen(names[claim]) != rest ||
                                      memcmp(names[claim], word, rest) != 0))
            claim++;
        if (kith_text_u64(number, &peer) != KITH_OK || peer >= peers ||
            claim == NAME_COUNT)
            return false;
        claims[peer] = (uint8_t)claim;
        text += length + (text[length] == ',');
    }
    return true;
}

bool sim_is_honest(const struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->peer_count);
    return !world->options.claims ||
           world->options.claims[peer] == SIM_CLAIM_NONE;
}

/* Drawn by what is sent, and when: how many events there were by then depends
 * on the queue. */
static uint64_t draw_of(const struct sim_world *world, kith_id from,
                        const struct kith_send *send)
{
    const struct kith_message *message = &send->message;
    const uint64_t ends = (uint64_t)from << 32 | send->to;
    const uint64_t what = (uint64_t)message->kind << 56 ^ message->id.counter;
    KITH_ASSERT(from != send->to);
    return kith_hash_word(kith_hash_word(ends, what),
                          (uint64_t)sim_time(world));
}

static void name_another_round(struct sim_world *world, kith_id from,
                               struct kith_send *send)
{
    struct kith_rng rng;
    struct kith_message *message = &send->message;
    kith_rng_init(&rng, world->experiment->seed, KITH_STREAM_SWARM,
                  draw_of(world, from, send));
    if (message->pattern != KITH_PATTERN_ROUND || kith_rng_below(&rng, 2) == 0)
        return;
    const uint32_t bits = kith_rng_below(&rng, 48);
    const uint64_t by = kith_rng_u64(&rng) >> (63 - bits);
    if (world->options.claims[from] == SIM_CLAIM_AHEAD)
        message->step += by;
    else if (kith_rng_below(&rng, 4) != 0)
        message->id.counter += by;
    else
        message->id.counter -= by < message->id.counter ? by : 0;
}

bool sim_dishonest_send(struct sim_world *world, kith_id from,
                        struct kith_send *send, uint32_t *extra)
{
    KITH_ASSERT(!sim_is_honest(world, from));
    struct kith_message *message = &send->message;
    const bool answers = message->kind == KITH_MESSAGE_ACK ||
                         message->kind == KITH_MESSAGE_ABORT ||
                         message->kind == KITH_MESSAGE_ABORTED;
    *extra = 0;
    switch ((enum sim_claim)world->options.claims[from]) {
    case SIM_CLAIM_ROUNDS:
    case SIM_CLAIM_AHEAD:
        name_another_round(world, from, send);
        return true;
    case SIM_CLAIM_SILENT:
        return message->kind != KITH_MESSAGE_MODEL;
    case SIM_CLAIM_PROBES:
        if (answers)
            message->kind = KITH_MESSAGE_ACCEPT;
        *extra = message->kind == KITH_MESSAGE_PROBE ? 3 : 0;
        return true;
    case SIM_CLAIM_HUGE:
        if (message->kind == KITH_MESSAGE_REQUEST)
            message->payload_bytes = UINT64_C(1) << 40;
        return true;
    case SIM_CLAIM_NONE:
        break;
    }
    return true;
}

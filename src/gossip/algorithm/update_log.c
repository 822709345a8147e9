/* The log of update-sets: see update_log.h. */
#include "update_log.h"

#include <string.h>

#include "kith/assert.h"

#define BITS 16u
/* Numbers of a round's number. */
#define ROUND_NUMBERS 3u
/* Rounds beside the least, where there is room. */
#define UPDATE_WINDOW_MORE 4u

/* Where things stand, in numbers:
 *   marks, told rounds (peers), told masks (peers, window), have (window),
 * known (window), updates (window, peers) */
static size_t told_rounds_at(void)
{
    return (size_t)UPDATE_MARKS * ROUND_NUMBERS;
}

static size_t told_at(const struct update_log *log)
{
    return told_rounds_at() + (size_t)log->algebra->peers * ROUND_NUMBERS;
}

static size_t have_at(const struct update_log *log)
{
    return told_at(log) +
           (size_t)log->algebra->peers * log->window * log->words;
}

static size_t known_at(const struct update_log *log)
{
    return have_at(log) + (size_t)log->window * log->words;
}

static size_t updates_at(const struct update_log *log)
{
    return known_at(log) + (size_t)log->window * log->words;
}

static size_t entry_numbers(const struct update_log *log)
{
    return (log->entry_bytes + 1) / 2;
}

static size_t numbers_of(const struct update_log *log)
{
    return updates_at(log) +
           (size_t)log->window * log->algebra->peers * entry_numbers(log);
}

/* Rounds in which an update is all but certain to reach everybody: 3 of 1,000
 * do not reach one of eight peers, with four rounds more 1 of 1,000. */
static uint32_t window_least(uint32_t peers)
{
    uint32_t bits = 0;
    while (1u << bits < peers)
        bits++;
    return 2 * bits + 6;
}

struct update_log kith_update_log_of(const struct kith_algebra *algebra,
                                     void *const *vectors, size_t entry_bytes)
{
    struct update_log log = {.algebra = algebra,
                             .vectors = vectors,
                             .entry_bytes = entry_bytes,
                             .words = (algebra->peers + BITS - 1) / BITS};
    if (algebra->peers > UPDATE_PEERS_MAX)
        return log;
    const uint32_t least = window_least(algebra->peers);
    log.window = least + UPDATE_WINDOW_MORE;
    KITH_ASSERT(log.window <= UPDATE_WINDOW_MAX);
    while (log.window >= least &&
           numbers_of(&log) > UPDATE_LOG_VECTORS * algebra->dim)
        log.window--;
    if (log.window < least)
        log.window = 0;
    return log;
}

/* ---- numbers in vectors */

static void *place_of(const struct update_log *log, size_t at)
{
    const size_t d = log->algebra->dim;
    KITH_ASSERT(at < UPDATE_LOG_VECTORS * d);
    return kith_algorithm_at(log->algebra, log->vectors[at / d], at % d);
}

static uint32_t get(const struct update_log *log, size_t at)
{
    const void *const place = place_of(log, at);
    return log->algebra->backend->element_bytes == sizeof(double)
               ? (uint32_t) * (const double *)place
               : (uint32_t) * (const float *)place;
}

static void put(const struct update_log *log, size_t at, uint32_t number)
{
    void *const place = place_of(log, at);
    KITH_ASSERT(number < 1u << BITS);
    if (log->algebra->backend->element_bytes == sizeof(double))
        *(double *)place = number;
    else
        *(float *)place = (float)number;
}

static uint64_t get_wide(const struct update_log *log, size_t at, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)get(log, at + i) << (BITS * i);
    return value;
}

static void put_wide(const struct update_log *log, size_t at, size_t count,
                     uint64_t value)
{
    for (size_t i = 0; i < count; i++)
        put(log, at + i, (uint32_t)(value >> (BITS * i)) & 0xffffu);
}

uint64_t kith_update_mark(const struct update_log *log, enum update_mark mark)
{
    return get_wide(log, mark * ROUND_NUMBERS, ROUND_NUMBERS);
}

void kith_update_mark_set(const struct update_log *log, enum update_mark mark,
                          uint64_t value)
{
    put_wide(log, mark * ROUND_NUMBERS, ROUND_NUMBERS, value);
}

/* ---- updates */

static size_t slot_of(const struct update_log *log, uint64_t round)
{
    KITH_ASSERT(log->window > 0);
    return (size_t)(round % log->window);
}

uint64_t kith_update_have(const struct update_log *log, uint64_t round)
{
    return get_wide(log, have_at(log) + slot_of(log, round) * log->words,
                    log->words);
}

uint64_t kith_update_known(const struct update_log *log, uint64_t round)
{
    return get_wide(log, known_at(log) + slot_of(log, round) * log->words,
                    log->words);
}

void kith_update_clear(const struct update_log *log, uint64_t round,
                       uint64_t known)
{
    const size_t slot = slot_of(log, round) * log->words;
    put_wide(log, have_at(log) + slot, log->words, 0);
    put_wide(log, known_at(log) + slot, log->words, known);
}

static size_t entry_at(const struct update_log *log, struct update_name name)
{
    KITH_ASSERT(name.peer < log->algebra->peers);
    const size_t index =
        slot_of(log, name.round) * log->algebra->peers + name.peer;
    return updates_at(log) + index * entry_numbers(log);
}

void kith_update_put(const struct update_log *log, struct update_name name,
                     const uint8_t *bytes)
{
    const size_t at = entry_at(log, name);
    const size_t slot = slot_of(log, name.round) * log->words;
    const uint64_t bit = UINT64_C(1) << name.peer;
    for (size_t i = 0; i < log->entry_bytes; i += 2) {
        const uint32_t high = i + 1 < log->entry_bytes ? bytes[i + 1] : 0;
        put(log, at + i / 2, bytes[i] | high << 8);
    }
    put_wide(log, have_at(log) + slot, log->words,
             kith_update_have(log, name.round) | bit);
    put_wide(log, known_at(log) + slot, log->words,
             kith_update_known(log, name.round) | bit);
}

void kith_update_get(const struct update_log *log, struct update_name name,
                     uint8_t *bytes)
{
    const size_t at = entry_at(log, name);
    KITH_ASSERT(kith_update_have(log, name.round) >> name.peer & 1);
    for (size_t i = 0; i < log->entry_bytes; i++)
        bytes[i] = (uint8_t)(get(log, at + i / 2) >> (i % 2 * 8));
}

void kith_update_tell(const struct update_log *log, kith_id peer,
                      uint64_t round, const uint64_t *masks)
{
    KITH_ASSERT(peer < log->algebra->peers);
    put_wide(log, told_rounds_at() + (size_t)peer * ROUND_NUMBERS,
             ROUND_NUMBERS, round + 1);
    for (uint32_t w = 0; w < log->window; w++)
        put_wide(log,
                 told_at(log) + ((size_t)peer * log->window + w) * log->words,
                 log->words, masks[w]);
}

/* ---- what others lack */

/* What everybody knows: of peer p and round s, at [p][s mod window]. */
struct knowledge {
    uint64_t of[UPDATE_PEERS_MAX][UPDATE_WINDOW_MAX];
};

/* The newest first, up to `room`, of `from` what `to` has not. */
static void send(const struct update_log *log, uint64_t oldest, uint64_t newest,
                 uint32_t room, const uint64_t *from, const uint64_t *to,
                 uint64_t *sent)
{
    for (uint32_t w = 0; w < log->window; w++)
        sent[w] = 0;
    for (uint64_t s = newest + 1; s > oldest && room > 0; s--) {
        const size_t w = slot_of(log, s - 1);
        uint64_t lacks = from[w] & ~to[w];
        for (; lacks != 0 && room > 0; room--) {
            const uint64_t bit = lacks & (~lacks + 1);
            sent[w] |= bit;
            lacks &= ~bit;
        }
    }
}

static void exchange(const struct update_log *log, uint64_t oldest,
                     uint64_t round, uint32_t room, uint64_t *a, uint64_t *b)
{
    uint64_t to_a[UPDATE_WINDOW_MAX], to_b[UPDATE_WINDOW_MAX];
    send(log, oldest, round, room, a, b, to_b);
    send(log, oldest, round, room, b, a, to_a);
    for (uint32_t w = 0; w < log->window; w++) {
        a[w] |= to_a[w];
        b[w] |= to_b[w];
    }
}

/* Everybody has an update of its own. What the partner has said it knows is
 * believed of it alone: one that claims all would else be thought to have told
 * everybody. */
static void begin_round(const struct update_log *log, uint64_t oldest,
                        uint64_t round, kith_id partner,
                        struct knowledge *knows)
{
    for (kith_id p = 0; p < log->algebra->peers; p++) {
        const uint64_t told = get_wide(
            log, told_rounds_at() + (size_t)p * ROUND_NUMBERS, ROUND_NUMBERS);
        for (uint64_t s = oldest;
             s <= round && told == round + 1 && p == partner; s++) {
            const size_t w = slot_of(log, s);
            knows->of[p][w] = get_wide(
                log, told_at(log) + ((size_t)p * log->window + w) * log->words,
                log->words);
        }
        knows->of[p][slot_of(log, round)] |= UINT64_C(1) << p;
    }
}

static void run_round(const struct update_log *log, uint64_t oldest,
                      uint64_t round, uint32_t room, struct knowledge *knows)
{
    for (kith_id p = 0; p < log->algebra->peers; p++) {
        kith_id partner[KITH_DEGREE_MAX];
        if (kith_topology_neighbours(log->algebra->graph, p, round, partner,
                                     NULL) == 1 &&
            p < partner[0])
            exchange(log, oldest, round, room, knows->of[p],
                     knows->of[partner[0]]);
    }
}

uint32_t kith_update_choose(const struct update_log *log, kith_id partner,
                            uint32_t room, struct update_name *names)
{
    struct knowledge knows;
    const uint64_t round = log->algebra->round;
    const uint64_t oldest = kith_update_oldest(log, round);
    uint32_t count = 0;
    KITH_ASSERT(partner < log->algebra->peers);
    memset(&knows, 0, sizeof knows);
    for (uint64_t s = oldest; s <= round; s++) {
        begin_round(log, oldest, s, partner, &knows);
        if (s < round)
            run_round(log, oldest, s, room, &knows);
    }
    for (uint64_t s = round + 1; s > oldest && count < room; s--) {
        uint64_t lacks = kith_update_have(log, s - 1) &
                         ~knows.of[partner][slot_of(log, s - 1)];
        for (kith_id p = 0; lacks >> p != 0 && count < room; p++) {
            if (lacks >> p & 1)
                names[count++] = (struct update_name){p, s - 1};
            if (p + 1 == UPDATE_PEERS_MAX)
                break;
        }
    }
    return count;
}

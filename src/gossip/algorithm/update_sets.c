/* Update sets: in pairs everybody hears of everybody's updates, each once, and
 * who knows the same ones has the same outer point.
 *
 *   H own steps from phi;   v_i = b e_i + phi - x_i;   q_i = C(v_i)
 *   e_i <- v_i - q_i;   q_i is the update of peer i and this round
 *   with a partner: what the other has not, of the last rounds
 *   phi <- phi_0 - a sum over rounds of mean {q that is known};   x_i <- phi
 *
 * a = `rate`, b = `decay`, C = `gossip.compressor`. Sums go by round and then
 * by rank, so that all that know the same agree bit for bit. Naive outer steps
 * in pairs, where each has an outer point of its own, do not: nothing draws
 * those together (sparse_loco.c).
 *
 * The log has room for some rounds (update_log.h). What leaves it is in BASE,
 * which is phi of the rounds before: of all peers the same wherever all updates
 * have arrived by then. Where one has not, or a peer was away and began with a
 * model that it adopted, BASEs are apart for good. So a message brings `share`
 * of the values of BASE, another block in each round, and both take the mean of
 * the two: nothing where they agree, and otherwise they come together as models
 * do that are averaged. Not in the first rounds of a peer's log, whose BASE is
 * of later ones.
 *
 *   message   how many, the masks of what is known, updates with their names,
 *             share d values of BASE
 *
 * An update goes as often as there are peers that lack it, so bytes grow with
 * n - 1. Both ends know all pairs of all rounds and find out what the other
 * lacks without asking; what went astray shows in the masks, and is sent when
 * the two meet again. A member that lies can give others' updates a content of
 * its own, and other ones to different peers: where you do not know your
 * members take a method with a guard.
 *
 * Cost: all updates of the log are read and added up in each round.
 *
 * Source: ours, after Sarfi et al., "Communication Efficient LLM Pre-training
 * with SparseLoCo", 2025, and the logs of epidemic algorithms, Demers et al.,
 * PODC 1987.
 * Test: unit/test_update_sets.c. */
#include "update_log.h"

#include <math.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/compressor.h"
#include "kith/hash.h"

/* PHI is the first, as kith_algorithm_start has it. */
enum { PHI, BASE, ERROR, LOG, VECTORS = LOG + UPDATE_LOG_VECTORS };
/* Vectors of scratch, and the bytes of an update behind them. */
enum { SUM, READ, PARTS };

/* A sum of UPDATE_PEERS_MAX such values is finite in float32. */
#define VALUE_MAX 1e30
/* A peer's rank and the age of its update, before its bytes. */
#define NAME_BYTES 2u
enum { COUNT_AT, YOUNG_AT, MASKS_AT };

static size_t part_bytes(const struct kith_algebra *algebra)
{
    return (algebra->dim * algebra->backend->element_bytes + 63) & ~(size_t)63;
}

static void *part(const struct kith_algebra *algebra, unsigned index)
{
    KITH_ASSERT(index <= PARTS);
    return (char *)algebra->scratch + index * part_bytes(algebra);
}

static size_t scratch(const struct kith_algebra *algebra)
{
    return PARTS * part_bytes(algebra) +
           kith_compression_bytes(algebra->compression);
}

static struct update_log log_of(const struct kith_algebra *algebra)
{
    return kith_update_log_of(
        algebra, algebra->vectors == NULL ? NULL : algebra->vectors + LOG,
        kith_compression_bytes(algebra->compression));
}

/* Updates in a message: some more than come up in a round, and more where
 * somebody sits out. */
static uint32_t room_of(const struct kith_algebra *algebra)
{
    const uint32_t n = algebra->peers;
    return n + n / 4 + 2 * (n % 2);
}

/* Where things stand in a message, in bytes. */
struct layout {
    size_t updates, each, base, most, bytes;
};
static struct layout layout_of(const struct update_log *log)
{
    const struct kith_algebra *const algebra = log->algebra;
    const double share = algebra->coefficients[KITH_GOSSIP_SHARE];
    const size_t d = algebra->dim, some = (size_t)(share * (double)d + 0.5);
    struct layout layout = {.most = some < 1 ? 1 : some < d ? some : d};
    layout.updates = MASKS_AT + log->window * sizeof(uint64_t);
    layout.each = NAME_BYTES + log->entry_bytes;
    layout.base = layout.updates + room_of(algebra) * layout.each;
    layout.bytes = layout.base + layout.most * algebra->backend->element_bytes;
    return layout;
}

static size_t payload(const struct kith_algebra *algebra)
{
    const struct update_log log = log_of(algebra);
    return layout_of(&log).bytes;
}

static const char *wants(const struct kith_algebra *algebra)
{
    const struct update_log log = log_of(algebra);
    if (algebra->peers > UPDATE_PEERS_MAX)
        return "64 peers or fewer: everybody hears of everybody's updates";
    return log.window > 0
               ? NULL
               : "a compressor of whose messages the log's rounds fit three "
                 "models: try top-k-2bit and a lower gossip.density";
}

static uint64_t key_of(const struct kith_algebra *algebra,
                       struct update_name name)
{
    uint64_t key = kith_hash_word(KITH_HASH_START, algebra->seed);
    key = kith_hash_word(key, name.round);
    return kith_hash_word(key, name.peer);
}

static bool is_bounded(const struct kith_algebra *algebra, size_t n,
                       const void *values)
{
    return algebra->backend->finite(n, values) &&
           algebra->backend->magnitudes()->survey(n, values).most <= VALUE_MAX;
}

/* q, into READ */
static bool decode(const struct kith_algebra *algebra, struct update_name name,
                   const void *bytes)
{
    return kith_decompress(algebra->compression, bytes, key_of(algebra, name),
                           part(algebra, READ));
}

/* The same; false: nothing that could be added. */
static bool read(const struct kith_algebra *algebra, struct update_name name,
                 const void *bytes)
{
    return decode(algebra, name, bytes) &&
           is_bounded(algebra, algebra->dim, part(algebra, READ));
}

/* y <- y - a mean of what is known of a round. */
static void add_round(const struct update_log *log, uint64_t round, void *y)
{
    const struct kith_algebra *const algebra = log->algebra;
    const uint64_t have = kith_update_have(log, round);
    void *const sum = part(algebra, SUM);
    unsigned count = 0;
    if (have == 0)
        return;
    algebra->backend->clear(algebra->dim, sum);
    for (kith_id p = 0; p < algebra->peers; p++) {
        const struct update_name name = {p, round};
        if ((have >> p & 1) == 0)
            continue;
        kith_update_get(log, name, part(algebra, PARTS));
        const bool again = decode(algebra, name, part(algebra, PARTS));
        KITH_ASSERT(again); /* it was looked at before it was kept */
        algebra->backend->add(algebra->dim, 1, part(algebra, READ), sum);
        count++;
    }
    const struct kith_term mean = {
        -algebra->coefficients[KITH_GOSSIP_RATE] / count, sum, NULL};
    kith_algorithm_combine_only(algebra->backend, algebra->dim, 1, y, 1, &mean);
}

/* ---- a round begins */

static uint64_t everybody(const struct kith_algebra *algebra)
{
    return UINT64_MAX >> (UPDATE_PEERS_MAX - algebra->peers);
}

/* What came before is in phi already, or will never be. */
static void begin_log(const struct update_log *log)
{
    const struct kith_algebra *const algebra = log->algebra;
    algebra->backend->copy(algebra->dim, algebra->vectors[BASE],
                           algebra->vectors[PHI]);
    for (unsigned i = 0; i < UPDATE_LOG_VECTORS; i++)
        algebra->backend->clear(algebra->dim, log->vectors[i]);
    for (uint64_t s = 0; s < log->window; s++)
        kith_update_clear(log, s, everybody(algebra));
    kith_update_mark_set(log, UPDATE_FIRST, algebra->round + 1);
}

/* Rounds that leave the log are added to BASE; those that come are empty. */
static void move_on(const struct update_log *log)
{
    const struct kith_algebra *const algebra = log->algebra;
    const uint64_t next = kith_update_mark(log, UPDATE_LAST);
    if (next == 0 || next > algebra->round) {
        begin_log(log);
        kith_update_clear(log, algebra->round, 0);
    } else {
        const uint64_t oldest = kith_update_oldest(log, next - 1);
        const uint64_t left = kith_update_oldest(log, algebra->round);
        for (uint64_t s = oldest; s < left && s < next; s++)
            add_round(log, s, algebra->vectors[BASE]);
        for (uint64_t s = next > left ? next : left; s <= algebra->round; s++)
            kith_update_clear(log, s, 0);
    }
    kith_update_mark_set(log, UPDATE_LAST, algebra->round + 1);
}

/* e <- v - q, and q is logged; nothing of what is no number. */
static void log_own(const struct update_log *log)
{
    const struct kith_algebra *const algebra = log->algebra;
    const struct update_name name = {algebra->self, algebra->round};
    const double decay = algebra->coefficients[KITH_GOSSIP_DECAY];
    void *const bytes = part(algebra, PARTS), *const v = part(algebra, SUM);
    void *const e = algebra->vectors[ERROR];
    const struct kith_term terms[] = {
        {decay, e, NULL}, {1, algebra->vectors[PHI], algebra->live}};
    kith_algorithm_combine_only(algebra->backend, algebra->dim, 0, v, 2, terms);
    if (!is_bounded(algebra, algebra->dim, v) ||
        !kith_compress(algebra->compression, v, key_of(algebra, name), bytes) ||
        !read(algebra, name, bytes)) {
        algebra->backend->clear(algebra->dim, e);
        return;
    }
    const struct kith_term rest = {1, v, part(algebra, READ)};
    kith_algorithm_combine_only(algebra->backend, algebra->dim, 0, e, 1, &rest);
    kith_update_put(log, name, bytes);
}

/* ---- messages */

/* In the log's first rounds BASE is of other rounds than theirs. */
static bool is_young(const struct update_log *log)
{
    const uint64_t first = kith_update_mark(log, UPDATE_FIRST);
    return log->algebra->round + 1 < first + log->window;
}

/* The block of BASE that a round brings. */
struct block {
    size_t from, count;
};
static struct block block_of(const struct kith_algebra *algebra, size_t most)
{
    const size_t d = algebra->dim;
    const size_t from =
        (size_t)(algebra->round % ((d + most - 1) / most)) * most;
    return (struct block){from, d - from < most ? d - from : most};
}

/* Nothing where this peer sits out. */
static void write_updates(const struct update_log *log,
                          const struct layout *layout, uint8_t *message)
{
    struct update_name names[2 * UPDATE_PEERS_MAX];
    kith_id partner[KITH_DEGREE_MAX];
    const uint64_t round = log->algebra->round;
    if (kith_topology_neighbours(log->algebra->graph, log->algebra->self, round,
                                 partner, NULL) == 0)
        return;
    const uint32_t count =
        kith_update_choose(log, partner[0], room_of(log->algebra), names);
    message[COUNT_AT] = (uint8_t)count;
    for (uint32_t n = 0; n < count; n++) {
        uint8_t *const at = message + layout->updates + n * layout->each;
        at[0] = (uint8_t)names[n].peer;
        at[1] = (uint8_t)(round - names[n].round);
        kith_update_get(log, names[n], at + NAME_BYTES);
    }
}

static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct update_log log = log_of(algebra);
    (void)edge;
    if (algebra->dim == 0)
        return; /* its messages are empty */
    const struct layout layout = layout_of(&log);
    const struct block block = block_of(algebra, layout.most);
    uint8_t *const message = algebra->sent;
    KITH_ASSERT(log.window > 0);
    memset(message, 0, layout.bytes);
    move_on(&log);
    log_own(&log);
    for (uint32_t w = 0; w < log.window; w++) {
        const uint64_t known = kith_update_known(&log, w);
        memcpy(message + MASKS_AT + w * sizeof known, &known, sizeof known);
    }
    message[YOUNG_AT] = is_young(&log);
    write_updates(&log, &layout, message);
    memcpy(message + layout.base,
           kith_algorithm_at(algebra, algebra->vectors[BASE], block.from),
           block.count * algebra->backend->element_bytes);
}

/* The n-th update of a peer's message; false: it is none. */
static bool find_update(const struct update_log *log,
                        const struct layout *layout, uint32_t n,
                        struct update_name *name, const uint8_t **bytes)
{
    const uint64_t round = log->algebra->round;
    const uint8_t *const message = log->algebra->received;
    const uint8_t *const at = message + layout->updates + n * layout->each;
    *bytes = at + NAME_BYTES;
    *name = (struct update_name){at[0], round - at[1]};
    return at[0] < log->algebra->peers && at[1] < log->window && at[1] <= round;
}

/* The values of BASE that came, into READ: a message is at any address. */
static void *read_block(const struct update_log *log,
                        const struct layout *layout)
{
    const struct kith_algebra *const algebra = log->algebra;
    return memcpy(part(algebra, READ),
                  (const uint8_t *)algebra->received + layout->base,
                  block_of(algebra, layout->most).count *
                      algebra->backend->element_bytes);
}

static bool is_sane(const struct update_log *log, const struct layout *layout)
{
    const uint8_t *const message = log->algebra->received, *bytes;
    struct update_name name;
    if (message[COUNT_AT] > room_of(log->algebra) || message[YOUNG_AT] > 1)
        return false;
    for (uint32_t n = 0; n < message[COUNT_AT]; n++)
        if (!find_update(log, layout, n, &name, &bytes) ||
            !read(log->algebra, name, bytes))
            return false;
    return is_bounded(log->algebra, block_of(log->algebra, layout->most).count,
                      read_block(log, layout));
}

static void take_masks(const struct update_log *log, kith_id from)
{
    const uint8_t *const message = log->algebra->received;
    uint64_t masks[UPDATE_WINDOW_MAX];
    for (uint32_t w = 0; w < log->window; w++) {
        memcpy(&masks[w], message + MASKS_AT + w * sizeof masks[w],
               sizeof masks[w]);
        masks[w] &= everybody(log->algebra);
    }
    kith_update_tell(log, from, log->algebra->round, masks);
}

/* The mean of both, the same bits at both ends. */
static void take_block(const struct update_log *log,
                       const struct layout *layout)
{
    const struct kith_algebra *const algebra = log->algebra;
    const struct block block = block_of(algebra, layout->most);
    const struct kith_term theirs = {0.5, read_block(log, layout), NULL};
    kith_algorithm_combine_only(
        algebra->backend, block.count, 0.5,
        kith_algorithm_at(algebra, algebra->vectors[BASE], block.from), 1,
        &theirs);
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct update_log log = log_of(algebra);
    edge->delta_sum = 0;
    if (algebra->dim == 0)
        return;
    const struct layout layout = layout_of(&log);
    const uint8_t *const message = algebra->received, *bytes;
    struct update_name name;
    edge->refused = !is_sane(&log, &layout);
    if (edge->refused)
        return;
    for (uint32_t n = 0; n < message[COUNT_AT]; n++)
        if (find_update(&log, &layout, n, &name, &bytes) &&
            (kith_update_known(&log, name.round) >> name.peer & 1) == 0)
            kith_update_put(&log, name, bytes);
    take_masks(&log, edge->peer);
    if (message[YOUNG_AT] == 0 && !is_young(&log))
        take_block(&log, &layout);
}

/* phi and x; who had no partner goes on from where it is. */
static double finish(struct kith_algebra *algebra)
{
    const struct update_log log = log_of(algebra);
    void *const phi = algebra->vectors[PHI];
    if (algebra->dim == 0 ||
        kith_update_mark(&log, UPDATE_LAST) != algebra->round + 1)
        return 0;
    algebra->backend->copy(algebra->dim, phi, algebra->vectors[BASE]);
    for (uint64_t s = kith_update_oldest(&log, algebra->round);
         s <= algebra->round; s++)
        add_round(&log, s, phi);
    const struct kith_term all = {1, phi, NULL};
    return kith_algorithm_combine(algebra->backend, algebra->dim, 0,
                                  algebra->live, 1, &all);
}

const struct kith_algorithm kith_algorithm_update_sets = {
    .name = "update-sets",
    .paper = "Sarfi et al., 2025; Demers et al., PODC 1987",
    .summary = "H local steps, of which the compressed parts travel from pair "
               "to pair until all know all",
    .differs = "no paper has it: the updates of sparse-loco, spread as an "
               "epidemic algorithm's log",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .flags = KITH_TAKES_COMPRESSOR | KITH_CHECKS_ITS_MESSAGES |
             KITH_NEEDS_LOSSLESS_LINK | KITH_NEEDS_HOST,
    .schedule = "random-matching",
    .keys = KITH_GOSSIP_READS(RATE) | KITH_GOSSIP_READS(DECAY) |
            KITH_GOSSIP_READS(SHARE),
    .initial = {[KITH_GOSSIP_RATE] = 1,
                [KITH_GOSSIP_DECAY] = 0.95,
                [KITH_GOSSIP_SHARE] = 0.001},
    .vectors = VECTORS,
    .payload = payload,
    .scratch_bytes = scratch,
    .wants = wants,
    .start = kith_algorithm_start,
    .make = make,
    .merge = merge,
    .finish = finish,
};

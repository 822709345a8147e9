/* gTop-k: of all peers' differences the k largest coordinates of the sum, along
 * a binomial tree, with error feedback.
 *
 *   v_i <- e_i + phi - x_i         after the own steps since the last cycle
 *   up    L <- the k largest of L + L_child, at first L = top-k(v_i)
 *   down  G, the root's L, and of each entry whether the child is in it
 *   e_i <- v_i less what of it is in G;  phi <- phi - a G / n;  x_i <- phi
 *
 * k = `share` of the d coordinates, a = `rate`, n the peers whose lists came
 * up. Without momentum, every step and a = 1 this is gTop-k S-SGD. Vectors are
 * a host's: lists are found value by value.
 *
 * In the paper what a merge drops is lost where its index survives in another
 * subtree: its owner believes that it was sent. Here a peer notes since which
 * merge each index has been in its list without a break (BORN). What came into
 * it before that was dropped, and its owner hears so on the way down by a bit
 * for each entry of G: nothing is given back, for it never left e. Of a message
 * that is k / 8 bytes, where lists of what was dropped would be k entries, and
 * a parent that lies can waste a child's own numbers, but give it no others.
 *
 *   applied + residuals = sum of differences
 *
 * A peer that hears nothing on the way down changes nothing: its steps stay in
 * x, and so in v. If its list had come up, it counts twice. From then on its
 * phi lacks a G; that of a restarted peer is the x which it adopted. Nobody
 * needs to know: behind G stand k values of the root's phi, another block in
 * each cycle, which take the place of everybody's. After d / k cycles all hold
 * what the root holds. (Messages of a run have one size and no algorithm can
 * ask for a model, so that neither whole ones every M cycles nor a pull are
 * open to it; a hash of phi says that something is wrong, and not what.)
 *
 *   message   count, k values, k indices, k bits, k values of phi
 *
 * On the way up the last two are zeros.
 *
 * Cost: 2 ceil(log2 n) rounds, 2 (n - 1) messages in all; a pass over e, phi, x
 * for the list and another for what comes down, one over L for each merge.
 *
 * Source: Shi et al., "A Distributed Synchronous SGD Algorithm with Global
 * Top-k Sparsification for Low Bandwidth Networks", ICDCS 2019, Alg. 4; bits
 * and blocks of phi are ours.
 * Test: unit/test_gtop_k.c (T3.3, T3.4), unit/test_gtop_k_message.c,
 * unit/test_gtop_k_learns.c. */
#include <math.h>
#include <string.h>

#include "collective.h"
#include "kith/assert.h"
#include "kith/top_list.h"

/* PHI is the first, as kith_algorithm_start has it. LIST is L, in place. */
enum { PHI, RESIDUAL, LIST, BORN, VECTORS };
/* Where an index came into L: here, or with the child of phase p (CHILD + p);
 * of G those that hold nothing that this peer sent. */
enum { ABSENT, OWN, CHILD, NEVER = 64 };
/* Lists of scratch. */
enum { OURS, THEIRS, MERGED, BACK_OURS, BACK_THEIRS, LISTS };

/* A sum of KITH_PEERS_MAX such values is finite in float32. */
#define VALUE_MAX 1e30
/* Where things stand in a message, in bytes. */
struct layout {
    size_t kept; /* k */
    size_t values, places, bits, phi, bytes;
};

static struct layout layout_of(const struct kith_algebra *algebra)
{
    const double share = algebra->coefficients[KITH_GOSSIP_SHARE];
    const size_t element = algebra->backend->element_bytes, d = algebra->dim;
    const size_t rounded = (size_t)(share * (double)d + 0.5);
    const size_t least = rounded < 1 ? 1 : rounded;
    struct layout layout = {.kept = least < d ? least : d,
                            .values = sizeof(uint32_t)};
    layout.places = layout.values + layout.kept * element;
    layout.bits = layout.places + layout.kept * sizeof(uint32_t);
    layout.phi = layout.bits + (layout.kept + 7) / 8;
    layout.bytes = layout.phi + layout.kept * element;
    return layout;
}

static size_t payload(const struct kith_algebra *algebra)
{
    return layout_of(algebra).bytes;
}

static size_t scratch(const struct kith_algebra *algebra)
{
    return LISTS * layout_of(algebra).kept * sizeof(struct kith_top_entry);
}

static struct kith_top_list list_of(const struct kith_algebra *algebra,
                                    unsigned which)
{
    const size_t kept = layout_of(algebra).kept;
    struct kith_top_entry *const entries = algebra->scratch;
    return kith_top_list_of(entries + which * kept, (uint32_t)kept);
}

/* Element i of a host's vector or, at any alignment, of a message. */
static double get(const struct kith_algebra *algebra, const void *from,
                  size_t i)
{
    double wide;
    float narrow;
    if (algebra->backend->element_bytes == sizeof wide) {
        memcpy(&wide, (const char *)from + i * sizeof wide, sizeof wide);
        return wide;
    }
    memcpy(&narrow, (const char *)from + i * sizeof narrow, sizeof narrow);
    return (double)narrow;
}

static void put(const struct kith_algebra *algebra, void *to, size_t i,
                double value)
{
    const float narrow = (float)value;
    if (algebra->backend->element_bytes == sizeof value)
        memcpy((char *)to + i * sizeof value, &value, sizeof value);
    else
        memcpy((char *)to + i * sizeof narrow, &narrow, sizeof narrow);
}

/* As a vector keeps it. */
static double rounded(const struct kith_algebra *algebra, double value)
{
    return algebra->backend->element_bytes == sizeof value
               ? value
               : (double)(float)value;
}

/* v_i */
static double difference(const struct kith_algebra *algebra, size_t i)
{
    return get(algebra, algebra->vectors[RESIDUAL], i) +
           (get(algebra, algebra->vectors[PHI], i) -
            get(algebra, algebra->live, i));
}

/* What of it may travel; of the rest, as of what is no number, nothing. */
static double claim(const struct kith_algebra *algebra, size_t i)
{
    const double v = difference(algebra, i);
    return fabs(v) <= VALUE_MAX ? rounded(algebra, v) : 0;
}

/* The phases whose child's list is in L, a bit each. Nothing is kept for
 * neighbours, so that there is a place for it. */
static double *merged_phases(const struct kith_algebra *algebra)
{
    return &algebra->edge_scalars[0];
}

/* Rounds of the way up. Who is alone has no way, and is its root. */
static uint64_t height(const struct kith_algebra *algebra)
{
    return kith_collective_phases(algebra) / 2;
}

static bool sends(const struct kith_algebra *algebra)
{
    kith_id to[KITH_DEGREE_MAX];
    return kith_topology_neighbours(algebra->graph, algebra->self,
                                    algebra->round, to, NULL) > 0;
}

/* A cycle begins with a list of one. */
static void begin(struct kith_algebra *algebra)
{
    struct kith_top_list list = list_of(algebra, OURS);
    for (size_t i = 0; i < algebra->dim; i++) {
        const double value = claim(algebra, i);
        if (value != 0)
            kith_top_list_offer(&list, (uint32_t)i, value);
    }
    kith_top_list_finish(&list);
    algebra->backend->clear(algebra->dim, algebra->vectors[LIST]);
    algebra->backend->clear(algebra->dim, algebra->vectors[BORN]);
    for (uint32_t n = 0; n < list.count; n++) {
        const struct kith_top_entry *const entry = &list.entries[n];
        put(algebra, algebra->vectors[LIST], entry->index, entry->value);
        put(algebra, algebra->vectors[BORN], entry->index, OWN);
    }
    algebra->scalars[COLLECTIVE_COUNT] = 1;
    *merged_phases(algebra) = 0;
}

/* L, or G on the way down, from its place. */
static struct kith_top_list gather(const struct kith_algebra *algebra)
{
    struct kith_top_list list = list_of(algebra, OURS);
    for (size_t i = 0; i < algebra->dim && list.count < list.room; i++)
        if (get(algebra, algebra->vectors[BORN], i) != ABSENT)
            list.entries[list.count++] = (struct kith_top_entry){
                get(algebra, algebra->vectors[LIST], i), (uint32_t)i};
    return list;
}

static void write_list(struct kith_algebra *algebra,
                       const struct kith_top_list *list)
{
    const struct layout layout = layout_of(algebra);
    char *const message = algebra->sent;
    memcpy(message, &list->count, sizeof list->count);
    for (uint32_t n = 0; n < list->count; n++) {
        put(algebra, message + layout.values, n, list->entries[n].value);
        memcpy(message + layout.places + n * sizeof(uint32_t),
               &list->entries[n].index, sizeof(uint32_t));
    }
}

/* Is what the child of `phase` sent in entries that came into L by `born`? */
static bool holds_child(const struct kith_algebra *algebra, uint64_t phase,
                        double born)
{
    const bool merged =
        ((uint64_t)*merged_phases(algebra) >> phase & UINT64_C(1)) != 0;
    return merged && born <= (double)(CHILD + phase);
}

/* The block of phi that a cycle brings. */
struct block {
    size_t from, count;
};
static struct block block_of(const struct kith_algebra *algebra)
{
    const size_t most = layout_of(algebra).kept, d = algebra->dim;
    const uint64_t cycle = algebra->round / kith_collective_phases(algebra);
    KITH_ASSERT(most > 0);
    const size_t from = (size_t)(cycle % ((d + most - 1) / most)) * most;
    return (struct block){from, d - from < most ? d - from : most};
}

/* To the child that was merged as many rounds before the way's end as have
 * passed since. */
static void write_down(struct kith_algebra *algebra,
                       const struct kith_top_list *list)
{
    const struct layout layout = layout_of(algebra);
    const struct block block = block_of(algebra);
    const uint64_t phase =
        kith_collective_phases(algebra) - 1 - kith_collective_phase(algebra);
    char *const message = algebra->sent;
    unsigned char *const bits = (unsigned char *)message + layout.bits;
    for (uint32_t n = 0; n < list->count; n++) {
        const double born =
            get(algebra, algebra->vectors[BORN], list->entries[n].index);
        if (holds_child(algebra, phase, born))
            bits[n / 8] = (unsigned char)(bits[n / 8] | 1u << n % 8);
    }
    for (size_t i = 0; i < block.count; i++)
        put(algebra, message + layout.phi, i,
            get(algebra, algebra->vectors[PHI], block.from + i));
}

/* Who has heard nothing says so: a list of nobody. */
static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    if (kith_collective_phase(algebra) == 0)
        begin(algebra);
    edge->scalars_sent[0] = algebra->scalars[COLLECTIVE_COUNT];
    if (algebra->dim == 0 || !sends(algebra))
        return;
    memset(algebra->sent, 0, layout_of(algebra).bytes);
    if (algebra->scalars[COLLECTIVE_COUNT] == 0)
        return;
    const struct kith_top_list list = gather(algebra);
    write_list(algebra, &list);
    if (kith_collective_phase(algebra) >= height(algebra))
        write_down(algebra, &list);
}

/* Of a peer: false where it is no list, or its values are none. */
static bool read_list(const struct kith_algebra *algebra,
                      struct kith_top_list *list)
{
    const struct layout layout = layout_of(algebra);
    const char *const message = algebra->received;
    uint32_t count;
    memcpy(&count, message, sizeof count);
    if (count > list->room)
        return false;
    for (; list->count < count; list->count++) {
        struct kith_top_entry *const entry = &list->entries[list->count];
        entry->value = get(algebra, message + layout.values, list->count);
        memcpy(&entry->index,
               message + layout.places + list->count * sizeof(uint32_t),
               sizeof(uint32_t));
    }
    return kith_top_list_sane(list, algebra->dim, VALUE_MAX);
}

/* L <- the k largest of L + theirs. */
static void add_list(struct kith_algebra *algebra,
                     const struct kith_top_list *theirs)
{
    void *const values = algebra->vectors[LIST], *const born =
                                                     algebra->vectors[BORN];
    const uint64_t phase = kith_collective_phase(algebra);
    const struct kith_top_list ours = gather(algebra);
    struct kith_top_list merged = list_of(algebra, MERGED);
    struct kith_top_list dropped = list_of(algebra, BACK_OURS);
    struct kith_top_list not_taken = list_of(algebra, BACK_THEIRS);
    kith_top_list_merge(&ours, theirs, &merged, &dropped, &not_taken);
    for (uint32_t n = 0; n < dropped.count; n++) {
        put(algebra, values, dropped.entries[n].index, 0);
        put(algebra, born, dropped.entries[n].index, ABSENT);
    }
    for (uint32_t n = 0; n < merged.count; n++) {
        const uint32_t i = merged.entries[n].index;
        if (get(algebra, born, i) == ABSENT)
            put(algebra, born, i, (double)(CHILD + phase));
        put(algebra, values, i, merged.entries[n].value);
    }
    *merged_phases(algebra) += (double)(UINT64_C(1) << phase);
}

/* The child of phase p speaks for up to 2^p peers. */
static void merge_up(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const double models = edge->scalars_received[0];
    const double most = (double)(UINT64_C(1) << kith_collective_phase(algebra));
    struct kith_top_list theirs = list_of(algebra, THEIRS);
    edge->refused =
        !(models >= 1 && models <= most) || !read_list(algebra, &theirs);
    if (edge->refused)
        return;
    add_list(algebra, &theirs);
    algebra->scalars[COLLECTIVE_COUNT] += models;
}

/* e, phi and x are as G says; returns the sum of what x changed by. What an
 * entry was rounded to is what was sent: the rest of it stays. */
static double apply(struct kith_algebra *algebra)
{
    const double factor = algebra->coefficients[KITH_GOSSIP_RATE] /
                          algebra->scalars[COLLECTIVE_COUNT];
    double changed = 0;
    for (size_t i = 0; i < algebra->dim; i++) {
        const double born = get(algebra, algebra->vectors[BORN], i);
        const double x = get(algebra, algebra->live, i);
        const double used = born == OWN ? claim(algebra, i) : 0;
        const double left = difference(algebra, i) - used;
        const double phi = get(algebra, algebra->vectors[PHI], i) -
                           factor * get(algebra, algebra->vectors[LIST], i);
        put(algebra, algebra->vectors[RESIDUAL], i,
            fabs(left) <= VALUE_MAX ? left : 0);
        put(algebra, algebra->vectors[PHI], i, phi);
        put(algebra, algebra->live, i, phi);
        changed += rounded(algebra, phi) - x;
    }
    return changed;
}

/* G takes the place of L; what it holds of this peer's L was here before. */
static void hold(struct kith_algebra *algebra, const struct kith_top_list *list)
{
    const unsigned char *const bits =
        (const unsigned char *)algebra->received + layout_of(algebra).bits;
    void *const born = algebra->vectors[BORN];
    uint32_t n = 0;
    for (size_t i = 0; i < algebra->dim; i++) {
        const double before = get(algebra, born, i);
        const bool is_in = n < list->count && list->entries[n].index == i;
        const bool ours = is_in && (bits[n / 8] >> n % 8 & 1) != 0;
        put(algebra, algebra->vectors[LIST], i,
            is_in ? list->entries[n].value : 0);
        put(algebra, born, i,
            !is_in                     ? ABSENT
            : ours && before != ABSENT ? before
                                       : NEVER);
        n += is_in;
    }
    KITH_ASSERT(n == list->count);
}

/* Are the values of phi such as a model may have? */
static bool is_phi_sane(const struct kith_algebra *algebra)
{
    const char *const phi =
        (const char *)algebra->received + layout_of(algebra).phi;
    const size_t count = block_of(algebra).count;
    size_t sane = 0;
    while (sane < count && fabs(get(algebra, phi, sane)) <= VALUE_MAX)
        sane++;
    return sane == count;
}

/* The block that came takes the place of ours; returns what x changed by. */
static double take_block(struct kith_algebra *algebra)
{
    const char *const phi =
        (const char *)algebra->received + layout_of(algebra).phi;
    const struct block block = block_of(algebra);
    double changed = 0;
    for (size_t i = 0; i < block.count; i++) {
        const double value = get(algebra, phi, i);
        changed += value - get(algebra, algebra->live, block.from + i);
        put(algebra, algebra->vectors[PHI], block.from + i, value);
        put(algebra, algebra->live, block.from + i, value);
    }
    return changed;
}

/* All of it at once: e, phi and x fit each other even where this peer's cycle
 * ends here. */
static void merge_down(struct kith_algebra *algebra,
                       struct kith_work_edge *edge)
{
    const double models = edge->scalars_received[0];
    struct kith_top_list list = list_of(algebra, THEIRS);
    if (models == 0)
        return;
    edge->refused = models > algebra->peers || !read_list(algebra, &list) ||
                    !is_phi_sane(algebra);
    if (edge->refused)
        return;
    hold(algebra, &list);
    algebra->scalars[COLLECTIVE_COUNT] = models;
    edge->delta_sum = apply(algebra);
    edge->delta_sum += take_block(algebra);
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    edge->delta_sum = 0;
    if (algebra->dim == 0)
        return; /* its messages are empty */
    if (kith_collective_phase(algebra) < height(algebra))
        merge_up(algebra, edge);
    else
        merge_down(algebra, edge);
}

/* At the end of the way up the root has G, and all others nothing. */
static double finish(struct kith_algebra *algebra)
{
    const uint64_t up = height(algebra) > 0 ? height(algebra) : 1;
    if (kith_collective_phase(algebra) + 1 != up)
        return 0;
    if (algebra->self == 0)
        return apply(algebra);
    algebra->scalars[COLLECTIVE_COUNT] = 0;
    return 0;
}

const struct kith_algorithm kith_algorithm_gtop_k = {
    .name = "gtop-k",
    .paper = "Shi et al., ICDCS 2019",
    .summary = "the k largest coordinates of the sum of all differences along "
               "a binomial tree, with error feedback",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .flags = KITH_NEEDS_LOSSLESS_LINK | KITH_NEEDS_EXACT_MESSAGES |
             KITH_CHECKS_ITS_MESSAGES,
    .schedule = "collective-tree",
    .keys = KITH_GOSSIP_READS(SHARE) | KITH_GOSSIP_READS(RATE),
    .initial = {[KITH_GOSSIP_SHARE] = 0.01, [KITH_GOSSIP_RATE] = 1},
    .scalar_count = 1,
    .scalars_start = {1},
    .scalars_high = COLLECTIVE_COUNT_MAX,
    .vectors = VECTORS,
    .payload = payload,
    .scratch_bytes = scratch,
    .start = kith_algorithm_start,
    .make = make,
    .merge = merge,
    .finish = finish,
};

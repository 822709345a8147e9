/* Random out-neighbours: each round everybody sends to s = `degree` others,
 * drawn anew, and averages what comes with its own, all alike:
 *
 *   W_ij = 1 / (1 + r_i),  r_i the senders to i, binomial of mean s
 *
 *   E Gamma' / Gamma = (1 - (1 - s / (n - 1))^n) / s - 1 / (n - 1)
 *
 * Rows alone sum to 1, so the mean drifts a little. Everybody draws for all, so
 * a receiver knows its senders: O(n s) a call. More senders than a peer has
 * room for (six standard deviations more than usual) are cut off by both. */
#include "topology_kinds.h"

#include <math.h>

#define DEGREE_DEFAULT 4u
#define DEGREE_MAX 16u
/* Blocks of the round's stream for each peer: words for twice the draws. */
#define BLOCKS 8u

_Static_assert(4 * BLOCKS >= 2 * DEGREE_MAX, "streams of peers keep apart");

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    const uint32_t most =
        topology->peers <= DEGREE_MAX ? topology->peers - 1 : DEGREE_MAX;
    const enum kith_err err =
        kith_degree_prepare(topology, DEGREE_DEFAULT, most, error);
    topology->doubly = topology->peers <= topology->options.degree + 1;
    return err;
}

/* The most senders; with as many receivers they have room in one round. */
static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    const uint32_t s = topology->options.degree;
    const uint32_t far = s + 6 + (uint32_t)(6 * sqrt(s));
    const uint32_t room = KITH_DEGREE_MAX - s < far ? KITH_DEGREE_MAX - s : far;
    (void)self;
    return room < topology->peers - 1 ? room : topology->peers - 1;
}

/* Floyd's sample of s others, counted without `peer` itself, in no order; Comm.
 * ACM 30(9), 1987. */
static void draw(const struct kith_topology *topology, struct kith_rng *round,
                 kith_id peer, uint32_t *picks)
{
    const uint32_t others = topology->peers - 1, s = topology->options.degree;
    round->block = peer * BLOCKS;
    round->used = 4;
    for (uint32_t k = 0; k < s; k++) {
        picks[k] = kith_rng_below(round, others - s + k + 1);
        for (uint32_t i = 0; i < k; i++)
            if (picks[i] == picks[k])
                picks[k] = others - s + k;
    }
}

static bool sends(const struct kith_topology *topology, struct kith_rng *round,
                  kith_id from, kith_id to)
{
    const uint32_t wanted = to - (to > from);
    uint32_t picks[DEGREE_MAX];
    bool found = false;
    draw(topology, round, from, picks);
    for (uint32_t k = 0; k < topology->options.degree; k++)
        found = found || picks[k] == wanted;
    return found;
}

/* Bit i: does peer `first` + i draw `to`, or what only `sends` can tell, a word
 * that is drawn again or a pick that takes another one's place? */
static uint32_t suspects(const struct kith_topology *topology,
                         struct kith_rng *round, kith_id first, kith_id to)
{
    const uint32_t s = topology->options.degree;
    const uint32_t kept = topology->peers - 1 - s;
    uint32_t words[4][KITH_RNG_LANES], found[KITH_RNG_LANES] = {0}, bits = 0;
    for (uint32_t k = 0; k < s; k++) {
        round->block = first * BLOCKS + k / 4;
        if (k % 4 == 0)
            kith_rng_blocks(round, BLOCKS, words);
        for (uint32_t i = 0; i < KITH_RNG_LANES; i++) {
            const uint64_t product = (uint64_t)words[k % 4][i] * (kept + k + 1);
            const uint32_t wanted = to - (to > first + i);
            found[i] |= (uint32_t)(product >> 32) == wanted;
            found[i] |= (uint32_t)product <= kept + k;
            found[i] |= wanted >= kept;
        }
    }
    for (uint32_t i = 0; i < KITH_RNG_LANES; i++)
        bits |= found[i] << i;
    return bits;
}

static void list_senders(const struct kith_topology *topology,
                         struct kith_rng *round, struct kith_neighbours *list)
{
    const kith_id to = list->self;
    const uint32_t most = degree(topology, to);
    for (kith_id first = 0; first < topology->peers; first += KITH_RNG_LANES) {
        uint32_t bits = suspects(topology, round, first, to);
        for (; bits != 0 && list->count < most; bits &= bits - 1) {
            const kith_id from = first + (uint32_t)__builtin_ctz(bits);
            if (from < topology->peers && from != to &&
                sends(topology, round, from, to))
                kith_list_add(list, from, 0);
        }
    }
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    struct kith_rng rng = kith_topology_stream(topology, list->round);
    uint32_t picks[DEGREE_MAX];
    if (list->sources) {
        list_senders(topology, &rng, list);
        return;
    }
    draw(topology, &rng, list->self, picks);
    for (uint32_t k = 0; k < topology->options.degree; k++)
        kith_list_add(list, picks[k] + (picks[k] >= list->self), 0);
}

/* Peers are drawn alike: the same from every start. */
static struct kith_topology_contraction
contraction(const struct kith_topology *topology)
{
    const double n = topology->peers, s = topology->options.degree;
    double none = 1, left = 0; /* (1 - s / (n - 1))^n */
    for (uint32_t i = 0; i < topology->peers; i++)
        none *= 1 - s / (n - 1);
    if (topology->peers > 1)
        left = (1 - none) / s - 1 / (n - 1);
    return (struct kith_topology_contraction){.mean = left, .worst = left};
}

const struct kith_topology_kind kith_topology_random_out = {
    .name = "random-out",
    .paper = "de Vos et al., NeurIPS 2023 (2310.01972), EL-Local",
    .summary = "everybody sends to `degree` [4] others, drawn anew each round",
    .directed = true,
    .keys = KITH_TOPOLOGY_READS(DEGREE),
    .prepare = prepare,
    .degree = degree,
    .neighbours = neighbours,
    .contraction = contraction,
};

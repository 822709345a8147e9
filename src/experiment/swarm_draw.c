/* Experiments at random: a table of faults, ranges for everything else. Draws
 * stand in statements of their own: in which order a call's arguments, or the
 * fields of an initialiser, draw is each compiler's choice. */
#include "kith/swarm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/hash.h"
#include "kith/rng.h"
#include "kith/text.h"

#define TRIES_MAX 255u
#define FAULT_MS_MAX 4000u
#define PEER_STEPS_MAX 500000 /* of all peers: what a run may cost */
/* The lab: at most 500 steps a second, of all peers, are a tenth of a core, so
 * that a core carries several runs; what is not live by then is so by now. */
#define LAB_STEP_MS_PER_PEER 2
#define LAB_MS_MAX 120000

static uint32_t between(struct kith_rng *rng, uint32_t low, uint32_t high)
{
    KITH_ASSERT(low <= high);
    return low + kith_rng_below(rng, high - low + 1);
}

/* Small ones as often as large ones: an octave at random, then in it. */
static uint32_t octave(struct kith_rng *rng, uint32_t low, uint32_t high)
{
    uint32_t top = low;
    KITH_ASSERT(low > 0 && low <= high);
    while (top < high && kith_rng_below(rng, 4) != 0)
        top = top > high / 2 ? high : 2 * top;
    return between(rng, low, top);
}

static bool one_in(struct kith_rng *rng, uint32_t n)
{
    return kith_rng_below(rng, n) == 0;
}

/* ---- faults */

struct place {
    uint32_t peers, from_ms, to_ms;
};

static void some(const struct place *place, struct kith_rng *rng,
                 char selector[48])
{
    (void)snprintf(selector, 48, "n(%" PRIu32 ")",
                   between(rng, 1, place->peers > 2 ? place->peers / 3 : 1));
}

static size_t begin(const struct place *place, struct kith_rng *rng,
                    char text[192])
{
    return kith_text_add(text, 192, 0, "{at: %" PRIu32 "ms",
                         between(rng, place->from_ms, place->to_ms));
}

static uint32_t length_ms(struct kith_rng *rng)
{
    return octave(rng, 50, FAULT_MS_MAX);
}

/* Never peer 0: somebody must be left to go on. */
static void crash(const struct place *place, struct kith_rng *rng,
                  char text[192])
{
    const uint32_t last = place->peers - 1, from = between(rng, 1, last);
    const uint32_t most = from + place->peers / 3;
    const size_t at = begin(place, rng, text);
    const size_t more = kith_text_add(
        text, 192, at, ", crash: \"peer(%" PRIu32 "..%" PRIu32 ")\"", from,
        between(rng, from, most < last ? most : last));
    if (one_in(rng, 4))
        (void)kith_text_add(text, 192, more, "}"); /* for good */
    else
        (void)kith_text_add(text, 192, more, ", restart: %" PRIu32 "ms}",
                            length_ms(rng));
}

static void pause_some(const struct place *place, struct kith_rng *rng,
                       char text[192])
{
    char selector[48];
    const size_t at = begin(place, rng, text);
    some(place, rng, selector);
    (void)kith_text_add(text, 192, at, ", for: %" PRIu32 "ms, pause: \"%s\"}",
                        length_ms(rng), selector);
}

static void slow(const struct place *place, struct kith_rng *rng,
                 char text[192])
{
    char selector[48];
    const size_t at = begin(place, rng, text);
    some(place, rng, selector);
    const uint32_t by = between(rng, 2, 10), long_ms = length_ms(rng);
    (void)kith_text_add(text, 192, at,
                        ", for: %" PRIu32 "ms, slow: \"%s\", by: %" PRIu32 "}",
                        long_ms, selector, by);
}

/* Halves, one against the rest, or some against some; at times one way. */
static void partition(const struct place *place, struct kith_rng *rng,
                      char text[192])
{
    char left[48], right[48];
    const size_t at = begin(place, rng, text);
    if (one_in(rng, 3)) {
        some(place, rng, left);
        (void)snprintf(right, sizeof right, "all");
    } else {
        const uint32_t cut = between(rng, 0, place->peers - 2);
        (void)snprintf(left, sizeof left, "peer(0..%" PRIu32 ")", cut);
        (void)snprintf(right, sizeof right, "peer(%" PRIu32 "..%" PRIu32 ")",
                       cut + 1, place->peers - 1);
    }
    const char *way = one_in(rng, 4) ? "->" : "<->";
    (void)kith_text_add(text, 192, at,
                        ", for: %" PRIu32 "ms, partition: \"%s %s %s\"}",
                        length_ms(rng), left, way, right);
}

/* A kind of fault is a function and a row. */
static void (*const kinds[])(const struct place *place, struct kith_rng *rng,
                             char text[192]) = {crash, pause_some, slow,
                                                partition};
#define KIND_COUNT ((uint32_t)(sizeof kinds / sizeof *kinds))

/* Of so few, one word against all others' is one too many. */
#define HONEST_LEAST 4u

/* What the other figures hang on. */
struct base {
    const struct kith_algorithm *algorithm;
    const struct kith_topology_kind *topology;
    enum kith_world world;
    bool is_huge; /* somebody sends values that overflow */
    uint32_t peers, latency_ms, jitter_ms, step_ms, every, slowest;
    uint32_t buckets, urgent; /* of a gradient; 1: it is whole */
};

/* What is not drawn with the rest, so that it shifts nothing of it. */
enum { OWN_CLAIMS = 1000, OWN_AHEAD, OWN_SIZE, OWN_HUGE, OWN_LATE = 1010 };
enum { OWN_BUCKETS = OWN_LATE + TRIES_MAX + 1 };

static struct kith_rng own_stream(uint64_t seed, uint64_t run, uint64_t what)
{
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_SWARM, kith_hash_word(run, what));
    return rng;
}

static void draw_huge(uint64_t seed, uint64_t run, const struct place *place,
                      struct kith_draw *draw)
{
    char selector[48];
    struct kith_rng rng = own_stream(seed, run, OWN_HUGE + 1);
    KITH_ASSERT(draw->fault_count < KITH_DRAW_FAULTS_MAX);
    char *text = draw->faults[draw->fault_count++];
    const size_t at = begin(place, &rng, text);
    some(place, &rng, selector);
    const char *by = one_in(&rng, 2) ? "1e19" : "3e38";
    (void)kith_text_add(text, 192, at,
                        ", for: %" PRIu32 "ms, huge: \"%s\", by: %s}",
                        length_ms(&rng), selector, by);
}

static void draw_faults(uint64_t seed, uint64_t run, const struct place *place,
                        struct kith_draw *draw)
{
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_SWARM, kith_hash_word(run, 0));
    draw->fault_count =
        place->peers < 2 ? 0 : kith_rng_below(&rng, KITH_DRAW_FAULTS_MAX - 1);
    for (uint32_t i = 0; i < draw->fault_count; i++) {
        kith_rng_init(&rng, seed, KITH_STREAM_SWARM,
                      kith_hash_word(run, i + UINT64_C(1)));
        kinds[kith_rng_below(&rng, KIND_COUNT)](place, &rng, draw->faults[i]);
    }
}

void kith_draw_faults(uint64_t seed, uint64_t run, uint32_t peers,
                      kith_ns span_ns, struct kith_draw *draw)
{
    const kith_ns half_ms = span_ns / 2 / KITH_MS;
    const kith_ns last_ms = half_ms - FAULT_MS_MAX;
    const struct place place = {
        .peers = peers,
        .from_ms = 1,
        .to_ms = last_ms < 2                ? 2
                 : last_ms > UINT32_MAX / 2 ? UINT32_MAX / 2
                                            : (uint32_t)last_ms,
    };
    memset(draw, 0, sizeof *draw);
    draw_faults(seed, run, &place, draw);
}

/* One way to lie a run, by a quarter of the peers at most; one alone where
 * rounds are numbered, because two that agree are believed. */
static void draw_dishonest(uint64_t seed, uint64_t run, uint32_t peers,
                           const struct kith_algorithm *algorithm,
                           struct kith_draw *draw)
{
    static const char *const claims[] = {"rounds", "silent", "probes", "huge"};
    const bool rounds = algorithm->pattern == KITH_PATTERN_ROUND;
    struct kith_rng rng = own_stream(seed, run, OWN_CLAIMS);
    if (peers < HONEST_LEAST || !one_in(&rng, 4))
        return;
    const char *claim = claims[kith_rng_below(&rng, 4)];
    struct kith_rng own = own_stream(seed, run, OWN_AHEAD);
    if (rounds && claim == claims[0] && one_in(&own, 2))
        claim = "ahead";
    const uint32_t count = rounds ? 1 : between(&rng, 1, peers / 4);
    const uint32_t first = kith_rng_below(&rng, peers - count + 1);
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++)
        at = kith_text_add(draw->dishonest, sizeof draw->dishonest, at,
                           "%s%" PRIu32 "=%s", i == 0 ? "" : ",", first + i,
                           claim);
}

/* ---- the base */

/* Mostly one packet, at times many: what is lost of one is not all of it. */
static uint32_t draw_dim(uint64_t seed, uint64_t run, uint32_t few)
{
    struct kith_rng rng = own_stream(seed, run, OWN_SIZE);
    return one_in(&rng, 8) ? octave(&rng, 512, 8192) : few;
}

/* Draws have numbers, by which what they found is kept away, and who joins a
 * list changes all of them. What came later, with messages of its own, of a
 * host alone or for gradients, is drawn apart, in the place of another, by
 * seeds that nobody used before. */
#define LATE_FROM_SEED 1000u

static bool is_late(const struct kith_algorithm *algorithm)
{
    return kith_algorithm_sends_bytes(algorithm) ||
           (algorithm->flags & (KITH_NEEDS_HOST | KITH_SHARES_GRADIENTS)) != 0;
}

static bool is_early(const struct kith_algorithm *algorithm)
{
    return !is_late(algorithm);
}

static bool is_topology_drawn(const struct kith_topology_kind *topology)
{
    return strcmp(topology->name, "collective-tree-twice") != 0 &&
           strcmp(topology->name, "collective-sites") != 0;
}

static const struct kith_algorithm *
draw_algorithm(struct kith_rng *rng,
               bool (*is_drawn)(const struct kith_algorithm *))
{
    uint32_t count = 0, at = 0;
    for (uint32_t i = 0; kith_algorithms[i] != NULL; i++)
        count += is_drawn(kith_algorithms[i]);
    uint32_t left = kith_rng_below(rng, count);
    for (; left > 0 || !is_drawn(kith_algorithms[at]); at++)
        left -= is_drawn(kith_algorithms[at]);
    return kith_algorithms[at];
}

static const struct kith_topology_kind *draw_topology(struct kith_rng *rng)
{
    uint32_t count = 0, at = 0;
    for (uint32_t i = 0; kith_topology_kinds[i] != NULL; i++)
        count += is_topology_drawn(kith_topology_kinds[i]);
    uint32_t left = kith_rng_below(rng, count);
    for (; left > 0 || !is_topology_drawn(kith_topology_kinds[at]); at++)
        left -= is_topology_drawn(kith_topology_kinds[at]);
    return kith_topology_kinds[at];
}

/* A momentum of the outer step is for one symmetric matrix; with others the
 * iteration may grow without any fault, until models are gated or overflow:
 * slowmo and diloco on some draws of equistatic, diloco on base. Those that
 * came late have a schedule of their own there. */
static bool converges(const struct kith_algorithm *algorithm,
                      const struct kith_topology_kind *topology)
{
    const unsigned outer =
        KITH_GOSSIP_READS(MOMENTUM) | KITH_GOSSIP_READS(RATE);
    return (algorithm->keys & outer) != outer || is_late(algorithm) ||
           (topology->is_static && !topology->directed);
}

/* Over directed links an edge is left out at one end alone; a share that leaves
 * x is an exchange of its own. */
static bool conserves(const struct kith_algorithm *algorithm,
                      const struct kith_topology_kind *topology)
{
    return (algorithm->flags & KITH_CONSERVES_SUM) &&
           (algorithm->flags & KITH_SPLITS_MASS ||
            algorithm->pattern != KITH_PATTERN_ROUND || !topology->directed);
}

static size_t add_gossip(const struct base *base, char *text, size_t size,
                         size_t at)
{
    at = kith_text_add(text, size, at, "gossip: {algorithm: %s",
                       base->algorithm->name);
    if (base->algorithm->schedule == NULL)
        at = kith_text_add(text, size, at, ", topology: %s",
                           base->topology->name);
    if (is_late(base->algorithm) &&
        (base->algorithm->flags & KITH_TAKES_COMPRESSOR))
        at = kith_text_add(text, size, at,
                           ", compressor: top-k-2bit, density: 0.1");
    if (base->buckets > 1)
        at = kith_text_add(text, size, at,
                           ", buckets: %" PRIu32 ", urgent: %" PRIu32,
                           base->buckets, base->urgent);
    return kith_text_add(text, size, at, ", every: %" PRIu32 "}\n",
                         base->every);
}

/* What is refused on a real wire ends a simulation that carries it. */
static size_t add_network(struct kith_rng *rng, const struct base *base,
                          bool honest, char *text, size_t size, size_t at)
{
    at =
        kith_text_add(text, size, at,
                      "network: {latency: %" PRIu32 "ms, jitter: %" PRIu32 "ms",
                      base->latency_ms, base->jitter_ms);
    if (one_in(rng, 2))
        at = kith_text_add(text, size, at, ", loss: 0.%02" PRIu32,
                           between(rng, 1, 10));
    if (one_in(rng, 4))
        at = kith_text_add(text, size, at, ", rate: %" PRIu32 "Mbit",
                           octave(rng, 1, 1000));
    if (one_in(rng, 16) && honest)
        at = kith_text_add(text, size, at, ", wire: full");
    return kith_text_add(text, size, at, "}\n");
}

static size_t add_compute(struct kith_rng *rng, const struct base *base,
                          char *text, size_t size, size_t at)
{
    at = kith_text_add(text, size, at, "compute:\n  step: %" PRIu32 "ms\n",
                       base->step_ms);
    if (one_in(rng, 4) && base->world == KITH_WORLD_SIM)
        at = kith_text_add(text, size, at, "  spread: exponential\n");
    if (base->slowest > 1)
        at = kith_text_add(
            text, size, at,
            "  slow: [{peers: \"n(%" PRIu32 ")\", by: %" PRIu32 "}]\n",
            between(rng, 1, base->peers > 1 ? base->peers / 2 : 1),
            base->slowest);
    return at;
}

/* Values that overflow: not where mass is split, for what is refused of it is
 * lost, and steps grow as the share that is left shrinks. */
static bool is_huge(uint64_t seed, uint64_t run, const struct base *base)
{
    struct kith_rng rng = own_stream(seed, run, OWN_HUGE);
    return one_in(&rng, 8) && base->peers >= HONEST_LEAST &&
           !(base->algorithm->flags & KITH_SPLITS_MASS);
}

/* Of what shares gradients, which seeds from LATE_FROM_SEED on draw alone. */
static void draw_buckets(uint64_t seed, uint64_t run, struct base *base)
{
    struct kith_rng rng = own_stream(seed, run, OWN_BUCKETS);
    const bool has = (base->algorithm->keys & KITH_GOSSIP_READS(BUCKETS)) != 0;
    base->buckets = has && !one_in(&rng, 3) ? octave(&rng, 2, 16) : 1;
    base->urgent = between(&rng, 1, base->buckets);
}

static struct base draw_base(uint64_t seed, uint64_t run, struct kith_rng *rng,
                             struct kith_rng *late, enum kith_world world)
{
    struct base base = {.world = world};
    base.peers = octave(rng, 2, 24);
    base.latency_ms = octave(rng, 1, 200);
    base.jitter_ms = one_in(rng, 2) ? octave(rng, 1, 50) : 0;
    base.step_ms = octave(rng, 8, 100);
    base.every = octave(rng, 1, 4);
    base.slowest = one_in(rng, 3) ? between(rng, 2, 10) : 1;
    if (world == KITH_WORLD_LAB &&
        base.step_ms < LAB_STEP_MS_PER_PEER * base.peers)
        base.step_ms = LAB_STEP_MS_PER_PEER * base.peers;
    base.algorithm = draw_algorithm(rng, is_early);
    if (seed >= LATE_FROM_SEED && one_in(late, 4))
        base.algorithm = draw_algorithm(late, is_late);
    const char *schedule = base.algorithm->schedule;
    base.topology =
        schedule ? kith_topology_find(schedule) : draw_topology(rng);
    base.is_huge = is_huge(seed, run, &base);
    draw_buckets(seed, run, &base);
    return base;
}

static bool write_base(uint64_t seed, uint64_t run, struct kith_rng *rng,
                       const struct base *base, struct kith_draw *draw)
{
    char *text = draw->base;
    const size_t size = sizeof draw->base;
    const bool in_lab = base->world == KITH_WORLD_LAB;
    const bool learns =
        base->is_huge || (base->algorithm->flags & KITH_SHARES_GRADIENTS) != 0;
    if (!in_lab)
        draw_dishonest(seed, run, base->peers, base->algorithm, draw);
    const uint32_t dim = draw_dim(seed, run, octave(rng, 1, 64));
    size_t at = kith_text_add(
        text, size, 0,
        "# kith swarm --random --seed %" PRIu64 " --run %" PRIu64 "%s\n"
        "%s%s%s"
        "name: swarm\nseed: %" PRIu64 "\npeers: %" PRIu32 "\n"
        "model: {kind: %s, dim: %" PRIu32 "}\n",
        seed, run, in_lab ? " --lab" : "",
        draw->dishonest[0] ? "# kith sim THIS --dishonest " : "",
        draw->dishonest, draw->dishonest[0] ? "\n" : "",
        kith_rng_u64(rng) >> 16, base->peers,
        learns ? "quadratic" : "consensus", dim);
    at = add_gossip(base, text, size, at);
    at = add_network(rng, base, !draw->dishonest[0], text, size, at);
    at = add_compute(rng, base, text, size, at);
    at = kith_text_add(text, size, at, "save: %" PRIu32 "ms\n",
                       octave(rng, 200, 5000));
    const bool counts =
        !in_lab && !base->is_huge && conserves(base->algorithm, base->topology);
    at = kith_text_add(text, size, at,
                       "assert: [\"always finite(model)\", %s\"finally "
                       "live\"]\n",
                       counts && !draw->dishonest[0] ? "\"finally conserved\", "
                                                     : "");
    KITH_ASSERT(at + 1 < size);
    return converges(base->algorithm, base->topology);
}

/* Long enough for what is promised to happen a few times. */
static kith_ns healed_ns(const struct base *base,
                         const struct kith_experiment *experiment)
{
    const uint64_t period = kith_topology_period(&experiment->gossip.graph);
    const kith_ns round_ms =
        (kith_ns)base->every * base->step_ms * base->slowest +
        6 * (kith_ns)(base->latency_ms + base->jitter_ms);
    const uint64_t cycle = period * base->buckets;
    const kith_ns rounds = 100 + 10 * (kith_ns)(cycle < 32 ? cycle : 32);
    const kith_ns most_ms =
        (kith_ns)PEER_STEPS_MAX * base->step_ms / (kith_ns)base->peers;
    const kith_ns wanted_ms =
        (experiment->network.link.loss > 0 ? 90000 : 20000) + rounds * round_ms;
    return (wanted_ms < most_ms ? wanted_ms : most_ms) * KITH_MS;
}

static enum kith_err load(const struct kith_draw *draw, enum kith_world world,
                          struct kith_experiment *experiment)
{
    char text[KITH_DRAW_TEXT_BYTES], error[KITH_EXPERIMENT_ERROR_BYTES];
    const size_t length = kith_draw_text(draw, text);
    enum kith_err err = kith_experiment_parse("swarm.yaml", text, length, NULL,
                                              0, experiment, error);
    if (err != KITH_OK)
        return err;
    err = kith_experiment_check_world(experiment, world, error);
    if (err != KITH_OK)
        kith_experiment_close(experiment);
    return err;
}

void kith_draw(uint64_t seed, uint64_t run, enum kith_world world,
               struct kith_draw *draw, struct kith_experiment *experiment)
{
    enum kith_err err = KITH_EINVAL;
    for (uint64_t try = 0; err != KITH_OK; try++) {
        KITH_ASSERT(try <= TRIES_MAX); /* most bases are fine */
        struct kith_rng rng;
        kith_rng_init(&rng, seed, KITH_STREAM_SWARM,
                      kith_hash_word(kith_hash_word(run, UINT64_MAX), try));
        struct kith_rng late = own_stream(seed, run, OWN_LATE + try);
        const struct base base = draw_base(seed, run, &rng, &late, world);
        const struct place place = {.peers = base.peers,
                                    .from_ms = 1,
                                    .to_ms = 3000 + 40 * base.step_ms};
        memset(draw, 0, sizeof *draw);
        const bool sound = write_base(seed, run, &rng, &base, draw);
        draw_faults(seed, run, &place, draw);
        if (base.is_huge)
            draw_huge(seed, run, &place, draw);
        draw->end_ns = 3600 * KITH_S; /* for now */
        err = sound ? load(draw, world, experiment) : KITH_EINVAL;
        if (err != KITH_OK)
            continue;
        draw->end_ns = (place.to_ms + FAULT_MS_MAX) * KITH_MS +
                       healed_ns(&base, experiment);
        if (world == KITH_WORLD_LAB && draw->end_ns > LAB_MS_MAX * KITH_MS)
            draw->end_ns = LAB_MS_MAX * KITH_MS;
        kith_experiment_close(experiment);
        err = load(draw, world, experiment);
    }
}

size_t kith_draw_list(const struct kith_draw *draw, char *text, size_t size,
                      size_t at)
{
    at = kith_text_add(text, size, at, "[");
    for (uint32_t i = 0; i < draw->fault_count; i++)
        at = kith_text_add(text, size, at, "%s%s", i == 0 ? "" : ",\n  ",
                           draw->faults[i]);
    return kith_text_add(text, size, at, "]");
}

size_t kith_draw_text(const struct kith_draw *draw,
                      char text[KITH_DRAW_TEXT_BYTES])
{
    const size_t size = KITH_DRAW_TEXT_BYTES;
    size_t at = kith_text_add(
        text, size, 0, "%sstop: {time: %" PRId64 "ms}\nfaults: ", draw->base,
        draw->end_ns / KITH_MS);
    at = kith_draw_list(draw, text, size, at);
    at = kith_text_add(text, size, at, "\n");
    KITH_ASSERT(at + 1 < size);
    return at;
}

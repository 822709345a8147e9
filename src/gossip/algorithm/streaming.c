/* Streaming DiLoCo: one fragment of the model at a time, while training goes
 * on.
 *
 *   round r, fragment p = r mod P:
 *   D = theta_p - mean_j x_j,p;   m_p <- mu m_p + D
 *   theta_p <- theta_p - alpha (D + mu m_p)
 *   x_p <- a x_p + (1 - a) theta_p
 *
 * P = `fragments`, a = `blend`, mu = `momentum`, alpha = `rate`; each fragment
 * has its turn every P `every` steps. A P-th of the model travels in a round,
 * and is merged when it is there, a step later or more (the paper's tau); means
 * are of all neighbours, so use a complete graph. With P = 1, a = 0 and tau = 0
 * it is DiLoCo.
 *
 * Source: Douillard et al., "Streaming DiLoCo with overlapping communication",
 * 2025, Alg. 2; a = 0.5 is its default.
 * Test: unit/test_rules_outer.c (T8.1, T13). */
#include "updates.h"

enum { THETA, MOMENTUM, VECTORS };

struct fragment {
    size_t offset, count, trained; /* elements; of them that train */
};

static size_t most(const struct kith_algebra *algebra)
{
    const size_t parts = (size_t)algebra->coefficients[KITH_GOSSIP_FRAGMENTS];
    return (algebra->dim + parts - 1) / parts;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static struct fragment fragment_of(const struct kith_algebra *algebra)
{
    const uint64_t parts =
        (uint64_t)algebra->coefficients[KITH_GOSSIP_FRAGMENTS];
    const size_t each = most(algebra);
    const size_t first =
        least(algebra->dim, each * (size_t)(algebra->round % parts));
    const size_t count = least(each, algebra->dim - first);
    const size_t trained =
        first < algebra->trained ? least(count, algebra->trained - first) : 0;
    return (struct fragment){first, count, trained};
}

static size_t bytes(const struct kith_algebra *algebra)
{
    return most(algebra) * algebra->backend->element_bytes;
}

static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct fragment fragment = fragment_of(algebra);
    (void)edge;
    algebra->backend->copy(
        fragment.count, algebra->sent,
        kith_algorithm_at(algebra, algebra->live, fragment.offset));
    /* The last fragment may be shorter than its message, of which all is sent.
     */
    algebra->backend->clear(
        most(algebra) - fragment.count,
        kith_algorithm_at(algebra, algebra->sent, fragment.count));
}

/* factor (mean - sent) from element `from` of the fragment on, as terms
 * (merged_count). */
static void mean_terms(const struct kith_algebra *algebra, size_t from,
                       double factor, struct kith_term *terms)
{
    for (uint32_t i = 0; i < algebra->merged_count; i++)
        terms[i] = (struct kith_term){
            factor * algebra->merged[i].weight,
            kith_algorithm_at(algebra, algebra->inboxes[i], from),
            kith_algorithm_at(algebra, algebra->sent, from)};
}

/* theta <- (1 - alpha) theta + alpha mean - alpha mu m; x is blended with it.
 * Returns what that added to the sum of x. */
static double outer(const struct kith_algebra *algebra,
                    const struct fragment *fragment)
{
    const double mu = algebra->coefficients[KITH_GOSSIP_MOMENTUM];
    const double alpha = algebra->coefficients[KITH_GOSSIP_RATE];
    const double blend = algebra->coefficients[KITH_GOSSIP_BLEND];
    const size_t from = fragment->offset;
    void *const theta =
        kith_algorithm_at(algebra, algebra->vectors[THETA], from);
    void *const momentum =
        kith_algorithm_at(algebra, algebra->vectors[MOMENTUM], from);
    struct kith_term moved[KITH_TERMS_MAX], steps[KITH_TERMS_MAX];
    const struct kith_term global = {1 - blend, theta, NULL};
    double added;
    const struct kith_update updates[] = {
        {.y = momentum,
         .own = mu,
         .count = 1 + algebra->merged_count,
         .terms = moved},
        {.y = theta,
         .own = 1 - alpha,
         .count = 2 + algebra->merged_count,
         .terms = steps},
        {.y = kith_algorithm_at(algebra, algebra->live, from),
         .own = blend,
         .count = 1,
         .terms = &global,
         .change = &added}};
    moved[0] = (struct kith_term){1, theta, algebra->sent};
    mean_terms(algebra, 0, -1, moved + 1);
    steps[0] = (struct kith_term){alpha, algebra->sent, NULL};
    steps[1] = (struct kith_term){-alpha * mu, momentum, NULL};
    mean_terms(algebra, 0, alpha, steps + 2);
    algebra->backend->combine(fragment->trained, 3, updates);
    return added;
}

/* Running statistics move by what the mean adds. */
static double finish(struct kith_algebra *algebra)
{
    const struct fragment fragment = fragment_of(algebra);
    const size_t n = fragment.trained;
    struct kith_term terms[KITH_TERMS_MAX];
    const double added = outer(algebra, &fragment);
    mean_terms(algebra, n, 1, terms);
    return added +
           kith_algorithm_combine(
               algebra->backend, fragment.count - n, 1,
               kith_algorithm_at(algebra, algebra->live, fragment.offset + n),
               algebra->merged_count, terms);
}

const struct kith_algorithm kith_algorithm_streaming = {
    .name = "streaming",
    .paper = "Douillard et al., 2025",
    .summary = "DiLoCo by fragments, one in each round, while training goes on",
    .differs = "the mean is of neighbours: the paper's on a complete graph",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_ROUND,
    .keys = KITH_GOSSIP_READS(MOMENTUM) | KITH_GOSSIP_READS(RATE) |
            KITH_GOSSIP_READS(FRAGMENTS) | KITH_GOSSIP_READS(BLEND),
    .initial = {[KITH_GOSSIP_MOMENTUM] = 0.9,
                [KITH_GOSSIP_RATE] = 0.7,
                [KITH_GOSSIP_FRAGMENTS] = 4,
                [KITH_GOSSIP_BLEND] = 0.5},
    .vectors = VECTORS,
    .payload = bytes,
    .start = kith_algorithm_start,
    .make = make,
    .merge = kith_algorithm_merge_later,
    .finish = finish,
};

/* Who trains on which rows. Each peer computes the owner of every row from the
 * seed alone, then keeps its own:
 *
 *   iid           a shuffle, cut into even shares
 *   dirichlet(a)  per class, shares p ~ Dirichlet(a, ..., a) over the peers:
 *                 p_j = G_j / sum G, G_j ~ Gamma(a); the shuffled rows of the
 *                 class are cut at the cumulative shares
 *   classes(k)    k classes per peer, dealt round from a shuffled deck; the
 *                 rows of a class are cut evenly among its holders
 *
 * No libm: C libraries differ in the last bit, and peers must agree.
 * Hsu et al., "Measuring the effects of non-identical data distribution for
 * federated visual classification", 2019 (dirichlet). */
#include "data_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/text.h"
#include "kith/exp_log.h"
#include "kith/normal.h"

#define NOBODY UINT32_MAX
#define CLASSES_MAX 256u /* that a peer can ask for */
#define ALPHA_MAX 1e6

enum kith_err kith_split_parse(const char *text, struct kith_split *split)
{
    *split = (struct kith_split){.kind = KITH_SPLIT_IID};
    if (strcmp(text, "iid") == 0)
        return KITH_OK;
    char argument[32];
    uint64_t classes = 0;
    int end = 0;
    if (sscanf(text, "dirichlet(%31[^)])%n", argument, &end) == 1 && end > 0 &&
        text[end] == '\0') {
        split->kind = KITH_SPLIT_DIRICHLET;
        return kith_text_double(argument, &split->alpha) == KITH_OK &&
                       split->alpha > 0 && split->alpha <= ALPHA_MAX
                   ? KITH_OK
                   : KITH_EPARSE;
    }
    if (sscanf(text, "classes(%31[^)])%n", argument, &end) != 1 || end == 0 ||
        text[end] != '\0' || kith_text_u64(argument, &classes) != KITH_OK ||
        classes == 0 || classes > CLASSES_MAX)
        return KITH_EPARSE;
    split->kind = KITH_SPLIT_CLASSES;
    split->classes = (uint32_t)classes;
    return KITH_OK;
}

struct split_job {
    const struct kith_split *split;
    const struct kith_examples *set;
    uint64_t seed;
    uint32_t peers;
    uint32_t *owner; /* (set->count), NOBODY: left out */
    uint32_t *rows;  /* (set->count) scratch */
    double *shares;  /* (peers) scratch */
};

/* Draws of different purposes come from different entities of stream SPLIT. */
static struct kith_rng split_rng(const struct split_job *job, uint32_t purpose,
                                 uint32_t index)
{
    struct kith_rng rng;
    kith_rng_init(&rng, job->seed, KITH_STREAM_SPLIT,
                  (uint64_t)purpose << 32 | index);
    return rng;
}

enum { SHUFFLE_ALL, SHUFFLE_CLASS, DRAW_SHARES, SHUFFLE_DECK };

static void split_iid(const struct split_job *job)
{
    const size_t count = job->set->count;
    struct kith_rng rng = split_rng(job, SHUFFLE_ALL, 0);
    for (size_t i = 0; i < count; i++)
        job->rows[i] = (uint32_t)i;
    kith_rng_shuffle(&rng, job->rows, (uint32_t)count);
    for (uint32_t peer = 0; peer < job->peers; peer++) {
        const size_t first = (size_t)((uint64_t)count * peer / job->peers);
        const size_t end = (size_t)((uint64_t)count * (peer + 1) / job->peers);
        for (size_t i = first; i < end; i++)
            job->owner[job->rows[i]] = peer;
    }
}

/* The rows of one class, shuffled, into job->rows; returns how many. */
static size_t class_rows(const struct split_job *job, uint32_t class)
{
    size_t count = 0;
    for (size_t i = 0; i < job->set->count; i++)
        if ((uint32_t)job->set->labels[i] == class)
            job->rows[count++] = (uint32_t)i;
    struct kith_rng rng = split_rng(job, SHUFFLE_CLASS, class);
    kith_rng_shuffle(&rng, job->rows, (uint32_t)count);
    return count;
}

/* ln of a Gamma(alpha) draw: Marsaglia and Tsang, ACM TOMS 2000, for alpha + 1,
 * times U^(1 / alpha). In logarithms, because for alpha = 0.01 the draw itself
 * falls below the smallest double. */
static double draw_log_gamma(struct kith_rng *rng, double alpha)
{
    const double d = alpha + 1 - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        const double x = kith_draw_normal(rng), root = 1 + c * x;
        if (root <= 0)
            continue;
        const double v = root * root * root;
        const double u = 1 - kith_rng_double(rng);
        if (kith_log(u) < x * x / 2 + d - d * v + d * kith_log(v)) {
            const double tail = 1 - kith_rng_double(rng);
            return kith_log(d * v) + kith_log(tail) / alpha;
        }
    }
}

static void split_dirichlet(const struct split_job *job)
{
    for (uint32_t class = 0; class < job->set->classes; class ++) {
        const size_t count = class_rows(job, class);
        struct kith_rng rng = split_rng(job, DRAW_SHARES, class);
        double top = 0, total = 0, below = 0;
        for (uint32_t peer = 0; peer < job->peers; peer++) {
            job->shares[peer] = draw_log_gamma(&rng, job->split->alpha);
            if (peer == 0 || job->shares[peer] > top)
                top = job->shares[peer];
        }
        for (uint32_t peer = 0; peer < job->peers; peer++) {
            job->shares[peer] = kith_exp(job->shares[peer] - top);
            total += job->shares[peer];
        }
        size_t at = 0;
        for (uint32_t peer = 0; peer < job->peers; peer++) {
            below += job->shares[peer];
            size_t end = (size_t)(below / total * (double)count + 0.5);
            if (peer + 1 == job->peers || end > count)
                end = count;
            for (; at < end; at++)
                job->owner[job->rows[at]] = peer;
        }
    }
}

/* Classes that occur, ascending, into `deck`; returns how many. */
static uint32_t classes_present(const struct split_job *job, uint32_t *deck)
{
    uint32_t present = 0;
    memset(deck, 0, job->set->classes * sizeof *deck);
    for (size_t i = 0; i < job->set->count; i++)
        deck[job->set->labels[i]] = 1;
    for (uint32_t class = 0; class < job->set->classes; class ++)
        if (deck[class] != 0)
            deck[present++] = class;
    return present;
}

static void deal(const struct split_job *job, uint32_t *deck, uint32_t present)
{
    const uint64_t k = job->split->classes, dealt = k * job->peers;
    struct kith_rng rng = split_rng(job, SHUFFLE_DECK, 0);
    kith_rng_shuffle(&rng, deck, present);
    /* Card c goes to the peers (c + j * present) / k, j = 0, 1, ... */
    for (uint32_t card = 0; card < present && card < dealt; card++) {
        const uint64_t holders = (dealt - 1 - card) / present + 1;
        const size_t count = class_rows(job, deck[card]);
        for (size_t i = 0; i < count; i++) {
            const uint64_t holder = (uint64_t)i * holders / count;
            job->owner[job->rows[i]] =
                (uint32_t)((card + holder * present) / k);
        }
    }
}

static enum kith_err split_classes(const struct split_job *job)
{
    uint32_t *deck = malloc(job->set->classes * sizeof *deck);
    if (deck == NULL)
        return KITH_ENOMEM;
    const uint32_t present = classes_present(job, deck);
    const bool enough = job->split->classes <= present;
    if (enough)
        deal(job, deck, present);
    free(deck);
    return enough ? KITH_OK : KITH_EINVAL;
}

/* Every peer gets a row: rows of peers above the average go to those without.
 * Surplus above the average is at least what those below it lack, so one pass
 * is enough. */
static enum kith_err feed_the_empty(const struct split_job *job)
{
    uint32_t *held = calloc(job->peers, sizeof *held);
    if (held == NULL)
        return KITH_ENOMEM;
    size_t assigned = 0;
    for (size_t i = 0; i < job->set->count; i++) {
        if (job->owner[i] != NOBODY) {
            held[job->owner[i]]++;
            assigned++;
        }
    }
    const size_t average = assigned / job->peers;
    uint32_t empty = 0;
    for (size_t i = 0; i < job->set->count && average > 0; i++) {
        while (empty < job->peers && held[empty] > 0)
            empty++;
        if (empty == job->peers)
            break;
        if (job->owner[i] != NOBODY && held[job->owner[i]] > average) {
            held[job->owner[i]]--;
            job->owner[i] = empty;
            held[empty]++;
        }
    }
    free(held);
    return average > 0 ? KITH_OK : KITH_EINVAL;
}

static enum kith_err split_run(const struct split_job *job)
{
    for (size_t i = 0; i < job->set->count; i++)
        job->owner[i] = NOBODY;
    enum kith_err err = KITH_OK;
    switch (job->split->kind) {
    case KITH_SPLIT_IID:
        split_iid(job);
        break;
    case KITH_SPLIT_DIRICHLET:
        split_dirichlet(job);
        break;
    case KITH_SPLIT_CLASSES:
        err = split_classes(job);
        break;
    }
    return err == KITH_OK ? feed_the_empty(job) : err;
}

/* Rows by their owner, ascending: counted, then dealt out. */
static void sort_rows(const struct split_job *job, struct kith_shares *shares)
{
    size_t *first = shares->first;
    for (size_t i = 0; i < job->set->count; i++)
        if (job->owner[i] != NOBODY)
            first[job->owner[i] + 1]++;
    for (uint32_t peer = 0; peer < job->peers; peer++)
        first[peer + 1] += first[peer];
    for (size_t i = 0; i < job->set->count; i++)
        if (job->owner[i] != NOBODY)
            shares->rows[first[job->owner[i]]++] = (uint32_t)i;
    /* Each has moved on to where the next one began. */
    memmove(first + 1, first, job->peers * sizeof *first);
    first[0] = 0;
}

enum kith_err kith_split_shares(const struct kith_split *split,
                                const struct kith_examples *set, uint64_t seed,
                                uint32_t peers, struct kith_shares *shares)
{
    *shares = (struct kith_shares){NULL, NULL};
    if (peers == 0 || peers > KITH_PEERS_MAX || set->count < peers ||
        set->count >= NOBODY)
        return KITH_EINVAL;
    /* A window of text has no class. */
    if (split->kind != KITH_SPLIT_IID && set->labels == NULL)
        return KITH_EINVAL;
    shares->rows = malloc(set->count * sizeof(uint32_t));
    shares->first = calloc((size_t)peers + 1, sizeof(size_t));
    struct split_job job = {.split = split,
                            .set = set,
                            .seed = seed,
                            .peers = peers,
                            .owner = malloc(set->count * sizeof(uint32_t)),
                            .rows = shares->rows,
                            .shares = malloc(peers * sizeof(double))};
    enum kith_err err = KITH_ENOMEM;
    if (job.owner != NULL && job.rows != NULL && job.shares != NULL &&
        shares->first != NULL)
        err = split_run(&job);
    if (err == KITH_OK)
        sort_rows(&job, shares);
    else
        kith_shares_free(shares);
    free(job.owner);
    free(job.shares);
    return err;
}

void kith_shares_free(struct kith_shares *shares)
{
    free(shares->rows);
    free(shares->first);
    *shares = (struct kith_shares){NULL, NULL};
}

enum kith_err kith_split_rows(const struct kith_split *split,
                              const struct kith_examples *set, uint64_t seed,
                              uint32_t peers, uint32_t peer, uint32_t **rows,
                              size_t *count)
{
    struct kith_shares shares;
    *rows = NULL;
    *count = 0;
    if (peer >= peers)
        return KITH_EINVAL;
    enum kith_err err = kith_split_shares(split, set, seed, peers, &shares);
    if (err != KITH_OK)
        return err;
    const size_t first = shares.first[peer];
    const size_t bytes = (shares.first[peer + 1] - first) * sizeof **rows;
    *rows = malloc(bytes);
    if (*rows != NULL) {
        memcpy(*rows, shares.rows + first, bytes);
        *count = bytes / sizeof **rows;
    } else {
        err = KITH_ENOMEM;
    }
    kith_shares_free(&shares);
    return err;
}

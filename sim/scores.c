/* Scores of models. See scores.h.
 *
 * A thread has an evaluator and a vector of its own, and takes every n-th of
 * the peers: which of them scores a model changes no bit of it. They live for
 * one look, since there are few. */
#include "sim/scores.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/assert.h"
#include "sim/threads.h"
#include "sim/world.h"

struct scorer {
    const struct sim_world *world;
    const struct sim_look *look;
    struct kith_evaluator *evaluator;
    double *z;   /* (dim) */
    float *told; /* (dim) for who is asked about z; NULL: nobody is */
    uint32_t first;
    enum kith_err err;
    char error[KITH_DATA_ERROR_BYTES];
};

struct sim_scores {
    double *mean;              /* (dim) */
    struct sim_scored *scored; /* (peer_count) */
    uint32_t count;            /* of the last look */
    struct scorer *scorers;    /* (scorer_count) */
    uint32_t scorer_count;
};

/* What does not fit is known before the run begins. */
static enum kith_err open_scorer(struct sim_world *world, struct scorer *scorer)
{
    KITH_ASSERT(world->dim > 0);
    const struct kith_experiment *experiment = world->experiment;
    const struct kith_dataset *dataset = world->options.dataset;
    scorer->world = world;
    scorer->z = sim_alloc(world, world->dim, sizeof *scorer->z);
    if (world->options.score)
        scorer->told = sim_alloc(world, world->dim, sizeof *scorer->told);
    if (!scorer->z || (world->options.score && !scorer->told))
        return KITH_ENOMEM;
    enum kith_err err = kith_evaluator_open(experiment, experiment->backend,
                                            dataset ? &dataset->test : NULL,
                                            &scorer->evaluator, scorer->error);
    if (err == KITH_OK)
        err = kith_evaluator_part(scorer->evaluator, sim_points_rows(world),
                                  scorer->error);
    return err == KITH_OK ? err : sim_fail(world, err, "%s", scorer->error);
}

enum kith_err sim_scores_open(struct sim_world *world)
{
    KITH_ASSERT(world->scores == NULL);
    const uint32_t threads =
        world->options.threads > 0 ? world->options.threads : 1;
    if (world->dim == 0)
        return KITH_OK;
    struct sim_scores *scores = sim_alloc(world, 1, sizeof *scores);
    if (!scores)
        return KITH_ENOMEM;
    world->scores = scores;
    scores->mean = sim_alloc(world, world->dim, sizeof *scores->mean);
    scores->scored =
        sim_alloc(world, world->peer_count, sizeof *scores->scored);
    const uint32_t count =
        threads < world->peer_count ? threads : world->peer_count;
    scores->scorers = sim_alloc(world, count, sizeof *scores->scorers);
    if (!scores->mean || !scores->scored || !scores->scorers)
        return KITH_ENOMEM;
    enum kith_err err = KITH_OK;
    for (uint32_t i = 0; i < count && err == KITH_OK; i++) {
        scores->scorers[i].first = i;
        err = open_scorer(world, &scores->scorers[i]);
        scores->scorer_count = i + 1;
    }
    return err;
}

void sim_scores_close(struct sim_world *world)
{
    struct sim_scores *scores = world->scores;
    for (uint32_t i = 0; scores && i < scores->scorer_count; i++)
        kith_evaluator_close(scores->scorers[i].evaluator);
}

/* A thread has some of the coordinates, of all peers in their order: the last
 * bits of a sum are one thread's. */
static void sum_share(void *argument, unsigned share)
{
    struct sim_scores *scores = argument;
    struct scorer *scorer = &scores->scorers[share];
    const struct sim_world *world = scorer->world;
    const size_t count = scores->scorer_count;
    const size_t first = world->dim * scorer->first / count;
    const size_t end = world->dim * (scorer->first + 1) / count;
    for (kith_id id = 0; id < world->peer_count; id++) {
        if (!sim_alive(world, id) || !sim_is_here(world, id))
            continue;
        kith_worker_read_part(sim_worker(world, id), first, end - first,
                              scorer->z);
        for (size_t k = first; k < end; k++)
            scores->mean[k] += scorer->z[k - first];
    }
}

/* Summed in the order of the peers, from rank to rank where there are several:
 * the last bits are those of one process. While a run that goes on catches up
 * there are no models, and nobody looks at their mean: what was made of it is
 * in the log. */
uint32_t sim_scores_average(struct sim_world *world)
{
    KITH_ASSERT(world->dim > 0);
    struct sim_scores *scores = world->scores;
    const size_t bytes = world->dim * sizeof *scores->mean;
    uint32_t live = 0;
    for (kith_id id = 0; id < world->peer_count; id++)
        live += sim_alive(world, id);
    if (sim_saves_recalls(world))
        return live;
    if (!world->ranks || !sim_ranks_take_over(world, scores->mean, bytes))
        memset(scores->mean, 0, bytes);
    sim_share_out(scores->scorer_count, sum_share, scores);
    if (world->ranks)
        sim_ranks_hand_on(world, scores->mean, bytes);
    KITH_ASSERT(live <= world->peer_count);
    for (size_t k = 0; k < world->dim; k++)
        scores->mean[k] /= live;
    return live;
}

/* By the caller, who is asked no more once it, or the run, has failed. */
static struct kith_score ask(struct scorer *scorer)
{
    const struct sim_world *world = scorer->world;
    struct kith_score result = {NAN, NAN};
    if (scorer->err != KITH_OK || sim_failure(world) != KITH_OK)
        return result;
    for (size_t k = 0; k < world->dim; k++)
        scorer->told[k] = (float)scorer->z[k];
    if (!world->options.score(scorer->told, &result, world->options.arg)) {
        scorer->err = KITH_EPARSE;
        (void)snprintf(scorer->error, sizeof scorer->error,
                       "evaluating a model failed");
    }
    return result;
}

/* Of the model in scorer->z; the first error stays. */
static struct kith_score score(struct scorer *scorer, bool part)
{
    struct kith_score result = {NAN, NAN};
    if (scorer->told)
        return ask(scorer);
    char error[KITH_DATA_ERROR_BYTES];
    const enum kith_err err =
        part ? kith_evaluator_score_part(scorer->evaluator, scorer->z, &result,
                                         error)
             : kith_evaluator_score(scorer->evaluator, scorer->z, &result,
                                    error);
    if (err != KITH_OK && scorer->err == KITH_OK) {
        scorer->err = err;
        memcpy(scorer->error, error, sizeof error);
    }
    return result;
}

/* On the thread of the run: scorers keep their errors to themselves. */
static void check_scorer(struct sim_world *world, const struct scorer *scorer)
{
    if (scorer->err != KITH_OK)
        sim_fail(world, scorer->err, "%s", scorer->error);
}

/* The mean has running statistics of its own, where the model has any: means of
 * statistics are not those of the mean. */
static struct kith_score score_average(struct sim_world *world, bool part)
{
    KITH_ASSERT(world->dim > 0);
    const struct kith_dataset *dataset = world->options.dataset;
    struct scorer *scorer = &world->scores->scorers[0];
    struct kith_worker *shared = sim_worker(world, KITH_NOBODY);
    enum kith_err err = KITH_OK;
    if (shared) {
        kith_worker_read(shared, scorer->z);
    } else {
        memcpy(scorer->z, world->scores->mean, world->dim * sizeof *scorer->z);
        err = kith_estimate(world->experiment, world->experiment->backend,
                            dataset ? &dataset->train : NULL,
                            KITH_ESTIMATE_BATCHES, scorer->z);
    }
    if (err != KITH_OK)
        sim_fail(world, err, "cannot estimate the running statistics: %s",
                 kith_err_text(err));
    const struct kith_score result = score(scorer, part);
    check_scorer(world, scorer);
    return result;
}

/* By one rank: processors may differ in the last bits. */
struct kith_score sim_scores_averaged(struct sim_world *world, bool part)
{
    struct kith_score result = {NAN, NAN};
    KITH_ASSERT(world->scores != NULL);
    if (sim_saves_recalls(world)) {
        sim_saves_get(world, &result, sizeof result);
        return result;
    }
    if (sim_ranks_self(world) == 0)
        result = score_average(world, part);
    if (world->ranks)
        sim_ranks_share(world, 0, &result, sizeof result);
    if (world->saves)
        sim_saves_put(world, &result, sizeof result);
    return result;
}

static double distance_squared(const struct scorer *scorer)
{
    const struct sim_world *world = scorer->world;
    double sum = 0;
    for (size_t k = 0; k < world->dim; k++) {
        const double apart = scorer->z[k] - world->scores->mean[k];
        sum += apart * apart;
    }
    return sum;
}

/* Every so manieth of the list, so that shares are alike where the first peers
 * of it are scored and the rest is not. */
static void score_share(void *argument, unsigned share)
{
    struct sim_scores *scores = argument;
    struct scorer *scorer = &scores->scorers[share];
    const struct sim_world *world = scorer->world;
    for (uint32_t i = scorer->first; i < scores->count;
         i += scores->scorer_count) {
        struct sim_scored *scored = &scores->scored[i];
        if (!sim_is_here(world, scored->peer))
            continue;
        kith_worker_read(sim_worker(world, scored->peer), scorer->z);
        scored->squared = distance_squared(scorer);
        scored->score = scored->own ? score(scorer, scorer->look->part)
                                    : (struct kith_score){NAN, NAN};
    }
}

/* Each rank has scored its own, which stand together: they are listed in the
 * order of the peers. */
static void share_scores(struct sim_world *world)
{
    struct sim_scores *scores = world->scores;
    uint32_t from = 0;
    KITH_ASSERT(world->ranks != NULL);
    while (from < scores->count) {
        const uint32_t rank = sim_rank_of(world, scores->scored[from].peer);
        uint32_t to = from;
        KITH_ASSERT(from == 0 ||
                    scores->scored[from - 1].peer < scores->scored[from].peer);
        while (to < scores->count &&
               sim_rank_of(world, scores->scored[to].peer) == rank)
            to++;
        sim_ranks_share(world, rank, &scores->scored[from],
                        (to - from) * sizeof scores->scored[from]);
        from = to;
    }
}

/* Whom they are of, the engine knows. */
static void keep_scores(struct sim_world *world)
{
    const struct sim_scores *scores = world->scores;
    KITH_ASSERT(!sim_saves_recalls(world));
    for (uint32_t i = 0; i < scores->count; i++) {
        const struct sim_scored *scored = &scores->scored[i];
        sim_saves_put(world, &scored->squared, sizeof scored->squared);
        if (scored->own)
            sim_saves_put(world, &scored->score, sizeof scored->score);
    }
}

/* In the order in which keep_scores() wrote them. */
static void recall_scores(struct sim_world *world)
{
    struct sim_scores *scores = world->scores;
    KITH_ASSERT(sim_saves_recalls(world));
    for (uint32_t i = 0; i < scores->count; i++) {
        struct sim_scored *scored = &scores->scored[i];
        scored->score = (struct kith_score){NAN, NAN};
        sim_saves_get(world, &scored->squared, sizeof scored->squared);
        if (scored->own)
            sim_saves_get(world, &scored->score, sizeof scored->score);
    }
}

const struct sim_scored *sim_scores_peers(struct sim_world *world,
                                          const struct sim_look *look,
                                          uint32_t *count)
{
    KITH_ASSERT(look->own <= look->peers && look->peers <= world->peer_count);
    struct sim_scores *scores = world->scores;
    scores->count = 0;
    for (uint64_t i = 0; i < look->peers; i++) {
        const kith_id id = sim_sampled(world, i, look->peers);
        if (sim_alive(world, id))
            scores->scored[scores->count++].peer = id;
    }
    const uint64_t own = look->own < scores->count ? look->own : scores->count;
    for (uint64_t i = 0; i < scores->count; i++)
        scores->scored[i].own = i * own % scores->count < own;
    *count = scores->count;
    if (sim_saves_recalls(world)) {
        recall_scores(world);
        return scores->scored;
    }
    for (uint32_t i = 0; i < scores->scorer_count; i++)
        scores->scorers[i].look = look;
    sim_share_out(scores->count < scores->scorer_count ? scores->count
                                                       : scores->scorer_count,
                  score_share, scores);
    for (uint32_t i = 0; i < scores->scorer_count; i++)
        check_scorer(world, &scores->scorers[i]);
    if (world->ranks)
        share_scores(world);
    if (world->saves)
        keep_scores(world);
    return scores->scored;
}

/* Made of the mean, which a run that catches up does not have. */
double sim_scores_correlation(struct sim_world *world,
                              double consensus_distance, uint32_t peers)
{
    double correlation = NAN;
    if (sim_saves_recalls(world)) {
        sim_saves_get(world, &correlation, sizeof correlation);
        return correlation;
    }
    correlation = kith_correlation(world->scores->mean, world->dim,
                                   consensus_distance, peers);
    if (world->saves)
        sim_saves_put(world, &correlation, sizeof correlation);
    return correlation;
}

/* What peers have of their own; see kith/classes.h. What their statements say:
 * class_statements.c. */
#include "kith/classes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/exp_log.h"
#include "kith/experiment.h"
#include "kith/normal.h"
#include "kith/rng.h"
#include "kith/text.h"

/* ---- lines and latency */

/* 0 is the highest. */
static uint64_t lower(uint64_t a, uint64_t b)
{
    return a == 0 || (b > 0 && b < a) ? b : a;
}

uint64_t kith_class_rate(const struct kith_classes *classes, kith_id from,
                         kith_id to)
{
    KITH_DEBUG_ASSERT(from != to);
    return lower(kith_class_of(classes, from)->up_bits,
                 kith_class_of(classes, to)->down_bits);
}

uint64_t kith_classes_rate_least(const struct kith_classes *classes)
{
    uint64_t least = lower(classes->usual.up_bits, classes->usual.down_bits);
    for (uint32_t i = 0; i < classes->count; i++)
        least = lower(
            least, lower(classes->list[i].up_bits, classes->list[i].down_bits));
    return least;
}

void kith_classes_close(struct kith_classes *classes)
{
    free(classes->list);
    free(classes->of);
    free(classes->pace);
    *classes = (struct kith_classes){.count = 0};
}

void kith_experiment_link(const struct kith_experiment *experiment,
                          kith_id from, kith_id to,
                          struct kith_link_terms *terms)
{
    const struct kith_classes *classes = &experiment->network.classes;
    const struct kith_class *sender = kith_class_of(classes, from);
    const struct kith_class *receiver = kith_class_of(classes, to);
    KITH_DEBUG_ASSERT(sender->latency_ns >= 0 && receiver->latency_ns >= 0);
    terms->rate_bits = sender->up_bits;
    terms->latency_ns = (sender->latency_ns + receiver->latency_ns) / 2;
    kith_latencies_apply(&experiment->network.latencies, from, to, terms);
}

struct kith_link_terms
kith_experiment_slowest_link(const struct kith_experiment *experiment)
{
    const struct kith_classes *classes = &experiment->network.classes;
    struct kith_link_terms terms = experiment->network.link;
    KITH_ASSERT(terms.latency_ns >= 0);
    terms.latency_ns = classes->usual.latency_ns;
    for (uint32_t i = 0; i < classes->count; i++)
        if (classes->list[i].latency_ns > terms.latency_ns)
            terms.latency_ns = classes->list[i].latency_ns;
    return kith_latencies_slowest(&experiment->network.latencies, &terms);
}

double kith_experiment_mean_latency(const struct kith_experiment *experiment)
{
    struct kith_link_terms terms = experiment->network.link;
    double sum = 0;
    KITH_ASSERT(experiment->peers > 0);
    for (kith_id i = 0; i < experiment->peers; i++)
        sum +=
            (double)kith_class_of(&experiment->network.classes, i)->latency_ns;
    terms.latency_ns = (kith_ns)(sum / experiment->peers + 0.5);
    return kith_latencies_mean(&experiment->network.latencies,
                               experiment->peers, &terms);
}

/* ---- speeds */

enum kith_err kith_speeds_parse(const char *text, struct kith_speeds *speeds)
{
    static const struct {
        const char *name;
        enum kith_speeds_kind kind;
        double least, most;
    } laws[] = {{"lognormal(", KITH_SPEEDS_LOGNORMAL, 1e-6, 3},
                {"pareto(", KITH_SPEEDS_PARETO, 0.5, 100}};
    const size_t length = strlen(text);
    *speeds = (struct kith_speeds){.kind = KITH_SPEEDS_EQUAL};
    if (strcmp(text, "equal") == 0)
        return KITH_OK;
    for (size_t i = 0; i < sizeof laws / sizeof laws[0]; i++) {
        const size_t begins = strlen(laws[i].name);
        char number[32];
        if (strncmp(text, laws[i].name, begins) != 0 || length < begins + 2 ||
            text[length - 1] != ')' || length - begins > sizeof number)
            continue;
        memcpy(number, text + begins, length - begins - 1);
        number[length - begins - 1] = '\0';
        const enum kith_err err = kith_text_double(number, &speeds->parameter);
        if (err != KITH_OK)
            return err;
        speeds->kind = laws[i].kind;
        return speeds->parameter >= laws[i].least &&
                       speeds->parameter <= laws[i].most
                   ? KITH_OK
                   : KITH_ELIMIT;
    }
    return KITH_EPARSE;
}

double kith_speeds_draw(const struct kith_speeds *speeds, uint64_t seed,
                        kith_id peer)
{
    struct kith_rng rng;
    double slower = 0; /* its logarithm */
    kith_rng_init(&rng, seed, KITH_STREAM_SPEED, peer);
    switch (speeds->kind) {
    case KITH_SPEEDS_EQUAL:
        return 1;
    case KITH_SPEEDS_LOGNORMAL:
        slower = speeds->parameter * kith_draw_normal(&rng);
        break;
    case KITH_SPEEDS_PARETO:
        slower = -kith_log(1 - kith_rng_double(&rng)) / speeds->parameter;
        break;
    }
    const double factor = kith_exp(slower);
    if (factor > KITH_PACE_DRAWN_MAX)
        return KITH_PACE_DRAWN_MAX;
    return factor < 1.0 / KITH_PACE_DRAWN_MAX ? 1.0 / KITH_PACE_DRAWN_MAX
                                              : factor;
}

kith_ns kith_experiment_step_ns(const struct kith_experiment *experiment,
                                kith_id peer)
{
    const kith_ns step_ns = experiment->compute.step_ns;
    const double *pace = experiment->network.classes.pace;
    KITH_DEBUG_ASSERT(step_ns >= 0);
    if (pace == NULL || peer >= experiment->peers || step_ns == 0)
        return step_ns;
    const kith_ns own_ns = kith_ns_from((double)step_ns * pace[peer]);
    if (own_ns > KITH_TIME_MAX)
        return KITH_TIME_MAX + 1;
    return own_ns > 0 ? own_ns : 1;
}

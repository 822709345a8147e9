/* Checks: what `assert:` in an experiment promises, evaluated by both worlds.
 *
 *   always  QUANTITY [RELATION BOUND]   at every point where it is measured
 *   finally QUANTITY [RELATION BOUND]   once, when the run is over
 *   within TIME of FAULT.begin|end QUANTITY [RELATION BOUND [* before]]
 *       at one measurement at least, no later than TIME after the last time
 *       that such a fault begins or ends; `before`: what was measured last
 *       before the first one began
 *
 * A driver fills `struct kith_values` with what it knows, NaN for the rest,
 * and hands it to kith_checks_always() as often as it likes and to
 * kith_checks_finish() at the end. One quantity is one row of
 * src/experiment/check/quantities.c.
 * Test: unit/test_checks.c. */
#ifndef KITH_CHECK_H
#define KITH_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/experiment.h"
#include "kith/limits.h"
#include "kith/types.h"

/* What is known now, as float64 alone. NaN: not measured. Counts are sums over
 * all peers. */
struct kith_values {
    double live;     /* 1: so far, 0: kith/liveness.h */
    double finite;   /* 1: every live model is finite, 0: one is not */
    double accuracy; /* of the averaged model, in [0, 1] */
    double accuracy_mean, accuracy_worst; /* over peers */
    double scored;         /* peers whose own models mean and worst are of */
    double accuracy_error; /* of their mean as that of all, 95 %; 0: all are */
    double loss;           /* of the averaged model */
    double loss_mean, loss_worst;
    double consensus_distance; /* root mean of |x_i - mean|^2 */
    double correlation;        /* kith_correlation of the live models */
    /* |live + in flight + lost - initial - contributed| / scale, and what it
     * may be: 1e-12 where vectors are float64. */
    double conservation_error, conservation_tolerance;
    double attempts, done, failed, refused, skipped, torn;
    double waiting_share; /* share of wall time that training was held back */
};
/* Every field NaN. */
void kith_values_clear(struct kith_values *values);

/* What a model must have for it: each is more than the one before. */
enum kith_quantity_needs {
    KITH_NEEDS_NOTHING,
    KITH_NEEDS_VALUES, /* none has none */
    KITH_NEEDS_LOSS,   /* nor has consensus one */
    KITH_NEEDS_DATA
};

struct kith_quantity {
    const char *name, *summary, *paper;
    bool predicate; /* true or false: takes no relation */
    enum kith_quantity_needs needs;
    bool of_all;  /* the peers' own models */
    size_t field; /* KITH_VALUE(...) of struct kith_values, or */
    double (*value)(const struct kith_values *values); /* NaN: unknown */
};
#define KITH_VALUE(name) offsetof(struct kith_values, name)
/* Ends with name NULL. */
extern const struct kith_quantity kith_quantities[];
const struct kith_quantity *kith_quantity_find(const char *name);
/* Can a run of this model measure it at all? */
bool kith_quantity_fits(const struct kith_quantity *quantity,
                        const struct kith_model *model);

#define KITH_CHECK_ERROR_BYTES 512
/* "finally accuracy >= 0.85". KITH_EPARSE: `error` says what was found and
 * what is allowed. */
KITH_MUST_CHECK enum kith_err
kith_check_parse(const char *text, struct kith_check *check, char *error);

enum kith_verdict {
    KITH_VERDICT_HELD,
    KITH_VERDICT_BROKEN,
    KITH_VERDICT_UNKNOWN
};
/* One check against what is known; *value is what it was compared with. */
enum kith_verdict kith_check_evaluate(const struct kith_check *check,
                                      const struct kith_values *values,
                                      double *value);

/* The state of all checks of a run. */
struct kith_checks {
    struct {
        enum kith_verdict verdict; /* BROKEN stays */
        double value;              /* at the first violation, else the last */
        double before;             /* the last before the fault */
        kith_ns at_ns;
    } results[KITH_CHECKS_MAX];
};
/* Does any of its assertions speak of that quantity? */
bool kith_checks_ask(const struct kith_experiment *experiment,
                     const char *quantity);
void kith_checks_start(struct kith_checks *checks);
/* Evaluates the `always` checks; returns how many are broken so far. */
uint32_t kith_checks_always(struct kith_checks *checks,
                            const struct kith_experiment *experiment,
                            const struct kith_values *values, kith_ns now_ns);
/* Evaluates all of them for the last time; what could never be measured counts
 * as broken. Returns how many are broken: the run's `violations`.
 * kith_rundb_verdicts() writes them down. */
uint32_t kith_checks_finish(struct kith_checks *checks,
                            const struct kith_experiment *experiment,
                            const struct kith_values *values, kith_ns now_ns);

#endif

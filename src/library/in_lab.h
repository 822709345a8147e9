/* A handle in a lab: its place, and what it says to the launcher. See
 * kith/lab_place.h. */
#ifndef KITH_LIBRARY_IN_LAB_H
#define KITH_LIBRARY_IN_LAB_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/member_file.h"
#include "kith/lab_place.h"
#include "kith/worker.h"

struct in_lab {
    bool is_here; /* else the handle has a peer file */
    struct kith_lab_place place;
    struct kith_speaker *speaker; /* NULL: no place */
    float *average; /* (dim) to be evaluated: no run begins; NULL: a run does */
};

/* Fills in `member`, too, whose it stays. */
KITH_MUST_CHECK enum kith_err kith_in_lab_take(struct in_lab *lab,
                                               struct kith_member_file *member,
                                               char *error);
/* The vectors are known, of `dim` values: the speaker, or the average in them.
 */
KITH_MUST_CHECK enum kith_err
kith_in_lab_begin(struct in_lab *lab, const struct kith_listener *listener,
                  const struct kith_outside *vectors, uint32_t count,
                  char *error);
/* Of the average, which the vectors still hold. */
KITH_MUST_CHECK enum kith_err
kith_in_lab_score(struct in_lab *lab, const struct kith_score *score,
                  const struct kith_outside *vectors, uint32_t count,
                  char *error);
/* The average once more: a step has changed it. */
void kith_in_lab_refill(const struct in_lab *lab,
                        const struct kith_outside *vectors, uint32_t count);
void kith_in_lab_close(struct in_lab *lab);

#endif

/* The table of gs-sgd: see sketching.h. */
#include "sketching.h"

#include <math.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/hash.h"
#include "kith/sketch.h"

/* Indices of one block are hashed for all; small models are one block. */
enum { BLOCKS = 16, BLOCK_LEAST = 64 };

/* What the coefficients come to. */
struct plan {
    struct kith_sketch_config config;
    size_t cells;  /* of the table */
    bool is_plain; /* the table is v */
};

static struct plan plan_of(const struct kith_algebra *algebra)
{
    const double *const given = algebra->coefficients;
    const size_t d = algebra->dim, k = kith_feedback_kept(algebra, 1);
    const double rows = given[KITH_GOSSIP_ROWS];
    const double columns = rint(given[KITH_GOSSIP_COLUMNS] * (double)k);
    const bool is_plain = columns < 2 || rows * columns >= (double)d;
    if (is_plain)
        return (struct plan){.cells = d, .is_plain = true};
    const bool is_wide = algebra->backend->element_bytes == sizeof(double);
    const struct kith_sketch_config config = {
        .seed = algebra->seed,
        .dim = d,
        .rows = (uint32_t)rows,
        .columns = (uint32_t)columns,
        .blocks = d < (size_t)BLOCKS * BLOCK_LEAST ? 1 : BLOCKS,
        .cells = is_wide ? KITH_SKETCH_FLOAT64 : KITH_SKETCH_FLOAT32};
    return (struct plan){.config = config,
                         .cells = (size_t)config.rows * config.columns};
}

static uint64_t fingerprint(const struct kith_algebra *algebra)
{
    const struct plan plan = plan_of(algebra);
    return plan.is_plain ? kith_hash_word(KITH_HASH_START, plan.cells)
                         : kith_sketch_fingerprint(&plan.config);
}

size_t kith_sketching_wanted(const struct kith_algebra *algebra)
{
    const double p2 = algebra->coefficients[KITH_GOSSIP_CANDIDATES];
    return kith_feedback_kept(algebra, p2 > 0 ? p2 : 1);
}

/* Entries of the list that stands behind the shared ones: what is added, or
 * what is found. */
static size_t room_of(const struct kith_algebra *algebra)
{
    const double p1 = algebra->coefficients[KITH_GOSSIP_TRUNCATE];
    const size_t found = kith_sketching_wanted(algebra);
    const size_t added = kith_feedback_kept(algebra, p1);
    return added > found ? added : found;
}

static struct kith_top_entry *entries(const struct kith_algebra *algebra)
{
    return (struct kith_top_entry *)algebra->scratch +
           FEEDBACK_LISTS * kith_feedback_kept(algebra, 1);
}

size_t kith_sketching_bytes(const struct kith_algebra *algebra)
{
    return sizeof(uint64_t) +
           plan_of(algebra).cells * algebra->backend->element_bytes;
}

size_t kith_sketching_scratch(const struct kith_algebra *algebra)
{
    const struct plan plan = plan_of(algebra);
    const size_t lists =
        FEEDBACK_LISTS * kith_feedback_kept(algebra, 1) + room_of(algebra);
    return lists * sizeof(struct kith_top_entry) +
           (plan.is_plain ? 0 : kith_sketch_family_size(&plan.config, true));
}

/* Hashes are made anew each time, since scratch is shared: of one block, which
 * is less than what is done with them. */
static struct kith_sketch open_table(const struct kith_algebra *algebra,
                                     const struct plan *plan,
                                     struct kith_sketch_family *family)
{
    KITH_ASSERT(!plan->is_plain && plan->cells <= algebra->dim);
    const enum kith_err err = kith_sketch_family_init(
        entries(algebra) + room_of(algebra), &plan->config, true, family);
    KITH_ASSERT(err == KITH_OK); /* the experiment's check held it to that */
    return (struct kith_sketch){.family = family,
                                .cells = algebra->vectors[SKETCHING_TABLE]};
}

/* Of n values from `from`: a block at a time, claims and not differences. */
static enum kith_err add_all(const struct kith_algebra *algebra,
                             struct kith_sketch *table)
{
    double values[256];
    const size_t most = sizeof values / sizeof *values;
    enum kith_err err = KITH_OK;
    for (size_t from = 0; from < algebra->dim && err == KITH_OK; from += most) {
        const size_t left = algebra->dim - from;
        const size_t n = left < most ? left : most;
        for (size_t i = 0; i < n; i++)
            values[i] = kith_feedback_claim(algebra, from + i);
        err = kith_sketch_add(table, from, n, values);
    }
    return err;
}

static enum kith_err add_list(const struct kith_algebra *algebra,
                              const struct plan *plan,
                              struct kith_sketch *table,
                              const struct kith_top_list *list)
{
    if (!plan->is_plain)
        return kith_sketch_add_list(table, list);
    for (uint32_t n = 0; n < list->count; n++)
        kith_feedback_put(algebra, table->cells, list->entries[n].index,
                          list->entries[n].value);
    return KITH_OK;
}

/* Cells of one peer's table; false: some other peer would refuse them. */
static bool is_bounded(const struct kith_algebra *algebra, const void *cells,
                       size_t count, double models)
{
    size_t sane = 0;
    while (sane < count && fabs(kith_feedback_get(algebra, cells, sane)) <=
                               models * FEEDBACK_VALUE_MAX)
        sane++;
    return sane == count;
}

void kith_sketching_begin(struct kith_algebra *algebra)
{
    const struct plan plan = plan_of(algebra);
    const double p1 = algebra->coefficients[KITH_GOSSIP_TRUNCATE];
    const bool is_whole = p1 == 0 && !plan.is_plain;
    void *const cells = algebra->vectors[SKETCHING_TABLE];
    struct kith_sketch_family family;
    struct kith_sketch table = {.cells = cells};
    if (!plan.is_plain)
        table = open_table(algebra, &plan, &family);
    algebra->backend->clear(algebra->dim, cells);
    struct kith_top_list list = kith_top_list_of(
        entries(algebra), (uint32_t)kith_feedback_kept(algebra, p1));
    if (p1 > 0)
        kith_feedback_largest(algebra, &list);
    enum kith_err err = KITH_OK;
    if (p1 > 0)
        err = add_list(algebra, &plan, &table, &list);
    else if (is_whole)
        err = add_all(algebra, &table);
    else
        for (size_t i = 0; i < algebra->dim; i++)
            kith_feedback_put(algebra, cells, i,
                              kith_feedback_claim(algebra, i));
    if (err != KITH_OK || !is_bounded(algebra, cells, plan.cells, 1))
        algebra->backend->clear(algebra->dim, cells);
}

void kith_sketching_write(struct kith_algebra *algebra)
{
    const uint64_t mine = fingerprint(algebra);
    memcpy(algebra->sent, &mine, sizeof mine);
    memcpy((char *)algebra->sent + sizeof mine,
           algebra->vectors[SKETCHING_TABLE],
           plan_of(algebra).cells * algebra->backend->element_bytes);
}

bool kith_sketching_is_sane(const struct kith_algebra *algebra, double models)
{
    uint64_t theirs;
    memcpy(&theirs, algebra->received, sizeof theirs);
    return theirs == fingerprint(algebra) &&
           is_bounded(algebra, (const char *)algebra->received + sizeof theirs,
                      plan_of(algebra).cells, models);
}

void kith_sketching_add(struct kith_algebra *algebra)
{
    const char *const theirs =
        (const char *)algebra->received + sizeof(uint64_t);
    void *const cells = algebra->vectors[SKETCHING_TABLE];
    const size_t count = plan_of(algebra).cells;
    for (size_t i = 0; i < count; i++)
        kith_feedback_put(algebra, cells, i,
                          kith_feedback_get(algebra, cells, i) +
                              kith_feedback_get(algebra, theirs, i));
}

void kith_sketching_take(struct kith_algebra *algebra)
{
    memcpy(algebra->vectors[SKETCHING_TABLE],
           (const char *)algebra->received + sizeof(uint64_t),
           plan_of(algebra).cells * algebra->backend->element_bytes);
}

struct kith_top_list kith_sketching_find(const struct kith_algebra *algebra)
{
    const struct plan plan = plan_of(algebra);
    struct kith_top_list list = kith_top_list_of(
        entries(algebra), (uint32_t)kith_sketching_wanted(algebra));
    struct kith_sketch_family family;
    if (!plan.is_plain) {
        const struct kith_sketch table = open_table(algebra, &plan, &family);
        kith_sketch_largest(&table, &list);
        return list;
    }
    for (size_t i = 0; i < algebra->dim; i++) {
        const double value =
            kith_feedback_get(algebra, algebra->vectors[SKETCHING_TABLE], i);
        if (value != 0)
            kith_top_list_offer(&list, (uint32_t)i, value);
    }
    kith_top_list_finish(&list);
    return list;
}

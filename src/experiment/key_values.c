/* Values of keys that are not a field as it stands: words that are a number,
 * times that may be a word, and what the experiment's hash is told of them. */
#include "key_values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kith/backend.h"
#include "kith/text.h"

enum kith_err kith_key_parse_split(const char *text, void *field)
{
    return kith_split_parse(text, field);
}

/* Durations that may also be a word. */
static enum kith_err time_or(const char *text, const char *word, kith_ns value,
                             kith_ns *field)
{
    if (strcmp(text, word) == 0) {
        *field = value;
        return KITH_OK;
    }
    kith_ns span;
    const enum kith_err err = kith_text_time(text, &span);
    if (err != KITH_OK)
        return err;
    if (span < KITH_MS || span > 1000000 * KITH_S)
        return KITH_ELIMIT;
    *field = span;
    return KITH_OK;
}

enum kith_err kith_key_parse_deadline(const char *text, void *field)
{
    if (strcmp(text, "never") == 0)
        return time_or(text, "never", KITH_NEVER, field);
    return time_or(text, "measured", 0, field);
}

enum kith_err kith_key_parse_save(const char *text, void *field)
{
    return time_or(text, "never", 0, field);
}

/* A time, "full", "end", or "500 steps", which the next field counts. */
enum kith_err kith_key_parse_evaluate(const char *text, void *field)
{
    struct kith_experiment *experiment =
        (void *)((char *)field - offsetof(struct kith_experiment, evaluate_ns));
    char number[24];
    const size_t digits = strspn(text, "0123456789");
    const char *unit = text + digits + strspn(text + digits, " ");
    const bool full = strcmp(text, "full") == 0;
    experiment->evaluate_steps = 0;
    experiment->evaluations = full                       ? KITH_EVALUATE_FULL
                              : strcmp(text, "end") == 0 ? KITH_EVALUATE_END
                                                         : KITH_EVALUATE_EVERY;
    if (digits == 0 || digits >= sizeof number || strcmp(unit, "steps") != 0)
        return time_or(text, full ? "full" : "end", 0, field);
    memcpy(number, text, digits);
    number[digits] = '\0';
    experiment->evaluate_ns = 0;
    const enum kith_err err =
        kith_text_u64(number, &experiment->evaluate_steps);
    return err == KITH_OK && experiment->evaluate_steps == 0 ? KITH_ELIMIT
                                                             : err;
}

enum kith_err kith_key_parse_speeds(const char *text, void *field)
{
    return kith_speeds_parse(text, field);
}

/* false: fixed. */
enum kith_err kith_key_parse_spread(const char *text, void *field)
{
    bool *exponential = field;
    *exponential = strcmp(text, "exponential") == 0;
    return *exponential || strcmp(text, "fixed") == 0 ? KITH_OK : KITH_EPARSE;
}

enum kith_err kith_key_parse_affinity(const char *text, void *field)
{
    bool *all_cores = field;
    *all_cores = strcmp(text, "none") == 0;
    return *all_cores || strcmp(text, "auto") == 0 ? KITH_OK : KITH_EPARSE;
}

/* Texts of values that are not a field alone, for the experiment's hash. */
void kith_key_show_split(const void *object, char text[SCHEMA_SHOWN_BYTES])
{
    const struct kith_experiment *experiment = object;
    const struct kith_split *split = &experiment->data.split;
    const bool classes = split->kind == KITH_SPLIT_CLASSES;
    char number[32];
    kith_schema_number(classes ? split->classes : split->alpha, number,
                       sizeof number);
    if (split->kind != KITH_SPLIT_IID)
        (void)snprintf(text, SCHEMA_SHOWN_BYTES, "%s(%s)",
                       classes ? "classes" : "dirichlet", number);
}

void kith_key_show_milestones(const void *object, char text[SCHEMA_SHOWN_BYTES])
{
    const struct kith_experiment *experiment = object;
    const struct kith_schedule_config *schedule = &experiment->train.schedule;
    size_t at = 0;
    for (uint32_t i = 0; i < schedule->milestone_count; i++) {
        char number[32];
        kith_schema_number(schedule->milestones[i], number, sizeof number);
        at = kith_text_add(text, SCHEMA_SHOWN_BYTES, at, "%s%s",
                           i == 0 ? "" : ", ", number);
    }
}

void kith_key_show_augment(const void *object, char text[SCHEMA_SHOWN_BYTES])
{
    const struct kith_experiment *experiment = object;
    const struct kith_augment *augment = &experiment->train.augment;
    if (augment->crop > 0 || augment->flip)
        (void)snprintf(text, SCHEMA_SHOWN_BYTES, "crop %u, flip %s",
                       augment->crop, augment->flip ? "true" : "false");
}

/* What travels: vectors of other elements are other bytes. Which backend
 * computes them is each peer's own affair. */
void kith_key_show_backend(const void *object, char text[SCHEMA_SHOWN_BYTES])
{
    const struct kith_experiment *experiment = object;
    (void)snprintf(text, SCHEMA_SHOWN_BYTES, "of float%zu",
                   8 * experiment->backend->element_bytes);
}

/* The edges themselves: where their file lies is each peer's own affair. */
void kith_key_show_edges(const void *object, char text[SCHEMA_SHOWN_BYTES])
{
    const struct kith_experiment *experiment = object;
    if (experiment->gossip.edges_hash != 0)
        (void)snprintf(text, SCHEMA_SHOWN_BYTES, "a list with hash %016" PRIx64,
                       experiment->gossip.edges_hash);
}

/* The times themselves, as with edges. A matrix of p90 is a part of them. */
static void show_times(const struct kith_experiment *experiment,
                       const char *path, char *text)
{
    if (path[0] != '\0')
        (void)snprintf(text, SCHEMA_SHOWN_BYTES, "times with hash %016" PRIx64,
                       experiment->network.latencies.hash);
}

void kith_key_show_matrix(const void *object, char text[SCHEMA_SHOWN_BYTES])
{
    const struct kith_experiment *experiment = object;
    show_times(experiment, experiment->network.files.matrix, text);
}

void kith_key_show_coordinates(const void *object,
                               char text[SCHEMA_SHOWN_BYTES])
{
    const struct kith_experiment *experiment = object;
    show_times(experiment, experiment->network.files.coordinates, text);
}

/* Present or not: then `central:` replaces `gossip:`. */
void kith_key_show_method(const void *object, char text[SCHEMA_SHOWN_BYTES])
{
    const struct kith_central *central =
        &((const struct kith_experiment *)object)->central;
    if (central->present)
        kith_text_copy(text, SCHEMA_SHOWN_BYTES,
                       kith_central_methods[central->method].name);
}

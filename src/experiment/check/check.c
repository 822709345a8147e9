/* check := ("always" | "finally") QUANTITY [RELATION BOUND]
 *        | "within" TIME "of" FAULT(".begin" | ".end")
 *          QUANTITY [RELATION BOUND ["*" "before"]]
 *
 * Parsing, evaluation of one check, and the state of all checks of a run. */
#include "kith/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/fault.h"
#include "kith/text.h"

#define WORDS_MAX 10u
#define NAMES_MAX 32u

static const char *const relations[] = {">=", "<=", ">", "<", "==", NULL};

static enum kith_err refuse(char *error, const char *text, const char *allowed)
{
    snprintf(error, KITH_CHECK_ERROR_BYTES, "found \"%.100s\"; allowed: %s",
             text, allowed);
    return KITH_EPARSE;
}

/* Splits at blanks; the number of words, or WORDS_MAX + 1 for too many. */
static unsigned split(char *text, char *words[WORDS_MAX])
{
    unsigned count = 0;
    for (char *word = text + strspn(text, " "); *word != '\0';) {
        if (count == WORDS_MAX)
            return WORDS_MAX + 1;
        words[count++] = word;
        word += strcspn(word, " ");
        if (*word != '\0')
            *word++ = '\0';
        word += strspn(word, " ");
    }
    return count;
}

const struct kith_quantity *kith_quantity_find(const char *name)
{
    const struct kith_quantity *found = kith_quantities;
    while (found->name != NULL && strcmp(found->name, name) != 0)
        found++;
    return found->name == NULL ? NULL : found;
}

/* A program says how good its own model is. */
static enum kith_quantity_needs offered(const struct kith_model *model)
{
    if (model->reports || model->input != KITH_INPUT_NONE)
        return KITH_NEEDS_DATA;
    if (kith_model_learns(model))
        return KITH_NEEDS_LOSS;
    return model->absent ? KITH_NEEDS_NOTHING : KITH_NEEDS_VALUES;
}

bool kith_quantity_fits(const struct kith_quantity *quantity,
                        const struct kith_model *model)
{
    return quantity->needs <= offered(model);
}

bool kith_checks_ask(const struct kith_experiment *experiment,
                     const char *quantity)
{
    KITH_ASSERT(kith_quantity_find(quantity) != NULL);
    for (uint32_t i = 0; i < experiment->check_count; i++)
        if (strcmp(experiment->checks[i].quantity, quantity) == 0)
            return true;
    return false;
}

static enum kith_err parse_quantity(const char *name, struct kith_check *check,
                                    char *error)
{
    if (kith_quantity_find(name) != NULL) {
        kith_text_copy(check->quantity, sizeof check->quantity, name);
        return KITH_OK;
    }
    const char *names[NAMES_MAX];
    char allowed[256] = "";
    size_t at = 0;
    unsigned count = 0;
    for (; kith_quantities[count].name != NULL && count + 1 < NAMES_MAX;
         count++) {
        names[count] = kith_quantities[count].name;
        at = kith_text_add(allowed, sizeof allowed, at, "%s%s",
                           count == 0 ? "" : ", ", names[count]);
    }
    names[count] = NULL;
    const char *near = kith_text_nearest(name, names);
    snprintf(error, KITH_CHECK_ERROR_BYTES,
             "found the unknown quantity \"%.60s\"; allowed: %s%s%s%s", name,
             allowed, near == NULL ? "" : "; did you mean \"",
             near == NULL ? "" : near, near == NULL ? "" : "\"?");
    return KITH_EPARSE;
}

static enum kith_err parse_bound(const char *relation, const char *bound,
                                 struct kith_check *check, const char *text,
                                 char *error)
{
    unsigned i = 0;
    while (relations[i] != NULL && strcmp(relations[i], relation) != 0)
        i++;
    if (relations[i] == NULL)
        return refuse(error, text, "one of >= <= > < == before the bound");
    if (kith_text_double(bound, &check->bound) != KITH_OK)
        return refuse(error, text, "a number as the bound");
    kith_text_copy(check->relation, sizeof check->relation, relation);
    return KITH_OK;
}

/* "partition.end" */
static enum kith_err parse_event(char *event, struct kith_check *check,
                                 const char *text, char *error)
{
    static const char allowed[] =
        "FAULT.begin or FAULT.end after \"of\", such as partition.end";
    char *dot = strchr(event, '.');
    if (dot == NULL)
        return refuse(error, text, allowed);
    *dot = '\0';
    check->fault = kith_fault_find(event);
    check->begins = strcmp(dot + 1, "begin") == 0;
    if (check->fault == NULL || (!check->begins && strcmp(dot + 1, "end") != 0))
        return refuse(error, text, allowed);
    return KITH_OK;
}

/* How many words say when; 0 after an error. */
static unsigned parse_when(char *words[WORDS_MAX], unsigned count,
                           struct kith_check *check, const char *text,
                           char *error)
{
    static const char *const names[] = {"always", "finally", "within", NULL};
    unsigned when = 0;
    while (names[when] != NULL && strcmp(words[0], names[when]) != 0)
        when++;
    check->when = (enum kith_check_when)when;
    if (names[when] == NULL) {
        (void)refuse(error, text,
                     "always or finally or within TIME of FAULT.end first");
        return 0;
    }
    if (check->when != KITH_CHECK_WITHIN)
        return 1;
    if (count < 5 || strcmp(words[2], "of") != 0 ||
        kith_text_time(words[1], &check->within_ns) != KITH_OK ||
        check->within_ns <= 0) {
        (void)refuse(error, text,
                     "such as \"within 60s of partition.end "
                     "consensus_distance < 1.2 * before\"");
        return 0;
    }
    return parse_event(words[3], check, text, error) == KITH_OK ? 4 : 0;
}

enum kith_err kith_check_parse(const char *text, struct kith_check *check,
                               char *error)
{
    char copy[sizeof check->text];
    char *words[WORDS_MAX];
    memset(check, 0, sizeof *check);
    if (!kith_text_copy(check->text, sizeof check->text, text))
        return refuse(error, text, "at most 127 bytes");
    memcpy(copy, check->text, sizeof copy);
    unsigned count = split(copy, words);
    if (count < 2 || count > WORDS_MAX)
        return refuse(error, text,
                      "always or finally, a quantity, a relation and a bound, "
                      "such as \"finally accuracy >= 0.85\"");
    const unsigned when = parse_when(words, count, check, text, error);
    if (when == 0)
        return KITH_EPARSE;
    char *const *rest = words + when;
    count -= when;
    const enum kith_err err = parse_quantity(rest[0], check, error);
    if (err != KITH_OK)
        return err;
    if (kith_quantity_find(rest[0])->predicate)
        return count == 1
                   ? KITH_OK
                   : refuse(error, text, "no relation: it is true or false");
    check->times_before = check->when == KITH_CHECK_WITHIN && count == 5 &&
                          strcmp(rest[3], "*") == 0 &&
                          strcmp(rest[4], "before") == 0;
    if (count != 3 && !check->times_before)
        return refuse(error, text,
                      "a relation and a bound after the quantity, such as "
                      ">= 0.85, with blanks between");
    return parse_bound(rest[1], rest[2], check, text, error);
}

static bool relation_holds(const char *relation, double value, double bound)
{
    if (strcmp(relation, ">=") == 0)
        return value >= bound;
    if (strcmp(relation, "<=") == 0)
        return value <= bound;
    if (strcmp(relation, ">") == 0)
        return value > bound;
    if (strcmp(relation, "<") == 0)
        return value < bound;
    if (strcmp(relation, "==") == 0)
        return value >= bound && value <= bound;
    return value > 0; /* a predicate */
}

static enum kith_verdict evaluate(const struct kith_check *check,
                                  const struct kith_values *values,
                                  double bound, double *value)
{
    const struct kith_quantity *quantity = kith_quantity_find(check->quantity);
    KITH_ASSERT(quantity != NULL);
    *value = quantity->value != NULL
                 ? quantity->value(values)
                 : *(const double *)((const char *)values + quantity->field);
    if (isnan(*value) || isnan(bound))
        return KITH_VERDICT_UNKNOWN;
    return relation_holds(check->relation, *value, bound) ? KITH_VERDICT_HELD
                                                          : KITH_VERDICT_BROKEN;
}

enum kith_verdict kith_check_evaluate(const struct kith_check *check,
                                      const struct kith_values *values,
                                      double *value)
{
    return evaluate(check, values, check->bound, value);
}

void kith_values_clear(struct kith_values *values)
{
    double *const all = (double *)values;
    for (size_t i = 0; i < sizeof *values / sizeof *all; i++)
        all[i] = NAN;
}

void kith_checks_start(struct kith_checks *checks)
{
    for (unsigned i = 0; i < KITH_CHECKS_MAX; i++) {
        checks->results[i].verdict = KITH_VERDICT_UNKNOWN;
        checks->results[i].value = NAN;
        checks->results[i].before = NAN;
        checks->results[i].at_ns = 0;
    }
}

/* From the first begin of such a fault to the last event that is meant. */
static bool find_fault(const struct kith_experiment *experiment,
                       const struct kith_check *check, kith_ns *begin_ns,
                       kith_ns *event_ns)
{
    bool found = false;
    *begin_ns = KITH_NEVER;
    for (uint32_t i = 0; i < experiment->atom_count; i++) {
        const struct kith_atom *atom = &experiment->atoms[i];
        if (atom->fault != check->fault || atom->statement == UINT32_MAX)
            continue;
        if (atom->begins && atom->at_ns < *begin_ns)
            *begin_ns = atom->at_ns;
        if (atom->begins == check->begins) {
            found = true;
            *event_ns = atom->at_ns; /* sorted: the last */
        }
    }
    return found;
}

/* It is to hold once before the time is over. */
static void update_within(struct kith_checks *checks, uint32_t i,
                          const struct kith_experiment *experiment,
                          const struct kith_values *values, kith_ns now_ns)
{
    const struct kith_check *check = &experiment->checks[i];
    kith_ns begin_ns, event_ns;
    double value;
    if (checks->results[i].verdict != KITH_VERDICT_UNKNOWN ||
        !find_fault(experiment, check, &begin_ns, &event_ns))
        return;
    const double bound = check->times_before
                             ? check->bound * checks->results[i].before
                             : check->bound;
    const enum kith_verdict verdict = evaluate(check, values, bound, &value);
    if (now_ns < begin_ns)
        checks->results[i].before = value;
    if (now_ns < event_ns || verdict == KITH_VERDICT_UNKNOWN)
        return;
    checks->results[i].value = value;
    checks->results[i].at_ns = now_ns;
    if (now_ns > event_ns + check->within_ns)
        checks->results[i].verdict = KITH_VERDICT_BROKEN;
    else if (verdict == KITH_VERDICT_HELD)
        checks->results[i].verdict = verdict;
}

/* What is broken stays so; what is unknown now keeps what was known. */
static void update(struct kith_checks *checks, uint32_t i,
                   const struct kith_experiment *experiment,
                   const struct kith_values *values, kith_ns now_ns)
{
    const struct kith_check *check = &experiment->checks[i];
    double value;
    if (check->when == KITH_CHECK_WITHIN) {
        update_within(checks, i, experiment, values, now_ns);
        return;
    }
    if (checks->results[i].verdict == KITH_VERDICT_BROKEN)
        return;
    const enum kith_verdict verdict =
        kith_check_evaluate(check, values, &value);
    if (verdict == KITH_VERDICT_UNKNOWN)
        return;
    checks->results[i].verdict = verdict;
    checks->results[i].value = value;
    checks->results[i].at_ns = now_ns;
}

static uint32_t broken(const struct kith_checks *checks, uint32_t count)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        found += checks->results[i].verdict == KITH_VERDICT_BROKEN;
    return found;
}

uint32_t kith_checks_always(struct kith_checks *checks,
                            const struct kith_experiment *experiment,
                            const struct kith_values *values, kith_ns now_ns)
{
    for (uint32_t i = 0; i < experiment->check_count; i++)
        if (experiment->checks[i].when != KITH_CHECK_FINALLY)
            update(checks, i, experiment, values, now_ns);
    return broken(checks, experiment->check_count);
}

uint32_t kith_checks_finish(struct kith_checks *checks,
                            const struct kith_experiment *experiment,
                            const struct kith_values *values, kith_ns now_ns)
{
    for (uint32_t i = 0; i < experiment->check_count; i++) {
        update(checks, i, experiment, values, now_ns);
        if (checks->results[i].verdict == KITH_VERDICT_UNKNOWN) {
            checks->results[i].verdict = KITH_VERDICT_BROKEN;
            checks->results[i].at_ns = now_ns;
        }
    }
    return broken(checks, experiment->check_count);
}

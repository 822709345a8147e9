/* Each setting against a baseline, paired over seeds: the same seed draws the
 * same data, graph and first model for both, which a difference takes out.
 *
 *   d_s   = v_s - b_s                 over the n seeds that both have
 *   mean  = sum(d_s) / n
 *   half  = t(n - 1) sd(d) / sqrt(n)  the 95 % confidence interval is mean +-
 *                                     half where the d_s are normal
 *
 * t(m) is the value that |T| of Student's distribution with m degrees of
 * freedom exceeds in one case of 20; for whole m its distribution function is
 * a finite series (Abramowitz and Stegun, 26.7.3 and 26.7.4). */
#include <math.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/text.h"
#include "src/results/report/compare.h"

/* P(|T| <= tan(theta) sqrt(degrees)). */
static double student_within(double theta, uint32_t degrees)
{
    const double cosine = cos(theta), square = cosine * cosine;
    const bool odd = degrees % 2 == 1;
    double term = odd ? cosine : 1, sum = 0;
    for (uint32_t k = odd ? 3 : 2; k <= degrees; k += 2) {
        sum += term;
        term *= square * (k - 1) / k;
    }
    return odd ? 2 / acos(-1) * (theta + sin(theta) * sum) : sin(theta) * sum;
}

double kith_student_95(uint32_t degrees)
{
    double low = 0, high = acos(0);
    KITH_ASSERT(degrees > 0);
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (student_within(middle, degrees) < 0.95)
            low = middle;
        else
            high = middle;
    }
    return tan(low) * sqrt(degrees);
}

/* Outcomes of a cell stand together, by seed. */
struct range {
    const struct kith_outcome *first;
    uint32_t count;
};

static struct range runs_of(const struct kith_comparison *comparison,
                            uint32_t cell)
{
    return (struct range){comparison->outcomes +
                              comparison->cells[cell].first_run,
                          comparison->cells[cell].runs};
}

/* The run of that seed, looked for from the last one's place on. */
static const struct kith_outcome *find_seed(const struct range *range,
                                            uint64_t seed, uint32_t *at)
{
    for (uint32_t i = 0; i < range->count; i++) {
        const uint32_t place = (*at + i) % range->count;
        if (range->first[place].seed == seed) {
            *at = place;
            return &range->first[place];
        }
    }
    return NULL;
}

static void compare_column(const struct range *own, const struct range *base,
                           unsigned column, struct kith_difference *difference)
{
    double mean = 0, squares = 0;
    uint32_t pairs = 0, at = 0;
    for (uint32_t i = 0; i < own->count; i++) {
        const struct kith_outcome *other =
            find_seed(base, own->first[i].seed, &at);
        const double value = other == NULL ? (double)NAN
                                           : own->first[i].values[column] -
                                                 other->values[column];
        if (!isfinite(value))
            continue;
        const double off = value - mean; /* Welford */
        mean += off / ++pairs;
        squares += off * (value - mean);
    }
    *difference = (struct kith_difference){
        .pairs = pairs, .mean = pairs > 0 ? mean : NAN, .half = NAN};
    if (pairs > 1)
        difference->half =
            kith_student_95(pairs - 1) * sqrt(squares / (pairs - 1) / pairs);
}

/* "KEY=VALUE", or the value alone? */
static bool is_setting(const struct kith_setting *setting, const char *text)
{
    const size_t length = strlen(setting->key);
    return strcmp(setting->value, text) == 0 ||
           (strncmp(setting->key, text, length) == 0 && text[length] == '=' &&
            strcmp(setting->value, text + length + 1) == 0);
}

/* Is `other` what `cell` would be with the setting of that text? */
static bool differs_in(const struct kith_cell_outcome *cell,
                       const struct kith_cell_outcome *other, const char *text)
{
    bool found = false;
    if (cell->database != other->database ||
        cell->setting_count != other->setting_count)
        return false;
    for (uint32_t i = 0; i < cell->setting_count; i++) {
        const struct kith_setting *there = &other->settings[i];
        if (strcmp(cell->settings[i].key, there->key) != 0)
            return false;
        if (!found && is_setting(there, text))
            found = true;
        else if (strcmp(cell->settings[i].value, there->value) != 0)
            return false;
    }
    return found;
}

/* Its number from 1 on; 0: there is none. */
static uint32_t find_baseline(const struct kith_comparison *comparison,
                              const struct kith_cell_outcome *cell,
                              const char *text)
{
    for (uint32_t i = 0; i < comparison->cell_count; i++)
        if (strcmp(comparison->cells[i].label, text) == 0)
            return i + 1;
    for (uint32_t i = 0; i < comparison->cell_count; i++)
        if (differs_in(cell, &comparison->cells[i], text))
            return i + 1;
    return 0;
}

enum kith_err kith_comparison_pair(struct kith_comparison *comparison,
                                   const char *baseline, char *error)
{
    bool any = false;
    for (uint32_t i = 0; i < comparison->cell_count; i++) {
        struct kith_cell_outcome *cell = &comparison->cells[i];
        cell->baseline = find_baseline(comparison, cell, baseline);
        any = any || cell->baseline > 0;
    }
    if (!any)
        return kith_text_fail(
            error, KITH_REPORT_ERROR_BYTES, KITH_EINVAL,
            "--baseline: found \"%.80s\"; allowed: a cell's name or a setting "
            "of the sweep, such as \"%.120s\"",
            baseline,
            comparison->cell_count > 0 ? comparison->cells[0].label : "");
    for (uint32_t i = 0; i < comparison->cell_count; i++) {
        struct kith_cell_outcome *cell = &comparison->cells[i];
        if (cell->baseline == 0 || cell->baseline == i + 1)
            continue;
        const struct range own = runs_of(comparison, i);
        const struct range base = runs_of(comparison, cell->baseline - 1);
        for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++)
            compare_column(&own, &base, k, &cell->differences[k]);
    }
    return KITH_OK;
}

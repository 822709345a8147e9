/* Numbers and units in text: times, rates, whole and decimal numbers.
 *
 * Times and rates are decimal fractions worked out in integers, so that "1.1ms"
 * is 1,100,000 ns in every build. Digits below the unit's resolution are cut
 * off. Minutes are min; m is short for whole ones, written together, for "1.66
 * m" is a slip of the pen for 1.66ms, which would make a run 60,000 times as
 * long. strtod is the only libc parser, and nothing calls setlocale. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/text.h"

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit times[] = {
    {"ns", 1},
    {"us", UINT64_C(1000)},
    {"ms", UINT64_C(1000000)},
    {"s", UINT64_C(1000000000)},
    {"m", UINT64_C(60000000000)},
    {"min", UINT64_C(60000000000)},
    {"h", UINT64_C(3600000000000)},
};

static const struct unit rates[] = {
    {"bit", 1},
    {"kbit", UINT64_C(1000)},
    {"Mbit", UINT64_C(1000000)},
    {"Gbit", UINT64_C(1000000000)},
    {"Tbit", UINT64_C(1000000000000)},
    {"B", 8},
    {"kB", UINT64_C(8000)},
    {"MB", UINT64_C(8000000)},
    {"GB", UINT64_C(8000000000)},
    {"TB", UINT64_C(8000000000000)},
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Decimal digits up to the first other character. */
static enum kith_err whole_digits(const char **text, uint64_t *out)
{
    uint64_t value = 0;
    if (!is_digit(**text))
        return KITH_EPARSE;
    for (; is_digit(**text); (*text)++) {
        const uint64_t digit = (uint64_t)(**text - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return KITH_ELIMIT;
        value = value * 10 + digit;
    }
    *out = value;
    return KITH_OK;
}

/* The fraction's digits times factor, cut off below 1. From the last digit to
 * the first, so that nothing is lost: floors of tenths nest exactly. */
static uint64_t fraction_of(const char *digits, const char *end,
                            uint64_t factor)
{
    uint64_t value = 0;
    while (end > digits) {
        end--;
        value = ((uint64_t)(*end - '0') * factor + value) / 10;
    }
    return value;
}

static const struct unit *unit_find(const char *name, const struct unit *units,
                                    size_t unit_count)
{
    for (size_t i = 0; i < unit_count; i++)
        if (strcmp(name, units[i].name) == 0)
            return &units[i];
    return NULL;
}

/* digits [. digits] unit: the value in the smallest unit, at most `most`. */
static enum kith_err quantity(const char *text, const struct unit *units,
                              size_t unit_count, uint64_t most, uint64_t *out)
{
    uint64_t whole;
    const enum kith_err err = whole_digits(&text, &whole);
    if (err != KITH_OK)
        return err;
    const char *digits = text;
    if (*text == '.') {
        digits = ++text;
        while (is_digit(*text))
            text++;
        if (text == digits)
            return KITH_EPARSE;
    }
    const char *const end = text;
    while (*text == ' ')
        text++;

    const struct unit *const unit = unit_find(text, units, unit_count);
    if (unit == NULL)
        return KITH_EPARSE;
    const uint64_t rest = fraction_of(digits, end, unit->factor);
    if (whole > most / unit->factor || rest > most - whole * unit->factor)
        return KITH_ELIMIT;
    *out = whole * unit->factor + rest;
    return KITH_OK;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* An m that is not of whole minutes. */
static bool is_slip(const char *text)
{
    size_t digits = 0;
    while (text[digits] >= '0' && text[digits] <= '9')
        digits++;
    const size_t length = strlen(text);
    return length > digits + 1 && text[length - 1] == 'm';
}

enum kith_err kith_text_time(const char *text, kith_ns *out)
{
    uint64_t value;
    if (is_slip(text))
        return KITH_EPARSE;
    const enum kith_err err =
        quantity(text, times, COUNT(times), (uint64_t)KITH_NEVER - 1, &value);
    if (err == KITH_OK)
        *out = (kith_ns)value;
    return err;
}

enum kith_err kith_text_rate(const char *text, uint64_t *out)
{
    uint64_t value;
    const enum kith_err err =
        quantity(text, rates, COUNT(rates), UINT64_MAX, &value);
    if (err != KITH_OK)
        return err;
    if (value == 0)
        return KITH_EPARSE;
    *out = value;
    return KITH_OK;
}

enum kith_err kith_text_u64(const char *text, uint64_t *out)
{
    uint64_t value;
    const enum kith_err err = whole_digits(&text, &value);
    if (err != KITH_OK)
        return err;
    if (*text != '\0')
        return KITH_EPARSE;
    *out = value;
    return KITH_OK;
}

/* [+-] digits [. digits] [e [+-] digits]: of what strtod takes no white space,
 * hexadecimal, "inf" or "nan". */
enum kith_err kith_text_double(const char *text, double *out)
{
    char *end;
    for (const char *c = text; *c != '\0'; c++)
        if (!is_digit(*c) && *c != '+' && *c != '-' && *c != '.' && *c != 'e' &&
            *c != 'E')
            return KITH_EPARSE;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0')
        return KITH_EPARSE;
    if (!isfinite(value))
        return KITH_ELIMIT;
    *out = value;
    return KITH_OK;
}

void kith_text_from_time(kith_ns span, char *text, size_t size)
{
    if (span == KITH_NEVER) {
        snprintf(text, size, "never");
        return;
    }
    const char *const sign = span < 0 ? "-" : "";
    const uint64_t value = span < 0 ? 0 - (uint64_t)span : (uint64_t)span;
    size_t unit = COUNT(times) - 1;
    while (unit > 0 && value < times[unit].factor)
        unit--;
    const uint64_t factor = times[unit].factor;
    if (unit == 0)
        snprintf(text, size, "%s%" PRIu64 " ns", sign, value);
    else
        snprintf(text, size, "%s%" PRIu64 ".%02u %s", sign, value / factor,
                 (unsigned)(value % factor / (factor / 100)), times[unit].name);
}

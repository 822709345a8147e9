/* spread := TIME | uniform(TIME, TIME) | exp(TIME) */
#include <string.h>

#include "kith/fault.h"
#include "kith/text.h"

/* Eleven days: sums of a few stay far below 2^63 ns. */
#define SPREAD_MAX (1000000 * KITH_S)

static enum kith_err one_time(const char *text, size_t length, kith_ns *out)
{
    char copy[40];
    while (length > 0 && *text == ' ') {
        text++;
        length--;
    }
    while (length > 0 && text[length - 1] == ' ')
        length--;
    if (length >= sizeof copy)
        return KITH_EPARSE;
    memcpy(copy, text, length);
    copy[length] = '\0';
    const enum kith_err err = kith_text_time(copy, out);
    return err == KITH_OK && *out > SPREAD_MAX ? KITH_ELIMIT : err;
}

enum kith_err kith_spread_parse(const char *text, struct kith_spread *spread)
{
    const size_t length = strlen(text);
    *spread = (struct kith_spread){.kind = KITH_SPREAD_FIXED};
    if (strncmp(text, "exp(", 4) == 0 && text[length - 1] == ')') {
        spread->kind = KITH_SPREAD_EXPONENTIAL;
        return one_time(text + 4, length - 5, &spread->low_ns);
    }
    if (strncmp(text, "uniform(", 8) == 0 && text[length - 1] == ')') {
        spread->kind = KITH_SPREAD_UNIFORM;
        const char *comma = strchr(text, ',');
        if (comma == NULL)
            return KITH_EPARSE;
        enum kith_err err =
            one_time(text + 8, (size_t)(comma - text) - 8, &spread->low_ns);
        if (err == KITH_OK)
            err = one_time(comma + 1, length - (size_t)(comma - text) - 2,
                           &spread->high_ns);
        if (err == KITH_OK && spread->high_ns < spread->low_ns)
            err = KITH_EINVAL;
        return err;
    }
    return one_time(text, length, &spread->low_ns);
}

kith_ns kith_spread_draw(const struct kith_spread *spread, struct kith_rng *rng)
{
    switch (spread->kind) {
    case KITH_SPREAD_NONE:
        return 0;
    case KITH_SPREAD_FIXED:
        return spread->low_ns;
    case KITH_SPREAD_UNIFORM: {
        /* Below 2^50 ns: the product with 53 bits rounds to a whole ns. */
        const kith_ns width = spread->high_ns - spread->low_ns;
        return spread->low_ns + (kith_ns)(kith_rng_double(rng) * (double)width);
    }
    case KITH_SPREAD_EXPONENTIAL:
        return kith_rng_exponential(rng, spread->low_ns);
    }
    return 0;
}

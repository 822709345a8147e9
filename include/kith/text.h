/* Bounded text: building, units, and "did you mean". */
#ifndef KITH_TEXT_H
#define KITH_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/types.h"

/* Appends at most size - 1 bytes in all, always terminated; returns the new
 * length, clipped. `at` is the current length. */
size_t kith_text_add(char *text, size_t size, size_t at, const char *format,
                     ...) KITH_PRINTF(4, 5);

/* A line into `error` (size); returns err. */
enum kith_err kith_text_fail(char *error, size_t size, enum kith_err err,
                             const char *format, ...) KITH_PRINTF(4, 5);

/* "200us", "1.5ms", "3s", "1.5min", "2m", "1h": a unit is mandatory, negatives
 * refused, and parts of "m", which could be milliseconds.
 * KITH_EPARSE for no number or unit, KITH_ELIMIT for an overflow. */
KITH_MUST_CHECK enum kith_err kith_text_time(const char *text, kith_ns *out);
/* "10Gbit", "100Mbit", "5MB", "1GB" (per second): bits per second out. > 0. */
KITH_MUST_CHECK enum kith_err kith_text_rate(const char *text, uint64_t *out);
/* A whole decimal number with nothing after it. */
KITH_MUST_CHECK enum kith_err kith_text_u64(const char *text, uint64_t *out);
/* A finite decimal number with nothing after it. */
KITH_MUST_CHECK enum kith_err kith_text_double(const char *text, double *out);
/* "1.50 ms" and the like, for people. */
void kith_text_from_time(kith_ns span, char *text, size_t size);

/* The name nearest to `word` by edit distance, NULL when none is near enough
 * (distance <= 1 + length / 4). names is NULL-terminated. */
const char *kith_text_nearest(const char *word, const char *const *names);

/* Copy with truncation; true when all of source fitted. */
bool kith_text_copy(char *target, size_t size, const char *source);
/* Lower-case hexadecimal. target holds 2 * size + 1. */
void kith_text_hex(char *target, const uint8_t *bytes, size_t size);
/* Exactly size bytes of hexadecimal, or KITH_EPARSE. */
KITH_MUST_CHECK enum kith_err kith_text_unhex(const char *text, uint8_t *bytes,
                                              size_t size);

#endif

/* How fast this machine seals and opens with each suite. */
#ifndef KITH_CLI_SUITE_SPEED_H
#define KITH_CLI_SUITE_SPEED_H

#include "kith/session.h"

typedef struct json_t json_t;

/* Measures each suite with each provider that this machine can run, a fraction
 * of a second in all. To `rows`, an array, an object each: suite, provider,
 * seal_gb_s, open_gb_s, used (the provider that its peers take). rows NULL:
 * prints a table to standard output; then which suite a cluster with this
 * policy (KITH_SUITE_ANY: none) uses, and what speaks for another one. */
void kith_cli_suite_speed(enum kith_suite policy, json_t *rows);

#endif

/* How fast this machine seals and opens with each suite. */
#ifndef KITH_CLI_SUITE_SPEED_H
#define KITH_CLI_SUITE_SPEED_H

#include <stdbool.h>

#include "kith/session.h"

typedef struct json_t json_t;

/* Measures each suite with each provider that this machine can run, a fraction
 * of a second in all. To `rows`, an array, an object each: suite, provider,
 * seal_gb_s, open_gb_s, used (the provider that its peers take). rows NULL:
 * prints a table to standard output; then which suite a cluster with this
 * policy (KITH_SUITE_ANY: none) uses, and what speaks for another one. */
void kith_cli_suite_speed(enum kith_suite policy, json_t *rows);
/* Of the provider that peers take, GB/s of one core; false: none has the suite
 * here. */
bool kith_cli_suite_best(enum kith_suite suite, double *seal_gb_s,
                         double *open_gb_s);
/* Seconds that this thread has had of a processor. */
double kith_cli_cpu_s(void);

#endif

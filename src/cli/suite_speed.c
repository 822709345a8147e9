/* What each suite costs on this machine: full records, sealed and opened in
 * memory, each in short batches of which the best counts, since a machine may
 * be busy but is never faster than it is. */
#include "suite_speed.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <jansson.h>

#include "kith/assert.h"
#include "kith/json.h"

#define BATCH_RECORDS 32u
#define SPAN_S 0.012 /* for each provider, suite and direction */
#define BATCHES_MIN 3u

/* The best provider of a suite, in GB/s; 0: none was measured. */
struct best {
    double seal, open;
};

double kith_cli_cpu_s(void)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* GB/s of the best batch, 0 where the provider fails. */
static double measure(const struct kith_aead *aead, enum kith_suite suite,
                      bool opens, uint8_t *memory)
{
    const double bytes = (double)BATCH_RECORDS * KITH_BULK_BYTES;
    const double begin = kith_cli_cpu_s();
    double before = begin, fastest_s = 0;
    for (unsigned i = 0; i < BATCHES_MIN || before - begin < SPAN_S; i++) {
        if (kith_aead_trial(aead, suite, opens, memory, BATCH_RECORDS) !=
            KITH_OK)
            return 0;
        const double after = kith_cli_cpu_s(), batch_s = after - before;
        if (batch_s > 0 && (fastest_s <= 0 || batch_s < fastest_s))
            fastest_s = batch_s;
        before = after;
    }
    return fastest_s > 0 ? 1e-9 * bytes / fastest_s : 0;
}

/* One row; rows NULL: a line of the table. */
static void tell(json_t *rows, enum kith_suite suite, const char *provider,
                 const struct best *speed, bool used)
{
    if (rows != NULL)
        (void)json_array_append_new(
            rows,
            json_pack("{s:s, s:s, s:o, s:o, s:b}", "suite",
                      kith_suite_word(suite), "provider", provider, "seal_gb_s",
                      kith_json_real(speed->seal), "open_gb_s",
                      kith_json_real(speed->open), "used", (int)used));
    else
        printf("  %-12s %-12s %8.2f %8.2f%s\n", kith_suite_word(suite),
               provider, speed->seal, speed->open,
               used ? "" : "   not used: another provider goes first");
}

static struct best measure_suite(enum kith_suite suite, uint8_t *memory,
                                 json_t *rows)
{
    struct best best = {0, 0};
    for (size_t i = 0; kith_aeads[i] != NULL; i++) {
        const struct kith_aead *aead = kith_aeads[i];
        if (!kith_aead_has(aead, suite))
            continue;
        const struct best speed = {measure(aead, suite, false, memory),
                                   measure(aead, suite, true, memory)};
        const bool used = aead == kith_aead_best(suite);
        tell(rows, suite, kith_aead_name(aead), &speed, used);
        if (used)
            best = speed;
    }
    if (kith_aead_best(suite) == NULL && rows == NULL)
        printf("  %-12s no provider here\n", kith_suite_word(suite));
    return best;
}

/* Of one core that does both. */
static double both(const struct best *best)
{
    return best->seal > 0 && best->open > 0
               ? 1 / (1 / best->seal + 1 / best->open)
               : 0;
}

static void conclude(enum kith_suite policy, const struct best *bests)
{
    const struct kith_suite_facts *facts = kith_suite_facts(policy);
    const enum kith_suite aes = KITH_SUITE_AESGCM,
                          chacha = KITH_SUITE_CHACHAPOLY;
    if (facts == NULL) {
        printf("this cluster: no policy; its peers use AESGCM, or what "
               "network.suite of the experiment says\n");
        if (both(&bests[chacha]) > both(&bests[aes]))
            printf("ChaChaPoly is the faster one here: --suite chachapoly "
                   "makes an authority that asks for it\n");
        return;
    }
    printf("this cluster: %s, as the authority has signed in ca.pub; %s\n",
           kith_suite_word(policy), facts->summary);
    if (kith_aead_best(policy) == NULL)
        printf("this machine cannot be a peer of it: it has no provider of "
               "%s\n",
               kith_suite_word(policy));
}

bool kith_cli_suite_best(enum kith_suite suite, double *seal_gb_s,
                         double *open_gb_s)
{
    const struct kith_aead *aead = kith_aead_best(suite);
    uint8_t *memory = aead == NULL ? NULL : malloc(KITH_AEAD_TRIAL_BYTES);
    if (memory == NULL)
        return false;
    *seal_gb_s = measure(aead, suite, false, memory);
    *open_gb_s = measure(aead, suite, true, memory);
    free(memory);
    return *seal_gb_s > 0 && *open_gb_s > 0;
}

void kith_cli_suite_speed(enum kith_suite policy, json_t *rows)
{
    const struct kith_suite_facts *facts;
    struct best bests[8] = {{0, 0}};
    uint8_t *memory = malloc(KITH_AEAD_TRIAL_BYTES);
    if (memory == NULL)
        return; /* Nobody needs the table. */
    if (rows == NULL)
        printf("measured here, GB/s of one core, records of 65,472 bytes:\n"
               "  %-12s %-12s %8s %8s\n",
               "suite", "provider", "sealed", "opened");
    for (unsigned i = 0; (facts = kith_suite_at(i)) != NULL; i++) {
        KITH_ASSERT(facts->suite < sizeof bests / sizeof bests[0]);
        bests[facts->suite] = measure_suite(facts->suite, memory, rows);
    }
    if (rows == NULL)
        conclude(policy, bests);
    free(memory);
}

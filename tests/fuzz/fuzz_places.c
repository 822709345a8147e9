/* Goal: no bytes make the readers of a latency matrix, of coordinates or of a
 * churn trace misbehave. The first byte says which; what is refused is one line
 * of error, of what is accepted all is within its bounds. */
#include <string.h>

#include "fuzz_folder.h"
#include "kith/experiment.h"
#include "kith/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[FOLDER_FILES] = {"matrix", "coordinates",
                                                "trace", "p90"};
static const char head[] =
    "name: fuzz\npeers: 5\nstop: {time: 100s}\n"
    "model: {kind: consensus, dim: 4}\ncompute: {step: 1s}\n"
    "gossip: {algorithm: adpsgd, topology: random}\n";

static void check(const struct kith_experiment *experiment)
{
    const struct kith_latencies *all = &experiment->network.latencies;
    KITH_ASSERT(all->regions <= KITH_REGIONS_MAX);
    KITH_ASSERT(experiment->atom_count <= KITH_ATOMS_MAX);
    KITH_ASSERT(all->latency_least <= all->latency_most || all->regions == 0);
    for (kith_id i = 0; i < 5; i++)
        for (kith_id j = 0; j < 5; j++) {
            struct kith_link_terms terms = experiment->network.link;
            kith_experiment_link(experiment, i, j, &terms);
            KITH_ASSERT(terms.latency_ns >= 0 &&
                        terms.latency_ns <= KITH_TRIP_MAX_NS);
            KITH_ASSERT(terms.jitter_ns >= 0 &&
                        terms.jitter_ns <= 2 * KITH_TRIP_MAX_NS);
        }
    for (uint32_t i = 0; i < experiment->atom_count; i++)
        KITH_ASSERT(experiment->atoms[i].at_ns >= 0 &&
                    experiment->atoms[i].peer < 5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool is_open;
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "", path[128], yaml[1024];
    struct kith_experiment experiment;
    if (!is_open)
        folder_make(names);
    is_open = true;
    if (size == 0)
        return 0;
    const size_t which = data[0] % 3;
    folder_path(which, path);
    folder_put(which, data + 1, size - 1);
    if (which < 2)
        (void)snprintf(yaml, sizeof yaml, "%snetwork: {%s: %s}\n", head,
                       names[which], path);
    else
        (void)snprintf(yaml, sizeof yaml,
                       "%sfaults: [{at: 1s, churn: all, trace: %s}]\n", head,
                       path);
    if (kith_experiment_parse("fuzz", yaml, strlen(yaml), NULL, 0, &experiment,
                              error) == KITH_OK) {
        check(&experiment);
        kith_experiment_close(&experiment);
        return 0;
    }
    KITH_ASSERT(error[0] != '\0' && strchr(error, '\n') == NULL);
    return 0;
}

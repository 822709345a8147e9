/* From one of mpirun's processes to a rank: kith/ranks.h. */
#include "kith/ranks.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/module.h"
#include "kith/text.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unversioned"
#endif

/* Both are built together: there is no promise between versions. */
static bool check_module(const struct kith_ranks_module *module,
                         const char *path, char *why)
{
    KITH_ASSERT(path[0] != '\0');
    if (module == NULL ||
        memcmp(module->magic, KITH_RANKS_MAGIC, sizeof KITH_RANKS_MAGIC) != 0) {
        (void)snprintf(why, KITH_RANKS_WHY_BYTES,
                       "%s is not an MPI module of kith", path);
        return false;
    }
    if (module->abi == KITH_RANKS_ABI &&
        strncmp(module->version, PACKAGE_VERSION, sizeof module->version) == 0)
        return true;
    (void)snprintf(why, KITH_RANKS_WHY_BYTES,
                   "%s is of another version (%.*s, interface %u; this is %s, "
                   "interface %u): build or install both together",
                   path, (int)sizeof module->version, module->version,
                   (unsigned)module->abi, PACKAGE_VERSION, KITH_RANKS_ABI);
    return false;
}

/* MPI loads parts of its own, which look for its symbols. */
static const struct kith_module file = {
    .file = "kith-mpi.so",
    .variable = "KITH_MPI_MODULE",
    .symbol = "kith_ranks_module",
    .build = "build it where Open MPI is installed (configure --with-mpi)",
    .is_global = true};

bool kith_ranks_find(char *path, char *why)
{
    return kith_module_find(&file, path, why, KITH_RANKS_WHY_BYTES);
}

static bool load(struct kith_ranks *ranks, char *why)
{
    char path[KITH_MODULE_PATH_BYTES];
    void *library;
    const void *found;
    KITH_ASSERT(ranks->module == NULL);
    if (!kith_module_load(&file, &library, &found, path, why,
                          KITH_RANKS_WHY_BYTES))
        return false;
    if (!check_module(found, path, why)) {
        kith_module_unload(library);
        return false;
    }
    ranks->module = found;
    return true;
}

/* What is no number is as if it were not there: nothing else sets it. */
static uint64_t told(const char *variable, uint64_t otherwise)
{
    const char *const text = getenv(variable);
    uint64_t number;
    return text != NULL && kith_text_u64(text, &number) == KITH_OK ? number
                                                                   : otherwise;
}

/* Open MPI tells its processes before any of it is loaded. */
uint64_t kith_ranks_started(uint32_t *rank)
{
    *rank = (uint32_t)told("OMPI_COMM_WORLD_RANK", 0);
    return told("OMPI_COMM_WORLD_SIZE", 1);
}

bool kith_ranks_start(struct kith_ranks *ranks, char *why)
{
    uint32_t rank;
    const uint64_t count = kith_ranks_started(&rank);
    *ranks = (struct kith_ranks){.count = 1};
    why[0] = '\0';
    if (count <= 1)
        return true;
    if (!load(ranks, why))
        return false;
    if (!ranks->module->start(&ranks->rank, &ranks->count)) {
        (void)snprintf(why, KITH_RANKS_WHY_BYTES,
                       "MPI does not start: its own words stand above");
        return false;
    }
    KITH_ASSERT(ranks->rank < ranks->count);
    if (ranks->count <= KITH_RANKS_MAX)
        return true;
    (void)snprintf(why, KITH_RANKS_WHY_BYTES,
                   "found %u ranks; allowed: up to %u", (unsigned)ranks->count,
                   KITH_RANKS_MAX);
    return false;
}

/* Before and after a run there is nothing else to do. */
static void finish(const struct kith_ranks *ranks, void *request)
{
    size_t size;
    KITH_ASSERT(request != NULL);
    while (!ranks->module->done(request, &size))
        (void)sched_yield();
}

static void tell(const struct kith_ranks *ranks, uint32_t to,
                 const int words[2])
{
    KITH_ASSERT(to < ranks->count && to != ranks->rank);
    finish(ranks, ranks->module->send(to, KITH_RANKS_CONTROL, words,
                                      2 * sizeof *words));
}

static void hear(const struct kith_ranks *ranks, uint32_t from, int words[2])
{
    KITH_ASSERT(from < ranks->count && from != ranks->rank);
    finish(ranks, ranks->module->receive(from, KITH_RANKS_CONTROL, words,
                                         2 * sizeof *words));
}

/* By way of the first rank: once or twice a run, so that nothing cleverer is
 * worth it. Who has failed at the same thing as the first one is not named. */
int kith_ranks_agree(const struct kith_ranks *ranks, int code, uint32_t *whose)
{
    int all[2] = {code, (int)ranks->rank};
    KITH_ASSERT(ranks->count >= 1 && ranks->rank < ranks->count);
    if (ranks->rank > 0) {
        tell(ranks, 0, all);
        hear(ranks, 0, all);
    }
    for (uint32_t from = 1; ranks->rank == 0 && from < ranks->count; from++) {
        int one[2];
        hear(ranks, from, one);
        if (all[0] == 0)
            memcpy(all, one, sizeof all);
    }
    for (uint32_t to = 1; ranks->rank == 0 && to < ranks->count; to++)
        tell(ranks, to, all);
    KITH_ASSERT(all[1] >= 0 && (uint32_t)all[1] < ranks->count);
    *whose = (uint32_t)all[1];
    return all[0];
}

/* The module stays loaded: MPI cannot be started twice in a process. */
void kith_ranks_finish(struct kith_ranks *ranks)
{
    if (ranks->module)
        ranks->module->finish();
    *ranks = (struct kith_ranks){.count = 1};
}

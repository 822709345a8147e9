/* A simulation that mpirun has started several times: kith/ranks.h.
 *
 * All read the experiment and the data. What goes wrong for all alike the first
 * rank says; what goes wrong for another one alone, that one: until all have
 * agreed to go on, its words are kept. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli.h"

static int real_error = -1; /* standard error, while it is kept elsewhere */

/* Without a place to keep words they are said at once. */
static void be_silent(void)
{
    if (real_error >= 0)
        return;
    const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const int kept = memfd_create("words of a rank", MFD_CLOEXEC);
    fflush(stdout);
    if (nothing >= 0) {
        (void)dup2(nothing, STDOUT_FILENO);
        (void)close(nothing);
    }
    if (kept < 0)
        return;
    real_error = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (real_error >= 0)
        (void)dup2(kept, STDERR_FILENO);
    (void)close(kept);
}

static void speak_again(bool says)
{
    char words[4096];
    ssize_t count;
    if (real_error < 0)
        return;
    fflush(stderr);
    const int kept = dup(STDERR_FILENO);
    (void)dup2(real_error, STDERR_FILENO);
    (void)close(real_error);
    real_error = -1;
    (void)lseek(kept, 0, SEEK_SET);
    while (says && (count = read(kept, words, sizeof words)) > 0)
        (void)fwrite(words, 1, (size_t)count, stderr);
    (void)close(kept);
}

static bool is_first_of_host(void)
{
    const char *const local = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
    return local == NULL || strcmp(local, "0") == 0;
}

void kith_cli_ranks_hush(void)
{
    uint32_t rank;
    if (kith_ranks_started(&rank) > 1 && rank > 0)
        be_silent();
}

int kith_cli_ranks_misled(int code)
{
    char why[KITH_RANKS_WHY_BYTES];
    struct kith_ranks ranks;
    uint32_t rank;
    if (kith_ranks_started(&rank) <= 1)
        return code;
    if (!kith_ranks_start(&ranks, why)) {
        speak_again(is_first_of_host());
        return code;
    }
    code = kith_cli_ranks_told(&ranks, code);
    kith_ranks_finish(&ranks);
    return code;
}

int kith_cli_ranks_refuse(const struct cli_arguments *arguments)
{
    uint32_t rank;
    const uint64_t count = kith_ranks_started(&rank);
    if (count <= 1)
        return KITH_EXIT_OK;
    if (is_first_of_host())
        (void)kith_cli_fail(
            arguments, KITH_EXIT_USAGE,
            "mpirun has started this as one of %llu processes: leave mpirun "
            "out, --jobs says how many runs go on at a time",
            (unsigned long long)count);
    return KITH_EXIT_USAGE;
}

int kith_cli_ranks_open(const struct cli_arguments *arguments,
                        struct kith_ranks *ranks)
{
    char why[KITH_RANKS_WHY_BYTES];
    if (!kith_ranks_start(ranks, why)) {
        speak_again(false);
        if (is_first_of_host())
            (void)kith_cli_fail(
                arguments, KITH_EXIT_RESOURCES,
                "mpirun has started this as one of several processes: %s", why);
        return KITH_EXIT_RESOURCES;
    }
    if (ranks->rank > 0)
        be_silent();
    return KITH_EXIT_OK;
}

/* Before its words: a file may be missing on one machine of several. */
static void name_rank(uint32_t rank)
{
    char host[HOST_NAME_MAX + 1] = "";
    (void)gethostname(host, sizeof host - 1);
    dprintf(real_error, "rank %u, on %s, ends the run:\n", (unsigned)rank,
            host);
}

static int agree(const struct kith_ranks *ranks, int code, bool speaks)
{
    uint32_t whose;
    if (ranks == NULL || ranks->count <= 1)
        return code;
    code = kith_ranks_agree(ranks, code, &whose);
    const bool is_mine = code != KITH_EXIT_OK && whose == ranks->rank;
    if (ranks->rank > 0 && (speaks || code != KITH_EXIT_OK)) {
        if (is_mine && real_error >= 0)
            name_rank(ranks->rank);
        speak_again(is_mine);
    }
    return code;
}

int kith_cli_ranks_told(const struct kith_ranks *ranks, int code)
{
    return agree(ranks, code, false);
}

int kith_cli_ranks_agree(const struct kith_ranks *ranks, int code)
{
    return agree(ranks, code, true);
}

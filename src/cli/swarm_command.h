/* kith swarm: what one run says, and the journal of many. */
#ifndef KITH_SRC_CLI_SWARM_COMMAND_H
#define KITH_SRC_CLI_SWARM_COMMAND_H

#include "cli.h"
#include "kith/node.h"
#include "kith/rundb.h"

#define SWARM_RUNS_MAX 100000000u
#define SWARM_WHAT_BYTES 512

struct swarm_outcome {
    uint64_t hash; /* of its trace */
    uint64_t marks[KITH_MARK_COUNT];
    char what[SWARM_WHAT_BYTES]; /* whose run, and what was violated; "":
                                    nothing was */
};

struct swarm_search {
    const struct cli_arguments *arguments;
    const char *file; /* NULL: --random */
    uint64_t seed;
    uint32_t runs;
    bool one; /* --run K */
    bool lab; /* --lab: real processes */
};

/* Runs that are done, and what they came to. A line each, in the order in which
 * they ended; a line that was cut short is no run. */
struct swarm_journal {
    char path[KITH_PATH_BYTES_MAX];
    FILE *file;
    uint8_t *done; /* (runs) */
    uint32_t done_count, violated;
    uint32_t *failures; /* (violated) runs, as they came */
    uint64_t reached[KITH_MARK_COUNT], times[KITH_MARK_COUNT];
};

/* Opens or goes on with the journal of this search; an exit code. */
int kith_swarm_journal_open(const struct swarm_search *search,
                            struct swarm_journal *journal);
/* Written at once. */
int kith_swarm_journal_add(const struct swarm_search *search,
                           struct swarm_journal *journal, uint32_t run,
                           const struct swarm_outcome *outcome);
void kith_swarm_journal_close(struct swarm_journal *journal);

/* One run, here; keep: where its file is written, or NULL. An exit code: the
 * file cannot be read or written. */
int kith_swarm_run(const struct swarm_search *search, uint32_t run,
                   const char *keep, struct swarm_outcome *outcome);
/* What a run of real processes came to, as the simulator's report says it; the
 * rows of one that violates are kept. KITH_EXIT_INTERRUPTED: Ctrl-C. */
int kith_swarm_lab(const struct swarm_search *search,
                   const struct kith_experiment *experiment,
                   struct swarm_outcome *outcome);
/* What was violated, into outcome->what, after "ALGORITHM on GRAPH, n peers, n
 * faults: ". error: why it ended, ""; more: beside the file's assertions, "".
 */
void kith_swarm_judge(const struct kith_experiment *experiment,
                      const struct kith_summary *summary, const char *error,
                      const char *more, const char *dishonest,
                      struct swarm_outcome *outcome);
/* --random with --set: a draw that does not take the settings is run as it was
 * drawn; an exit code where none does, which says why. */
int kith_swarm_check_settings(const struct swarm_search *search);
/* The command that does it again. */
void kith_swarm_replay(const struct swarm_search *search, uint32_t run,
                       char *text, size_t size);

#endif

/* What the commands share: options, exit codes, opening a run, progress. */
#ifndef KITH_SRC_CLI_CLI_H
#define KITH_SRC_CLI_CLI_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/data.h"
#include "kith/err.h"
#include "kith/exit.h"
#include "kith/experiment.h"
#include "kith/ranks.h"
#include "kith/sweep.h"
#include "kith/rundb.h"

/* X(NAME, "--option", "ARGUMENT" or NULL for a flag, help) */
#define CLI_OPTIONS(X)                                                         \
    X(JSON, "--json", NULL, "print one JSON object and nothing else")          \
    X(OUT, "--out", "DIR", "folder of the run database [.]")                   \
    X(SEED, "--seed", "N", "in place of the file's seed")                      \
    X(SET, "--set", "KEY=VALUE", "in place of a key of the file; repeatable")  \
    X(SAVE, "--save", "PATH",                                                  \
      "checkpoint; lab: folder of saves [beside the database]; sim: folder "   \
      "of saves [none]")                                                       \
    X(SAVE_EVERY, "--save-every", "TIME",                                      \
      "of the wall's clock, between two saves [60s]")                          \
    X(RESUME, "--resume", "[PATH]",                                            \
      "go on with an interrupted run: its checkpoint (train) or database "     \
      "(lab, a sweep) [the newest of FILE in DIR; sim: what --save names]")    \
    X(INIT, "--init", "FILE",                                                  \
      "weights to start from: safetensors, with the model's names")            \
    X(NAMES, "--names", "FILE",                                                \
      "what the other program calls the tensors, and how they lie there")      \
    X(DATA, "--data", "PATH", "in place of the checkpoint's data.path")        \
    X(ESTIMATE, "--estimate", "N",                                             \
      "running statistics anew, over N training batches [as stored]")          \
    X(PROMPT, "--prompt", "TEXT", "what the text begins with")                 \
    X(TOKENS, "--tokens", "N", "how many to add [256]")                        \
    X(TEMPERATURE, "--temperature", "T",                                       \
      "0: always the likeliest; 1: as the model says [0.8]")                   \
    X(TOP_K, "--top-k", "K", "of the likeliest K alone; 0: of all [0]")        \
    X(TOKENIZER, "--tokenizer", "FILE",                                        \
      "a tokenizer.json for a model of byte pairs")                            \
    X(THREADS, "--threads", "N",                                               \
      "threads of the work [sim: 1; else those of the run]")                   \
    X(QUEUE, "--queue", "KIND", "calendar or heap: the same trace [calendar]") \
    X(WIRE, "--wire", "MODE", "sized or full, in place of network.wire")       \
    X(ROWS, "--rows", "KIND",                                                  \
      "peers that the database has: all, sampled (64 of them) or none "        \
      "[all; sampled above 10,000]")                                           \
    X(TRACE, "--trace", "FILE", "write every decision as a line of text")      \
    X(TIMELINE, "--timeline", "FILE",                                          \
      "write what peers did when, for Perfetto or chrome://tracing")           \
    X(WINDOW, "--window", "PEERS[,FROM..TO]",                                  \
      "of the timeline, such as 0..7,1s..2s [0..15, all the time]")            \
    X(DUMP, "--dump", "FILE.npz",                                              \
      "models, weights and mixing matrices of every step, for NumPy")          \
    X(CALIBRATE, "--calibrate", NULL,                                          \
      "measure this machine once and write compute.step (sim) or "             \
      ".products, .threads, .peak into the file")                              \
    X(RECORD, "--record", NULL,                                                \
      "keep a journal in the database, for kith sim --replay")                 \
    X(REPLAY, "--replay", "RUN.db",                                            \
      "carry a recorded kith lab out again, and compare the models")           \
    X(PORT, "--port", "N", "peer i listens on port N + i [any free ones]")     \
    X(LOG, "--log", NULL, "show what the peers log, on standard error")        \
    X(SWEEP, "--sweep", "KEY=V1,V2,...",                                       \
      "a run for each value; repeatable: each combination; keys that go "      \
      "together: SECTION={A: 1, B: 2}|{A: 3}")                                 \
    X(SHARD, "--shard", "I/N",                                                 \
      "of the cells every Nth from the Ith on, 1/N to N/N; see kith report "   \
      "--merge")                                                               \
    X(SEEDS, "--seeds", "K",                                                   \
      "seeds of each, from the file's on [1; plan: 2, of the last two]")       \
    X(JOBS, "--jobs", "N",                                                     \
      "runs at a time [one a core; swarm --lab: 8 a core]")                    \
    X(BATCH, "--batch", "N",                                                   \
      "examples of a step, of all peers together [the file's]")                \
    X(PYTHON, "--python", NULL,                                                \
      "of algorithms: which work with a program's own training loop")          \
    X(ALL_CELLS, "--all-cells", NULL, "every preset of the taxonomy, 8 nodes") \
    X(CELLS, "--cells", "DIR",                                                 \
      "these files in its place, each with its own peers")                     \
    X(TARGET_LOSS, "--target-loss", "X",                                       \
      "time to target is to this test loss [target_loss of the file]")         \
    X(TARGET, "--target", "WHAT=X",                                            \
      "time, steps and bytes are to this, as accuracy=0.85 or loss=0.5; "      \
      "plan without --search: efficiency=0.9")                                 \
    X(BASELINE, "--baseline", "SETTING",                                       \
      "differences from it, paired over seeds: KEY=VALUE or a cell's name")    \
    X(TABLE, "--table", "COLUMNS",                                             \
      "a row a setting for a paper, as accuracy,bytes_mean or all; --out "     \
      "says "                                                                  \
      ".tex or .csv [.tex]")                                                   \
    X(CSV, "--csv", NULL, "a table, one row a run, in place of a page")        \
    X(POINTS, "--points", NULL, "all points of all series as CSV")             \
    X(MERGE, "--merge", "OUT.db",                                              \
      "join the shards of a sweep to one database, in place of a page")        \
    X(FIGURE, "--figure", "Y:X",                                               \
      "one plot for a paper, as in accuracy:bytes, loss:log(time); --out "     \
      "says .pdf, .svg or .png")                                               \
    X(FOLLOW, "--follow", NULL,                                                \
      "serve the page on this machine and add to it while the runs go on")     \
    X(NAME, "--name", "NAME", "of the peer, written into its certificate")     \
    X(AUTHORITY, "--authority", NULL, "make a cluster's authority")            \
    X(SUITE, "--suite", "NAME",                                                \
      "of an authority: its cluster's cipher, as kith list suites has them "   \
      "[no policy]")                                                           \
    X(DAYS, "--days", "N", "how long the certificate is valid, 1 to 90 [30]")  \
    X(RANK, "--rank", "N", "place in the list of members, from 0")             \
    X(ROLES, "--roles", "LIST", "of train, observe, seed [train]")             \
    X(DISHONEST, "--dishonest", "I=CLAIM,...",                                 \
      "peers whose word is not true: rounds, ahead, silent, probes or huge")   \
    X(RANDOM, "--random", NULL, "everything at random, in place of a file")    \
    X(RUNS, "--runs", "N", "how many runs the search takes [1000; plan: 64]")  \
    X(RUN, "--run", "K", "this one run of the search alone, here")             \
    X(LAB, "--lab", NULL, "real processes in place of simulations")            \
    X(KEEP, "--keep", "FILE", "write the run's experiment, for kith sim")      \
    X(MEASURE, "--measure", NULL,                                              \
      "measure this machine and write it into the file of --machine")          \
    X(TO, "--to", "PEER.yaml",                                                 \
      "the ways to its members, whose peers run, are measured, too")           \
    X(LINKS, "--links", NULL, "and measure the way to each: up to 54 MB")      \
    X(MACHINE, "--machine", "FILE",                                            \
      "what kith plan --measure wrote [--measure: machine.yaml; else none]")   \
    X(MEMORY, "--memory", "SIZE",                                              \
      "of a peer, such as 4GB: the batch must fit it")                         \
    X(SEARCH, "--search", "GOAL",                                              \
      "settings with the least time or bytes to --target, by simulations")     \
    X(PRICE, "--price", "P", "of a peer and hour, for what a run costs")       \
    X(YES, "--yes", NULL, "ask nothing: 4 peers, drawn data, adpsgd")          \
    X(HELP, "--help", NULL, "print this")

enum cli_option {
#define KITH_X(name, text, argument, help) CLI_##name,
    CLI_OPTIONS(KITH_X)
#undef KITH_X
        CLI_OPTION_COUNT
};
_Static_assert(CLI_OPTION_COUNT <= UINT8_MAX, "a byte each in a list");
/* A command's options, in any order; CLI_OPTION_COUNT ends the list. */
#define CLI_TAKES(...)                                                         \
    (const uint8_t[])                                                          \
    {                                                                          \
        __VA_ARGS__, CLI_OPTION_COUNT                                          \
    }

#define CLI_WORDS_MAX 64u

struct cli_arguments {
    const char *command;
    const char *words[CLI_WORDS_MAX]; /* (word_count) */
    unsigned word_count;
    const char *values[CLI_OPTION_COUNT]; /* NULL: not given; flags: "" */
    const char *sets[CLI_WORDS_MAX];      /* (set_count): --set */
    unsigned set_count;
    const char *sweeps[KITH_SETTINGS_MAX]; /* (sweep_count): --sweep */
    unsigned sweep_count;
};

/* Where mpirun has started several of it. */
enum cli_several {
    CLI_SEVERAL_APART,   /* each is on its own */
    CLI_SEVERAL_ONE_RUN, /* they carry out one run, and speak once */
    CLI_SEVERAL_REFUSED, /* they would be in each other's way */
};

struct cli_command {
    const char *name, *summary;
    const char *usage;   /* after "kith NAME " */
    const char *details; /* what it does, and an example */
    const char *out; /* the file --out means here; NULL: the table's folder */
    const uint8_t *options; /* CLI_TAKES() */
    unsigned words_min, words_max;
    enum cli_several several;
    int (*run)(const struct cli_arguments *arguments);
};

/* The commands one after another, NULL behind the last (main.c). */
const struct cli_command *kith_cli_command(size_t index);
/* Does it take the option? All take --help. */
bool kith_cli_takes(const struct cli_command *command, unsigned option);
struct cli_option_text {
    const char *name, *argument, *help; /* argument: NULL, a flag */
};
struct cli_option_text kith_cli_option_text(enum cli_option option);

/* A usage error is printed; the answer is then KITH_EXIT_USAGE. */
int kith_cli_parse(const struct cli_command *command, int argc, char **argv,
                   struct cli_arguments *arguments);
void kith_cli_help(const struct cli_command *command);
/* One line on standard error, "kith COMMAND: ..."; returns `code`. */
int kith_cli_fail(const struct cli_arguments *arguments, int code,
                  const char *format, ...) KITH_PRINTF(3, 4);
/* 0, or the exit code of `err` with `error` printed. */
int kith_cli_check(const struct cli_arguments *arguments, enum kith_err err,
                   const char *error);
/* Flushes standard output: `code`, or KITH_EXIT_WRITE with a message. */
int kith_cli_flush(const struct cli_arguments *arguments, int code);
bool kith_cli_given(const struct cli_arguments *arguments,
                    enum cli_option option);
/* A whole number from low to high, or KITH_EXIT_USAGE with a message; *value
 * stays where the option was not given. */
int kith_cli_number(const struct cli_arguments *arguments,
                    enum cli_option option, uint64_t low, uint64_t high,
                    uint64_t *value);
/* --target or --target-loss, NaN where neither is given; an exit code. */
struct kith_target;
int kith_cli_target(const struct cli_arguments *arguments,
                    struct kith_target *target);
/* "did you mean" for a word that is none of names[] (NULL-terminated). */
int kith_cli_unknown(const struct cli_arguments *arguments, const char *what,
                     const char *word, const char *const *names);

/* SIGINT and SIGTERM set kith_cli_stop; a second one ends the process at once,
 * with KITH_EXIT_INTERRUPTED. */
extern volatile sig_atomic_t kith_cli_stop;
void kith_cli_catch_signals(void);
/* The reading end of a pipe in which they say `stop signal`, each time: for a
 * command that must end in order, up to its last line. -1, with errno. */
int kith_cli_signal_pipe(void);
/* Says `stop idle` in that pipe. */
void kith_cli_stop_idle(void);

/* The folder of --out [.], made where it is missing. */
int kith_cli_out_folder(const struct cli_arguments *arguments,
                        const char **folder);
/* Can a file be made beside this path? Asked before what it is for. */
int kith_cli_check_folder(const struct cli_arguments *arguments,
                          const char *option, const char *path);
/* The file is `text` or what it was before: a temporary file, fsync, rename. */
int kith_cli_replace_file(const struct cli_arguments *arguments,
                          const char *path, const char *text);

/* The beginning of a regular file as text, size - 1 bytes at most; else `text`
 * is "" and the answer what kith_file_open says. */
enum kith_err kith_cli_read_text(const char *path, char *text, size_t size);

/* An experiment on its way: file, data, database. */
struct cli_run {
    struct cli_arguments own; /* with the name that stands in messages */
    const struct cli_arguments *arguments; /* &own */
    enum kith_world world;
    struct kith_experiment experiment;
    struct kith_dataset dataset;
    bool has_dataset;
    struct kith_rundb *store;
    char path[KITH_PATH_BYTES_MAX];
    bool resume;                    /* go on with an interrupted run */
    char save[KITH_PATH_BYTES_MAX]; /* where it is saved; "": nowhere */
    char *source; /* its experiment, where no file was named; else NULL */
    const struct kith_ranks *ranks; /* that run it together; NULL: this alone */
};
/* 0, or an exit code with the error printed and nothing to close. */
int kith_cli_run_open(struct cli_run *run,
                      const struct cli_arguments *arguments,
                      enum kith_world world);
/* ranks_open.c, around a simulation that mpirun may have started: the first
 * rank alone writes and speaks, what fails is said once. Before the command
 * line is read: */
void kith_cli_ranks_hush(void);
/* and where it was wrong, the code; the others hear of it. */
int kith_cli_ranks_misled(int code);
/* Of a command that is refused, where there are several; 0, or an exit code. */
int kith_cli_ranks_refuse(const struct cli_arguments *arguments);
/* 0, or an exit code. */
int kith_cli_ranks_open(const struct cli_arguments *arguments,
                        struct kith_ranks *ranks);
/* The code of all, of their command lines. */
int kith_cli_ranks_told(const struct kith_ranks *ranks, int code);
/* The code of all, after what each does alone; NULL: of this one. All go on,
 * and speak for themselves from here on. */
int kith_cli_ranks_agree(const struct kith_ranks *ranks, int code);
/* `check`, after the experiment is read and before anything is written, may
 * refuse it. */
int kith_cli_run_open_ranks(struct cli_run *run,
                            const struct cli_arguments *arguments,
                            const struct kith_ranks *ranks,
                            int (*check)(const struct cli_run *run));
/* resume.c: --save and --resume, before the experiment is read (the run names
 * it), and after (its name and --out name the run). run->path is the database
 * to go on with, or "" for a new one; run->save "" belongs beside that one. */
int kith_cli_resume_source(struct cli_run *run);
int kith_cli_resume_find(struct cli_run *run);
/* Where a new run is saved, once its database has a name. */
int kith_cli_resume_name(struct cli_run *run);
/* The same of a simulation: its folder, its database. */
int kith_cli_resume_sim(struct cli_run *run);
/* The command that goes on with this run, on standard error. */
void kith_cli_resume_advise(const struct cli_run *run);

/* --set and --seed as settings of an experiment; more may follow them. */
#define CLI_SETTING_BYTES 64u
struct cli_settings {
    const char *texts[CLI_WORDS_MAX + 2]; /* (count) */
    uint32_t count;
    char seed[CLI_SETTING_BYTES], threads[CLI_SETTING_BYTES];
};
int kith_cli_settings(const struct cli_arguments *arguments,
                      struct cli_settings *settings);
/* Opens the experiment alone, with --set and --seed applied. */
int kith_cli_experiment_open(const struct cli_arguments *arguments,
                             const char *path,
                             struct kith_experiment *experiment);
/* The data the experiment needs; *has: it needs some. */
int kith_cli_dataset_open(const struct cli_arguments *arguments,
                          const struct kith_experiment *experiment,
                          struct kith_dataset *dataset, bool *has);
/* How a run does its arithmetic, by experiment->compute, which is filled in:
 * products, threads (train, peer: all cores where the file does not say), the
 * peak. 0, or an exit code with the error printed. */
enum cli_compute {
    CLI_COMPUTE_ONE,      /* one thread: a lab's peers, a simulation */
    CLI_COMPUTE_ALL,      /* a peer; a run that goes on */
    CLI_COMPUTE_MEASURED, /* and where no peak is known it is measured */
};
int kith_cli_compute_open(const struct cli_arguments *arguments,
                          struct kith_experiment *experiment,
                          enum cli_compute compute);
/* Cores that this process may use. */
uint32_t kith_cli_cores(void);
/* Closes everything and prints the summary (NULL: there is none); the exit
 * code of the run. err, error: what the back end said. */
int kith_cli_run_close(struct cli_run *run, enum kith_err err,
                       const char *error, const struct kith_summary *summary);
/* The code for an error of a driver. */
int kith_cli_exit_of(enum kith_err err);

/* One line that is rewritten on a terminal, and repeated rarely elsewhere; on
 * standard error. kith_cli_progress_end() leaves the cursor on a fresh line. */
void kith_cli_progress(const char *format, ...) KITH_PRINTF(1, 2);
void kith_cli_progress_end(void);

/* A command: its exit code. */
typedef int cli_command_run(const struct cli_arguments *arguments);
cli_command_run kith_cli_train, kith_cli_eval, kith_cli_sample, kith_cli_export;
cli_command_run kith_cli_sim, kith_cli_swarm, kith_cli_lab, kith_cli_peer,
    kith_cli_keys;
cli_command_run kith_cli_doctor, kith_cli_report, kith_cli_list;
cli_command_run kith_cli_completion, kith_cli_init, kith_cli_plan;
/* command_topology.c: kith list topology NAME PEERS. */
cli_command_run kith_cli_list_topology;
/* list_exchanges.c: kith list exchanges [ALGORITHM]. */
cli_command_run kith_cli_list_exchanges;
/* Bytes of its messages: where some rounds carry slices, the mean of a period.
 */
double kith_cli_message_bytes(const struct kith_node_config *config);
/* What the peer with the most neighbours opens, to be measured. */
struct kith_worker_config
kith_cli_busiest_worker(const struct kith_experiment *experiment,
                        const struct kith_node_config *config);
/* list_balance.c: kith list balance MODEL|FILE.yaml [PEERS]. */
cli_command_run kith_cli_list_balance;
/* list_manifest.c: kith list manifest PATH FILE. */
cli_command_run kith_cli_list_manifest;
/* What a peer sends in an exchange or a round, in d = values of the model,
 * C(d) = these compressed, deg = neighbours of the round: "2 deg d". */
void kith_cli_sends(const struct kith_algorithm *algorithm, char *text,
                    size_t size);
/* command_replay.c: kith sim --replay RUN.db. */
cli_command_run kith_cli_replay;

#endif

/* --save and --resume: which run goes on, and where its files are.
 *
 *   NAME-train-N.db    NAME-train-N.save     and .previous, .best
 *   NAME-lab-N.db      NAME-lab-N.saves/     peer-RANK.save
 *   a simulation's     --save FOLDER         rank-R.state, rank-R.log
 *
 * The experiment need not be named: a checkpoint and a database keep theirs. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "kith/plain_file.h"
#include "kith/checkpoint.h"
#include "kith/sim.h"
#include "kith/text.h"

/* Entries of a folder looked at. */
#define ENTRIES_MAX 1000000

static const char *ending_of(const struct cli_run *run)
{
    return run->world == KITH_WORLD_LAB ? ".saves" : ".save";
}

/* OUT is PATH with another ending; false where PATH does not end so. */
static bool swap_ending(const char *path, const char *from, const char *to,
                        char out[KITH_PATH_BYTES_MAX])
{
    const size_t length = strlen(path), cut = strlen(from);
    if (length <= cut || strcmp(path + length - cut, from) != 0)
        return false;
    const int written = snprintf(out, KITH_PATH_BYTES_MAX, "%.*s%s",
                                 (int)(length - cut), path, to);
    return written > 0 && written < (int)KITH_PATH_BYTES_MAX;
}

static bool is_there(const char *path)
{
    char previous[KITH_PATH_BYTES_MAX + 16];
    snprintf(previous, sizeof previous, "%s.previous", path);
    return access(path, F_OK) == 0 || access(previous, F_OK) == 0;
}

static bool is_yaml(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL &&
           (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

/* A name given to run->save; false: it is too long. */
static int set_save(struct cli_run *run, const char *path)
{
    if (!kith_text_copy(run->save, sizeof run->save, path))
        return kith_cli_fail(run->arguments, KITH_EXIT_USAGE,
                             "--save: the path is too long");
    return KITH_EXIT_OK;
}

/* The files of the run that PATH names. */
static int open_named(struct cli_run *run, const char *path)
{
    char beside[KITH_PATH_BYTES_MAX];
    const char *ending = ending_of(run);
    run->resume = true;
    if (run->world != KITH_WORLD_LAB) {
        if (!is_there(path))
            return kith_cli_fail(run->arguments, KITH_EXIT_EXPERIMENT,
                                 "--resume: there is no checkpoint %.300s; "
                                 "leave --resume out to start",
                                 path);
        if (swap_ending(path, ending, ".db", beside) &&
            access(beside, F_OK) == 0)
            kith_text_copy(run->path, sizeof run->path, beside);
        return set_save(run, path);
    }
    if (!swap_ending(path, ".db", ending, beside))
        return kith_cli_fail(
            run->arguments, KITH_EXIT_USAGE,
            "--resume: found \"%.300s\"; allowed: the run database "
            "of an interrupted kith lab, such as demo-lab-1.db",
            path);
    kith_text_copy(run->path, sizeof run->path, path);
    if (run->save[0] == '\0')
        kith_text_copy(run->save, sizeof run->save, beside);
    if (access(run->save, F_OK) == 0)
        return KITH_EXIT_OK;
    return kith_cli_fail(run->arguments, KITH_EXIT_EXPERIMENT,
                         "--resume: there are no saves %.300s: that run came "
                         "to its end, or was saved elsewhere (--save)",
                         run->save);
}

/* The text of the experiment, where no file was named. */
static int read_source(struct cli_run *run, const char *path)
{
    char error[KITH_CHECKPOINT_ERROR_BYTES], earlier[sizeof error];
    char previous[KITH_PATH_BYTES_MAX + 16];
    enum kith_err err;
    if (run->world == KITH_WORLD_LAB) {
        err = kith_rundb_experiment(run->path, &run->source, error);
    } else {
        err = kith_checkpoint_experiment(path, &run->source, error);
        if (err != KITH_OK) {
            snprintf(previous, sizeof previous, "%s.previous", path);
            err = kith_checkpoint_experiment(previous, &run->source, earlier);
        }
    }
    return kith_cli_check(run->arguments, err, error);
}

int kith_cli_resume_source(struct cli_run *run)
{
    struct cli_arguments *own = &run->own;
    const char *named = own->values[CLI_RESUME];
    const char *save = own->values[CLI_SAVE];
    const bool alone = own->word_count == 0;
    /* `--resume FILE.yaml`: the option has no value, the file is the word. */
    if (alone && named != NULL && is_yaml(named)) {
        own->words[own->word_count++] = named;
        own->values[CLI_RESUME] = "";
        return kith_cli_resume_source(run);
    }
    if (alone && (named == NULL || named[0] == '\0'))
        return kith_cli_fail(
            own, KITH_EXIT_USAGE,
            "found 0 arguments; usage: kith %s EXPERIMENT.yaml, or "
            "kith %s --resume PATH; see kith %s --help",
            own->command, own->command, own->command);
    if (save != NULL && set_save(run, save) != KITH_EXIT_OK)
        return KITH_EXIT_USAGE;
    if (named == NULL || named[0] == '\0')
        return KITH_EXIT_OK;
    if (save != NULL && run->world != KITH_WORLD_LAB)
        return kith_cli_fail(
            own, KITH_EXIT_USAGE,
            "--save and --resume PATH: a run goes on in its own checkpoint; "
            "give one of them, or --save PATH --resume");
    int code = open_named(run, named);
    if (code == KITH_EXIT_OK && alone) {
        own->words[own->word_count++] = named;
        code = read_source(run, named);
    }
    return code;
}

/* The N of NAME-WORLD-N + ending, 0: another file. */
static uint64_t number_of(const char *entry, const char *prefix,
                          const char *ending)
{
    char digits[16];
    uint64_t number;
    const size_t length = strlen(prefix);
    if (strncmp(entry, prefix, length) != 0)
        return 0;
    const size_t count = strspn(entry + length, "0123456789");
    const char *rest = entry + length + count;
    if (count == 0 || count >= sizeof digits ||
        (strcmp(rest, ending) != 0 &&
         (strncmp(rest, ending, strlen(ending)) != 0 ||
          strcmp(rest + strlen(ending), ".previous") != 0)))
        return 0;
    memcpy(digits, entry + length, count);
    digits[count] = '\0';
    return kith_text_u64(digits, &number) == KITH_OK ? number : 0;
}

static int find_newest(struct cli_run *run)
{
    char prefix[KITH_NAME_MAX + 16], path[KITH_PATH_BYTES_MAX];
    const char *folder = run->own.values[CLI_OUT];
    uint64_t newest = 0;
    folder = folder == NULL ? "." : folder;
    snprintf(prefix, sizeof prefix, "%s-%s-", run->experiment.name,
             kith_world_name(run->world));
    DIR *entries = opendir(folder);
    struct dirent *entry = entries == NULL ? NULL : readdir(entries);
    for (int i = 0; entry != NULL && i < ENTRIES_MAX; i++) {
        const uint64_t number =
            number_of(entry->d_name, prefix, ending_of(run));
        newest = number > newest ? number : newest;
        entry = readdir(entries);
    }
    if (entries != NULL)
        closedir(entries);
    if (newest == 0)
        return kith_cli_fail(run->arguments, KITH_EXIT_EXPERIMENT,
                             "--resume: there is no %sN%s in %.300s; leave "
                             "--resume out to start",
                             prefix, ending_of(run), folder);
    const int length =
        snprintf(path, sizeof path, "%s/%s%llu%s", folder, prefix,
                 (unsigned long long)newest,
                 run->world == KITH_WORLD_LAB ? ".db" : ending_of(run));
    if (length < 0 || length >= (int)sizeof path)
        return kith_cli_fail(run->arguments, KITH_EXIT_USAGE,
                             "--out: the path is too long");
    return open_named(run, path);
}

int kith_cli_resume_find(struct cli_run *run)
{
    const char *named = run->own.values[CLI_RESUME];
    if (run->resume)
        return KITH_EXIT_OK;
    if (run->save[0] == '\0')
        return named == NULL ? KITH_EXIT_OK : find_newest(run);
    if (named != NULL && run->world == KITH_WORLD_LAB)
        return kith_cli_fail(run->arguments, KITH_EXIT_USAGE,
                             "--resume: with --save it needs the run database, "
                             "such as --resume demo-lab-1.db");
    char why[KITH_FILE_WHY_BYTES];
    if (run->world != KITH_WORLD_LAB &&
        kith_file_check(run->save, why) == KITH_EINVAL)
        return kith_cli_fail(run->arguments, KITH_EXIT_WRITE,
                             "--save: %.300s: %s; name a file", run->save, why);
    if (!is_there(run->save))
        return kith_cli_check_folder(
            run->arguments, "--save",
            run->save); /* --save PATH --resume: start, or go on */
    if (named != NULL)
        return open_named(run, run->own.values[CLI_SAVE]);
    return kith_cli_fail(run->arguments, KITH_EXIT_WRITE,
                         "--save: %.300s is there already; go on from it with "
                         "--resume, remove it, or choose another",
                         run->save);
}

int kith_cli_resume_name(struct cli_run *run)
{
    if (run->save[0] != '\0' ||
        swap_ending(run->path, ".db", ending_of(run), run->save))
        return KITH_EXIT_OK;
    return kith_cli_fail(run->arguments, KITH_EXIT_USAGE,
                         "--out: the path is too long");
}

/* The database of the save is gone on with; where it has gone a new one is
 * written: all rows are. */
int kith_cli_resume_sim(struct cli_run *run)
{
    const char *folder = run->own.values[CLI_SAVE];
    char database[KITH_PATH_BYTES_MAX];
    if (folder == NULL)
        return KITH_EXIT_OK;
    if (set_save(run, folder) != KITH_EXIT_OK)
        return KITH_EXIT_USAGE;
    run->resume = run->own.values[CLI_RESUME] != NULL;
    const bool is_saved =
        sim_saved_database(folder, database, sizeof database) == KITH_OK;
    const bool is_first = run->ranks == NULL || run->ranks->rank == 0;
    if (is_saved && !run->resume && is_first) /* before a database is made */
        return kith_cli_fail(run->arguments, KITH_EXIT_EXPERIMENT,
                             "--save: %.300s has a save already; go on from it "
                             "with --resume, remove it, or choose another",
                             folder);
    if (!run->resume || !is_saved || database[0] == '\0')
        return KITH_EXIT_OK;
    if (access(database, F_OK) == 0)
        kith_text_copy(run->path, sizeof run->path, database);
    else
        (void)kith_cli_fail(&run->own, KITH_EXIT_OK,
                            "the database %.300s is gone: a new one is written",
                            database);
    return KITH_EXIT_OK;
}

void kith_cli_resume_advise(const struct cli_run *run)
{
    const bool lab = run->world == KITH_WORLD_LAB;
    char beside[KITH_PATH_BYTES_MAX] = "";
    const bool elsewhere =
        lab && (!swap_ending(run->path, ".db", ending_of(run), beside) ||
                strcmp(beside, run->save) != 0);
    if (!is_there(run->save))
        return;
    kith_cli_progress_end();
    fprintf(stderr, "go on with: kith %s --resume %s%s%s\n", run->own.command,
            lab ? run->path : run->save, elsewhere ? " --save " : "",
            elsewhere ? run->save : "");
}

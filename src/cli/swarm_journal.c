/* The journal of a search, beside it:
 *
 *   swarm SEED NAME          first line: whose it is
 *   RUN HASH n0 n1 ... [! WHAT]
 *
 * n: how often each mark was reached. Whoever goes on reads it and appends. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/build.h"
#include "kith/text.h"
#include "swarm_command.h"

#define LINE_BYTES 2048

static const char *name_of(const struct swarm_search *search)
{
    const char *name = search->file;
    if (name == NULL)
        return "random";
    const char *slash = strrchr(name, '/');
    return slash == NULL ? name : slash + 1;
}

static int fail(const struct swarm_search *search,
                const struct swarm_journal *journal, const char *what)
{
    return kith_cli_fail(search->arguments, KITH_EXIT_WRITE,
                         "cannot %s the journal %s: %s; choose another folder "
                         "with --out",
                         what, journal->path, strerror(errno));
}

static void count(struct swarm_journal *journal, uint32_t run,
                  const uint64_t marks[KITH_MARK_COUNT], bool violated)
{
    journal->done[run] = 1;
    journal->done_count++;
    if (violated)
        journal->failures[journal->violated++] = run;
    for (unsigned k = 0; k < KITH_MARK_COUNT; k++) {
        journal->reached[k] += marks[k] > 0;
        journal->times[k] += marks[k];
    }
}

/* A run of a longer search is left alone. */
static void read_line(const struct swarm_search *search,
                      struct swarm_journal *journal, char *line)
{
    uint64_t marks[KITH_MARK_COUNT];
    char *end;
    const unsigned long long run = strtoull(line, &end, 10);
    (void)strtoull(end, &end, 16); /* the hash is for people */
    for (unsigned k = 0; k < KITH_MARK_COUNT; k++) {
        char *const at = end;
        marks[k] = strtoull(at, &end, 10);
        if (end == at)
            return;
    }
    if (run < search->runs && !journal->done[run])
        count(journal, (uint32_t)run, marks, strchr(end, '!') != NULL);
}

static int read_lines(const struct swarm_search *search,
                      struct swarm_journal *journal, const char *title)
{
    char line[LINE_BYTES];
    long whole = 0; /* bytes of complete lines */
    for (bool first = true; fgets(line, sizeof line, journal->file) != NULL;
         first = false) {
        if (strchr(line, '\n') == NULL)
            break;
        if (first && strcmp(line, title) != 0)
            return kith_cli_fail(
                search->arguments, KITH_EXIT_EXPERIMENT,
                "%s is of another search or build; remove it, or choose "
                "another folder with --out",
                journal->path);
        if (!first)
            read_line(search, journal, line);
        whole = ftell(journal->file);
    }
    if (fseek(journal->file, whole, SEEK_SET) != 0 ||
        (whole == 0 && fputs(title, journal->file) < 0))
        return fail(search, journal, "write");
    return KITH_EXIT_OK;
}

int kith_swarm_journal_open(const struct swarm_search *search,
                            struct swarm_journal *journal)
{
    const char *folder;
    char title[LINE_BYTES];
    memset(journal, 0, sizeof *journal);
    const int code = kith_cli_out_folder(search->arguments, &folder);
    if (code != KITH_EXIT_OK)
        return code;
    journal->done = calloc(search->runs, 1);
    journal->failures = calloc(search->runs, sizeof *journal->failures);
    if (journal->done == NULL || journal->failures == NULL)
        return kith_cli_fail(search->arguments, KITH_EXIT_RESOURCES,
                             "out of memory");
    (void)snprintf(journal->path, sizeof journal->path,
                   "%s/swarm-%.100s%s-%" PRIu64 ".log", folder, name_of(search),
                   search->lab ? "-lab" : "", search->seed);
    size_t at =
        kith_text_add(title, sizeof title, 0, "swarm%s %" PRIu64 " %s %s",
                      search->lab ? " --lab" : "", search->seed,
                      name_of(search), kith_build_exact());
    for (uint32_t i = 0; i < search->arguments->set_count; i++)
        at = kith_text_add(title, sizeof title, at, " %s",
                           search->arguments->sets[i]);
    (void)kith_text_add(title, sizeof title, at, "\n");
    journal->file = fopen(journal->path, "r+");
    if (journal->file == NULL && errno == ENOENT)
        journal->file = fopen(journal->path, "w+");
    return journal->file == NULL ? fail(search, journal, "open")
                                 : read_lines(search, journal, title);
}

int kith_swarm_journal_add(const struct swarm_search *search,
                           struct swarm_journal *journal, uint32_t run,
                           const struct swarm_outcome *outcome)
{
    const bool violated = outcome->what[0] != '\0';
    count(journal, run, outcome->marks, violated);
    fprintf(journal->file, "%" PRIu32 " %016" PRIx64, run, outcome->hash);
    for (unsigned k = 0; k < KITH_MARK_COUNT; k++)
        fprintf(journal->file, " %" PRIu64, outcome->marks[k]);
    fprintf(journal->file, "%s%s\n", violated ? " ! " : "", outcome->what);
    return fflush(journal->file) == 0 ? KITH_EXIT_OK
                                      : fail(search, journal, "write");
}

void kith_swarm_journal_close(struct swarm_journal *journal)
{
    if (journal->file != NULL)
        (void)fclose(journal->file); /* flushed after each line */
    free(journal->done);
    free(journal->failures);
}

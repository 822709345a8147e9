/* Saves of a run: when, and of all ranks at once.
 *
 * What happens next depends on vectors by a few bytes of each item alone: the
 * log (rank_log.c) that ranks tell each other. So a save is
 *
 *   rank-R.log     those bytes, from the beginning of the run on, this rank's
 *                  own and what others have told it: the file grows
 *   rank-R.state   what vectors and workers are between two events, the trace's
 *                  hash there, and how much of the log belongs to it
 *
 * so that a run goes on by running again to there (save_recall.c). Nothing else
 * of the engine is in any file.
 *
 * Of several ranks the first one says when, at an event at which all ask it: so
 * all save at the same one. A state takes its name when all have written
 * theirs, and the one before stays as .previous: whenever a rank dies, there is
 * one that all of them have.
 *
 * Test: integration/test_sim_resume.sh, unit/test_save_file.c */
#define _DEFAULT_SOURCE /* mkdir, clock_gettime */
#include "sim/sim_saves.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kith/assert.h"
#include "kith/build.h"
#include "kith/hash.h"
#include "kith/plain_file.h"
#include "kith/text.h"
#include "sim/save_file.h"
#include "sim/save_log.h"
#include "sim/save_recall.h"
#include "sim/save_state.h"
#include "sim/world.h"

/* Between two looks at the clock. */
#define LOOK_EVENTS 512u
#define LOOK_TRAINING_EVENTS 8u
/* Of several ranks: all stand still for a look. */
#define LOOK_NS (KITH_S / 2)
/* A save takes at most this share of the time. */
#define SAVE_SHARE 10
/* A signal that the first rank has not had after so many looks is this one's
 * alone. */
#define SIGNAL_LOOKS 4u

struct sim_saves {
    const struct sim_saving *options;
    char state_path[SIM_SAVE_PATH_BYTES], log_path[SIM_SAVE_PATH_BYTES];
    uint64_t build, experiment;
    struct sim_save_log log;
    struct sim_recall recall;
    uint64_t look_events;    /* the next look is before this event */
    kith_ns due_ns, took_ns; /* of the wall's clock: the next save; the last
                                one */
    kith_ns looked_ns;       /* of several ranks: the last look */
    uint64_t looked_events;
    unsigned signals;
    bool is_failing; /* the last save has failed, and that was said */
};

/* Not the clock of the day, which is set back now and then: a save would
 * wait for it. */
static kith_ns wall_ns(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        return 0;
    return (kith_ns)now.tv_sec * KITH_S + now.tv_nsec;
}

/* A signal may come at any instruction; it is looked at between events. */
static bool is_stopped(const struct sim_world *world)
{
    KITH_ASSERT(world->saves != NULL || world->options.saves == NULL);
    return world->options.stop && *world->options.stop;
}

/* Of several ranks the first one has somebody to tell. */
static void tell(const struct sim_world *world, const char *line)
{
    KITH_ASSERT(line[0] != '\0');
    if (world->options.notice)
        world->options.notice(line, world->options.arg);
}

/* ---- the log */

/* What cannot be written waits for the next save, which says so. */
void sim_saves_put(struct sim_world *world, const void *bytes, size_t size)
{
    struct sim_saves *saves = world->saves;
    KITH_ASSERT(!saves->recall.is_on);
    if (!sim_save_log_put(&saves->log, bytes, size))
        tell(world, "saving is given up: its log could not be written for too "
                    "long; the run goes on, and resumes from its last save");
}

/* Once the run has failed, zeros. */
void sim_saves_get(struct sim_world *world, void *bytes, size_t size)
{
    sim_recall_get(world, &world->saves->recall, bytes, size);
}

/* ---- a save */

/* All of it zeroed first: its padding is hashed, too. */
static struct sim_save_head head_of(const struct sim_world *world)
{
    const struct sim_saves *saves = world->saves;
    const struct kith_ranks *all = sim_ranks_all(world);
    struct sim_save_head head;
    KITH_ASSERT(!saves->recall.is_on);
    memset(&head, 0, sizeof head);
    head.ranks = all ? all->count : 1;
    head.rank = sim_ranks_self(world);
    head.build = saves->build;
    head.experiment = saves->experiment;
    head.events = sim_events(world);
    head.time_ns = sim_time(world);
    head.trace = sim_trace_hash(world);
    head.log_bytes = saves->log.chain.bytes;
    head.log_hash = sim_chain_hash(&saves->log.chain);
    if (saves->options->database)
        (void)kith_text_copy(head.database, sizeof head.database,
                             saves->options->database);
    return head;
}

/* Beside what it will replace; 0 or errno. */
static int write_state(struct sim_world *world, struct sim_save_writer *writer)
{
    struct kith_archive archive = {.move = sim_save_write, .arg = writer};
    struct sim_save_head head = head_of(world);
    int code = sim_save_log_sync(&world->saves->log);
    KITH_ASSERT(world->saves->log.written <= world->saves->log.chain.bytes);
    if (code == 0)
        code = sim_save_write_open(writer, world->saves->state_path);
    if (code != 0)
        return code;
    sim_state_move(world, &archive);
    if (archive.failed && writer->code == 0)
        writer->code = ENOMEM;
    return sim_save_write_finish(writer, &head);
}

/* Of all ranks: the first one that is not 0, and whose. */
static int worst_of(struct sim_world *world, int code, uint32_t *whose)
{
    const struct kith_ranks *all = sim_ranks_all(world);
    int worst = 0;
    KITH_ASSERT(code >= 0);
    *whose = 0;
    if (!all)
        return code;
    for (uint32_t rank = 0; rank < all->count; rank++) {
        int told = code;
        sim_ranks_share(world, rank, &told, sizeof told);
        if (worst == 0 && told != 0) {
            worst = told;
            *whose = rank;
        }
    }
    return worst;
}

/* Said once, until it works again. */
static void say_failed(struct sim_world *world, int code, uint32_t whose)
{
    struct sim_saves *saves = world->saves;
    char line[SIM_SAVE_PATH_BYTES + 256], who[32] = "";
    KITH_ASSERT(code > 0);
    if (saves->is_failing)
        return;
    saves->is_failing = true;
    if (sim_ranks_all(world))
        (void)snprintf(who, sizeof who, " by rank %u", whose);
    (void)snprintf(line, sizeof line,
                   "cannot save the run in %.600s%s: %s; it goes on, and is "
                   "tried again: free some space, or end it and go on from the "
                   "save before",
                   saves->options->folder, who, strerror(code));
    tell(world, line);
}

/* Every vector is at rest: items have run, what crosses to another rank is
 * there. */
static bool settle(struct sim_world *world)
{
    KITH_ASSERT(!sim_saves_recalls(world));
    sim_work_join_all(world);
    sim_work_settle_all(world);
    if (sim_ranks_all(world)) {
        sim_models_await_all(world);
        sim_ranks_compare(world, sim_trace_hash(world), "another run");
    }
    return sim_failure(world) == KITH_OK;
}

/* By all ranks or by none: all of them have it. */
static int publish(struct sim_world *world,
                   const struct sim_save_writer *writer, uint32_t *whose)
{
    const int own = sim_save_publish(writer);
    const int code = worst_of(world, own, whose);
    KITH_ASSERT(own == 0 || code != 0);
    if (own == 0 && code != 0)
        sim_save_withdraw(writer);
    return code;
}

/* true: there is a save of now. */
static bool save(struct sim_world *world)
{
    struct sim_saves *saves = world->saves;
    struct sim_save_writer writer;
    const kith_ns begun_ns = wall_ns();
    uint32_t whose;
    KITH_ASSERT(!saves->recall.is_on && sim_failure(world) == KITH_OK);
    if (!settle(world))
        return false;
    /* Rows that the save is past are read where it is not gone on from. */
    if (world->options.store)
        (void)kith_rundb_commit(world->options.store);
    const int own = write_state(world, &writer);
    int code = worst_of(world, own, &whose);
    if (sim_failure(world) != KITH_OK)
        code = EIO;
    if (code != 0 && own == 0)
        sim_save_abandon(&writer);
    if (code == 0)
        code = publish(world, &writer, &whose);
    if (code != 0 && sim_failure(world) == KITH_OK)
        say_failed(world, code, whose);
    saves->is_failing = saves->is_failing && code != 0;
    saves->took_ns = wall_ns() - begun_ns;
    return code == 0;
}

/* ---- when */

struct decision {
    uint64_t look_events;
    bool saves, stops;
};

/* Asked by the first rank alone: clocks of several machines differ. */
static bool is_due(const struct sim_saves *saves, kith_ns now_ns)
{
    return now_ns >= saves->due_ns;
}

/* Counted from the end of a save: a disk that is slow must not make the run
 * do nothing else. */
static void set_due(struct sim_saves *saves)
{
    const kith_ns least_ns = SAVE_SHARE * saves->took_ns;
    const kith_ns every_ns = saves->options->every_ns;
    KITH_ASSERT(saves->took_ns >= 0 && saves->options->every_ns > 0);
    saves->due_ns = wall_ns() + (every_ns > least_ns ? every_ns : least_ns);
}

/* As many events as LOOK_NS has of them, as far as the last ones say; a run
 * begins with some that are free: so twice as many as these at most. */
static uint64_t next_look(struct sim_world *world, kith_ns now_ns)
{
    struct sim_saves *saves = world->saves;
    const uint64_t events = sim_events(world);
    const uint64_t last = events - saves->looked_events;
    const double took_ns = (double)(now_ns - saves->looked_ns) + 1;
    const double ahead =
        fmin((double)last * (double)LOOK_NS / took_ns, 2 * (double)last);
    KITH_ASSERT(events >= saves->looked_events);
    saves->looked_ns = now_ns;
    saves->looked_events = events;
    return events + (ahead < LOOK_TRAINING_EVENTS ? LOOK_TRAINING_EVENTS
                                                  : (uint64_t)ahead);
}

/* The first rank's, which all take over. */
static struct decision decide(struct sim_world *world)
{
    const kith_ns now_ns = wall_ns();
    struct decision decision;
    KITH_ASSERT(world->saves->look_events <= sim_events(world) ||
                is_stopped(world));
    memset(&decision, 0, sizeof decision);
    decision.stops = is_stopped(world);
    decision.saves = decision.stops || is_due(world->saves, now_ns);
    if (!sim_ranks_all(world)) {
        decision.look_events =
            sim_events(world) +
            (world->work ? LOOK_TRAINING_EVENTS : LOOK_EVENTS);
        return decision;
    }
    decision.look_events = next_look(world, now_ns);
    sim_ranks_share(world, 0, &decision, sizeof decision);
    return decision;
}

/* One process is evaluated as it is then; of several there is no moment. */
static bool end_ranks(struct sim_world *world, bool is_saved)
{
    KITH_ASSERT(world->ranks != NULL);
    (void)sim_fail(world, KITH_ECLOSED,
                   "ended by a signal at %.6f s of virtual time; %s",
                   1e-9 * (double)sim_time(world),
                   is_saved ? "saved there: --resume goes on"
                            : "the save before it is the last one");
    return false;
}

/* While a save may still come of it: a rank that ended by itself would take
 * the others with it, and what they could have saved. A look is half a
 * second apart, so that nobody waits long. */
bool sim_saves_takes_signals(const struct sim_world *world)
{
    return world->saves && world->saves->signals < SIGNAL_LOOKS;
}

/* A signal of one rank alone is that rank's to end by, as it is without
 * saves: after some looks, for mpirun tells all of them, one after another. */
static bool look(struct sim_world *world)
{
    struct sim_saves *saves = world->saves;
    const struct decision decision = decide(world);
    bool is_saved = false;
    KITH_ASSERT(!saves->recall.is_on);
    if (sim_failure(world) != KITH_OK)
        return false;
    saves->look_events = decision.look_events;
    saves->signals += is_stopped(world) && !decision.stops;
    if (decision.saves) {
        is_saved = save(world);
        set_due(saves);
    }
    if (sim_failure(world) != KITH_OK)
        return false;
    return !(decision.stops && sim_ranks_all(world)) ||
           end_ranks(world, is_saved);
}

/* ---- going on */

/* Asked wherever an engine would look at vectors: there are none, and what
 * would come of the look stands in the log. */
bool sim_saves_recalls(const struct sim_world *world)
{
    return world->saves && world->saves->recall.is_on;
}

/* Such a run is not summarised: nobody has a model to score. One that ends
 * by itself before its save is not the run that was saved. */
bool sim_saves_unfinished(struct sim_world *world)
{
    if (!sim_saves_recalls(world))
        return false;
    sim_recall_fail(world, &world->saves->recall, "the run ends before it");
    return true;
}

/* For the line of progress: it says how far there is to go, for a large run
 * takes a while to catch up. */
kith_ns sim_saves_target_ns(const struct sim_world *world)
{
    return sim_saves_recalls(world) ? world->saves->recall.find.head.time_ns
                                    : 0;
}

static bool catch_up(struct sim_world *world)
{
    struct sim_saves *saves = world->saves;
    char line[128];
    if (!sim_recall_step(world, &saves->recall, is_stopped(world)))
        return false;
    if (saves->recall.is_on)
        return true;
    saves->looked_ns = wall_ns();
    saves->looked_events = sim_events(world);
    set_due(saves);
    (void)snprintf(line, sizeof line,
                   "going on from the save at %.6f s of virtual time",
                   1e-9 * (double)sim_time(world));
    tell(world, line);
    return true;
}

/* Of one process a signal is looked for before every event, of several at
 * looks alone: elsewhere ranks are not at the same event. */
bool sim_saves_step(struct sim_world *world)
{
    struct sim_saves *saves = world->saves;
    KITH_ASSERT(saves != NULL && saves->options != NULL);
    if (sim_failure(world) != KITH_OK)
        return false;
    if (saves->recall.is_on && !catch_up(world))
        return false;
    if (saves->recall.is_on)
        return true;
    const bool signalled = is_stopped(world) && !sim_ranks_all(world);
    if (sim_events(world) < saves->look_events && !signalled)
        return true;
    return look(world);
}

/* ---- beginning and end */

/* Of all that decides what the engine asks of vectors, and when. */
static uint64_t experiment_hash(const struct sim_world *world)
{
    const struct sim_options *options = &world->options;
    const struct kith_experiment *experiment = world->experiment;
    uint64_t hash = kith_hash_bytes(KITH_HASH_START, experiment->source,
                                    experiment->source_bytes);
    KITH_ASSERT(experiment->source != NULL && experiment->source_bytes > 0);
    hash = kith_hash_word(hash, experiment->seed);
    hash = kith_hash_word(hash, kith_experiment_hash(experiment));
    hash = kith_hash_word(hash, kith_experiment_files_hash(experiment));
    hash = kith_hash_word(hash, world->dim);
    hash = kith_dataset_hash(hash, options->dataset);
    hash = kith_hash_word(hash, (uint64_t)options->rows);
    hash = kith_hash_word(hash, sim_is_stored(world));
    return options->claims
               ? kith_hash_bytes(hash, options->claims, world->peer_count)
               : hash;
}

/* The folder is made, its parents are not, as those of --out are not. The
 * log is the first file that is opened, and its lock the folder's. */
static enum kith_err open_log(struct sim_world *world)
{
    struct sim_saves *saves = world->saves;
    const char *folder = saves->options->folder;
    int code = mkdir(folder, 0777) == 0 || errno == EEXIST ? 0 : errno;
    KITH_ASSERT(saves->log.fd < 0);
    if (code == 0)
        code = sim_save_log_open(&saves->log, saves->log_path);
    if (code == EWOULDBLOCK)
        return sim_fail(world, KITH_EBUSY,
                        "--save: another run is saved in %.600s; end it, or "
                        "choose another folder",
                        folder);
    /* A folder that is missing cannot be written, too. */
    return code == 0
               ? KITH_OK
               : sim_fail(world, code == ENOSPC ? KITH_ENOSPC : KITH_EPERM,
                          "--save: cannot write in the folder %.600s: "
                          "%s; make it, or choose another",
                          folder, strerror(code));
}

/* A save that is there is not written over. */
static enum kith_err begin_anew(struct sim_world *world)
{
    struct sim_saves *saves = world->saves;
    KITH_ASSERT(!saves->recall.find.found);
    if (!saves->options->resume && sim_save_is_there(saves->state_path))
        return sim_fail(world, KITH_EEXIST,
                        "--save: %.600s has a save already; go on from it with "
                        "--resume, remove it, or choose another",
                        saves->options->folder);
    if (saves->options->resume) {
        char line[SIM_SAVE_PATH_BYTES + 64];
        (void)snprintf(line, sizeof line,
                       "there is no save in %.600s yet: the run starts",
                       saves->options->folder);
        tell(world, line);
    }
    sim_chain_start(&saves->log.chain);
    const int code = sim_save_log_cut(&saves->log, 0);
    if (code == 0)
        return KITH_OK;
    return sim_fail(world, kith_file_error(code),
                    "--save: cannot write %.600s: %s; choose another folder",
                    saves->log_path, strerror(code));
}

/* A rank too many has made a log in another run's folder: nobody's. */
static void leave_as_it_was(const struct sim_saves *saves)
{
    struct stat log;
    if (saves->log.fd >= 0 && !sim_save_is_there(saves->state_path) &&
        fstat(saves->log.fd, &log) == 0 && log.st_size == 0)
        (void)unlink(saves->log_path);
}

/* Behind the ranks, who speak of what they have, and before any worker is
 * opened: a run that is caught up with opens none. Whatever was set up when
 * it fails is closed with the rest of the world. */
enum kith_err sim_saves_open(struct sim_world *world)
{
    const struct sim_saving *options = world->options.saves;
    const uint32_t rank = sim_ranks_self(world);
    KITH_ASSERT(world->saves == NULL);
    if (!options)
        return KITH_OK;
    struct sim_saves *saves = sim_alloc(world, 1, sizeof *saves);
    if (!saves)
        return KITH_ENOMEM;
    world->saves = saves;
    saves->options = options;
    saves->log.fd = -1;
    KITH_ASSERT(strlen(options->folder) < KITH_PATH_BYTES_MAX);
    (void)snprintf(saves->state_path, sizeof saves->state_path,
                   "%s/rank-%u.state", options->folder, rank);
    (void)snprintf(saves->log_path, sizeof saves->log_path, "%s/rank-%u.log",
                   options->folder, rank);
    saves->build = kith_build_hash(KITH_HASH_START);
    saves->experiment = experiment_hash(world);
    set_due(saves);
    saves->looked_ns = wall_ns();
    enum kith_err err = open_log(world);
    struct sim_save_find *find = &saves->recall.find;
    *find = (struct sim_save_find){.path = saves->state_path,
                                   .build = saves->build,
                                   .experiment = saves->experiment,
                                   .log = &saves->log};
    if (err == KITH_OK && options->resume)
        err = sim_save_find(world, find);
    saves->recall.log_path = saves->log_path;
    if (err == KITH_OK)
        err = find->found ? sim_recall_begin(world, &saves->recall)
                          : begin_anew(world);
    if (err != KITH_OK)
        leave_as_it_was(saves);
    return err;
}

void sim_saves_close(struct sim_world *world)
{
    struct sim_saves *saves = world->saves;
    KITH_ASSERT(saves == NULL || saves->options != NULL);
    if (!saves)
        return;
    sim_save_read_close(&saves->recall.find.state);
    sim_save_log_close(&saves->log);
}

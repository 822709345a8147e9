/* Conservative windows: the events of one run on several threads.
 *
 *   division   some of the peers, a world of their own with its queue, packets,
 *              outbox and links; a link between two divisions has an end in
 *              each, and each end is the only one that its peer ever touches
 *   lookahead  L, the least latency between peers of two divisions
 *   window     [t, t + L), t the earliest event of all: what a division sends
 *              another one in it arrives in a later one; shorter where so many
 *              events are in it that their notes would take much memory
 *
 * Each thread takes what the others have sent it in the last window, then the
 * events of its division in this one. What is one for the run (trace, database,
 * use of channels) is noted and told in the order of one thread (notes.c), so
 * that nothing that comes of a run says how many threads took its events; the
 * thread that is the first at the end of a window tells what the last one said
 * for the run, while it would wait. What is said in a window has a side of two,
 * so that threads meet once a window.
 *
 * The run's own events (an evaluation, stop.time) end a window. For them, and
 * for the end, the world becomes whole again: the loop of engine.c goes on with
 * it. The end is the moment when the last peer has finished, so a division
 * whose peers all have stops there; where every division has come to that
 * within one window the latest of these moments is the run's.
 *
 * Source: Chandy and Misra, "Distributed simulation", 1979; Lubachevsky,
 * "Efficient distributed event-driven simulations of multiple-loop networks",
 * CACM 1989 (bounded lag).
 * Test: integration/test_sim_windows.sh. */
#include "sim/windows_state.h"

#include <stdio.h>

#include "kith/assert.h"
#include "kith/text.h"

/* An evaluation every so many windows at most: the world is made whole for it.
 */
#define WINDOWS_LEAST 8
/* So many windows are looked at together; where a thread has had fewer events
 * in each, waiting for the others takes longer than they do. */
#define LOOKED_AT 64u
#define EVENTS_LEAST 256u
/* So many events make windows shorter: each notes 60 bytes or so. */
#define EVENTS_MOST (1u << 18)
/* So many events for each link between two evaluations: it is handed to a
 * division and back, which takes as long as some events. */
#define EVENTS_A_LINK 4u
/* A thread that waits for the others looks so often, a tenth of a millisecond,
 * then sleeps: to be woken takes as long. Where they have no core each, one of
 * them may need this one's. */
#define PATIENCE 200000u
#define PATIENCE_SHARED 4000u

/* ---- windows */

/* Until all threads are here. */
static void meet(struct sim_windows *windows)
{
    const unsigned meeting = atomic_load(&windows->meeting);
    KITH_ASSERT(windows->count > 1);
    if (atomic_fetch_add(&windows->arrived, 1) + 1 == windows->count) {
        atomic_store(&windows->arrived, 0);
        pthread_mutex_lock(&windows->lock);
        atomic_store(&windows->meeting, meeting + 1);
        pthread_cond_broadcast(&windows->met);
        pthread_mutex_unlock(&windows->lock);
        return;
    }
    for (unsigned i = 0; i < windows->patience; i++)
        if (atomic_load(&windows->meeting) != meeting)
            return;
    pthread_mutex_lock(&windows->lock);
    while (atomic_load(&windows->meeting) == meeting)
        pthread_cond_wait(&windows->met, &windows->lock);
    pthread_mutex_unlock(&windows->lock);
}

/* What a thread has done in a window goes up to the run. */
static void gather(struct sim_world *world,
                   const struct sim_window_state *state)
{
    KITH_ASSERT(state->steps_done <= state->events);
    world->events += state->events;
    world->steps_done += state->steps_done;
    world->report.messages += state->messages;
    world->report.handshakes += state->handshakes;
    world->report.bulk_bytes += state->bulk_bytes;
    sim_engine_reach(world, state->now_ns);
}

/* From here on one thread is faster. */
static void give_up(struct sim_world *world, const char *why)
{
    struct sim_windows *windows = world->windows;
    struct sim_report *report = &world->report;
    char when[32];
    KITH_ASSERT(!windows->is_off);
    windows->is_off = windows->leaves = true;
    kith_text_from_time(sim_time(world), when, sizeof when);
    (void)snprintf(report->windows_text, sizeof report->windows_text,
                   "one thread takes them from %s on: %s", when, why);
}

static void give_up_short(struct sim_world *world)
{
    char why[96];
    KITH_ASSERT(world->windows->count > 1);
    (void)snprintf(why, sizeof why,
                   "there are fewer than %u for each of %u threads in a window",
                   EVENTS_LEAST, world->windows->count);
    give_up(world, why);
}

static void give_up_divided(struct sim_world *world)
{
    char why[96];
    KITH_ASSERT(!world->windows->leaves);
    (void)snprintf(why, sizeof why,
                   "there are fewer than %u for each of %u links between two "
                   "evaluations",
                   EVENTS_A_LINK, sim_link_count(world));
    give_up(world, why);
}

/* Of the next window, where the last one had so many events. */
static void set_length(struct sim_windows *windows, uint64_t events)
{
    KITH_ASSERT(windows->length_ns > 0);
    if (events > EVENTS_MOST && windows->length_ns > 1)
        windows->length_ns /= 2;
    else if (events < EVENTS_MOST / 4)
        windows->length_ns = windows->length_ns < windows->lookahead_ns / 2
                                 ? 2 * windows->length_ns
                                 : windows->lookahead_ns;
}

/* The run's thread, at what all have said on this side. */
static void look(struct sim_world *world, unsigned side)
{
    struct sim_windows *windows = world->windows;
    const uint64_t before = world->events;
    KITH_ASSERT(windows->whole == world);
    for (unsigned i = 0; i < windows->count; i++)
        gather(world, &windows->states[side][i]);
    const uint64_t events = world->events - before;
    windows->events += events;
    set_length(windows, events);
    if (world->report.windows - windows->looked_from >= LOOKED_AT) {
        if (windows->events < LOOKED_AT * EVENTS_LEAST * windows->count)
            give_up_short(world);
        windows->looked_from = world->report.windows;
        windows->events = 0;
    }
    if (world->options.stop && *world->options.stop)
        windows->leaves = true;
    sim_progress(world);
}

/* The first event that this thread knows of, its own or one that it has sent.
 */
static kith_ns first_known(struct sim_world *world, unsigned side)
{
    const struct sim_division *division = world->division;
    struct sim_event first;
    kith_ns first_ns =
        sim_engine_first(world, &first) ? first.time_ns : KITH_NEVER;
    for (unsigned i = 0; i < division->count; i++) {
        const struct sim_mail *mail = sim_mail_of(division, side, i);
        if (mail->count > 0 && mail->first_ns < first_ns)
            first_ns = mail->first_ns;
    }
    return first_ns;
}

/* Written before a meeting, read after it and until the next one but one. */
static void say(struct sim_windows *windows, unsigned number, unsigned side)
{
    struct sim_world *world = windows->divisions[number];
    KITH_ASSERT(number < windows->count && world->faults_done == 0);
    KITH_ASSERT(!world->nonfinite);
    windows->states[side][number] = (struct sim_window_state){
        .next_ns = first_known(world, side),
        .now_ns = sim_time(world),
        .at = sim_moment(world),
        .ending = sim_is_ending(world),
        .over = sim_ended(world),
        .events = world->events,
        .steps_done = world->steps_done,
        .messages = world->report.messages,
        .handshakes = world->report.handshakes,
        .bulk_bytes = world->report.bulk_bytes,
        .length_ns = number == 0 ? windows->length_ns : 0,
        .leaves = number == 0 && windows->leaves,
    };
    world->events = world->steps_done = 0;
    world->report = (struct sim_report){0};
}

/* All threads come to the same answer: the end of the next window; none: 0. */
static kith_ns next_window(const struct sim_windows *windows, unsigned side)
{
    const struct sim_window_state *states = windows->states[side];
    kith_ns next_ns = KITH_NEVER;
    KITH_ASSERT(windows->lookahead_ns > 0);
    for (unsigned i = 0; i < windows->count; i++)
        if (states[i].next_ns < next_ns)
            next_ns = states[i].next_ns;
    if (states[0].leaves || next_ns >= windows->until_ns)
        return 0;
    const kith_ns ends_ns = kith_ns_add(next_ns, states[0].length_ns);
    return ends_ns < windows->until_ns ? ends_ns : windows->until_ns;
}

/* Whether the last window is over: a division that has stopped goes on up to
 * where the run is, and no further. */
static bool close_window(struct sim_windows *windows, unsigned number,
                         unsigned side, kith_ns end_ns)
{
    unsigned ending = 0, latest = 0;
    KITH_ASSERT(end_ns > 0);
    for (unsigned i = 0; i < windows->count; i++) {
        const struct sim_window_state *state = &windows->states[side][i],
                                      *last = &windows->states[side][latest];
        if (state->over)
            return true;
        ending += state->ending;
        if (state->at.time_ns > last->at.time_ns ||
            (state->at.time_ns == last->at.time_ns &&
             state->at.peer > last->at.peer))
            latest = i;
    }
    if (ending == 0)
        return false;
    const bool all = ending == windows->count;
    const struct sim_moment end = {.time_ns = end_ns};
    if (!all || number != latest)
        sim_engine_run(windows->divisions[number],
                       all ? windows->states[side][latest].at : end, true);
    meet(windows);
    return true;
}

/* A window up to `end_ns`, and what the last one said for the run; `taken`: how
 * many have been. */
static void take_window(struct sim_windows *windows, unsigned number,
                        unsigned side, kith_ns end_ns, uint64_t taken)
{
    struct sim_world *world = windows->divisions[number];
    struct sim_world *whole = windows->whole;
    const struct sim_moment end = {.time_ns = end_ns};
    uint_fast64_t told = taken;
    KITH_ASSERT(side < 2);
    world->division->side = (uint8_t)side;
    sim_engine_run(world, end, false);
    if (number == 0) {
        whole->report.windows++;
        look(whole, 1 - side);
    }
    say(windows, number, side);
    if (atomic_compare_exchange_strong(&windows->told, &told, taken + 1))
        sim_notes_tell(whole, windows->divisions, 1 - side);
    meet(windows);
}

/* The same loop on each thread. Between two meetings a thread writes on one
 * side what the others read after the second one; what they have said before
 * the first one, on the other side, stands still. */
static void take_windows(struct sim_windows *windows, unsigned number)
{
    struct sim_world *whole = windows->whole;
    unsigned side = 0;
    KITH_ASSERT(number < windows->count);
    say(windows, number, side);
    meet(windows);
    bool last = false;
    for (uint64_t taken = 0;; taken++) {
        sim_mail_take(windows, number, side);
        sim_notes_tell_use(whole, windows->divisions, number, side);
        const kith_ns ends_ns = last ? 0 : next_window(windows, side);
        if (ends_ns == 0)
            break;
        side = 1 - side;
        take_window(windows, number, side, ends_ns, taken);
        last = close_window(windows, number, side, ends_ns);
    }
    if (last) /* what was done past the end of the window */
        say(windows, number, 1 - side);
    meet(windows); /* all have read what the run's thread writes next */
    if (number > 0)
        return;
    sim_notes_tell(whole, windows->divisions, side);
    look(whole, side);
    if (last)
        look(whole, 1 - side);
    atomic_store(&windows->told, 0);
}

/* ---- threads */

struct start {
    struct sim_windows *windows;
    unsigned number;
};

/* The run's thread takes the windows of a stretch with the others, and carries
 * out what is between two stretches alone. */
static bool next_stretch(struct sim_windows *windows, uint64_t *stretch)
{
    pthread_mutex_lock(&windows->lock);
    while (windows->stretch == *stretch && !windows->stop)
        pthread_cond_wait(&windows->begins, &windows->lock);
    *stretch = windows->stretch;
    pthread_mutex_unlock(&windows->lock);
    return !windows->stop;
}

static void begin_stretch(struct sim_windows *windows, bool stop)
{
    KITH_ASSERT(!windows->stop);
    pthread_mutex_lock(&windows->lock);
    windows->stretch++;
    windows->stop = stop;
    pthread_cond_broadcast(&windows->begins);
    pthread_mutex_unlock(&windows->lock);
}

static void *thread_main(void *argument)
{
    const struct start *start = argument;
    uint64_t stretch = 0;
    KITH_ASSERT(start->number > 0 && start->number < start->windows->count);
    while (next_stretch(start->windows, &stretch))
        take_windows(start->windows, start->number);
    return NULL;
}

/* Started once: a stretch may be short. */
static enum kith_err threads_start(struct sim_world *world)
{
    struct sim_windows *windows = world->windows;
    struct start *starts = sim_alloc(world, windows->count, sizeof *starts);
    KITH_ASSERT(windows->started == 0);
    if (!starts)
        return KITH_ENOMEM;
    pthread_mutex_init(&windows->lock, NULL);
    pthread_cond_init(&windows->met, NULL);
    pthread_cond_init(&windows->begins, NULL);
    windows->has_threads = true;
    for (unsigned i = 1; i < windows->count; i++) {
        starts[i] = (struct start){.windows = windows, .number = i};
        if (pthread_create(&windows->threads[i], NULL, thread_main,
                           &starts[i]) != 0)
            return sim_fail(world, KITH_EBUSY, "cannot start thread %u of %u",
                            i + 1, windows->count);
        windows->started = i;
    }
    return KITH_OK;
}

void sim_windows_run(struct sim_world *world)
{
    struct sim_windows *windows = world->windows;
    if (windows->is_off || !sim_divisions_are_worth(world)) {
        windows->is_off = true;
        return;
    }
    if (sim_divide(world) != KITH_OK)
        return;
    const uint64_t before = world->events;
    begin_stretch(windows, false);
    take_windows(windows, 0);
    sim_join(world);
    if (sim_divisions_are_worth(world) && !windows->leaves &&
        world->events - before <
            EVENTS_A_LINK * (uint64_t)sim_link_count(world))
        give_up_divided(world);
}

/* ---- whether windows are of use */

/* What needs one thread, as the user has said it; NULL: nothing. */
static const char *obstacle(const struct sim_world *world)
{
    const struct sim_options *options = &world->options;
    KITH_ASSERT(world->dim == 0);
    const struct {
        bool stands;
        const char *name;
    } all[] = {
        {world->central != NULL || world->experiment->central.present,
         "a central method"},
        {world->vector_bytes > 0, "model.dim"},
        {world->ranks != NULL, "several ranks"},
        {world->channels != NULL, "wire: full"},
        {world->hosts != NULL, "hosts:"},
        {world->sharing != NULL, "network.sharing: fair"},
        {world->ledger != NULL, "a check of what is conserved"},
        {sim_is_watched(world), "faults: or a check of what is live"},
        {options->claims != NULL, "--dishonest"},
        {world->timeline != NULL, "--timeline"},
        {options->trace_path != NULL, "--trace"},
        {world->saves != NULL, "--save"},
        {options->observe != NULL, "an observer of each event"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].stands)
            return all[i].name;
    return NULL;
}

/* Jitter, loss and lines only add to a latency. */
static kith_ns lookahead_of(const struct sim_world *world)
{
    const struct kith_latencies *latencies =
        &world->experiment->network.latencies;
    const uint32_t regions = sim_regions(world);
    if (regions == 0) /* the least of all classes */
        return world->experiment->network.link.latency_ns;
    kith_ns least_ns = KITH_NEVER;
    KITH_ASSERT(world->windows->count <= regions);
    for (uint32_t from = 0; from < regions; from++)
        for (uint32_t to = 0; to < regions; to++) {
            const kith_ns ns =
                latencies->latency_ns[(size_t)from * latencies->regions + to];
            if (sim_division_of(world, from) != sim_division_of(world, to) &&
                ns < least_ns)
                least_ns = ns;
        }
    return least_ns;
}

/* A region is of one division, so there are no more of these than regions. */
static unsigned count_of(const struct sim_world *world)
{
    const uint32_t regions = sim_regions(world);
    const uint32_t most = regions > 0 ? regions : world->peer_count;
    KITH_ASSERT(world->options.threads <= SIM_THREADS_MAX);
    return world->options.threads < most ? world->options.threads : most;
}

/* One thread, and why. */
static enum kith_err refuse(struct sim_world *world, const char *why)
{
    struct sim_report *report = &world->report;
    KITH_ASSERT(why != NULL);
    (void)snprintf(report->windows_text, sizeof report->windows_text,
                   "one thread takes all of them, because of %s", why);
    world->windows = NULL;
    return KITH_OK;
}

/* Too little time passes in a window: by name. */
static enum kith_err refuse_short(struct sim_world *world)
{
    char window[32], evaluate[32], why[100];
    const struct kith_experiment *experiment = world->experiment;
    const kith_ns lookahead_ns = world->windows->lookahead_ns;
    if (lookahead_ns <= 0)
        return refuse(world, experiment->network.latencies.regions > 0
                                 ? "regions with no latency between them"
                                 : "network.latency: 0");
    kith_text_from_time(lookahead_ns, window, sizeof window);
    kith_text_from_time(experiment->evaluate_ns, evaluate, sizeof evaluate);
    (void)snprintf(why, sizeof why, "evaluate: %s, where a latency is %s",
                   evaluate, window);
    return refuse(world, why);
}

/* After all other parts, of which a division has copies. Threads of a run with
 * vectors run the items of its workers. */
enum kith_err sim_windows_open(struct sim_world *world)
{
    const struct kith_experiment *experiment = world->experiment;
    struct sim_report *report = &world->report;
    char window[32];
    KITH_ASSERT(world->windows == NULL);
    if (world->options.threads < 2 || world->dim > 0)
        return KITH_OK;
    const char *const why = obstacle(world);
    if (why)
        return refuse(world, why);
    struct sim_windows *windows = sim_alloc(world, 1, sizeof *windows);
    if (!windows)
        return KITH_ENOMEM;
    world->windows = windows;
    windows->whole = world;
    windows->count = count_of(world);
    if (windows->count < 2)
        return refuse(world, "one peer, or one region");
    windows->patience =
        windows->count <= world->options.cores ? PATIENCE : PATIENCE_SHARED;
    windows->lookahead_ns = lookahead_of(world);
    if (windows->lookahead_ns <= 0 ||
        (experiment->evaluate_ns > 0 &&
         experiment->evaluate_ns / WINDOWS_LEAST < windows->lookahead_ns))
        return refuse_short(world);
    const kith_ns step_ns = experiment->compute.step_ns;
    windows->length_ns = step_ns > 0 && step_ns < windows->lookahead_ns
                             ? step_ns
                             : windows->lookahead_ns;
    kith_text_from_time(windows->lookahead_ns, window, sizeof window);
    (void)snprintf(report->windows_text, sizeof report->windows_text,
                   "%u threads, windows of up to %s", windows->count, window);
    const enum kith_err err = sim_divisions_open(world);
    return err == KITH_OK ? threads_start(world) : err;
}

void sim_windows_close(struct sim_world *world)
{
    struct sim_windows *windows = world->windows;
    if (!windows)
        return;
    KITH_ASSERT(windows->started < windows->count);
    if (windows->has_threads) {
        begin_stretch(windows, true);
        for (unsigned i = 1; i <= windows->started; i++)
            pthread_join(windows->threads[i], NULL);
        pthread_cond_destroy(&windows->begins);
        pthread_cond_destroy(&windows->met);
        pthread_mutex_destroy(&windows->lock);
    }
    sim_divisions_close(world);
    world->windows = NULL;
}

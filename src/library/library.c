/* libkith: see kith/kith.h. A handle is a thread that runs kith_peer_run() and
 * the caller's seat in it (kith/caller.h).
 *
 *   kith_open    file -> experiment, keys, members; thread; until it is ready
 *   kith_step    the seat's
 *   kith_close   the vectors once more; stop; join
 *
 * Nothing here is global; handles.c knows which are open. */
#include "kith/kith.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kith/assert.h"
#include "kith/build.h"
#include "kith/caller.h"
#include "kith/member_file.h"
#include "kith/text.h"
#include "handles.h"
#include "in_lab.h"
#include "program_fit.h"

/* More than any framework makes of a model. */
#define KITH_VECTORS_MAX 65536u
#define API __attribute__((visibility("default")))

enum stage { OPENING, READY, ENDED };

struct kith_handle {
    struct kith_member_file member;
    struct kith_outside *vectors;
    struct kith_outside *sources; /* (count) in place of them; NULL: never */
    uint32_t count;
    uint32_t buffers; /* values, the last ones */
    struct kith_options options;
    uint32_t incarnation;
    bool resumes; /* from its save folder, where it has saved */
    bool adopts;
    char save[KITH_PATH_BYTES_MAX];
    struct in_lab lab; /* where there is no peer file */
    uint64_t refills;  /* of the vectors, with an average that is evaluated */

    struct kith_caller *caller;
    struct kith_fork_gate *fork_gate;
    pthread_t thread;

    pthread_mutex_t mutex; /* guards the rest */
    pthread_cond_t changed;
    enum stage stage;
    bool is_finite;        /* the vectors were, at the start */
    enum kith_err err;     /* of the run */
    enum kith_err refused; /* a call */
    struct kith_peer_report report;
    char error[KITH_PEER_ERROR_BYTES];
};

static void say(char *error, size_t size, const char *text)
{
    if (error != NULL && size > 0)
        (void)snprintf(error, size, "%s", text);
}

API const char *kith_version(void)
{
    return kith_build();
}

/* ---- the run, on its own thread */

static void log_line(void *user, const char *line)
{
    const struct kith_handle *peer = user;
    if (peer->options.log == NULL)
        return;
    kith_fork_gate_rest(peer->fork_gate);
    peer->options.log(peer->options.user, line);
    kith_fork_gate_resume(peer->fork_gate);
}

static void go_to(struct kith_handle *peer, enum stage stage)
{
    pthread_mutex_lock(&peer->mutex);
    peer->stage = stage;
    pthread_cond_broadcast(&peer->changed);
    pthread_mutex_unlock(&peer->mutex);
}

/* Everything is open, and the caller waits for on_start in kith_open(): nobody
 * else touches the vectors. */
static void on_open(void *user)
{
    struct kith_handle *peer = user;
    peer->is_finite = kith_caller_ready(peer->caller);
}

static void on_start(void *user)
{
    go_to(user, READY);
}

static kith_ns on_ready(void *user)
{
    on_open(user);
    on_start(user);
    return kith_host_now();
}

static void *run(void *arg)
{
    struct kith_handle *peer = arg;
    const struct kith_member_file *member = &peer->member;
    struct kith_peer_options options;
    if (peer->lab.is_here) {
        kith_speaker_options(peer->lab.speaker, &options);
        options.caller = peer->caller;
        options.base = peer->options.base;
        options.fork_gate = peer->fork_gate;
        peer->err = kith_peer_run(&options, &peer->report, peer->error);
        kith_speaker_end(peer->lab.speaker, peer->err, &peer->report,
                         peer->error);
        go_to(peer, ENDED);
        return NULL;
    }
    kith_peer_options_default(&options);
    options.experiment = &member->experiment;
    options.identity = &member->identity;
    options.trust = &member->trust;
    options.keys_folder = member->file.identity;
    options.self = member->file.rank;
    options.members = member->members;
    options.listen = member->file.listen;
    options.save = peer->save;
    options.incarnation = peer->incarnation;
    options.resume = peer->resumes;
    options.adopt = peer->adopts;
    options.wait_members = member->file.wait.members;
    options.wait_ns = member->file.wait.for_ns;
    options.caller = peer->caller;
    options.base = peer->options.base;
    options.fork_gate = peer->fork_gate;
    options.user = peer;
    options.on_log = log_line;
    options.on_ready = on_ready;
    peer->err = kith_peer_run(&options, &peer->report, peer->error);
    go_to(peer, ENDED);
    return NULL;
}

/* ---- opening */

static bool take_vectors(struct kith_handle *peer,
                         const struct kith_vector *vectors, uint32_t count)
{
    static const enum kith_outside_dtype dtypes[] = {
        [KITH_FLOAT32] = KITH_OUTSIDE_FLOAT32,
        [KITH_BFLOAT16] = KITH_OUTSIDE_BFLOAT16,
        [KITH_FLOAT16] = KITH_OUTSIDE_FLOAT16};
    uint64_t sum = 0;
    if (vectors == NULL || count == 0 || count > KITH_VECTORS_MAX) {
        (void)snprintf(peer->error, sizeof peer->error,
                       "vectors: found %u; allowed: 1 to %u", count,
                       KITH_VECTORS_MAX);
        return false;
    }
    peer->vectors = calloc(count, sizeof *peer->vectors);
    if (peer->vectors == NULL) {
        say(peer->error, sizeof peer->error, "out of memory");
        return false;
    }
    peer->count = count;
    for (uint32_t i = 0; i < count; i++) {
        const struct kith_vector *vector = &vectors[i];
        if ((vector->data == NULL && vector->count > 0) ||
            vector->dtype > KITH_FLOAT16 ||
            vector->count > KITH_PARAMETERS_MAX - sum) {
            (void)snprintf(peer->error, sizeof peer->error,
                           "vectors[%u]: data %p, count %" PRIu64
                           ", dtype %u; allowed: data, KITH_FLOAT32, "
                           "KITH_BFLOAT16 or KITH_FLOAT16, %.0f values in all",
                           i, vector->data, vector->count, vector->dtype,
                           (double)KITH_PARAMETERS_MAX);
            return false;
        }
        const bool is_buffer = vector->role == KITH_BUFFER;
        if (vector->role > KITH_BUFFER || (!is_buffer && peer->buffers > 0)) {
            (void)snprintf(peer->error, sizeof peer->error,
                           "vectors[%u]: role %u; allowed: KITH_TRAINED, and "
                           "behind the last of those KITH_BUFFER",
                           i, vector->role);
            return false;
        }
        peer->buffers += is_buffer ? (uint32_t)vector->count : 0;
        sum += vector->count;
        peer->vectors[i] = (struct kith_outside){
            vector->data, (size_t)vector->count, dtypes[vector->dtype]};
    }
    if (sum == 0)
        say(peer->error, sizeof peer->error, "vectors: they have no values");
    return sum > 0;
}

/* Starts are counted in the save folder, as those of `kith peer`, so that no
 * exchange is named twice. */
static bool count_start(struct kith_handle *peer)
{
    const struct kith_member_file *member = &peer->member;
    const char *folder = member->file.save;
    if (kith_start_count(folder, member->experiment.name, &peer->incarnation,
                         peer->error) != KITH_OK)
        return false;
    const int length = snprintf(peer->save, sizeof peer->save, "%s/%s.save",
                                folder, member->experiment.name);
    peer->resumes =
        peer->options.start != KITH_START_OWN && peer->incarnation > 0;
    peer->adopts = peer->resumes || peer->options.start == KITH_START_ADOPT;
    return length > 0 && (size_t)length < sizeof peer->save;
}

static void free_handle(struct kith_handle *peer)
{
    kith_caller_close(peer->caller);
    kith_fork_gate_close(peer->fork_gate);
    kith_in_lab_close(&peer->lab);
    kith_member_file_close(&peer->member);
    pthread_cond_destroy(&peer->changed);
    pthread_mutex_destroy(&peer->mutex);
    free(peer->vectors);
    free(peer->sources);
    free(peer);
}

static bool open_all(struct kith_handle *peer, const char *peer_file,
                     const struct kith_vector *vectors, uint32_t count)
{
    const struct kith_listener listener = {peer, on_open, on_start, log_line};
    struct kith_member_file *member = &peer->member;
    if (!take_vectors(peer, vectors, count))
        return false;
    const enum kith_err err =
        peer_file == NULL ? kith_in_lab_take(&peer->lab, member, peer->error)
                          : kith_member_file_open(peer_file, KITH_WORLD_PROGRAM,
                                                  member, peer->error);
    if (err != KITH_OK ||
        !kith_program_fit(&member->experiment, member->file.experiment,
                          kith_outside_count(peer->vectors, peer->count),
                          peer->error))
        return false;
    member->experiment.model_config.buffers = peer->buffers;
    if (peer->lab.is_here
            ? kith_in_lab_begin(&peer->lab, &listener, peer->vectors,
                                peer->count, peer->error) != KITH_OK
            : !count_start(peer))
        return false;
    if (kith_caller_open(peer->vectors, peer->count, &peer->caller) !=
            KITH_OK ||
        kith_fork_gate_open(&peer->fork_gate) != KITH_OK) {
        say(peer->error, sizeof peer->error, "out of memory");
        return false;
    }
    if (!kith_handle_add(peer, peer->fork_gate, &peer->member.identity)) {
        (void)snprintf(peer->error, sizeof peer->error,
                       "found %u open handles; allowed: %u in a process; close "
                       "one",
                       KITH_HANDLES_MAX, KITH_HANDLES_MAX);
        return false;
    }
    return true;
}

/* All signals are the caller's threads'. */
static bool start(struct kith_handle *peer)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(&peer->thread, NULL, run, peer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        (void)snprintf(peer->error, sizeof peer->error,
                       "cannot start a thread: %s", strerror(code));
        kith_handle_remove(peer);
        return false;
    }
    pthread_mutex_lock(&peer->mutex);
    while (peer->stage == OPENING)
        pthread_cond_wait(&peer->changed, &peer->mutex);
    const bool ready = peer->stage == READY;
    pthread_mutex_unlock(&peer->mutex);
    if (!ready) {
        pthread_join(peer->thread, NULL);
        kith_handle_remove(peer);
    }
    return ready;
}

API kith_peer *kith_open(const char *peer_file,
                         const struct kith_vector *vectors, uint32_t count,
                         const struct kith_options *options, char *error,
                         size_t error_size)
{
    struct kith_handle *peer = calloc(1, sizeof *peer);
    if (peer == NULL) {
        say(error, error_size, "out of memory");
        return NULL;
    }
    pthread_mutex_init(&peer->mutex, NULL);
    pthread_cond_init(&peer->changed, NULL);
    const size_t given = options == NULL ? 0
                         : options->size < sizeof peer->options
                             ? options->size
                             : sizeof peer->options;
    if (given > 0)
        memcpy(&peer->options, options, given);
    bool opened = false;
    if (peer->options.start > KITH_START_ADOPT)
        say(peer->error, sizeof peer->error,
            "options.start: allowed: KITH_START_AUTO, _OWN or _ADOPT");
    else
        opened = open_all(peer, peer_file, vectors, count) &&
                 (peer->lab.average != NULL || start(peer));
    if (opened) {
        kith_handle_leave(peer);
        return peer;
    }
    say(error, error_size, peer->error);
    free_handle(peer);
    return NULL;
}

/* ---- steps */

static void leave(kith_peer *const *peer)
{
    kith_handle_leave(*peer);
}

/* kith's own thread, in a log: it would wait for itself. */
static bool enter(kith_peer *peer, const char *call)
{
    if (!kith_handle_enter(peer, call))
        return false;
    if (!pthread_equal(pthread_self(), peer->thread))
        return true;
    kith_handle_leave(peer);
    return false;
}

/* To the end of the function: `peer` is open, and this thread's alone. */
#define IN_CALL(peer, failed)                                                  \
    if (!enter(peer, __func__))                                                \
        return failed;                                                         \
    __attribute__((cleanup(leave))) kith_peer *const in_call = peer

/* The averaged model, to be evaluated as it is. */
static int no_turn(struct kith_handle *peer)
{
    peer->refills++;
    kith_in_lab_refill(&peer->lab, peer->vectors, peer->count);
    return KITH_OVER;
}

static int turn(struct kith_handle *peer, enum kith_turn turn)
{
    if (turn == KITH_TURN_TRAIN)
        return KITH_GOES_ON;
    if (turn == KITH_TURN_LATE)
        return KITH_LATE;
    pthread_mutex_lock(&peer->mutex);
    const bool failed = peer->stage == ENDED && peer->err != KITH_OK;
    pthread_mutex_unlock(&peer->mutex);
    return failed ? KITH_FAILED : KITH_OVER;
}

API int kith_step(kith_peer *peer, double loss, uint32_t timeout_ms)
{
    IN_CALL(peer, KITH_FAILED);
    return peer->lab.average != NULL
               ? no_turn(peer)
               : turn(peer, kith_caller_step(peer->caller, loss,
                                             (kith_ns)timeout_ms * KITH_MS));
}

API int kith_wait(kith_peer *peer, uint32_t timeout_ms)
{
    IN_CALL(peer, KITH_FAILED);
    return peer->lab.average != NULL
               ? no_turn(peer)
               : turn(peer, kith_caller_wait(peer->caller,
                                             (kith_ns)timeout_ms * KITH_MS));
}

API int kith_pause(kith_peer *peer, uint32_t timeout_ms)
{
    IN_CALL(peer, KITH_FAILED);
    return peer->lab.average != NULL
               ? no_turn(peer)
               : turn(peer, kith_caller_pause(peer->caller,
                                              (kith_ns)timeout_ms * KITH_MS));
}

static enum kith_err read_from(struct kith_handle *peer,
                               const void *const *data, uint32_t count)
{
    if (data == NULL) {
        kith_caller_read_from(peer->caller, NULL);
        return KITH_OK;
    }
    if (count != peer->count)
        return kith_text_fail(peer->error, sizeof peer->error, KITH_EINVAL,
                              "kith_read_from(): found %u vectors; allowed: "
                              "the %u that were opened",
                              count, peer->count);
    for (uint32_t i = 0; i < count; i++)
        if (data[i] == NULL && peer->vectors[i].count > 0)
            return kith_text_fail(peer->error, sizeof peer->error, KITH_EINVAL,
                                  "kith_read_from(): data[%u] is NULL", i);
    if (peer->sources == NULL)
        peer->sources = calloc(count, sizeof *peer->sources);
    if (peer->sources == NULL)
        return kith_text_fail(peer->error, sizeof peer->error, KITH_ENOMEM,
                              "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        peer->sources[i] = peer->vectors[i];
        peer->sources[i].data = (void *)(uintptr_t)data[i]; /* read alone */
    }
    kith_caller_read_from(peer->caller, peer->sources);
    return KITH_OK;
}

API int kith_read_from(kith_peer *peer, const void *const *data, uint32_t count)
{
    IN_CALL(peer, KITH_FAILED);
    const enum kith_err err = read_from(peer, data, count);
    if (err != KITH_OK)
        peer->refused = err;
    return err == KITH_OK ? 0 : KITH_FAILED;
}

API uint64_t kith_writes(kith_peer *peer)
{
    IN_CALL(peer, 0);
    return kith_caller_counts(peer->caller).writes + peer->refills;
}

/* In a lab: the run has been told to end, and does. */
static void await_end(struct kith_handle *peer)
{
    pthread_mutex_lock(&peer->mutex);
    while (peer->stage != ENDED)
        pthread_cond_wait(&peer->changed, &peer->mutex);
    pthread_mutex_unlock(&peer->mutex);
}

static enum kith_err report(struct kith_handle *peer,
                            const struct kith_score *score)
{
    if (score->accuracy < 0 || score->accuracy > 1)
        return kith_text_fail(peer->error, sizeof peer->error, KITH_EINVAL,
                              "accuracy: found %g; allowed: a share, 0 to 1",
                              score->accuracy);
    if (peer->lab.average != NULL)
        return kith_in_lab_score(&peer->lab, score, peer->vectors, peer->count,
                                 peer->error);
    if (kith_caller_report(peer->caller, score) || !peer->lab.is_here)
        return KITH_OK;
    await_end(peer);
    struct kith_row row = peer->report.row;
    row.test_loss = score->loss;
    row.accuracy = score->accuracy;
    kith_speaker_row(peer->lab.speaker, &row);
    return KITH_OK;
}

API int kith_report(kith_peer *peer, double loss, double accuracy)
{
    const struct kith_score score = {loss, accuracy};
    IN_CALL(peer, KITH_FAILED);
    const enum kith_err err = report(peer, &score);
    if (err != KITH_OK)
        peer->refused = err;
    return err == KITH_OK ? 0 : KITH_FAILED;
}

API size_t kith_stats(kith_peer *peer, char *json, size_t size)
{
    if (size > 0 && json != NULL)
        json[0] = '\0';
    if (json == NULL && size > 0)
        return 0;
    IN_CALL(peer, 0);
    const struct kith_caller_counts counts = kith_caller_counts(peer->caller);
    const int length = snprintf(
        json, size,
        "{\"rank\": %" PRIu32 ", \"peers\": %" PRIu32 ", \"steps\": %" PRIu64
        ", \"step\": %" PRIu64 ", \"items\": %" PRIu64 ", \"late\": %" PRIu64
        ", \"waited_s\": %.6f, \"worked_s\": %.6f, \"finite\": %s}",
        peer->member.file.rank, peer->member.experiment.peers, counts.steps,
        counts.step, counts.items, counts.late, (double)counts.waited_ns / 1e9,
        (double)counts.worked_ns / 1e9, peer->is_finite ? "true" : "false");
    return length < 0 ? 0 : (size_t)length;
}

/* One's own share is done: those that still train are answered until the
 * launcher says that all are. */
static void serve_lab(struct kith_handle *peer)
{
    const struct timespec moment = {0, KITH_MS};
    bool over = peer->lab.is_here;
    while (over) {
        over = kith_caller_wait(peer->caller, 100 * KITH_MS) == KITH_TURN_OVER;
        pthread_mutex_lock(&peer->mutex);
        over = over && peer->stage != ENDED;
        pthread_mutex_unlock(&peer->mutex);
        (void)nanosleep(&moment, NULL); /* the run may be about to end */
    }
}

API int kith_close(kith_peer *peer, char *error, size_t error_size)
{
    char misuse[KITH_MISUSE_BYTES];
    if (peer == NULL)
        return 0;
    const bool is_mine = enter(peer, __func__);
    kith_handle_misuse(peer, misuse);
    if (!is_mine) {
        if (misuse[0] == '\0')
            say(misuse, sizeof misuse,
                "kith_close() within a log of its own: allowed: another "
                "thread's, once the log has returned");
        say(error, error_size, misuse);
        return KITH_FAILED;
    }
    if (peer->lab.average == NULL) {
        serve_lab(peer);
        kith_caller_leave(peer->caller);
        pthread_join(peer->thread, NULL);
    }
    const bool fails = peer->err != KITH_OK || peer->refused != KITH_OK;
    const bool failed = fails || misuse[0] != '\0';
    say(error, error_size, fails ? peer->error : misuse);
    kith_handle_remove(peer);
    free_handle(peer);
    return failed ? KITH_FAILED : 0;
}

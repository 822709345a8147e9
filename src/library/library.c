/* libkith: see kith/kith.h. A handle is a thread that runs kith_peer_run() and
 * the caller's seat in it (kith/caller.h).
 *
 *   kith_open    file -> experiment, keys, members; thread; until it is ready
 *   kith_step    the seat's (calls.c)
 *   kith_close   the vectors once more; stop; join (calls.c)
 *
 * Nothing here is global; handles.c knows which are open. */
#include "library.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/build.h"
#include "kith/text.h"
#include "handles.h"
#include "program_fit.h"

void kith_handle_say(char *error, size_t size, const char *text)
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
    (void)kith_caller_ready(peer->caller);
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
    options.load = peer->load;
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
    if (peer->err == KITH_OK && peer->report.diverged)
        peer->err = kith_text_fail(
            peer->error, sizeof peer->error, KITH_ENONFINITE,
            "writing the final save %s: the model has a value that is not "
            "finite; what was saved before stays",
            peer->save);
    if (peer->err == KITH_OK && member->experiment.peers > 1 &&
        kith_peer_was_alone(&peer->report))
        (void)snprintf(peer->warning, sizeof peer->warning,
                       "rank %u trained alone: of %llu exchanges that it asked "
                       "for none was done; `kith doctor` with this peer's file "
                       "says of each member which layer fails",
                       member->file.rank,
                       (unsigned long long)peer->report.counters.attempts);
    go_to(peer, ENDED);
    return NULL;
}

/* ---- opening */

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
    peer->resumes = peer->load == NULL &&
                    peer->options.start != KITH_START_OWN &&
                    peer->incarnation > 0;
    peer->adopts = peer->resumes || peer->options.start == KITH_START_ADOPT;
    return length > 0 && (size_t)length < sizeof peer->save;
}

void kith_handle_free(struct kith_handle *peer)
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
    if (!kith_handle_take(peer, vectors, count))
        return false;
    if (peer->load != NULL && peer_file == NULL) {
        kith_handle_say(
            peer->error, sizeof peer->error,
            "kith_load() without a peer file: in a lab a peer goes on from the "
            "lab's own saves: `kith lab --resume`");
        return false;
    }
    const enum kith_err err =
        peer_file == NULL ? kith_in_lab_take(&peer->lab, member, peer->error)
                          : kith_member_file_open(peer_file, KITH_WORLD_PROGRAM,
                                                  member, peer->error);
    if (err != KITH_OK ||
        !kith_program_fit(&member->experiment, member->file.experiment,
                          kith_outside_count(peer->vectors, peer->count),
                          peer->options.memory == KITH_MEMORY_CUDA,
                          peer->error) ||
        !kith_handle_in_place(peer, NULL))
        return false;
    member->experiment.model_config.buffers = peer->buffers;
    if (peer->lab.is_here
            ? kith_in_lab_begin(&peer->lab, &listener, peer->vectors,
                                peer->count, peer->error) != KITH_OK
            : !count_start(peer))
        return false;
    if (kith_caller_open(peer->vectors, peer->count, peer->options.stream,
                         &peer->caller) != KITH_OK ||
        kith_fork_gate_open(&peer->fork_gate) != KITH_OK) {
        kith_handle_say(peer->error, sizeof peer->error, "out of memory");
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

static kith_peer *open_handle(const char *peer_file, const char *load,
                              const struct kith_vector *vectors, uint32_t count,
                              const struct kith_options *options, char *error,
                              size_t error_size)
{
    struct kith_handle *peer = calloc(1, sizeof *peer);
    if (peer == NULL) {
        kith_handle_say(error, error_size, "out of memory");
        return NULL;
    }
    peer->load = load;
    pthread_mutex_init(&peer->mutex, NULL);
    pthread_condattr_t steady; /* kith_host_now() */
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&peer->changed, &steady);
    pthread_condattr_destroy(&steady);
    const size_t given = options == NULL ? 0
                         : options->size < sizeof peer->options
                             ? options->size
                             : sizeof peer->options;
    if (given > 0)
        memcpy(&peer->options, options, given);
    bool opened = false;
    if (peer->options.start > KITH_START_ADOPT)
        kith_handle_say(
            peer->error, sizeof peer->error,
            "options.start: allowed: KITH_START_AUTO, _OWN or _ADOPT");
    else if (peer->options.memory > KITH_MEMORY_CUDA)
        kith_handle_say(peer->error, sizeof peer->error,
                        "options.memory: allowed: KITH_MEMORY_HOST or _CUDA");
    else
        opened = open_all(peer, peer_file, vectors, count) &&
                 (peer->lab.average != NULL || start(peer));
    if (opened) {
        kith_handle_leave(peer);
        return peer;
    }
    kith_handle_say(error, error_size, peer->error);
    kith_handle_free(peer);
    return NULL;
}

API kith_peer *kith_open(const char *peer_file,
                         const struct kith_vector *vectors, uint32_t count,
                         const struct kith_options *options, char *error,
                         size_t error_size)
{
    return open_handle(peer_file, NULL, vectors, count, options, error,
                       error_size);
}

API kith_peer *kith_load(const char *peer_file, const char *path,
                         const struct kith_vector *vectors, uint32_t count,
                         const struct kith_options *options, char *error,
                         size_t error_size)
{
    if (path != NULL)
        return open_handle(peer_file, path, vectors, count, options, error,
                           error_size);
    kith_handle_say(error, error_size, "kith_load(): no path of a save");
    return NULL;
}

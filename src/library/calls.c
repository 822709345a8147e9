/* Calls on a handle that is open: see kith/kith.h. Each is in nobody else's
 * (handles.h), and what it does is the seat's (kith/caller.h). */
#include "library.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kith/text.h"
#include "handles.h"

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

/* The run asks nothing more of the caller, and ends when it has saved. Has it?
 */
static bool await_end(struct kith_handle *peer, kith_ns until_ns)
{
    const struct timespec until = {until_ns / KITH_S, until_ns % KITH_S};
    int failed = 0;
    pthread_mutex_lock(&peer->mutex);
    while (peer->stage != ENDED && failed == 0)
        failed = pthread_cond_timedwait(&peer->changed, &peer->mutex, &until);
    const bool has_ended = peer->stage == ENDED;
    pthread_mutex_unlock(&peer->mutex);
    return has_ended;
}

/* Over may be the share, or the run, whose end says whether it failed. */
static int turn(struct kith_handle *peer, enum kith_turn turn, kith_ns until_ns)
{
    if (turn == KITH_TURN_TRAIN)
        return KITH_GOES_ON;
    if (turn == KITH_TURN_LATE)
        return KITH_LATE;
    if (!kith_caller_has_ended(peer->caller))
        return KITH_OVER;
    if (!await_end(peer, until_ns))
        return KITH_LATE;
    return peer->err == KITH_OK ? KITH_OVER : KITH_FAILED;
}

API int kith_step(kith_peer *peer, double loss, uint32_t timeout_ms)
{
    const kith_ns wait_ns = (kith_ns)timeout_ms * KITH_MS;
    const kith_ns until_ns = kith_host_now() + wait_ns;
    IN_CALL(peer, KITH_FAILED);
    return peer->lab.average != NULL
               ? no_turn(peer)
               : turn(peer, kith_caller_step(peer->caller, loss, wait_ns),
                      until_ns);
}

API int kith_samples(kith_peer *peer, uint32_t samples)
{
    IN_CALL(peer, KITH_FAILED);
    const int64_t usual = peer->member.experiment.train.batch;
    if (peer->lab.average == NULL)
        kith_caller_samples(peer->caller,
                            samples == 0 ? 0 : (int64_t)samples - usual);
    return 0;
}

API int kith_wait(kith_peer *peer, uint32_t timeout_ms)
{
    const kith_ns wait_ns = (kith_ns)timeout_ms * KITH_MS;
    const kith_ns until_ns = kith_host_now() + wait_ns;
    IN_CALL(peer, KITH_FAILED);
    return peer->lab.average != NULL
               ? no_turn(peer)
               : turn(peer, kith_caller_wait(peer->caller, wait_ns), until_ns);
}

API int kith_pause(kith_peer *peer, uint32_t timeout_ms)
{
    const kith_ns wait_ns = (kith_ns)timeout_ms * KITH_MS;
    const kith_ns until_ns = kith_host_now() + wait_ns;
    IN_CALL(peer, KITH_FAILED);
    return peer->lab.average != NULL
               ? no_turn(peer)
               : turn(peer, kith_caller_pause(peer->caller, wait_ns), until_ns);
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
    if (!kith_handle_in_place(peer, data))
        return KITH_EINVAL;
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

API int kith_save(kith_peer *peer, const char *path, uint32_t timeout_ms,
                  char *error, size_t error_size)
{
    char why[KITH_DATA_ERROR_BYTES] = "";
    enum kith_turn turn = KITH_TURN_OVER;
    enum kith_err err = KITH_EINVAL;
    kith_handle_say(error, error_size,
                    "kith_save(): the handle is not this call's alone");
    IN_CALL(peer, KITH_FAILED);
    if (path == NULL || path[0] == '\0')
        kith_handle_say(why, sizeof why, "kith_save(): no path");
    else if (peer->lab.average != NULL)
        kith_handle_say(
            why, sizeof why,
            "kith_save(): this process evaluates the averaged model, and has "
            "no state of its own");
    else
        err = kith_caller_save(peer->caller, path,
                               (kith_ns)timeout_ms * KITH_MS, &turn, why);
    kith_handle_say(error, error_size, why);
    if (err != KITH_OK)
        return KITH_FAILED;
    return turn == KITH_TURN_LATE ? KITH_LATE : KITH_GOES_ON;
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
    (void)await_end(peer, KITH_NEVER);
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
        ", \"rounded\": %.9g, \"rounded_norm\": %.9g"
        ", \"waited_s\": %.6f, \"worked_s\": %.6f, \"finite\": %s}",
        peer->member.file.rank, peer->member.experiment.peers, counts.steps,
        counts.step, counts.items, counts.late, counts.rounded,
        sqrt(counts.rounded_squares), (double)counts.waited_ns / 1e9,
        (double)counts.worked_ns / 1e9, counts.is_finite ? "true" : "false");
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
            kith_handle_say(
                misuse, sizeof misuse,
                "kith_close() within a log of its own: allowed: another "
                "thread's, once the log has returned");
        kith_handle_say(error, error_size, misuse);
        return KITH_FAILED;
    }
    if (peer->lab.average == NULL) {
        serve_lab(peer);
        kith_caller_leave(peer->caller);
        pthread_join(peer->thread, NULL);
    }
    const bool fails = peer->err != KITH_OK || peer->refused != KITH_OK;
    const bool failed = fails || misuse[0] != '\0';
    kith_handle_say(error, error_size,
                    fails    ? peer->error
                    : failed ? misuse
                             : peer->warning);
    kith_handle_remove(peer);
    kith_handle_free(peer);
    return failed ? KITH_FAILED : 0;
}

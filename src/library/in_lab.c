/* kith_open() without a file: a place in a lab. See in_lab.h. */
#include "in_lab.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/text.h"

#define FAIL(err, ...)                                                         \
    kith_text_fail(error, KITH_EXPERIMENT_ERROR_BYTES, err, __VA_ARGS__)

static void close_all(const struct kith_lab_place *place)
{
    const int fds[] = {place->rows_fd, place->control_fd, place->listen_fd,
                       place->average_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}

enum kith_err kith_in_lab_take(struct in_lab *lab,
                               struct kith_member_file *member, char *error)
{
    char why[KITH_EXPERIMENT_ERROR_BYTES];
    enum kith_err err = kith_lab_place_take(&lab->place, member, error);
    if (err != KITH_OK)
        return err;
    lab->is_here = true;
    err = kith_experiment_check_world(&member->experiment, KITH_WORLD_PROGRAM,
                                      why);
    return err == KITH_OK ? err : FAIL(err, "%.900s", why);
}

enum kith_err kith_in_lab_begin(struct in_lab *lab,
                                const struct kith_listener *listener,
                                const struct kith_outside *vectors,
                                uint32_t count, char *error)
{
    struct kith_lab_place *place = &lab->place;
    const size_t dim = kith_outside_count(vectors, count);
    const struct kith_backend *backend = place->experiment->backend;
    if (place->average_fd >= 0 && backend->host != backend)
        return FAIL(KITH_EINVAL,
                    "cannot evaluate the average: its process reads it in the "
                    "host's memory, and train.backend is %s; evaluate the save "
                    "instead",
                    backend->name);
    if (place->average_fd >= 0) {
        const enum kith_err err =
            kith_lab_place_average(place, dim, &lab->average);
        if (err != KITH_OK)
            return FAIL(err,
                        "cannot evaluate the average: %s; the model has %zu "
                        "values here: does every process make the same one?",
                        kith_err_text(err), dim);
        kith_in_lab_refill(lab, vectors, count);
    }
    return kith_speaker_open(place, listener, &lab->speaker) == KITH_OK
               ? KITH_OK
               : FAIL(KITH_ENOMEM, "out of memory");
}

void kith_in_lab_refill(const struct in_lab *lab,
                        const struct kith_outside *vectors, uint32_t count)
{
    kith_outside_fill(lab->place.experiment->backend, lab->average, vectors,
                      count);
}

enum kith_err kith_in_lab_score(struct in_lab *lab,
                                const struct kith_score *score,
                                const struct kith_outside *vectors,
                                uint32_t count, char *error)
{
    if (!kith_outside_holds(lab->place.experiment->backend, lab->average,
                            vectors, count))
        return FAIL(KITH_EMISMATCH,
                    "this process evaluates the averaged model, and has "
                    "changed it since: a loop ends where peer.over says so, "
                    "before its first step");
    kith_speaker_score(lab->speaker, score);
    return KITH_OK;
}

void kith_in_lab_close(struct in_lab *lab)
{
    kith_speaker_close(lab->speaker);
    free(lab->average);
    if (lab->is_here)
        close_all(&lab->place);
    memset(lab, 0, sizeof *lab);
}

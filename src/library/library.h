/* What a handle of libkith is; see library.c, which opens it, and calls.c. */
#ifndef KITH_LIBRARY_H
#define KITH_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "kith/kith.h"
#include "kith/caller.h"
#include "kith/member_file.h"
#include "in_lab.h"

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
    const char *load; /* of the caller's, while it opens; or NULL */
    char save[KITH_PATH_BYTES_MAX];
    struct in_lab lab; /* where there is no peer file */
    uint64_t refills;  /* of the vectors, with an average that is evaluated */

    struct kith_caller *caller;
    struct kith_fork_gate *fork_gate;
    pthread_t thread;

    pthread_mutex_t mutex; /* guards the rest */
    pthread_cond_t changed;
    enum stage stage;
    enum kith_err err;     /* of the run */
    enum kith_err refused; /* a call */
    struct kith_peer_report report;
    char error[KITH_PEER_ERROR_BYTES];
    char warning[KITH_PEER_LINE_BYTES]; /* of a run that has not failed */
};

/* `error` may be NULL, or of no size: as callers of kith.h may give it. */
void kith_handle_say(char *error, size_t size, const char *text);
void kith_handle_free(struct kith_handle *peer);

/* take_vectors.c; false: refused, by `peer->error`. Once. */
bool kith_handle_take(struct kith_handle *peer,
                      const struct kith_vector *vectors, uint32_t count);
/* Each of (peer->count) `data`, NULL: those that were taken, lies on the device
 * that computes, where one does. */
bool kith_handle_in_place(struct kith_handle *peer, const void *const *data);

#endif

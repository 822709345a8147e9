/* A peer file and all that it names, for whoever runs one peer: `kith peer`,
 * `kith doctor`, libkith. */
#ifndef KITH_MEMBER_FILE_H
#define KITH_MEMBER_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/experiment.h"
#include "kith/peer.h"
#include "kith/session.h"

struct kith_member_file {
    struct kith_peer_file file;
    struct kith_experiment experiment;
    struct kith_identity identity;
    struct kith_trust trust;
    struct kith_member *members; /* (file.member_count) */
    bool is_of_keys;             /* what failed was a key or a certificate */
};

/* Reads and checks them for a real peer of this world. On an error a line is in
 * `error` (KITH_EXPERIMENT_ERROR_BYTES) and there is nothing to close. */
KITH_MUST_CHECK enum kith_err
kith_member_file_open(const char *path, enum kith_world world,
                      struct kith_member_file *member, char *error);
void kith_member_file_close(struct kith_member_file *member);

/* Starts of this experiment's peer are counted in `folder`, which is made where
 * it is not there: *incarnation is 0 the first time, one more each time, so
 * that no exchange is named twice. KITH_EPARSE, or what the disk said; `error`
 * as above. */
KITH_MUST_CHECK enum kith_err kith_start_count(const char *folder,
                                               const char *name,
                                               uint32_t *incarnation,
                                               char *error);

#endif

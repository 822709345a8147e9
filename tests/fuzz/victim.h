/* One peer in a fuzz target: the driver, transport, node and worker of
 * src/peer/, without its training thread and on a clock of its own, so that one
 * input has one outcome. Sessions are restored from a handshake that was made
 * once. Test: fuzz_member.c. */
#ifndef KITH_TESTS_VICTIM_H
#define KITH_TESTS_VICTIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/experiment.h"
#include "kith/message.h"
#include "src/peer/driver.h"

#define VICTIM_PEERS 3u
#define VICTIM_SELF 1u

struct victim {
    struct kith_driver driver;
    struct kith_peer_options options;
    struct kith_peer_report report;
    char error[KITH_PEER_ERROR_BYTES];
    int wires[VICTIM_PEERS];            /* the far ends of its links; or -1 */
    uint64_t marks[KITH_MARK_COUNT];    /* of this run */
    uint64_t heard[KITH_MESSAGE_COUNT]; /* messages that reached the driver */
    uint64_t models, spoilt;            /* models with an inbox; not finite */
};

/* A peer of this experiment, `restarted`: it wants a neighbour's model first;
 * START has been stepped. `trust` and `identity` outlive it. */
struct victim *victim_open(const struct kith_experiment *experiment,
                           const struct kith_identity *identity,
                           const struct kith_trust *trust, bool restarted);
void victim_close(struct victim *victim);
/* A connection from `rank`, proved up to the HELLO that is fed next: `session`,
 * kith_session_size() bytes, is copied. */
void victim_link(struct victim *victim, kith_id rank, const void *session);
/* The link of this rank that is used, or still proved; NULL: none. */
struct kith_link *victim_find(const struct victim *victim, kith_id rank);
/* Bytes from `rank`, in reads of at most `piece`; false: the link is gone. */
bool victim_feed(struct victim *victim, kith_id rank, const uint8_t *bytes,
                 size_t size, size_t piece);
/* The connection breaks. */
void victim_break(struct victim *victim, kith_id rank);
/* Runs the item that is out, if one is. */
void victim_work(struct victim *victim);
/* So much later; `wake`: at the node's deadline, where it has one. */
void victim_later(struct victim *victim, kith_ns ns, bool wake);
/* One turn of the loop. */
void victim_turn(struct victim *victim);

#endif

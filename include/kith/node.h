/* The heart: one peer's protocol as a step function.
 *
 *   kith_node_step(node, event, effects)
 *
 * No clock, socket, heap, thread or float lives here; what has to be done is
 * written into `effects` and the driver does it. Never re-entrant, never
 * blocks, never fails because of what a peer sent: bad input is counted,
 * dropped and charged to its sender.
 *
 * The driver's part:
 *   sends     in order. A peer without a link is dialled; where that fails the
 *             driver answers LINK_DOWN(peer) and forgets what was queued.
 *             MODEL: header first, then the bytes of `message.slot` as bulk.
 *   dials     peers that will be sent to soon: a link may be opened now. A
 *             hint; one that has a link, or is dialled, is passed over.
 *   cancel    bit s set: stop sending from slot s at once, the rest of that
 *             transfer is dropped; happens before `work` starts.
 *   work      at most one; answered by WORK_DONE with the same kind. The
 *             driver calls kith_worker_prepare() before it starts it.
 *   deadline  the next WAKE, KITH_NEVER for none; replaces the last one.
 *   marks     trace lines: hashed by the simulator, logged by the daemon.
 * Receiving a MODEL header the driver asks kith_node_inbox() where its bytes
 * go, sets message.slot to the answer, and delivers MESSAGE(MODEL) once the
 * last record is in and gated; where the answer was KITH_SLOT_NONE the bytes
 * are discarded and the message is delivered all the same.
 */
#ifndef KITH_NODE_H
#define KITH_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/algorithm.h"
#include "kith/err.h"
#include "kith/message.h"
#include "kith/topology.h"
#include "kith/types.h"
#include "kith/work.h"

enum kith_event_kind {
    KITH_EVENT_START,     /* once, first */
    KITH_EVENT_WAKE,      /* the deadline passed */
    KITH_EVENT_MESSAGE,   /* `from` said `message` */
    KITH_EVENT_LINK_UP,   /* an authenticated session with `from` is open */
    KITH_EVENT_LINK_DOWN, /* it closed, or could not be opened */
    KITH_EVENT_WORK_DONE, /* `result` */
    KITH_EVENT_LEAVE,     /* say goodbye and stop initiating */
    KITH_EVENT_PAUSE,     /* end what is open; no step, and BUSY to who asks */
    KITH_EVENT_GO_ON,     /* the pause is over */
};

struct kith_event {
    enum kith_event_kind kind;
    kith_ns now_ns; /* monotonic, never decreasing */
    int64_t utc_s;
    kith_id from;
    const struct kith_message *message;    /* MESSAGE; valid for this call */
    const struct kith_work_result *result; /* WORK_DONE; likewise */
};

/* X(NAME, text): what the trace says. Append only: numbers are hashed. */
#define KITH_MARKS(X)                                                          \
    X(STEP, "step")         /* value = step just done */                       \
    X(ATTEMPT, "attempt")   /* a trigger fired; peer = partner or nobody */    \
    X(SKIPPED, "skipped")   /* a trigger found an exchange outstanding */      \
    X(OPENED, "opened")     /* REQUEST sent to peer */                         \
    X(REFUSED, "refused")   /* peer said BUSY */                               \
    X(SERVING, "serving")   /* REQUEST accepted */                             \
    X(MERGED, "merged")     /* our half is in x; sum = delta_sum */            \
    X(DONE, "done")         /* `both`, as seen from this side */               \
    X(FAILED, "failed")     /* `neither` */                                    \
    X(UNDONE, "undone")     /* our half was taken back; sum = -delta_sum */    \
    X(TORN, "torn")         /* written off; sum = our half of it */            \
    X(SUSPECT, "suspect")   /* peer is left out for a while */                 \
    X(ROUND, "round")       /* value = round just closed */                    \
    X(ADOPTED, "adopted")   /* a restarted peer took peer's model */           \
    X(BAD, "bad")           /* peer broke the protocol; value = kind */        \
    X(GATED, "gated")       /* a non-finite or misshapen model was refused */  \
    X(FINISHED, "finished") /* own share of steps is done */                   \
    X(SPLIT, "split")       /* push: mass left x for peer; sum = -sum(sent) */ \
    X(NONFINITE, "nonfinite") /* own training step produced a non-finite */    \
    X(RECOVERED, "recovered") /* x was spoilt, an earlier one took its place   \
                               */                                              \
    /* What a guard did with peer's model; the drivers write these, nodes do   \
     * not. value = thousandths let in, sum = how far off it was */            \
    X(CLIPPED, "clipped")                                                      \
    X(REJECTED, "rejected")

enum kith_mark_kind {
#define KITH_X(name, text) KITH_MARK_##name,
    KITH_MARKS(KITH_X)
#undef KITH_X
        KITH_MARK_COUNT
};
const char *kith_mark_name(enum kith_mark_kind kind);

struct kith_mark {
    enum kith_mark_kind kind;
    kith_id peer;               /* the other one, or KITH_NOBODY */
    struct kith_exchange_id id; /* zero when there is none */
    bool initiator;             /* this side opened it */
    uint64_t value;
    double sum; /* not hashed: it is made of model values */
};

struct kith_send {
    kith_id to;
    struct kith_message message;
};

/* Room for the answers of one step. The longest opens a round and leaves it at
 * once: to each neighbour MODEL, READY, BYE and PROBE; of each edge SPLIT,
 * TORN, FAILED and SUSPECT. Test: unit/test_node_round.c. */
#define KITH_EFFECT_SENDS (4u * KITH_DEGREE_MAX + 20u)
#define KITH_EFFECT_MARKS (4u * KITH_DEGREE_MAX + 8u)
/* Where any two peers may meet a partner is dialled so many draws ahead: most
 * are met for the first time, and a handshake takes three round trips. */
#define KITH_DIALS_AHEAD 6u
struct kith_effects {
    uint32_t send_count, mark_count, cancel; /* cancel: bit per slot < 6 */
    bool has_work;
    uint8_t dial_count;
    kith_id dials[KITH_DIALS_AHEAD];
    struct kith_work work;
    kith_ns deadline_ns;
    struct kith_send sends[KITH_EFFECT_SENDS];
    struct kith_mark marks[KITH_EFFECT_MARKS];
};

/* Shared by all peers of a run; the node keeps the pointer. */
struct kith_node_config {
    const struct kith_algorithm *algorithm;
    const struct kith_topology *topology; /* opened: see topology.h */
    uint64_t seed;
    uint64_t steps;         /* own share; UINT64_MAX: until told to leave */
    uint32_t every;         /* trigger: every H own steps, >= 1, and then */
    uint32_t phases;        /* rounds of a trigger, one after another; 0: 1 */
    uint32_t buckets;       /* of a step's gradient: equal parts of a trigger's
                               rounds, each of which waits for its bucket to be
                               complete and not for the step; 0: 1 */
    uint32_t urgent;        /* of them, as kith_bucket_at() */
    double chance;          /* with this chance; 0: always */
    uint64_t payload_bytes; /* of an exchange's message */
    uint64_t model_bytes;   /* of a pull's, x itself; 0: the same */
    uint64_t slice_bytes;   /* of a round's that is no `period`-th */
    uint32_t period;        /* 0, 1: all rounds carry payload_bytes, unless the
                               algorithm says which do */
    kith_ns save_period_ns; /* SAVE items; 0: never */
    kith_ns round_deadline_ns; /* 0: from measured round trips;
                                  KITH_NEVER: wait for ever (simulator only) */
    uint32_t retries;          /* other peers asked after BUSY, e.g. 3 */
    uint32_t exchanges; /* swaps asked for at a time, and answered; 0: 1 */
    bool prepares; /* a swap is answered with x of the last step boundary, not
                      of the next: kith_worker_prepare() costs no copy, or
                      with gossip.wire a pass */
};

struct kith_node; /* opaque; POD, may be copied while no work is out */

/* Bytes of one node: fixed part plus one edge record per neighbour of a round.
 * A node of one exchange a side is at most 400 bytes. */
size_t kith_node_size(const struct kith_node_config *config);
/* The most neighbours that `self` has in one round, senders and receivers
 * together; 0 unless the pattern is ROUND. */
uint32_t kith_node_edges(const struct kith_node_config *config, kith_id self);
/* Bytes of a MODEL of this pattern; `number`: its exchange's, for a round the
 * round's. */
uint64_t kith_node_payload(const struct kith_node_config *config,
                           enum kith_pattern pattern, uint64_t number);
/* memory: kith_node_size bytes, aligned to 8. incarnation: 0, +1 per restart.
 * resume_step: steps already done (from a save). adopt: this is a restarted
 * peer; it first pulls a neighbour's model. */
struct kith_node *kith_node_init(void *memory,
                                 const struct kith_node_config *config,
                                 kith_id self, uint32_t incarnation,
                                 uint64_t resume_step, bool adopt);
/* Effects are reset by the call and valid until the next one. */
void kith_node_step(struct kith_node *node, const struct kith_event *event,
                    struct kith_effects *effects);
/* The slot where the bulk bytes of this MODEL header from `from` belong, or
 * KITH_SLOT_NONE: authenticate and discard. Pure. */
uint32_t kith_node_inbox(const struct kith_node *node, kith_id from,
                         const struct kith_message *model);
/* Snapshots and inboxes of exchanges, a bit a slot, that somebody will ask for
 * before they are filled anew: to be sent, merged, held against, taken back.
 * Pure. Test: unit/test_sim_memory.c */
uint32_t kith_node_needed(const struct kith_node *node);
/* Who sees both ends of a swap knows more than either: both have merged, and
 * what is still under way are the ACKs that say so. Then nothing of it is taken
 * back or sent again: for good, where the initiator has completed it; else if
 * the responder's ACK comes before `by_ns`, up to which the initiator waits for
 * it. Pure. Test: unit/test_sim_memory.c */
struct kith_settled {
    uint32_t answered, initiated; /* a bit for each slot, of either's */
    kith_ns by_ns;                /* KITH_NEVER: for good */
};
struct kith_settled kith_node_settled(const struct kith_node *responder,
                                      const struct kith_node *initiator,
                                      struct kith_exchange_id id);

/* X(name): what a node counts, for rows in the store and the checks. */
#define KITH_NODE_COUNTS(X)                                                    \
    X(attempts)                                                                \
    X(skipped)                                                                 \
    X(refused)                                                                 \
    X(done)                                                                    \
    X(failed)                                                                  \
    X(torn)                                                                    \
    X(served)                                                                  \
    X(bad)                                                                     \
    X(gated)                                                                   \
    X(undone)                                                                  \
    X(late)
struct kith_node_counters {
#define KITH_X(name) uint64_t name;
    KITH_NODE_COUNTS(KITH_X)
#undef KITH_X
    uint64_t steps, rounds;
    kith_ns waited_ns; /* training held back by an exchange */
};
void kith_node_counters(const struct kith_node *node,
                        struct kith_node_counters *counters);
/* How long LEAVE lets the rounds that the last step began go on, at most: as
 * long as such rounds took. Test: unit/test_node_leave.c */
kith_ns kith_node_leave_time(const struct kith_node *node);
bool kith_node_finished(const struct kith_node *node);
/* No exchange is open on either side, or due, unless the caller pauses. */
bool kith_node_quiet(const struct kith_node *node);

#endif

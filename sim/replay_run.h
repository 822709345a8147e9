/* A replay in progress, shared by
 *
 *   replay.c           whose turn it is; events into steps, effects into
 * messages replay_messages.c  messages: sent, waiting, taken, lost
 *   replay_peer.c      a peer's node and worker: opened, saved, restored
 *   replay_result.c    final models beside the lab's */
#ifndef KITH_SIM_REPLAY_RUN_H
#define KITH_SIM_REPLAY_RUN_H

#include "kith/evaluation.h"
#include "kith/journal.h"
#include "kith/node.h"
#include "kith/replay.h"
#include "kith/wire.h"
#include "kith/worker.h"

/* Messages that wait for one peer; beyond them the oldest is lost for sure. */
#define SIM_REPLAY_WAITING_MAX 16384u
/* Models of one sender that were passed over and are kept all the same: two
 * links may exist for a moment, and deliver in another order. */
#define SIM_REPLAY_PASSED_MAX 4u

/* The bytes of a model as it was sent, shared by its messages. */
struct sim_replay_bytes {
    uint32_t references;
    size_t size;
    uint8_t values[]; /* (size) */
};

struct sim_replay_message {
    struct sim_replay_message *next;
    kith_id from;
    uint32_t process; /* incarnation of the sender */
    struct kith_message message;
    size_t header_bytes;
    uint8_t header[KITH_WIRE_BYTES_MAX]; /* what makes two messages equal */
    struct sim_replay_bytes *model;      /* NULL: no model */
};

/* A process of the lab, from its BEGIN to its END. */
enum sim_replay_process {
    SIM_REPLAY_DOWN,
    SIM_REPLAY_OPENED,
    SIM_REPLAY_STARTED, /* its START was read */
};

struct sim_replay_peer {
    struct kith_worker *worker;
    struct kith_node *node;
    enum sim_replay_process process;
    bool working; /* an item is out: */
    bool ended;   /* its END was read */
    struct kith_work work;
    struct kith_lie lie; /* the last one */
    uint32_t lies, told; /* so many; the worker knows this one */
    uint32_t processes, incarnation;
    uint64_t
        entries; /* read so far, of all its processes: the event's number */
    bool has_head, over;
    uint32_t head_process;
    struct kith_journal_entry head; /* the next one */
    struct sim_replay_message *first, **last;
    uint32_t waiting;
    struct sim_replay_bytes
        *sent[KITH_SLOT_ROUND_EDGES]; /* copied from its slots */
};

struct sim_replay {
    const struct sim_replay_options *options;
    struct sim_replay_report *report;
    char *error; /* (SIM_REPLAY_ERROR_BYTES) */
    enum kith_err err;
    struct kith_journal *journal;
    struct kith_experiment experiment; /* a copy, with the lab's periods */
    struct kith_topology topology;
    struct kith_node_config config;
    uint32_t peers;
    size_t dim;
    struct kith_effects *effects;
    struct sim_replay_peer *peer_states; /* (peers) */
    double *scratch;                     /* (dim) */
    double *models;                      /* (peers, dim) of those that ended */
};

/* replay.c. The first failure is kept. */
void sim_replay_fail(struct sim_replay *replay, enum kith_err err,
                     const char *format, ...) KITH_PRINTF(3, 4);
/* "replay diverged: peer 2, event 17 (0.123 s): ..." */
void sim_replay_diverge(struct sim_replay *replay, kith_id peer,
                        const char *format, ...) KITH_PRINTF(3, 4);

/* replay_messages.c */
void sim_replay_send(struct sim_replay *replay, kith_id from,
                     const struct kith_send *send);
/* The entry that this event received, taken out; NULL: not yet sent. */
struct sim_replay_message *sim_replay_take(struct sim_replay *replay,
                                           kith_id to, kith_id from,
                                           const struct kith_message *message);
bool sim_replay_has(const struct sim_replay *replay, kith_id to, kith_id from,
                    const struct kith_message *message);
/* What `to` has from `from`, or "nothing", for an error. */
void sim_replay_waiting_text(const struct sim_replay *replay, kith_id to,
                             kith_id from, char *text, size_t size);
void sim_replay_message_text(const struct kith_message *message, char *text,
                             size_t size);
void sim_replay_message_free(struct sim_replay_message *entry);
/* Copies of a peer's slots that the next item may fill. */
void sim_replay_forget(struct sim_replay_peer *state);
/* Everything; counts what nobody received. */
void sim_replay_messages_close(struct sim_replay *replay);

/* replay_peer.c */
void sim_replay_peer_begin(struct sim_replay *replay, kith_id peer);
void sim_replay_peer_save(struct sim_replay *replay, kith_id peer);
void sim_replay_peer_close(struct sim_replay_peer *state);

/* replay_result.c. A peer ended in order: its model beside the lab's. */
void sim_replay_result_model(struct sim_replay *replay, kith_id peer);
void sim_replay_result_average(struct sim_replay *replay);
void sim_replay_compare(struct sim_agreement *agreement, double expected,
                        double found);

#endif

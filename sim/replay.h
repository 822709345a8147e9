/* A replay in progress, shared by
 *
 *   replay.c         whose turn it is; events into steps, effects into letters
 *   replay_messages.c    letters: sent, waiting, taken, lost
 *   replay_peer.c    a peer's node and worker: born, saved, restored
 *   replay_result.c  final models beside the lab's */
#ifndef KITH_SIM_REPLAY_H
#define KITH_SIM_REPLAY_H

#include "kith/evaluation.h"
#include "kith/journal.h"
#include "kith/limits.h"
#include "kith/node.h"
#include "kith/replay.h"
#include "kith/wire.h"
#include "kith/worker.h"

/* Letters that wait for one peer; beyond them the oldest is lost for sure. */
#define SIM_LETTERS_MAX 16384u
/* Models of one sender that were passed over and are kept all the same: two
 * links may exist for a moment, and deliver in another order. */
#define SIM_PASSED_MAX 4u

/* The bytes of a model as it was sent, shared by its letters. */
struct sim_parcel {
    uint32_t references;
    size_t size;
    uint8_t bytes[]; /* (size) */
};

struct sim_letter {
    struct sim_letter *next;
    kith_id from;
    uint32_t life; /* of the sender */
    struct kith_message message;
    size_t header_bytes;
    uint8_t header[KITH_WIRE_BYTES_MAX]; /* what makes two letters equal */
    struct sim_parcel *parcel;           /* NULL: no model */
};

struct sim_actor {
    struct kith_worker *worker;
    struct kith_node *node;
    bool alive, started, working; /* an item is out: */
    bool ended;                   /* its END was read */
    struct kith_work work;
    uint32_t lives, incarnation;
    uint64_t entries; /* read so far, over all lives: the event's number */
    bool has_head, over;
    uint32_t head_life;
    struct kith_journal_entry head; /* the next one */
    struct sim_letter *first, **last;
    uint32_t letters;
    struct sim_parcel *sent[KITH_SLOT_ROUND_EDGES]; /* copied from its slots */
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
    struct sim_actor *actors; /* (peers) */
    double *z;                /* (dim) scratch */
    double *models;           /* (peers, dim) of those that ended */
};

/* replay.c. The first failure is kept. */
void sim_replay_fail(struct sim_replay *replay, enum kith_err err,
                     const char *format, ...) KITH_PRINTF(3, 4);
/* "replay diverged: peer 2, event 17 (0.123 s): ..." */
void sim_replay_diverge(struct sim_replay *replay, kith_id peer,
                        const char *format, ...) KITH_PRINTF(3, 4);

/* replay_messages.c */
void sim_mail_send(struct sim_replay *replay, kith_id from,
                   const struct kith_send *send);
/* The letter that this event received, out of the mail; NULL: not yet sent. */
struct sim_letter *sim_mail_take(struct sim_replay *replay, kith_id to,
                                 kith_id from,
                                 const struct kith_message *message);
bool sim_mail_has(const struct sim_replay *replay, kith_id to, kith_id from,
                  const struct kith_message *message);
/* What `to` has from `from`, or "nothing", for an error. */
void sim_mail_text(const struct sim_replay *replay, kith_id to, kith_id from,
                   char *text, size_t size);
void sim_message_text(const struct kith_message *message, char *text,
                      size_t size);
void sim_letter_free(struct sim_letter *letter);
/* Copies of a peer's slots that the next item may fill. */
void sim_mail_forget(struct sim_actor *actor);
/* Everything; counts what nobody received. */
void sim_mail_close(struct sim_replay *replay);

/* replay_peer.c */
void sim_life_begin(struct sim_replay *replay, kith_id peer);
void sim_life_save(struct sim_replay *replay, kith_id peer);
void sim_life_close(struct sim_actor *actor);

/* replay_result.c. A peer ended in order: its model beside the lab's. */
void sim_result_model(struct sim_replay *replay, kith_id peer);
void sim_result_average(struct sim_replay *replay);
void sim_agree(struct sim_agreement *agreement, double expected, double found);

#endif

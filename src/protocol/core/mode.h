/* The modes of taking part: two-party exchanges, and rounds of three kinds. */
#ifndef KITH_PROTOCOL_CORE_MODE_H
#define KITH_PROTOCOL_CORE_MODE_H

#include "kith/node.h"

struct kith_round_edge; /* round.h */

/* How a node takes part in the protocol: one record a mode, at the end of the
 * mode's file. Two-party exchanges belong to every mode, because a pull is one:
 * node.c looks after them, and then calls its mode for what is left. */
struct kith_mode {
    /* ---- What kith_node_step calls; a trigger is skipped while one is open.
     */
    void (*trigger)(struct kith_node *node);
    bool (*is_open)(const struct kith_node *node);
    /* From here on NULL stands for: never, nothing to do. The trigger waits;
     * the next step waits. */
    bool (*defers_trigger)(const struct kith_node *node);
    bool (*holds_training)(const struct kith_node *node);
    /* Puts the next work item into the effects, if there is one. */
    bool (*schedule)(struct kith_node *node);
    /* Nothing of our own is due. */
    void (*idle)(struct kith_node *node);
    void (*message)(struct kith_node *node, kith_id from,
                    const struct kith_message *message);
    void (*wake)(struct kith_node *node);
    /* BYE was heard, or the link broke; LEAVE was told. */
    void (*peer_left)(struct kith_node *node, kith_id peer);
    void (*leave)(struct kith_node *node);
    uint32_t (*inbox)(const struct kith_node *node, kith_id from,
                      const struct kith_message *model);
    kith_ns (*deadline)(const struct kith_node *node);
    bool (*is_quiet)(const struct kith_node *node);
    bool (*is_finished)(const struct kith_node *node);

    /* ---- What round.c and round_message.c call: how the edges of a round
     * behave. */
    uint8_t
        list_mask;   /* round & mask: which of the two lists; 0: one for all */
    bool says_round; /* a message's `step` is its sender's round, else step */
    /* The round at hand: its snapshot is taken, it is merged, it is over
     * (NULL: a mailbox's one list keeps what came). */
    void (*opened)(struct kith_node *node);
    void (*merged)(struct kith_node *node);
    void (*closed)(struct kith_node *node, bool missed);
    bool (*is_merged)(const struct kith_round_edge *edge);
    /* Where the model of edge `e` for round `number` belongs. */
    uint32_t (*edge_inbox)(const struct kith_node *node, uint32_t e,
                           uint64_t number);
    /* MODEL and READY; `edge` is the sender's in the round at hand, or NULL. */
    void (*model)(struct kith_node *node, struct kith_round_edge *edge,
                  kith_id from, const struct kith_message *message);
    void (*ready)(struct kith_node *node, struct kith_round_edge *edge,
                  kith_id from, uint64_t number);
    /* ACK (NULL: nothing waits for one), ABORT and PROBE; `edge` is NULL unless
     * it is open in that round. */
    void (*ack)(struct kith_node *node, struct kith_round_edge *edge);
    void (*aborted)(struct kith_node *node, struct kith_round_edge *edge,
                    kith_id from, uint64_t number);
    void (*probe)(struct kith_node *node, struct kith_round_edge *edge,
                  kith_id from, uint64_t number);
    /* A model comes again that was merged already. */
    void (*confirm)(struct kith_node *node, kith_id from, uint64_t number);
    /* REQUEST for a model that came too early; NULL: none is sent again. */
    void (*resend)(const struct kith_node *node,
                   const struct kith_round_edge *edge);
    /* Any message of this edge's peer was heard; NULL: nothing follows. */
    void (*heard)(struct kith_node *node, struct kith_round_edge *edge);
    /* An open edge: there is no message for it; what can be said or done by
     * now; the deadline (false: it is in doubt). */
    void (*unsent)(struct kith_node *node, struct kith_round_edge *edge);
    void (*advance)(struct kith_node *node, struct kith_round_edge *edge);
    bool (*settle)(struct kith_node *node, struct kith_round_edge *edge);
    /* The link to `peer` broke; `edge` as for ACK. */
    void (*edge_down)(struct kith_node *node, struct kith_round_edge *edge,
                      kith_id peer);
};
extern const struct kith_mode kith_mode_exchange, kith_mode_mutual,
    kith_mode_cast, kith_mode_mailbox;

#endif

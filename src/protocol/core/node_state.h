/* The node's own state, shared by the files of this folder.
 *
 *   node.c       events, training, what runs next
 *   trigger.c    when an exchange or a round of its own begins
 *   timeouts.c   how long an answer is waited for
 *   presence.c   pausing, leaving, being done
 *   suspects.c   peers that are left out for a while
 *   mode.h       what a node does beyond that: one record of handlers a mode
 *   exchange.h   two-party exchanges, which every mode has (pulls)
 *   round.h      rounds with all neighbours
 *   round_trip.h deadlines
 *
 * While kith_node_step runs, node->now_ns is the time of the event, and what
 * has to be done is appended to node->effects. */
#ifndef KITH_PROTOCOL_CORE_NODE_STATE_H
#define KITH_PROTOCOL_CORE_NODE_STATE_H

#include "kith/assert.h"
#include "kith/node.h"
#include "src/protocol/core/exchange.h"

struct kith_mode;  /* mode.h */
struct kith_round; /* round.h */

/* On LEAVE rounds that the last step began may finish for so long beyond what
 * rounds take. */
#define KITH_LEAVE_NS (500 * KITH_MS)

struct kith_suspect {
    kith_id peer;
    uint32_t until_ms;
};

/* Which part of the node the item that is out belongs to. */
enum owner {
    OWNER_NONE,
    OWNER_UNSTARTED, /* before START nothing runs */
    OWNER_TRAIN,
    OWNER_SAVE,
    OWNER_ROUND,
    OWNER_EXCHANGE, /* + its index in the table */
};

/* What every event asks for stands in front. */
/* PAUSED: nobody carries out steps for a while. */
enum presence { HERE, PAUSED, LEAVING };

struct kith_node {
    const struct kith_node_config *config;
    const struct kith_mode *mode;
    struct kith_round *round;     /* NULL unless the pattern is ROUND */
    struct kith_effects *effects; /* of the event at hand, else NULL */
    kith_ns now_ns;               /* its time */
    uint64_t steps;
    kith_ns leave_ns;    /* told to leave: until then the last round ends */
    kith_ns exchange_ns; /* the earliest deadline of an exchange */
    bool adopting : 1, trigger_due : 1, saving_due : 1;
    unsigned presence : 2; /* enum presence */
    unsigned group : 2;    /* groups that had a record in this turn */
    uint8_t owner;
    uint8_t exchange_mask; /* bit i: exchanges[i] is in use, or will wake us */
    uint8_t pulls;         /* failed pulls while adopting */
    uint8_t charged;       /* bit s: suspects[s] wasted our time */
    uint8_t warned;        /* bit s: lately */
    uint8_t at_once;       /* records given up at once in this turn */
    uint8_t passed;        /* refused in favour of others in this turn */
    kith_ns blocked_ns;    /* training held back since, KITH_NEVER: it is not */
    kith_ns waited_ns;     /* so long in all */
    kith_ns save_ns;       /* next SAVE */
    kith_id self;
    uint32_t draws; /* partners drawn: the position in that stream */
    uint32_t incarnation;
    uint16_t asked_step; /* modulo 2^16: when a swap was last asked of us */
    unsigned exchange_limit : 4; /* records of each side in the table */
    unsigned late_answers : 4;   /* in a row, of asks given up, <= TRIES_MAX */
    unsigned late_turns : 4; /* of models that came when nobody waited any more,
                                since the last turn, <= TRIES_MAX */
    unsigned prepared : 4;   /* the record whose snapshot the TRAIN that is out
                                began with; 0: none */
    struct kith_suspect suspects[KITH_SUSPECTS_MAX];
    struct kith_estimate control, turn; /* REQUEST -> ACCEPT; MODEL -> answer */
    uint64_t next_counter;              /* of our next exchange */
    uint64_t outcomes; /* bit k: the (k + 1)-th last exchange merged */
    /* Bit r: ranks r modulo 32. How often they were refused a record since they
     * had one, up to 3; who had one last, the newest of three groups is 3; who
     * was owed another in this turn. */
    uint32_t refused_low, refused_high, had_low, had_high, had_again;
#define KITH_X(name) uint32_t name;
    KITH_NODE_COUNTS(KITH_X)
#undef KITH_X
    /* (2 * exchange_limit) Even ones this peer initiates, odd ones it answers:
     * with one of each, as mostly, they are neighbours in the cache. */
    struct kith_exchange exchanges[];
};
/* Of exchange_mask. */
#define KITH_EXCHANGES_OURS 0x55u
#define KITH_EXCHANGES_THEIRS 0xaau

/* The last record of `mask`, which is taken out of it; for loops over those in
 * use, which are few. */
static inline uint32_t kith_exchange_next(uint32_t *mask)
{
    KITH_DEBUG_ASSERT(*mask != 0);
#if defined(__GNUC__)
    const uint32_t last = 31 - (uint32_t)__builtin_clz(*mask);
#else
    uint32_t last = 31;
    while ((*mask >> last & 1u) == 0)
        last--;
#endif
    *mask ^= 1u << last;
    return last;
}
static inline uint32_t kith_exchange_count(const struct kith_node *node)
{
    return 2u * node->exchange_limit;
}
static inline bool kith_exchange_is_ours(const struct kith_node *node,
                                         const struct kith_exchange *exchange)
{
    KITH_DEBUG_ASSERT(exchange < &node->exchanges[kith_exchange_count(node)]);
    return (exchange - node->exchanges) % 2 == 0;
}

/* ---- node.c. Effects are appended, bounded by KITH_ASSERT. */

void kith_node_mark(struct kith_node *node, enum kith_mark_kind kind,
                    const struct kith_exchange *exchange, kith_id peer,
                    uint64_t value, double sum);
/* `peer` broke the protocol with a message of this kind. */
void kith_node_bad(struct kith_node *node, const struct kith_exchange *exchange,
                   kith_id peer, const struct kith_message *message);
/* A message that goes out, to be written where it stays: the simulator says
 * millions of them a second. */
static inline struct kith_message *kith_node_send(const struct kith_node *node,
                                                  kith_id to)
{
    KITH_ASSERT(node->effects->send_count < KITH_EFFECT_SENDS);
    struct kith_send *send = &node->effects->sends[node->effects->send_count++];
    send->to = to;
    return &send->message;
}
/* The worker is free: it gets this item, `step` is filled in. Inline, so that
 * the item is written where it stays. */
static inline void kith_node_work(struct kith_node *node, uint32_t owner,
                                  struct kith_work work)
{
    KITH_ASSERT(node->owner == OWNER_NONE && owner > OWNER_UNSTARTED);
    KITH_DEBUG_ASSERT(!node->effects->has_work);
    KITH_ASSERT(work.edges != NULL || work.kind == KITH_WORK_TRAIN ||
                work.kind == KITH_WORK_SAVE);
    node->owner = (uint8_t)owner;
    node->effects->has_work = true;
    work.step = node->steps;
    node->effects->work = work;
}
/* Nothing of this slot may be sent any more. */
void kith_node_cancel(const struct kith_node *node, uint32_t slot);
/* Scalars of a MODEL are sane, all of them, and its values are finite. */
bool kith_node_sane(const struct kith_node *node,
                    const struct kith_message *model);
static inline kith_ns kith_node_earliest(kith_ns a, kith_ns b)
{
    return a < b ? a : b;
}
static inline bool kith_node_has(const struct kith_node *node,
                                 enum kith_algorithm_flag flag)
{
    return node->config->algorithm->flags & flag;
}

/* A peer of `local` neither asks nor answers, not even for a first model: its
 * worker has no room for one. */
static inline bool kith_node_communicates(const struct kith_node *node)
{
    KITH_DEBUG_ASSERT(node->config->algorithm->pattern < KITH_PATTERN_COUNT);
    return node->config->algorithm->pattern != KITH_PATTERN_NONE;
}
/* A save may hold more steps than this run asks for. */
static inline bool kith_node_share_done(const struct kith_node *node)
{
    return node->steps >= node->config->steps;
}

/* ---- trigger.c */

/* Does the step just done begin one? */
bool kith_trigger_is_due(const struct kith_node *node);
/* The trigger that is due opens one, is skipped, or waits. */
void kith_trigger_fire(struct kith_node *node);
/* A trigger that opens nothing while `instead` is under way. */
void kith_trigger_skip(struct kith_node *node,
                       const struct kith_exchange *instead);

/* ---- timeouts.c */

/* Until an answer to a REQUEST, to a MODEL is overdue. */
kith_ns kith_node_control_timeout(const struct kith_node *node, uint32_t tries);
/* Of one that is not measured yet. */
kith_ns kith_node_first_timeout(const struct kith_node *node);
kith_ns kith_node_turn_timeout(const struct kith_node *node, uint32_t tries);
/* One that began then is over. */
void kith_node_turn_took(struct kith_node *node, kith_ns since_ns);
/* A message of an exchange that is over here. A model among them was given up
 * while it was under way, and so is no measure of how long a turn takes: the
 * next ones are waited for twice as long. */
void kith_node_came_late(struct kith_node *node,
                         const struct kith_message *message);

/* ---- presence.c */

/* Told to leave: does so where nothing is to be waited for any more. */
void kith_presence_leave(struct kith_node *node);

/* ---- suspects.c */

/* Left out for a while: it did not answer, or said BYE. */
void kith_node_suspect(struct kith_node *node, kith_id peer, kith_ns span_ns);
/* A suspect that held an exchange which we answer and let it lapse: until the
 * span is over it is answered BUSY, and no message of its own ends that. */
void kith_node_charge(struct kith_node *node, kith_id peer, kith_ns span_ns);
/* The same where a link that was cut may be why: the first time for the short
 * span. */
void kith_node_warn(struct kith_node *node, kith_id peer, kith_ns short_ns,
                    kith_ns long_ns);
/* It let one lapse not long ago. */
bool kith_node_is_warned(const struct kith_node *node, kith_id peer);
bool kith_node_is_charged(const struct kith_node *node, kith_id peer);
bool kith_node_is_suspect(const struct kith_node *node, kith_id peer);
/* It was heard: unless it is charged, it is a suspect no more. */
void kith_node_forgive(struct kith_node *node, kith_id peer);
/* Those whose span is not over; how many. */
uint32_t kith_node_suspects(struct kith_node *node,
                            kith_id suspects[KITH_SUSPECTS_MAX]);

#endif

/* How a peer's channel was used, for the rows of a run database: both drivers
 * tell what happens and when, and decide nothing by it.
 *
 *   in flight   bytes of sealed models that were handed to the channel and have
 *               not left it. A real peer: its send window, bursts that the
 *               kernel does not have yet, or that a shaped link holds back. The
 *               simulator, whose channels have no window: a whole model, from
 *               its first bit to its arrival.
 *   sending     time in which any are; their mean is over that time
 *   exchange    time in which an exchange is open on either side, until the own
 *               share of steps is done; as exchange_overlap has it
 *   idle        of it, the time in which nothing is in flight and no model
 *               comes in: waiting for an answer, a step boundary, a work item
 *   passes      walks over a whole message or model that exchanges made: one
 *               for each model sealed, and for each opened; those of work items
 *               are the worker's (kith_work_result). Counted, not timed, and
 *               whatever bytes a value has; what is given up half-way does not
 *               count.
 *
 * Times never run backwards: an event of before the last one is booked as if it
 * came with it.
 * Test: unit/test_channel_use.c */
#ifndef KITH_CHANNEL_USE_H
#define KITH_CHANNEL_USE_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/series.h"
#include "kith/types.h"

/* Zeros at first. */
struct kith_channel_use {
    kith_ns since_ns; /* all below is booked up to then */
    uint64_t in_flight, in_flight_most;
    uint32_t receiving; /* models that come in */
    bool exchanging;
    kith_ns sending_ns, exchange_ns, idle_ns;
    double byte_ns;  /* in flight, over time */
    uint64_t passes; /* sealed, opened, and what work items made */
};

void kith_channel_use_sent(struct kith_channel_use *use, kith_ns now_ns,
                           uint64_t bytes);
/* As many of them have left the channel. */
void kith_channel_use_left(struct kith_channel_use *use, kith_ns now_ns,
                           uint64_t bytes);
/* A model begins to come in, or has come, or will not. */
void kith_channel_use_receives(struct kith_channel_use *use, kith_ns now_ns,
                               bool begins);
void kith_channel_use_exchanges(struct kith_channel_use *use, kith_ns now_ns,
                                bool exchanging);
/* sum += one, as it is at `now_ns`; `sum` is for kith_channel_use_row alone. */
void kith_channel_use_add(struct kith_channel_use *sum, kith_ns now_ns,
                          const struct kith_channel_use *one);
void kith_channel_use_row(const struct kith_channel_use *sum,
                          struct kith_row *row);

#endif

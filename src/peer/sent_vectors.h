/* The analyser: which of the worker's vectors travel, from where, and how many
 * copies each model takes between its vector and what the neighbour reads.
 *
 *   from memory     the neighbour reads it where it lies          0 copies
 *   from channel    it is sealed into records, wholly or in part  1 copy
 *   from outside    as channel, though the neighbour has our memory: the vector
 *                   lies elsewhere, or the link is shaped
 *
 *   static      a vector of the model's numbers: its length is known before the
 *               first step
 *   dynamic     a packed message, or a part of one: what a frame that goes
 *               before each burst says of slot, count and place holds for that
 *               message alone, and its receiver checks all of it
 *
 * The paper traces the first step to learn which tensors a graph's allocator
 * should put into the arena from the second on. Here an algorithm says before
 * the first step which slots it fills (kith_worker_uses), so all of them, and
 * the live model, which a snapshot may be, lie in the arena by then; the first
 * model of a link goes through the channel where the other end has not mapped
 * it yet. This file tells what came of it, once for each slot and way, and sums
 * it up at the end.
 *
 * Xue et al., Fast Distributed Deep Learning over RDMA (EuroSys 2019), 3.3.
 * Test: integration/test_peer_sent.c, unit/test_shared_models.c */
#ifndef KITH_PEER_SENT_VECTORS_H
#define KITH_PEER_SENT_VECTORS_H

#include <stdint.h>

#include "kith/work.h"

struct kith_transport;
struct kith_transfer;

/* Of a process. All zeros: nothing has travelled. */
struct kith_sent_vectors {
    struct kith_sent_slot {
        uint64_t by_memory, by_channel, outside; /* models */
    } slots[KITH_SLOTS_MAX];
};

/* This transfer's last burst has been handed over. Logs what is new of its
 * slot; where the transport shares no memory, nothing. */
void kith_sent_vector(struct kith_transport *transport,
                      const struct kith_transfer *transfer);
/* Logs the sums, where any model has travelled. */
void kith_sent_vectors_sum(struct kith_transport *transport);

#endif

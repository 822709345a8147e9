/* Three lines of the log at most for each slot, one at the end. */
#include "sent_vectors.h"

#include "kith/assert.h"
#include "transport.h"

/* What is packed, and a slice of a round, has a length of its own. */
static bool is_static(const struct kith_transport_options *options,
                      const struct kith_message *message)
{
    return message->payload_bytes == options->model_bytes &&
           (message->pattern == KITH_PATTERN_PULL || !options->opaque);
}

void kith_sent_vector(struct kith_transport *transport,
                      const struct kith_transfer *transfer)
{
    const struct kith_transport_options *options = &transport->options;
    const struct kith_message *message = &transfer->message;
    KITH_ASSERT(message->slot < KITH_SLOTS_MAX);
    if (options->shared == NULL)
        return;
    struct kith_sent_slot *slot = &transport->sent.slots[message->slot];
    uint64_t *way = transfer->outside  ? &slot->outside
                    : transfer->sealed ? &slot->by_channel
                                       : &slot->by_memory;
    if (++*way > 1)
        return;
    kith_transport_log(transport,
                       "travels slot=%u length=%s bytes=%llu step=%llu "
                       "from=%s copies=%d",
                       (unsigned)message->slot,
                       is_static(options, message) ? "static" : "dynamic",
                       (unsigned long long)message->payload_bytes,
                       (unsigned long long)message->step,
                       transfer->outside  ? "outside"
                       : transfer->sealed ? "channel"
                                          : "memory",
                       transfer->sealed ? 1 : 0);
}

void kith_sent_vectors_sum(struct kith_transport *transport)
{
    struct kith_sent_slot sum = {0, 0, 0};
    unsigned slots = 0;
    for (uint32_t i = 0; i < KITH_SLOTS_MAX; i++) {
        const struct kith_sent_slot *slot = &transport->sent.slots[i];
        slots += slot->by_memory + slot->by_channel + slot->outside > 0;
        sum.by_memory += slot->by_memory;
        sum.by_channel += slot->by_channel;
        sum.outside += slot->outside;
    }
    if (slots > 0)
        kith_transport_log(transport,
                           "travelled slots=%u memory=%llu channel=%llu "
                           "outside=%llu",
                           slots, (unsigned long long)sum.by_memory,
                           (unsigned long long)sum.by_channel,
                           (unsigned long long)sum.outside);
}

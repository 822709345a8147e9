/* Half-open connections: a table of entries and a token bucket per address. */
#include "half_open.h"

#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "kith/assert.h"

enum kith_err kith_halfopen_init(struct kith_halfopen *halfopen,
                                 const struct kith_peer_limits *limits)
{
    memset(halfopen, 0, sizeof *halfopen);
    halfopen->limits = limits;
    halfopen->budget = limits->handshakes_per_s;
    halfopen->entries =
        calloc(limits->half_open_max, sizeof *halfopen->entries);
    return halfopen->entries ? KITH_OK : KITH_ENOMEM;
}

void kith_halfopen_close(struct kith_halfopen *halfopen)
{
    free(halfopen->entries);
    halfopen->entries = NULL;
}

static void network_of(const struct sockaddr *from, uint8_t network[16])
{
    kith_address_bytes(from, network);
    /* A /24 of a mapped IPv4 address (also what a listener for both families
     * reports) leaves 15 bytes, a /56 of IPv6 leaves 7. */
    const size_t keep = kith_address_is_mapped(network) ? 15 : 7;
    memset(network + keep, 0, 16 - keep);
}

/* Whose rate it is: one address of IPv4, but a network of IPv6, where anybody
 * has as many addresses as he likes. */
static void source_of(const struct sockaddr *from, uint8_t source[16])
{
    kith_address_bytes(from, source);
    if (!kith_address_is_mapped(source))
        network_of(from, source);
}

static struct kith_source *source_find(struct kith_halfopen *halfopen,
                                       const uint8_t address[16],
                                       kith_ns now_ns)
{
    struct kith_source *oldest = &halfopen->sources[0];
    for (uint32_t i = 0; i < halfopen->source_count; i++) {
        struct kith_source *source = &halfopen->sources[i];
        if (memcmp(source->address, address, 16) == 0)
            return source;
        if (source->seen_ns < oldest->seen_ns)
            oldest = source;
    }
    if (halfopen->source_count < KITH_SOURCES_MAX)
        oldest = &halfopen->sources[halfopen->source_count++];
    memcpy(oldest->address, address, 16);
    oldest->seen_ns = now_ns;
    oldest->tokens = halfopen->limits->handshake_burst;
    return oldest;
}

/* Takes one token; false when there was none. */
static bool source_take(struct kith_halfopen *halfopen,
                        const struct sockaddr *from, kith_ns now_ns)
{
    uint8_t address[16];
    source_of(from, address);
    struct kith_source *source = source_find(halfopen, address, now_ns);
    const double burst = halfopen->limits->handshake_burst;
    const double elapsed_s =
        (double)(now_ns - source->seen_ns) / (double)KITH_S;
    source->tokens += elapsed_s * halfopen->limits->handshake_rate;
    if (source->tokens > burst)
        source->tokens = burst;
    source->seen_ns = now_ns;
    if (source->tokens < 1)
        return false;
    source->tokens -= 1;
    return true;
}

static void budget_grow(struct kith_halfopen *halfopen, kith_ns now_ns)
{
    const double most = halfopen->limits->handshakes_per_s;
    halfopen->budget +=
        (double)(now_ns - halfopen->budget_ns) / (double)KITH_S * most;
    if (halfopen->budget > most)
        halfopen->budget = most;
    halfopen->budget_ns = now_ns;
}

static uint32_t network_count(const struct kith_halfopen *halfopen,
                              const uint8_t network[16])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < halfopen->limits->half_open_max; i++) {
        const struct kith_halfopen_entry *entry = &halfopen->entries[i];
        count += entry->used && !entry->exempt &&
                 memcmp(entry->network, network, 16) == 0;
    }
    return count;
}

enum kith_refusal kith_halfopen_admit(struct kith_halfopen *halfopen,
                                      const struct sockaddr *from,
                                      kith_ns now_ns, uint32_t *ticket)
{
    const struct kith_peer_limits *limits = halfopen->limits;
    const bool exempt =
        limits->loopback_exempt && kith_address_is_loopback(from);
    uint8_t network[16];
    network_of(from, network);

    /* Tokens are counted at all times, held against the source only when
     * connections are scarce. */
    const bool in_rate = exempt || source_take(halfopen, from, now_ns);
    budget_grow(halfopen, now_ns);
    if (halfopen->count >= limits->half_open_max)
        return KITH_REFUSAL_HALF_OPEN;
    if (!exempt && !in_rate &&
        halfopen->budget < 0.5 * limits->handshakes_per_s)
        return KITH_REFUSAL_RATE;
    if (!exempt && halfopen->budget < 1)
        return KITH_REFUSAL_BUDGET;
    if (!exempt && halfopen->count > limits->half_open_free) {
        if (network_count(halfopen, network) >= limits->half_open_per_network)
            return KITH_REFUSAL_NETWORK;
        if (!in_rate)
            return KITH_REFUSAL_RATE;
    }
    if (!exempt)
        halfopen->budget -= 1;
    uint32_t at = 0;
    while (halfopen->entries[at].used)
        at++;
    KITH_ASSERT(at < limits->half_open_max);
    halfopen->entries[at].used = true;
    halfopen->entries[at].exempt = exempt;
    memcpy(halfopen->entries[at].network, network, 16);
    halfopen->count++;
    *ticket = at;
    return KITH_REFUSAL_COUNT;
}

void kith_halfopen_release(struct kith_halfopen *halfopen, uint32_t ticket)
{
    KITH_ASSERT(ticket < halfopen->limits->half_open_max);
    KITH_ASSERT(halfopen->entries[ticket].used);
    halfopen->entries[ticket].used = false;
    halfopen->count--;
}

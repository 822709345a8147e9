/* Half-open connections: a table of entries and a token bucket per address. */
#include "half_open.h"

#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "kith/assert.h"

/* All memory at once: under attack nothing is allocated for a refusal. */
enum kith_err kith_half_open_init(struct kith_half_open_table *table,
                                  const struct kith_peer_limits *limits)
{
    memset(table, 0, sizeof *table);
    table->limits = limits;
    table->budget = limits->handshakes_per_s;
    table->entries = calloc(limits->half_open_max, sizeof *table->entries);
    return table->entries ? KITH_OK : KITH_ENOMEM;
}

/* Tickets that are still out are of no use after this. */
void kith_half_open_close(struct kith_half_open_table *table)
{
    free(table->entries);
    table->entries = NULL;
}

/* The shortest prefix that an ordinary customer gets: whole networks are what
 * one attacker holds. */
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

/* A linear search in 512 entries: a microsecond, against two curve operations
 * for a handshake. A new source starts with a full bucket. */
static struct kith_half_open_source *
source_find(struct kith_half_open_table *table, const uint8_t address[16],
            kith_ns now_ns)
{
    struct kith_half_open_source *oldest = &table->sources[0];
    for (uint32_t i = 0; i < table->source_count; i++) {
        struct kith_half_open_source *source = &table->sources[i];
        if (memcmp(source->address, address, 16) == 0)
            return source;
        if (source->seen_ns < oldest->seen_ns)
            oldest = source;
    }
    if (table->source_count < KITH_HALF_OPEN_SOURCES_MAX)
        oldest = &table->sources[table->source_count++];
    memcpy(oldest->address, address, 16);
    KITH_ASSERT(table->source_count <= KITH_HALF_OPEN_SOURCES_MAX);
    oldest->seen_ns = now_ns;
    oldest->tokens = table->limits->handshake_burst;
    return oldest;
}

/* Takes one token; false when there was none. */
static bool source_take(struct kith_half_open_table *table,
                        const struct sockaddr *from, kith_ns now_ns)
{
    uint8_t address[16];
    source_of(from, address);
    struct kith_half_open_source *source = source_find(table, address, now_ns);
    const double burst = table->limits->handshake_burst;
    KITH_ASSERT(now_ns >= source->seen_ns);
    const double elapsed_s =
        (double)(now_ns - source->seen_ns) / (double)KITH_S;
    source->tokens += elapsed_s * table->limits->handshake_rate;
    if (source->tokens > burst)
        source->tokens = burst;
    source->seen_ns = now_ns;
    if (source->tokens < 1)
        return false;
    source->tokens -= 1;
    return true;
}

/* A bucket of one second: a burst after a quiet time is served at once, a
 * flood only at the sustained rate. */
static void budget_grow(struct kith_half_open_table *table, kith_ns now_ns)
{
    const double most = table->limits->handshakes_per_s;
    KITH_ASSERT(now_ns >= table->budget_ns && table->budget >= 0);
    table->budget +=
        (double)(now_ns - table->budget_ns) / (double)KITH_S * most;
    if (table->budget > most)
        table->budget = most;
    table->budget_ns = now_ns;
}

/* Counted, not kept: it is asked only while more than half_open_free are out.
 */
static uint32_t network_count(const struct kith_half_open_table *table,
                              const uint8_t network[16])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < table->limits->half_open_max; i++) {
        const struct kith_half_open_entry *entry = &table->entries[i];
        count += entry->used && !entry->exempt &&
                 memcmp(entry->network, network, 16) == 0;
    }
    return count;
}

/* Order matters: what is free of charge is checked before what takes a token
 * of the budget, and the total binds loopback, too. */
enum kith_refusal kith_half_open_admit(struct kith_half_open_table *table,
                                       const struct sockaddr *from,
                                       kith_ns now_ns, uint32_t *ticket)
{
    const struct kith_peer_limits *limits = table->limits;
    const bool exempt =
        limits->loopback_exempt && kith_address_is_loopback(from);
    uint8_t network[16];
    network_of(from, network);

    /* Tokens are counted at all times, held against the source only when
     * connections are scarce. */
    const bool in_rate = exempt || source_take(table, from, now_ns);
    budget_grow(table, now_ns);
    if (table->count >= limits->half_open_max)
        return KITH_REFUSAL_HALF_OPEN;
    if (!exempt && !in_rate && table->budget < 0.5 * limits->handshakes_per_s)
        return KITH_REFUSAL_RATE;
    if (!exempt && table->budget < 1)
        return KITH_REFUSAL_BUDGET;
    if (!exempt && table->count > limits->half_open_free) {
        if (network_count(table, network) >= limits->half_open_per_network)
            return KITH_REFUSAL_NETWORK;
        if (!in_rate)
            return KITH_REFUSAL_RATE;
    }
    if (!exempt)
        table->budget -= 1;
    uint32_t at = 0;
    while (table->entries[at].used)
        at++;
    KITH_ASSERT(at < limits->half_open_max);
    table->entries[at].used = true;
    table->entries[at].exempt = exempt;
    memcpy(table->entries[at].network, network, 16);
    table->count++;
    KITH_ASSERT(table->count <= limits->half_open_max && table->budget >= 0);
    *ticket = at;
    return KITH_REFUSAL_COUNT;
}

/* Exactly once a ticket: links keep KITH_TICKET_NONE afterwards. */
void kith_half_open_release(struct kith_half_open_table *table, uint32_t ticket)
{
    KITH_ASSERT(ticket < table->limits->half_open_max);
    KITH_ASSERT(table->entries[ticket].used);
    KITH_ASSERT(table->count > 0);
    table->entries[ticket].used = false;
    table->count--;
}

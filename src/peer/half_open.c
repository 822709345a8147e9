/* Half-open connections: a table of entries and a token bucket per address. */
#include "half_open.h"

#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "kith/assert.h"

/* What has come since, `rate` a second, up to `most`. */
static void bucket_fill(struct kith_bucket *bucket, kith_ns now_ns, double rate,
                        double most)
{
    KITH_ASSERT(now_ns >= bucket->at_ns && bucket->tokens >= 0);
    bucket->tokens += (double)(now_ns - bucket->at_ns) / (double)KITH_S * rate;
    if (bucket->tokens > most)
        bucket->tokens = most;
    bucket->at_ns = now_ns;
}

bool kith_bucket_take(struct kith_bucket *bucket, kith_ns now_ns, double rate,
                      double most)
{
    bucket_fill(bucket, now_ns, rate, most);
    if (bucket->tokens < 1)
        return false;
    bucket->tokens -= 1;
    return true;
}

/* All memory at once: under attack nothing is allocated for a refusal. */
enum kith_err kith_half_open_init(struct kith_half_open_table *table,
                                  const struct kith_peer_limits *limits)
{
    *table = (struct kith_half_open_table){
        .limits = limits, .budget.tokens = limits->handshakes_per_s};
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
        if (source->bucket.at_ns < oldest->bucket.at_ns)
            oldest = source;
    }
    if (table->source_count < KITH_HALF_OPEN_SOURCES_MAX)
        oldest = &table->sources[table->source_count++];
    memcpy(oldest->address, address, 16);
    KITH_ASSERT(table->source_count <= KITH_HALF_OPEN_SOURCES_MAX);
    oldest->bucket = (struct kith_bucket){
        .tokens = table->limits->handshake_burst, .at_ns = now_ns};
    return oldest;
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
    const double per_s = limits->handshakes_per_s;
    double *const budget = &table->budget.tokens;
    uint8_t network[16], address[16];
    network_of(from, network);
    source_of(from, address);

    /* Tokens are counted at all times, held against the source only when
     * connections are scarce. */
    const bool in_rate =
        exempt ||
        kith_bucket_take(&source_find(table, address, now_ns)->bucket, now_ns,
                         limits->handshake_rate, limits->handshake_burst);
    /* A bucket of one second: a burst after a quiet time is served at once, a
     * flood only at the sustained rate. */
    bucket_fill(&table->budget, now_ns, per_s, per_s);
    if (table->count >= limits->half_open_max)
        return KITH_REFUSAL_HALF_OPEN;
    if (!exempt && !in_rate && *budget < 0.5 * per_s)
        return KITH_REFUSAL_RATE;
    if (!exempt && *budget < 1)
        return KITH_REFUSAL_BUDGET;
    if (!exempt && table->count > limits->half_open_free) {
        if (network_count(table, network) >= limits->half_open_per_network)
            return KITH_REFUSAL_NETWORK;
        if (!in_rate)
            return KITH_REFUSAL_RATE;
    }
    if (!exempt)
        *budget -= 1;
    uint32_t at = 0;
    while (table->entries[at].used)
        at++;
    KITH_ASSERT(at < limits->half_open_max);
    table->entries[at].used = true;
    table->entries[at].exempt = exempt;
    memcpy(table->entries[at].network, network, 16);
    table->count++;
    KITH_ASSERT(table->count <= limits->half_open_max && *budget >= 0);
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

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
                                  const struct kith_peer_limits *limits,
                                  uint32_t members, uint64_t seed)
{
    *table = (struct kith_half_open_table){.limits = limits,
                                           .members = members,
                                           .budget.tokens =
                                               limits->handshakes_per_s};
    kith_rng_init(&table->rng, seed, KITH_STREAM_DROP, 0);
    table->entries = calloc(limits->half_open_max, sizeof *table->entries);
    table->homes = calloc(members, sizeof *table->homes);
    if (table->entries != NULL && table->homes != NULL)
        return KITH_OK;
    kith_half_open_close(table);
    return KITH_ENOMEM;
}

/* Tickets that are still out are of no use after this. */
void kith_half_open_close(struct kith_half_open_table *table)
{
    free(table->entries);
    free(table->homes);
    table->entries = NULL;
    table->homes = NULL;
}

void kith_half_open_home(struct kith_half_open_table *table, uint32_t member,
                         const struct sockaddr *at)
{
    KITH_ASSERT(member < table->members);
    kith_address_bytes(at, table->homes[member]);
}

static bool is_home(const struct kith_half_open_table *table,
                    const struct sockaddr *from)
{
    static const uint8_t unknown[16];
    uint8_t address[16];
    kith_address_bytes(from, address);
    if (memcmp(address, unknown, 16) == 0)
        return false;
    for (uint32_t i = 0; i < table->members; i++)
        if (memcmp(table->homes[i], address, 16) == 0)
            return true;
    return false;
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
        count += entry->owner && !entry->exempt &&
                 memcmp(entry->network, network, 16) == 0;
    }
    return count;
}

/* The better one to lose: silence before speech, then age. */
static bool goes_first(const struct kith_half_open_entry *a,
                       const struct kith_half_open_entry *b)
{
    return a->paid != b->paid ? b->paid : a->since_ns < b->since_ns;
}

/* A place for a newcomer: a free one, or somebody else's. Age alone would let a
 * flood push out everybody who needs longer than it takes to fill the table;
 * chance alone would take from those who have just come as soon as from those
 * who hang on. */
static uint32_t take_place(struct kith_half_open_table *table, void **evicted)
{
    const uint32_t max = table->limits->half_open_max;
    uint32_t at = 0;
    if (table->count < max) {
        while (table->entries[at].owner)
            at++;
        table->count++;
        return at;
    }
    at = kith_rng_below(&table->rng, max);
    const uint32_t other = kith_rng_below(&table->rng, max);
    if (goes_first(&table->entries[other], &table->entries[at]))
        at = other;
    *evicted = table->entries[at].owner;
    return at;
}

/* Order matters: nobody is made to leave for one who may not come in. */
enum kith_refusal
kith_half_open_admit(struct kith_half_open_table *table,
                     const struct kith_half_open_request *request,
                     uint32_t *ticket, void **evicted)
{
    const struct kith_peer_limits *limits = table->limits;
    const bool exempt =
        limits->loopback_exempt && kith_address_is_loopback(request->from);
    const double per_s = limits->handshakes_per_s;
    uint8_t network[16], address[16];
    KITH_ASSERT(request->owner);
    network_of(request->from, network);
    source_of(request->from, address);
    *evicted = NULL;

    /* Tokens are counted at all times, held against the source only when
     * connections are scarce. */
    const bool in_rate =
        exempt ||
        kith_bucket_take(&source_find(table, address, request->now_ns)->bucket,
                         request->now_ns, limits->handshake_rate,
                         limits->handshake_burst);
    /* A bucket of one second: a burst after a quiet time is served at once, a
     * flood only at the sustained rate. */
    bucket_fill(&table->budget, request->now_ns, per_s, per_s);
    if (!in_rate && table->budget.tokens < 0.5 * per_s)
        return KITH_REFUSAL_RATE;
    if (!exempt && table->count > limits->half_open_free) {
        if (network_count(table, network) >= limits->half_open_per_network)
            return KITH_REFUSAL_NETWORK;
        if (!in_rate)
            return KITH_REFUSAL_RATE;
    }
    const uint32_t at = take_place(table, evicted);
    KITH_ASSERT(at < limits->half_open_max);
    table->entries[at] = (struct kith_half_open_entry){
        .owner = request->owner,
        .since_ns = request->now_ns,
        .exempt = exempt,
        .home = in_rate && is_home(table, request->from)};
    memcpy(table->entries[at].network, network, 16);
    KITH_ASSERT(table->count <= limits->half_open_max);
    *ticket = at;
    return KITH_REFUSAL_COUNT;
}

bool kith_half_open_pay(struct kith_half_open_table *table, uint32_t ticket,
                        kith_ns now_ns)
{
    const double per_s = table->limits->handshakes_per_s;
    KITH_ASSERT(ticket < table->limits->half_open_max);
    struct kith_half_open_entry *entry = &table->entries[ticket];
    KITH_ASSERT(entry->owner && !entry->paid);
    entry->paid = entry->exempt || entry->home ||
                  kith_bucket_take(&table->budget, now_ns, per_s, per_s);
    return entry->paid;
}

/* Exactly once a ticket: links keep KITH_TICKET_NONE afterwards. */
void kith_half_open_release(struct kith_half_open_table *table, uint32_t ticket)
{
    KITH_ASSERT(ticket < table->limits->half_open_max);
    KITH_ASSERT(table->entries[ticket].owner);
    KITH_ASSERT(table->count > 0);
    table->entries[ticket].owner = NULL;
    table->count--;
}

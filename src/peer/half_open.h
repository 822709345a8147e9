/* Who may hold a half-open connection: a peer that has not yet proved itself.
 *
 * The total binds everybody, but keeps nobody out: where the table is full a
 * newcomer takes the place of one that was there, the older of two drawn at
 * random, and one that has said nothing before one that has. So a flood of
 * silence pushes out itself, and no order of coming makes a place certain. The
 * limits per network and per address apply only while more than
 * `half_open_free` are half-open, and never to loopback, so that a whole
 * cluster in one /24 can start at once.
 *
 * A stranger who comes, takes message 2 and goes is never half-open for long,
 * but costs three curve operations: all but loopback share `handshakes_per_s`,
 * a second's worth saved up, and pay when their first message has come; silence
 * costs none. While less than half of that is left an address is
 * held to its own rate, so that one flood leaves the other half to the rest;
 * when it is used up, no handshake begins, but for who comes from where a
 * member lives, as its address says or was seen last, at its own rate.
 * Pure: time is an argument. Test: unit/test_{transport,admission}.c. */
#ifndef KITH_PEER_HALF_OPEN_H
#define KITH_PEER_HALF_OPEN_H

#include <stdint.h>
#include <sys/socket.h>

#include "kith/peer.h"
#include "kith/rng.h"

/* Addresses whose rate is remembered; the one unseen for longest is replaced,
 * which can only be too kind to it. */
#define KITH_HALF_OPEN_SOURCES_MAX 512u

/* No place in the table. */
#define KITH_TICKET_NONE UINT32_MAX

struct kith_half_open_entry {
    void *owner;         /* of the ticket; NULL: free */
    uint8_t network[16]; /* address cut to /24 or /56 */
    kith_ns since_ns;
    bool exempt, home, paid;
};

/* A token bucket: full at the start, at_ns 0. */
struct kith_bucket {
    double tokens;
    kith_ns at_ns; /* they were counted then */
};
/* Adds what has come since, `rate` a second, up to `most`, and takes one; false
 * when there is none. */
bool kith_bucket_take(struct kith_bucket *bucket, kith_ns now_ns, double rate,
                      double most);

struct kith_half_open_source {
    uint8_t address[16]; /* IPv6: cut to /56 */
    struct kith_bucket bucket;
};

struct kith_half_open_table {
    const struct kith_peer_limits *limits;
    struct kith_half_open_entry *entries; /* (limits->half_open_max) */
    uint32_t count;
    uint8_t (*homes)[16]; /* (members), of zeros: not known */
    uint32_t members;
    struct kith_bucket budget; /* handshakes that may still begin */
    struct kith_half_open_source sources[KITH_HALF_OPEN_SOURCES_MAX];
    uint32_t source_count;
    struct kith_rng rng; /* who makes room: not for a stranger to know */
};

KITH_MUST_CHECK enum kith_err
kith_half_open_init(struct kith_half_open_table *table,
                    const struct kith_peer_limits *limits, uint32_t members,
                    uint64_t seed);
void kith_half_open_close(struct kith_half_open_table *table);

/* A member lives there. Cost of a newcomer: 16 bytes read for each member. */
void kith_half_open_home(struct kith_half_open_table *table, uint32_t member,
                         const struct sockaddr *at);

struct kith_half_open_request {
    const struct sockaddr *from;
    kith_ns now_ns;
    void *owner; /* not NULL */
};
/* KITH_REFUSAL_COUNT: admitted, `*ticket` is to be given back. Otherwise the
 * reason why not. `*evicted`: the owner who had to make room and has lost its
 * ticket, or NULL. */
enum kith_refusal
kith_half_open_admit(struct kith_half_open_table *table,
                     const struct kith_half_open_request *request,
                     uint32_t *ticket, void **evicted);
/* Its first message has come, and its handshake may begin; false: not now. */
bool kith_half_open_pay(struct kith_half_open_table *table, uint32_t ticket,
                        kith_ns now_ns);
void kith_half_open_release(struct kith_half_open_table *table,
                            uint32_t ticket);

#endif

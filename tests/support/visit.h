/* A connection to a real peer, made by hand: for strangers, liars and members
 * that say what no peer of ours would. */
#ifndef KITH_TESTS_VISIT_H
#define KITH_TESTS_VISIT_H

#include "tests/support/peers.h"

struct visit {
    struct kith_session *session;
    void *memory;
    int fd;
};

struct visit_options {
    const struct kith_identity *identity;
    const struct kith_trust *trust;
    uint32_t rank; /* claimed */
    uint64_t hash; /* of the experiment */
    uint64_t dim;
    uint32_t incarnation;
    uint8_t process; /* of several with one key */
    uint32_t from;   /* 127.0.0.1 and so on; 0: any */
    bool stay;       /* read on until the peer closes */
};

/* What the member of this rank would say. */
struct visit_options visit_as(const struct peers *peers, kith_id rank);
/* A TCP connection, reads time out after 6 s. */
int visit_dial(const struct peers *peers, kith_id rank);
/* Runs the session with rank 0 until it is open or broken, or to the peer's
 * close. */
void visit_begin(struct visit *visit, const struct peers *peers,
                 const struct visit_options *options);
void visit_end(struct visit *visit);
/* Waits up to 10 s for a line with this text. */
bool visit_said(const struct peers *peers, kith_id rank, const char *text);

#endif

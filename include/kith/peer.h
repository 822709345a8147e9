/* The real-world driver: one process = one peer.
 *
 *   kith_peer_run() = loop (sockets, timers, kith_node_step) + worker thread
 *
 * `kith lab` forks one process per rank and calls it there; `kith peer` calls
 * it in its own process. Nothing here is global: several runs may follow one
 * another in a process. Protocol and log format: docs/protocol.md.
 * Test: unit/test_{member,transport,peer}.c, integration/test_peer_*.c.
 */
#ifndef KITH_PEER_H
#define KITH_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/curve.h"
#include "kith/data_store.h"
#include "kith/err.h"
#include "kith/experiment.h"
#include "kith/node.h"
#include "kith/session.h"
#include "kith/rundb.h"
#include "kith/types.h"

#define KITH_PEER_ERROR_BYTES 1024
#define KITH_PEER_LINE_BYTES 512
/* HOST:PORT, [V6]:PORT; a DNS name is at most 253 bytes. */
#define KITH_ADDRESS_BYTES 272u

/* X(NAME, word in logs, text): why a connection was not kept. Counted per kind.
 */
#define KITH_REFUSALS(X)                                                       \
    X(HALF_OPEN, "half_open", "too many half-open connections")                \
    X(NETWORK, "network", "too many half-open connections from this network")  \
    X(RATE, "rate", "too many handshakes from this address")                   \
    X(BUDGET, "budget", "handshakes have had their share of the processor")    \
    X(SESSIONS, "sessions", "too many sessions")                               \
    X(TIMEOUT, "timeout", "the handshake took too long")                       \
    X(PREFACE, "preface", "not a kith preface")                                \
    X(VERSION, "version", "another protocol version, suite or cluster")        \
    X(AUTH, "auth", "certificate not accepted")                                \
    X(EXPIRED, "expired", "certificate expired or not yet valid")              \
    X(REVOKED, "revoked", "certificate revoked")                               \
    X(MISMATCH, "mismatch", "another model or configuration")                  \
    X(MEMBER, "member", "not the member it should be")                         \
    X(RECORD, "record", "a record did not authenticate or parse")              \
    X(PLACES, "two_places", "its rank is connected from another address")      \
    X(DUPLICATE, "duplicate", "a better connection with this peer exists")     \
    X(TRANSFER, "transfer", "a transfer that was not asked for, or too large") \
    X(CLOSED, "closed", "closed before the handshake ended")

enum kith_refusal {
#define KITH_X(name, word, text) KITH_REFUSAL_##name,
    KITH_REFUSALS(KITH_X)
#undef KITH_X
        KITH_REFUSAL_COUNT
};
/* "too many half-open connections"; and "half_open", the word in logs. */
const char *kith_refusal_name(enum kith_refusal refusal);
const char *kith_refusal_word(enum kith_refusal refusal);

/* What strangers and neighbours may cost us: settings, with the defaults of
 * docs/protocol.md. The three per-source limits apply only while more
 * than `half_open_free` connections are half-open, and never to loopback. */
struct kith_peer_limits {
    uint32_t half_open_max;         /* 256, all sources */
    uint32_t half_open_free;        /* 32 */
    uint32_t half_open_per_network; /* 4 per /24 (IPv4) or /56 (IPv6) */
    uint32_t handshake_rate;        /* 20 per second and address */
    uint32_t handshake_burst;       /* 5 */
    uint32_t handshakes_per_s;      /* 250 from all: 2 % of one core */
    bool loopback_exempt;           /* true; false in tests */
    uint32_t sessions_max;          /* 4,096: all members of a lab */
    kith_ns message_ns;             /* 2 s per handshake message */
    kith_ns handshake_ns;           /* 5 s for all of it */
    kith_ns idle_ns;                /* 90 s without a byte: close */
    kith_ns alive_ns;               /* 10 s: then a rank may move */
    kith_ns dial_first_ns;          /* 50 ms: back-off after a failed dial */
    kith_ns dial_max_ns;            /* 5 s: its end, doubling */
    kith_ns revoked_ns;             /* 10 s: how often crl is read again */
    kith_ns renew_ns;               /* 60 min +- 10 %: then new session keys */
    uint64_t renew_bytes;           /* 2^40, both ways together: the same */
};
void kith_peer_limits_default(struct kith_peer_limits *limits);

/* Where the member with this rank is, and who it must be. */
struct kith_member {
    char address[KITH_ADDRESS_BYTES]; /* HOST:PORT */
    bool has_fingerprint; /* else its certificate says who it is, or, under an
                             allow-list, who claims the rank first keeps it */
    uint8_t fingerprint[KITH_FINGERPRINT_BYTES]; /* BLAKE2b-256 of its key */
};

struct kith_caller;
struct kith_fork_gate;

struct kith_peer_options {
    const struct kith_experiment *experiment; /* kept for the run */
    const struct kith_examples *train; /* NULL where the model has no data */
    /* Is the own model evaluated on its way, as `evaluate` says? On `test`;
     * NULL where the model has no data. */
    bool evaluates;
    const struct kith_examples *test;
    /* Whence they came in pieces, given to members that come later; NULL: they
     * did not. kith_peer_data_open sets it. */
    struct kith_data_store *store;
    const struct kith_identity *identity;
    const struct kith_trust *trust;
    const char *keys_folder; /* crl is read again from here; NULL: never */

    kith_id self;                      /* own rank */
    const struct kith_member *members; /* (experiment->peers), by rank */
    int listen_fd;      /* a bound, listening TCP socket, taken over; or -1 */
    const char *listen; /* HOST:PORT where listen_fd is -1 */

    const char *save;     /* PATH of the save; NULL: none */
    uint32_t incarnation; /* 0, +1 per restart of this rank within the run */
    bool resume;          /* start from the save, if there is one */
    const char *load;     /* start from this save in any case; NULL: no */
    bool adopt;           /* and adopt the first neighbour's model */
    kith_ns row_ns;       /* between two rows: 500 ms */
    /* Train once so many members are connected, this one among them; 0 or 1: at
     * once. Where they are not within wait_ns: KITH_EALONE. */
    uint32_t wait_members;
    kith_ns wait_ns;

    /* Lines from the launcher, or -1: `slow F`, `cut RANK`, `heal RANK`,
     * `stop`. End of file means stop. Taken over (closed at the end). */
    int control_fd;
    uint64_t share; /* own steps in place of the experiment's; 0: its (benches)
                     */
    const char *congestion; /* TCP_CONGESTION; NULL: the system's (benches) */
    const struct kith_aead *aead; /* NULL: the best for the suite */
    struct kith_peer_limits limits;

    uint64_t base;              /* of the caller's: kith/kith.h; 0: none */
    struct kith_caller *caller; /* who runs the items (kith/caller.h); NULL: a
                                   thread of the peer's */
    struct kith_fork_gate *fork_gate; /* for a process that forks; NULL: none */

    /* All on the loop thread; any may be NULL. What they get is valid for the
     * call only; times are since the run's start. */
    void *user;
    void (*on_row)(void *user, const struct kith_row *row);
    void (*on_mark)(void *user, kith_ns time_ns, const struct kith_mark *mark);
    /* The own share is done, and exchanges are under way or no longer are: told
     * once the share is done, then whenever it changes. */
    void (*on_quiet)(void *user, kith_ns time_ns, bool quiet);
    /* A part of the journal (journal.h), KITH_JOURNAL_PART_BYTES at most; NULL:
     * none is kept. `last`: this life is at its end. */
    void (*on_journal)(void *user, const uint8_t *bytes, size_t size,
                       bool last);
    /* One line, no newline: `connected`, `refused`, `closed`, ... */
    void (*on_log)(void *user, const char *line);
    /* Once, when everything is open and the loop is about to run: returns the
     * CLOCK_MONOTONIC instant the run starts; the peer listens before it. NULL:
     * it starts now. May block: the lab waits here until all peers are ready.
     * Not called where opening failed. */
    kith_ns (*on_ready)(void *user);
};
/* Everything optional off, limits by default. */
void kith_peer_options_default(struct kith_peer_options *options);

/* CPU seconds of this process by what they were spent on. */
struct kith_peer_cpu {
    double train_s;  /* TRAIN items */
    double merge_s;  /* all other items */
    double aead_s;   /* sealing and opening, gate and helpers included */
    double socket_s; /* read and write calls */
    double other_s;  /* the process's total minus the above */
};

struct kith_peer_report {
    struct kith_node_counters counters;
    struct kith_peer_cpu cpu;
    struct kith_row row;     /* the last one */
    struct kith_speed speed; /* over the run */
    struct kith_curve curve; /* own evaluations, as it ended */
    kith_ns wall_ns;         /* from the start to the end */
    uint64_t samples;
    uint64_t bytes_sent, bytes_received; /* on the wire, handshakes included */
    uint64_t connected, closed;          /* sessions */
    uint64_t messages; /* that members sent; known before the end, too */
    uint64_t refusals[KITH_REFUSAL_COUNT];
    uint64_t dial_failures;
    bool finished;    /* own share done (or stop.time reached) */
    bool interrupted; /* stopped before that */
    bool saved;       /* the last save is complete */
    bool diverged;    /* the model is not finite: there is no last save */
};

/* Runs one peer until its stop. Blocks. On failure `error`
 * (KITH_PEER_ERROR_BYTES) says what was attempted, found and to do; the report
 * is filled in as far as known. KITH_EADDRINUSE, KITH_EINVAL (an address),
 * KITH_EMISMATCH, KITH_EUNSUPPORTED (kith_peer_suite), KITH_ENOSPC, KITH_EIO,
 * KITH_ENOMEM, KITH_EPARSE (its data cannot be read any more), KITH_EDEVICE
 * (the backend failed; the save before stays, and a start with `resume` goes on
 * from it), KITH_EALONE (too few members came, or every other one has another
 * experiment). */
KITH_MUST_CHECK enum kith_err
kith_peer_run(const struct kith_peer_options *options,
              struct kith_peer_report *report, char *error);

/* It asked for exchanges, none was done, and no neighbour's came: it trained as
 * one that has no neighbours. */
bool kith_peer_was_alone(const struct kith_peer_report *report);

/* The data set of an experiment with data.manifest, before kith_peer_run: in
 * pieces from the local disk, from members and from the origin (data_store.h).
 * Members are served meanwhile, and until all that are here have all. Sets
 * options->train, test and store; the others have to be set, listen_fd too,
 * which stays the caller's.
 *
 * Returns KITH_OK, or, with `error` (KITH_PEER_ERROR_BYTES) and nothing to
 * close, what kith_data_store_open and kith_dataset_open return, KITH_EPARSE
 * and KITH_ENOENT where a piece is nowhere as the manifest says, KITH_ECLOSED
 * where there is something to read from control_fd, KITH_EMISMATCH,
 * KITH_EUNSUPPORTED, KITH_EBUSY. Test: integration/test_lab_pieces.sh. */
struct kith_peer_data {
    struct kith_data_store store;
    struct kith_dataset dataset;
};
KITH_MUST_CHECK enum kith_err
kith_peer_data_open(struct kith_peer_options *options,
                    struct kith_peer_data *data, char *error);
void kith_peer_data_close(struct kith_peer_data *data);

/* Binds and listens; the port chosen for port 0 is in `bound` (HOST:PORT,
 * KITH_ADDRESS_BYTES; may be NULL). What the lab does before it forks. */
KITH_MUST_CHECK enum kith_err kith_peer_listen(const char *address, int *fd,
                                               char *bound, char *error);

/* The suite of a peer's sessions: the policy of the trust's authority, else
 * network.suite, of which `auto` is AESGCM where a provider has it: the same on
 * all machines of the same hardware. In `error` (KITH_PEER_ERROR_BYTES) why
 * not: KITH_EMISMATCH, file and policy contradict each other, or nothing allows
 * what the file says; KITH_EUNSUPPORTED, this machine has not got it. */
KITH_MUST_CHECK enum kith_err
kith_peer_suite(const struct kith_experiment *experiment,
                const struct kith_trust *trust, enum kith_suite *suite,
                char *error);

/* From here to there: one way's latency and mean jitter, as links have them
 * (kith/link_law.h); the share of packets that were sent again. */
struct kith_link_measure {
    kith_ns latency_ns, jitter_ns;
    uint64_t rate_bits;
    double loss;
};
/* What kith_doctor_run() found of one layer between here and a member. */
struct kith_doctor_check {
    kith_id rank; /* of the member; our own: the identity's files */
    bool ok;
    const char *layer, *found;
    const char *advice;                   /* NULL where it is well */
    const struct kith_link_measure *link; /* of the layer "link", else NULL */
};
/* Dials every other member and says, layer by layer (name, TCP, preface,
 * handshake, certificate, clock, model), how far it came and what to do, one
 * rank after another, our own first. With `links` it measures the way to each
 * that is well, once that peer has no other visitor who measures (it asks again
 * for half a minute, a turn and the rest after it): 12 s and 54 MB at most,
 * which a running peer takes and drops; another release may close instead. A
 * check's texts are valid during the call. *failures: members not well. */
struct kith_doctor_options {
    const struct kith_experiment *experiment;
    const struct kith_identity *identity;
    const struct kith_trust *trust;
    kith_id self;
    const struct kith_member *members; /* (experiment->peers) */
    size_t dim; /* of the model, for HELLO; a program's is not compared */
    bool links;
    struct kith_peer_limits limits;
    void *user;
    void (*on_check)(void *user, const struct kith_doctor_check *check);
};
KITH_MUST_CHECK enum kith_err
kith_doctor_run(const struct kith_doctor_options *options, uint32_t *failures,
                char *error);

#endif

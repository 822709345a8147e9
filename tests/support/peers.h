/* Real peers for tests and benchmarks: one forked process per rank on loopback,
 * an authority and keys in memory, a control pipe each, results in shared
 * memory. What `kith lab` does, without its launcher. */
#ifndef KITH_TESTS_PEERS_H
#define KITH_TESTS_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "kith/data.h"
#include "kith/experiment.h"
#include "kith/peer.h"

#define PEERS_MAX 16u
#define PEERS_LINES 64u

/* Written by the child, read by the parent; one writer per field. */
struct peers_shared {
    volatile bool finished, ended;
    volatile uint32_t rows, marks[KITH_MARK_COUNT];
    volatile uint64_t step;
    enum kith_err err;
    char error[KITH_PEER_ERROR_BYTES];
    struct kith_peer_report report;
    volatile uint32_t line_count;
    char lines[PEERS_LINES][KITH_PEER_LINE_BYTES];
};

struct peers {
    struct kith_experiment experiment;
    struct kith_dataset dataset;
    bool has_data;
    uint8_t secret[64]; /* the authority's */
    struct kith_trust trust;
    struct kith_identity identities[PEERS_MAX];
    struct kith_member members[PEERS_MAX];
    int listen_fds[PEERS_MAX]; /* of the next start; -1 once given away */
    pid_t pids[PEERS_MAX];
    int controls[PEERS_MAX];
    char folder[64];
    struct peers_shared *shared; /* (peers) */
    /* Called in the child before it runs: change what the test is about. */
    void (*change)(struct kith_peer_options *options, void *arg);
    void *arg;
};

/* Asserts that all goes well: a test that cannot be set up has failed. */
void peers_open(struct peers *peers, const char *yaml);
/* An identity of this cluster; `from_s`, `to_s` relative to now. Its rank is
 * the number at the end of the name, none where there is none. */
void peers_certify(struct peers *peers, struct kith_identity *identity,
                   const char *name, int64_t from_s, int64_t to_s);
/* The same for a day, with other roles than `train`. */
void peers_certify_roles(struct peers *peers, struct kith_identity *identity,
                         const char *name, uint32_t roles);
void peers_start(struct peers *peers, kith_id rank, uint32_t incarnation,
                 bool resume);
void peers_start_all(struct peers *peers);
void peers_tell(struct peers *peers, kith_id rank, const char *line);
/* True once it has done its share; false after `seconds`. */
bool peers_wait_finished(struct peers *peers, kith_id rank, double seconds);
bool peers_wait_step(struct peers *peers, kith_id rank, uint64_t step,
                     double seconds);
void peers_kill(struct peers *peers, kith_id rank);
/* `stop` to all that run, then waits; true when all ended with KITH_OK. */
bool peers_stop(struct peers *peers, double seconds);
/* A line with this text was logged by this rank. */
bool peers_said(const struct peers *peers, kith_id rank, const char *text);
void peers_print(const struct peers *peers, kith_id rank);
/* FOLDER/RANK.save */
void peers_save_path(const struct peers *peers, kith_id rank, char path[96]);
void peers_close(struct peers *peers);

#endif

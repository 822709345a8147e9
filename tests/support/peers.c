/* Real peers for tests and benchmarks; see peers.h. */
#include "tests/support/peers.h"

#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kith/assert.h"
#include "kith/backend.h"

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static void certify(struct peers *peers, struct kith_identity *identity,
                    const char *name, int64_t from_s, int64_t to_s,
                    uint32_t roles)
{
    const char *dash = strrchr(name, '-');
    struct kith_certificate certificate = {
        .serial = 1,
        .not_before_s = (int64_t)time(NULL) + from_s,
        .not_after_s = (int64_t)time(NULL) + to_s,
        .roles = roles,
        .rank = dash ? (uint32_t)atoi(dash + 1) : KITH_NOBODY,
    };
    memcpy(certificate.cluster, peers->trust.cluster, KITH_CLUSTER_BYTES);
    snprintf(certificate.name, sizeof certificate.name, "%s", name);
    randombytes_buf(identity->secret, sizeof identity->secret);
    KITH_ASSERT(crypto_scalarmult_base(identity->key, identity->secret) == 0);
    memcpy(certificate.key, identity->key, KITH_KEY_BYTES);
    identity->certificate_bytes = kith_certificate_sign(
        &certificate, peers->secret, identity->certificate);
}

void peers_certify(struct peers *peers, struct kith_identity *identity,
                   const char *name, int64_t from_s, int64_t to_s)
{
    certify(peers, identity, name, from_s, to_s, KITH_ROLE_TRAIN);
}

void peers_certify_roles(struct peers *peers, struct kith_identity *identity,
                         const char *name, uint32_t roles)
{
    certify(peers, identity, name, -60, 86400, roles);
}

static void open_member(struct peers *peers, kith_id rank)
{
    char name[16], error[KITH_PEER_ERROR_BYTES];
    snprintf(name, sizeof name, "peer-%u", rank);
    peers_certify(peers, &peers->identities[rank], name, -60, 86400);
    struct kith_member *member = &peers->members[rank];
    member->has_fingerprint = true;
    kith_fingerprint(peers->identities[rank].key, KITH_KEY_BYTES,
                     member->fingerprint);
    const enum kith_err err = kith_peer_listen(
        "127.0.0.1:0", &peers->listen_fds[rank], member->address, error);
    KITH_ASSERT(err == KITH_OK);
}

void peers_open(struct peers *peers, const char *yaml)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    memset(peers, 0, sizeof *peers);
    KITH_ASSERT(sodium_init() >= 0);
    signal(SIGPIPE, SIG_IGN); /* A control pipe may have lost its reader. */
    enum kith_err err = kith_experiment_parse("test", yaml, strlen(yaml), NULL,
                                              0, &peers->experiment, error);
    if (err != KITH_OK)
        fprintf(stderr, "%s\n", error);
    KITH_ASSERT(err == KITH_OK);
    KITH_ASSERT(peers->experiment.peers <= PEERS_MAX);
    if (peers->experiment.model->input != KITH_INPUT_NONE) {
        err = kith_dataset_open(&peers->experiment.data.config, &peers->dataset,
                                error);
        KITH_ASSERT(err == KITH_OK);
        peers->has_data = true;
    }
    kith_backend_threads(1);
    randombytes_buf(peers->trust.cluster, sizeof peers->trust.cluster);
    crypto_sign_keypair(peers->trust.authority[0], peers->secret);
    peers->trust.authority_count = 1;
    for (kith_id i = 0; i < peers->experiment.peers; i++) {
        open_member(peers, i);
        peers->controls[i] = -1;
    }
    snprintf(peers->folder, sizeof peers->folder, "/tmp/kith-test-XXXXXX");
    KITH_ASSERT(mkdtemp(peers->folder) != NULL);
    peers->shared =
        mmap(NULL, PEERS_MAX * sizeof *peers->shared, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    KITH_ASSERT(peers->shared != MAP_FAILED);
}

void peers_save_path(const struct peers *peers, kith_id rank, char path[96])
{
    snprintf(path, 96, "%s/%u.save", peers->folder, rank);
}

/* ---- the child */

static void child_row(void *user, const struct kith_row *row)
{
    struct peers_shared *shared = user;
    shared->step = row->step;
    shared->rows++;
}

static void child_mark(void *user, kith_ns time_ns,
                       const struct kith_mark *mark)
{
    struct peers_shared *shared = user;
    (void)time_ns;
    shared->marks[mark->kind]++;
    if (mark->kind == KITH_MARK_STEP)
        shared->step = mark->value;
    if (mark->kind == KITH_MARK_FINISHED)
        shared->finished = true;
}

static void child_log(void *user, const char *line)
{
    struct peers_shared *shared = user;
    if (getenv("PEERS_VERBOSE") != NULL)
        fprintf(stderr, "%d %s\n", (int)getpid(), line);
    if (shared->line_count < PEERS_LINES)
        snprintf(shared->lines[shared->line_count++], KITH_PEER_LINE_BYTES,
                 "%s", line);
}

static int child_main(struct peers *peers, kith_id rank, int control_fd,
                      uint32_t incarnation, bool resume)
{
    struct peers_shared *shared = &peers->shared[rank];
    struct kith_peer_options options;
    char save[96];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    peers_save_path(peers, rank, save);
    kith_peer_options_default(&options);
    options.experiment = &peers->experiment;
    options.train = peers->has_data ? &peers->dataset.train : NULL;
    options.identity = &peers->identities[rank];
    options.trust = &peers->trust;
    options.self = rank;
    options.members = peers->members;
    options.listen_fd = peers->listen_fds[rank];
    options.save = save;
    options.incarnation = incarnation;
    options.resume = options.adopt = resume;
    options.control_fd = control_fd;
    options.row_ns = 50 * KITH_MS;
    options.user = shared;
    options.on_row = child_row;
    options.on_mark = child_mark;
    options.on_log = child_log;
    if (peers->change != NULL)
        peers->change(&options, peers->arg);
    shared->err = kith_peer_run(&options, &shared->report, shared->error);
    shared->ended = true;
    return shared->err == KITH_OK ? 0 : 1;
}

/* ---- the parent */

void peers_start(struct peers *peers, kith_id rank, uint32_t incarnation,
                 bool resume)
{
    int control[2];
    char error[KITH_PEER_ERROR_BYTES];
    if (peers->listen_fds[rank] < 0) {
        const enum kith_err err =
            kith_peer_listen(peers->members[rank].address,
                             &peers->listen_fds[rank], NULL, error);
        KITH_ASSERT(err == KITH_OK);
    }
    KITH_ASSERT(pipe(control) == 0);
    peers->shared[rank].finished = peers->shared[rank].ended = false;
    fflush(NULL);
    const pid_t pid = fork();
    KITH_ASSERT(pid >= 0);
    if (pid == 0) {
        close(control[1]);
        for (kith_id i = 0; i < peers->experiment.peers; i++) {
            if (i != rank && peers->listen_fds[i] >= 0)
                close(peers->listen_fds[i]);
            if (peers->controls[i] >= 0)
                close(peers->controls[i]);
        }
        const int status =
            child_main(peers, rank, control[0], incarnation, resume);
        if (peers->has_data)
            kith_dataset_close(&peers->dataset);
        kith_experiment_close(&peers->experiment);
        exit(status); /* So that a leak checker has its say. */
    }
    close(control[0]);
    close(peers->listen_fds[rank]);
    peers->listen_fds[rank] = -1;
    peers->pids[rank] = pid;
    peers->controls[rank] = control[1];
}

void peers_start_all(struct peers *peers)
{
    for (kith_id i = 0; i < peers->experiment.peers; i++)
        peers_start(peers, i, 0, false);
}

void peers_tell(struct peers *peers, kith_id rank, const char *line)
{
    char text[64];
    const int size = snprintf(text, sizeof text, "%s\n", line);
    if (peers->controls[rank] >= 0)
        (void)!write(peers->controls[rank], text, (size_t)size);
}

static bool is_alive(struct peers *peers, kith_id rank)
{
    return peers->pids[rank] > 0 && kill(peers->pids[rank], 0) == 0 &&
           !peers->shared[rank].ended;
}

/* Callers say what an idle machine needs at most. One that is busy may take so
 * many times as long: no test is to fail for that. */
#define PATIENCE 10

bool peers_wait_finished(struct peers *peers, kith_id rank, double seconds)
{
    const double until = now_s() + PATIENCE * seconds;
    while (!peers->shared[rank].finished && now_s() < until &&
           is_alive(peers, rank))
        nap();
    return peers->shared[rank].finished;
}

bool peers_wait_step(struct peers *peers, kith_id rank, uint64_t step,
                     double seconds)
{
    const double until = now_s() + PATIENCE * seconds;
    while (peers->shared[rank].step < step && now_s() < until)
        nap();
    return peers->shared[rank].step >= step;
}

static void forget(struct peers *peers, kith_id rank)
{
    peers->pids[rank] = 0;
    if (peers->controls[rank] >= 0)
        close(peers->controls[rank]);
    peers->controls[rank] = -1;
}

void peers_kill(struct peers *peers, kith_id rank)
{
    kill(peers->pids[rank], SIGKILL);
    waitpid(peers->pids[rank], NULL, 0);
    forget(peers, rank);
}

bool peers_stop(struct peers *peers, double seconds)
{
    bool well = true;
    const double until = now_s() + PATIENCE * seconds;
    for (kith_id i = 0; i < peers->experiment.peers; i++)
        peers_tell(peers, i, "stop");
    for (kith_id i = 0; i < peers->experiment.peers; i++) {
        if (peers->pids[i] <= 0)
            continue;
        int status = 0;
        pid_t got;
        while ((got = waitpid(peers->pids[i], &status, WNOHANG)) == 0 &&
               now_s() < until)
            nap();
        if (got == 0) {
            fprintf(stderr, "peer %u did not stop\n", i);
            peers_print(peers, i);
            peers_kill(peers, i);
            well = false;
            continue;
        }
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            fprintf(stderr, "peer %u: status %x: %s\n", i, (unsigned)status,
                    peers->shared[i].error);
            well = false;
        }
        forget(peers, i);
    }
    return well;
}

bool peers_said(const struct peers *peers, kith_id rank, const char *text)
{
    const struct peers_shared *shared = &peers->shared[rank];
    for (uint32_t i = 0; i < shared->line_count; i++)
        if (strstr(shared->lines[i], text) != NULL)
            return true;
    return false;
}

void peers_print(const struct peers *peers, kith_id rank)
{
    const struct peers_shared *shared = &peers->shared[rank];
    const struct kith_node_counters *c = &shared->report.counters;
    fprintf(stderr,
            "peer %u: step %llu attempts %llu done %llu failed %llu refused "
            "%llu torn %llu served %llu bad %llu gated %llu\n",
            rank, (unsigned long long)shared->step,
            (unsigned long long)c->attempts, (unsigned long long)c->done,
            (unsigned long long)c->failed, (unsigned long long)c->refused,
            (unsigned long long)c->torn, (unsigned long long)c->served,
            (unsigned long long)c->bad, (unsigned long long)c->gated);
    const struct kith_peer_cpu *cpu = &shared->report.cpu;
    fprintf(stderr,
            "  cpu train %.3f merge %.3f aead %.3f socket %.3f other %.3f s; "
            "bytes %llu out %llu in\n",
            cpu->train_s, cpu->merge_s, cpu->aead_s, cpu->socket_s,
            cpu->other_s, (unsigned long long)shared->report.bytes_sent,
            (unsigned long long)shared->report.bytes_received);
    for (uint32_t i = 0; i < shared->line_count; i++)
        fprintf(stderr, "  %s\n", shared->lines[i]);
}

void peers_close(struct peers *peers)
{
    char path[128];
    for (kith_id i = 0; i < peers->experiment.peers; i++) {
        if (peers->pids[i] > 0)
            peers_kill(peers, i);
        if (peers->listen_fds[i] >= 0)
            close(peers->listen_fds[i]);
        peers_save_path(peers, i, path);
        unlink(path);
        strcat(path, ".previous");
        unlink(path);
    }
    rmdir(peers->folder);
    if (peers->has_data)
        kith_dataset_close(&peers->dataset);
    kith_experiment_close(&peers->experiment);
    munmap(peers->shared, PEERS_MAX * sizeof *peers->shared);
}

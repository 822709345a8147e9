/* A peer's visitors; see visit.h. */
#include "tests/support/visit.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "kith/assert.h"

struct visit_options visit_as(const struct peers *peers, kith_id rank)
{
    return (struct visit_options){
        .identity = &peers->identities[rank],
        .trust = &peers->trust,
        .rank = rank,
        .hash = kith_experiment_hash(&peers->experiment),
        .dim = peers->experiment.model_config.dim,
    };
}

static int dial_from(const struct peers *peers, kith_id rank, uint32_t from)
{
    struct sockaddr_in own = {.sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(from)};
    struct sockaddr_in to = {.sin_family = AF_INET};
    const char *colon = strchr(peers->members[rank].address, ':');
    to.sin_port = htons((uint16_t)atoi(colon + 1));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const struct timeval patience = {.tv_sec = 6};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    KITH_ASSERT(bind(fd, (void *)&own, sizeof own) == 0);
    KITH_ASSERT(connect(fd, (void *)&to, sizeof to) == 0);
    return fd;
}

int visit_dial(const struct peers *peers, kith_id rank)
{
    return dial_from(peers, rank, 0);
}

static void open_session(struct visit *visit, const struct peers *peers,
                         const struct visit_options *options)
{
    struct kith_session_config config = {
        .initiator = true,
        .trust = options->trust,
        .identity = options->identity,
        .hello = {.experiment_hash = options->hash,
                  .dim = options->dim,
                  .incarnation = options->incarnation,
                  .rank = options->rank},
        .utc_s = (int64_t)time(NULL),
        .random = {1, 2, 3, (uint8_t)options->rank},
        .secret = {options->process},
    };
    snprintf(config.hello.model, sizeof config.hello.model, "%s",
             peers->experiment.model->name);
    char why[KITH_PEER_ERROR_BYTES];
    KITH_ASSERT(kith_peer_suite(&peers->experiment, options->trust,
                                &config.suite, why) == KITH_OK);
    visit->memory = malloc(kith_session_size());
    KITH_ASSERT(kith_session_init(visit->memory, &config, &visit->session) ==
                KITH_OK);
}

void visit_begin(struct visit *visit, const struct peers *peers,
                 const struct visit_options *options)
{
    struct kith_session_event event = {.kind = KITH_SESSION_NONE};
    uint8_t bytes[KITH_PREAUTH_BYTES];
    size_t held = 0;
    open_session(visit, peers, options);
    visit->fd = dial_from(peers, 0, options->from);
    while (options->stay || event.kind != KITH_SESSION_OPEN) {
        uint8_t out[KITH_PREAUTH_BYTES];
        const size_t size =
            kith_session_output(visit->session, out, sizeof out);
        if (size > 0 && write(visit->fd, out, size) < 0)
            break;
        const ssize_t count =
            read(visit->fd, bytes + held, sizeof bytes - held);
        if (count <= 0)
            break;
        size_t at = 0, consumed = 0;
        enum kith_err err;
        held += (size_t)count;
        do {
            err = kith_session_read(visit->session, bytes + at, held - at,
                                    &consumed, &event);
            at += consumed;
        } while (options->stay && err == KITH_OK &&
                 event.kind != KITH_SESSION_NONE);
        held -= at;
        memmove(bytes, bytes + at, held);
    }
}

void visit_end(struct visit *visit)
{
    close(visit->fd);
    kith_session_close(visit->session);
    free(visit->memory);
}

bool visit_said(const struct peers *peers, kith_id rank, const char *text)
{
    /* 100 s, on a machine that is busy. */
    for (int i = 0; i < 20000 && !peers_said(peers, rank, text); i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    return peers_said(peers, rank, text);
}

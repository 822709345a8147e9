/* One thread is both ends, so that its processor time is what they cost
 * together. Of several batches the best counts, since a machine may be busy but
 * is never faster than it is. */
#include "channel_cost.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sodium.h>

#include "kith/backend.h"
#include "kith/session.h"
#include "suite_speed.h"

/* ---- Loopback */

/* Written at once, as far as the socket's buffers go. */
#define CHUNK_BYTES ((size_t)65536)
#define BATCHES 16u
#define BATCH_BYTES ((size_t)8 << 20)
/* Nobody waits longer for a loopback whose buffers are tiny or full. */
#define WAIT_MS 1000
#define ALL_NS (INT64_C(3) * 1000000000)

/* ends[0] and ends[1] are connected; false: neither is open. */
static bool connect_ends(int ends[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    bool done = false;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ends[1] = -1;
    if (listener >= 0 && ends[0] >= 0 &&
        bind(listener, (const struct sockaddr *)&address, size) == 0 &&
        listen(listener, 1) == 0 &&
        getsockname(listener, (struct sockaddr *)&address, &size) == 0 &&
        connect(ends[0], (const struct sockaddr *)&address, size) == 0) {
        ends[1] = accept(listener, NULL, NULL);
        done = ends[1] >= 0;
    }
    if (listener >= 0)
        (void)close(listener);
    if (!done && ends[0] >= 0)
        (void)close(ends[0]);
    return done;
}

/* False: nothing may be written for a while. */
static bool is_writable(int end)
{
    struct pollfd file = {.fd = end, .events = POLLOUT};
    return (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) &&
           poll(&file, 1, WAIT_MS) > 0;
}

/* There and read, so that nothing is left under way: the thread that writes
 * reads, too, and waits for no room that it would have to make. */
static bool move(const int ends[2], char *bytes, size_t size, kith_ns end_ns)
{
    for (size_t sent = 0; sent < size;) {
        const ssize_t n =
            send(ends[0], bytes, CHUNK_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (kith_host_now() > end_ns || (n < 0 && !is_writable(ends[0])))
            return false;
        for (ssize_t left = n; left > 0;) {
            const ssize_t got = recv(ends[1], bytes, (size_t)left, 0);
            if (got <= 0)
                return false;
            left -= got;
        }
        sent += n > 0 ? (size_t)n : 0;
    }
    return true;
}

double kith_cli_socket_rate(void)
{
    int ends[2];
    char *bytes = calloc(1, CHUNK_BYTES);
    double best_s = 0;
    if (bytes == NULL || !connect_ends(ends)) {
        free(bytes);
        return 0;
    }
    const struct timeval wait = {.tv_sec = WAIT_MS / 1000};
    (void)setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    const kith_ns end_ns = kith_host_now() + ALL_NS;
    for (unsigned i = 0; i < BATCHES; i++) {
        const double begin = kith_cli_cpu_s();
        if (!move(ends, bytes, BATCH_BYTES, end_ns))
            break;
        const double batch_s = kith_cli_cpu_s() - begin;
        if (batch_s > 0 && (best_s <= 0 || batch_s < best_s))
            best_s = batch_s;
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
    free(bytes);
    return best_s > 0 ? (double)BATCH_BYTES / best_s : 0;
}

/* ---- Handshakes, of two keys that know each other by an allow-list. */

#define HANDSHAKES 20u

struct pair {
    struct kith_identity identities[2];
    uint8_t allowed[2][KITH_FINGERPRINT_BYTES];
    struct kith_trust trust;
    void *memory[2];
    struct kith_session *sessions[2];
};

static bool make_pair(struct pair *pair)
{
    memset(pair, 0, sizeof *pair);
    if (sodium_init() < 0)
        return false;
    for (int i = 0; i < 2; i++) {
        struct kith_identity *identity = &pair->identities[i];
        randombytes_buf(identity->secret, sizeof identity->secret);
        if (crypto_scalarmult_base(identity->key, identity->secret) != 0)
            return false;
        kith_fingerprint(identity->key, sizeof identity->key, pair->allowed[i]);
        pair->memory[i] = malloc(kith_session_size());
    }
    if (memcmp(pair->allowed[0], pair->allowed[1], KITH_FINGERPRINT_BYTES) >
        0) { /* sorted */
        uint8_t first[KITH_FINGERPRINT_BYTES];
        memcpy(first, pair->allowed[0], sizeof first);
        memcpy(pair->allowed[0], pair->allowed[1], sizeof first);
        memcpy(pair->allowed[1], first, sizeof first);
    }
    pair->trust.allowed =
        (const uint8_t(*)[KITH_FINGERPRINT_BYTES])pair->allowed;
    pair->trust.allowed_count = 2;
    return pair->memory[0] != NULL && pair->memory[1] != NULL;
}

/* All that an end has to say, to the other; false: it was refused. */
static bool pass_on(struct kith_session *from, struct kith_session *to,
                    bool *moved)
{
    uint8_t bytes[KITH_PREAUTH_BYTES];
    const size_t size = kith_session_output(from, bytes, sizeof bytes);
    struct kith_session_event event = {.kind = KITH_SESSION_OPEN};
    for (size_t at = 0; size > 0 && event.kind != KITH_SESSION_NONE;) {
        size_t consumed = 0;
        if (kith_session_read(to, bytes + at, size - at, &consumed, &event) !=
            KITH_OK)
            return false;
        at += consumed;
    }
    *moved = *moved || size > 0;
    return true;
}

static bool shake_hands(struct pair *pair)
{
    bool moved = true, well = true;
    unsigned opened = 0;
    for (; opened < 2; opened++) {
        struct kith_session_config config = {
            .initiator = opened == 0,
            .suite = KITH_SUITE_CHACHAPOLY,
            .trust = &pair->trust,
            .identity = &pair->identities[opened],
            .hello = {.rank = opened, .dim = 1, .model = "plan"},
            .utc_s = (int64_t)time(NULL)};
        randombytes_buf(config.random, sizeof config.random);
        if (kith_session_init(pair->memory[opened], &config,
                              &pair->sessions[opened]) != KITH_OK)
            break;
    }
    well = opened == 2;
    while (well && moved) { /* Four flights at most. */
        moved = false;
        well = pass_on(pair->sessions[0], pair->sessions[1], &moved) &&
               pass_on(pair->sessions[1], pair->sessions[0], &moved);
    }
    well = well && kith_session_is_open(pair->sessions[0]) &&
           kith_session_is_open(pair->sessions[1]);
    while (opened-- > 0)
        kith_session_close(pair->sessions[opened]);
    return well;
}

double kith_cli_handshake_s(void)
{
    struct pair pair;
    double best_s = 0;
    bool well = make_pair(&pair);
    for (unsigned i = 0; well && i < HANDSHAKES; i++) {
        const double begin = kith_cli_cpu_s();
        well = shake_hands(&pair);
        const double took_s = kith_cli_cpu_s() - begin;
        if (best_s <= 0 || took_s < best_s)
            best_s = took_s;
    }
    free(pair.memory[0]);
    free(pair.memory[1]);
    sodium_memzero(&pair, sizeof pair);
    return well ? best_s : 0;
}

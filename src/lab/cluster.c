/* The lab's throw-away cluster. See cluster.h.
 *
 * Every port is held by two sockets with SO_REUSEPORT: one of the launcher,
 * bound and never listening, and the listening one that a peer's process owns.
 * When that process dies, connections are refused as on a real machine, yet
 * nobody can take the port before the peer comes back. */
#include "src/lab/cluster.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "kith/lab.h"

/* A run may be suspended over a weekend; no certificate outlives a month. */
#define CERTIFICATE_SECONDS (INT64_C(30) * 24 * 3600)
#define CLOCK_SLACK_SECONDS 60
#define BACKLOG 256
/* Attempts to make a listening socket on a port that a dying process holds. */
#define LISTEN_TRIES 50
#define LISTEN_WAIT_NS 20000000L

static void make_authority(struct kith_trust *trust, uint8_t secret[64])
{
    memset(trust, 0, sizeof *trust);
    randombytes_buf(trust->cluster, sizeof trust->cluster);
    crypto_sign_keypair(trust->authority[0], secret);
    trust->authority_count = 1;
}

static void make_identity(const struct kith_trust *trust,
                          const uint8_t secret[64], kith_id peer,
                          struct kith_identity *identity,
                          struct kith_member *member)
{
    randombytes_buf(identity->secret, sizeof identity->secret);
    crypto_scalarmult_base(identity->key, identity->secret);

    struct kith_certificate certificate;
    memset(&certificate, 0, sizeof certificate);
    memcpy(certificate.cluster, trust->cluster, sizeof certificate.cluster);
    certificate.serial = (uint64_t)peer + 1;
    memcpy(certificate.key, identity->key, sizeof certificate.key);
    snprintf(certificate.name, sizeof certificate.name, "peer-%u",
             (unsigned)peer);
    certificate.not_before_s = (int64_t)time(NULL) - CLOCK_SLACK_SECONDS;
    certificate.not_after_s = certificate.not_before_s + CERTIFICATE_SECONDS;
    certificate.roles = KITH_ROLE_TRAIN;
    certificate.rank = peer;
    identity->certificate_bytes =
        kith_certificate_sign(&certificate, secret, identity->certificate);

    member->has_fingerprint = true;
    crypto_generichash(member->fingerprint, sizeof member->fingerprint,
                       identity->key, sizeof identity->key, NULL, 0);
}

static int bind_loopback(uint16_t port, bool share)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (share)
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        const int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

/* A shared port may be held by another lab of the same user: only an unshared
 * bind tells. */
static bool port_is_busy(uint16_t port)
{
    const int fd = bind_loopback(port, false);
    if (fd < 0)
        return errno == EADDRINUSE;
    close(fd);
    return false;
}

static enum kith_err reserve_port(struct lab_cluster *cluster, kith_id peer,
                                  uint16_t port, char *error)
{
    if (port != 0 && port_is_busy(port)) {
        snprintf(error, KITH_LAB_ERROR_BYTES,
                 "cannot listen on 127.0.0.1:%u for peer %u: the port is "
                 "in use; choose another with --port, or leave it out",
                 (unsigned)port, (unsigned)peer);
        return KITH_EADDRINUSE;
    }
    const int fd = bind_loopback(port, true);
    struct sockaddr_in bound;
    socklen_t size = sizeof bound;
    if (fd < 0 || getsockname(fd, (struct sockaddr *)&bound, &size) != 0) {
        snprintf(error, KITH_LAB_ERROR_BYTES,
                 "cannot reserve 127.0.0.1:%u for peer %u: %s", (unsigned)port,
                 (unsigned)peer, strerror(errno));
        if (fd >= 0)
            close(fd);
        return errno == EACCES ? KITH_EPERM : KITH_EBUSY;
    }
    cluster->ports[peer] = (struct lab_port){ntohs(bound.sin_port), fd};
    snprintf(cluster->members[peer].address,
             sizeof cluster->members[peer].address, "127.0.0.1:%u",
             (unsigned)cluster->ports[peer].port);
    return KITH_OK;
}

enum kith_err kith_lab_cluster_open(struct lab_cluster *cluster, uint32_t peers,
                                    uint16_t port, const char *saves,
                                    char *error)
{
    memset(cluster, 0, sizeof *cluster);
    if (port != 0 && peers > 65536u - port) {
        snprintf(error, KITH_LAB_ERROR_BYTES,
                 "%u peers from port %u on pass 65535; choose a lower "
                 "--port, or leave it out",
                 (unsigned)peers, (unsigned)port);
        return KITH_EADDRINUSE;
    }
    cluster->identities = calloc(peers, sizeof *cluster->identities);
    cluster->members = calloc(peers, sizeof *cluster->members);
    cluster->ports = calloc(peers, sizeof *cluster->ports);
    enum kith_err err = KITH_ENOMEM;
    snprintf(error, KITH_LAB_ERROR_BYTES, "out of memory for %u peers",
             (unsigned)peers);
    if (cluster->identities == NULL || cluster->members == NULL ||
        cluster->ports == NULL || sodium_init() < 0)
        goto fail;
    cluster->peers = peers;
    for (uint32_t i = 0; i < peers; i++)
        cluster->ports[i].reserved = -1;

    uint8_t secret[64];
    make_authority(&cluster->trust, secret);
    for (uint32_t i = 0; i < peers; i++)
        make_identity(&cluster->trust, secret, i, &cluster->identities[i],
                      &cluster->members[i]);
    sodium_memzero(secret, sizeof secret);

    for (uint32_t i = 0; i < peers; i++) {
        const uint16_t wanted = port == 0 ? 0 : (uint16_t)(port + i);
        err = reserve_port(cluster, i, wanted, error);
        if (err != KITH_OK)
            goto fail;
    }
    err = kith_lab_folder_open(&cluster->folder, saves, error);
    if (err == KITH_OK)
        return KITH_OK;
fail:
    kith_lab_cluster_close(cluster);
    return err;
}

void kith_lab_cluster_close(struct lab_cluster *cluster)
{
    if (cluster->identities != NULL)
        sodium_memzero(cluster->identities,
                       cluster->peers * sizeof *cluster->identities);
    for (uint32_t i = 0; i < cluster->peers; i++)
        if (cluster->ports[i].reserved >= 0)
            close(cluster->ports[i].reserved);
    kith_lab_folder_close(&cluster->folder);
    free(cluster->identities);
    free(cluster->members);
    free(cluster->ports);
    memset(cluster, 0, sizeof *cluster);
}

enum kith_err kith_lab_cluster_listen(struct lab_cluster *cluster, kith_id peer,
                                      int *fd, char *error)
{
    const struct timespec wait = {0, LISTEN_WAIT_NS};
    for (int try = 0;; try++) {
        *fd = bind_loopback(cluster->ports[peer].port, true);
        if (*fd >= 0 && listen(*fd, BACKLOG) == 0)
            return KITH_OK;
        const int why = errno;
        if (*fd >= 0)
            close(*fd);
        *fd = -1;
        if (why == EADDRINUSE && try < LISTEN_TRIES) {
            nanosleep(&wait, NULL);
            continue;
        }
        snprintf(error, KITH_LAB_ERROR_BYTES,
                 "cannot listen on 127.0.0.1:%u for peer %u: %s",
                 (unsigned)cluster->ports[peer].port, (unsigned)peer,
                 strerror(why));
        return why == EADDRINUSE ? KITH_EADDRINUSE : KITH_EBUSY;
    }
}

void kith_lab_cluster_save_path(const struct lab_cluster *cluster, kith_id peer,
                                char *path)
{
    path[0] = 0;
    const int length = snprintf(path, KITH_PATH_BYTES_MAX, "%s/peer-%u.save",
                                cluster->folder.path, (unsigned)peer);
    if (length < 0 || (size_t)length >= KITH_PATH_BYTES_MAX)
        path[0] = 0;
}

void kith_lab_cluster_keep_only(struct lab_cluster *cluster, kith_id peer)
{
    for (uint32_t i = 0; i < cluster->peers; i++)
        if (i != peer)
            sodium_memzero(&cluster->identities[i],
                           sizeof cluster->identities[i]);
}

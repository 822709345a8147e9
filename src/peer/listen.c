/* A listening socket. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "address.h"
#include "kith/text.h"

/* Connections that TCP has completed and we have not accepted: a whole lab that
 * starts at once. The kernel cuts it to net.core.somaxconn. */
#define BACKLOG 512

/* The mistakes that people make with addresses; the caller's exit code depends
 * on the error. The last one is every other. */
static const struct mistake {
    int number; /* errno */
    enum kith_err err;
    const char *advice;
} mistakes[] = {
    {EADDRINUSE, KITH_EADDRINUSE,
     "another program has this port, or a peer of this one that is not closed: "
     "stop it, or choose another"},
    {EACCES, KITH_EPERM,
     "ports below 1024 need privileges: choose a higher one"},
    {EADDRNOTAVAIL, KITH_EINVAL,
     "this machine has no such address: use [::] or 0.0.0.0"},
    {EPERM, KITH_EPERM, "see `ip addr` and `ss -ltn`"},
    {0, KITH_EIO, "see `ip addr` and `ss -ltn`"},
};

/* A socket on one of the addresses that the name stands for; -1, errno. */
static int listen_on(const struct addrinfo *at)
{
    const int fd =
        socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, at->ai_protocol);
    if (fd < 0)
        return -1;
    const int on = 1, off = 0;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (at->ai_family == AF_INET6) /* [::] takes IPv4 too */
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    const int number = errno;
    close(fd);
    errno = number;
    return -1;
}

/* The kernel's answer, since port 0 asks for any. */
static void print_bound(int fd, char *bound)
{
    struct sockaddr_storage name = {.ss_family = 0};
    socklen_t size = sizeof name;
    (void)getsockname(fd, (struct sockaddr *)&name, &size);
    kith_address_print((const struct sockaddr *)&name, bound);
}

/* The first address of the name on which listening succeeds; the error shown
 * is the last one's. */
enum kith_err kith_peer_listen(const char *text, int *fd, char *bound,
                               char *error)
{
    struct kith_address address;
    if (kith_address_parse(text, &address) != KITH_OK)
        return kith_text_fail(error, KITH_PEER_ERROR_BYTES, KITH_EINVAL,
                              "listen: \"%s\" is not HOST:PORT; write "
                              "[::]:7117, 0.0.0.0:7117 or NAME:7117",
                              text);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE};
    struct addrinfo *found;
    const int looked =
        getaddrinfo(address.host[0] != '\0' ? address.host : NULL, address.port,
                    &hints, &found);
    if (looked != 0)
        return kith_text_fail(error, KITH_PEER_ERROR_BYTES, KITH_EINVAL,
                              "listen: looking up \"%s\": %s; use an address "
                              "of this machine, [::] for all",
                              address.host, gai_strerror(looked));
    *fd = -1;
    errno = EADDRNOTAVAIL;
    for (const struct addrinfo *at = found; at && *fd < 0; at = at->ai_next)
        *fd = listen_on(at);
    const int number = errno;
    freeaddrinfo(found);
    if (*fd < 0) {
        const struct mistake *mistake = mistakes;
        while (mistake->number != 0 && mistake->number != number)
            mistake++;
        return kith_text_fail(error, KITH_PEER_ERROR_BYTES, mistake->err,
                              "listen on %s: %s; %s", text, strerror(number),
                              mistake->advice);
    }
    if (bound != NULL)
        print_bound(*fd, bound);
    return KITH_OK;
}

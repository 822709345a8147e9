/* Reading and printing socket addresses. */
#include "address.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "kith/assert.h"
#include "kith/text.h"

_Static_assert(INET6_ADDRSTRLEN <= 64, "a numeric address fits `host`");
_Static_assert(64 + 2 + 1 + 5 < KITH_ADDRESS_BYTES,
               "brackets, colon and port fit beside it");

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* Port 0 is allowed: a listener then gets any free port. */
static bool port_is_valid(const char *port)
{
    uint64_t value;
    return strlen(port) <= 5 && kith_text_u64(port, &value) == KITH_OK &&
           value <= 65535;
}

/* Text only, no look-up: a name is resolved where it is dialled, each time
 * anew, because cloud machines keep names and change addresses. */
enum kith_err kith_address_parse(const char *text, struct kith_address *address)
{
    memset(address, 0, sizeof *address);
    const char *colon = strrchr(text, ':');
    if (colon == NULL || !port_is_valid(colon + 1))
        return KITH_EPARSE;
    size_t size = (size_t)(colon - text);
    const bool opens = size > 0 && text[0] == '[';
    const bool closes = size > 0 && text[size - 1] == ']';
    if (opens != closes || (opens && size < 3))
        return KITH_EPARSE;
    if (opens) {
        text++;
        size -= 2;
    } else if (memchr(text, ':', size) != NULL) {
        return KITH_EPARSE; /* An IPv6 address needs its brackets. */
    }
    if (size >= sizeof address->host)
        return KITH_EPARSE;
    memcpy(address->host, text, size);
    KITH_ASSERT(strlen(colon + 1) < sizeof address->port);
    kith_text_copy(address->port, sizeof address->port, colon + 1);
    return KITH_OK;
}

bool kith_address_is_numeric(const struct kith_address *address,
                             struct sockaddr_storage *at)
{
    const int port = atoi(address->port);
    *at = (struct sockaddr_storage){.ss_family = 0};
    return uv_ip4_addr(address->host, port, (struct sockaddr_in *)at) == 0 ||
           uv_ip6_addr(address->host, port, (struct sockaddr_in6 *)at) == 0;
}

/* One form for both families, so that one peer that comes by IPv4 and by
 * IPv4-mapped IPv6 (RFC 4291, section 2.5.5.2) is one source. Other families,
 * of which a TCP listener reports none, are all zeros. */
void kith_address_bytes(const struct sockaddr *from, uint8_t bytes[16])
{
    memset(bytes, 0, 16);
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)from;
        memcpy(bytes, mapped, sizeof mapped);
        memcpy(bytes + 12, &v4->sin_addr, 4);
    } else if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)from;
        memcpy(bytes, &v6->sin6_addr, 16);
    }
}

/* IPv4 addresses are rationed one by one, IPv6 ones by network. */
/* By the mapped form, so that an IPv4 address is the same over a socket of
 * IPv6. */
bool kith_address_is_same_host(const struct sockaddr *a,
                               const struct sockaddr *b)
{
    uint8_t left[16], right[16];
    kith_address_bytes(a, left);
    kith_address_bytes(b, right);
    return memcmp(left, right, sizeof left) == 0;
}

bool kith_address_is_mapped(const uint8_t bytes[16])
{
    return memcmp(bytes, mapped, sizeof mapped) == 0;
}

/* 127.0.0.0/8 (RFC 1122), ::1, and the first in its mapped form. */
bool kith_address_is_loopback(const struct sockaddr *from)
{
    static const uint8_t six[16] = {[15] = 1};
    uint8_t bytes[16];
    kith_address_bytes(from, bytes);
    return memcmp(bytes, six, 16) == 0 ||
           (kith_address_is_mapped(bytes) && bytes[12] == 127);
}

/* IPv6 in brackets (RFC 3986, section 3.2.2), so that what a log shows can be
 * dialled. */
void kith_address_print(const struct sockaddr *from,
                        char text[KITH_ADDRESS_BYTES])
{
    char host[64];
    const bool v4 = from->sa_family == AF_INET;
    const struct sockaddr_in *const four = (const void *)from;
    const struct sockaddr_in6 *const six = (const void *)from;
    if (uv_ip_name(from, host, sizeof host) != 0) {
        kith_text_copy(text, KITH_ADDRESS_BYTES, "?");
        return;
    }
    snprintf(text, KITH_ADDRESS_BYTES, v4 ? "%s:%u" : "[%s]:%u", host,
             (unsigned)ntohs(v4 ? four->sin_port : six->sin6_port));
}

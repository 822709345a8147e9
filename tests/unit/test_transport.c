/* Goal: addresses are read as written, and half-open connections are bounded
 * as docs/protocol.md says without locking a cluster in one /24 out.
 * Method: both are pure; the clock and the sources are ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <uv.h>

#include "src/peer/address.h"
#include "src/peer/half_open.h"

static void addresses(void **state)
{
    static const struct {
        const char *text, *host, *port; /* host NULL: refused */
    } rows[] = {
        {"127.0.0.1:7117", "127.0.0.1", "7117"},
        {"vm-3:1", "vm-3", "1"},
        {"[::]:7117", "::", "7117"},
        {"[2001:db8::3]:65535", "2001:db8::3", "65535"},
        {":7117", "", "7117"},
        {"vm-3:0", "vm-3", "0"},
        {"vm-3", NULL, NULL},
        {"vm-3:", NULL, NULL},
        {"vm-3:65536", NULL, NULL},
        {"vm-3:-1", NULL, NULL},
        {"vm-3:12x", NULL, NULL},
        {"::1:7117", NULL, NULL},
        {"[::1:7117", NULL, NULL},
        {"::1]:7117", NULL, NULL},
        {"[]:7117", NULL, NULL},
        {"", NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kith_address address;
        const enum kith_err err = kith_address_parse(rows[i].text, &address);
        assert_int_equal(err, rows[i].host ? KITH_OK : KITH_EPARSE);
        if (rows[i].host == NULL)
            continue;
        assert_string_equal(address.host, rows[i].host);
        assert_string_equal(address.port, rows[i].port);
    }
    char text[512];
    memset(text, 'a', sizeof text);
    snprintf(text + 300, sizeof text - 300, ":7117");
    struct kith_address address;
    assert_int_equal(kith_address_parse(text, &address), KITH_EPARSE);
}

static struct sockaddr_storage source(const char *text)
{
    struct sockaddr_storage from;
    memset(&from, 0, sizeof from);
    if (strchr(text, ':') != NULL)
        assert_int_equal(uv_ip6_addr(text, 9, (struct sockaddr_in6 *)&from), 0);
    else
        assert_int_equal(uv_ip4_addr(text, 9, (struct sockaddr_in *)&from), 0);
    return from;
}

/* The n-th who came, over and over again; who had to make room last. */
#define OWNERS 100000u
static char owners[OWNERS];
static uint32_t came;
static void *evicted;

static enum kith_refusal admit(struct kith_half_open_table *halfopen,
                               const char *from_text, kith_ns now_ns,
                               uint32_t *ticket)
{
    const struct sockaddr_storage from = source(from_text);
    const struct kith_half_open_request request = {
        (const struct sockaddr *)&from, now_ns, &owners[came % OWNERS]};
    came++;
    return kith_half_open_admit(halfopen, &request, ticket, &evicted);
}

static void setup(struct kith_half_open_table *halfopen,
                  struct kith_peer_limits *limits)
{
    kith_peer_limits_default(limits);
    assert_int_equal(kith_half_open_init(halfopen, limits, 3, 7), KITH_OK);
}

/* Fills `count` places from distinct networks. */
static void fill(struct kith_half_open_table *halfopen, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char text[32];
        uint32_t ticket;
        snprintf(text, sizeof text, "10.%u.1.1", i);
        assert_int_equal(admit(halfopen, text, 0, &ticket), KITH_REFUSAL_COUNT);
    }
}

static void a_cluster_in_one_network_starts(void **state)
{
    struct kith_half_open_table halfopen;
    struct kith_peer_limits limits;
    uint32_t ticket;
    (void)state;
    setup(&halfopen, &limits);
    for (int i = 0; i < 33; i++)
        assert_int_equal(admit(&halfopen, "192.168.1.7", 0, &ticket),
                         KITH_REFUSAL_COUNT);
    /* Above 32 the limits per source bind. */
    assert_int_equal(admit(&halfopen, "192.168.1.8", 0, &ticket),
                     KITH_REFUSAL_NETWORK);
    kith_half_open_close(&halfopen);
}

/* A full table: the newcomer comes in, and one makes room. */
static void the_total_binds_everybody(void **state)
{
    struct kith_half_open_table halfopen;
    struct kith_peer_limits limits;
    uint32_t ticket;
    (void)state;
    setup(&halfopen, &limits);
    fill(&halfopen, limits.half_open_max);
    assert_null(evicted);
    for (int i = 0; i < 3; i++) {
        const char *from = i == 0   ? "127.0.0.1"
                           : i == 1 ? "198.51.100.1"
                                    : "::1";
        assert_int_equal(admit(&halfopen, from, 0, &ticket),
                         KITH_REFUSAL_COUNT);
        assert_non_null(evicted);
        assert_int_equal(halfopen.count, limits.half_open_max);
    }
    /* Nobody makes room for one who may not come in. */
    for (int i = 0; i < 4; i++)
        (void)admit(&halfopen, "198.51.100.1", 0, &ticket);
    assert_int_equal(admit(&halfopen, "198.51.100.1", 0, &ticket),
                     KITH_REFUSAL_NETWORK);
    assert_null(evicted);
    kith_half_open_release(&halfopen, 5);
    assert_int_equal(admit(&halfopen, "203.0.113.1", 0, &ticket),
                     KITH_REFUSAL_COUNT);
    assert_int_equal(ticket, 5);
    assert_null(evicted);
    kith_half_open_close(&halfopen);
}

/* Of 1,000 who need as long as 64 (256) newcomers to say their first word, and
 * then as long as 2,000 to prove themselves: how many keep their place? */
static void silence_makes_room_first(void **state)
{
    static const struct {
        uint32_t until_heard, least;
    } rows[] = {{0, 950}, {64, 700}, {256, 300}};
    struct kith_half_open_table halfopen;
    struct kith_peer_limits limits;
    (void)state;
    setup(&halfopen, &limits);
    limits.half_open_per_network = UINT32_MAX;
    limits.handshake_rate = limits.handshakes_per_s = UINT32_MAX;
    kith_ns now = 0;
    uint32_t ticket, mine;
    fill(&halfopen, limits.half_open_max);
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        uint32_t kept = 0;
        for (int i = 0; i < 1000; i++) {
            now += KITH_MS;
            assert_int_equal(admit(&halfopen, "198.51.100.1", now, &mine),
                             KITH_REFUSAL_COUNT);
            void *const self = halfopen.entries[mine].owner;
            bool here = true;
            for (uint32_t n = 0; n < rows[row].until_heard + 2000 && here;
                 n++) {
                if (n == rows[row].until_heard)
                    assert_true(kith_half_open_pay(&halfopen, mine, now));
                now += KITH_MS;
                assert_int_equal(admit(&halfopen, "10.1.1.1", now, &ticket),
                                 KITH_REFUSAL_COUNT);
                here = evicted != self;
            }
            kept += here;
            if (here)
                halfopen.entries[mine].paid = false; /* one of the flood */
        }
        print_message("heard after %u: %u of 1000 keep their place\n",
                      rows[row].until_heard, kept);
        assert_true(kept >= rows[row].least);
    }
    kith_half_open_close(&halfopen);
}

static void four_per_network_above_the_free_ones(void **state)
{
    struct kith_half_open_table halfopen;
    struct kith_peer_limits limits;
    uint32_t ticket;
    char text[64];
    (void)state;
    setup(&halfopen, &limits);
    fill(&halfopen, 33);
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof text, "172.16.5.%d", i);
        assert_int_equal(admit(&halfopen, text, 0, &ticket),
                         KITH_REFUSAL_COUNT);
        snprintf(text, sizeof text, "2001:db8:0:100::%d", i);
        assert_int_equal(admit(&halfopen, text, 0, &ticket),
                         KITH_REFUSAL_COUNT);
    }
    assert_int_equal(admit(&halfopen, "172.16.5.9", 0, &ticket),
                     KITH_REFUSAL_NETWORK);
    /* A listener for both families reports IPv4 so: the same /24. */
    assert_int_equal(admit(&halfopen, "::ffff:172.16.5.9", 0, &ticket),
                     KITH_REFUSAL_NETWORK);
    assert_int_equal(admit(&halfopen, "2001:db8:0:1ff::1", 0, &ticket),
                     KITH_REFUSAL_NETWORK);
    assert_int_equal(admit(&halfopen, "2001:db8:0:200::1", 0, &ticket),
                     KITH_REFUSAL_COUNT);
    assert_int_equal(admit(&halfopen, "127.0.0.1", 0, &ticket),
                     KITH_REFUSAL_COUNT);
    kith_half_open_close(&halfopen);
}

static void handshakes_per_second(void **state)
{
    struct kith_half_open_table halfopen;
    struct kith_peer_limits limits;
    uint32_t ticket;
    int admitted = 0;
    (void)state;
    setup(&halfopen, &limits);
    fill(&halfopen, 33);
    for (int i = 0; i < 7; i++) { /* a burst of five */
        const enum kith_refusal refusal =
            admit(&halfopen, "172.16.6.1", KITH_S, &ticket);
        if (refusal == KITH_REFUSAL_COUNT) {
            admitted++;
            kith_half_open_release(&halfopen, ticket);
        } else {
            assert_int_equal(refusal, KITH_REFUSAL_RATE);
        }
    }
    assert_int_equal(admitted, 5);
    /* 50 ms later there is one more. */
    assert_int_equal(
        admit(&halfopen, "172.16.6.1", KITH_S + 51 * KITH_MS, &ticket),
        KITH_REFUSAL_COUNT);
    kith_half_open_release(&halfopen, ticket);
    assert_int_equal(
        admit(&halfopen, "172.16.6.1", KITH_S + 52 * KITH_MS, &ticket),
        KITH_REFUSAL_RATE);
    kith_half_open_close(&halfopen);
}

/* More addresses than places: the table never grows, the oldest is forgotten.
 */
static void many_sources(void **state)
{
    struct kith_half_open_table halfopen;
    struct kith_peer_limits limits;
    uint32_t ticket;
    (void)state;
    setup(&halfopen, &limits);
    for (uint32_t i = 0; i < 4 * KITH_HALF_OPEN_SOURCES_MAX; i++) {
        char text[32];
        snprintf(text, sizeof text, "11.%u.%u.1", i / 256, i % 256);
        assert_int_equal(
            admit(&halfopen, text, (kith_ns)i * 3 * KITH_MS, &ticket),
            KITH_REFUSAL_COUNT);
        kith_half_open_release(&halfopen, ticket);
    }
    assert_int_equal(halfopen.source_count, KITH_HALF_OPEN_SOURCES_MAX);
    assert_int_equal(halfopen.count, 0);
    kith_half_open_close(&halfopen);
}

static void refusals_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < KITH_REFUSAL_COUNT; i++) {
        assert_true(strlen(kith_refusal_name((enum kith_refusal)i)) > 3);
        assert_true(strlen(kith_refusal_word((enum kith_refusal)i)) > 3);
    }
    assert_string_equal(kith_refusal_word(KITH_REFUSAL_COUNT), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses),
        cmocka_unit_test(a_cluster_in_one_network_starts),
        cmocka_unit_test(the_total_binds_everybody),
        cmocka_unit_test(silence_makes_room_first),
        cmocka_unit_test(four_per_network_above_the_free_ones),
        cmocka_unit_test(handshakes_per_second),
        cmocka_unit_test(many_sources),
        cmocka_unit_test(refusals_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

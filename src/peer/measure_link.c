/* The way to a member whose peer runs: it answers as guest.c says.
 *
 * Latency and jitter: up to 30 frames, one after another, each answered. With L
 * + Exp(J) one way (kith/link_law.h) the shortest round trip is about 2 L, the
 * mean one 2 (L + J). Rate: bulk, four times as much each time until it takes
 * 0.4 s and eight round trips, less one; the first of it is TCP's slow start's.
 * Loss: what the kernel has sent again, of what it has sent; without what had
 * come twice, as the other end says (DSACK). */
#include "measure_link.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "kith/assert.h"
#include "kith/backend.h"

#define ROUND_TRIPS_MAX 30u
#define ROUND_TRIPS_MIN 5u
#define ROUND_TRIPS_NS (3 * KITH_S)
#define FRAME_BYTES 32u
/* 64 kB, 256 kB, 1, 4, 16 and 32 MB. */
#define SIZES 6u
#define FIRST_BYTES ((size_t)64 << 10)
#define LAST_BYTES ((size_t)32 << 20)
#define ENOUGH_NS (400 * KITH_MS)
#define TRIPS_ENOUGH 8
/* More is no line's: bits per second. */
#define RATE_MAX 1e12
/* Shorter than a peer keeps a guest. */
#define VISIT_NS (12 * KITH_S)
/* No burst is larger: one record. */
#define BURST_BYTES 32768u

/* No two are alike, and none can be known beforehand: whoever answers has read
 * it. */
static enum kith_err send_frame(struct kith_visit *visit,
                                uint8_t frame[FRAME_BYTES])
{
    uint8_t out[FRAME_BYTES + 32];
    size_t size;
    randombytes_buf(frame, FRAME_BYTES);
    const enum kith_err err = kith_session_seal_control(
        visit->session, frame, FRAME_BYTES, out, sizeof out, &size);
    if (err != KITH_OK)
        return err;
    return kith_visit_write(visit, out, size) ? KITH_OK : KITH_ECLOSED;
}

/* How long until it is back, after what was sent before. */
static enum kith_err await_echo(struct kith_visit *visit, kith_ns began_ns,
                                kith_ns *took_ns)
{
    uint8_t frame[FRAME_BYTES];
    struct kith_session_event event;
    enum kith_err err = send_frame(visit, frame);
    if (err == KITH_OK)
        err = kith_visit_await(visit, KITH_SESSION_CONTROL, &event);
    *took_ns = kith_host_now() - began_ns;
    if (err == KITH_OK && (visit->frame_bytes != FRAME_BYTES ||
                           memcmp(visit->frame, frame, FRAME_BYTES) != 0))
        err = KITH_EPARSE;
    return err;
}

/* One after another: two at once would wait for each other on a slow line. Of a
 * long way fewer, so that there is time for the rest. */
static enum kith_err measure_times(struct kith_visit *visit,
                                   struct kith_link_measure *link)
{
    const kith_ns until_ns = kith_host_now() + ROUND_TRIPS_NS;
    kith_ns least_ns = KITH_NEVER, sum_ns = 0;
    unsigned count = 0;
    while (count < ROUND_TRIPS_MIN ||
           (count < ROUND_TRIPS_MAX && kith_host_now() < until_ns)) {
        kith_ns took_ns;
        const enum kith_err err = await_echo(visit, kith_host_now(), &took_ns);
        if (err != KITH_OK)
            return err;
        sum_ns += took_ns;
        if (took_ns < least_ns)
            least_ns = took_ns;
        count++;
    }
    link->latency_ns = least_ns / 2;
    link->jitter_ns = (sum_ns / count - least_ns) / 2;
    return KITH_OK;
}

/* `bytes` of zeros in bursts; the other end drops them. */
static enum kith_err send_bulk(struct kith_visit *visit, uint64_t transfer,
                               size_t bytes, uint8_t *out, size_t capacity)
{
    static const uint8_t zeros[BURST_BYTES];
    for (size_t at = 0; at < bytes; at += BURST_BYTES) {
        size_t size;
        const struct kith_session_burst burst = {transfer, at, zeros,
                                                 BURST_BYTES};
        const enum kith_err err = kith_session_seal_burst(
            visit->session, &burst, out, capacity, &size);
        if (err != KITH_OK)
            return err;
        if (!kith_visit_write(visit, out, size))
            return kith_host_now() >= visit->until_ns ? KITH_ETIMEOUT
                                                      : KITH_ECLOSED;
    }
    return KITH_OK;
}

/* The echo behind the bulk says that all of it has been opened there; buffers
 * on the way would take in the first of it at any speed. Several round trips,
 * or the kernel's window is still opening. What was measured stays where there
 * is no time for more. */
static enum kith_err measure_rate(struct kith_visit *visit,
                                  struct kith_link_measure *link)
{
    const kith_ns trip_ns = 2 * link->latency_ns;
    const kith_ns enough_ns =
        TRIPS_ENOUGH * trip_ns > ENOUGH_NS ? TRIPS_ENOUGH * trip_ns : ENOUGH_NS;
    const size_t capacity = kith_session_burst_size(BURST_BYTES);
    uint8_t *out = malloc(capacity);
    enum kith_err err = out == NULL ? KITH_ENOMEM : KITH_OK;
    kith_ns least_ns = 0;
    for (unsigned i = 0; err == KITH_OK && i < SIZES && least_ns < enough_ns;
         i++) {
        const size_t bytes = i + 1 < SIZES ? FIRST_BYTES << 2 * i : LAST_BYTES;
        const kith_ns began_ns = kith_host_now();
        kith_ns took_ns;
        err = send_bulk(visit, i, bytes, out, capacity);
        if (err == KITH_OK)
            err = await_echo(visit, began_ns, &took_ns);
        if (err != KITH_OK)
            break;
        least_ns = took_ns > trip_ns ? took_ns - trip_ns : 1;
        const double rate = 8.0 * (double)bytes * KITH_S / (double)least_ns;
        link->rate_bits = (uint64_t)(rate < RATE_MAX ? rate : RATE_MAX);
    }
    free(out);
    return err == KITH_ETIMEOUT && link->rate_bits > 0 ? KITH_OK : err;
}

/* Segments, not bytes; 0 where the kernel does not say. */
static double loss_of(const struct kith_visit *visit)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(visit->fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        info.tcpi_data_segs_out == 0)
        return 0;
    return info.tcpi_total_retrans > info.tcpi_dsack_dups
               ? (double)(info.tcpi_total_retrans - info.tcpi_dsack_dups) /
                     (double)info.tcpi_data_segs_out
               : 0;
}

/* Times first: the rate needs the round trip, and an idle line. Both ends have
 * a bound in time, the visitor's being the shorter: it can say what it was
 * about when that is over. */
enum kith_err kith_measure_link(struct kith_visit *visit,
                                struct kith_link_measure *link)
{
    *link = (struct kith_link_measure){.latency_ns = 0};
    KITH_ASSERT(kith_session_is_open(visit->session));
    visit->until_ns = kith_host_now() + VISIT_NS;
    enum kith_err err = measure_times(visit, link);
    if (err == KITH_OK)
        err = measure_rate(visit, link);
    if (err == KITH_OK)
        link->loss = loss_of(visit);
    return err;
}

/* Before the start: enough members are to be connected.
 *
 *   every GATHERING_MS   members without a link are dialled
 *   connected + 1 >= wait_members   the run starts, its clock at zero
 *   wait_ns are over                the peer ends, with KITH_EALONE
 *
 * Connections of members that wait are proved and held, as those of a lab's
 * peers are before their common start; an idle one is closed after a while, and
 * dialled again here. */
#include <stdio.h>

#include "driver.h"
#include "kith/assert.h"

#define GATHERING_MS 100

/* This peer among them. */
static uint32_t connected(const struct kith_driver *driver)
{
    const struct kith_transport *transport = &driver->transport;
    uint32_t count = 1;
    for (kith_id i = 0; i < transport->options.peers; i++)
        count += transport->members[i].link != NULL;
    return count;
}

/* Says how many were wanted, how many came, and whether some that came have
 * another experiment: the likeliest reason why nobody stays. */
static void give_up(struct kith_driver *driver, uint32_t found)
{
    const struct kith_peer_options *options = driver->options;
    char why[KITH_PEER_LINE_BYTES];
    const uint64_t others = driver->transport.refusals[KITH_REFUSAL_MISMATCH];
    const char *difference = others == 0 ? ""
                             : driver->difference[0] != '\0'
                                 ? driver->difference
                                 : "some have another model or configuration";
    snprintf(why, sizeof why,
             "waited %.4g s for %u members, this one among them, and found %u"
             "%s%s",
             (double)options->wait_ns / (double)KITH_S, options->wait_members,
             found, others > 0 ? "; " : "", difference);
    kith_driver_alone_later(driver, why);
}

/* Enough, too late, or dial again. Dialling who is connected already, or is
 * being dialled, does nothing, so each turn may name all. */
static void gathering_due(uv_timer_t *timer)
{
    struct kith_driver *driver = timer->data;
    struct kith_transport *transport = &driver->transport;
    const struct kith_peer_options *options = driver->options;
    KITH_NET_SCOPE(&transport->net);
    if (driver->phase != KITH_DRIVER_WAITING)
        return;
    const uint32_t found = connected(driver);
    if (found >= options->wait_members) {
        driver->start_ns = (kith_ns)uv_hrtime();
        kith_driver_begin(driver);
        return;
    }
    if ((kith_ns)uv_hrtime() - driver->start_ns >= options->wait_ns) {
        give_up(driver, found);
        return;
    }
    for (kith_id i = 0; i < transport->options.peers; i++)
        if (i != options->self)
            kith_transport_dial(transport, i);
    uv_timer_start(timer, gathering_due, GATHERING_MS, 0);
}

/* The start's own timer serves: the run has not begun, so nothing else holds
 * it. */
void kith_gathering_start(struct kith_driver *driver)
{
    const struct kith_peer_options *options = driver->options;
    KITH_ASSERT(options->wait_members <= options->experiment->peers);
    kith_transport_log(&driver->transport, "waiting members=%u for_s=%.4g",
                       options->wait_members,
                       (double)options->wait_ns / (double)KITH_S);
    uv_timer_start(&driver->start, gathering_due, 0, 0);
}

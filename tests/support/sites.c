/* Peers of two-level by hand: see sites.h. */
#include "tests/support/sites.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct kith_algorithm *two_level(void)
{
    return kith_algorithm_find("two-level");
}

/* Aligned as a worker's are. */
static void *take(size_t bytes)
{
    const size_t whole = (bytes + 63) / 64 * 64;
    void *const memory = aligned_alloc(64, whole);
    assert_non_null(memory);
    memset(memory, 0, whole);
    return memory;
}

static void open_peer(struct sites *sites, kith_id self)
{
    struct sites_peer *const peer = &sites->each[self];
    const size_t bytes = sites->dim * sizeof(float);
    for (unsigned v = 0; v < SITES_VECTORS; v++)
        peer->vectors[v] = take(bytes);
    peer->x = take(bytes);
    peer->gradient = take(bytes);
    peer->algebra = (struct kith_algebra){.backend = kith_backend_find("cpu"),
                                          .dim = sites->dim,
                                          .trained = sites->dim,
                                          .peers = sites->peers,
                                          .self = self,
                                          .seed = 5,
                                          .coefficients = sites->coefficients,
                                          .graph = &sites->graph,
                                          .live = peer->x,
                                          .gradient = peer->gradient,
                                          .scalars = peer->scalars,
                                          .vectors = peer->vectors,
                                          .edge_scalars = peer->numbers};
    sites->bytes_most = two_level()->payload(&peer->algebra);
    peer->algebra.scratch = take(two_level()->scratch_bytes(&peer->algebra));
    peer->algebra.sent = peer->sent = take(sites->bytes_most);
    peer->algebra.received = peer->received = take(sites->bytes_most);
}

void sites_open(struct sites *sites, uint32_t peers, uint32_t regions,
                size_t dim, double share)
{
    size_t size;
    char error[KITH_TOPOLOGY_ERROR_BYTES];
    *sites = (struct sites){.peers = peers,
                            .sites = regions,
                            .members = peers / regions,
                            .dim = dim};
    assert_int_equal(kith_topology_prepare(
                         kith_topology_find("collective-sites"), peers, 5,
                         &(struct kith_topology_options){.regions = regions},
                         &sites->graph, &size, error),
                     KITH_OK);
    assert_int_equal(kith_topology_build(&sites->graph, NULL, error), KITH_OK);
    sites->coefficients[KITH_GOSSIP_SHARE] = share;
    sites->each = take(peers * sizeof *sites->each);
    sites->dead = take(peers * sizeof *sites->dead);
    sites->between = take(regions * sizeof *sites->between);
    for (kith_id i = 0; i < peers; i++)
        open_peer(sites, i);
}

void sites_close(struct sites *sites)
{
    for (kith_id i = 0; i < sites->peers; i++) {
        struct sites_peer *const peer = &sites->each[i];
        for (unsigned v = 0; v < SITES_VECTORS; v++)
            free(peer->vectors[v]);
        free(peer->x);
        free(peer->gradient);
        free(peer->algebra.scratch);
        free(peer->sent);
        free(peer->received);
    }
    free(sites->each);
    free(sites->dead);
    free(sites->between);
}

uint64_t sites_period(const struct sites *sites)
{
    return kith_topology_period(&sites->graph);
}

/* What came of who sends to it; behind that, another message's bytes. */
static void deliver(struct sites *sites, kith_id to)
{
    struct sites_peer *const peer = &sites->each[to];
    kith_id in[KITH_DEGREE_MAX];
    if (kith_topology_sources(&sites->graph, to, sites->round, in, NULL) == 0 ||
        sites->dead[in[0]] ||
        (sites->loses != NULL && sites->loses(sites->round, in[0], to)))
        return;
    const struct sites_peer *const from = &sites->each[in[0]];
    const size_t bytes =
        kith_algorithm_is_whole(two_level(), &sites->graph, sites_period(sites),
                                sites->round)
            ? sites->bytes_most
            : two_level()->slice(&peer->algebra);
    assert_true(bytes <= sites->bytes_most);
    memset(peer->received, 0xff, sites->bytes_most);
    memcpy(peer->received, from->sent, bytes);
    peer->edge.scalars_received[0] = from->edge.scalars_sent[0];
    peer->edge.refused = false;
    two_level()->merge(&peer->algebra, &peer->edge);
    sites->refused += peer->edge.refused;
    if (in[0] / sites->members != to / sites->members)
        sites->between[to / sites->members] += bytes;
}

void sites_cycle(struct sites *sites)
{
    for (uint64_t end = sites->round + sites_period(sites); sites->round < end;
         sites->round++) {
        for (kith_id i = 0; i < sites->peers; i++) {
            sites->each[i].algebra.round = sites->round;
            if (!sites->dead[i])
                two_level()->make(&sites->each[i].algebra,
                                  &sites->each[i].edge);
        }
        for (kith_id i = 0; i < sites->peers; i++)
            if (!sites->dead[i])
                deliver(sites, i);
        for (kith_id i = 0; i < sites->peers; i++)
            if (!sites->dead[i])
                (void)two_level()->finish(&sites->each[i].algebra);
    }
}

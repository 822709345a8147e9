// Messages of SimGrid, to compare with: PEERS actors, each on a host of a star
// and with seconds of its own, sleep a second ROUNDS times, put 1 kB into the
// mailbox of one of 8 neighbours and take what has come into their own.
//
//   messages_simgrid PEERS ROUNDS LATENCY: messages sent, messages that came; a
//   path has two links of LATENCY seconds
#include <simgrid/s4u.hpp>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

namespace sg4 = simgrid::s4u;

enum { NEIGHBOURS = 8, BYTES = 1000 };
static unsigned long sent, came;
static int token;

static void take_all(sg4::Mailbox *own)
{
    while (own->ready()) {
        own->get<int>();
        came++;
    }
}

static void peer(unsigned id, unsigned peers, unsigned rounds)
{
    std::mt19937 draw(id);
    auto *own = sg4::Mailbox::by_name(std::to_string(id));
    own->set_receiver(sg4::Actor::self()); // a message travels at once
    sg4::this_actor::sleep_for(draw() / 4294967296.0);
    for (unsigned round = 0; round < rounds; round++) {
        sg4::this_actor::sleep_for(1);
        const unsigned to = (id + 1 + 97 * (draw() % NEIGHBOURS)) % peers;
        sg4::Mailbox::by_name(std::to_string(to))
            ->put_init(&token, BYTES)
            ->detach();
        sent++;
        take_all(own);
    }
    sg4::this_actor::sleep_for(1);
    take_all(own);
}

int main(int argc, char **argv)
{
    sg4::Engine engine(&argc, argv);
    if (argc != 4) {
        std::fprintf(stderr, "messages_simgrid PEERS ROUNDS LATENCY\n");
        return 2;
    }
    const unsigned peers = (unsigned)std::atoi(argv[1]);
    const unsigned rounds = (unsigned)std::atoi(argv[2]);
    const double latency = std::atof(argv[3]);
    auto *zone = sg4::create_star_zone("zone");
    for (unsigned id = 0; id < peers; id++) {
        const std::string name = std::to_string(id);
        auto *host = zone->create_host("host" + name, 1e9)->seal();
        auto *link = zone->create_link("link" + name, 125e6)
                         ->set_latency(latency)
                         ->seal();
        zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                        {sg4::LinkInRoute(link)}, true);
        sg4::Actor::create(name, host, peer, id, peers, rounds);
    }
    zone->seal();
    engine.run();
    std::printf("%lu %lu\n", sent, came);
    return 0;
}

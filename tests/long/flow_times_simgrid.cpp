// The same as flow_times.c by SimGrid, to compare with: same input, same
// output. The first and last link of a path are a host's, 2 host and 2 host +
// 1, as a route needs hosts; an actor begins the flows. For max-min fair
// sharing alone: --cfg=network/model:CM02 --cfg=network/crosstraffic:0
#include <simgrid/s4u.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sg4 = simgrid::s4u;

struct Message {
    long long start_ns;
    std::uint64_t bytes;
    std::vector<unsigned> path;
    sg4::Host *from, *to;
    sg4::CommPtr comm;
};

static std::vector<Message> messages;

static void check(bool good, const char *what)
{
    if (!good) {
        std::fprintf(stderr, "flow_times: %s\n", what);
        std::exit(1);
    }
}

static void send_all()
{
    for (auto &message : messages) {
        sg4::this_actor::sleep_until(1e-9 * (double)message.start_ns);
        message.comm =
            sg4::Comm::sendto_async(message.from, message.to, message.bytes);
    }
    for (auto &message : messages)
        message.comm->wait();
}

static void read_platform()
{
    unsigned link_count, count;
    check(std::scanf("%u %u", &link_count, &count) == 2, "no platform");
    auto *zone = sg4::create_full_zone("zone");
    std::vector<sg4::Link *> links;
    std::vector<sg4::Host *> hosts;
    for (unsigned i = 0; i < link_count; i++) {
        double capacity;
        check(std::scanf("%lf", &capacity) == 1, "no capacity");
        auto *link = zone->create_link("link" + std::to_string(i), capacity);
        links.push_back(link->set_latency(0)->seal());
        if (i % 2 == 0)
            hosts.push_back(
                zone->create_host("host" + std::to_string(i / 2), 1e9));
    }
    std::map<std::pair<unsigned, unsigned>, bool> routes;
    messages.resize(count);
    for (auto &message : messages) {
        unsigned crossed;
        check(std::scanf("%lld %lu %u", &message.start_ns, &message.bytes,
                         &crossed) == 3,
              "a flow is not as it should be");
        std::vector<sg4::LinkInRoute> route;
        for (unsigned k = 0; k < crossed; k++) {
            unsigned link;
            check(std::scanf("%u", &link) == 1 && link < link_count,
                  "no such link");
            message.path.push_back(link);
            route.emplace_back(links[link]);
        }
        const unsigned from = message.path.front() / 2;
        const unsigned to = message.path.back() / 2;
        message.from = hosts[from];
        message.to = hosts[to];
        if (!routes[{from, to}])
            zone->add_route(message.from->get_netpoint(),
                            message.to->get_netpoint(), nullptr, nullptr, route,
                            false);
        routes[{from, to}] = true;
    }
    zone->seal();
}

int main(int argc, char **argv)
{
    sg4::Engine engine(&argc, argv);
    read_platform();
    sg4::Actor::create("sender", messages[0].from, send_all);
    const std::clock_t begun = std::clock();
    engine.run();
    const std::clock_t over = std::clock();
    for (const auto &message : messages)
        std::printf("%.0f\n", 1e9 * message.comm->get_finish_time());
    std::fprintf(stderr, "%zu %.6f\n", messages.size(),
                 double(over - begun) / CLOCKS_PER_SEC);
    return 0;
}

/* Ends of the flows of a platform, by the simulator's own flows; tests/long/
 * flow_times_simgrid.cpp is the same in SimGrid.
 *
 * Standard input: LINKS FLOWS, then a capacity in bytes a second for each link,
 * then for each flow, by start: start in ns, bytes, links on its path, these
 * links. Standard output: the end of each in ns. Standard error: flows, seconds
 * of processor time that the run took, flows affected by a change on average.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sim/flows.h"

struct message {
    kith_ns start_ns, end_ns;
    uint64_t bytes;
    unsigned links;
    uint32_t path[SIM_PATH_LINKS];
};

static void check(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "flow_times: %s\n", what);
        exit(1);
    }
}

static void read_messages(struct message *messages, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct message *message = &messages[i];
        check(scanf("%" SCNd64 " %" SCNu64 " %u", &message->start_ns,
                    &message->bytes, &message->links) == 3 &&
                  message->links <= SIM_PATH_LINKS,
              "a flow is not as it should be");
        for (unsigned k = 0; k < message->links; k++)
            check(scanf("%" SCNu32, &message->path[k]) == 1, "no such link");
    }
}

/* Flows that begin and end at one time are one change. */
static uint64_t run(struct sim_flows_in_time *flows, struct message *messages,
                    uint32_t count)
{
    uint64_t affected = 0;
    for (uint32_t started = 0, ended = 0; ended < count;) {
        uint32_t flow;
        kith_ns now_ns = sim_flows_next(flows, &flow);
        if (started < count && messages[started].start_ns < now_ns)
            now_ns = messages[started].start_ns;
        for (; sim_flows_next(flows, &flow) == now_ns; ended++) {
            (void)sim_flows_end(flows, flow, now_ns);
            messages[flow].end_ns = now_ns;
        }
        for (; started < count && messages[started].start_ns == now_ns;
             started++)
            check(sim_flows_begin(flows, started, messages[started].path,
                                  messages[started].links,
                                  messages[started].bytes, now_ns) == KITH_OK,
                  "no memory");
        check(sim_flows_share(flows, now_ns) == KITH_OK, "no memory");
        affected += flows->rates.flows_affected.count;
    }
    return affected;
}

int main(void)
{
    uint32_t links, count;
    struct sim_flows_in_time flows;
    check(scanf("%" SCNu32 " %" SCNu32, &links, &count) == 2 && links > 0 &&
              sim_flows_open(&flows, links) == KITH_OK,
          "no platform");
    for (uint32_t link = 0; link < links; link++) {
        double capacity;
        check(scanf("%lf", &capacity) == 1 && capacity > 0, "no capacity");
        sim_rates_capacity(&flows.rates, link, capacity / 1e9);
    }
    struct message *messages = calloc(count, sizeof *messages);
    check(messages != NULL, "no memory");
    read_messages(messages, count);
    const clock_t begun = clock();
    const uint64_t affected = run(&flows, messages, count);
    const clock_t over = clock();
    for (uint32_t i = 0; i < count; i++)
        printf("%" PRId64 "\n", messages[i].end_ns);
    (void)fprintf(stderr, "%u %.6f %.1f\n", count,
                  (double)(over - begun) / CLOCKS_PER_SEC,
                  (double)affected / (2.0 * count));
    free(messages);
    sim_flows_close(&flows);
    return 0;
}

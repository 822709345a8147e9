/* A loopback of our own for benchmarks, with one congestion control for all.
 *
 * The system's default may pace loopback (bbr does: 3.4 GB/s in place of 5.3),
 * so loopback runs, gloo's too, stand in a network namespace whose local routes
 * carry `congctl cubic`. Where namespaces are refused our own sockets ask for
 * cubic themselves, and what does not use our sockets has the default. */
#ifndef KITH_BENCH_NETWORK_H
#define KITH_BENCH_NETWORK_H

#include "bench/bench.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#define BENCH_CONGESTION "cubic"

static inline void bench_write_file(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY);
    if (fd >= 0) {
        (void)!write(fd, text, strlen(text));
        close(fd);
    }
}

/* True inside a namespace of our own. Call it first, before any thread. */
static inline bool bench_network(void)
{
    const unsigned uid = (unsigned)getuid(), gid = (unsigned)getgid();
    char map[64];
    bool apart = unshare(CLONE_NEWNET) == 0;
    if (!apart && unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) {
        bench_write_file("/proc/self/setgroups", "deny");
        snprintf(map, sizeof map, "0 %u 1", uid);
        bench_write_file("/proc/self/uid_map", map);
        snprintf(map, sizeof map, "0 %u 1", gid);
        bench_write_file("/proc/self/gid_map", map);
        apart = true;
    }
    if (apart)
        apart = system("ip link set lo up && ip route change local 127.0.0.0/8 "
                       "dev lo table local proto kernel scope host src "
                       "127.0.0.1 congctl " BENCH_CONGESTION
                       " && ip route change local 127.0.0.1 dev lo table local "
                       "proto kernel scope host src 127.0.0.1 "
                       "congctl " BENCH_CONGESTION) == 0;
    printf("# loopback: %s\n",
           apart ? "own network namespace, congctl " BENCH_CONGESTION
                 : "no namespace here; our sockets ask for " BENCH_CONGESTION);
    return apart;
}

#endif

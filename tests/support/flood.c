/* Strangers in great number; see flood.h. Connections are closed by reset, so
 * that no port waits in TIME_WAIT. */
#include "tests/support/flood.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kith/assert.h"

#define SOURCES 200u
#define HELD_MAX 15000u
#define HOLD_NS (3 * KITH_S)

static int held[HELD_MAX];
static kith_ns born[HELD_MAX];
static unsigned first, last; /* of the ring */

static kith_ns now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (kith_ns)t.tv_sec * KITH_S + t.tv_nsec;
}

static void reset(int fd)
{
    const struct linger at_once = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

/* Never blocks: where the peer's backlog is full the attempt is lost. */
static void knock(const struct sockaddr_in *to, enum flood_kind kind,
                  unsigned count)
{
    struct sockaddr_in from = {.sin_family = AF_INET};
    uint8_t hello[40] = {'k', 'i', 't', 'h', KITH_PROTOCOL_VERSION, 1};
    from.sin_addr.s_addr = htonl(0x7f000001u + ((1 + count % SOURCES) << 8));
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (bind(fd, (const struct sockaddr *)&from, sizeof from) == 0)
        (void)!connect(fd, (const struct sockaddr *)to, sizeof *to);
    if (kind == FLOOD_HELLO) {
        hello[5] = (uint8_t)(1 + count % 2); /* either suite */
        for (size_t i = 8; i < sizeof hello; i++)
            hello[i] = (uint8_t)(count * 31 + i);
        (void)!send(fd, hello, sizeof hello, MSG_NOSIGNAL);
    }
    if (kind == FLOOD_RESET || (last + 1) % HELD_MAX == first) {
        reset(fd);
        return;
    }
    held[last] = fd;
    born[last] = now_ns();
    last = (last + 1) % HELD_MAX;
}

static void flood(const struct sockaddr_in *to, enum flood_kind kind,
                  unsigned per_s)
{
    const kith_ns began = now_ns();
    for (unsigned count = 0;;) {
        const kith_ns now = now_ns();
        while (first != last && now - born[first] > HOLD_NS) {
            reset(held[first]);
            first = (first + 1) % HELD_MAX;
        }
        const double due = 1e-9 * (double)(now - began) * per_s;
        for (; count < due; count++)
            knock(to, kind, count);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

pid_t flood_begin(const struct peers *peers, kith_id rank, enum flood_kind kind,
                  unsigned per_s, int core)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    const char *colon = strchr(peers->members[rank].address, ':');
    to.sin_port = htons((uint16_t)atoi(colon + 1));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const pid_t pid = fork();
    KITH_ASSERT(pid >= 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max < 20000 ? files.rlim_max : 20000;
    setrlimit(RLIMIT_NOFILE, &files);
    if (core >= 0) {
        cpu_set_t cores;
        CPU_ZERO(&cores);
        CPU_SET((unsigned)core, &cores);
        sched_setaffinity(0, sizeof cores, &cores);
    }
    flood(&to, kind, per_s);
    _exit(0);
}

void flood_end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* The trace has every decision with its nanosecond: "   0.221000000     1  <
 * request from 0 ...". */
#include "tests/support/traced.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char trace[1 << 20];

struct simulated traced(const char *yaml)
{
    char path[64];
    (void)snprintf(path, sizeof path, "traced-%ld.trace", (long)getpid());
    const struct sim_options options = {.trace_path = path};
    const struct simulated run = simulate(yaml, &options);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    const size_t size = fread(trace, 1, sizeof trace - 1, file);
    trace[size] = '\0';
    fclose(file);
    remove(path);
    return run;
}

kith_ns when_from(kith_ns from_ns, const char *words)
{
    for (const char *at = trace; (at = strstr(at, words)) != NULL; at++) {
        const char *line = at;
        while (line > trace && line[-1] != '\n')
            line--;
        long long s, ns;
        assert_int_equal(sscanf(line, "%lld.%lld", &s, &ns), 2);
        if (s * KITH_S + ns >= from_ns)
            return s * KITH_S + ns;
    }
    return -1;
}

kith_ns when(const char *words)
{
    return when_from(0, words);
}

/* Zeroed memory on cache-line boundaries, so that sixteen floats lie in one
 * line. All of it is shared: host and backend are the same. And the clock. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "memory.h"

#include "kith/backend.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE = 64 };
/* From here on it is asked whether the machine has so much: Linux promises more
 * than it has, and ends the process that takes the promise at its word. */
#define LARGE ((size_t)1 << 30)

size_t kith_host_available(void)
{
    char line[128];
    unsigned long long kib;
    size_t bytes = SIZE_MAX;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1 &&
            kib <= SIZE_MAX / 1024)
            bytes = (size_t)kib * 1024;
    if (file != NULL)
        (void)fclose(file);
    return bytes;
}

kith_ns kith_host_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (kith_ns)now.tv_sec * KITH_S + now.tv_nsec;
}

void *kith_host_alloc(size_t bytes, bool shared)
{
    (void)shared;
    if (bytes > SIZE_MAX - LINE ||
        (bytes >= LARGE && bytes > kith_host_available()))
        return NULL;
    const size_t whole = bytes == 0 ? LINE : (bytes + LINE - 1) / LINE * LINE;
    void *memory = aligned_alloc(LINE, whole);
    if (memory != NULL)
        memset(memory, 0, whole);
    return memory;
}

void kith_host_release(void *memory)
{
    free(memory);
}

const char *kith_host_missing(void)
{
    return NULL;
}

/* What decides the last bits of a result, for checkpoints. */
#include <stdio.h>
#include <string.h>

#include "kith/backend.h"
#include "kith/build.h"
#include "kith/worker.h"

/* The CPU's own name; "" where the system does not say. */
static void cpu_name(char *name, size_t size)
{
    char line[256];
    name[0] = '\0';
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || value == NULL)
            continue;
        line[strcspn(line, "\n")] = '\0';
        (void)snprintf(name, size, "%.48s", value + 1 + (value[1] == ' '));
        break;
    }
    if (file != NULL)
        (void)fclose(file);
}

void kith_machine_describe(const struct kith_backend *backend, char *text,
                           size_t size)
{
    char cpu[64];
    cpu_name(cpu, sizeof cpu);
    (void)snprintf(text, size, "%s on backend %s (%s, %u threads), %s",
                   kith_build(), backend->name, kith_backend_product_name(),
                   kith_backend_thread_count(), cpu);
}

/* The CUDA module beside what its device can do.
 *
 *   bench_gpu [--tiny] [--out FOLDER] PART...
 *
 *   ceilings  copies on the device and across the bus, the largest products
 *   kernels   every kernel that a step spends time in, as a share of these
 *   steps     GPT-2 124M and ResNet-50, with seconds for each phase
 *   parity    losses and gradients into FOLDER, for reference.py torch-parity
 *   exchange  an exchange of 124M values every ten steps
 *
 * --tiny: sizes that the emulation of tests/cuda can do. A result is a row
 * (rows.c). Rates count the fewest bytes that must move (each input read once,
 * each output written once) and the fewest operations that must be done.
 * Status: 0, targets of speed that were missed included; 1, a failure; 2, the
 * command line; 77, no device. */
#include "bench_gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/cuda_module.h"

/* ceiling.cu; not linked where there is no CUDA. */
__attribute__((weak)) bool ceiling_device(char *name, size_t size);

struct part {
    const char *name;
    bool compares; /* with the ceilings */
    void (*run)(const struct machine *m);
};
static const struct part parts[] = {
    {"ceilings", true, bench_ceilings},  {"kernels", true, bench_kernels},
    {"steps", true, bench_steps},        {"parity", false, bench_parity},
    {"exchange", false, bench_exchange},
};
enum { PARTS = sizeof parts / sizeof parts[0] };

static const struct part *part_find(const char *name)
{
    for (size_t i = 0; i < PARTS; i++)
        if (strcmp(parts[i].name, name) == 0)
            return &parts[i];
    return NULL;
}

static bool is_emulation(void)
{
    const char *const path = getenv("KITH_CUDA_MODULE");
    void *const library =
        path == NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    return library != NULL && dlsym(library, "kith_emulate_launches") != NULL;
}

/* Why not, in a line; NULL: the machine is open. */
static const char *machine_open(struct machine *m)
{
    const char *why;
    const struct kith_cuda_module *const module = kith_cuda_load(&why);
    if (module != NULL)
        why = module->single->missing();
    if (why != NULL)
        return why;
    m->single = module->single;
    m->half = kith_backend_find("cuda-bf16") != NULL ? module->half : NULL;
    m->emulated = is_emulation();
    (void)snprintf(m->device, sizeof m->device,
                   m->emulated ? "emulated" : "unknown");
    if (!m->emulated && ceiling_device != NULL &&
        !ceiling_device(m->device, sizeof m->device))
        return "the CUDA runtime finds no device";
    printf("# device: %s\n", m->device);
    (void)fflush(stdout);
    return NULL;
}

/* Fills chosen, NULL at its end; false: the command line is wrong. */
static bool options(int argc, char **argv, struct machine *m,
                    const struct part **chosen)
{
    size_t count = 0;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--tiny") == 0)
            m->tiny = true;
        else if (strcmp(argv[i], "--out") == 0 && i + 1 < argc)
            m->out = argv[++i];
        else if (count == PARTS ||
                 (chosen[count++] = part_find(argv[i])) == NULL)
            return false;
    chosen[count] = NULL;
    return count > 0;
}

int main(int argc, char **argv)
{
    struct machine m = {.tiny = false};
    const struct part *chosen[PARTS + 1];
    if (!options(argc, argv, &m, chosen)) {
        (void)fprintf(stderr,
                      "usage: bench_gpu [--tiny] [--out FOLDER] PART..., PART "
                      "of ceilings kernels steps parity exchange\n");
        return 2;
    }
    const char *const why = machine_open(&m);
    if (why != NULL) {
        printf("bench_gpu: no device: %s\n", why);
        return 77;
    }
    if (m.tiny)
        clock_quick();
    for (size_t i = 0; chosen[i] != NULL; i++) {
        rows_part(chosen[i]->name);
        if (chosen[i]->compares && m.copy == 0)
            ceilings_measure(&m);
        chosen[i]->run(&m);
    }
    return rows_failed();
}

/* Kernels on flat vectors of 124M values: the optimiser, merges, snapshots.
 * The bytes of a name are those that move for each value. */
#include <stdio.h>

#include "bench_gpu.h"

struct flat {
    const struct kith_backend *on;
    size_t n;
    float *x, *y, *z, *g, *shared;
};

static void run_mix(void *argument)
{
    const struct flat *f = argument;
    (void)f->on->mix(f->n, 0.5, f->y, f->z, f->x);
}

static void run_mix_alone(void *argument)
{
    const struct flat *f = argument;
    (void)f->on->mix(f->n, 0.5, f->y, f->x, f->x);
}

static void run_swap_mix(void *argument)
{
    const struct flat *f = argument;
    (void)f->on->swap_mix(f->n, 0.5, f->y, f->z, f->z, f->x);
}

static void run_gate(void *argument)
{
    const struct flat *f = argument;
    (void)f->on->finite(f->n, f->x);
}

static void run_snapshot(void *argument)
{
    const struct flat *f = argument;
    f->on->copy(f->n, f->shared, f->x);
    (void)f->on->settled(f->shared, true);
}

static void run_receive(void *argument)
{
    const struct flat *f = argument;
    f->on->arrived(f->shared, f->n * sizeof(float));
    (void)f->on->mix(f->n, 0.5, f->shared, f->z, f->x);
}

static void run_adamw(void *argument)
{
    const struct flat *f = argument;
    struct kith_found found;
    f->on->step_begin();
    (void)f->on->ops->adamw(&(struct kith_adamw){.n = f->n,
                                                 .rate = 1e-4,
                                                 .beta1 = 0.9,
                                                 .beta2 = 0.95,
                                                 .epsilon = 1e-8,
                                                 .decay = 0.1,
                                                 .t = 7,
                                                 .g = f->g,
                                                 .m = f->y,
                                                 .v = f->z,
                                                 .x = f->x});
    f->on->step_end(&found);
}

/* Its rate, GB/s. */
static double timed(const struct flat *f, const char *name, unsigned bytes,
                    void (*run)(void *), double ceiling, const char *of)
{
    char text[96];
    const double took = seconds_of(f->on, run, (void *)(uintptr_t)f);
    const double rate = 1e-9 * bytes * (double)f->n / took;
    (void)snprintf(text, sizeof text, "%s, %u B", name, bytes);
    row_rate(text, took, rate, "GB/s", ceiling, of,
             written_elements(f->on, f->n, f->x));
    return rate;
}

void bench_flat(const struct machine *m)
{
    static const char copy[] = "the copy on the device";
    const struct kith_backend *const on = m->single;
    const size_t n = m->tiny ? 5000 : 124439808;
    struct flat f = {.on = on,
                     .n = n,
                     .x = elements(on, n, 0, 1),
                     .y = elements(on, n, 0, 1),
                     .z = elements(on, n, 1, 1), /* a variance, >= 0 */
                     .g = elements(on, n, 0, 1e-3),
                     .shared = on->alloc(n * sizeof(float), true)};
    if (f.shared == NULL) {
        row_failed("a pinned vector", "no memory");
        return;
    }
    (void)timed(&f, "finite gate", 4, run_gate, m->copy, copy);
    (void)timed(&f, "adamw", 28, run_adamw, m->copy, copy);
    const double down =
        timed(&f, "snapshot", 4, run_snapshot, m->down, "the copy out");
    const double merge =
        timed(&f, "mix, snapshot apart", 16, run_mix, m->copy, copy);
    (void)timed(&f, "mix, snapshot is x", 12, run_mix_alone, m->copy, copy);
    (void)timed(&f, "receive and merge", 4, run_receive, m->up, "the copy in");
    (void)timed(&f, "swap_mix", 12, run_swap_mix, m->copy, copy);
    row_target("snapshot : copy out", down / m->down, "", '>', 0.85);
    row_target("merge : copy on the device", merge / m->copy, "", '>', 0.85);
    void *const all[] = {f.x, f.y, f.z, f.g, f.shared};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        on->release(all[i]);
}

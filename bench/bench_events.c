/* Events per second of the engine with real callbacks, beside a bare calendar
 * queue that holds as many events (hold model: pop one, push one).
 *
 *   queue    sim/queue.c alone, spread times
 *   engine   kith sim with `local`: each event is a peer's finished step, goes
 *            through kith_node_step, the trace hash, and back into the queue
 *
 * Gate: engine >= 0.5 of the bare calendar, at each pending count.
 * BENCH_PENDING=N looks at one count only. */
#include "bench/bench.h"
#include "bench/calendar.h"

#include "kith/sim.h"
#include "sim/queue.h"

/* The engine tells of its progress five times a second, so its runs are long
 * enough for one of those to fall early in their second half. */
enum { ROUNDS = 5, HOLDS = 2000000, ENGINE_EVENTS = 40000000 };

static double bare_rate(size_t pending)
{
    struct bench_calendar calendar;
    bench_calendar_open(&calendar, pending + 1, (double)pending);
    uint64_t dice = 99;
    for (size_t i = 0; i < pending; i++)
        bench_calendar_push(&calendar,
                            (struct bench_event){.time = bench_uniform(&dice),
                                                 .node = (uint32_t)i});
    const double start = bench_cpu();
    for (size_t i = 0; i < HOLDS; i++) {
        struct bench_event event = bench_calendar_pop(&calendar);
        event.time += 0.5 + bench_uniform(&dice);
        bench_calendar_push(&calendar, event);
    }
    const double rate = HOLDS / (bench_cpu() - start) * 1e-6;
    bench_calendar_close(&calendar, pending + 1);
    return rate;
}

static void must(enum kith_err err, const char *what)
{
    if (err != KITH_OK) {
        fprintf(stderr, "bench_events: %s: %s\n", what, kith_err_text(err));
        exit(1);
    }
}

static double queue_rate(size_t pending)
{
    struct sim_queue queue;
    must(sim_queue_open(&queue, SIM_QUEUE_CALENDAR, pending), "queue");
    uint64_t dice = 99;
    for (size_t i = 0; i < pending; i++)
        must(sim_queue_push(
                 &queue,
                 &(struct sim_event){
                     .time_ns = (kith_ns)(bench_random(&dice) % 1000000000u),
                     .sequence = i,
                     .peer = (kith_id)i}),
             "push");
    struct sim_event event;
    /* Twice, so that the day's width has settled when it counts. */
    double start = 0;
    for (size_t i = 0; i < 2 * (size_t)HOLDS; i++) {
        if (i == HOLDS)
            start = bench_cpu();
        (void)sim_queue_pop(&queue, &event);
        event.time_ns +=
            500000000 + (kith_ns)(bench_random(&dice) % 1000000000u);
        must(sim_queue_push(&queue, &event), "push");
    }
    const double rate = HOLDS / (bench_cpu() - start) * 1e-6;
    sim_queue_close(&queue);
    return rate;
}

/* The second half of a run: everything is in place by then. */
struct half {
    double start;
    uint64_t events;
};

static void note_half(const struct sim_progress *progress, void *arg)
{
    struct half *half = arg;
    if (half->start == 0 && 2 * progress->steps_done > progress->steps_total) {
        half->start = bench_cpu();
        half->events = progress->events;
    }
}

static double engine_rate(size_t pending)
{
    char text[512], error[SIM_ERROR_BYTES + KITH_EXPERIMENT_ERROR_BYTES];
    const size_t steps = 2 + (size_t)ENGINE_EVENTS / pending;
    snprintf(text, sizeof text,
             "name: events\nseed: 1\npeers: %zu\nstop: {steps: %zu}\n"
             "model: {kind: none}\ngossip: {algorithm: local}\n"
             "compute: {step: 1s}\nsave: never\n",
             pending, steps);
    struct kith_experiment experiment;
    enum kith_err err = kith_experiment_parse("events", text, strlen(text),
                                              NULL, 0, &experiment, error);
    struct half half = {0, 0};
    const struct sim_options options = {
        .experiment = &experiment, .progress = note_half, .arg = &half};
    struct kith_summary summary;
    if (err == KITH_OK)
        err = sim_run(&options, &summary, NULL, error);
    if (err != KITH_OK) {
        fprintf(stderr, "bench_events: %s\n", error);
        exit(1);
    }
    kith_experiment_close(&experiment);
    return (double)(summary.events - half.events) / (bench_cpu() - half.start) *
           1e-6;
}

static void compare(size_t pending)
{
    double bare[ROUNDS], queue[ROUNDS], engine[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        bare[i] = bare_rate(pending);
        queue[i] = queue_rate(pending);
        engine[i] = engine_rate(pending);
    }
    printf("%zu events pending\n", pending);
    bench_print("  bare calendar queue", bare, ROUNDS, "M events/s");
    bench_print("  sim/queue.c alone", queue, ROUNDS, "M events/s");
    bench_print("  engine with kith_node_step", engine, ROUNDS, "M events/s");
    bench_ratio("  queue : bare", queue, bare, ROUNDS, 0.5);
    bench_ratio("  engine : bare", engine, bare, ROUNDS, 0.5);
}

int main(void)
{
    bench_pin(0);
    const size_t only = (size_t)bench_setting("BENCH_PENDING", 0);
    if (only > 0) {
        compare(only);
        return 0;
    }
    compare(10000);
    compare(100000);
    compare(1000000);
    return 0;
}

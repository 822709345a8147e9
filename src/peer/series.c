/* Series, CPU accounting, the report. */
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "kith/assert.h"
#include "driver.h"

double kith_process_cpu(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void measure_cpu(struct kith_driver *driver, struct kith_peer_cpu *cpu)
{
    struct kith_account *account = &driver->transport.net.account;
    /* Book what is running now, so that the parts add up. */
    const enum kith_account_kind was = account->current;
    kith_account_switch(account, was == KITH_ACCOUNT_OTHER
                                     ? KITH_ACCOUNT_SOCKET
                                     : KITH_ACCOUNT_OTHER);
    kith_account_switch(account, was);
    const struct kith_thread_spent spent = kith_thread_spent(&driver->thread);
    cpu->train_s = 1e-9 * (double)spent.train_cpu_ns;
    cpu->merge_s = 1e-9 * (double)spent.merge_cpu_ns;
    cpu->aead_s =
        1e-9 * (double)(account->spent_ns[KITH_ACCOUNT_AEAD] +
                        kith_record_threads_cpu(&driver->transport.threads));
    cpu->socket_s = 1e-9 * (double)account->spent_ns[KITH_ACCOUNT_SOCKET];
    const double rest = kith_process_cpu() - driver->cpu_zero_s - cpu->train_s -
                        cpu->merge_s - cpu->aead_s - cpu->socket_s;
    cpu->other_s = rest > 0 ? rest : 0; /* Clocks of different grain. */
}

/* ---- speed */

/* Of a loop of somebody's own as many as its steps have said: never fewer than
 * at an earlier step. A peer that goes on from a save knows the steps before it
 * by their number alone. */
static uint64_t samples_of(const struct kith_driver *driver, uint64_t steps)
{
    const uint64_t usual = steps * driver->options->experiment->train.batch;
    KITH_ASSERT(driver->more_samples >= 0 ||
                usual >= (uint64_t)-driver->more_samples);
    return usual + (uint64_t)driver->more_samples;
}

void kith_rows_start(struct kith_driver *driver)
{
    const struct kith_experiment *experiment = driver->options->experiment;
    struct kith_node_counters counters;
    kith_node_counters(driver->node, &counters);
    kith_meter_start(&driver->meter, experiment->model,
                     &experiment->model_config, driver->peak,
                     samples_of(driver, counters.steps), 0);
    driver->whole = driver->meter;
}

/* What has been going on until now is booked, what goes on from now noted. The
 * loop's view: a step lasts from its start to the news of its end. */
void kith_rows_overlap(struct kith_driver *driver, kith_ns now_ns)
{
    const kith_ns span = now_ns - driver->overlap.since_ns;
    if (driver->overlap.training)
        driver->overlap.training_ns += span;
    if (driver->overlap.exchanging) {
        driver->overlap.exchange_ns += span;
        driver->overlap.both_ns += driver->overlap.training ? span : 0;
    }
    driver->overlap.since_ns = now_ns;
    /* A peer whose share is done only answers: nothing could overlap. */
    driver->overlap.exchanging =
        !kith_node_quiet(driver->node) && !kith_node_finished(driver->node);
    kith_channel_use_exchanges(&driver->transport.use,
                               driver->start_ns + now_ns,
                               driver->overlap.exchanging);
    if (driver->effects.has_work)
        driver->overlap.training = driver->effects.work.kind == KITH_WORK_TRAIN;
    driver->overlap.training = driver->overlap.training && driver->thread.busy;
}

void kith_rows_model(struct kith_driver *driver,
                     const struct kith_message *message)
{
    if (message->kind != KITH_MESSAGE_MODEL || message->slot == KITH_SLOT_NONE)
        return;
    struct kith_node_counters counters;
    kith_node_counters(driver->node, &counters);
    /* A peer that is ahead, or says so, is not stale. */
    const uint64_t sent = kith_rundb_sender_step(&driver->config, message);
    const uint64_t stale = counters.steps > sent ? counters.steps - sent : 0;
    if (stale > driver->staleness.max)
        driver->staleness.max = stale;
    driver->staleness.sum += stale;
    driver->staleness.received++;
}

static void add_staleness(const struct kith_driver *driver,
                          struct kith_row *row)
{
    const double received = (double)driver->staleness.received;
    const bool any = driver->staleness.received > 0;
    row->received = driver->staleness.received;
    row->staleness = any ? (double)driver->staleness.sum / received : NAN;
    row->staleness_max = any ? (double)driver->staleness.max : NAN;
    row->training_s = 1e-9 * (double)driver->overlap.training_ns;
}

static void add_use(const struct kith_driver *driver, struct kith_row *row)
{
    struct kith_channel_use use = {.passes = 0};
    kith_channel_use_add(&use, driver->start_ns + row->time_ns,
                         &driver->transport.use);
    kith_channel_use_row(&use, row);
}

/* `until_ns`: what the rates are over, from the last look on. */
static void measure_speed(struct kith_driver *driver, struct kith_meter *meter,
                          uint64_t steps, kith_ns until_ns,
                          struct kith_speed *speed)
{
    const double exchange_ns = (double)driver->overlap.exchange_ns;
    kith_meter_look(meter, samples_of(driver, steps), 1e-9 * (double)until_ns,
                    speed);
    speed->data_wait_s =
        1e-9 * (double)kith_thread_spent(&driver->thread).data_wait_ns;
    if (exchange_ns > 0)
        speed->exchange_overlap = (double)driver->overlap.both_ns / exchange_ns;
}

/* A row that comes soon after another, as an evaluation's, is over too little
 * time for a rate: it repeats the last ones, and the next row's are over both.
 */
static void add_speed(struct kith_driver *driver, uint64_t steps,
                      struct kith_row *row)
{
    struct kith_meter meter = driver->meter;
    const struct kith_speed last = driver->speed;
    measure_speed(driver, &meter, steps, row->time_ns, &row->speed);
    if (!(last.samples_per_s > 0) ||
        row->time_ns - driver->looked_ns >= driver->options->row_ns / 2) {
        driver->meter = meter;
        driver->looked_ns = row->time_ns;
        driver->speed = row->speed;
        return;
    }
    row->speed.samples_per_s = last.samples_per_s;
    row->speed.tokens_per_s = last.tokens_per_s;
    row->speed.flop_per_s = last.flop_per_s;
    row->speed.mfu = last.mfu;
}

static void make_row(struct kith_driver *driver, struct kith_row *row)
{
    const struct kith_transport *transport = &driver->transport;
    struct kith_node_counters counters;
    struct kith_peer_cpu *cpu = &driver->report->cpu;
    kith_node_counters(driver->node, &counters);
    measure_cpu(driver, cpu);
    if (driver->loss_count > 0)
        driver->last_loss = driver->loss_sum / (double)driver->loss_count;
    driver->loss_sum = 0;
    driver->loss_count = 0;
    *row = kith_row_unknown(driver->options->self);
    row->time_ns = kith_driver_now(driver);
    row->step = counters.steps;
    row->samples = samples_of(driver, counters.steps);
    row->loss = driver->last_loss;
    row->test_loss = driver->score.loss;
    row->accuracy = driver->score.accuracy;
    driver->score = (struct kith_score){NAN, NAN};
    row->bytes_sent = transport->net.bytes_sent;
    row->bytes_received = transport->net.bytes_received;
    row->waiting_s = 1e-9 * (double)counters.waited_ns;
    row->attempts = counters.attempts;
    row->done = counters.done;
    row->failed = counters.failed;
    row->refused = counters.refused;
    row->skipped = counters.skipped;
    row->torn = counters.torn;
    row->cpu_train_s = cpu->train_s;
    row->cpu_aead_s = cpu->aead_s;
    row->cpu_socket_s = cpu->socket_s;
    row->cpu_other_s = cpu->other_s + cpu->merge_s;
    add_staleness(driver, row);
    add_use(driver, row);
    add_speed(driver, counters.steps, row);
    /* Of the run: from its start to the last step, not what came after. */
    struct kith_meter whole = driver->whole;
    measure_speed(driver, &whole, counters.steps, driver->trained_ns,
                  &driver->report->speed);
}

void kith_rows_send(struct kith_driver *driver)
{
    const struct kith_peer_options *options = driver->options;
    make_row(driver, &driver->report->row);
    driver->report->messages = driver->messages;
    if (options->on_row != NULL)
        options->on_row(options->user, &driver->report->row);
    kith_journal_flush(driver);
}

/* On the loop thread, once the training thread has scored the model: a row of
 * its own, so that a point stands where its step ended. */
void kith_rows_scored(void *arg, const struct kith_score *score)
{
    struct kith_driver *driver = arg;
    driver->score = *score;
    kith_rows_send(driver);
}

void kith_rows_report(struct kith_driver *driver)
{
    struct kith_peer_report *report = driver->report;
    const struct kith_transport *transport = &driver->transport;
    kith_node_counters(driver->node, &report->counters);
    report->wall_ns = kith_driver_now(driver);
    report->samples = report->row.samples;
    report->bytes_sent = transport->net.bytes_sent;
    report->bytes_received = transport->net.bytes_received;
    report->connected = transport->connected;
    report->closed = transport->closed;
    report->dial_failures = transport->dial_failures;
    memcpy(report->refusals, transport->refusals, sizeof report->refusals);
}

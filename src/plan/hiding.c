/* G1 to G3: does an exchange hide behind the steps between two of them?
 *
 * Lemma 2's question turned round: in gossip every peer is a server, of its own
 * neighbours alone. Test: unit/test_plan.c. */
#include <math.h>

#include "plan_range.h"

static enum kith_err check(const struct kith_plan_exchange *exchange,
                           char *error)
{
    const struct plan_range ranges[] = {
        PLAN_BYTES("model_bytes", exchange->model_bytes),
        {"share", exchange->share, KITH_PLAN_LEAST, KITH_PLAN_COUNT_MAX, false},
        {"fan_out", exchange->fan_out, 0, KITH_PLAN_COUNT_MAX, false},
        PLAN_BYTES("up", exchange->up),
        PLAN_BYTES("down", exchange->down),
        {"latency_s", exchange->latency_s, 0, KITH_PLAN_SECONDS_MAX, false},
        {"codec_s", exchange->codec_s, 0, KITH_PLAN_SECONDS_MAX, false},
        PLAN_SECONDS("step_s", exchange->step_s),
        {"interval", exchange->interval, 1, KITH_PLAN_COUNT_MAX, false},
        {"overlap", exchange->overlap, 0, 1, false}};
    return PLAN_CHECK(ranges, error);
}

/* T_C / alpha of an exchange that takes so long. */
static double step_of(const struct kith_plan_exchange *exchange,
                      double exchange_s)
{
    const double hidden_s =
        exchange->overlap * exchange->interval * exchange->step_s;
    return exchange->step_s +
           fmax(0, exchange_s - hidden_s) / exchange->interval;
}

/* Steps until the one that runs then has ended. What comes at the very end of
 * one has missed it. */
static double steps_to(double seconds, double step_s)
{
    return 1 + kith_plan_whole_down(seconds / step_s);
}

/* Request and accept, then the split; the model, then the merge; its ACK. */
static double push_s(const struct kith_plan_exchange *exchange,
                     double message_s)
{
    const double step_s = exchange->step_s, fan_out = exchange->fan_out;
    const double crossing_s = exchange->latency_s / 4;
    const double model_s = crossing_s + fan_out * message_s + exchange->codec_s;
    return step_s *
               (steps_to(2 * crossing_s, step_s) + steps_to(model_s, step_s)) +
           crossing_s;
}

enum kith_err kith_plan_hiding(const struct kith_plan_exchange *exchange,
                               struct kith_plan_hiding *out, char *error)
{
    const enum kith_err err = check(exchange, error);
    if (err != KITH_OK)
        return err;
    const double message_s = exchange->share * exchange->model_bytes /
                             fmin(exchange->up, exchange->down);
    const double fixed_s = exchange->latency_s + exchange->codec_s;
    const double fan_out = exchange->fan_out;
    out->exchange_s = fixed_s + fan_out * message_s;
    out->exchange_most_s = fixed_s + fmax(fan_out, 2 * fan_out - 1) * message_s;
    out->interval = kith_plan_whole_up(out->exchange_s / exchange->step_s);
    if (exchange->is_push) {
        out->exchange_s = out->exchange_most_s = push_s(exchange, message_s);
        out->interval = steps_to(out->exchange_s, exchange->step_s);
    }
    out->step_s = step_of(exchange, out->exchange_s);
    out->step_most_s = step_of(exchange, out->exchange_most_s);
    out->efficiency = exchange->step_s / out->step_s;
    out->fan_out =
        kith_plan_whole_down(exchange->interval * exchange->step_s / message_s);
    return KITH_OK;
}

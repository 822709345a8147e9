/* Labs of --measure differ by 8 % (standard deviation, of processor time a
 * step), and a swap is a difference of two: medians of times, never of rates.
 * Of those that took less than nothing, as differences may, a rate is nothing,
 * or the slowest. Test: unit/test_swap_cost.c */
#include "swap_cost.h"

#include <math.h>
#include <stdlib.h>

#include "kith/assert.h"

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double kith_cli_median(double *values, unsigned count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

void kith_cli_spent_less(struct cli_spent *spent,
                         const struct cli_spent *shorter)
{
    spent->cpu_s -= shorter->cpu_s;
    spent->wall_s -= shorter->wall_s;
    spent->link_s -= shorter->link_s;
    spent->steps -= shorter->steps;
    spent->done -= shorter->done;
    spent->bytes -= shorter->bytes;
}

double kith_cli_per_swap(const struct cli_spent *spent, double all_s,
                         double step_s)
{
    return (all_s - step_s * spent->steps) / fmax(1, spent->done);
}

double kith_cli_step_of(const struct cli_spent *spent, unsigned count,
                        const struct cli_peer_cost *cost)
{
    double times[CLI_LABS_MAX];
    KITH_ASSERT(count > 0 && count <= CLI_LABS_MAX);
    for (unsigned i = 0; i < count; i++)
        times[i] = spent[i].cpu_s / fmax(1, spent[i].steps) - cost->handover_s;
    return kith_cli_median(times, count);
}

/* A swap of a few numbers takes its messages' ends and its items' hand-overs;
 * one of models, at four ends of two of them and in three items, more. */
double kith_cli_take_swap(const struct cli_spent *spent, unsigned count,
                          double model_bytes, double step_s,
                          const struct cli_peer_cost *cost,
                          struct cli_wire_cost *wire)
{
    const double fixed_s =
        CLI_SWAP_ENDS * cost->message_s + CLI_SWAP_ITEMS * cost->handover_s;
    double all[CLI_LABS_MAX], links[CLI_LABS_MAX];
    KITH_ASSERT(count > 0 && count <= CLI_LABS_MAX);
    for (unsigned i = 0; i < count; i++) {
        all[i] = kith_cli_per_swap(&spent[i], spent[i].cpu_s,
                                   step_s + cost->handover_s) -
                 fixed_s;
        links[i] = kith_cli_per_swap(&spent[i], spent[i].link_s, cost->loop_s) -
                   cost->swap_link_s;
    }
    const double bytes = spent[0].bytes / fmax(1, spent[0].done) / 2;
    const double link_s = kith_cli_median(links, count);
    const double items_s = kith_cli_median(all, count) - fmax(0, link_s);
    wire->link = link_s > 0 ? 4 * bytes / link_s : 0;
    wire->merge = items_s > 0 ? CLI_SWAP_ITEMS * model_bytes / items_s : 0;
    return fmax(0, -items_s);
}

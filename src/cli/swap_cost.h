/* What labs took, divided: among steps and swaps. */
#ifndef KITH_SRC_CLI_SWAP_COST_H
#define KITH_SRC_CLI_SWAP_COST_H

#include "peer_cost.h"

#define CLI_SWAP_ENDS 10 /* of the messages of a swap */
#define CLI_SWAP_ITEMS 3
#define CLI_LABS_MAX 5u /* of one kind */

/* What a lab took, of all peers and the launcher; or, of two, the longer one
 * more. */
struct cli_spent {
    double cpu_s, wall_s;
    double link_s; /* of the first: sealing, sockets, opening */
    double steps, done, bytes;
};
void kith_cli_spent_less(struct cli_spent *spent,
                         const struct cli_spent *shorter);
/* What each swap that was done took beside steps of so long. */
double kith_cli_per_swap(const struct cli_spent *spent, double all_s,
                         double step_s);
/* Sorts them. */
double kith_cli_median(double *values, unsigned count);

/* Processor time of a step without its hand-over, by `count` labs of steps
 * alone. */
double kith_cli_step_of(const struct cli_spent *spent, unsigned count,
                        const struct cli_peer_cost *cost);
/* What a swap takes beyond one of a few numbers, by `count` labs with steps of
 * step_s each. Returns what the steps of a swap took too much for it to take
 * any: they were measured while the machine was slower. */
double kith_cli_take_swap(const struct cli_spent *spent, unsigned count,
                          double model_bytes, double step_s,
                          const struct cli_peer_cost *cost,
                          struct cli_wire_cost *wire);

#endif

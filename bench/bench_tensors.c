/* A tensor from process to process, two cores (T6.2 of the papers' tests): what
 * RPC's copies cost, and what is left where it is read in place.
 *
 *   ratio = time copied / time of this way      at 4 MiB: direct >= 1.3,
 *                                                         memory >= 2
 *
 * tensor_ways.h has the three ways, which take turns in each round; medians of
 * BENCH_TENSOR_ROUNDS (5) rounds, with the least and the most. A round's figure
 * is its median. */
#include "bench/tensor_ways.h"

#define SIZES (sizeof sizes / sizeof *sizes)
static const size_t sizes[] = {(size_t)4 << 10, (size_t)1 << 20,
                               (size_t)4 << 20, (size_t)16 << 20};
#define ASKED ((size_t)4 << 20)

/* Some transfers even of large ones. */
static unsigned count_of(size_t bytes)
{
    const size_t count = ((size_t)128 << 20) / bytes;
    return count > 1000 ? 1000 : (unsigned)count + 20;
}

static double transfer(const struct tensor_way *way, size_t bytes)
{
    const struct tensor_run run = {.way = way,
                                   .bytes = bytes,
                                   .quantile = 0.5,
                                   .warm = 4,
                                   .count = count_of(bytes)};
    return tensor_time(&run).transfer;
}

int main(void)
{
    static double seconds[SIZES][TENSOR_WAYS][BENCH_ROUNDS];
    const int rounds = (int)bench_setting("BENCH_TENSOR_ROUNDS", 5);
    const double targets[TENSOR_WAYS] = {0, 1.3, 2};
    if (rounds < 1 || rounds > BENCH_ROUNDS) {
        fprintf(stderr, "BENCH_TENSOR_ROUNDS: found %d; allowed: 1 to %d\n",
                rounds, BENCH_ROUNDS);
        return 2;
    }
    bench_network();
    bench_pin(0);
    for (int r = 0; r < rounds; r++)
        for (size_t s = 0; s < SIZES; s++)
            for (size_t w = 0; w < TENSOR_WAYS; w++)
                seconds[s][w][r] = transfer(&tensor_ways[w], sizes[s]);
    for (size_t s = 0; s < SIZES; s++) {
        for (size_t w = 0; w < TENSOR_WAYS; w++) {
            double us[BENCH_ROUNDS];
            char name[64];
            for (int r = 0; r < rounds; r++)
                us[r] = 1e6 * seconds[s][w][r];
            snprintf(name, sizeof name, "%zu KiB, %s, %u copies",
                     sizes[s] >> 10, tensor_ways[w].name,
                     tensor_ways[w].copies);
            bench_print(name, us, rounds, "us");
        }
        for (size_t w = 1; w < TENSOR_WAYS; w++) {
            double ratios[BENCH_ROUNDS];
            for (int r = 0; r < rounds; r++)
                ratios[r] = seconds[s][TENSOR_COPIED][r] / seconds[s][w][r];
            const struct bench_spread spread = bench_spread_of(ratios, rounds);
            if (sizes[s] == ASKED)
                printf("T6.2 copied : %s, time of 4 MiB, median of %d: "
                       "expected >= %.1f, measured %.2f [%.2f..%.2f]\n",
                       tensor_ways[w].name, rounds, targets[w], spread.median,
                       spread.least, spread.most);
            else
                printf("# copied : %s %.2f [%.2f..%.2f]\n", tensor_ways[w].name,
                       spread.median, spread.least, spread.most);
        }
    }
    return 0;
}

/* Goal: the time of a step of two processes is predicted within 15 % from what
 * messages of other sizes cost (T6.7 of the papers' tests):
 *
 *   cost(n, copies) = a + n b + copies n c     by the channel
 *                     a' + copies n c          by memory, where no kernel is
 *   step            = work + cost
 *
 * Method: bench/tensor_ways.h at 4 KiB, 1, 4 and 16 MiB, each transfer after
 * work that leaves the caches as a step does, medians of rounds; a, b, a' and c
 * by least squares of relative errors over these twelve rows, none of them
 * negative; then steps with the same work and a message of 0.5, 2 and 8 MiB,
 * each beside the same steps without a message, in turn. Prints expected and
 * measured. Times are medians of the steps, but a machine
 * that is busy throughout has no such steps: then it misses. COST_ROUNDS (5).
 */
#include "bench/tensor_ways.h"

#include <math.h>

#define FOUND 4u /* a, b, a', c */
#define ROWS (TENSOR_WAYS * sizeof sizes / sizeof *sizes)
static const size_t sizes[] = {(size_t)4 << 10, (size_t)1 << 20,
                               (size_t)4 << 20, (size_t)16 << 20};
static const size_t asked[] = {(size_t)512 << 10, (size_t)2 << 20,
                               (size_t)8 << 20};
#define SIZES (sizeof sizes / sizeof *sizes)
#define ASKED (sizeof asked / sizeof *asked)
#define TOLERANCE 0.15
#define WORK_FLOATS ((size_t)1 << 20)
#define WORK_PASSES 4u

static float *weights, *gradient;

/* Steps of SGD on a vector of its own, whatever the message is. */
static void descend(struct tensor_end *end)
{
    (void)end;
    for (unsigned pass = 0; pass < WORK_PASSES; pass++)
        for (size_t i = 0; i < WORK_FLOATS; i++)
            weights[i] -= 1e-3f * gradient[i];
}

static unsigned count_of(size_t bytes)
{
    const size_t count = ((size_t)128 << 20) / bytes;
    return count > 1000 ? 1000 : (unsigned)count + 30;
}

static double median(const double *values, int rounds)
{
    return bench_spread_of(values, rounds).median;
}

static void terms_of(const struct tensor_way *way, size_t bytes,
                     double terms[FOUND])
{
    const double n = (double)bytes;
    terms[0] = way->by_memory ? 0 : 1;
    terms[1] = way->by_memory ? 0 : n;
    terms[2] = way->by_memory ? 1 : 0;
    terms[3] = way->copies * n;
}

static double cost(const double found[FOUND], const struct tensor_way *way,
                   size_t bytes)
{
    double terms[FOUND], sum = 0;
    terms_of(way, bytes, terms);
    for (unsigned i = 0; i < FOUND; i++)
        sum += found[i] * terms[i];
    return sum;
}

/* min over found >= 0 of sum ((cost - seconds) / seconds)^2, by coordinate
 * descent: convex, four unknowns, so it gets there. */
static void fit(double seconds[SIZES][TENSOR_WAYS], double found[FOUND])
{
    double x[ROWS][FOUND];
    for (size_t s = 0; s < SIZES; s++)
        for (size_t w = 0; w < TENSOR_WAYS; w++) {
            double *row = x[s * TENSOR_WAYS + w];
            terms_of(&tensor_ways[w], sizes[s], row);
            for (unsigned i = 0; i < FOUND; i++)
                row[i] /= seconds[s][w];
        }
    memset(found, 0, FOUND * sizeof *found);
    for (unsigned turn = 0; turn < 20000; turn++)
        for (unsigned i = 0; i < FOUND; i++) {
            double along = 0, square = 0;
            for (size_t r = 0; r < ROWS; r++) {
                double rest = 1;
                for (unsigned k = 0; k < FOUND; k++)
                    rest -= k == i ? 0 : found[k] * x[r][k];
                along += rest * x[r][i];
                square += x[r][i] * x[r][i];
            }
            found[i] = fmax(0, along / square);
        }
}

static struct tensor_times timed(const struct tensor_way *way, size_t bytes,
                                 tensor_work work, bool silent)
{
    const struct tensor_run run = {.way = way,
                                   .bytes = bytes,
                                   .silent = silent,
                                   .work = work,
                                   .quantile = 0.5,
                                   .warm = 4,
                                   .count = count_of(bytes)};
    return tensor_time(&run);
}

static bool predict(const double found[FOUND], const struct tensor_way *way,
                    size_t bytes, const double *work, const double *step,
                    int rounds)
{
    const double alone = median(work, rounds), whole = median(step, rounds);
    const double expected = alone + cost(found, way, bytes);
    const double off = whole / expected - 1;
    const struct bench_spread spread = bench_spread_of(step, rounds);
    printf("# %.3f ms of work, a message %.3f ms by the model, %.3f measured; "
           "steps %.3f to %.3f ms\n",
           1e3 * alone, 1e3 * (expected - alone), 1e3 * (whole - alone),
           1e3 * spread.least, 1e3 * spread.most);
    printf("T6.7 step of two processes, %zu KiB %s: expected %.3f ms within "
           "15 %%, measured %.3f ms (%+.1f %%)\n",
           bytes >> 10, way->name, 1e3 * expected, 1e3 * whole, 100 * off);
    return fabs(off) <= TOLERANCE;
}

int main(void)
{
    static double rows[SIZES][TENSOR_WAYS][BENCH_ROUNDS];
    static double work[ASKED][TENSOR_WAYS][BENCH_ROUNDS];
    static double step[ASKED][TENSOR_WAYS][BENCH_ROUNDS];
    double seconds[SIZES][TENSOR_WAYS], found[FOUND];
    const int rounds = (int)bench_setting("COST_ROUNDS", 5);
    bool fine = true;
    if (rounds < 1 || rounds > BENCH_ROUNDS) {
        fprintf(stderr, "COST_ROUNDS: found %d; allowed: 1 to %d\n", rounds,
                BENCH_ROUNDS);
        return 2;
    }
    bench_network();
    bench_pin(0);
    weights = bench_alloc(WORK_FLOATS * sizeof *weights);
    gradient = bench_alloc(WORK_FLOATS * sizeof *gradient);
    for (size_t i = 0; i < WORK_FLOATS; i++)
        gradient[i] = 1e-3f;
    for (int r = 0; r < rounds; r++)
        for (size_t w = 0; w < TENSOR_WAYS; w++) {
            const struct tensor_way *way = &tensor_ways[w];
            for (size_t s = 0; s < SIZES; s++)
                rows[s][w][r] = timed(way, sizes[s], descend, false).transfer;
            for (size_t s = 0; s < ASKED; s++) {
                work[s][w][r] = timed(way, asked[s], descend, true).step;
                step[s][w][r] = timed(way, asked[s], descend, false).step;
            }
        }
    for (size_t s = 0; s < SIZES; s++)
        for (size_t w = 0; w < TENSOR_WAYS; w++)
            seconds[s][w] = median(rows[s][w], rounds);
    fit(seconds, found);
    printf("# channel: a %.1f us, b %.3f ns; memory: a' %.2f us; a copy: c "
           "%.3f ns a byte\n",
           1e6 * found[0], 1e9 * found[1], 1e6 * found[2], 1e9 * found[3]);
    for (size_t s = 0; s < SIZES; s++)
        for (size_t w = 0; w < TENSOR_WAYS; w++)
            printf("# %zu KiB %s: %.4f ms, by the model %.4f\n", sizes[s] >> 10,
                   tensor_ways[w].name, 1e3 * seconds[s][w],
                   1e3 * cost(found, &tensor_ways[w], sizes[s]));
    for (size_t s = 0; s < ASKED; s++)
        for (size_t w = 0; w < TENSOR_WAYS; w++)
            fine = predict(found, &tensor_ways[w], asked[s], work[s][w],
                           step[s][w], rounds) &&
                   fine;
    return fine ? 0 : 1;
}

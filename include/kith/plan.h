/* Planning: what a cluster will do, in closed forms, before it is rented.
 *
 *   Lemma 1   how many workers keep an efficiency      speedup.c
 *   Lemma 2   how many parameter servers hide          parameter_servers.c
 *   G1 to G3  interval, efficiency, fan-out of gossip  hiding.c
 *   G4        how fast a graph mixes                   mixing.c
 *   G5        who serves those that join               join_rate.c
 *   G6        the batch that memory allows             memory_bound.c
 *   G7        CHOCO's step size                        consensus_step.c
 *   batch     one algorithm per layer within memory    knapsack.c, minibatch.c
 *
 * Pure functions: no clock, file, heap or state; seconds, bytes, bytes per
 * second. Every input has bounds: one that is NaN or outside them is
 * KITH_EINVAL with "NAME: found X; allowed: ..." in `error`
 * (KITH_PLAN_ERROR_BYTES), and the output stays as it was. What does not fit
 * at all is KITH_ELIMIT, with words.
 *
 * Source: Zou et al., "Distributed Training Large-Scale Deep Architectures",
 * 2017, arXiv 1709.06622 (the lemmas, the batch); the forms for gossip are
 * derived here. Test: unit/test_plan.c, unit/test_plan_batch.c. */
#ifndef KITH_PLAN_H
#define KITH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"

KITH_BEGIN_DECLS

#define KITH_PLAN_ERROR_BYTES 256
/* No machine has more of it. */
#define KITH_PLAN_COUNT_MAX 1e9   /* workers, peers, examples */
#define KITH_PLAN_BYTES_MAX 1e15  /* of a model, of a memory; per second */
#define KITH_PLAN_SECONDS_MAX 1e6 /* of a step, of a transfer */
/* Of what must be above nothing: bytes, rates, seconds and shares, so that
 * every quotient of them is finite; of a ratio of times. */
#define KITH_PLAN_LEAST 1e-9
#define KITH_PLAN_RATIO_LEAST 1e-30

/* ---- Lemma 1. R = T_O / T_C, what cannot be hidden beside what is computed;
 * G workers take T_C / G + T_O:
 *
 *   S(G) = G (1 + R) / (1 + G R)     alpha = S / G = (1 + R) / (1 + G R)
 *   G <= (1 + R - alpha) / (alpha R)     R <= (1 - alpha) / (alpha G - 1)
 *
 *   workers  G, from 1 (ratio: above 1 / alpha)
 *   ratio    R, from 0 (workers: from KITH_PLAN_RATIO_LEAST)
 *   alpha    from KITH_PLAN_LEAST, up to 1 */
struct kith_plan_speedup {
    double speedup, efficiency;
    double limit; /* of the speedup, for ever more workers: 1 + 1 / R; infinite
                     at 0 */
};
KITH_MUST_CHECK enum kith_err kith_plan_speedup(double workers, double ratio,
                                                struct kith_plan_speedup *out,
                                                char *error);
/* The most workers, not rounded. */
KITH_MUST_CHECK enum kith_err kith_plan_workers(double alpha, double ratio,
                                                double *workers, char *error);
/* The largest ratio; KITH_EINVAL where alpha G <= 1: any ratio will do. */
KITH_MUST_CHECK enum kith_err kith_plan_ratio(double alpha, double workers,
                                              double *ratio, char *error);

/* ---- Lemma 2. Servers that hold equal parts of a model: pushes and pulls of
 * all workers hide behind a round's computing where there are
 *
 *   N_ps >= 2 S_p N_w / (B T_C)
 *
 *   model_bytes S_p, workers N_w, rate B of a server in bytes/s, step_s T_C */
KITH_MUST_CHECK enum kith_err kith_plan_servers(double model_bytes,
                                                double workers, double rate,
                                                double step_s, double *servers,
                                                char *error);

/* ---- G1 to G3. An exchange with f others, each message c S_p bytes:
 *
 *   T_X   = l + f c S_p / min(B_up, B_down) + T_e
 *   tau   = ceil(T_X / T_C)             least interval that hides it
 *   alpha = T_C / (T_C + max(0, T_X - o tau T_C) / tau)
 *   f    <= tau T_C B / (c S_p)         most neighbours that interval hides
 *
 * Unlike Lemma 1's it does not fall with the number of peers. T_X is of lines
 * that never wait. Where all send at once, each to its neighbours in turn, the
 * last of f messages begins f - 1 of them late and finds at most f - 1 others
 * before it at its receiver: no more than 2 f - 1 messages pass in all.
 *
 * A push is split at its sender and added at its receiver between two steps
 * alone, so that both wait for the end of the step that runs; with l of four
 * crossings (request, accept, model, acknowledgement) and
 * w(t) = T_C (1 + floor(t / T_C)),
 *
 *   T_X = w(l / 2) + w(l / 4 + f c S_p / min(B_up, B_down) + T_e) + l / 4
 *   tau = 1 + floor(T_X / T_C) */
struct kith_plan_exchange {
    double model_bytes; /* S_p */
    double share;       /* c: a message beside the model */
    double fan_out;     /* f, from 0: nobody */
    double up, down;    /* B: bytes/s of a peer */
    double latency_s;   /* l: a round trip */
    double codec_s;     /* T_e: sealing, packing, merging of all of them */
    double step_s;      /* T_C */
    double interval;    /* tau: own steps between two exchanges */
    double overlap;     /* o, in [0, 1]: how much of them goes on meanwhile */
    bool is_push;       /* waits for the ends of two steps */
};
struct kith_plan_hiding {
    double exchange_s; /* T_X */
    double interval;   /* least tau that hides T_X, whole, from 1 */
    double efficiency; /* alpha at the given tau */
    double step_s;     /* T_C / alpha: a step, with what is not hidden */
    double fan_out;    /* most f of the given tau, whole; may be 0 */
    double exchange_most_s, step_most_s; /* with 2 f - 1 messages */
};
KITH_MUST_CHECK enum kith_err
kith_plan_hiding(const struct kith_plan_exchange *exchange,
                 struct kith_plan_hiding *out, char *error);

/* ---- G4. What a round leaves of the disagreement, second eigenvalues of
 *
 *   a ring with weights 1/3     (1 + 2 cos(2 pi / n)) / 3    (n from 3)
 *   a static exponential graph  1 - 2 / (1 + ceil(log2 n))   (n from 2)
 *
 * Other graphs: kith_topology_rho(). */
KITH_MUST_CHECK enum kith_err kith_plan_ring(double peers, double *rho,
                                             char *error);
KITH_MUST_CHECK enum kith_err kith_plan_exponential(double peers, double *rho,
                                                    char *error);
/* Rounds after which at most the share `left` (above 0, below 1) is left:
 * ceil(ln left / ln rho), 1 where rho is 0. KITH_EINVAL: rho is 1 or more (the
 * graph is in parts). */
KITH_MUST_CHECK enum kith_err kith_plan_rounds(double rho, double left,
                                               double *rounds, char *error);
/* The least spectral gap that does it in so many rounds: 1 - left^(1/rounds).
 */
KITH_MUST_CHECK enum kith_err kith_plan_gap(double rounds, double left,
                                            double *gap, char *error);

/* ---- G5. Peers that hand the model to those that join, `rate` a second:
 * N >= rate S_p / B_up. */
KITH_MUST_CHECK enum kith_err kith_plan_joins(double rate, double model_bytes,
                                              double up, double *peers,
                                              char *error);

/* ---- G6. What is left for activations, and the largest batch:
 *
 *   M_bound = cap - copies S_p - state - slots;  X = floor(M_bound / sample)
 *
 * up to KITH_PLAN_COUNT_MAX, which stands for any where a sample is nothing.
 * KITH_ELIMIT: not even one example fits; `error` says what is short. */
struct kith_plan_memory {
    double cap;          /* bytes of the machine, or of a peer's share */
    double model_bytes;  /* S_p */
    double copies;       /* x, gradient, momentum: models */
    double state_bytes;  /* of the method: kith_worker_measure() */
    double slot_bytes;   /* snapshots and inboxes, socket buffers */
    double sample_bytes; /* activations of one example; 0: not known */
};
struct kith_plan_bound {
    double bytes; /* M_bound */
    double batch; /* X */
};
KITH_MUST_CHECK enum kith_err
kith_plan_memory(const struct kith_plan_memory *memory,
                 struct kith_plan_bound *out, char *error);

/* ---- G7. CHOCO's gamma, W symmetric with gap delta and eigenvalues from 1 to
 * lowest, a compressor that keeps at least the share omega of the square of the
 * norm; beta = 1 - lowest:
 *
 *   safe   = delta^2 omega / (16 delta + delta^2 + 4 beta^2 + 2 delta beta^2
 *            - 8 delta omega)     converges, whatever is learnt
 *   limit  = 2 / beta            above it even whole models diverge
 *   advise = min(omega^0.65, 1 / beta)
 *
 * safe is the theorem's and some hundred times too careful; advise is the line
 * through what was measured at omega 0.01 (0.05 is best, 0.2 diverges) and 1
 * (1: D-PSGD), a first guess for a sweep, no promise.
 *
 * Source: Koloskova et al., "Decentralized Stochastic Optimization and Gossip
 * Algorithms with Compressed Communication", ICML 2019, Theorem 2. */
struct kith_plan_gamma {
    double safe, advise, limit;
};
KITH_MUST_CHECK enum kith_err kith_plan_gamma(double gap, double lowest,
                                              double omega,
                                              struct kith_plan_gamma *out,
                                              char *error);

/* ---- A batch and one algorithm per layer, within memory. */

/* One way to compute a layer. */
struct kith_plan_way {
    double seconds; /* of a step */
    double bytes;   /* scratch, while the network runs */
};
#define KITH_PLAN_LAYERS_MAX 256u
#define KITH_PLAN_WAYS_MAX 8u
#define KITH_PLAN_CELLS 4096u /* of memory, in the table */
/* Bytes of scratch that these layers want, aligned to 8. */
#define KITH_PLAN_KNAPSACK_BYTES(layers)                                       \
    (2 * (KITH_PLAN_CELLS + 1) * sizeof(double) +                              \
     (size_t)(layers) * (KITH_PLAN_CELLS + 1))
/* The multiple-choice knapsack: one way for each layer,
 *
 *   min sum_k seconds[k][way_k]   subject to   sum_k bytes[k][way_k] <= bound
 *
 * by dynamic programming over memory in cells of bound / KITH_PLAN_CELLS, or of
 * one byte where the bound is smaller. Bytes are rounded up to cells: what is
 * chosen always fits, and is the best of all where sizes are whole cells.
 *
 *   ways    (layers, width), row-major
 *   chosen  (layers), filled in
 *
 * KITH_ELIMIT: no choice fits. Cost: O(layers width cells). */
struct kith_plan_knapsack {
    const struct kith_plan_way *ways;
    uint32_t layers, width;
    double bound;
};
KITH_MUST_CHECK enum kith_err
kith_plan_knapsack(const struct kith_plan_knapsack *problem, void *scratch,
                   uint32_t *chosen, double *seconds, char *error);

/* The minibatch procedure: for each candidate X the knapsack within
 *
 *   M_bound(X) = cap - X sample_bytes - fixed_bytes
 *
 * and of those that fit the one with the least time of an epoch,
 * T(X) ceil(N / X); the smaller X where two are alike.
 *
 *   fixed_bytes  M_MP + M_C, weights with their gradient and momentum
 *   chosen       (layers): the ways of the best one
 *
 * KITH_ELIMIT: none fits. */
struct kith_plan_candidate {
    uint32_t batch;                   /* X, from 1 */
    const struct kith_plan_way *ways; /* (layers, width) at this X */
};
struct kith_plan_minibatch {
    double cap, sample_bytes, fixed_bytes;
    double examples; /* N */
    uint32_t layers, width;
    const struct kith_plan_candidate *candidates; /* (candidate_count) */
    uint32_t candidate_count;
};
struct kith_plan_epoch {
    uint32_t candidate; /* index of the best */
    double step_s, epoch_s;
};
KITH_MUST_CHECK enum kith_err
kith_plan_minibatch(const struct kith_plan_minibatch *problem, void *scratch,
                    uint32_t *chosen, struct kith_plan_epoch *best,
                    char *error);

KITH_END_DECLS

#endif

/* A model that trains by the network and the optimiser that kith trains with.
 */
#ifndef KITH_BENCH_GPU_TRAINER_H
#define KITH_BENCH_GPU_TRAINER_H

#include "bench_gpu.h"
#include "kith/model.h"
#include "kith/optimiser.h"

struct trainer {
    const struct kith_backend *on; /* a probe */
    struct kith_graph *network;
    const struct kith_layout *layout;
    const struct kith_optimiser *optimiser;
    struct kith_optimiser_config config;
    struct kith_batch batch;
    void *x, *gradient, *state[2];
    uint64_t step;
    double loss; /* the last step's */
};

struct training {
    const struct kith_backend *on;
    const char *model, *optimiser;
    struct kith_model_config config;
    size_t rows;
};

/* False: no room, or no such model; `why` says it and nothing is left open. */
bool trainer_open(struct trainer *t, const struct training *what,
                  char why[KITH_MODEL_ERROR_BYTES]);
void trainer_close(struct trainer *t);
/* The starting weights (layout->dim), of seed 1; kept until another model's. */
const double *trainer_start(const struct trainer *t);

/* The loss and the gradient, without the optimiser. */
void trainer_pass(void *trainer);
/* A whole step; a loss that is not finite fails and ends the program. */
void trainer_step(void *trainer);

/* GPT-2 124M, or a tiny model of its kind. */
struct kith_model_config trainer_gpt(const struct machine *m,
                                     uint32_t vocabulary);
const char *trainer_gpt_name(const struct machine *m);
/* A batch of (rows, context) made-up tokens, inputs and labels; or images. */
bool trainer_tokens(struct trainer *t, size_t rows,
                    const struct kith_model_config *config);
bool trainer_images(struct trainer *t, size_t rows,
                    const struct kith_model_config *config);

#endif

/* Stages of a pipeline: what vertical.c, which moves batches through them, and
 * stages.c, which makes them, share. */
#ifndef KITH_SIM_CENTRAL_VERTICAL_H
#define KITH_SIM_CENTRAL_VERTICAL_H

#include "kith/loader.h"
#include "sim/central/central_state.h"

/* Parts of batches in the pipeline at a time. */
#define VERTICAL_SLOTS_MAX 4096u

/* A part of a batch at one stage. */
struct vertical_slot {
    struct kith_graph *network; /* activations of this part */
    void *x;                    /* the weights it went forward with */
    void *arriving[2];          /* on its way here: forward, back */
    uint64_t version;
    uint32_t part; /* of its batch */
};

struct vertical_queue {
    uint32_t slots[VERTICAL_SLOTS_MAX], first, count;
};

struct vertical_stage {
    struct vertical_slot *slots;     /* (slots) */
    struct vertical_queue queues[2]; /* forward, back */
    void *gradient;                  /* (trained) */
    uint64_t updates;
    bool busy;
};

/* Inputs and labels of a part, kept until it is back. */
struct vertical_batch {
    struct kith_batch batch;
    void *inputs;
    int32_t *labels;
};

struct vertical {
    uint32_t count, slots;           /* stages; parts in the pipeline at most */
    uint32_t *cuts;                  /* (count + 1) operations */
    size_t rows;                     /* of a part */
    size_t input_bytes, label_count; /* of a part */
    uint64_t edge_bytes;             /* without parameters: payload */
    struct vertical_stage *stages;   /* (count) */
    struct vertical_batch *batches;  /* (slots) */
    struct kith_loader *loader;
    uint32_t *own_rows;
    uint64_t begun; /* batches */
    uint32_t flying;
    double loss; /* of the batch whose parts end now */
};

/* stages.c */
enum kith_err sim_vertical_open(struct sim_central *run);
void sim_vertical_close(struct sim_central *run);
/* The next part's inputs and labels into the slot. */
void sim_vertical_load(struct sim_central *run, uint32_t slot);

#endif

/* Elastic averaging along a tree: workers are its leaves, masters stand above
 * them, `degree` children each. Everybody, when a model w comes from a parent
 * or a child:
 *
 *   w_i += alpha (w - w_i)
 *
 * A leaf sends its model up every `up` steps and takes what has come between
 * two steps. A master's clock is the messages from its children (our reading):
 * every `up` of them it sends its model to its parent, every `down` of them to
 * its children. Nobody waits. The root's model is the result.
 * Source: Zhang, Choromanska, LeCun, NeurIPS 2015, section 6. */
#include <stdlib.h>

#include "sim/central/central_state.h"

struct tree_node {
    uint32_t parent; /* CENTRAL_NOBODY: the root */
    uint32_t child_first, children;
    uint64_t clock;
    void *x; /* a master's own; the root's is the shared model */
};

struct tree {
    double alpha;
    struct tree_node *nodes; /* (node_count) */
    struct tree_inbox {
        bool full;
        void *model; /* the newest from above */
        uint64_t version;
    } * inboxes; /* (worker_count) */
};

/* Masters of a tree with so many leaves. */
static uint32_t masters(uint32_t leaves, uint32_t degree)
{
    uint32_t count = 0;
    do {
        leaves = (leaves + degree - 1) / degree;
        count += leaves;
    } while (leaves > 1);
    return count;
}

static uint32_t machines(const struct kith_experiment *experiment)
{
    return masters(experiment->peers, experiment->central.degree);
}

static void *vector_of(const struct central *run, uint32_t node)
{
    const struct tree *tree = run->state;
    return node < run->worker_count ? sim_central_x(run->workers[node].desk)
                                    : tree->nodes[node].x;
}

static void send(struct central *run, uint32_t from, uint32_t to)
{
    if (to == CENTRAL_NOBODY) {
        return;
    }
    const void *x = vector_of(run, from);
    struct sim_central_parcel *parcel = sim_central_parcel(run);
    *parcel = (struct sim_central_parcel){
        .from = from,
        .to = to,
        .version = run->updates,
        .block = x ? sim_central_block_copy(run, x) : NULL,
        .bytes = run->shape.bytes};
    sim_central_send(run, parcel);
}

/* x += alpha (w - x) */
static void pull(struct central *run, uint32_t node, const void *w)
{
    const struct tree *tree = run->state;
    void *x = vector_of(run, node);
    if (x && w) {
        (void)run->experiment->backend->mix(run->dim, tree->alpha, w, x, x);
    }
}

static void stepped(struct central *run, uint32_t worker)
{
    struct tree *tree = run->state;
    sim_central_descend(run, worker);
    struct tree_inbox *inbox = &tree->inboxes[worker];
    if (inbox->full) {
        pull(run, worker, inbox->model);
        sim_central_stale(run, worker, run->updates - inbox->version);
        sim_central_block_free(run, inbox->model);
        *inbox = (struct tree_inbox){0};
    }
    if (run->workers[worker].steps % run->config->up == 0) {
        send(run, worker, tree->nodes[worker].parent);
    }
    if (sim_central_finished(run, worker)) {
        sim_central_finish(run, worker);
    } else {
        sim_central_step(run, worker);
    }
}

static void delivered(struct central *run,
                      const struct sim_central_parcel *parcel)
{
    struct tree *tree = run->state;
    struct tree_node *node = &tree->nodes[parcel->to];
    if (parcel->to < run->worker_count) {
        struct tree_inbox *inbox = &tree->inboxes[parcel->to];
        sim_central_block_free(run, inbox->model);
        inbox->model =
            parcel->block ? sim_central_block_copy(run, parcel->block) : NULL;
        inbox->version = parcel->version;
        inbox->full = true;
        return;
    }
    pull(run, parcel->to, parcel->block);
    sim_central_compute(run, parcel->to,
                        sim_central_update_time(run, parcel->bytes), 0);
    run->updates += node->parent == CENTRAL_NOBODY;
    if (parcel->from == node->parent) {
        return;
    }
    if (parcel->from < run->worker_count) {
        run->applied++;
    }
    node->clock++;
    if (node->clock % run->config->down == 0) {
        for (uint32_t i = 0; i < node->children; i++) {
            send(run, parcel->to, node->child_first + i);
        }
    }
    if (node->clock % run->config->up == 0) {
        send(run, parcel->to, node->parent);
    }
}

static void computed(struct central *run, uint32_t node, uint32_t value)
{
    (void)run;
    (void)node;
    (void)value;
}

static void start(struct central *run)
{
    for (uint32_t i = 0; i < run->worker_count && !run->over; i++) {
        sim_central_step(run, i);
    }
}

/* Level after level: [first, first + count) hang below the next masters. */
static void plant(struct central *run, struct tree *tree)
{
    const uint32_t degree = run->config->degree;
    uint32_t first = 0, count = run->worker_count, master = count;
    while (count > 1 || first == 0) {
        const uint32_t above = (count + degree - 1) / degree;
        for (uint32_t i = 0; i < count; i++) {
            struct tree_node *parent = &tree->nodes[master + i / degree];
            tree->nodes[first + i].parent = master + i / degree;
            if (i % degree == 0) {
                parent->child_first = first + i;
            }
            parent->children++;
        }
        first = master;
        count = above;
        master += above;
    }
    tree->nodes[first].parent = CENTRAL_NOBODY;
}

static enum kith_err treeeasgd_open(struct central *run)
{
    const struct kith_central *config = run->config;
    struct tree *tree = calloc(1, sizeof *tree);
    run->state = tree;
    if (!tree) {
        return KITH_ENOMEM;
    }
    tree->alpha =
        config->alpha >= 0 ? config->alpha : 0.9 / (double)config->degree;
    tree->nodes = calloc(run->node_count, sizeof *tree->nodes);
    tree->inboxes = calloc(run->worker_count, sizeof *tree->inboxes);
    if (!tree->nodes || !tree->inboxes) {
        return KITH_ENOMEM;
    }
    plant(run, tree);
    for (uint32_t i = run->worker_count; run->server && i < run->node_count;
         i++) {
        tree->nodes[i].x =
            tree->nodes[i].parent == CENTRAL_NOBODY
                ? sim_central_x(run->server)
                : sim_central_block_copy(run, sim_central_x(run->server));
    }
    return run->err;
}

static void treeeasgd_close(struct central *run)
{
    struct tree *tree = run->state;
    if (!tree) {
        return;
    }
    for (uint32_t i = 0; tree->nodes && i < run->node_count; i++) {
        if (tree->nodes[i].parent != CENTRAL_NOBODY) {
            sim_central_block_free(run, tree->nodes[i].x);
        }
    }
    for (uint32_t i = 0; tree->inboxes && i < run->worker_count; i++) {
        sim_central_block_free(run, tree->inboxes[i].model);
    }
    free(tree->nodes);
    free(tree->inboxes);
    free(tree);
}

const struct central_method sim_central_treeeasgd = {
    .machines = machines,
    .open = treeeasgd_open,
    .close = treeeasgd_close,
    .start = start,
    .stepped = stepped,
    .delivered = delivered,
    .computed = computed,
};

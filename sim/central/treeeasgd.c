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
#include "sim/central/central_state.h"

struct tree_node {
    uint32_t parent; /* KITH_NOBODY: the root */
    uint32_t child_first, children;
    uint64_t clock;
    void *x; /* a master's own; the root's is the shared model */
    struct tree_inbox {
        bool full;
        void *model; /* a worker's: the newest from above */
        uint64_t version;
    } inbox;
};

struct tree {
    double alpha;
    struct tree_node nodes[];
};

/* One level of masters after the other, until one is the root. */
static uint32_t machines(const struct kith_experiment *experiment)
{
    KITH_ASSERT(experiment->central.degree > 1 && experiment->peers > 0);
    const uint32_t degree = experiment->central.degree;
    uint32_t level = experiment->peers, count = 0;
    do {
        level = (level + degree - 1) / degree;
        count += level;
    } while (level > 1);
    return count;
}

/* A leaf's model is its worker's, which may move; a master's is a copy that
 * stays. */
static void *vector_of(const struct sim_central *run, uint32_t node)
{
    KITH_ASSERT(node < run->node_count);
    const struct tree *tree = run->state;
    return node < run->worker_count ? sim_central_x(run->workers[node].trainer)
                                    : tree->nodes[node].x;
}

/* To nobody where there is no parent: the root's model is the result, and goes
 * nowhere. */
static void send(struct sim_central *run, uint32_t from, uint32_t to)
{
    KITH_ASSERT(from < run->node_count);
    if (to != KITH_NOBODY) {
        sim_central_send_model(run, from, to, 0, 0, run->updates,
                               sim_central_copy(run, vector_of(run, from)));
    }
}

/* x += alpha (w - x) */
static void pull(struct sim_central *run, uint32_t node, const void *w)
{
    KITH_ASSERT(node < run->node_count);
    const struct tree *tree = run->state;
    void *x = vector_of(run, node);
    if (x && w)
        (void)run->experiment->backend->mix(run->dim, tree->alpha, w, x, x);
}

/* What came from above is taken between two steps, the newest alone: an older
 * one has nothing that it has not. */
static void stepped(struct sim_central *run, uint32_t worker)
{
    KITH_ASSERT(worker < run->worker_count);
    struct tree *tree = run->state;
    sim_central_descend(run, worker);
    struct tree_inbox *inbox = &tree->nodes[worker].inbox;
    if (inbox->full) {
        pull(run, worker, inbox->model);
        sim_central_stale(run, worker, run->updates - inbox->version);
        sim_copy_release(run->world, inbox->model);
        *inbox = (struct tree_inbox){0};
    }
    if (run->workers[worker].steps % run->config->up == 0)
        send(run, worker, tree->nodes[worker].parent);
    sim_central_go_on(run, worker);
}

/* A leaf keeps what comes until its step is over; a master mixes at once,
 * because it does nothing else. */
static void delivered(struct sim_central *run,
                      const struct sim_central_message *message)
{
    KITH_ASSERT(message->from != message->to);
    struct tree *tree = run->state;
    struct tree_node *node = &tree->nodes[message->to];
    if (message->to < run->worker_count) {
        struct tree_inbox *inbox = &node->inbox;
        sim_copy_release(run->world, inbox->model);
        inbox->model = sim_copy_hold(message->vector);
        inbox->version = message->version;
        inbox->full = true;
        return;
    }
    pull(run, message->to, message->vector);
    sim_central_compute(run, message->to,
                        sim_central_cost(run, 0, message->bytes), 0);
    run->updates += node->parent == KITH_NOBODY;
    if (message->from == node->parent)
        return;
    run->applied += message->from < run->worker_count;
    node->clock++;
    if (node->clock % run->config->down == 0)
        for (uint32_t i = 0; i < node->children; i++)
            send(run, message->to, node->child_first + i);
    if (node->clock % run->config->up == 0)
        send(run, message->to, node->parent);
}

/* Level after level: [first, first + count) hang below the next masters. */
static void plant(struct sim_central *run, struct tree *tree)
{
    KITH_ASSERT(run->node_count > run->worker_count);
    const uint32_t degree = run->config->degree;
    uint32_t first = 0, count = run->worker_count, master = count;
    while (count > 1 || first == 0) {
        const uint32_t above = (count + degree - 1) / degree;
        for (uint32_t i = 0; i < count; i++) {
            struct tree_node *parent = &tree->nodes[master + i / degree];
            tree->nodes[first + i].parent = master + i / degree;
            if (i % degree == 0)
                parent->child_first = first + i;
            parent->children++;
        }
        first = master;
        count = above;
        master += above;
    }
    tree->nodes[first].parent = KITH_NOBODY;
}

/* Masters begin with the seed's model, as the workers do: no force acts before
 * somebody has learnt. */
static enum kith_err treeeasgd_open(struct sim_central *run)
{
    const struct kith_central *config = run->config;
    struct tree *tree = run->state;
    tree->alpha =
        config->alpha >= 0 ? config->alpha : 0.9 / (double)config->degree;
    plant(run, tree);
    void *x = sim_central_x(run->server);
    for (uint32_t i = run->worker_count; i < run->node_count; i++) {
        struct tree_node *node = &tree->nodes[i];
        KITH_ASSERT(node->children > 0 && node->children <= config->degree);
        node->x = node->parent == KITH_NOBODY ? x : sim_central_copy(run, x);
    }
    return KITH_OK;
}

const struct central_method sim_central_treeeasgd = {
    .machines = machines,
    .state_bytes = sizeof(struct tree),
    .node_bytes = sizeof(struct tree_node),
    .open = treeeasgd_open,
    .stepped = stepped,
    .delivered = delivered,
};

/* Every key of an experiment file: where it goes, its type, unit, bounds,
 * default, and one line of help. */
#include "key_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kith/backend.h"
#include "kith/text.h"

static enum kith_err parse_split(const char *text, void *field)
{
    return kith_split_parse(text, field);
}

/* Durations that may also be a word. */
static enum kith_err time_or(const char *text, const char *word, kith_ns value,
                             kith_ns *field)
{
    if (strcmp(text, word) == 0) {
        *field = value;
        return KITH_OK;
    }
    kith_ns span;
    const enum kith_err err = kith_text_time(text, &span);
    if (err != KITH_OK)
        return err;
    if (span < KITH_MS || span > 1000000 * KITH_S)
        return KITH_ELIMIT;
    *field = span;
    return KITH_OK;
}

static enum kith_err parse_deadline(const char *text, void *field)
{
    if (strcmp(text, "never") == 0)
        return time_or(text, "never", KITH_NEVER, field);
    return time_or(text, "measured", 0, field);
}

static enum kith_err parse_save(const char *text, void *field)
{
    return time_or(text, "never", 0, field);
}

/* A time, "end", or "500 steps", which the next field counts. */
static enum kith_err parse_evaluate(const char *text, void *field)
{
    struct kith_experiment *experiment =
        (void *)((char *)field - offsetof(struct kith_experiment, evaluate_ns));
    char number[24];
    const size_t digits = strspn(text, "0123456789");
    const char *unit = text + digits + strspn(text + digits, " ");
    experiment->evaluate_steps = 0;
    experiment->evaluate_end = strcmp(text, "end") == 0;
    if (digits == 0 || digits >= sizeof number || strcmp(unit, "steps") != 0)
        return time_or(text, "end", 0, field);
    memcpy(number, text, digits);
    number[digits] = '\0';
    experiment->evaluate_ns = 0;
    const enum kith_err err =
        kith_text_u64(number, &experiment->evaluate_steps);
    return err == KITH_OK && experiment->evaluate_steps == 0 ? KITH_ELIMIT
                                                             : err;
}

/* Texts of values that are not a field alone, for the experiment's hash. */
static void show_split(const void *object, char *text)
{
    const struct kith_experiment *experiment = object;
    const struct kith_split *split = &experiment->data.split;
    const bool classes = split->kind == KITH_SPLIT_CLASSES;
    char number[32];
    kith_schema_number(classes ? split->classes : split->alpha, number,
                       sizeof number);
    if (split->kind != KITH_SPLIT_IID)
        (void)snprintf(text, SCHEMA_SHOWN_BYTES, "%s(%s)",
                       classes ? "classes" : "dirichlet", number);
}

static void show_milestones(const void *object, char *text)
{
    const struct kith_experiment *experiment = object;
    const struct kith_schedule_config *schedule = &experiment->train.schedule;
    size_t at = 0;
    for (uint32_t i = 0; i < schedule->milestone_count; i++) {
        char number[32];
        kith_schema_number(schedule->milestones[i], number, sizeof number);
        at = kith_text_add(text, SCHEMA_SHOWN_BYTES, at, "%s%s",
                           i == 0 ? "" : ", ", number);
    }
}

static void show_augment(const void *object, char *text)
{
    const struct kith_experiment *experiment = object;
    const struct kith_augment *augment = &experiment->train.augment;
    if (augment->crop > 0 || augment->flip)
        (void)snprintf(text, SCHEMA_SHOWN_BYTES, "crop %u, flip %s",
                       augment->crop, augment->flip ? "true" : "false");
}

/* What travels: vectors of other elements are other bytes. Which backend
 * computes them is each peer's own affair. */
static void show_backend(const void *object, char *text)
{
    const struct kith_experiment *experiment = object;
    (void)snprintf(text, SCHEMA_SHOWN_BYTES, "of float%zu",
                   8 * experiment->backend->element_bytes);
}

/* The edges themselves: where their file lies is each peer's own affair. */
static void show_edges(const void *object, char *text)
{
    const struct kith_experiment *experiment = object;
    if (experiment->gossip.edges_hash != 0)
        (void)snprintf(text, SCHEMA_SHOWN_BYTES, "a list with hash %016" PRIx64,
                       experiment->gossip.edges_hash);
}

/* Present or not: then `central:` replaces `gossip:`. */
static void show_method(const void *object, char *text)
{
    const struct kith_central *central =
        &((const struct kith_experiment *)object)->central;
    if (central->present)
        kith_text_copy(text, SCHEMA_SHOWN_BYTES,
                       kith_central_methods[central->method].name);
}

/* false: fixed. */
static enum kith_err parse_spread(const char *text, void *field)
{
    bool *exponential = field;
    *exponential = strcmp(text, "exponential") == 0;
    return *exponential || strcmp(text, "fixed") == 0 ? KITH_OK : KITH_EPARSE;
}

#define AT(field) .offset = offsetof(struct kith_experiment, field)
#define TEXT_AT(field)                                                         \
    AT(field), .size = sizeof(((struct kith_experiment *)0)->field)

/* Rows of one section stand together. */
/* In float32 more is 1: an average that forgets nothing and takes nothing in.
 */
#define MEMORY_MOST 0.999999

const struct key kith_experiment_keys[] = {
    {"name", KEY_NAME, KEY_REQUIRED | KEY_LOCAL, TEXT_AT(name),
     .help = "names the run database and the table"},
    {"seed", KEY_U64, AT(seed), .low = 0, .high = 1e20, .initial = "1",
     .help = "of every random draw"},
    {"peers", KEY_U32, KEY_REQUIRED, AT(peers), .low = 1,
     .high = KITH_PEERS_MAX, .help = "how many"},

    {"stop.epochs", KEY_NUMBER, KEY_ABOVE, AT(stop.epochs), .low = 0,
     .high = 1e6,
     .help = "passes over the training set, by all peers together"},
    {"stop.steps", KEY_U64, AT(stop.steps), .low = 1, .high = 1e12,
     .help = "training steps of each peer"},
    {"stop.time", KEY_TIME, KEY_ABOVE, AT(stop.time_ns), .low = 0, .high = 1e6,
     .help = "virtual or real time; alone or beside one of the others"},
    {"stop.patience", KEY_U32, KEY_LOCAL, AT(stop.patience), .low = 0,
     .high = 1e6, .initial = "0",
     .help = "train, lab: evaluations without a better one; 0: no early stop"},

    {"model.kind", KEY_CHOICE, KEY_REQUIRED,
     .choice = &kith_experiment_choice_model, .help = "see kith list models"},
    {"model.layers", KEY_SIZES, TEXT_AT(model_config.layers), .low = 2,
     .allowed = "a list of 2 to 16 whole numbers above 0, input first, such as "
                "[784, 128, 10]",
     .help = "sizes, input first"},
    {"model.dim", KEY_U32, AT(model_config.dim), .low = 1, .high = 1 << 30,
     .help = "parameters"},
    {"model.spread", KEY_NUMBER, AT(model_config.spread), .low = 0, .high = 1e6,
     .initial = "1", .help = "of targets, of gradients"},

    {"model.image", KEY_SIZES, TEXT_AT(model_config.image), .low = 3,
     .allowed = "a list of 3 whole numbers above 0: height, width and "
                "channels, such as [28, 28, 1]",
     .help = "what the data holds"},
    {"model.classes", KEY_U32, AT(model_config.classes), .low = 2,
     .high = KITH_CLASSES_MAX, .help = "scores"},
    {"model.channels", KEY_SIZES, TEXT_AT(model_config.channels), .low = 1,
     .allowed = "a list of 1 to 16 whole numbers above 0, such as [16, 32]",
     .help = "of each convolution"},
    {"model.depth", KEY_U32, AT(model_config.depth), .low = 1, .high = 1024,
     .help = "layers, as named, or blocks"},
    {"model.norm", KEY_CHOICE, .choice = &kith_experiment_choice_norm,
     .help = "of which statistics; initially batch, in gpt layer"},
    {"model.positions", KEY_CHOICE, .choice = &kith_experiment_choice_positions,
     .initial = "learned", .help = "a table, or rotations of q and k"},
    {"model.heads", KEY_U32, AT(model_config.heads), .low = 1, .high = 1024,
     .help = "of the attention"},
    {"model.width", KEY_U32, AT(model_config.width), .low = 1, .high = 65536,
     .help = "of the residual stream"},
    {"model.context", KEY_U32, AT(model_config.context), .low = 1,
     .high = 65536, .help = "tokens of a sequence"},
    {"model.vocabulary", KEY_U32, AT(model_config.vocabulary), .low = 2,
     .high = KITH_CLASSES_MAX, .help = "different tokens"},
    {"model.dropout", KEY_NUMBER, KEY_BELOW, AT(model_config.dropout), .low = 0,
     .high = 1, .initial = "0", .help = "share of values set to 0"},
    {"model.frozen", KEY_NAME, TEXT_AT(model_config.frozen),
     .help = "views whose name begins so neither train nor travel"},

    {"data.kind", KEY_CHOICE, .choice = &kith_experiment_choice_data,
     .initial = "idx", .help = "see kith list datasets"},
    {"data.path", KEY_TEXT, KEY_LOCAL, TEXT_AT(data.config.path),
     .help = "folder or file, as the kind says; relative to this file"},
    {"data.cache", KEY_TEXT, KEY_LOCAL, TEXT_AT(data.config.cache),
     .help = "folder on the local disk that keeps a checked copy of each file"},
    {"data.test_share", KEY_NUMBER, KEY_ABOVE | KEY_BELOW,
     AT(data.config.test_share), .low = 0, .high = 1, .initial = "0.1",
     .help = "text, bytes: the end of the file that is the test set"},
    {"data.normalise", KEY_SWITCH, AT(data.config.normalise),
     .initial = "false",
     .help = "images: by the training set's mean and deviation per channel"},
    {"data.rows", KEY_U64, AT(data.config.rows), .low = 1, .high = 1e12,
     .help = "synthetic, gaussian: training examples; 10,000 or 8,000 where "
             "not given"},
    {"data.spread", KEY_NUMBER, AT(data.config.spread), .low = 0, .high = 1e6,
     .initial = "0.28",
     .help = "gaussian: deviation of the classes' means, per value"},
    {"data.split", KEY_PARSED, AT(data.split), .parse = parse_split,
     .show = show_split,
     .allowed = "iid, dirichlet(A) with A above 0, classes(K)",
     .initial = "iid", .help = "which rows each peer has"},

    {"train.optimiser", KEY_CHOICE, .choice = &kith_experiment_choice_optimiser,
     .initial = "sgd", .help = "see kith list optimisers"},
    {"train.learning_rate", KEY_NUMBER, AT(train.config.learning_rate),
     .low = 0, .high = 1e6, .initial = "0.05", .help = "at its peak"},
    {"train.momentum", KEY_NUMBER, AT(train.config.momentum), .low = 0,
     .high = MEMORY_MOST, .initial = "0", .help = "of the velocity"},
    {"train.nesterov", KEY_SWITCH, AT(train.config.nesterov),
     .initial = "false", .help = "look ahead along the velocity"},
    {"train.beta1", KEY_NUMBER, AT(train.config.beta1), .low = 0,
     .high = MEMORY_MOST, .initial = "0.9", .help = "of the mean"},
    {"train.beta2", KEY_NUMBER, AT(train.config.beta2), .low = 0,
     .high = MEMORY_MOST, .initial = "0.999", .help = "of the mean square"},
    {"train.epsilon", KEY_NUMBER, AT(train.config.epsilon), .low = 1e-20,
     .high = 1, .initial = "1e-8",
     .allowed = "the squares of smaller gradients are 0 in float32, and what "
                "is left is divided by it",
     .help = "added to the root"},
    {"train.trust", KEY_NUMBER, KEY_ABOVE, AT(train.config.trust), .low = 0,
     .high = 1e3, .initial = "0.001", .help = "share of a norm per step"},
    {"train.weight_decay", KEY_NUMBER, AT(train.config.weight_decay), .low = 0,
     .high = 1e3, .initial = "0",
     .help = "pull on weights; biases, scales and shifts are left alone"},
    {"train.clip", KEY_NUMBER, AT(train.config.clip), .low = 0, .high = 1e9,
     .initial = "0", .help = "global norm of the gradient; 0: off"},
    {"train.schedule", KEY_CHOICE, .choice = &kith_experiment_choice_schedule,
     .initial = "constant", .help = "of the learning rate, over own steps"},
    {"train.warmup", KEY_U64, AT(train.schedule.warmup), .low = 0, .high = 1e9,
     .initial = "0", .help = "steps of linear climb before the schedule"},
    {"train.floor", KEY_NUMBER, AT(train.schedule.floor), .low = 0, .high = 1,
     .initial = "0", .help = "linear, cosine: share of the rate at the end"},
    {"train.milestones", KEY_CUSTOM, .show = show_milestones,
     .allowed = "a list of 1 to 4 shares of all steps, ascending, such as "
                "[0.5, 0.75]",
     .help = "step: where the rate drops"},
    {"train.decay", KEY_NUMBER, KEY_ABOVE, AT(train.schedule.decay), .low = 0,
     .high = 1, .initial = "0.1", .help = "step: factor at each milestone"},
    {"train.batch", KEY_U32, AT(train.batch), .low = 1, .high = 65536,
     .initial = "16", .help = "rows per step and peer"},
    {"train.accumulate", KEY_U32, AT(train.accumulate), .low = 1, .high = 65536,
     .initial = "1",
     .help = "parts of the batch whose gradients add up to one step"},
    {"train.smoothing", KEY_NUMBER, KEY_BELOW, AT(train.smoothing), .low = 0,
     .high = 1, .initial = "0", .help = "of labels, towards all classes alike"},
    {"train.recompute", KEY_SWITCH, KEY_LOCAL, AT(train.recompute),
     .initial = "false",
     .help = "less memory: blocks run forward once more on the way back"},
    {"train.augment", KEY_CUSTOM, .show = show_augment,
     .allowed = "a mapping such as {crop: 4, flip: true}",
     .help = "images: pad and cut back at random, turn left to right"},
    {"train.backend", KEY_CHOICE, .show = show_backend,
     .choice = &kith_experiment_choice_backend, .initial = "cpu",
     .help = "arithmetic; auto: cuda where it runs, else cpu"},

    {"gossip.algorithm", KEY_CHOICE,
     .choice = &kith_experiment_choice_algorithm, .initial = "adpsgd",
     .help = "see kith list algorithms"},
    {"gossip.every", KEY_U32, AT(gossip.every), .low = 1, .high = 1e9,
     .initial = "1", .help = "own steps between two exchanges"},
    {"gossip.chance", KEY_NUMBER, KEY_ABOVE, AT(gossip.chance), .low = 0,
     .high = 1, .initial = "1", .help = "of an exchange where one is due"},
#define KITH_X(name, key, least, most, text)                                   \
    {"gossip." key,                                                            \
     KEY_NUMBER,                                                               \
     AT(gossip.coefficients[KITH_GOSSIP_##name]),                              \
     .low = (least),                                                           \
     .high = (most),                                                           \
     .help = (text)},
    KITH_GOSSIP_KEYS(KITH_X)
#undef KITH_X
        {"gossip.topology", KEY_CHOICE,
         .choice = &kith_experiment_choice_topology, .initial = "random",
         .help = "see kith list topologies"},
    {"gossip.weights", KEY_CHOICE, .choice = &kith_experiment_choice_weights,
     .initial = "metropolis",
     .help = "of a static undirected graph; optimal: the best constant; lazy "
             "where not given and the algorithm needs it"},
    {"gossip.degree", KEY_U32, AT(gossip.options.degree), .low = 1,
     .high = KITH_DEGREE_MAX,
     .help = "neighbours, edges of a newcomer, or most in a round"},
    {"gossip.probability", KEY_NUMBER, KEY_ABOVE,
     AT(gossip.options.probability), .low = 0, .high = 1,
     .help = "of an edge; else just enough to be connected"},
    {"gossip.rewire", KEY_NUMBER, AT(gossip.options.rewire), .low = 0,
     .high = 1, .initial = "0.1",
     .help = "share of the lattice's edges that go astray"},
    {"gossip.regions", KEY_U32, AT(gossip.options.regions), .low = 1,
     .high = KITH_PEERS_MAX, .help = "how many; else the root of the peers"},
    {"gossip.leaders", KEY_SWITCH, AT(gossip.options.leaders),
     .initial = "false",
     .help = "only the first of each region talks to other regions"},
    {"gossip.budget", KEY_NUMBER, KEY_ABOVE, AT(gossip.options.budget),
     .low = 0, .high = 1, .initial = "0.5",
     .help = "mean share of its matchings that are active"},
    {"gossip.graph", KEY_CHOICE, .choice = &kith_experiment_choice_graph,
     .help = "whose edges; else circulant"},
    {"gossip.eta", KEY_NUMBER, KEY_ABOVE, AT(gossip.options.eta), .low = 0,
     .high = 1, .help = "how far to the other; else the best"},
    {"gossip.period", KEY_U32, AT(gossip.options.period), .low = 1, .high = 1e9,
     .help = "one of so many rounds is of all; else 8"},
    {"gossip.path", KEY_TEXT, TEXT_AT(gossip.path), .show = show_edges,
     .help =
         "its edges, a line \"FROM TO [WEIGHT]\" each; relative to this file"},
    {"gossip.compressor", KEY_CHOICE,
     .choice = &kith_experiment_choice_compressor, .initial = "none",
     .help = "see kith list compressors"},
    {"gossip.density", KEY_NUMBER, KEY_ABOVE, AT(gossip.compression.density),
     .low = 0, .high = 1, .initial = "0.01",
     .help = "share of the values that travel"},
    {"gossip.levels", KEY_U32, AT(gossip.compression.levels), .low = 1,
     .high = KITH_COMPRESSOR_LEVELS_MAX, .initial = "15",
     .help = "above 0; 2^b - 1 of them take 1 + b bits a value"},
    {"gossip.block", KEY_U32, AT(gossip.compression.block), .low = 0,
     .high = KITH_COMPRESSOR_BLOCK_MAX, .initial = "0",
     .help = "values compressed together; 0: the compressor's own"},
    {"gossip.unbiased", KEY_SWITCH, AT(gossip.compression.unbiased),
     .initial = "false", .help = "right on average, but no contraction"},
    {"gossip.guard", KEY_CHOICE, .choice = &kith_experiment_choice_guard,
     .initial = "none", .help = "after the finite gate, which is always on"},
    {"gossip.retries", KEY_U32, KEY_LOCAL, AT(gossip.retries), .low = 0,
     .high = 16, .initial = "8", .help = "other peers asked after a busy one"},
    {"gossip.deadline", KEY_PARSED, KEY_LOCAL, AT(gossip.deadline_ns),
     .parse = parse_deadline,
     .allowed = "measured, a time of at least 1ms with its unit, or never "
                "(simulator only)",
     .initial = "measured", .help = "how long a round waits for a neighbour"},

    {"central.method", KEY_CHOICE, .show = show_method,
     .choice = &kith_experiment_choice_central_method, .initial = "gradient",
     .help = "in place of gossip, simulator only; see kith list central"},
    {"central.exchange", KEY_CHOICE,
     .choice = &kith_experiment_choice_central_exchange, .initial = "naive",
     .help = "how it is sent"},
    {"central.trigger", KEY_CHOICE,
     .choice = &kith_experiment_choice_central_trigger, .initial = "sync",
     .help = "gradient: when the next step may begin"},
    {"central.servers", KEY_U32, AT(central.servers), .low = 1,
     .high = KITH_CENTRAL_PEERS_MAX, .initial = "1",
     .help = "naive: machines that each hold a part of the model"},
    {"central.placement", KEY_CHOICE,
     .choice = &kith_experiment_choice_central_placement, .initial = "own",
     .help = "servers on machines of their own, or workers'"},
    {"central.replicas", KEY_U32, AT(central.replicas), .low = 1, .high = 15,
     .initial = "1",
     .help = "of each server; a majority has an update before it counts"},
    {"central.proxies", KEY_U32, AT(central.proxies), .low = 0,
     .high = KITH_CENTRAL_PEERS_MAX, .initial = "0",
     .help = "naive: machines that sum up a group of workers"},
    {"central.staleness", KEY_U32, AT(central.staleness), .low = 0, .high = 1e9,
     .initial = "3",
     .help = "ssp, essp: steps that one may be ahead of the slowest"},
    {"central.bound", KEY_NUMBER, KEY_ABOVE, AT(central.bound), .low = 0,
     .high = 1e9, .initial = "0.1",
     .help = "value-bound: largest change that the slowest has not seen"},
    {"central.backup", KEY_U32, AT(central.backup), .low = 1,
     .high = KITH_CENTRAL_PEERS_MAX, .initial = "1",
     .help = "backup, quorum: gradients that a step does not wait for"},
    {"central.every", KEY_U32, AT(central.every), .low = 1, .high = 1e9,
     .initial = "1",
     .help = "sparknet, easgd, mpca-sgd: own steps between exchanges"},
    {"central.alpha", KEY_NUMBER, AT(central.alpha), .low = 0, .high = 1,
     .help =
         "elastic force on a worker, 0.9 / peers where not given; mpca-sgd: "
         "its penalty"},
    {"central.beta", KEY_NUMBER, AT(central.beta), .low = 0, .high = 1,
     .help = "easgd: force on the master; alpha where not given"},
    {"central.degree", KEY_U32, AT(central.degree), .low = 2, .high = 64,
     .initial = "16", .help = "treeeasgd: children of a master"},
    {"central.up", KEY_U32, AT(central.up), .low = 1, .high = 1e6,
     .initial = "10",
     .help = "treeeasgd: steps of a leaf, messages of a master, between two "
             "models sent up"},
    {"central.down", KEY_U32, AT(central.down), .low = 1, .high = 1e6,
     .initial = "10",
     .help = "treeeasgd: messages of a master between two models sent down"},
    {"central.stages", KEY_U32, AT(central.stages), .low = 0,
     .high = KITH_CENTRAL_PEERS_MAX, .initial = "0",
     .help =
         "vertical: parts of the model; peers beyond stand idle; 0: one for "
         "each peer"},
    {"central.micro_batches", KEY_U32, AT(central.micro_batches), .low = 1,
     .high = 4096, .initial = "1",
     .help = "vertical: parts of a batch in the pipeline, applied as one"},
    {"central.in_flight", KEY_U32, AT(central.in_flight), .low = 1, .high = 64,
     .initial = "1",
     .help = "vertical: batches in the pipeline, each applied when it is back"},
    {"central.payload", KEY_U64, AT(central.payload_bytes), .low = 0,
     .high = 1e13, .initial = "0", .help = "model none: bytes of what is sent"},
    {"central.reduce", KEY_RATE, AT(central.reduce_bits),
     .allowed = "unlimited, or a rate such as 10GB", .initial = "unlimited",
     .help = "how fast a machine adds two gradients"},
    {"central.update", KEY_RATE, AT(central.update_bits),
     .allowed = "unlimited, or a rate such as 2GB", .initial = "unlimited",
     .help = "how fast it applies one to the model"},

    {"network.latency", KEY_TIME, KEY_LOCAL, AT(network.latency_ns), .low = 0,
     .high = 60, .initial = "0s", .help = "one way"},
    {"network.jitter", KEY_TIME, KEY_LOCAL, AT(network.jitter_ns), .low = 0,
     .high = 60, .initial = "0s",
     .help = "mean of an exponential, added to it"},
    {"network.rate", KEY_RATE, KEY_LOCAL, AT(network.rate_bits),
     .allowed = "unlimited, or a rate from 1kbit to 1000Tbit per second with "
                "its unit (10Gbit, 5MB)",
     .initial = "unlimited", .help = "of each peer, in each direction"},
    {"network.loss", KEY_NUMBER, KEY_BELOW | KEY_LOCAL, AT(network.loss),
     .low = 0, .high = 1, .initial = "0",
     .help = "share of records that need a retransmission"},
    {"network.drop_push", KEY_NUMBER, KEY_BELOW | KEY_LOCAL,
     AT(network.drop_push), .low = 0, .high = 1, .initial = "0",
     .help = "share of push messages lost for good; simulator only"},
    {"network.wire", KEY_CHOICE, KEY_LOCAL,
     .choice = &kith_experiment_choice_wire, .initial = "sized",
     .help = "simulator: charge the exact size, or carry the sealed bytes"},
    {"network.suite", KEY_CHOICE, KEY_LOCAL,
     .choice = &kith_experiment_choice_suite, .initial = "auto",
     .help = "cipher of the whole cluster"},

    {"compute.step", KEY_TIME, KEY_LOCAL, AT(compute.step_ns), .low = 0,
     .high = 3600, .initial = "0s",
     .help = "sim: cost of a step; lab: its minimum period"},
    {"compute.merge", KEY_TIME, KEY_LOCAL, AT(compute.merge_ns), .low = 0,
     .high = 3600, .initial = "0s", .help = "sim: cost of a snapshot or merge"},
    {"compute.spread", KEY_PARSED, KEY_LOCAL, AT(compute.exponential),
     .parse = parse_spread, .allowed = "fixed or exponential",
     .initial = "fixed",
     .help = "sim: every step takes compute.step, or draws an exponential with "
             "that mean"},
    {"compute.products", KEY_CHOICE, KEY_LOCAL,
     .choice = &kith_experiment_choice_products, .initial = "own",
     .help = "backend cpu: who multiplies matrices; see --calibrate"},
    {"compute.threads", KEY_U32, KEY_LOCAL, AT(compute.threads), .low = 0,
     .high = 64, .initial = "0",
     .help = "train, peer: of the arithmetic; 0: one for each core. A lab's "
             "peers have one each"},
    {"compute.peak", KEY_NUMBER, KEY_LOCAL, AT(compute.peak), .low = 0,
     .high = 1e18, .initial = "0",
     .help = "FLOP/s this machine reaches at best, as --calibrate measured; "
             "0: not measured"},
    {"compute.core_peak", KEY_NUMBER, KEY_LOCAL, AT(compute.core_peak),
     .low = 0, .high = 1e18, .initial = "0",
     .help = "the same of one core, for a lab's peers"},
    {"compute.slow", KEY_CUSTOM, KEY_LOCAL,
     .allowed = "a list such as [{peers: \"n(1)\", by: 10}]",
     .help = "peers whose steps take longer from the start"},

    {"save", KEY_PARSED, KEY_LOCAL, AT(save_period_ns), .parse = parse_save,
     .allowed = "a time of at least 1ms with its unit, or never",
     .initial = "5s", .help = "how often a peer writes its model to disk"},
    {"evaluate", KEY_PARSED, KEY_LOCAL, AT(evaluate_ns),
     .parse = parse_evaluate,
     .allowed = "a time of at least 1ms with its unit, end, or, for kith train "
                "alone, a number of steps such as 500 steps",
     .help =
         "how often the averaged model is tested; where nothing is said, at "
         "the end, in kith train twenty times"},
    {"best", KEY_CHOICE, KEY_LOCAL, .choice = &kith_experiment_choice_best,
     .initial = "loss",
     .help = "train: the checkpoint with the best test loss or accuracy is "
             "kept"},
    {"target_loss", KEY_NUMBER, KEY_ABOVE | KEY_LOCAL, AT(target_loss),
     .low = 0, .high = 1e9,
     .help = "comparisons tell when the averaged model's test loss reached it"},
    {"faults", KEY_CUSTOM, KEY_LOCAL,
     .allowed = "a list such as [{at: 2s, crash: \"n(1)\", restart: 3s}]",
     .help = "see kith list faults"},
    {"assert", KEY_CUSTOM, KEY_LOCAL,
     .allowed = "a list such as [\"finally accuracy >= 0.85\"]",
     .help = "see kith list checks"},
    {.path = NULL},
};

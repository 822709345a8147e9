/* Every key of an experiment file: where it goes, its type, unit, bounds,
 * default, and one line of help. Values that are not a field as it stands are
 * read and shown by key_values.c. */
#include "key_table.h"

#include "kith/session.h"
#include "key_values.h"

#define AT(field) .offset = offsetof(struct kith_experiment, field)
#define TEXT_AT(field)                                                         \
    AT(field), .size = sizeof(((struct kith_experiment *)0)->field)

#define RATES                                                                  \
    "unlimited, or a rate from 1kbit to 1000Tbit per second with its unit "    \
    "(10Gbit, 5MB)"

/* In float32 more is 1: an average that forgets nothing and takes nothing in.
 */
#define MEMORY_MOST 0.999999

/* The usual rows, by column. A default of NULL: there is none. */
#define BOUNDED(key, kind, bits, field, least, most, preset, words)            \
    {                                                                          \
        key, kind, bits, AT(field), .low = (least), .high = (most),            \
                                    .initial = (preset), .help = (words)       \
    }
#define SWITCH(key, bits, field, words)                                        \
    {                                                                          \
        key, KEY_SWITCH, bits, AT(field), .initial = "false", .help = (words)  \
    }
#define CHOICE(key, bits, names, preset, words)                                \
    {                                                                          \
        key, KEY_CHOICE, bits, .choice = &kith_choice_##names,                 \
                               .initial = (preset), .help = (words)            \
    }

/* Rows of one section stand together. */
const struct key kith_experiment_keys[] = {
    {"name", KEY_NAME, KEY_REQUIRED | KEY_LOCAL, TEXT_AT(name),
     .help = "names the run database and the table"},
    BOUNDED("seed", KEY_U64, 0, seed, 0, 1e20, "1", "of every random draw"),
    BOUNDED("peers", KEY_U32, KEY_REQUIRED, peers, 1, KITH_PEERS_MAX, NULL,
            "how many"),

    BOUNDED("stop.epochs", KEY_NUMBER, KEY_ABOVE, stop.epochs, 0, 1e6, NULL,
            "passes over the training set, by all peers together"),
    BOUNDED("stop.steps", KEY_U64, 0, stop.steps, 1, 1e12, NULL,
            "training steps of each peer"),
    BOUNDED("stop.time", KEY_TIME, KEY_ABOVE, stop.time_ns, 0, 1e6, NULL,
            "virtual or real time; alone or beside one of the others"),
    BOUNDED("stop.patience", KEY_U32, KEY_LOCAL, stop.patience, 0, 1e6, "0",
            "train, lab: evaluations without a better one; 0: no early stop"),

    CHOICE("model.kind", KEY_REQUIRED, model, NULL, "see kith list models"),
    {"model.layers", KEY_SIZES, TEXT_AT(model_config.layers), .low = 2,
     .allowed = "a list of 2 to 16 whole numbers above 0, input first, such as "
                "[784, 128, 10]",
     .help = "sizes, input first"},
    BOUNDED("model.dim", KEY_U32, 0, model_config.dim, 1, 1 << 30, NULL,
            "parameters; none: messages as long as theirs"),
    {"model.run", KEY_TEXT, KEY_LOCAL, TEXT_AT(run.command),
     .help = "lab: the command whose processes are the peers, in this file's "
             "folder"},
    BOUNDED("model.spread", KEY_NUMBER, 0, model_config.spread, 0, 1e6, "1",
            "of targets, of gradients"),
    BOUNDED("model.start", KEY_NUMBER, 0, model_config.start, 0, 1e6, "0",
            "of the vector at which all peers start"),
    BOUNDED("model.apart", KEY_NUMBER, 0, model_config.apart, 0, 1e6, "0",
            "of each peer's own start from that vector"),

    {"model.image", KEY_SIZES, TEXT_AT(model_config.image), .low = 3,
     .allowed = "a list of 3 whole numbers above 0: height, width and "
                "channels, such as [28, 28, 1]",
     .help = "what the data holds"},
    BOUNDED("model.classes", KEY_U32, 0, model_config.classes, 2,
            KITH_CLASSES_MAX, NULL, "scores"),
    {"model.channels", KEY_SIZES, TEXT_AT(model_config.channels), .low = 1,
     .allowed = "a list of 1 to 16 whole numbers above 0, such as [16, 32]",
     .help = "of each convolution"},
    BOUNDED("model.depth", KEY_U32, 0, model_config.depth, 1, 1024, NULL,
            "layers, as named, or blocks"),
    CHOICE("model.norm", 0, norm, NULL,
           "of which statistics; initially batch, in gpt layer"),
    CHOICE("model.positions", 0, positions, "learned",
           "a table, or rotations of q and k"),
    BOUNDED("model.heads", KEY_U32, 0, model_config.heads, 1, 1024, NULL,
            "of the attention"),
    BOUNDED("model.width", KEY_U32, 0, model_config.width, 1, 65536, NULL,
            "of the residual stream"),
    BOUNDED("model.context", KEY_U32, 0, model_config.context, 1, 65536, NULL,
            "tokens of a sequence"),
    BOUNDED("model.vocabulary", KEY_U32, 0, model_config.vocabulary, 2,
            KITH_CLASSES_MAX, NULL, "different tokens"),
    BOUNDED("model.dropout", KEY_NUMBER, KEY_BELOW, model_config.dropout, 0, 1,
            "0", "share of values set to 0"),
    {"model.frozen", KEY_NAME, TEXT_AT(model_config.frozen),
     .help = "views whose name begins so neither train nor travel"},

    CHOICE("data.kind", 0, data, "idx", "see kith list datasets"),
    {"data.path", KEY_TEXT, KEY_LOCAL, TEXT_AT(data.config.path),
     .help = "folder or file, as the kind says; relative to this file"},
    {"data.cache", KEY_TEXT, KEY_LOCAL, TEXT_AT(data.config.cache),
     .help = "folder on the local disk that keeps a checked copy of each file"},
    {"data.manifest", KEY_TEXT, KEY_LOCAL, TEXT_AT(data.config.manifest),
     .help = "lab, peer: hashes of its pieces, which peers have from each "
             "other; see kith list manifest"},
    BOUNDED("data.test_share", KEY_NUMBER, KEY_ABOVE | KEY_BELOW,
            data.config.test_share, 0, 1, "0.1",
            "text, bytes: the end of the file that is the test set"),
    SWITCH("data.normalise", 0, data.config.normalise,
           "images: by the training set's mean and deviation per channel"),
    BOUNDED("data.rows", KEY_U64, 0, data.config.rows, 1, 1e12, NULL,
            "synthetic, gaussian: training examples; 10,000 or 8,000 where "
            "not given"),
    BOUNDED("data.spread", KEY_NUMBER, 0, data.config.spread, 0, 1e6, "0.28",
            "gaussian: deviation of the classes' means, per value"),
    {"data.split", KEY_PARSED, AT(data.split), .parse = kith_key_parse_split,
     .show = kith_key_show_split,
     .allowed = "iid, dirichlet(A) with A above 0, classes(K)",
     .initial = "iid", .help = "which rows each peer has"},

    CHOICE("train.optimiser", 0, optimiser, "sgd", "see kith list optimisers"),
    BOUNDED("train.learning_rate", KEY_NUMBER, 0, train.config.learning_rate, 0,
            1e6, "0.05", "at its peak"),
    BOUNDED("train.momentum", KEY_NUMBER, 0, train.config.momentum, 0,
            MEMORY_MOST, "0", "of the velocity"),
    SWITCH("train.nesterov", 0, train.config.nesterov,
           "look ahead along the velocity"),
    BOUNDED("train.beta1", KEY_NUMBER, 0, train.config.beta1, 0, MEMORY_MOST,
            "0.9", "of the mean"),
    BOUNDED("train.beta2", KEY_NUMBER, 0, train.config.beta2, 0, MEMORY_MOST,
            "0.999", "of the mean square"),
    {"train.epsilon", KEY_NUMBER, AT(train.config.epsilon), .low = 1e-20,
     .high = 1, .initial = "1e-8",
     .allowed = "the squares of smaller gradients are 0 in float32, and what "
                "is left is divided by it",
     .help = "added to the root"},
    BOUNDED("train.trust", KEY_NUMBER, KEY_ABOVE, train.config.trust, 0, 1e3,
            "0.001", "share of a norm per step"),
    BOUNDED("train.weight_decay", KEY_NUMBER, 0, train.config.weight_decay, 0,
            1e3, "0",
            "pull on weights; biases, scales and shifts are left alone"),
    BOUNDED("train.clip", KEY_NUMBER, 0, train.config.clip, 0, 1e9, "0",
            "global norm of the gradient; 0: off"),
    CHOICE("train.schedule", 0, schedule, "constant",
           "of the learning rate, over own steps"),
    BOUNDED("train.warmup", KEY_U64, 0, train.schedule.warmup, 0, 1e9, "0",
            "steps of linear climb before the schedule"),
    BOUNDED("train.floor", KEY_NUMBER, 0, train.schedule.floor, 0, 1, "0",
            "linear, cosine: share of the rate at the end"),
    {"train.milestones", KEY_CUSTOM, .show = kith_key_show_milestones,
     .allowed = "a list of 1 to 4 shares of all steps, ascending, such as "
                "[0.5, 0.75]",
     .help = "step: where the rate drops"},
    BOUNDED("train.decay", KEY_NUMBER, KEY_ABOVE, train.schedule.decay, 0, 1,
            "0.1", "step: factor at each milestone"),
    BOUNDED("train.batch", KEY_U32, 0, train.batch, 1, 65536, "16",
            "rows per step and peer"),
    BOUNDED("train.accumulate", KEY_U32, 0, train.accumulate, 1, 65536, "1",
            "parts of the batch whose gradients add up to one step"),
    BOUNDED("train.smoothing", KEY_NUMBER, KEY_BELOW, train.smoothing, 0, 1,
            "0", "of labels, towards all classes alike"),
    SWITCH("train.recompute", KEY_LOCAL, train.recompute,
           "less memory: blocks run forward once more on the way back"),
    SWITCH("train.recover_from_save", KEY_LOCAL, train.recover_from_save,
           "one vector less: a spoilt model makes way for the last save"),
    {"train.augment", KEY_CUSTOM, .show = kith_key_show_augment,
     .allowed = "a mapping such as {crop: 4, flip: true}",
     .help = "images: pad and cut back at random, turn left to right"},
    {"train.backend", KEY_CHOICE, .show = kith_key_show_backend,
     .choice = &kith_choice_backend, .initial = "cpu",
     .help = "arithmetic; auto: cuda where it runs, else cpu"},

    CHOICE("gossip.algorithm", 0, algorithm, "adpsgd",
           "see kith list algorithms"),
    BOUNDED("gossip.every", KEY_U32, 0, gossip.every, 1, 1e9, "1",
            "own steps between two exchanges"),
    BOUNDED("gossip.chance", KEY_NUMBER, KEY_ABOVE, gossip.chance, 0, 1, "1",
            "of an exchange where one is due"),
#define KITH_X(name, key, least, most, words)                                  \
    BOUNDED("gossip." key, KEY_NUMBER, 0,                                      \
            gossip.coefficients[KITH_GOSSIP_##name], least, most, NULL,        \
            words),
    KITH_GOSSIP_KEYS(KITH_X)
#undef KITH_X
        CHOICE("gossip.topology", 0, topology, "random",
               "see kith list topologies"),
    CHOICE("gossip.weights", 0, weights, "metropolis",
           "of a static undirected graph; optimal: the best constant; lazy "
           "where not given and the algorithm needs it"),
    BOUNDED("gossip.degree", KEY_U32, 0, gossip.options.degree, 1,
            KITH_DEGREE_MAX, NULL,
            "neighbours, edges of a newcomer, or most in a round"),
    BOUNDED("gossip.probability", KEY_NUMBER, KEY_ABOVE,
            gossip.options.probability, 0, 1, NULL,
            "of an edge; else just enough to be connected"),
    BOUNDED("gossip.rewire", KEY_NUMBER, 0, gossip.options.rewire, 0, 1, "0.1",
            "share of the lattice's edges that go astray"),
    BOUNDED("gossip.regions", KEY_U32, 0, gossip.options.regions, 1,
            KITH_PEERS_MAX, NULL, "how many; else the root of the peers"),
    SWITCH("gossip.leaders", 0, gossip.options.leaders,
           "only the first of each region talks to other regions"),
    SWITCH("gossip.norms", 0, gossip.options.norms,
           "of two-level with regions: 1, for lars: each finds the norms of a "
           "part of the layers, and all have them from each other"),
    BOUNDED("gossip.budget", KEY_NUMBER, KEY_ABOVE, gossip.options.budget, 0, 1,
            "0.5", "mean share of its matchings that are active"),
    CHOICE("gossip.graph", 0, graph, NULL, "whose edges; else circulant"),
    BOUNDED("gossip.eta", KEY_NUMBER, KEY_ABOVE, gossip.options.eta, 0, 1, NULL,
            "how far to the other; else the best"),
    BOUNDED("gossip.period", KEY_U32, 0, gossip.options.period, 1, 1e9, NULL,
            "one of so many rounds is of all; else 8"),
    {"gossip.path", KEY_TEXT, TEXT_AT(gossip.path), .show = kith_key_show_edges,
     .help = "its edges, a line \"FROM TO [WEIGHT]\" each, or CSV"},
    CHOICE("gossip.wire", 0, format, "float32",
           "as what the numbers of a message travel; both ends merge with the "
           "same rounded ones; see kith list wires"),
    BOUNDED(
        "gossip.wire_share", KEY_NUMBER, KEY_ABOVE, gossip.wire_share, 0, 1,
        "1",
        "of a model's blocks of 256 values that an exchange carries, others "
        "each time; less than 1: moniqua8 or moniqua4"),
    CHOICE("gossip.compressor", 0, compressor, "none",
           "see kith list compressors"),
    BOUNDED("gossip.density", KEY_NUMBER, KEY_ABOVE, gossip.compression.density,
            0, 1, "0.01", "share of the values that travel"),
    BOUNDED("gossip.levels", KEY_U32, 0, gossip.compression.levels, 1,
            KITH_COMPRESSOR_LEVELS_MAX, "15",
            "above 0; 2^b - 1 of them take 1 + b bits a value"),
    BOUNDED("gossip.block", KEY_U32, 0, gossip.compression.block, 0,
            KITH_COMPRESSOR_BLOCK_MAX, "0",
            "values compressed together; 0: the compressor's own"),
    SWITCH("gossip.unbiased", 0, gossip.compression.unbiased,
           "right on average, but no contraction"),
    CHOICE("gossip.guard", 0, guard, "none",
           "against members that lie, behind the finite gate, which is always "
           "on; clip where not given, if the algorithm takes one and the "
           "model learns from data; see kith list guards"),
    BOUNDED("gossip.liars", KEY_U32, 0, gossip.guarded.liars, 0,
            KITH_DEGREE_MAX, "1", "neighbours of a round that may lie"),
    BOUNDED("gossip.tolerance", KEY_NUMBER, KEY_ABOVE, gossip.guarded.tolerance,
            0, 1e9, "0.3", "share of one's own norm that others may be off"),
    BOUNDED("gossip.retries", KEY_U32, KEY_LOCAL, gossip.retries, 0, 16, "8",
            "other peers asked after a busy one"),
    BOUNDED("gossip.exchanges", KEY_U32, 0, gossip.exchanges, 0,
            KITH_EXCHANGES_LIMIT, "0",
            "swaps asked for at a time, and as many answered; 0: 4, or what "
            "fits 1 GiB"),
    {"gossip.deadline", KEY_PARSED, KEY_LOCAL, AT(gossip.deadline_ns),
     .parse = kith_key_parse_deadline,
     .allowed = "measured, a time of at least 1ms with its unit, or never "
                "(simulator only)",
     .initial = "measured", .help = "how long a round waits for a neighbour"},

    {"central.method", KEY_CHOICE, .show = kith_key_show_method,
     .choice = &kith_choice_central_method, .initial = "gradient",
     .help = "in place of gossip, simulator only; see kith list central"},
    CHOICE("central.exchange", 0, central_exchange, "naive", "how it is sent"),
    CHOICE("central.trigger", 0, central_trigger, "sync",
           "gradient: when the next step may begin"),
    BOUNDED("central.servers", KEY_U32, 0, central.servers, 1,
            KITH_CENTRAL_PEERS_MAX, "1",
            "naive: machines that each hold a part of the model"),
    CHOICE("central.placement", 0, central_placement, "own",
           "servers on machines of their own, or workers'"),
    BOUNDED("central.replicas", KEY_U32, 0, central.replicas, 1, 15, "1",
            "of each server; a majority has an update before it counts"),
    BOUNDED("central.proxies", KEY_U32, 0, central.proxies, 0,
            KITH_CENTRAL_PEERS_MAX, "0",
            "naive: machines that sum up a group of workers"),
    BOUNDED("central.staleness", KEY_U32, 0, central.staleness, 0, 1e9, "3",
            "ssp, essp: steps that one may be ahead of the slowest"),
    BOUNDED("central.bound", KEY_NUMBER, KEY_ABOVE, central.bound, 0, 1e9,
            "0.1", "value-bound: largest change that the slowest has not seen"),
    BOUNDED("central.backup", KEY_U32, 0, central.backup, 1,
            KITH_CENTRAL_PEERS_MAX, "1",
            "backup, quorum: gradients that a step does not wait for"),
    BOUNDED("central.every", KEY_U32, 0, central.every, 1, 1e9, "1",
            "sparknet, easgd, mpca-sgd: own steps between exchanges"),
    BOUNDED("central.alpha", KEY_NUMBER, 0, central.alpha, 0, 1, NULL,
            "elastic force on a worker, 0.9 / peers where not given; mpca-sgd: "
            "its penalty"),
    BOUNDED("central.beta", KEY_NUMBER, 0, central.beta, 0, 1, NULL,
            "easgd: force on the master; alpha where not given"),
    BOUNDED("central.degree", KEY_U32, 0, central.degree, 2, 64, "16",
            "treeeasgd: children of a master"),
    BOUNDED("central.up", KEY_U32, 0, central.up, 1, 1e6, "10",
            "treeeasgd: steps of a leaf, messages of a master, between two "
            "models sent up"),
    BOUNDED("central.down", KEY_U32, 0, central.down, 1, 1e6, "10",
            "treeeasgd: messages of a master between two models sent down"),
    BOUNDED("central.stages", KEY_U32, 0, central.stages, 0,
            KITH_CENTRAL_PEERS_MAX, "0",
            "vertical: parts of the model; peers beyond stand idle; 0: one for "
            "each peer"),
    BOUNDED("central.micro_batches", KEY_U32, 0, central.micro_batches, 1, 4096,
            "1", "vertical: parts of a batch in the pipeline, applied as one"),
    BOUNDED("central.in_flight", KEY_U32, 0, central.in_flight, 1, 64, "1",
            "vertical: batches in the pipeline, each applied when it is back"),
    BOUNDED("central.payload", KEY_U64, 0, central.payload_bytes, 0, 1e13, "0",
            "model none: bytes of what is sent"),
    {"central.reduce", KEY_RATE, AT(central.reduce_bits),
     .allowed = "unlimited, or a rate such as 10GB", .initial = "unlimited",
     .help = "how fast a machine adds two gradients"},
    {"central.update", KEY_RATE, AT(central.update_bits),
     .allowed = "unlimited, or a rate such as 2GB", .initial = "unlimited",
     .help = "how fast it applies one to the model"},

    BOUNDED("network.latency", KEY_TIME, KEY_LOCAL, network.link.latency_ns, 0,
            60, "0s", "one way"),
    BOUNDED("network.jitter", KEY_TIME, KEY_LOCAL, network.link.jitter_ns, 0,
            60, "0s", "mean of an exponential, added to it"),
    {"network.matrix", KEY_TEXT, TEXT_AT(network.files.matrix),
     .show = kith_key_show_matrix,
     .help = "file of round trips between regions, ms, in place of latency and "
             "jitter; peer i is in region i mod R"},
    {"network.matrix_p90", KEY_TEXT, KEY_LOCAL,
     TEXT_AT(network.files.matrix_p90),
     .help = "the same regions' 90th percentiles, beside medians in matrix: "
             "gives the jitter"},
    {"network.coordinates", KEY_TEXT, TEXT_AT(network.files.coordinates),
     .show = kith_key_show_coordinates,
     .help = "file of hosts' coordinates, lines \"ID X Y h HEIGHT\" in ms, in "
             "place of a matrix"},
    {"network.rate", KEY_RATE, KEY_LOCAL, AT(network.rate_bits),
     .allowed = RATES, .initial = "unlimited",
     .help = "of each peer, in each direction"},
    {"network.up", KEY_RATE, KEY_LOCAL, AT(network.up_bits), .allowed = RATES,
     .help = "of what each peer sends, where not network.rate"},
    {"network.down", KEY_RATE, KEY_LOCAL, AT(network.down_bits),
     .allowed = RATES,
     .help = "of what comes to each peer, where not network.rate"},
    CHOICE("network.sharing", KEY_LOCAL, sharing, "queue",
           "simulator: messages take a line one after another, or share it at "
           "max-min fair rates"),
    {"network.zones", KEY_CUSTOM, KEY_LOCAL,
     .allowed = "how many, or the number of peers of each in a list such as "
                "[10, 20]",
     .help = "simulator: places by rank; with matrix or coordinates the "
             "regions are the zones"},
    {"network.zone_rate", KEY_RATE, KEY_LOCAL, AT(network.zones.rate_bits),
     .allowed = RATES, .initial = "unlimited",
     .help = "simulator, sharing fair: of a line from each zone to each other, "
             "shared by all that crosses it"},
    {"network.zone_rates", KEY_TEXT, KEY_LOCAL,
     TEXT_AT(network.files.zone_rates),
     .help =
         "in its place: file of those rates, Mbit/s, a row and a column for "
         "each zone"},
    {"network.zone_uplink", KEY_RATE, KEY_LOCAL, AT(network.zones.uplink_bits),
     .allowed = RATES, .initial = "unlimited",
     .help =
         "in their place: of the one line out, and the one in, of each zone"},
    BOUNDED("network.loss", KEY_NUMBER, KEY_BELOW | KEY_LOCAL,
            network.link.loss, 0, 1, "0",
            "share of packets that need a retransmission"),
    BOUNDED("network.drop_push", KEY_NUMBER, KEY_BELOW | KEY_LOCAL,
            network.drop_push, 0, 1, "0",
            "share of push messages lost for good; simulator only"),
    CHOICE("network.wire", KEY_LOCAL, wire, "sized",
           "simulator: charge the exact size, or carry the sealed bytes"),
    CHOICE("network.suite", KEY_LOCAL, suite, "auto",
           "cipher of the cluster; a policy in ca.pub comes first, and lab and "
           "sim alone take AEGIS256X2 without one"),
    CHOICE(
        "network.same_host", KEY_LOCAL, same_host, "tcp",
        "peers of one host and user send models through the channel, or read "
        "them from each other's memory"),
    BOUNDED("network.cores", KEY_U32, KEY_LOCAL, network.cores, 0,
            KITH_LANES_MAX, "0",
            "peer: cores on which models are sealed and opened, up to 4; 0: "
            "those that compute.threads leaves, but for a lab's peers one"),

    BOUNDED("compute.step", KEY_TIME, KEY_LOCAL, compute.step_ns, 0, 3600, "0s",
            "sim: cost of a step; lab: its minimum period"),
    BOUNDED("compute.merge", KEY_TIME, KEY_LOCAL, compute.merge_ns, 0, 3600,
            "0s", "sim: cost of a snapshot or merge"),
    {"compute.spread", KEY_PARSED, KEY_LOCAL, AT(compute.exponential),
     .parse = kith_key_parse_spread,
     .allowed = "fixed or exponential; for speeds of peers: compute.speeds",
     .initial = "fixed",
     .help = "sim: every step takes compute.step, or draws an exponential with "
             "that mean"},
    {"compute.speeds", KEY_PARSED, KEY_LOCAL, AT(compute.speeds),
     .parse = kith_key_parse_speeds,
     .allowed = "equal, lognormal(S) with S from 1e-6 to 3, or pareto(A) with "
                "A from 0.5 to 100",
     .initial = "equal",
     .help = "of peers: compute.step times e^(S z), z normal, or u^(-1/A), u "
             "uniform; one draw a peer"},
    {"compute.affinity", KEY_PARSED, KEY_LOCAL, AT(compute.all_cores),
     .parse = kith_key_parse_affinity, .allowed = "auto or none",
     .initial = "auto",
     .help = "lab, and sim with hosts: each peer keeps to its share of the "
             "cores where one number divides the other"},
    CHOICE("compute.products", KEY_LOCAL, products, "own",
           "backend cpu: who multiplies matrices; see --calibrate"),
    BOUNDED("compute.threads", KEY_U32, KEY_LOCAL, compute.threads, 0, 64, "0",
            "train, peer: of the arithmetic; 0: one for each core. A lab's "
            "peers have one each"),
    BOUNDED("compute.peak", KEY_NUMBER, KEY_LOCAL, compute.peak, 0, 1e18, "0",
            "FLOP/s this machine reaches at best, as --calibrate measured; "
            "0: not measured"),
    BOUNDED("compute.core_peak", KEY_NUMBER, KEY_LOCAL, compute.core_peak, 0,
            1e18, "0", "the same of one core, for a lab's peers"),
    {"compute.slow", KEY_CUSTOM, KEY_LOCAL,
     .allowed = "a list such as [{peers: \"n(1)\", by: 10}]",
     .help = "peers whose steps take longer from the start"},

    {"hosts.file", KEY_TEXT, KEY_LOCAL, TEXT_AT(hosts.file),
     .help = "sim: a machine's file, of kith plan --measure: what is not given "
             "here is taken from it"},
    BOUNDED("hosts.cores", KEY_U32, KEY_LOCAL, hosts.cores, 0, 4096, "0",
            "sim: of each machine, shared by its peers; 0: peers do not hinder "
            "each other"),
    BOUNDED("hosts.peers", KEY_U32, KEY_LOCAL, hosts.peers, 0, KITH_PEERS_MAX,
            "0", "on each machine, by rank; 0: all on one"),
    BOUNDED("hosts.step", KEY_TIME, KEY_LOCAL, hosts.step_ns, 0, 3600, "0s",
            "processor time of a step, which then lasts compute.step at least; "
            "0: compute.step"),
    BOUNDED("hosts.message", KEY_TIME, KEY_LOCAL, hosts.message_ns, 0, 60, "0s",
            "processor time of a message, at each end"),
    BOUNDED("hosts.handover", KEY_TIME, KEY_LOCAL, hosts.handover_ns, 0, 60,
            "0s",
            "processor time of handing a step, snapshot or merge over "
            "to the thread that does it, and back"),
    BOUNDED(
        "hosts.wake", KEY_TIME, KEY_LOCAL, hosts.wake_ns, 0, 60, "0s",
        "until a thread whose period is over goes on, mean of an exponential"),
    BOUNDED("hosts.slice", KEY_TIME, KEY_ABOVE | KEY_LOCAL, hosts.slice_ns, 0,
            60, "3ms", "so long a thread keeps its core while others wait"),
    {"hosts.wire", KEY_RATE, KEY_LOCAL, AT(hosts.wire_bits),
     .allowed = "unlimited, or a rate such as 1GB", .initial = "unlimited",
     .help = "what a core seals and sends, or receives and opens"},
    {"hosts.merge", KEY_RATE, KEY_LOCAL, AT(hosts.merge_bits),
     .allowed = "unlimited, or a rate such as 5GB", .initial = "unlimited",
     .help = "bytes of a model that a core copies or merges"},

    {"save", KEY_PARSED, KEY_LOCAL, AT(save_period_ns),
     .parse = kith_key_parse_save,
     .allowed = "a time of at least 1ms with its unit, or never",
     .initial = "5s", .help = "how often a peer writes its model to disk"},
    {"evaluate", KEY_PARSED, KEY_LOCAL, AT(evaluate_ns),
     .parse = kith_key_parse_evaluate,
     .allowed = "full, end, a time of at least 1ms with its unit, or, for kith "
                "train alone, a number of steps such as 500 steps",
     .help = "when a run is tested on its way; where nothing is said, 20 times "
             "on a fixed part of the test set, within 3 % of the run; full: "
             "on all of it at any cost. The end is tested on all of it"},
    CHOICE("best", KEY_LOCAL, best, "loss",
           "train: the checkpoint with the best test loss or accuracy is "
           "kept"),
    BOUNDED("target_loss", KEY_NUMBER, KEY_ABOVE | KEY_LOCAL, target_loss, 0,
            1e9, NULL,
            "comparisons tell when the averaged model's test loss reached it"),
    {"classes", KEY_CUSTOM, KEY_LOCAL,
     .allowed = "a list such as [{peers: 30%, speed: 0.5, up: 10Mbit, down: "
                "50Mbit, latency: 20ms}]",
     .help = "peers with lines, latency or a speed of their own; what is not "
             "named is as in the whole"},
    {"faults", KEY_CUSTOM, KEY_LOCAL,
     .allowed = "a list such as [{at: 2s, crash: \"n(1)\", restart: 3s}]",
     .help = "see kith list faults"},
    {"assert", KEY_CUSTOM, KEY_LOCAL,
     .allowed = "a list such as [\"finally accuracy >= 0.85\"]",
     .help = "see kith list checks"},
    {.path = NULL},
};

/* kith: one program, a table of commands. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "kith/backend.h"
#include "kith/module.h"
#include "kith/session.h"

#define RUN_OPTIONS CLI_JSON, CLI_OUT, CLI_SEED, CLI_SET

/* Its name, its function, how many words it takes. */
#define COMMAND(command, least, most)                                          \
    .name = #command, .run = kith_cli_##command, .words_min = least,           \
    .words_max = most

static const struct cli_command commands[] = {
    {
        COMMAND(train, 0, 1),
        .summary = "train on one process without neighbours: the baseline",
        .usage = "EXPERIMENT.yaml [--save PATH] [--resume]\n"
                 "                  [--init FILE [--names FILE]]\n"
                 "                  [--threads N] [--set KEY=VALUE] [--json] | "
                 "--resume PATH",
        .details =
            "It sees as many samples as all peers of the experiment "
            "together.\n\nThe model is saved beside the run database, as "
            "often as the file's save: says,\nand when Ctrl-C or SIGTERM end "
            "the run; --resume goes on from there to the same\nmodel, bit for "
            "bit, as if never interrupted. PATH.best is the checkpoint with "
            "the\nbest evaluation. --save PATH --resume goes on where PATH "
            "is, else starts.\n\n"
            "Example: kith train examples/digits.yaml --set train.batch=64\n   "
            "      kith train --resume digits-train-1.save",
        .options = CLI_TAKES(RUN_OPTIONS, CLI_SAVE, CLI_RESUME, CLI_INIT,
                             CLI_NAMES, CLI_CALIBRATE, CLI_THREADS),
    },
    {
        COMMAND(eval, 1, 1),
        .summary = "loss and accuracy of a checkpoint on its test set",
        .usage =
            "CHECKPOINT [--data PATH] [--estimate N] [--threads N] [--json]",
        .details = "The checkpoint names its own experiment; --data and --set "
                   "change what it is\ntested on. Models of tokens have a "
                   "perplexity, too. An average of models with\nBatchNorm "
                   "needs statistics of its own: --estimate 20.\n\n"
                   "Example: kith eval shakespeare-train-1.save",
        .options = CLI_TAKES(CLI_JSON, CLI_SEED, CLI_SET, CLI_DATA,
                             CLI_ESTIMATE, CLI_THREADS),
    },
    {
        COMMAND(sample, 1, 1),
        .summary = "write text with a checkpoint of a language model",
        .usage = "CHECKPOINT [--prompt TEXT] [--tokens N] [--temperature T]\n"
                 "                   [--top-k K] [--seed N] [--tokenizer "
                 "tokenizer.json] [--threads N]",
        .details =
            "A model of characters or bytes needs nothing else; one of byte "
            "pairs needs its\ntokenizer.json. The same seed gives the same "
            "text.\n\n"
            "Example: kith sample shakespeare-train-1.save --prompt ROMEO:",
        .options = CLI_TAKES(CLI_PROMPT, CLI_TOKENS, CLI_TEMPERATURE, CLI_TOP_K,
                             CLI_SEED, CLI_TOKENIZER, CLI_THREADS),
    },
    {
        COMMAND(export, 1, 1),
        .summary = "write the model of a checkpoint for other programs",
        .usage = "CHECKPOINT --out FILE.safetensors [--names FILE]",
        .details = "The weights alone, as F32, under the names of Hugging Face "
                   "for gpt (a config.json\nbeside it, so that from_pretrained "
                   "opens the folder), else under the model's own.\nThe way "
                   "in: kith train --init FILE.safetensors.\n\n"
                   "For both, --names FILE says what another program calls the "
                   "tensors and how they\nlie there, a line each:\n\n"
                   "  conv.weight: {name: conv1.weight, axes: [2, 3, 1, 0]}\n"
                   "  blocks.*.norm.weight: h.*.ln_1.weight\n\n"
                   "Example: kith export shakespeare-train-1.save --out "
                   "romeo/model.safetensors",
        .out = "the file",
        .options = CLI_TAKES(CLI_OUT, CLI_NAMES),
    },
    {
        COMMAND(sim, 0, 1),
        .several = CLI_SEVERAL_ONE_RUN,
        .summary = "simulate an experiment in virtual time",
        .usage = "EXPERIMENT.yaml [--seed N] [--set KEY=VALUE] [--json]\n"
                 "                [--sweep KEY=V1,V2,...]... [--seeds K] "
                 "[--jobs N] [--shard I/N] |\n"
                 "                --all-cells [--cells DIR] [--seeds K] "
                 "[--jobs N] | --resume RUNS.db |\n"
                 "                --replay RUN.db [--json]\n"
                 "       kith sim EXPERIMENT.yaml --save FOLDER "
                 "[--save-every TIME] [--resume]",
        .details =
            "Same file and seed: same trace hash, whatever the threads, queue "
            "or wire mode.\n\n"
            "--sweep and --seeds run every combination, one process each, into "
            "one database, and\nprint mean and deviation of each cell. "
            "Interrupted, the same command goes on: runs in\nthe database are "
            "not run again. More --seeds are added to what is there. kith "
            "report\nplots it. --shard 2/4 runs a quarter of the cells, for a "
            "batch system; kith report\n--merge joins the four "
            "databases.\n\n"
            "--save keeps in FOLDER what one run needs to go on, every minute "
            "and when Ctrl-C or\nSIGTERM end it; with --resume it goes on "
            "from there, if there is a save, to the same\ntrace, summary and "
            "rows as if never interrupted. So do runs of several ranks.\n\n"
            "--replay carries out again what a kith lab --record wrote down, "
            "event for event,\nwithout a socket, and says how far its final "
            "models are from the lab's.\n\n"
            "--dump writes the models before every step, the targets of "
            "quadratics and the mixing\nmatrices as used, for methods in "
            "rounds: docs/dump.md has the NumPy.\n\n"
            "Example: kith sim examples/demo.yaml --set gossip.every=4\n"
            "         kith sim examples/digits.yaml --sweep gossip.every=1,2,4 "
            "--seeds 3",
        .options = CLI_TAKES(
            RUN_OPTIONS, CLI_THREADS, CLI_QUEUE, CLI_WIRE, CLI_ROWS, CLI_TRACE,
            CLI_TIMELINE, CLI_WINDOW, CLI_DUMP, CLI_CALIBRATE, CLI_SWEEP,
            CLI_SHARD, CLI_SEEDS, CLI_JOBS, CLI_ALL_CELLS, CLI_CELLS, CLI_SAVE,
            CLI_SAVE_EVERY, CLI_RESUME, CLI_TARGET_LOSS, CLI_TARGET, CLI_REPLAY,
            CLI_DISHONEST),
    },
    {
        COMMAND(swarm, 0, 1),
        .several = CLI_SEVERAL_REFUSED,
        .summary = "search simulations with random faults for a violation",
        .usage = "EXPERIMENT.yaml | --random [--lab] [--runs N] [--seed S] "
                 "[--jobs N]\n"
                 "                  [--json] | ... --run K [--keep FILE] "
                 "[--trace FILE]",
        .details =
            "Each run has crashes, pauses, stragglers and partitions, then "
            "time to heal, in which\nwhat is promised must happen. --random "
            "draws algorithm, graph, sizes, links and speeds,\ntoo. A "
            "violation comes with the command that repeats it. Interrupted, "
            "the same command\ngoes on. --lab runs the same draws with real "
            "processes, on the clock. Exit code 1 where something was "
            "violated.\n\n"
            "Example: kith swarm --random --runs 10000 --seed 7\n"
            "         kith swarm --random --seed 7 --run 17 --keep 17.yaml",
        .options = CLI_TAKES(CLI_JSON, CLI_OUT, CLI_SEED, CLI_SET, CLI_JOBS,
                             CLI_RANDOM, CLI_RUNS, CLI_RUN, CLI_KEEP, CLI_TRACE,
                             CLI_LAB),
    },
    {
        COMMAND(lab, 0, 1),
        .summary = "run an experiment with real processes on this machine",
        .usage = "EXPERIMENT.yaml [--record] [--seed N] [--set KEY=VALUE] "
                 "[--json] |\n"
                 "                --resume RUN.db",
        .details = "One process for each peer, real sockets, sealed channels, "
                   "the file's faults injected.\nInterrupted, it keeps what "
                   "its peers saved, and --resume goes on from there.\n"
                   "--record writes down what every peer was told and when, "
                   "for kith sim --replay.\n\n"
                   "Example: kith lab examples/demo.yaml --out runs\n"
                   "         kith lab --resume runs/demo-lab-1.db\n"
                   "         kith lab examples/demo.yaml --record",
        .options = CLI_TAKES(RUN_OPTIONS, CLI_PORT, CLI_SAVE, CLI_RESUME,
                             CLI_CALIBRATE, CLI_LOG, CLI_RECORD),
    },
    {
        COMMAND(peer, 1, 1),
        .summary = "run one peer of a cluster",
        .usage = "PEER.yaml [--calibrate] [--json]",
        .details =
            "The file names this peer's keys, address, rank, the other members "
            "and the experiment.\nThe model lands in its save folder. Once its "
            "share is done it answers\nthe others until none has asked for a "
            "minute; SIGTERM ends it in order. wait: in the\nfile says for how "
            "many members the start waits; exit code 9: it exchanged nothing.\n"
            "\n"
            "Example: kith peer /etc/kith/peer.yaml",
        .options = CLI_TAKES(CLI_CALIBRATE, CLI_JSON),
    },
    {
        COMMAND(keys, 1, 3),
        .summary = "make and show keys, certificates and revocations",
        .usage = "new DIR --authority [--suite NAME] | new DIR --name NAME |\n"
                 "                 certify AUTHORITY REQUEST [--out FILE] "
                 "[--rank N] [--days N]\n"
                 "                 [--roles LIST] |\n"
                 "                 revoke AUTHORITY CERTIFICATE | allow FOLDER "
                 "REQUEST | show FILE\n"
                 "                 [--json]",
        .details = "A node's key never leaves its machine: `new` makes a "
                   "request, `certify` signs it\nwhere the authority is, and "
                   "the certificate goes back as node.crt. Small clusters\n"
                   "can do without an authority: `allow` lists keys. A new "
                   "authority measures all\nsuites here, and --suite signs one "
                   "for its cluster (kith list suites).\n\n"
                   "Example: kith keys new authority --authority\n"
                   "         kith keys new node --name peer-0\n"
                   "         kith keys certify authority node/node.request "
                   "--rank 0",
        .out = "the certificate [REQUEST with .crt]",
        .options = CLI_TAKES(CLI_OUT, CLI_NAME, CLI_AUTHORITY, CLI_SUITE,
                             CLI_DAYS, CLI_RANK, CLI_ROLES, CLI_JSON),
    },
    {
        COMMAND(doctor, 1, 1),
        .summary = "say which layer fails between this peer and the others",
        .usage = "PEER.yaml [--links] [--json]",
        .details = "Name, TCP, preface, handshake, certificate, clock and "
                   "model, for each member.\nExit code 6 where one is not "
                   "well. With --links latency, jitter, rate and loss of the "
                   "way\nto each, whose peer runs.\n\n"
                   "Example: kith doctor /etc/kith/peer.yaml",
        .options = CLI_TAKES(CLI_LINKS, CLI_JSON),
    },
    {
        COMMAND(report, 1, CLI_WORDS_MAX),
        .summary = "make one page with plots out of run databases",
        .usage = "RUN.db... [--csv | --points | --figure Y:X | --table "
                 "COLUMNS |\n                   --json | --follow] [--baseline "
                 "SETTING] "
                 "[--target WHAT=X] [--out FILE] |\n"
                 "                   --merge OUT.db SHARD.db...",
        .details =
            "The page loads nothing from elsewhere. Several runs, and "
            "the cells of a sweep, are\ncompared: on the page, and in "
            "the table that is printed. Databases of the peers of one\n"
            "cluster are one run. --follow also takes folders, and "
            "files of runs that have not begun.\n\n"
            "Example: kith report demo-lab-1.db demo-sim-1.db --out "
            "both.html\n"
            "         kith report sweep.db --figure accuracy:bytes --out "
            "figure.pdf\n"
            "         kith report sweep.db --baseline gossip.every=1 --target "
            "accuracy=0.9\n"
            "           --table accuracy,time_to_target_s --out table.tex\n"
            "         kith report --follow demo-lab-1.db",
        .out = "the page or table [beside the first database]",
        .options = CLI_TAKES(CLI_OUT, CLI_CSV, CLI_POINTS, CLI_MERGE,
                             CLI_FOLLOW, CLI_FIGURE, CLI_TABLE, CLI_JSON,
                             CLI_BASELINE, CLI_TARGET, CLI_TARGET_LOSS),
    },
    {
        COMMAND(list, 0, 3),
        .summary = "what is built in, with papers and properties",
        .usage =
            "[KIND [NAME [PEERS]]] [--batch N] [--set KEY=VALUE]... [--python] "
            "[--json]",
        .details = "Kinds: algorithms, compressors, wires, topologies, guards, "
                   "models, optimisers, backends,\nschedules, datasets, "
                   "faults, checks, suites, keys (of an experiment "
                   "file), exchanges: of each\nalgorithm on each wire the "
                   "bytes of a message, the memory that it takes and what "
                   "is\nkept; balance: of each layer of a model or of a file's "
                   "what a step computes and sends,\nand how it is best "
                   "divided among peers; manifest PATH FILE: "
                   "writes the\nhashes of a data set's pieces, for "
                   "data.manifest. With PEERS a topology is built and "
                   "measured:\ndegrees, links, spectral gap.\n\n"
                   "Example: kith list algorithms adpsgd\n"
                   "         kith list topology watts-strogatz 64 --set "
                   "gossip.rewire=0.3\n"
                   "         kith list exchanges adpsgd --set "
                   "model.dim=124000000\n"
                   "         kith list balance vgg 64 --batch 256\n"
                   "         kith list manifest /mnt/nfs/shards "
                   "shards.manifest",
        .options = CLI_TAKES(CLI_JSON, CLI_SET, CLI_BATCH, CLI_PYTHON),
    },
    {
        COMMAND(plan, 1, 1),
        .summary = "say what an experiment will take, before it is run",
        .usage =
            "EXPERIMENT.yaml [--measure [--to PEER.yaml]] [--machine FILE]\n"
            "                 [--target efficiency=A] [--memory SIZE] "
            "[--set KEY=VALUE] [--json]\n"
            "       kith plan EXPERIMENT.yaml --search time|bytes --target "
            "accuracy=X|loss=X\n"
            "                 [--machine FILE] [--price P] [--sweep "
            "KEY=V1,V2,...]... [--runs N]\n"
            "                 [--seeds K] [--set KEY=VALUE] [--json]",
        .details =
            "--measure finds what a step, a message and a merge cost this "
            "machine, once, and\nwrites a file; with it, or with compute.step "
            "and network.rate of the experiment,\nclosed forms say how many "
            "workers, servers and neighbours an efficiency allows\n[0.9], the "
            "interval that hides an exchange, how fast the graph mixes, what "
            "memory is\ntaken, and one kith sim that checks the "
            "prediction. --to measures latency,\njitter, rate and loss to the "
            "members of a peer's file, whose peers run.\n\n"
            "Example: kith plan examples/digits.yaml --measure --machine "
            "here.yaml\n"
            "         kith plan examples/digits.yaml --machine here.yaml "
            "--set network.rate=1Gbit\n"
            "         kith plan examples/digits.yaml --search time --target "
            "accuracy=0.9 --price 0.5",
        .options =
            CLI_TAKES(CLI_MEASURE, CLI_TO, CLI_MACHINE, CLI_TARGET, CLI_MEMORY,
                      CLI_SEED, CLI_SET, CLI_SEARCH, CLI_PRICE, CLI_SWEEP,
                      CLI_RUNS, CLI_SEEDS, CLI_THREADS, CLI_JSON),
    },
    {
        COMMAND(init, 0, 1),
        .summary = "write an experiment file, from three questions",
        .usage = "[FILE.yaml] [--yes]",
        .details = "What is learnt, by how many peers, and how they average; "
                   "an empty line takes what\nstands in brackets. The file "
                   "[kith.yaml] has comments, and kith sim and kith lab run\n"
                   "it as it is. One that is there already stays.\n\n"
                   "Example: kith init first.yaml && kith sim first.yaml",
        .options = CLI_TAKES(CLI_YES),
    },
    {
        COMMAND(completion, 1, 1),
        .summary = "what a shell completes: bash, zsh or fish",
        .usage = "bash | zsh | fish",
        .details = "Commands, their options, and keys behind --set and "
                   "--sweep. make install puts the\nscripts where these shells "
                   "look.\n\n"
                   "Example: source <(kith completion bash)",
    },
};
#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

const struct cli_command *kith_cli_command(size_t index)
{
    return index < COMMAND_COUNT ? &commands[index] : NULL;
}

static void print_help(void)
{
    puts("kith: peers that train together, without a server.\n\n"
         "usage: kith COMMAND [ARGUMENTS]\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    puts("\nkith COMMAND --help says more; kith --version names the build.\n"
         "Exit codes: 0 done, 1 an assertion failed or not completed, 2 usage, "
         "3 experiment\nor peer file, 4 data, 5 cannot write, 6 network, 7 "
         "keys, 8 resources, 9 a peer without neighbours, 130 interrupted.\n\n"
         "Example: kith lab examples/demo.yaml");
}

static void print_version(void)
{
    char path[KITH_MODULE_PATH_BYTES], why[KITH_RANKS_WHY_BYTES];
    puts(kith_build_exact());
    printf("wire version: %u\n", KITH_PROTOCOL_VERSION);
    fputs("backends:", stdout);
    for (unsigned i = 0; kith_backends[i] != NULL; i++)
        printf(" %s", kith_backends[i]->name);
    if (kith_ranks_find(path, why))
        printf("\nMPI: %s\n", path);
    else
        printf("\nMPI: %s\n", why);
}

static const struct cli_command *find_command(const char *word)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(word, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

static int unknown_command(const char *word)
{
    const struct cli_arguments arguments = {.command = ""};
    const char *names[COMMAND_COUNT + 1];
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i].name;
    names[COMMAND_COUNT] = NULL;
    return kith_cli_unknown(&arguments, "command", word, names);
}

static int run_command(const struct cli_command *command, int argc, char **argv)
{
    struct cli_arguments arguments = {.command = command->name};
    const bool is_one_run = command->several == CLI_SEVERAL_ONE_RUN;
    int code = KITH_EXIT_OK;
    if (command->several == CLI_SEVERAL_REFUSED)
        code = kith_cli_ranks_refuse(&arguments);
    if (code != KITH_EXIT_OK)
        return code;
    if (is_one_run)
        kith_cli_ranks_hush();
    code = kith_cli_parse(command, argc, argv, &arguments);
    if (code != KITH_EXIT_OK)
        return is_one_run ? kith_cli_ranks_misled(code) : code;
    if (kith_cli_given(&arguments, CLI_HELP)) {
        kith_cli_help(command);
        return KITH_EXIT_OK;
    }
    return command->run(&arguments);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help();
        return KITH_EXIT_USAGE;
    }
    const char *word = argv[1];
    const bool help = strcmp(word, "help") == 0;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
        (help && argc == 2)) {
        print_help();
        return KITH_EXIT_OK;
    }
    if (strcmp(word, "--version") == 0) {
        print_version();
        return KITH_EXIT_OK;
    }
    if (help)
        word = argv[2];
    const struct cli_command *command = find_command(word);
    if (command == NULL)
        return unknown_command(word);
    if (help) {
        kith_cli_help(command);
        return KITH_EXIT_OK;
    }
    return run_command(command, argc - 2, argv + 2);
}

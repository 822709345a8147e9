/* Goal: latency by place (network.matrix, coordinates) is what arrives, between
 * each two regions and each way, for peers and for a central method; the file
 * may be JSON or CSV, and one that is wrong is refused with its line. Nothing
 * depends on queue, threads or wire.
 * Method: arrivals by hand in a trace, quantiles by their closed forms, files
 * in a scratch folder; those of the test data where they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiment_base.h"
#include "tests/support/traced.h"

static char folder[64], low[96], high[96];

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Half of these, in ms: each way its own. Rows in another order. */
static const char three[] = "\xef\xbb\xbf# from, to\r\nms, a,b ,c\r\n\r\n"
                            "c,60,70,3\r\na,1,20,30\r\nb,40,2,50";
static const double ways[3][3] = {{0.5, 10, 15}, {20, 1, 25}, {30, 35, 1.5}};

static kith_ns way(unsigned from, unsigned to)
{
    return (kith_ns)(ways[from % 3][to % 3] * (double)KITH_MS);
}

static const char *with_matrix(const char *format)
{
    static char yaml[1024];
    write_file(low, three);
    (void)snprintf(yaml, sizeof yaml, format, low);
    return yaml;
}

/* ---- by hand */

/* Six peers in three regions, two in each: what leaves at 2 s. */
static void test_arrivals(void **state)
{
    (void)state;
    static const char *const runs[] = {"", ", sharing: fair, rate: 1000Tbit",
                                       ", wire: full", ", loss: 1.0e-12"};
    for (size_t i = 0; i < COUNT(runs); i++) {
        char yaml[1024];
        (void)snprintf(yaml, sizeof yaml,
                       "name: six\nseed: 1\npeers: 6\nstop: {steps: 3}\n"
                       "model: {kind: consensus, dim: 10}\n"
                       "compute: {step: 1s}\n"
                       "gossip: {algorithm: dpsgd, topology: complete}\n"
                       "network: {matrix: %%s%s}\n",
                       runs[i]);
        const kith_ns slack = i == 1 ? KITH_US : 0; /* bytes take some */
        traced(with_matrix(yaml));
        for (unsigned from = 0; from < 6; from++)
            for (unsigned to = 0; to < 6; to++) {
                char words[64];
                if (from == to)
                    continue;
                (void)snprintf(words, sizeof words, " %u  < model from %u ", to,
                               from);
                const kith_ns late_ns =
                    when_from(2 * KITH_S, words) - 2 * KITH_S - way(from, to);
                if (late_ns < 0 || late_ns > slack)
                    fail_msg("run %zu: %u to %u: %lld ns late", i, from, to,
                             (long long)late_ns);
            }
    }
}

/* The server is machine 3: of the first region. */
static void test_central(void **state)
{
    (void)state;
    traced(with_matrix(
        "name: central\nseed: 1\npeers: 3\nstop: {steps: 1}\n"
        "model: {kind: none}\ncompute: {step: 1s}\n"
        "central: {trigger: async, payload: 1000}\nnetwork: {matrix: %s}\n"));
    for (unsigned i = 0; i < 3; i++) {
        char words[64];
        (void)snprintf(words, sizeof words, " 3  < %u value", i);
        const kith_ns there_ns = KITH_S + way(i, 3);
        assert_int_equal(when(words), there_ns);
        (void)snprintf(words, sizeof words, " %u  < 3 value", i);
        /* The last gradient ends the run. */
        if (i < 2)
            assert_int_equal(when(words), there_ns + way(3, i));
    }
    /* A ring in stages, of one step: in each of them the slowest counts. */
    const struct simulated ring = traced(
        with_matrix("name: central\nseed: 1\npeers: 3\nstop: {steps: 1}\n"
                    "model: {kind: none}\ncompute: {step: 1s}\n"
                    "central: {trigger: sync, exchange: ring, payload: 1000}\n"
                    "network: {matrix: %s}\n"));
    assert_true(ring.summary.virtual_s > 1.03 && ring.summary.virtual_s < 1.2);
}

/* ---- quantiles */

static void test_quantiles(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    char set[256];
    write_file(low, "x,a,b\na,2,40\nb,40,4\n");
    /* Another order; of a to a more than the law can have. */
    write_file(high, "{\"data\": {\"b\": {\"a\": 60, \"b\": 4},\n"
                     "\"a\": {\"a\": 90, \"b\": 50.5}}}");
    (void)snprintf(set, sizeof set, "network={matrix: %s, matrix_p90: %s}", low,
                   high);
    must_parse(set, &experiment);
    const struct kith_latencies *all = &experiment.network.latencies;
    const double want[2][2][2] = {{{1, 45}, {20, 25.25}}, {{20, 30}, {2, 2}}};
    assert_int_equal(all->regions, 2);
    for (unsigned i = 0; i < 2; i++)
        for (unsigned j = 0; j < 2; j++) {
            struct kith_link_terms terms = {.loss = 0.5, .latency_ns = 7};
            kith_latencies_apply(all, i, 2 + j, &terms);
            const double l = (double)terms.latency_ns / KITH_MS;
            const double mean = (double)terms.jitter_ns / KITH_MS;
            assert_true(fabs(l + mean * log(2) - want[i][j][0]) < 1e-5);
            if (i + j > 0)
                assert_true(fabs(l + mean * log(10) - want[i][j][1]) < 1e-5);
            else
                assert_int_equal(terms.latency_ns, 0);
            assert_true(terms.loss == 0.5);
        }
    assert_int_equal(all->latency_least, 0);
    assert_int_equal(all->latency_most, 17738948);
    kith_experiment_close(&experiment);
}

static void test_coordinates(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    char set[256];
    write_file(low, "# hosts\n0 0.0 0.0 h 1\n1 30 -40 h 2.5\n 2 0 8 h 0\n");
    (void)snprintf(set, sizeof set, "network={coordinates: %s}", low);
    must_parse(set, &experiment);
    static const double trips[3][3] = {
        {2, 53.5, 9}, {53.5, 5, 59.10389}, {9, 59.10389, 0}};
    for (unsigned i = 0; i < 9; i++) {
        struct kith_link_terms terms = {.jitter_ns = 5};
        kith_latencies_apply(&experiment.network.latencies, i / 3, i % 3,
                             &terms);
        assert_true(fabs((double)terms.latency_ns / KITH_MS -
                         trips[i / 3][i % 3] / 2) < 1e-4);
        assert_int_equal(terms.jitter_ns, 0);
    }
    kith_experiment_close(&experiment);
}

static double mean_of(uint32_t peers)
{
    struct kith_experiment experiment;
    char set[256];
    (void)snprintf(set, sizeof set, "network={matrix: %s}", low);
    must_parse(set, &experiment);
    double sum = 0;
    for (unsigned i = 0; i < peers; i++)
        for (unsigned j = 0; j < peers; j++)
            sum += i == j ? 0 : (double)way(i, j);
    const double mean = kith_latencies_mean(&experiment.network.latencies,
                                            peers, &experiment.network.link);
    kith_experiment_close(&experiment);
    return mean / (1e-9 * sum / (peers * (peers - 1)));
}

/* What closed forms are told: the mean over pairs of peers. */
static void test_mean(void **state)
{
    (void)state;
    write_file(low, three);
    for (uint32_t peers = 2; peers < 12; peers++)
        assert_true(fabs(mean_of(peers) - 1) < 1e-12);
}

/* ---- the same run */

static void test_same_hash(void **state)
{
    (void)state;
    static const char *const sharings[] = {"queue", "fair"};
    for (unsigned fair = 0; fair < 2; fair++) {
        char yaml[1024];
        uint64_t hash = 0;
        (void)snprintf(
            yaml, sizeof yaml,
            "name: same\nseed: 5\npeers: 12\nstop: {steps: 20}\n"
            "model: {kind: consensus, dim: 500}\ncompute: {step: 20ms}\n"
            "gossip: {algorithm: adpsgd, topology: random}\n"
            "network: {rate: 1Mbit, sharing: %s, matrix: %%s}\n"
            "faults:\n - {at: 100ms, partition: \"peer(0..5) <-> "
            "peer(6..11)\", for: 100ms}\n",
            sharings[fair]);
        for (unsigned i = 0; i < 8; i++) {
            const struct sim_options options = {
                .threads = 1 + i % 2,
                .queue = i & 2 ? SIM_QUEUE_HEAP : SIM_QUEUE_CALENDAR,
                .wire = i & 4 ? KITH_WIRE_FULL : KITH_WIRE_SIZED};
            const struct simulated run = simulate(with_matrix(yaml), &options);
            if (i == 0)
                hash = run.summary.trace_hash;
            assert_true(run.summary.trace_hash == hash);
        }
    }
}

/* The times themselves are in the experiment's hash, and where their file lies
 * is not. */
static uint64_t hash_with(const char *path, const char *text)
{
    struct kith_experiment experiment;
    char set[256];
    write_file(path, text);
    (void)snprintf(set, sizeof set, "network={matrix: %s}", path);
    must_parse(set, &experiment);
    assert_non_null(strstr(experiment.source, path));
    const uint64_t hash = kith_experiment_hash(&experiment);
    kith_experiment_close(&experiment);
    return hash;
}

static void test_experiment_hash(void **state)
{
    (void)state;
    const uint64_t hash = hash_with(low, three);
    assert_true(hash == hash_with(high,
                                  "{\"data\": {\"x\": {\"x\": 1, \"y\": 20, "
                                  "\"z\": 30}, \"y\": {\"x\": 40, \"y\": 2, "
                                  "\"z\": 50}, \"z\": {\"x\": 60, \"y\": 70, "
                                  "\"z\": 3}}}"));
    assert_true(hash !=
                hash_with(low, "to,a,b,c\na,1,20,30\nb,40,2,50\nc,60,70,3.1"));
}

/* ---- refusals */

static void refused(const char *set, const char *words)
{
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    if (parse(base, set, &experiment, error) == KITH_OK)
        fail_msg("not refused: %s", set);
    if (strstr(error, words) == NULL)
        fail_msg("%s: no \"%s\" in: %s", set, words, error);
}

static void test_wrong_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"", "found nothing"},
        {"\n\n# nothing\n", "found nothing"},
        {"a\n", "found 0 regions"},
        {"x,a,b\na,1,2\n", "no round trip from b to a"},
        {"x,a,b\na,1,2\nb,3\n", ":3: found 1 round trips from b; allowed: 2"},
        {"x,a,b\na,1,2,3\nb,3,4\n", ":2: found more than 2 round trips"},
        {"x,a,b\na,1,2\nb,3,-4\n", ":3: found \"-4\" from b to b"},
        {"x,a,b\na,1,nan\nb,3,4\n", ":2: found \"nan\" from a to b"},
        {"x,a,b\na,1,inf\nb,3,4\n", "found \"inf\""},
        {"x,a,b\na,1,\nb,3,4\n", "found \"\" from a to b"},
        {"x,a,b\na,1,10000.1\nb,3,4\n", "from 0 to 10000"},
        {"x,a,b\na,1,2ms\nb,3,4\n", "found \"2ms\""},
        {"x,a,a\na,1,2\n", ":1: found the region a twice"},
        {"x,a,\na,1,2\n", "found region 1 named nothing"},
        {"x,\"a\"\n\"a\",1\n", "without quotes"},
        {"x,a,b\na,1,2\na,1,2\n", ":3: found a second row of a"},
        {"x,a,b\na,1,2\nc,1,2\n", ":3: found a row of c"},
        {"{\"dta\": {}}", "found no mapping \"data\""},
        {"{\"data\": {}}", "found 0 regions"},
        {"{\"data\": {\"a\": 3}}", "found no mapping of a"},
        {"{\"data\": {\"a\": {\"b\": 3}}}", ":1: found b in a"},
        {"{\"data\": {\"a\": {\"a\": 3},\n\"b\": {\"b\": 3}}}",
         "no round trip from a to b"},
        {"{\"data\": {\"a\": {\"a\": [3]}}}", "found no number from a to a"},
        {"{\"data\": {\"a\": {\"a\": 3}", "network.matrix: "},
    };
    char set[256];
    (void)snprintf(set, sizeof set, "network={matrix: %s}", low);
    for (size_t i = 0; i < COUNT(bad); i++) {
        write_file(low, bad[i].text);
        refused(set, bad[i].words);
    }
    /* A billion pairs: known by the first line. */
    FILE *file = fopen(low, "w");
    assert_non_null(file);
    for (unsigned i = 0; i < 31623; i++)
        assert_true(fprintf(file, ",r%u", i) > 0);
    assert_int_equal(fclose(file), 0);
    refused(set, "31623 regions; allowed: 1 to 4096");
    assert_int_equal(truncate(low, 1024), 0);
    assert_int_equal(truncate(low, 2048), 0);
    refused(set, "found a byte 0");
    assert_int_equal(truncate(low, KITH_LATENCIES_BYTES_MAX + 1), 0);
    refused(set, "allowed: at most 134217728");
    assert_int_equal(unlink(low), 0);
    refused(set, "cannot be opened: No such file");
    refused("network={matrix: /}", "network.matrix: /: cannot be opened");
}

static void test_wrong_hosts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"# none\n", "found no host"},
        {"0 1 2 h 3\n2 1 2 h 3\n", ":2: found \"2 1 2 h 3\"; allowed: \"1 X"},
        {"0 1 2 h -3\n", ":1: found"},
        {"0 1 2 3\n", ":1: found"},
        {"0 1 2 h 3 4\n", ":1: found"},
        {"0 1 nan h 3\n", ":1: found"},
        {"0 0 0 h 0\n1 9000 9000 h 0\n", "from host 0 to 1; allowed: up to"},
    };
    char set[256];
    (void)snprintf(set, sizeof set, "network={coordinates: %s}", low);
    for (size_t i = 0; i < COUNT(bad); i++) {
        write_file(low, bad[i].text);
        refused(set, bad[i].words);
    }
}

static void test_wrong_keys(void **state)
{
    (void)state;
    char set[384];
    write_file(low, "x,a,b\na,1,2\nb,3,4\n");
    write_file(high, "x,a,b\na,1,2\nb,2.5,4\n");
    (void)snprintf(set, sizeof set, "network.matrix=%s", low);
    refused(set, "network.latency: found beside network.matrix");
    (void)snprintf(set, sizeof set, "network={matrix: %s, jitter: 1ms}", low);
    refused(set, "network.jitter: found beside network.matrix");
    (void)snprintf(set, sizeof set, "network={matrix: %s, coordinates: %s}",
                   low, low);
    refused(set, "network.coordinates: found beside network.matrix");
    (void)snprintf(set, sizeof set, "network={coordinates: %s, latency: 1ms}",
                   low);
    refused(set, "network.latency: found beside network.coordinates");
    (void)snprintf(set, sizeof set, "network={matrix_p90: %s}", low);
    refused(set, "network.matrix_p90: found without network.matrix");
    (void)snprintf(set, sizeof set, "network={matirx: %s}", low);
    refused(set, "did you mean \"matrix\"?");
    (void)snprintf(set, sizeof set, "network={matrix: %s, matrix_p90: %s}", low,
                   high);
    refused(set, "found 2.5 ms from b to a, and a median of 3 ms");
    write_file(high, "x,a,c\na,1,2\nc,3,4\n");
    refused(set, "found no region b, which network.matrix has");
    write_file(high, "x,a\na,1\n");
    refused(set, "found 1 regions; allowed: the 2 of network.matrix");
}

/* ---- the test data */

static void test_data(void **state)
{
    (void)state;
    const char *data = getenv("KITH_TESTDATA"), *top = getenv("srcdir");
    char root[512], set[2048];
    (void)snprintf(root, sizeof root, "%s/../shared/data",
                   top && *top ? top : ".");
    (void)snprintf(set, sizeof set, "%s/traces/aws-p50.json",
                   data && *data ? data : root);
    if (data && *data && access(set, R_OK) == 0)
        (void)snprintf(root, sizeof root, "%s", data);
    (void)snprintf(set, sizeof set, "%s/traces/aws-p50.json", root);
    if (access(set, R_OK) != 0) {
        printf("SKIP: no traces/ under $KITH_TESTDATA, nor %s\n", root);
        skip();
    }
    struct kith_experiment experiment;
    (void)snprintf(set, sizeof set,
                   "network={matrix: %s/traces/aws-p50.json, "
                   "matrix_p90: %s/traces/aws-p90.json}",
                   root, root);
    must_parse(set, &experiment);
    const struct kith_latencies *all = &experiment.network.latencies;
    assert_int_equal(all->regions, 33);
    struct kith_link_terms terms = {.latency_ns = 0};
    /* ca-central-1 to ap-southeast-2: a median of 198.256 ms there and back. */
    kith_latencies_apply(all, 33, 1, &terms);
    assert_true(fabs((double)terms.latency_ns +
                     log(2) * (double)terms.jitter_ns - 99.128e6) < 2);
    kith_experiment_close(&experiment);
    (void)snprintf(set, sizeof set,
                   "network={coordinates: %s/traces/king.syscoord}", root);
    must_parse(set, &experiment);
    assert_int_equal(experiment.network.latencies.regions, 1740);
    kith_experiment_close(&experiment);
}

static int open_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/kith-latencies-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(low, sizeof low, "%s/low", folder);
    (void)snprintf(high, sizeof high, "%s/high", folder);
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    (void)unlink(low);
    (void)unlink(high);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrivals),
        cmocka_unit_test(test_central),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_coordinates),
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_same_hash),
        cmocka_unit_test(test_experiment_hash),
        cmocka_unit_test(test_wrong_files),
        cmocka_unit_test(test_wrong_hosts),
        cmocka_unit_test(test_wrong_keys),
        cmocka_unit_test(test_data),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}

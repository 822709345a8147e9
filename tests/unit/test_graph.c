/* Goal: what an experiment file says of its graph arrives there: options, lists
 * of edges, refusals with their place; the hash covers them, and nothing where
 * a file names none. Method: the base file with --set, lists in a scratch
 * folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kith/node.h"
#include "experiment_base.h"

static char folder[64], path[96];

static const char *write_list(const char *text)
{
    static char set[192];
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    snprintf(set, sizeof set,
             "gossip={algorithm: dpsgd, topology: file, path: %s}", path);
    return set;
}

static void refused(const char *set, const char *words)
{
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    if (parse(base, set, &experiment, error) == KITH_OK)
        fail_msg("not refused: %s", set);
    if (strstr(error, words) == NULL)
        fail_msg("%s: no \"%s\" in: %s", set, words, error);
}

static void test_options(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    struct kith_topology topology;
    struct kith_node_config config;
    must_parse("gossip={algorithm: dpsgd, topology: watts-strogatz, degree: 2, "
               "rewire: 0.25, weights: optimal}",
               &experiment);
    assert_true(experiment.gossip.graph.options.rewire == 0.25);
    assert_int_equal(experiment.gossip.graph.options.weights,
                     KITH_WEIGHTS_OPTIMAL);
    assert_true(experiment.gossip.graph.constant > 0);

    assert_int_equal(
        kith_experiment_node_config(&experiment, 9, &topology, &config),
        KITH_OK);

    assert_ptr_equal(topology.built, experiment.gossip.graph.built);
    assert_int_equal(topology.options.degree, 2);
    assert_int_equal(topology.seed, experiment.seed);
    kith_experiment_close(&experiment);

    must_parse("gossip={topology: matcha, graph: ring, budget: 0.25}",
               &experiment);
    assert_true(experiment.gossip.graph.options.budget == 0.25);
    assert_int_equal(kith_topology_degree(&experiment.gossip.graph, 0), 2);
    kith_experiment_close(&experiment);

    /* Another kind was put in since: it is opened in its place. */
    must_parse("gossip.topology=ring", &experiment);
    experiment.gossip.topology = kith_topology_find("complete");
    assert_int_equal(
        kith_experiment_node_config(&experiment, 9, &topology, &config),
        KITH_OK);
    assert_string_equal(topology.kind->name, "complete");
    kith_experiment_close(&experiment);
}

static enum kith_weights weights_of(const char *gossip)
{
    struct kith_experiment experiment;
    must_parse(gossip, &experiment);
    const enum kith_weights weights = experiment.gossip.graph.options.weights;
    kith_experiment_close(&experiment);
    return weights;
}

/* An algorithm that needs lazy weights has them, unless the file says others.
 */
static void test_lazy(void **state)
{
    (void)state;
    assert_int_equal(weights_of("gossip={algorithm: d2, topology: ring}"),
                     KITH_WEIGHTS_LAZY);
    assert_int_equal(weights_of("gossip={algorithm: d2, topology: ring, "
                                "weights: metropolis}"),
                     KITH_WEIGHTS_METROPOLIS);
    assert_int_equal(weights_of("gossip={algorithm: d2, topology: ring, "
                                "weights: optimal}"),
                     KITH_WEIGHTS_OPTIMAL);
    assert_int_equal(weights_of("gossip={algorithm: dpsgd, topology: ring}"),
                     KITH_WEIGHTS_METROPOLIS);
}

static void test_refusals(void **state)
{
    (void)state;
    refused("gossip={topology: ring, degree: 4}",
            "gossip.degree: topology ring does not have it; take it out");
    refused("gossip={topology: matcha, graph: ring, degree: 4}",
            "gossip.degree: topology matcha does not have it");
    refused("gossip={topology: base, weights: lazy}", "gossip.weights");
    refused("gossip={topology: circulant, degree: 65}", "from 1 to 64");
    refused("gossip={topology: circulant, degree: 8}",
            "gossip.degree: found 8 with 8 peers; allowed: up to 7");
    refused("gossip={topology: regions, regions: 9}", "gossip.regions: found");
    refused("gossip={topology: ring, weights: heavy}",
            "allowed: metropolis, optimal, lazy, uniform");
    refused("gossip={topology: matcha, graph: base}",
            "gossip.graph: found base; allowed: a static undirected one");
    refused("gossip.topology=file", "gossip.path: not given");
    refused("gossip={topology: file, path: /nowhere/edges}",
            "cannot open /nowhere/edges: No such file");
    refused("gossip={topology: file, path: /}", "found /, which is not a file");
}

/* Any order, comments, both ways; absolute in what the database keeps. */
static void test_list(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    kith_id ids[KITH_DEGREE_MAX];
    double weights[KITH_DEGREE_MAX];
    must_parse(write_list("# eight in a row\n7 6\n0 1\r\n1 2 # near\n\n"
                          "3 2\n\t3   4\n4 5\n6 5"),
               &experiment);
    const struct kith_topology *graph = &experiment.gossip.graph;
    assert_int_equal(kith_topology_neighbours(graph, 2, 0, ids, weights), 2);
    assert_true(ids[0] == 1 && ids[1] == 3);
    assert_true(weights[0] == 1 / 3.0);
    assert_int_equal(kith_topology_neighbours(graph, 7, 0, ids, weights), 1);
    assert_non_null(strstr(experiment.source, path));
    kith_experiment_close(&experiment);
    must_parse(write_list("source,target,weight\r\n0,1,0.3\n1;2;0.3\n2,3, 0.3\n"
                          "3,4,.3\n4,5,.3\n5,6,.3\n6,7,.3\n"),
               &experiment);
    assert_int_equal(kith_topology_neighbours(graph, 2, 0, ids, weights), 2);
    assert_true(weights[1] == 0.3);
    kith_experiment_close(&experiment);
}

static void test_bad_lists(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"0 1\n1 8\n",
         ":2: found \"1 8\"; allowed: \"FROM TO [WEIGHT]\", or with commas"},
        {"0 1\n1 1\n", ":2: found \"1 1\""},
        {"0\n", ":1: found \"0\""},
        {"0 1 2 3\n", ":1: found \"0 1 2 3\""},
        {"0 1 -0.5\n", "found \"0 1 -0.5\""},
        {"0 1 1.5\n", "found \"0 1 1.5\""},
        {"0 x\n", "found \"0 x\""},
        {"0 1\n1 0\n", "found the edge 0 1 twice"},
        {"0 1 0.5\n1 2\n", "found weights on some edges alone"},
        {"0 1 0.6\n1 2 0.6\n", "add up to 1.2"},
        {"0 1\n", "no way from peer 0 to peer 2"},
        {"", "no way from peer 0 to peer 1"},
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        refused(write_list(bad[i].text), bad[i].words);
    char *zeros = calloc(1, 64);
    assert_non_null(zeros);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(zeros, 1, 64, file), 64);
    assert_int_equal(fclose(file), 0);
    free(zeros);
    char set[192];
    snprintf(set, sizeof set, "gossip={topology: file, path: %s}", path);
    refused(set, "which is not text");
    assert_int_equal(truncate(path, KITH_GRAPH_BYTES_MAX + 1), 0);
    refused(set, "which is longer");
}

static uint64_t hash_of(const char *set)
{
    struct kith_experiment experiment;
    must_parse(set, &experiment);
    const uint64_t hash = kith_experiment_hash(&experiment);
    kith_experiment_close(&experiment);
    return hash;
}

static void test_hash(void **state)
{
    (void)state;
    /* Defaults written out are the same experiment. */
    assert_true(hash_of("gossip={topology: ring}") ==
                hash_of("gossip={topology: ring, weights: metropolis}"));
    assert_true(hash_of("gossip={topology: circulant}") ==
                hash_of("gossip={topology: circulant, degree: 4}"));
    static const char *const others[] = {
        "gossip={topology: ring}",
        "gossip={topology: ring, weights: optimal}",
        "gossip={topology: circulant}",
        "gossip={topology: circulant, degree: 2}",
        "gossip={topology: watts-strogatz, rewire: 0.1}",
        "gossip={topology: watts-strogatz, rewire: 0.2}",
        "gossip={topology: erdos-renyi, probability: 0.7}",
        "gossip={topology: erdos-renyi, probability: 0.8}",
        "gossip={topology: regions, regions: 2}",
        "gossip={topology: regions, regions: 2, leaders: true}",
        "gossip={topology: matcha}",
        "gossip={topology: matcha, graph: ring}",
        "gossip={topology: matcha, graph: ring, budget: 0.3}",
    };
    for (size_t i = 0; i < COUNT(others); i++)
        for (size_t j = 0; j < i; j++)
            assert_true(hash_of(others[i]) != hash_of(others[j]));
    const char *const chain = "0 1\n1 2\n2 3\n3 4\n4 5\n5 6\n6 7\n";
    const uint64_t first = hash_of(write_list(chain));
    assert_true(first == hash_of(write_list("7 6\n5 6\n5 4\n4 3\n3 2\n"
                                            "2 1\n1 0\n")));
    assert_true(first != hash_of(write_list("0 1\n1 2\n2 3\n3 4\n4 5\n5 6\n"
                                            "0 7\n")));
}

static int open_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/kith-graph-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/edges", folder);
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),   cmocka_unit_test(test_lazy),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_list),
        cmocka_unit_test(test_bad_lists), cmocka_unit_test(test_hash),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}

/* Goal: churn becomes the crashes and restarts that its words say: a trace's,
 * by hand, for more and for fewer peers than it has places; drawn sessions with
 * the means and the shape that were asked for; the same for a seed, whatever
 * else stands in the file. What is wrong is refused with its line.
 * Method: the atoms of parsed files, a trace in a scratch folder. */
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

#include "kith/experiment.h"
#include "kith/fault.h"
#include "tests/support/simulate.h"

static char trace[64];

static void write_trace(const char *text)
{
    FILE *file = fopen(trace, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static const char *yaml_of(unsigned peers, const char *words)
{
    static char yaml[2048];
    (void)snprintf(yaml, sizeof yaml,
                   "name: churn\nseed: 4\npeers: %u\nstop: {time: 100s}\n"
                   "model: {kind: consensus, dim: 10}\ncompute: {step: 500ms}\n"
                   "gossip: {algorithm: adpsgd, topology: random}\n"
                   "faults:\n%s",
                   peers, words);
    return yaml;
}

static enum kith_err parse(unsigned peers, const char *words,
                           struct kith_experiment *experiment, char *error)
{
    const char *yaml = yaml_of(peers, words);
    return kith_experiment_parse("churn.yaml", yaml, strlen(yaml), NULL, 0,
                                 experiment, error);
}

static void must_parse(unsigned peers, const char *words,
                       struct kith_experiment *experiment)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    if (parse(peers, words, experiment, error) != KITH_OK)
        fail_msg("%s", error);
}

/* "C0@3 R0@5": crashes and restarts of a peer in seconds, in order. */
static void assert_atoms(unsigned peers, const char *words,
                         const char *expected)
{
    struct kith_experiment experiment;
    char text[1024] = "";
    size_t at = 0;
    must_parse(peers, words, &experiment);
    for (uint32_t i = 0; i < experiment.atom_count; i++) {
        const struct kith_atom *atom = &experiment.atoms[i];
        assert_ptr_equal(atom->fault, kith_fault_find("crash"));
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%c%u@%g",
                               i > 0 ? " " : "", atom->begins ? 'C' : 'R',
                               atom->peer, (double)atom->at_ns / KITH_S);
    }
    assert_string_equal(text, expected);
    kith_experiment_close(&experiment);
}

static const char *replay(const char *rest)
{
    static char words[256];
    (void)snprintf(words, sizeof words, " - {churn: %s, trace: %s}\n", rest,
                   trace);
    return words;
}

/* a and b from the start, c later in a place of its own, d in b's, which is the
 * lowest free one; c's is empty at the end. */
static const char four[] = "0,add,a\r\n0,add,b\r\n2000,add,c\n3000,remove,b\n"
                           "3500,add,d\n\n4000,remove,c";

static void test_trace(void **state)
{
    (void)state;
    write_trace(four);
    assert_atoms(3, replay("all, at: 0s"), "C2@0 R2@2 C1@3 R1@3.5 C2@4");
    /* Six peers in three places, the c-th chosen in c mod 3. */
    assert_atoms(6, replay("\"peer(1..5)\", at: 1s, speed: 2"),
                 "C3@1 R3@2 C2@2.5 C5@2.5 R2@2.75 R5@2.75 C3@3");
    /* Two peers: the third place is nobody's. */
    assert_atoms(2, replay("all, at: 0s"), "C1@3 R1@3.5");
    /* What begins later is left out, a return is not. */
    assert_atoms(3, replay("all, at: 0s, for: 3200ms"),
                 "C2@0 R2@2 C1@3 R1@3.5");
    /* Overlaps are one absence. */
    char both[512];
    (void)snprintf(both, sizeof both,
                   "%s - {at: 3200ms, crash: \"peer(1)\", restart: 1s}\n",
                   replay("all, at: 0s"));
    assert_atoms(3, both, "C2@0 R2@2 C1@3 C2@4 R1@4.2");
}

#define PEERS 2000
#define SESSIONS 10 /* a quarter of the time: hardly any is cut off */

/* Means over the first sessions of each peer and the absences behind them, and
 * the share of sessions that are shorter than a tenth of their mean. */
static void check_law(const char *shape, double k)
{
    struct kith_experiment experiment;
    char words[256];
    double sums[2] = {0, 0};
    uint32_t counts[2] = {0, 0}, shorter = 0;
    static kith_ns since_ns[PEERS];
    static uint32_t seen[PEERS];
    (void)snprintf(words, sizeof words,
                   " - {at: 0s, for: 99s, churn: all, up: 2s, down: 500ms%s}\n",
                   shape);
    must_parse(PEERS, words, &experiment);
    memset(since_ns, 0, sizeof since_ns);
    memset(seen, 0, sizeof seen);
    for (uint32_t i = 0; i < experiment.atom_count; i++) {
        const struct kith_atom *atom = &experiment.atoms[i];
        const double span =
            (double)(atom->at_ns - since_ns[atom->peer]) / KITH_S;
        assert_true(span > 0);
        since_ns[atom->peer] = atom->at_ns;
        if (seen[atom->peer]++ >= 2 * SESSIONS)
            continue;
        sums[!atom->begins] += span;
        counts[!atom->begins]++;
        shorter += atom->begins && span < 0.2;
    }
    assert_true(counts[0] > 0.99 * PEERS * SESSIONS);
    assert_true(fabs(sums[0] / counts[0] / 2 - 1) < 0.05);
    assert_true(fabs(sums[1] / counts[1] / 0.5 - 1) < 0.05);
    const double share = 1 - exp(-pow(0.1 * tgamma(1 + 1 / k), k));
    assert_true(fabs((double)shorter / counts[0] / share - 1) < 0.15);
    kith_experiment_close(&experiment);
}

static void test_drawn(void **state)
{
    (void)state;
    check_law("", 1);
    check_law(", shape: 0.6", 0.6);
    check_law(", shape: 2", 2);
}

/* A peer's times are its own: neither others nor other statements shift them.
 */
static void test_own_stream(void **state)
{
    (void)state;
    static const char drawn[] =
        " - {at: 1s, for: 50s, churn: \"peer(1..2)\", up: 9s, down: 2s}\n";
    char words[512];
    struct kith_experiment few, more;
    (void)snprintf(words, sizeof words, " - {at: 2s, pause: \"peer(0)\"}\n%s",
                   drawn);
    must_parse(3, drawn, &few);
    must_parse(9, words, &more);
    assert_true(few.atom_count > 4);
    assert_int_equal(more.atom_count, few.atom_count + 1);
    for (uint32_t i = 0, k = 0; i < few.atom_count; i++, k++) {
        k += more.atoms[k].peer == 0;
        assert_int_equal(few.atoms[i].at_ns, more.atoms[k].at_ns);
        assert_int_equal(few.atoms[i].peer, more.atoms[k].peer);
    }
    kith_experiment_close(&few);
    kith_experiment_close(&more);
}

/* Everybody but one comes and goes; the same on threads and both queues. */
static void test_run(void **state)
{
    (void)state;
    write_trace(four);
    char words[512];
    (void)snprintf(words, sizeof words,
                   "%s - {at: 10s, for: 80s, churn: \"all - peer(0)\", up: 9s, "
                   "down: 2s, shape: 0.6}\n"
                   "assert: [\"always conserved\"]\n",
                   replay("\"all - peer(0)\", at: 1s"));
    uint64_t hash = 0;
    for (unsigned i = 0; i < 4; i++) {
        const struct sim_options options = {
            .threads = 1 + i % 2,
            .queue = i & 2 ? SIM_QUEUE_HEAP : SIM_QUEUE_CALENDAR};
        const struct simulated run = simulate(yaml_of(12, words), &options);
        if (i == 0)
            hash = run.summary.trace_hash;
        assert_true(run.summary.trace_hash == hash);
        assert_true(run.summary.virtual_s >= 100);
    }
}

/* ---- refusals */

static void refused(const char *words, const char *why)
{
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    if (parse(3, words, &experiment, error) == KITH_OK)
        fail_msg("not refused: %s", words);
    if (strstr(error, why) == NULL)
        fail_msg("%s: no \"%s\" in: %s", words, why, error);
}

static void test_wrong_words(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"all", "no sessions; allowed: up, down and for"},
        {"all, up: 1s, speed: 2", "both drawn and replayed"},
        {"all, speed: 2", "trace: not given"},
        {"all, up: 1s, for: 3s", "down: not given"},
        {"all, down: 1s, for: 3s", "up: not given"},
        {"all, up: 1s, down: 1s", "for: not given"},
        {"all, up: 1, down: 1s", "up: found \"1\"; allowed: a mean time"},
        {"all, up: 1s, down: 0s", "down: found \"0s\""},
        {"all, up: 1s, down: 1s, shape: 0.05", "shape: found \"0.05\""},
        {"all, up: 1s, down: 1s, shape: nan", "shape: found \"nan\""},
        {"all, trace: [a]", "trace: found a list"},
        {"all, trace: /nowhere/x", "/nowhere/x cannot be opened: No such"},
        {"all, trace: /, speed: 0", "speed: found \"0\""},
        {"all, restart: 3s", "does not take \"restart\""},
        {"\"peer(9)\", up: 1s, down: 1s, for: 3s", "churn: "},
        {"all, for: 90s, up: 1us, down: 1us", "more than 1048576 timed events"},
        {"all, for: 900s, up: 1s, down: 1s", "allowed: up to the predicted"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char words[256];
        (void)snprintf(words, sizeof words, " - {at: 0s, churn: %s}\n",
                       bad[i][0]);
        refused(words, bad[i][1]);
    }
    refused(" - {at: 0s, crash: all, up: 1s}\n", "does not take \"up\"");
    refused(" - {at: 0s, chrun: all}\n", "did you mean \"churn\"?");
}

static void test_wrong_traces(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"", "found nothing"},
        {"0,add\n", ":1: found \"0,add\"; allowed: \"MS,add,NODE\""},
        {"0,add,a,b\n", ":1: found"},
        {"0,put,a\n", ":1: found \"0,put,a\""},
        {"0,add,a\n-1,remove,a\n", ":2: found \"-1,remove,a\""},
        {"0,add,a\n1e3,remove,a\n", ":2: found"},
        {"0,add,a\n9999999999999,remove,a\n", ":2: found"},
        {"0,add,a\n5,add,a\n", ":2: found \"5,add,a\" of a node that is there"},
        {"0,add,a\n5,remove,b\n", "of a node that is not there"},
        {"9,add,a\n5,remove,a\n", ":2: found \"5,remove,a\" earlier than"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_trace(bad[i][0]);
        refused(replay("all, at: 0s"), bad[i][1]);
    }
    FILE *file = fopen(trace, "w");
    assert_non_null(file);
    for (unsigned i = 0; i < 4097; i++)
        assert_true(fprintf(file, "0,add,n%u\n", i) > 0);
    assert_int_equal(fclose(file), 0);
    refused(replay("all, at: 0s"), ":4097: found more nodes at a time");
    assert_int_equal(truncate(trace, (1 << 20) + 1), 0);
    refused(replay("all, at: 0s"), "allowed: at most 1048576");
    assert_int_equal(truncate(trace, 0), 0);
    assert_int_equal(truncate(trace, 9), 0);
    refused(replay("all, at: 0s"), "is not text");
}

static int open_trace(void **state)
{
    (void)state;
    (void)snprintf(trace, sizeof trace, "/tmp/kith-churn-XXXXXX");
    const int fd = mkstemp(trace);
    return fd < 0 ? -1 : close(fd);
}

static int close_trace(void **state)
{
    (void)state;
    return unlink(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace),       cmocka_unit_test(test_drawn),
        cmocka_unit_test(test_own_stream),  cmocka_unit_test(test_run),
        cmocka_unit_test(test_wrong_words), cmocka_unit_test(test_wrong_traces),
    };
    return cmocka_run_group_tests(tests, open_trace, close_trace);
}

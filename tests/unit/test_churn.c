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

/* Of `peers`, those from `first` in steps of `stride` that are up at a time. */
static double share_up(const struct kith_experiment *experiment, uint32_t peers,
                       uint32_t first, uint32_t stride, kith_ns at_ns)
{
    static uint8_t down[PEERS];
    uint32_t up = 0, count = 0;
    memset(down, 0, sizeof down);
    for (uint32_t i = 0; i < experiment->atom_count; i++)
        if (experiment->atoms[i].at_ns <= at_ns)
            down[experiment->atoms[i].peer] = experiment->atoms[i].begins;
    for (uint32_t i = first; i < peers; i += stride, count++)
        up += !down[i];
    return (double)up / count;
}

/* With short sessions of one mean (1 + s) / 2 are up, s the day's sine; with
 * others up (1 + s) / (up (1 + s) + down (1 - s)). Four standard errors and
 * what a session of a 40th of a day lags behind. */
static void test_diurnal(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        double up, swing, phase;
    } cases[] = {
        {"up: 1s, down: 1s", 1, 1, 0},
        {"up: 1s, down: 1s, shape: 0.7", 1, 1, 0},
        {"up: 2s, down: 1s, swing: 0.5", 2, 0.5, 0},
        {"up: 1s, down: 1s, phase: 20s, swing: 0.8", 1, 0.8, 0.25},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct kith_experiment experiment;
        char words[256];
        (void)snprintf(words, sizeof words,
                       " - {at: 0s, for: 99s, churn: all, diurnal: 80s, %s}\n",
                       cases[k].words);
        must_parse(PEERS, words, &experiment);
        for (unsigned at = 0; at < 99; at += 10) {
            const double s = cases[k].swing * sin(6.283185307179586 *
                                                  (at / 80.0 - cases[k].phase));
            const double wanted =
                cases[k].up * (1 + s) / (cases[k].up * (1 + s) + 1 - s);
            const double found =
                share_up(&experiment, PEERS, 0, 1, (kith_ns)at * KITH_S);
            const double error = sqrt(wanted * (1 - wanted) / PEERS);
            if (fabs(found - wanted) > 4 * error + 0.06)
                fail_msg("%s: at %u s %g are up, not %g", cases[k].words, at,
                         found, wanted);
        }
        kith_experiment_close(&experiment);
    }
}

/* Each zone's day begins so much later: of four, zone 1 is at its peak half a
 * day after zone 3. */
static void test_phases(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES], yaml[2560];
    (void)snprintf(yaml, sizeof yaml, "%snetwork: {zones: 4}\n",
                   yaml_of(PEERS, " - {at: 0s, for: 99s, churn: all, diurnal: "
                                  "80s, up: 1s, down: 1s, phase: zones}\n"));
    if (kith_experiment_parse("churn.yaml", yaml, strlen(yaml), NULL, 0,
                              &experiment, error) != KITH_OK)
        fail_msg("%s", error);
    for (unsigned zone = 0; zone < 4; zone++)
        for (unsigned at = 10; at < 90; at += 20) {
            const double s = sin(6.283185307179586 * (at / 80.0 - zone / 4.0));
            const double found =
                share_up(&experiment, (zone + 1) * PEERS / 4, zone * PEERS / 4,
                         1, (kith_ns)at * KITH_S);
            assert_true(fabs(found - (1 + s) / 2) < 0.15);
        }
    kith_experiment_close(&experiment);
}

/* A storm: absent from the beginning until their own time. */
static void test_join(void **state)
{
    (void)state;
    assert_atoms(3, " - {at: 3s, join: \"peer(1)\"}\n", "C1@0 R1@3");
    assert_atoms(3, " - {at: 0s, join: all}\n", "");
    assert_atoms(3,
                 " - {at: 3s, join: \"peer(1)\"}\n"
                 " - {at: 2s, crash: \"peer(1)\", restart: 2s}\n",
                 "C1@0 R1@4");
    struct kith_experiment experiment;
    must_parse(PEERS, " - {at: \"uniform(10s, 11s)\", join: 30%}\n",
               &experiment);
    assert_int_equal(experiment.atom_count, 2 * 3 * PEERS / 10);
    double sum = 0;
    for (uint32_t i = 0; i < experiment.atom_count; i++) {
        const struct kith_atom *atom = &experiment.atoms[i];
        if (atom->begins)
            assert_int_equal(atom->at_ns, 0);
        else
            assert_in_range(atom->at_ns, 10 * KITH_S, 11 * KITH_S);
        sum += atom->begins ? 0 : (double)atom->at_ns / KITH_S;
    }
    /* The mean of 600: .29 / sqrt(600) is its error. */
    assert_true(fabs(sum / (3.0 * PEERS / 10) - 10.5) < 0.05);
    kith_experiment_close(&experiment);
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

/* Without `for` up to stop.time, where there is one. */
static void test_to_the_end(void **state)
{
    (void)state;
    static const char drawn[] = " - {at: 3s, churn: all, up: 2s, down: 2s}\n";
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "", yaml[1024];
    must_parse(5, drawn, &experiment);
    kith_ns last_ns = 0;
    for (uint32_t i = 0; i < experiment.atom_count; i++)
        if (experiment.atoms[i].begins)
            last_ns = experiment.atoms[i].at_ns;
    assert_true(last_ns > 90 * KITH_S && last_ns < 100 * KITH_S);
    kith_experiment_close(&experiment);
    (void)snprintf(yaml, sizeof yaml, "%s", yaml_of(5, drawn));
    memcpy(strstr(yaml, "time: 100s"), "steps: 200", strlen("steps: 200"));
    assert_int_equal(kith_experiment_parse("churn.yaml", yaml, strlen(yaml),
                                           NULL, 0, &experiment, error),
                     KITH_EINVAL);
    assert_non_null(strstr(error, "for: not given; allowed: how long"));
}

/* Everybody but one comes and goes; the same on threads and both queues. */
static void test_run(void **state)
{
    (void)state;
    write_trace(four);
    char words[512];
    (void)snprintf(words, sizeof words,
                   "%s - {at: 10s, for: 80s, churn: \"all - peer(0)\", up: 9s, "
                   "down: 2s, shape: 0.6, diurnal: 30s, swing: 0.5}\n"
                   " - {at: \"uniform(5s, 6s)\", join: \"peer(9..11)\"}\n"
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
        {"all, up: 1, down: 1s", "up: found \"1\"; allowed: a mean time"},
        {"all, up: 1s, down: 0s", "down: found \"0s\""},
        {"all, up: 1s, down: 1s, shape: 0.05", "shape: found \"0.05\""},
        {"all, up: 1s, down: 1s, shape: nan", "shape: found \"nan\""},
        {"all, trace: [a]", "trace: found a list"},
        {"all, trace: /nowhere/x", "/nowhere/x cannot be opened: No such"},
        {"all, trace: /, speed: 0", "speed: found \"0\""},
        {"all, up: 1s, down: 1s, for: 3s, diurnal: 0s", "diurnal: found"},
        {"all, up: 1s, down: 1s, for: 3s, phase: 1s",
         "phase: found without diurnal"},
        {"all, up: 1s, down: 1s, for: 3s, swing: 0.5",
         "swing: found without diurnal"},
        {"all, up: 1s, down: 1s, for: 3s, diurnal: 9s, swing: 1.1",
         "swing: found \"1.1\"; allowed: a number above 0 to 1"},
        {"all, up: 1s, down: 1s, for: 3s, diurnal: 9s, phase: here",
         "phase: found \"here\"; allowed: a time from 1us to 1000000s, or "
         "zones"},
        {"all, up: 1s, down: 1s, for: 3s, diurnal: 9s, phase: zones",
         "phase: found zones, of which there are none"},
        {"all, trace: /nowhere/x, diurnal: 9s", "both drawn and replayed"},
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
    refused(" - {at: 0s, join: all, for: 3s}\n", "does not take \"for\"");
    refused(" - {at: 900s, join: \"peer(1)\"}\n",
            "found a join at 15.00 min; allowed: up to the predicted end");
    refused(" - {at: \"uniform(1s, 900s)\", join: all}\n", "found a join at ");
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
        cmocka_unit_test(test_diurnal),     cmocka_unit_test(test_phases),
        cmocka_unit_test(test_join),        cmocka_unit_test(test_own_stream),
        cmocka_unit_test(test_to_the_end),  cmocka_unit_test(test_run),
        cmocka_unit_test(test_wrong_words), cmocka_unit_test(test_wrong_traces),
    };
    return cmocka_run_group_tests(tests, open_trace, close_trace);
}

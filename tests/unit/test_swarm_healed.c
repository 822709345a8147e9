/* Goal: what a search found in rounds stays mended.
 * Method: runs of `kith swarm --random` that violated liveness, by what was
 * wrong, are simulated once more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/heals.h"

#define SEED 13u

static void heal_all(const uint64_t runs[], unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        heals(true, SEED, runs[i]);
}

/* It counted rounds as fast as it trained, and nobody believed them. */
static void test_alone(void **state)
{
    (void)state;
    static const uint64_t runs[] = {58, 175, 7364};
    heal_all(runs, 3);
}

/* Two rounds ahead, again and again, of one that is alive and slower. */
static void test_ahead(void **state)
{
    (void)state;
    static const uint64_t runs[] = {943, 3342, 1844};
    heal_all(runs, 3);
}

/* Who was suspected once is met again where neighbours change. */
static void test_suspected(void **state)
{
    (void)state;
    static const uint64_t runs[] = {101, 1090, 1654};
    heal_all(runs, 3);
}

/* Waiting for a liar, for those that wait for it, and so on: minutes. */
static void test_patience(void **state)
{
    (void)state;
    static const uint64_t runs[] = {420, 1117, 536, 695};
    heal_all(runs, 4);
}

/* The rounds of an all-reduce's cycle counted as one. */
static void test_cycle(void **state)
{
    (void)state;
    static const uint64_t runs[] = {888, 2662};
    heal_all(runs, 2);
}

/* A mailbox back from a crash says so to those that it only reads from. */
static void test_mailbox(void **state)
{
    (void)state;
    static const uint64_t runs[] = {8249, 6683};
    heal_all(runs, 2);
}

/* Half of a cycle only sends: READYs, which come at once, said that nobody is
 * late. */
static void test_only_sends(void **state)
{
    (void)state;
    static const uint64_t runs[] = {8207, 2789, 7862};
    heal_all(runs, 3);
}

/* Met every few rounds, and slower than those in between. */
static void test_late(void **state)
{
    (void)state;
    static const uint64_t runs[] = {3223, 789, 6855, 8247, 2105, 3336};
    heal_all(runs, 6);
}

/* It took its donor's place, and thought that nobody else's is plausible. */
static void test_adopted(void **state)
{
    (void)state;
    heals(true, 17, 9768);
}

/* Behind, alive, and without a word for those that are further. */
static void test_behind(void **state)
{
    (void)state;
    static const uint64_t runs[] = {232, 7423};
    heal_all(runs, 2);
}

/* It left a cycle for the next one, before what those behind it waited for. */
static void test_leapfrog(void **state)
{
    (void)state;
    static const uint64_t runs[] = {5517, 4618, 8292};
    heal_all(runs, 3);
}

/* Both had left the other out, and neither said a word again. */
static void test_left_out(void **state)
{
    (void)state;
    heals(true, SEED, 4987);
    heals(true, 17, 5121);
}

/* Who asked a liar what became of an exchange held back those that wait. */
static void test_doubted(void **state)
{
    (void)state;
    static const uint64_t runs[] = {400, 2137, 4615, 6235};
    heal_all(runs, 4);
}

/* Late because those before it in a cycle had waited for a liar. */
static void test_earlier(void **state)
{
    (void)state;
    heals(true, 17, 2570);
    heals(true, 17, 7695);
    heals(true, 17, 7928);
}

/* A liar that every round waits for: nobody measured how long one takes, and
 * those in such a round were taken for dead by those in the next one. */
static void test_unmeasured(void **state)
{
    (void)state;
    heals(true, 17, 1785);
    heals(true, 17, 2743);
    heals(true, 17, 2927);
    heals(true, 17, 4191);
    heals(true, 17, 4426);
}

/* One or two rounds behind, and each of them waited for somebody. */
static void test_few_behind(void **state)
{
    (void)state;
    heals(true, 21, 969);
    heals(true, 21, 3153);
    heals(true, 21, 4420);
}

/* A liar that is further broke every cycle, or its word took some where nobody
 * else could follow. */
static void test_one_word(void **state)
{
    (void)state;
    static const uint64_t runs[] = {528, 1266, 2854, 9019};
    heal_all(runs, 4);
    heals(true, 17, 6522);
}

/* An all-reduce's first round waits for those that train, the others do not. */
static void test_later_rounds(void **state)
{
    (void)state;
    static const uint64_t runs[] = {768, 788, 4743, 5271};
    heal_all(runs, 4);
    heals(true, 17, 3042);
}

/* Ten times slower, and met every third round: 32 deadlines were too few. */
static void test_slower(void **state)
{
    (void)state;
    heals(true, SEED, 1004);
}

/* With a liar for a neighbour it counted rounds as fast as it trained. */
static void test_barren(void **state)
{
    (void)state;
    heals(true, 17, 1429);
}

/* It adopted from those alone that it sends to: a silent one. */
static void test_donor(void **state)
{
    (void)state;
    heals(true, SEED, 2878);
}

/* A round waited for a liar until its link went down, 1.2 s, and by that all
 * others were measured. */
static void test_lost(void **state)
{
    (void)state;
    heals(true, 29, 4526);
}

/* Who was left out was asked more often than a slow link carries. */
static void test_asked(void **state)
{
    (void)state;
    heals(true, 53, 6656);
}

/* It began without a model: in its first round it meets nobody. */
static void test_meets_nobody(void **state)
{
    (void)state;
    heals(true, 53, 5933);
}

/* Led far ahead by a liar, and alone there. */
static void test_led_astray(void **state)
{
    (void)state;
    heals(true, 43, 3457);
    heals(true, 53, 1802);
    heals(true, 43, 9738);
    heals(true, 41, 1529);
}

/* A link that is cut one way: who is asked waits for nothing. */
static void test_cut_one_way(void **state)
{
    (void)state;
    heals(true, 67, 9280);
}

/* Slow steps, and each waited for one that was a cycle behind, no longer than
 * those in time had taken: whoever says that it comes is waited for. */
static void test_comes(void **state)
{
    (void)state;
    heals(true, 89, 687);
    heals(true, 89, 5247);
    heals(true, 43, 9392);
    heals(true, 79, 3899);
}

/* The same beside a liar, which each round of a cycle waited for anew. */
static void test_out_of_cycle(void **state)
{
    (void)state;
    heals(true, 89, 264);
    heals(true, 79, 4451);
    heals(true, 79, 7348);
    heals(true, 101, 444);
    heals(true, 83, 6013);
}

/* A liar said that it is further, and in the next message that it is not. */
static void test_takes_back_its_word(void **state)
{
    (void)state;
    heals(true, 89, 4896);
    heals(true, 79, 2462);
    heals(true, 101, 5131);
    heals(true, 83, 2121);
}

/* It went to where another one is, and back before it had tried a cycle there;
 * or it paused there. */
static void test_tries_where_it_went(void **state)
{
    (void)state;
    heals(true, 101, 3024);
    heals(true, 79, 2548);
    heals(true, 79, 4081);
}

/* Again and again it jumped over the round in which a neighbour waited. */
static void test_jumps_over(void **state)
{
    (void)state;
    heals(true, 83, 7112);
}

/* A liar said that it comes, and in the end that it does not, or went on:
 * every cycle waited for it as long as for the first time. */
static void test_breaks_its_word(void **state)
{
    (void)state;
    heals(true, 149, 3357);
    heals(true, 149, 4982);
    heals(true, 101, 4883);
}

/* It only reads from a liar, took itself for alone beside those that it sends
 * to, and went back a cycle. */
static void test_is_read(void **state)
{
    (void)state;
    heals(true, 103, 7701);
}

/* Two peers that were cut off had gone through more cycles than the others
 * believed. */
static void test_apart(void **state)
{
    (void)state;
    heals(true, 131, 7278);
}

/* Training waited for eight pulls from a donor that sends nothing. */
static void test_silent_donor(void **state)
{
    (void)state;
    heals(true, 131, 6973);
}

/* Left out by a mailbox, and asked in words that wanted no answer. */
static void test_mailbox_answers(void **state)
{
    (void)state;
    heals(true, 139, 895);
}

/* Beside a silent member, or with steps that differ: where neighbours change,
 * or a tree passes on how late one was, those that wait for one who waits gave
 * each other up. Whoever says that it comes is waited for in all rounds. */
static void test_is_asked(void **state)
{
    (void)state;
    heals(true, 149, 4475);
    heals(true, 151, 2491);
    heals(true, 151, 1523);
}

/* A liar says that it comes: those beside it were late because they waited for
 * it, and were waited for half as long each time. */
static void test_in_vain(void **state)
{
    (void)state;
    heals(true, 163, 8105);
    heals(true, 151, 6950);
    heals(true, 201, 9879);
    heals(true, 203, 5407);
    heals(true, 217, 542);
}

/* All were late because all waited, measured that, and waited as long. */
static void test_circle(void **state)
{
    (void)state;
    heals(true, 206, 7304);
    heals(true, 209, 4148);
    heals(true, 212, 6466);
}

/* Whose place is to be its donor's said where it would be without one, and was
 * taken for a liar. */
static void test_nowhere(void **state)
{
    (void)state;
    heals(true, 215, 707);
    heals(true, 213, 8831);
    heals(true, 214, 4436);
}

/* Several rounds behind, of ten times slower peers. */
static void test_comes_nearer(void **state)
{
    (void)state;
    heals(true, 214, 125);
    heals(true, 214, 2084);
    heals(true, 216, 5102);
}

/* Left out by a mailbox that asks at every eighth trigger: each was skipped. */
static void test_skipped(void **state)
{
    (void)state;
    heals(true, 216, 7957);
}

/* The only neighbour was charged because its model came late. */
static void test_first_pull(void **state)
{
    (void)state;
    heals(true, 204, 3317);
}

/* Training stood still for those that came nearer. */
static void test_standstill(void **state)
{
    (void)state;
    heals(true, 217, 237);
    heals(true, 217, 2923);
    heals(true, 222, 1065);
}

/* A round in which everybody meets everybody takes as much longer as it has
 * more models, and small ones in between said how long a round takes. */
static void test_large_rounds(void **state)
{
    (void)state;
    heals(true, 271, 1155);
    heals(true, 216, 2833);
    heals(true, 301, 5702);
}

/* Shares that were given blocked a jump, 13 rounds long. */
static void test_given_first(void **state)
{
    (void)state;
    heals(true, 271, 188);
}

/* A liar that comes nearer, beside a peer whose steps are eight times as long:
 * it waited for twice as long as for anybody else. */
static void test_nearer_slowly(void **state)
{
    (void)state;
    heals(true, 301, 6459);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_suspected),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_cycle),
        cmocka_unit_test(test_mailbox),
        cmocka_unit_test(test_only_sends),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_adopted),
        cmocka_unit_test(test_behind),
        cmocka_unit_test(test_leapfrog),
        cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_doubted),
        cmocka_unit_test(test_earlier),
        cmocka_unit_test(test_unmeasured),
        cmocka_unit_test(test_few_behind),
        cmocka_unit_test(test_one_word),
        cmocka_unit_test(test_later_rounds),
        cmocka_unit_test(test_slower),
        cmocka_unit_test(test_barren),
        cmocka_unit_test(test_donor),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_asked),
        cmocka_unit_test(test_meets_nobody),
        cmocka_unit_test(test_led_astray),
        cmocka_unit_test(test_cut_one_way),
        cmocka_unit_test(test_comes),
        cmocka_unit_test(test_out_of_cycle),
        cmocka_unit_test(test_takes_back_its_word),
        cmocka_unit_test(test_tries_where_it_went),
        cmocka_unit_test(test_jumps_over),
        cmocka_unit_test(test_breaks_its_word),
        cmocka_unit_test(test_is_read),
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_silent_donor),
        cmocka_unit_test(test_mailbox_answers),
        cmocka_unit_test(test_is_asked),
        cmocka_unit_test(test_in_vain),
        cmocka_unit_test(test_circle),
        cmocka_unit_test(test_nowhere),
        cmocka_unit_test(test_comes_nearer),
        cmocka_unit_test(test_skipped),
        cmocka_unit_test(test_first_pull),
        cmocka_unit_test(test_standstill),
        cmocka_unit_test(test_large_rounds),
        cmocka_unit_test(test_nearer_slowly),
        cmocka_unit_test(test_given_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

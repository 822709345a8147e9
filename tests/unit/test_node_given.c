/* Goal: shares that were given are taken once, whatever their round becomes:
 * before a jump, while everybody else is silent, and after their edge was
 * decided without them. Method: the node is stepped by hand; the test plays
 * worker and neighbours, 0 a liar and 2 an honest one. */
#include "tests/support/story.h"

enum { SELF = 1, LIAR = 0, HONEST = 2 };

static bool pending;
static enum kith_work_kind kind;

static void note(void)
{
    if (!effects.has_work)
        return;
    pending = true;
    kind = effects.work.kind;
}

static void tell(kith_id from, struct kith_message message)
{
    say(from, message);
    note();
}

/* The item that is out is done. */
static void finish(void)
{
    assert_true(pending);
    pending = false;
    effects.has_work = true;
    worked(kind);
    note();
}

static uint64_t at(void)
{
    struct kith_node_counters counters;
    kith_node_counters(node, &counters);
    return counters.rounds;
}

static struct kith_message word(kith_id from, enum kith_message_kind what,
                                uint64_t round, uint64_t said)
{
    struct kith_message message = {.kind = what,
                                   .pattern = KITH_PATTERN_ROUND,
                                   .id = {.counter = round},
                                   .mine = from < SELF,
                                   .step = said,
                                   .slot = KITH_SLOT_NONE,
                                   .finite = true};
    if (what == KITH_MESSAGE_MODEL) {
        message.payload_bytes = 32;
        message.scalar_count = config.algorithm->scalar_count;
        message.scalars[0] = 0.5;
        message.slot = kith_node_inbox(node, from, &message);
    }
    return message;
}

static void give(kith_id from, uint64_t round, uint64_t said)
{
    const struct kith_message model =
        word(from, KITH_MESSAGE_MODEL, round, said);
    if (model.slot != KITH_SLOT_NONE)
        tell(from, model);
}

static void open_ring(void)
{
    open_node("sgp-sync", "ring", 3, SELF, false);
    config.save_period_ns = 0;
    config.steps = 1000000;
    free(node);
    node = kith_node_init(calloc(1, kith_node_size(&config)), &config, SELF, 0,
                          0, false);
    pending = false;
    step(&(struct kith_event){.kind = KITH_EVENT_START});
    note();
}

/* Both give, both take: a round ends and training goes on. */
static void one_round(void)
{
    finish(); /* TRAIN */
    finish(); /* SNAPSHOT */
    const uint64_t round = at();
    for (kith_id from = LIAR; from <= HONEST; from += HONEST - LIAR) {
        give(from, round, round);
        tell(from, word(from, KITH_MESSAGE_READY, round, round));
    }
    finish(); /* MERGE */
    now_ns += 10 * KITH_MS;
}

/* A liar that is always a round ahead, and says that it is far away, would have
 * us take one given round after another, and train no more. */
static void test_not_twice_in_a_row(void **state)
{
    (void)state;
    open_ring();
    for (int i = 0; i < 100; i++)
        one_round();
    finish();
    finish();
    const uint64_t round = at(), claim = round + 40;
    give(LIAR, round + 1, claim);
    give(HONEST, round, round);
    tell(HONEST, word(HONEST, KITH_MESSAGE_READY, round, round));
    uint32_t merges = 0;
    while (pending && kind != KITH_WORK_TRAIN) {
        give(LIAR, at() + 1, claim);
        merges += kind == KITH_WORK_MERGE;
        finish();
        assert_true(merges <= 2);
    }
    assert_int_equal(merges, 2);
}

/* Who is alone counts no rounds, and merged the share that came as it left for
 * ever. */
static void test_leaves_alone(void **state)
{
    (void)state;
    open_ring();
    for (int i = 0; i < 60 && !(i > 40 && pending && kind == KITH_WORK_TRAIN);
         i++) {
        if (pending)
            finish();
        else
            expire();
        note();
    }
    give(LIAR, at(), at());
    step(&(struct kith_event){.kind = KITH_EVENT_LEAVE});
    note();
    uint32_t merges = 0;
    for (int i = 0; i < 20 && pending; i++) {
        merges += kind == KITH_WORK_MERGE;
        finish();
    }
    assert_int_equal(merges, 1);
    assert_true(kith_node_quiet(node));
}

/* Its bytes were complete after its edge was decided: READY would have its
 * sender book what nobody took. */
static void test_decided_meanwhile(void **state)
{
    (void)state;
    open_ring();
    finish();
    finish();
    give(LIAR, 1, 40);
    give(HONEST, 0, 0);
    tell(HONEST, word(HONEST, KITH_MESSAGE_READY, 0, 0));
    const struct kith_message model = word(HONEST, KITH_MESSAGE_MODEL, 1, 1);
    assert_true(model.slot != KITH_SLOT_NONE);
    finish(); /* the merge of round 0; what was given for 1 is taken */
    tell(HONEST, model);
    assert_null(sent(KITH_MESSAGE_READY));
    assert_non_null(sent(KITH_MESSAGE_ABORT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_twice_in_a_row),
        cmocka_unit_test(test_leaves_alone),
        cmocka_unit_test(test_decided_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

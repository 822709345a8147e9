/* Goal: whoever holds records of a peer and makes nothing of them costs its
 * neighbours a fifth of their exchanges at most, however it gives them up.
 * Method: the node is stepped by hand for two minutes; one neighbour takes
 * records and lets them lapse, or says ABORT or loses its link just before they
 * would, and asks again; the others complete their swaps. */
#include "tests/support/story.h"

#include <stdio.h>

enum { LIAR = 1, PEERS_MAX = 8, HELD_MS = 380 };
enum how { ABSENT, LAPSES, ABORTS, LOSES_LINK };

static struct {
    uint64_t counter;
    kith_ns since_ns, next_ns;
    bool in, gave, due; /* served; its model is out; its ACK is */
    uint32_t served;
} asks[PEERS_MAX];
static bool busy;
static kith_ns work_ns;
static enum kith_work_kind kind;

static void note(void)
{
    if (effects.has_work) {
        busy = true;
        kind = effects.work.kind;
        work_ns =
            now_ns + (kind == KITH_WORK_TRAIN ? 5 * KITH_MS : KITH_MS / 10);
    }
    for (uint32_t i = 0; i < effects.send_count; i++) {
        const struct kith_send *send = &effects.sends[i];
        if (send->message.mine ||
            asks[send->to].counter != send->message.id.counter)
            continue;
        if (send->message.kind == KITH_MESSAGE_ACCEPT && !asks[send->to].in) {
            asks[send->to].in = true;
            asks[send->to].gave = false;
            asks[send->to].since_ns = now_ns;
            asks[send->to].served++;
        } else if (send->message.kind == KITH_MESSAGE_ACK) {
            asks[send->to].due = true;
        } else if (send->message.kind == KITH_MESSAGE_ABORTED) {
            asks[send->to].in = false;
        }
    }
}

static void tell(kith_id from, enum kith_message_kind what)
{
    struct kith_message message = {.kind = what,
                                   .pattern = KITH_PATTERN_SWAP,
                                   .id = {.counter = asks[from].counter},
                                   .mine = true,
                                   .slot = KITH_SLOT_NONE,
                                   .finite = true,
                                   .overlap = 1};
    if (what == KITH_MESSAGE_REQUEST || what == KITH_MESSAGE_MODEL)
        message.payload_bytes = 32;
    say(from, message);
    note();
}

static void request(kith_id from, kith_ns period_ns)
{
    static uint64_t last;
    if (asks[from].in || now_ns < asks[from].next_ns)
        return;
    last += 32;
    asks[from].counter = last;
    asks[from].next_ns = now_ns + period_ns;
    tell(from, KITH_MESSAGE_REQUEST);
}

static void lie(enum how how)
{
    if (asks[LIAR].in && how == LAPSES) {
        if (now_ns / KITH_MS % 20 == 0)
            tell(LIAR, KITH_MESSAGE_PROBE); /* is it over? */
    } else if (asks[LIAR].in &&
               now_ns - asks[LIAR].since_ns > HELD_MS * KITH_MS) {
        if (how == ABORTS) {
            tell(LIAR, KITH_MESSAGE_ABORT);
        } else {
            step(&(struct kith_event){.kind = KITH_EVENT_LINK_DOWN,
                                      .from = LIAR});
            note();
        }
        asks[LIAR].in = false;
        asks[LIAR].next_ns = now_ns + 10 * KITH_MS;
    }
    if (how != ABSENT)
        request(LIAR, 10 * KITH_MS);
}

static void swap(kith_id from)
{
    if (asks[from].in && !asks[from].gave &&
        now_ns - asks[from].since_ns > 3 * KITH_MS) {
        asks[from].gave = true;
        tell(from, KITH_MESSAGE_MODEL);
    }
    if (asks[from].due) {
        asks[from].due = asks[from].in = false;
        tell(from, KITH_MESSAGE_ACK);
    }
    request(from, 20 * KITH_MS + from * KITH_MS / 7);
}

/* Exchanges that the honest ones had. */
static uint32_t served(enum how how, uint32_t peers, uint8_t exchanges)
{
    memset(asks, 0, sizeof asks);
    busy = false;
    open_node("adpsgd", "random", peers, 0, false);
    config.save_period_ns = 0;
    config.steps = 1000000000;
    config.every = 1000000;
    config.exchanges = exchanges;
    free(node);
    node = kith_node_init(calloc(1, kith_node_size(&config)), &config, 0, 0, 0,
                          false);
    step(&(struct kith_event){.kind = KITH_EVENT_START});
    note();
    const kith_ns end_ns = now_ns + 120 * KITH_S;
    uint32_t all = 0;
    while (now_ns < end_ns) {
        now_ns += KITH_MS / 2;
        if (busy && now_ns >= work_ns) {
            busy = false;
            effects.has_work = true;
            worked(kind);
            note();
        }
        if (effects.deadline_ns <= now_ns) {
            step(&(struct kith_event){.kind = KITH_EVENT_WAKE});
            note();
        }
        lie(how);
        for (kith_id from = LIAR + 1; from < peers; from++)
            swap(from);
    }
    for (kith_id from = LIAR + 1; from < peers; from++) {
        assert_true(asks[from].served > 60);
        all += asks[from].served;
    }
    return all;
}

static void costs(uint32_t peers, uint8_t exchanges)
{
    const uint32_t before = served(ABSENT, peers, exchanges);
    for (enum how how = LAPSES; how <= LOSES_LINK; how++) {
        const uint32_t after = served(how, peers, exchanges);
        printf("  one of %u, %u at a time, way %d: %u exchanges of %u\n", peers,
               exchanges, (int)how, after, before);
        assert_true(after >= before - before / 5);
    }
}

static void test_costs_a_fifth(void **state)
{
    (void)state;
    costs(6, 1);
    costs(PEERS_MAX, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_costs_a_fifth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

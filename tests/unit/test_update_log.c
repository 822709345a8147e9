/* Goal: the log of update-sets keeps what it is given, in any element, and says
 * what a partner lacks.
 * Method: numbers, masks and updates put in and read back; choices against the
 * same thought in sets, one bool for each peer, round and update. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "kith/rng.h"
#include "src/gossip/algorithm/update_log.h"

enum { DIM = 4000, ENTRY_BYTES = 7, ROUNDS = 48, PEERS_MAX = 20 };

static double memory[UPDATE_LOG_VECTORS][DIM];
static void *vectors[UPDATE_LOG_VECTORS];
static struct kith_topology graph;
static struct kith_algebra algebra;

static struct update_log open_log(const char *backend, uint32_t peers)
{
    memset(memory, 0, sizeof memory);
    for (unsigned i = 0; i < UPDATE_LOG_VECTORS; i++)
        vectors[i] = memory[i];
    assert_int_equal(kith_topology_open(kith_topology_find("random-matching"),
                                        peers, &graph),
                     KITH_OK);
    algebra = (struct kith_algebra){.backend = kith_backend_find(backend),
                                    .dim = DIM,
                                    .peers = peers,
                                    .graph = &graph};
    return kith_update_log_of(&algebra, vectors, ENTRY_BYTES);
}

static void test_keeps_what_it_is_given(void **state)
{
    (void)state;
    static const char *const backends[] = {"naive64", "naive32"};
    static const uint8_t bytes[2][ENTRY_BYTES] = {{1, 2, 255, 4, 0, 6, 200},
                                                  {9, 8, 7, 6, 5, 4, 3}};
    for (size_t b = 0; b < 2; b++) {
        const struct update_log log = open_log(backends[b], PEERS_MAX);
        assert_int_equal(log.words, 2);
        kith_update_mark_set(&log, UPDATE_FIRST, UINT64_C(0x123456789abc));
        kith_update_mark_set(&log, UPDATE_LAST, UINT64_C(0xfedcba987654));
        kith_update_clear(&log, 5, 0x90005);
        kith_update_clear(&log, 6, 0);
        kith_update_put(&log, (struct update_name){17, 5}, bytes[0]);
        kith_update_put(&log, (struct update_name){3, 5}, bytes[1]);
        kith_update_put(&log, (struct update_name){17, 6}, bytes[1]);

        uint8_t read[ENTRY_BYTES];
        kith_update_get(&log, (struct update_name){17, 5}, read);
        assert_memory_equal(read, bytes[0], ENTRY_BYTES);
        kith_update_get(&log, (struct update_name){3, 5}, read);
        assert_memory_equal(read, bytes[1], ENTRY_BYTES);
        assert_int_equal(kith_update_have(&log, 5), 0x20008);
        assert_int_equal(kith_update_known(&log, 5), 0xb000d);
        assert_int_equal(kith_update_have(&log, 6), 0x20000);
        assert_int_equal(kith_update_known(&log, 6), 0x20000);
        assert_true(kith_update_mark(&log, UPDATE_FIRST) ==
                    UINT64_C(0x123456789abc));
        assert_true(kith_update_mark(&log, UPDATE_LAST) ==
                    UINT64_C(0xfedcba987654));
        /* A round that takes another's place is empty. */
        kith_update_clear(&log, 5 + log.window, 0);
        assert_int_equal(kith_update_have(&log, 5 + log.window), 0);
    }
}

/* ---- choices */

/* knows[p][s][q]: has p the update of q and round s? */
static bool knows[PEERS_MAX][ROUNDS][PEERS_MAX];
static struct {
    bool is_said;
    uint64_t masks[UPDATE_WINDOW_MAX];
} told[ROUNDS];

/* To `to`, the newest `room` of what `from` had before and `to` lacked. */
static void carry(const bool from[ROUNDS][PEERS_MAX],
                  const bool had[ROUNDS][PEERS_MAX], bool to[ROUNDS][PEERS_MAX],
                  uint64_t oldest, uint64_t newest, uint32_t room)
{
    for (uint64_t s = newest + 1; s-- > oldest;)
        for (kith_id q = 0; q < algebra.peers && room > 0; q++)
            if (from[s][q] && !had[s][q]) {
                to[s][q] = true;
                room--;
            }
}

static void meet(kith_id a, kith_id b, uint64_t oldest, uint64_t round,
                 uint32_t room)
{
    static bool one[ROUNDS][PEERS_MAX], other[ROUNDS][PEERS_MAX];
    memcpy(one, knows[a], sizeof one);
    memcpy(other, knows[b], sizeof other);
    carry((const bool(*)[PEERS_MAX])one, (const bool(*)[PEERS_MAX])other,
          knows[b], oldest, round, room);
    carry((const bool(*)[PEERS_MAX])other, (const bool(*)[PEERS_MAX])one,
          knows[a], oldest, round, room);
}

/* Everybody's pairs again, as if no message had been lost; what the partner has
 * said of itself it knows in that round. */
static void think(const struct update_log *log, kith_id partner, uint32_t room)
{
    const uint64_t oldest = kith_update_oldest(log, algebra.round);
    memset(knows, 0, sizeof knows);
    for (uint64_t s = oldest; s <= algebra.round; s++) {
        for (uint64_t t = oldest; t <= s && told[s].is_said; t++)
            for (kith_id q = 0; q < algebra.peers; q++)
                knows[partner][t][q] = told[s].masks[t % log->window] >> q & 1;
        for (kith_id p = 0; p < algebra.peers; p++)
            knows[p][s][p] = true;
        for (kith_id p = 0; p < algebra.peers && s < algebra.round; p++) {
            kith_id other[KITH_DEGREE_MAX];
            if (kith_topology_neighbours(&graph, p, s, other, NULL) == 1 &&
                p < other[0])
                meet(p, other[0], oldest, s, room);
        }
    }
}

static void check_choice(const struct update_log *log, kith_id partner,
                         uint32_t room)
{
    struct update_name names[2 * UPDATE_PEERS_MAX];
    const uint32_t count = kith_update_choose(log, partner, room, names);
    uint32_t n = 0;
    think(log, partner, room);
    const uint64_t oldest = kith_update_oldest(log, algebra.round);
    for (uint64_t s = algebra.round + 1; s-- > oldest;)
        for (kith_id q = 0; q < algebra.peers && n < room; q++)
            if ((kith_update_have(log, s) >> q & 1) != 0 &&
                !knows[partner][s][q]) {
                assert_true(n < count);
                assert_int_equal(names[n].peer, q);
                assert_int_equal(names[n].round, s);
                n++;
            }
    assert_int_equal(count, n);
}

/* One partner; in some rounds it says what it knows, in the last of which it
 * was heard. */
static void test_chooses_what_is_lacked(void **state)
{
    (void)state;
    static const uint8_t bytes[ENTRY_BYTES];
    for (unsigned run = 0; run < 60; run++) {
        struct kith_rng rng;
        kith_rng_init(&rng, run, KITH_STREAM_SWARM, 0);
        const uint32_t peers = 2 + kith_rng_below(&rng, PEERS_MAX - 1);
        const struct update_log log = open_log("naive64", peers);
        const kith_id partner = kith_rng_below(&rng, peers);
        assert_in_range(log.window, 1, ROUNDS);
        memset(told, 0, sizeof told);
        algebra.round = kith_rng_below(&rng, ROUNDS);
        const uint64_t oldest = kith_update_oldest(&log, algebra.round);
        for (uint64_t s = oldest; s <= algebra.round; s++)
            for (kith_id q = 0; q < peers; q++)
                if (kith_rng_below(&rng, 3) > 0)
                    kith_update_put(&log, (struct update_name){q, s}, bytes);
        const uint64_t said = kith_rng_below(&rng, 2 * ROUNDS);
        if (said < algebra.round) {
            told[said].is_said = true;
            for (uint32_t w = 0; w < log.window; w++)
                told[said].masks[w] =
                    kith_rng_u64(&rng) & (UINT64_MAX >> (64 - peers));
            kith_update_tell(&log, partner, said, told[said].masks);
        }
        check_choice(&log, partner, 1 + kith_rng_below(&rng, 2 * peers));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keeps_what_it_is_given),
        cmocka_unit_test(test_chooses_what_is_lacked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

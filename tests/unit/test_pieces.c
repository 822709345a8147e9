/* Goal: a swarm reads each sample from the origin once, none in the second
 * epoch, and all of them out of memory where they fit; a changed byte is
 * refused, wherever it comes from, and the piece is had elsewhere (T4.5).
 * Method: six peers in this process, a file of samples as the origin, a folder
 * each as their disk; what asks a peer calls the other's serve. Every peer
 * reads every sample in an order of its own, all peers in turns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kith/pieces.h"

enum { PEERS = 6, SAMPLES = 1000, SAMPLE = 64, EACH = 32 };
enum { BYTES = SAMPLES * SAMPLE, PIECE = EACH * SAMPLE };
enum { COUNT = (BYTES + PIECE - 1) / PIECE };
enum { DISK, SWARM, ORIGIN, SOURCES };

static char top[] = "/tmp/kith-pieces-XXXXXX";
static char origin_path[64];
static uint8_t data[BYTES], hashes[COUNT * KITH_PIECE_HASH_BYTES];
static struct kith_manifest manifest;

struct peer {
    struct kith_piece_disk disk;
    struct kith_piece_peers swarm;
    struct kith_piece_origin origin;
    bool distrusted[PEERS];
    bool is_away, lies;
    void *memory;
    struct kith_pieces *pieces;
};
static struct peer of[PEERS];
static unsigned wrong; /* values that are not the origin's */

static void command(const char *format, const char *path)
{
    char line[200];
    (void)snprintf(line, sizeof line, format, path);
    assert_int_equal(system(line), 0);
}

static void write_origin(void)
{
    FILE *const file = fopen(origin_path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, BYTES, file), BYTES);
    assert_int_equal(fclose(file), 0);
}

static int make(void **state)
{
    (void)state;
    if (mkdtemp(top) == NULL)
        return 1;
    (void)snprintf(origin_path, sizeof origin_path, "%s/origin", top);
    for (unsigned i = 0; i < BYTES; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 13);
    write_origin();
    manifest = (struct kith_manifest){
        .bytes = BYTES, .piece_bytes = PIECE, .count = COUNT, .hashes = hashes};
    for (uint32_t i = 0; i < COUNT; i++)
        kith_manifest_hash(data + i * PIECE, kith_manifest_size(&manifest, i),
                           hashes + i * KITH_PIECE_HASH_BYTES);
    return 0;
}

static int clean(void **state)
{
    (void)state;
    command("rm -rf %s", top);
    return 0;
}

/* ---- peers */

static enum kith_err ask(void *owner, uint32_t peer, uint32_t piece,
                         size_t size, uint8_t *bytes)
{
    char error[KITH_PIECES_ERROR_BYTES];
    const uint8_t *found;
    (void)owner;
    if (of[peer].is_away)
        return KITH_ETIMEOUT;
    const enum kith_err err =
        kith_pieces_serve(of[peer].pieces, piece, &found, error);
    if (err != KITH_OK)
        return err;
    memcpy(bytes, found, size);
    bytes[size / 2] ^= of[peer].lies; /* one bit */
    return KITH_OK;
}

static size_t as_floats(size_t size)
{
    return size * sizeof(float);
}

static void decode(const uint8_t *bytes, size_t size, void *out)
{
    float *const values = out;
    for (size_t i = 0; i < size; i++)
        values[i] = (float)bytes[i] / 255;
}

static void open_peer(uint32_t self, uint32_t slots)
{
    struct peer *const peer = &of[self];
    char folder[64];
    (void)snprintf(folder, sizeof folder, "%s/%u", top, self);
    assert_int_equal(kith_piece_disk_init(&peer->disk, folder, &manifest, self),
                     KITH_OK);
    assert_int_equal(
        kith_piece_origin_init(&peer->origin, origin_path, &manifest), KITH_OK);
    memset(peer->distrusted, 0, sizeof peer->distrusted);
    peer->is_away = peer->lies = false;
    peer->swarm = (struct kith_piece_peers){.self = self,
                                            .count = PEERS,
                                            .distrusted = peer->distrusted,
                                            .ask = ask};
    const struct kith_pieces_config config = {
        .manifest = &manifest,
        .sources = {kith_piece_disk_source(&peer->disk),
                    kith_piece_peers_source(&peer->swarm),
                    kith_piece_origin_source(&peer->origin)},
        .source_count = SOURCES,
        .self = self,
        .peers = PEERS,
        .decoded_bytes = as_floats,
        .decode = decode,
        .slots = slots};
    const size_t size = kith_pieces_size(&config);
    assert_true(size > 0);
    free(peer->memory);
    peer->memory = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(peer->memory);
    peer->pieces = kith_pieces_init(peer->memory, &config);
}

/* Everybody anew; with `disks`, what was on their disks stays there. */
static void open_swarm(uint32_t slots, bool disks)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        char folder[64];
        (void)snprintf(folder, sizeof folder, "%s/%u", top, i);
        if (!disks)
            command("rm -rf %s", folder);
        open_peer(i, slots);
    }
}

static int close_swarm(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < PEERS; i++) {
        free(of[i].memory);
        of[i].memory = NULL;
    }
    return 0;
}

static void look_at(uint32_t peer, uint32_t sample)
{
    char error[KITH_PIECES_ERROR_BYTES];
    const void *decoded;
    const enum kith_err err =
        kith_pieces_get(of[peer].pieces, sample / EACH, &decoded, error);
    if (err != KITH_OK)
        fail_msg("%s", error);
    const float *const values =
        (const float *)decoded + (size_t)(sample % EACH) * SAMPLE;
    for (unsigned i = 0; i < SAMPLE; i++)
        wrong += values[i] != (float)data[sample * SAMPLE + i] / 255;
}

/* Peers [first, PEERS) look at every sample, in turns; 7 has no factor in
 * common with 1,000. */
static void epoch(uint32_t first)
{
    for (uint32_t n = 0; n < SAMPLES; n++)
        for (uint32_t peer = first; peer < PEERS; peer++)
            look_at(peer, (7 * n + 131 * peer) % SAMPLES);
    assert_int_equal(wrong, 0);
}

/* ---- what was counted, in samples */

struct totals {
    uint64_t memory, given[SOURCES], damaged[SOURCES], failed[SOURCES], unkept;
};

static struct totals totals(void)
{
    struct totals sum = {.memory = 0};
    for (uint32_t i = 0; i < PEERS; i++) {
        const struct kith_piece_counts *const counts =
            kith_pieces_counts(of[i].pieces);
        sum.memory += counts->memory;
        for (unsigned s = 0; s < SOURCES; s++) {
            sum.given[s] += counts->of[s].given;
            sum.damaged[s] += counts->of[s].damaged;
            sum.failed[s] += counts->of[s].failed;
            sum.unkept += counts->of[s].unkept;
        }
    }
    return sum;
}

/* Pieces of EACH samples but the last: what is asked of T4.5 is all of them. */
static uint64_t samples_of(uint64_t pieces)
{
    assert_int_equal(pieces % COUNT, 0);
    return pieces / COUNT * SAMPLES;
}

/* ---- T4.5 */

static void test_epochs(void **state)
{
    (void)state;
    open_swarm(COUNT, false);
    epoch(0);
    const struct totals first = totals();
    epoch(0);
    const struct totals second = totals();
    printf("  T4.5 6 peers, 1000 samples, samples read from the origin in "
           "epoch 1: expected 1000, measured %llu\n",
           (unsigned long long)samples_of(first.given[ORIGIN]));
    printf("  T4.5 6 peers, samples read from the origin in epoch 2: expected "
           "0, measured %llu\n",
           (unsigned long long)(second.given[ORIGIN] - first.given[ORIGIN]));
    printf("  T4.5 6 peers, samples of epoch 2 out of memory: expected 6000, "
           "measured %llu\n",
           (unsigned long long)(second.memory - first.memory));
    assert_int_equal(samples_of(first.given[ORIGIN]), SAMPLES);
    assert_int_equal(second.given[ORIGIN], first.given[ORIGIN]);
    assert_int_equal(second.memory - first.memory, PEERS * SAMPLES);
    assert_int_equal(second.given[SWARM], first.given[SWARM]);
    assert_int_equal(second.given[DISK], first.given[DISK]);
    assert_int_equal(first.damaged[SWARM] + first.failed[SWARM] + first.unkept,
                     0);
}

/* A later run of the same peers: local disks. */
static void test_again(void **state)
{
    (void)state;
    open_swarm(COUNT, true);
    epoch(0);
    const struct totals sum = totals();
    printf("  T4.5 a second run, samples read from the origin: expected 0, "
           "measured %llu\n",
           (unsigned long long)sum.given[ORIGIN]);
    assert_int_equal(sum.given[ORIGIN] + sum.given[SWARM], 0);
    assert_int_equal(samples_of(sum.given[DISK]), PEERS * SAMPLES);
}

/* Memory has room for a fourth: disks, not the origin. */
static void test_small_memory(void **state)
{
    (void)state;
    open_swarm(COUNT / 4, false);
    epoch(0);
    const struct totals first = totals();
    epoch(0);
    const struct totals second = totals();
    assert_int_equal(samples_of(first.given[ORIGIN]), SAMPLES);
    assert_int_equal(second.given[ORIGIN], first.given[ORIGIN]);
    assert_true(second.given[DISK] > first.given[DISK]);
    assert_true(second.memory - first.memory < PEERS * SAMPLES);
}

/* ---- what is not the piece */

/* One peer of six changes a bit of all that it gives. */
static void test_liar(void **state)
{
    enum { LIAR = 2 };
    (void)state;
    open_swarm(COUNT, false);
    of[LIAR].lies = true;
    epoch(0);
    const struct totals sum = totals();
    printf("  T4.5 one of 6 peers changes a bit, pieces refused: expected 5, "
           "measured %llu\n",
           (unsigned long long)sum.damaged[SWARM]);
    printf("  T4.5 one of 6 peers changes a bit, values of 384000 that are "
           "not the origin's: expected 0, measured %u\n",
           wrong);
    /* Each of the others has refused one, and asked it no more. */
    assert_int_equal(sum.damaged[SWARM], PEERS - 1);
    for (uint32_t i = 0; i < PEERS; i++)
        assert_int_equal(of[i].distrusted[LIAR], i != LIAR);
    /* Its pieces were read by others, until one had them who is asked. */
    printf("  T4.5 one of 6 peers changes a bit, pieces read from the origin: "
           "expected 32 and some of the liar's again, measured %llu\n",
           (unsigned long long)sum.given[ORIGIN]);
    assert_true(sum.given[ORIGIN] >= COUNT);
    assert_true(sum.given[ORIGIN] <= COUNT + PEERS * (COUNT / PEERS + 1));
}

static unsigned reads;
static bool is_away;
static enum kith_err read_counted(void *owner, uint32_t piece, unsigned attempt,
                                  size_t size, uint8_t *bytes)
{
    (void)owner;
    (void)attempt;
    reads++;
    memcpy(bytes, data + piece * PIECE, size);
    return is_away ? KITH_ENOENT : KITH_OK;
}

/* The origin has not got a piece, for which a peer asks its home without end.
 */
static void test_absent(void **state)
{
    enum { QUESTIONS = 1000, OWN = 2 };
    const struct kith_pieces_config config = {
        .manifest = &manifest,
        .sources = {{.name = "origin",
                     .is_origin = true,
                     .attempts = 1,
                     .read = read_counted}},
        .source_count = 1,
        .self = OWN,
        .peers = PEERS,
        .slots = COUNT};
    char error[KITH_PIECES_ERROR_BYTES];
    const void *decoded;
    const uint8_t *bytes;
    (void)state;
    void *const memory =
        aligned_alloc(64, (kith_pieces_size(&config) + 63) / 64 * 64);
    assert_non_null(memory);
    struct kith_pieces *const pieces = kith_pieces_init(memory, &config);
    is_away = true;
    for (unsigned i = 0; i < QUESTIONS; i++)
        assert_int_equal(kith_pieces_serve(pieces, OWN, &bytes, error),
                         KITH_ENOENT);
    printf("  a piece that is away, asked for %d times: expected up to %u "
           "reads of the origin, measured %u\n",
           QUESTIONS, KITH_PIECE_MISSES_MAX, reads);
    assert_in_range(reads, 1, KITH_PIECE_MISSES_MAX);
    /* It comes: the home reads it for itself, and gives it then. */
    is_away = false;
    assert_int_equal(kith_pieces_serve(pieces, OWN, &bytes, error),
                     KITH_ENOENT);
    assert_int_equal(kith_pieces_get(pieces, OWN, &decoded, error), KITH_OK);
    assert_int_equal(kith_pieces_serve(pieces, OWN, &bytes, error), KITH_OK);
    free(memory);
}

/* A bit of one's own disk. */
static void test_spoiled_disk(void **state)
{
    char path[128];
    (void)state;
    open_swarm(COUNT, false);
    epoch(0);
    open_swarm(COUNT, true);
    (void)snprintf(path, sizeof path, "%s/3/%s-5", top, of[3].disk.root);
    FILE *const file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 100, SEEK_SET), 0);
    assert_int_equal(fputc(data[5 * PIECE + 100] ^ 1, file),
                     data[5 * PIECE + 100] ^ 1);
    assert_int_equal(fclose(file), 0);
    (void)snprintf(path, sizeof path, "%s/3/%s-6", top, of[3].disk.root);
    assert_int_equal(truncate(path, 7), 0);
    epoch(0);
    struct totals sum = totals();
    assert_int_equal(sum.damaged[DISK], 2);
    assert_int_equal(sum.given[SWARM], 2);
    assert_int_equal(sum.given[ORIGIN], 0);
    /* And it was mended. */
    open_swarm(COUNT, true);
    epoch(0);
    sum = totals();
    assert_int_equal(sum.damaged[DISK] + sum.given[SWARM], 0);
}

static void test_spoiled_origin(void **state)
{
    char error[KITH_PIECES_ERROR_BYTES];
    const void *decoded;
    (void)state;
    open_swarm(COUNT, false);
    data[9 * PIECE + 17] ^= 1;
    write_origin();
    data[9 * PIECE + 17] ^= 1;
    assert_int_equal(kith_pieces_get(of[0].pieces, 9, &decoded, error),
                     KITH_EAUTH);
    assert_non_null(strstr(error, "look at the origin"));
    look_at(0, 8 * EACH);
    write_origin();
    look_at(0, 9 * EACH);
    assert_int_equal(wrong, 0);
}

/* ---- who is not there */

/* An origin that has gone, and a peer that is new. */
static void test_no_origin(void **state)
{
    char error[KITH_PIECES_ERROR_BYTES];
    const void *decoded;
    (void)state;
    open_swarm(COUNT, false);
    epoch(1); /* peer 0 looks at nothing, and serves what it is the home of */
    assert_int_equal(unlink(origin_path), 0);
    for (uint32_t n = 0; n < SAMPLES; n++)
        look_at(0, n);
    assert_int_equal(samples_of(totals().given[ORIGIN]), SAMPLES);

    open_swarm(COUNT, false);
    assert_int_equal(kith_pieces_get(of[0].pieces, 1, &decoded, error),
                     KITH_ENOENT);
    assert_non_null(strstr(error, "no source has it"));
    assert_int_equal(kith_pieces_get(of[0].pieces, COUNT, &decoded, error),
                     KITH_EINVAL);
    write_origin();
}

/* A home that is away: its pieces come from the origin, or from who has them.
 */
static void test_away(void **state)
{
    (void)state;
    open_swarm(COUNT, false);
    of[1].is_away = true;
    for (uint32_t n = 0; n < SAMPLES; n++)
        for (uint32_t peer = 2; peer < PEERS; peer++)
            look_at(peer, n);
    const struct totals sum = totals();
    assert_true(sum.failed[SWARM] > 0);
    assert_true(sum.given[ORIGIN] >= COUNT);
    assert_true(sum.given[ORIGIN] < 2 * COUNT);
}

/* A disk that takes nothing costs speed alone. */
static void test_no_disk(void **state)
{
    (void)state;
    open_swarm(COUNT, false);
    char folder[64];
    (void)snprintf(folder, sizeof folder, "%s/4", top);
    command("rm -rf %s", folder);
    epoch(0);
    const struct totals sum = totals();
    assert_true(sum.unkept > 0);
    assert_true(sum.given[ORIGIN] >= COUNT);
}

/* Bounds of the configuration. */
static void test_bounds(void **state)
{
    (void)state;
    struct kith_pieces_config config = {
        .manifest = &manifest, .peers = 1, .slots = 1};
    assert_true(kith_pieces_size(&config) > 0);
    config.slots = 0;
    assert_int_equal(kith_pieces_size(&config), 0);
    config.slots = 1, config.self = 1;
    assert_int_equal(kith_pieces_size(&config), 0);
    config.self = 0, config.source_count = KITH_PIECE_SOURCES_MAX + 1;
    assert_int_equal(kith_pieces_size(&config), 0);
    struct kith_manifest other = manifest;
    other.count++;
    config.source_count = 0, config.manifest = &other;
    assert_int_equal(kith_pieces_size(&config), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_again),
        cmocka_unit_test_teardown(test_small_memory, close_swarm),
        cmocka_unit_test_teardown(test_liar, close_swarm),
        cmocka_unit_test(test_absent),
        cmocka_unit_test_teardown(test_spoiled_disk, close_swarm),
        cmocka_unit_test_teardown(test_spoiled_origin, close_swarm),
        cmocka_unit_test_teardown(test_no_origin, close_swarm),
        cmocka_unit_test_teardown(test_away, close_swarm),
        cmocka_unit_test_teardown(test_no_disk, close_swarm),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, make, clean);
}

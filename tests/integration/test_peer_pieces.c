/* Goal: a member that gives pieces with a changed bit changes nothing: it is
 * refused once, named in the log and asked no more, and all is had from an
 * honest one, also where the origin is out of reach (T4.5); a member that asks
 * for what is none, or gives what nobody asked for, loses its connection.
 * Method: three forked peers and the digits in pieces of 4 KiB; ranks 1 and 2
 * have them all, rank 1 with a bit changed in each, rank 0 has nothing and an
 * origin that is not there. Then the test itself is rank 2, and says what no
 * peer of ours would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "kith/assert.h"
#include "src/peer/piece_exchange.h"
#include "tests/support/visit.h"

enum { PIECE_BYTES = 4096, LIAR = 1 };

static char folder[] = "/tmp/kith-peer-pieces-XXXXXX";
static char yaml[2048];

static void write_manifest(const char *path)
{
    char error[KITH_PIECES_ERROR_BYTES], name[64];
    uint8_t *bytes;
    size_t size;
    if (kith_manifest_make(path, PIECE_BYTES, &bytes, &size, error) != KITH_OK)
        fail_msg("%s", error);
    (void)snprintf(name, sizeof name, "%s/manifest", folder);
    FILE *const file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    free(bytes);
}

static int make(void **state)
{
    char path[512];
    (void)state;
    const char *const top = getenv("srcdir");
    (void)snprintf(path, sizeof path, "%s/examples/data/digits",
                   top == NULL ? ".." : top);
    assert_non_null(mkdtemp(folder));
    write_manifest(path);
    (void)snprintf(yaml, sizeof yaml,
                   "name: pieces\nseed: 5\npeers: 3\nstop: {time: 60s}\n"
                   "model: {kind: mlp, layers: [64, 10]}\n"
                   "data: {kind: idx, path: %s/%s, manifest: %s/manifest}\n"
                   "gossip: {algorithm: adpsgd, every: 1}\n"
                   "compute: {step: 20ms}\nsave: never\n",
                   path[0] == '/' ? "" : getcwd((char[512]){0}, 512), path,
                   folder);
    return 0;
}

static int clean(void **state)
{
    char command[64];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* ---- what a peer does before its run, in its process */

/* All pieces out of the origin, without asking anybody. */
static void have_all(struct kith_peer_options *options, bool changed)
{
    static struct kith_data_store store;
    char error[KITH_DATA_ERROR_BYTES];
    const void *bytes;
    KITH_ASSERT(kith_data_store_open(&options->experiment->data.config,
                                     options->self, 3, &store,
                                     error) == KITH_OK);
    for (uint32_t i = 0; i < store.manifest.count; i++) {
        KITH_ASSERT(kith_pieces_get(store.pieces, i, &bytes, error) == KITH_OK);
        *(uint8_t *)(uintptr_t)bytes ^= changed;
    }
    options->store = &store;
}

static bool are_whole(const struct kith_data_store *store)
{
    const uint8_t *const bytes = kith_pieces_memory(store->pieces);
    bool whole = true;
    for (uint32_t i = 0; i < store->manifest.count; i++)
        whole = whole &&
                kith_manifest_holds(&store->manifest, i,
                                    bytes + (size_t)i * PIECE_BYTES,
                                    kith_manifest_size(&store->manifest, i));
    return whole;
}

/* All from members; what came of it is said in a line. */
static void gather(struct kith_peer_options *options)
{
    static struct kith_peer_data data;
    static struct kith_experiment experiment;
    char error[KITH_PEER_ERROR_BYTES], line[KITH_PEER_LINE_BYTES];
    experiment = *options->experiment;
    (void)snprintf(experiment.data.config.path,
                   sizeof experiment.data.config.path, "%s/away", folder);
    options->experiment = &experiment;
    const enum kith_err err = kith_peer_data_open(options, &data, error);
    const struct kith_piece_totals totals = kith_data_store_totals(&data.store);
    (void)snprintf(
        line, sizeof line,
        "test err=%d pieces=%llu origin=%llu peers=%llu "
        "refused=%llu whole=%d %.200s",
        (int)err, (unsigned long long)totals.count,
        (unsigned long long)totals.origin, (unsigned long long)totals.peers,
        (unsigned long long)totals.refused,
        err == KITH_OK && are_whole(&data.store), err == KITH_OK ? "" : error);
    options->on_log(options->user, line);
    KITH_ASSERT(err == KITH_OK);
}

static void prepare(struct kith_peer_options *options, void *arg)
{
    (void)arg;
    if (options->self == 0)
        gather(options);
    else
        have_all(options, options->self == LIAR);
}

static void all_have(struct kith_peer_options *options, void *arg)
{
    (void)arg;
    have_all(options, false);
}

/* ---- tests */

static void a_liar_is_refused_once(void **state)
{
    struct peers peers;
    char expected[128];
    (void)state;
    peers_open(&peers, yaml);
    peers.change = prepare;
    peers_start_all(&peers);
    assert_true(visit_said(&peers, 0, "test err="));
    for (uint32_t i = 0; i < peers.shared[0].line_count; i++)
        if (strncmp(peers.shared[0].lines[i], "test ", 5) == 0)
            print_message("  T4.5 one of two members changes a bit, no origin: "
                          "expected err=0 pieces=12 origin=0 peers=12 "
                          "refused=1 whole=1, measured %s\n",
                          peers.shared[0].lines[i] + 5);
    (void)snprintf(expected, sizeof expected,
                   "test err=0 pieces=12 origin=0 peers=12 refused=1 whole=1");
    assert_true(peers_said(&peers, 0, expected));
    assert_true(peers_said(&peers, 0, "piece-refused rank=1 piece="));
    assert_false(peers_said(&peers, 0, "piece-refused rank=2"));
    assert_true(peers_wait_step(&peers, 0, 5, 60));
    assert_true(peers_stop(&peers, 10));
    peers_close(&peers);
}

static void send_frame(struct visit *visit, enum kith_piece_frame kind,
                       const uint8_t *root, uint32_t piece)
{
    uint8_t frame[KITH_PIECE_FRAME_BYTES] = {KITH_FRAME_PIECE, (uint8_t)kind};
    uint8_t bytes[128];
    size_t size;
    memcpy(frame + 2, root, 8);
    frame[12] = (uint8_t)(piece >> 8);
    frame[13] = (uint8_t)piece;
    assert_int_equal(kith_session_seal_control(visit->session, frame,
                                               sizeof frame, bytes,
                                               sizeof bytes, &size),
                     KITH_OK);
    assert_int_equal(write(visit->fd, bytes, size), size);
}

static void send_piece(struct visit *visit)
{
    static const uint8_t piece[64];
    uint8_t bytes[256];
    size_t size;
    const struct kith_session_burst burst = {KITH_PIECE_TRANSFER, 3, piece,
                                             sizeof piece};
    assert_int_equal(kith_session_seal_burst(visit->session, &burst, bytes,
                                             sizeof bytes, &size),
                     KITH_OK);
    assert_int_equal(write(visit->fd, bytes, size), size);
}

static void what_nobody_asked_for_closes(void **state)
{
    struct peers peers;
    struct visit visit;
    struct kith_data_store store;
    char error[KITH_DATA_ERROR_BYTES];
    (void)state;
    peers_open(&peers, yaml);
    close(peers.listen_fds[2]);
    peers.listen_fds[2] = -1;
    peers.change = all_have;
    assert_int_equal(kith_data_store_open(&peers.experiment.data.config, 2, 3,
                                          &store, error),
                     KITH_OK);
    peers_start(&peers, 0, 0, false);
    assert_true(visit_said(&peers, 0, "listening"));
    struct visit_options options = visit_as(&peers, 2);
    options.dim = kith_model_size_of(peers.experiment.model,
                                     &peers.experiment.model_config)
                      .dim;
    static const char *const said[] = {
        "it asks for a piece that is none",
        "a piece is away that was not asked for",
        "a piece that was not asked for",
    };
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        visit_begin(&visit, &peers, &options);
        if (i < 2)
            send_frame(&visit, i == 0 ? KITH_PIECE_ASK : KITH_PIECE_AWAY,
                       store.root, i == 0 ? store.manifest.count : 0);
        else
            send_piece(&visit);
        assert_true(visit_said(&peers, 0, said[i]));
        visit_end(&visit);
    }
    /* Of another manifest: told so, and kept. */
    visit_begin(&visit, &peers, &options);
    store.root[0] ^= 1;
    send_frame(&visit, KITH_PIECE_ASK, store.root, 0);
    assert_true(visit_said(&peers, 0, "pieces-differ rank=2"));
    visit_end(&visit);
    assert_true(peers_stop(&peers, 10));
    kith_data_store_close(&store);
    peers_close(&peers);
}

/* Over a slow line, so that what is given waits at the giver. */
static void who_does_not_read_is_given_little(void **state)
{
    struct peers peers;
    struct visit visit;
    struct kith_data_store store;
    char error[KITH_DATA_ERROR_BYTES], slow[sizeof yaml + 64];
    uint8_t bytes[4096];
    size_t given = 0;
    (void)state;
    (void)snprintf(slow, sizeof slow, "%snetwork: {rate: 1Mbit}\n", yaml);
    peers_open(&peers, slow);
    close(peers.listen_fds[2]);
    peers.listen_fds[2] = -1;
    peers.experiment.gossip.every = 1000000; /* it says nothing of its own */
    peers.change = all_have;
    assert_int_equal(kith_data_store_open(&peers.experiment.data.config, 2, 3,
                                          &store, error),
                     KITH_OK);
    peers_start(&peers, 0, 0, false);
    assert_true(visit_said(&peers, 0, "listening"));
    struct visit_options options = visit_as(&peers, 2);
    options.dim = kith_model_size_of(peers.experiment.model,
                                     &peers.experiment.model_config)
                      .dim;
    visit_begin(&visit, &peers, &options);
    const uint32_t asked = store.manifest.count + KITH_PIECES_AGAIN;
    for (uint32_t i = 0; i < asked; i++)
        send_frame(&visit, KITH_PIECE_ASK, store.root, 0);
    for (ssize_t count = 1; count > 0; given += count > 0 ? (size_t)count : 0)
        count = read(visit.fd, bytes, sizeof bytes);
    print_message("  %u pieces asked for at once: expected up to %u given, "
                  "measured %zu\n",
                  asked, KITH_PIECES_QUEUED_MAX, given / PIECE_BYTES);
    assert_in_range(given, PIECE_BYTES,
                    (KITH_PIECES_QUEUED_MAX + 2) * PIECE_BYTES);
    visit_end(&visit);
    assert_true(peers_stop(&peers, 10));
    kith_data_store_close(&store);
    peers_close(&peers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_liar_is_refused_once),
        cmocka_unit_test(what_nobody_asked_for_closes),
        cmocka_unit_test(who_does_not_read_is_given_little),
    };
    return cmocka_run_group_tests(tests, make, clean);
}

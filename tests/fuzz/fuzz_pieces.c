/* Goal: nothing that two certified members say of pieces, in any order, makes a
 * peer misbehave: no report, no assertion; what they send is never longer than
 * its place, an answer belongs to what was asked, a link is given no more
 * pieces than it may have, and bytes that the manifest does not name are never
 * pieces. Method: the victim (victim.h) has a data set of ten pieces and asks;
 * the input is a program that says what the members seal, honest answers among
 * it, what becomes of the connections, and when a question is given up.
 *
 * Input: operations, each a byte (low four bits: which; bit 4: which member;
 * bits 5 to 7: how) and its arguments. KITH_FUZZ_TALLY prints what was reached.
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "tests/fuzz/certified.h"
#include "tests/fuzz/fuzz_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OPERATIONS_MAX = 200, PIECE = 64, COUNT = 10 };
enum { BYTES = (COUNT - 1) * PIECE + 40 };

static const char yaml[] =
    "name: pieces\nseed: 5\npeers: 3\nstop: {time: 60s}\n"
    "model: {kind: quadratic, dim: 24}\ngossip: {algorithm: adpsgd}\n"
    "compute: {step: 1ms}\nsave: never\n";
static const char *const names[FOLDER_FILES] = {"data", "manifest", "a", "b"};
static struct kith_experiment experiment;
static struct certified two[2];
static struct victim *victim;
static struct kith_data_store store;
static uint8_t whole[BYTES];
static uint64_t asked, right, wrong, away, closed, given, refused;

struct program {
    const uint8_t *at, *end;
};

static uint8_t take(struct program *program)
{
    return program->at < program->end ? *program->at++ : 0;
}

static void print_tally(void)
{
    if (getenv("KITH_FUZZ_TALLY") != NULL)
        printf("tally: asked %llu: %llu right, %llu wrong, %llu away, %llu "
               "closed; given %llu; refused %llu\n",
               (unsigned long long)asked, (unsigned long long)right,
               (unsigned long long)wrong, (unsigned long long)away,
               (unsigned long long)closed, (unsigned long long)given,
               (unsigned long long)refused);
}

static void open_store(void)
{
    char error[KITH_DATA_ERROR_BYTES];
    const void *bytes;
    uint8_t *manifest;
    size_t size;
    struct kith_data_config config = {.context = 0};
    for (unsigned i = 0; i < BYTES; i++)
        whole[i] = (uint8_t)(i * 2654435761u >> 13);
    folder_make(names);
    folder_put(0, whole, BYTES);
    folder_path(0, config.path);
    folder_path(1, config.manifest);
    KITH_ASSERT(kith_manifest_make(config.path, PIECE, &manifest, &size,
                                   error) == KITH_OK);
    folder_put(1, manifest, size);
    free(manifest);
    KITH_ASSERT(kith_data_store_open(&config, VICTIM_SELF, VICTIM_PEERS, &store,
                                     error) == KITH_OK);
    KITH_ASSERT(store.manifest.count == COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        KITH_ASSERT(kith_pieces_get(store.pieces, i, &bytes, error) == KITH_OK);
}

static void prepare(void)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    KITH_ASSERT(kith_experiment_parse("pieces", yaml, strlen(yaml), NULL, 0,
                                      &experiment, error) == KITH_OK);
    kith_backend_threads(1);
    certified_open(&two[0], 0);
    certified_open(&two[1], 2);
    open_store();
    KITH_ASSERT(atexit(print_tally) == 0);
}

/* ---- what members say */

/* A frame of a kind, or of none; `how`: another root, a number that is none, a
 * byte less. */
static void send_frame(struct certified *member, uint8_t kind, uint32_t piece,
                       uint8_t how)
{
    uint8_t frame[KITH_PIECE_FRAME_BYTES + 1] = {KITH_FRAME_PIECE, kind};
    memcpy(frame + 2, store.root, 8);
    frame[2] ^= how == 5;
    frame[10] = how == 6 ? 0xff : 0;
    frame[13] = (uint8_t)piece;
    certified_frame(member, frame, sizeof frame - 1 - (how == 7) + (how == 4));
}

/* As an honest member answers, or with a bit changed, or too short. */
static void send_piece(struct certified *member, uint32_t piece, uint8_t how)
{
    uint8_t bytes[PIECE];
    size_t size =
        piece < COUNT ? kith_manifest_size(&store.manifest, piece) : PIECE;
    memset(bytes, how, sizeof bytes);
    if (piece < COUNT)
        memcpy(bytes, whole + piece * PIECE, size);
    bytes[how % PIECE] ^= how >= 5;
    size -= how == 3;
    certified_burst(member, KITH_PIECE_TRANSFER - (how == 2), piece, bytes,
                    size);
}

/* The whole of what the input says, with the first byte of our frames. */
static void send_raw(struct certified *member, struct program *program)
{
    uint8_t frame[40] = {KITH_FRAME_PIECE};
    const size_t size = take(program) % sizeof frame;
    for (size_t i = 1; i < size; i++)
        frame[i] = take(program);
    certified_frame(member, frame, size);
}

/* ---- what the victim does */

static void ask(struct certified *member, uint32_t piece)
{
    struct kith_link *const link = victim_find(victim, member->rank);
    if (link == NULL || link->state != KITH_LINK_OPEN ||
        victim->driver.transport.pieces.link != NULL)
        return;
    KITH_NET_SCOPE(&victim->driver.transport.net);
    asked += kith_piece_ask(link, piece);
}

/* An answer is one of what was asked, or none. */
static void look(void)
{
    struct kith_piece_exchange *const exchange =
        &victim->driver.transport.pieces;
    if (exchange->link != NULL || exchange->answer == KITH_EAGAIN)
        return;
    const bool holds = kith_manifest_holds(
        &store.manifest, exchange->piece, exchange->bytes,
        kith_manifest_size(&store.manifest, exchange->piece));
    KITH_ASSERT(exchange->answer == KITH_OK ||
                exchange->answer == KITH_ENOENT ||
                exchange->answer == KITH_ECLOSED);
    right += exchange->answer == KITH_OK && holds;
    wrong += exchange->answer == KITH_OK && !holds;
    away += exchange->answer == KITH_ENOENT;
    closed += exchange->answer == KITH_ECLOSED;
    exchange->answer = KITH_EAGAIN;
}

static void check_links(void)
{
    const struct kith_transport *const transport = &victim->driver.transport;
    for (const struct kith_link *l = transport->links; l != NULL; l = l->next) {
        KITH_ASSERT(l->pieces.given <= COUNT + KITH_PIECES_AGAIN);
        KITH_ASSERT(l->pieces.missed <= COUNT + KITH_PIECES_AGAIN);
        KITH_ASSERT(!l->pieces.coming || l->pieces.asked);
    }
    KITH_ASSERT(memcmp(kith_pieces_memory(store.pieces), whole, BYTES) == 0);
}

static void operate(struct program *program)
{
    const uint8_t op = take(program), how = op >> 5;
    struct certified *const member = &two[op >> 4 & 1];
    struct kith_piece_exchange *const exchange =
        &victim->driver.transport.pieces;
    switch (op & 15) {
    case 0:
    case 1:
    case 2:
        ask(member, take(program) % COUNT);
        break;
    case 3:
    case 4:
        send_piece(member, exchange->piece, how);
        break;
    case 5:
        send_frame(member, KITH_PIECE_AWAY, exchange->piece, how);
        break;
    case 6:
    case 7:
    case 8:
        send_frame(member, KITH_PIECE_ASK, take(program) % (COUNT + 1), how);
        break;
    case 9:
        send_frame(member, take(program), take(program), how);
        break;
    case 10:
        send_piece(member, take(program), how);
        break;
    case 11:
        send_raw(member, program);
        break;
    case 12: {
        KITH_NET_SCOPE(&victim->driver.transport.net);
        kith_piece_give_up(exchange);
        break;
    }
    case 13:
        victim_break(victim, member->rank);
        member->lost = true;
        break;
    case 14: /* more of them would be half of the time */
        if (member->lost || how == 0)
            certified_connect(member, victim);
        break;
    default: {
        KITH_NET_SCOPE(&victim->driver.transport.net);
        kith_piece_complete(&victim->driver.transport);
    }
    }
    /* Bytes are fed, not polled for: a turn is for what waits in the loop. */
    if (uv_backend_timeout(&victim->driver.loop) == 0)
        victim_turn(victim);
    look();
    check_links();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Behind its end nothing may be written. */
    static uint8_t place[PIECE + 16];
    struct program program = {data, data + size};
    if (two[0].ours == NULL)
        prepare();
    victim = victim_open(&experiment, &two[0].pair.ends[1].identity,
                         &two[0].pair.cluster.trust, false);
    memset(place, 0xa5, sizeof place);
    victim->driver.transport.pieces = (struct kith_piece_exchange){
        .store = &store, .bytes = place, .answer = KITH_EAGAIN};
    for (int i = 0; i < 2; i++) {
        two[i].heard_count = 0;
        certified_connect(&two[i], victim);
    }
    for (unsigned i = 0; i < OPERATIONS_MAX && program.at < program.end; i++)
        operate(&program);
    victim_turn(victim);
    for (int i = 0; i < 2; i++)
        certified_listen(&two[i]);
    for (size_t i = PIECE; i < sizeof place; i++)
        KITH_ASSERT(place[i] == 0xa5);
    given += victim->driver.transport.pieces.given;
    for (unsigned i = 0; i < KITH_REFUSAL_COUNT; i++)
        refused += victim->driver.transport.refusals[i];
    victim_close(victim);
    return 0;
}

/* Goal: nothing that two certified members send behind the cipher, in any
 * order, makes a peer misbehave: no report, no assertion of node, worker,
 * transport or driver, and each model that is not finite is refused and
 * counted. Method: the victim (victim.h) is a whole peer of one of several
 * experiments; the input is a program that says what the two members seal, what
 * becomes of the connections, and when items end and time passes. Most messages
 * answer what the victim said last, changed a little; it is read by sessions of
 * the members' own.
 *
 * Input: byte 0 chooses the experiment, and whether the victim was restarted;
 * then operations, each a byte (low five bits: which; bit 5: which member; bits
 * 6, 7: how) and its arguments. What was reached is printed at the end where
 * KITH_FUZZ_TALLY is set. */
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/wire.h"
#include "tests/fuzz/certified.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OPERATIONS_MAX = 400, BURST_BYTES_MAX = 1024 };

/* Payloads small and large, whole and opaque, of two parties and of rounds. */
static const char *const settings[] = {
    "algorithm: adpsgd, every: 1",
    "algorithm: adpsgd, every: 1, guard: clip",
    "algorithm: adpsgd, every: 1, exchanges: 3",
    "algorithm: dpsgd, every: 1, topology: complete",
    "algorithm: dpsgd, every: 1, topology: complete, guard: clip",
    "algorithm: gosgd, every: 1",
    "algorithm: sgp, every: 1",
    "algorithm: sgp-sync, every: 1, topology: exponential",
    "algorithm: choco, every: 1, topology: ring, compressor: top-k",
    "algorithm: gt, every: 1, topology: complete",
    "algorithm: noloco, every: 2, topology: ring",
    "algorithm: gossip-pga, every: 1",
    "algorithm: relaysgd, every: 1, topology: path",
    "algorithm: gtop-k, every: 1, share: 0.5",
    "algorithm: sync-sgd, every: 1",
    "algorithm: adpsgd, every: 1, wire: bfloat16",
    "algorithm: adpsgd, every: 1, wire: int8, guard: clip",
    "algorithm: sgp, every: 1, wire: bfloat16",
    "algorithm: dpsgd, every: 1, topology: complete, wire: int8",
    "algorithm: adpsgd, every: 1, wire: moniqua4, guard: clip",
    "algorithm: dpsgd, every: 1, topology: complete, wire: moniqua8, "
    "wire_share: 0.5",
    /* A table of 3 x 4 cells. */
    "algorithm: gs-sgd, every: 1, share: 0.1, rows: 3, columns: 2",
    "algorithm: sparse-loco, every: 2, compressor: top-k-2bit, density: 0.3",
    /* Shards alone, and lists and x in their place alone. */
    "algorithm: two-level, every: 1, regions: 1, share: 0.1",
    "algorithm: two-level, every: 1, regions: 3, share: 0.1",
};
enum { SETTINGS = sizeof settings / sizeof *settings };

struct program {
    const uint8_t *at, *end;
};

static struct kith_experiment experiments[SETTINGS];
static struct certified two[2];
static struct victim *victim;
static uint64_t heard[KITH_MESSAGE_COUNT], marks[KITH_MARK_COUNT];
static uint64_t refusals[KITH_REFUSAL_COUNT], models, spoilt, adopted, runs;
static uint64_t steps[SETTINGS], rounds, done;
static uint8_t
    list[KITH_CRL_HEAD_BYTES + KITH_FINGERPRINT_BYTES + KITH_SIGNATURE_BYTES];

/* ---- once */

static void print_tally(void)
{
    if (getenv("KITH_FUZZ_TALLY") == NULL)
        return;
    printf("tally: %llu runs, %llu models with an inbox, %llu of them not "
           "finite, %llu rounds, %llu exchanges done, %llu lists adopted\n",
           (unsigned long long)runs, (unsigned long long)models,
           (unsigned long long)spoilt, (unsigned long long)rounds,
           (unsigned long long)done, (unsigned long long)adopted);
    for (unsigned i = 0; i < KITH_MESSAGE_COUNT; i++)
        printf("tally: message %s %llu\n", kith_message_name(i),
               (unsigned long long)heard[i]);
    for (unsigned i = 0; i < KITH_MARK_COUNT; i++)
        printf("tally: mark %s %llu\n", kith_mark_name(i),
               (unsigned long long)marks[i]);
    for (unsigned i = 0; i < KITH_REFUSAL_COUNT; i++)
        if (refusals[i] > 0)
            printf("tally: refused %s %llu\n", kith_refusal_word(i),
                   (unsigned long long)refusals[i]);
    for (unsigned i = 0; i < SETTINGS; i++)
        printf("tally: steps %llu of \"%s\"\n", (unsigned long long)steps[i],
               settings[i]);
}

/* Rank 2's certificate, and nobody else's. */
static void sign_list(void)
{
    const struct kith_identity *two_s = &two[1].pair.ends[0].identity;
    uint8_t fingerprint[1][KITH_FINGERPRINT_BYTES];
    kith_fingerprint(two_s->certificate, two_s->certificate_bytes,
                     fingerprint[0]);
    struct kith_crl crl = {
        .sequence = 5,
        .issued_s = SESSIONS_UTC_S,
        .count = 1,
        .fingerprints = (const uint8_t(*)[KITH_FINGERPRINT_BYTES])fingerprint};
    memcpy(crl.cluster, two[1].pair.cluster.trust.cluster, KITH_CLUSTER_BYTES);
    KITH_ASSERT(kith_crl_sign(&crl, two[1].pair.cluster.secret, list) ==
                KITH_OK);
}

static void prepare(void)
{
    char yaml[512], error[KITH_EXPERIMENT_ERROR_BYTES];
    for (unsigned i = 0; i < SETTINGS; i++) {
        snprintf(yaml, sizeof yaml,
                 "name: member\nseed: 5\npeers: %u\nstop: {time: 60s}\n"
                 "model: {kind: quadratic, dim: 24}\ngossip: {%s}\n"
                 "compute: {step: 1ms}\nsave: 500ms\n",
                 VICTIM_PEERS, settings[i]);
        if (kith_experiment_parse("member", yaml, strlen(yaml), NULL, 0,
                                  &experiments[i], error) != KITH_OK) {
            fprintf(stderr, "%s: %s\n", settings[i], error);
            abort();
        }
    }
    kith_backend_threads(1);
    certified_open(&two[0], 0);
    certified_open(&two[1], 2);
    sign_list();
    atexit(print_tally);
}

/* ---- the program's numbers; 0 behind its end */

static uint8_t take(struct program *program)
{
    return program->at < program->end ? *program->at++ : 0;
}

static uint64_t take_number(struct program *program)
{
    static const uint64_t far[] = {0, UINT64_MAX, UINT64_C(1) << 63,
                                   UINT64_C(1) << 32, UINT64_MAX / 2};
    const uint8_t byte = take(program);
    return byte < 240 ? byte : far[byte % 5];
}

/* ---- messages */

/* Floats: all alike, of the kind that the byte says; or the byte itself. */
static void fill(uint8_t *payload, size_t length, uint8_t byte)
{
    static const float values[] = {0,      1,        -1,  0.01f,    1e30f,
                                   -1e38f, INFINITY, NAN, 1.2e-38f, 3e38f};
    const float value = values[byte % 10];
    if (byte >= 200) {
        memset(payload, byte, length);
        return;
    }
    for (size_t at = 0; at + sizeof value <= length; at += sizeof value)
        memcpy(payload + at, &value, sizeof value);
}

/* Its size is what was said; bursts longer than ours can be are left out. */
static void send_payload(struct certified *member,
                         const struct kith_message *message, uint8_t byte)
{
    uint8_t payload[BURST_BYTES_MAX];
    if (message->payload_bytes > sizeof payload)
        return;
    fill(payload, sizeof payload, byte);
    certified_burst(member, member->transfers - 1, 0, payload,
                    (size_t)message->payload_bytes);
}

/* `with`: how its payload is filled; 255: it does not come. */
static void say(struct certified *member, struct kith_message *message,
                uint8_t with)
{
    uint8_t frame[KITH_WIRE_BYTES_MAX];
    const bool model = message->kind == KITH_MESSAGE_MODEL;
    for (uint32_t i = 0; i < message->scalar_count; i++)
        if (!isfinite(message->scalars[i]))
            message->scalars[i] = 0;
    if (message->scalar_count > 0)
        message->overlap = 0; /* a header has room for one of them */
    certified_frame(member, frame, kith_wire_pack(message, frame));
    member->transfers += model;
    if (model && with != 255)
        send_payload(member, message, with);
}

/* One field is another; which one the byte says. */
static void change(struct program *program, struct kith_message *message)
{
    static const double odd[] = {0, -1, 0.5, 1e300, 5e-324};
    switch (take(program) % 10) {
    case 0:
        message->kind = take(program) % KITH_MESSAGE_COUNT;
        break;
    case 1:
        message->pattern = take(program) % KITH_PATTERN_COUNT;
        break;
    case 2:
        message->mine = !message->mine;
        break;
    case 3:
        message->id.counter += take_number(program) - 2;
        break;
    case 4:
        message->id.incarnation = (uint32_t)take_number(program);
        break;
    case 5:
        message->step += take_number(program) - 2;
        break;
    case 6:
        message->payload_bytes =
            take_number(program) % (UINT64_C(8) * KITH_PARAMETERS_MAX + 1);
        break;
    case 7:
        message->scalar_count = take(program) % (KITH_SCALARS_MAX + 1);
        break;
    case 8:
        message->scalars[take(program) % KITH_SCALARS_MAX] =
            odd[take(program) % 5];
        break;
    default:
        message->overlap = take(program) % (2u * KITH_EXCHANGES_LIMIT + 1);
    }
}

/* What an honest member says to a message of that kind; `other`: the rarer
 * answer. */
static enum kith_message_kind answer_to(const struct kith_message *message,
                                        bool other)
{
    switch (message->kind) {
    case KITH_MESSAGE_REQUEST:
        return !other                                  ? KITH_MESSAGE_ACCEPT
               : message->pattern == KITH_PATTERN_PULL ? KITH_MESSAGE_MODEL
                                                       : KITH_MESSAGE_BUSY;
    case KITH_MESSAGE_ACCEPT:
        return KITH_MESSAGE_MODEL;
    case KITH_MESSAGE_MODEL:
        return other ? KITH_MESSAGE_ACK : KITH_MESSAGE_MODEL;
    case KITH_MESSAGE_READY:
        return other ? KITH_MESSAGE_ABORT : KITH_MESSAGE_ACK;
    case KITH_MESSAGE_ABORT:
        return other ? KITH_MESSAGE_PROBE : KITH_MESSAGE_ABORTED;
    case KITH_MESSAGE_PROBE:
        return other ? KITH_MESSAGE_ABORT : KITH_MESSAGE_ACK;
    case KITH_MESSAGE_BUSY:
    case KITH_MESSAGE_ACK:
    case KITH_MESSAGE_ABORTED:
    case KITH_MESSAGE_BYE:
    case KITH_MESSAGE_COUNT:
        break;
    }
    return other ? KITH_MESSAGE_READY : KITH_MESSAGE_REQUEST;
}

static void complete(struct kith_message *message)
{
    const struct kith_node_config *config = &victim->driver.config;
    const bool carries = message->kind == KITH_MESSAGE_MODEL ||
                         message->kind == KITH_MESSAGE_REQUEST;
    message->payload_bytes =
        carries
            ? kith_node_payload(config, message->pattern, message->id.counter)
            : 0;
    message->scalar_count = message->kind == KITH_MESSAGE_MODEL
                                ? config->algorithm->scalar_count
                                : 0;
}

static void answer(struct certified *member, struct program *program,
                   uint8_t how)
{
    const uint8_t which = take(program);
    const uint32_t count = member->heard_count < CERTIFIED_HEARD
                               ? member->heard_count
                               : CERTIFIED_HEARD;
    const uint32_t age = which & 7;
    if (count == 0)
        return;
    struct kith_message message =
        member
            ->heard[(member->heard_count - 1 - age % count) % CERTIFIED_HEARD];
    message.mine = !message.mine;
    message.kind = answer_to(&message, (which & 8) != 0);
    complete(&message);
    for (unsigned i = 0; i < (how & 128 ? 1u + (which >> 6) : 0u); i++)
        change(program, &message);
    say(member, &message, how & 64 ? take(program) : which >> 4 & 3);
}

/* A REQUEST, or a MODEL of the round at hand. */
static void begin(struct certified *member, struct program *program,
                  uint8_t how)
{
    struct kith_node_counters counters;
    const enum kith_pattern own = victim->driver.config.algorithm->pattern;
    const uint8_t which = take(program);
    const bool round = own == KITH_PATTERN_ROUND && (which & 1) == 0;
    kith_node_counters(victim->driver.node, &counters);
    struct kith_message message = {
        .kind = round ? KITH_MESSAGE_MODEL : KITH_MESSAGE_REQUEST,
        .pattern = (which & 14) == 14 ? KITH_PATTERN_PULL : own,
        .id = {.counter = round ? counters.rounds + (which >> 7) : which >> 4},
        .mine = !round || member->rank < VICTIM_SELF,
        .overlap = own == KITH_PATTERN_SWAP,
        .step = round ? counters.rounds : counters.steps};
    complete(&message);
    if (how & 128)
        change(program, &message);
    say(member, &message, how & 64 ? take(program) : which >> 4 & 3);
}

/* ---- what is no message */

/* The rest of the input, up to a length. */
static void raw(struct certified *member, struct program *program, uint8_t how,
                bool record)
{
    struct kith_session *s = (struct kith_session *)member->pair.ends[0].memory;
    const size_t left = (size_t)(program->end - program->at);
    size_t n = take(program);
    n = n < left ? n : left > 0 ? left - 1 : 0;
    if (!record)
        certified_frame(member, program->at, n);
    else if (!member->lost &&
             kith_record_seal(s, program->at, n, certified_bytes) == KITH_OK)
        certified_wire(member, n + KITH_RECORD_OVERHEAD, how);
    program->at += n;
}

static void stray_burst(struct certified *member, struct program *program,
                        uint8_t how)
{
    uint8_t payload[BURST_BYTES_MAX];
    const uint64_t transfer =
        how & 64 ? take_number(program) : member->transfers - 1;
    const uint64_t offset = how & 128 ? take_number(program) : 0;
    fill(payload, sizeof payload, take(program));
    certified_burst(member, transfer, offset, payload, 4u * take(program));
}

/* A revocation list: as it is, spoiled or in two parts. */
static void send_list(struct certified *member, struct program *program,
                      uint8_t how)
{
    uint8_t frame[13] = {KITH_FRAME_EDITION}, copy[sizeof list];
    const uint8_t spoilt_at = take(program);
    const size_t first = how & 64 ? take(program) % sizeof list : sizeof list;
    memcpy(copy, list, sizeof list);
    if (how & 128)
        copy[spoilt_at % sizeof list] ^= 1;
    frame[8] = spoilt_at & 7;
    certified_frame(member, frame, sizeof frame); /* our edition */
    frame[8] = 5;
    frame[11] = (uint8_t)(sizeof list >> 8);
    frame[12] = (uint8_t)sizeof list;
    certified_frame(member, frame, sizeof frame);
    certified_burst(member, KITH_LIST_TRANSFER, 0, copy, first);
    certified_burst(member, KITH_LIST_TRANSFER, first, copy + first,
                    sizeof list - first);
}

static void farewell(struct certified *member, struct program *program,
                     uint8_t how)
{
    struct kith_session *s = (struct kith_session *)member->pair.ends[0].memory;
    size_t size = 0;
    if (member->lost)
        return;
    const enum kith_err err =
        how & 128 ? kith_session_seal_notice(s, 1 + take(program) % 11,
                                             certified_bytes,
                                             sizeof certified_bytes, &size)
                  : kith_session_seal_fin(s, certified_bytes,
                                          sizeof certified_bytes, &size);
    if (err == KITH_OK)
        certified_wire(member, size, 0);
}

/* ---- a run */

static void seldom(struct certified *member, struct program *program,
                   uint8_t op)
{
    switch (op & 31) {
    case 24:
        raw(member, program, op, true);
        break;
    case 25:
        stray_burst(member, program, op);
        break;
    case 26:
        send_list(member, program, op);
        break;
    case 27:
        farewell(member, program, op);
        break;
    case 28:
        victim_break(victim, member->rank);
        member->lost = true;
        break;
    case 29:
        certified_connect(member, victim);
        break;
    case 30:
        kith_driver_tell(&victim->driver, KITH_EVENT_LEAVE, KITH_NOBODY);
        break;
    default:
        kith_driver_stop(&victim->driver);
    }
}

static void operate(struct program *program)
{
    const uint8_t op = take(program);
    struct certified *member = &two[op >> 5 & 1];
    const unsigned which = op & 31;
    if (which < 10)
        answer(member, program, op);
    else if (which < 13)
        begin(member, program, op);
    else if (which < 20)
        victim_work(victim);
    else if (which < 22)
        victim_later(victim, (kith_ns)take(program) << (op >> 6) * 8,
                     which == 21);
    else if (which < 24)
        raw(member, program, op, false);
    else
        seldom(member, program, op);
    if (which >= 13)
        victim_turn(victim);
    for (int i = 0; i < 2; i++)
        certified_listen(&two[i]);
}

static void tally(unsigned setting)
{
    struct kith_node_counters counters;
    kith_node_counters(victim->driver.node, &counters);
    runs++;
    steps[setting] += counters.steps;
    rounds += counters.rounds;
    done += counters.done;
    models += victim->models;
    spoilt += victim->spoilt;
    adopted += victim->driver.transport.trust.revoked_sequence > 0;
    for (unsigned i = 0; i < KITH_MESSAGE_COUNT; i++)
        heard[i] += victim->heard[i];
    for (unsigned i = 0; i < KITH_MARK_COUNT; i++)
        marks[i] += victim->marks[i];
    for (unsigned i = 0; i < KITH_REFUSAL_COUNT; i++)
        refusals[i] += victim->driver.transport.refusals[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct program program = {data, data + size};
    if (two[0].ours == NULL)
        prepare();
    const unsigned chosen = take(&program), setting = chosen % SETTINGS;
    victim =
        victim_open(&experiments[setting], &two[0].pair.ends[1].identity,
                    &two[0].pair.cluster.trust, chosen / SETTINGS % 4 == 1);
    for (int i = 0; i < 2; i++) {
        two[i].heard_count = 0;
        certified_connect(&two[i], victim);
    }
    for (unsigned i = 0; i < OPERATIONS_MAX && program.at < program.end; i++)
        operate(&program);
    tally(setting);
    victim_close(victim);
    return 0;
}

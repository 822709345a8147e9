/* Journal entries <-> bytes. See kith/journal.h.
 *
 *   BEGIN   'B' step adopt digest
 *   EVENT   kind time second, and
 *             LINK_UP, LINK_DOWN  from
 *             MESSAGE             from size header; MODEL: flags slot
 * [distance] WORK_DONE           kind finite; TRAIN: loss END     'E' ran
 *
 *   LIE     'L' kind by models
 *
 * Whole numbers are varints (seven bits a byte, low ones first), time and
 * second differences from the entry before, the second's with its sign in the
 * lowest bit; doubles and digests are their 64 bits, little-endian. A training
 * step takes 16 bytes. */
#include <math.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/hash.h"
#include "kith/journal.h"
#include "kith/wire.h"

#define TAG_BEGIN 'B'
#define TAG_END 'E'
#define TAG_LIE 'L'
#define FLAG_FINITE 1u
#define FLAG_DISTANCE 2u
#define FLAG_PART 2u /* of a result */
/* Of a run, and of any clock: beyond them sums could overflow. */
#define TIME_MAX (KITH_NEVER / 4)

_Static_assert(1 + 10 + 10 + 5 + 1 + KITH_WIRE_BYTES_MAX + 1 + 5 + 8 <=
                   KITH_JOURNAL_ENTRY_BYTES_MAX,
               "the longest entry, a model, fits");
_Static_assert(KITH_EVENT_GO_ON < TAG_BEGIN, "tags and kinds are apart");

uint64_t kith_journal_digest(const double *z, size_t dim)
{
    const uint64_t hash = kith_hash_bytes(KITH_HASH_START, z, dim * sizeof *z);
    return hash == 0 ? 1 : hash;
}

/* One function says how each thing stands in the bytes, in both directions:
 * a value is written and returned, or what was read is. */
struct codec {
    uint8_t *out;      /* (KITH_JOURNAL_ENTRY_BYTES_MAX); NULL: reading */
    const uint8_t *in; /* (size) */
    size_t at, size;
    enum kith_err err; /* of reading; KITH_EAGAIN: cut short */
};

static void refuse(struct codec *codec)
{
    if (codec->err == KITH_OK)
        codec->err = KITH_EPARSE;
}

static uint8_t code_byte(struct codec *codec, uint64_t byte)
{
    if (codec->out != NULL) {
        KITH_ASSERT(codec->at < KITH_JOURNAL_ENTRY_BYTES_MAX);
        return codec->out[codec->at++] = (uint8_t)byte;
    }
    if (codec->err == KITH_OK && codec->at == codec->size)
        codec->err = KITH_EAGAIN;
    return codec->err == KITH_OK ? codec->in[codec->at++] : 0;
}

static uint64_t code_whole(struct codec *codec, uint64_t value, uint64_t most)
{
    uint64_t read = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint64_t rest = value >> shift;
        const uint64_t byte =
            code_byte(codec, rest < 0x80 ? rest : (rest & 0x7f) | 0x80);
        read |= (byte & 0x7f) << shift;
        if (shift == 63 && byte > 1)
            break; /* more than 64 bits */
        if (byte < 0x80) {
            if (read > most)
                refuse(codec);
            return codec->err == KITH_OK ? read : 0;
        }
    }
    refuse(codec);
    return 0;
}

static bool code_flag(struct codec *codec, bool flag)
{
    const uint8_t value = code_byte(codec, flag);
    if (value > 1)
        refuse(codec);
    return value == 1;
}

static uint64_t code_bits(struct codec *codec, uint64_t bits)
{
    uint64_t read = 0;
    for (int i = 0; i < 8; i++)
        read |= (uint64_t)code_byte(codec, bits >> 8 * i & 0xff) << 8 * i;
    return read;
}

static double code_double(struct codec *codec, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = code_bits(codec, bits);
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void code_message(struct codec *codec, struct kith_message *message)
{
    uint8_t header[KITH_WIRE_BYTES_MAX];
    size_t size = codec->out != NULL ? kith_wire_pack(message, header) : 0;
    size = code_byte(codec, size);
    if (size > sizeof header)
        refuse(codec);
    for (size_t i = 0; i < size && codec->err == KITH_OK; i++)
        header[i] = code_byte(codec, codec->out != NULL ? header[i] : 0);
    if (codec->err != KITH_OK)
        return;
    if (codec->out == NULL) {
        if (kith_wire_unpack(header, size, message) != KITH_OK) {
            refuse(codec);
            return;
        }
        message->slot = KITH_SLOT_NONE;
    }
    if (message->kind != KITH_MESSAGE_MODEL)
        return;
    const uint8_t flags = code_byte(
        codec, (message->finite ? FLAG_FINITE : 0) |
                   (isnan(message->distance_squared) ? 0 : FLAG_DISTANCE));
    if (flags > (FLAG_FINITE | FLAG_DISTANCE))
        refuse(codec);
    message->finite = (flags & FLAG_FINITE) != 0;
    message->slot = (uint32_t)code_whole(codec, message->slot, UINT32_MAX);
    message->distance_squared =
        flags & FLAG_DISTANCE ? code_double(codec, message->distance_squared)
                              : (double)NAN;
    if (message->slot != KITH_SLOT_NONE && message->slot >= KITH_SLOTS_MAX)
        refuse(codec);
}

static void code_result(struct codec *codec, struct kith_work_result *result)
{
    const uint8_t kind = code_byte(codec, (uint64_t)result->kind);
    if (kind >= KITH_WORK_COUNT) {
        refuse(codec);
        return;
    }
    result->kind = (enum kith_work_kind)kind;
    const uint8_t flags =
        code_byte(codec, (result->finite ? FLAG_FINITE : 0) |
                             (result->is_part ? FLAG_PART : 0));
    if (flags > (FLAG_FINITE | FLAG_PART))
        refuse(codec);
    result->finite = (flags & FLAG_FINITE) != 0;
    result->is_part = (flags & FLAG_PART) != 0;
    if (result->kind == KITH_WORK_TRAIN)
        result->loss = code_double(codec, result->loss);
}

static void code_event(struct codec *codec,
                       const struct kith_journal_clock *clock,
                       struct kith_journal_entry *entry)
{
    struct kith_event *event = &entry->event;
    const int64_t second = event->utc_s - clock->utc_s;
    const uint64_t later =
        code_whole(codec, (uint64_t)(event->now_ns - clock->now_ns), TIME_MAX);
    const uint64_t seconds = code_whole(
        codec,
        second < 0 ? 2 * (uint64_t)(-(second + 1)) + 1 : 2 * (uint64_t)second,
        TIME_MAX);
    event->now_ns = clock->now_ns + (kith_ns)later;
    event->utc_s = clock->utc_s + (seconds & 1 ? -(int64_t)(seconds / 2) - 1
                                               : (int64_t)(seconds / 2));
    if (event->now_ns > TIME_MAX || event->utc_s > TIME_MAX ||
        event->utc_s < -TIME_MAX)
        refuse(codec);
    switch (event->kind) {
    case KITH_EVENT_START:
    case KITH_EVENT_WAKE:
    case KITH_EVENT_LEAVE:
    case KITH_EVENT_PAUSE:
    case KITH_EVENT_GO_ON:
        event->from = KITH_NOBODY;
        break;
    case KITH_EVENT_MESSAGE:
        event->from =
            (kith_id)code_whole(codec, event->from, KITH_PEERS_MAX - 1);
        code_message(codec, &entry->message);
        break;
    case KITH_EVENT_LINK_UP:
    case KITH_EVENT_LINK_DOWN:
        event->from =
            (kith_id)code_whole(codec, event->from, KITH_PEERS_MAX - 1);
        break;
    case KITH_EVENT_WORK_DONE:
        event->from = KITH_NOBODY;
        code_result(codec, &entry->result);
        break;
    }
}

/* Behind the tag; the clock moves where nothing was refused. */
static void code_entry(struct codec *codec, struct kith_journal_clock *clock,
                       struct kith_journal_entry *entry)
{
    switch (entry->kind) {
    case KITH_JOURNAL_BEGIN:
        entry->step = code_whole(codec, entry->step, INT64_MAX);
        entry->adopt = code_flag(codec, entry->adopt);
        entry->digest = code_bits(codec, entry->digest);
        if (codec->err == KITH_OK)
            *clock = (struct kith_journal_clock){0};
        break;
    case KITH_JOURNAL_EVENT:
        code_event(codec, clock, entry);
        if (codec->err == KITH_OK)
            *clock = (struct kith_journal_clock){entry->event.now_ns,
                                                 entry->event.utc_s};
        break;
    case KITH_JOURNAL_END:
        entry->ran = code_flag(codec, entry->ran);
        break;
    case KITH_JOURNAL_LIE:
        entry->lie.kind = (enum kith_lie_kind)code_whole(
            codec, (uint64_t)entry->lie.kind, KITH_LIE_COUNT - 1);
        entry->lie.by = code_double(codec, entry->lie.by);
        entry->lie.models =
            (uint32_t)code_whole(codec, entry->lie.models, UINT32_MAX);
        break;
    }
}

size_t kith_journal_pack(struct kith_journal_clock *clock,
                         const struct kith_journal_entry *entry, uint8_t *bytes)
{
    struct codec codec = {.out = bytes};
    struct kith_journal_entry copy = *entry;
    if (entry->kind == KITH_JOURNAL_EVENT) {
        KITH_ASSERT(entry->event.now_ns >= clock->now_ns);
        if (entry->event.kind == KITH_EVENT_MESSAGE)
            copy.message = *entry->event.message;
        if (entry->event.kind == KITH_EVENT_WORK_DONE)
            copy.result = *entry->event.result;
    }
    code_byte(&codec, entry->kind == KITH_JOURNAL_BEGIN ? TAG_BEGIN
                      : entry->kind == KITH_JOURNAL_END ? TAG_END
                      : entry->kind == KITH_JOURNAL_LIE
                          ? TAG_LIE
                          : (uint64_t)entry->event.kind);
    code_entry(&codec, clock, &copy);
    return codec.at;
}

enum kith_err kith_journal_unpack(struct kith_journal_clock *clock,
                                  const uint8_t *bytes, size_t size,
                                  struct kith_journal_entry *entry,
                                  size_t *used)
{
    struct codec codec = {.in = bytes, .size = size};
    memset(entry, 0, sizeof *entry);
    const uint8_t tag = code_byte(&codec, 0);
    entry->kind = tag == TAG_BEGIN ? KITH_JOURNAL_BEGIN
                  : tag == TAG_END ? KITH_JOURNAL_END
                  : tag == TAG_LIE ? KITH_JOURNAL_LIE
                                   : KITH_JOURNAL_EVENT;
    if (entry->kind == KITH_JOURNAL_EVENT && tag > KITH_EVENT_GO_ON)
        refuse(&codec);
    if (entry->kind == KITH_JOURNAL_EVENT)
        entry->event.kind = (enum kith_event_kind)tag;
    if (codec.err == KITH_OK)
        code_entry(&codec, clock, entry);
    if (codec.err == KITH_OK)
        *used = codec.at;
    return codec.err;
}

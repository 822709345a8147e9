/* Journal entries <-> bytes. See kith/journal.h.
 *
 *   BEGIN   'B' step adopt digest
 *   EVENT   kind time second, and
 *             LINK_UP, LINK_DOWN  from
 *             MESSAGE             from size header; MODEL: flags slot
 * [distance] WORK_DONE           kind finite; TRAIN: loss END     'E' ran
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
#define FLAG_FINITE 1u
#define FLAG_DISTANCE 2u
/* Of a run, and of any clock: beyond them sums could overflow. */
#define TIME_MAX (KITH_NEVER / 4)

_Static_assert(1 + 10 + 10 + 5 + 1 + KITH_WIRE_BYTES_MAX + 1 + 5 + 8 <=
                   KITH_JOURNAL_ENTRY_BYTES_MAX,
               "the longest entry, a model, fits");
_Static_assert(KITH_EVENT_LEAVE < TAG_BEGIN, "tags and kinds are apart");

uint64_t kith_journal_digest(const double *z, size_t dim)
{
    const uint64_t hash = kith_hash_bytes(KITH_HASH_START, z, dim * sizeof *z);
    return hash == 0 ? 1 : hash;
}

/* ---- out */

struct writer {
    uint8_t *bytes;
    size_t at;
};

static void put(struct writer *writer, uint64_t byte)
{
    KITH_ASSERT(writer->at < KITH_JOURNAL_ENTRY_BYTES_MAX);
    writer->bytes[writer->at++] = (uint8_t)byte;
}

static void put_whole(struct writer *writer, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put(writer, value | 0x80);
    put(writer, value);
}

static void put_bits(struct writer *writer, uint64_t bits)
{
    for (int i = 0; i < 8; i++)
        put(writer, bits >> 8 * i & 0xff);
}

static void put_double(struct writer *writer, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_bits(writer, bits);
}

static void put_message(struct writer *writer,
                        const struct kith_message *message)
{
    uint8_t header[KITH_WIRE_BYTES_MAX];
    const size_t size = kith_wire_pack(message, header);
    put(writer, size);
    for (size_t i = 0; i < size; i++)
        put(writer, header[i]);
    if (message->kind != KITH_MESSAGE_MODEL)
        return;
    const bool measured = !isnan(message->distance_squared);
    put(writer,
        (message->finite ? FLAG_FINITE : 0) | (measured ? FLAG_DISTANCE : 0));
    put_whole(writer, message->slot);
    if (measured)
        put_double(writer, message->distance_squared);
}

static void put_event(struct writer *writer, struct kith_journal_clock *clock,
                      const struct kith_event *event)
{
    const int64_t seconds = event->utc_s - clock->utc_s;
    KITH_ASSERT(event->now_ns >= clock->now_ns);
    put(writer, (uint64_t)event->kind);
    put_whole(writer, (uint64_t)(event->now_ns - clock->now_ns));
    put_whole(writer, seconds < 0 ? 2 * (uint64_t)(-(seconds + 1)) + 1
                                  : 2 * (uint64_t)seconds);
    *clock = (struct kith_journal_clock){event->now_ns, event->utc_s};
    switch (event->kind) {
    case KITH_EVENT_START:
    case KITH_EVENT_WAKE:
    case KITH_EVENT_LEAVE:
        break;
    case KITH_EVENT_LINK_UP:
    case KITH_EVENT_LINK_DOWN:
        put_whole(writer, event->from);
        break;
    case KITH_EVENT_MESSAGE:
        put_whole(writer, event->from);
        put_message(writer, event->message);
        break;
    case KITH_EVENT_WORK_DONE:
        put(writer, (uint64_t)event->result->kind);
        put(writer, event->result->finite);
        if (event->result->kind == KITH_WORK_TRAIN)
            put_double(writer, event->result->loss);
        break;
    }
}

size_t kith_journal_pack(struct kith_journal_clock *clock,
                         const struct kith_journal_entry *entry, uint8_t *bytes)
{
    struct writer writer = {.bytes = bytes};
    switch (entry->kind) {
    case KITH_JOURNAL_BEGIN:
        *clock = (struct kith_journal_clock){0};
        put(&writer, TAG_BEGIN);
        put_whole(&writer, entry->step);
        put(&writer, entry->adopt);
        put_bits(&writer, entry->digest);
        break;
    case KITH_JOURNAL_EVENT:
        put_event(&writer, clock, &entry->event);
        break;
    case KITH_JOURNAL_END:
        put(&writer, TAG_END);
        put(&writer, entry->ran);
        break;
    }
    return writer.at;
}

/* ---- in */

struct reader {
    const uint8_t *bytes;
    size_t at, size;
    enum kith_err err; /* KITH_EAGAIN: cut short */
};

static void refuse(struct reader *reader)
{
    if (reader->err == KITH_OK)
        reader->err = KITH_EPARSE;
}

static uint8_t get(struct reader *reader)
{
    if (reader->err == KITH_OK && reader->at == reader->size)
        reader->err = KITH_EAGAIN;
    return reader->err == KITH_OK ? reader->bytes[reader->at++] : 0;
}

static uint64_t get_whole(struct reader *reader, uint64_t most)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint64_t byte = get(reader);
        value |= (byte & 0x7f) << shift;
        if (shift == 63 && byte > 1)
            break; /* more than 64 bits */
        if (byte < 0x80) {
            if (value > most)
                refuse(reader);
            return reader->err == KITH_OK ? value : 0;
        }
    }
    refuse(reader);
    return 0;
}

static bool get_flag(struct reader *reader)
{
    const uint8_t value = get(reader);
    if (value > 1)
        refuse(reader);
    return value == 1;
}

static uint64_t get_bits(struct reader *reader)
{
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits |= (uint64_t)get(reader) << 8 * i;
    return bits;
}

static double get_double(struct reader *reader)
{
    const uint64_t bits = get_bits(reader);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void get_message(struct reader *reader, struct kith_message *message)
{
    uint8_t header[KITH_WIRE_BYTES_MAX];
    const size_t size = get(reader);
    if (size > sizeof header)
        refuse(reader);
    for (size_t i = 0; i < size && reader->err == KITH_OK; i++)
        header[i] = get(reader);
    if (reader->err != KITH_OK)
        return;
    if (kith_wire_unpack(header, size, message) != KITH_OK) {
        refuse(reader);
        return;
    }
    message->slot = KITH_SLOT_NONE;
    if (message->kind != KITH_MESSAGE_MODEL)
        return;
    const uint8_t flags = get(reader);
    if (flags > (FLAG_FINITE | FLAG_DISTANCE))
        refuse(reader);
    message->finite = (flags & FLAG_FINITE) != 0;
    message->slot = (uint32_t)get_whole(reader, UINT32_MAX);
    message->distance_squared =
        flags & FLAG_DISTANCE ? get_double(reader) : (double)NAN;
    if (message->slot != KITH_SLOT_NONE && message->slot >= KITH_SLOTS_MAX)
        refuse(reader);
}

static void get_result(struct reader *reader, struct kith_work_result *result)
{
    const uint8_t kind = get(reader);
    if (kind >= KITH_WORK_COUNT) {
        refuse(reader);
        return;
    }
    result->kind = (enum kith_work_kind)kind;
    result->finite = get_flag(reader);
    if (result->kind == KITH_WORK_TRAIN)
        result->loss = get_double(reader);
}

static void get_event(struct reader *reader, uint8_t kind,
                      const struct kith_journal_clock *clock,
                      struct kith_journal_entry *entry)
{
    struct kith_event *event = &entry->event;
    event->kind = (enum kith_event_kind)kind;
    event->now_ns = clock->now_ns + (kith_ns)get_whole(reader, TIME_MAX);
    const uint64_t seconds = get_whole(reader, TIME_MAX);
    event->utc_s = clock->utc_s + (seconds & 1 ? -(int64_t)(seconds / 2) - 1
                                               : (int64_t)(seconds / 2));
    event->from = KITH_NOBODY;
    if (event->now_ns > TIME_MAX || event->utc_s > TIME_MAX ||
        event->utc_s < -TIME_MAX)
        refuse(reader);
    switch (event->kind) {
    case KITH_EVENT_START:
    case KITH_EVENT_WAKE:
    case KITH_EVENT_LEAVE:
        break;
    case KITH_EVENT_MESSAGE:
        event->from = (kith_id)get_whole(reader, KITH_PEERS_MAX - 1);
        get_message(reader, &entry->message);
        break;
    case KITH_EVENT_LINK_UP:
    case KITH_EVENT_LINK_DOWN:
        event->from = (kith_id)get_whole(reader, KITH_PEERS_MAX - 1);
        break;
    case KITH_EVENT_WORK_DONE:
        get_result(reader, &entry->result);
        break;
    }
}

enum kith_err kith_journal_unpack(struct kith_journal_clock *clock,
                                  const uint8_t *bytes, size_t size,
                                  struct kith_journal_entry *entry,
                                  size_t *used)
{
    struct reader reader = {.bytes = bytes, .size = size};
    memset(entry, 0, sizeof *entry);
    const uint8_t tag = get(&reader);
    if (tag == TAG_BEGIN) {
        entry->kind = KITH_JOURNAL_BEGIN;
        entry->step = get_whole(&reader, INT64_MAX);
        entry->adopt = get_flag(&reader);
        entry->digest = get_bits(&reader);
    } else if (tag == TAG_END) {
        entry->kind = KITH_JOURNAL_END;
        entry->ran = get_flag(&reader);
    } else if (tag <= KITH_EVENT_LEAVE) {
        entry->kind = KITH_JOURNAL_EVENT;
        get_event(&reader, tag, clock, entry);
    } else {
        refuse(&reader);
    }
    if (reader.err != KITH_OK)
        return reader.err;
    *used = reader.at;
    if (entry->kind == KITH_JOURNAL_BEGIN)
        *clock = (struct kith_journal_clock){0};
    if (entry->kind == KITH_JOURNAL_EVENT)
        *clock = (struct kith_journal_clock){entry->event.now_ns,
                                             entry->event.utc_s};
    return KITH_OK;
}

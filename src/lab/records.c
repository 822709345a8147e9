/* Records between a peer's process and the launcher: records.h has the layout,
 * and the tables below what stands in each kind. */
#include "src/lab/records.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include <msgpack.h>

#include "kith/assert.h"
#include "kith/lab.h"

_Static_assert(KITH_JOURNAL_PEERS_MAX == KITH_LAB_PEERS_MAX,
               "a journal is one of a lab");
/* Array, version, kind; peer and incarnation; time. */
#define HEADER_BYTES (3 + 2 + 2 * 5 + 9)
_Static_assert(HEADER_BYTES + 5 + 3 + KITH_JOURNAL_PART_BYTES <=
                   LAB_RECORD_BYTES,
               "a part of the journal fits");
_Static_assert(sizeof(enum kith_mark_kind) == sizeof(uint32_t), "EVENT");
_Static_assert(HEADER_BYTES + 40 * 9 <= LAB_RECORD_BYTES, "a row fits");
_Static_assert(HEADER_BYTES + 14 * 9 + 2 + LAB_TEXT_BYTES <= LAB_RECORD_BYTES,
               "a last record fits");

/* What a field of a record is, and what the reader lets through. */
enum field_kind {
    U32,
    WHOLE,   /* uint64_t */
    COUNT,   /* below 2^63, so that SQLite holds it */
    REAL,    /* a diverging run has an infinite loss, and that is worth a row */
    MEASURE, /* NaN: not measured; nothing infinite or negative */
    SHARE,   /* and not above 1 */
    FLAG,
    PEER,  /* a rank, or nobody's */
    PEERS, /* how many */
    EVENT,
    FAILURE,
    TEXT,
    PART,
    ALWAYS = COUNT, /* kinds of a series' columns */
    KNOWN = COUNT,
};

struct field {
    enum field_kind kind;
    size_t offset; /* in struct lab_record */
};

#define AT(name) offsetof(struct lab_record, as.name)
#define SKIP(...)
#define TAKE(...) __VA_ARGS__,
#define OWN_row TAKE
#define OWN_speed SKIP
#define SPEED_row SKIP
#define SPEED_speed TAKE

static const struct field header[] = {
    {PEER, offsetof(struct lab_record, peer)},
    {U32, offsetof(struct lab_record, incarnation)},
    {COUNT, offsetof(struct lab_record, time_ns)}};
static const struct field ready[] = {{COUNT, AT(ready.dim)},
                                     {COUNT, AT(ready.buffers)}};
static const struct field row[] = {
#define KITH_SERIES_COLUMN(place, schema, kind, name, add, chart)              \
    OWN_##place({kind, AT(row.name)})
#include "kith/series.def"
    {FLAG, AT(row.speed.measured)},
#define KITH_SERIES_COLUMN(place, schema, kind, name, add, chart)              \
    SPEED_##place({kind, AT(row.speed.name)})
#include "kith/series.def"
};
static const struct field event[] = {
    {EVENT, AT(mark.kind)},       {PEER, AT(mark.peer)},
    {WHOLE, AT(mark.id.counter)}, {U32, AT(mark.id.incarnation)},
    {FLAG, AT(mark.initiator)},   {WHOLE, AT(mark.value)},
    {REAL, AT(mark.sum)}};
static const struct field line[] = {{TEXT, AT(line)}};
static const struct field final[] = {{FAILURE, AT(final.err)},
                                     {FLAG, AT(final.finished)},
                                     {FLAG, AT(final.interrupted)},
                                     {FLAG, AT(final.saved)},
                                     {COUNT, AT(final.dropped)},
                                     {U32, AT(final.points)},
                                     {U32, AT(final.left_out)},
                                     {U32, AT(final.rows)},
                                     {FLAG, AT(final.speed.measured)},
#define KITH_SERIES_COLUMN(place, schema, kind, name, add, chart)              \
    SPEED_##place({kind, AT(final.speed.name)})
#include "kith/series.def"
                                     {TEXT, AT(final.text)}};
static const struct field score[] = {{COUNT, AT(score.step)},
                                     {PEERS, AT(score.peers)},
                                     {REAL, AT(score.loss)},
                                     {SHARE, AT(score.accuracy)},
                                     {REAL, AT(score.consensus_distance)},
                                     {REAL, AT(score.correlation)}};
static const struct field journal[] = {{U32, AT(journal.part)},
                                       {PART, AT(journal)}};

static const struct field pieces[] = {
    {COUNT, AT(pieces.count)},   {COUNT, AT(pieces.origin)},
    {COUNT, AT(pieces.peers)},   {COUNT, AT(pieces.disk)},
    {COUNT, AT(pieces.refused)}, {COUNT, AT(pieces.unkept)}};

static const struct field quiet[] = {{FLAG, AT(quiet)}};

#define FIELDS(table)                                                          \
    {                                                                          \
        table, sizeof(table) / sizeof *(table)                                 \
    }
static const struct {
    const struct field *fields;
    uint32_t count;
} bodies[LAB_RECORD_KINDS] = {[LAB_RECORD_READY] = FIELDS(ready),
                              [LAB_RECORD_ROW] = FIELDS(row),
                              [LAB_RECORD_MARK] = FIELDS(event),
                              [LAB_RECORD_LINE] = FIELDS(line),
                              [LAB_RECORD_FINAL] = FIELDS(final),
                              [LAB_RECORD_SCORE] = FIELDS(score),
                              [LAB_RECORD_JOURNAL] = FIELDS(journal),
                              [LAB_RECORD_PIECES] = FIELDS(pieces),
                              [LAB_RECORD_QUIET] = FIELDS(quiet)};
#define HEADER_COUNT (sizeof header / sizeof *header)

/* The largest of whole numbers that are let through, and the bounds of reals;
 * 0: another kind of value. */
static const uint64_t whole_most[PART + 1] = {
    [U32] = UINT32_MAX,       [PEER] = UINT32_MAX,
    [PEERS] = KITH_PEERS_MAX, [EVENT] = KITH_MARK_COUNT - 1,
    [WHOLE] = UINT64_MAX,     [COUNT] = INT64_MAX};
static const double real_low[PART + 1] = {[REAL] = -INFINITY};
static const double real_high[PART + 1] = {
    [REAL] = INFINITY, [MEASURE] = DBL_MAX, [SHARE] = 1};

/* ---- out */

struct writer {
    uint8_t *bytes; /* (LAB_RECORD_BYTES) */
    size_t at;
};

static int write_bytes(void *data, const char *bytes, size_t size)
{
    struct writer *writer = data;
    KITH_ASSERT(size <= LAB_RECORD_BYTES - writer->at);
    memcpy(writer->bytes + writer->at, bytes, size);
    writer->at += size;
    return 0;
}

static void put_text(msgpack_packer *packer, const char *text)
{
    char clean[LAB_TEXT_BYTES];
    size_t length = 0;
    for (; length < sizeof clean - 1 && text[length] != '\0'; length++) {
        const unsigned char c = (unsigned char)text[length];
        clean[length] = c < 0x20 || c == 0x7f ? ' ' : text[length];
    }
    msgpack_pack_str_with_body(packer, clean, length);
}

static void put(msgpack_packer *packer, const struct field *field,
                const struct lab_record *record)
{
    const void *value = (const char *)record + field->offset;
    const struct lab_part *part = value;
    switch (field->kind) {
    case U32:
    case PEER:
    case PEERS:
    case EVENT: /* enum kith_mark_kind, as wide */
        msgpack_pack_uint32(packer, *(const uint32_t *)value);
        break;
    case WHOLE:
    case COUNT:
        msgpack_pack_uint64(packer, *(const uint64_t *)value);
        break;
    case REAL:
    case MEASURE:
    case SHARE:
        msgpack_pack_double(packer, *(const double *)value);
        break;
    case FLAG:
        (*(const bool *)value ? msgpack_pack_true : msgpack_pack_false)(packer);
        break;
    case FAILURE:
        msgpack_pack_uint32(packer, (uint32_t) - *(const enum kith_err *)value);
        break;
    case TEXT:
        put_text(packer, value);
        break;
    case PART:
        KITH_ASSERT(part->size > 0 && part->size <= KITH_JOURNAL_PART_BYTES);
        msgpack_pack_bin_with_body(packer, part->bytes, part->size);
        break;
    }
}

void kith_lab_record_pack(const struct lab_record *record,
                          uint8_t bytes[LAB_RECORD_BYTES])
{
    KITH_ASSERT(record->kind < LAB_RECORD_KINDS);
    struct writer writer = {.bytes = bytes};
    msgpack_packer packer;
    memset(bytes, 0, LAB_RECORD_BYTES);
    msgpack_packer_init(&packer, &writer, write_bytes);
    msgpack_pack_array(&packer, 2 + HEADER_COUNT + bodies[record->kind].count);
    msgpack_pack_uint8(&packer, LAB_RECORD_VERSION);
    msgpack_pack_uint8(&packer, (uint8_t)record->kind);
    for (size_t i = 0; i < HEADER_COUNT; i++)
        put(&packer, &header[i], record);
    for (uint32_t i = 0; i < bodies[record->kind].count; i++)
        put(&packer, &bodies[record->kind].fields[i], record);
}

/* ---- in */

struct reader {
    const uint8_t *bytes; /* (LAB_RECORD_BYTES) */
    size_t at;
    bool bad;
};

/* The next value. Arrays and maps are refused by their first byte: msgpack-c
 * would reserve as much as they claim to hold. */
static msgpack_object next(struct reader *reader, msgpack_object_type type)
{
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    const uint8_t first =
        reader->at < LAB_RECORD_BYTES ? reader->bytes[reader->at] : 0xdd;
    const bool container =
        (first >= 0x80 && first < 0xa0) || (first >= 0xdc && first < 0xe0);
    if (!reader->bad &&
        (container ||
         msgpack_unpack_next(&unpacked, (const char *)reader->bytes,
                             LAB_RECORD_BYTES,
                             &reader->at) != MSGPACK_UNPACK_SUCCESS))
        reader->bad = true;
    const msgpack_object value = unpacked.data; /* has nothing of its own */
    msgpack_unpacked_destroy(&unpacked);
    reader->bad = reader->bad || value.type != type;
    return reader->bad ? (msgpack_object){.type = MSGPACK_OBJECT_NIL} : value;
}

static uint64_t get_whole(struct reader *reader, uint64_t most)
{
    const uint64_t value =
        next(reader, MSGPACK_OBJECT_POSITIVE_INTEGER).via.u64;
    reader->bad = reader->bad || value > most;
    return reader->bad ? 0 : value;
}

static double get_real(struct reader *reader, double low, double high)
{
    const double value = next(reader, MSGPACK_OBJECT_FLOAT64).via.f64;
    reader->bad = reader->bad || value < low || value > high;
    return value;
}

static enum kith_err get_err(struct reader *reader)
{
    const int32_t value = -(int32_t)get_whole(reader, INT32_MAX);
    switch (value) {
#define KITH_X(name, number, text) case name:
        KITH_ERRORS(KITH_X)
#undef KITH_X
        return (enum kith_err)value;
    }
    reader->bad = true;
    return KITH_EPARSE;
}

static void get_text(struct reader *reader, char *text)
{
    const msgpack_object_str value = next(reader, MSGPACK_OBJECT_STR).via.str;
    reader->bad = reader->bad || value.size >= LAB_TEXT_BYTES;
    for (uint32_t i = 0; !reader->bad && i < value.size; i++) {
        text[i] = value.ptr[i];
        reader->bad = (unsigned char)text[i] < 0x20 || text[i] == 0x7f;
    }
}

static void get_part(struct reader *reader, struct lab_part *part)
{
    const msgpack_object_bin value = next(reader, MSGPACK_OBJECT_BIN).via.bin;
    if (reader->bad || value.size == 0 ||
        value.size > KITH_JOURNAL_PART_BYTES) {
        reader->bad = true;
        return;
    }
    part->size = value.size;
    memcpy(part->bytes, value.ptr, value.size);
}

static void get(struct reader *reader, const struct field *field,
                struct lab_record *record)
{
    void *value = (char *)record + field->offset;
    switch (field->kind) {
    case U32:
    case PEER:
    case PEERS:
    case EVENT:
        *(uint32_t *)value =
            (uint32_t)get_whole(reader, whole_most[field->kind]);
        reader->bad = reader->bad || (field->kind == PEER &&
                                      *(kith_id *)value >= KITH_PEERS_MAX &&
                                      *(kith_id *)value != KITH_NOBODY);
        break;
    case WHOLE:
    case COUNT:
        *(uint64_t *)value = get_whole(reader, whole_most[field->kind]);
        break;
    case REAL:
    case MEASURE:
    case SHARE:
        *(double *)value =
            get_real(reader, real_low[field->kind], real_high[field->kind]);
        break;
    case FLAG:
        *(bool *)value = next(reader, MSGPACK_OBJECT_BOOLEAN).via.boolean;
        break;
    case FAILURE:
        *(enum kith_err *)value = get_err(reader);
        break;
    case TEXT:
        get_text(reader, value);
        break;
    case PART:
        get_part(reader, value);
        break;
    }
}

enum kith_err kith_lab_record_unpack(const uint8_t bytes[LAB_RECORD_BYTES],
                                     struct lab_record *record)
{
    /* Behind the array's head, which the comparison below checks. */
    struct reader reader = {.bytes = bytes, .at = bytes[0] == 0xdc ? 3 : 1};
    uint8_t again[LAB_RECORD_BYTES];
    memset(record, 0, sizeof *record);
    reader.bad = bytes[0] != 0xdc && bytes[0] >> 4 != 0x9;
    const uint64_t version = get_whole(&reader, UINT8_MAX);
    if (!reader.bad && version != LAB_RECORD_VERSION)
        return KITH_EVERSION;
    record->kind =
        (enum lab_record_kind)get_whole(&reader, LAB_RECORD_KINDS - 1);
    for (size_t i = 0; i < HEADER_COUNT; i++)
        get(&reader, &header[i], record);
    for (uint32_t i = 0; i < bodies[record->kind].count; i++)
        get(&reader, &bodies[record->kind].fields[i], record);
    if (reader.bad || record->peer == KITH_NOBODY)
        return KITH_EPARSE;
    if (record->kind == LAB_RECORD_ROW) {
        record->as.row.peer = record->peer;
        record->as.row.time_ns = record->time_ns;
    }
    /* One spelling is ours: shortest numbers, zeros behind the last. */
    kith_lab_record_pack(record, again);
    return memcmp(bytes, again, sizeof again) == 0 ? KITH_OK : KITH_EPARSE;
}

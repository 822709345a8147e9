/* Records between a peer's process and the launcher: records.h has the layout.
 * Fields are written one by one, never as a struct: the format has no padding,
 * and does not change when a struct does. */
#include "src/lab/records.h"

#include <math.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/lab.h"

_Static_assert(sizeof(double) == 8, "doubles travel as 64 bits");
_Static_assert(LAB_RECORD_HEADER + 64 + 60 + LAB_TEXT_BYTES < LAB_RECORD_BYTES,
               "the longest body fits");
_Static_assert(LAB_RECORD_HEADER + 8 + KITH_JOURNAL_PART_BYTES <=
                   LAB_RECORD_BYTES,
               "a part of the journal fits");
_Static_assert(KITH_JOURNAL_PEERS_MAX == KITH_LAB_PEERS_MAX,
               "a journal is one of a lab");

/* A cursor over the body: `at` never passes LAB_RECORD_BYTES. */
struct writer {
    uint8_t *bytes;
    size_t at;
};
struct reader {
    const uint8_t *bytes;
    size_t at, end;
    bool bad;
};

static void put32(struct writer *writer, uint32_t value)
{
    KITH_ASSERT(writer->at + 4 <= LAB_RECORD_BYTES);
    for (int i = 0; i < 4; i++)
        writer->bytes[writer->at++] = (uint8_t)(value >> 8 * i);
}

static void put64(struct writer *writer, uint64_t value)
{
    put32(writer, (uint32_t)value);
    put32(writer, (uint32_t)(value >> 32));
}

static void put_double(struct writer *writer, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put64(writer, bits);
}

/* Fixed width, zero-padded; the last byte is always zero. */
static void put_text(struct writer *writer, const char *text)
{
    KITH_ASSERT(writer->at + LAB_TEXT_BYTES <= LAB_RECORD_BYTES);
    uint8_t *out = writer->bytes + writer->at;
    for (size_t i = 0; i < LAB_TEXT_BYTES - 1 && text[i] != 0; i++) {
        const unsigned char c = (unsigned char)text[i];
        out[i] = c < 0x20 || c == 0x7f ? ' ' : c;
    }
    writer->at += LAB_TEXT_BYTES;
}

static uint32_t get32(struct reader *reader)
{
    if (reader->bad || reader->end - reader->at < 4) {
        reader->bad = true;
        return 0;
    }
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value |= (uint32_t)reader->bytes[reader->at++] << 8 * i;
    return value;
}

static uint64_t get64(struct reader *reader)
{
    const uint64_t low = get32(reader);
    return low | (uint64_t)get32(reader) << 32;
}

static double get_double(struct reader *reader)
{
    const uint64_t bits = get64(reader);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Measured spans and losses: NaN means not measured; an infinite or negative
 * one does not exist. */
static double get_measure(struct reader *reader)
{
    const double value = get_double(reader);
    if (isinf(value) || value < 0)
        reader->bad = true;
    return value;
}

/* Counters of a run: below 2^63, so that SQLite holds them. */
static uint64_t get_count(struct reader *reader)
{
    const uint64_t value = get64(reader);
    if (value > INT64_MAX)
        reader->bad = true;
    return value;
}

static bool get_flag(struct reader *reader)
{
    const uint32_t value = get32(reader);
    if (value > 1)
        reader->bad = true;
    return value == 1;
}

static void get_text(struct reader *reader, char *text)
{
    if (reader->bad || reader->end - reader->at < LAB_TEXT_BYTES) {
        reader->bad = true;
        return;
    }
    memcpy(text, reader->bytes + reader->at, LAB_TEXT_BYTES);
    reader->at += LAB_TEXT_BYTES;
    bool ended = false;
    for (size_t i = 0; i < LAB_TEXT_BYTES; i++) {
        const unsigned char c = (unsigned char)text[i];
        ended = ended || c == 0;
        if (ended ? c != 0 : c < 0x20 || c == 0x7f)
            reader->bad = true;
    }
    if (!ended)
        reader->bad = true;
}

static void put_speed(struct writer *writer, const struct kith_speed *speed)
{
    put32(writer, speed->measured);
    put_double(writer, speed->samples_per_s);
    put_double(writer, speed->tokens_per_s);
    put_double(writer, speed->flop_per_s);
    put_double(writer, speed->mfu);
    put_double(writer, speed->data_wait_s);
    put_double(writer, speed->exchange_overlap);
    put64(writer, speed->memory_bytes);
}

static void get_speed(struct reader *reader, struct kith_speed *speed)
{
    speed->measured = get_flag(reader);
    speed->samples_per_s = get_measure(reader);
    speed->tokens_per_s = get_measure(reader);
    speed->flop_per_s = get_measure(reader);
    speed->mfu = get_measure(reader);
    speed->data_wait_s = get_measure(reader);
    speed->exchange_overlap = get_measure(reader);
    speed->memory_bytes = get_count(reader);
    if (speed->exchange_overlap > 1)
        reader->bad = true;
}

static void put_row(struct writer *writer, const struct kith_row *row)
{
    put64(writer, row->step);
    put64(writer, row->samples);
    put_double(writer, row->loss);
    put_double(writer, row->accuracy);
    put_double(writer, row->consensus_distance);
    put64(writer, row->bytes_sent);
    put64(writer, row->bytes_received);
    put_double(writer, row->waiting_s);
    put_double(writer, row->staleness);
    put_double(writer, row->staleness_max);
    put64(writer, row->received);
    put_double(writer, row->training_s);
    put64(writer, row->attempts);
    put64(writer, row->done);
    put64(writer, row->failed);
    put64(writer, row->refused);
    put64(writer, row->skipped);
    put64(writer, row->torn);
    put_double(writer, row->cpu_train_s);
    put_double(writer, row->cpu_aead_s);
    put_double(writer, row->cpu_socket_s);
    put_double(writer, row->cpu_other_s);
    put_speed(writer, &row->speed);
}

/* A diverging run has an infinite loss, and that is worth a row. */
static void get_row(struct reader *reader, struct kith_row *row)
{
    row->step = get_count(reader);
    row->samples = get_count(reader);
    row->loss = get_double(reader);
    row->accuracy = get_measure(reader);
    row->consensus_distance = get_double(reader);
    row->bytes_sent = get_count(reader);
    row->bytes_received = get_count(reader);
    row->waiting_s = get_measure(reader);
    row->staleness = get_measure(reader);
    row->staleness_max = get_measure(reader);
    row->received = get_count(reader);
    row->training_s = get_measure(reader);
    row->attempts = get_count(reader);
    row->done = get_count(reader);
    row->failed = get_count(reader);
    row->refused = get_count(reader);
    row->skipped = get_count(reader);
    row->torn = get_count(reader);
    row->cpu_train_s = get_measure(reader);
    row->cpu_aead_s = get_measure(reader);
    row->cpu_socket_s = get_measure(reader);
    row->cpu_other_s = get_measure(reader);
    get_speed(reader, &row->speed);
}

static void put_mark(struct writer *writer, const struct kith_mark *mark)
{
    put32(writer, (uint32_t)mark->kind);
    put32(writer, mark->peer);
    put64(writer, mark->id.counter);
    put32(writer, mark->id.incarnation);
    put32(writer, mark->initiator);
    put64(writer, mark->value);
    put_double(writer, mark->sum);
}

static void get_mark(struct reader *reader, struct kith_mark *mark)
{
    const uint32_t kind = get32(reader);
    if (kind >= KITH_MARK_COUNT)
        reader->bad = true;
    else
        mark->kind = (enum kith_mark_kind)kind;
    mark->peer = get32(reader);
    if (mark->peer >= KITH_PEERS_MAX && mark->peer != KITH_NOBODY)
        reader->bad = true;
    mark->id.counter = get64(reader);
    mark->id.incarnation = get32(reader);
    mark->initiator = get_flag(reader);
    mark->value = get64(reader);
    mark->sum = get_double(reader);
}

static void put_final(struct writer *writer, const struct lab_final *final)
{
    put32(writer, (uint32_t)-final->err);
    put32(writer, final->finished);
    put32(writer, final->interrupted);
    put32(writer, final->saved);
    put64(writer, final->connected);
    put64(writer, final->closed);
    put64(writer, final->refused);
    put64(writer, final->dial_failures);
    put64(writer, final->dropped);
    put_double(writer, final->merge_s);
    put_speed(writer, &final->speed);
    put_text(writer, final->text);
}

static enum kith_err get_err(struct reader *reader)
{
    const int32_t value = -(int32_t)(get32(reader) & INT32_MAX);
    switch ((enum kith_err)value) {
#define KITH_X(name, number, text) case name:
        KITH_ERRORS(KITH_X)
#undef KITH_X
        return (enum kith_err)value;
    }
    reader->bad = true;
    return KITH_EPARSE;
}

static void get_final(struct reader *reader, struct lab_final *final)
{
    final->err = get_err(reader);
    final->finished = get_flag(reader);
    final->interrupted = get_flag(reader);
    final->saved = get_flag(reader);
    final->connected = get_count(reader);
    final->closed = get_count(reader);
    final->refused = get_count(reader);
    final->dial_failures = get_count(reader);
    final->dropped = get_count(reader);
    final->merge_s = get_measure(reader);
    get_speed(reader, &final->speed);
    get_text(reader, final->text);
}

static void put_score(struct writer *writer, const struct lab_score *score)
{
    put64(writer, score->step);
    put32(writer, score->peers);
    put_double(writer, score->loss);
    put_double(writer, score->accuracy);
    put_double(writer, score->consensus_distance);
    put_double(writer, score->correlation);
}

static void get_score(struct reader *reader, struct lab_score *score)
{
    score->step = get_count(reader);
    score->peers = get32(reader);
    score->loss = get_double(reader);
    score->accuracy = get_measure(reader);
    score->consensus_distance = get_double(reader);
    score->correlation = get_double(reader);
    if (score->accuracy > 1 || score->peers > KITH_PEERS_MAX)
        reader->bad = true;
}

static void put_part(struct writer *writer, const struct lab_part *part)
{
    KITH_ASSERT(part->size > 0 && part->size <= KITH_JOURNAL_PART_BYTES);
    put32(writer, part->part);
    put32(writer, part->size);
    memcpy(writer->bytes + writer->at, part->bytes, part->size);
    writer->at += part->size;
}

static void get_part(struct reader *reader, struct lab_part *part)
{
    part->part = get32(reader);
    part->size = get32(reader);
    if (reader->bad || part->size == 0 ||
        part->size > KITH_JOURNAL_PART_BYTES ||
        part->size > reader->end - reader->at) {
        reader->bad = true;
        return;
    }
    memcpy(part->bytes, reader->bytes + reader->at, part->size);
    reader->at += part->size;
}

void kith_lab_record_pack(const struct lab_record *record,
                          uint8_t bytes[LAB_RECORD_BYTES])
{
    KITH_ASSERT(record->kind < LAB_RECORD_KINDS);
    memset(bytes, 0, LAB_RECORD_BYTES);
    struct writer body = {bytes, LAB_RECORD_HEADER};
    switch (record->kind) {
    case LAB_RECORD_READY:
        break;
    case LAB_RECORD_ROW:
        put_row(&body, &record->as.row);
        break;
    case LAB_RECORD_MARK:
        put_mark(&body, &record->as.mark);
        break;
    case LAB_RECORD_LINE:
        put_text(&body, record->as.line);
        break;
    case LAB_RECORD_FINAL:
        put_final(&body, &record->as.final);
        break;
    case LAB_RECORD_SCORE:
        put_score(&body, &record->as.score);
        break;
    case LAB_RECORD_JOURNAL:
        put_part(&body, &record->as.journal);
        break;
    case LAB_RECORD_KINDS:
        break;
    }

    bytes[0] = 'K';
    bytes[1] = 'L';
    bytes[2] = LAB_RECORD_VERSION;
    bytes[3] = (uint8_t)record->kind;
    struct writer header = {bytes, 4};
    put32(&header, record->peer);
    put32(&header, record->incarnation);
    put32(&header, (uint32_t)(body.at - LAB_RECORD_HEADER));
    put64(&header, (uint64_t)record->time_ns);
}

static void get_body(struct reader *reader, struct lab_record *record)
{
    switch (record->kind) {
    case LAB_RECORD_READY:
        break;
    case LAB_RECORD_ROW:
        record->as.row.peer = record->peer;
        record->as.row.time_ns = record->time_ns;
        get_row(reader, &record->as.row);
        break;
    case LAB_RECORD_MARK:
        get_mark(reader, &record->as.mark);
        break;
    case LAB_RECORD_LINE:
        get_text(reader, record->as.line);
        break;
    case LAB_RECORD_FINAL:
        get_final(reader, &record->as.final);
        break;
    case LAB_RECORD_SCORE:
        get_score(reader, &record->as.score);
        break;
    case LAB_RECORD_JOURNAL:
        get_part(reader, &record->as.journal);
        break;
    case LAB_RECORD_KINDS:
        reader->bad = true;
    }
}

enum kith_err kith_lab_record_unpack(const uint8_t bytes[LAB_RECORD_BYTES],
                                     struct lab_record *record)
{
    memset(record, 0, sizeof *record);
    if (bytes[0] != 'K' || bytes[1] != 'L')
        return KITH_EPARSE;
    if (bytes[2] != LAB_RECORD_VERSION)
        return KITH_EVERSION;
    if (bytes[3] >= LAB_RECORD_KINDS)
        return KITH_EPARSE;

    struct reader header = {bytes, 4, LAB_RECORD_HEADER, false};
    record->kind = (enum lab_record_kind)bytes[3];
    record->peer = get32(&header);
    record->incarnation = get32(&header);
    const uint32_t used = get32(&header);
    const uint64_t time_ns = get64(&header);
    if (record->peer >= KITH_PEERS_MAX || time_ns > INT64_MAX ||
        used > LAB_RECORD_BYTES - LAB_RECORD_HEADER)
        return KITH_EPARSE;
    record->time_ns = (kith_ns)time_ns;

    struct reader body = {bytes, LAB_RECORD_HEADER, LAB_RECORD_HEADER + used,
                          false};
    get_body(&body, record);
    if (body.bad || body.at != body.end)
        return KITH_EPARSE;
    for (size_t i = body.end; i < LAB_RECORD_BYTES; i++)
        if (bytes[i] != 0)
            return KITH_EPARSE;
    return KITH_OK;
}

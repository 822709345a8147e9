/* msgpack -> struct kith_message, after the scan.
 *
 * msgpack-c's parser is used through its template interface: its state machine
 * hands every value to the callbacks below, which write into the message. So
 * there is no object tree, no zone and no allocation at all. */
#include "kith/wire.h"

#include <math.h>

#include "kith/assert.h"
#include "layout.h"

/* The scan lets one level through. */
#define MSGPACK_EMBED_STACK_SIZE 1
#include <msgpack/sysdep.h>
#include <msgpack/unpack.h>
#include <msgpack/unpack_define.h>

enum value_kind {
    VALUE_UNSIGNED,
    VALUE_BOOL,
    VALUE_REAL,
    VALUE_ARRAY,
    VALUE_OTHER
};

struct value {
    enum value_kind kind;
    union {
        uint64_t whole;
        double real;
    } as;
};

struct reader {
    struct kith_message *message;
    uint32_t index; /* of the next value in the array */
    uint64_t fields[KITH_WIRE_SCALARS];
};

#define msgpack_unpack_struct(name) struct wire_unpack##name
#define msgpack_unpack_func(result, name) static result wire_unpack##name
#define msgpack_unpack_callback(name) on##name
#define msgpack_unpack_object struct value
#define msgpack_unpack_user struct reader

static int store(struct value *out, enum value_kind kind, uint64_t whole)
{
    *out = (struct value){.kind = kind, .as.whole = whole};
    return 0;
}

/* A negative number is no field of ours. */
static int on_int64(const struct reader *reader, int64_t whole,
                    struct value *out)
{
    (void)reader;
    return store(out, whole < 0 ? VALUE_OTHER : VALUE_UNSIGNED,
                 (uint64_t)whole);
}

static int on_double(const struct reader *reader, double real,
                     struct value *out)
{
    (void)reader;
    *out = (struct value){.kind = VALUE_REAL, .as.real = real};
    return 0;
}

#define on_root(reader) ((struct value){.kind = VALUE_OTHER})
#define on_uint64(reader, whole, out) store(out, VALUE_UNSIGNED, whole)
#define on_uint8 on_uint64
#define on_uint16 on_uint64
#define on_uint32 on_uint64
#define on_int8 on_int64
#define on_int16 on_int64
#define on_int32 on_int64
/* A scalar is always packed as float64: another spelling is not ours. */
#define on_float(reader, real, out) store(out, VALUE_OTHER, 0)
#define on_true(reader, out) store(out, VALUE_BOOL, 1)
#define on_false(reader, out) store(out, VALUE_BOOL, 0)

/* What the scan refuses cannot come this far; -1 says no all the same. */
#define on_nil(reader, out) (-1)
#define on_str(reader, base, at, length, out) (-1)
#define on_bin on_str
#define on_ext on_str
#define on_map(reader, count, out) (-1)
#define on_map_item(reader, map, key, item) (-1)

static int on_array(struct reader *reader, unsigned count, struct value *out)
{
    if (count < KITH_WIRE_SCALARS || count > KITH_WIRE_VALUES_MAX)
        return -1;
    reader->message->scalar_count = count - KITH_WIRE_SCALARS;
    return store(out, VALUE_ARRAY, 0);
}

/* The largest value of each field before the scalars. */
static const uint64_t most[KITH_WIRE_SCALARS] = {
    [KITH_WIRE_KIND] = KITH_MESSAGE_COUNT - 1,
    [KITH_WIRE_PATTERN] = KITH_PATTERN_COUNT - 1,
    [KITH_WIRE_MINE] = 1,
    [KITH_WIRE_INCARNATION] = UINT32_MAX,
    [KITH_WIRE_COUNTER] = UINT64_MAX,
    [KITH_WIRE_STEP] = UINT64_MAX,
    [KITH_WIRE_PAYLOAD] = 8 * KITH_PARAMETERS_MAX,
};

/* A field that is out of its range ends the parse: -1 is msgpack-c's word for a
 * malformed message, and the caller then zeroes everything. NaN and infinity
 * are refused here, once, rather than by every algorithm that multiplies by a
 * neighbour's weight. */
static int on_array_item(struct reader *reader, struct value *array,
                         struct value item)
{
    (void)array;
    struct kith_message *const message = reader->message;
    const uint32_t index = reader->index++;
    /* The scan and on_array() have bounded the count: more than that many items
     * would be a bug of the parser, not of a peer. */
    KITH_ASSERT(index < KITH_WIRE_SCALARS + message->scalar_count);
    KITH_ASSERT(message->scalar_count <= KITH_SCALARS_MAX);
    if (index == KITH_WIRE_SCALARS && message->scalar_count == 1 &&
        item.kind == VALUE_UNSIGNED) {
        message->overlap = (uint32_t)item.as.whole;
        return item.as.whole > 0 && item.as.whole <= KITH_OVERLAP_MAX ? 0 : -1;
    }
    if (index >= KITH_WIRE_SCALARS) {
        message->scalars[index - KITH_WIRE_SCALARS] = item.as.real;
        return item.kind == VALUE_REAL && isfinite(item.as.real) ? 0 : -1;
    }
    const enum value_kind kind =
        index == KITH_WIRE_MINE ? VALUE_BOOL : VALUE_UNSIGNED;
    reader->fields[index] = item.as.whole;
    return item.kind == kind && item.as.whole <= most[index] ? 0 : -1;
}

#include <msgpack/unpack_template.h>

enum kith_err kith_wire_unpack(const uint8_t *bytes, size_t size,
                               struct kith_message *message)
{
    /* Zeroed on every error, so that no half of a message is ever acted on. */
    *message = (struct kith_message){.slot = 0};
    const enum kith_err err = kith_wire_scan(bytes, size);
    if (err != KITH_OK)
        return err;

    struct wire_unpack_context context = {.user = {.message = message}};
    wire_unpack_init(&context);
    size_t at = 0;
    const int done =
        wire_unpack_execute(&context, (const char *)bytes, size, &at);
    KITH_ASSERT(at <= size);
    if (done != 1 || at != size ||
        wire_unpack_data(&context).kind != VALUE_ARRAY) {
        *message = (struct kith_message){.slot = 0};
        return KITH_EPARSE;
    }
    const uint64_t *fields = context.user.fields;
    message->kind = (enum kith_message_kind)fields[KITH_WIRE_KIND];
    message->pattern = (enum kith_pattern)fields[KITH_WIRE_PATTERN];
    message->mine = fields[KITH_WIRE_MINE] != 0;
    message->id.incarnation = (uint32_t)fields[KITH_WIRE_INCARNATION];
    message->id.counter = fields[KITH_WIRE_COUNTER];
    message->step = fields[KITH_WIRE_STEP];
    message->payload_bytes = fields[KITH_WIRE_PAYLOAD];
    if (message->overlap == 0)
        return KITH_OK;
    message->scalar_count = 0;
    if (message->pattern == KITH_PATTERN_SWAP &&
        (message->kind == KITH_MESSAGE_REQUEST ||
         message->kind == KITH_MESSAGE_ACCEPT ||
         (message->kind == KITH_MESSAGE_MODEL && message->mine)))
        return KITH_OK;
    *message = (struct kith_message){.slot = 0};
    return KITH_EPARSE;
}

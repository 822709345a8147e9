/* msgpack -> struct kith_message, after the scan.
 *
 * msgpack-c's parser is used through its template interface: its state machine
 * hands every value to the callbacks below, which write into the message. So
 * there is no object tree, no zone and no allocation at all. */
#include "kith/wire.h"

#include <math.h>
#include <string.h>

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
};

#define msgpack_unpack_struct(name) struct wire_unpack##name
#define msgpack_unpack_func(result, name) static result wire_unpack##name
#define msgpack_unpack_callback(name) on##name
#define msgpack_unpack_object struct value
#define msgpack_unpack_user struct reader

static struct value on_root(struct reader *reader)
{
    (void)reader;
    return (struct value){.kind = VALUE_OTHER};
}

static int store(struct value *out, enum value_kind kind, uint64_t whole)
{
    *out = (struct value){.kind = kind, .as.whole = whole};
    return 0;
}

static int on_uint64(struct reader *reader, uint64_t whole, struct value *out)
{
    (void)reader;
    return store(out, VALUE_UNSIGNED, whole);
}

/* A negative number is no field of ours. */
static int on_int64(struct reader *reader, int64_t whole, struct value *out)
{
    (void)reader;
    return store(out, whole < 0 ? VALUE_OTHER : VALUE_UNSIGNED,
                 (uint64_t)whole);
}

#define on_uint8 on_uint64
#define on_uint16 on_uint64
#define on_uint32 on_uint64
#define on_int8 on_int64
#define on_int16 on_int64
#define on_int32 on_int64

static int on_double(struct reader *reader, double real, struct value *out)
{
    (void)reader;
    *out = (struct value){.kind = VALUE_REAL, .as.real = real};
    return 0;
}

/* A scalar is always packed as float64: another spelling is not ours. */
static int on_float(struct reader *reader, float real, struct value *out)
{
    (void)reader;
    (void)real;
    return store(out, VALUE_OTHER, 0);
}

static int on_true(struct reader *reader, struct value *out)
{
    (void)reader;
    return store(out, VALUE_BOOL, 1);
}

static int on_false(struct reader *reader, struct value *out)
{
    (void)reader;
    return store(out, VALUE_BOOL, 0);
}

/* What the scan refuses cannot come this far; say no all the same. */
static int on_nil(struct reader *reader, struct value *out)
{
    (void)reader;
    (void)out;
    return -1;
}

static int on_bytes(struct reader *reader, const char *base, const char *at,
                    unsigned length, struct value *out)
{
    (void)base;
    (void)at;
    (void)length;
    return on_nil(reader, out);
}
#define on_str on_bytes
#define on_bin on_bytes
#define on_ext on_bytes

static int on_map(struct reader *reader, unsigned count, struct value *out)
{
    (void)count;
    return on_nil(reader, out);
}

static int on_map_item(struct reader *reader, struct value *map,
                       struct value key, struct value item)
{
    (void)key;
    (void)item;
    return on_nil(reader, map);
}

static int on_array(struct reader *reader, unsigned count, struct value *out)
{
    if (count < KITH_WIRE_SCALARS || count > KITH_WIRE_VALUES_MAX)
        return -1;
    reader->message->scalar_count = count - KITH_WIRE_SCALARS;
    return store(out, VALUE_ARRAY, 0);
}

/* A field that is out of its range ends the parse: -1 is msgpack-c's word for a
 * malformed message, and the caller then zeroes everything. */
static int read_whole(struct value value, uint64_t most, uint64_t *out)
{
    if (value.kind != VALUE_UNSIGNED || value.as.whole > most)
        return -1;
    *out = value.as.whole;
    return 0;
}

/* NaN and infinity are refused here, once, rather than by every algorithm that
 * multiplies by a neighbour's weight. */
static int read_scalar(struct value value, double *out)
{
    if (value.kind != VALUE_REAL || !isfinite(value.as.real))
        return -1;
    *out = value.as.real;
    return 0;
}

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
    uint64_t whole = 0;
    int status = 0;

    switch (index) {
    case KITH_WIRE_KIND:
        status = read_whole(item, KITH_MESSAGE_COUNT - 1, &whole);
        message->kind = (enum kith_message_kind)whole;
        return status;
    case KITH_WIRE_PATTERN:
        status = read_whole(item, KITH_PATTERN_COUNT - 1, &whole);
        message->pattern = (enum kith_pattern)whole;
        return status;
    case KITH_WIRE_MINE:
        message->mine = item.as.whole != 0;
        return item.kind == VALUE_BOOL ? 0 : -1;
    case KITH_WIRE_INCARNATION:
        status = read_whole(item, UINT32_MAX, &whole);
        message->id.incarnation = (uint32_t)whole;
        return status;
    case KITH_WIRE_COUNTER:
        return read_whole(item, UINT64_MAX, &message->id.counter);
    case KITH_WIRE_STEP:
        return read_whole(item, UINT64_MAX, &message->step);
    case KITH_WIRE_PAYLOAD:
        return read_whole(item, 8 * KITH_PARAMETERS_MAX,
                          &message->payload_bytes);
    default:
        return read_scalar(item, &message->scalars[index - KITH_WIRE_SCALARS]);
    }
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
    if (done == 1 && at == size &&
        wire_unpack_data(&context).kind == VALUE_ARRAY)
        return KITH_OK;
    *message = (struct kith_message){.slot = 0};
    return KITH_EPARSE;
}

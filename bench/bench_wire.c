/* Headers per second, encode + decode, beside plain msgpack-c on the same
 * values (a growing buffer, an object tree in a zone, as its manual shows).
 * Gate: kith's time <= 1.2 of msgpack-c's, a rate of at least 0.83. */
#include "bench/bench.h"

#include <msgpack.h>

#include "kith/wire.h"

enum { HEADERS = 200000 };

static struct kith_message sample(uint64_t i)
{
    return (struct kith_message){.kind = KITH_MESSAGE_MODEL,
                                 .pattern = KITH_PATTERN_PUSH,
                                 .id = {.counter = i, .incarnation = 1},
                                 .mine = true,
                                 .step = 3 * i,
                                 .payload_bytes = 407050,
                                 .scalar_count = 1,
                                 .scalars = {0.5}};
}

/* Both return a sum of what was decoded, so that nothing is optimised away. */
static uint64_t run_kith(void)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < HEADERS; i++) {
        const struct kith_message message = sample(i);
        struct kith_message back;
        uint8_t bytes[KITH_WIRE_BYTES_MAX];
        const size_t size = kith_wire_pack(&message, bytes);
        if (kith_wire_unpack(bytes, size, &back) != KITH_OK)
            abort();
        sum += back.step;
    }
    return sum;
}

static void pack_plain(msgpack_sbuffer *buffer,
                       const struct kith_message *message)
{
    msgpack_packer packer;
    msgpack_packer_init(&packer, buffer, msgpack_sbuffer_write);
    msgpack_pack_array(&packer, 8);
    msgpack_pack_uint8(&packer, (uint8_t)message->kind);
    msgpack_pack_uint8(&packer, (uint8_t)message->pattern);
    msgpack_pack_true(&packer);
    msgpack_pack_uint32(&packer, message->id.incarnation);
    msgpack_pack_uint64(&packer, message->id.counter);
    msgpack_pack_uint64(&packer, message->step);
    msgpack_pack_uint64(&packer, message->payload_bytes);
    msgpack_pack_double(&packer, message->scalars[0]);
}

static uint64_t run_plain(void)
{
    uint64_t sum = 0;
    msgpack_sbuffer buffer;
    msgpack_sbuffer_init(&buffer);
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    for (uint64_t i = 0; i < HEADERS; i++) {
        const struct kith_message message = sample(i);
        size_t at = 0;
        msgpack_sbuffer_clear(&buffer);
        pack_plain(&buffer, &message);
        if (msgpack_unpack_next(&unpacked, buffer.data, buffer.size, &at) !=
            MSGPACK_UNPACK_SUCCESS)
            abort();
        sum += unpacked.data.via.array.ptr[5].via.u64;
    }
    msgpack_unpacked_destroy(&unpacked);
    msgpack_sbuffer_destroy(&buffer);
    return sum;
}

static uint64_t run_size(void)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < HEADERS; i++) {
        const struct kith_message message = sample(i);
        sum += kith_wire_size(&message);
    }
    return sum;
}

static double rate(uint64_t (*run)(void))
{
    static volatile uint64_t sink;
    const double start = bench_cpu();
    sink = run();
    (void)sink;
    return HEADERS / (bench_cpu() - start) / 1e6;
}

int main(void)
{
    double ours[BENCH_ROUNDS], plain[BENCH_ROUNDS], size[BENCH_ROUNDS];
    rate(run_kith);
    rate(run_plain);
    for (int round = 0; round < BENCH_ROUNDS; round++) {
        ours[round] = rate(run_kith);
        plain[round] = rate(run_plain);
        size[round] = rate(run_size);
    }

    bench_print("header size without writing", size, BENCH_ROUNDS, "M/s");
    bench_print("header encode + decode", ours, BENCH_ROUNDS, "M/s");
    bench_print("msgpack-c encode + decode", plain, BENCH_ROUNDS, "M/s");
    const double ratio =
        bench_ratio("header / msgpack-c", ours, plain, BENCH_ROUNDS, 0.83);
    return ratio >= 0.83 ? 0 : 1;
}

/* Two transports of one host on one loop, joined by loopback, each with one
 * slot of three bursts that lies in shared memory: for tests of what goes
 * between them. All asserts. */
#ifndef KITH_TESTS_HOST_PAIR_H
#define KITH_TESTS_HOST_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/peer/transport.h"

#define PAIR_SIDES 2u
#define PAIR_SLOT 1u
#define PAIR_BYTES (2 * (size_t)KITH_BURST_BYTES + 4096)
#define PAIR_PATIENCE_NS (20 * KITH_S)

struct pair_side {
    struct kith_transport transport;
    struct kith_identity identity;
    struct kith_shared shared;
    uint8_t *slot, *inbox; /* (PAIR_BYTES) */
    int up;
    unsigned models, unwanted, asked; /* bursts for which an inbox was asked */
    unsigned refill_at;               /* the other's slot, at that burst */
    bool wants;
};
extern struct pair_side pair_sides[PAIR_SIDES];
extern uv_loop_t pair_loop;
/* The system will not have shared memory: options name vectors all the same. */
extern bool pair_has_none;

/* Of cmocka_unit_test_setup_teardown; a test opens its sides itself. */
int pair_setup(void **state);
int pair_teardown(void **state);
/* `shares`: its options name its vectors. `delay_ns`: of its link. */
void pair_open_side(kith_id rank, bool shares, kith_ns delay_ns);
/* Both, and their link; whether memory has been handed over is open. */
void pair_open(bool first, bool second, kith_ns delay_ns);
/* The open one to the other side, or NULL. */
const struct kith_link *pair_link(kith_id rank);
/* Writes side 0's slot; has it sent. */
void pair_fill(uint8_t seed);
void pair_send(uint64_t step);
/* Bytes that side 0's sockets took for one model that arrives whole. */
uint64_t pair_cost(uint8_t seed);
/* Of this process, open. */
unsigned pair_descriptors(void);

/* Turns of the loop until the condition holds. */
#define RUN_UNTIL(condition)                                                   \
    do {                                                                       \
        const kith_ns began_ns = (kith_ns)uv_hrtime();                         \
        while (!(condition) &&                                                 \
               (kith_ns)uv_hrtime() - began_ns < PAIR_PATIENCE_NS)             \
            uv_run(&pair_loop, UV_RUN_ONCE);                                   \
        assert_true(condition);                                                \
    } while (0)

#endif

/* Goal: a record leaves nothing of its key, nonce or text in vector registers
 * or on the stack, whether it was sealed, opened or refused.
 * Method: the same call twice on one stack, at the same addresses, with other
 * secrets: what lies there afterwards, and the registers, must be the same. The
 * plain implementation, which wipes nothing, shows that this sees a difference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <cmocka.h>
#include <sodium.h>

#include "src/protocol/session/aegis.h"
#include "tests/support/aegis_plain.h"

/* Sanitizers keep frames of their own elsewhere, or follow stacks. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WATCHED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) ||     \
    __has_feature(thread_sanitizer)
#define WATCHED 0
#endif
#endif
#ifndef WATCHED
#define WATCHED 1
#endif

#define SUITE KITH_SUITE_AEGIS256X2
enum { BYTES = 1000, STACK_BYTES = 1 << 17, REGISTER_BYTES = 256 };

/* What one call leaves. */
struct traces {
    uint8_t stack[STACK_BYTES], registers[REGISTER_BYTES];
};

static struct traces traces[2];
static _Alignas(64) uint8_t stack[STACK_BYTES];
static uint8_t registers[REGISTER_BYTES];
static uint8_t in[BYTES + KITH_TAG_BYTES], out[BYTES + KITH_TAG_BYTES];
static uint8_t nonce[KITH_NONCE_BYTES_MAX], ad[40];
static union kith_aead_state aead_state;
static const struct kith_aead *aead;
static enum kith_direction direction;
static enum kith_err result;
static size_t bytes;
static ucontext_t outside, inside;

static void keep_registers(void)
{
#ifdef __x86_64__
#define KEEP(n) "movups %%xmm" #n ", 16*" #n "(%0)\n\t"
    __asm__ volatile(KEEP(0) KEEP(1) KEEP(2) KEEP(3) KEEP(4) KEEP(5) KEEP(6)
                         KEEP(7) KEEP(8) KEEP(9) KEEP(10) KEEP(11) KEEP(12)
                             KEEP(13) KEEP(14) KEEP(15)
                     :
                     : "r"(registers)
                     : "memory");
#endif
}

static void call(void)
{
    const struct kith_aead_text text = {nonce, ad,    sizeof ad, in,
                                        out,   bytes, 0};
    result = (direction == KITH_SEAL ? aead->seal : aead->open)(&aead_state,
                                                                SUITE, &text);
    keep_registers();
}

/* Everything secret is drawn from the number of the run. */
static void run(int number, bool spoil)
{
    const uint8_t seed[randombytes_SEEDBYTES] = {(uint8_t)(number + 1)};
    uint8_t secrets[KITH_KEY_BYTES + sizeof nonce + sizeof ad];
    randombytes_buf_deterministic(secrets, sizeof secrets, seed);
    randombytes_buf_deterministic(in, sizeof in, seed);
    memcpy(nonce, secrets + KITH_KEY_BYTES, sizeof nonce);
    memcpy(ad, secrets + KITH_KEY_BYTES + sizeof nonce, sizeof ad);
    assert_int_equal(KITH_OK, aead->create(&aead_state, SUITE));
    assert_int_equal(KITH_OK,
                     aead->key(&aead_state, SUITE, secrets, KITH_SEAL));
    if (direction == KITH_OPEN) {
        const struct kith_aead_text text = {nonce, ad,    sizeof ad, in,
                                            in,    bytes, 0};
        assert_int_equal(KITH_OK, aead->seal(&aead_state, SUITE, &text));
        in[0] ^= spoil;
    }
    memset(stack, 0xa5, sizeof stack);
    assert_int_equal(0, getcontext(&inside));
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = sizeof stack;
    inside.uc_link = &outside;
    makecontext(&inside, call, 0);
    assert_int_equal(0, swapcontext(&outside, &inside));
    assert_int_equal(result, spoil ? KITH_EAUTH : KITH_OK);
    memcpy(traces[number].stack, stack, sizeof stack);
    memcpy(traces[number].registers, registers, sizeof registers);
    aead->destroy(&aead_state);
}

static bool leaves_nothing(enum kith_direction way, size_t size, bool spoil)
{
    direction = way;
    bytes = size;
    run(1, spoil); /* Whatever a first call does once. */
    run(0, spoil);
    run(1, spoil);
    return memcmp(traces[0].stack, traces[1].stack, sizeof stack) == 0 &&
           memcmp(traces[0].registers, traces[1].registers, sizeof registers) ==
               0;
}

static void test_nothing_is_left(void **state)
{
    static const size_t sizes[] = {0, 1, 31, 32, 33, 64, BYTES};
    (void)state;
    if (!WATCHED)
        skip();
    for (size_t i = 0; kith_aeads[i] != NULL; i++) {
        aead = kith_aeads[i];
        if (!kith_aead_has(aead, SUITE))
            continue;
        print_message("  %s\n", kith_aead_name(aead));
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            assert_true(leaves_nothing(KITH_SEAL, sizes[k], false));
            assert_true(leaves_nothing(KITH_OPEN, sizes[k], false));
            assert_true(sizes[k] == 0 ||
                        leaves_nothing(KITH_OPEN, sizes[k], true));
        }
    }
}

static void test_something_would_be_seen(void **state)
{
    (void)state;
    if (!WATCHED)
        skip();
    aead = &aegis_plain;
    assert_false(leaves_nothing(KITH_SEAL, BYTES, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_left),
        cmocka_unit_test(test_something_would_be_seen),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}

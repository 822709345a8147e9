/* AEGIS-256X2 in plain C; see aegis_plain.h. No tables: the S-box is computed,
 * eight bytes at a time,
 *
 *   S(x) = b ^ rotl(b, 1) ^ ... ^ rotl(b, 4) ^ 0x63,  b = x^254 in GF(2^8)
 *
 * (FIPS 197, 5.1.1), so nothing here depends on secrets but the values. */
#include "tests/support/aegis_plain.h"

#include <sodium.h>
#include <string.h>

#include "kith/assert.h"

#define EACH_BYTE UINT64_C(0x0101010101010101)

/* Eight products by x modulo x^8 + x^4 + x^3 + x + 1. */
static uint64_t twice(uint64_t a)
{
    const uint64_t carry = a >> 7 & EACH_BYTE;
    return (a & 0x7f * EACH_BYTE) << 1 ^ carry * 0x1b;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    for (int bit = 0; bit < 8; bit++) {
        product ^= a & (b >> bit & EACH_BYTE) * 0xff;
        a = twice(a);
    }
    return product;
}

static uint64_t rotated(uint64_t a, int by)
{
    const uint64_t low = (0xffu >> by) * EACH_BYTE;
    return (a & low) << by | (a & ~low) >> (8 - by);
}

static uint64_t substituted(uint64_t x)
{
    uint64_t power = x, b;
    for (int bit = 0; bit < 6; bit++) /* x^127 */
        power = times(times(power, power), x);
    b = times(power, power);
    return b ^ rotated(b, 1) ^ rotated(b, 2) ^ rotated(b, 3) ^ rotated(b, 4) ^
           0x63 * EACH_BYTE;
}

/* AESRound(in, key): SubBytes, ShiftRows, MixColumns, AddRoundKey. */
static void aes_round(const uint8_t in[16], const uint8_t key[16],
                      uint8_t out[16])
{
    uint64_t words[2];
    uint8_t s[16], shifted[16];
    memcpy(words, in, sizeof words);
    for (int i = 0; i < 2; i++)
        words[i] = substituted(words[i]);
    memcpy(s, words, sizeof s);
    for (int i = 0; i < 16; i++)
        shifted[i] = s[(i + 4 * (i % 4)) % 16];
    for (int i = 0; i < 16; i++) {
        const uint8_t *column = shifted + i / 4 * 4;
        const uint8_t a = column[i % 4], b = column[(i + 1) % 4];
        out[i] = (uint8_t)(key[i] ^ twice(a) ^ twice(b) ^ b ^
                           column[(i + 2) % 4] ^ column[(i + 3) % 4]);
    }
}

static void update(struct aegis_plain *s, const uint8_t m[32])
{
    const struct aegis_plain old = *s;
    for (int j = 0; j < 6; j++)
        for (int i = 0; i < 2; i++)
            aes_round(old.v[(j + 5) % 6][i], old.v[j][i], s->v[j][i]);
    for (int i = 0; i < 32; i++)
        s->v[0][i / 16][i % 16] ^= m[i];
}

static void both(uint8_t to[2][16], const uint8_t *a, const uint8_t *b)
{
    for (int i = 0; i < 32; i++)
        to[i / 16][i % 16] = (uint8_t)(a[i % 16] ^ (b ? b[i % 16] : 0));
}

void aegis_plain_init(struct aegis_plain *s, const uint8_t key[32],
                      const uint8_t nonce[32])
{
    uint8_t c[32] = {0, 1}, rounds[4][2][16];
    for (int i = 2; i < 32; i++) /* Fibonacci's numbers modulo 256 */
        c[i] = (uint8_t)(c[i - 1] + c[i - 2]);
    both(s->v[0], key, nonce);
    both(s->v[1], key + 16, nonce + 16);
    both(s->v[2], c + 16, NULL);
    both(s->v[3], c, NULL);
    both(s->v[4], key, c);
    both(s->v[5], key + 16, c + 16);
    both(rounds[0], key, NULL);
    both(rounds[1], key + 16, NULL);
    both(rounds[2], key, nonce);
    both(rounds[3], key + 16, nonce + 16);
    for (int r = 0; r < 16; r++) {
        for (int i = 0; i < 2; i++) {
            s->v[3][i][0] ^= (uint8_t)i, s->v[3][i][1] ^= 1;
            s->v[5][i][0] ^= (uint8_t)i, s->v[5][i][1] ^= 1;
        }
        update(s, rounds[r % 4][0]);
    }
}

/* One block of a text, n bytes of it, in either direction. */
static void crypt(struct aegis_plain *s, const uint8_t *in, uint8_t *out,
                  size_t n, enum kith_direction direction)
{
    uint8_t message[32] = {0};
    for (size_t k = 0; k < n; k++) {
        const size_t i = k / 16, b = k % 16;
        const uint8_t z =
            (uint8_t)(s->v[1][i][b] ^ s->v[4][i][b] ^ s->v[5][i][b] ^
                      (s->v[2][i][b] & s->v[3][i][b]));
        const uint8_t given = in[k];
        out[k] = given ^ z;
        message[k] = direction == KITH_SEAL ? given : out[k];
    }
    update(s, message);
}

static void finalize(struct aegis_plain *s, size_t ad_bytes, size_t bytes,
                     uint8_t tag[16])
{
    uint8_t lengths[16], t[32];
    for (int i = 0; i < 8; i++) {
        lengths[i] = (uint8_t)((uint64_t)ad_bytes * 8 >> 8 * i);
        lengths[8 + i] = (uint8_t)((uint64_t)bytes * 8 >> 8 * i);
    }
    for (int i = 0; i < 32; i++)
        t[i] = s->v[3][i / 16][i % 16] ^ lengths[i % 16];
    for (int r = 0; r < 7; r++)
        update(s, t);
    memset(tag, 0, 16);
    for (int k = 0; k < 6 * 2 * 16; k++)
        tag[k % 16] ^= s->v[k / 32][k / 16 % 2][k % 16];
}

/* The whole text; the tag of it. */
static void run(const uint8_t *key, const struct kith_aead_text *text,
                enum kith_direction direction, uint8_t tag[16])
{
    struct aegis_plain s;
    aegis_plain_init(&s, key, text->nonce);
    for (size_t at = 0; at < text->ad_bytes; at += 32) {
        const size_t left = text->ad_bytes - at;
        uint8_t block[32] = {0};
        memcpy(block, text->ad + at, left < 32 ? left : 32);
        update(&s, block);
    }
    for (size_t at = 0; at < text->bytes; at += 32) {
        const size_t left = text->bytes - at;
        crypt(&s, text->in + at, text->out + at, left < 32 ? left : 32,
              direction);
    }
    finalize(&s, text->ad_bytes, text->bytes, tag);
}

static bool plain_has(enum kith_suite suite)
{
    return suite == KITH_SUITE_AEGIS256X2;
}

static enum kith_err plain_create(union kith_aead_state *state,
                                  enum kith_suite suite)
{
    memset(state, 0, sizeof *state);
    return plain_has(suite) ? KITH_OK : KITH_EUNSUPPORTED;
}

static void plain_destroy(union kith_aead_state *state)
{
    sodium_memzero(state, sizeof *state);
}

static enum kith_err plain_key(union kith_aead_state *state,
                               enum kith_suite suite, const uint8_t *key,
                               enum kith_direction direction)
{
    (void)direction;
    KITH_ASSERT(plain_has(suite));
    memcpy(state->bytes, key, KITH_KEY_BYTES);
    return KITH_OK;
}

static enum kith_err plain_seal(union kith_aead_state *state,
                                enum kith_suite suite,
                                const struct kith_aead_text *text)
{
    uint8_t tag[KITH_TAG_BYTES];
    KITH_ASSERT(plain_has(suite));
    run(state->bytes, text, KITH_SEAL, tag);
    memcpy(text->out + text->bytes, tag, sizeof tag);
    return KITH_OK;
}

static enum kith_err plain_open(union kith_aead_state *state,
                                enum kith_suite suite,
                                const struct kith_aead_text *text)
{
    uint8_t tag[KITH_TAG_BYTES];
    KITH_ASSERT(plain_has(suite));
    run(state->bytes, text, KITH_OPEN, tag);
    if (sodium_memcmp(tag, text->in + text->bytes, sizeof tag) == 0)
        return KITH_OK;
    memset(text->out, 0, text->bytes);
    return KITH_EAUTH;
}

const struct kith_aead aegis_plain = {
    .name = "plain C, for tests",
    .suites = KITH_SUITE_BIT(KITH_SUITE_AEGIS256X2),
    .has = plain_has,
    .create = plain_create,
    .destroy = plain_destroy,
    .key = plain_key,
    .seal = plain_seal,
    .open = plain_open,
};

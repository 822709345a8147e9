/* AEGIS-256X2 with a tag of 128 bits (draft-irtf-cfrg-aegis-aead), compiled
 * once per instruction set. A block is two AES blocks side by side, the state
 * six of them; k = k0 || k1 and n = n0 || n1 stand in both halves.
 *
 *   update(m)  v0 = A(v5, v0) ^ m, v[j] = A(v[j-1], v[j])  A: one round of AES
 *   init       v = k0^n0, k1^n1, C1, C0, k0^C0, k1^C1; four times each of
 *              k0, k1, k0^n0, k1^n1: v3 ^= ctx, v5 ^= ctx, update
 *              ctx = (half, 1, 0...)
 *   keystream  z = v1 ^ v4 ^ v5 ^ (v2 & v3)
 *   seal       c = m ^ z, update(m);      ad: update(ad)     (zero-padded)
 *   tag        seven times update(v3 ^ (LE64(bits of ad) || LE64(bits of m)))
 *              with v3 of before; both halves of v0 ^ ... ^ v5 added up
 *
 * Constant-time: AES instructions and xor, branches on lengths alone. What a
 * record leaves in registers and on the stack is wiped: who has a state has the
 * record's plain text, and at its beginning the key. The includer defines
 * BLOCK, block_load, block_store, block_twice, block_xor, block_and,
 * block_round, block_tag, registers_clear, SEAL and OPEN. Test:
 * unit/test_aegis. */
#define FORCE static inline __attribute__((always_inline))
#define BLOCK_BYTES ((size_t)32)

struct aegis {
    BLOCK v[6];
};

/* A(v5, v0) ^ m is A(v5, m) ^ v0, and that is faster: the longest chain of an
 * update has one round in it, and no xor before or behind it. */
FORCE void update(struct aegis *s, BLOCK message)
{
    const BLOCK last = s->v[5];
    s->v[5] = block_round(s->v[4], s->v[5]);
    s->v[4] = block_round(s->v[3], s->v[4]);
    s->v[3] = block_round(s->v[2], s->v[3]);
    s->v[2] = block_round(s->v[1], s->v[2]);
    s->v[1] = block_round(s->v[0], s->v[1]);
    s->v[0] = block_xor(block_round(last, message), s->v[0]);
}

/* Tells the halves, which are otherwise the same cipher, from each other. */
FORCE void update_apart(struct aegis *s, BLOCK message)
{
    static const uint8_t context[BLOCK_BYTES] = {[1] = 1, [16] = 1, [17] = 1};
    const BLOCK apart = block_load(context);
    s->v[3] = block_xor(s->v[3], apart);
    s->v[5] = block_xor(s->v[5], apart);
    update(s, message);
}

FORCE void begin(struct aegis *s, const uint8_t *key, const uint8_t *nonce)
{
    /* Fibonacci's numbers modulo 256. */
    static const uint8_t c[32] = {
        0x00, 0x01, 0x01, 0x02, 0x03, 0x05, 0x08, 0x0d, 0x15, 0x22, 0x37,
        0x59, 0x90, 0xe9, 0x79, 0x62, 0xdb, 0x3d, 0x18, 0x55, 0x6d, 0xc2,
        0x2f, 0xf1, 0x20, 0x11, 0x31, 0x42, 0x73, 0xb5, 0x28, 0xdd};
    const BLOCK c0 = block_twice(c), c1 = block_twice(c + 16);
    const BLOCK k0 = block_twice(key), k1 = block_twice(key + 16);
    const BLOCK x0 = block_xor(k0, block_twice(nonce));
    const BLOCK x1 = block_xor(k1, block_twice(nonce + 16));
    *s = (struct aegis){{x0, x1, c1, c0, block_xor(k0, c0), block_xor(k1, c1)}};
    for (int i = 0; i < 4; i++) {
        update_apart(s, k0);
        update_apart(s, k1);
        update_apart(s, x0);
        update_apart(s, x1);
    }
}

/* The last `bytes` of a text, zero-padded: 0 < bytes < BLOCK_BYTES. */
FORCE BLOCK padded(const uint8_t *from, size_t bytes)
{
    uint8_t rest[BLOCK_BYTES] = {0};
    memcpy(rest, from, bytes);
    return block_load(rest);
}

FORCE void absorb(struct aegis *s, const uint8_t *ad, size_t bytes)
{
    size_t at = 0;
    for (; bytes - at >= BLOCK_BYTES; at += BLOCK_BYTES)
        update(s, block_load(ad + at));
    if (at < bytes)
        update(s, padded(ad + at, bytes - at));
}

FORCE BLOCK keystream(const struct aegis *s)
{
    return block_xor(block_xor(s->v[1], block_xor(s->v[4], s->v[5])),
                     block_and(s->v[2], s->v[3]));
}

/* The tag of all that was absorbed and sealed; tag (KITH_TAG_BYTES). */
FORCE void finish(struct aegis *s, size_t ad_bytes, size_t bytes, uint8_t *tag)
{
    const uint64_t bits[2] = {8 * (uint64_t)ad_bytes, 8 * (uint64_t)bytes};
    const BLOCK t = block_xor(s->v[3], block_twice((const uint8_t *)bits));
    for (int i = 0; i < 7; i++)
        update(s, t);
    BLOCK sum = s->v[0];
    for (int j = 1; j < 6; j++)
        sum = block_xor(sum, s->v[j]);
    block_tag(sum, tag);
}

/* The compiler alone knows where its copies of a state lie, so the memory is
 * wiped as a whole: a kernel's frame begins GAP_BYTES below that of the
 * function that wipes, which is more than sodium_stackzero() keeps for itself,
 * and ends within WIPE_BYTES. */
#define GAP_BYTES 128
#ifdef __OPTIMIZE__
#define WIPE_BYTES 2048
#else
#define WIPE_BYTES                                                             \
    65536 /* Every intermediate value has a place of its own.                  \
           */
#endif
#define APART static __attribute__((noinline))

/* A build for wide registers may use those above the sixteenth, too. */
FORCE void high_registers_clear(void)
{
#ifdef __AVX512F__
#define CLEAR(n) "vpxorq %%zmm" #n ",%%zmm" #n ",%%zmm" #n "\n\t"
    __asm__ volatile(CLEAR(16) CLEAR(17) CLEAR(18) CLEAR(19) CLEAR(20) CLEAR(21)
                         CLEAR(22) CLEAR(23) CLEAR(24) CLEAR(25) CLEAR(26)
                             CLEAR(27) CLEAR(28) CLEAR(29) CLEAR(30) CLEAR(31)
                     :
                     :
                     : "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21",
                       "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",
                       "xmm28", "xmm29", "xmm30", "xmm31");
#endif
}

/* Registers first: the first call of a library may save them on the stack. */
FORCE void wipe(void)
{
    low_registers_clear();
    high_registers_clear();
    sodium_stackzero(WIPE_BYTES);
}

/* Bytes that no compiler leaves out of the frame. */
FORCE void keep(uint8_t gap[GAP_BYTES])
{
    __asm__ volatile("" : : "r"(gap) : "memory");
}

APART void seal_text(const uint8_t *key, const struct kith_aead_text *text)
{
    const uint8_t *in = text->in;
    uint8_t *out = text->out, rest[BLOCK_BYTES];
    size_t left = text->bytes;
    struct aegis s;
    begin(&s, key, text->nonce);
    absorb(&s, text->ad, text->ad_bytes);
    for (; left >= BLOCK_BYTES; left -= BLOCK_BYTES) {
        const BLOCK m = block_load(in);
        block_store(out, block_xor(m, keystream(&s)));
        update(&s, m);
        in += BLOCK_BYTES;
        out += BLOCK_BYTES;
    }
    if (left > 0) {
        const BLOCK m = padded(in, left);
        block_store(rest, block_xor(m, keystream(&s)));
        memcpy(out, rest, left);
        update(&s, m);
    }
    finish(&s, text->ad_bytes, text->bytes, out + left);
}

APART bool open_text(const uint8_t *key, const struct kith_aead_text *text)
{
    const uint8_t *in = text->in;
    uint8_t *out = text->out, rest[BLOCK_BYTES], tag[KITH_TAG_BYTES];
    size_t left = text->bytes;
    struct aegis s;
    begin(&s, key, text->nonce);
    absorb(&s, text->ad, text->ad_bytes);
    for (; left >= BLOCK_BYTES; left -= BLOCK_BYTES) {
        const BLOCK c = block_load(in), z = keystream(&s);
        block_store(out, block_xor(c, z));
        update(&s, c);
        s.v[0] = block_xor(s.v[0], z); /* m = c ^ z: z is ready later. */
        in += BLOCK_BYTES;
        out += BLOCK_BYTES;
    }
    if (left > 0) {
        block_store(rest, block_xor(padded(in, left), keystream(&s)));
        memcpy(out, rest, left);
        /* Keystream lies behind the text: the padding is zeros. */
        update(&s, padded(rest, left));
    }
    finish(&s, text->ad_bytes, text->bytes, tag);
    return sodium_memcmp(tag, text->in + text->bytes, sizeof tag) == 0;
}

APART void seal_below(const uint8_t *key, const struct kith_aead_text *text)
{
    uint8_t gap[GAP_BYTES];
    seal_text(key, text);
    keep(gap);
}

APART bool open_below(const uint8_t *key, const struct kith_aead_text *text)
{
    uint8_t gap[GAP_BYTES];
    const bool is_good = open_text(key, text);
    keep(gap);
    return is_good;
}

void SEAL(const uint8_t key[KITH_KEY_BYTES], const struct kith_aead_text *text)
{
    seal_below(key, text);
    wipe();
}

bool OPEN(const uint8_t key[KITH_KEY_BYTES], const struct kith_aead_text *text)
{
    const bool is_good = open_below(key, text);
    wipe();
    return is_good;
}

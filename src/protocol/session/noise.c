/* Noise XX, token by token (revision 34, sections 5.2 and 5.3).
 *
 *   h  = protocol name, zero-padded;  ck = h;  h = HASH(h || prologue)
 *   e  : h = HASH(h || e)
 *   s  : c = EncryptAndHash(s)
 *   ee, es, se : (ck, k) = HKDF(ck, DH(own, peer));  n = 0
 *   payload    : EncryptAndHash(payload)
 *
 * A DH result of all zeros aborts: crypto_scalarmult() answers -1 for it, and
 * going on would let a peer fix the key. */
#include "src/protocol/session/noise.h"

#include <sodium.h>
#include <string.h>

#include "kith/assert.h"

enum token { TOKEN_END, TOKEN_E, TOKEN_S, TOKEN_EE, TOKEN_ES, TOKEN_SE };

#define TOKENS_MAX 5
static const enum token xx[3][TOKENS_MAX] = {
    {TOKEN_E, TOKEN_END},
    {TOKEN_E, TOKEN_EE, TOKEN_S, TOKEN_ES, TOKEN_END},
    {TOKEN_S, TOKEN_SE, TOKEN_END},
};
static const size_t overhead[3] = {KITH_NOISE_OVERHEAD_1, KITH_NOISE_OVERHEAD_2,
                                   KITH_NOISE_OVERHEAD_3};

_Static_assert(KITH_NOISE_OVERHEAD_1 == KITH_KEY_BYTES, "e");
_Static_assert(KITH_NOISE_OVERHEAD_2 == 2 * KITH_KEY_BYTES + 2 * KITH_TAG_BYTES,
               "e, sealed s, tag of the payload");
_Static_assert(KITH_NOISE_OVERHEAD_3 == KITH_KEY_BYTES + 2 * KITH_TAG_BYTES,
               "sealed s, tag of the payload");

static void mix_hash(struct kith_noise *noise, const uint8_t *bytes,
                     size_t size)
{
    KITH_ASSERT(bytes != noise->hash);
    kith_digest_two(noise->digest, noise->hash, noise->hash, KITH_HASH_BYTES,
                    bytes, size);
}

void kith_noise_init(struct kith_noise *noise,
                     const struct kith_noise_options *options)
{
    const size_t name_bytes = strlen(options->protocol);
    /* A longer name would be hashed (section 5.2); ours are not. */
    KITH_ASSERT(name_bytes <= KITH_HASH_BYTES);
    KITH_ASSERT(options->send != options->receive);
    memset(noise, 0, sizeof *noise);
    noise->digest = options->digest;
    noise->initiator = options->initiator;
    noise->secret = options->secret;
    noise->key = options->key;
    noise->send = options->send;
    noise->receive = options->receive;
    memcpy(noise->ephemeral, options->ephemeral, KITH_KEY_BYTES);
    memcpy(noise->hash, options->protocol, name_bytes);
    memcpy(noise->chain, noise->hash, KITH_HASH_BYTES);
    mix_hash(noise, options->prologue, options->prologue_bytes);
}

/* MixKey(DH(secret, key)). Low-order points of a peer (RFC 7748, section 6.1)
 * are refused by libsodium; the result is wiped in either case. */
static enum kith_err mix_dh(struct kith_noise *noise, const uint8_t *secret,
                            const uint8_t *key)
{
    uint8_t shared[KITH_KEY_BYTES], derived[KITH_HASH_BYTES];
    KITH_ASSERT(noise->message >= 1 && noise->message < 3);
    const int bad = crypto_scalarmult(shared, secret, key);
    if (bad == 0) {
        kith_digest_hkdf(noise->digest, noise->chain, shared, sizeof shared,
                         noise->chain, derived);
        /* HASHLEN is 64: the key is its first 32 bytes (section 5.2). */
        memcpy(noise->k, derived, KITH_KEY_BYTES);
        noise->keyed = true;
        noise->n = 0;
    }
    sodium_memzero(shared, sizeof shared);
    sodium_memzero(derived, sizeof derived);
    return bad == 0 ? KITH_OK : KITH_EINVAL;
}

/* es: the initiator's ephemeral with the responder's static; se: the reverse.
 */
static enum kith_err mix_token(struct kith_noise *noise, enum token token)
{
    KITH_ASSERT(token == TOKEN_EE || token == TOKEN_ES || token == TOKEN_SE);
    const bool own_ephemeral =
        token == TOKEN_EE || (token == TOKEN_ES) == noise->initiator;
    const bool peer_ephemeral = token == TOKEN_EE || !own_ephemeral;
    return mix_dh(noise, own_ephemeral ? noise->ephemeral : noise->secret,
                  peer_ephemeral ? noise->peer_ephemeral : noise->peer_key);
}

/* EncryptAndHash or DecryptAndHash. The transcript's hash is the associated
 * data, so that a message authenticates everything before it. */
static enum kith_err crypt_and_hash(struct kith_noise *noise, bool seals,
                                    const uint8_t *in, size_t plain_bytes,
                                    uint8_t *out)
{
    enum kith_err err = KITH_OK;
    struct kith_cipher *cipher = seals ? noise->send : noise->receive;
    const size_t tag_bytes = noise->keyed ? KITH_TAG_BYTES : 0;
    /* Message 1 is in the clear; ee keys everything after it. n restarts with
     * every MixKey, and no key seals more than s and a payload. */
    KITH_ASSERT(noise->keyed == (noise->message > 0));
    KITH_ASSERT(noise->n <= 1);
    if (noise->keyed) {
        err = kith_cipher_key(cipher, noise->k, noise->n++);
        if (err == KITH_OK)
            err = (seals ? kith_cipher_seal : kith_cipher_open)(
                cipher, noise->hash, KITH_HASH_BYTES, in, plain_bytes, out);
    } else if (plain_bytes) {
        memcpy(out, in, plain_bytes);
    }
    if (err == KITH_OK)
        mix_hash(noise, seals ? out : in, plain_bytes + tag_bytes);
    return err;
}

/* The token table is walked alike by writer and reader: what one sends is what
 * the other expects, by construction. */
enum kith_err kith_noise_write(struct kith_noise *noise, const uint8_t *payload,
                               size_t payload_bytes, uint8_t *message,
                               size_t *message_bytes)
{
    KITH_ASSERT(noise->message < 3);
    KITH_ASSERT((noise->message % 2 == 0) == noise->initiator);
    enum kith_err err = KITH_OK;
    uint8_t *at = message;
    for (const enum token *token = xx[noise->message];
         err == KITH_OK && *token != TOKEN_END; token++) {
        if (*token == TOKEN_E) {
            /* Not before: who only connects costs us no curve operation. */
            if (crypto_scalarmult_base(at, noise->ephemeral) != 0)
                err = KITH_EINVAL;
            mix_hash(noise, at, KITH_KEY_BYTES);
            at += KITH_KEY_BYTES;
        } else if (*token == TOKEN_S) {
            err = crypt_and_hash(noise, true, noise->key, KITH_KEY_BYTES, at);
            at += KITH_KEY_BYTES + KITH_TAG_BYTES;
        } else {
            err = mix_token(noise, *token);
        }
    }
    if (err == KITH_OK)
        err = crypt_and_hash(noise, true, payload, payload_bytes, at);
    *message_bytes = payload_bytes + overhead[noise->message];
    KITH_ASSERT(err != KITH_OK ||
                (size_t)(at - message) + (noise->keyed ? KITH_TAG_BYTES : 0) ==
                    overhead[noise->message]);
    noise->message++;
    return err;
}

/* A reader that fails halfway has mixed what it read; the state is then of no
 * further use, and the session ends. */
enum kith_err kith_noise_read(struct kith_noise *noise, const uint8_t *message,
                              size_t message_bytes, uint8_t *payload,
                              size_t *payload_bytes)
{
    KITH_ASSERT(noise->message < 3);
    KITH_ASSERT((noise->message % 2 == 1) == noise->initiator);
    if (message_bytes < overhead[noise->message])
        return KITH_EPARSE;
    enum kith_err err = KITH_OK;
    const uint8_t *at = message;
    for (const enum token *token = xx[noise->message];
         err == KITH_OK && *token != TOKEN_END; token++) {
        if (*token == TOKEN_E) {
            memcpy(noise->peer_ephemeral, at, KITH_KEY_BYTES);
            mix_hash(noise, at, KITH_KEY_BYTES);
            at += KITH_KEY_BYTES;
        } else if (*token == TOKEN_S) {
            err = crypt_and_hash(noise, false, at, KITH_KEY_BYTES,
                                 noise->peer_key);
            at += KITH_KEY_BYTES + KITH_TAG_BYTES;
        } else {
            err = mix_token(noise, *token);
        }
    }
    KITH_ASSERT((size_t)(at - message) <= message_bytes);
    *payload_bytes = message_bytes - overhead[noise->message];
    if (err == KITH_OK)
        err = crypt_and_hash(noise, false, at, *payload_bytes, payload);
    noise->message++;
    return err;
}

static void wipe(struct kith_noise *noise)
{
    /* Forward secrecy: who takes this process later learns no session key. The
     * hash and the peer's key are public. */
    sodium_memzero(noise->k, sizeof noise->k);
    sodium_memzero(noise->chain, sizeof noise->chain);
    sodium_memzero(noise->ephemeral, sizeof noise->ephemeral);
    noise->secret = noise->key = NULL;
    noise->send = noise->receive = NULL;
    noise->keyed = false;
}

enum kith_err kith_noise_split(struct kith_noise *noise)
{
    KITH_ASSERT(noise->message == 3);
    uint8_t first[KITH_HASH_BYTES], second[KITH_HASH_BYTES];
    /* The first key is the initiator's to send with (section 5.2, Split). */
    kith_digest_hkdf(noise->digest, noise->chain, NULL, 0, first, second);
    enum kith_err err =
        kith_cipher_key(noise->send, noise->initiator ? first : second, 0);
    if (err == KITH_OK)
        err = kith_cipher_key(noise->receive, noise->initiator ? second : first,
                              0);
    sodium_memzero(first, sizeof first);
    sodium_memzero(second, sizeof second);
    wipe(noise);
    return err;
}

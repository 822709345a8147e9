/* Certificates: a canonical TLV and an Ed25519 signature.
 *
 *   certificate = field 1 .. field 11, field 12
 *   field       = tag (1 byte), length (1 byte), value; integers big-endian
 *   signature   = Ed25519("kith-cert-v2\0" || field 1 .. field 11)
 *
 * Every field is present, in order, at its one length: one certificate has one
 * encoding, so its fingerprint names it. */
#include <sodium.h>
#include <string.h>

#include "kith/assert.h"
#include "src/protocol/session/bytes.h"
#include "src/protocol/session/certificate.h"

#define CERTIFICATE_VERSION 2u /* 1 named no rank */
#define ROLES_ALL                                                              \
    ((uint32_t)KITH_ROLE_TRAIN | (uint32_t)KITH_ROLE_OBSERVE |                 \
     (uint32_t)KITH_ROLE_SEED)

enum tag {
    TAG_VERSION = 1,
    TAG_CLUSTER,
    TAG_SERIAL,
    TAG_KEY,
    TAG_NAME,
    TAG_NOT_BEFORE,
    TAG_NOT_AFTER,
    TAG_ROLES,
    TAG_QUOTA_ROUND,
    TAG_QUOTA_MODEL,
    TAG_RANK,
    TAG_SIGNATURE,
};

/* Two bytes of tag and length before each value; the longest name. */
#define BODY_BYTES_MAX                                                         \
    (11u * 2u + 1u + KITH_CLUSTER_BYTES + 8u + KITH_KEY_BYTES +                \
     (KITH_NAME_MAX - 1u) + 8u + 8u + 4u + 8u + 8u + 4u)
#define SIGNATURE_FIELD_BYTES (2u + KITH_SIGNATURE_BYTES)
static const char context[] = "kith-cert-v2"; /* its zero byte included */

_Static_assert(BODY_BYTES_MAX + SIGNATURE_FIELD_BYTES <=
                   KITH_CERTIFICATE_BYTES_MAX,
               "the longest certificate fits");
_Static_assert(KITH_NAME_MAX - 1 <= UINT8_MAX &&
                   KITH_SIGNATURE_BYTES <= UINT8_MAX,
               "the length of a value is one byte");

/* A reader over the fields; `good` turns false once and stays so. */
struct reader {
    const uint8_t *at;
    size_t left;
    bool good;
};

/* The value of the next field, which must have this tag and a length within
 * [least, most]; NULL otherwise. */
static const uint8_t *read_field(struct reader *reader, enum tag tag,
                                 size_t least, size_t most, size_t *length)
{
    KITH_ASSERT(least <= most && most <= UINT8_MAX);
    if (reader->good && reader->left >= 2 && reader->at[0] == tag) {
        const uint8_t *value = reader->at + 2;
        *length = reader->at[1];
        if (*length >= least && *length <= most &&
            *length + 2 <= reader->left) {
            reader->at += 2 + *length;
            reader->left -= 2 + *length;
            return value;
        }
    }
    reader->good = false;
    return NULL;
}

static void read_bytes(struct reader *reader, enum tag tag, uint8_t *target,
                       size_t size)
{
    size_t length = 0;
    const uint8_t *value = read_field(reader, tag, size, size, &length);
    KITH_ASSERT(value == NULL || length == size);
    if (value)
        memcpy(target, value, size);
}

/* Numbers have one width each: a minimal encoding would need a rule against
 * leading zeros, a fixed one needs none. */
static uint64_t read_number(struct reader *reader, enum tag tag, size_t width)
{
    uint8_t bytes[sizeof(uint64_t)] = {0};
    KITH_ASSERT(width >= 1 && width <= sizeof bytes);
    read_bytes(reader, tag, bytes, width);
    return get_be(bytes, width);
}

/* An allow-list of characters, not a list of bad ones: names go unescaped into
 * log lines of KEY=VALUE, into file names and into HTML. */
bool kith_name_is_safe(const uint8_t *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const uint8_t c = name[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool digit = c >= '0' && c <= '9';
        if (!letter && !digit && c != '.' && c != '-' && c != '_')
            return false;
    }
    return length >= 1 && length < KITH_NAME_MAX;
}

/* The one field of variable length; its terminator is the zeroed struct's. */
static void read_name(struct reader *reader, char name[KITH_NAME_MAX])
{
    size_t length = 0;
    const uint8_t *value =
        read_field(reader, TAG_NAME, 1, KITH_NAME_MAX - 1, &length);
    if (value && kith_name_is_safe(value, length))
        memcpy(name, value, length);
    else
        reader->good = false;
}

enum kith_err kith_certificate_decode(const uint8_t *bytes, size_t size,
                                      struct kith_certificate *certificate)
{
    /* Zeroed first: a caller that ignores the error finds no role and no key.
     */
    memset(certificate, 0, sizeof *certificate);
    if (size > KITH_CERTIFICATE_BYTES_MAX)
        return KITH_EPARSE;
    struct reader r = {bytes, size, true};
    struct kith_certificate c = {.serial = 0};
    const uint64_t version = read_number(&r, TAG_VERSION, 1);
    if (r.good && version != CERTIFICATE_VERSION)
        return KITH_EVERSION;
    read_bytes(&r, TAG_CLUSTER, c.cluster, sizeof c.cluster);
    c.serial = read_number(&r, TAG_SERIAL, 8);
    read_bytes(&r, TAG_KEY, c.key, sizeof c.key);
    read_name(&r, c.name);
    const uint64_t not_before = read_number(&r, TAG_NOT_BEFORE, 8);
    const uint64_t not_after = read_number(&r, TAG_NOT_AFTER, 8);
    c.roles = (uint32_t)read_number(&r, TAG_ROLES, 4);
    c.quota_round_bytes = read_number(&r, TAG_QUOTA_ROUND, 8);
    c.quota_model_bytes = read_number(&r, TAG_QUOTA_MODEL, 8);
    c.rank = (uint32_t)read_number(&r, TAG_RANK, 4);
    read_bytes(&r, TAG_SIGNATURE, c.signature, sizeof c.signature);
    /* Trailing bytes are refused: two encodings of one certificate would have
     * two fingerprints, and a revocation would name one of them. */
    if (!r.good || r.left != 0)
        return KITH_EPARSE;
    if (not_before > not_after || not_after > INT64_MAX || c.roles == 0 ||
        (c.roles & ~ROLES_ALL) != 0)
        return KITH_EPARSE;
    c.not_before_s = (int64_t)not_before;
    c.not_after_s = (int64_t)not_after;
    KITH_ASSERT(0 <= c.not_before_s && c.not_before_s <= c.not_after_s);
    *certificate = c;
    return KITH_OK;
}

/* Writers return the place after the field, so that the fields stand below each
 * other in body_encode() as in the definition. */
static uint8_t *write_bytes(uint8_t *at, enum tag tag, const void *value,
                            size_t size)
{
    KITH_ASSERT(size <= UINT8_MAX);
    at[0] = (uint8_t)tag;
    at[1] = (uint8_t)size;
    memcpy(at + 2, value, size);
    return at + 2 + size;
}

static uint8_t *write_number(uint8_t *at, enum tag tag, uint64_t value,
                             size_t width)
{
    uint8_t bytes[8];
    KITH_ASSERT(width <= sizeof bytes);
    KITH_ASSERT(width == 8 || value >> (8 * width) == 0);
    put_be(bytes, value, width);
    return write_bytes(at, tag, bytes, width);
}

/* Fields 1 to 11; returns their size. */
static size_t body_encode(const struct kith_certificate *c, uint8_t *bytes)
{
    const size_t name_bytes = strlen(c->name);
    KITH_ASSERT(kith_name_is_safe((const uint8_t *)c->name, name_bytes));
    KITH_ASSERT(0 <= c->not_before_s && c->not_before_s <= c->not_after_s);
    KITH_ASSERT(c->roles != 0 && (c->roles & ~ROLES_ALL) == 0);
    uint8_t *at = write_number(bytes, TAG_VERSION, CERTIFICATE_VERSION, 1);
    at = write_bytes(at, TAG_CLUSTER, c->cluster, sizeof c->cluster);
    at = write_number(at, TAG_SERIAL, c->serial, 8);
    at = write_bytes(at, TAG_KEY, c->key, sizeof c->key);
    at = write_bytes(at, TAG_NAME, c->name, name_bytes);
    at = write_number(at, TAG_NOT_BEFORE, (uint64_t)c->not_before_s, 8);
    at = write_number(at, TAG_NOT_AFTER, (uint64_t)c->not_after_s, 8);
    at = write_number(at, TAG_ROLES, c->roles, 4);
    at = write_number(at, TAG_QUOTA_ROUND, c->quota_round_bytes, 8);
    at = write_number(at, TAG_QUOTA_MODEL, c->quota_model_bytes, 8);
    at = write_number(at, TAG_RANK, c->rank, 4);
    KITH_ASSERT((size_t)(at - bytes) <= BODY_BYTES_MAX);
    return (size_t)(at - bytes);
}

/* What the signature covers; returns its size. The context keeps a signature of
 * a certificate from being one of a revocation list (RFC 8032, section 8.3, on
 * contexts). */
static size_t
signed_bytes(const uint8_t *body, size_t body_bytes,
             uint8_t out[sizeof context + KITH_CERTIFICATE_BYTES_MAX])
{
    KITH_ASSERT(body_bytes <= KITH_CERTIFICATE_BYTES_MAX);
    memcpy(out, context, sizeof context);
    memcpy(out + sizeof context, body, body_bytes);
    return sizeof context + body_bytes;
}

/* Ed25519 (RFC 8032): deterministic, so a certificate signed twice has the same
 * bytes and the same fingerprint. */
size_t kith_certificate_sign(const struct kith_certificate *certificate,
                             const uint8_t secret[64],
                             uint8_t bytes[KITH_CERTIFICATE_BYTES_MAX])
{
    uint8_t covered[sizeof context + KITH_CERTIFICATE_BYTES_MAX];
    uint8_t signature[KITH_SIGNATURE_BYTES];
    const size_t body_bytes = body_encode(certificate, bytes);
    KITH_ASSERT(body_bytes + SIGNATURE_FIELD_BYTES <=
                KITH_CERTIFICATE_BYTES_MAX);
    const size_t covered_bytes = signed_bytes(bytes, body_bytes, covered);
    crypto_sign_detached(signature, NULL, covered, covered_bytes, secret);
    write_bytes(bytes + body_bytes, TAG_SIGNATURE, signature, sizeof signature);
    return body_bytes + SIGNATURE_FIELD_BYTES;
}

/* Either authority may sign: while one's key is being changed both are in
 * force. */
bool kith_trust_signed(const struct kith_trust *trust, const uint8_t *covered,
                       size_t bytes, const uint8_t *signature)
{
    KITH_ASSERT(trust->authority_count <= 2);
    for (uint32_t i = 0; i < trust->authority_count; i++)
        if (crypto_sign_verify_detached(signature, covered, bytes,
                                        trust->authority[i]) == 0)
            return true;
    return false;
}

bool kith_certificate_is_signed(const struct kith_trust *trust,
                                const uint8_t *bytes, size_t size)
{
    if (size < SIGNATURE_FIELD_BYTES || size > KITH_CERTIFICATE_BYTES_MAX)
        return false;
    uint8_t covered[sizeof context + KITH_CERTIFICATE_BYTES_MAX];
    const size_t covered_bytes =
        signed_bytes(bytes, size - SIGNATURE_FIELD_BYTES, covered);
    KITH_ASSERT(covered_bytes + SIGNATURE_FIELD_BYTES == size + sizeof context);
    return kith_trust_signed(trust, covered, covered_bytes,
                             bytes + size - KITH_SIGNATURE_BYTES);
}

/* Wire `full`: both ends of every link hold a real session, and the bytes that
 * travel are the sealed ones. A throw-away authority, made from the stream
 * KEYS, certifies every peer, so that the run is still a function of its seed.
 *
 * Time and bytes are charged as `sized` charges them; that the two agree is
 * asserted here for every message and every handshake. */
#include "sim/full_channel.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/rng.h"
#include "kith/session.h"
#include "kith/wire.h"
#include "sim/world.h"

#define DAY_S ((int64_t)86400)
#define OUTPUT_BYTES 2048u
/* Entities of the stream KEYS above all peers and links. */
#define ENTITY_AUTHORITY (UINT64_C(1) << 63)
#define ENTITY_EPHEMERAL (UINT64_C(1) << 62)

struct end {
    struct kith_session *session; /* NULL: closed */
    uint64_t transfer;            /* the next one's number */
    uint64_t written;             /* handshake bytes */
};

struct sim_channels {
    struct kith_trust trust;
    struct kith_identity *identities; /* (peer_count) */
    struct end (
        *ends)[2]; /* (capacity), by link: of the lower rank, the other */
    uint32_t capacity;
    uint64_t dials;
    enum kith_suite suite;
};

/* All secrets of a run are drawn from its seed: they protect nothing, and make
 * the run repeat itself. */
static void draw_bytes(const struct sim_world *world, uint64_t entity,
                       uint8_t bytes[32])
{
    KITH_ASSERT(entity >= ENTITY_EPHEMERAL || entity < KITH_PEERS_MAX);
    struct kith_rng rng;
    kith_rng_init(&rng, world->experiment->seed, KITH_STREAM_KEYS, entity);
    kith_rng_fill(&rng, bytes, 32);
}

/* A processor without AES instructions would take minutes in software, or has
 * no such provider: it runs another suite, whose bytes are as many. */
static enum kith_suite suite_of(const struct sim_world *world)
{
    KITH_ASSERT(world->options.wire == KITH_WIRE_FULL);
    const char *name = world->experiment->network.suite;
    enum kith_suite suite = KITH_SUITE_AESGCM;
    if (!kith_suite_find(name, strlen(name), &suite))
        suite = KITH_SUITE_AESGCM; /* auto */
    return kith_aead_best(suite) ? suite : KITH_SUITE_CHACHAPOLY;
}

/* The authority that nobody keeps: its keys are of the seed. */
struct authority {
    uint8_t cluster[32], public_key[32], secret[64];
};

/* Two entities of the stream: a key that certifies, and the cluster's name that
 * certificates are bound to. */
static void authority_make(const struct sim_world *world,
                           struct authority *authority)
{
    KITH_ASSERT(world->peer_count <= KITH_PEERS_MAX);
    uint8_t seed[32];
    draw_bytes(world, ENTITY_AUTHORITY, seed);
    draw_bytes(world, ENTITY_AUTHORITY + 1, authority->cluster);
    crypto_sign_seed_keypair(authority->public_key, authority->secret, seed);
}

/* All names are equally long, so all certificates are; six characters, so that
 * with the rank one is as long as before certificates had ranks: `sized` links
 * charge for every byte, and their traces stay. */
static size_t certify(const struct sim_world *world, kith_id peer,
                      const struct authority *authority,
                      struct kith_identity *identity)
{
    KITH_ASSERT(peer < KITH_PEERS_MAX);
    draw_bytes(world, peer, identity->secret);
    crypto_scalarmult_base(identity->key, identity->secret);
    struct kith_certificate certificate = {
        .serial = (uint64_t)peer + 1,
        .not_before_s = SIM_UTC_START - DAY_S,
        .not_after_s = SIM_UTC_START + 29 * DAY_S,
        .roles = KITH_ROLE_TRAIN,
        .rank = peer,
    };
    memcpy(certificate.cluster, authority->cluster, KITH_CLUSTER_BYTES);
    memcpy(certificate.key, identity->key, KITH_KEY_BYTES);
    snprintf(certificate.name, sizeof certificate.name, "%06x", peer);
    identity->certificate_bytes = kith_certificate_sign(
        &certificate, authority->secret, identity->certificate);
    return identity->certificate_bytes;
}

/* Worked out from one certificate, because all are as long: what `sized`
 * charges is known before anybody dials. */
size_t sim_channel_handshake_bytes(const struct sim_world *world,
                                   bool initiator)
{
    KITH_ASSERT(world->peer_count > 0);
    struct authority authority;
    struct kith_identity first = {0};
    authority_make(world, &authority);
    return kith_session_handshake_bytes(initiator,
                                        certify(world, 0, &authority, &first),
                                        strlen(world->experiment->model->name));
}

/* Certificates of all peers before the run, as a real cluster is given them;
 * nothing is signed while virtual time runs. */
enum kith_err sim_channels_open(struct sim_world *world)
{
    KITH_ASSERT(world->channels == NULL);
    if (sodium_init() < 0)
        return KITH_EUNSUPPORTED;
    if (world->options.wire == KITH_WIRE_SIZED)
        return KITH_OK;
    struct sim_channels *channels = sim_alloc(world, 1, sizeof *channels);
    if (!channels)
        return KITH_ENOMEM;
    world->channels = channels;
    channels->suite = suite_of(world);
    channels->identities =
        sim_alloc(world, world->peer_count, sizeof *channels->identities);
    if (!channels->identities)
        return KITH_ENOMEM;
    struct authority authority;
    authority_make(world, &authority);
    memcpy(channels->trust.cluster, authority.cluster,
           sizeof authority.cluster);
    memcpy(channels->trust.authority[0], authority.public_key,
           sizeof authority.public_key);
    channels->trust.authority_count = 1;
    channels->trust.suite = channels->suite; /* its policy */
    for (kith_id peer = 0; peer < world->peer_count; peer++) {
        struct kith_identity *identity = &channels->identities[peer];
        (void)certify(world, peer, &authority, identity);
        KITH_ASSERT(identity->certificate_bytes ==
                    channels->identities[0].certificate_bytes);
    }
    return KITH_OK;
}

/* Sessions hold keys: closing wipes them, freeing alone would not. */
static void end_close(struct end *end)
{
    KITH_ASSERT(end->session != NULL || end->transfer == 0);
    if (end->session) {
        kith_session_close(end->session);
        free(end->session);
    }
    *end = (struct end){0};
}

void sim_channels_close(struct sim_world *world)
{
    struct sim_channels *channels = world->channels;
    if (!channels)
        return;
    for (uint32_t i = 0; i < channels->capacity; i++) {
        end_close(&channels->ends[i][0]);
        end_close(&channels->ends[i][1]);
    }
    free(channels->ends);
}

/* A generation of the link is over: its sessions' keys must not serve the next
 * one. */
void sim_channel_reset(struct sim_world *world, uint32_t link)
{
    KITH_ASSERT(world->channels != NULL);
    struct sim_channels *channels = world->channels;
    if (link < channels->capacity) {
        end_close(&channels->ends[link][0]);
        end_close(&channels->ends[link][1]);
    }
}

/* Ends by the link's index, which is given out in order: an array that doubles
 * has few holes. */
static bool ends_grow(struct sim_channels *channels, uint32_t link)
{
    KITH_ASSERT(channels->capacity == 0 || channels->ends != NULL);
    if (link < channels->capacity)
        return true;
    uint32_t capacity = channels->capacity > 0 ? channels->capacity : 16;
    while (capacity <= link)
        capacity *= 2;
    struct end(*ends)[2] = realloc(channels->ends, capacity * sizeof *ends);
    if (!ends)
        return false;
    memset(ends + channels->capacity, 0,
           (capacity - channels->capacity) * sizeof *ends);
    channels->ends = ends;
    channels->capacity = capacity;
    return true;
}

/* The clock of certificates is virtual, too: a run that lasts a month of
 * virtual time meets their expiry. */
static enum kith_err end_open(struct sim_world *world, struct end *end,
                              kith_id peer, bool initiator)
{
    KITH_ASSERT(peer < world->peer_count);
    struct sim_channels *channels = world->channels;
    const struct kith_experiment *experiment = world->experiment;
    end_close(end);
    struct kith_session_config config = {
        .initiator = initiator,
        .suite = channels->suite,
        .trust = &channels->trust,
        .identity = &channels->identities[peer],
        .hello = {.experiment_hash = kith_experiment_hash(experiment),
                  .dim = world->dim,
                  .incarnation = world->peers[peer].incarnation,
                  .rank = peer},
        .utc_s = SIM_UTC_START + sim_time(world) / KITH_S,
    };
    snprintf(config.hello.model, sizeof config.hello.model, "%s",
             experiment->model->name);
    draw_bytes(world, ENTITY_EPHEMERAL + channels->dials++, config.random);
    const size_t size = (kith_session_size() + 63) / 64 * 64;
    void *memory = aligned_alloc(64, size);
    const enum kith_err err =
        memory ? kith_session_init(memory, &config, &end->session)
               : KITH_ENOMEM;
    if (err != KITH_OK) {
        free(memory);
        end->session = NULL;
    }
    return err;
}

/* Both ends at once: the responder's session exists when the first flight
 * arrives, as a listening peer's would. */
void sim_channel_dial(struct sim_world *world, uint32_t link, kith_id from,
                      kith_id to)
{
    struct sim_channels *channels = world->channels;
    enum kith_err err = KITH_ENOMEM;
    KITH_ASSERT(from != to);
    if (ends_grow(channels, link)) {
        struct end *ends = channels->ends[link];
        err = end_open(world, &ends[from > to], from, true);
        if (err == KITH_OK)
            err = end_open(world, &ends[to > from], to, false);
    }
    if (err != KITH_OK) {
        sim_fail(world, err, "cannot open a session for peer %u: %s", from,
                 kith_err_text(err));
    }
}

/* A link's ends stand in the order of their peers. */
static struct end *end_of(struct sim_world *world,
                          const struct sim_packet *packet, bool receiver)
{
    KITH_ASSERT(packet->link < world->channels->capacity);
    const bool later = (packet->from > packet->to) != receiver;
    return &world->channels->ends[packet->link][later];
}

/* The real flights, in the packet's payload; what they cost on the wire was
 * charged when they were sent. */
void sim_channel_write_flight(struct sim_world *world, uint32_t index)
{
    KITH_ASSERT(sim_packet_at(world, index)->kind >= SIM_PACKET_FIRST);
    const struct sim_packet *packet = sim_packet_at(world, index);
    struct sim_payload *payload = sim_payload_at(world, index);
    struct end *end = end_of(world, packet, false);
    if (!end->session)
        return; /* the run has failed already */
    payload->sealed = malloc(OUTPUT_BYTES);
    if (!payload->sealed) {
        sim_fail(world, KITH_ENOMEM, "no memory for a handshake");
        return;
    }
    payload->sealed_bytes =
        kith_session_output(end->session, payload->sealed, OUTPUT_BYTES);
    end->written += payload->sealed_bytes;
    /* What `sized` charges is what was really written. */
    if (packet->kind == SIM_PACKET_THIRD)
        KITH_ASSERT(end->written == world->handshake_bytes[1]);
    else if (packet->kind == SIM_PACKET_HELLO)
        KITH_ASSERT(end->written == world->handshake_bytes[0]);
}

/* Reads all of the packet's bytes; `message` and `target` are for what a
 * handshake never carries. */
static void read_bytes(struct sim_world *world, uint32_t index,
                       struct kith_message *message, uint8_t *target)
{
    const struct sim_packet *packet = sim_packet_at(world, index);
    struct sim_payload *payload = sim_payload_at(world, index);
    struct end *end = end_of(world, packet, true);
    size_t at = 0;
    enum kith_err err = end->session ? KITH_OK : KITH_ECLOSED;
    struct kith_session_event event = {.kind = KITH_SESSION_CONTROL};
    while (err == KITH_OK &&
           (at < payload->sealed_bytes || event.kind != KITH_SESSION_NONE)) {
        size_t used = 0;
        event = (struct kith_session_event){0};
        err = kith_session_read(end->session, payload->sealed + at,
                                payload->sealed_bytes - at, &used, &event);
        at += used;
        if (event.kind == KITH_SESSION_CONTROL && message && err == KITH_OK) {
            err = kith_wire_unpack(event.frame, event.frame_bytes, message);
        } else if (event.kind == KITH_SESSION_BULK) {
            kith_session_sink(end->session,
                              target ? target + event.offset : NULL);
        } else if (event.kind == KITH_SESSION_NONE && used == 0 &&
                   at < payload->sealed_bytes) {
            err = KITH_EPARSE;
        }
    }
    if (err != KITH_OK) {
        sim_fail(world, err, "peer %u refuses what peer %u says: %s (%s)",
                 packet->to, packet->from,
                 end->session ? kith_session_reason(end->session)
                              : "no session",
                 kith_err_text(err));
    }
}

/* A flight that the session refuses ends the run: between honest ends it is a
 * bug of ours. */
void sim_channel_read_flight(struct sim_world *world, uint32_t packet)
{
    read_bytes(world, packet, NULL, NULL);
}

/* Control record first, then the vector in bursts: as the channel of a real
 * peer writes them. */
static uint64_t seal_all(struct sim_world *world, struct end *end,
                         uint32_t index, size_t capacity)
{
    KITH_ASSERT(capacity >= KITH_TAG_BYTES);
    const struct sim_packet *packet = sim_packet_at(world, index);
    struct sim_payload *payload = sim_payload_at(world, index);
    uint8_t header[KITH_WIRE_BYTES_MAX];
    const size_t header_bytes = kith_wire_pack(&packet->message, header);
    size_t written = 0;
    enum kith_err err =
        kith_session_seal_control(end->session, header, header_bytes,
                                  payload->sealed, capacity, &written);
    size_t at = written;
    const uint64_t bulk_bytes =
        payload->vector ? packet->message.payload_bytes : 0;
    const uint64_t transfer = bulk_bytes > 0 ? end->transfer++ : 0;
    for (uint64_t done = 0; err == KITH_OK && done < bulk_bytes;) {
        const uint64_t left = bulk_bytes - done;
        const size_t length =
            left < KITH_BURST_BYTES ? (size_t)left : KITH_BURST_BYTES;
        err = kith_session_seal_burst(
            end->session,
            &(const struct kith_session_burst){
                transfer, done, (const uint8_t *)payload->vector + done,
                length},
            payload->sealed + at, capacity - at, &written);
        at += written;
        done += length;
    }
    if (err != KITH_OK) {
        sim_fail(world, err, "peer %u cannot seal a message: %s", packet->from,
                 kith_err_text(err));
    }
    return at;
}

/* Memory for a message's bytes is taken here and freed with the packet: only
 * `full` pays for it. */
uint64_t sim_channel_seal(struct sim_world *world, uint32_t index)
{
    KITH_ASSERT(sim_packet_at(world, index)->kind == SIM_PACKET_MESSAGE);
    const struct sim_packet *packet = sim_packet_at(world, index);
    struct sim_payload *payload = sim_payload_at(world, index);
    const uint64_t bytes = sim_message_bytes(&packet->message);
    struct end *end = end_of(world, packet, false);
    KITH_ASSERT(end->session);
    payload->sealed = malloc((size_t)bytes);
    if (!payload->sealed) {
        sim_fail(world, KITH_ENOMEM, "no memory for %llu sealed bytes",
                 (unsigned long long)bytes);
        return bytes;
    }
    payload->sealed_bytes = (size_t)seal_all(world, end, index, (size_t)bytes);
    KITH_ASSERT(payload->sealed_bytes == bytes ||
                sim_failure(world) != KITH_OK);
    return bytes;
}

/* The message and the vector are made anew from the bytes. The copy's old
 * content is overwritten first, so that nothing can pass beside the channel. */
void sim_channel_open(struct sim_world *world, uint32_t index)
{
    KITH_ASSERT(sim_payload_at(world, index)->sealed != NULL ||
                sim_failure(world) != KITH_OK);
    struct sim_packet *packet = sim_packet_at(world, index);
    struct sim_payload *payload = sim_payload_at(world, index);
    const struct kith_message sent = packet->message;
    memset(&packet->message, 0, sizeof packet->message);
    if (payload->vector)
        memset(payload->vector, 0xff, world->vector_bytes);
    read_bytes(world, index, &packet->message, payload->vector);
    packet->message.slot = sent.slot; /* local: whose chain it stood in */
}

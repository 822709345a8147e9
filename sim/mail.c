/* What peers of one division send to those of another, for the window after
 * this one (windows.c). It is copied to the other thread's memory as letters, a
 * cache line each: lines that go from core to core are what it costs. */
#include <string.h>

#include "kith/assert.h"
#include "sim/windows_state.h"

#define MAIL_LEAST 64u
#define FETCH_FARTHEST 24u
#define FETCH_FAR 16u
#define FETCH_NEAR 8u

/* Pages, not blocks: what was touched once is touched in each window. */
static bool has_room(struct sim_world *world, struct sim_mail *mail)
{
    const size_t old = mail->capacity;
    const size_t capacity = old == 0 ? MAIL_LEAST : 2 * old;
    KITH_DEBUG_ASSERT(mail->count <= old);
    if (mail->count < old)
        return true;
    void *letters = sim_pages_grow(mail->letters, old * sizeof *mail->letters,
                                   capacity * sizeof *mail->letters);
    if (letters) {
        mail->letters = letters;
        mail->capacity = capacity;
        return true;
    }
    sim_fail(world, KITH_ENOMEM, "no memory for %zu messages between threads",
             capacity);
    return false;
}

/* What a message has of its own machine alone is left out. */
static void write_letter(struct sim_letter *letter,
                         const struct sim_packet *packet)
{
    const struct kith_message *message = &packet->message;
    letter->to = packet->to;
    letter->bytes = (uint32_t)packet->bytes;
    letter->flags = packet->flags;
    letter->kind = packet->kind;
    KITH_ASSERT(packet->bytes <= UINT32_MAX);
    if (packet->kind != SIM_PACKET_MESSAGE)
        return;
    KITH_ASSERT(message->payload_bytes <= UINT32_MAX);
    KITH_ASSERT(message->overlap <= UINT8_MAX);
    letter->message = (uint8_t)message->kind;
    letter->pattern = (uint8_t)message->pattern;
    letter->counter = message->id.counter;
    letter->incarnation = message->id.incarnation;
    letter->mine = message->mine;
    letter->step = message->step;
    letter->scalar_count = (uint8_t)message->scalar_count;
    memcpy(letter->scalars, message->scalars, sizeof letter->scalars);
    letter->payload_bytes = (uint32_t)message->payload_bytes;
    letter->overlap = (uint8_t)message->overlap;
}

/* Each for itself: zeroing the whole message first took as long as the rest. */
static void read_letter(const struct sim_letter *letter,
                        struct sim_packet *packet)
{
    struct kith_message *message = &packet->message;
    packet->from = (kith_id)(letter->sequence >> 40);
    packet->to = letter->to;
    packet->bytes = letter->bytes;
    packet->flags = letter->flags;
    packet->kind = letter->kind;
    packet->generation = 0;
    if (packet->kind != SIM_PACKET_MESSAGE)
        return;
    message->kind = (enum kith_message_kind)letter->message;
    message->pattern = (enum kith_pattern)letter->pattern;
    message->id.counter = letter->counter;
    message->id.incarnation = letter->incarnation;
    message->mine = letter->mine;
    message->step = letter->step;
    message->scalar_count = letter->scalar_count;
    memcpy(message->scalars, letter->scalars, sizeof letter->scalars);
    message->payload_bytes = letter->payload_bytes;
    message->overlap = letter->overlap;
    message->slot = KITH_SLOT_NONE;
    message->finite = false;
    message->distance_squared = 0;
}

/* The event is counted where it is caused, as on one thread. */
void sim_mail_post(struct sim_world *world, uint32_t index, kith_ns at_ns)
{
    struct sim_packet *packet = sim_packet_at(world, index);
    const struct sim_division *division = world->division;
    struct sim_mail *mail =
        sim_mail_of(division, division->side, division->of[packet->to]);
    KITH_DEBUG_ASSERT(!sim_is_mine(world, packet->to));
    KITH_ASSERT(!(packet->flags & (SIM_PACKET_LISTED | SIM_PACKET_CARRIES)));
    if (!has_room(world, mail))
        return;
    if (mail->count == 0 || at_ns < mail->first_ns)
        mail->first_ns = at_ns;
    struct sim_letter *letter = &mail->letters[mail->count++];
    letter->at_ns = at_ns;
    letter->sequence = sim_sequence(world, packet->from);
    write_letter(letter, packet);
    packet->flags = 0; /* whatever it is counted as goes with it */
    sim_packet_free(world, index);
}

static uint64_t hash_of(const struct sim_letter *letter)
{
    return sim_link_table_hash((kith_id)(letter->sequence >> 40), letter->to);
}

/* What another thread has written, then links that are searched for: their
 * slots first, then they themselves. */
static void fetch_ahead(const struct sim_world *world,
                        const struct sim_mail *mail, size_t at)
{
    const struct sim_link_table *table = sim_link_table_of(world);
    const struct sim_letter *letters = mail->letters;
    KITH_DEBUG_ASSERT(at < mail->count);
    if (at + FETCH_FARTHEST < mail->count)
        sim_fetch(&letters[at + FETCH_FARTHEST]);
    if (at + FETCH_FAR < mail->count)
        sim_link_table_fetch_slot(table, hash_of(&letters[at + FETCH_FAR]));
    if (at + FETCH_NEAR < mail->count)
        sim_link_table_fetch_link(table, hash_of(&letters[at + FETCH_NEAR]));
}

static void take(struct sim_world *world, const struct sim_letter *letter)
{
    const kith_id from = (kith_id)(letter->sequence >> 40);
    uint32_t link = 0;
    const uint32_t index = sim_packet_take(world);
    if (index == 0 || !sim_link_between(world, from, letter->to, &link))
        return;
    struct sim_packet *packet = sim_packet_at(world, index);
    read_letter(letter, packet);
    packet->link = link;
    KITH_ASSERT(sim_link_at(world, link)->generation == 0);
    const enum sim_event_kind kind =
        sim_network_has_lines(world) ? SIM_EVENT_ARRIVE : SIM_EVENT_DELIVER;
    const struct sim_event event = {.time_ns = letter->at_ns,
                                    .sequence = letter->sequence,
                                    .peer = letter->to,
                                    .kind = (uint32_t)kind & 7u,
                                    .value = index & SIM_VALUE_MAX};
    sim_engine_put(world, &event);
}

/* In any order: events of a queue are told apart by what they are. Nobody posts
 * on this side meanwhile, and each thread empties its own. */
void sim_mail_take(struct sim_windows *windows, unsigned number, unsigned side)
{
    struct sim_world *world = windows->divisions[number];
    KITH_ASSERT(world->division->number == number);
    for (unsigned i = 0; i < windows->count; i++) {
        struct sim_mail *mail =
            sim_mail_of(windows->divisions[i]->division, side, number);
        for (size_t at = 0; at < mail->count; at++) {
            fetch_ahead(world, mail, at);
            take(world, &mail->letters[at]);
        }
        mail->count = 0;
    }
}

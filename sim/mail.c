/* What peers of one division send to those of another: packets, and the events
 * that they come with, for the window after this one (windows.c). */
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
    void *events = sim_pages_grow(mail->events, old * sizeof *mail->events,
                                  capacity * sizeof *mail->events);
    if (events)
        mail->events = events;
    void *packets =
        !events ? NULL
                : sim_pages_grow(mail->packets, old * sizeof *mail->packets,
                                 capacity * sizeof *mail->packets);
    if (packets) {
        mail->packets = packets;
        mail->capacity = capacity;
        return true;
    }
    sim_fail(world, KITH_ENOMEM, "no memory for %zu messages between threads",
             capacity);
    return false;
}

/* The event is counted where it is caused, as on one thread; its packet's index
 * is known where it comes in. */
void sim_mail_post(struct sim_world *world, uint32_t index, kith_ns at_ns,
                   enum sim_event_kind kind)
{
    const struct sim_packet *packet = sim_packet_at(world, index);
    const struct sim_division *division = world->division;
    struct sim_mail *mail =
        sim_mail_of(division, division->side, division->of[packet->to]);
    KITH_DEBUG_ASSERT(!sim_is_mine(world, packet->to));
    if (!has_room(world, mail))
        return;
    if (mail->count == 0 || at_ns < mail->first_ns)
        mail->first_ns = at_ns;
    mail->events[mail->count] =
        sim_event_by(world, packet->from, packet->to, at_ns, kind, 0);
    sim_packet_leave(world, index, &mail->packets[mail->count++]);
}

/* What another thread has written, then links that are searched for: their
 * slots first, then they themselves. */
static void fetch_ahead(const struct sim_world *world,
                        const struct sim_mail *mail, size_t at)
{
    const struct sim_link_table *table = sim_link_table_of(world);
    KITH_DEBUG_ASSERT(at < mail->count);
    if (at + FETCH_FARTHEST < mail->count) {
        const struct sim_packet *packet = &mail->packets[at + FETCH_FARTHEST];
        sim_fetch(packet);
        sim_fetch((const char *)packet + 64);
    }
    if (at + FETCH_FAR < mail->count) {
        const struct sim_packet *packet = &mail->packets[at + FETCH_FAR];
        sim_link_table_fetch_slot(
            table, sim_link_table_hash(packet->from, packet->to));
    }
    if (at + FETCH_NEAR < mail->count) {
        const struct sim_packet *packet = &mail->packets[at + FETCH_NEAR];
        sim_link_table_fetch_link(
            table, sim_link_table_hash(packet->from, packet->to));
    }
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
            const uint32_t packet = sim_packet_enter(world, &mail->packets[at]);
            struct sim_event event = mail->events[at];
            event.value = packet & SIM_VALUE_MAX;
            if (packet != 0)
                sim_engine_put(world, &event);
        }
        mail->count = 0;
    }
}

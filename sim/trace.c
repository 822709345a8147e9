/* The trace: every decision of a run, folded into 64 bits and, if asked for,
 * told as text with virtual timestamps. Only integers that stand for decisions
 * are hashed: time, who, what, exchange; never a float.
 *
 *     0.005200000     3  opened 5 3.0.7
 *     0.005400000     5  < request from 3 3.0.7
 *
 * An exchange is written initiator.incarnation.counter. */
#include "sim/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/fault.h"
#include "kith/hash.h"
#include "sim/world.h"

enum entry {
    ENTRY_MARK = 1,
    ENTRY_MESSAGE,
    ENTRY_LINK,
    ENTRY_FAULT,
    ENTRY_DECISION,
};

enum kith_err sim_trace_open(struct sim_world *world)
{
    KITH_ASSERT(world->trace.file == NULL);
    const char *path = world->options.trace_path;
    world->trace.hash = KITH_HASH_START;
    if (!path)
        return KITH_OK;
    world->trace.file = fopen(path, "w");
    if (!world->trace.file) {
        return sim_fail(world, KITH_EIO, "cannot write the trace to %s: %s",
                        path, strerror(errno));
    }
    return KITH_OK;
}

/* A trace that cannot be written fails the run: half a story would be taken for
 * the whole. */
void sim_trace_close(struct sim_world *world)
{
    if (!world->trace.file)
        return;
    fprintf(world->trace.file, "hash %016" PRIx64 "\n", world->trace.hash);
    const bool failed = ferror(world->trace.file) != 0;
    if (fclose(world->trace.file) != 0 || failed) {
        sim_fail(world, KITH_EIO, "cannot write the trace to %s: %s",
                 world->options.trace_path, strerror(errno));
    }
    world->trace.file = NULL;
}

void sim_trace_fold(struct sim_world *world, uint64_t entry)
{
    KITH_DEBUG_ASSERT(world->division == NULL);
    world->trace.hash = kith_hash_word(world->trace.hash, entry);
}

/* One entry of five words. The pairs are mixed on their own first, so that a
 * processor overlaps the entries and only the last step is a chain. */
SIM_INLINE void fold(struct sim_world *world, uint64_t what, kith_id peer,
                     kith_id other, uint64_t counter, uint64_t value)
{
    const uint64_t when =
        kith_hash_word((uint64_t)sim_time(world), (uint64_t)peer << 32 | other);
    const uint64_t which = kith_hash_word(what, counter);
    const uint64_t entry = kith_hash_word(when, which);
    const uint64_t word = kith_hash_word(entry, value);
    if (world->division)
        sim_note_trace(world, word);
    else if (world->aside && sim_aside_notes(world))
        sim_aside_note_trace(world, word);
    else
        sim_trace_fold(world, word);
}

/* Kinds of entries are kept apart by the top byte. */
_Static_assert(KITH_MESSAGE_COUNT <= 1u << 8, "a message's kind << 16");
static uint64_t what_of(enum entry entry, uint32_t incarnation, unsigned kind)
{
    return (uint64_t)entry << 56 | (uint64_t)incarnation << 24 | kind;
}

/* Nanoseconds as decimals, so that lines sort as text. */
static void stamp(struct sim_world *world, kith_id peer, const char *what)
{
    KITH_ASSERT(sim_time(world) >= 0);
    fprintf(world->trace.file, "%5" PRId64 ".%09" PRId64,
            sim_time(world) / KITH_S, sim_time(world) % KITH_S);
    if (peer != KITH_NOBODY)
        fprintf(world->trace.file, " %5" PRIu32 "  %s", peer, what);
    else
        fprintf(world->trace.file, "     -  %s", what);
}

/* Nothing is written of nobody. */
static void write_peer(struct sim_world *world, const char *before,
                       kith_id peer)
{
    KITH_ASSERT(peer == KITH_NOBODY || peer < world->machine_count);
    if (peer != KITH_NOBODY)
        fprintf(world->trace.file, "%s%" PRIu32, before, peer);
}

/* Both sides of an exchange are found by one search: it has the same name on
 * both. */
static void write_exchange(struct sim_world *world, kith_id initiator,
                           const struct kith_exchange_id *id)
{
    KITH_ASSERT(world->trace.file != NULL);
    fprintf(world->trace.file, " %" PRIu32 ".%" PRIu32 ".%" PRIu64, initiator,
            id->incarnation, id->counter);
}

static void write_mark(struct sim_world *world, kith_id peer,
                       const struct kith_mark *mark)
{
    KITH_ASSERT(mark->kind < KITH_MARK_COUNT);
    stamp(world, peer, kith_mark_name(mark->kind));
    write_peer(world, " ", mark->peer);
    if (mark->peer != KITH_NOBODY &&
        (mark->id.counter != 0 || mark->id.incarnation != 0 || mark->initiator))
        write_exchange(world, mark->initiator ? peer : mark->peer, &mark->id);
    if (mark->value != 0)
        fprintf(world->trace.file, " value %" PRIu64, mark->value);
    fputc('\n', world->trace.file);
}

/* The hash is folded whether or not anybody reads: a trace must not change what
 * it tells of. */
void sim_trace_mark(struct sim_world *world, kith_id peer,
                    const struct kith_mark *mark)
{
    KITH_DEBUG_ASSERT(peer < world->peer_count);
    const unsigned kind = (unsigned)mark->kind << 1 | mark->initiator;
    fold(world, what_of(ENTRY_MARK, mark->id.incarnation, kind), peer,
         mark->peer, mark->id.counter, mark->value);
    if (world->trace.file)
        write_mark(world, peer, mark);
    if (world->timeline)
        sim_timeline_mark(world, peer, mark);
}

/* The slot, the values and the bytes on the wire are left out: they are no
 * decisions, and `full` must hash as `sized`. */
void sim_trace_message(struct sim_world *world, const struct sim_packet *packet)
{
    const struct kith_message *message = &packet->message;
    const bool lost = packet->flags & SIM_PACKET_DROPPED;
    const unsigned kind = (unsigned)message->kind << 16 |
                          (unsigned)message->pattern << 8 |
                          (message->mine ? 2u : 0u) | lost;
    fold(world, what_of(ENTRY_MESSAGE, message->id.incarnation, kind),
         packet->to, packet->from, message->id.counter, message->step);
    if (!world->trace.file)
        return;
    stamp(world, packet->to, "< ");
    fputs(kith_message_name(message->kind), world->trace.file);
    write_peer(world, " from ", packet->from);
    write_exchange(world, message->mine ? packet->from : packet->to,
                   &message->id);
    fputs(lost ? " lost on the way\n" : "\n", world->trace.file);
}

void sim_trace_link(struct sim_world *world, kith_id peer, kith_id other,
                    bool up)
{
    KITH_ASSERT(peer != other);
    fold(world, what_of(ENTRY_LINK, 0, up), peer, other, 0, 0);
    if (world->trace.file) {
        stamp(world, peer, "link with");
        write_peer(world, " ", other);
        fputs(up ? " is up\n" : " is down\n", world->trace.file);
    }
    if (world->timeline)
        sim_timeline_link(world, peer, other, up);
}

void sim_trace_fault(struct sim_world *world, const struct kith_atom *atom)
{
    const struct kith_fault_event *event = kith_atom_event(atom);
    KITH_ASSERT(event->name != NULL);
    fold(world, what_of(ENTRY_FAULT, 0, event->number), atom->peer, atom->other,
         0, 0);
    if (world->timeline)
        sim_timeline_fault(world, atom);
    if (!world->trace.file)
        return;
    stamp(world, KITH_NOBODY, "fault: ");
    fputs(event->name, world->trace.file);
    if (atom->sides) { /* too many links to tell each */
        char text[128];
        fprintf(world->trace.file, " %s\n",
                kith_sides_text(atom->sides, text, sizeof text));
        return;
    }
    write_peer(world, " ", atom->peer);
    write_peer(world, " -> ", atom->other);
    if (kith_atom_has_factor(atom))
        fprintf(world->trace.file, " by %g", atom->factor);
    fputc('\n', world->trace.file);
}

/* The words are hashed as text: a method may name its decisions as its paper
 * does. */
void sim_trace_decision(struct sim_world *world, const char *what, kith_id peer,
                        kith_id other, uint64_t value)
{
    KITH_ASSERT(peer == KITH_NOBODY || peer < world->machine_count);
    fold(world, what_of(ENTRY_DECISION, 0, 0), peer, other,
         kith_hash_bytes(KITH_HASH_START, what, strlen(what)), value);
    if (!world->trace.file)
        return;
    stamp(world, peer, what);
    write_peer(world, " ", other);
    fprintf(world->trace.file, " value %" PRIu64 "\n", value);
}

uint64_t sim_trace_hash(const struct sim_world *world)
{
    return world->trace.hash;
}

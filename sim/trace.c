/* The trace: every decision of a run, folded into 64 bits and, if asked for,
 * told as text with virtual timestamps. Only integers that stand for decisions
 * are hashed: time, who, what, exchange; never a float.
 *
 *     0.005200000     3  opened 5 3.0.7
 *     0.005400000     5  < request from 3 3.0.7
 *
 * An exchange is written initiator.incarnation.counter. */
#include "sim/world.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "kith/hash.h"

enum entry { ENTRY_MARK = 1, ENTRY_MESSAGE, ENTRY_LINK, ENTRY_FAULT };

enum kith_err sim_trace_open(struct sim_world *world)
{
    const char *path = world->options.trace_path;
    if (!path) {
        return KITH_OK;
    }
    world->trace = fopen(path, "w");
    if (!world->trace) {
        sim_fail(world, KITH_EIO, "cannot write the trace to %s: %s", path,
                 strerror(errno));
        return KITH_EIO;
    }
    return KITH_OK;
}

void sim_trace_close(struct sim_world *world)
{
    if (!world->trace) {
        return;
    }
    fprintf(world->trace, "hash %016" PRIx64 "\n", world->trace_hash);
    const bool failed = ferror(world->trace) != 0;
    if (fclose(world->trace) != 0 || failed) {
        sim_fail(world, KITH_EIO, "cannot write the trace to %s: %s",
                 world->options.trace_path, strerror(errno));
    }
    world->trace = NULL;
}

/* One entry of five words. The pairs are mixed on their own first, so that a
 * processor overlaps the entries and only the last step is a chain. */
static void fold(struct sim_world *world, uint64_t what, kith_id peer,
                 kith_id other, uint64_t counter, uint64_t value)
{
    const uint64_t when =
        kith_hash_word((uint64_t)world->now_ns, (uint64_t)peer << 32 | other);
    const uint64_t which = kith_hash_word(what, counter);
    const uint64_t entry = kith_hash_word(when, which);
    world->trace_hash =
        kith_hash_word(world->trace_hash, kith_hash_word(entry, value));
}

/* Kinds of entries are kept apart by the top byte. */
static uint64_t what_of(enum entry entry, uint32_t incarnation, unsigned kind)
{
    return (uint64_t)entry << 56 | (uint64_t)incarnation << 24 | kind;
}

static void stamp(struct sim_world *world, kith_id peer)
{
    const char *format = peer == KITH_NOBODY
                             ? "%5" PRId64 ".%09" PRId64 "     -  "
                             : "%5" PRId64 ".%09" PRId64 " %5" PRIu32 "  ";
    fprintf(world->trace, format, world->now_ns / KITH_S,
            world->now_ns % KITH_S, peer);
}

static void tell_exchange(struct sim_world *world, kith_id initiator,
                          const struct kith_exchange_id *id)
{
    fprintf(world->trace, " %" PRIu32 ".%" PRIu32 ".%" PRIu64, initiator,
            id->incarnation, id->counter);
}

static void tell_mark(struct sim_world *world, kith_id peer,
                      const struct kith_mark *mark)
{
    stamp(world, peer);
    fprintf(world->trace, "%s", kith_mark_name(mark->kind));
    if (mark->peer != KITH_NOBODY) {
        fprintf(world->trace, " %" PRIu32, mark->peer);
        if (mark->id.counter != 0 || mark->id.incarnation != 0 ||
            mark->initiator) {
            tell_exchange(world, mark->initiator ? peer : mark->peer,
                          &mark->id);
        }
    }
    if (mark->value != 0) {
        fprintf(world->trace, " value %" PRIu64, mark->value);
    }
    fputc('\n', world->trace);
}

void sim_trace_mark(struct sim_world *world, kith_id peer,
                    const struct kith_mark *mark)
{
    const unsigned kind = (unsigned)mark->kind << 1 | mark->initiator;
    fold(world, what_of(ENTRY_MARK, mark->id.incarnation, kind), peer,
         mark->peer, mark->id.counter, mark->value);
    if (world->trace) {
        tell_mark(world, peer, mark);
    }
}

static void tell_message(struct sim_world *world,
                         const struct sim_parcel *parcel)
{
    const struct kith_message *message = &parcel->message;
    stamp(world, parcel->to);
    fprintf(world->trace, "< %s from %" PRIu32,
            kith_message_name(message->kind), parcel->from);
    tell_exchange(world, message->mine ? parcel->from : parcel->to,
                  &message->id);
    fprintf(world->trace, "%s\n",
            parcel->flags & SIM_PARCEL_DROPPED ? " lost on the way" : "");
}

void sim_trace_message(struct sim_world *world, const struct sim_parcel *parcel)
{
    const struct kith_message *message = &parcel->message;
    const unsigned kind = (unsigned)message->kind << 16 |
                          (unsigned)message->pattern << 8 |
                          (message->mine ? 2u : 0u) |
                          (parcel->flags & SIM_PARCEL_DROPPED ? 1u : 0u);
    fold(world, what_of(ENTRY_MESSAGE, message->id.incarnation, kind),
         parcel->to, parcel->from, message->id.counter, message->step);
    if (world->trace) {
        tell_message(world, parcel);
    }
}

void sim_trace_link(struct sim_world *world, kith_id peer, kith_id other,
                    bool up)
{
    fold(world, what_of(ENTRY_LINK, 0, up), peer, other, 0, 0);
    if (world->trace) {
        stamp(world, peer);
        fprintf(world->trace, "link with %" PRIu32 " is %s\n", other,
                up ? "up" : "down");
    }
}

void sim_trace_fault(struct sim_world *world, const struct kith_atom *atom)
{
    fold(world, what_of(ENTRY_FAULT, 0, atom->kind), atom->peer, atom->other, 0,
         0);
    if (!world->trace) {
        return;
    }
    stamp(world, KITH_NOBODY);
    fprintf(world->trace, "fault: %s %" PRIu32, kith_fault_name(atom->kind),
            atom->peer);
    if (atom->other != KITH_NOBODY) {
        fprintf(world->trace, " -> %" PRIu32, atom->other);
    }
    if (kith_fault_has_factor(atom->kind)) {
        fprintf(world->trace, " by %g", atom->factor);
    }
    fputc('\n', world->trace);
}

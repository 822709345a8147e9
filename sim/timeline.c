/* See timeline.h. A span is written when it ends, for the format asks for no
 * order. */
#include "sim/timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/fault.h"
#include "kith/limits.h"
#include "kith/text.h"
#include "sim/world.h"

struct timeline_peer {
    kith_ns began_ns; /* of the item that is out */
    uint64_t step;
    enum kith_work_kind kind;
    bool works;
};

struct sim_timeline {
    FILE *file;
    struct sim_window window;
    struct timeline_peer *peers; /* of the window */
    kith_ns *sent_ns;            /* (capacity), by packet */
    uint32_t capacity;
    uint64_t events, messages;
    kith_ns ended_ns; /* of the last event that had a place; KITH_NEVER */
};

/* ---- lines */

static bool is_chosen(const struct sim_timeline *timeline, kith_id peer)
{
    KITH_DEBUG_ASSERT(timeline->window.first <= timeline->window.last);
    return peer >= timeline->window.first && peer <= timeline->window.last;
}

/* One more event of a peer's, from its name to its time; false: it is not
 * wanted, or the file has enough. */
static bool begin(struct sim_timeline *timeline, kith_id peer, kith_ns from_ns,
                  kith_ns to_ns, const char *phase)
{
    KITH_ASSERT(from_ns <= to_ns);
    if (to_ns < timeline->window.from_ns || from_ns > timeline->window.to_ns)
        return false;
    if (timeline->events >= SIM_TIMELINE_EVENTS_MAX) {
        if (timeline->ended_ns == KITH_NEVER)
            timeline->ended_ns = from_ns;
        return false;
    }
    fprintf(timeline->file,
            "%s\n{\"ph\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
            ",\"ts\":%" PRId64 ".%03d",
            timeline->events++ > 0 ? "," : "", phase, peer, peer,
            from_ns / KITH_US, (int)(from_ns % KITH_US));
    return true;
}

static void write_span(FILE *file, const char *key, kith_ns span_ns)
{
    KITH_ASSERT(span_ns >= 0);
    fprintf(file, ",\"%s\":%" PRId64 ".%03d", key, span_ns / KITH_US,
            (int)(span_ns % KITH_US));
}

static void name_peer(struct sim_timeline *timeline, kith_id peer)
{
    KITH_ASSERT(is_chosen(timeline, peer));
    fprintf(timeline->file,
            "%s\n{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
            ",\"name\":\"process_name\",\"args\":{\"name\":\"peer\"}}"
            ",\n{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
            ",\"name\":\"thread_name\",\"args\":{\"name\":\"peer %" PRIu32
            "\"}}",
            timeline->events > 0 ? "," : "", peer, peer, peer, peer, peer);
    timeline->events += 2;
}

/* ---- the window */

/* "A..B" or "A" in two; false: too long. */
static bool split(const char *text, char from[32], char to[32])
{
    const char *dots = strstr(text, "..");
    const size_t length = dots ? (size_t)(dots - text) : strlen(text);
    KITH_DEBUG_ASSERT(text != NULL);
    if (length >= 32 || !kith_text_copy(to, 32, dots ? dots + 2 : text))
        return false;
    memcpy(from, text, length);
    from[length] = '\0';
    return true;
}

bool sim_window_parse(const char *text, struct sim_window *window)
{
    char copy[128], from[32], to[32];
    uint64_t first, last;
    *window = (struct sim_window){0, 15, 0, KITH_NEVER};
    if (text == NULL)
        return true;
    if (!kith_text_copy(copy, sizeof copy, text))
        return false;
    char *comma = strchr(copy, ',');
    if (comma)
        *comma = '\0';
    if (!split(copy, from, to) || kith_text_u64(from, &first) != KITH_OK ||
        kith_text_u64(to, &last) != KITH_OK || first > last ||
        last >= KITH_PEERS_MAX)
        return false;
    window->first = (kith_id)first;
    window->last = (kith_id)last;
    KITH_ASSERT(window->to_ns == KITH_NEVER);
    return !comma || (split(comma + 1, from, to) &&
                      kith_text_time(from, &window->from_ns) == KITH_OK &&
                      kith_text_time(to, &window->to_ns) == KITH_OK &&
                      window->from_ns <= window->to_ns);
}

/* ---- opening and closing */

enum kith_err sim_timeline_open(struct sim_world *world)
{
    const char *path = world->options.timeline_path;
    KITH_ASSERT(world->timeline == NULL);
    if (!path)
        return KITH_OK;
    if (world->experiment->central.present)
        return sim_fail(world, KITH_EINVAL,
                        "cannot write a timeline to %s: machines of a central "
                        "method have no work items; leave out `central:`, or "
                        "--timeline",
                        path);
    struct sim_timeline *timeline = sim_alloc(world, 1, sizeof *timeline);
    if (!timeline)
        return KITH_ENOMEM;
    timeline->window = world->options.window;
    timeline->ended_ns = KITH_NEVER;
    struct sim_window *window = &timeline->window;
    if (window->first >= world->machine_count)
        return sim_fail(world, KITH_EINVAL,
                        "--window: found peer %" PRIu32
                        "; allowed: 0 to %" PRIu32,
                        window->first, world->machine_count - 1);
    if (window->last >= world->machine_count)
        window->last = world->machine_count - 1;
    timeline->peers = sim_alloc(world, window->last - window->first + 1,
                                sizeof *timeline->peers);
    if (!timeline->peers)
        return KITH_ENOMEM;
    timeline->file = fopen(path, "w");
    if (!timeline->file)
        return sim_fail(world, KITH_EIO, "cannot write the timeline to %s: %s",
                        path, strerror(errno));
    world->timeline = timeline;
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", timeline->file);
    for (kith_id peer = window->first; peer <= window->last; peer++)
        name_peer(timeline, peer);
    return KITH_OK;
}

void sim_timeline_close(struct sim_world *world)
{
    struct sim_timeline *timeline = world->timeline;
    if (!timeline)
        return;
    KITH_ASSERT(timeline->file != NULL);
    fputs("\n]", timeline->file);
    if (timeline->ended_ns != KITH_NEVER)
        fprintf(timeline->file,
                ",\"otherData\":{\"ends\":\"after %u events, at %.6f s; choose "
                "fewer peers or less time with --window\"}",
                SIM_TIMELINE_EVENTS_MAX, (double)timeline->ended_ns / KITH_S);
    fputs("}\n", timeline->file);
    const bool failed = ferror(timeline->file) != 0;
    if (fclose(timeline->file) != 0 || failed)
        sim_fail(world, KITH_EIO, "cannot write the timeline to %s: %s",
                 world->options.timeline_path, strerror(errno));
    free(timeline->sent_ns);
    world->timeline = NULL;
}

/* ---- spans */

static struct timeline_peer *peer_of(struct sim_timeline *timeline,
                                     kith_id peer)
{
    KITH_DEBUG_ASSERT(timeline == NULL || timeline->peers != NULL);
    return timeline && is_chosen(timeline, peer)
               ? &timeline->peers[peer - timeline->window.first]
               : NULL;
}

void sim_timeline_work(struct sim_world *world, kith_id id,
                       const struct kith_work *work)
{
    struct timeline_peer *peer = peer_of(world->timeline, id);
    if (!peer)
        return;
    KITH_ASSERT(!peer->works);
    *peer =
        (struct timeline_peer){sim_time(world), work->step, work->kind, true};
}

/* What takes no time is no span. */
void sim_timeline_worked(struct sim_world *world, kith_id id)
{
    struct timeline_peer *peer = peer_of(world->timeline, id);
    const kith_ns now_ns = sim_time(world);
    if (!peer || !peer->works)
        return;
    peer->works = false;
    KITH_ASSERT(peer->began_ns <= now_ns);
    if (now_ns == peer->began_ns ||
        !begin(world->timeline, id, peer->began_ns, now_ns, "X"))
        return;
    write_span(world->timeline->file, "dur", now_ns - peer->began_ns);
    fprintf(world->timeline->file,
            ",\"cat\":\"work\",\"name\":\"%s\",\"args\":{\"step\":%" PRIu64
            "}}",
            kith_work_name(peer->kind), peer->step);
}

void sim_timeline_sent(struct sim_world *world, uint32_t packet)
{
    struct sim_timeline *timeline = world->timeline;
    if (!timeline)
        return;
    if (packet >= timeline->capacity) {
        const uint32_t capacity = 2 * packet + 64;
        kith_ns *more = realloc(timeline->sent_ns, capacity * sizeof *more);
        if (!more) {
            sim_fail(world, KITH_ENOMEM, "no memory for a timeline's messages");
            return;
        }
        memset(more + timeline->capacity, 0,
               (capacity - timeline->capacity) * sizeof *more);
        timeline->sent_ns = more;
        timeline->capacity = capacity;
    }
    KITH_ASSERT(packet < timeline->capacity);
    timeline->sent_ns[packet] = sim_time(world);
}

/* An asynchronous span of the sender's, for several may be under way. */
void sim_timeline_message(struct sim_world *world, uint32_t index)
{
    struct sim_timeline *timeline = world->timeline;
    const struct sim_packet *packet = sim_packet_at(world, index);
    if (!is_chosen(timeline, packet->from) && !is_chosen(timeline, packet->to))
        return;
    const kith_ns now_ns = sim_time(world);
    KITH_ASSERT(index < timeline->capacity);
    const kith_ns sent_ns = timeline->sent_ns[index];
    const char *name = kith_message_name(packet->message.kind);
    const uint64_t id = timeline->messages++;
    if (!begin(timeline, packet->from, sent_ns, now_ns, "b"))
        return;
    fprintf(timeline->file,
            ",\"cat\":\"message\",\"id\":%" PRIu64 ",\"name\":\"%s to %" PRIu32
            "\",\"args\":{\"to\":%" PRIu32 ",\"bytes\":%" PRIu64
            ",\"lost\":%s}}",
            id, name, packet->to, packet->to, packet->bytes,
            packet->flags & SIM_PACKET_DROPPED ? "true" : "false");
    /* Without a limit: what has begun ends. */
    fprintf(timeline->file,
            ",\n{\"ph\":\"e\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
            ",\"ts\":%" PRId64 ".%03d,\"cat\":\"message\",\"id\":%" PRIu64
            ",\"name\":\"%s to %" PRIu32 "\"}",
            packet->from, packet->from, now_ns / KITH_US,
            (int)(now_ns % KITH_US), id, name, packet->to);
    timeline->events++;
}

/* ---- instants */

static void write_instant(struct sim_world *world, kith_id peer,
                          const char *category, const char *name, kith_id other,
                          uint64_t value)
{
    struct sim_timeline *timeline = world->timeline;
    const kith_ns now_ns = sim_time(world);
    KITH_ASSERT(name != NULL);
    if (!begin(timeline, peer, now_ns, now_ns, "i"))
        return;
    fprintf(timeline->file, ",\"s\":\"t\",\"cat\":\"%s\",\"name\":\"%s",
            category, name);
    if (other != KITH_NOBODY)
        fprintf(timeline->file, " %" PRIu32, other);
    fprintf(timeline->file, "\",\"args\":{\"value\":%" PRIu64 "}}", value);
}

/* A step is the span of its item. */
void sim_timeline_mark(struct sim_world *world, kith_id peer,
                       const struct kith_mark *mark)
{
    KITH_ASSERT(mark->kind < KITH_MARK_COUNT);
    if (peer_of(world->timeline, peer) && mark->kind != KITH_MARK_STEP)
        write_instant(world, peer, "decision", kith_mark_name(mark->kind),
                      mark->peer, mark->value);
}

void sim_timeline_link(struct sim_world *world, kith_id peer, kith_id other,
                       bool up)
{
    KITH_ASSERT(peer != other);
    if (peer_of(world->timeline, peer))
        write_instant(world, peer, "link", up ? "link up" : "link down", other,
                      up);
}

/* Of a link, where both ends are chosen; of more links than anybody tells one
 * by one, nothing. */
void sim_timeline_fault(struct sim_world *world, const struct kith_atom *atom)
{
    const struct kith_fault_event *event = kith_atom_event(atom);
    KITH_ASSERT(event->name != NULL);
    if (atom->sides == NULL && peer_of(world->timeline, atom->peer) &&
        (atom->other == KITH_NOBODY || peer_of(world->timeline, atom->other)))
        write_instant(world, atom->peer, "fault", event->name, atom->other, 0);
}

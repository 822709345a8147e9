/* Messages of a replay: what peers have sent and nobody has received yet.
 *
 * Two equal messages of one sender say the same, so which of them was received
 * does not matter; a model's bytes stand in the slot until its exchange is
 * over. The oldest equal one is taken, of the sender's latest process: what
 * a killed one had left on its way came before its next one dialled. */
#include "sim/replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"

/* A model's bytes are shared by all messages that carry it, and go with the
 * last. */
static void bytes_release(struct sim_replay_bytes *bytes)
{
    KITH_ASSERT(bytes == NULL || bytes->references > 0);
    if (bytes != NULL && --bytes->references == 0)
        free(bytes);
}

/* The message's own memory and its share of the model. */
void sim_replay_message_free(struct sim_replay_message *entry)
{
    KITH_ASSERT(entry != NULL);
    bytes_release(entry->model);
    free(entry);
}

/* An item may fill the slots anew: messages keep what was copied, and the next
 * one copies again. */
void sim_replay_forget(struct sim_replay_peer *state)
{
    KITH_ASSERT(state->process != SIM_REPLAY_STARTED || state->worker != NULL);
    for (uint32_t slot = 0; slot < KITH_SLOT_ROUND_EDGES; slot++) {
        bytes_release(state->sent[slot]);
        state->sent[slot] = NULL;
    }
}

/* A round's snapshot goes to all its neighbours: it is copied once. */
static struct sim_replay_bytes *copy_slot(struct sim_replay_peer *state,
                                          uint32_t slot, size_t size)
{
    KITH_ASSERT(state->worker != NULL);
    const bool shared = slot < KITH_SLOT_ROUND_EDGES;
    struct sim_replay_bytes *bytes = shared ? state->sent[slot] : NULL;
    if (bytes != NULL && bytes->size == size) {
        bytes->references++;
        return bytes;
    }
    bytes = malloc(sizeof *bytes + size);
    if (bytes == NULL)
        return NULL;
    bytes->references = 1;
    bytes->size = size;
    memcpy(bytes->values, kith_worker_slot(state->worker, slot), size);
    if (shared) {
        bytes_release(state->sent[slot]);
        state->sent[slot] = bytes;
        bytes->references++;
    }
    return bytes;
}

/* Beyond the bound the oldest is lost for sure: links deliver in order. */
static void drop_oldest(struct sim_replay *replay,
                        struct sim_replay_peer *state)
{
    KITH_ASSERT(state->waiting > 0 && state->first != NULL);
    struct sim_replay_message *entry = state->first;
    state->first = entry->next;
    if (state->first == NULL)
        state->last = &state->first;
    state->waiting--;
    replay->report->lost++;
    sim_replay_message_free(entry);
}

/* Packed as the channel packs it: equal bytes are what makes a sent and a
 * received message the same. */
void sim_replay_send(struct sim_replay *replay, kith_id from,
                     const struct kith_send *send)
{
    KITH_ASSERT(from < replay->peers && send->to < replay->peers);
    struct sim_replay_peer *sender = &replay->peer_states[from];
    struct sim_replay_peer *state = &replay->peer_states[send->to];
    const struct kith_message *message = &send->message;
    const bool model = message->kind == KITH_MESSAGE_MODEL;
    /* The driver drops it, too. */
    if (model && kith_worker_outgoing(sender->worker, message->slot, true) !=
                     KITH_OUTGOING_READY)
        return;
    struct sim_replay_message *entry = calloc(1, sizeof *entry);
    if (entry != NULL && model)
        entry->model =
            copy_slot(sender, message->slot, (size_t)message->payload_bytes);
    if (entry == NULL || (model && entry->model == NULL)) {
        free(entry);
        sim_replay_fail(replay, KITH_ENOMEM, "no memory for a message");
        return;
    }
    entry->from = from;
    entry->process = sender->incarnation;
    entry->message = *message;
    entry->header_bytes = kith_wire_pack(message, entry->header);
    *state->last = entry;
    state->last = &entry->next;
    if (++state->waiting > SIM_REPLAY_WAITING_MAX)
        drop_oldest(replay, state);
}

/* The link before the entry that is to be taken; NULL: there is none. */
static struct sim_replay_message **find(const struct sim_replay *replay,
                                        kith_id to, kith_id from,
                                        const struct kith_message *message)
{
    /* `from` is what a file says. */
    KITH_ASSERT(to < replay->peers);
    uint8_t header[KITH_WIRE_BYTES_MAX];
    const size_t size = kith_wire_pack(message, header);
    struct sim_replay_message **found = NULL;
    for (struct sim_replay_message **link = &replay->peer_states[to].first;
         *link != NULL; link = &(*link)->next)
        if ((*link)->from == from && (*link)->header_bytes == size &&
            memcmp((*link)->header, header, size) == 0 &&
            (found == NULL || (*link)->process > (*found)->process))
            found = link;
    return found;
}

/* Asked of every peer's next entry, so that an event waits until its message
 * has been sent. */
bool sim_replay_has(const struct sim_replay *replay, kith_id to, kith_id from,
                    const struct kith_message *message)
{
    KITH_ASSERT(replay->peer_states[to].has_head);
    return find(replay, to, from, message) != NULL;
}

/* The tail moves where the last one goes. */
static struct sim_replay_message *unlink_entry(struct sim_replay_peer *state,
                                               struct sim_replay_message **link)
{
    KITH_ASSERT(state->waiting > 0 && *link != NULL);
    struct sim_replay_message *entry = *link;
    *link = entry->next;
    if (entry->next == NULL)
        state->last = link;
    state->waiting--;
    return entry;
}

/* Models go one after another over a link: those sent long before one that
 * arrived will not. */
static void pass_over(struct sim_replay *replay, struct sim_replay_peer *state,
                      const struct sim_replay_message *taken_at, kith_id from)
{
    KITH_ASSERT(from < replay->peers);
    uint32_t before = 0;
    for (struct sim_replay_message *l = state->first; l != taken_at;
         l = l->next)
        before += l->from == from && l->model != NULL;
    struct sim_replay_message **link = &state->first;
    while (before > SIM_REPLAY_PASSED_MAX) {
        if ((*link)->from != from || (*link)->model == NULL) {
            link = &(*link)->next;
            continue;
        }
        sim_replay_message_free(unlink_entry(state, link));
        replay->report->lost++;
        before--;
    }
}

/* A model that was taken proves that those sent long before it are lost: they
 * would have come first. */
struct sim_replay_message *sim_replay_take(struct sim_replay *replay,
                                           kith_id to, kith_id from,
                                           const struct kith_message *message)
{
    KITH_ASSERT(to < replay->peers);
    struct sim_replay_peer *state = &replay->peer_states[to];
    struct sim_replay_message **link = find(replay, to, from, message);
    if (link == NULL)
        return NULL;
    struct sim_replay_message *entry = unlink_entry(state, link);
    if (entry->model != NULL)
        pass_over(replay, state, entry->next, from);
    return entry;
}

/* What a reader of the error needs to find the message in a trace. */
void sim_replay_message_text(const struct kith_message *message, char *text,
                             size_t size)
{
    KITH_ASSERT(size > 0);
    snprintf(text, size, "%s of %s %" PRIu32 ".%" PRIu64 "%s, step %" PRIu64,
             kith_message_name(message->kind),
             kith_pattern_name(message->pattern), message->id.incarnation,
             message->id.counter, message->mine ? " (its own)" : "",
             message->step);
}

/* The newest is the likeliest to be the one that differs. */
void sim_replay_waiting_text(const struct sim_replay *replay, kith_id to,
                             kith_id from, char *text, size_t size)
{
    KITH_ASSERT(to < replay->peers && size > 0);
    const struct sim_replay_message *newest = NULL;
    for (const struct sim_replay_message *l = replay->peer_states[to].first;
         l != NULL; l = l->next)
        if (l->from == from)
            newest = l;
    if (newest == NULL)
        snprintf(text, size, "nothing");
    else
        sim_replay_message_text(&newest->message, text, size);
}

/* What still waits nobody has received: lost with a link, or sent when the lab
 * ended. */
void sim_replay_messages_close(struct sim_replay *replay)
{
    KITH_ASSERT(replay->peer_states != NULL);
    for (uint32_t i = 0; i < replay->peers; i++) {
        struct sim_replay_peer *state = &replay->peer_states[i];
        while (state->first != NULL)
            drop_oldest(replay, state);
        sim_replay_forget(state);
    }
}

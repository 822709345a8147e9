/* Letters of a replay: what peers have sent and nobody has received yet.
 *
 * Two equal letters of one sender say the same, so which of them was received
 * does not matter; a model's bytes stand in the slot until its exchange is
 * over. The oldest equal one is taken, of the sender's latest life: what one
 * that was killed had left on its way came before its next one dialled. */
#include "sim/replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void parcel_release(struct sim_parcel *parcel)
{
    if (parcel != NULL && --parcel->references == 0)
        free(parcel);
}

void sim_letter_free(struct sim_letter *letter)
{
    parcel_release(letter->parcel);
    free(letter);
}

void sim_mail_forget(struct sim_actor *actor)
{
    for (uint32_t slot = 0; slot < KITH_SLOT_ROUND_EDGES; slot++) {
        parcel_release(actor->sent[slot]);
        actor->sent[slot] = NULL;
    }
}

/* A round's snapshot goes to all its neighbours: it is copied once. */
static struct sim_parcel *copy_slot(struct sim_actor *actor, uint32_t slot,
                                    size_t size)
{
    const bool shared = slot < KITH_SLOT_ROUND_EDGES;
    struct sim_parcel *parcel = shared ? actor->sent[slot] : NULL;
    if (parcel != NULL && parcel->size == size) {
        parcel->references++;
        return parcel;
    }
    parcel = malloc(sizeof *parcel + size);
    if (parcel == NULL)
        return NULL;
    parcel->references = 1;
    parcel->size = size;
    memcpy(parcel->bytes, kith_worker_slot(actor->worker, slot), size);
    if (shared) {
        parcel_release(actor->sent[slot]);
        actor->sent[slot] = parcel;
        parcel->references++;
    }
    return parcel;
}

static void drop_oldest(struct sim_replay *replay, struct sim_actor *actor)
{
    struct sim_letter *letter = actor->first;
    actor->first = letter->next;
    if (actor->first == NULL)
        actor->last = &actor->first;
    actor->letters--;
    replay->report->lost++;
    sim_letter_free(letter);
}

void sim_mail_send(struct sim_replay *replay, kith_id from,
                   const struct kith_send *send)
{
    struct sim_actor *sender = &replay->actors[from];
    struct sim_actor *actor = &replay->actors[send->to];
    const struct kith_message *message = &send->message;
    const bool model = message->kind == KITH_MESSAGE_MODEL;
    /* The driver drops it, too. */
    if (model && kith_worker_outgoing(sender->worker, message->slot, true) !=
                     KITH_OUTGOING_READY)
        return;
    struct sim_letter *letter = calloc(1, sizeof *letter);
    if (letter != NULL && model)
        letter->parcel =
            copy_slot(sender, message->slot, (size_t)message->payload_bytes);
    if (letter == NULL || (model && letter->parcel == NULL)) {
        free(letter);
        sim_replay_fail(replay, KITH_ENOMEM, "no memory for a letter");
        return;
    }
    letter->from = from;
    letter->life = sender->incarnation;
    letter->message = *message;
    letter->header_bytes = kith_wire_pack(message, letter->header);
    *actor->last = letter;
    actor->last = &letter->next;
    if (++actor->letters > SIM_LETTERS_MAX)
        drop_oldest(replay, actor);
}

/* The link before the letter that is to be taken; NULL: there is none. */
static struct sim_letter **find(const struct sim_replay *replay, kith_id to,
                                kith_id from,
                                const struct kith_message *message)
{
    uint8_t header[KITH_WIRE_BYTES_MAX];
    const size_t size = kith_wire_pack(message, header);
    struct sim_letter **found = NULL;
    for (struct sim_letter **link = &replay->actors[to].first; *link != NULL;
         link = &(*link)->next)
        if ((*link)->from == from && (*link)->header_bytes == size &&
            memcmp((*link)->header, header, size) == 0 &&
            (found == NULL || (*link)->life > (*found)->life))
            found = link;
    return found;
}

bool sim_mail_has(const struct sim_replay *replay, kith_id to, kith_id from,
                  const struct kith_message *message)
{
    return find(replay, to, from, message) != NULL;
}

static struct sim_letter *unlink_letter(struct sim_actor *actor,
                                        struct sim_letter **link)
{
    struct sim_letter *letter = *link;
    *link = letter->next;
    if (letter->next == NULL)
        actor->last = link;
    actor->letters--;
    return letter;
}

/* Models go one after another over a link: those sent long before one that
 * arrived will not. */
static void pass_over(struct sim_replay *replay, struct sim_actor *actor,
                      const struct sim_letter *taken_at, kith_id from)
{
    uint32_t before = 0;
    for (struct sim_letter *l = actor->first; l != taken_at; l = l->next)
        before += l->from == from && l->parcel != NULL;
    struct sim_letter **link = &actor->first;
    while (before > SIM_PASSED_MAX) {
        if ((*link)->from != from || (*link)->parcel == NULL) {
            link = &(*link)->next;
            continue;
        }
        sim_letter_free(unlink_letter(actor, link));
        replay->report->lost++;
        before--;
    }
}

struct sim_letter *sim_mail_take(struct sim_replay *replay, kith_id to,
                                 kith_id from,
                                 const struct kith_message *message)
{
    struct sim_actor *actor = &replay->actors[to];
    struct sim_letter **link = find(replay, to, from, message);
    if (link == NULL)
        return NULL;
    struct sim_letter *letter = unlink_letter(actor, link);
    if (letter->parcel != NULL)
        pass_over(replay, actor, letter->next, from);
    return letter;
}

void sim_message_text(const struct kith_message *message, char *text,
                      size_t size)
{
    snprintf(text, size, "%s of %s %" PRIu32 ".%" PRIu64 "%s, step %" PRIu64,
             kith_message_name(message->kind),
             kith_pattern_name(message->pattern), message->id.incarnation,
             message->id.counter, message->mine ? " (its own)" : "",
             message->step);
}

void sim_mail_text(const struct sim_replay *replay, kith_id to, kith_id from,
                   char *text, size_t size)
{
    const struct sim_letter *newest = NULL;
    for (const struct sim_letter *l = replay->actors[to].first; l != NULL;
         l = l->next)
        if (l->from == from)
            newest = l;
    if (newest == NULL)
        snprintf(text, size, "nothing");
    else
        sim_message_text(&newest->message, text, size);
}

void sim_mail_close(struct sim_replay *replay)
{
    for (uint32_t i = 0; i < replay->peers; i++) {
        struct sim_actor *actor = &replay->actors[i];
        while (actor->first != NULL)
            drop_oldest(replay, actor);
        sim_mail_forget(actor);
    }
}

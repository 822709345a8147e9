/* Conservation, kept like a bank's books:
 *
 *   live + in doubt + lost = initial + gradient + restart
 *
 *   live      sum over peers and coordinates of x, read from the vectors
 *   in doubt  minus what one side of an exchange has added and the other has
 *             not yet taken away, from the MERGED, SPLIT and UNDONE marks
 *   lost      models of crashed peers, torn exchanges, dropped pushes
 *   gradient  what TRAIN changed; restart: models loaded and adopted
 *
 * The left side joins what the protocol says (marks) with what happened to the
 * vectors; a merge that is wrong, forgotten or done twice breaks the equation.
 * That every exchange ends settled, torn or orphaned is checked apart: a half
 * nobody accounts for would otherwise stay in doubt for ever. */
#include "sim/ledger.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "sim/world.h"

#define ENTRIES_MIN 256u

/* A float64 sum that does not lose small terms (Neumaier, ZAMM 1974). */
struct account {
    double sum, rest;
};

static void book(struct account *account, double value)
{
    const double total = account->sum + value;
    if (fabs(account->sum) >= fabs(value)) {
        account->rest += (account->sum - total) + value;
    } else {
        account->rest += (value - total) + account->sum;
    }
    account->sum = total;
}

/* The two parts together are exact to the last bit of the largest term. */
static double amount(const struct account *account)
{
    return account->sum + account->rest;
}

/* One exchange: (initiator, other, incarnation, counter). */
struct entry {
    uint64_t counter;
    kith_id initiator, other;
    uint32_t incarnation;
    bool used, torn, dropped;
    bool has[2];    /* initiator's half, the other's */
    double half[2]; /* what each side added to its x */
};

struct sim_ledger {
    enum sim_ledger_kind kind;
    bool one_way; /* rounds over directed edges: no half has an opposite, what
                     all took in and gave up in doubt must come to nothing */
    struct entry *entries; /* (mask + 1), open addressing */
    uint64_t mask, count;
    double *before;  /* (peers) sum of x before the item that is out */
    double *pending; /* (peers) changed x already, but no mark yet */
    struct account in_doubt, lost, initial, gradient, restart;
    double weight_lost;
    struct sim_balance found;
};

/* A float32 sum rounds: there the halves of each exchange are compared, and the
 * sum over all peers is not. */
enum kith_err sim_ledger_open(struct sim_world *world)
{
    KITH_ASSERT(world->ledger == NULL);
    const struct kith_experiment *experiment = world->experiment;
    enum sim_ledger_kind kind = world->options.ledger;
    const enum sim_ledger_kind strongest =
        experiment->backend->element_bytes == 8 ? SIM_LEDGER_SUM
                                                : SIM_LEDGER_PAIRS;
    for (uint32_t i = 0; i < experiment->check_count; i++) {
        if (strcmp(experiment->checks[i].quantity, "conserved") == 0) {
            kind = strongest > kind ? strongest : kind;
        }
    }
    /* A central method conserves nothing: its updates are not exchanges. */
    if (kind == SIM_LEDGER_NONE || world->central ||
        kith_model_size_of(experiment->model, &experiment->model_config).dim ==
            0) {
        return KITH_OK;
    }
    struct sim_ledger *ledger = calloc(1, sizeof *ledger);
    if (!ledger) {
        return KITH_ENOMEM;
    }
    world->ledger = ledger;
    ledger->kind = kind;
    ledger->one_way =
        sim_node_config(world)->algorithm->pattern == KITH_PATTERN_ROUND &&
        experiment->gossip.topology->directed &&
        !(sim_node_config(world)->algorithm->flags & KITH_SPLITS_MASS);
    ledger->mask = ENTRIES_MIN - 1;
    ledger->entries = calloc(ENTRIES_MIN, sizeof *ledger->entries);
    ledger->before = calloc(world->peer_count, sizeof *ledger->before);
    ledger->pending = calloc(world->peer_count, sizeof *ledger->pending);
    const bool complete = ledger->entries && ledger->before && ledger->pending;
    return complete ? KITH_OK : KITH_ENOMEM;
}

void sim_ledger_close(struct sim_world *world)
{
    if (world->ledger) {
        free(world->ledger->entries);
        free(world->ledger->before);
        free(world->ledger->pending);
        free(world->ledger);
        world->ledger = NULL;
    }
}

/* On the backend, in its own order: the ledger adds sums up, and does not re-
 * add coordinates. */
static double sum_of(const struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->peer_count);
    return world->experiment->backend->sum(
        sim_node_config(world)->model_bytes /
            world->experiment->backend->element_bytes,
        kith_worker_slot(sim_job_worker(world, peer), KITH_SLOT_LIVE));
}

/* A restarted peer brings a model that is nobody's gradient: the books enter it
 * on the right side, under its own name. */
void sim_ledger_start(struct sim_world *world, kith_id peer, bool restarted)
{
    KITH_ASSERT(peer < world->peer_count);
    struct sim_ledger *ledger = world->ledger;
    if (ledger) {
        book(restarted ? &ledger->restart : &ledger->initial,
             sum_of(world, peer));
    }
}

/* The peer's x leaves the total; what it has put in doubt stays there until the
 * other side's mark, or the end. */
void sim_ledger_crash(struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->peer_count);
    struct sim_ledger *ledger = world->ledger;
    if (ledger) { /* an item without its mark has not happened */
        book(&ledger->lost, sum_of(world, peer) - ledger->pending[peer]);
        ledger->pending[peer] = 0;
    }
}

/* Read before and after an item: what it changed is a fact, whatever its marks
 * will say. */
void sim_ledger_before(struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->peer_count);
    if (world->ledger) {
        world->ledger->before[peer] = sum_of(world, peer);
    }
}

/* Training and adoption are booked at once; a merge waits for the mark that
 * names its exchange. */
void sim_ledger_after(struct sim_world *world, kith_id peer,
                      enum kith_work_kind kind)
{
    KITH_ASSERT(kind != KITH_WORK_SAVE);
    struct sim_ledger *ledger = world->ledger;
    if (!ledger) {
        return;
    }
    const double change = sum_of(world, peer) - ledger->before[peer];
    if (kind == KITH_WORK_TRAIN) {
        book(&ledger->gradient, change);
    } else if (kind == KITH_WORK_ADOPT) {
        book(&ledger->restart, change);
    } else {
        ledger->pending[peer] = change;
    }
}

/* Between the item and its marks the change is pending: left in, it would break
 * the equation for an event. */
void sim_ledger_done(struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->peer_count);
    if (world->ledger) {
        world->ledger->pending[peer] = 0; /* the marks come now */
    }
}

/* Two rounds of mixing: initiators are ranks and counters are small, so low
 * bits alone would collide. */
static uint64_t slot_of(const struct sim_ledger *ledger,
                        const struct entry *key)
{
    KITH_ASSERT((ledger->mask & (ledger->mask + 1)) == 0);
    uint64_t hash = (uint64_t)key->initiator << 32 | key->other;
    hash = (hash ^ hash >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= key->counter << 8 ^ key->incarnation;
    hash = (hash ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return (hash ^ hash >> 32) & ledger->mask;
}

/* An exchange is known by four numbers; after a crash the incarnation parts
 * what counters repeat. */
static bool same(const struct entry *a, const struct entry *b)
{
    KITH_ASSERT(a->used || b->used);
    return a->counter == b->counter && a->initiator == b->initiator &&
           a->other == b->other && a->incarnation == b->incarnation;
}

/* Linear probing in a table that is at most half full: the first free slot ends
 * the search. */
static struct entry *entry_find(struct sim_ledger *ledger,
                                const struct entry *key)
{
    KITH_ASSERT(2 * ledger->count <= ledger->mask + 1);
    uint64_t slot = slot_of(ledger, key);
    while (ledger->entries[slot].used && !same(&ledger->entries[slot], key)) {
        slot = (slot + 1) & ledger->mask;
    }
    return &ledger->entries[slot];
}

/* Twice the slots, and all entries found a new place; nothing is lost where
 * memory is out. */
static bool entries_grow(struct sim_ledger *ledger)
{
    KITH_ASSERT(ledger->entries != NULL);
    struct entry *old = ledger->entries;
    const uint64_t slots = ledger->mask + 1;
    struct entry *fresh = calloc(2 * slots, sizeof *fresh);
    if (!fresh) {
        return false;
    }
    ledger->entries = fresh;
    ledger->mask = 2 * slots - 1;
    for (uint64_t i = 0; i < slots; i++) {
        if (old[i].used) {
            *entry_find(ledger, &old[i]) = old[i];
        }
    }
    free(old);
    return true;
}

/* Entries are never taken out: at the end each must be settled, and a missing
 * one could not be told from that. */
static struct entry *entry_of(struct sim_world *world, kith_id initiator,
                              kith_id other, const struct kith_exchange_id *id)
{
    KITH_ASSERT(initiator != other);
    struct sim_ledger *ledger = world->ledger;
    const struct entry key = {.counter = id->counter,
                              .initiator = initiator,
                              .other = other,
                              .incarnation = id->incarnation,
                              .used = true};
    struct entry *entry = entry_find(ledger, &key);
    if (!entry->used) {
        if (2 * ++ledger->count > ledger->mask) {
            if (!entries_grow(ledger)) {
                sim_fail(world, KITH_ENOMEM, "no memory for the ledger");
            }
            entry = entry_find(ledger, &key);
        }
        *entry = key;
    }
    return entry;
}

/* What one side adds to x, the books take from the exchange. */
static void book_half(struct sim_ledger *ledger, struct entry *entry,
                      unsigned side, double added, bool has)
{
    KITH_ASSERT(side < 2);
    const bool written_off = entry->torn || entry->dropped;
    book(written_off ? &ledger->lost : &ledger->in_doubt, -added);
    entry->half[side] = has ? added : 0;
    entry->has[side] = has;
    if (has && entry->has[1 - side] && !ledger->one_way) {
        ledger->found.pairs++;
        const bool exact = entry->half[0] + entry->half[1] == 0;
        ledger->found.mismatched += !exact;
    }
}

/* What one side has added is lost for the total from now on: the other side
 * will never take it away. */
static void write_off(struct sim_ledger *ledger, struct entry *entry)
{
    KITH_ASSERT(entry->used);
    if (!entry->torn && !entry->dropped) {
        const double rest = -(entry->half[0] + entry->half[1]);
        book(&ledger->in_doubt, -rest);
        book(&ledger->lost, rest);
    }
}

/* Initiator and other name the exchange alike from both sides, so that two
 * halves meet in one entry. */
void sim_ledger_mark(struct sim_world *world, kith_id peer,
                     const struct kith_mark *mark)
{
    KITH_ASSERT(peer < world->peer_count);
    struct sim_ledger *ledger = world->ledger;
    const bool books =
        mark->kind == KITH_MARK_MERGED || mark->kind == KITH_MARK_SPLIT ||
        mark->kind == KITH_MARK_UNDONE || mark->kind == KITH_MARK_TORN;
    if (!ledger || !books) {
        return;
    }
    struct entry *entry = mark->initiator
                              ? entry_of(world, peer, mark->peer, &mark->id)
                              : entry_of(world, mark->peer, peer, &mark->id);
    const unsigned side = !mark->initiator;
    if (mark->kind != KITH_MARK_TORN) {
        book_half(ledger, entry, side, mark->sum,
                  mark->kind != KITH_MARK_UNDONE);
        return;
    }
    /* What is written off must be the half that was booked. */
    const bool right = mark->sum - entry->half[side] == 0;
    ledger->found.mismatched += !right;
    write_off(ledger, entry);
    ledger->found.torn += !entry->torn;
    entry->torn = true;
}

/* A push that `drop_push` took: its sender has given its share away, and nobody
 * has got it. */
void sim_ledger_drop(struct sim_world *world, const struct sim_packet *packet)
{
    KITH_ASSERT(packet->flags & SIM_PACKET_DROPPED);
    struct sim_ledger *ledger = world->ledger;
    if (!ledger) {
        return;
    }
    struct entry *entry =
        entry_of(world, packet->from, packet->to, &packet->message.id);
    write_off(ledger, entry);
    ledger->found.dropped += !entry->dropped;
    ledger->weight_lost += packet->message.scalars[0];
    entry->dropped = true;
}

/* Read from the vectors each time: a running sum would believe what it is there
 * to check. */
void sim_balance(const struct sim_world *world, struct sim_balance *balance)
{
    const struct sim_ledger *ledger = world->ledger;
    *balance = (struct sim_balance){0};
    if (!ledger) {
        return;
    }
    *balance = ledger->found;
    struct account live = {0};
    for (kith_id peer = 0; peer < world->peer_count; peer++) {
        if (!sim_alive(world, peer)) {
            continue;
        }
        book(&live, sum_of(world, peer));
        book(&live, -ledger->pending[peer]);
        balance->weight_live +=
            kith_worker_scalars(sim_job_worker(world, peer))[0];
    }
    balance->live = amount(&live);
    balance->in_doubt = amount(&ledger->in_doubt);
    balance->lost = amount(&ledger->lost);
    balance->initial = amount(&ledger->initial);
    balance->gradient = amount(&ledger->gradient);
    balance->restart = amount(&ledger->restart);
    balance->weight_lost = ledger->weight_lost;
}

/* The equation's error, relative to its largest term. */
static double imbalance(const struct sim_balance *balance)
{
    KITH_ASSERT(balance->pairs >= balance->mismatched || balance->torn > 0);
    const double left = balance->live + balance->in_doubt + balance->lost;
    const double right =
        balance->initial + balance->gradient + balance->restart;
    const double terms[] = {1,
                            balance->live,
                            balance->in_doubt,
                            balance->lost,
                            balance->initial,
                            balance->gradient,
                            balance->restart};
    double scale = 0;
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
        scale = fabs(terms[i]) > scale ? fabs(terms[i]) : scale;
    }
    return fabs(left - right) / scale;
}

/* After every event, where sums are kept: an error is found at the event that
 * made it. */
void sim_ledger_check(struct sim_world *world)
{
    struct sim_ledger *ledger = world->ledger;
    if (!ledger || ledger->kind != SIM_LEDGER_SUM || sim_ended(world)) {
        return;
    }
    struct sim_balance balance;
    sim_balance(world, &balance);
    const double error = imbalance(&balance);
    /* Written so that a NaN counts as broken. */
    if (!(error <= ledger->found.error_max)) {
        ledger->found.error_max = error;
    }
}

/* The run is over: which halves did nobody account for? */
void sim_ledger_finish(struct sim_world *world, struct kith_values *values)
{
    struct sim_ledger *ledger = world->ledger;
    if (!ledger) {
        return;
    }
    for (uint64_t i = 0; i <= ledger->mask; i++) {
        struct entry *entry = &ledger->entries[i];
        const bool half = entry->has[0] != entry->has[1] && !ledger->one_way;
        if (!entry->used || !half || entry->torn || entry->dropped) {
            continue;
        }
        const bool crashed = sim_exempted(world, entry->initiator) ||
                             sim_exempted(world, entry->other);
        if (crashed) { /* nobody is left to write it off */
            write_off(ledger, entry);
            ledger->found.orphaned++;
        } else {
            ledger->found.unsettled++;
        }
    }
    if (ledger->one_way) {
        struct sim_balance balance;
        sim_balance(world, &balance);
        const double rest =
            fabs(balance.in_doubt) / fmax(1, fabs(balance.live));
        if (!(rest <= ledger->found.error_max))
            ledger->found.error_max = rest;
    }
    if (ledger->kind == SIM_LEDGER_SUM || ledger->one_way) {
        values->conservation_error = ledger->found.error_max;
        values->conservation_tolerance =
            world->experiment->backend->element_bytes == 8 ? 1e-12 : 1e-5;
    } else {
        values->conservation_error = 0;
        values->conservation_tolerance = 0;
    }
    if (ledger->found.mismatched + ledger->found.unsettled > 0) {
        values->conservation_error = INFINITY;
    }
}

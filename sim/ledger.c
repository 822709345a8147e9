/* Conservation, kept like a bank's books:
 *
 *   live + in doubt + lost + withheld = initial + gradient + restart
 *
 *   live      sum over peers and coordinates of x, read from the vectors
 *   in doubt  minus what one side of an exchange has added and the other has
 *             not yet taken away, from the MERGED, SPLIT and UNDONE marks
 *   lost      models of crashed peers, torn exchanges, dropped pushes
 *   withheld  what guards did not let in of what exchanges brought
 *   gradient  what TRAIN changed; restart: models loaded and adopted
 *
 * The left side joins what the protocol says (marks) with what happened to the
 * vectors; a merge that is wrong, forgotten or done twice breaks the equation.
 * That every exchange ends settled, torn or orphaned is checked apart: a half
 * nobody accounts for would otherwise stay in doubt for ever. */
#define _XOPEN_SOURCE 700 /* tsearch */
#include "sim/ledger.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/check.h"
#include "sim/world.h"

/* A float64 sum that does not lose small terms (Neumaier, ZAMM 1974). */
struct account {
    double sum, rest;
};

static void book(struct account *account, double value)
{
    const double total = account->sum + value;
    if (fabs(account->sum) >= fabs(value))
        account->rest += (account->sum - total) + value;
    else
        account->rest += (value - total) + account->sum;
    account->sum = total;
}

/* The two parts together are exact to the last bit of the largest term. */
static double amount(const struct account *account)
{
    return account->sum + account->rest;
}

/* One exchange. After a crash the incarnation parts what counters repeat. */
struct exchange {
    struct key {
        uint64_t counter;
        uint64_t incarnation;
        kith_id initiator, other;
    } key;
    struct exchange *older;
    bool torn, dropped;
    bool has[2];    /* initiator's half, the other's */
    double half[2]; /* what each side added to its x */
};
_Static_assert(sizeof(struct key) == 24, "compared byte by byte: no padding");

struct sim_ledger {
    enum sim_ledger_kind kind;
    bool one_way;  /* rounds over directed edges: no half has an opposite, what
                      all took in and gave up in doubt must come to nothing */
    bool numbered; /* rounds whose marks name no incarnation */
    bool guarded;  /* halves are opposite but for their rounding */
    void *tree;    /* of all entries, by key: tsearch(3) */
    struct exchange *newest;    /* list of them */
    struct exchange lost_entry; /* in place of one that found no memory */
    double *before;  /* (peers) sum of x before the item that is out */
    double *pending; /* (peers) changed x already, but no mark yet */
    struct account in_doubt, lost, withheld, initial, gradient, restart;
    double weight_lost, rounding; /* of a half, beside it or 1 */
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
    if (kith_checks_ask(experiment, "conserved"))
        kind = strongest > kind ? strongest : kind;
    /* A central method conserves nothing: its updates are not exchanges. */
    if (kind == SIM_LEDGER_NONE || world->central ||
        kith_model_size_of(experiment->model, &experiment->model_config).dim ==
            0)
        return KITH_OK;
    struct sim_ledger *ledger = sim_alloc(world, 1, sizeof *ledger);
    if (!ledger)
        return KITH_ENOMEM;
    world->ledger = ledger;
    ledger->kind = kind;
    ledger->rounding = experiment->backend->element_bytes == 8 ? 1e-12 : 1e-5;
    ledger->numbered =
        sim_node_config(world)->algorithm->pattern == KITH_PATTERN_ROUND &&
        !(sim_node_config(world)->algorithm->flags & KITH_SPLITS_MASS);
    ledger->guarded = strcmp(experiment->gossip.guard, "none") != 0;
    ledger->one_way = ledger->numbered && experiment->gossip.topology->directed;
    ledger->before =
        sim_alloc(world, world->peer_count, sizeof *ledger->before);
    ledger->pending =
        sim_alloc(world, world->peer_count, sizeof *ledger->pending);
    return ledger->before && ledger->pending ? KITH_OK : KITH_ENOMEM;
}

/* On the backend, in its own order: the ledger adds sums up, and does not re-
 * add coordinates. */
static double sum_of(const struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->peer_count);
    return world->experiment->backend->sum(
        sim_node_config(world)->model_bytes /
            world->experiment->backend->element_bytes,
        kith_worker_slot(sim_peer_worker(world, peer), KITH_SLOT_LIVE));
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
    if (world->ledger)
        world->ledger->before[peer] = sum_of(world, peer);
}

/* Training and adoption are booked at once; a merge waits for the mark that
 * names its exchange. */
void sim_ledger_after(struct sim_world *world, kith_id peer,
                      const struct kith_work *work)
{
    KITH_ASSERT(work->kind != KITH_WORK_SAVE);
    struct sim_ledger *ledger = world->ledger;
    if (!ledger)
        return;
    const double change = sum_of(world, peer) - ledger->before[peer];
    double withheld = 0;
    if (work->kind == KITH_WORK_MERGE || work->kind == KITH_WORK_UNDO)
        for (uint32_t i = 0; i < work->edge_count; i++)
            withheld += kith_worker_withheld(sim_peer_worker(world, peer),
                                             &work->edges[i]);
    book(&ledger->withheld, withheld);
    if (work->kind == KITH_WORK_TRAIN)
        book(&ledger->gradient, change);
    else if (work->kind == KITH_WORK_ADOPT)
        book(&ledger->restart, change);
    else
        ledger->pending[peer] = change + withheld;
}

/* Between the item and its marks the change is pending: left in, it would break
 * the equation for an event. */
void sim_ledger_done(struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->peer_count);
    world->ledger->pending[peer] = 0; /* the marks come now */
}

/* Any order serves: a tree asks for nothing else. */
static int order(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct key));
}

/* The ledger goes before the world's memory does: its checks are over. */
void sim_ledger_close(struct sim_world *world)
{
    struct sim_ledger *ledger = world->ledger;
    while (ledger && ledger->newest) {
        struct exchange *entry = ledger->newest;
        ledger->newest = entry->older;
        (void)tdelete(entry, &ledger->tree, order);
        free(entry);
    }
    world->ledger = NULL;
}

/* Entries are never taken out: at the end each must be settled, and a missing
 * one could not be told from that. Where memory is out the run has failed, and
 * what is booked does not matter. */
static struct exchange *entry_of(struct sim_world *world, kith_id initiator,
                                 kith_id other,
                                 const struct kith_exchange_id *id)
{
    KITH_ASSERT(initiator != other);
    struct sim_ledger *ledger = world->ledger;
    const struct key key = {.counter = id->counter,
                            .incarnation = id->incarnation,
                            .initiator = initiator,
                            .other = other};
    struct exchange **found = tfind(&key, &ledger->tree, order);
    if (found)
        return *found;
    struct exchange *entry = malloc(sizeof *entry);
    if (entry)
        *entry = (struct exchange){.key = key, .older = ledger->newest};
    if (!entry || !tsearch(entry, &ledger->tree, order)) {
        sim_fail(world, KITH_ENOMEM, "no memory for the ledger");
        free(entry);
        return &ledger->lost_entry;
    }
    ledger->newest = entry;
    return entry;
}

/* What one side adds to x, the books take from the exchange. */
static void book_half(struct sim_ledger *ledger, struct exchange *entry,
                      unsigned side, double added, bool has)
{
    KITH_ASSERT(side < 2);
    const bool written_off = entry->torn || entry->dropped;
    book(written_off ? &ledger->lost : &ledger->in_doubt, -added);
    entry->half[side] = has ? added : 0;
    entry->has[side] = has;
    if (has && entry->has[1 - side] && !ledger->one_way) {
        ledger->found.pairs++;
        const double rest = fabs(entry->half[0] + entry->half[1]);
        const bool exact = ledger->guarded
                               ? rest <= ledger->rounding * fmax(1, fabs(added))
                               : rest == 0;
        ledger->found.mismatched += !exact;
    }
}

/* What one side has added is lost for the total from now on: the other side
 * will never take it away. */
static void write_off(struct sim_ledger *ledger, struct exchange *entry)
{
    KITH_ASSERT(entry->key.initiator != entry->key.other);
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
    if (!books)
        return;
    const unsigned side = !mark->initiator;
    const kith_id initiator = mark->initiator ? peer : mark->peer;
    struct kith_exchange_id id = mark->id;
    /* Two that both went back to a save have some rounds twice. */
    if (ledger->numbered)
        id.incarnation = world->peers[initiator].incarnation;
    struct exchange *entry =
        entry_of(world, initiator, mark->initiator ? mark->peer : peer, &id);
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
    if (!ledger)
        return;
    struct exchange *entry =
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
    if (!ledger)
        return;
    *balance = ledger->found;
    struct account live = {0};
    for (kith_id peer = 0; peer < world->peer_count; peer++) {
        if (!sim_alive(world, peer))
            continue;
        book(&live, sum_of(world, peer));
        book(&live, -ledger->pending[peer]);
        balance->weight_live +=
            kith_worker_scalars(sim_peer_worker(world, peer))[0];
    }
    balance->live = amount(&live);
    balance->in_doubt = amount(&ledger->in_doubt);
    balance->lost = amount(&ledger->lost);
    balance->withheld = amount(&ledger->withheld);
    balance->initial = amount(&ledger->initial);
    balance->gradient = amount(&ledger->gradient);
    balance->restart = amount(&ledger->restart);
    balance->weight_lost = ledger->weight_lost;
}

/* The equation's error, relative to its largest term. */
static double imbalance(const struct sim_balance *balance)
{
    KITH_ASSERT(balance->pairs >= balance->mismatched || balance->torn > 0);
    const double left =
        balance->live + balance->in_doubt + balance->lost + balance->withheld;
    const double right =
        balance->initial + balance->gradient + balance->restart;
    double scale = fmax(fabs(balance->live), fabs(balance->in_doubt));
    scale = fmax(scale, fmax(fabs(balance->lost), fabs(balance->initial)));
    scale = fmax(scale, fmax(fabs(balance->gradient), fabs(balance->restart)));
    scale = fmax(scale, fmax(fabs(balance->withheld), 1));
    return fabs(left - right) / scale;
}

/* After every event, where sums are kept: an error is found at the event that
 * made it. */
void sim_ledger_check(struct sim_world *world)
{
    struct sim_ledger *ledger = world->ledger;
    if (!ledger || ledger->kind != SIM_LEDGER_SUM || sim_ended(world))
        return;
    struct sim_balance balance;
    sim_balance(world, &balance);
    const double error = imbalance(&balance);
    /* Written so that a NaN counts as broken. */
    if (!(error <= ledger->found.error_max))
        ledger->found.error_max = error;
}

/* The run is over: which halves did nobody account for? */
void sim_ledger_finish(struct sim_world *world, struct kith_values *values)
{
    struct sim_ledger *ledger = world->ledger;
    if (!ledger)
        return;
    for (struct exchange *entry = ledger->newest; entry; entry = entry->older) {
        const bool half = entry->has[0] != entry->has[1] && !ledger->one_way;
        if (!half || entry->torn || entry->dropped)
            continue;
        const unsigned ending = world->peers[entry->key.initiator].ending |
                                world->peers[entry->key.other].ending;
        if (ending & SIM_EXEMPT) { /* nobody is left to write it off */
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
    const bool sums = ledger->kind == SIM_LEDGER_SUM || ledger->one_way;
    const bool doubles = world->experiment->backend->element_bytes == 8;
    values->conservation_error = sums ? ledger->found.error_max : 0;
    values->conservation_tolerance = !sums ? 0 : doubles ? 1e-12 : 1e-5;
    if (ledger->found.mismatched + ledger->found.unsettled > 0)
        values->conservation_error = INFINITY;
}

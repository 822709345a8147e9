/* Faults in the lab: what each timed atom does to real processes.
 *
 *   crash   SIGKILL          restart  fork, load the save, incarnation + 1
 *   pause   SIGSTOP          resume   SIGCONT
 *   slow    control line `slow F`
 *   link    control line `link RANK FAULT BEGINS F`: the fault acts there
 *   lie     control line `lie KIND F N`, of the next N models, 0: of all
 *
 * Atoms come sorted; overlapping statements were merged when the file was
 * loaded, so each one is carried out as it stands. What happened is written
 * down with the time at which it did. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/lab/launcher.h"

static void KITH_PRINTF(2, 3)
    tell(struct lab_peer *peer, const char *format, ...)
{
    char line[128];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (kith_lab_peer_is_alive(peer) &&
        !kith_lab_process_tell(&peer->process, "%s", line))
        kith_lab_say(peer->lab,
                     "peer %u does not take \"%s\": its control pipe is "
                     "full or closed",
                     (unsigned)peer->rank, line);
}

static bool crash(struct lab_peer *peer)
{
    if (!kith_lab_peer_is_alive(peer))
        return false;
    kith_lab_process_signal(&peer->process, SIGKILL);
    kith_lab_peer_collect(peer);
    peer->faults |= LAB_FAULT_AFFECTED;
    return true;
}

static bool restart(struct lab_peer *peer)
{
    if (peer->state != LAB_PEER_DOWN)
        return false;
    peer->child.incarnation++;
    if (kith_lab_peer_start(peer) != KITH_OK)
        return false;
    tell(peer, "start %lld", (long long)peer->lab->start_ns);
    kith_lab_faults_tell(peer);
    return true;
}

static void set_fault(struct lab_peer *peer, enum lab_peer_fault fault, bool on)
{
    peer->faults = on ? peer->faults | fault : peer->faults & ~(unsigned)fault;
}

static void slow(struct lab_peer *peer, double factor)
{
    peer->slow = factor;
    tell(peer, "slow %.17g", factor);
}

static void lie(struct lab_peer *peer, const struct kith_atom *atom)
{
    const struct kith_lie told = kith_atom_lie(atom);
    tell(peer, "lie %s %.17g %u", kith_lie_kinds[told.kind].name, told.by,
         (unsigned)told.models);
}

/* So many models end with the process that sends them. */
static void set_lie(struct lab_peer *peer, const struct kith_atom *atom)
{
    peer->lie = atom->begins && atom->models == 0 ? atom : NULL;
}

static void tell_link(struct lab_peer *peer, const struct kith_fault *fault,
                      kith_id other, bool begins)
{
    tell(peer, "link %u %s %d 1", (unsigned)other, fault->name, begins);
}

static void tell_sides(struct lab *lab, const struct kith_atom *atom)
{
    for (kith_id i = 0; i < lab->peer_count; i++)
        for (kith_id j = 0; j < lab->peer_count; j++)
            for (int begins = 1; begins >= 0; begins--)
                if (kith_atom_turns(atom, begins, i, j))
                    tell_link(&lab->peers[i], atom->fault, j, begins);
}

static bool carry_out(struct lab *lab, const struct kith_atom *atom)
{
    struct lab_peer *peer = &lab->peers[atom->peer];
    const bool begins = atom->begins;
    switch (atom->fault->effect) {
    case KITH_EFFECT_STOP:
        return begins ? crash(peer) : restart(peer);
    case KITH_EFFECT_PAUSE:
        set_fault(peer, LAB_FAULT_PAUSED, begins);
        kith_lab_process_signal(&peer->process, begins ? SIGSTOP : SIGCONT);
        return true;
    case KITH_EFFECT_SLOW:
        slow(peer, atom->factor);
        return true;
    case KITH_EFFECT_LIE:
        set_lie(peer, atom);
        lie(peer, atom);
        return true;
    case KITH_EFFECT_LINK:
        tell_sides(lab, atom);
        return true;
    }
    return false;
}

static void announce(struct lab *lab, const struct kith_atom *atom,
                     kith_ns happened_ns, bool happened)
{
    char what[64] = "";
    if (kith_atom_has_factor(atom))
        snprintf(what, sizeof what, " by %g", atom->factor);
    kith_lab_say(lab, "%.3f s: %s peer %u%s%s", (double)happened_ns / 1e9,
                 kith_atom_event(atom)->name, (unsigned)atom->peer, what,
                 happened ? "" : ": had no effect, it is not in that state");
}

static void announce_links(struct lab *lab, const struct kith_atom *atom,
                           kith_ns happened_ns)
{
    struct kith_atom_walk walk = {.atom = atom};
    struct kith_atom first;
    char text[128];
    if (kith_atom_next(&walk, &first))
        kith_lab_say(lab, "%.3f s: %s %s", (double)happened_ns / 1e9,
                     kith_atom_event(&first)->name,
                     kith_sides_text(atom->sides, text, sizeof text));
}

/* compute.slow is a property of a peer, not something that happens. */
static uint32_t count_faults(const struct kith_atom *atom)
{
    return atom->statement == UINT32_MAX ? 0 : kith_atom_count(atom);
}

kith_ns kith_lab_faults(struct lab *lab, kith_ns now_ns)
{
    const struct kith_experiment *experiment = lab->options->experiment;
    kith_ns next_ns = KITH_NEVER;
    while (lab->atom < experiment->atom_count) {
        const struct kith_atom *atom = &experiment->atoms[lab->atom];
        /* What holds from the beginning is told before it. */
        if (atom->at_ns > 0 && lab->start_ns + atom->at_ns > now_ns) {
            next_ns = lab->start_ns + atom->at_ns;
            break;
        }
        lab->atom++;
        const bool happened = carry_out(lab, atom);
        const kith_ns since = kith_host_now() - lab->start_ns;
        const kith_ns happened_ns = since > 0 ? since : 0;
        if (atom->sides != NULL)
            announce_links(lab, atom, happened_ns);
        else if (atom->statement != UINT32_MAX)
            announce(lab, atom, happened_ns, happened);
        if (!happened)
            continue;
        lab->faults += count_faults(atom);
        (void)kith_rundb_fault(lab->options->store, happened_ns, atom);
    }
    return next_ns;
}

/* What a peer of a run that goes on was in when it ended; tell_links() knows of
 * links. */
static void take_over(struct lab_peer *peer, const struct kith_atom *atom)
{
    switch (atom->fault->effect) {
    case KITH_EFFECT_STOP:
        set_fault(peer, LAB_FAULT_CRASHED, atom->begins);
        return;
    case KITH_EFFECT_PAUSE:
        set_fault(peer, LAB_FAULT_PAUSED, atom->begins);
        return;
    case KITH_EFFECT_SLOW:
        peer->slow = atom->factor;
        return;
    case KITH_EFFECT_LIE:
        set_lie(peer, atom);
        return;
    case KITH_EFFECT_LINK:
        return;
    }
}

void kith_lab_faults_pass(struct lab *lab)
{
    const struct kith_experiment *experiment = lab->options->experiment;
    for (; lab->atom < experiment->atom_count; lab->atom++) {
        const struct kith_atom *atom = &experiment->atoms[lab->atom];
        struct lab_peer *peer = &lab->peers[atom->peer];
        if (atom->at_ns > lab->resumed_ns)
            break;
        take_over(peer, atom);
        lab->faults += count_faults(atom);
    }
    for (uint32_t i = 0; i < lab->peer_count; i++) {
        kith_lab_faults_tell(&lab->peers[i]);
        if (lab->peers[i].faults & LAB_FAULT_CRASHED)
            (void)crash(&lab->peers[i]);
    }
}

bool kith_lab_fault_ends(const struct lab *lab, kith_id peer,
                         enum kith_effect effect)
{
    const struct kith_experiment *experiment = lab->options->experiment;
    for (uint32_t i = lab->atom; i < experiment->atom_count; i++)
        if (experiment->atoms[i].peer == peer &&
            experiment->atoms[i].fault->effect == effect &&
            !experiment->atoms[i].begins)
            return true;
    return false;
}

/* What the atoms so far leave standing: of a fault, the last on each link. */
static void tell_links(struct lab_peer *peer, const struct kith_fault *fault)
{
    const struct lab *lab = peer->lab;
    const struct kith_atom *const atoms = lab->options->experiment->atoms;
    for (kith_id other = 0; other < lab->peer_count; other++) {
        bool holds = false;
        for (uint32_t i = 0; i < lab->atom; i++)
            if (atoms[i].sides != NULL && atoms[i].fault == fault)
                for (int begins = 1; begins >= 0; begins--)
                    if (kith_atom_turns(&atoms[i], begins, peer->rank, other))
                        holds = begins;
        if (holds)
            tell_link(peer, fault, other, true);
    }
}

void kith_lab_faults_tell(struct lab_peer *peer)
{
    if (peer->slow != 1)
        slow(peer, peer->slow);
    if (peer->lie != NULL)
        lie(peer, peer->lie);
    for (uint32_t i = 0; kith_faults[i] != NULL; i++)
        if (kith_faults[i]->effect == KITH_EFFECT_LINK)
            tell_links(peer, kith_faults[i]);
    if (peer->faults & LAB_FAULT_PAUSED)
        kith_lab_process_signal(&peer->process, SIGSTOP);
}

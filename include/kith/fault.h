/* Faults: statements of `faults:` become a flat list of timed atoms.
 *
 *   {at: 2s, crash: "frac(0.25)", restart: 3s}
 *   {at: 5s, for: 2s, partition: "peer(0..3) <-> peer(4..7)"}
 *
 *   selector  all | peer(A) | peer(A..B) | frac(P) | P% | n(K) |
 *             selector - selector
 *   target    selector, or selector <-> selector, selector -> selector
 *   spread    TIME | uniform(TIME, TIME) | exp(TIME)
 *
 * Every statement draws from a stream (FAULT) named by its own words, so that
 * removing or adding another statement shifts none of its draws. A peer is
 * down, paused, cut off or slowed while any statement says so: overlapping
 * statements are merged when the list is made, so a driver carries atoms out
 * one by one and never counts. All links between two groups are one atom, and
 * whether it acts on a link is asked of the link. One fault is one file, one
 * line in faults.def.
 * Test: unit/test_faults.c, unit/test_fault_sides.c. */
#ifndef KITH_FAULT_H
#define KITH_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/experiment.h"
#include "kith/rng.h"
#include "kith/types.h"

#define KITH_FAULT_ERROR_BYTES 512

enum kith_spread_kind {
    KITH_SPREAD_NONE, /* not given */
    KITH_SPREAD_FIXED,
    KITH_SPREAD_UNIFORM,
    KITH_SPREAD_EXPONENTIAL,
};
struct kith_spread {
    enum kith_spread_kind kind;
    kith_ns low_ns, high_ns; /* FIXED, EXPONENTIAL (mean): low_ns alone */
};
KITH_MUST_CHECK enum kith_err kith_spread_parse(const char *text,
                                                struct kith_spread *spread);
kith_ns kith_spread_draw(const struct kith_spread *spread,
                         struct kith_rng *rng);

/* chosen[i] <- 1 for the peers that `text` names, else 0; (peers) bytes.
 * KITH_EPARSE or KITH_ELIMIT with text in `error`. */
KITH_MUST_CHECK enum kith_err kith_selector_parse(const char *text,
                                                  uint32_t peers,
                                                  struct kith_rng *rng,
                                                  uint8_t *chosen, char *error);

/* The same of those that are not taken, taken[i] == 0: all means all of these,
 * shares of all peers and numbers are drawn among them, and a peer that is
 * named but taken is refused. taken NULL: none is. */
KITH_MUST_CHECK enum kith_err
kith_selector_parse_rest(const char *text, uint32_t peers, struct kith_rng *rng,
                         const uint8_t *taken, uint8_t *chosen, char *error);

/* The links of a statement between two groups: from each of the first to each
 * of the second, and where `both_ways` back. They are cut, say, from from_ns to
 * to_ns; where several statements name a link it is cut while any says so. */
enum { KITH_SIDE_FIRST = 1, KITH_SIDE_SECOND = 2 };
struct kith_sides {
    struct kith_sides *next; /* of all statements' in a ring */
    const struct kith_fault *fault;
    kith_ns from_ns, to_ns; /* KITH_NEVER: they stay so */
    uint32_t statement, peers;
    bool both_ways;
    uint8_t *side;      /* (peers): set of KITH_SIDE_ */
    kith_id *walked;    /* (counts[0] + counts[1]) the first's, the second's,
                           ascending; NULL: too many links to tell each */
    uint32_t counts[2]; /* peers of each */
};
/* Is from -> to one of them? */
bool kith_sides_hold(const struct kith_sides *sides, kith_id from, kith_id to);
/* "0..3 <-> 4..7", cut short where it does not fit; returns text. */
char *kith_sides_text(const struct kith_sides *sides, char *text, size_t size);

/* A growing list of atoms, at most KITH_ATOMS_MAX, and what they point to. */
struct kith_atoms {
    struct kith_atom *list;
    uint32_t count, capacity;
    struct kith_sides *sides;   /* the last one of the ring */
    uint64_t side_peers, links; /* of all of the ring; links that are walked */
};
void kith_atoms_free(struct kith_atom *list, struct kith_sides *sides);
void kith_sides_free(struct kith_sides *ring);
/* What `sides` says but the memory; first, second: (peers) of 0 and 1. An atom
 * where they begin and one where they end, none if there is no link.
 * KITH_ELIMIT past KITH_SIDE_PEERS_MAX or KITH_ATOMS_MAX, KITH_ENOMEM. */
KITH_MUST_CHECK enum kith_err
kith_atoms_add_sides(struct kith_atoms *atoms, const struct kith_sides *sides,
                     const uint8_t *first, const uint8_t *second);

/* The keys beside `at` that only some faults take. X(NAME, "word") */
#define KITH_FAULT_KEYS(X)                                                     \
    X(FOR, "for")         /* how long; without it: to the end */               \
    X(RESTART, "restart") /* the same, of a peer that comes back */            \
    X(BY, "by")         /* factor, > 1; required where taken, or the kind's */ \
    X(MODELS, "models") /* in place of `for`: of so many models, then over */  \
    X(KIND, "kind")     /* of a lie; required where taken */                   \
    X(UP, "up")         /* mean time for which a peer is there */              \
    X(DOWN, "down")     /* mean time for which it is away */                   \
    X(SHAPE, "shape")   /* of those times' law, Weibull; without it: 1 */      \
    X(TRACE, "trace")   /* file of nodes added and removed */                  \
    X(SPEED, "speed")   /* of the trace's time; without it: 1 */               \
    X(DIURNAL, "diurnal") /* a day, whose sine sessions follow */              \
    X(PHASE, "phase")     /* how much later it begins, or zones */             \
    X(SWING, "swing")     /* of its sine; without it: 1 */
enum kith_fault_key {
#define KITH_X(name, word) KITH_FAULT_KEY_##name,
    KITH_FAULT_KEYS(KITH_X)
#undef KITH_X
        KITH_FAULT_KEY_COUNT
};
#define KITH_FAULT_TAKES(name) (1u << KITH_FAULT_KEY_##name)

struct kith_fault_statement {
    uint32_t index; /* in `faults:`; UINT32_MAX: compute.slow */
    uint32_t peers;
    uint64_t seed, entity; /* its stream; kith_fault_entity() */
    char target[256];
    struct kith_spread at, length; /* length: `for` or `restart` */
    double by;
    uint32_t models;        /* 0: not given */
    enum kith_lie_kind lie; /* NONE: not given */
    kith_ns up_ns, down_ns; /* 0: not given, as all below */
    double shape, speed, swing;
    kith_ns diurnal_ns, phase_ns;
    kith_ns stop_ns;                 /* of the run; 0: ends by steps */
    bool phase_by_zone;              /* in place of phase_ns */
    const struct kith_zones *zones;  /* of the peers */
    char trace[KITH_PATH_BYTES_MAX]; /* absolute */
};
#define KITH_FAULT_MODELS_MAX 1000000u

/* What is done to a peer or a link as long as a fault is in force. Each driver
 * carries each of these out; a fault whose own code adds atoms of other kinds
 * needs none of its own. */
enum kith_effect {
    KITH_EFFECT_STOP,  /* SIGKILL; state is gone */
    KITH_EFFECT_PAUSE, /* SIGSTOP, SIGCONT */
    KITH_EFFECT_SLOW,  /* longer steps, by the factor */
    KITH_EFFECT_LINK,  /* on what peer sends to other: kith/link_law.h */
    KITH_EFFECT_LIE,   /* on what is sent: kith/lie.h */
};
/* How an atom is called, and its number in a trace's hash: its own, for good.
 */
struct kith_fault_event {
    const char *name;
    unsigned number;
};
struct kith_fault {
    const char *name, *summary, *paper;
    bool between;  /* the target is a pair of selectors with an arrow */
    unsigned keys; /* KITH_FAULT_TAKES(...) | ... */
    /* From `at` on, for `length`, to each peer of the target, or each link
     * between its two. */
    enum kith_effect effect;
    struct kith_fault_event begin, end;
    /* In place of that one interval; NULL: as `effect` says. */
    enum kith_err (*expand)(const struct kith_fault_statement *statement,
                            struct kith_atoms *atoms, char *error);
};
/* The statement's atoms are added to `atoms`: KITH_EPARSE or KITH_ELIMIT with
 * text in `error`, KITH_ENOMEM. */
KITH_MUST_CHECK enum kith_err
kith_fault_expand(const struct kith_fault *fault,
                  const struct kith_fault_statement *statement,
                  struct kith_atoms *atoms, char *error);
/* Are its atoms' factors read? Is this one's? */
bool kith_fault_has_factor(const struct kith_fault *fault);
bool kith_atom_has_factor(const struct kith_atom *atom);
/* What an atom of the effect LIE makes its peer send. */
struct kith_lie kith_atom_lie(const struct kith_atom *atom);
const struct kith_fault_event *kith_atom_event(const struct kith_atom *atom);
/* Does the atom begin its fault on from -> to, or end it there? Not where
 * another statement says so before it, or still does: as merged atoms. A
 * statement of no length does both at once. Cost: the statements between sides.
 */
bool kith_atom_turns(const struct kith_atom *atom, bool begins, kith_id from,
                     kith_id to);
/* An atom of the effect LINK sets the force of its fault there; an atom of
 * sides, if it begins or ends there. */
void kith_atom_act(const struct kith_atom *atom, struct kith_link_flow *flow);
/* What an atom stands for, one peer or one link after the other, in the order
 * of its statement. Of links that are too many to tell each, itself. */
struct kith_atom_walk {
    const struct kith_atom *atom;
    uint32_t i, j, part;
};
bool kith_atom_next(struct kith_atom_walk *walk, struct kith_atom *one);
/* How many that are. */
uint32_t kith_atom_count(const struct kith_atom *atom);
/* NULL-terminated, in the order of faults.def. */
extern const struct kith_fault *const kith_faults[];
const struct kith_fault *kith_fault_find(const char *name);

/* The stream's entity: the statement's words, and how many equal statements
 * came before it. */
uint64_t kith_fault_entity(const char *fault, const char *target,
                           const char *at, uint32_t twin);
/* Sorts by (time, statement, order), merges overlaps. In place; KITH_ENOMEM. */
KITH_MUST_CHECK enum kith_err kith_atoms_settle(struct kith_atoms *atoms);
/* KITH_ENOMEM, or KITH_ELIMIT past KITH_ATOMS_MAX. */
KITH_MUST_CHECK enum kith_err kith_atoms_add(struct kith_atoms *atoms,
                                             const struct kith_atom *atom);

#endif

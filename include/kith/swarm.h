/* A search draws experiments: one (seed, run) is one file.
 *
 *   base      algorithm, graph, peers, links, speeds: a healthy cluster
 *   faults    statements of `faults:`, each from a stream of its own, so that
 *             one can be left out without changing another
 *   healed    the time that is left after the last of them
 *
 * Of a base that the loader refuses the next one is drawn.
 * Test: integration/test_swarm.sh. */
#ifndef KITH_SWARM_H
#define KITH_SWARM_H

#include "kith/experiment.h"

#define KITH_DRAW_FAULTS_MAX 8u
#define KITH_DRAW_TEXT_BYTES 4096u

struct kith_draw {
    char base[1024]; /* the file without its faults and its end; "": the
                        caller's own */
    char faults[KITH_DRAW_FAULTS_MAX][192];
    uint32_t fault_count;
    char dishonest[96]; /* "3=rounds,5=silent", sim.h; "": all are honest */
    kith_ns end_ns;     /* stop.time */
};

/* The draw, and what the loader makes of it, which is the caller's to close.
 * For KITH_WORLD_LAB the same without what needs virtual time or peers that
 * lie, its steps long enough for a core, and over after two minutes. */
void kith_draw(uint64_t seed, uint64_t run, enum kith_world world,
               struct kith_draw *draw, struct kith_experiment *experiment);
/* The file, at most KITH_DRAW_TEXT_BYTES; its length. */
size_t kith_draw_text(const struct kith_draw *draw,
                      char text[KITH_DRAW_TEXT_BYTES]);
/* Faults alone, for a file whose peers run for span_ns: they are over by the
 * middle of it. */
void kith_draw_faults(uint64_t seed, uint64_t run, uint32_t peers,
                      kith_ns span_ns, struct kith_draw *draw);
/* "[{at: ...}, {...}]", as `faults:` takes it; the new length. */
size_t kith_draw_list(const struct kith_draw *draw, char *text, size_t size,
                      size_t at);

#endif

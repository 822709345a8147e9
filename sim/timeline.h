/* What some peers did when, as a file that Perfetto and chrome://tracing open:
 * work items and messages as spans, decisions, links and faults as instants.
 * Owner: timeline.c.
 *
 * Format: Trace Event Format, an object with traceEvents (JSON); a process is a
 * peer, times are microseconds of virtual time.
 * Cost   nothing where nobody asked, else about 150 bytes an event. At most
 *        SIM_TIMELINE_EVENTS_MAX are written, and the file says where it ends.
 * Test   integration/test_sim_timeline.sh */
#ifndef KITH_SIM_TIMELINE_H
#define KITH_SIM_TIMELINE_H

#include "kith/experiment.h"
#include "kith/node.h"

#define SIM_TIMELINE_EVENTS_MAX 2000000u

struct sim_world;
struct sim_timeline; /* NULL: nobody asked */

enum kith_err sim_timeline_open(struct sim_world *world);
void sim_timeline_close(struct sim_world *world);
/* The peer's item begins; it has ended, or its process has. */
void sim_timeline_work(struct sim_world *world, kith_id peer,
                       const struct kith_work *work);
void sim_timeline_worked(struct sim_world *world, kith_id peer);
/* A message is handed to its sender's connection; it has come. */
void sim_timeline_sent(struct sim_world *world, uint32_t packet);
void sim_timeline_message(struct sim_world *world, uint32_t packet);
void sim_timeline_mark(struct sim_world *world, kith_id peer,
                       const struct kith_mark *mark);
void sim_timeline_link(struct sim_world *world, kith_id peer, kith_id other,
                       bool up);
void sim_timeline_fault(struct sim_world *world, const struct kith_atom *atom);

#endif

/* Conservation. Every call accepts a world without a ledger. Owner: ledger.c.
 */
#ifndef KITH_SIM_LEDGER_H
#define KITH_SIM_LEDGER_H

#include "kith/check.h"
#include "kith/node.h"

struct sim_world;
struct sim_packet;

enum kith_err sim_ledger_open(struct sim_world *world);
void sim_ledger_close(struct sim_world *world);
void sim_ledger_start(struct sim_world *world, kith_id peer, bool restarted);
void sim_ledger_crash(struct sim_world *world, kith_id peer);
void sim_ledger_before(struct sim_world *world, kith_id peer);
void sim_ledger_after(struct sim_world *world, kith_id peer,
                      const struct kith_work *work);
void sim_ledger_done(struct sim_world *world, kith_id peer);
void sim_ledger_mark(struct sim_world *world, kith_id peer,
                     const struct kith_mark *mark);
void sim_ledger_drop(struct sim_world *world, const struct sim_packet *packet);
void sim_ledger_check(struct sim_world *world);
/* The run is over: its error and what that may be, into the values. */
void sim_ledger_finish(struct sim_world *world, struct kith_values *values);

#endif

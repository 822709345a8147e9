/* The way into sim/central: what sim_run() takes where the experiment has
 * `central:`. */
#ifndef KITH_SIM_CENTRAL_RUN_H
#define KITH_SIM_CENTRAL_RUN_H

#include "sim/protocol.h"

extern const struct sim_protocol sim_central_protocol;

#endif

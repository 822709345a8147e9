/* See kith/affinity.h. */
#include "kith/affinity.h"

#include "kith/assert.h"
#include "kith/experiment.h"

struct kith_core_share kith_core_share(const struct kith_experiment *experiment,
                                       uint32_t peers, uint32_t cores)
{
    struct kith_core_share share = {peers, cores};
    KITH_ASSERT(peers > 0 && cores > 0);
    if (experiment->compute.all_cores || experiment->run.command[0] != '\0')
        return share;
    if (peers % cores == 0)
        share = (struct kith_core_share){peers / cores, 1};
    else if (cores % peers == 0)
        share = (struct kith_core_share){1, cores / peers};
    return share;
}

/* Whether a peer takes part: it pauses and goes on, it leaves in time, it is
 * quiet, its share is done. */
#include "src/protocol/core/round.h"

kith_ns kith_node_leave_time(const struct kith_node *node)
{
    KITH_ASSERT(node->round == NULL || node->mode->is_finished != NULL);
    return KITH_LEAVE_NS + (node->round != NULL && kith_node_share_done(node)
                                ? kith_late_rest(node)
                                : 0);
}

/* On LEAVE rounds that the last step began may finish: closing them early would
 * abort them for the neighbours, who are told to leave at the same time. */
void kith_presence_leave(struct kith_node *node)
{
    KITH_ASSERT(node->leave_ns != KITH_NEVER);
    if (node->now_ns < node->leave_ns && node->round != NULL &&
        kith_node_share_done(node) && !kith_node_finished(node))
        return;
    KITH_ASSERT(node->round == NULL || node->mode->leave != NULL);
    node->leave_ns = KITH_NEVER;
    node->presence = LEAVING;
    node->trigger_due = false;
    if (node->mode->leave != NULL)
        node->mode->leave(node);
}

bool kith_node_quiet(const struct kith_node *node)
{
    return (!node->trigger_due || node->presence == PAUSED) &&
           kith_exchange_is_quiet(node) &&
           (node->mode->is_quiet == NULL || node->mode->is_quiet(node));
}

bool kith_node_finished(const struct kith_node *node)
{
    return kith_node_share_done(node) && !node->trigger_due &&
           node->owner != OWNER_TRAIN && kith_exchange_is_finished(node) &&
           (node->mode->is_finished == NULL || node->mode->is_finished(node));
}

/* Embeddings of tokens and positions: kith_embed. */
#include "kith/net.h"

static const struct kith_operation record = {.kind = KITH_OP_EMBED,
                                             .passage = KITH_PASSAGE_TABLES};

kith_tensor kith_net_embed(struct kith_net *net, const char *token,
                           const char *position, struct kith_embed op,
                           double token_spread, double position_spread)
{
    /* The input: one token per position. */
    const kith_tensor tokens = kith_net_add_tensor(
        net, "input", (struct kith_net_tensor){op.context, 1, 1, true});
    net->tokens = true;
    struct kith_op *added =
        kith_net_add(net, token, &record, tokens,
                     (struct kith_net_tensor){op.context, 1, op.width, true});
    if (added == NULL)
        return 0;
    added->as.embed = op;
    const uint32_t width = (uint32_t)op.width;
    struct kith_net_naming naming = {token,
                                     "weight",
                                     KITH_VIEW_TABLE,
                                     KITH_START_NORMAL,
                                     token_spread,
                                     2,
                                     {(uint32_t)op.vocabulary, width}};
    added->weight = kith_net_add_parameter(net, &naming);
    if (position == NULL)
        return added->y;
    naming.layer = position;
    naming.spread = position_spread;
    naming.shape[0] = (uint32_t)op.context;
    added->bias = kith_net_add_parameter(net, &naming);
    return added->y;
}

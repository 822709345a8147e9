/* `gossip.compressor`: which of its keys it reads. */
#include "kith/assert.h"
#include "key_table.h"

enum kith_err
kith_experiment_rule_compression(const struct tree *tree,
                                 const struct kith_experiment *experiment)
{
    static const char *const paths[] = {
#define KITH_X(name, key) "gossip." key,
        KITH_COMPRESSOR_KEYS(KITH_X)
#undef KITH_X
    };
    const struct kith_compressor *compressor =
        kith_compressor_find(experiment->gossip.compressor);
    enum kith_err err = KITH_OK;
    KITH_ASSERT(compressor != NULL); /* chosen from the registry */
    for (unsigned i = 0; i < KITH_COMPRESSOR_KEY_COUNT && err == KITH_OK; i++)
        err = kith_experiment_unread_key(tree, paths[i], "compressor",
                                         compressor->name,
                                         compressor->keys >> i & 1u);
    return err;
}

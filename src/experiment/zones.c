/* `network.zones`, `zone_rate` and `zone_uplink`; see kith/zones.h. */
#include "kith/zones.h"

#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/text.h"
#include "key_table.h"
#include "yaml_tree.h"

/* The last zone that does not begin behind it. */
uint32_t kith_zone_of(const struct kith_zones *zones, kith_id peer)
{
    if (zones->count == 0)
        return 0;
    if (zones->first == NULL)
        return peer % zones->count;
    uint32_t low = 0, high = zones->count - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low + 1) / 2;
        if (zones->first[middle] <= peer)
            low = middle;
        else
            high = middle - 1;
    }
    KITH_DEBUG_ASSERT(zones->first[low] <= peer);
    return low;
}

void kith_zones_close(struct kith_zones *zones)
{
    free(zones->first);
    *zones = (struct kith_zones){.count = 0};
}

static enum kith_err refuse(const struct tree *tree,
                            const struct tree_item *item, uint32_t peers)
{
    return kith_yaml_refuse_value(
        tree, item, "network.zones",
        "how many, 1 to %u, or the number of peers of each in a list such as "
        "[10, 20], %u in all",
        peers < KITH_ZONES_MAX ? peers : KITH_ZONES_MAX, peers);
}

static enum kith_err open_zones(const struct tree *tree, uint32_t count,
                                struct kith_zones *zones)
{
    KITH_ASSERT(count > 0 && count <= KITH_ZONES_MAX);
    zones->first = calloc(count + 1u, sizeof *zones->first);
    if (zones->first == NULL)
        return kith_yaml_fail(tree, NULL, "network.zones", KITH_ENOMEM,
                              "out of memory");
    zones->count = count;
    return KITH_OK;
}

static enum kith_err read_count(const struct tree *tree,
                                const struct tree_item *item, uint32_t peers,
                                struct kith_zones *zones)
{
    uint64_t count;
    if (kith_text_u64(item->text, &count) != KITH_OK || count < 1 ||
        count > peers || count > KITH_ZONES_MAX)
        return refuse(tree, item, peers);
    const enum kith_err err = open_zones(tree, (uint32_t)count, zones);
    for (uint32_t i = 0; err == KITH_OK && i <= count; i++)
        zones->first[i] = i * (peers / zones->count) +
                          (i < peers % zones->count ? i : peers % zones->count);
    return err;
}

static enum kith_err read_sizes(const struct tree *tree,
                                const struct tree_item *list, uint32_t peers,
                                struct kith_zones *zones)
{
    if (list->count < 1 || list->count > KITH_ZONES_MAX)
        return refuse(tree, list, peers);
    const enum kith_err err = open_zones(tree, list->count, zones);
    if (err != KITH_OK)
        return err;
    const struct tree_item *item = kith_yaml_first(tree, list);
    for (uint32_t i = 0; item != NULL; i++, item = kith_yaml_next(tree, item)) {
        uint64_t size;
        if (item->kind != TREE_SCALAR ||
            kith_text_u64(item->text, &size) != KITH_OK || size < 1 ||
            size > peers - zones->first[i])
            return refuse(tree, item, peers);
        zones->first[i + 1] = zones->first[i] + (uint32_t)size;
    }
    if (zones->first[zones->count] != peers)
        return kith_yaml_fail(tree, list, "network.zones", KITH_EINVAL,
                              "found %u peers in all; allowed: %u, as peers "
                              "says",
                              zones->first[zones->count], peers);
    return KITH_OK;
}

/* Regions are zones already. */
static enum kith_err take_regions(const struct tree *tree, bool has_rate,
                                  const struct kith_experiment *experiment,
                                  struct kith_zones *zones)
{
    const uint32_t regions = experiment->network.latencies.regions;
    if (kith_yaml_find(tree, "network.zones") != NULL)
        return kith_yaml_refuse(tree, "network.zones",
                                "found beside network.matrix or coordinates, "
                                "whose %u regions are the zones; allowed: one "
                                "of them",
                                regions);
    if (has_rate && regions > KITH_ZONES_MAX)
        return kith_yaml_refuse(tree,
                                zones->rate_bits > 0 ? "network.zone_rate"
                                                     : "network.zone_uplink",
                                "found beside %u regions; allowed: up to %u",
                                regions, KITH_ZONES_MAX);
    zones->count = regions;
    return KITH_OK;
}

/* Only flows share a line. */
static enum kith_err check_rates(const struct tree *tree, const char *key,
                                 const struct kith_experiment *experiment)
{
    if (kith_yaml_find(tree, "network.zone_rate") != NULL &&
        kith_yaml_find(tree, "network.zone_uplink") != NULL)
        return kith_yaml_refuse(tree, "network.zone_uplink",
                                "found beside network.zone_rate; allowed: one "
                                "of them");
    if (experiment->network.zones.count == 0)
        return kith_yaml_refuse(tree, key,
                                "found without zones; allowed: beside "
                                "network.zones, matrix or coordinates");
    if (experiment->network.sharing != KITH_SHARING_FAIR)
        return kith_yaml_refuse(tree, key,
                                "found with network.sharing: queue, where a "
                                "line belongs to one message at a time; "
                                "allowed: network.sharing: fair, in the "
                                "simulator");
    if (kith_yaml_find(tree, "central") != NULL)
        return kith_yaml_refuse(tree, key,
                                "found beside central, whose machines are in "
                                "no zone; allowed: with gossip");
    return KITH_OK;
}

enum kith_err kith_experiment_read_zones(const struct tree *tree,
                                         struct kith_experiment *experiment)
{
    struct kith_zones *zones = &experiment->network.zones;
    const struct tree_item *item = kith_yaml_find(tree, "network.zones");
    const bool has_rate = zones->rate_bits > 0 || zones->uplink_bits > 0;
    enum kith_err err = KITH_OK;
    if (experiment->network.latencies.regions > 0)
        err = take_regions(tree, has_rate, experiment, zones);
    else if (item != NULL && item->kind == TREE_SCALAR)
        err = read_count(tree, item, experiment->peers, zones);
    else if (item != NULL && item->kind == TREE_LIST)
        err = read_sizes(tree, item, experiment->peers, zones);
    else if (item != NULL)
        err = refuse(tree, item, experiment->peers);
    if (err == KITH_OK && has_rate)
        err = check_rates(tree,
                          zones->rate_bits > 0 ? "network.zone_rate"
                                               : "network.zone_uplink",
                          experiment);
    return err;
}

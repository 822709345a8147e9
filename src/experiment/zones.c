/* `network.zones`, `zone_rate`, `zone_rates` and `zone_uplink`; see
 * kith/zones.h. */
#include "kith/zones.h"

#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/hash.h"
#include "kith/text.h"
#include "key_table.h"
#include "read_file.h"
#include "region_table.h"
#include "yaml_tree.h"

#define MBIT 1e6

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

const char *kith_zones_limit(const struct kith_zones *zones)
{
    if (zones->pair_bits != NULL)
        return "network.zone_rates";
    if (zones->rate_bits > 0)
        return "network.zone_rate";
    return zones->uplink_bits > 0 ? "network.zone_uplink" : NULL;
}

uint64_t kith_zones_rate(const struct kith_zones *zones, uint32_t from,
                         uint32_t to)
{
    KITH_ASSERT(from < zones->count && to < zones->count);
    if (zones->pair_bits != NULL)
        return zones->pair_bits[from * zones->count + to];
    return from == to ? 0 : zones->rate_bits;
}

void kith_zones_close(struct kith_zones *zones)
{
    free(zones->pair_bits);
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
static enum kith_err take_regions(const struct tree *tree, const char *limit,
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
    if (limit != NULL && regions > KITH_ZONES_MAX)
        return kith_yaml_refuse(tree, limit,
                                "found beside %u regions; allowed: up to %u",
                                regions, KITH_ZONES_MAX);
    zones->count = regions;
    return KITH_OK;
}

/* One says what lines there are between zones. */
static enum kith_err check_alone(const struct tree *tree)
{
    static const char *const keys[] = {
        "network.zone_rate", "network.zone_rates", "network.zone_uplink"};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (kith_yaml_find(tree, keys[i]) == NULL)
            continue;
        if (first != NULL)
            return kith_yaml_refuse(
                tree, keys[i], "found beside %s; allowed: one of them", first);
        first = keys[i];
    }
    return KITH_OK;
}

/* Only flows share a line. */
static enum kith_err check_limit(const struct tree *tree, const char *key,
                                 const struct kith_experiment *experiment)
{
    const enum kith_err err = check_alone(tree);
    if (err != KITH_OK)
        return err;
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

/* own[i] <- the file's zone that is zone i: by its name where a matrix names
 * the regions, else the i-th. */
static enum kith_err order_zones(const struct region_table *table,
                                 const struct kith_experiment *experiment,
                                 uint32_t own[KITH_ZONES_MAX])
{
    const struct kith_latencies *latencies = &experiment->network.latencies;
    const uint32_t count = experiment->network.zones.count;
    KITH_ASSERT(count <= KITH_ZONES_MAX);
    if (latencies->names != NULL)
        return kith_region_table_order(table, latencies->names, count, own);
    if (table->regions != count)
        return kith_region_table_fail(
            table, KITH_EINVAL,
            "found %u regions; allowed: the %u of network.%s, in that order",
            table->regions, count,
            latencies->regions > 0 ? "coordinates" : "zones");
    for (uint32_t i = 0; i < count; i++)
        own[i] = i;
    return KITH_OK;
}

static enum kith_err take_rates(const struct region_table *table,
                                const struct kith_experiment *experiment,
                                struct kith_zones *zones)
{
    uint32_t own[KITH_ZONES_MAX];
    const uint32_t n = zones->count;
    const enum kith_err err = order_zones(table, experiment, own);
    if (err != KITH_OK)
        return err;
    zones->pair_bits = malloc((size_t)n * n * sizeof *zones->pair_bits);
    if (zones->pair_bits == NULL)
        return kith_region_table_fail(table, KITH_ENOMEM,
                                      "out of memory: %u zones", n);
    zones->hash = kith_hash_word(KITH_HASH_START, n);
    for (uint32_t i = 0; i < n * n; i++) {
        const int64_t bits = table->values[own[i / n] * n + own[i % n]];
        KITH_ASSERT(bits > 0 || (bits == 0 && i / n == i % n));
        zones->pair_bits[i] = (uint64_t)bits;
        zones->hash = kith_hash_word(zones->hash, zones->pair_bits[i]);
    }
    return KITH_OK;
}

static enum kith_err read_rates(const struct tree *tree,
                                struct kith_experiment *experiment)
{
    static const struct region_cells rates = {
        .name = "rate",
        .names = "rates",
        .unit = "Mbit/s",
        .allowed = "a rate in Mbit/s, from 0.001 to 1e9; from a zone to itself "
                   "nothing or 0, too",
        .least = 0.001,
        .most = 1e9,
        .scale = MBIT,
        .regions_most = KITH_ZONES_MAX,
        .has_gaps = true};
    static const char key[] = "network.zone_rates";
    char *const path = experiment->network.files.zone_rates;
    struct region_table table = {.regions = 0};
    enum kith_err err = kith_experiment_resolve_path(tree, key, path);
    if (err == KITH_OK)
        err = check_limit(tree, key, experiment);
    if (err == KITH_OK)
        err = kith_region_table_read(tree, key, path, &rates, &table);
    if (err == KITH_OK)
        err = take_rates(&table, experiment, &experiment->network.zones);
    kith_region_table_close(&table);
    return err;
}

enum kith_err kith_experiment_read_zones(const struct tree *tree,
                                         struct kith_experiment *experiment)
{
    struct kith_zones *zones = &experiment->network.zones;
    const struct tree_item *item = kith_yaml_find(tree, "network.zones");
    const bool has_rates = experiment->network.files.zone_rates[0] != '\0';
    const char *limit =
        has_rates ? "network.zone_rates" : kith_zones_limit(zones);
    enum kith_err err = KITH_OK;
    if (experiment->network.latencies.regions > 0)
        err = take_regions(tree, limit, experiment, zones);
    else if (item != NULL && item->kind == TREE_SCALAR)
        err = read_count(tree, item, experiment->peers, zones);
    else if (item != NULL && item->kind == TREE_LIST)
        err = read_sizes(tree, item, experiment->peers, zones);
    else if (item != NULL)
        err = refuse(tree, item, experiment->peers);
    if (err == KITH_OK && has_rates)
        err = read_rates(tree, experiment);
    else if (err == KITH_OK && limit != NULL)
        err = check_limit(tree, limit, experiment);
    return err;
}

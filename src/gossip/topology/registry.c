/* Every topology, in the order of topologies.def. */
#include <stddef.h>

#include "kith/topology.h"

#define X(name) extern const struct kith_topology_kind kith_topology_##name;
#include "topologies.def"
#undef X

const struct kith_topology_kind *const kith_topology_kinds[] = {
#define X(name) &kith_topology_##name,
#include "topologies.def"
#undef X
    NULL,
};

static char dashed(char c)
{
    return c == '_' ? '-' : c;
}

static bool same_name(const char *name, const char *word)
{
    while (*name != '\0' && *name == dashed(*word)) {
        name++;
        word++;
    }
    return *name == '\0' && *word == '\0';
}

const struct kith_topology_kind *kith_topology_find(const char *name)
{
    for (size_t i = 0; kith_topology_kinds[i] != NULL; i++)
        if (same_name(kith_topology_kinds[i]->name, name))
            return kith_topology_kinds[i];
    return NULL;
}

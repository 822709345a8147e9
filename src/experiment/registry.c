/* Every registry: the tables of what a name in an experiment file may mean.
 *
 * A kind of plug-in is a folder with a .def file of lines X(NAME); NAME.c in
 * that folder ends in the record kith_KIND_NAME. The order of a table is that
 * of its .def file. Test: tests/fences/check_registry.sh, and the property
 * tests of each kind, which run over its table. */
#include <string.h>

#include "kith/backend.h"
#include "kith/model.h"
#include "kith/optimiser.h"
#include "kith/data.h"
#include "kith/algorithm.h"
#include "kith/compressor.h"
#include "kith/format.h"
#include "kith/guard.h"
#include "kith/topology.h"
#include "kith/fault.h"

static bool is_equal(const char *name, const char *word)
{
    return strcmp(name, word) == 0;
}

/* A name of C has '_' where a word has '-'. */
static bool is_named(const char *name, const char *word)
{
    while (*name != '\0' && *name == (*word == '_' ? '-' : *word)) {
        name++;
        word++;
    }
    return *name == '\0' && *word == '\0';
}

/* Search by name: the first record so named, or NULL. */
#define FIND_BY(equal, kind, table, find)                                      \
    const struct kind *find(const char *name)                                  \
    {                                                                          \
        for (size_t i = 0; table[i] != NULL; i++)                              \
            if (equal(table[i]->name, name))                                   \
                return table[i];                                               \
        return NULL;                                                           \
    }
#define FIND(kind, table, find) FIND_BY(is_equal, kind, table, find)

#define X(name, constancy)                                                     \
    extern constancy struct kith_backend kith_backend_##name;
#include "src/training/backend/backends.def"
const struct kith_backend *const kith_backends[] = {
#define X(name, constancy) &kith_backend_##name,
#include "src/training/backend/backends.def"
    NULL};
FIND(kith_backend, kith_backends, kith_backend_find)

#define X(name) extern const struct kith_model kith_model_##name;
#include "src/training/model/models.def"
const struct kith_model *const kith_models[] = {
#define X(name) &kith_model_##name,
#include "src/training/model/models.def"
    NULL};
FIND(kith_model, kith_models, kith_model_find)

#define X(name) extern const struct kith_optimiser kith_optimiser_##name;
#include "src/training/optimiser/optimisers.def"
const struct kith_optimiser *const kith_optimisers[] = {
#define X(name) &kith_optimiser_##name,
#include "src/training/optimiser/optimisers.def"
    NULL};
FIND(kith_optimiser, kith_optimisers, kith_optimiser_find)

#define X(name) extern const struct kith_dataset_kind kith_dataset_##name;
#include "src/training/data/datasets.def"
const struct kith_dataset_kind *const kith_dataset_kinds[] = {
#define X(name) &kith_dataset_##name,
#include "src/training/data/datasets.def"
    NULL};
FIND(kith_dataset_kind, kith_dataset_kinds, kith_dataset_kind_find)

#define X(name) extern const struct kith_algorithm kith_algorithm_##name;
#include "src/gossip/algorithm/algorithms.def"
const struct kith_algorithm *const kith_algorithms[] = {
#define X(name) &kith_algorithm_##name,
#include "src/gossip/algorithm/algorithms.def"
    NULL};
FIND(kith_algorithm, kith_algorithms, kith_algorithm_find)

#define X(name) extern const struct kith_compressor kith_compressor_##name;
#include "src/gossip/compressor/compressors.def"
const struct kith_compressor *const kith_compressors[] = {
#define X(name) &kith_compressor_##name,
#include "src/gossip/compressor/compressors.def"
    NULL};
FIND(kith_compressor, kith_compressors, kith_compressor_find)

#define X(name) extern const struct kith_format kith_format_##name;
#include "src/gossip/format/formats.def"
const struct kith_format *const kith_formats[] = {
#define X(name) &kith_format_##name,
#include "src/gossip/format/formats.def"
    NULL};
FIND(kith_format, kith_formats, kith_format_find)

#define X(name) extern const struct kith_guard kith_guard_##name;
#include "src/gossip/guard/guards.def"
const struct kith_guard *const kith_guards[] = {
#define X(name) &kith_guard_##name,
#include "src/gossip/guard/guards.def"
    NULL};
FIND(kith_guard, kith_guards, kith_guard_find)

#define X(name) extern const struct kith_topology_kind kith_topology_##name;
#include "src/gossip/topology/topologies.def"
const struct kith_topology_kind *const kith_topology_kinds[] = {
#define X(name) &kith_topology_##name,
#include "src/gossip/topology/topologies.def"
    NULL};
FIND_BY(is_named, kith_topology_kind, kith_topology_kinds, kith_topology_find)

#define X(name) extern const struct kith_fault kith_fault_##name;
#include "src/experiment/fault/faults.def"
const struct kith_fault *const kith_faults[] = {
#define X(name) &kith_fault_##name,
#include "src/experiment/fault/faults.def"
    NULL};
FIND(kith_fault, kith_faults, kith_fault_find)

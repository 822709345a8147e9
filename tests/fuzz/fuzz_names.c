/* Goal: no bytes make a file of another program's names misbehave. Of what is
 * accepted each name fits its buffer; what fits a model gives each of its views
 * a name and a shape of as many values, and values that went into the other
 * program's order of axes come back as they were. */
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/experiment.h"
#include "kith/model.h"
#include "kith/names.h"

#define VALUES_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct kith_graph *network; /* of all inputs: of one to four axes */
static const struct kith_layout *layout;

static void close_model(void)
{
    kith_graph_close(network);
}

static void open_model(void)
{
    const struct kith_model_config config = {.image = {4, 6, 1},
                                             .classes = 5,
                                             .channels = {2, 3},
                                             .channel_count = 2};
    const struct kith_graph_options options = {
        .backend = kith_backend_find("naive32"), .rows = 1};
    char error[KITH_MODEL_ERROR_BYTES];
    KITH_ASSERT(kith_graph_open(kith_model_find("cnn"), &config, &options,
                                &network, error) == KITH_OK);
    layout = kith_graph_layout(network);
    KITH_ASSERT(atexit(close_model) == 0);
}

static void check_view(const struct kith_names *names,
                       const struct kith_model_view *view)
{
    static double ours[VALUES_MAX], theirs[VALUES_MAX], back[VALUES_MAX];
    struct kith_tensor_entry entry;
    const struct kith_names_pair *pair = kith_names_entry(names, view, &entry);
    size_t values = 1;
    KITH_ASSERT(view->elements <= VALUES_MAX);
    KITH_ASSERT(strlen(entry.name) > 0 && entry.rank == view->rank);
    for (uint32_t i = 0; i < entry.rank; i++)
        values *= entry.shape[i];
    KITH_ASSERT(values == view->elements);
    for (size_t i = 0; i < values; i++)
        ours[i] = (double)i;
    kith_names_to_theirs(pair, view, ours, theirs);
    kith_names_to_ours(pair, view, theirs, back);
    KITH_ASSERT(memcmp(ours, back, values * sizeof *ours) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[KITH_NAMES_ERROR_BYTES + KITH_EXPERIMENT_ERROR_BYTES] = "";
    struct kith_names names;
    if (network == NULL)
        open_model();
    if (kith_names_parse("names.yaml", (const char *)data, size, &names,
                         error) != KITH_OK) {
        KITH_ASSERT(error[0] != '\0' && names.pairs == NULL);
        return 0;
    }
    KITH_ASSERT(names.count <= KITH_NAMES_MAX);
    for (uint32_t i = 0; i < names.count; i++)
        KITH_ASSERT(names.pairs[i].axis_count <= 4 &&
                    strlen(names.pairs[i].theirs) > 0);
    if (kith_names_check(&names, layout, error) == KITH_OK)
        for (size_t i = 0; i < layout->view_count; i++)
            check_view(&names, &layout->views[i]);
    else
        KITH_ASSERT(strncmp(error, "names.yaml:", 11) == 0);
    kith_names_close(&names);
    return 0;
}

/* What a sweep runs: files x values x seeds, each cell checked beforehand.
 *
 *   --sweep a=1,2 --sweep b=x,y   cells a=1,b=x  a=1,b=y  a=2,b=x  a=2,b=y
 *   --sweep 'a={b: 1, c: 2}|{b: 3}'   keys of the section a that go together
 *   --all-cells                   a cell for each file of a folder, times that
 *
 * A cell that cannot run ends a sweep before it begins, for somebody chose it;
 * of all cells, and of a search's, those that make no sense are listed and left
 * out. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/backend.h"
#include "kith/text.h"
#include "sweep_command.h"

#define FILES_MAX 512u /* add_files() says it, too */
#define CELLS_MAX 10000u
#define SEEDS_MAX 10000u
/* What a preset of the taxonomy runs on. */
#define CELLS_PEERS "peers=8"

struct grid {
    const struct cli_arguments *arguments;
    struct cli_dataset_cache *cache;
    struct cli_axes *axes;
    char *files[FILES_MAX]; /* malloc'd */
    uint32_t file_count;
    bool all;     /* of a folder */
    bool lenient; /* what makes no sense is left out */
};

enum kith_err
kith_cli_dataset_cache_get(struct cli_dataset_cache *cache,
                           const struct kith_experiment *experiment,
                           struct kith_dataset **set, char *error)
{
    const struct kith_data_config *config = &experiment->data.config;
    *set = NULL;
    if (experiment->model->input == KITH_INPUT_NONE)
        return KITH_OK;
    for (unsigned i = 0; i < CLI_CACHE_SETS; i++)
        if (cache->entries[i].open &&
            memcmp(&cache->entries[i].config, config, sizeof *config) == 0) {
            *set = &cache->entries[i].set;
            return KITH_OK;
        }
    const unsigned at = cache->next;
    if (cache->entries[at].open)
        kith_dataset_close(&cache->entries[at].set);
    cache->entries[at].open = false;
    const enum kith_err err =
        kith_dataset_open(config, &cache->entries[at].set, error);
    if (err != KITH_OK)
        return err;
    cache->entries[at].config = *config;
    cache->entries[at].open = true;
    cache->next = (at + 1) % CLI_CACHE_SETS;
    *set = &cache->entries[at].set;
    return KITH_OK;
}

void kith_cli_dataset_cache_close(struct cli_dataset_cache *cache)
{
    for (unsigned i = 0; i < CLI_CACHE_SETS; i++)
        if (cache->entries[i].open)
            kith_dataset_close(&cache->entries[i].set);
    memset(cache, 0, sizeof *cache);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Where the presets are: beside an installed kith, in the tree it was built
 * in, or here. */
static bool find_cells(char *folder)
{
    static const char *const beside[] = {"/../share/kith/examples/taxonomy",
                                         "/examples/taxonomy",
                                         "/../examples/taxonomy"};
    char own[KITH_PATH_BYTES_MAX];
    const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    char *slash = NULL;
    if (length > 0) {
        own[length] = '\0';
        slash = strrchr(own, '/');
    }
    for (size_t i = 0; slash != NULL && i < sizeof beside / sizeof *beside;
         i++) {
        *slash = '\0';
        (void)kith_text_add(folder, KITH_PATH_BYTES_MAX, 0, "%s%s", own,
                            beside[i]);
        if (access(folder, R_OK | X_OK) == 0)
            return true;
    }
    kith_text_copy(folder, KITH_PATH_BYTES_MAX,
                   KITH_DATA_DIR "/examples/taxonomy");
    if (access(folder, R_OK | X_OK) == 0)
        return true;
    kith_text_copy(folder, KITH_PATH_BYTES_MAX, "examples/taxonomy");
    return access(folder, R_OK | X_OK) == 0;
}

static int no_cells(const struct grid *grid, const char *folder,
                    const char *why)
{
    return kith_cli_fail(
        grid->arguments, KITH_EXIT_EXPERIMENT,
        "--all-cells: %s: %s; give their folder with --cells DIR", folder, why);
}

static int add_files(struct grid *grid)
{
    char folder[KITH_PATH_BYTES_MAX];
    const char *given = grid->arguments->values[CLI_CELLS];
    if (given != NULL)
        kith_text_copy(folder, sizeof folder, given);
    else if (!find_cells(folder))
        return no_cells(grid, "examples/taxonomy", "not found");
    DIR *list = opendir(folder);
    if (list == NULL)
        return no_cells(grid, folder, strerror(errno));
    const struct dirent *entry;
    const char *why = NULL;
    while (why == NULL && (entry = readdir(list)) != NULL) {
        const size_t length = strlen(entry->d_name);
        if (length <= 5 || entry->d_name[0] == '.' ||
            strcmp(entry->d_name + length - 5, ".yaml") != 0)
            continue;
        char path[KITH_PATH_BYTES_MAX];
        (void)kith_text_add(path, sizeof path, 0, "%s/%s", folder,
                            entry->d_name);
        char *const copy = grid->file_count < FILES_MAX ? strdup(path) : NULL;
        if (copy != NULL)
            grid->files[grid->file_count++] = copy;
        else
            why = grid->file_count < FILES_MAX
                      ? "out of memory"
                      : "it holds more than 512 .yaml files";
    }
    closedir(list);
    if (why == NULL && grid->file_count == 0)
        why = "it holds no .yaml file";
    if (why != NULL)
        return no_cells(grid, folder, why);
    qsort(grid->files, grid->file_count, sizeof *grid->files, by_name);
    return KITH_EXIT_OK;
}

/* Values of cell `index`, the last key changing fastest. */
static void set_settings(const struct grid *grid, uint32_t index,
                         struct kith_cell *cell)
{
    cell->setting_count = grid->axes->count;
    for (uint32_t i = grid->axes->count; i-- > 0;) {
        const struct cli_axis *axis = &grid->axes->list[i];
        struct kith_setting *setting = &cell->settings[i];
        kith_text_copy(setting->key, sizeof setting->key, axis->key);
        kith_text_copy(setting->value, sizeof setting->value,
                       axis->values[index % axis->count]);
        index /= axis->count;
    }
}

/* The file's name where there are several, and what was set. */
static bool set_label(const struct grid *grid, const char *file,
                      const char *name, struct kith_cell *cell)
{
    const char *slash = strrchr(file, '/');
    const char *base = slash != NULL ? slash + 1 : file;
    size_t at = 0;
    if (grid->all)
        at = kith_text_add(cell->label, sizeof cell->label, 0, "%.*s",
                           (int)strlen(base) - 5, base);
    for (uint32_t i = 0; i < cell->setting_count; i++)
        at = kith_text_add(cell->label, sizeof cell->label, at, "%s%s=%s",
                           at > 0 ? ", " : "", cell->settings[i].key,
                           cell->settings[i].value);
    if (at == 0)
        at = kith_text_add(cell->label, sizeof cell->label, 0, "%s", name);
    return at + 1 < sizeof cell->label;
}

static enum kith_err load(const struct grid *grid, const char *file,
                          const struct kith_cell *cell,
                          struct kith_experiment *experiment, char *error)
{
    char texts[KITH_SETTINGS_MAX]
              [sizeof cell->settings[0].key + KITH_SETTING_BYTES + 1];
    const char *sets[CLI_WORDS_MAX + KITH_SETTINGS_MAX + 2];
    char seed[64];
    uint32_t count = 0;
    /* Files of the user's own say how many peers they are about. */
    const bool fixed = !grid->all || kith_cli_axes_set(grid->axes, "peers") ||
                       kith_cli_given(grid->arguments, CLI_CELLS);
    for (unsigned i = 0; i < grid->arguments->set_count; i++)
        sets[count++] = grid->arguments->sets[i];
    for (uint32_t i = 0; i < cell->setting_count; i++) {
        const char *value = cell->settings[i].value;
        (void)kith_text_add(texts[i], sizeof texts[i], 0, "%s%s=%s",
                            cell->settings[i].key, value[0] == '{' ? "+" : "",
                            value);
        sets[count++] = texts[i];
    }
    if (!fixed)
        sets[count++] = CELLS_PEERS;
    if (kith_cli_given(grid->arguments, CLI_SEED)) {
        (void)kith_text_add(seed, sizeof seed, 0, "seed=%s",
                            grid->arguments->values[CLI_SEED]);
        sets[count++] = seed;
    }
    const enum kith_err err =
        kith_experiment_load(file, sets, count, experiment, error);
    if (err == KITH_OK)
        kith_experiment_steps_of_hosts(experiment);
    return err;
}

/* What `kith sim` would refuse, before it runs. A search gives steps what the
 * machine says that they take; any time will do here. */
static enum kith_err check(const struct grid *grid,
                           const struct kith_experiment *experiment,
                           char *error)
{
    struct kith_dataset *set;
    struct kith_experiment timed = *experiment; /* lends its memory */
    if (timed.compute.step_ns <= 0 &&
        kith_cli_given(grid->arguments, CLI_SEARCH))
        timed.compute.step_ns = KITH_MS;
    enum kith_err err =
        kith_experiment_check_world(&timed, KITH_WORLD_SIM, error);
    if (err == KITH_OK && timed.compute.step_ns <= 0) {
        snprintf(error, KITH_EXPERIMENT_ERROR_BYTES,
                 "the simulator needs the cost of a training step: add "
                 "`compute: {step: 5ms}`, or measure it with --calibrate");
        err = KITH_EINVAL;
    }
    if (err == KITH_OK &&
        kith_backend_product(experiment->compute.products) != KITH_OK) {
        snprintf(error, KITH_EXPERIMENT_ERROR_BYTES,
                 "compute.products: %s is not installed here",
                 experiment->compute.products);
        err = KITH_EUNSUPPORTED;
    }
    if (err == KITH_OK)
        err = kith_cli_dataset_cache_get(grid->cache, experiment, &set, error);
    if (err == KITH_OK)
        err = kith_experiment_check_data(
            experiment, set == NULL ? NULL : &set->train, error);
    return err;
}

/* Loads and checks a cell; `name` becomes the experiment's. */
static int make_cell(const struct grid *grid, uint32_t index, char *name,
                     struct kith_cell *cell)
{
    const char *file = grid->files[index % grid->file_count];
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "", *real;
    struct kith_experiment experiment;
    set_settings(grid, index / grid->file_count, cell);
    real = realpath(file, NULL);
    kith_text_copy(cell->path, sizeof cell->path, real == NULL ? file : real);
    free(real);
    enum kith_err err = load(grid, file, cell, &experiment, error);
    const bool loaded = err == KITH_OK;
    if (loaded) {
        kith_text_copy(name, KITH_NAME_MAX, experiment.name);
        cell->seed = experiment.seed;
        cell->experiment = strdup(experiment.source);
        err = check(grid, &experiment, error);
        kith_experiment_close(&experiment);
    }
    if (!set_label(grid, file, loaded ? name : file, cell))
        return kith_cli_fail(
            grid->arguments, KITH_EXIT_USAGE,
            "--sweep: the values of a cell are too long together");
    if (err == KITH_OK)
        return cell->experiment != NULL
                   ? KITH_EXIT_OK
                   : kith_cli_fail(grid->arguments, KITH_EXIT_RESOURCES,
                                   "out of memory");
    if (!grid->lenient)
        return kith_cli_fail(
            grid->arguments,
            err == KITH_ENOMEM ? KITH_EXIT_RESOURCES : KITH_EXIT_EXPERIMENT,
            "cell %u (%s): %s", (unsigned)index + 1, cell->label, error);
    kith_text_copy(cell->refused, sizeof cell->refused, error);
    return KITH_EXIT_OK;
}

static int make_cells(const struct grid *grid, struct kith_plan *plan)
{
    uint64_t count = grid->file_count;
    for (uint32_t i = 0; i < grid->axes->count && count <= CELLS_MAX; i++)
        count *= grid->axes->list[i].count;
    if (count > CELLS_MAX || count * plan->seeds > KITH_RUNS_MAX)
        return kith_cli_fail(
            grid->arguments, KITH_EXIT_USAGE,
            "found more than %u cells, or %u runs; sweep fewer values",
            CELLS_MAX, KITH_RUNS_MAX);
    plan->cells = calloc(count, sizeof *plan->cells);
    if (plan->cells == NULL)
        return kith_cli_fail(grid->arguments, KITH_EXIT_RESOURCES,
                             "out of memory");
    plan->cell_count = (uint32_t)count;
    char name[KITH_NAME_MAX] = "cells";
    for (uint32_t i = 0; i < plan->cell_count; i++) {
        const int code = make_cell(grid, i, name, &plan->cells[i]);
        if (code != KITH_EXIT_OK)
            return code;
    }
    kith_text_copy(plan->name, sizeof plan->name, grid->all ? "all" : name);
    kith_text_copy(plan->kind, sizeof plan->kind,
                   grid->all ? "cells" : "sweep");
    return KITH_EXIT_OK;
}

static int fill(struct grid *grid, struct kith_plan *plan)
{
    const struct cli_arguments *arguments = grid->arguments;
    uint64_t seeds = 1, seed = 0;
    int code = kith_cli_number(arguments, CLI_SEEDS, 1, SEEDS_MAX, &seeds);
    if (code == KITH_EXIT_OK)
        code = kith_cli_number(arguments, CLI_SEED, 0, UINT64_MAX, &seed);
    if (code == KITH_EXIT_OK)
        code = kith_cli_axes_read(arguments, grid->axes);
    if (code == KITH_EXIT_OK && grid->all)
        code = add_files(grid);
    if (code != KITH_EXIT_OK)
        return code;
    if (!grid->all) {
        grid->files[0] = strdup(arguments->words[0]);
        grid->file_count = grid->files[0] != NULL;
    }
    plan->seeds = (uint32_t)seeds;
    const char *shard = arguments->values[CLI_SHARD];
    if (shard != NULL && !kith_shard_read(shard, &plan->shard, &plan->shards))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--shard: found \"%.60s\"; allowed: I/N with I "
                             "from 1 to N, such as 1/4",
                             shard);
    return grid->file_count > 0
               ? make_cells(grid, plan)
               : kith_cli_fail(arguments, KITH_EXIT_RESOURCES, "out of memory");
}

int kith_cli_plan_open(const struct cli_arguments *arguments,
                       struct cli_dataset_cache *cache, struct kith_plan *plan)
{
    struct grid grid = {.arguments = arguments,
                        .cache = cache,
                        .all = kith_cli_given(arguments, CLI_ALL_CELLS)};
    grid.lenient = grid.all || kith_cli_given(arguments, CLI_SEARCH);
    *plan = (struct kith_plan){0};
    grid.axes = calloc(1, sizeof *grid.axes);
    const int code =
        grid.axes == NULL
            ? kith_cli_fail(arguments, KITH_EXIT_RESOURCES, "out of memory")
            : fill(&grid, plan);
    for (uint32_t i = 0; i < grid.file_count; i++)
        free(grid.files[i]);
    free(grid.axes);
    if (code != KITH_EXIT_OK)
        kith_plan_free(plan);
    return code;
}

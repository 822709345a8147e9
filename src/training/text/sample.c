/* Sampling from a model of tokens. See sample.h.
 *
 * There is no cache of keys and values: every token is a pass over the text so
 * far. The network that runs has the shortest power of two of positions that
 * holds the text; its vector is the model's with the table of positions cut
 * short. */
#include "kith/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/text.h"

/* The shortest network: shorter ones cost as much. */
enum { POSITIONS_MIN = 16 };

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

static size_t largest(size_t n, const double *scores)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        best = scores[i] > scores[best] ? i : best;
    return best;
}

/* What the smallest of the top k is, and how many that are equal to it are
 * kept. */
struct bar {
    double score;
    size_t equal;
};

static struct bar bar_of(size_t n, const double *scores, size_t k,
                         double *scratch)
{
    if (k == 0 || k >= n)
        return (struct bar){-INFINITY, 0};
    memcpy(scratch, scores, n * sizeof *scores);
    qsort(scratch, n, sizeof *scratch, descending);
    struct bar bar = {scratch[k - 1], 1};
    while (bar.equal < k && !(scratch[k - 1 - bar.equal] > bar.score))
        bar.equal++;
    return bar;
}

/* scratch <- the weights; returns their sum. */
static double weigh(size_t n, const double *scores, struct bar bar,
                    double temperature, double *scratch)
{
    const double most = scores[largest(n, scores)];
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        bool kept = scores[i] > bar.score;
        if (!kept && !(scores[i] < bar.score) && bar.equal > 0) {
            kept = true;
            bar.equal--;
        }
        scratch[i] = kept ? exp((scores[i] - most) / temperature) : 0;
        sum += scratch[i];
    }
    return sum;
}

enum kith_err kith_sample(const struct kith_sampling *how, size_t n,
                          const double *scores, double *scratch,
                          struct kith_rng *rng, int32_t *token)
{
    KITH_ASSERT(n > 0 && n <= INT32_MAX && how->temperature >= 0);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(scores[i]))
            return KITH_ENONFINITE;
    const size_t best = largest(n, scores);
    *token = (int32_t)best;
    if (!(how->temperature > 0))
        return KITH_OK;
    const struct bar bar = bar_of(n, scores, how->top_k, scratch);
    const double sum = weigh(n, scores, bar, how->temperature, scratch);
    double left = kith_rng_double(rng) * sum;
    /* Rounding may leave a rest; the most likely one gets it. */
    for (size_t i = 0; i < n; i++) {
        left -= scratch[i];
        if (left < 0) {
            *token = (int32_t)i;
            break;
        }
    }
    return KITH_OK;
}

struct kith_generator {
    struct kith_generator_config config;
    struct kith_rng rng;
    size_t context, vocabulary; /* of the model */
    size_t *offsets;            /* (view_count) of each view in z */

    struct kith_graph *network; /* NULL: none yet */
    size_t positions;           /* of the network */
    void *x;                    /* its vector */
    int32_t *inputs;            /* (context), for the backend */
    void *element_scores;       /* (vocabulary); NULL: scores are elements */

    double *scores, *scratch; /* (vocabulary) */
    int32_t *tokens;          /* (context), the last `count` of the text */
    size_t count;
};

#define REFUSE(err, what)                                                      \
    kith_text_fail(error, KITH_MODEL_ERROR_BYTES, err, "sampling: %s", what)

/* Where each view stands in z: a network of full length says so. */
static enum kith_err find_views(struct kith_generator *generator, char *error)
{
    const struct kith_generator_config *config = &generator->config;
    const struct kith_graph_options options = {.backend = config->backend,
                                               .rows = 1};
    struct kith_graph *network;
    enum kith_err err = kith_graph_open(config->model, config->config, &options,
                                        &network, error);
    if (err != KITH_OK)
        return err;
    const struct kith_layout *layout = kith_graph_layout(network);
    generator->offsets =
        malloc((layout->view_count + 1) * sizeof *generator->offsets);
    if (generator->offsets == NULL)
        err = REFUSE(KITH_ENOMEM, "no memory");
    for (uint32_t i = 0; i < layout->view_count && err == KITH_OK; i++)
        generator->offsets[i] = layout->views[i].offset;
    kith_graph_close(network);
    return err;
}

static enum kith_err take_memory(struct kith_generator *generator, char *error)
{
    const struct kith_backend *backend = generator->config.backend;
    const size_t context = generator->context;
    const size_t vocabulary = generator->vocabulary;
    generator->tokens = calloc(context, sizeof *generator->tokens);
    generator->scores = calloc(vocabulary, sizeof *generator->scores);
    generator->scratch = calloc(vocabulary, sizeof *generator->scratch);
    generator->inputs =
        backend->alloc(context * sizeof *generator->inputs, true);
    bool enough = generator->tokens != NULL && generator->scores != NULL &&
                  generator->scratch != NULL && generator->inputs != NULL;
    if (backend->activation_bytes != 0) {
        generator->element_scores =
            backend->alloc(vocabulary * backend->element_bytes, false);
        enough = enough && generator->element_scores != NULL;
    }
    return enough ? KITH_OK : REFUSE(KITH_ENOMEM, "no memory");
}

enum kith_err kith_generator_open(const struct kith_generator_config *config,
                                  struct kith_generator **out, char *error)
{
    *out = NULL;
    if (config->model->input != KITH_INPUT_TOKENS)
        return REFUSE(KITH_EINVAL, "the model reads no tokens; gpt does");
    struct kith_generator *generator = calloc(1, sizeof *generator);
    if (generator == NULL)
        return REFUSE(KITH_ENOMEM, "no memory");
    const struct kith_model_size size =
        kith_model_size_of(config->model, config->config);
    generator->config = *config;
    generator->context = size.features;
    generator->vocabulary = size.classes;
    if (config->vocabulary == 0 || config->vocabulary > size.classes)
        generator->config.vocabulary = (uint32_t)size.classes;
    kith_rng_init(&generator->rng, config->seed, KITH_STREAM_SAMPLE, 0);
    enum kith_err err = find_views(generator, error);
    if (err == KITH_OK)
        err = take_memory(generator, error);
    if (err != KITH_OK) {
        kith_generator_close(generator);
        return err;
    }
    *out = generator;
    return KITH_OK;
}

static void close_network(struct kith_generator *generator)
{
    generator->config.backend->release(generator->x);
    generator->x = NULL;
    kith_graph_close(generator->network);
    generator->network = NULL;
}

void kith_generator_close(struct kith_generator *generator)
{
    if (generator == NULL)
        return;
    const struct kith_backend *backend = generator->config.backend;
    close_network(generator);
    backend->release(generator->inputs);
    backend->release(generator->element_scores);
    free(generator->tokens);
    free(generator->scores);
    free(generator->scratch);
    free(generator->offsets);
    free(generator);
}

enum kith_err kith_generator_push(struct kith_generator *generator,
                                  int32_t token)
{
    if (token < 0 || (size_t)token >= generator->vocabulary)
        return KITH_EINVAL;
    if (generator->count == generator->context) {
        generator->count--;
        memmove(generator->tokens, generator->tokens + 1,
                generator->count * sizeof *generator->tokens);
    }
    generator->tokens[generator->count++] = token;
    return KITH_OK;
}

/* A network of `positions`: each view is the beginning of the model's. */
static enum kith_err open_network(struct kith_generator *generator,
                                  size_t positions, char *error)
{
    const struct kith_backend *backend = generator->config.backend;
    struct kith_model_config config = *generator->config.config;
    const struct kith_graph_options options = {.backend = backend, .rows = 1};
    close_network(generator);
    config.context = (uint32_t)positions;
    const enum kith_err err = kith_graph_open(
        generator->config.model, &config, &options, &generator->network, error);
    if (err != KITH_OK)
        return err;
    const struct kith_layout *layout = kith_graph_layout(generator->network);
    generator->positions = positions;
    generator->x = backend->alloc(layout->dim * backend->element_bytes, false);
    if (generator->x == NULL)
        return REFUSE(KITH_ENOMEM, "no memory for the model");
    for (uint32_t i = 0; i < layout->view_count; i++) {
        const struct kith_model_view *view = &layout->views[i];
        backend->write(
            view->elements, generator->config.z + generator->offsets[i],
            (char *)generator->x + view->offset * backend->element_bytes);
    }
    return KITH_OK;
}

static enum kith_err lengthen(struct kith_generator *generator, char *error)
{
    size_t positions = POSITIONS_MIN;
    if (generator->network != NULL && generator->x != NULL &&
        generator->count <= generator->positions)
        return KITH_OK;
    while (positions < generator->count)
        positions *= 2;
    if (positions > generator->context)
        positions = generator->context;
    return open_network(generator, positions, error);
}

/* scores <- those of the token after the last. */
static void run_network(struct kith_generator *generator)
{
    const struct kith_backend *backend = generator->config.backend;
    const size_t n = generator->vocabulary, last = generator->count - 1;
    /* What follows the text is not seen by it: any token will do. */
    memset(generator->inputs, 0,
           generator->positions * sizeof *generator->inputs);
    memcpy(generator->inputs, generator->tokens,
           generator->count * sizeof *generator->inputs);
    const struct kith_batch batch = {.inputs = generator->inputs, .rows = 1};
    const char *all =
        kith_graph_scores(generator->network, generator->x, &batch);
    if (backend->activation_bytes == 0) {
        backend->read(n, all + last * n * backend->element_bytes,
                      generator->scores);
        return;
    }
    backend->widen(n, all + last * n * backend->activation_bytes,
                   generator->element_scores);
    backend->read(n, generator->element_scores, generator->scores);
}

enum kith_err kith_generator_next(struct kith_generator *generator,
                                  int32_t *token, char *error)
{
    const struct kith_backend *backend = generator->config.backend;
    KITH_ASSERT(generator->count > 0);
    enum kith_err err = lengthen(generator, error);
    if (err != KITH_OK)
        return err;
    run_network(generator);
    const char *failed = backend->failed == NULL ? NULL : backend->failed();
    if (failed != NULL)
        return REFUSE(KITH_EDEVICE, failed);
    err = kith_sample(&generator->config.how, generator->config.vocabulary,
                      generator->scores, generator->scratch, &generator->rng,
                      token);
    if (err != KITH_OK)
        return REFUSE(err,
                      "the model's scores are not finite: it has diverged");
    return kith_generator_push(generator, *token);
}

/* A model's views under the names, and with the axes, of another program: see
 * kith/names.h. */
#include "kith/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/text.h"
#include "weights.h"

enum { AXES = 4 };

/* `name` against a pattern with one * or none: what the * stands for is
 * (*length) bytes at *star. */
static bool matches(const char *pattern, const char *name, const char **star,
                    size_t *length)
{
    const char *at = strchr(pattern, '*');
    *star = name;
    *length = 0;
    if (at == NULL)
        return strcmp(pattern, name) == 0;
    const size_t before = (size_t)(at - pattern), behind = strlen(at + 1);
    const size_t whole = strlen(name);
    if (whole < before + behind || strncmp(pattern, name, before) != 0 ||
        strcmp(at + 1, name + whole - behind) != 0)
        return false;
    *star = name + before;
    *length = whole - before - behind;
    return true;
}

static bool is_of(const struct kith_names_pair *pair, const char *name)
{
    const char *star;
    size_t length;
    return matches(pair->ours, name, &star, &length);
}

/* A name that comes out too long is clipped, and is none of the file's then. */
static void their_name(const struct kith_names_pair *pair, const char *name,
                       char theirs[KITH_TENSOR_NAME_BYTES])
{
    const char *star, *at = strchr(pair->theirs, '*');
    size_t length;
    if (!matches(pair->ours, name, &star, &length) || at == NULL)
        (void)kith_text_copy(theirs, KITH_TENSOR_NAME_BYTES, pair->theirs);
    else
        (void)snprintf(theirs, KITH_TENSOR_NAME_BYTES, "%.*s%.*s%s",
                       (int)(at - pair->theirs), pair->theirs, (int)length,
                       star, at + 1);
}

const struct kith_names_pair *
kith_names_entry(const struct kith_names *names,
                 const struct kith_model_view *view,
                 struct kith_tensor_entry *entry)
{
    const struct kith_names_pair *pair = NULL;
    for (uint32_t i = 0; names != NULL && i < names->count && !pair; i++)
        pair = is_of(&names->pairs[i], view->name) ? &names->pairs[i] : NULL;
    kith_checkpoint_entry(entry, "", KITH_DTYPE_F32, view);
    if (pair == NULL)
        return NULL;
    KITH_ASSERT(pair->axis_count == 0 || pair->axis_count == view->rank);
    their_name(pair, view->name, entry->name);
    for (uint32_t i = 0; i < pair->axis_count; i++)
        entry->shape[pair->axes[i]] = view->shape[i];
    return pair;
}

/* ---- axes */

/* at[i]: how far apart neighbours along our axis i are in theirs; sides before
 * the rank are 1. */
static void strides(const struct kith_names_pair *pair,
                    const struct kith_model_view *view, size_t sides[AXES],
                    size_t at[AXES])
{
    const uint32_t before = AXES - view->rank;
    size_t theirs[AXES] = {0}, step = 1;
    for (uint32_t i = view->rank; i-- > 0;)
        for (uint32_t k = 0; k < view->rank; k++)
            if (pair->axes[k] == i) {
                theirs[i] = step;
                step *= view->shape[k];
            }
    for (uint32_t i = 0; i < AXES; i++) {
        sides[i] = i < before ? 1 : view->shape[i - before];
        at[i] = i < before ? 0 : theirs[pair->axes[i - before]];
    }
}

static void turn(const struct kith_names_pair *pair,
                 const struct kith_model_view *view, bool to_ours,
                 const double *from, double *to)
{
    size_t sides[AXES], at[AXES], ours = 0;
    if (pair == NULL || pair->axis_count == 0) {
        memcpy(to, from, view->elements * sizeof *to);
        return;
    }
    strides(pair, view, sides, at);
    for (size_t a = 0; a < sides[0]; a++)
        for (size_t b = 0; b < sides[1]; b++)
            for (size_t c = 0; c < sides[2]; c++)
                for (size_t d = 0; d < sides[3]; d++, ours++) {
                    const size_t theirs =
                        a * at[0] + b * at[1] + c * at[2] + d * at[3];
                    to[to_ours ? ours : theirs] = from[to_ours ? theirs : ours];
                }
}

void kith_names_to_ours(const struct kith_names_pair *pair,
                        const struct kith_model_view *view,
                        const double *theirs, double *ours)
{
    turn(pair, view, true, theirs, ours);
}

void kith_names_to_theirs(const struct kith_names_pair *pair,
                          const struct kith_model_view *view,
                          const double *ours, double *theirs)
{
    turn(pair, view, false, ours, theirs);
}

/* ---- against a model */

static enum kith_err no_such(const struct kith_names *names,
                             const struct kith_names_pair *pair,
                             const struct kith_layout *layout, char *error)
{
    const char **views = calloc(layout->view_count + 1, sizeof *views);
    for (uint32_t i = 0; views != NULL && i < layout->view_count; i++)
        views[i] = layout->views[i].name;
    const char *near =
        views == NULL
            ? NULL
            : kith_text_nearest(pair->ours, (const char *const *)views);
    const char *first = layout->view_count > 0 ? layout->views[0].name : "none";
    (void)snprintf(error, KITH_NAMES_ERROR_BYTES,
                   "%.300s:%u: found \"%s\", which names no tensor of the "
                   "model; %s \"%s\"",
                   names->path, pair->line, pair->ours,
                   near != NULL ? "did you mean" : "its first is",
                   near != NULL ? near : first);
    free(views);
    return KITH_EMISMATCH;
}

static enum kith_err check_view(const struct kith_names *names,
                                const struct kith_model_view *view, bool *named,
                                char *error)
{
    const struct kith_names_pair *first = NULL;
    for (uint32_t i = 0; i < names->count; i++) {
        const struct kith_names_pair *pair = &names->pairs[i];
        if (!is_of(pair, view->name))
            continue;
        named[i] = true;
        if (pair->axis_count != 0 && pair->axis_count != view->rank) {
            (void)snprintf(error, KITH_NAMES_ERROR_BYTES,
                           "%.300s:%u: axes: found %u of them; %s has %u",
                           names->path, pair->line, pair->axis_count,
                           view->name, view->rank);
            return KITH_EMISMATCH;
        }
        if (first != NULL) {
            (void)snprintf(error, KITH_NAMES_ERROR_BYTES,
                           "%.300s:%u: %s has a name from line %u; keep one",
                           names->path, pair->line, view->name, first->line);
            return KITH_EMISMATCH;
        }
        first = pair;
    }
    return KITH_OK;
}

enum kith_err kith_names_check(const struct kith_names *names,
                               const struct kith_layout *layout, char *error)
{
    bool named[KITH_NAMES_MAX] = {false};
    KITH_ASSERT(names->count <= KITH_NAMES_MAX);
    enum kith_err err = KITH_OK;
    for (uint32_t i = 0; i < layout->view_count && err == KITH_OK; i++)
        err = check_view(names, &layout->views[i], named, error);
    for (uint32_t i = 0; i < names->count && err == KITH_OK; i++)
        if (!named[i])
            err = no_such(names, &names->pairs[i], layout, error);
    return err;
}

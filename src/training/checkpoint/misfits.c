/* What of a file does not fit a model, by name, and what is close: a tensor
 * that is nothing else's and has nearly that name, or that shape in some order.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/text.h"
#include "weights.h"

enum { SHAPE_BYTES = 96, ONE_BYTES = 512, REST_BYTES = 24 };

struct misfits {
    const struct source *source;
    const char **spare; /* names that stand for no view, NULL behind the last */
    char *text;
    size_t size, at;
    uint32_t count, told;
};

static const char *shape_text(const struct kith_tensor_entry *tensor,
                              char text[SHAPE_BYTES])
{
    size_t at = kith_text_add(text, SHAPE_BYTES, 0, "(");
    for (uint32_t i = 0; i < tensor->rank; i++)
        at = kith_text_add(text, SHAPE_BYTES, at, "%s%" PRIu64,
                           i == 0 ? "" : ", ", tensor->shape[i]);
    (void)kith_text_add(text, SHAPE_BYTES, at, ")");
    return text;
}

/* The same sides, in whatever order. */
static bool same_sides(const struct kith_tensor_entry *a,
                       const struct kith_tensor_entry *b)
{
    unsigned taken = 0;
    for (uint32_t i = 0; i < a->rank; i++)
        for (uint32_t k = 0; k < b->rank; k++)
            if (!(taken >> k & 1u) && a->shape[i] == b->shape[k]) {
                taken |= 1u << k;
                break;
            }
    return a->rank == b->rank && taken == (1u << a->rank) - 1;
}

static const struct kith_tensor_entry *
close_to(const struct misfits *misfits, const struct kith_tensor_entry *wanted)
{
    const struct kith_safetensors *file = &misfits->source->file;
    if (misfits->spare == NULL)
        return NULL;
    const char *near =
        kith_text_nearest(wanted->name, (const char *const *)misfits->spare);
    for (const char **one = misfits->spare; near == NULL && *one != NULL; one++)
        if (same_sides(kith_safetensors_find(file, *one), wanted))
            near = *one;
    return near == NULL ? NULL : kith_safetensors_find(file, near);
}

static void tell(struct misfits *misfits,
                 const struct kith_tensor_entry *wanted,
                 const struct kith_tensor_entry *found,
                 const struct kith_model_view *view)
{
    char one[ONE_BYTES], shape[SHAPE_BYTES], other[SHAPE_BYTES];
    misfits->count++;
    if (misfits->told + 1 < misfits->count)
        return; /* the text is full */
    size_t at =
        kith_text_add(one, sizeof one, 0, "%s", misfits->told > 0 ? "; " : "");
    if (found != NULL) {
        at = kith_text_add(one, sizeof one, at,
                           "tensor %s is %s, the model's is %s", found->name,
                           shape_text(found, shape), shape_text(wanted, other));
    } else {
        const struct kith_tensor_entry *near = close_to(misfits, wanted);
        at = kith_text_add(one, sizeof one, at, "it has no tensor %s",
                           wanted->name);
        if (strcmp(wanted->name, view->name) != 0)
            at = kith_text_add(one, sizeof one, at, " for %s", view->name);
        at = kith_text_add(one, sizeof one, at, " %s",
                           shape_text(wanted, shape));
        if (near != NULL)
            at = kith_text_add(one, sizeof one, at, ", close is %s %s",
                               near->name, shape_text(near, shape));
    }
    if (misfits->at + at + REST_BYTES >= misfits->size)
        return;
    misfits->at =
        kith_text_add(misfits->text, misfits->size, misfits->at, "%s", one);
    misfits->told++;
}

/* Of the file's tensors those that no view asks for. */
static const char **spare_names(const struct source *source,
                                const struct kith_names *names,
                                const struct kith_layout *layout)
{
    const struct kith_safetensors *file = &source->file;
    const char **spare = calloc(file->tensor_count + 1, sizeof *spare);
    if (spare == NULL)
        return NULL;
    for (size_t i = 0; i < file->tensor_count; i++)
        spare[i] = file->tensors[i].name;
    for (uint32_t i = 0; i < layout->view_count; i++) {
        const struct kith_names_pair *pair;
        struct kith_tensor_entry wanted;
        const struct kith_tensor_entry *tensor =
            kith_source_find(source, names, &layout->views[i], &wanted, &pair);
        if (tensor != NULL)
            spare[tensor - file->tensors] = NULL;
    }
    size_t kept = 0;
    for (size_t i = 0; i < file->tensor_count; i++)
        if (spare[i] != NULL)
            spare[kept++] = spare[i];
    spare[kept] = NULL;
    return spare;
}

enum kith_err kith_source_misfits(const struct source *source,
                                  const struct kith_names *names,
                                  const struct kith_layout *layout,
                                  size_t error_size)
{
    struct misfits misfits = {.source = source,
                              .spare = spare_names(source, names, layout),
                              .text = source->error,
                              .size = error_size};
    misfits.at = kith_text_add(misfits.text, misfits.size, 0,
                               "reading %.250s: ", source->path);
    for (uint32_t i = 0; i < layout->view_count; i++) {
        const struct kith_names_pair *pair;
        struct kith_tensor_entry wanted;
        const struct kith_tensor_entry *tensor =
            kith_source_find(source, names, &layout->views[i], &wanted, &pair);
        if (tensor == NULL || !kith_checkpoint_same_shape(tensor, &wanted))
            tell(&misfits, &wanted, tensor, &layout->views[i]);
    }
    if (misfits.count > misfits.told)
        (void)kith_text_add(misfits.text, misfits.size, misfits.at,
                            "; and %u more", misfits.count - misfits.told);
    free(misfits.spare);
    return KITH_EMISMATCH;
}

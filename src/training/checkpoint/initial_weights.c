/* Starting weights from a file: another program's, or what kith export wrote.
 * A checkpoint will do as well, unless its vectors are not the model: under
 * push-sum they are x, and the model is x / w. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "weights.h"
#include "kith/backend.h"
#include "kith/worker.h"

/* KITH_EMISMATCH: a push-sum weight stands beside the vectors. */
static enum kith_err check_scalar(const char *path, char *error)
{
    char *weight;
    const enum kith_err err =
        kith_checkpoint_text(path, "scalar.0", &weight, error);
    if (err != KITH_OK)
        return err;
    const bool scaled = weight != NULL;
    free(weight);
    return scaled
               ? kith_file_complain(error, KITH_EMISMATCH, "reading", path,
                                    "a checkpoint under push-sum: start from "
                                    "what kith export makes of it")
               : KITH_OK;
}

enum kith_err kith_worker_init(struct kith_worker *worker, const char *path,
                               const struct kith_names *names, char *error)
{
    const struct kith_worker_content content = kith_worker_content(worker);
    const size_t dim = content.layout->dim;
    enum kith_err err = check_scalar(path, error);
    /* A header past the limits is no header: the file's fault, not ours. */
    if (err != KITH_OK || dim == 0)
        return err == KITH_ELIMIT ? KITH_EPARSE : err;
    double *z = malloc(dim * sizeof *z);
    if (z == NULL)
        return kith_file_complain(error, KITH_ENOMEM, "reading", path,
                                  "no memory");
    err = kith_weights_read(path, names, content.layout, z, error);
    const double most =
        content.backend->element_bytes == sizeof(double) ? DBL_MAX : FLT_MAX;
    for (size_t i = 0; i < dim && err == KITH_OK; i++) {
        if (!(fabs(z[i]) <= most))
            err =
                kith_file_complain(error, KITH_ENONFINITE, "reading", path,
                                   "it holds values that are not finite here");
    }
    if (err == KITH_OK)
        content.backend->write(dim, z, content.model);
    free(z);
    return err;
}

/* What the experiment and the peer file share. */
#ifndef KITH_EXPERIMENT_READ_FILE_H
#define KITH_EXPERIMENT_READ_FILE_H

#include <stddef.h>

#include "kith/err.h"
#include "kith/limits.h"
#include "yaml_tree.h"

/* The whole file, at most one byte past KITH_YAML_BYTES_MAX; *text is
 * malloc'd. */
KITH_MUST_CHECK enum kith_err kith_experiment_read_file(const char *path,
                                                        char **text,
                                                        size_t *size,
                                                        char *error);
/* A relative path becomes absolute, from the folder of the file. */
KITH_MUST_CHECK enum kith_err
kith_experiment_resolve_path(const struct tree *tree, const char *key,
                             char path[KITH_PATH_BYTES_MAX]);

#endif

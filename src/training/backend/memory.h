/* Memory for vectors on the host, for every backend that computes there. */
#ifndef KITH_TRAINING_BACKEND_MEMORY_H
#define KITH_TRAINING_BACKEND_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* backend.h's alloc, release and missing of a backend in host memory. */
void *kith_host_alloc(size_t bytes, bool shared);
void kith_host_release(void *memory);
const char *kith_host_missing(void);

#endif

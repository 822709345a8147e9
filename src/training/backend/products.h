/* Who multiplies matrices for backend cpu. */
#ifndef KITH_TRAINING_BACKEND_PRODUCTS_H
#define KITH_TRAINING_BACKEND_PRODUCTS_H

#include "cpu_text.h"

/* Runs a product, k > 0, on the pool's threads with the provider in force. */
void kith_product_run(const struct kith_product *p);

/* backend.h's gemm. */
void kith_product_gemm(const struct kith_gemm *g);

#endif

/* The operations of backend cpu: each is declared where its file says, and
 * cpu_ops.c puts them into one table. */
#ifndef KITH_BACKEND_CPU_OPS_H
#define KITH_BACKEND_CPU_OPS_H

#include "kith/ops.h"

extern const struct kith_ops kith_cpu_ops;

#endif

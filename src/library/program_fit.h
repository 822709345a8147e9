/* Experiments of a program's, for who opens one peer of it and for who
 * simulates them all. Owner: program_fit.c. */
#ifndef KITH_LIBRARY_PROGRAM_FIT_H
#define KITH_LIBRARY_PROGRAM_FIT_H

#include "kith/experiment.h"

/* The vectors' `dim` values are the model from now on, of the experiment in
 * `path`; `on_device`: they lie in its memory. false: it says another number,
 * or has a method that does not work with a loop of the caller's, or a backend
 * that does not compute where they lie, or is not here; `error`
 * (KITH_EXPERIMENT_ERROR_BYTES) says which. */
KITH_MUST_CHECK bool kith_program_fit(struct kith_experiment *experiment,
                                      const char *path, size_t dim,
                                      bool on_device, char *error);

#endif

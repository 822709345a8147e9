/* The table of an experiment file's keys. */
#ifndef KITH_EXPERIMENT_KEY_TABLE_H
#define KITH_EXPERIMENT_KEY_TABLE_H

#include "kith/experiment.h"
#include "schema.h"

extern const struct key kith_experiment_keys[];

/* choices.c */
extern const struct key_choice kith_experiment_choice_algorithm,
    kith_experiment_choice_topology, kith_experiment_choice_model,
    kith_experiment_choice_optimiser, kith_experiment_choice_backend,
    kith_experiment_choice_schedule, kith_experiment_choice_compressor,
    kith_experiment_choice_guard, kith_experiment_choice_wire,
    kith_experiment_choice_suite, kith_experiment_choice_data,
    kith_experiment_choice_norm, kith_experiment_choice_positions,
    kith_experiment_choice_best, kith_experiment_choice_weights,
    kith_experiment_choice_graph, kith_experiment_choice_products,
    kith_experiment_choice_central_method,
    kith_experiment_choice_central_exchange,
    kith_experiment_choice_central_trigger,
    kith_experiment_choice_central_placement;

/* A part of the file that the schema does not read, and what must hold of it.
 */
typedef enum kith_err (*experiment_reader)(const struct tree *tree,
                                           struct kith_experiment *experiment);
typedef enum kith_err (*experiment_rule)(
    const struct tree *tree, const struct kith_experiment *experiment);

/* fault_statements.c: `faults:` and `compute.slow` into atoms. */
KITH_MUST_CHECK enum kith_err
kith_experiment_read_faults(const struct tree *tree,
                            struct kith_experiment *experiment);
/* data_rules.c: paths made absolute, `train.augment`; what fits the model; what
 * a data set takes from the model. */
KITH_MUST_CHECK enum kith_err
kith_experiment_read_data(const struct tree *tree,
                          struct kith_experiment *experiment);
KITH_MUST_CHECK enum kith_err
kith_experiment_rule_data(const struct tree *tree,
                          const struct kith_experiment *experiment);
void kith_experiment_derive_data(struct kith_experiment *experiment);
/* train_rules.c: `train.milestones`; what fits the optimiser, schedule and
 * batch. */
KITH_MUST_CHECK enum kith_err
kith_experiment_read_train(const struct tree *tree,
                           struct kith_experiment *experiment);
KITH_MUST_CHECK enum kith_err
kith_experiment_rule_train(const struct tree *tree,
                           const struct kith_experiment *experiment);
/* Refuses a key that was given, but that `kind` `name` does not read. */
KITH_MUST_CHECK enum kith_err
kith_experiment_unread_key(const struct tree *tree, const char *path,
                           const char *kind, const char *name, bool is_read);
/* readers.c: the path of a kind's key; refuses a key that was given, but that
 * `name` of that kind, which reads those in `mask`, does not read. */
void kith_experiment_key_path(enum kith_reader reader, unsigned i,
                              char path[KITH_NAME_MAX]);
KITH_MUST_CHECK enum kith_err
kith_experiment_refuse_unread(const struct tree *tree, enum kith_reader reader,
                              const char *name, unsigned mask);
/* coefficients.c: what the algorithm reads. */
KITH_MUST_CHECK enum kith_err
kith_experiment_read_coefficients(const struct tree *tree,
                                  struct kith_experiment *experiment);
/* What of that comes from the graph, after kith_experiment_read_graph. */
KITH_MUST_CHECK enum kith_err
kith_experiment_resolve_mixing(const struct tree *tree,
                               struct kith_experiment *experiment);
/* combination_rules.c: what needs the graph, after kith_experiment_read_graph.
 */
KITH_MUST_CHECK enum kith_err
kith_experiment_rule_match(const struct tree *tree,
                           struct kith_experiment *experiment);
/* topology_rules.c: the graph is built; refuses options that its kind does not
 * read. */
KITH_MUST_CHECK enum kith_err
kith_experiment_read_graph(const struct tree *tree,
                           struct kith_experiment *experiment);
/* central_rules.c: `central:` in place of `gossip:`. */
KITH_MUST_CHECK enum kith_err
kith_experiment_read_central(const struct tree *tree,
                             struct kith_experiment *experiment);
KITH_MUST_CHECK enum kith_err
kith_experiment_rule_central(const struct tree *tree,
                             const struct kith_experiment *experiment);
/* rules.c: combinations that cannot work, with the line at fault. */
KITH_MUST_CHECK enum kith_err
kith_experiment_check_rules(const struct tree *tree,
                            struct kith_experiment *experiment);
/* The first fault that begins after `end_ns`, or NULL. */
const struct kith_atom *
kith_experiment_late_fault(const struct kith_experiment *experiment,
                           kith_ns end_ns);
/* When `steps` own steps are over, by the file's figures: KITH_NEVER where
 * they do not say. */
kith_ns kith_experiment_predicted_end(const struct kith_experiment *experiment,
                                      uint64_t steps);

#endif

/* The table of an experiment file's keys. */
#ifndef KITH_EXPERIMENT_KEY_TABLE_H
#define KITH_EXPERIMENT_KEY_TABLE_H

#include "kith/experiment.h"
#include "schema.h"

extern const struct key experiment_keys[];

/* choices.c */
extern const struct key_choice choice_algorithm, choice_topology, choice_model,
    choice_optimiser, choice_backend, choice_schedule, choice_compressor,
    choice_guard, choice_wire, choice_suite, choice_data, choice_norm,
    choice_best, choice_weights, choice_graph, choice_products,
    choice_central_method, choice_central_exchange, choice_central_trigger,
    choice_central_placement;

/* fault_statements.c: `faults:` and `compute.slow` into atoms. */
KITH_MUST_CHECK enum kith_err read_faults(const struct tree *tree,
                                          struct kith_experiment *experiment);
/* data_rules.c: paths made absolute, `train.augment`; what fits the model; what
 * a data set takes from the model. */
KITH_MUST_CHECK enum kith_err read_data(const struct tree *tree,
                                        struct kith_experiment *experiment);
KITH_MUST_CHECK enum kith_err
rule_data(const struct tree *tree, const struct kith_experiment *experiment);
void derive_data(struct kith_experiment *experiment);
/* train_rules.c: `train.milestones`; what fits the optimiser, schedule and
 * batch. */
KITH_MUST_CHECK enum kith_err read_train(const struct tree *tree,
                                         struct kith_experiment *experiment);
KITH_MUST_CHECK enum kith_err
rule_train(const struct tree *tree, const struct kith_experiment *experiment);
/* Refuses a key that was given, but that `kind` `name` does not read. */
KITH_MUST_CHECK enum kith_err unread_key(const struct tree *tree,
                                         const char *path, const char *kind,
                                         const char *name, bool is_read);
/* coefficients.c: what the algorithm reads. */
KITH_MUST_CHECK enum kith_err
read_coefficients(const struct tree *tree, struct kith_experiment *experiment);
/* What of that comes from the graph, after read_graph. */
KITH_MUST_CHECK enum kith_err
resolve_mixing(const struct tree *tree, struct kith_experiment *experiment);
/* combination_rules.c: what needs the graph, after read_graph. */
KITH_MUST_CHECK enum kith_err
rule_match(const struct tree *tree, const struct kith_experiment *experiment);
/* compression_rules.c: what the compressor reads. */
KITH_MUST_CHECK enum kith_err
rule_compression(const struct tree *tree,
                 const struct kith_experiment *experiment);
/* topology_rules.c: the graph is built; refuses options that its kind does not
 * read. */
KITH_MUST_CHECK enum kith_err read_graph(const struct tree *tree,
                                         struct kith_experiment *experiment);
/* What is hashed of it: nothing where a file could not say it before. */
uint64_t hash_graph(uint64_t hash, const struct kith_experiment *experiment);
/* central_rules.c: `central:` in place of `gossip:`. */
KITH_MUST_CHECK enum kith_err read_central(const struct tree *tree,
                                           struct kith_experiment *experiment);
KITH_MUST_CHECK enum kith_err
rule_central(const struct tree *tree, const struct kith_experiment *experiment);
uint64_t hash_central(uint64_t hash, const struct kith_central *central);
/* rules.c: combinations that cannot work, with the line at fault. */
KITH_MUST_CHECK enum kith_err
check_rules(const struct tree *tree, const struct kith_experiment *experiment);
/* The first fault that begins after `end_ns`, or NULL. */
const struct kith_atom *late_fault(const struct kith_experiment *experiment,
                                   kith_ns end_ns);
/* When `steps` own steps are over, by the file's figures: KITH_NEVER where
 * they do not say. */
kith_ns predicted_end(const struct kith_experiment *experiment, uint64_t steps);

#endif

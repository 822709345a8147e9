/* The table of an experiment file's keys. */
#ifndef KITH_EXPERIMENT_KEY_TABLE_H
#define KITH_EXPERIMENT_KEY_TABLE_H

#include "kith/experiment.h"
#include "schema.h"

extern const struct key kith_experiment_keys[];

/* choices.c */
extern const struct key_choice kith_choice_algorithm, kith_choice_topology,
    kith_choice_model, kith_choice_optimiser, kith_choice_backend,
    kith_choice_schedule, kith_choice_compressor, kith_choice_format,
    kith_choice_guard, kith_choice_sharing, kith_choice_wire,
    kith_choice_same_host, kith_choice_suite, kith_choice_data,
    kith_choice_norm, kith_choice_positions, kith_choice_best,
    kith_choice_weights, kith_choice_graph, kith_choice_products,
    kith_choice_central_method, kith_choice_central_exchange,
    kith_choice_central_trigger, kith_choice_central_placement;

/* A part of the file that the schema does not read, and what must hold of it.
 */
typedef enum kith_err experiment_reader(const struct tree *tree,
                                        struct kith_experiment *experiment);
typedef enum kith_err experiment_rule(const struct tree *tree,
                                      const struct kith_experiment *experiment);

/* fault_statements.c: `faults:` and `compute.slow` into atoms. */
KITH_MUST_CHECK experiment_reader kith_experiment_read_faults;
/* data_rules.c: paths made absolute, `train.augment`; what fits the model; what
 * a data set takes from the model. */
KITH_MUST_CHECK experiment_reader kith_experiment_read_data;
KITH_MUST_CHECK experiment_rule kith_experiment_rule_data;
const char *kith_experiment_input_name(enum kith_input input);
void kith_experiment_derive_data(struct kith_experiment *experiment);
/* train_rules.c: `train.milestones`; what fits the optimiser, schedule and
 * batch. */
KITH_MUST_CHECK experiment_reader kith_experiment_read_train;
KITH_MUST_CHECK experiment_rule kith_experiment_rule_train;
/* readers.c: the path of a kind's key; refuses a key that was given, but that
 * `name` of that kind, which reads those in `mask`, does not read. */
void kith_experiment_key_path(enum kith_reader reader, unsigned i,
                              char path[KITH_NAME_MAX]);
KITH_MUST_CHECK enum kith_err
kith_experiment_refuse_unread(const struct tree *tree, enum kith_reader reader,
                              const char *name, unsigned mask);
/* zones.c: `network.zones`, `zone_rate`, `zone_rates`, `zone_uplink`, after
 * latencies. */
KITH_MUST_CHECK experiment_reader kith_experiment_read_zones;
/* class_statements.c: `network.up` and `down`, `classes:`, `compute.speeds`,
 * after latencies. */
KITH_MUST_CHECK experiment_reader kith_experiment_read_classes;
/* latency_files.c: `network.matrix` and `network.coordinates`. */
KITH_MUST_CHECK experiment_reader kith_experiment_read_latencies;
/* coefficients.c: what the algorithm reads. */
KITH_MUST_CHECK experiment_reader kith_experiment_read_coefficients;
/* What hosts.file says, for what hosts does not. */
KITH_MUST_CHECK experiment_reader kith_experiment_read_hosts;
/* What of that comes from the graph, after kith_experiment_read_graph. */
KITH_MUST_CHECK experiment_reader kith_experiment_resolve_mixing;
/* rules.c: the guard by default, after kith_experiment_read_graph. */
KITH_MUST_CHECK experiment_reader kith_experiment_choose_guard;
/* combination_rules.c: what needs the graph and the guard. */
KITH_MUST_CHECK experiment_reader kith_experiment_rule_match;
/* topology_rules.c: the graph is built; refuses options that its kind does not
 * read. */
KITH_MUST_CHECK experiment_reader kith_experiment_read_graph;
/* central_rules.c: `central:` in place of `gossip:`. */
KITH_MUST_CHECK experiment_reader kith_experiment_read_central;
KITH_MUST_CHECK experiment_rule kith_experiment_rule_central;
/* rules.c: combinations that cannot work, with the line at fault. */
KITH_MUST_CHECK experiment_reader kith_experiment_check_rules;
/* The first fault that begins, or peer that arrives, after the predicted end of
 * a run of `steps` own steps, or NULL; `words`: what was found, and what is
 * allowed. */
#define EXPERIMENT_LATE_BYTES 160
const struct kith_atom *
kith_experiment_late_fault(const struct kith_experiment *experiment,
                           uint64_t steps, char words[EXPERIMENT_LATE_BYTES]);
/* Would the slowest peer's `steps`, with no stop.time, be over later than
 * KITH_TIME_MAX, by its steps alone? The run itself ends there in any case. */
bool kith_experiment_outlasts_time(const struct kith_experiment *experiment,
                                   uint64_t steps,
                                   char words[EXPERIMENT_LATE_BYTES]);

#endif

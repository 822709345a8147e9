/* Keys of an experiment file whose values are not a field as it stands: how
 * they are read and shown, for rows of the table. */
#ifndef KITH_EXPERIMENT_KEY_VALUES_H
#define KITH_EXPERIMENT_KEY_VALUES_H

#include "schema.h"

/* Of struct key. */
typedef enum kith_err key_parse(const char *text, void *field);
typedef void key_show(const void *object, char text[SCHEMA_SHOWN_BYTES]);

KITH_MUST_CHECK key_parse kith_key_parse_split, kith_key_parse_deadline,
    kith_key_parse_save, kith_key_parse_evaluate, kith_key_parse_speeds,
    kith_key_parse_spread, kith_key_parse_affinity;
key_show kith_key_show_split, kith_key_show_milestones, kith_key_show_augment,
    kith_key_show_backend, kith_key_show_edges, kith_key_show_matrix,
    kith_key_show_coordinates, kith_key_show_method;

#endif

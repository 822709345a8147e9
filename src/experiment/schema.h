/* The schema: one table row per key says everything about it.
 *
 * Loading, messages, `kith list keys` and defaults all read the same row. */
#ifndef KITH_SRC_EXPERIMENT_SCHEMA_H
#define KITH_SRC_EXPERIMENT_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include "kith/err.h"
#include "kith/experiment.h"
#include "yaml_tree.h"

enum key_type {
    KEY_NAME,   /* char[size]: letters, digits, . _ - */
    KEY_TEXT,   /* char[size]: any one line */
    KEY_U32,    /* uint32_t */
    KEY_U64,    /* uint64_t */
    KEY_NUMBER, /* double */
    KEY_TIME,   /* kith_ns, bounds in seconds */
    KEY_RATE,   /* uint64_t, bits per second; unlimited: 0 */
    KEY_SWITCH, /* bool: true or false */
    KEY_CHOICE, /* one name of a list */
    KEY_SIZES,  /* uint32_t[], above 0, from `low` of them up; rest: 0 */
    KEY_PARSED, /* its own parser and text */
    KEY_CUSTOM, /* a list: the loader reads it */
};

enum key_flag {
    KEY_REQUIRED = 1,
    KEY_ABOVE = 2, /* the lower bound itself is not allowed */
    KEY_BELOW = 4, /* nor the upper one */
    /* Peers of one run may differ in it: no part of kith_experiment_hash. All
     * other keys are; one of type PARSED or CUSTOM then needs `show`. */
    KEY_LOCAL = 8,
};

/* Longest canonical text of a value that is hashed: a list of 16 numbers. */
#define SCHEMA_SHOWN_BYTES 256

struct key_choice {
    const char *(*name)(unsigned index); /* NULL past the last */
    void (*choose)(void *object, unsigned index);
    const char *(*chosen)(const void *object); /* NULL: none */
};

struct key {
    const char *path;
    enum key_type type;
    unsigned flags;
    size_t offset, size; /* of the field */
    double low, high;    /* inclusive, unless flags say otherwise */
    const struct key_choice *choice;
    enum kith_err (*parse)(const char *text, void *field); /* PARSED */
    /* The canonical text of what `object` holds, where that is not the field
     * itself; NULL: as the type says. */
    void (*show)(const void *object, char text[SCHEMA_SHOWN_BYTES]);
    const char *
        allowed; /* SIZES, PARSED, CUSTOM, RATE: in words; TIME: words to add */
    const char *initial; /* the default, as one would write it; NULL: none */
    const char *help;
};

/* Rows end with path NULL. Sets every default, then every key of the tree into
 * `object`; refuses unknown keys and those of the wrong type. */
KITH_MUST_CHECK enum kith_err
kith_schema_read(const struct key *keys, const struct tree *tree, void *object);
/* What a key may be, in words: "a whole number from 1 to 64". */
#define SCHEMA_ALLOWED_BYTES KITH_KEY_ALLOWED_BYTES
void kith_schema_allowed(const struct key *key,
                         char text[SCHEMA_ALLOWED_BYTES]);
/* Sets the key from `text`; CUSTOM keys stay as they are. */
KITH_MUST_CHECK enum kith_err kith_schema_set(const struct key *key,
                                              const char *text, void *object);
/* The canonical text of the value that `object` holds: one text for each value,
 * whatever the file says. "": not given, or 0 without a default. Returns
 * whether it is the key's default. */
bool kith_schema_show(const struct key *key, const void *object,
                      char text[SCHEMA_SHOWN_BYTES]);
/* The shortest text that reads back as this number. */
void kith_schema_number(double value, char *text, size_t size);
/* "; did you mean "x"?" or "". */
const char *kith_schema_hint(const char *word, const char *const *names,
                             char *text, size_t size);

#endif

/* kith keys: node keys, the cluster's authority, certificates, revocation. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli.h"
#include "kith/json.h"
#include "kith/keys.h"
#include "kith/text.h"
#include "suite_speed.h"

/* What was made or changed and what comes next, in words; --json: `document`,
 * which is released. Or what went wrong. */
static int KITH_PRINTF(5, 6)
    end(const struct cli_arguments *arguments, enum kith_err err,
        const char *error, json_t *document, const char *format, ...)
{
    if (err != KITH_OK) {
        json_decref(document);
        return kith_cli_fail(
            arguments, err == KITH_ENOSPC ? KITH_EXIT_WRITE : KITH_EXIT_KEYS,
            "%s", error);
    }
    if (kith_cli_given(arguments, CLI_JSON)) {
        kith_json_print(document, 9);
        return kith_cli_flush(arguments, KITH_EXIT_OK);
    }
    json_decref(document);
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    return kith_cli_flush(arguments, KITH_EXIT_OK);
}

/* {"files": [...]}: names (NULL-terminated) in a folder; none: the path. */
static json_t *files_of(const char *path, const char *const *names)
{
    char text[KITH_PATH_BYTES_MAX];
    json_t *files = json_array();
    if (names == NULL)
        (void)json_array_append_new(files, kith_json_text(path));
    for (; names != NULL && *names != NULL; names++) {
        snprintf(text, sizeof text, "%s/%s", path, *names);
        (void)json_array_append_new(files, kith_json_text(text));
    }
    return json_pack("{s:o}", "files", files);
}

enum { SUITES_MAX = 8 };

static void lower(char target[KITH_NAME_MAX], const char *source)
{
    size_t i = 0;
    for (; i + 1 < KITH_NAME_MAX && source[i] != '\0'; i++)
        target[i] = (char)tolower((unsigned char)source[i]);
    target[i] = '\0';
}

/* --suite, in small letters or large ones; an exit code. */
static int parse_suite(const struct cli_arguments *arguments,
                       enum kith_suite *suite)
{
    static char words[SUITES_MAX][KITH_NAME_MAX];
    const char *text = arguments->values[CLI_SUITE], *names[SUITES_MAX + 1];
    char word[KITH_NAME_MAX];
    const struct kith_suite_facts *facts;
    unsigned count = 0;
    *suite = KITH_SUITE_ANY;
    if (text == NULL || kith_suite_find(text, strlen(text), suite))
        return KITH_EXIT_OK;
    while (count < SUITES_MAX && (facts = kith_suite_at(count)) != NULL) {
        lower(words[count], kith_suite_word(facts->suite));
        names[count] = words[count];
        count++;
    }
    names[count] = NULL;
    lower(word, text);
    return kith_cli_unknown(arguments, "suite", word, names);
}

static int new_authority(const struct cli_arguments *arguments,
                         const char *folder)
{
    static const char *const names[] = {"ca.key", "ca.pub", NULL};
    char error[KITH_KEYS_ERROR_BYTES];
    enum kith_suite suite;
    int code = parse_suite(arguments, &suite);
    if (code != KITH_EXIT_OK)
        return code;
    const enum kith_err err = kith_keys_new_authority(folder, suite, error);
    json_t *document = files_of(folder, names);
    json_t *rows = kith_cli_given(arguments, CLI_JSON) ? json_array() : NULL;
    if (err == KITH_OK && rows != NULL)
        kith_cli_suite_speed(suite, rows);
    kith_json_set_text(document, "suite",
                       suite == KITH_SUITE_ANY ? NULL : kith_suite_word(suite));
    (void)json_object_set_new(document, "suites", rows);
    code = end(arguments, err, error, document,
               "made %s/ca.key (keep it secret and offline) and %s/ca.pub "
               "(give it to every peer)\n",
               folder, folder);
    if (code != KITH_EXIT_OK || rows != NULL)
        return code;
    kith_cli_suite_speed(suite, NULL);
    return kith_cli_flush(arguments, code);
}

static int keys_new(const struct cli_arguments *arguments)
{
    char error[KITH_KEYS_ERROR_BYTES];
    const char *name = arguments->values[CLI_NAME];
    const char *folder = arguments->words[1];
    const bool authority = kith_cli_given(arguments, CLI_AUTHORITY);
    if (authority == (name != NULL))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "give one of --authority and --name NAME");
    if (authority)
        return new_authority(arguments, folder);
    if (kith_cli_given(arguments, CLI_SUITE))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--suite goes with --authority, whose policy it "
                             "is; a peer gets it with ca.pub");
    static const char *const names[] = {"node.key", "node.request", NULL};
    const enum kith_err err = kith_keys_new_node(folder, name, error);
    return end(arguments, err, error, files_of(folder, names),
               "made %s/node.key (it never leaves this machine) and "
               "%s/node.request\nnext: kith keys certify AUTHORITY "
               "%s/node.request --rank N, where the authority is\n",
               folder, folder, folder);
}

/* "train,seed" -> bits. */
static int parse_roles(const struct cli_arguments *arguments, uint32_t *roles)
{
    static const struct {
        const char *name;
        uint32_t bit;
    } names[] = {{"train", KITH_ROLE_TRAIN},
                 {"observe", KITH_ROLE_OBSERVE},
                 {"seed", KITH_ROLE_SEED}};
    const char *text = arguments->values[CLI_ROLES];
    *roles = KITH_ROLE_TRAIN;
    if (text == NULL)
        return KITH_EXIT_OK;
    *roles = 0;
    while (*text != '\0') { /* shorter at every turn */
        const size_t length = strcspn(text, ",");
        uint32_t bit = 0;
        for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
            if (strlen(names[i].name) == length &&
                memcmp(names[i].name, text, length) == 0)
                bit = names[i].bit;
        if (bit == 0)
            break;
        if ((*roles & bit) != 0)
            return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                 "--roles: found \"%.60s\", which names %.*s "
                                 "twice; name each role once",
                                 arguments->values[CLI_ROLES], (int)length,
                                 text);
        *roles |= bit;
        text += length;
        text += *text == ',';
    }
    if (*text != '\0' || *roles == 0)
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--roles: found \"%.60s\"; allowed: train, "
                             "observe, seed, with commas between",
                             arguments->values[CLI_ROLES]);
    return KITH_EXIT_OK;
}

/* "folder/node.request" -> "folder/node.crt". */
static int certificate_path(const struct cli_arguments *arguments, char *path,
                            size_t size)
{
    static const char ending[] = ".request";
    const char *out = arguments->values[CLI_OUT];
    const char *request = arguments->words[2];
    size_t length = strlen(request);
    if (out != NULL)
        return kith_text_copy(path, size, out) ? KITH_EXIT_OK : KITH_EXIT_USAGE;
    if (length >= sizeof ending - 1 &&
        strcmp(request + length - (sizeof ending - 1), ending) == 0)
        length -= sizeof ending - 1;
    const int written = snprintf(path, size, "%.*s.crt", (int)length, request);
    if (written < 0 || (size_t)written >= size)
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "the path is too long");
    return KITH_EXIT_OK;
}

static int keys_certify(const struct cli_arguments *arguments)
{
    char error[KITH_KEYS_ERROR_BYTES], path[KITH_PATH_BYTES_MAX];
    uint64_t days = 30, rank = KITH_NOBODY;
    uint32_t roles = 0;
    int code = kith_cli_number(arguments, CLI_DAYS, 1, 90, &days);
    if (code == KITH_EXIT_OK)
        code =
            kith_cli_number(arguments, CLI_RANK, 0, KITH_PEERS_MAX - 1, &rank);
    if (code == KITH_EXIT_OK)
        code = parse_roles(arguments, &roles);
    if (code == KITH_EXIT_OK)
        code = certificate_path(arguments, path, sizeof path);
    if (code != KITH_EXIT_OK)
        return code;
    const enum kith_err err =
        kith_keys_certify(arguments->words[1], arguments->words[2], path,
                          (unsigned)days, roles, (uint32_t)rank, error);
    return end(arguments, err, error, files_of(path, NULL),
               "made %s, valid for %u day%s\nnext: bring it to the peer's "
               "identity folder as node.crt\n",
               path, (unsigned)days, days == 1 ? "" : "s");
}

static int keys_revoke(const struct cli_arguments *arguments)
{
    static const char *const names[] = {"crl", NULL};
    char error[KITH_KEYS_ERROR_BYTES];
    const enum kith_err err =
        kith_keys_revoke(arguments->words[1], arguments->words[2], error);
    return end(arguments, err, error, files_of(arguments->words[1], names),
               "added it to %s/crl\nnext: bring crl to a peer's identity "
               "folder; it is read within seconds and passed on to the "
               "others\n",
               arguments->words[1]);
}

static int keys_allow(const struct cli_arguments *arguments)
{
    static const char *const names[] = {"allow", NULL};
    char error[KITH_KEYS_ERROR_BYTES];
    const enum kith_err err =
        kith_keys_allow(arguments->words[1], arguments->words[2], error);
    return end(arguments, err, error, files_of(arguments->words[1], names),
               "added it to %s/allow\nnext: bring the same list to every "
               "peer's identity folder\n",
               arguments->words[1]);
}

/* A line of `keys show`; user: the file's name. */
static void show_fact(void *user, const struct kith_key_fact *fact)
{
    if (fact->label == NULL)
        printf("%s: %s\n", (const char *)user, fact->note);
    else
        printf("  %-12s %s%s\n", fact->label,
               fact->value == NULL ? "" : fact->value, fact->note);
}

/* The same as a member of the object `user`. */
static void add_fact(void *user, const struct kith_key_fact *fact)
{
    json_t *value = fact->shape == KITH_KEY_NUMBER
                        ? kith_json_whole(strtoull(fact->value, NULL, 10))
                        : kith_json_text(fact->value);
    if (fact->shape != KITH_KEY_ITEM) {
        (void)json_object_set_new(user, fact->key, value);
        return;
    }
    if (json_object_get(user, fact->key) == NULL)
        (void)json_object_set_new(user, fact->key, json_array());
    (void)json_array_append_new(json_object_get(user, fact->key), value);
}

static int keys_show(const struct cli_arguments *arguments)
{
    char error[KITH_KEYS_ERROR_BYTES], path[KITH_PATH_BYTES_MAX];
    json_t *document =
        kith_cli_given(arguments, CLI_JSON)
            ? json_pack("{s:o}", "file", kith_json_text(arguments->words[1]))
            : NULL;
    snprintf(path, sizeof path, "%s", arguments->words[1]);
    const enum kith_err err = kith_keys_show(
        path, document != NULL ? add_fact : show_fact,
        document != NULL ? (void *)document : (void *)path, error);
    return end(arguments, err, error, document, "%s", "");
}

int kith_cli_keys(const struct cli_arguments *arguments)
{
    static const struct {
        const char *name;
        int (*run)(const struct cli_arguments *arguments);
        unsigned words; /* after the verb */
        const char *usage;
    } verbs[] = {
        {"new", keys_new, 1,
         "new DIR --authority [--suite NAME] | --name NAME"},
        {"certify", keys_certify, 2,
         "certify AUTHORITY REQUEST [--rank N] [--out FILE] [--days N]"},
        {"revoke", keys_revoke, 2, "revoke AUTHORITY CERTIFICATE"},
        {"allow", keys_allow, 2, "allow FOLDER REQUEST"},
        {"show", keys_show, 1, "show FILE"},
    };
    const char *names[sizeof verbs / sizeof verbs[0] + 1] = {NULL};
    for (unsigned i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        names[i] = verbs[i].name;
        if (strcmp(arguments->words[0], verbs[i].name) != 0)
            continue;
        if (arguments->word_count == verbs[i].words + 1)
            return verbs[i].run(arguments);
        return kith_cli_fail(arguments, KITH_EXIT_USAGE, "usage: kith keys %s",
                             verbs[i].usage);
    }
    return kith_cli_unknown(arguments, "verb", arguments->words[0], names);
}

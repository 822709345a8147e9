/* A folder that plays authority and two nodes: what the tests of key files
 * share. */
#ifndef KITH_TESTS_KEY_FILES_H
#define KITH_TESTS_KEY_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kith/keys.h"
#include "tests/support/sessions.h"

static char root[64], error[KITH_KEYS_ERROR_BYTES];

static inline const char *in(const char *name)
{
    static char paths[8][160];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, 160, "%s/%s", root, name);
    return path;
}

static inline void copy(const char *from, const char *to)
{
    static char bytes[1 << 20];
    FILE *source = fopen(in(from), "rb");
    assert_non_null(source);
    const size_t n = fread(bytes, 1, sizeof bytes, source);
    fclose(source);
    FILE *target = fopen(in(to), "wb");
    assert_non_null(target);
    assert_int_equal(n, fwrite(bytes, 1, n, target));
    fclose(target);
}

static inline void write_text(const char *name, const char *text)
{
    FILE *file = fopen(in(name), "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

#define OK(call)                                                               \
    do {                                                                       \
        const enum kith_err ok_err = (call);                                   \
        if (ok_err != KITH_OK)                                                 \
            fail_msg("%s", error);                                             \
    } while (0)

/* Refused with this code and a sentence that holds these words. */
static inline void refused(enum kith_err expected, const char *words,
                           enum kith_err found)
{
    if (found != expected || !strstr(error, words))
        fail_msg("expected %d \"%s\", found %d \"%s\"", (int)expected, words,
                 (int)found, error);
    error[0] = '\0';
}

static inline int setup(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/kith-keys-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static inline int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

/* An authority in ca/, nodes in a/ and b/ with certificates. */
static inline void with_policy(enum kith_suite suite)
{
    OK(kith_keys_new_authority(in("ca"), suite, error));
    for (int i = 0; i < 2; i++) {
        const char *node = i ? "b" : "a";
        char name[32];
        OK(kith_keys_new_node(in(node), i ? "bob" : "alice", error));
        snprintf(name, sizeof name, "%s/node.request", node);
        char out[32];
        snprintf(out, sizeof out, "%s/node.crt", node);
        OK(kith_keys_certify(in("ca"), in(name), in(out), 30, KITH_ROLE_TRAIN,
                             (uint32_t)i, error));
        snprintf(name, sizeof name, "%s/ca.pub", node);
        copy("ca/ca.pub", name);
    }
}

static inline void make_cluster(void)
{
    with_policy(KITH_SUITE_ANY);
}

static inline bool shake_hands(const char *one, const char *two)
{
    struct sessions pair;
    const char *folders[2] = {one, two};
    sessions_setup(&pair, KITH_SUITE_CHACHAPOLY, NULL, 9);
    for (int i = 0; i < 2; i++) {
        OK(kith_keys_load(in(folders[i]), &pair.ends[i].identity,
                          &pair.ends[i].trust, error));
        pair.ends[i].config.utc_s = (int64_t)time(NULL);
    }
    assert_true(sessions_start(&pair));
    const bool open = sessions_connect(&pair);
    for (int i = 0; i < 2; i++)
        kith_keys_free(&pair.ends[i].identity, &pair.ends[i].trust);
    sessions_close(&pair);
    return open;
}

static enum kith_err load(const char *folder)
{
    struct kith_identity identity;
    struct kith_trust trust;
    const enum kith_err err =
        kith_keys_load(in(folder), &identity, &trust, error);
    if (err == KITH_OK)
        kith_keys_free(&identity, &trust);
    return err;
}

#endif

/* A peer's own file:
 *
 *   identity: DIR                    node.key, node.crt, ca.pub | allow, crl
 *   listen: "[::]:7117"
 *   advertise: auto | HOST:PORT
 *   experiment: FILE
 *   save: DIR
 *   rank: 0                          own place in the list
 *   wait: {members: 2, for: 10m}     start when so many are connected
 *   members:
 *     - {address: HOST:PORT, fingerprint: HEX}       or just  - HOST:PORT
 *
 * Relative paths start at the folder of the file. */
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/experiment.h"
#include "kith/text.h"
#include "read_file.h"
#include "schema.h"
#include "yaml_tree.h"

#define TEXT_AT(field)                                                         \
    .offset = offsetof(struct kith_peer_file, field),                          \
    .size = sizeof(((struct kith_peer_file *)0)->field)

static const struct key peer_keys[] = {
    {"identity", KEY_TEXT, KEY_REQUIRED, TEXT_AT(identity),
     .help = "folder with node.key, node.crt and ca.pub"},
    {"listen", KEY_TEXT, TEXT_AT(listen), .initial = "[::]:7117",
     .help = "HOST:PORT to accept connections on"},
    {"advertise", KEY_TEXT, TEXT_AT(advertise), .initial = "auto",
     .help = "HOST:PORT at which the others reach this peer"},
    {"experiment", KEY_TEXT, KEY_REQUIRED, TEXT_AT(experiment),
     .help = "the experiment file, the same on every peer"},
    {"save", KEY_TEXT, TEXT_AT(save), .initial = "save",
     .help = "folder of the saved model"},
    {"rank", KEY_U32, KEY_REQUIRED,
     .offset = offsetof(struct kith_peer_file, rank), .low = 0,
     .high = KITH_PEERS_MAX - 1, .help = "own place in members, from 0"},
    {"wait.members", KEY_U32,
     .offset = offsetof(struct kith_peer_file, wait.members), .low = 1,
     .high = KITH_PEERS_MAX, .initial = "1",
     .help = "training starts when so many are connected, this one among them"},
    {"wait.for", KEY_TIME, KEY_ABOVE,
     .offset = offsetof(struct kith_peer_file, wait.for_ns), .low = 0,
     .high = 604800, .initial = "10m",
     .help = "how long; then the peer ends, with exit code 9"},
    {"members", KEY_CUSTOM, KEY_REQUIRED,
     .allowed = "a list such as [{address: \"host:7117\"}], in rank order",
     .help = "every peer of the cluster, this one included"},
    {.path = NULL},
};

/* HOST:PORT or [V6]:PORT with a port from 1 to 65535. */
static bool is_address(const char *text)
{
    const char *colon = strrchr(text, ':');
    uint64_t port;
    if (colon == NULL || colon == text ||
        kith_text_u64(colon + 1, &port) != KITH_OK || port == 0 || port > 65535)
        return false;
    if (text[0] == '[')
        return colon[-1] == ']';
    return memchr(text, ':', (size_t)(colon - text)) == NULL;
}

static enum kith_err address_fail(const struct tree *tree,
                                  const struct tree_item *item, const char *key)
{
    return kith_yaml_refuse_value(tree, item, key,
                                  "HOST:PORT, such as \"10.0.0.7:7117\" or "
                                  "\"[2001:db8::7]:7117\", up to %u bytes",
                                  KITH_NAME_MAX * 4 - 1);
}

static enum kith_err read_fingerprint(const struct tree *tree,
                                      const struct tree_item *item,
                                      char *fingerprint)
{
    uint8_t bytes[32];
    if (item->kind != TREE_SCALAR ||
        kith_text_unhex(item->text, bytes, sizeof bytes) != KITH_OK)
        return kith_yaml_refuse_value(
            tree, item, "members.fingerprint",
            "64 hexadecimal digits, as kith keys show prints them");
    kith_text_hex(fingerprint, bytes, sizeof bytes);
    return KITH_OK;
}

static enum kith_err read_member(const struct tree *tree,
                                 const struct tree_item *item,
                                 struct kith_peer_file *file, uint32_t rank)
{
    const struct tree_item *address = item;
    if (item->kind == TREE_MAP) {
        const struct tree_item *key =
            kith_yaml_child(tree, item, "fingerprint");
        address = kith_yaml_child(tree, item, "address");
        if (address == NULL || item->count != 1 + (key != NULL))
            return kith_yaml_fail(
                tree, item, "members", KITH_EINVAL,
                "allowed keys: address (required), fingerprint");
        if (key != NULL) {
            const enum kith_err err =
                read_fingerprint(tree, key, file->members[rank].fingerprint);
            if (err != KITH_OK)
                return err;
        }
    } else if (item->kind == TREE_LIST)
        return kith_yaml_refuse_value(tree, item, "members",
                                      "{address: HOST:PORT}");
    if (address->kind != TREE_SCALAR ||
        !kith_text_copy(file->members[rank].address,
                        sizeof file->members[rank].address, address->text) ||
        !is_address(address->text))
        return address_fail(tree, address, "members.address");
    return KITH_OK;
}

static enum kith_err read_members(const struct tree *tree,
                                  struct kith_peer_file *file)
{
    const struct tree_item *list = kith_yaml_find(tree, "members");
    KITH_ASSERT(list != NULL); /* KEY_REQUIRED */
    if (list->kind != TREE_LIST || list->count == 0)
        return kith_yaml_refuse_value(tree, list, "members",
                                      "a list with every peer in rank order");
    file->members = calloc(list->count, sizeof *file->members);
    if (file->members == NULL)
        return kith_yaml_fail(tree, NULL, "members", KITH_ENOMEM,
                              "out of memory");
    file->member_count = list->count;
    uint32_t rank = 0;
    const struct tree_item *item = kith_yaml_first(tree, list);
    for (; item != NULL; item = kith_yaml_next(tree, item)) {
        const enum kith_err err = read_member(tree, item, file, rank++);
        if (err != KITH_OK)
            return err;
    }
    if (file->rank >= file->member_count)
        return kith_yaml_refuse(
            tree, "rank", "found %u; allowed: 0 to %u, a place in members",
            file->rank, file->member_count - 1);
    if (file->wait.members > file->member_count)
        return kith_yaml_refuse(
            tree, "wait.members",
            "found %u; allowed: 1 to %u, as many as there are members",
            file->wait.members, file->member_count);
    return KITH_OK;
}

static enum kith_err read_peer(const struct tree *tree,
                               struct kith_peer_file *file)
{
    enum kith_err err = kith_schema_read(peer_keys, tree, file);
    if (err == KITH_OK)
        err = read_members(tree, file);
    if (err == KITH_OK && !is_address(file->listen))
        err = address_fail(tree, kith_yaml_find(tree, "listen"), "listen");
    if (err == KITH_OK && strcmp(file->advertise, "auto") != 0 &&
        !is_address(file->advertise))
        err =
            address_fail(tree, kith_yaml_find(tree, "advertise"), "advertise");
    if (err == KITH_OK)
        err = kith_experiment_resolve_path(tree, "identity", file->identity);
    if (err == KITH_OK)
        err =
            kith_experiment_resolve_path(tree, "experiment", file->experiment);
    if (err == KITH_OK)
        err = kith_experiment_resolve_path(tree, "save", file->save);
    return err;
}

enum kith_err kith_peer_file_load(const char *path, struct kith_peer_file *file,
                                  char *error)
{
    char *text;
    size_t size;
    enum kith_err err = kith_experiment_read_file(path, &text, &size, error);
    if (err != KITH_OK)
        return err;
    memset(file, 0, sizeof *file);
    struct tree tree;
    err = kith_yaml_open(&tree, path, text, size, error);
    if (err == KITH_OK)
        err = read_peer(&tree, file);
    if (err != KITH_OK)
        kith_peer_file_close(file);
    kith_yaml_close(&tree);
    free(text);
    return err;
}

void kith_peer_file_close(struct kith_peer_file *file)
{
    free(file->members);
    memset(file, 0, sizeof *file);
}

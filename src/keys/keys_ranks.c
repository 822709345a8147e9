/* Which name has which rank: the authority's own list, so that it never gives
 * one place to two peers and a renewal needs no --rank.
 *
 *   kith-ranks-v1
 *   RANK NAME        a line for each peer */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/limits.h"
#include "src/keys/keys_file.h"

/* One line; false: it is none. */
static bool read_line(const char *line, uint32_t *rank,
                      char name[KITH_NAME_MAX])
{
    char *end = NULL;
    const unsigned long value = strtoul(line, &end, 10);
    const size_t length = *end == ' ' ? strcspn(end + 1, " \t\r\n") : 0;
    if (*line < '0' || *line > '9' || value >= KITH_PEERS_MAX ||
        !kith_name_is_safe((const uint8_t *)end + 1, length))
        return false;
    memcpy(name, end + 1, length);
    name[length] = '\0';
    *rank = (uint32_t)value;
    return true;
}

/* True: the list names this peer, and *rank is its. Fails where the list says
 * otherwise than *rank. */
static bool find_rank(struct keys_work *work, const struct key_file *file,
                      const char *name, uint32_t *rank)
{
    for (const char *line = kith_key_file_next_line(file->text); line;
         line = kith_key_file_next_line(line)) {
        uint32_t other = 0;
        char holder[KITH_NAME_MAX];
        if (!read_line(line, &other, holder)) {
            kith_keys_fail(work, KITH_EPARSE,
                           "%s: expected \"RANK NAME\", found \"%.40s\"",
                           file->path, line);
            return false;
        }
        const bool is_name = strcmp(holder, name) == 0;
        if (is_name && *rank == KITH_NOBODY)
            *rank = other;
        if (is_name && *rank == other)
            return true;
        if (is_name || *rank == other)
            kith_keys_fail(work, KITH_EEXIST,
                           "%s gives rank %u to %s: leave --rank out, or, if "
                           "that peer has left, take its line out of the file",
                           file->path, (unsigned)other, holder);
    }
    return false;
}

/* The list, or its head, and one line more. */
static void add_rank(struct keys_work *work, const char *path, const char *old,
                     const char *name, uint32_t rank)
{
    const size_t size = strlen(old) + KITH_NAME_MAX + 16;
    char *text = work->err == KITH_OK ? malloc(size) : NULL;
    if (!text) {
        kith_keys_fail(work, KITH_ENOMEM, "no memory for %s", path);
        return;
    }
    const size_t length = strlen(old);
    snprintf(text, size, "%s%s%u %s\n", old,
             length > 0 && old[length - 1] != '\n' ? "\n" : "", (unsigned)rank,
             name);
    kith_keys_replace(work, path, text);
    free(text);
}

void kith_keys_give_rank(struct keys_work *work, const char *folder,
                         const char *name, uint32_t *rank)
{
    char path[KITH_PATH_BYTES_MAX];
    struct key_file file = {.text = NULL};
    bool found = false;
    kith_keys_path(work, path, folder, "ranks");
    if (work->err == KITH_OK && kith_key_file_exists(path)) {
        kith_key_file_open(work, &file, path, false);
        kith_key_file_expect(work, &file, KEYS_RANKS, "a list of ranks");
    }
    if (work->err == KITH_OK && file.text)
        found = find_rank(work, &file, name, rank);
    if (*rank == KITH_NOBODY)
        kith_keys_fail(work, KITH_EINVAL,
                       "%s does not name %s: give --rank N, its place in the "
                       "list of members, from 0",
                       path, name);
    else if (!found)
        add_rank(work, path, file.text ? file.text : KEYS_RANKS "\n", name,
                 *rank);
    kith_key_file_close(&file);
}

/* kith list manifest PATH FILE: writes the manifest of a data set, so that
 * peers can have it from each other (data.manifest; kith/pieces.h). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli.h"
#include "kith/json.h"
#include "kith/pieces.h"
#include "kith/plain_file.h"
#include "kith/text.h"

static int write_manifest(const struct cli_arguments *arguments,
                          const char *path, const uint8_t *bytes, size_t size)
{
    char partial[KITH_PATH_BYTES_MAX + 16];
    (void)snprintf(partial, sizeof partial, "%s.partial", path);
    FILE *const file = kith_file_create_stream(partial);
    if (file != NULL)
        (void)fwrite(bytes, 1, size, file); /* a failure shows at the commit */
    const int code =
        file == NULL ? errno : kith_file_commit(file, partial, path);
    return code == 0
               ? KITH_EXIT_OK
               : kith_cli_fail(arguments, KITH_EXIT_WRITE,
                               "cannot write %.300s: %s", path, strerror(code));
}

static void show(const struct cli_arguments *arguments,
                 const struct kith_manifest *manifest)
{
    uint8_t root[KITH_PIECE_HASH_BYTES];
    char hex[2 * KITH_PIECE_HASH_BYTES + 1];
    struct kith_manifest_file file = {.next = 0};
    kith_manifest_root(manifest, root);
    kith_text_hex(hex, root, sizeof root);
    if (kith_cli_given(arguments, CLI_JSON)) {
        json_t *document = json_object();
        kith_json_set_text(document, "root", hex);
        kith_json_set_whole(document, "bytes", manifest->bytes);
        kith_json_set_whole(document, "pieces", manifest->count);
        kith_json_set_whole(document, "piece_bytes", manifest->piece_bytes);
        kith_json_set_whole(document, "files", manifest->file_count);
        kith_json_print(document, 4);
        return;
    }
    while (kith_manifest_next(manifest, &file))
        printf("  %-40s %12" PRIu64 " bytes\n", file.name, file.size);
    printf("%s: %" PRIu64 " bytes in %u pieces of %u, root %s\n",
           arguments->words[2], manifest->bytes, manifest->count,
           manifest->piece_bytes, hex);
}

int kith_cli_list_manifest(const struct cli_arguments *arguments)
{
    char error[KITH_PIECES_ERROR_BYTES];
    struct kith_manifest manifest;
    uint8_t *bytes;
    size_t size;
    if (arguments->word_count != 3)
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "manifest needs the data's path and the file to "
                             "write: kith list manifest PATH FILE");
    enum kith_err err = kith_manifest_make(
        arguments->words[1], KITH_MANIFEST_PIECE_BYTES, &bytes, &size, error);
    if (err == KITH_OK)
        err = kith_manifest_parse(bytes, size, NULL, &manifest, error);
    if (err != KITH_OK) {
        free(bytes);
        return kith_cli_fail(arguments, KITH_EXIT_DATA, "%s", error);
    }
    int code = write_manifest(arguments, arguments->words[2], bytes, size);
    if (code == KITH_EXIT_OK) {
        show(arguments, &manifest);
        code = kith_cli_flush(arguments, code);
    }
    free(bytes);
    return code;
}

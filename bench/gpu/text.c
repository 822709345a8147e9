/* The text that parity trains on: bytes, each a token. */
#include <stdio.h>
#include <stdlib.h>

#include "bench_gpu.h"

enum { TEXT_BYTES_MAX = 1 << 22, TEXT_BYTES_MIN = 4096 };

static bool take(struct text *text, const char *path)
{
    FILE *const file = fopen(path, "rb");
    if (file == NULL)
        return false;
    text->bytes = malloc(TEXT_BYTES_MAX);
    if (text->bytes != NULL)
        text->count = fread(text->bytes, 1, TEXT_BYTES_MAX, file);
    (void)fclose(file);
    (void)snprintf(text->path, sizeof text->path, "%s", path);
    if (text->bytes != NULL && text->count >= TEXT_BYTES_MIN)
        return true;
    free(text->bytes);
    text->bytes = NULL;
    return false;
}

bool text_open(struct text *text)
{
    static const char *const bundled[] = {"examples/data/tinyshakespeare.txt",
                                          "docs/validation.md"};
    const char *const told = getenv("GPU_TEXT");
    *text = (struct text){.count = 0};
    if (told != NULL && *told != '\0')
        return take(text, told);
    for (size_t i = 0; i < sizeof bundled / sizeof bundled[0]; i++)
        if (take(text, bundled[i]))
            return true;
    return false;
}

/* --sweep: keys and their values.
 *
 *   KEY=V1,V2,...                  or, where a value has a comma, KEY=V1|V2|...
 *   SECTION={A: 1, B: 2}|{A: 3}    keys of a section that go together: others
 *                                  keep what the file says, null takes one out
 *
 * A key that is set twice is refused: nothing is overridden in silence. */
#include <ctype.h>
#include <string.h>

#include "sweep_command.h"

/* Length of the first value: up to an end outside brackets and quotes. */
static size_t value_length(const char *text, char end)
{
    int depth = 0;
    char quote = '\0';
    size_t at = 0;
    for (; text[at] != '\0'; at++) {
        const char c = text[at];
        if (quote != '\0')
            quote = c == quote ? '\0' : quote;
        else if (c == '"' || c == '\'')
            quote = c;
        else if (strchr("([{", c) != NULL)
            depth++;
        else if (strchr(")]}", c) != NULL)
            depth--;
        else if (c == end && depth <= 0)
            break;
    }
    return at;
}

static int refuse_axis(const struct cli_axes *axes, const char *text,
                       const char *why)
{
    return kith_cli_fail(axes->arguments, KITH_EXIT_USAGE,
                         "--sweep: found \"%.80s\": %s; allowed: KEY=V1,V2,... "
                         "such as gossip.every=1,2,4, or KEY=V1|V2|...",
                         text, why);
}

static int add_value(const struct cli_axes *axes, struct cli_axis *axis,
                     const char *text, const char *from, size_t length)
{
    while (length > 0 && isspace((unsigned char)from[0]))
        from++, length--;
    while (length > 0 && isspace((unsigned char)from[length - 1]))
        length--;
    /* Around a value quotes are the list's; inside brackets they are YAML's. */
    if (length > 1 && (from[0] == '"' || from[0] == '\'') &&
        from[length - 1] == from[0])
        from++, length -= 2;
    if (length == 0)
        return refuse_axis(axes, text, "a value is empty");
    if (length >= KITH_SETTING_BYTES || axis->count == CLI_VALUES_MAX)
        return refuse_axis(axes, text, "a value is too long, or too many");
    char *value = axis->values[axis->count];
    memcpy(value, from, length);
    value[length] = '\0';
    for (uint32_t i = 0; i < axis->count; i++)
        if (strcmp(axis->values[i], value) == 0)
            return refuse_axis(axes, text, "a value stands there twice");
    axis->count++;
    return KITH_EXIT_OK;
}

/* Does the mapping "{key: value, ...}" say the first part of the path `key`? */
static bool mapping_has(const char *value, const char *key, size_t length)
{
    if (value[0] != '{')
        return false;
    for (const char *at = value + 1; *at != '\0';
         at += value_length(at, ',') + 1) {
        at += strspn(at, " \t\"'");
        if (strncmp(at, key, length) == 0 &&
            strchr(": \t\"'", at[length]) != NULL)
            return true;
        if (at[value_length(at, ',')] == '\0')
            break;
    }
    return false;
}

/* Does `path` with this value set what `other` names? */
static bool covers(const char *path, size_t length, const char *value,
                   const char *other, size_t other_length)
{
    if (length > other_length || strncmp(path, other, length) != 0)
        return false;
    return length == other_length ||
           (other[length] == '.' &&
            mapping_has(value, other + length + 1,
                        strcspn(other + length + 1, ".=+")));
}

static bool axis_covers(const struct cli_axis *axis, const char *other,
                        size_t length)
{
    for (uint32_t i = 0; i < axis->count; i++)
        if (covers(axis->key, strlen(axis->key), axis->values[i], other,
                   length))
            return true;
    return false;
}

bool kith_cli_axes_set(const struct cli_axes *axes, const char *key)
{
    const size_t length = strlen(key);
    for (uint32_t i = 0; i < axes->count; i++)
        if (axis_covers(&axes->list[i], key, length))
            return true;
    for (unsigned i = 0; i < axes->arguments->set_count; i++) {
        const char *set = axes->arguments->sets[i];
        if (covers(set, strcspn(set, "=+"), strchr(set, '=') + 1, key, length))
            return true;
    }
    return false;
}

/* Is a key of this axis set elsewhere, by another --sweep or by --set? */
static bool taken(const struct cli_axes *axes, const struct cli_axis *axis)
{
    if (kith_cli_axes_set(axes, axis->key))
        return true;
    for (uint32_t i = 0; i < axes->count; i++)
        if (axis_covers(axis, axes->list[i].key, strlen(axes->list[i].key)))
            return true;
    for (unsigned i = 0; i < axes->arguments->set_count; i++) {
        const char *set = axes->arguments->sets[i];
        if (axis_covers(axis, set, strcspn(set, "=+")))
            return true;
    }
    return false;
}

static int add_axis(struct cli_axes *axes, const char *text)
{
    struct cli_axis *axis = &axes->list[axes->count];
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text ||
        (size_t)(equals - text) >= sizeof axis->key)
        return refuse_axis(axes, text, "there is no key before a \"=\"");
    memcpy(axis->key, text, (size_t)(equals - text));
    if (strcmp(axis->key, "seed") == 0)
        return refuse_axis(axes, text, "seeds are counted by --seeds K");
    const char *at = equals + 1;
    if (*at == '\0')
        return refuse_axis(axes, text, "its list is empty");
    const char end = at[value_length(at, '|')] == '|' ? '|' : ',';
    for (;;) {
        const size_t length = value_length(at, end);
        const int code = add_value(axes, axis, text, at, length);
        if (code != KITH_EXIT_OK)
            return code;
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    if (taken(axes, axis))
        return refuse_axis(axes, text, "the key is given twice");
    axes->count++;
    return KITH_EXIT_OK;
}

int kith_cli_axes_read(const struct cli_arguments *arguments,
                       struct cli_axes *axes)
{
    memset(axes, 0, sizeof *axes);
    axes->arguments = arguments;
    int code = KITH_EXIT_OK;
    for (unsigned i = 0; i < arguments->sweep_count && code == KITH_EXIT_OK;
         i++)
        code = add_axis(axes, arguments->sweeps[i]);
    return code;
}

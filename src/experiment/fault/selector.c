/* selector := term { "-" term }
 * term     := "all" | "peer(" A [".." B] ")" | "frac(" P ")" | "n(" K ")"
 *
 * frac and n draw without replacement from all peers (selection sampling: peer
 * i is taken with probability wanted / left). Knuth, TAOCP 2, 3.4.2, alg. S. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/fault.h"
#include "kith/text.h"

struct selection {
    const char *text; /* whole, for messages */
    uint32_t peers;
    struct kith_rng *rng;
    uint8_t *chosen; /* (peers) */
    bool remove;     /* this term is taken out */
    char *error;
};

static enum kith_err refuse(const struct selection *selection)
{
    snprintf(selection->error, KITH_FAULT_ERROR_BYTES,
             "found \"%.100s\"; allowed: all, peer(A), peer(A..B) with peers "
             "0 to %u, frac(P) with P from 0 to 1, n(K) with K up to %u, "
             "SELECTOR - SELECTOR",
             selection->text, selection->peers - 1, selection->peers);
    return KITH_EPARSE;
}

static void mark(struct selection *selection, uint32_t peer)
{
    selection->chosen[peer] = !selection->remove;
}

static void draw(struct selection *selection, uint32_t wanted)
{
    for (uint32_t i = 0; i < selection->peers && wanted > 0; i++)
        if (kith_rng_below(selection->rng, selection->peers - i) < wanted) {
            mark(selection, i);
            wanted--;
        }
}

/* text is what stands between the brackets. */
static enum kith_err term_peer(struct selection *selection, char *text)
{
    uint64_t first, last;
    char *dots = strstr(text, "..");
    if (dots != NULL)
        *dots = '\0';
    if (kith_text_u64(text, &first) != KITH_OK)
        return refuse(selection);
    last = first;
    if (dots != NULL && kith_text_u64(dots + 2, &last) != KITH_OK)
        return refuse(selection);
    if (last < first || last >= selection->peers)
        return refuse(selection);
    for (uint64_t i = first; i <= last; i++)
        mark(selection, (uint32_t)i);
    return KITH_OK;
}

static enum kith_err term_draw(struct selection *selection, const char *text,
                               bool share)
{
    double p;
    uint64_t k;
    if (share) {
        if (kith_text_double(text, &p) != KITH_OK || !(p >= 0 && p <= 1))
            return refuse(selection);
        k = (uint64_t)floor(p * selection->peers + 0.5);
    } else if (kith_text_u64(text, &k) != KITH_OK || k > selection->peers)
        return refuse(selection);
    draw(selection, (uint32_t)k);
    return KITH_OK;
}

static enum kith_err term(struct selection *selection, char *text)
{
    const size_t length = strlen(text);
    if (strcmp(text, "all") == 0) {
        for (uint32_t i = 0; i < selection->peers; i++)
            mark(selection, i);
        return KITH_OK;
    }
    if (length < 2 || text[length - 1] != ')')
        return refuse(selection);
    text[length - 1] = '\0';
    if (strncmp(text, "peer(", 5) == 0)
        return term_peer(selection, text + 5);
    if (strncmp(text, "frac(", 5) == 0)
        return term_draw(selection, text + 5, true);
    if (strncmp(text, "n(", 2) == 0)
        return term_draw(selection, text + 2, false);
    return refuse(selection);
}

/* Up to the next '-' outside brackets, which may hold 1e-3. */
static size_t term_length(const char *text)
{
    size_t length = 0;
    for (bool inside = false; text[length] != '\0'; length++) {
        if (text[length] == '(' || text[length] == ')')
            inside = text[length] == '(';
        if (text[length] == '-' && !inside)
            break;
    }
    return length;
}

enum kith_err kith_selector_parse(const char *text, uint32_t peers,
                                  struct kith_rng *rng, uint8_t *chosen,
                                  char *error)
{
    struct selection selection = {.text = text,
                                  .peers = peers,
                                  .rng = rng,
                                  .chosen = chosen,
                                  .error = error};
    memset(chosen, 0, peers);
    while (*text == ' ')
        text++;
    for (;;) { /* one term a turn; the text only gets shorter */
        char copy[64];
        size_t length = term_length(text);
        const char *end = text + length;
        while (length > 0 && text[length - 1] == ' ')
            length--;
        if (length == 0 || length >= sizeof copy)
            return refuse(&selection);
        memcpy(copy, text, length);
        copy[length] = '\0';
        const enum kith_err err = term(&selection, copy);
        if (err != KITH_OK)
            return err;
        if (*end == '\0')
            return KITH_OK;
        selection.remove = true;
        text = end + 1;
        while (*text == ' ')
            text++;
    }
}

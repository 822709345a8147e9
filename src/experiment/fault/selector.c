/* selector := term { "-" term }
 * term     := "all" | "peer(" A [".." B] ")" | "frac(" P ")" | P "%"
 *           | "n(" K ")"
 *
 * frac, P% and n draw without replacement from all peers (selection sampling:
 * peer i is taken with probability wanted / left). Knuth, TAOCP 2, 3.4.2, alg.
 * S. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/fault.h"
#include "kith/text.h"

struct selection {
    const char *text; /* whole, for messages */
    uint32_t peers;
    struct kith_rng *rng;
    const uint8_t *taken; /* (peers) or NULL */
    uint8_t *chosen;      /* (peers) */
    bool remove;          /* this term is taken out */
    char *error;
};

static enum kith_err refuse(const struct selection *selection)
{
    snprintf(
        selection->error, KITH_FAULT_ERROR_BYTES,
        "found \"%.100s\"; allowed: all, peer(A), peer(A..B) with peers "
        "0 to %u, frac(P) with P from 0 to 1 or P%% as in 30%%, n(K) with K up "
        "to %u, SELECTOR - SELECTOR",
        selection->text, selection->peers - 1, selection->peers);
    return KITH_EPARSE;
}

static void mark(struct selection *selection, uint32_t peer)
{
    selection->chosen[peer] = !selection->remove;
}

static bool is_free(const struct selection *selection, uint32_t peer)
{
    return selection->taken == NULL || !selection->taken[peer];
}

static enum kith_err draw(struct selection *selection, uint32_t wanted)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < selection->peers; i++)
        left += is_free(selection, i);
    if (wanted > left) {
        snprintf(selection->error, KITH_FAULT_ERROR_BYTES,
                 "found \"%.100s\", which is %u peers; allowed: up to %u, for "
                 "the others are in a class already",
                 selection->text, wanted, left);
        return KITH_EINVAL;
    }
    for (uint32_t i = 0; i < selection->peers && wanted > 0; i++)
        if (is_free(selection, i) &&
            kith_rng_below(selection->rng, left--) < wanted) {
            mark(selection, i);
            wanted--;
        }
    return KITH_OK;
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
    for (uint64_t i = first; i <= last; i++) {
        if (!is_free(selection, (uint32_t)i) && !selection->remove) {
            snprintf(selection->error, KITH_FAULT_ERROR_BYTES,
                     "found peer %u, which is in a class already; allowed: "
                     "each in one",
                     (uint32_t)i);
            return KITH_EINVAL;
        }
        mark(selection, (uint32_t)i);
    }
    return KITH_OK;
}

/* whole: what stands for all of them, 1 or 100. */
static enum kith_err term_share(struct selection *selection, const char *text,
                                double whole)
{
    double p;
    if (kith_text_double(text, &p) != KITH_OK || !(p >= 0 && p <= whole))
        return refuse(selection);
    return draw(selection, (uint32_t)floor(p / whole * selection->peers + 0.5));
}

static enum kith_err term_count(struct selection *selection, const char *text)
{
    uint64_t k;
    if (kith_text_u64(text, &k) != KITH_OK || k > selection->peers)
        return refuse(selection);
    return draw(selection, (uint32_t)k);
}

static enum kith_err term(struct selection *selection, char *text)
{
    const size_t length = strlen(text);
    if (strcmp(text, "all") == 0) {
        for (uint32_t i = 0; i < selection->peers; i++)
            if (is_free(selection, i))
                mark(selection, i);
        return KITH_OK;
    }
    if (length < 2 || (text[length - 1] != ')' && text[length - 1] != '%'))
        return refuse(selection);
    const bool is_percent = text[length - 1] == '%';
    text[length - 1] = '\0';
    if (is_percent)
        return term_share(selection, text, 100);
    if (strncmp(text, "peer(", 5) == 0)
        return term_peer(selection, text + 5);
    if (strncmp(text, "frac(", 5) == 0)
        return term_share(selection, text + 5, 1);
    if (strncmp(text, "n(", 2) == 0)
        return term_count(selection, text + 2);
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
    return kith_selector_parse_rest(text, peers, rng, NULL, chosen, error);
}

enum kith_err kith_selector_parse_rest(const char *text, uint32_t peers,
                                       struct kith_rng *rng,
                                       const uint8_t *taken, uint8_t *chosen,
                                       char *error)
{
    struct selection selection = {.text = text,
                                  .peers = peers,
                                  .rng = rng,
                                  .taken = taken,
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

/* Edges into matchings: a proper colouring with at most one colour more than
 * the highest degree, by Misra and Gries' proof of Vizing's theorem
 * (Information Processing Letters 41, 1992). at[i][c] is i's neighbour by
 * colour c.
 *
 * Each edge (u, v) in turn: a fan of u's neighbours, each edge's colour free at
 * the one before; c free at u, d free at the fan's last; the path from u of
 * colours d, c, d, ... changes them over; then the fan rotates up to the first
 * where d is free, whose edge becomes d. O(edges degree^2), mostly far less. */
#include "topology_kinds.h"

#include <string.h>

#include "kith/assert.h"

struct colouring {
    uint32_t peers, colours;
    kith_id *at; /* (peers, colours) */
};

struct fan {
    kith_id places[KITH_DEGREE_MAX];
    uint32_t colour[KITH_DEGREE_MAX]; /* of the edge to u; not of the first */
    uint32_t count;
};

static kith_id *slot(const struct colouring *all, kith_id i, uint32_t colour)
{
    return &all->at[(size_t)i * all->colours + colour];
}

static bool is_free(const struct colouring *all, kith_id i, uint32_t colour)
{
    return *slot(all, i, colour) == KITH_NOBODY;
}

static uint32_t free_colour(const struct colouring *all, kith_id i)
{
    uint32_t colour = 0;
    while (!is_free(all, i, colour))
        colour++;
    KITH_ASSERT(colour < all->colours);
    return colour;
}

/* A colour at u leads to one neighbour: it says who is in the fan. */
static void grow_fan(const struct colouring *all, kith_id u, struct fan *fan)
{
    bool used[KITH_DEGREE_MAX + 1] = {false};
    bool grown = true;
    while (grown) {
        const kith_id last = fan->places[fan->count - 1];
        grown = false;
        for (uint32_t c = 0; c < all->colours && !grown; c++) {
            const kith_id next = *slot(all, u, c);
            if (next == KITH_NOBODY || used[c] || !is_free(all, last, c))
                continue;
            fan->places[fan->count] = next;
            fan->colour[fan->count++] = c;
            grown = used[c] = true;
        }
    }
}

/* d, c, d, ... from u: c is free there, so it is a path. */
static void invert_path(const struct colouring *all, kith_id u, uint32_t c,
                        uint32_t d)
{
    uint32_t colour = d;
    for (kith_id i = u; i != KITH_NOBODY;) {
        const kith_id next = *slot(all, i, colour);
        const kith_id spare = *slot(all, i, c);
        *slot(all, i, c) = *slot(all, i, d);
        *slot(all, i, d) = spare;
        i = next;
        colour = colour == c ? d : c;
    }
}

static void paint(const struct colouring *all, kith_id i, kith_id j,
                  uint32_t colour)
{
    *slot(all, i, colour) = j;
    *slot(all, j, colour) = i;
}

static uint32_t colour_of(const struct colouring *all, kith_id i, kith_id j)
{
    uint32_t colour = 0;
    while (*slot(all, i, colour) != j)
        colour++;
    return colour;
}

static void rotate(const struct colouring *all, kith_id u, struct fan *fan,
                   uint32_t d)
{
    uint32_t last = 0;
    for (uint32_t k = 1; k < fan->count; k++)
        fan->colour[k] = colour_of(all, u, fan->places[k]);
    while (!is_free(all, fan->places[last], d)) {
        KITH_ASSERT(last + 1 < fan->count);
        KITH_ASSERT(is_free(all, fan->places[last], fan->colour[last + 1]));
        last++;
    }
    for (uint32_t k = 1; k <= last; k++) {
        *slot(all, u, fan->colour[k]) = KITH_NOBODY;
        *slot(all, fan->places[k], fan->colour[k]) = KITH_NOBODY;
    }
    for (uint32_t k = 0; k < last; k++)
        paint(all, u, fan->places[k], fan->colour[k + 1]);
    paint(all, u, fan->places[last], d);
}

static void add_edge(const struct colouring *all, kith_id u, kith_id v)
{
    struct fan fan = {.places = {v}, .count = 1};
    grow_fan(all, u, &fan);
    const uint32_t c = free_colour(all, u);
    const uint32_t d = free_colour(all, fan.places[fan.count - 1]);
    if (c != d && !is_free(all, u, d))
        invert_path(all, u, c, d);
    rotate(all, u, &fan, d);
}

/* Colours that are used move to the front; returns how many. */
static uint32_t pack(const struct colouring *all)
{
    uint32_t used = 0;
    for (uint32_t c = 0; c < all->colours; c++) {
        bool any = false;
        for (kith_id i = 0; i < all->peers && !any; i++)
            any = !is_free(all, i, c);
        for (kith_id i = 0; any && i < all->peers && used < c; i++) {
            *slot(all, i, used) = *slot(all, i, c);
            *slot(all, i, c) = KITH_NOBODY;
        }
        used += any;
    }
    return used;
}

uint32_t kith_colour_edges(const struct kith_topology *graph, uint32_t colours,
                           kith_id *at)
{
    const struct colouring all = {
        .peers = graph->peers, .colours = colours, .at = at};
    kith_id peers[KITH_DEGREE_MAX];
    KITH_ASSERT(colours <= KITH_DEGREE_MAX + 1);
    memset(at, 0xff, (size_t)graph->peers * colours * sizeof *at);
    for (kith_id u = 0; u < graph->peers; u++) {
        const uint32_t count =
            kith_topology_neighbours(graph, u, 0, peers, NULL);
        KITH_ASSERT(count < colours);
        for (uint32_t k = 0; k < count && peers[k] < u; k++)
            add_edge(&all, u, peers[k]);
    }
    return pack(&all);
}

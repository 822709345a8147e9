/* Passes over sizes (kith/magnitudes.h) in plain loops. */

static REAL size_at(const void *x, size_t i)
{
    const REAL value = ((const REAL *)x)[i];
    return value < 0 ? -value : value;
}

static struct kith_magnitude_survey naive_survey(size_t n, const void *x)
{
    struct kith_magnitude_survey found = {0, 0};
    double lanes[LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        const double size = (double)size_at(x, i);
        lanes[i % LANES] += size;
        found.most = size > found.most ? size : found.most;
    }
    found.sum = lanes_fold(lanes);
    return found;
}

static void naive_count(size_t n, const void *x,
                        const double bounds[KITH_MAGNITUDE_BOUNDS],
                        size_t counts[KITH_MAGNITUDE_BOUNDS])
{
    for (unsigned j = 0; j < KITH_MAGNITUDE_BOUNDS; j++) {
        const REAL bound = (REAL)bounds[j];
        counts[j] = 0;
        for (size_t i = 0; i < n; i++)
            counts[j] += size_at(x, i) >= bound;
    }
}

static struct kith_magnitude_found naive_keep(size_t n, const void *x,
                                              double from, double below,
                                              size_t room, void *out)
{
    const REAL least = (REAL)from, limit = (REAL)below;
    struct kith_magnitude_found found = {0, 0};
    for (size_t i = 0; i < n; i++) {
        const REAL size = size_at(x, i);
        if (size >= limit)
            found.beyond++;
        else if (size >= least) {
            if (found.within < room)
                ((REAL *)out)[found.within] = size;
            found.within++;
        }
    }
    return found;
}

static size_t naive_find(size_t n, const void *x, double from, uint32_t *places)
{
    const REAL least = (REAL)from;
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (size_at(x, i) >= least)
            places[count++] = (uint32_t)i;
    return count;
}

static const struct kith_magnitudes magnitudes = {
    .survey = naive_survey,
    .count = naive_count,
    .keep = naive_keep,
    .find = naive_find,
};

static const struct kith_magnitudes *naive_magnitudes(void)
{
    return &magnitudes;
}

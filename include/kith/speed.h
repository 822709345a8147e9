/* How fast a run is: samples, arithmetic, waiting, memory.
 *
 * One shape in every world, in rows, summaries and on progress lines. A
 * simulation measures none of it: its time is not ours. */
#ifndef KITH_SPEED_H
#define KITH_SPEED_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/model.h"

/* C types of the kinds of columns. */
#define KITH_TYPE_ALWAYS uint64_t
#define KITH_TYPE_COUNT uint64_t
#define KITH_TYPE_KNOWN uint64_t
#define KITH_TYPE_REAL double
#define KITH_TYPE_MEASURE double
#define KITH_TYPE_SHARE double

/* The columns of group speed in kith/series.def. NaN: not measured, or there is
 * no such thing. */
struct kith_speed {
    bool measured; /* false: none of the rest */
#define KITH_FIELD_row(type, name)
#define KITH_FIELD_speed(type, name) type name;
#define KITH_SERIES_COLUMN(place, schema, kind, name, add, chart)              \
    KITH_FIELD_##place(KITH_TYPE_##kind, name)
#include "kith/series.def"
#undef KITH_FIELD_row
#undef KITH_FIELD_speed
};

/* Rates between two looks at a run. */
struct kith_meter {
    double flop;    /* of a trained sample; 0: not known */
    double tokens;  /* of a sample; 0: it has none */
    double peak;    /* FLOP/s; 0: not measured */
    double samples; /* of the run, at the last look */
    double seconds; /* it had trained */
};
/* `peak`: FLOP/s or 0; `samples`, `seconds`: where a resumed run stands. */
void kith_meter_start(struct kith_meter *meter, const struct kith_model *model,
                      const struct kith_model_config *shape, double peak,
                      uint64_t samples, double seconds);
/* Sets the rates over what was trained since the last look, and the memory;
 * data wait and overlap become NaN, for the caller to set. A look that comes
 * at once sees no rate: NaN.
 * Test: unit/test_speed.c */
void kith_meter_look(struct kith_meter *meter, uint64_t samples, double seconds,
                     struct kith_speed *speed);
/* For people, such as "5120 samples/s, 12.3 GFLOP/s (41 % of peak)"; "" where
 * nothing is known. */
#define KITH_SPEED_TEXT_BYTES 96
void kith_speed_text(const struct kith_speed *speed,
                     char text[KITH_SPEED_TEXT_BYTES]);

#endif

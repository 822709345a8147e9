/* Goal: batches come in the order of their named streams, whether a thread
 * fills them ahead or not, from any place, in a forked child too; augmentation
 * and windows are what they say. Method: small made-up sets, every batch
 * compared with the rule written out plainly. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "kith/backend.h"
#include "kith/loader.h"

enum { ROWS = 37, SIDE = 6, CHANNELS = 3, FEATURES = SIDE * SIDE * CHANNELS };
enum { TOKENS = 1003, CONTEXT = 8 };
static uint8_t images[ROWS * FEATURES];
static int32_t labels[ROWS];
static uint16_t tokens[TOKENS];
static struct kith_examples pictures = {
    .input = KITH_INPUT_IMAGES,
    .element = KITH_ELEMENT_U8,
    .values = images,
    .labels = labels,
    .count = ROWS,
    .features = FEATURES,
    .shape = {SIDE, SIDE, CHANNELS},
    .classes = ROWS,
    .deviation = {1, 1, 1, 1},
};
static struct kith_examples words = {
    .input = KITH_INPUT_TOKENS,
    .element = KITH_ELEMENT_U16,
    .values = tokens,
    .count = (TOKENS - 1) / CONTEXT,
    .features = CONTEXT,
    .tokens = TOKENS,
    .classes = TOKENS,
};
static const uint32_t own[] = {1, 4, 5, 9, 16, 20, 21, 30, 36};
enum { OWN = sizeof own / sizeof own[0] };

static struct kith_loader_config configure(const char *backend)
{
    return (struct kith_loader_config){
        .examples = &pictures,
        .backend = kith_backend_find(backend),
        .rows = own,
        .row_count = OWN,
        .batch = 4,
        .seed = 11,
        .entity = 3,
        .shuffle = true,
    };
}

static struct kith_loader *open_loader(const struct kith_loader_config *config)
{
    char error[KITH_DATA_ERROR_BYTES] = "";
    struct kith_loader *loader = NULL;
    const enum kith_err err = kith_loader_open(config, &loader, error);
    if (err != KITH_OK)
        fail_msg("%s", error);
    return loader;
}

static struct kith_batch next(struct kith_loader *loader)
{
    struct kith_batch batch = {.rows = 0};
    kith_loader_next(loader, &batch);
    return batch;
}

/* A little work between two batches, as a step would be. */
static void pause_ns(long ns)
{
    const struct timespec span = {0, ns};
    (void)nanosleep(&span, NULL);
}

/* The order that workers have always had: a shuffle of the own rows per epoch,
 * and no batch cares where an epoch ends. */
static void test_order(void **state)
{
    (void)state;
    for (int ahead = 0; ahead < 2; ahead++) {
        struct kith_loader_config config = configure("naive64");
        config.ahead = ahead == 1;
        struct kith_loader *loader = open_loader(&config);
        uint32_t order[OWN], epoch = 0, cursor = OWN;
        for (int step = 0; step < 40; step++) {
            const struct kith_batch batch = next(loader);
            assert_int_equal(batch.rows, 4);
            for (size_t i = 0; i < batch.rows; i++) {
                if (cursor == OWN) {
                    struct kith_rng rng;
                    kith_rng_init(&rng, 11, KITH_STREAM_BATCH,
                                  (uint64_t)epoch++ << 32 | 3);
                    memcpy(order, own, sizeof own);
                    kith_rng_shuffle(&rng, order, OWN);
                    cursor = 0;
                }
                const uint32_t row = order[cursor++];
                assert_int_equal(batch.labels[i], labels[row]);
                const double *inputs =
                    (const double *)batch.inputs + i * FEATURES;
                for (size_t k = 0; k < FEATURES; k++)
                    assert_true(inputs[k] ==
                                images[row * FEATURES + k] / 255.0);
            }
            const struct kith_place place = kith_loader_place(loader);
            assert_int_equal(place.epoch, epoch - 1);
            assert_int_equal(place.cursor, cursor);
        }
        struct kith_data_counts counts = {.origin = 5};
        kith_loader_count(loader, &counts);
        assert_int_equal(counts.memory, 160);
        assert_int_equal(counts.mapped, 0);
        assert_int_equal(counts.origin, 5);
        kith_loader_close(loader);
    }
    /* Out of a mapped file it is the system that keeps what was read. */
    struct kith_examples pages = pictures;
    struct kith_loader_config config = configure("naive32");
    pages.mapped = true;
    config.examples = &pages;
    struct kith_loader *loader = open_loader(&config);
    struct kith_data_counts counts = {.origin = 0};
    (void)next(loader);
    kith_loader_count(loader, &counts);
    assert_true(counts.mapped == 4 && counts.memory == 0);
    kith_loader_close(loader);
}

/* A batch is valid until the call after next, with a thread at work too. */
static void test_stays_valid(void **state)
{
    (void)state;
    for (int ahead = 0; ahead < 2; ahead++) {
        struct kith_loader_config config = configure("naive32");
        config.ahead = ahead == 1;
        struct kith_loader *loader = open_loader(&config);
        struct kith_batch last = next(loader);
        float kept[4 * FEATURES];
        for (int step = 0; step < 20; step++) {
            memcpy(kept, last.inputs, sizeof kept);
            const struct kith_batch batch = next(loader);
            pause_ns(1000000);
            assert_memory_equal(kept, last.inputs, sizeof kept);
            last = batch;
        }
        kith_loader_close(loader);
    }
}

static void expect_same(struct kith_loader *a, struct kith_loader *b, int steps)
{
    for (int step = 0; step < steps; step++) {
        const struct kith_batch x = next(a), y = next(b);
        assert_int_equal(x.rows, y.rows);
        assert_memory_equal(x.labels, y.labels, x.rows * sizeof *x.labels);
        assert_memory_equal(x.inputs, y.inputs,
                            x.rows * FEATURES * sizeof(float));
        const struct kith_place p = kith_loader_place(a);
        const struct kith_place q = kith_loader_place(b);
        assert_true(p.epoch == q.epoch && p.cursor == q.cursor);
    }
}

/* From any place of one loader another goes on with the same batches. */
/* Two that take turns in another one's memory, or in that of a third, give what
 * they would give alone. */
static void test_borrow(void **state)
{
    (void)state;
    struct kith_loader_config config = configure("cpu");
    struct kith_loader *lenders[2] = {open_loader(&config),
                                      open_loader(&config)};
    struct kith_loader *alone[2], *guests[2];
    for (unsigned i = 0; i < 2; i++) {
        config.entity = 3 + i;
        config.lender = NULL;
        alone[i] = open_loader(&config);
        config.lender = lenders[0];
        guests[i] = open_loader(&config);
    }
    const void *lent = NULL;
    for (unsigned step = 0; step < 20; step++) {
        struct kith_loader *guest = guests[step % 2];
        kith_loader_borrow(guest, lenders[step / 3 % 2]);
        const struct kith_batch a = next(alone[step % 2]), b = next(guest);
        assert_int_equal(a.rows, b.rows);
        assert_memory_equal(a.inputs, b.inputs,
                            a.rows * FEATURES * sizeof(float));
        assert_memory_equal(a.labels, b.labels, a.rows * sizeof *a.labels);
        if (step == 0)
            lent = b.inputs; /* the other one's first, too */
        if (step == 1)
            assert_ptr_equal(b.inputs, lent);
    }
    for (unsigned i = 0; i < 2; i++) {
        kith_loader_close(guests[i]);
        kith_loader_close(alone[i]);
    }
    for (unsigned i = 0; i < 2; i++)
        kith_loader_close(lenders[i]);
}

static void test_seek(void **state)
{
    (void)state;
    struct kith_loader_config config = configure("naive32");
    config.augment = (struct kith_augment){.crop = 2, .flip = true};
    struct kith_loader *reference = open_loader(&config);
    config.ahead = true;
    struct kith_loader *moved = open_loader(&config);
    for (int round = 0; round < 30; round++) {
        for (int skip = 0; skip < round % 4; skip++)
            (void)next(reference);
        assert_int_equal(kith_loader_seek(moved, kith_loader_place(reference)),
                         KITH_OK);
        expect_same(reference, moved, 1 + round % 5);
    }
    const struct kith_place beyond = {0, OWN + 1};
    assert_int_equal(kith_loader_seek(moved, beyond), KITH_EINVAL);
    /* Backwards, to the very beginning. */
    const struct kith_place start = {0, 0};
    assert_int_equal(kith_loader_seek(moved, start), KITH_OK);
    assert_int_equal(kith_loader_seek(reference, start), KITH_OK);
    expect_same(reference, moved, 10);
    kith_loader_close(moved);
    kith_loader_close(reference);
}

/* Without a shuffle: in order, and a short batch ends each epoch. */
static void test_in_order(void **state)
{
    (void)state;
    for (int ahead = 0; ahead < 2; ahead++) {
        struct kith_loader_config config = configure("naive32");
        config.rows = NULL;
        config.shuffle = false;
        config.batch = 10;
        config.ahead = ahead == 1;
        struct kith_loader *loader = open_loader(&config);
        for (uint32_t epoch = 0; epoch < 3; epoch++) {
            size_t seen = 0;
            while (seen < ROWS) {
                const struct kith_batch batch = next(loader);
                assert_int_equal(batch.rows, seen < 30 ? 10 : 7);
                for (size_t i = 0; i < batch.rows; i++)
                    assert_int_equal(batch.labels[i], labels[seen + i]);
                seen += batch.rows;
            }
            assert_int_equal(kith_loader_place(loader).epoch, epoch);
            assert_int_equal(kith_loader_place(loader).cursor, ROWS);
        }
        kith_loader_close(loader);
    }
}

/* The value at (y, x, c) of the source image, zero outside. */
static float value_at(uint32_t row, int y, int x, int c)
{
    if (y < 0 || x < 0 || y >= SIDE || x >= SIDE)
        return 0;
    return (float)
        images[row * FEATURES + (uint32_t)((y * SIDE + x) * CHANNELS + c)];
}

/* Which (down, right, turned) makes this image of that row: exactly one. */
static bool explain(const float *image, uint32_t row, int crop, int *down,
                    int *right, bool *turned)
{
    int found = 0;
    for (int flip = 0; flip < 2; flip++) {
        for (int dy = -crop; dy <= crop; dy++) {
            for (int dx = -crop; dx <= crop; dx++) {
                bool same = true;
                for (int i = 0; i < FEATURES && same; i++) {
                    const int c = i % CHANNELS, x = i / CHANNELS % SIDE;
                    const int y = i / CHANNELS / SIDE;
                    const int at = flip == 1 ? SIDE - 1 - x : x;
                    const float want = value_at(row, y + dy, at + dx, c);
                    same = image[i] * 255 > want - 0.01F &&
                           image[i] * 255 < want + 0.01F;
                }
                if (same) {
                    found++;
                    *down = dy;
                    *right = dx;
                    *turned = flip == 1;
                }
            }
        }
    }
    return found == 1;
}

static void test_augment(void **state)
{
    (void)state;
    enum { CROP = 2, STEPS = 500 };
    struct kith_loader_config config = configure("naive32");
    config.augment = (struct kith_augment){.crop = CROP, .flip = true};
    struct kith_loader *loader = open_loader(&config);
    int places[2 * CROP + 1][2 * CROP + 1] = {{0}}, turns = 0;
    for (int step = 0; step < STEPS; step++) {
        const struct kith_batch batch = next(loader);
        for (size_t i = 0; i < batch.rows; i++) {
            int down = 0, right = 0;
            bool turned = false;
            uint32_t row = 0;
            while (labels[row] != batch.labels[i])
                row++;
            assert_true(explain((const float *)batch.inputs + i * FEATURES, row,
                                CROP, &down, &right, &turned));
            places[down + CROP][right + CROP]++;
            turns += turned;
        }
    }
    kith_loader_close(loader);
    /* 2,000 draws over 25 places, mean 80, deviation 9: five of them. */
    for (int i = 0; i < 25; i++)
        assert_in_range(places[i / 5][i % 5], 35, 125);
    assert_in_range(turns, 890, 1110);

    /* Flip alone never moves, crop alone never turns. */
    config.augment = (struct kith_augment){.flip = true};
    loader = open_loader(&config);
    for (int step = 0; step < 10; step++) {
        const struct kith_batch batch = next(loader);
        int down = 0, right = 0;
        bool turned = false;
        uint32_t row = 0;
        while (labels[row] != batch.labels[0])
            row++;
        assert_true(explain(batch.inputs, row, 0, &down, &right, &turned));
    }
    kith_loader_close(loader);
}

static void test_normalise(void **state)
{
    (void)state;
    struct kith_examples shifted = pictures;
    const float mean[4] = {0.1F, 0.2F, 0.3F, 0};
    const float deviation[4] = {0.5F, 0.25F, 2.0F, 1};
    memcpy(shifted.mean, mean, sizeof mean);
    memcpy(shifted.deviation, deviation, sizeof deviation);
    float values[ROWS * FEATURES];
    for (size_t i = 0; i < ROWS * FEATURES; i++)
        values[i] = (float)images[i] / 255;
    for (int kind = 0; kind < 4; kind++) {
        struct kith_loader_config config =
            configure(kind % 2 == 0 ? "naive32" : "naive64");
        config.examples = &shifted;
        shifted.element = kind < 2 ? KITH_ELEMENT_U8 : KITH_ELEMENT_F32;
        shifted.values = kind < 2 ? (const void *)images : values;
        struct kith_loader *loader = open_loader(&config);
        const struct kith_batch batch = next(loader);
        uint32_t row = 0;
        while (labels[row] != batch.labels[1])
            row++;
        for (size_t i = 0; i < FEATURES; i++) {
            const double seen =
                kind % 2 == 0
                    ? (double)((const float *)batch.inputs)[FEATURES + i]
                    : ((const double *)batch.inputs)[FEATURES + i];
            const double want =
                (images[row * FEATURES + i] / 255.0 - (double)mean[i % 3]) /
                (double)deviation[i % 3];
            assert_true(seen > want - 1e-5 && seen < want + 1e-5);
        }
        kith_loader_close(loader);
    }
}

static void expect_window(const struct kith_batch *batch, size_t i,
                          size_t first)
{
    const int32_t *inputs = (const int32_t *)batch->inputs + i * CONTEXT;
    for (size_t k = 0; k < CONTEXT; k++) {
        assert_int_equal(inputs[k], tokens[first + k]);
        assert_int_equal(batch->labels[i * CONTEXT + k], tokens[first + k + 1]);
    }
}

/* Every window of an epoch is shifted alike, epochs differ, the last window
 * ends with the stream; in order there is no shift. Streams in segments are
 * streams. */
static void test_windows(void **state)
{
    (void)state;
    struct kith_segment segments[] = {{tokens, 0, 301},
                                      {tokens + 301, 301, 1},
                                      {tokens + 302, 302, 5},
                                      {tokens + 307, 307, TOKENS - 307}};
    struct kith_examples pieces = words;
    pieces.values = NULL;
    pieces.segments = segments;
    pieces.segment_count = 4;
    for (int kind = 0; kind < 4; kind++) {
        struct kith_loader_config config = configure("naive32");
        config.examples = kind < 2 ? &words : &pieces;
        config.rows = NULL;
        config.ahead = kind % 2 == 1;
        struct kith_loader *loader = open_loader(&config);
        bool differs = false;
        for (uint32_t epoch = 0; epoch < 6; epoch++) {
            struct kith_rng rng;
            kith_rng_init(&rng, 11, KITH_STREAM_WINDOW,
                          (uint64_t)epoch << 32 | 3);
            const size_t shift = kith_rng_below(&rng, CONTEXT);
            differs = differs || shift > 0;
            for (size_t done = 0; done < words.count;) {
                const struct kith_place place = {epoch, done};
                assert_int_equal(kith_loader_seek(loader, place), KITH_OK);
                const struct kith_batch batch = next(loader);
                for (size_t i = 0; i < 4 && done < words.count; i++, done++) {
                    /* Token t has value t: the first says where it is. */
                    const size_t first =
                        (size_t)((const int32_t *)batch.inputs)[i * CONTEXT];
                    assert_true(first % CONTEXT == shift ||
                                first == TOKENS - 1 - CONTEXT);
                    expect_window(&batch, i, first);
                }
            }
        }
        assert_true(differs);
        kith_loader_close(loader);

        config.shuffle = false;
        loader = open_loader(&config);
        for (size_t done = 0; done < words.count;) {
            const struct kith_batch batch = next(loader);
            for (size_t i = 0; i < batch.rows; i++)
                expect_window(&batch, i, done++ * CONTEXT);
        }
        kith_loader_close(loader);
    }
}

/* A forked child has no thread, and goes on all the same. */
static void test_fork(void **state)
{
    (void)state;
    struct kith_loader_config config = configure("naive32");
    struct kith_loader *reference = open_loader(&config);
    config.ahead = true;
    struct kith_loader *loader = open_loader(&config);
    for (int round = 0; round < 10; round++) {
        expect_same(reference, loader, 3);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            bool same = true;
            for (int step = 0; step < 10; step++) {
                const struct kith_batch a = next(reference), b = next(loader);
                same = same && memcmp(a.inputs, b.inputs,
                                      4 * FEATURES * sizeof(float)) == 0;
            }
            kith_loader_close(loader);
            kith_loader_close(reference);
            _exit(same ? 0 : 1);
        }
        int status = 1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    kith_loader_close(loader);
    kith_loader_close(reference);
}

/* Closing while the thread is in a large batch does not wait for its end. */
static void test_close_is_prompt(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        struct kith_loader_config config = configure("naive32");
        config.ahead = true;
        config.batch = i % 2 == 0 ? 1 : 20000;
        config.augment = (struct kith_augment){.crop = 1, .flip = true};
        struct kith_loader *loader = open_loader(&config);
        if (i % 3 == 0 && i % 2 == 0)
            (void)next(loader);
        kith_loader_close(loader);
    }
    kith_loader_close(NULL);
}

static void test_refusals(void **state)
{
    (void)state;
    char error[KITH_DATA_ERROR_BYTES];
    struct kith_loader *loader;
    struct kith_loader_config config = configure("naive32");
    config.batch = 0;
    assert_int_equal(kith_loader_open(&config, &loader, error), KITH_ELIMIT);
    assert_null(loader);
    config = configure("naive32");
    config.augment.crop = SIDE;
    assert_int_equal(kith_loader_open(&config, &loader, error), KITH_EINVAL);
    assert_non_null(strstr(error, "train.augment"));
    config = configure("naive32");
    config.examples = &words;
    config.rows = NULL;
    config.augment.flip = true;
    assert_int_equal(kith_loader_open(&config, &loader, error), KITH_EINVAL);
    config.augment.flip = false;
    kith_loader_close(open_loader(&config));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_stays_valid),
        cmocka_unit_test(test_borrow),
        cmocka_unit_test(test_seek),
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_augment),
        cmocka_unit_test(test_normalise),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_close_is_prompt),
        cmocka_unit_test(test_refusals),
    };
    struct kith_rng rng;
    kith_rng_init(&rng, 1, KITH_STREAM_TEST, 0);
    kith_rng_fill(&rng, images, sizeof images);
    for (size_t i = 0; i < ROWS; i++)
        labels[i] = (int32_t)i;
    for (size_t i = 0; i < TOKENS; i++)
        tokens[i] = (uint16_t)i;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

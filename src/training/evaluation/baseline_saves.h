/* The checkpoints of `kith train`: its file, and that of the best model.
 *
 * Both are written beside the training by one saver (kith/saver.h); one that
 * fails is told once in a row, for the disk may get room again.
 * Test: integration/test_cli_train.sh, test_resume.sh. */
#ifndef KITH_BASELINE_SAVES_H
#define KITH_BASELINE_SAVES_H

#include "kith/baseline.h"
#include "kith/saver.h"

struct baseline_saves {
    const struct kith_baseline_config *config;
    struct kith_worker *worker;
    struct kith_saver *saver;  /* NULL: no checkpoints */
    kith_ns period_ns, due_ns; /* KITH_NEVER: not by time */
    uint64_t kept_step;        /* of the checkpoint at config->save */
    bool kept, kept_best;      /* the last save of each succeeded */
    char best_path[KITH_PATH_BYTES_MAX + 8];
};

/* For what config->save names; a save every `period_ns`, 0 for never. `error`
 * has KITH_DATA_ERROR_BYTES here and below. KITH_ENOMEM. */
KITH_MUST_CHECK enum kith_err kith_baseline_saves_open(
    struct baseline_saves *saves, const struct kith_baseline_config *config,
    struct kith_worker *worker, kith_ns period_ns, char *error);
void kith_baseline_saves_close(struct baseline_saves *saves);

/* Periods are counted from here; `step` is that of the file that stands. */
void kith_baseline_saves_start(struct baseline_saves *saves, kith_ns now_ns,
                               uint64_t step);
/* Begins one if it is time and none is under way. */
void kith_baseline_saves_look(struct baseline_saves *saves,
                              const struct kith_standing *standing);
void kith_baseline_saves_best(struct baseline_saves *saves,
                              const struct kith_standing *standing);
/* Waits until config->save is of this moment. As kith_save_write(). */
KITH_MUST_CHECK enum kith_err
kith_baseline_saves_now(struct baseline_saves *saves,
                        const struct kith_standing *standing, char *error);
/* Until none is under way, and all have been told. */
void kith_baseline_saves_settle(struct baseline_saves *saves);

#endif

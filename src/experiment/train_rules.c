/* `train:`: milestones, and what fits the optimiser, the schedule and the
 * batch.
 */

#include "key_table.h"
#include "kith/text.h"

static enum kith_err milestones_fail(const struct tree *tree,
                                     const struct tree_item *item)
{
    return kith_yaml_refuse_value(
        tree, item, "train.milestones",
        "a list of 1 to 4 shares of all steps, ascending, above 0 and below 1, "
        "such as [0.5, 0.75]");
}

enum kith_err kith_experiment_read_train(const struct tree *tree,
                                         struct kith_experiment *experiment)
{
    struct kith_schedule_config *schedule = &experiment->train.schedule;
    const struct tree_item *list = kith_yaml_find(tree, "train.milestones");
    const uint32_t most = sizeof schedule->milestones / sizeof(double);
    double last = 0;
    if (list == NULL)
        return KITH_OK;
    if (list->kind != TREE_LIST || list->count == 0 || list->count > most)
        return milestones_fail(tree, list);
    const struct tree_item *item = kith_yaml_first(tree, list);
    for (; item != NULL; item = kith_yaml_next(tree, item)) {
        double *share = &schedule->milestones[schedule->milestone_count];
        if (item->kind != TREE_SCALAR ||
            kith_text_double(item->text, share) != KITH_OK ||
            !(*share > last) || !(*share < 1))
            return milestones_fail(tree, item);
        last = *share;
        schedule->milestone_count++;
    }
    return KITH_OK;
}

static enum kith_err rule_optimiser(const struct tree *tree,
                                    const struct kith_experiment *experiment)
{
    const struct kith_optimiser *optimiser = experiment->train.optimiser;
    enum kith_err err = kith_experiment_refuse_unread(
        tree, KITH_READER_OPTIMISER, optimiser->name, optimiser->keys);
    if (err == KITH_OK && experiment->train.config.nesterov &&
        !(experiment->train.config.momentum > 0))
        err = kith_yaml_refuse(tree, "train.nesterov",
                               "found true without train.momentum; allowed: "
                               "with a momentum above 0");
    return err;
}

static enum kith_err rule_schedule(const struct tree *tree,
                                   const struct kith_experiment *experiment)
{
    const enum kith_schedule kind = experiment->train.schedule.kind;
    const bool steps = kind == KITH_SCHEDULE_STEP;
    const struct {
        const char *path;
        bool is_read;
    } keys[] = {
        {"train.floor",
         kind == KITH_SCHEDULE_LINEAR || kind == KITH_SCHEDULE_COSINE},
        {"train.milestones", steps},
        {"train.decay", steps},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!keys[i].is_read && kith_yaml_find(tree, keys[i].path) != NULL)
            return kith_yaml_refuse(tree, keys[i].path,
                                    "schedule %s does not read it; take it out",
                                    kith_schedule_name(kind));
    return steps && experiment->train.schedule.milestone_count == 0
               ? kith_yaml_refuse(tree, "train.schedule",
                                  "found step without train.milestones; "
                                  "allowed: with a list such as [0.5, 0.75]")
               : KITH_OK;
}

enum kith_err
kith_experiment_rule_train(const struct tree *tree,
                           const struct kith_experiment *experiment)
{
    enum kith_err err = rule_optimiser(tree, experiment);
    if (err == KITH_OK)
        err = rule_schedule(tree, experiment);
    if (err == KITH_OK &&
        experiment->train.batch % experiment->train.accumulate != 0)
        err = kith_yaml_refuse(tree, "train.accumulate",
                               "found %u, which does not divide train.batch, "
                               "%u",
                               experiment->train.accumulate,
                               experiment->train.batch);
    return err;
}

/* train/options.h - declares the settings of a training run, checks them, and gives those that affect its results as
 * text.
 */
#ifndef ATT_TRAIN_OPTIONS_H
#define ATT_TRAIN_OPTIONS_H

#include <attscope/train.h>

#include "base/flags/flags.h"

/* The settings of att_train_options, in groups as in help: their flags, ranges and defaults. The groups before
 * ATT_TRAIN_RUN determine the results. */
enum { ATT_TRAIN_REPEATS, ATT_TRAIN_RECIPE, ATT_TRAIN_MIXING, ATT_TRAIN_RUN, ATT_TRAIN_MEASURING, ATT_TRAIN_GROUPS };
ATT_FOR_LAB extern const att_flag_group att_train_groups[ATT_TRAIN_GROUPS];

/* Returns ERR_ARGUMENT if an option breaks the rules of its row, or options contradict each other. Does not look up the
 * metric. */
att_status att_train_options_check(att_context *context, const att_train_options *options);

/* The mixing options of the loader. */
att_mix_options att_train_mix(const att_train_options *options);

/* Finds the index of eval_metric among the task's metrics, by name or label, in capitals or not. Errors: ERR_ARGUMENT,
 * whose message lists the metrics. */
att_status att_train_metric(att_context *context, const att_train_options *options, const att_task_info *task,
                            int *metric);

/* The options that must be equal on a resume: rows that give the names of flag and member. NULL past the last. */
const att_flag *att_train_option_at(int index);
/* Writes the value of that row ("": none), at most ATT_TRAIN_OPTION_TEXT bytes with the NUL, and returns `text`. */
enum { ATT_TRAIN_OPTION_TEXT = 256 };
char *att_train_option_text(const att_train_options *options, const att_flag *row, char text[ATT_TRAIN_OPTION_TEXT]);

/* Returns whether these options mix images with each other (Mixup or CutMix). */
ATT_FOR_LAB bool att_train_mixes(const att_train_options *options);

#endif

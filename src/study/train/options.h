/* train/options.h - checks the options of a training, and gives those that affect its results as text. */
#ifndef ATT_TRAIN_OPTIONS_H
#define ATT_TRAIN_OPTIONS_H

#include <attscope/train.h>

/* Returns ERR_ARGUMENT if an option is out of range. Does not look up the names of optimisers, schedules and
 * metrics. */
att_status att_train_options_check(att_context *context, const att_train_options *options);

/* The mixing options of the loader. */
att_mix_options att_train_mix(const att_train_options *options);

/* Finds the index of eval_metric among the task's metrics. Errors: ERR_ARGUMENT, whose message lists the metrics. */
att_status att_train_metric(att_context *context, const att_train_options *options, const att_task_info *task,
                            int *metric);

/* The options that must be equal on a resume. name: name of the struct member. text: the value, at most
 * ATT_TRAIN_OPTION_TEXT bytes with the NUL. */
enum { ATT_TRAIN_OPTION_TEXT = 64 };
int att_train_option_count(void);
const char *att_train_option_name(int index);
char *att_train_option_text(const att_train_options *options, int index, char text[ATT_TRAIN_OPTION_TEXT]);

#endif

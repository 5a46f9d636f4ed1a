/* train/options.h - the options of a training that decide its bits, as texts. */
#ifndef ATT_TRAIN_OPTIONS_H
#define ATT_TRAIN_OPTIONS_H

#include <attscope/train.h>

/* ERR_ARGUMENT for what is out of range; names are looked up elsewhere. */
att_status att_train_options_check(att_context *context, const att_train_options *options);

/* How images are mixed, as the loader is told. */
att_mix_options att_train_mix(const att_train_options *options);

/* Index of eval_metric among the task's metrics. ERR_ARGUMENT names those. */
att_status att_train_metric(att_context *context, const att_train_options *options, const att_task_info *task,
                            int *metric);

/* The options that a resume must repeat. name: the member's; text: the value, at most ATT_TRAIN_OPTION_TEXT bytes with
 * NUL.
 */
enum { ATT_TRAIN_OPTION_TEXT = 64 };
int att_train_option_count(void);
const char *att_train_option_name(int index);
char *att_train_option_text(const att_train_options *options, int index, char text[ATT_TRAIN_OPTION_TEXT]);

#endif

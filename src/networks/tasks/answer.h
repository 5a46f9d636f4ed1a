/* tasks/answer.h - what tasks read of an answer and of the options with which it is shown. */
#ifndef ATT_TASKS_ANSWER_H
#define ATT_TASKS_ANSWER_H

#include <attscope/task.h>

#include "base/core/export.h"

/* Returns the field `name` and sets *data to its data; NULL if there is none. */
ATT_FOR_LAB const att_field *att_answer_field(const att_batch *answer, const char *name, const void **data);
/* Returns the name of a class; NULL if it has none. */
const char *att_answer_label(const att_answer_options *options, int class_number);
/* Fails with ERR_MISMATCH: the network has no head, `consequence`. */
att_status att_answer_fail_headless(att_context *context, const char *consequence);

#endif

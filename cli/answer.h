/* answer.h - flags that say how a task's predictions are shown. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include "cli.h"

typedef struct cli_answer {
    int most;           /* as in att_answer_options */
    bool outputs;       /* as in att_answer_options */
    const char *labels; /* as cli_classes_name() takes it */
} cli_answer;

/* The flags of one task, in cli/task_<name>.c. */
extern const att_flag_group cli_group_answer;

#endif

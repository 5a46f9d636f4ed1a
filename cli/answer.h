/* answer.h - flags that control how predictions of a task are shown. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include "cli.h"

typedef struct cli_answer {
    int topk;           /* as in att_answer_options */
    bool outputs;       /* as in att_answer_options */
    const char *labels; /* the argument of cli_classes_name() */
} cli_answer;

/* The flags for answers of a task; cli/task_<name>.c defines them. */
extern const att_flag_group cli_group_answer;

#endif

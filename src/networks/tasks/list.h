/* tasks/list.h - the built-in tasks, one line each. */
#ifndef ATT_TASKS_LIST_H
#define ATT_TASKS_LIST_H

#include "networks/tasks/task.h"

#define ATT_TASK_LIST(X) X(classification) X(segmentation) X(detection)

#define ATT_TASK_DECLARE(name) extern const att_task att_task_##name;
ATT_TASK_LIST(ATT_TASK_DECLARE)
#undef ATT_TASK_DECLARE

#endif

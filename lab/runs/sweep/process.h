/* sweep/process.h - identifies processes, so that others of the same machine can tell whether they have ended. */
#ifndef ATT_SWEEP_PROCESS_H
#define ATT_SWEEP_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

enum { ATT_PROCESS_NAME = 96, ATT_PROCESS_MACHINE = 112, ATT_PROCESS_TOKEN = 17 };

typedef struct att_process {
    char name[ATT_PROCESS_NAME];       /* for people: "node7:4711", host name and process number */
    char machine[ATT_PROCESS_MACHINE]; /* one start of one machine, and the namespace of its process numbers;
                                          "": unknown */
    int64_t number;
    int64_t started; /* start time of the process in clock ticks, since a number may be used again; -1: unknown */
} att_process;

att_process att_process_self(void);
/* Returns true if the process has certainly ended: it ran on this machine, and does not exist. */
bool att_process_has_ended(const att_process *process);

/* Writes 16 random hexadecimal digits. */
void att_process_make_token(char token[ATT_PROCESS_TOKEN]);

#endif

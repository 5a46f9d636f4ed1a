/* train/processes.h - the processes of a training run or evaluation: what they compare, and how they stop together. */
#ifndef ATT_TRAIN_PROCESSES_H
#define ATT_TRAIN_PROCESSES_H

#include <attscope/comm.h>
#include <attscope/progress.h>

/* How one process does, as the others learn it. */
typedef struct att_pulse {
    double waited; /* seconds in this stage */
    int64_t stop;  /* 1: it was asked to stop */
} att_pulse;

/* Zero-initialised, it stands for one process alone. */
typedef struct att_processes {
    att_context *context;
    att_comm *comm;
    att_pulse *pulses;      /* [processes] */
    double started, waited; /* when the stage began, and seconds waited for others before it */
    int slowest_rank;       /* as in att_progress */
    double others_share;    /* as in att_progress */
} att_processes;

/* comm may be NULL. On success the caller calls att_processes_close(). */
att_status att_processes_open(att_context *context, att_comm *comm, att_processes *processes);
void att_processes_close(att_processes *processes);

/* Starts a stage, whose waiting times are counted from here. */
void att_processes_begin(att_processes *processes);
/* All processes meet: *stop becomes true if it is so in any of them. */
att_status att_processes_meet(att_processes *processes, bool *stop);
/* Fills in the members of *progress that concern the processes, as of the last meeting. */
void att_processes_describe(const att_processes *processes, att_progress *progress);

/* The least of the values that the processes have. */
att_status att_processes_least(att_processes *processes, int value, int *least);

/* values[i] becomes the sum of the values[i] of all processes. */
att_status att_processes_sum(att_processes *processes, int64_t *values, int64_t count);

/* A setting that all processes must have the same. */
typedef struct att_shared_line {
    const char *what, *value;
} att_shared_line;
/* Fails with ERR_MISMATCH in all processes if a line differs from that of rank 0; the message names the first. `count`
 * and the order of the lines must not depend on the process. */
att_status att_processes_compare(att_processes *processes, const att_shared_line *lines, int count);

#endif

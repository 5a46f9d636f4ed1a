/* results/record.h - the record of a run: the numbers on which its results are judged. attscope/lab/results.h has its
 * format. */
#ifndef ATT_RESULTS_RECORD_H
#define ATT_RESULTS_RECORD_H

#include <jansson.h>

#include "lab/papers/results/values.h"

/* Reads the record of a run. *root: NULL if there is none. Caller frees *root with json_decref(). Errors: ERR_FORMAT,
 * ERR_IO, ERR_MEMORY. */
att_status att_record_open(att_context *context, const char *records, const char *run, json_t **root);

/* The numbers of a reading; none, and not `found`, if the record lacks them or root is NULL. Errors: ERR_FORMAT. */
att_status att_record_values(att_context *context, const json_t *root, const att_reading *reading,
                             att_result_values *values);

/* Whether the record is of the commands and the recipe that the run has now. */
bool att_record_is_of(const json_t *root, const att_result_run *run);

#endif

/* experiments/record.h - the record of an experiment, which the report shows. */
#ifndef ATT_EXPERIMENTS_RECORD_H
#define ATT_EXPERIMENTS_RECORD_H

#include <attscope/event.h>
#include <attscope/lab/experiments.h>

/* Zero-initialise. */
typedef struct att_experiment_record {
    att_context *context;
    att_sink sink; /* empty if nothing is recorded */
    double started;
} att_experiment_record;

/* Opens the record in the folder; NULL: none. On success the caller closes it. Errors: those of
 * att_store_open_measured(). */
att_status att_experiment_record_open(att_experiment_record *record, att_context *context, const char *folder);
/* Writes the record, which replaces an earlier one. Does nothing if there is none. */
att_status att_experiment_record_write(const att_experiment_record *record, const att_experiment_info *info,
                                       const att_experiment_options *options, const att_experiment_result *result);
void att_experiment_record_close(att_experiment_record *record);

#endif

/* report/run.h - the records of a run's folder, in memory. */
#ifndef ATT_REPORT_RUN_H
#define ATT_REPORT_RUN_H

#include <attscope/lab/yaml.h>

#include "lab/report/downsample.h"
#include "lab/report/page_figures.h"

typedef struct att_report_run {
    att_context *context;
    const char *folder;            /* owned by the caller */
    char *name;                    /* last component of the folder */
    json_t *begin, *end;           /* begin and end event of metrics.jsonl, or NULL */
    att_downsampled steps, epochs; /* of json_t */
    att_downsampled development;   /* att_figures: "measure" events of the training, of single heads only by_head */
    json_t *measured_begin;        /* begin event of measure.jsonl, or NULL */
    att_downsampled measured;      /* att_figures: "measure" events of measure.jsonl, or the training's last */
    bool has_measure_file;         /* `measured` is from measure.jsonl */
    const char *maps_left_out;     /* reason why existing maps are not shown, a static string; or NULL */
    att_downsampled warnings;      /* json_t: warning events of metrics.jsonl */
    att_yaml *settings;            /* args.yaml, or NULL */
} att_report_run;

/* Reads a run's folder. On success the caller frees *run with att_report_run_free(). Errors: as att_report_write(). */
att_status att_report_run_read(att_context *context, const char *folder, att_report_run *run);
void att_report_run_free(att_report_run *run);

/* Writes members of the current JSON object: folder, begin, end, settings, steps, epochs, measured_begin,
 * has_measure_file, maps_left_out, measured, development, warning_count, warnings. */
void att_report_run_write(att_json_writer *json, const att_report_run *run);

/* Whether an option of a training run has no influence on its result: folders, threads, what is recorded. */
ATT_FOR_LAB bool att_run_is_volatile(const char *option);

#endif

/* report/run.h - what a run's folder says, in memory. */
#ifndef ATT_REPORT_RUN_H
#define ATT_REPORT_RUN_H

#include <attscope/lab/yaml.h>

#include "report/downsample.h"
#include "report/page_figures.h"

typedef struct att_report_run {
    att_context *context;
    const char *folder;            /* the caller's */
    char *name;                    /* the folder's last part */
    json_t *begin, *end;           /* events of metrics.jsonl; NULL */
    att_downsampled steps, epochs; /* of json_t */
    att_downsampled development;   /* of att_figures: "measure" events of the training, without single heads */
    json_t *measured_begin;        /* event of measure.jsonl; NULL */
    att_downsampled measured;      /* of att_figures: each "measure" of measure.jsonl, else the training's last */
    bool measured_apart;           /* they are measure.jsonl's */
    const char *maps_left_out;     /* why its maps are not shown though there are some, static; NULL */
    att_downsampled warnings;      /* of json_t: events of metrics.jsonl */
    att_yaml *settings;            /* args.yaml; NULL */
} att_report_run;

/* Errors as att_report_write() says them. After success *run is the caller's, freed by att_report_run_free(). */
att_status att_report_run_read(att_context *context, const char *folder, att_report_run *run);
void att_report_run_free(att_report_run *run);

/* Members of the object that is open: folder, begin, end, settings, steps, epochs, measured_begin, measured,
 * measured_apart, maps_left_out, development, warnings. */
void att_report_run_write(att_json_writer *json, const att_report_run *run);

#endif

/* attscope/lab/report.h - one page of HTML that shows runs: training, measured figures, attention maps.
 *
 * The page is one file that asks nothing of a network: styles, scripts and data lie in it. What it shows of a run comes
 * from the run's folder, each file where it is there:
 *
 *   metrics.jsonl      the training (attscope/store.h)
 *   measure.jsonl      figures of a checkpoint: run_begin, measure, run_end
 *   args.yaml          settings
 *   maps.safetensors   attention maps of K images (attscope/maps.h), each with its caption; left out, with a warning,
 *                      where they are of other weights than measure.jsonl or in a version of the format that is not
 * read
 *
 * Every file is taken for hostile: no text of theirs becomes markup.
 *
 * Figures of a query (entropy, masses, the largest weight) are those that maps.safetensors has. The weights themselves
 * only colour the maps; the page keeps 8 bits of them.
 */
#ifndef ATTSCOPE_LAB_REPORT_H
#define ATTSCOPE_LAB_REPORT_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ATT_REPORT_MAX_RUNS = 64 };

typedef struct att_report_options {
    const char *title; /* the page's heading; NULL: what the runs, or their sweep, are called */
    size_t map_bytes;  /* most bytes of images and maps, of all runs together. All runs show the same images, as far as
                          they have them: those of the most runs first. What does not fit is left out, and the page
                          says so */
} att_report_options;
/* No title, 16 MiB. */
ATT_API att_report_options att_report_options_defaults(void);

typedef struct att_report_result {
    size_t bytes;                  /* of the page */
    int runs;                      /* on it */
    int64_t images, images_wanted; /* with attention maps: on the page, in the runs' folders */
} att_report_result;

/* Writes the page of the runs in `folders`, in that order, in place of any file at `path`: whole or not at all. A
 * folder with a sweep.json (attscope/lab/sweep.h) stands for those of its runs that are measured; a folder that is
 * named twice counts once, and the log says so. Folders, and runs, are 1 to ATT_REPORT_MAX_RUNS. options: NULL means
 * the defaults. result: filled after success; may be NULL. Errors: ERR_NOT_FOUND where a folder is missing; ERR_FORMAT
 * where it holds neither metrics.jsonl nor measure.jsonl (the log names the runs in it), or one of its files is damaged
 * (which, the line and what was expected; a last line that was cut short is left out, with a warning); ERR_ARGUMENT
 * (count); ERR_UNSUPPORTED in a library that was built without the page (-DATT_REPORT=OFF); ERR_IO, ERR_MEMORY. */
ATT_API att_status att_report_write(att_context *context, const char *const *folders, int count,
                                    const att_report_options *options, const char *path, att_report_result *result);

#ifdef __cplusplus
}
#endif
#endif

/* attscope/lab/report.h - one HTML page that shows runs: training, measured figures, attention maps.
 *
 * The page is one file with its styles, scripts and data; it needs no network connection. It shows these files of a
 * run's folder, if they exist:
 *
 *   metrics.jsonl      the training (attscope/store.h)
 *   measure.jsonl      figures of a checkpoint: run_begin, measure, run_end
 *   args.yaml          settings
 *   maps.safetensors   attention maps of K images with captions (attscope/maps.h). They are left out, with a
 *                      warning, if they are of other weights than measure.jsonl, or in an unknown version of
 *                      the format
 *
 * The files are not trusted: no text from them becomes markup.
 *
 * The figures of a query (entropy, its weights on itself and on prefix tokens, its largest weight) are taken from
 * maps.safetensors unchanged. The attention weights only colour the maps; the page has 8 bits of each.
 */
#ifndef ATTSCOPE_LAB_REPORT_H
#define ATTSCOPE_LAB_REPORT_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ATT_REPORT_MAX_RUNS = 64 };

typedef struct att_report_options {
    const char *title; /* the page's heading; NULL: the name of the runs, or of their sweep */
    size_t map_bytes;  /* limit for the bytes of all images and maps. All runs show the same images, as far as they have
                          maps of them; images in most runs come first. Maps beyond the limit are left out, and the page
                          reports it */
    const char *reference; /* folder of the run from whose trajectory the page shows the deviations of the others; it is
                              added to the runs if it is not one of them. NULL: none */
} att_report_options;
/* No title, 16 MiB, no reference. */
ATT_API att_report_options att_report_options_defaults(void);

typedef struct att_report_result {
    size_t bytes;          /* size of the page */
    int runs;              /* runs on the page */
    int64_t images;        /* images with attention maps on the page */
    int64_t images_wanted; /* images with attention maps in the runs' folders */
} att_report_result;

/* Writes a page with the runs in `folders`, in this order. It replaces the file at `path` in one step; after a failure
 * that file is unchanged. A folder with sweep.json (attscope/lab/sweep.h) stands for its measured runs; another folder
 * that is not a run's stands for the runs directly in it, in the order of their names. A folder that is given twice
 * counts once, and the log reports it. An incomplete last line of a file is left out with a warning. There
 * may be 1 to ATT_REPORT_MAX_RUNS folders, and as many runs. options: NULL means the defaults. result: filled on
 * success; may be NULL. Errors: ERR_NOT_FOUND (a folder is missing); ERR_FORMAT (a folder has neither metrics.jsonl nor
 * measure.jsonl, nor runs in it, and the message names a folder below it that has; a file is damaged, and the message
 * says which line and what was expected); ERR_ARGUMENT (count; NULL for a folder or `path`; `path` is one of the files
 * above); ERR_UNSUPPORTED in a library built without the page (-DATT_REPORT=OFF); ERR_IO, ERR_MEMORY. */
ATT_API att_status att_report_write(att_context *context, const char *const *folders, int count,
                                    const att_report_options *options, const char *path, att_report_result *result);

#ifdef __cplusplus
}
#endif
#endif

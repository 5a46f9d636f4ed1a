/* report/map_choice.h - which images' maps a page has room for. */
#ifndef ATT_REPORT_MAP_CHOICE_H
#define ATT_REPORT_MAP_CHOICE_H

#include "report/map_file.h"

/* Zero-initialise. */
typedef struct att_map_choice {
    int64_t *images; /* their numbers in the file, in the order of the page */
    int64_t count;
} att_map_choice;

/* Shares `bytes` so that all runs show the same images. Images of the same name are one picture where their runs have
 * the same number in `collections`. Pictures are taken whole, for every run that has them, as long as there is room:
 * those of more runs first, then in the order of the files. Of the first picture alone there may be room for some runs
 * only. maps: one a run, without a file where it has none; collections: one a run; chosen: one a run, whose images the
 * caller frees, after failure too. ERR_MEMORY. */
att_status att_map_choices_make(att_context *context, const att_map_file *maps, const int *collections, int runs,
                                size_t bytes, att_map_choice *chosen);

#endif

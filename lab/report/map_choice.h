/* report/map_choice.h - selects the images whose maps a page shows. */
#ifndef ATT_REPORT_MAP_CHOICE_H
#define ATT_REPORT_MAP_CHOICE_H

#include "lab/report/map_file.h"

/* Zero-initialise. */
typedef struct att_map_choice {
    int64_t *images; /* indices in the file, in the order of the page */
    int64_t count;
} att_map_choice;

/* Selects images within a budget of `bytes`, so that all runs show the same images. Images with the same name count as
 * one picture if their runs have the same number in `collections`. A picture is selected for all runs that have it, as
 * long as the budget suffices: pictures of more runs first, then in the order of the files. Only the first picture may
 * be selected for some of its runs only. maps, collections, choices: one item per run; a run without maps has no file
 * in `maps`. The caller frees the `images` of each choice, also after a failure. Errors: ERR_MEMORY. */
att_status att_map_choices_make(att_context *context, const att_map_file *maps, const int *collections, int runs,
                                size_t bytes, att_map_choice *choices);

#endif

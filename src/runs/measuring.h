/* runs/measuring.h - a measurement at work. */
#ifndef ATT_RUNS_MEASURING_H
#define ATT_RUNS_MEASURING_H

#include <time.h>

#include <attscope/checkpoint.h>
#include <attscope/lab/measuring.h>

#include "core/text.h"

typedef struct att_measuring {
    att_context *context;
    att_network *network;
    const char *checkpoint; /* its file */
    const char *const *data;
    int data_count;
    const att_measuring_options *options;
    att_dataset *dataset;
    bool unlabelled; /* labels are not looked at */
    att_text with;   /* the instruments at work */
    att_measure *measure;
    int64_t *chosen; /* images with maps, where a list names them */
    int chosen_count;
    att_checkpoint_info stood; /* where the checkpoint's training stood */
    bool folder_is_new;
    att_sink records;                    /* open where there is a folder */
    char weights[ATT_WEIGHTS_DIGEST];    /* what is measured, */
    char contents[ATT_DATASET_CONTENTS]; /* and on which images */
    struct timespec begun;
    att_measured *found;
} att_measuring;

bool att_measuring_wants_maps(const att_measuring_options *options);

/* measured_folder.c: the folder of the records of the checkpoint at this path; "" where none are kept. */
att_status att_measuring_folder(att_context *context, const char *checkpoint, const att_measuring_options *options,
                                char folder[ATT_RUN_PATH]);
/* Opens the records before the work, so that a folder that takes none is told of at once. */
att_status att_measuring_open_records(att_measuring *m);
/* A folder that was made for records that never came goes again. */
void att_measuring_close_records(att_measuring *m);

/* measured_records.c */
att_status att_measuring_write_records(const att_measuring *m);
/* maps.safetensors; where no maps are asked for, only the log tells of maps of other weights. */
att_status att_measuring_write_maps(const att_measuring *m);

#endif

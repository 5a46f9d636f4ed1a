/* records/measuring.h - the state of a measurement. */
#ifndef ATT_RECORDS_MEASURING_H
#define ATT_RECORDS_MEASURING_H

#include <time.h>

#include <attscope/checkpoint.h>
#include <attscope/lab/measuring.h>

#include "base/core/text.h"
#include "engine/weights/weights.h"
#include "lab/runs/records/raw.h"

typedef struct att_measuring {
    att_context *context;
    att_network *network;
    const char *checkpoint; /* path of the network's file, or its name if the weights came from memory */
    bool from_memory;
    const char *const *data;
    int data_count;
    const att_measuring_options *options;
    att_dataset *dataset;
    bool unlabelled; /* labels are not used */
    att_text with;   /* the list of instruments */
    att_measure *measure;
    att_raw *raw;    /* NULL: no raw output */
    int64_t *chosen; /* images to write maps of, if options->map_images names them */
    int chosen_count;
    att_checkpoint_info stood; /* the position of the checkpoint in its training */
    bool folder_is_new;
    att_measurement *details; /* figures of the task beside its metrics */
    int detail_count;
    att_arena names;                     /* of the details */
    att_sink records;                    /* sink of the records; open if there is a folder */
    char weights[ATT_WEIGHTS_DIGEST];    /* digest of the weights */
    char contents[ATT_DATASET_CONTENTS]; /* digest of the images */
    struct timespec begun;
    att_measured *found;
} att_measuring;

bool att_measuring_wants_maps(const att_measuring_options *options);
/* Whether the weights are drawn anew. */
static inline bool att_measuring_initialises(const att_measuring_options *options)
{
    return options->init_seed > 0;
}

/* measured_folder.c: writes the folder of the records of the checkpoint at this path; "" if nothing is recorded.
 * from_memory: `checkpoint` is not a path but the network's name. */
att_status att_measuring_folder(att_context *context, const char *checkpoint, bool from_memory,
                                const att_measuring_options *options, char folder[ATT_RUN_PATH]);
/* Opens the records before the measurement, so that a folder that cannot be written fails at once. */
att_status att_measuring_open_records(att_measuring *m);
/* Closes the records. Removes the folder if it was made for this measurement and is empty. */
void att_measuring_close_records(att_measuring *m);

/* budget.c: appends costly instruments to m->with, as far as options->budget allows. Call it when the data set is open.
 */
att_status att_measuring_spend_budget(att_measuring *m);

/* measured_records.c */
att_status att_measuring_write_records(const att_measuring *m);
/* Writes maps.safetensors if maps are requested. Otherwise logs a message if the folder has maps of other weights. */
att_status att_measuring_write_maps(const att_measuring *m);

#endif

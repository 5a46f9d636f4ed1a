/* ablation/ablation.h - the struct of an ablation, and functions shared by its files. */
#ifndef ATT_ABLATION_ABLATION_H
#define ATT_ABLATION_ABLATION_H

#include <attscope/lab/ablation.h>

#include "base/core/memory.h"
#include "study/explore/explorer.h"

/* A head, branch or token. */
typedef struct att_cut {
    att_ablated kind;
    int part, head;
} att_cut;

/* What is changed together. */
typedef struct att_ablated_part {
    const char *name;
    att_cut *cuts;
    int count, room;
} att_ablated_part;

typedef struct att_ablated_image {
    const char *name;
    int64_t index;
    int label;
    bool labelled;
} att_ablated_image;

/* The answers of the network to all images with one change. */
typedef struct att_ablated_answers {
    double *loss; /* [capacity] */
    bool *right;
} att_ablated_answers;

typedef struct att_ablated_figure {
    att_ablated kind;
    char name[64];
    double *values; /* [parts] */
    att_ablation_correlation correlation;
} att_ablated_figure;

struct att_ablation {
    att_context *context;
    att_arena arena; /* names, cuts, answers */
    att_network *network;
    att_explorer *explorer;
    struct {
        const char *scope;
        int heads;
    } * layers; /* [layer_count]: the attention layers, also when there is no explorer any more */
    int layer_count;
    bool uniform, greedy;
    double bound;
    int samples; /* of a run, at most */

    att_ablated_part *parts; /* in a greedy ablation the candidates of a step */
    int part_count, part_room;
    att_ablated_part kept; /* greedy: removed for good */

    int64_t capacity, image_count; /* images */
    att_ablated_image *images;
    att_ablated_answers *answers; /* [1 + part_count]; first those of the unchanged network */
    int classes;
    int64_t runs, pass_runs; /* runs of an image, and those of all passes that are begun */
    double seconds, started;

    /* conclusions */
    att_ablation_change *changes; /* [part_count] */
    int *ranked;                  /* [part_count] */
    att_ablated_figure *figures;
    int figure_count, figure_room;

    float *tile; /* a small batch, several times */
    att_progress_fn progress;
    void *progress_user;
};

/* select.c: reads the lists into ablation->parts. Errors: ERR_ARGUMENT, ERR_UNSUPPORTED, ERR_MEMORY. */
att_status att_ablation_select(att_ablation *ablation, const att_ablation_options *options);

/* run.c: makes room for the answers to `images` images. Errors: ERR_MEMORY. */
att_status att_ablation_allocate(att_ablation *ablation, int64_t images);
/* Runs the batch, images of the data set in the network's size, unchanged and with each change. Errors: those of
 * running; ERR_STOPPED. */
att_status att_ablation_observe(att_ablation *ablation, const att_batch *batch, const att_dataset *dataset);

/* figures.c: computes changes and ranks of the images seen so far. Errors: ERR_MEMORY. */
att_status att_ablation_conclude(att_ablation *ablation);
/* correlate.c: correlates the changes with the figures of `measure`. Errors: ERR_MEMORY. */
att_status att_ablation_correlate(att_ablation *ablation, const att_measure *measure);

/* ablate.c: prepares an ablation for images of the network's size. Of the options, greedy and the reading of images do
 * not matter. On success the caller owns *ablation. Errors: those of att_ablate() before images are read. */
att_status att_ablation_create(att_network *network, const att_ablation_options *options, int64_t images,
                               att_ablation **ablation);

#endif

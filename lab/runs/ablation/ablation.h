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

/* Parts, and the answers without each of them. */
typedef struct att_ablated_parts {
    att_ablated_part *items;
    int count, room;
    att_ablated_answers *answers; /* [1 + count]; first those of the unchanged network */
} att_ablated_parts;

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
        int heads, prefix, grid_h, grid_w;
    } * layers; /* [layer_count]: the attention layers, also when there is no explorer any more */
    int layer_count;
    bool uniform, greedy;
    double bound;
    int samples; /* of a run, at most */

    att_ablated_parts tried; /* without which images are run; in a greedy ablation the candidates of a step */
    att_ablated_parts steps; /* greedy */
    att_ablated_part kept;   /* greedy: removed for good */

    int64_t capacity, image_count; /* images: of the data set, and those that were seen */
    int64_t pass_count;            /* images that this pass has seen; a greedy ablation has a pass for each step */
    att_ablated_image *images;
    int classes;
    int64_t runs, pass_runs; /* runs of an image, and those of all passes that are begun */
    double seconds, started;

    /* conclusions */
    att_ablation_change *changes; /* of the parts that are shown */
    int *ranked;
    att_ablated_figure *figures;
    int figure_count, figure_room;

    bool reads_texts;
    const char *vector; /* the output that answers are compared by; NULL: the scores of classes */
    float *plain;       /* of the unchanged network, for the last text */
    char *tile;         /* the inputs of a small batch, several times */
    att_progress_fn progress;
    void *progress_user;
};

/* The parts that are shown: of a greedy ablation the steps so far. */
static inline const att_ablated_parts *att_ablation_shown(const att_ablation *ablation)
{
    return ablation->greedy ? &ablation->steps : &ablation->tried;
}

/* select.c: reads the lists into ablation->tried. Errors: ERR_ARGUMENT, ERR_UNSUPPORTED, ERR_MEMORY. */
att_status att_ablation_select(att_ablation *ablation, const att_ablation_options *options);

/* run.c: makes room for the answers to `images` images, and for the steps. Errors: ERR_MEMORY. */
att_status att_ablation_allocate(att_ablation *ablation, int64_t images);
/* Runs the batch, images of the data set in the network's size, unchanged and with each change. dataset: NULL: the
 * batch is one text. Errors: those of running; ERR_STOPPED. */
att_status att_ablation_observe(att_ablation *ablation, const att_batch *batch, const att_dataset *dataset);

/* greedy.c: after all images of a pass: chooses the next step of a greedy ablation, and begins another pass unless
 * nothing more can be removed. Returns in *done whether there are no further passes. Errors: ERR_MEMORY. */
att_status att_ablation_end_pass(att_ablation *ablation, bool *done);

/* figures.c: computes changes and ranks of what is shown, of the images seen so far. Errors: ERR_MEMORY. */
att_status att_ablation_conclude(att_ablation *ablation);
/* The instruments whose figures are correlated, for att_network_observe(). */
#define ATT_ABLATION_INSTRUMENTS "entropy?,distance?,nsi?,gate?"
/* correlate.c: correlates the changes with the figures of `measure`. Errors: ERR_MEMORY. */
att_status att_ablation_correlate(att_ablation *ablation, const att_measure *measure);

/* ablate.c: parts of preparing one. */
att_status att_ablation_check_bound(att_network *network, const att_ablation_options *options);
/* An ablation without explorer and parts, which att_ablation_destroy() frees. */
att_status att_ablation_new(att_network *network, const att_ablation_options *options, att_ablation **ablation);
att_explorer_form att_ablation_form(const att_ablation *ablation, const att_ablation_options *options);
att_status att_ablation_note_layers(att_ablation *ablation);
/* Frees what only runs need. */
void att_ablation_end_runs(att_ablation *ablation);
/* texts.c: 1 less the cosine of the angle between two vectors. */
double att_ablation_distance(const float *a, const float *b, int64_t count);

/* ablate.c: prepares an ablation for images of the network's size. Of the options, the reading of images does not
 * matter. On success the caller owns *ablation. Errors: those of att_ablate() before images are read. */
att_status att_ablation_create(att_network *network, const att_ablation_options *options, int64_t images,
                               att_ablation **ablation);

#endif

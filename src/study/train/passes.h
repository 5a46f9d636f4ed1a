/* train/passes.h - runs a network on photographs at several scales, mirrored, and in windows (att_pass_options). */
#ifndef ATT_TRAIN_PASSES_H
#define ATT_TRAIN_PASSES_H

#include <attscope/evaluate.h>

/* How photographs are run; filled by the caller. */
typedef struct att_passes {
    const att_task *task; /* with pixel_logits */
    att_pass_options options;
    att_transform_options transform; /* of the network's images, which are the windows; decides pixel values */
    att_field image;                 /* the network's input */
    int most_windows;                /* in a run */
    /* Runs the network on images->count images of the field `image`, of any height and width. */
    att_status (*run)(void *user, const att_batch *images, att_batch *answers);
    void *user;
} att_passes;

/* Whether the options ask for anything. */
bool att_passes_are_on(const att_pass_options *options);
/* Checks task, options and transform. Errors: ERR_UNSUPPORTED (a task that gives pixels no classes), ERR_ARGUMENT. */
att_status att_passes_check(att_context *context, const att_passes *passes);

/* Sets *classes to the class of each pixel of the photograph, which the caller frees, and *finite to whether the
 * network's outputs are. Errors: ERR_UNSUPPORTED (a photograph that is too narrow to be resized); those of run();
 * ERR_MISMATCH (the network has no output with the task's pixel_logits); ERR_MEMORY. */
att_status att_passes_classify(att_context *context, const att_passes *passes, const att_image *photograph,
                               att_mask *classes, bool *finite);

#endif

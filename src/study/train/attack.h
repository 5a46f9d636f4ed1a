/* train/attack.h - adversarial images, by the gradient of the loss with respect to the image. */
#ifndef ATT_TRAIN_ATTACK_H
#define ATT_TRAIN_ATTACK_H

#include <attscope/evaluate.h>

#include "networks/tasks/task.h"

/* The fast gradient sign method (Goodfellow et al., ICLR 2015): x + epsilon sign(dL/dx) for pixels x in [0, 1], then
 * limited to [0, 1]. L is the task's loss without regularisation. */
typedef struct att_attack {
    att_context *context;
    att_graph *graph; /* copy of the model's, with the loss */
    att_plan *plan;
    att_session *session;
    const char *image;                      /* name of the input that is an image */
    char gradient[64];                      /* name of its gradient */
    bool wide;                              /* the graph is in F64, and so is the gradient */
    int64_t pixels;                         /* values of an image, channels last */
    const att_transform_options *transform; /* for mean and std */
    double epsilon;
    float *images;     /* [max_rows, pixels], adversarial */
    void *gradients;   /* [max_rows, pixels], in the type of the graph */
    double *converted; /* [max_rows, pixels], with `wide`: the original images in F64 */
} att_attack;

/* options, competing: those of the evaluation (att_task_settings.competing). max_rows: images of this process in a
 * batch. `transform` must outlive the attack. On failure *attack is zeroed. */
att_status att_attack_create(const att_model *model, att_weights *weights, const att_task *task,
                             const att_evaluate_options *options, const bool *competing,
                             const att_transform_options *transform, int max_rows, att_attack *attack);
void att_attack_free(att_attack *attack);

/* Computes the adversarial images of this process's rows of a batch. *images: [rows, pixels], valid until the next
 * call. */
att_status att_attack_run(att_attack *attack, const att_batch *batch, const void **images);

#endif

/* train/teaching.h - the teacher of a run: it computes the teacher's outputs for each batch, which the loss reads. */
#ifndef ATT_TRAIN_TEACHING_H
#define ATT_TRAIN_TEACHING_H

#include <attscope/train.h>

#include "engine/weights/weights.h"
#include "networks/tasks/task.h"
#include "study/train/inference.h"

/* Zero: there is no teacher. */
typedef struct att_teaching {
    att_context *context;
    const att_train_options *options;
    const att_task *task;
    const att_task_settings *settings;
    att_field field; /* the input of the loss that the answers give */
    int rows;        /* most images of a batch in this process */
    int channels;
    int64_t pixels_each;       /* pixels of an image */
    const char *image;         /* name of the input that is an image */
    float factor[3], shift[3]; /* by channel: the teacher's value = factor value of the training + shift */
    bool rescales;             /* any of them is not 1 or 0 */
    att_inference inference;
    float *pixels;  /* [rows] images for the teacher; NULL: it takes those of the training */
    char *read;     /* [rows] of `field` */
    double seconds; /* time in which the teacher computed */
} att_teaching;

/* Returns the teacher's name for messages and records; "" without a teacher. */
const char *att_teacher_name(const att_teacher *teacher);
/* Writes a digest of the teacher's weights, architecture and preprocessing. */
att_status att_teacher_digest(const att_teacher *teacher, char text[ATT_WEIGHTS_DIGEST]);

/* Fills *teaching, without allocating, if there is a teacher that the task's options ask for. Both `settings` and
 * `options` must outlive it. Errors: ERR_MISMATCH if the teacher does not fit the student; ERR_ARGUMENT if its model or
 * weights are NULL. */
att_status att_teaching_prepare(const att_train_options *options, const att_model *student, const att_task *task,
                                const att_task_settings *settings, const att_transform_options *transform,
                                att_teaching *teaching);
/* Whether this input of the loss comes from the teacher. */
bool att_teaching_gives(const att_teaching *teaching, const char *input);
/* Bytes of memory that att_teaching_open() takes. */
att_status att_teaching_bytes(const att_teaching *teaching, size_t *bytes);
att_status att_teaching_open(att_teaching *teaching);
void att_teaching_close(att_teaching *teaching);

/* Runs the teacher on this process's rows of the batch. *field: what the loss reads, [rows] of teaching->field, valid
 * until the next call. ERR_NONFINITE if an answer contains NaN or infinity. */
att_status att_teaching_run(att_teaching *teaching, const att_batch *batch, const void **field);

#endif

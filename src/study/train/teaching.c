#include "study/train/teaching.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/random.h"
#include "base/core/threads.h"
#include "engine/session/session.h"
#include "engine/weights/weights.h"
#include "networks/models/family.h"
#include "study/train/clock.h"

/* --- the teacher -------------------------------------------------------------------------------------------------- */

const char *att_teacher_name(const att_teacher *teacher)
{
    return !teacher ? "" : teacher->name ? teacher->name : att_model_name(teacher->model);
}

att_status att_teacher_digest(const att_teacher *teacher, char text[ATT_WEIGHTS_DIGEST])
{
    char identity_text[ATT_IDENTITY_TEXT];
    const att_identity identity = att_model_identity(teacher->model);
    att_context *context = att_graph_context(att_model_graph(teacher->model));
    ATT_TRY(att_model_identity_text(context, &identity, identity_text, sizeof identity_text));
    ATT_TRY(att_weights_digest(teacher->weights, text));
    const uint64_t digest = att_random_hash_more(att_random_hash(text), identity_text, strlen(identity_text));
    snprintf(text, ATT_WEIGHTS_DIGEST, "%016" PRIx64, digest);
    return ATT_OK;
}

/* Returns ERR_MISMATCH unless the teacher takes the student's inputs. */
static att_status check_inputs(const att_teaching *t, const att_model *teacher, const att_model *student)
{
    char own[ATT_INPUTS_TEXT], other[ATT_INPUTS_TEXT];
    if (att_model_same_inputs(teacher, student))
        return ATT_OK;
    return att_fail(t->context, ATT_ERR_MISMATCH, "the teacher %s takes %s, but the network %s",
                    att_teacher_name(t->options->teacher), att_model_inputs_describe(teacher, own),
                    att_model_inputs_describe(student, other));
}

static att_status check_teacher(const att_teaching *t, const att_model *student)
{
    const att_model *teacher = t->options->teacher->model;
    const char *name = att_teacher_name(t->options->teacher);
    const int classes = att_model_classes(teacher), expected = att_model_classes(student);
    if (att_model_task_of(teacher) != t->task)
        return att_fail(t->context, ATT_ERR_MISMATCH, "the teacher %s is for the task \"%s\", the network for \"%s\"",
                        name, att_model_task_of(teacher)->info.name, t->task->info.name);
    if (classes == 0)
        return att_fail(t->context, ATT_ERR_MISMATCH, "the teacher %s has no head, so it gives no answers", name);
    if (classes != expected)
        return att_fail(t->context, ATT_ERR_MISMATCH, "the teacher %s has %d class%s, but the network has %d", name,
                        classes, classes == 1 ? "" : "es", expected);
    return check_inputs(t, teacher, student);
}

/* --- preparing ---------------------------------------------------------------------------------------------------- */

/* The images of the training are (pixel - mean) / std, with another mean and std than the teacher's. */
static void choose_channels(att_teaching *t, const att_transform_options *from, const att_model_input *to)
{
    t->image = to->field.name;
    t->channels = to->image->in_chans;
    t->pixels_each = att_shape_count(to->field.shape) / t->channels;
    for (int c = 0; c < t->channels; c++) {
        t->factor[c] = (float)(from->std[c] / to->image->std[c]);
        t->shift[c] = (float)((from->mean[c] - to->image->mean[c]) / to->image->std[c]);
        t->rescales = t->rescales || t->factor[c] != 1 || t->shift[c] != 0;
    }
}

att_status att_teaching_prepare(const att_train_options *options, const att_model *student, const att_task *task,
                                const att_task_settings *settings, const att_transform_options *transform,
                                att_teaching *t)
{
    const att_field field = settings->taught ? task->teacher_field(settings) : (att_field){0};
    att_context *context = att_graph_context(att_model_graph(student));
    *t = (att_teaching){0};
    if (!field.name)
        return ATT_OK;
    *t = (att_teaching){.context = context, .options = options, .task = task, .settings = settings, .field = field};
    ATT_TRY(att_require(t->context, options->teacher->model, "the model of the teacher"));
    ATT_TRY(att_require(t->context, options->teacher->weights, "the weights of the teacher"));
    const int processes = att_comm_size(options->comm);
    t->rows = (options->batch_size + processes - 1) / processes;
    ATT_TRY(check_teacher(t, student));
    const att_model_input image = att_model_image(options->teacher->model);
    if (image.image)
        choose_channels(t, transform, &image);
    return ATT_OK;
}

bool att_teaching_gives(const att_teaching *t, const char *input)
{
    return t->field.name && strcmp(input, t->field.name) == 0;
}

/* A process runs only its own images, alone. */
static att_inference_options inference_options(const att_teaching *t)
{
    return (att_inference_options){
        .backend = t->options->backend, .precision = t->options->precision, .max_batch = t->rows};
}

static size_t pixel_bytes(const att_teaching *t)
{
    const size_t each = (size_t)t->pixels_each * (size_t)t->channels * sizeof(float);
    return t->rescales ? att_size_product((size_t)t->rows, each) : 0;
}

static size_t read_bytes(const att_teaching *t)
{
    return att_size_product((size_t)t->rows, att_field_bytes(&t->field));
}

att_status att_teaching_bytes(const att_teaching *t, size_t *bytes)
{
    *bytes = 0;
    if (!t->field.name)
        return ATT_OK;
    const att_inference_options options = inference_options(t);
    ATT_TRY(att_inference_bytes(att_model_graph(t->options->teacher->model), &options, bytes));
    *bytes = att_size_sum(*bytes, att_size_sum(pixel_bytes(t), read_bytes(t)));
    return ATT_OK;
}

att_status att_teaching_open(att_teaching *t)
{
    if (!t->field.name)
        return ATT_OK;
    const att_inference_options options = inference_options(t);
    const att_teacher *teacher = t->options->teacher;
    ATT_TRY(att_inference_create(att_model_graph(teacher->model), teacher->weights, &options, &t->inference));
    t->read = att_allocate(t->context, read_bytes(t));
    t->pixels = t->rescales ? att_allocate(t->context, pixel_bytes(t)) : NULL;
    return t->read && (t->pixels || !t->rescales)
               ? ATT_OK
               : att_fail_memory(t->context, pixel_bytes(t) + read_bytes(t), "the images of the teacher");
}

void att_teaching_close(att_teaching *t)
{
    if (!t->context)
        return;
    att_free(t->context, t->pixels);
    att_free(t->context, t->read);
    att_inference_free(&t->inference);
    *t = (att_teaching){0};
}

/* --- running ------------------------------------------------------------------------------------------------------ */

typedef struct rescaling {
    const att_teaching *teaching;
    const float *from;
    int64_t count; /* of all pixels */
    int threads;
} rescaling;

static void rescale_thread(void *user, int thread)
{
    const rescaling *r = user;
    const att_teaching *t = r->teaching;
    const int64_t end = r->count * (thread + 1) / r->threads;
    for (int64_t i = r->count * thread / r->threads; i < end; i++)
        for (int c = 0; c < t->channels; c++)
            t->pixels[i * t->channels + c] = r->from[i * t->channels + c] * t->factor[c] + t->shift[c];
}

static const float *rescale(const att_teaching *t, const float *images, int rows)
{
    rescaling r = {
        .teaching = t, .from = images, .count = rows * t->pixels_each, .threads = att_context_threads(t->context)};
    att_threads_run(t->context, r.threads, rescale_thread, &r);
    return t->pixels;
}

static att_status read_answers(att_teaching *t, const att_batch *answers)
{
    const size_t each = att_field_bytes(&t->field);
    for (int i = 0; i < answers->count; i++) {
        if (!att_inference_is_finite(answers, i))
            return att_fail(t->context, ATT_ERR_NONFINITE, "the teacher %s answers an image with NaN or infinity",
                            att_teacher_name(t->options->teacher));
        t->task->read_teacher(t->settings, answers, i, t->read + (size_t)i * each);
    }
    return ATT_OK;
}

att_status att_teaching_run(att_teaching *t, const att_batch *batch, const void **field)
{
    const double started = att_seconds_now();
    att_replaced_batch rescaled;
    att_batch answers;
    if (t->rescales)
        batch = att_batch_replace(batch, t->image, rescale(t, att_batch_rows(batch, t->image), batch->rows), &rescaled);
    ATT_TRY(att_inference_run(&t->inference, batch, batch->rows, &answers));
    ATT_TRY(read_answers(t, &answers));
    t->seconds += att_seconds_now() - started;
    *field = t->read;
    return ATT_OK;
}

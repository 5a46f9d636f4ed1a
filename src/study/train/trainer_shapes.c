/* Images of several sizes: a plan and a session for each size, over the same weights and gradient. */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "data/transform.h"
#include "engine/graph/graph.h"
#include "engine/session/session.h"
#include "engine/weights/weights.h"
#include "study/train/inference.h"
#include "study/train/trainer.h"

bool att_trainer_varies(const att_trainer *trainer)
{
    return trainer->shape_count > 1;
}

/* Copies the model's graph for this size, including probes, and adds the task's loss. */
static att_status make_graph(att_trainer *trainer, att_trainer_shape *shape)
{
    const att_model *model = trainer->run.model;
    att_model *sized = NULL;
    if (att_transform_varies(trainer->run.data->train_transform))
        ATT_TRY(att_inference_resize(model, trainer->run.weights, shape->height, shape->width, &sized));
    const att_graph *graph = att_model_graph(sized ? sized : model);
    att_status status = att_graph_status(graph);
    if (status == ATT_OK) {
        shape->graph = att_graph_copy(graph);
        status = shape->graph ? att_task_build_loss(trainer->task, shape->graph, &trainer->settings)
                              : att_fail_memory(trainer->context, sizeof(void *), "the graph of a training run");
    }
    if (status == ATT_OK)
        att_task_drop_outputs(trainer->task->info.name, shape->graph);
    att_model_destroy(&sized);
    return status;
}

att_status att_trainer_list_shapes(att_trainer *trainer)
{
    trainer->shape_count = att_loader_shape_count(trainer->loader);
    ATT_TRY(att_new(trainer->context, &trainer->shapes, (size_t)trainer->shape_count, "the sizes of images"));
    for (int i = 0; i < trainer->shape_count; i++) {
        const att_loader_shape sides = att_loader_shape_at(trainer->loader, i);
        trainer->shapes[i] = (att_trainer_shape){.height = sides.height, .width = sides.width};
    }
    trainer->shape = trainer->shapes;
    return make_graph(trainer, trainer->shapes);
}

static void free_shape(att_trainer_shape *shape)
{
    att_session_destroy(&shape->session);
    att_plan_destroy(&shape->plan);
    att_graph_destroy(&shape->graph);
}

void att_trainer_free_shapes(att_trainer *trainer)
{
    for (int i = 0; trainer->shapes && i < trainer->shape_count; i++)
        free_shape(&trainer->shapes[i]);
    att_session_block_destroy(&trainer->block);
    att_free(trainer->context, trainer->shapes);
}

att_status att_trainer_compile(att_trainer *trainer, att_trainer_shape *shape, int lanes, int parts, int64_t memory)
{
    const att_train_options *options = trainer->options;
    att_plan_options plan = att_plan_options_defaults();
    plan.comm = options->comm;
    plan.sync_statistics = options->sync_bn;
    plan.purpose = ATT_TRAIN;
    plan.backend = options->backend;
    plan.precision = options->precision;
    plan.lanes = lanes;
    plan.parts = parts;
    plan.frozen = trainer->frozen;
    plan.frozen_as_trained = !att_trainer_freezes(trainer);
    return att_session_fit(shape->graph, &plan, trainer->run.weights, options->batch_size, (size_t)memory,
                           trainer->other_bytes, &shape->plan);
}

/* The plan of another size than the first has the same lanes. */
static att_status compile_further(att_trainer *trainer, att_trainer_shape *shape)
{
    if (!shape->graph)
        ATT_TRY(make_graph(trainer, shape));
    return att_trainer_compile(trainer, shape, trainer->run.lanes, trainer->run.parts, trainer->run.memory);
}

att_status att_trainer_compile_further(att_trainer *trainer)
{
    for (int i = 1; i < trainer->shape_count && trainer->run.memory > 0; i++)
        ATT_TRY(compile_further(trainer, &trainer->shapes[i]));
    return ATT_OK;
}

void att_trainer_drop_plans(att_trainer *trainer)
{
    for (int i = 0; i < trainer->shape_count; i++)
        att_plan_destroy(&trainer->shapes[i].plan);
}

const att_plan *att_trainer_largest_plan(const att_trainer *trainer)
{
    const att_plan *largest = trainer->shapes[0].plan;
    for (int i = 1; i < trainer->shape_count; i++) {
        const att_plan *plan = trainer->shapes[i].plan;
        if (plan && att_session_bytes(plan, trainer->options->batch_size) >
                        att_session_bytes(largest, trainer->options->batch_size))
            largest = plan;
    }
    return largest;
}

att_status att_trainer_open_first(att_trainer *trainer)
{
    att_trainer_shape *first = trainer->shapes;
    const int batch = trainer->options->batch_size;
    if (att_trainer_varies(trainer))
        ATT_TRY(att_session_block_create(att_trainer_largest_plan(trainer), batch, &trainer->block));
    return att_session_create_in(first->plan, trainer->run.weights, batch, trainer->block, &first->session);
}

/* --- one size ------------------------------------------------------------------------------------------------------
 */

enum { LINE = 64 };

/* The beginning of a size's line in att_train_run.shapes. */
static char *begin_line(const att_trainer_shape *shape, char text[LINE])
{
    snprintf(text, LINE, "%dx%d ", shape->height, shape->width);
    return text;
}

/* Returns the fingerprint of a size in the text; NULL if it is not there. *length: its length. */
static const char *find_fingerprint(const char *lines, const char *begin, size_t *length)
{
    for (const char *line = lines; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, begin, strlen(begin)) == 0) {
            *length = strcspn(line, "\n") - strlen(begin);
            return line + strlen(begin);
        }
    return NULL;
}

/* Records how the size was compiled, or compares with the training that is continued. */
static att_status note_fingerprint(att_trainer *trainer, const att_trainer_shape *shape)
{
    char begin[LINE];
    size_t length;
    const char *here = att_plan_fingerprint(shape->plan);
    const char *recorded = find_fingerprint(trainer->run.shapes.data, begin_line(shape, begin), &length);
    if (!recorded)
        att_text_append(&trainer->run.shapes, "%s%s\n", begin, here);
    else if (strlen(here) != length || strncmp(recorded, here, length) != 0)
        return att_fail(trainer->context, ATT_ERR_MISMATCH,
                        "%s cannot be resumed exactly: it computes images of %d x %d pixels by \"%.*s\", here by "
                        "\"%s\"",
                        trainer->options->resume ? trainer->options->resume : "the training", shape->height,
                        shape->width, (int)length, recorded, here);
    return trainer->run.shapes.failed
               ? att_fail_memory(trainer->context, trainer->run.shapes.length, "the sizes of images")
               : ATT_OK;
}

static att_status open_shape(att_trainer *trainer, att_trainer_shape *shape)
{
    if (!shape->plan)
        ATT_TRY(compile_further(trainer, shape));
    ATT_TRY(note_fingerprint(trainer, shape));
    return att_session_create_in(shape->plan, trainer->run.weights, trainer->options->batch_size, trainer->block,
                                 &shape->session);
}

att_status att_trainer_take_shape(att_trainer *trainer, const att_batch *batch)
{
    const int64_t *sides = batch->fields[0].shape.dims;
    att_trainer_shape *shape = trainer->shapes;
    while (shape->height != sides[0] || shape->width != sides[1])
        shape++;
    if (!shape->session) {
        att_status status = open_shape(trainer, shape);
        if (status != ATT_OK)
            free_shape(shape);
        ATT_TRY(status);
    }
    trainer->shape = shape;
    att_session_observe(shape->session, trainer->measuring);
    return ATT_OK;
}

#include "study/train/prepare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/random.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "data/dataset.h"
#include "data/sides.h"
#include "data/transform.h"
#include "engine/graph/graph.h"
#include "engine/passes/passes.h"
#include "engine/session/session.h"
#include "engine/update/update.h"
#include "engine/weights/gradient.h"
#include "networks/models/family.h"
#include "study/train/freeze.h"
#include "study/train/inference.h"
#include "study/train/metadata.h"
#include "study/train/options.h"

int64_t att_trainer_updates_per_epoch(const att_trainer *trainer)
{
    int steps = trainer->options->grad_accum_steps;
    return trainer->batches / steps + (trainer->batches % steps != 0);
}

int64_t att_trainer_batches_of(const att_trainer *trainer, int64_t update)
{
    const int64_t per_epoch = att_trainer_updates_per_epoch(trainer);
    return update / per_epoch * trainer->batches + update % per_epoch * trainer->options->grad_accum_steps;
}

/* Images of the first `batches` batches of an epoch. */
static int64_t images_within(const att_trainer *trainer, int64_t batches)
{
    const int size = trainer->options->batch_size;
    int64_t full = 0;
    for (int i = 0; i < trainer->shape_count; i++)
        full += att_loader_shape_at(trainer->loader, i).images / size;
    if (batches <= full || !trainer->takes_short)
        return batches * size;
    int64_t images = full * size, left = batches - full;
    for (int i = 0; i < trainer->shape_count && left > 0; i++) {
        const int64_t rest = att_loader_shape_at(trainer->loader, i).images % size;
        images += rest;
        left -= rest > 0;
    }
    return images;
}

int64_t att_trainer_images_of(const att_trainer *trainer, int64_t batches)
{
    const int64_t epoch = trainer->batches;
    return epoch < 1 ? 0 : batches / epoch * images_within(trainer, epoch) + images_within(trainer, batches % epoch);
}

/* Learning rate of the next update after `update` finished ones, in the current epoch. */
static double rate_after(const att_trainer *trainer, int64_t update)
{
    return att_schedule_lr(trainer->schedule, trainer->options, trainer->base_lr,
                           att_trainer_updates_per_epoch(trainer), trainer->state.epoch, update);
}

static att_status check_data(const att_trainer *trainer)
{
    const att_train_run *run = &trainer->run;
    const att_train_data *data = run->data;
    ATT_TRY(att_inference_check_images(run->model, data->train_transform));
    ATT_TRY(att_task_check_data(run->context, trainer->task, &trainer->settings, data->train));
    if (!data->eval)
        return ATT_OK;
    att_task_settings evaluation = trainer->settings;
    evaluation.evaluated = data->eval;
    ATT_TRY(att_inference_check_images(run->model, data->eval_transform));
    return att_task_check_data(run->context, trainer->task, &evaluation, data->eval);
}

/* Whether the node is a batch norm that takes statistics of the batch: it is in no frozen part. */
static bool takes_statistics_at(const att_trainer *trainer, const att_node *node)
{
    const att_graph *graph = att_model_graph(trainer->run.model);
    return strcmp(node->op->name, "batch_norm") == 0 &&
           !(att_trainer_freezes(trainer) && (att_scope_is_frozen(graph, trainer->frozen, node->scope, false) ||
                                              att_node_reads_frozen(graph, trainer->frozen, node)));
}

static bool takes_statistics(const att_trainer *trainer)
{
    const att_graph *graph = att_model_graph(trainer->run.model);
    bool takes = false;
    for (int i = 0; i < graph->nodes.count && !takes; i++)
        takes = takes_statistics_at(trainer, &graph->nodes.items[i]);
    return takes;
}

/* Batch norm outside of frozen parts needs at least two values per channel in a batch, or in the share of a process
 * that is on its own in this. */
static att_status check_batch_norms(const att_trainer *trainer)
{
    const att_graph *graph = att_model_graph(trainer->run.model);
    int batch = trainer->options->batch_size;
    int least = trainer->options->sync_bn ? batch : batch / att_comm_size(trainer->options->comm);
    for (int i = 0; i < graph->nodes.count && least == 1; i++) {
        const att_node *node = &graph->nodes.items[i];
        att_shape shape = att_value_shape(graph, node->out[0]);
        if (takes_statistics_at(trainer, node) && att_shape_count(shape) == shape.dims[shape.rank - 1])
            return att_fail(trainer->context, ATT_ERR_ARGUMENT,
                            "--batch-size (batch_size) %d%s: batch norm %s has one value per channel of an image, but "
                            "needs at least two per batch",
                            batch, batch > 1 ? ", so one image for each process" : "", node->scope);
    }
    return ATT_OK;
}

static const att_field *find_target(const att_target_rules *targets, const char *name)
{
    for (int f = 0; f < targets->count; f++)
        if (strcmp(targets->fields[f].name, name) == 0)
            return &targets->fields[f];
    return NULL;
}

/* Returns the field that gives an input of the loss: a target, or what is read of the teacher; NULL: none. */
static const att_field *find_source(const att_trainer *trainer, const att_target_rules *targets, const char *name)
{
    return att_teaching_gives(&trainer->teaching, name) ? &trainer->teaching.field : find_target(targets, name);
}

/* Checks that each input of the loss has a target of its type and shape. */
static att_status check_inputs(const att_trainer *trainer, const att_target_rules *targets)
{
    const att_graph *graph = trainer->shapes[0].graph;
    const char *task = trainer->task->info.name;
    for (int i = 0; i < graph->inputs.count; i++) {
        const att_named_value *input = &graph->inputs.items[i];
        const att_field *field = find_source(trainer, targets, input->name);
        if (strcmp(input->name, att_model_image(trainer->run.model).field.name) == 0)
            continue;
        const att_shape shape = att_value_shape(graph, input->value);
        if (!field)
            return att_fail(trainer->context, ATT_ERR_ARGUMENT,
                            "task \"%s\": its loss reads the target \"%s\", which its function `fields` does not give",
                            task, input->name);
        const att_field sized = att_field_of_sides(field, trainer->shapes[0].height, trainer->shapes[0].width);
        if (sized.dtype != att_value_dtype(graph, input->value) || !att_shape_equal(sized.shape, shape))
            return att_fail(trainer->context, ATT_ERR_ARGUMENT,
                            "task \"%s\": the target \"%s\" does not have the type and shape of the loss's input", task,
                            field->name);
    }
    return ATT_OK;
}

static att_status check_processes(att_trainer *trainer)
{
    const att_train_options *options = trainer->options;
    int processes = att_comm_size(options->comm);
    if (options->batch_size < processes)
        return att_fail(trainer->context, ATT_ERR_ARGUMENT,
                        "--batch-size (batch_size) %d: every one of the %d processes needs at least one image",
                        options->batch_size, processes);
    return att_processes_open(trainer->context, options->comm, &trainer->processes);
}

/* Instruments and teachers keep arrays for images of one size. */
static att_status check_sizes(const att_trainer *trainer)
{
    const att_train_options *options = trainer->options;
    const char *what = options->measure ? "instruments (--measure)" : options->teacher ? "a teacher (--teacher)" : NULL;
    if (!what || !att_transform_varies(trainer->run.data->train_transform))
        return ATT_OK;
    return att_fail(trainer->context, ATT_ERR_UNSUPPORTED,
                    "%s and images of several sizes (--train-crop-mode keep) cannot be combined: use another crop mode",
                    what);
}

/* Sets the factors of learning rate and weight decay per parameter. Weight decay applies to all parameters, or only to
 * those whose declaration asks for it. */
static att_status choose_rates(att_trainer *trainer)
{
    const att_weights *weights = trainer->run.weights;
    bool all = strcmp(trainer->options->weight_decay_on, "all") == 0;
    size_t count = (size_t)att_weights_count(weights);
    trainer->rates = att_allocate_array(trainer->context, count, sizeof *trainer->rates);
    trainer->frozen = att_allocate_array(trainer->context, count, sizeof *trainer->frozen);
    if ((!trainer->rates || !trainer->frozen) && count > 0)
        return att_fail_memory(trainer->context, count * sizeof *trainer->rates, "the parameters' rates");
    for (int i = 0; i < att_weights_count(weights); i++) {
        att_parameter_info parameter = att_weights_at(weights, i);
        trainer->rates[i] = att_parameter_rates_defaults(&parameter);
        if (all)
            trainer->rates[i].weight_decay = 1;
    }
    ATT_TRY(att_layer_decay_apply(trainer->context, trainer->run.model, trainer->options, weights, trainer->rates,
                                  &trainer->layer_decay));
    for (size_t i = 0; i < count; i++)
        if (att_model_is_head(trainer->run.model, att_weights_at(weights, (int)i).name))
            trainer->rates[i].lr *= trainer->options->head_lr_mult;
    ATT_TRY(att_freeze_apply(trainer->context, trainer->run.model, trainer->options->freeze, trainer->rates));
    for (size_t i = 0; i < count; i++)
        trainer->frozen[i] = trainer->rates[i].frozen;
    trainer->frozen_parameters = att_freeze_count(trainer->run.model, att_trainer_freezes(trainer), trainer->frozen);
    for (size_t i = 0; i < count; i++)
        trainer->rates[i].frozen = trainer->frozen[i];
    return check_batch_norms(trainer);
}

static att_status check(att_trainer *trainer)
{
    const att_train_options *options = trainer->options;
    const att_graph *graph = att_model_graph(trainer->run.model);
    ATT_TRY(att_train_options_check(trainer->context, options));
    ATT_TRY(check_processes(trainer));
    trainer->task = att_model_task_of(trainer->run.model);
    ATT_TRY(att_train_metric(trainer->context, options, &trainer->task->info, &trainer->metric));
    trainer->run.metric = trainer->task->info.metrics[trainer->metric].name;
    trainer->optimizer = att_optimizer_find(options->optimizer);
    trainer->schedule = att_schedule_find(options->schedule);
    if (att_graph_dtype(graph) != ATT_F32)
        return att_fail(trainer->context, ATT_ERR_ARGUMENT, "training takes a model in F32, not in %s",
                        att_dtype_name(att_graph_dtype(graph)));
    const att_task_setup setup = {.classes = att_model_classes(trainer->run.model),
                                  .mixed = att_train_mixes(options),
                                  .taught = options->teacher,
                                  .options = options->task_options,
                                  .network = att_model_options(trainer->run.model)};
    ATT_TRY(att_task_configure(trainer->context, trainer->task, &setup, &trainer->settings));
    ATT_TRY(att_teaching_prepare(options, trainer->run.model, trainer->task, &trainer->settings,
                                 trainer->run.data->train_transform, &trainer->teaching));
    ATT_TRY(choose_rates(trainer));
    trainer->base_lr = att_optimizer_lr(trainer->optimizer, options);
    ATT_TRY(check_sizes(trainer));
    return check_data(trainer);
}

static att_update_options update_options(const att_trainer *trainer)
{
    return (att_update_options){.backend = trainer->options->backend,
                                .optimizer = trainer->optimizer->op,
                                .rates = trainer->rates,
                                .ema = trainer->options->model_ema};
}

/* Of an evaluation whose images have several sizes, the largest that the transform makes. */
static att_status largest_inference_bytes(const att_trainer *trainer, const att_inference_options *inference,
                                          size_t *bytes)
{
    const att_model *model = trainer->run.model;
    const att_transform_options *transform = trainer->run.data->eval_transform;
    const int longer = transform->longer, shorter = transform->shorter;
    att_geometry largest;
    att_model *sized;
    if (!att_transform_varies(transform))
        return att_inference_bytes(att_model_graph(model), inference, bytes);
    ATT_TRY(att_transform_geometry(trainer->context, transform, longer, shorter, &largest));
    ATT_TRY(att_inference_resize(model, trainer->run.weights, largest.height, largest.width, &sized));
    att_status status = att_inference_bytes(att_model_graph(sized), inference, bytes);
    att_model_destroy(&sized);
    return status;
}

/* Computes the memory that evaluations need. Evaluations run while the training's session exists, on a copy of the
 * averaged weights if an average is kept. */
static att_status evaluation_bytes(const att_trainer *trainer, size_t *bytes)
{
    const att_train_options *options = trainer->options;
    const att_weights *weights = trainer->run.weights;
    *bytes = 0;
    if (!trainer->run.data->eval)
        return ATT_OK;
    const att_transform_options *transform = trainer->run.data->eval_transform;
    att_inference_options inference = {.backend = options->backend,
                                       .precision = options->precision,
                                       .max_batch = att_evaluate_batch(transform, options->batch_size, options->comm),
                                       .comm = options->comm,
                                       .outputs = trainer->task->observed};
    ATT_TRY(largest_inference_bytes(trainer, &inference, bytes));
    if (options->model_ema)
        *bytes = att_size_sum(*bytes, att_weights_bytes(weights));
    return ATT_OK;
}

/* Number of parts of the memory that a training run needs in addition to its session. */
enum { PARTS = 4 };
static att_status list_memory(const att_trainer *trainer, att_memory_part parts[PARTS])
{
    const att_weights *weights = trainer->run.weights;
    att_update_options update = update_options(trainer);
    parts[0] = (att_memory_part){"gradients", att_gradient_bytes(weights, trainer->frozen)};
    parts[1] = (att_memory_part){"the optimiser's state", att_update_bytes(weights, &update)};
    parts[2] = (att_memory_part){.what = "the evaluation"};
    parts[3] = (att_memory_part){.what = "the teacher"};
    ATT_TRY(evaluation_bytes(trainer, &parts[2].bytes));
    return att_teaching_bytes(&trainer->teaching, &parts[3].bytes);
}

static att_status compile(att_trainer *trainer, int lanes, int parts, int64_t memory)
{
    att_memory_part other_memory[PARTS];
    size_t bytes = 0;
    ATT_TRY(list_memory(trainer, other_memory));
    for (int i = 0; i < PARTS; i++)
        bytes = att_size_sum(bytes, other_memory[i].bytes);
    const att_train_options *options = trainer->options;
    if (trainer->teaching.field.name)
        bytes = att_size_sum(bytes, att_weights_bytes(options->teacher->weights));
    trainer->other_bytes = bytes;
    att_trainer_shape *first = &trainer->shapes[0];
    ATT_TRY(att_trainer_compile(trainer, first, lanes, parts, memory));
    trainer->run.fingerprint = att_plan_fingerprint(first->plan);
    trainer->run.lanes = att_plan_describe(first->plan).lanes;
    trainer->run.parts = att_plan_describe(first->plan).parts;
    trainer->run.memory = memory;
    ATT_TRY(att_trainer_compile_further(trainer));
    return att_session_check_memory(att_trainer_largest_plan(trainer), options->batch_size, other_memory, PARTS);
}

static att_status create_sessions(att_trainer *trainer)
{
    att_update_options update = update_options(trainer);
    ATT_TRY(att_trainer_open_first(trainer));
    ATT_TRY(att_gradient_create_for(trainer->run.weights, trainer->frozen, &trainer->gradient));
    ATT_TRY(att_teaching_open(&trainer->teaching));
    return att_update_create(trainer->gradient, &update, &trainer->update);
}

static void count_updates(att_trainer *trainer)
{
    const att_train_options *options = trainer->options;
    const int64_t per_epoch = att_trainer_updates_per_epoch(trainer);
    trainer->updates = options->updates > 0 ? options->updates : options->epochs * per_epoch;
    trainer->interval = options->eval_every > 0 ? options->eval_every : per_epoch;
}

static att_status open_loader(att_trainer *trainer)
{
    const att_train_options *options = trainer->options;
    const att_transform_options *transform = trainer->run.data->train_transform;
    const bool trains = options->updates > 0 || options->epochs > 0;
    att_loader_options loader = att_loader_options_defaults(transform->height, transform->width, transform->channels);
    loader.transform = *transform;
    loader.mix = att_train_mix(options);
    loader.image = att_model_image(trainer->run.model).field.name;
    ATT_TRY(att_task_targets(trainer->context, trainer->task, &trainer->settings, trainer->fields, &loader.targets));
    loader.repeats = options->aug_repeats > 1 ? options->aug_repeats : 1;
    loader.batch_size = options->batch_size;
    loader.workers = options->workers;
    loader.comm = options->comm;
    loader.shuffle = true;
    trainer->takes_short = att_transform_varies(transform) && !takes_statistics(trainer);
    loader.drop_last = !trainer->takes_short;
    loader.seed = options->seed;
    loader.corrupt = options->skip_corrupt ? ATT_CORRUPT_REPLACED : ATT_CORRUPT_FATAL;
    loader.corrupt_found = att_trainer_train_corrupt;
    loader.corrupt_user = trainer;
    ATT_TRY(att_loader_create(trainer->context, trainer->run.data->train, &loader, &trainer->loader));
    ATT_TRY(att_trainer_list_shapes(trainer));
    ATT_TRY(check_inputs(trainer, &loader.targets));
    trainer->batches = att_loader_batches(trainer->loader);
    count_updates(trainer);
    if (trainer->batches < 1 && trains && att_trainer_varies(trainer))
        return att_fail(trainer->context, ATT_ERR_ARGUMENT,
                        "no size of images fills a batch of %d: the %lld training images have %d sizes; use a smaller "
                        "--batch-size",
                        options->batch_size, (long long)att_dataset_count(trainer->run.data->train),
                        trainer->shape_count);
    if (trainer->batches < 1 && trains)
        return att_fail(trainer->context, ATT_ERR_ARGUMENT,
                        "the training set has %lld images, fewer than one batch of %d; use --batch-size %lld or less",
                        (long long)att_dataset_count(trainer->run.data->train), options->batch_size,
                        (long long)att_dataset_count(trainer->run.data->train));
    size_t bytes = (size_t)options->batch_size * sizeof *trainer->losses;
    trainer->losses = att_allocate(trainer->context, bytes);
    return trainer->losses ? ATT_OK : att_fail_memory(trainer->context, bytes, "the losses of a batch");
}

/* Memory that is left below --memory and below the context's limit, without what evaluations need. */
static att_status find_room(const att_trainer *trainer, size_t *room)
{
    const att_weights *weights = trainer->run.weights;
    size_t evaluation, used = att_size_sum(att_session_bytes(trainer->shape->plan, trainer->options->batch_size),
                                           att_size_sum(trainer->other_bytes, att_weights_bytes(weights)));
    ATT_TRY(evaluation_bytes(trainer, &evaluation));
    const size_t left = weights->memory->left(trainer->context), most = (size_t)trainer->run.memory;
    *room = left > evaluation ? left - evaluation : 0;
    if (most > 0 && *room > (most > used ? most - used : 0))
        *room = most > used ? most - used : 0;
    return ATT_OK;
}

/* Lets the session compute the values of the frozen part once for each image, if the images come again with the same
 * pixels and the values fit into the memory. */
static att_status remember_frozen(const att_trainer *trainer)
{
    const att_train_data *data = trainer->run.data;
    const int variants = att_train_mixes(trainer->options) ? 0 : att_transform_variants(data->train_transform);
    const int64_t images = att_dataset_count(data->train), samples = variants * images;
    const size_t bytes = att_session_remembered_bytes(trainer->shape->plan, samples);
    char needed[24], unused[24];
    size_t room;
    if (bytes == 0 || samples == 0 || att_trainer_varies(trainer) || !trainer->run.weights->memory->host)
        return ATT_OK;
    ATT_TRY(find_room(trainer, &room));
    if (att_trainer_writes(trainer))
        att_log(trainer->context, ATT_LOG_INFO,
                bytes <= room ? "the frozen part is computed once for each of %lld images%s; its values take at most %s"
                              : "the frozen part is computed again in every epoch: its values for %lld images%s would "
                                "take %s, and %s are left",
                (long long)images, variants > 1 ? " and their flips" : "",
                att_size_format(bytes, needed, sizeof needed), att_size_format(room, unused, sizeof unused));
    return bytes <= room ? att_session_remember(trainer->shape->session, samples) : ATT_OK;
}

/* Clears the slots, which may hold values of an earlier training. */
static att_status clear_slots(att_context *context, att_weights *weights)
{
    for (int i = 0; i < att_weights_count(weights); i++) {
        int64_t count = att_shape_count(att_weights_at(weights, i).shape);
        float *zeros = att_allocate_array(context, (size_t)count, sizeof *zeros);
        if (!zeros && count > 0)
            return att_fail_memory(context, (size_t)count * sizeof *zeros, "zeros for the optimiser");
        att_status status = ATT_OK;
        for (int slot = 0; slot < att_weights_slot_count(weights) && status == ATT_OK; slot++)
            if (att_weights_in_slot(weights, slot, i))
                status = att_weights_set(weights, slot, i, zeros, count);
        att_free(context, zeros);
        ATT_TRY(status);
    }
    return ATT_OK;
}

att_status att_trainer_set_checkpoint(att_trainer *trainer, const char *path)
{
    char *copy = att_copy_string(trainer->context, path);
    if (!copy)
        return att_fail_memory(trainer->context, strlen(path), "a checkpoint's path");
    att_free(trainer->context, trainer->last_checkpoint);
    trainer->last_checkpoint = copy;
    trainer->checkpoint_finite = false;
    return ATT_OK;
}

/* Whether the images counted since the last evaluation are those of the updates since then. */
static bool has_counted(const att_trainer *trainer)
{
    const att_train_state *state = &trainer->state;
    if (state->loss_count == 0)
        return state->update % trainer->interval == 0 || state->update == trainer->updates;
    const int64_t evaluated = (state->update - 1) / trainer->interval * trainer->interval;
    const int64_t batches = att_trainer_batches_of(trainer, state->update) - att_trainer_batches_of(trainer, evaluated);
    const int64_t before = att_trainer_batches_of(trainer, evaluated);
    return state->loss_count ==
           att_trainer_images_of(trainer, before + batches) - att_trainer_images_of(trainer, before);
}

/* Whether the state is consistent: a position within the training, at the end of an update. */
static bool is_consistent(const att_trainer *trainer)
{
    const att_train_state *state = &trainer->state;
    int64_t steps = trainer->options->grad_accum_steps;
    if (state->update > trainer->updates || state->batch > trainer->batches ||
        (state->batch % steps != 0 && state->batch != trainer->batches))
        return false;
    int64_t updates = state->batch / steps + (state->batch % steps != 0);
    return state->update == state->epoch * att_trainer_updates_per_epoch(trainer) + updates &&
           (trainer->updates == 0 ? state->loss_count == 0 : has_counted(trainer));
}

static att_status resume(att_trainer *trainer, const att_tensors *file)
{
    const char *path = att_tensors_path(file);
    ATT_TRY(att_checkpoint_resume(&trainer->run, file, &trainer->state));
    if (!is_consistent(trainer))
        return att_fail(trainer->context, ATT_ERR_FORMAT,
                        "%s: its counters (epoch %d, batch %lld, update %lld) contradict each other", path,
                        trainer->state.epoch, (long long)trainer->state.batch, (long long)trainer->state.update);
    ATT_TRY(att_trainer_set_checkpoint(trainer, path));
    const char *shapes = att_metadata_text(file, "shapes");
    if (shapes)
        att_text_append(&trainer->run.shapes, "%s", shapes);
    if (trainer->state.batch > 0)
        trainer->lr = rate_after(trainer, trainer->state.update - 1);
    return ATT_OK;
}

/* Computes a digest of a few images' pixels, which detects different images with the same names. Images that cannot be
 * decoded are skipped; the loader reports them. */
static att_status hash_sample(const att_trainer *trainer, const att_dataset *dataset, char text[ATT_DATASET_LISTING])
{
    enum { IMAGES = 8 };
    uint64_t sum = att_random_hash("");
    int64_t count = att_dataset_count(dataset);
    for (int64_t i = 0; i < IMAGES && i < count; i++) {
        att_image image = {0};
        att_status status =
            att_dataset_read(dataset, trainer->context, count < IMAGES ? i : i * (count / IMAGES), 3, &image);
        if (status == ATT_OK)
            sum = att_random_hash_more(sum, image.pixels, (size_t)image.width * (size_t)image.height * 3);
        att_image_free(trainer->context, &image);
        if (status == ATT_ERR_MEMORY)
            return status;
    }
    snprintf(text, ATT_DATASET_LISTING, "%016" PRIx64, sum);
    return ATT_OK;
}

static att_status describe_teacher(att_trainer *trainer)
{
    const att_teacher *teacher = trainer->options->teacher;
    if (!trainer->teaching.field.name)
        return ATT_OK;
    trainer->run.teacher = att_teacher_name(teacher);
    return att_teacher_digest(teacher, trainer->run.teacher_digest);
}

static att_status describe_data(att_trainer *trainer)
{
    att_train_run *run = &trainer->run;
    att_dataset_listing(run->data->train, run->listing);
    ATT_TRY(hash_sample(trainer, run->data->train, run->sample));
    if (!run->data->eval)
        return ATT_OK;
    att_dataset_listing(run->data->eval, run->eval_listing);
    return hash_sample(trainer, run->data->eval, run->eval_sample);
}

/* Checks that a resume has at least as many threads as shared a lane in the original training. */
static att_status check_threads(const att_trainer *trainer, int parts)
{
    int threads = att_context_threads(trainer->context);
    if (parts <= threads)
        return ATT_OK;
    return att_fail(trainer->context, ATT_ERR_MISMATCH,
                    "the training in %s needs at least %d threads to continue, and there %s %d; pass --threads %d",
                    trainer->options->resume, parts, threads == 1 ? "is" : "are", threads, parts);
}

/* How the lanes of a training run are split. */
typedef struct lane_plan {
    int lanes, parts; /* 0: automatic */
    int64_t memory;
} lane_plan;

static att_status recompile(att_trainer *trainer, const lane_plan *chosen)
{
    att_trainer_drop_plans(trainer);
    return compile(trainer, chosen->lanes, chosen->parts, chosen->memory);
}

/* Processes may have different numbers of threads, but must agree on the lanes and on how many threads share one. */
static att_status compile_together(att_trainer *trainer, lane_plan chosen)
{
    int threads, processes = att_comm_size(trainer->options->comm);
    ATT_TRY(att_processes_least(&trainer->processes, att_context_threads(trainer->context), &threads));
    if (chosen.lanes == 0 && processes > 1)
        chosen.lanes = threads * processes;
    ATT_TRY(compile(trainer, chosen.lanes, chosen.parts, chosen.memory));
    ATT_TRY(att_processes_least(&trainer->processes, trainer->run.parts, &chosen.parts));
    return chosen.parts == trainer->run.parts ? ATT_OK : recompile(trainer, &chosen);
}

/* Compiles with the lanes, parts and memory of the checkpoint's training, unless the options set others. file: the
 * checkpoint to resume from, or NULL. */
static att_status compile_as(att_trainer *trainer, const att_tensors *file)
{
    const att_train_options *options = trainer->options;
    lane_plan chosen = {.lanes = options->lanes, .memory = options->memory};
    int file_lanes = 0, parts = 0;
    int64_t file_memory = 0;
    if (file)
        ATT_TRY(att_checkpoint_engine(trainer->context, file, &file_lanes, &parts, &file_memory));
    chosen.lanes = chosen.lanes ? chosen.lanes : file_lanes;
    chosen.memory = chosen.memory ? chosen.memory : file_memory;
    if (chosen.lanes == file_lanes) {
        ATT_TRY(check_threads(trainer, parts));
        chosen.parts = parts;
    }
    return compile_together(trainer, chosen);
}

/* Compiles the training, opens the loader, and initialises the state or loads it from `file`, the checkpoint to resume
 * from. file: NULL for a new training. */
static att_status build(att_trainer *trainer, const att_tensors *file)
{
    const att_train_options *options = trainer->options;
    ATT_TRY(open_loader(trainer));
    ATT_TRY(compile_as(trainer, file));
    ATT_TRY(create_sessions(trainer));
    ATT_TRY(remember_frozen(trainer));
    ATT_TRY(describe_data(trainer));
    ATT_TRY(describe_teacher(trainer));
    trainer->state.metric = NAN;
    ATT_TRY(att_history_create(trainer->context, options->checkpoint_hist,
                               !trainer->task->info.metrics[trainer->metric].larger_is_better,
                               &trainer->state.history));
    if (options->alert)
        ATT_TRY(att_alerts_create(trainer->context, &trainer->state.alerts));
    ATT_TRY(file ? resume(trainer, file) : clear_slots(trainer->context, trainer->run.weights));
    ATT_TRY(att_trainer_compare(trainer));
    return options->output && att_trainer_writes(trainer) ? att_file_make_folders(trainer->context, options->output)
                                                          : ATT_OK;
}

/* As build(), but creates no session, writes no files and reads no weights. */
static att_status dry_run(att_trainer *trainer, const att_tensors *file)
{
    ATT_TRY(open_loader(trainer));
    ATT_TRY(compile_as(trainer, file));
    if (!file)
        return ATT_OK;
    ATT_TRY(describe_data(trainer));
    ATT_TRY(describe_teacher(trainer));
    return att_metadata_compare(&trainer->run, file);
}

/* Runs build() or dry_run() with the checkpoint to resume from, or NULL. */
static att_status with_checkpoint(att_trainer *trainer, att_status (*step)(att_trainer *, const att_tensors *))
{
    att_tensors *file = NULL;
    ATT_TRY(check(trainer));
    if (trainer->options->resume)
        ATT_TRY(att_tensors_open(trainer->context, trainer->options->resume, &file));
    att_status status = step(trainer, file);
    att_tensors_close(&file);
    return status;
}

att_status att_trainer_prepare(att_trainer *trainer)
{
    return with_checkpoint(trainer, build);
}

att_status att_trainer_dry_run(att_trainer *trainer)
{
    return with_checkpoint(trainer, dry_run);
}

void att_trainer_free(att_trainer *trainer)
{
    att_alerts_destroy(&trainer->state.alerts);
    att_processes_close(&trainer->processes);
    att_history_free(&trainer->state.history);
    att_free(trainer->context, trainer->losses);
    att_text_free(&trainer->run.shapes);
    att_free(trainer->context, trainer->last_checkpoint);
    att_loader_destroy(&trainer->loader);
    att_teaching_close(&trainer->teaching);
    att_update_destroy(&trainer->update);
    att_gradient_destroy(&trainer->gradient);
    att_free(trainer->context, trainer->rates);
    att_free(trainer->context, trainer->frozen);
    att_trainer_free_shapes(trainer);
}

#include "study/train/inference.h"

#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "data/transform.h"
#include "engine/graph/graph.h"
#include "engine/session/session.h"

/* Whether the output is returned by default. Probes are not, and neither is the loss, which needs targets. */
static bool is_answer(const att_named_value *output)
{
    return !output->probe && strcmp(output->name, "loss") != 0;
}

static bool is_requested(const att_named_value *output, const char *const *requested)
{
    if (!requested)
        return is_answer(output);
    while (*requested && strcmp(*requested, output->name) != 0)
        requested++;
    return *requested;
}

static att_status describe_outputs(const att_graph *graph, const char *const *requested, att_inference *inference)
{
    size_t count = (size_t)graph->outputs.count;
    inference->outputs = att_allocate_array(inference->context, count, sizeof *inference->outputs);
    inference->answers = att_allocate_array(inference->context, count, sizeof *inference->answers);
    if (count > 0 && (!inference->outputs || !inference->answers))
        return att_fail_memory(inference->context, count * sizeof *inference->outputs, "a network's outputs");
    for (int i = 0; i < graph->outputs.count; i++) {
        const att_named_value *output = &graph->outputs.items[i];
        bool whole = att_value_dtype(graph, output->value) == ATT_I32;
        if (is_requested(output, requested))
            inference->outputs[inference->output_count++] = (att_field){.name = output->name,
                                                                        .dtype = whole ? ATT_I32 : ATT_F32,
                                                                        .shape = att_value_shape(graph, output->value)};
    }
    return ATT_OK;
}

/* Lists the outputs and probes to compute. names: space for all outputs and a NULL. */
static void choose_outputs(const att_graph *graph, const att_inference_options *options, const char **names)
{
    int count = 0;
    for (int i = 0; i < graph->outputs.count; i++) {
        const att_named_value *output = &graph->outputs.items[i];
        if (is_requested(output, options->outputs) ||
            (output->probe && options->probes && att_text_matches(options->probes, output->name)))
            names[count++] = output->name;
    }
    names[count] = NULL;
}

static att_status describe_inputs(att_inference *inference)
{
    while (att_plan_input_at(inference->plan, inference->input_count).name)
        inference->input_count++;
    ATT_TRY(att_new(inference->context, &inference->inputs, (size_t)inference->input_count + 1, "a network's inputs"));
    for (int i = 0; i < inference->input_count; i++) {
        const att_field field = att_plan_input_at(inference->plan, i);
        inference->inputs[i] = (att_inference_input){.name = field.name, .elements = att_shape_count(field.shape)};
    }
    return ATT_OK;
}

static att_status compile(const att_graph *graph, const att_inference_options *options, att_inference *inference)
{
    *inference = (att_inference){
        .context = att_graph_context(graph), .wide = att_graph_dtype(graph) == ATT_F64, .own = options->own};
    ATT_TRY(describe_outputs(graph, options->outputs, inference));
    size_t count = (size_t)graph->outputs.count + 1;
    const char **names;
    ATT_TRY(att_new(inference->context, &names, count, "a network's outputs"));
    choose_outputs(graph, options, names);
    att_plan_options plan = att_plan_options_defaults();
    plan.backend = options->backend;
    plan.precision = options->precision;
    plan.group = options->group;
    plan.comm = options->comm;
    plan.outputs = names;
    att_status status = att_plan_compile(graph, &plan, &inference->plan);
    att_free(inference->context, names);
    return status == ATT_OK ? describe_inputs(inference) : status;
}

/* Bytes of the rows of an input in F64; 0 if it is bound as it is given. */
static size_t input_bytes(const att_inference *inference, int index, int max_batch)
{
    const bool converts = att_plan_input_at(inference->plan, index).dtype == ATT_F64;
    const size_t elements = (size_t)inference->inputs[index].elements;
    return converts ? att_size_product((size_t)max_batch, elements * sizeof(double)) : 0;
}

/* Bytes of a batch of the largest output in F64. */
static size_t row_bytes(const att_inference *inference, int max_batch)
{
    int64_t most = 0;
    for (int i = 0; i < inference->output_count; i++) {
        int64_t elements = att_shape_count(inference->outputs[i].shape);
        most = elements > most ? elements : most;
    }
    return inference->wide ? att_size_product((size_t)max_batch, (size_t)most * sizeof(double)) : 0;
}

static att_status allocate_converted(att_inference *inference, int max_batch)
{
    for (int i = 0; i < inference->input_count; i++) {
        const size_t bytes = input_bytes(inference, i, max_batch);
        inference->inputs[i].converted = bytes > 0 ? att_allocate(inference->context, bytes) : NULL;
        if (bytes > 0 && !inference->inputs[i].converted)
            return att_fail_memory(inference->context, bytes, "inputs in double precision");
    }
    const size_t rows = row_bytes(inference, max_batch);
    inference->rows = rows > 0 ? att_allocate(inference->context, rows) : NULL;
    return rows == 0 || inference->rows ? ATT_OK
                                        : att_fail_memory(inference->context, rows, "outputs in double precision");
}

static att_status allocate_answers(att_inference *inference, int max_batch)
{
    for (int i = 0; i < inference->output_count; i++) {
        size_t bytes = att_size_product((size_t)max_batch, att_field_bytes(&inference->outputs[i]));
        inference->answers[i] = att_allocate(inference->context, bytes);
        if (!inference->answers[i])
            return att_fail_memory(inference->context, bytes, "the outputs");
    }
    return allocate_converted(inference, max_batch);
}

/* Bytes of the session, the answers and what is converted. */
static size_t bytes_of(const att_inference *inference, int max_batch)
{
    size_t bytes = att_size_sum(att_session_bytes(inference->plan, max_batch), row_bytes(inference, max_batch));
    for (int i = 0; i < inference->output_count; i++)
        bytes = att_size_sum(bytes, att_size_product((size_t)max_batch, att_field_bytes(&inference->outputs[i])));
    for (int i = 0; i < inference->input_count; i++)
        bytes = att_size_sum(bytes, input_bytes(inference, i, max_batch));
    return bytes;
}

att_status att_inference_create(const att_graph *graph, att_weights *weights, const att_inference_options *options,
                                att_inference *inference)
{
    att_status status = compile(graph, options, inference);
    if (status == ATT_OK && options->cache)
        att_shape_cache_make_room(options->cache, options->entry, bytes_of(inference, options->max_batch));
    if (status == ATT_OK)
        status = att_session_create(inference->plan, weights, options->max_batch, &inference->session);
    if (status == ATT_OK)
        status = allocate_answers(inference, options->max_batch);
    if (status == ATT_OK)
        inference->session->stops = options->stops;
    else
        att_inference_free(inference);
    return status;
}

att_status att_inference_bytes(const att_graph *graph, const att_inference_options *options, size_t *bytes)
{
    att_inference inference;
    att_status status = compile(graph, options, &inference);
    if (status == ATT_OK)
        *bytes = bytes_of(&inference, options->max_batch);
    att_inference_free(&inference);
    return status;
}

void att_inference_free(att_inference *inference)
{
    if (!inference->context)
        return;
    att_session_destroy(&inference->session);
    att_plan_destroy(&inference->plan);
    for (int i = 0; i < inference->output_count; i++)
        att_free(inference->context, inference->answers[i]);
    for (int i = 0; inference->inputs && i < inference->input_count; i++)
        att_free(inference->context, inference->inputs[i].converted);
    att_free(inference->context, inference->inputs);
    att_free(inference->context, inference->rows);
    att_free(inference->context, inference->answers);
    att_free(inference->context, inference->outputs);
    *inference = (att_inference){0};
}

/* Reads the rows of an output, numbers in F32. */
static att_status read_output(const att_inference *inference, int output, int batch)
{
    const att_field *field = &inference->outputs[output];
    float *answers = inference->answers[output];
    bool narrows = inference->wide && field->dtype == ATT_F32;
    void *rows = narrows ? (void *)inference->rows : answers;
    if (inference->own)
        ATT_TRY(att_session_own_output(inference->session, field->name, rows));
    else
        ATT_TRY(att_session_output(inference->session, field->name, 0, batch, rows));
    for (int64_t i = 0; narrows && i < batch * att_shape_count(field->shape); i++)
        answers[i] = (float)inference->rows[i];
    return ATT_OK;
}

static att_status bind(const att_inference *inference, const att_batch *inputs, int rows)
{
    for (int i = 0; i < inference->input_count; i++) {
        const att_inference_input *input = &inference->inputs[i];
        const void *given = att_batch_rows(inputs, input->name);
        const float *narrow = given;
        if (!given)
            continue;
        for (int64_t e = 0; input->converted && e < rows * input->elements; e++)
            input->converted[e] = narrow[e];
        ATT_TRY(att_session_bind(inference->session, input->name, input->converted ? input->converted : given));
    }
    return ATT_OK;
}

att_status att_inference_run(att_inference *inference, const att_batch *inputs, int rows, att_batch *answers)
{
    ATT_TRY(bind(inference, inputs, rows));
    att_status status = att_session_run(inference->session, rows);
    if (status == ATT_ERR_STOPPED)
        return att_fail(inference->context, status, "stopped on request while the network ran");
    ATT_TRY(status);
    int batch = inference->own ? rows : att_session_samples(inference->session);
    for (int i = 0; i < inference->output_count; i++)
        ATT_TRY(read_output(inference, i, batch));
    *answers = (att_batch){.count = batch,
                           .field_count = inference->output_count,
                           .fields = inference->outputs,
                           .data = (const void *const *)inference->answers};
    return ATT_OK;
}

const att_batch *att_batch_replace(const att_batch *batch, const char *name, const void *rows,
                                   att_replaced_batch *replaced)
{
    for (int f = 0; f < batch->field_count; f++)
        replaced->data[f] = strcmp(batch->fields[f].name, name) == 0 ? rows : batch->data[f];
    replaced->batch = *batch;
    replaced->batch.data = replaced->data;
    return &replaced->batch;
}

static bool all_finite(const float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

bool att_inference_is_finite(const att_batch *answers, int sample)
{
    for (int f = 0; f < answers->field_count; f++) {
        int64_t width = att_shape_count(answers->fields[f].shape);
        if (answers->fields[f].dtype == ATT_F32 && !all_finite((const float *)answers->data[f] + sample * width, width))
            return false;
    }
    return true;
}

/* Weights of one size must be those of the other. */
static att_status check_parameters(const att_model *model, const att_weights *weights, int height, int width)
{
    const att_graph *graph = att_model_graph(model);
    ATT_TRY(att_graph_status(graph));
    for (int i = 0; i < att_weights_count(weights); i++) {
        const att_parameter_info own = att_weights_at(weights, i);
        const att_parameter_info *sized = i < graph->parameters.count ? &graph->parameters.items[i] : NULL;
        if (!sized || strcmp(own.name, sized->name) != 0 || !att_shape_equal(own.shape, sized->shape))
            return att_fail(att_graph_context(graph), ATT_ERR_UNSUPPORTED,
                            "%s cannot take images of %d x %d pixels beside others: its \"%s\" depends on their size; "
                            "use a network without such parameters, or a crop mode that makes images of one size",
                            att_model_name(model), height, width, own.name);
    }
    return ATT_OK;
}

att_status att_inference_resize(const att_model *model, const att_weights *weights, int height, int width,
                                att_model **out)
{
    const att_shapes shapes = att_model_shapes_sized(model, height, width);
    att_model *sized;
    ATT_TRY(att_model_reshape(model, &shapes, &sized));
    att_status status = check_parameters(sized, weights, height, width);
    if (status == ATT_OK)
        *out = sized;
    else
        att_model_destroy(&sized);
    return status;
}

att_status att_inference_check_images(const att_model *model, const att_transform_options *transform)
{
    ATT_TRY(att_model_need_image(model));
    const att_shape made = att_shape_of(transform->height, transform->width, transform->channels);
    const att_shape own = att_model_image(model).field.shape;
    const bool varies = att_transform_varies(transform);
    if (varies ? made.dims[2] == own.dims[2] : att_shape_equal(made, own))
        return ATT_OK;
    if (varies)
        return att_fail(att_graph_context(att_model_graph(model)), ATT_ERR_MISMATCH,
                        "the transform makes images with %d channels, but %s takes %lld", transform->channels,
                        att_model_name(model), (long long)own.dims[2]);
    return att_fail(att_graph_context(att_model_graph(model)), ATT_ERR_MISMATCH,
                    "the transform makes images of %d x %d with %d channels, but %s takes %lld x %lld with %lld",
                    transform->height, transform->width, transform->channels, att_model_name(model),
                    (long long)own.dims[0], (long long)own.dims[1], (long long)own.dims[2]);
}

#include <attscope/convert.h>

#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/random.h"
#include "networks/models/inputs.h"
#include "study/train/inference.h"

/* Two networks that answer the same inputs. */
typedef struct comparison {
    att_context *context;
    att_inference inference[2];
    void *inputs[ATT_MAX_INPUTS];
    att_field fields[ATT_MAX_INPUTS];
    int input_count, count;
} comparison;

static att_status check_outputs(const comparison *c)
{
    const att_inference *first = &c->inference[0], *second = &c->inference[1];
    bool same = first->output_count == second->output_count;
    for (int i = 0; same && i < first->output_count; i++)
        same = strcmp(first->outputs[i].name, second->outputs[i].name) == 0 &&
               att_shape_equal(first->outputs[i].shape, second->outputs[i].shape);
    return same ? ATT_OK
                : att_fail(c->context, ATT_ERR_MISMATCH, "the networks to be compared have other outputs or shapes");
}

/* Numbers are normal. Integers are the least that the input takes or one more; those of a limited input are the least
 * or the largest. */
static att_status draw_input(comparison *c, att_random *random, int index, const att_model_input *input)
{
    const att_field *field = &c->fields[index];
    const int32_t more = input->most < INT32_MAX ? input->most : input->least + 1;
    const size_t count = (size_t)att_shape_count(field->shape) * (size_t)c->count;
    ATT_TRY(att_new_array(c->context, &c->inputs[index], count, att_dtype_size(field->dtype), "inputs"));
    for (size_t i = 0; i < count; i++)
        if (field->dtype == ATT_F32)
            ((float *)c->inputs[index])[i] = (float)att_random_normal(random);
        else
            ((int32_t *)c->inputs[index])[i] = att_random_uniform(random) < 0.5 ? more : input->least;
    return ATT_OK;
}

static att_status draw_inputs(comparison *c, const att_model *models[2], uint64_t seed)
{
    char first[ATT_INPUTS_TEXT], second[ATT_INPUTS_TEXT];
    if (!att_model_same_inputs(models[0], models[1]))
        return att_fail(c->context, ATT_ERR_MISMATCH, "the networks to be compared have other inputs: %s, and %s",
                        att_model_inputs_describe(models[0], first), att_model_inputs_describe(models[1], second));
    att_random random = att_random_from(att_random_key(seed, 0, 0));
    for (; att_model_input_at(models[0], c->input_count).field.name; c->input_count++) {
        const att_model_input input = att_model_input_at(models[0], c->input_count);
        c->fields[c->input_count] = input.field;
        ATT_TRY(draw_input(c, &random, c->input_count, &input));
    }
    return ATT_OK;
}

static att_status compare(comparison *c, double *error)
{
    double largest = 0, difference = 0;
    att_batch answers[2];
    const att_batch inputs = {
        .count = c->count, .field_count = c->input_count, .fields = c->fields, .data = (const void *const *)c->inputs};
    for (int n = 0; n < 2; n++)
        ATT_TRY(att_inference_run(&c->inference[n], &inputs, c->count, &answers[n]));
    for (int i = 0; i < answers[0].field_count; i++) {
        const float *first = answers[0].data[i], *second = answers[1].data[i];
        int64_t count = att_shape_count(answers[0].fields[i].shape) * c->count;
        for (int64_t e = 0; e < count; e++) {
            if (!isfinite(first[e]) || !isfinite(second[e]))
                return att_fail(c->context, ATT_ERR_NONFINITE, "an output of the networks is NaN or infinite");
            largest = fmax(largest, fabs((double)first[e]));
            difference = fmax(difference, fabs((double)first[e] - (double)second[e]));
        }
    }
    if (largest == 0 && difference == 0)
        return att_fail(c->context, ATT_ERR_UNSUPPORTED,
                        "all outputs of the networks are 0 on %d random inputs, so that nothing was compared",
                        c->count);
    *error = difference / largest;
    return ATT_OK;
}

static att_status run(comparison *c, const att_model *models[2], att_weights *weights[2], uint64_t seed, double *error)
{
    const att_inference_options options = {.backend = "cpu", .precision = ATT_FULL, .max_batch = c->count};
    for (int n = 0; n < 2; n++)
        ATT_TRY(att_inference_create(att_model_graph(models[n]), weights[n], &options, &c->inference[n]));
    ATT_TRY(check_outputs(c));
    ATT_TRY(draw_inputs(c, models, seed));
    return compare(c, error);
}

att_status att_models_compare(const att_model *first, att_weights *first_weights, const att_model *second,
                              att_weights *second_weights, int count, uint64_t seed, double *error)
{
    const att_model *models[] = {first, second};
    att_weights *weights[] = {first_weights, second_weights};
    comparison c = {.context = att_graph_context(att_model_graph(first)), .count = count};
    if (count < 1)
        return att_fail(c.context, ATT_ERR_ARGUMENT, "%d inputs to compare networks, expected at least 1", count);
    att_status status = run(&c, models, weights, seed, error);
    for (int n = 0; n < 2; n++)
        att_inference_free(&c.inference[n]);
    for (int i = 0; i < ATT_MAX_INPUTS; i++)
        att_free(c.context, c.inputs[i]);
    return status;
}

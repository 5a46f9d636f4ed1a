#include "networks/models/inputs.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/options.h"
#include "networks/models/family.h"

att_status att_image_check_least(att_context *context, const int img_size[2], int least)
{
    for (int i = 0; i < 2; i++)
        if (img_size[i] < least)
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "img_size %d is too small: the strides of this network need at least %d pixels in height "
                            "and width",
                            img_size[i], least);
    return ATT_OK;
}

bool att_shapes_equal(const att_shapes *a, const att_shapes *b)
{
    bool same = a->count == b->count;
    for (int i = 0; i < a->count && same; i++)
        same = att_shape_equal(a->of[i], b->of[i]);
    return same;
}

const att_family_input *att_family_input_of(const att_family *family, const att_option_values *options, int index)
{
    for (int i = 0; i < ATT_MAX_INPUTS && family->inputs[i].name; i++) {
        const att_family_input *input = &family->inputs[i];
        if (input->when && att_options_number(options, input->when, 0) == 0)
            continue;
        if (index-- == 0)
            return input;
    }
    return NULL;
}

/* Dimensions that an option gives: two for height and width. */
static int dims_of(const att_family *family, const char *key)
{
    return att_option_find(family->options, key)->kind == ATT_OPTION_SIDES ? 2 : 1;
}

static const att_family_input *input_of(const att_model *model, int index)
{
    return att_family_input_of(att_model_family(model), att_model_options(model), index);
}

att_shape att_family_input_shape(const att_family *family, const att_family_input *input,
                                 const att_option_values *options)
{
    att_shape shape = {0};
    for (int k = 0; k < ATT_MAX_RANK && input->dims[k]; k++) {
        const att_option_value *value = att_options_find(options, input->dims[k]);
        for (int i = 0; i < dims_of(family, input->dims[k]); i++)
            shape.dims[shape.rank++] = (int64_t)value->numbers[i < value->count ? i : 0];
    }
    return shape;
}

att_shapes att_model_shapes(const att_model *model)
{
    att_shapes shapes = {.count = 0};
    for (const att_family_input *input; (input = input_of(model, shapes.count));)
        shapes.of[shapes.count++] = att_family_input_shape(att_model_family(model), input, att_model_options(model));
    return shapes;
}

att_shapes att_model_shapes_sized(const att_model *model, int height, int width)
{
    att_shapes shapes = att_model_shapes(model);
    for (int i = 0; i < shapes.count; i++)
        if (att_model_input_at(model, i).image) {
            shapes.of[i].dims[0] = height;
            shapes.of[i].dims[1] = width;
        }
    return shapes;
}

att_model_input att_model_image(const att_model *model)
{
    for (int i = 0; input_of(model, i); i++)
        if (att_model_input_at(model, i).image)
            return att_model_input_at(model, i);
    return (att_model_input){0};
}

static char *describe_form(const att_model_input *input, char *text, size_t size)
{
    const att_shape shape = input->field.shape;
    char dims[64];
    if (input->image)
        snprintf(text, size, "%lld x %lld pixels, %lld channel%s", (long long)shape.dims[0], (long long)shape.dims[1],
                 (long long)shape.dims[2], shape.dims[2] == 1 ? "" : "s");
    else
        snprintf(text, size, "%s, %s", att_shape_format(shape, dims, sizeof dims), att_dtype_name(input->field.dtype));
    return text;
}

char *att_model_inputs_describe(const att_model *model, char text[ATT_INPUTS_TEXT])
{
    size_t length = 0;
    *text = '\0';
    for (int i = 0; input_of(model, i) && length < ATT_INPUTS_TEXT; i++) {
        const att_model_input input = att_model_input_at(model, i);
        char form[96];
        length += (size_t)snprintf(text + length, ATT_INPUTS_TEXT - length, "%s\"%s\" (%s)", i > 0 ? ", " : "",
                                   input.field.name, describe_form(&input, form, sizeof form));
    }
    return text;
}

bool att_model_same_inputs(const att_model *a, const att_model *b)
{
    const att_shapes shapes = att_model_shapes(a), others = att_model_shapes(b);
    bool same = att_shapes_equal(&shapes, &others);
    for (int i = 0; i < shapes.count && same; i++) {
        const att_field field = att_model_input_at(a, i).field, other = att_model_input_at(b, i).field;
        same = strcmp(field.name, other.name) == 0 && field.dtype == other.dtype;
    }
    return same;
}

att_status att_model_need_image(const att_model *model)
{
    char text[ATT_INPUTS_TEXT];
    att_context *context = att_graph_context(att_model_graph(model));
    if (att_model_image(model).image)
        return ATT_OK;
    for (int i = 0; input_of(model, i); i++)
        if (strcmp(input_of(model, i)->name, ATT_TOKENS) == 0)
            return att_fail(
                context, ATT_ERR_UNSUPPORTED,
                "%s reads texts, and this needs a network that reads images; attscope embed, measure, maps, "
                "ablate and serve take texts",
                att_model_name(model));
    return att_fail(context, ATT_ERR_UNSUPPORTED, "%s has no input that is an image; its inputs are: %s",
                    att_model_name(model), att_model_inputs_describe(model, text));
}

void att_model_copy_varying(const att_model *model, att_option_values *options)
{
    const att_family_input *input;
    for (int i = 0; (input = input_of(model, i)); i++)
        if (input->varies)
            att_option_copy(input->varies, att_model_options(model), options);
}

/* Sets the option of the input that may vary to its dimensions in `shape`. */
static void take_shape(const att_family *family, const att_family_input *input, att_shape shape,
                       att_option_values *options)
{
    int at = 0;
    for (int k = 0; k < ATT_MAX_RANK && input->dims[k]; k++) {
        int count = dims_of(family, input->dims[k]);
        bool varies = input->varies && strcmp(input->dims[k], input->varies) == 0;
        int sides[2] = {0};
        for (int i = 0; i < count; i++, at++)
            sides[i] = at < shape.rank && shape.dims[at] <= INT_MAX ? (int)shape.dims[at] : INT_MAX;
        if (varies && count == 2)
            att_options_set_sides(options, input->varies, sides[0], sides[1]);
        else if (varies)
            att_options_set(options, input->varies, sides[0]);
    }
}

att_status att_model_check_input(const att_model *model, int index, att_shape given, const att_option_values *options)
{
    const att_family_input *input = input_of(model, index);
    const att_shape expected = att_family_input_shape(att_model_family(model), input, options);
    char own[64], other[64];
    if (att_shape_equal(given, expected))
        return ATT_OK;
    /* Where height and width may be at fault themselves, such as in [channels, height, width], the names say more. */
    if (input->image && (given.rank != 3 || given.dims[2] != expected.dims[2]))
        snprintf(own, sizeof own, "[height, width, %lld]", (long long)expected.dims[2]);
    else
        att_shape_format(expected, own, sizeof own);
    return att_fail(att_graph_context(att_model_graph(model)), ATT_ERR_MISMATCH,
                    "the input \"%s\" of %s has the shape %s, expected %s", input->name, att_model_name(model),
                    att_shape_format(given, other, sizeof other), own);
}

att_option_values att_model_shaped_options(const att_model *model, const att_shapes *shapes)
{
    att_option_values options = *att_model_options(model);
    for (int i = 0; i < shapes->count; i++)
        take_shape(att_model_family(model), input_of(model, i), shapes->of[i], &options);
    return options;
}

att_status att_model_reshape(const att_model *model, const att_shapes *shapes, att_model **out)
{
    const att_option_values options = att_model_shaped_options(model, shapes);
    for (int i = 0; i < shapes->count; i++)
        ATT_TRY(att_model_check_input(model, i, shapes->of[i], &options));
    return att_model_rebuild(model, &options, out);
}

att_status att_model_check_numbers(const att_model *model, int index, const int32_t *numbers, int64_t count,
                                   const att_option_values *options)
{
    const att_family_input *input = input_of(model, index);
    const char *key = input->below ? input->below : input->counts;
    if (!key)
        return ATT_OK;
    const int limit = (int)att_options_number(options, key, 0);
    const int least = input->counts ? 1 : 0, most = input->counts ? limit : limit - 1;
    for (int64_t i = 0; i < count; i++)
        if (numbers[i] < least || numbers[i] > most)
            return att_fail(att_graph_context(att_model_graph(model)), ATT_ERR_ARGUMENT,
                            "the input \"%s\" of %s has the number %d, expected %d to %d (%s %d)", input->name,
                            att_model_name(model), numbers[i], least, most, key, limit);
    return ATT_OK;
}

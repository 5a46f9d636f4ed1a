/* models/inputs.h - the inputs that families declare, and the shapes that a run gives them. */
#ifndef ATT_MODELS_INPUTS_H
#define ATT_MODELS_INPUTS_H

#include <attscope/models.h>

#include "base/core/export.h"

typedef struct att_family att_family;
typedef struct att_family_input att_family_input;

/* Shapes of a network's inputs, in the order in which its family declares them. */
typedef struct att_shapes {
    int count;
    att_shape of[ATT_MAX_INPUTS];
} att_shapes;
bool att_shapes_equal(const att_shapes *a, const att_shapes *b);

/* Input `index` of a network with these complete options; NULL past the last. */
const att_family_input *att_family_input_of(const att_family *family, const att_option_values *options, int index);
att_shape att_family_input_shape(const att_family *family, const att_family_input *input,
                                 const att_option_values *options);

att_shapes att_model_shapes(const att_model *model);
/* The same with images of these sides. */
att_shapes att_model_shapes_sized(const att_model *model, int height, int width);
/* The first input that is an image; all zero if there is none. */
ATT_FOR_LAB att_model_input att_model_image(const att_model *model);
/* Returns ERR_UNSUPPORTED, with the inputs that the network has, if none of them is an image. */
ATT_FOR_LAB att_status att_model_need_image(const att_model *model);

/* Whether both take the same inputs: names, types and shapes. */
bool att_model_same_inputs(const att_model *a, const att_model *b);
/* Lists the inputs, for messages: "image" (224 x 224 pixels, 3 channels), "tokens" ([77], I32). Returns `text`. */
enum { ATT_INPUTS_TEXT = 256 };
ATT_FOR_LAB char *att_model_inputs_describe(const att_model *model, char text[ATT_INPUTS_TEXT]);

/* Sets, in `options`, the options of the model that may vary from run to run: another network with them takes inputs of
 * the same shapes. */
ATT_FOR_LAB void att_model_copy_varying(const att_model *model, att_option_values *options);
/* Returns ERR_MISMATCH, with both shapes, if the input has another shape with these options (complete) than `given`. */
att_status att_model_check_input(const att_model *model, int index, att_shape given, const att_option_values *options);
/* Returns ERR_ARGUMENT if one of the numbers of an I32 input is none that the network takes with these options
 * (complete). */
att_status att_model_check_numbers(const att_model *model, int index, const int32_t *numbers, int64_t count,
                                   const att_option_values *options);
/* The model's options with dimensions that may vary as in `shapes`; the last input decides. */
att_option_values att_model_shaped_options(const att_model *model, const att_shapes *shapes);
/* Builds the same network for inputs of these shapes; only dimensions that the family lets vary may differ from the
 * model's. On success the caller owns *out. Errors: ERR_MISMATCH for other shapes, those of att_model_create(). */
att_status att_model_reshape(const att_model *model, const att_shapes *shapes, att_model **out);

#endif

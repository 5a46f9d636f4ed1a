/* The inputs that families declare. */
#include "context.h"

#include "engine/graph/graph.h"
#include "networks/models/family.h"

SHARED_CONTEXT(threads, 1)

TEST(families_declare_the_inputs_of_their_graphs)
{
    for (int f = 0; f < att_family_count(); f++) {
        const att_dtype dtypes[] = {ATT_F32, ATT_F64};
        for (int d = 0; d < 2; d++) {
            att_model *model;
            CHECK(context,
                  att_model_create(context, att_family_at(f)->variants->rows[0].name, NULL, dtypes[d], &model));
            const att_graph *graph = att_model_graph(model);
            for (int i = 0; i < graph->inputs.count; i++) {
                const att_model_input input = att_model_input_at(model, i);
                const att_value value = graph->inputs.items[i].value;
                assert_string_equal(input.field.name, graph->inputs.items[i].name);
                assert_true(att_shape_equal(input.field.shape, att_value_shape(graph, value)));
                assert_int_equal(input.field.dtype == ATT_F32 ? dtypes[d] : input.field.dtype,
                                 att_value_dtype(graph, value));
            }
            assert_null(att_model_input_at(model, graph->inputs.count).field.name);
            assert_null(att_model_input_at(model, -1).field.name);
            att_model_destroy(&model);
        }
    }
}

TEST(an_image_is_an_input_with_preprocessing)
{
    att_option_values options = att_options_none();
    att_model *model;
    char text[ATT_INPUTS_TEXT];
    att_options_set_sides(&options, "img_size", 32, 48);
    att_options_set(&options, "in_chans", 1);
    CHECK(context, att_model_create(context, "vit_tiny_patch16_224", &options, ATT_F32, &model));
    const att_model_input image = att_model_image(model);
    assert_string_equal(image.field.name, "image");
    assert_true(att_shape_equal(image.field.shape, att_shape_of(32, 48, 1)));
    assert_int_equal(image.field.dtype, ATT_F32);
    assert_int_equal(image.image->height, 32);
    assert_int_equal(image.image->width, 48);
    assert_true(image.image->mean[0] == 0.5);
    assert_string_equal(att_model_inputs_describe(model, text), "\"image\" (32 x 48 pixels, 1 channel)");
    assert_int_equal(att_model_need_image(model), ATT_OK);
    att_model_destroy(&model);
}

TEST(a_network_is_built_again_for_other_shapes)
{
    att_option_values options = att_options_none();
    att_model *model, *other;
    att_options_set(&options, "img_size", 32);
    att_options_set(&options, "depth", 1);
    CHECK(context, att_model_create(context, "vit_tiny_patch16_224", &options, ATT_F64, &model));
    att_preprocess preprocess = att_model_preprocess(model);
    preprocess.crop_pct = 0.75;
    att_model_set_preprocess(model, &preprocess);

    att_shapes shapes = att_model_shapes(model);
    shapes.of[0] = att_shape_of(64, 48, 3);
    CHECK(context, att_model_reshape(model, &shapes, &other));
    assert_true(att_shape_equal(att_model_image(other).field.shape, shapes.of[0]));
    assert_int_equal(att_graph_dtype(att_model_graph(other)), ATT_F64);
    assert_int_equal(att_model_preprocess(other).width, 48);
    assert_true(att_model_preprocess(other).crop_pct == 0.75);
    assert_true(att_options_number(att_model_options(other), "depth", 0) == 1);
    assert_false(att_model_same_inputs(model, other));
    assert_true(att_model_same_inputs(model, model));
    att_model_destroy(&other);

    const struct {
        att_shape shape;
        att_status status;
        const char *message;
    } refused[] = {
        {att_shape_of(64, 48, 1), ATT_ERR_MISMATCH,
         "the input \"image\" of vit_tiny_patch16_224 has the shape [64, 48, 1], expected [height, width, 3]"},
        {att_shape_of(64, 48), ATT_ERR_MISMATCH, "has the shape [64, 48], expected [height, width, 3]"},
        {{ATT_MAX_RANK + 1, {64, 48, 3}}, ATT_ERR_MISMATCH, "has the shape of rank 6, expected [height, width, 3]"},
        {att_shape_of(INT64_C(1) << 40, 48, 3), ATT_ERR_MISMATCH,
         "has the shape [1099511627776, 48, 3], expected [2147483647, 48, 3]"},
        {att_shape_of(0, 48, 3), ATT_ERR_ARGUMENT, "img_size"},
        {att_shape_of(64, 8, 3), ATT_ERR_ARGUMENT, "img_size 8 is smaller than patch_size 16"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        shapes.of[0] = refused[i].shape;
        assert_fails(context, att_model_reshape(model, &shapes, &other), refused[i].status, refused[i].message);
    }
    att_model_destroy(&model);
}

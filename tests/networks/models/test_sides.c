/* Images, patches and grids that are not square. */
#include "base/core/options.h"
#include "engine/graph/graph.h"
#include "networks/models/checkpoints.h"
#include "networks/models/family.h"

/* Images of 32 x 40 pixels in patches of 8 x 4: a grid of 4 x 10. */
static att_option_values wide(void)
{
    att_option_values options = small();
    att_options_set_sides(&options, "img_size", 32, 40);
    att_options_set_sides(&options, "patch_size", 8, 4);
    return options;
}

static void has_sides(const att_option_values *options, const char *key, int height, int width)
{
    const att_option_value *value = att_options_find(options, key);
    assert_non_null(value);
    assert_int_equal(value->numbers[0], height);
    assert_int_equal(value->numbers[value->count - 1], width);
}

static att_shape shape_of_parameter(const att_graph *graph, const char *name)
{
    for (int i = 0; i < att_graph_parameter_count(graph); i++)
        if (strcmp(att_graph_parameter_at(graph, i).name, name) == 0)
            return att_graph_parameter_at(graph, i).shape;
    fail_msg("there is no parameter %s", name);
    return (att_shape){0};
}

PLACE_TEST(vits_take_unequal_sides)
{
    att_option_values options = wide();
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    const att_graph *graph = att_model_graph(model);
    assert_true(att_shape_equal(shape_of_parameter(graph, "pos_embed"), att_shape_of(1, 1 + 4 * 10, 32)));
    assert_true(att_shape_equal(shape_of_parameter(graph, "patch_embed.proj.weight"), att_shape_of(32, 3, 8, 4)));
    att_preprocess look = att_model_preprocess(model);
    assert_int_equal(look.height, 32);
    assert_int_equal(look.width, 40);
    att_model_destroy(&model);
    att_options_set_sides(&options, "img_size", 32, 3);
    assert_int_equal(att_model_create(p->context, "vit_tiny_patch16_224", &options, ATT_F32, &model), ATT_ERR_ARGUMENT);
    says(att_context_message(p->context), "img_size 3 is smaller than patch_size 4 (width)");
}

/* As timm, pixels beyond the last whole patch are left out. The size of images is then the named network's, or that of
 * the caller, if its grid of patches is that of the file. */
PLACE_TEST(grids_of_patches_are_rounded_down)
{
    static const struct {
        const char *name;
        int given, size;
    } cases[] = {{"vit_so400m_patch14_siglip_384", 0, 384},
                 {"vit_so400m_patch14_siglip_378", 0, 378},
                 {"vit_so400m_patch14_siglip_224", 0, 378},
                 {"vit_so400m_patch14_siglip_384", 390, 390}};
    att_option_values options = small(), flags = att_options_none();
    att_identity found;
    att_options_set(&options, "img_size", 384), att_options_set(&options, "patch_size", 14);
    att_options_set(&flags, "num_heads", 2);
    write_model(p, "vit_so400m_patch14_siglip_384", &options, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_options_unset(&flags, "img_size");
        if (cases[i].given)
            att_options_set(&flags, "img_size", cases[i].given);
        CHECK(p->context, identify(p, cases[i].name, &flags, &found));
        assert_int_equal(found.preprocess.height, cases[i].size);
        assert_int_equal(att_options_number(&found.options, "img_size", 0), cases[i].size);
    }
    options = wide();
    att_options_set_sides(&options, "img_size", 39, 38);
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    assert_true(
        att_shape_equal(shape_of_parameter(att_model_graph(model), "pos_embed"), att_shape_of(1, 1 + 4 * 9, 32)));
    att_model_destroy(&model);
}

PLACE_TEST(residual_networks_take_unequal_sides)
{
    att_option_values options = att_options_none();
    att_options_set_sides(&options, "img_size", 8, 12);
    att_options_set(&options, "width", 4);
    write_model(p, "resnet20", &options, true);
    att_identity found;
    CHECK(p->context, identify(p, NULL, NULL, &found));
    has_sides(&found.options, "img_size", 8, 12);
    att_options_set_sides(&options, "img_size", 8, 3);
    att_model *model = NULL;
    assert_int_equal(att_model_create(p->context, "resnet20", &options, ATT_F32, &model), ATT_ERR_ARGUMENT);
    says(att_context_message(p->context), "img_size 3 is too small: the strides of this network");
}

PLACE_TEST(every_family_of_images_takes_height_before_width)
{
    for (int i = 0; i < att_family_count(); i++) {
        if (!att_option_find(att_family_at(i)->options, "img_size"))
            continue;
        att_option_values options = att_options_none();
        att_options_set_sides(&options, "img_size", 64, 96);
        if (att_option_find(att_family_at(i)->options, "patch_size"))
            att_options_set_sides(&options, "patch_size", 4, 4);
        att_model *model = make(p, att_family_at(i)->variants->rows[0].name, &options);
        const att_graph *graph = att_model_graph(model);
        assert_string_equal(graph->inputs.items[0].name, ATT_IMAGE);
        assert_true(att_shape_equal(att_value_shape(graph, graph->inputs.items[0].value), att_shape_of(64, 96, 3)));
        att_model_destroy(&model);
    }
}

/* attscope's metadata give patches and grid; tensors alone show the patches, not the grid. */
PLACE_TEST(files_are_identified)
{
    att_option_values options = wide(), flags = att_options_none();
    att_identity found;
    write_model(p, "vit_tiny_patch16_224", &options, true);
    CHECK(p->context, identify(p, NULL, NULL, &found));
    has_sides(&found.options, "img_size", 32, 40);
    has_sides(&found.options, "patch_size", 8, 4);
    assert_int_equal(found.preprocess.height, 32);
    assert_int_equal(found.preprocess.width, 40);
    says(found.origin, "img_size 32 x 40");

    write_model(p, "vit_tiny_patch16_224", &options, false);
    att_options_set(&flags, "num_heads", 2);
    assert_int_equal(identify(p, "vit_tiny_patch16_224", &flags, &found), ATT_ERR_UNSUPPORTED);
    says(att_context_message(p->context),
         "the 41 positions of \"pos_embed\" form no square grid; give the sides of the images (img_size H W, "
         "--img-size)");
    write_beside(p, "config.json", "{\"architecture\": \"vit_tiny_patch16_224\", \"input_size\": [3, 32, 40]}");
    CHECK(p->context, identify(p, NULL, &flags, &found));
    has_sides(&found.options, "img_size", 32, 40);
    has_sides(&found.options, "patch_size", 8, 4);
}

static void loads_as(const place *p, const att_option_values *options, att_status expected)
{
    att_model *model = make(p, "vit_tiny_patch16_224", options);
    att_weights *weights;
    att_tensors *file;
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    CHECK(p->context, att_tensors_open(p->context, p->weights, &file));
    att_status status = att_model_load(model, file, weights);
    if (status != expected)
        fail_msg("%s", att_context_message(p->context));
    att_tensors_close(&file);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
}

/* Files with 6 x 6 and with 4 x 9 patches have the same number of positions. Metadata tell them apart; without
 * metadata, the grid is taken as square. */
PLACE_TEST(positions_are_resampled)
{
    att_option_values options = small(), other = small();
    att_options_set_sides(&options, "img_size", 32, 72);
    att_options_set_sides(&other, "img_size", 64, 144);
    write_model(p, "vit_tiny_patch16_224", &options, true);
    loads_as(p, &other, ATT_OK);
    att_options_set_sides(&options, "img_size", 32, 40);
    write_model(p, "vit_tiny_patch16_224", &options, false);
    att_options_set_sides(&other, "img_size", 64, 80); /* the same proportions */
    loads_as(p, &other, ATT_OK);
    att_options_set_sides(&other, "img_size", 64, 64);
    loads_as(p, &other, ATT_ERR_MISMATCH);
}

/* UPerNet, its auxiliary head and its necks: parameters, sizes, gradients against central differences, and what is
 * refused. The values are compared with PyTorch's in tests/networks/models/test_segmenters.c. */
#include "engine/graph/graph.h"
#include "engine/ops/drop.h"
#include "engine/ops/finite_difference.h"
#include "networks/heads/heads.h"

TEST_GROUP(fd_setup, close_context)

enum { LEVELS = ATT_FEATURE_STAGES, CHANNELS = 3, WIDTH = 2, OUTPUTS = 2 };

static const int sizes[LEVELS][2] = {{7, 8}, {4, 4}, {2, 2}, {1, 1}},
                 square[LEVELS][2] = {{4, 4}, {4, 4}, {4, 4}, {4, 4}};

/* Maps made from inputs by a layer each, so that their gradient is that of a parameter. */
static att_value make_map(fd_model *model, const int size[2], int index)
{
    const att_scope root = att_scope_root(model->graph), scope = att_scope_in(&root, "stage%d", index + 1);
    const att_init init = {.rule = ATT_INIT_NORMAL, .value = 1};
    att_value x = fd_input(model, ATT_F64, att_shape_of(size[0], size[1], CHANNELS), 1, 0, 0);
    att_value weight = att_scope_parameter(&scope, "weight", att_shape_of(CHANNELS, CHANNELS), init, true);
    att_scope_enter(&scope);
    return att_linear(model->graph, x, weight, ATT_NONE);
}

/* A backbone with these maps as stages: of convolutions, unless tokens or blocks are set. */
static att_backbone make_backbone(fd_model *model, const int maps[LEVELS][2], const att_option_values *options)
{
    att_backbone backbone = {.features = {.tokens = ATT_NONE, .stage_count = LEVELS}, .options = options};
    for (int i = 0; i < LEVELS; i++)
        backbone.features.stages[i] = make_map(model, maps[i], i);
    return backbone;
}

static att_scope head_scope(const fd_model *model)
{
    const att_scope root = att_scope_root(model->graph);
    return att_scope_in(&root, "segmenter");
}

static void expect_size(const fd_model *model, att_value y, int64_t height, int64_t width, int64_t channels)
{
    assert_true(att_shape_equal(att_value_shape(model->graph, y), att_shape_of(height, width, channels)));
}

static att_option_values with_neck(const char *name)
{
    att_option_values options = att_options_none();
    att_options_set_text(&options, "neck", name);
    return options;
}

static bool has_parameter(const fd_model *model, const char *name)
{
    for (int i = 0; i < att_graph_parameter_count(model->graph); i++)
        if (strcmp(att_graph_parameter_at(model->graph, i).name, name) == 0)
            return true;
    return false;
}

static att_parameter_info find_parameter(const fd_model *model, const char *name)
{
    for (int i = 0; i < att_graph_parameter_count(model->graph); i++)
        if (strcmp(att_graph_parameter_at(model->graph, i).name, name) == 0)
            return att_graph_parameter_at(model->graph, i);
    fail_msg("there is no parameter %s", name);
    return (att_parameter_info){0};
}

static void expect_parameter(const fd_model *model, const char *name, att_shape shape)
{
    assert_true(att_shape_equal(find_parameter(model, name).shape, shape));
}

TEST(parameters_have_mmsegmentations_names)
{
    const att_option_values none = att_options_none();
    const att_conv_head_options options = {.channels = WIDTH};
    fd_model model = fd_create();
    const att_backbone backbone = make_backbone(&model, sizes, &none);
    const att_scope scope = head_scope(&model), beside = att_scope_in(&scope, "auxiliary_head");
    expect_size(&model, att_head_uper(&scope, backbone.features.stages, LEVELS, &options, OUTPUTS), 7, 8, OUTPUTS);
    expect_size(&model, att_head_fcn(&beside, backbone.features.stages[2], &options, OUTPUTS), 2, 2, OUTPUTS);
    expect_parameter(&model, "segmenter.psp_modules.3.1.conv.weight", att_shape_of(WIDTH, CHANNELS, 1, 1));
    expect_parameter(&model, "segmenter.psp_modules.0.1.bn.running_var", att_shape_of(WIDTH));
    expect_parameter(&model, "segmenter.bottleneck.conv.weight", att_shape_of(WIDTH, CHANNELS + 4 * WIDTH, 3, 3));
    expect_parameter(&model, "segmenter.lateral_convs.2.conv.weight", att_shape_of(WIDTH, CHANNELS, 1, 1));
    expect_parameter(&model, "segmenter.fpn_convs.2.conv.weight", att_shape_of(WIDTH, WIDTH, 3, 3));
    expect_parameter(&model, "segmenter.fpn_bottleneck.conv.weight", att_shape_of(WIDTH, 4 * WIDTH, 3, 3));
    expect_parameter(&model, "segmenter.fpn_bottleneck.bn.bias", att_shape_of(WIDTH));
    expect_parameter(&model, "segmenter.conv_seg.weight", att_shape_of(OUTPUTS, WIDTH, 1, 1));
    expect_parameter(&model, "segmenter.conv_seg.bias", att_shape_of(OUTPUTS));
    expect_parameter(&model, "segmenter.auxiliary_head.convs.0.conv.weight", att_shape_of(WIDTH, CHANNELS, 3, 3));
    expect_parameter(&model, "segmenter.auxiliary_head.conv_seg.weight", att_shape_of(OUTPUTS, WIDTH, 1, 1));
    assert_false(has_parameter(&model, "segmenter.lateral_convs.3.conv.weight"));
    assert_false(has_parameter(&model, "segmenter.bottleneck.conv.bias"));
    fd_destroy(&model);
}

/* UPerNet and the auxiliary head, behind mmsegmentation's neck. */
static fd_model build_both(const att_conv_head_options *options)
{
    const att_option_values neck = with_neck(ATT_NECK_MULTI_LEVEL);
    fd_model model = fd_create();
    const att_backbone backbone = make_backbone(&model, square, &neck);
    const att_scope scope = head_scope(&model), beside = att_scope_in(&scope, "auxiliary_head");
    att_value maps[LEVELS];
    assert_int_equal(att_head_maps(&scope, &backbone, maps), LEVELS);
    att_head_uper(&scope, maps, LEVELS, options, OUTPUTS);
    att_head_fcn(&beside, maps[2], options, OUTPUTS);
    must(att_graph_status(model.graph));
    return model;
}

static void expect_start(const fd_model *model, const char *name, att_init_rule rule, double value)
{
    const att_init init = find_parameter(model, name).init;
    assert_int_equal(init.rule, rule);
    assert_float_equal(init.value, value, 1e-15);
}

TEST(parameters_start_as_in_mmsegmentation)
{
    fd_model model = build_both(&(att_conv_head_options){.channels = WIDTH});
    expect_start(&model, "segmenter.bottleneck.conv.weight", ATT_INIT_NORMAL, sqrt(2.0 / (WIDTH * 3 * 3)));
    expect_start(&model, "segmenter.bottleneck.bn.weight", ATT_INIT_CONSTANT, 1);
    expect_start(&model, "segmenter.conv_seg.weight", ATT_INIT_NORMAL, 0.01);
    expect_start(&model, "segmenter.conv_seg.bias", ATT_INIT_CONSTANT, 0);
    expect_start(&model, "segmenter.auxiliary_head.conv_seg.weight", ATT_INIT_NORMAL, 0.01);
    expect_start(&model, "segmenter.neck.lateral_convs.0.conv.weight", ATT_INIT_UNIFORM, sqrt(6.0 / (2 * CHANNELS)));
    expect_start(&model, "segmenter.neck.convs.0.conv.weight", ATT_INIT_UNIFORM, sqrt(6.0 / (2 * CHANNELS * 3 * 3)));
    expect_start(&model, "segmenter.neck.convs.0.conv.bias", ATT_INIT_CONSTANT, 0);
    fd_destroy(&model);
}

/* Nodes between the convolutions are those of the head itself, also in tables of times. */
TEST(nodes_lie_in_the_scopes_of_their_layers)
{
    fd_model model = build_both(&(att_conv_head_options){.channels = WIDTH, .drop_rate = 0.25});
    int resized = 0, joined = 0, dropped = 0;
    for (int i = 0; i < model.graph->nodes.count; i++) {
        const att_node *node = &model.graph->nodes.items[i];
        if (strcmp(node->op->name, "add") == 0)
            assert_string_equal(node->scope, "segmenter");
        if (strcmp(node->op->name, "upsample_bilinear") == 0) {
            assert_string_equal(node->scope, resized < 2 ? "segmenter.neck" : "segmenter");
            resized++;
        }
        if (strcmp(node->op->name, "concat_maps") == 0) {
            assert_string_equal(node->scope, "segmenter");
            joined++;
        }
        if (strcmp(node->op->name, "channel_dropout") == 0) {
            assert_string_equal(node->scope, dropped ? "segmenter.auxiliary_head.conv_seg" : "segmenter.conv_seg");
            assert_float_equal(ATT_ATTRS(node, drop)->rate, 0.25, 0);
            dropped++;
        }
    }
    assert_int_equal(resized, 2 + 3); /* the neck, the sums */
    assert_int_equal(joined, 2);      /* the means, the levels */
    assert_int_equal(dropped, 2);
    fd_destroy(&model);
}

/* Checks the gradients of the head behind a neck, with dropout. */
static void check_gradients(const char *neck, const int maps_of[LEVELS][2], double tolerance)
{
    const att_option_values options = with_neck(neck);
    const att_conv_head_options head = {.channels = WIDTH, .drop_rate = 0.3};
    fd_model model = fd_create();
    att_backbone backbone = make_backbone(&model, maps_of, &options);
    att_value maps[LEVELS];
    const att_scope scope = head_scope(&model), beside = att_scope_in(&scope, "auxiliary_head");
    assert_int_equal(att_head_maps(&scope, &backbone, maps), LEVELS);
    att_value y = att_head_uper(&scope, maps, LEVELS, &head, OUTPUTS);
    const att_shape size = att_value_shape(model.graph, y);
    att_value auxiliary = att_upsample_bilinear(model.graph, att_head_fcn(&beside, maps[2], &head, OUTPUTS),
                                                (int)size.dims[0], (int)size.dims[1]);
    fd_loss_of(&model, att_combine(model.graph, 1, y, 0.4, auxiliary));
    print_message("%s: relative errors up to %.2g\n", neck, fd_check(&model, neck, 23, tolerance));
    fd_destroy(&model);
}

TEST(gradients_are_central_differences)
{
    check_gradients(ATT_NECK_NONE, sizes, 1e-6);
    check_gradients(ATT_NECK_PYRAMID, square, 1e-6);
    check_gradients(ATT_NECK_MULTI_LEVEL, square, 1e-6);
}

TEST(necks_make_maps_of_four_sizes)
{
    static const char *const necks[] = {ATT_NECK_PYRAMID, ATT_NECK_MULTI_LEVEL};
    for (size_t i = 0; i < sizeof necks / sizeof *necks; i++) {
        const att_option_values options = with_neck(necks[i]);
        fd_model model = fd_create();
        const att_backbone backbone = make_backbone(&model, square, &options);
        const att_scope scope = head_scope(&model);
        att_value maps[LEVELS];
        assert_int_equal(att_head_maps(&scope, &backbone, maps), LEVELS);
        for (int level = 0, side = 16; level < LEVELS; level++, side /= 2)
            expect_size(&model, maps[level], side, side, CHANNELS);
        fd_destroy(&model);
    }
}

TEST(a_neck_needs_four_maps_of_one_size)
{
    const att_option_values options = with_neck(ATT_NECK_MULTI_LEVEL);
    for (int less = 0; less < 2; less++) {
        fd_model model = fd_create();
        att_backbone backbone = make_backbone(&model, less ? square : sizes, &options);
        const att_scope scope = head_scope(&model);
        att_value maps[LEVELS];
        backbone.features.stage_count = less ? LEVELS - 1 : LEVELS;
        assert_int_equal(att_head_maps(&scope, &backbone, maps), 0);
        assert_fails(context, att_graph_status(model.graph), ATT_ERR_UNSUPPORTED,
                     "the neck multi_level (--neck) reads four maps of one size");
        fd_destroy(&model);
    }
}

TEST(only_stages_of_tokens_are_normed)
{
    const att_option_values none = att_options_none();
    for (int tokens = 0; tokens < 2; tokens++)
        for (int blocks = 0; blocks < 2; blocks++) {
            fd_model model = fd_create();
            att_backbone backbone = make_backbone(&model, sizes, &none);
            const att_scope scope = head_scope(&model);
            att_value maps[LEVELS];
            backbone.features.tokens = tokens ? backbone.features.stages[0] : ATT_NONE;
            backbone.features.block_count = blocks;
            assert_int_equal(att_head_maps(&scope, &backbone, maps), LEVELS);
            assert_int_equal(has_parameter(&model, "segmenter.norms.3.weight"), tokens && !blocks);
            assert_int_equal(maps[1] == backbone.features.stages[1], !tokens || blocks);
            fd_destroy(&model);
        }
}

TEST(a_network_without_maps_is_refused)
{
    const att_option_values none = att_options_none();
    fd_model model = fd_create();
    const att_backbone backbone = {.features = {.tokens = ATT_NONE}, .options = &none};
    const att_scope scope = head_scope(&model);
    att_value maps[LEVELS];
    assert_int_equal(att_head_maps(&scope, &backbone, maps), 0);
    assert_fails(context, att_graph_status(model.graph), ATT_ERR_UNSUPPORTED, "no map of features");
    fd_destroy(&model);
}

/* The mean over the whole map is one value of a channel. */
TEST(a_training_with_one_image_is_refused)
{
    const att_option_values none = att_options_none();
    const att_conv_head_options head = {.channels = WIDTH};
    fd_model model = fd_create();
    const att_backbone backbone = make_backbone(&model, sizes, &none);
    const att_scope scope = head_scope(&model);
    fd_loss_of(&model, att_head_uper(&scope, backbone.features.stages, LEVELS, &head, OUTPUTS));
    must(att_graph_status(model.graph));
    fd_run run = fd_open(&model, 1);
    att_gradient_begin(run.gradient);
    assert_fails(context, att_session_accumulate(run.session, run.gradient, 1, 1, 1, 1, 0), ATT_ERR_ARGUMENT,
                 "batch norm needs more than one row; use a larger batch");
    att_gradient_begin(run.gradient);
    must(att_session_accumulate(run.session, run.gradient, 2, 1, 1, 1, 0));
    fd_close(&run);
    fd_destroy(&model);
}

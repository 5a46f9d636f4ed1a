/* ConvNeXts: structure, options that cannot be built, and identification of files by rules (models/tensor_rules.h).
 * test_training.c compares losses and gradients with PyTorch's, test_logits.c logits with timm's. */
#include "engine/graph/graph.h"
#include "networks/models/checkpoints.h"
#include "networks/models/family.h"

static const char NAME[] = "convnext_tiny";

static att_option_values narrow(void)
{
    att_option_values options = att_options_none();
    att_options_set_sides(&options, "img_size", 32, 40), att_options_set(&options, "num_classes", 7);
    att_options_set_text(&options, "depths", "1,2,1"), att_options_set_text(&options, "dims", "8,12,16");
    return options;
}

PLACE_TEST(sides_may_differ)
{
    att_option_values options = narrow();
    att_options_set_text(&options, "kernel_sizes", "3,5,7");
    att_model *model = make(p, NAME, &options);
    has_shape(model, "stem.0.weight", att_shape_of(8, 3, 4, 4));
    has_shape(model, "stages.1.blocks.1.conv_dw.weight", att_shape_of(12, 1, 5, 5));
    has_shape(model, "stages.2.downsample.1.weight", att_shape_of(16, 12, 2, 2));
    has_shape(model, "stages.2.blocks.0.mlp.fc1.weight", att_shape_of(64, 16));
    const att_features *features = att_model_features(model);
    const att_graph *graph = att_model_graph(model);
    assert_int_equal(features->stage_count, 3);
    assert_true(att_shape_equal(att_value_shape(graph, features->stages[0]), att_shape_of(8, 10, 8)));
    assert_true(att_shape_equal(att_value_shape(graph, features->stages[2]), att_shape_of(2, 2, 16)));
    assert_true(att_shape_equal(att_value_shape(graph, features->pooled), att_shape_of(16)));
    att_model_destroy(&model);
}

/* As in timm, where stages.N.downsample belongs to the first block of stage N. */
PLACE_TEST(parameters_have_the_layers_of_timm)
{
    att_model *model = make(p, NAME, NULL);
    assert_int_equal(att_model_layer(model, "stem.1.bias"), 0);
    assert_int_equal(att_model_layer(model, "stages.0.blocks.0.gamma"), 1);
    assert_int_equal(att_model_layer(model, "stages.2.blocks.3.mlp.fc1.bias"), 1 + 2 * ATT_BLOCKS + 3);
    assert_int_equal(att_model_layer(model, "stages.2.downsample.0.weight"), 1 + 2 * ATT_BLOCKS);
    assert_int_equal(att_model_layer(model, "norm_pre.weight"), ATT_LAYER_LAST_BLOCK);
    assert_int_equal(att_model_layer(model, "head.norm.weight"), ATT_LAYER_HEAD);
    att_model_destroy(&model);
}

static void cannot_be(const place *p, const att_option_values *options, const char *words)
{
    att_model *model = NULL;
    assert_int_equal(att_model_create(p->context, NAME, options, ATT_F32, &model), ATT_ERR_ARGUMENT);
    says(att_context_message(p->context), words);
}

PLACE_TEST(options_that_cannot_be_built_are_refused)
{
    att_option_values options = narrow();
    att_options_set(&options, "img_size", 15);
    cannot_be(p, &options, "img_size 15 is too small: the strides of this network need at least 16 pixels");
    options = narrow(), att_options_set_text(&options, "depths", "1,0");
    cannot_be(p, &options, "depths must be the numbers of blocks of 1 to 4 stages");
    options = narrow(), att_options_set_text(&options, "dims", "8,12");
    cannot_be(p, &options, "dims must be one number, or one for each of 3 stages");
    options = narrow(), att_options_set_text(&options, "kernel_sizes", "4");
    cannot_be(p, &options, "kernel_sizes must be odd numbers up to 255, not 4");
    options = narrow(), att_options_set_sides(&options, "patch_size", 4, 2);
    cannot_be(p, &options, "a ConvNeXt has square patches, not patch_size 4 2");
    options = narrow(), att_options_set(&options, "head_norm_first", 1),
    att_options_set(&options, "head_hidden_size", 9);
    cannot_be(p, &options, "leave head_hidden_size 9 out");
    options = narrow(), att_options_set(&options, "embed_dim", 2);
    cannot_be(p, &options, "not of \"convnext\", which has dims instead");
}

/* One case for each option that changes tensors: found again from attscope's metadata, and from the tensors alone. */
PLACE_TEST(files_are_identified)
{
    static const struct {
        const char *key, *value;
    } cases[] = {{"kernel_sizes", "3,7,5"},   {"kernel_sizes", "9"},
                 {"stem", "overlap"},         {"stem", "overlap_tiered"},
                 {"stem", "overlap_act"},     {"patch_size", "2"},
                 {"norm_layer", "rmsnorm"},   {"conv_mlp", "true"},
                 {"head_norm_first", "true"}, {"head_hidden_size", "24"},
                 {"init_values", "0"},        {"num_classes", "0"},
                 {"in_chans", "1"},           {"modules", "se@after_branch:1"},
                 {"modules", "cbam:ratio=2"}, {"depths", "2,2,2,2"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int ours = 0; ours < 2; ours++) {
            const att_option *option = att_family_option(cases[i].key);
            att_option_values options = narrow();
            att_identity found;
            if (strcmp(cases[i].key, "depths") == 0)
                att_options_set_text(&options, "dims", "12");
            if (strcmp(cases[i].value, "overlap_tiered") == 0) /* 16 channels, then 24 */
                att_options_set_text(&options, "dims", "24,12,16");
            assert_true(att_option_store(option, &cases[i].value, 1, &options));
            att_model *model = make(p, NAME, &options);
            write_model(p, NAME, &options, ours);
            CHECK(p->context, identify(p, NAME, NULL, &found));
            for (int k = 0; k < options.count; k++) {
                const att_option *own = att_family_option(options.items[k].key);
                if (strcmp(own->key, "img_size") != 0 &&
                    !att_option_same(own, &found.options, att_model_options(model)))
                    fail_msg("%s %s: %s is \"%s\"", cases[i].key, cases[i].value, own->key,
                             att_options_text(&found.options, own->key));
            }
            att_model_destroy(&model);
        }
}

/* The network that is built from the rules must have exactly the file's tensors. */
PLACE_TEST(files_of_other_networks_are_refused)
{
    att_option_values options = narrow();
    att_model *model = make(p, NAME, &options);
    tensors t = tensors_of(model);
    add_tensor(&t, "stages.1.blocks.0.xca.temperature", att_shape_of(4));
    write_tensors(p, &t, NULL);
    refused(p, NAME, ATT_ERR_UNSUPPORTED,
            "tensor \"stages.1.blocks.0.xca.temperature\" belongs to no ConvNeXt here: it is a sign of EdgeNeXt");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "the nearest family, convnext, lacks 1 of");
    t = tensors_of(model);
    for (int i = 0; i < t.count; i++)
        if (strcmp(t.items[i].name, "stages.1.blocks.1.mlp.fc1.weight") == 0)
            t.items[i].shape.dims[0] = 36;
    write_tensors(p, &t, NULL);
    refused(
        p, NAME, ATT_ERR_UNSUPPORTED,
        "tensor \"stages.1.blocks.1.mlp.fc1.weight\" is [36, 12]; in a ConvNeXt with its other tensors it is [48, 12]");
    t = tensors_of(model);
    t.items[3].name = "stages.9.norm.weight";
    write_tensors(p, &t, NULL);
    refused(p, NAME, ATT_ERR_UNSUPPORTED, "\"stages.9.norm.weight\"");
    att_model_destroy(&model);
}

PLACE_TEST(timms_arguments_are_read)
{
    att_option_values options = narrow();
    att_identity found;
    att_options_set_text(&options, "stem", "overlap"), att_options_set_text(&options, "norm_layer", "rmsnorm");
    write_model(p, NAME, &options, false);
    write_beside(p, "config.json",
                 "{\"architecture\": \"convnext_tiny\", \"model_args\": {\"depths\": [1, 2, 1], \"dims\": [8, 12, 16], "
                 "\"stem_type\": \"overlap\", \"norm_layer\": \"rmsnorm2d\", \"norm_eps\": 0.001, \"kernel_sizes\": 7, "
                 "\"act_layer\": \"silu\"}}");
    CHECK(p->context, identify(p, NULL, NULL, &found));
    assert_true(att_options_number(&found.options, "norm_eps", 0) == 0.001);
    assert_string_equal(att_options_text(&found.options, "act_layer"), "silu");
    write_beside(p, "config.json", "{\"architecture\": \"convnext_tiny\", \"model_args\": {\"output_stride\": 16}}");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "made with output_stride 16");
}

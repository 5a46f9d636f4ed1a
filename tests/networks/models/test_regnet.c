/* RegNets: structure, options that cannot be built, and identification of files. test_logits.c compares logits with
 * timm's. */
#include "engine/graph/graph.h"
#include "networks/models/checkpoints.h"
#include "networks/models/family.h"

static const char NAME[] = "regnety_002";

static att_option_values narrow(void)
{
    att_option_values options = att_options_none();
    att_options_set_sides(&options, "img_size", 32, 48), att_options_set(&options, "num_classes", 7);
    att_options_set_text(&options, "depths", "1,2,1"), att_options_set_text(&options, "dims", "8,16,24");
    att_options_set_text(&options, "group_sizes", "4,8,8");
    return options;
}

/* The hidden channels of squeeze and excitation are a share of the block's inputs, not of its outputs. */
PLACE_TEST(shapes_are_timms)
{
    att_option_values options = narrow();
    att_model *model = make(p, NAME, &options);
    has_shape(model, "stem.conv.weight", att_shape_of(32, 3, 3, 3));
    has_shape(model, "s1.b1.conv2.conv.weight", att_shape_of(8, 4, 3, 3));
    has_shape(model, "s1.b1.se.fc1.weight", att_shape_of(8, 8, 1, 1));
    has_shape(model, "s2.b1.se.fc1.weight", att_shape_of(2, 16, 1, 1));
    has_shape(model, "s2.b2.se.fc1.weight", att_shape_of(4, 16, 1, 1));
    has_shape(model, "s3.b1.downsample.conv.weight", att_shape_of(24, 16, 1, 1));
    const att_features *features = att_model_features(model);
    const att_graph *graph = att_model_graph(model);
    assert_int_equal(features->stage_count, 3);
    assert_true(att_shape_equal(att_value_shape(graph, features->stages[2]), att_shape_of(2, 3, 24)));
    assert_int_equal(att_model_layer(model, "stem.bn.weight"), 0);
    assert_int_equal(att_model_layer(model, "s2.b2.conv1.conv.weight"), 1 + ATT_BLOCKS + 1);
    assert_int_equal(att_model_layer(model, "head.fc.weight"), ATT_LAYER_HEAD);
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
    options = narrow(), att_options_set_text(&options, "group_sizes", "4,8,9");
    cannot_be(p, &options,
              "the 24 channels of the grouped convolutions of stage 3 (dims 8,16,24, bottle_ratio 1) are "
              "not a multiple of its group size 9");
}

/* One case for each option that changes tensors: found again from attscope's metadata, and from the tensors alone. */
PLACE_TEST(files_are_identified)
{
    static const struct {
        const char *key, *value;
    } cases[] = {{"group_sizes", "8"},  {"se_ratio", "0"},
                 {"se_ratio", "0.5"},   {"bottle_ratio", "2"},
                 {"num_features", "9"}, {"shape_shortcuts", "false"},
                 {"stem_width", "16"},  {"num_classes", "0"},
                 {"in_chans", "1"},     {"modules", "se:ratio=4@after_branch:1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int ours = 0; ours < 2; ours++) {
            const att_option *option = att_family_option(cases[i].key);
            att_option_values options = narrow();
            att_identity found;
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

/* With timm's names, and blocks that differ from those that the rules tell. */
PLACE_TEST(files_of_other_networks_are_refused)
{
    att_option_values options = narrow();
    att_model *model = make(p, NAME, &options);
    tensors t = tensors_of(model);
    add_tensor(&t, "s1.b1.norm1.weight", att_shape_of(32));
    write_tensors(p, &t, NULL);
    refused(p, NAME, ATT_ERR_UNSUPPORTED, "belongs to no RegNet here: it is a sign of a RegNet with pre-activation");
    t = tensors_of(model);
    for (int i = 0; i < t.count; i++)
        if (strcmp(t.items[i].name, "s2.b2.conv2.conv.weight") == 0)
            t.items[i].shape.dims[1] = 4;
    write_tensors(p, &t, NULL);
    refused(
        p, NAME, ATT_ERR_UNSUPPORTED,
        "tensor \"s2.b2.conv2.conv.weight\" is [16, 4, 3, 3]; in a RegNet with its other tensors it is [16, 8, 3, 3]");
    att_model_destroy(&model);
}

/* MLP-Mixers: structure, initialisation, and identification of files. test_training.c compares losses and gradients
 * with PyTorch's. */
#include "engine/graph/graph.h"
#include "engine/ops/drop.h"
#include "networks/models/checkpoints.h"
#include "networks/models/family.h"

static const char MIXER[] = "mixer_s16_224";

/* Images of 32 x 40 pixels in patches of 8 x 4: a grid of 4 x 10. */
static att_option_values wide(void)
{
    att_option_values options = att_options_none();
    att_options_set_sides(&options, "img_size", 32, 40), att_options_set_sides(&options, "patch_size", 8, 4);
    att_options_set(&options, "embed_dim", 24), att_options_set(&options, "depth", 2),
        att_options_set(&options, "num_classes", 7);
    return options;
}

static att_option_values square(void)
{
    att_option_values options = wide();
    att_options_set(&options, "img_size", 32), att_options_set(&options, "patch_size", 8);
    return options;
}

PLACE_TEST(sides_may_differ)
{
    att_option_values options = wide();
    att_options_set(&options, "mlp_ratio", 1.5), att_options_set(&options, "token_mlp_ratio", 0.75);
    att_model *model = make(p, MIXER, &options);
    has_shape(model, "stem.proj.weight", att_shape_of(24, 3, 8, 4));
    has_shape(model, "blocks.1.mlp_tokens.fc1.weight", att_shape_of(18, 40));
    has_shape(model, "blocks.1.mlp_channels.fc1.weight", att_shape_of(36, 24));
    const att_features *features = att_model_features(model);
    const att_graph *graph = att_model_graph(model);
    assert_true(att_shape_equal(att_value_shape(graph, features->tokens), att_shape_of(40, 24)));
    assert_true(att_shape_equal(att_value_shape(graph, features->pooled), att_shape_of(24)));
    assert_true(features->prefix == 0 && features->grid[0] == 4 && features->grid[1] == 10);
    assert_int_equal(features->block_count, 2);
    att_model_destroy(&model);
}

static void starts_as(const att_model *model, const char *name, att_init_rule rule, double value)
{
    att_init init = parameter_of(model, name).init;
    assert_int_equal(init.rule, rule);
    assert_true(fabs(init.value - value) < 1e-15);
}

PLACE_TEST(parameters_start_as_timms)
{
    att_model *model = make(p, MIXER, NULL);
    starts_as(model, "stem.proj.weight", ATT_INIT_NORMAL, 1 / sqrt(768));
    starts_as(model, "stem.proj.bias", ATT_INIT_CONSTANT, 0);
    starts_as(model, "blocks.7.mlp_tokens.fc1.weight", ATT_INIT_UNIFORM, sqrt(6.0 / (196 + 256)));
    starts_as(model, "blocks.7.mlp_channels.fc2.weight", ATT_INIT_UNIFORM, sqrt(6.0 / (2048 + 512)));
    starts_as(model, "blocks.7.mlp_channels.fc2.bias", ATT_INIT_NORMAL, 1e-6);
    starts_as(model, "head.weight", ATT_INIT_CONSTANT, 0);
    starts_as(model, "head.bias", ATT_INIT_CONSTANT, 0);
    att_model_destroy(&model);
}

/* Every block has drop path in both branches; instruments name the additions as expected here. */
PLACE_TEST(drop_path_has_one_rate)
{
    att_option_values options = square();
    att_options_set(&options, "drop_path_rate", 0.25);
    att_model *model = make(p, MIXER, &options);
    const att_graph *graph = att_model_graph(model);
    int paths = 0, additions = 0;
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        char scope[64];
        if (strcmp(node->op->name, "drop_path") == 0) {
            snprintf(scope, sizeof scope, "blocks.%d.drop_path%d", paths / 2, 1 + paths % 2);
            assert_string_equal(node->scope, scope);
            assert_true(ATT_ATTRS(node, drop)->rate == 0.25);
            paths++;
        }
        if (strcmp(node->op->name, "add") == 0) {
            snprintf(scope, sizeof scope, "blocks.%d.add%d", additions / 2, 1 + additions % 2);
            assert_string_equal(node->scope, scope);
            additions++;
        }
    }
    assert_int_equal(paths, 4);
    assert_int_equal(additions, 4);
    att_model_destroy(&model);
}

static void cannot_be(const place *p, const att_option_values *options, const char *words)
{
    att_model *model = NULL;
    assert_int_equal(att_model_create(p->context, MIXER, options, ATT_F32, &model), ATT_ERR_ARGUMENT);
    says(att_context_message(p->context), words);
}

PLACE_TEST(options_that_cannot_be_built_are_refused)
{
    att_option_values options = wide();
    att_options_set_sides(&options, "img_size", 32, 3);
    cannot_be(p, &options, "img_size 3 is smaller than patch_size 4 (width)");
    options = wide(), att_options_set(&options, "token_mlp_ratio", 0.01);
    cannot_be(p, &options, "token_mlp_ratio 0.01 leaves no hidden channel of embed_dim 24");
    options = wide(), att_options_set_text(&options, "global_pool", "token");
    cannot_be(p, &options, "global_pool");
    options = wide(), att_options_set_text(&options, "modules", "cb_s@attn");
    cannot_be(p, &options, "this network has no \"@attn\", only after_mlp, after_mixing, mixing");
    options = wide(), att_options_set(&options, "num_heads", 2);
    cannot_be(
        p, &options,
        "num_heads is an option of the families \"vit\", \"eva\", \"attention_cnn\" and \"bert\", not of \"mixer\"");
}

/* From attscope's metadata, and from tensors alone. */
PLACE_TEST(modules_are_found_again)
{
    static const char *const all[] = {"cb_s", "cb_s@after_mixing", "cb_s@after_mlp:1+cb_s@mixing:0", "cb_s@mixing:0"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int ours = 0; ours < 2; ours++) {
            att_option_values options = square();
            att_identity found;
            att_options_set_text(&options, "modules", all[i]);
            write_model(p, MIXER, &options, ours);
            CHECK(p->context, identify(p, MIXER, NULL, &found));
            assert_string_equal(att_options_text(&found.options, "modules"), all[i]);
            /* derived from the first MLP along tokens, in whichever block it is */
            assert_true(att_options_number(&found.options, "img_size", 0) == 32);
        }
}

static void has(const att_identity *found, const char *key, double number)
{
    assert_true(fabs(att_options_number(&found->options, key, -1) - number) < 1e-12);
}

PLACE_TEST(files_are_identified)
{
    att_option_values options = square(), flags = att_options_none();
    att_identity found;
    att_options_set(&options, "mlp_ratio", 1.5);
    write_model(p, MIXER, &options, false);
    CHECK(p->context, identify(p, MIXER, NULL, &found));
    has(&found, "img_size", 32), has(&found, "patch_size", 8), has(&found, "embed_dim", 24), has(&found, "depth", 2);
    has(&found, "mlp_ratio", 1.5), has(&found, "token_mlp_ratio", 0.5), has(&found, "num_classes", 7);
    refused(p, NULL, ATT_ERR_NOT_FOUND, "mlp_ratio 1.5, token_mlp_ratio 0.5); name the nearest one");
    assert_null(strstr(att_context_message(p->context), "heads"));

    options = wide();
    write_model(p, MIXER, &options, true);
    CHECK(p->context, identify(p, NULL, NULL, &found));
    says(found.origin, "img_size 32 x 40");
    write_model(p, MIXER, &options, false);
    refused(p, MIXER, ATT_ERR_UNSUPPORTED, "the 40 patches of \"blocks.0.mlp_tokens.fc1.weight\" form no square grid");
    att_options_set_sides(&flags, "img_size", 32, 40);
    CHECK(p->context, identify(p, MIXER, &flags, &found));
    assert_int_equal(found.preprocess.width, 40);
}

/* The MLP along tokens has a fixed number of tokens. */
PLACE_TEST(images_of_another_size_are_refused)
{
    att_option_values options = square(), flags = att_options_none();
    att_identity found;
    att_options_set_sides(&flags, "img_size", 32, 64);
    for (int ours = 0; ours < 2; ours++) {
        write_model(p, MIXER, &options, ours);
        assert_int_equal(identify(p, MIXER, &flags, &found), ATT_ERR_UNSUPPORTED);
        says(att_context_message(p->context),
             "these fit 16, and an image of 32 x 64 pixels has 32; leave img_size out");
    }
    att_options_set_sides(&flags, "img_size", 16, 64); /* another grid with as many patches */
    CHECK(p->context, identify(p, MIXER, &flags, &found));
}

/* timm gives one ratio for both MLPs, or one for the tokens' MLP and one for the channels'. */
PLACE_TEST(timms_ratios_are_read)
{
    static const struct {
        const char *ratio;
        double tokens, channels;
    } cases[] = {{"[0.25, 1.5]", 0.25, 1.5}, {"2", 2, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_option_values options = square();
        att_identity found;
        char text[256];
        att_options_set(&options, "token_mlp_ratio", cases[i].tokens);
        att_options_set(&options, "mlp_ratio", cases[i].channels);
        write_model(p, MIXER, &options, false);
        snprintf(text, sizeof text,
                 "{\"architecture\": \"%s\", \"model_args\": {\"mlp_ratio\": %s, \"num_blocks\": 2, \"nlhb\": true}}",
                 MIXER, cases[i].ratio);
        write_beside(p, "config.json", text);
        CHECK(p->context, identify(p, NULL, NULL, &found));
        has(&found, "token_mlp_ratio", cases[i].tokens), has(&found, "mlp_ratio", cases[i].channels);
    }
    write_beside(p, "config.json", "{\"architecture\": \"mixer_s16_224\", \"model_args\": {\"mlp_ratio\": [1, 99]}}");
    refused(p, NULL, ATT_ERR_FORMAT, "\"mlp_ratio\" must be a number");
    write_beside(p, "config.json", "{\"architecture\": \"mixer_s16_224\", \"model_args\": {\"stem_norm\": true}}");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "made with stem_norm true");
}

PLACE_TEST(relatives_are_refused)
{
    static const char *const strangers[][2] = {
        {"stem.norm.weight", "\"stem.norm.weight\""},
        {"blocks.1.linear_tokens.weight", "a sign of ResMLP"},
        {"blocks.1.mlp_channels.gate.proj.weight", "a sign of gMLP"},
        {"blocks.01.norm1.weight", "\"blocks.01.norm1.weight\""},
    };
    att_option_values options = square();
    att_model *model = make(p, MIXER, &options);
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        tensors t = tensors_of(model);
        add_tensor(&t, strangers[i][0], att_shape_of(24));
        write_tensors(p, &t, NULL);
        refused(p, MIXER, ATT_ERR_UNSUPPORTED, "belongs to no MLP-Mixer");
        refused(p, MIXER, ATT_ERR_UNSUPPORTED, strangers[i][1]);
        refused(p, NULL, ATT_ERR_UNSUPPORTED, "the nearest family, mixer, lacks 1 of 31, such as ");
        refused(p, NULL, ATT_ERR_UNSUPPORTED, strangers[i][1]);
    }
    static const char *const gated[] = {"blocks.0.mlp_tokens.fc2.weight", "blocks.0.mlp_channels.fc2.weight"};
    for (int i = 0; i < 2; i++) {
        tensors t = tensors_of(model);
        for (int j = 0; j < t.count; j++)
            if (strcmp(t.items[j].name, gated[i]) == 0)
                t.items[j].shape.dims[1] /= 2;
        write_tensors(p, &t, NULL);
        refused(p, MIXER, ATT_ERR_UNSUPPORTED, "a sign of a gated MLP");
    }
    att_model_destroy(&model);
}

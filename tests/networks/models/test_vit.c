/* Options of ViTs: recognised from tensors, checked against each other, and layers of their parameters. */
#include "networks/models/checkpoints.h"
#include "networks/models/family.h"

/* An option: a text, or a number. */
typedef struct setting {
    const char *key, *text;
    double number;
} setting;
enum { MOST_SETTINGS = 10 };

static void set_all(const setting *settings, att_option_values *options)
{
    for (const setting *s = settings; s < settings + MOST_SETTINGS && s->key; s++)
        if (s->text)
            att_options_set_text(options, s->key, s->text);
        else
            att_options_set(options, s->key, s->number);
}

/* shown: options that the tensors show. told: options that they do not show, which the caller gives. */
static const struct {
    setting shown[MOST_SETTINGS], told[MOST_SETTINGS];
} networks[] = {
    {{{"global_pool", "avg", 0}, {"reg_tokens", NULL, 3}, {"embed_class", NULL, 0}}, {{"class_token", NULL, 0}}},
    {{{"global_pool", "avg", 0}, {"reg_tokens", NULL, 3}, {"embed_class", NULL, 1}}, {{"class_token", NULL, 0}}},
    {{{"reg_tokens", NULL, 2}, {"embed_class", NULL, 1}}, {{0}}},
    {{{"pre_norm", NULL, 1}}, {{"norm_eps", NULL, 1e-3}, {"act_layer", "quick_gelu", 0}}},
    {{{"norm_layer", "rmsnorm", 0},
      {"embed_norm_layer", "rmsnorm", 0},
      {"proj_bias", NULL, 0},
      {"qkv_bias", NULL, 0},
      {"mlp_layer", "swiglu", 0},
      {"mlp_ratio", NULL, 2.5}},
     {{"act_layer", "silu", 0}}},
    {{{"mlp_layer", "swiglu_packed", 0}, {"mlp_ratio", NULL, 3}}, {{"act_layer", "silu", 0}}},
    {{{"scale_attn_norm", NULL, 1}, {"scale_mlp_norm", NULL, 1}, {"qk_norm", NULL, 1}}, {{0}}},
    {{{"global_pool", "map", 0}}, {{"class_token", NULL, 0}, {"pool_include_prefix", NULL, 1}}},
    {{{"fc_norm", NULL, 1}}, {{"class_token", NULL, 0}, {"global_pool", "avgmax", 0}}},
    {{{"qkv_bias", NULL, 0}}, {{"block_fn", "ResPostBlock", 0}}},
    {{{"block_fn", "ParallelThingsBlock", 0}, {"init_values", NULL, 1e-5}, {"mlp_ratio", NULL, 3}}, {{0}}},
    {{{"block_fn", "ParallelScalingBlock", 0}, {"qk_norm", NULL, 1}, {"norm_layer", "rmsnorm", 0}}, {{0}}},
    {{{"block_fn", "ParallelScalingBlock", 0}, {"qkv_bias", NULL, 0}, {"mlp_ratio", NULL, 3}}, {{0}}},
    {{{"block_fn", "DiffParallelScalingBlock", 0}, {"proj_bias", NULL, 0}}, {{0}}},
    {{{"attn_layer", "diff", 0}}, {{0}}},
    {{{"distilled", NULL, 1}, {"embed_class", NULL, 1}}, {{0}}},
    {{{"block_fn", "BeitBlock", 0},
      {"rel_pos_type", "bias", 0},
      {"shared_rel_pos", NULL, 0},
      {"init_values", NULL, 1e-5}},
     {{"pos_embed", "none", 0}}},
    {{{"block_fn", "BeitBlock", 0}, {"rel_pos_type", "bias", 0}, {"shared_rel_pos", NULL, 1}, {"qkv_bias", NULL, 0}},
     {{0}}},
    {{{"block_fn", "BeitBlock", 0}, {"rel_pos_type", "none", 0}, {"qkv_bias", NULL, 1}}, {{0}}},
    {{{"rel_pos_type", "bias", 0}, {"shared_rel_pos", NULL, 0}, {"block_fn", "Block", 0}}, {{0}}},
    {{{"rel_pos_type", "mlp", 0}, {"rel_pos_dim", NULL, 8}},
     {{"block_fn", "ResPostBlock", 0}, {"pos_embed", "none", 0}}},
    {{{"rel_pos_type", "mlp", 0}, {"rel_pos_dim", NULL, 128}, {"shared_rel_pos", NULL, 1}}, {{0}}},
};

PLACE_TEST(tensors_show_options)
{
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        att_option_values options = small(), flags = att_options_none();
        att_identity found;
        set_all(networks[i].shown, &options);
        set_all(networks[i].told, &options);
        set_all(networks[i].told, &flags);
        att_options_set(&flags, "num_heads", 2);
        write_model(p, "vit_tiny_patch16_224", &options, false);
        CHECK(p->context, identify(p, "vit_tiny_patch16_224", &flags, &found));
        for (const setting *s = networks[i].shown; s->key; s++)
            if (s->text)
                assert_string_equal(att_options_text(&found.options, s->key), s->text);
            else if (att_options_number(&found.options, s->key, -1) != s->number)
                fail_msg("network %zu: %s is %g", i, s->key, att_options_number(&found.options, s->key, -1));
    }
}

/* timm's strict load refuses a file without a tensor of the named network, and so does attscope, unless an option says
 * that the file's network has none. */
PLACE_TEST(a_missing_token_is_refused)
{
    static const struct {
        const char *name, *tensor;
        setting without[3];
    } files[] = {
        {"vit_tiny_patch16_224", "cls_token", {{"class_token", NULL, 0}, {"global_pool", "avg", 0}}},
        {"vit_tiny_patch16_224", "pos_embed", {{"pos_embed", "none", 0}}},
        {"deit_tiny_distilled_patch16_224", "dist_token", {{"distilled", NULL, 0}}},
        {"vit_small_patch14_reg4_dinov2", "reg_token", {{"reg_tokens", NULL, 0}}},
        {"eva02_tiny_patch14_224", "pos_embed", {{"pos_embed", "none", 0}}},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        att_option_values options = small(), flags = att_options_none();
        att_identity found;
        char words[160];
        for (const setting *s = files[i].without; s->key; s++)
            if (s->text)
                att_options_set_text(&options, s->key, s->text);
            else
                att_options_set(&options, s->key, s->number);
        write_model(p, files[i].name, &options, false);
        att_options_set(&flags, "num_heads", 2), att_options_set(&flags, "img_size", 32);
        assert_int_equal(identify(p, files[i].name, &flags, &found), ATT_ERR_MISMATCH);
        snprintf(words, sizeof words,
                 "there is no tensor \"%s\", which %s has; if the file's network was made without it", files[i].tensor,
                 files[i].name);
        says(att_context_message(p->context), words);
        says(att_context_message(p->context), " (--");
        att_option_copy(files[i].without[0].key, &options, &flags);
        CHECK(p->context, identify(p, files[i].name, &flags, &found));
    }
}

/* Options that others rule out are named. */
PLACE_TEST(a_number_without_effect_is_noted)
{
    logged log;
    att_option_values options = small(), flags = att_options_none();
    att_identity found;
    keep_messages(p, &log);
    write_model(p, "vit_tiny_patch16_224", &options, false);
    att_options_set(&flags, "num_heads", 2), att_options_set(&flags, "rel_pos_dim", 64);
    CHECK(p->context, identify(p, "vit_tiny_patch16_224", &flags, &found));
    assert_string_equal(log.text, "rel_pos_dim 64 has no effect: with the other options of this network it is 0\n");
    att_options_set(&options, "shared_rel_pos", 1), log.text[0] = '\0';
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    says(log.text, "shared_rel_pos true has no effect");
    att_model_destroy(&model);
    log.text[0] = '\0';
    model = make(p, "deit_tiny_distilled_patch16_224", NULL);
    assert_string_equal(log.text, "");
    att_model_destroy(&model);
}

PLACE_TEST(options_must_fit_together)
{
    static const struct {
        setting settings[MOST_SETTINGS];
        const char *message;
    } refused_ones[] = {
        {{{"distilled", NULL, 1}, {"global_pool", "avg", 0}}, "a distilled network reads its class token"},
        {{{"distilled", NULL, 1}, {"reg_tokens", NULL, 1}}, "has no registers"},
        {{{"mlp_layer", "swiglu", 0}}, "act_layer must be \"silu\", not \"gelu\""},
        {{{"mlp_layer", "swiglu_packed", 0}, {"act_layer", "silu", 0}, {"mlp_ratio", NULL, 1.04}}, "two halves"},
        {{{"block_fn", "ParallelScalingBlock", 0}, {"scale_mlp_norm", NULL, 1}}, "has no scale_attn_norm"},
        {{{"block_fn", "ParallelThingsBlock", 0}, {"modules", "cb_s", 0}}, "has no places for modules"},
        {{{"block_fn", "ParallelThingsBlock", 0}, {"extra_layer", "mlp", 0}}, "does not fit block_fn"},
        {{{"attn_layer", "diff", 0}, {"embed_dim", NULL, 6}, {"num_heads", NULL, 2}}, "two halves"},
        {{{"rel_pos_type", "bias", 0}, {"attn_layer", "diff", 0}}, "does not fit block_fn \"Block\" with attn_layer"},
        {{{"rel_pos_type", "mlp", 0}, {"block_fn", "ParallelThingsBlock", 0}}, "does not fit block_fn"},
        {{{"rel_pos_type", "mlp", 0}, {"block_fn", "BeitBlock", 0}}, "which has none or bias"},
        {{{"rel_pos_type", "mlp", 0}, {"shared_rel_pos", NULL, 1}, {"modules", "uniform_head:how=replace@heads:1", 0}},
         "replace heads of block 1, but shared_rel_pos gives all blocks the same heads"},
        {{{"act_layer", "elu", 0}}, "act_layer"},
        {{{"global_pool", "prr", 0}}, "global_pool"},
    };
    for (size_t i = 0; i < sizeof refused_ones / sizeof *refused_ones; i++) {
        att_option_values options = small();
        att_model *model;
        set_all(refused_ones[i].settings, &options);
        assert_int_equal(att_model_create(p->context, "vit_tiny_patch16_224", &options, ATT_F32, &model),
                         ATT_ERR_ARGUMENT);
        says(att_context_message(p->context), refused_ones[i].message);
    }
}

/* Relative positions show the number of heads, tables also a square grid of patches. */
PLACE_TEST(relative_positions_show_heads_and_images)
{
    static const char *const modules[] = {"none", "uniform_head:how=replace@heads:0", "cb_s@attn:0"};
    for (int i = 0; i < 9; i++) {
        bool is_mlp = i / 3 == 2, is_beit = i / 3 == 0;
        att_option_values options = small(), flags = att_options_none();
        att_identity found;
        att_options_set_text(&options, "pos_embed", "none");
        att_options_set_text(&flags, "pos_embed", "none");
        att_options_set_text(&options, "rel_pos_type", is_mlp ? "mlp" : "bias");
        att_options_set_text(&options, "block_fn", is_beit ? "BeitBlock" : "Block");
        att_options_set_text(&options, "modules", modules[i % 3]);
        write_model(p, "vit_tiny_patch16_224", &options, false);
        CHECK(p->context, identify(p, "vit_tiny_patch16_224", &flags, &found));
        assert_int_equal(att_options_number(&found.options, "num_heads", 0), 2);
        assert_int_equal(att_options_number(&found.options, "img_size", 0), is_mlp ? 224 : 32);
        assert_string_equal(att_options_text(&found.options, "modules"), modules[i % 3]);
    }
}

static const char TABLE[] = "blocks.1.attn.relative_position_bias_table";

static att_option_values small_beit(int height, int width)
{
    att_option_values options = small();
    att_options_set_sides(&options, "img_size", height, width);
    att_options_set_text(&options, "pos_embed", "none");
    att_options_set_text(&options, "rel_pos_type", "bias");
    att_options_set_text(&options, "block_fn", "BeitBlock");
    return options;
}

/* Loads the written file into the network `options`; the table has `rows` rows, of which the last three are the file's,
 * from its row `first` on. */
static void loads_with_rows(const place *p, const att_option_values *options, int rows, int first)
{
    att_model *model = make(p, "vit_tiny_patch16_224", options);
    att_weights *weights;
    att_tensors *file;
    float table[200][2];
    CHECK(p->context, att_tensors_open(p->context, p->weights, &file));
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    CHECK(p->context, att_model_load(model, file, weights));
    CHECK(p->context, att_weights_get(weights, -1, att_weights_find(weights, TABLE), table, (int64_t)rows * 2));
    for (int i = 0; i < 6; i++)
        assert_true(table[rows - 3 + i / 2][i % 2] == (float)formula(TABLE, (uint32_t)(first * 2 + i)));
    att_weights_destroy(&weights);
    att_tensors_close(&file);
    att_model_destroy(&model);
}

/* As timm: the rows for the class token are no shifts. test_regrid.c compares the others. */
PLACE_TEST(tables_fit_other_images)
{
    att_option_values options = small_beit(32, 32), wide = small_beit(48, 24);
    write_model(p, "vit_tiny_patch16_224", &options, false);
    loads_with_rows(p, &options, 52, 49);
    loads_with_rows(p, &wide, 11 * 5 + 3, 49);
    write_model(p, "vit_tiny_patch16_224", &wide, true);
    loads_with_rows(p, &options, 52, 55);
    loads_with_rows(p, &wide, 58, 55);
}

static void does_not_load(const place *p, const att_option_values *options, const char *words)
{
    att_model *model = make(p, "vit_tiny_patch16_224", options);
    att_weights *weights;
    att_tensors *file;
    CHECK(p->context, att_tensors_open(p->context, p->weights, &file));
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    assert_int_equal(att_model_load(model, file, weights), ATT_ERR_MISMATCH);
    says(att_context_message(p->context), words);
    att_weights_destroy(&weights);
    att_tensors_close(&file);
    att_model_destroy(&model);
}

/* The 55 shifts of a window of 6 x 3 patches are those of no square. */
PLACE_TEST(sides_of_a_wide_window_must_be_given)
{
    att_option_values options = small_beit(48, 24), flags = att_options_none();
    att_identity found;
    write_model(p, "vit_tiny_patch16_224", &options, false);
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED,
            "the 55 relative positions are not those of a square grid of patches; give the sides of the images");
    att_options_set_sides(&flags, "img_size", 48, 24);
    att_options_set_text(&flags, "pos_embed", "none");
    CHECK(p->context, identify(p, "vit_tiny_patch16_224", &flags, &found));
    options = small_beit(32, 32);
    does_not_load(
        p, &options,
        "\"blocks.0.attn.relative_position_bias_table\" is [58, 2], not [52, 2]: it was made for another grid, "
        "which is not known, since it is no square; give the values of img_size that it was made for");
    options = small();
    att_options_set_sides(&options, "img_size", 48, 24);
    write_model(p, "vit_tiny_patch16_224", &options, false);
    options = small();
    does_not_load(p, &options, "\"pos_embed\" is [1, 19, 32], not [1, 17, 32]: it was made for another grid");
    att_options_set(&options, "mlp_ratio", 2);
    does_not_load(p, &options, "does not fit the model: 7 mis-shaped");
}

PLACE_TEST(arguments_of_beit_are_read)
{
    att_option_values options = small_beit(32, 32);
    att_identity found;
    att_options_set_text(&options, "global_pool", "avg"), att_options_set(&options, "fc_norm", 0);
    write_model(p, "vit_tiny_patch16_224", &options, false);
    write_beside(p, "config.json",
                 "{\"architecture\": \"beit_base_patch16_224\", \"num_classes\": 7, \"model_args\": {\"img_size\": 32, "
                 "\"patch_size\": 8, \"embed_dim\": 32, \"depth\": 2, \"num_heads\": 2, \"use_abs_pos_emb\": false, "
                 "\"use_rel_pos_bias\": true, \"use_fc_norm\": false, \"scale_mlp\": false, \"init_values\": null, "
                 "\"head_init_scale\": 0.1}}");
    CHECK(p->context, identify(p, NULL, NULL, &found));
    assert_int_equal(att_options_number(&found.options, "fc_norm", -1), 0);
    assert_string_equal(att_options_text(&found.options, "global_pool"), "avg");
    write_beside(p, "config.json",
                 "{\"architecture\": \"beit_base_patch16_224\", \"model_args\": {\"use_rel_pos_bias\": false}}");
    refused(p, NULL, ATT_ERR_MISMATCH, "rel_pos_type is given as none, but the tensors show bias");
    att_options_set(&options, "shared_rel_pos", 1);
    att_options_set_text(&options, "mlp_layer", "swiglu"), att_options_set_text(&options, "act_layer", "silu");
    write_model(p, "vit_tiny_patch16_224", &options, false);
    write_beside(p, "config.json",
                 "{\"architecture\": \"beit_base_patch16_224\", \"model_args\": {\"use_rel_pos_bias\": false, "
                 "\"use_shared_rel_pos_bias\": true, \"swiglu_mlp\": true, \"img_size\": 32, \"num_heads\": 2, "
                 "\"use_fc_norm\": false}}");
    CHECK(p->context, identify(p, NULL, NULL, &found));
    assert_int_equal(att_options_number(&found.options, "shared_rel_pos", -1), 1);
    assert_string_equal(att_options_text(&found.options, "rel_pos_type"), "bias");
    assert_string_equal(att_options_text(&found.options, "mlp_layer"), "swiglu");
}

/* As the group matchers of timm's VisionTransformer, VisionTransformerDistilled, Beit and VisionTransformerRelPos. */
PLACE_TEST(parameters_have_timms_layers)
{
    static const struct {
        const char *name;
        int layer;
    } layers[] = {{"reg_token", 0},
                  {"norm_pre.weight", 0},
                  {"patch_embed.norm.weight", 0},
                  {"dist_token", 0},
                  {"rel_pos_bias.relative_position_bias_table", 0},
                  {"shared_rel_pos.mlp.fc1.weight", ATT_LAYER_HEAD},
                  {"blocks.1.attns.0.norm.weight", 2},
                  {"norm.weight", ATT_LAYER_LAST_BLOCK},
                  {"attn_pool.latent", ATT_LAYER_HEAD},
                  {"head_dist.weight", ATT_LAYER_HEAD}};
    att_option_values options = small();
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        assert_int_equal(att_model_layer(model, layers[i].name), layers[i].layer);
    att_model_destroy(&model);
}

/* Both classifiers of a distilled network are its head. */
PLACE_TEST(a_distilled_network_has_two_classifiers)
{
    att_option_values options = small();
    att_options_set(&options, "distilled", 1);
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    assert_true(att_model_is_head(model, "head.weight"));
    assert_true(att_model_is_head(model, "head_dist.bias"));
    assert_false(att_model_is_head(model, "head_other.bias"));
    att_model_destroy(&model);
}

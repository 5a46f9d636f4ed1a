/* Swin Transformers: structure, options, and identification of files. test_training.c compares losses and gradients
 * with PyTorch's, tools/versus_timm compares the logits of the named networks with timm's. */
#include "engine/graph/graph.h"
#include "engine/ops/attention.h"
#include "engine/ops/drop.h"
#include "networks/models/checkpoints.h"
#include "networks/models/family.h"

static const char SWIN[] = "swin_tiny_patch4_window7_224", V2[] = "swinv2_tiny_window8_256",
                  TUNED[] = "swinv2_base_window12to16_192to256", CR[] = "swinv2_cr_tiny_224";
static const char *const versions[] = {SWIN, V2, CR};
enum { VERSIONS = sizeof versions / sizeof *versions };

/* Images of 56 x 112 pixels: grids of 14 x 28, 7 x 14 and 4 x 7. */
static att_option_values wide(void)
{
    att_option_values options = att_options_none();
    att_options_set_sides(&options, "img_size", 56, 112);
    att_options_set(&options, "embed_dim", 12), att_options_set(&options, "num_classes", 5);
    att_options_set_text(&options, "depths", "2,2"), att_options_set_text(&options, "stage_heads", "2,3");
    return options;
}

static att_option_values square(void)
{
    att_option_values options = wide();
    att_options_set(&options, "img_size", 56);
    return options;
}

static const att_attention_attrs *attention_of(const att_model *model, const char *scope)
{
    const att_graph *graph = att_model_graph(model);
    for (int i = 0; i < graph->nodes.count; i++)
        if (strcmp(graph->nodes.items[i].op->name, "attention") == 0 && strcmp(graph->nodes.items[i].scope, scope) == 0)
            return graph->nodes.items[i].attrs;
    fail_msg("there is no attention %s", scope);
    return NULL;
}

static void has_windows(const att_model *model, const char *scope, const int window[2], const int shift[2])
{
    const att_attention_attrs *attrs = attention_of(model, scope);
    assert_int_equal(attrs->window_h, window[0]);
    assert_int_equal(attrs->window_w, window[1]);
    assert_int_equal(attrs->shift_h, shift[0]);
    assert_int_equal(attrs->shift_w, shift[1]);
}

/* As timm: along an axis on which the grid is no larger than the window, the window is the grid and is not shifted. */
PLACE_TEST(windows_are_timms)
{
    att_option_values options = wide();
    att_model *model = make(p, SWIN, &options);
    has_windows(model, "layers.0.blocks.0.attn", (const int[]){7, 7}, (const int[]){0, 0});
    has_windows(model, "layers.0.blocks.1.attn", (const int[]){7, 7}, (const int[]){3, 3});
    has_windows(model, "layers.1.blocks.1.attn", (const int[]){7, 7}, (const int[]){0, 3});
    assert_int_equal(att_model_tokens(model), 49);
    att_model_destroy(&model);
    options = square();
    model = make(p, SWIN, &options); /* the second stage has one window, which is the whole grid */
    has_windows(model, "layers.1.blocks.1.attn", (const int[]){0, 0}, (const int[]){0, 0});
    att_model_destroy(&model);
    att_options_set(&options, "always_partition", 1);
    model = make(p, SWIN, &options);
    has_windows(model, "layers.1.blocks.1.attn", (const int[]){7, 7}, (const int[]){3, 3});
    att_model_destroy(&model);
    options = wide();
    att_options_set_text(&options, "window_size", "7,2");
    model = make(p, SWIN, &options);
    has_windows(model, "layers.0.blocks.1.attn", (const int[]){7, 2}, (const int[]){3, 1});
    has_shape(model, "layers.0.blocks.1.attn.relative_position_bias_table", att_shape_of(13 * 3, 2));
    has_shape(model, "layers.1.downsample.reduction.weight", att_shape_of(24, 48));
    assert_int_equal(att_model_tokens(model), 14);
    const att_features *features = att_model_features(model);
    assert_int_equal(features->stage_count, 2);
    assert_int_equal(features->block_count, 0);
    assert_true(features->grid[0] == 7 && features->grid[1] == 14);
    assert_true(att_shape_equal(att_value_shape(att_model_graph(model), features->stages[1]), att_shape_of(7, 14, 24)));
    att_model_destroy(&model);
}

/* swinv2_base_window12to16_192to256: windows of 16, after a pretraining with windows of 12, and of 6 in the last stage.
 */
PLACE_TEST(windows_of_v2_are_those_of_the_names)
{
    int count = 0, tuned = 0;
    for (int i = 0; i < att_model_count(); i++) {
        const char *name = att_model_at(i).name,
                   *at = strncmp(name, "swinv2_", 7) == 0 ? strstr(name, "_window") : NULL;
        int first, window, numbers = at ? sscanf(at, "_window%dto%d", &first, &window) : 0;
        char text[16];
        if (numbers < 1)
            continue;
        att_model *model = make(p, name, NULL);
        snprintf(text, sizeof text, "%d", numbers == 2 ? window : first);
        assert_string_equal(att_options_text(att_model_options(model), "window_size"), text);
        assert_string_equal(att_options_text(att_model_options(model), "pretrained_window_sizes"),
                            numbers == 2 ? "12,12,12,6" : "0");
        att_model_destroy(&model);
        count++, tuned += numbers == 2;
    }
    assert_int_equal(count, 12);
    assert_int_equal(tuned, 4);
}

/* A fraction refers to the grid of the first stage, 14 x 28, in all stages. */
PLACE_TEST(windows_can_be_a_fraction_of_the_grid)
{
    att_option_values options = wide();
    att_options_set(&options, "img_size", 64); /* 16 x 16 and 8 x 8 */
    att_model *model = make(p, CR, &options);
    has_windows(model, "stages.0.blocks.1.attn", (const int[]){2, 2}, (const int[]){1, 1});
    has_windows(model, "stages.1.blocks.1.attn", (const int[]){2, 2}, (const int[]){1, 1});
    att_model_destroy(&model);
    options = wide(), att_options_set_text(&options, "window_size", "1/3");
    model = make(p, CR, &options);
    has_windows(model, "stages.0.blocks.1.attn", (const int[]){4, 9}, (const int[]){2, 4});
    att_model_destroy(&model);
    att_options_set_text(&options, "window_size", "1/28"); /* never less than a token */
    model = make(p, CR, &options);
    has_windows(model, "stages.0.blocks.1.attn", (const int[]){1, 1}, (const int[]){0, 0});
    att_model_destroy(&model);
}

/* The numbers for the shifts follow from parameters alone, so that they are computed once and not for each image. */
PLACE_TEST(numbers_for_shifts_are_derived)
{
    att_option_values options = wide();
    for (int v = 1; v < VERSIONS; v++) {
        att_model *model = make(p, versions[v], &options);
        const att_graph *graph = att_model_graph(model);
        int cosine = 0;
        for (int i = 0; i < att_graph_node_count(graph); i++) {
            att_node_info node = att_graph_node_at(graph, i);
            cosine += strcmp(node.op, "cosine_heads") == 0;
            assert_string_not_equal(node.op, "windows");
            if (strcmp(node.op, "sigmoid") == 0 || strcmp(node.op, "relu") == 0)
                assert_int_equal(att_value_kind(graph, node.out[0]), ATT_SHARED);
            if (strcmp(node.op, "attention") == 0)
                assert_true(((const att_attention_attrs *)graph->nodes.items[i].attrs)->scale == 1);
        }
        assert_int_equal(cosine, 4);
        att_model_destroy(&model);
    }
}

/* As in timm, the rates rise linearly, from 0 in the first block to that of the option in the last. */
PLACE_TEST(drop_paths_rise_to_the_last_block)
{
    att_option_values options = square();
    att_options_set(&options, "drop_path_rate", 0.3);
    att_model *model = make(p, SWIN, &options);
    const att_graph *graph = att_model_graph(model);
    int count = 0;
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        if (strcmp(node->op->name, "drop_path") != 0)
            continue;
        int block = 1 + count++ / 2; /* the first block has none; two branches each */
        assert_true(fabs(ATT_ATTRS(node, drop)->rate - 0.1 * block) < 1e-12);
    }
    assert_int_equal(count, 6);
    att_model_destroy(&model);
}

/* As timm's group_matcher(): the merging before a stage belongs to its first block. */
PLACE_TEST(parameters_have_timms_layers)
{
    static const struct {
        const char *name;
        int layer;
    } layers[] = {{"patch_embed.norm.weight", 0},
                  {"layers.0.blocks.0.norm1.weight", 1},
                  {"layers.0.blocks.1.attn.qkv.weight", 2},
                  {"layers.1.downsample.norm.weight", 1 + ATT_BLOCKS},
                  {"layers.1.blocks.0.norm1.weight", 1 + ATT_BLOCKS},
                  {"layers.1.blocks.1.mlp.fc1.bias", 2 + ATT_BLOCKS},
                  {"norm.weight", ATT_LAYER_LAST_BLOCK},
                  {"head.fc.weight", ATT_LAYER_HEAD}};
    const att_option_values options = square();
    att_model *model = make(p, SWIN, &options);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        assert_int_equal(att_model_layer(model, layers[i].name), layers[i].layer);
    att_model_destroy(&model);
}

static void starts(const att_model *model, const char *name, att_init_rule rule, double value)
{
    const att_init init = parameter_of(model, name).init;
    if (init.rule != rule || fabs(init.value - value) > 1e-12)
        fail_msg("%s starts by rule %d with %g", name, (int)init.rule, init.value);
}

PLACE_TEST(weights_start_as_timms)
{
    att_option_values options = square();
    att_model *model = make(p, V2, &options);
    starts(model, "layers.0.blocks.0.norm1.weight", ATT_INIT_CONSTANT, 0);
    starts(model, "layers.0.blocks.0.attn.logit_scale", ATT_INIT_CONSTANT, log(10));
    starts(model, "layers.0.blocks.0.attn.cpb_mlp.2.weight", ATT_INIT_TRUNC_NORMAL, 0.02);
    starts(model, "layers.1.downsample.reduction.weight", ATT_INIT_TRUNC_NORMAL, 0.02);
    starts(model, "layers.1.downsample.norm.weight", ATT_INIT_CONSTANT, 1);
    starts(model, "head.fc.weight", ATT_INIT_TRUNC_NORMAL, 0.02);
    att_model_destroy(&model);
    model = make(p, CR, &options);
    starts(model, "stages.0.blocks.0.norm2.weight", ATT_INIT_CONSTANT, 0);
    starts(model, "stages.1.blocks.1.norm3.weight", ATT_INIT_CONSTANT, 1);
    starts(model, "stages.0.blocks.0.attn.logit_scale", ATT_INIT_CONSTANT, log(10));
    starts(model, "stages.0.blocks.0.attn.meta_mlp.fc1.bias", ATT_INIT_UNIFORM, 1 / sqrt(2));
    starts(model, "stages.0.blocks.0.attn.qkv.bias", ATT_INIT_UNIFORM, 1 / sqrt(12));
    starts(model, "stages.0.blocks.0.mlp.fc2.weight", ATT_INIT_UNIFORM, 1 / sqrt(48));
    starts(model, "stages.1.downsample.reduction.weight", ATT_INIT_UNIFORM, 1 / sqrt(48));
    starts(model, "head.fc.bias", ATT_INIT_UNIFORM, 1 / sqrt(24));
    att_model_destroy(&model);
}

static void cannot_be(const place *p, const char *name, const att_option_values *options, att_status status,
                      const char *words)
{
    att_model *model = NULL;
    assert_int_equal(att_model_create(p->context, name, options, ATT_F32, &model), status);
    says(att_context_message(p->context), words);
}

PLACE_TEST(options_that_cannot_be_built_are_refused)
{
    att_option_values options = square();
    att_options_set(&options, "img_size", 3);
    cannot_be(p, SWIN, &options, ATT_ERR_ARGUMENT, "img_size 3 is smaller than patch_size 4");
    options = square(), att_options_set_text(&options, "depths", "2,0");
    cannot_be(p, SWIN, &options, ATT_ERR_ARGUMENT, "depths must be the numbers of blocks of 1 to 4 stages");
    options = square(), att_options_set_text(&options, "depths", "1,1,1,1,1");
    cannot_be(p, SWIN, &options, ATT_ERR_ARGUMENT, "not \"1,1,1,1,1\"");
    options = square(), att_options_set_text(&options, "stage_heads", "2");
    cannot_be(p, SWIN, &options, ATT_ERR_ARGUMENT, "heads of the 2 stages of depths 2,2, not \"2\"");
    options = square(), att_options_set_text(&options, "stage_heads", "2,5");
    cannot_be(p, SWIN, &options, ATT_ERR_ARGUMENT, "the 24 channels of stage 2 are not a multiple of its 5 heads");
    options = square(), att_options_set_text(&options, "window_size", "7,7,7");
    cannot_be(p, SWIN, &options, ATT_ERR_ARGUMENT,
              "one number for each of 2 stages, or a fraction of the grid as \"1/8\", not \"7,7,7\"");
    options = square(), att_options_set_text(&options, "modules", "cb_s@after_mlp:layer3:all");
    cannot_be(p, SWIN, &options, ATT_ERR_ARGUMENT, "there is no stage 3");
    options = square(), att_options_set_text(&options, "window_size", "1/0");
    cannot_be(p, CR, &options, ATT_ERR_ARGUMENT, "a fraction of the grid as \"1/8\", not \"1/0\"");
    options = square(), att_options_set_text(&options, "pretrained_window_sizes", "12,12,6");
    cannot_be(p, V2, &options, ATT_ERR_ARGUMENT, "must be one number, or one for each of 2 stages, not \"12,12,6\"");
    options = square(), att_options_set_text(&options, "pretrained_window_sizes", "12");
    cannot_be(p, CR, &options, ATT_ERR_ARGUMENT,
              "pretrained_window_sizes is an option of swin_version v2, not of v2_cr");
    options = square(), att_options_set(&options, "extra_norm_period", 1);
    cannot_be(p, V2, &options, ATT_ERR_ARGUMENT, "extra_norm_period is an option of swin_version v2_cr, not of v2");
    options = square(), att_options_set(&options, "extra_norm_stage", 1);
    cannot_be(p, SWIN, &options, ATT_ERR_ARGUMENT, "extra_norm_stage is an option of swin_version v2_cr, not of v1");
    options = square(), att_options_set_text(&options, "swin_version", "v3");
    cannot_be(p, SWIN, &options, ATT_ERR_ARGUMENT, "swin_version");
    options = square();
    cannot_be(p, TUNED, &options, ATT_ERR_ARGUMENT, "for each of 2 stages, not \"12,12,12,6\"");
    options = square(), att_options_set(&options, "num_heads", 2);
    cannot_be(p, SWIN, &options, ATT_ERR_ARGUMENT,
              "num_heads is an option of the families \"vit\", \"eva\", \"attention_cnn\" and \"bert\", not of "
              "\"swin\", which "
              "has stage_heads instead");
    options = square(), att_options_set(&options, "depth", 2);
    cannot_be(p, SWIN, &options, ATT_ERR_ARGUMENT, "not of \"swin\", which has depths instead");
}

static void find_modules(const place *p, const char *name, const char *modules, bool ours)
{
    att_option_values options = square();
    att_identity found;
    att_options_set_text(&options, "modules", modules);
    write_model(p, name, &options, ours);
    if (ours)
        CHECK(p->context, identify(p, NULL, NULL, &found));
    else
        CHECK(p->context, identify(p, name, NULL, &found));
    assert_string_equal(att_options_text(&found.options, "modules"), modules);
    assert_string_equal(att_options_text(&found.options, "stage_heads"), "2,3");
}

/* From attscope's metadata, and from tensors alone. */
PLACE_TEST(modules_are_found_again)
{
    static const char *const all[] = {"cb_s", "cb_s@after_attn:2-3", "cb_s@attn:0", "cb_s@mid_mlp:1,3",
                                      "uniform_head@heads:0-1"};
    for (int v = 0; v < VERSIONS; v++)
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            for (int ours = 0; ours < 2; ours++)
                find_modules(p, versions[v], all[i], ours);
    for (int v = 0; v < VERSIONS; v++) { /* no attention is left that would show the version */
        att_option_values options = square();
        att_identity found;
        att_options_set_text(&options, "modules", "cb_s@attn");
        write_model(p, versions[v], &options, false);
        att_options_unset(&options, "modules");
        CHECK(p->context, identify(p, versions[v], &options, &found));
        assert_string_equal(att_options_text(&found.options, "modules"), "cb_s@attn");
        assert_string_equal(att_options_text(&found.options, "swin_version"), v == 0 ? "v1" : v == 1 ? "v2" : "v2_cr");
    }
}

/* A file of 28 x 28 pixels has windows of 7, 4 and 2 tokens, which stay for other images; timm takes 7 from the name.
 */
PLACE_TEST(a_small_file_keeps_its_windows_and_says_so)
{
    logged log;
    att_option_values options = square(), flags = att_options_none();
    att_identity found;
    keep_messages(p, &log);
    att_options_set(&options, "img_size", 28);
    att_options_set_text(&options, "depths", "1,1,1"), att_options_set_text(&options, "stage_heads", "2,3,4");
    write_model(p, SWIN, &options, false);
    att_options_set(&flags, "img_size", 28);
    CHECK(p->context, identify(p, SWIN, &flags, &found));
    assert_string_equal(log.text, "");
    att_options_set(&flags, "img_size", 56);
    CHECK(p->context, identify(p, SWIN, &flags, &found));
    assert_string_equal(att_options_text(&found.options, "window_size"), "7,4,2");
    says(log.text,
         "windows of 7,4,2 tokens, as its tables have; timm would resample the tables for the windows of "
         "swin_tiny_patch4_window7_224, and so does window_size 7\n");
    log.text[0] = '\0';
    att_options_set_text(&flags, "window_size", "7");
    CHECK(p->context, identify(p, SWIN, &flags, &found));
    assert_string_equal(log.text, "");
    /* Of two stages "7,4" would be height and width of all windows. */
    att_options_set_text(&options, "depths", "1,1"), att_options_set_text(&options, "stage_heads", "2,3");
    write_model(p, SWIN, &options, false);
    att_options_unset(&flags, "window_size");
    CHECK(p->context, identify(p, SWIN, &flags, &found));
    assert_string_equal(att_options_text(&found.options, "window_size"), "7");
}

/* Windows that are clipped to the grid of a stage show the size of the images. Several sizes give the same windows; of
 * those for which least is filled up, the largest is taken. */
PLACE_TEST(clipped_windows_show_the_size_of_the_images)
{
    static const struct {
        int side, low, high;
        const char *windows;
    } sizes[] = {{112, 100, 128, "7,7,7,4"}, {64, 52, 64, "7,7,4,2"},    {96, 84, 96, "7,7,6,3"},
                 {160, 132, 160, "7,7,7,5"}, {192, 164, 192, "7,7,7,6"}, {32, 28, 32, "7,4,2,1"}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        att_option_values options = square(), flags = att_options_none();
        att_identity found;
        char text[160];
        att_options_set(&options, "img_size", sizes[i].side);
        att_options_set_text(&options, "depths", "1,1,1,1"), att_options_set_text(&options, "stage_heads", "1,2,3,4");
        write_model(p, SWIN, &options, false);
        CHECK(p->context, identify(p, SWIN, NULL, &found));
        assert_string_equal(att_options_text(&found.options, "window_size"), sizes[i].windows);
        assert_int_equal(att_options_number(&found.options, "img_size", -1), sizes[i].side);
        snprintf(text, sizeof text,
                 "; assumed: img_size %d, because its windows of %s tokens are those of images of %d to %d pixels",
                 sizes[i].side, sizes[i].windows, sizes[i].low, sizes[i].high);
        says(found.brief, text);
        att_options_set(&flags, "img_size", 224);
        CHECK(p->context, identify(p, SWIN, &flags, &found));
        assert_int_equal(att_options_number(&found.options, "img_size", -1), 224);
        assert_null(strstr(found.brief, "because"));
    }
}

PLACE_TEST(another_version_than_the_file_s_is_refused)
{
    att_option_values options = square(), flags = att_options_none();
    att_identity found;
    write_model(p, SWIN, &options, false);
    att_options_set_text(&flags, "swin_version", "v2");
    assert_int_equal(identify(p, SWIN, &flags, &found), ATT_ERR_MISMATCH);
    says(att_context_message(p->context), "swin_version is given as v2, but the tensors show v1");
}

static void has_text(const att_identity *found, const char *key, const char *text)
{
    assert_string_equal(att_options_text(&found->options, key), text);
}

PLACE_TEST(files_are_identified)
{
    att_option_values options = wide();
    att_identity found;
    att_options_set(&options, "mlp_ratio", 1.5), att_options_set(&options, "qkv_bias", 0);
    att_options_set_text(&options, "window_size", "7,2");
    write_model(p, SWIN, &options, true);
    CHECK(p->context, identify(p, NULL, NULL, &found));
    has_text(&found, "window_size", "7,2");
    att_options_set(&options, "img_size", 64);
    att_options_set_text(&options, "depths", "1,2,3"), att_options_set_text(&options, "stage_heads", "2,3,4");
    att_options_set_text(&options, "window_size", "4,2,2");
    write_model(p, SWIN, &options, false);
    CHECK(p->context, identify(p, SWIN, NULL, &found));
    has_text(&found, "depths", "1,2,3"), has_text(&found, "stage_heads", "2,3,4");
    has_text(&found, "window_size", "4,2,2");
    assert_true(att_options_number(&found.options, "mlp_ratio", 0) == 1.5);
    assert_true(att_options_number(&found.options, "qkv_bias", 1) == 0);
    assert_true(att_options_number(&found.options, "num_classes", 0) == 5);
}

/* The tensors show the norms on the stream, but not the windows. */
PLACE_TEST(files_of_v2_are_identified)
{
    static const struct {
        const char *depths;
        int period, at_ends;
    } norms[] = {{"2,3", 0, 0}, {"2,3", 0, 1}, {"2,5", 2, 0}, {"3,5", 2, 1}, {"3,5", 2, 0}};
    att_option_values options = square();
    att_identity found;
    write_model(p, V2, &options, false);
    CHECK(p->context, identify(p, V2, NULL, &found));
    assert_true(att_options_number(&found.options, "qkv_bias", 0) == 1);
    att_options_set(&options, "qkv_bias", 0), att_options_set_text(&options, "window_size", "4");
    att_options_set_text(&options, "pretrained_window_sizes", "5,3");
    for (int ours = 0; ours < 2; ours++) {
        write_model(p, V2, &options, ours);
        CHECK(p->context, identify(p, ours ? NULL : V2, NULL, &found));
        has_text(&found, "swin_version", "v2"), has_text(&found, "stage_heads", "2,3");
        has_text(&found, "window_size", ours ? "4" : "8");
        has_text(&found, "pretrained_window_sizes", ours ? "5,3" : "0");
        assert_true(att_options_number(&found.options, "qkv_bias", 1) == 0);
    }
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        options = square();
        att_options_set_text(&options, "depths", norms[i].depths);
        att_options_set(&options, "extra_norm_period", norms[i].period);
        att_options_set(&options, "extra_norm_stage", norms[i].at_ends);
        write_model(p, CR, &options, false);
        CHECK(p->context, identify(p, CR, NULL, &found));
        has_text(&found, "swin_version", "v2_cr"), has_text(&found, "window_size", "1/8");
        assert_int_equal((int)att_options_number(&found.options, "extra_norm_period", -1), norms[i].period);
        assert_int_equal((int)att_options_number(&found.options, "extra_norm_stage", -1), norms[i].at_ends);
    }
}

PLACE_TEST(timms_arguments_are_read)
{
    att_option_values options = square();
    att_identity found;
    write_model(p, SWIN, &options, false);
    write_beside(
        p, "config.json",
        "{\"architecture\": \"swin_tiny_patch4_window7_224\", \"num_classes\": 5, \"model_args\": {\"img_size\": "
        "56, \"embed_dim\": 12, \"depths\": [2, 2], \"num_heads\": [2, 3], \"window_size\": 7, "
        "\"strict_img_size\": false, \"drop_path_rate\": 0.3}}");
    CHECK(p->context, identify(p, NULL, NULL, &found));
    has_text(&found, "depths", "2,2"), has_text(&found, "stage_heads", "2,3"), has_text(&found, "window_size", "7");
    write_beside(p, "config.json",
                 "{\"architecture\": \"swin_tiny_patch4_window7_224\", \"model_args\": {\"head_dim\": 8}}");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "made with head_dim 8");
    write_model(p, V2, &options, false);
    write_beside(p, "config.json",
                 "{\"architecture\": \"swinv2_tiny_window8_256\", \"model_args\": {\"img_size\": 56, "
                 "\"pretrained_window_sizes\": [6, 0], \"window_size\": [7, 4]}}");
    CHECK(p->context, identify(p, NULL, NULL, &found));
    has_text(&found, "pretrained_window_sizes", "6,0"), has_text(&found, "window_size", "7,4");
    write_model(p, CR, &options, false);
    write_beside(
        p, "config.json",
        "{\"architecture\": \"swinv2_cr_tiny_224\", \"model_args\": {\"img_size\": [56, 56], \"window_ratio\": 4, "
        "\"window_size\": null, \"init_values\": 0.1, \"sequential_attn\": true}}");
    CHECK(p->context, identify(p, NULL, NULL, &found));
    has_text(&found, "window_size", "1/4");
}

static void ignores(const place *p, const char *name, const char *buffers[2])
{
    att_option_values options = square();
    att_model *model = make(p, name, &options);
    att_identity found;
    tensors t = tensors_of(model);
    for (int i = 0; i < 2; i++)
        add_tensor(&t, buffers[i], att_shape_of(4, 49, 49));
    write_tensors(p, &t, NULL);
    CHECK(p->context, identify(p, name, &options, &found));
    load_and_destroy(p, model);
}

/* The authors' files have buffers, and timm's before 0.9. */
PLACE_TEST(buffers_are_ignored)
{
    ignores(p, SWIN, (const char *[]){"layers.0.blocks.1.attn_mask", "layers.0.blocks.1.attn.relative_position_index"});
    ignores(p, V2,
            (const char *[]){"layers.0.blocks.0.attn.relative_coords_table",
                             "layers.0.blocks.1.attn.relative_position_index"});
    ignores(p, CR, (const char *[]){"stages.0.blocks.1.attn_mask", "stages.0.blocks.1.attn.relative_coordinates_log"});
}

/* Images of 28 x 28 pixels have grids of 7 x 7 and 4 x 4 tokens: the second stage has smaller windows than the file. */
PLACE_TEST(tables_fit_other_windows)
{
    static const char *const sizes[] = {"7", "5,6"};
    att_option_values options = square();
    write_model(p, SWIN, &options, false);
    for (int i = 0; i < 2; i++) {
        options = square();
        att_options_set(&options, "img_size", 28), att_options_set_text(&options, "window_size", sizes[i]);
        att_model *model = make(p, SWIN, &options);
        load_and_destroy(p, model);
    }
}

/* Tables of windows of 4 x 2 tokens are those of no square windows. */
PLACE_TEST(windows_that_are_not_known_are_refused)
{
    att_option_values options = square(), known = square();
    att_model *model = make(p, SWIN, &options);
    att_weights *weights;
    att_tensors *file;
    att_options_set_text(&known, "window_size", "4,2");
    write_model(p, SWIN, &known, false);
    CHECK(p->context, att_tensors_open(p->context, p->weights, &file));
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    assert_int_equal(att_model_load(model, file, weights), ATT_ERR_MISMATCH);
    says(att_context_message(p->context),
         "\"layers.0.blocks.0.attn.relative_position_bias_table\" is [21, 2], not [169, "
         "2]: it was made for another grid, which is not known, since it is no square; "
         "give the values of window_size and img_size that it was made for");
    att_weights_destroy(&weights);
    att_tensors_close(&file);
    att_model_destroy(&model);
    load_and_destroy(p, make(p, SWIN, &known));
}

/* No tensor of a V2 depends on the image size or the windows. */
PLACE_TEST(weights_of_v2_fit_any_image)
{
    for (int v = 1; v < VERSIONS; v++) {
        att_option_values options = square();
        write_model(p, versions[v], &options, false);
        options = wide();
        att_options_set_text(&options, "window_size", "5,6");
        load_and_destroy(p, make(p, versions[v], &options));
    }
}

/* words: of the refusal as the network `name`; nameless: as an unknown network. */
static void refuse_stranger(const place *p, const char *name, const char *stranger, const char *words,
                            const char *nameless)
{
    att_option_values options = square();
    att_model *model = make(p, name, &options);
    tensors t = tensors_of(model);
    add_tensor(&t, stranger, att_shape_of(24));
    write_tensors(p, &t, NULL);
    refused(p, name, ATT_ERR_UNSUPPORTED, words);
    refused(p, NULL, ATT_ERR_UNSUPPORTED, nameless);
    att_model_destroy(&model);
}

PLACE_TEST(relatives_are_refused)
{
    static const char none[] = "belongs to no Swin Transformer here", nearest[] = "family, swin, lacks 1 of ";
    static const char authors[] = "a sign of Swin under its authors' names", empty[] = "no block \"layers.2.blocks.0\"";
    const struct {
        const char *name, *tensor, *words, *nameless;
    } strangers[] = {
        {SWIN, "layers.0.blocks.0.attn.logit_scale", none, nearest},
        {SWIN, "layers.0.downsample.reduction.weight", authors, authors},
        {SWIN, "features.1.0.attn.qkv.weight", "a sign of torchvision's names of a Swin", nearest},
        {SWIN, "layers.4.blocks.0.norm1.weight", none, nearest},
        {SWIN, "layers.2.downsample.norm.weight", empty, empty},
        {V2, "layers.0.blocks.0.attn.qkv.bias", none, nearest},
        {V2, "layers.0.blocks.0.norm3.weight", none, nearest},
        {CR, "norm.weight", none, nearest},
        {CR, "layers.0.blocks.0.norm1.weight", none, nearest},
        {CR, "stages.0.blocks.0.attn.tau", "it is a sign of a Swin V2-CR of an older timm", "an older timm"},
        {CR, "stages.2.downsample.norm.weight", "no block \"stages.2.blocks.0\"", "no block \"stages.2.blocks.0\""},
    };
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
        refuse_stranger(p, strangers[i].name, strangers[i].tensor, strangers[i].words, strangers[i].nameless);
}

/* Every second block of a stage has shifted windows, however many blocks the stages before it have. */
PLACE_TEST(shifts_are_counted_in_each_stage)
{
    att_option_values options = wide();
    att_options_set(&options, "img_size", 112);
    att_options_set_text(&options, "depths", "1,2");
    att_model *model = make(p, SWIN, &options);
    has_windows(model, "layers.1.blocks.0.attn", (const int[]){7, 7}, (const int[]){0, 0});
    has_windows(model, "layers.1.blocks.1.attn", (const int[]){7, 7}, (const int[]){3, 3});
    att_model_destroy(&model);
}

/* A token of a later stage stands for twice as many pixels on each side, so that distances of all stages are in pixels.
 */
PLACE_TEST(distances_are_in_pixels_of_the_image)
{
    att_option_values options = square();
    att_model *model = make(p, SWIN, &options);
    for (int stage = 0; stage < 2; stage++) {
        const att_attention_attrs *attrs =
            attention_of(model, stage ? "layers.1.blocks.0.attn" : "layers.0.blocks.0.attn");
        assert_true(attrs->step_h == 4 << stage && attrs->step_w == 4 << stage);
    }
    att_model_destroy(&model);
}

/* In a file of the authors, the mergings and the classifier have other names. */
PLACE_TEST(files_of_the_authors_are_refused)
{
    att_option_values options = square();
    att_model *model = make(p, SWIN, &options);
    tensors t = tensors_of(model);
    for (int i = 0; i < t.count; i++) {
        const char *name = t.items[i].name;
        t.items[i].name = strcmp(name, "head.fc.weight") == 0                    ? "head.weight"
                          : strcmp(name, "head.fc.bias") == 0                    ? "head.bias"
                          : strcmp(name, "layers.1.downsample.norm.weight") == 0 ? "layers.0.downsample.norm.weight"
                          : strcmp(name, "layers.1.downsample.norm.bias") == 0   ? "layers.0.downsample.norm.bias"
                          : strcmp(name, "layers.1.downsample.reduction.weight") == 0
                              ? "layers.0.downsample.reduction.weight"
                              : name;
    }
    write_tensors(p, &t, NULL);
    refused(p, SWIN, ATT_ERR_UNSUPPORTED, "a sign of Swin under its authors' names, which are read if");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "the nearest family, swin, lacks 5 of ");
    says(att_context_message(p->context), "a sign of Swin under its authors' names");
    att_model_destroy(&model);
}

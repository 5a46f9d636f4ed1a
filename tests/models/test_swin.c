/* Swin Transformers: structure, options, and identification of files. test_training.c compares losses and gradients
 * with PyTorch's, tools/check_names compares the logits of the named networks with timm's. */
#include <math.h>

#include "graph/graph.h"
#include "models/checkpoints.h"
#include "models/family.h"
#include "ops/attention.h"

static const char SWIN[] = "swin_tiny_patch4_window7_224";

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

static void has_shape(const att_model *model, const char *name, att_shape shape)
{
    const att_graph *graph = att_model_graph(model);
    for (int i = 0; i < att_graph_parameter_count(graph); i++)
        if (strcmp(att_graph_parameter_at(graph, i).name, name) == 0) {
            assert_true(att_shape_equal(att_graph_parameter_at(graph, i).shape, shape));
            return;
        }
    fail_msg("there is no parameter %s", name);
}

/* As timm: along an axis on which the grid is no larger than the window, the window is the grid and is not shifted. */
static void windows_are_timms(void **state)
{
    const place *p = *state;
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
    assert_true(att_shape_equal(att_value_shape(att_model_graph(model), features->stages[1]), att_shape_of(7, 14, 24)));
    att_model_destroy(&model);
}

static void cannot_be(const place *p, const att_option_values *options, att_status status, const char *words)
{
    att_model *model = NULL;
    assert_int_equal(att_model_create(p->context, SWIN, options, ATT_F32, &model), status);
    says(att_context_message(p->context), words);
}

static void options_that_cannot_be_built_are_refused(void **state)
{
    const place *p = *state;
    att_option_values options = square();
    att_options_set(&options, "img_size", 3);
    cannot_be(p, &options, ATT_ERR_ARGUMENT, "img_size 3 is smaller than patch_size 4");
    options = square(), att_options_set_text(&options, "depths", "2,0");
    cannot_be(p, &options, ATT_ERR_ARGUMENT, "depths must be the numbers of blocks of 1 to 4 stages");
    options = square(), att_options_set_text(&options, "depths", "1,1,1,1,1");
    cannot_be(p, &options, ATT_ERR_ARGUMENT, "not \"1,1,1,1,1\"");
    options = square(), att_options_set_text(&options, "stage_heads", "2");
    cannot_be(p, &options, ATT_ERR_ARGUMENT, "heads of the 2 stages of depths 2,2, not \"2\"");
    options = square(), att_options_set_text(&options, "stage_heads", "2,5");
    cannot_be(p, &options, ATT_ERR_ARGUMENT, "the 24 channels of stage 2 are not a multiple of its 5 heads");
    options = square(), att_options_set_text(&options, "window_size", "7,7,7");
    cannot_be(p, &options, ATT_ERR_ARGUMENT,
              "one number for each of 2 stages, or a fraction of the grid as \"1/8\", not \"7,7,7\"");
    options = square(), att_options_set_text(&options, "modules", "cb_s@after_mlp:layer3:all");
    cannot_be(p, &options, ATT_ERR_ARGUMENT, "there is no stage 3");
    options = square(), att_options_set(&options, "num_heads", 2);
    cannot_be(p, &options, ATT_ERR_ARGUMENT,
              "num_heads is an option of the families \"vit\", \"eva\" and \"attention_cnn\", not of \"swin\"");
}

/* From attscope's metadata, and from tensors alone. */
static void modules_are_found_again(void **state)
{
    const place *p = *state;
    static const char *const all[] = {"cb_s", "cb_s@after_attn:2-3", "cb_s@attn:0", "cb_s@mid_mlp:1,3",
                                      "uniform_head@heads:0-1"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int ours = 0; ours < 2; ours++) {
            att_option_values options = square();
            att_identity found;
            att_options_set_text(&options, "modules", all[i]);
            write_model(p, SWIN, &options, ours);
            CHECK(p->context, identify(p, SWIN, NULL, &found));
            assert_string_equal(att_options_text(&found.options, "modules"), all[i]);
            assert_string_equal(att_options_text(&found.options, "stage_heads"), "2,3");
        }
}

static void has_text(const att_identity *found, const char *key, const char *text)
{
    assert_string_equal(att_options_text(&found->options, key), text);
}

static void files_are_identified(void **state)
{
    const place *p = *state;
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

static void timms_arguments_are_read(void **state)
{
    const place *p = *state;
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
}

/* The written file must load into the model, which is destroyed. */
static void load_and_destroy(const place *p, att_model *model)
{
    att_weights *weights;
    att_tensors *file;
    CHECK(p->context, att_tensors_open(p->context, p->weights, &file));
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    CHECK(p->context, att_model_load(model, file, weights));
    att_weights_destroy(&weights);
    att_tensors_close(&file);
    att_model_destroy(&model);
}

/* The authors' files have buffers, and timm's before 0.9. */
static void buffers_are_ignored(void **state)
{
    const place *p = *state;
    att_option_values options = square();
    att_model *model = make(p, SWIN, &options);
    tensors t = tensors_of(model);
    add_tensor(&t, "layers.0.blocks.1.attn_mask", att_shape_of(4, 49, 49));
    add_tensor(&t, "layers.0.blocks.1.attn.relative_position_index", att_shape_of(49, 49));
    write_tensors(p, &t, NULL);
    load_and_destroy(p, model);
}

/* Images of 28 x 28 pixels have grids of 7 x 7 and 4 x 4 tokens: the second stage has smaller windows than the file. */
static void tables_fit_other_windows(void **state)
{
    const place *p = *state;
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
static void windows_that_are_not_known_are_refused(void **state)
{
    const place *p = *state;
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

static void relatives_are_refused(void **state)
{
    const place *p = *state;
    static const char *const strangers[][3] = {
        {"layers.0.blocks.0.attn.logit_scale", "belongs to no Swin Transformer here", "family, swin, lacks 1 of 64"},
        {"layers.0.downsample.reduction.weight", "a name of the authors' Swin", "a name of the authors' Swin"},
        {"layers.4.blocks.0.norm1.weight", "belongs to no Swin Transformer here", "family, swin, lacks 1 of 64"},
        {"layers.2.downsample.norm.weight", "no block \"layers.2.blocks.0\"", "no block \"layers.2.blocks.0\""},
    };
    att_option_values options = square();
    att_model *model = make(p, SWIN, &options);
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        tensors t = tensors_of(model);
        add_tensor(&t, strangers[i][0], att_shape_of(24));
        write_tensors(p, &t, NULL);
        refused(p, SWIN, ATT_ERR_UNSUPPORTED, strangers[i][1]);
        refused(p, NULL, ATT_ERR_UNSUPPORTED, strangers[i][2]);
    }
    att_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(windows_are_timms),
        TEST(options_that_cannot_be_built_are_refused),
        TEST(modules_are_found_again),
        TEST(files_are_identified),
        TEST(timms_arguments_are_read),
        TEST(buffers_are_ignored),
        TEST(tables_fit_other_windows),
        TEST(relatives_are_refused),
        TEST(windows_that_are_not_known_are_refused),
    };
    return cmocka_run_group_tests_name("models/swin", tests, NULL, NULL);
}

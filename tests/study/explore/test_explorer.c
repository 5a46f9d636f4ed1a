/* The layers that explorers show, and what they refuse. */
#include <unistd.h>

#include "study/explore/networks.h"

#include <attscope/convert.h>

/* A wide map, whose second stage has windows as high as the map: they are shifted sideways only. */
TEST(shifts_are_per_axis)
{
    att_option_values options = att_options_none();
    att_network_options how = att_network_options_defaults();
    att_network *network = NULL;
    how.options = &options;
    att_options_set_sides(&options, "img_size", SIDE, 2 * SIDE);
    att_options_set(&options, "patch_size", 2);
    att_options_set(&options, "embed_dim", 16);
    att_options_set_text(&options, "window_size", "8");
    att_options_set_text(&options, "depths", "2,2");
    att_options_set_text(&options, "stage_heads", "2,4");
    must(att_network_open(context, "swin_tiny_patch4_window7_224", &how, &network));
    att_explorer *explorer = explore(network);
    const att_explorer_layer layer = att_explorer_layer_at(explorer, 3);
    assert_true(layer.grid_h == 8 && layer.grid_w == 16 && layer.window_h == 8 && layer.window_w == 8);
    assert_true(layer.shift_h == 0 && layer.shift_w == 4);
    assert_false(layer.causal);
    assert_false(att_explorer_has_removable_tokens(explorer));
    close_both(&explorer, &network);
}

/* Convolutions that became attention are no layers. */
TEST(attention_of_convolutions_is_no_layer)
{
    att_option_values options = att_options_none();
    att_conversion made = {0};
    att_model *model = NULL;
    att_weights *weights = NULL;
    char folder[] = "/tmp/attscope-explore-XXXXXX", path[64];
    att_options_set_sides(&options, "img_size", SIDE, SIDE);
    must(att_model_create(context, "resnet20", &options, ATT_F32, &model));
    must(att_weights_create(att_model_graph(model), "cpu", &weights));
    must(att_weights_initialise(weights, 1));
    must(att_model_to_attention(model, weights, "conv1", 0, &made));
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/made.safetensors", folder);
    must(att_checkpoint_export(made.model, made.weights, path));
    att_network *network = NULL;
    must(att_network_open(context, path, NULL, &network));
    att_explorer *explorer = explore(network);
    assert_int_equal(att_explorer_layer_count(explorer), 0);
    assert_true(att_explorer_branch_count(explorer) > 0);
    close_both(&explorer, &network);
    att_conversion_free(&made);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

TEST(what_does_not_exist_is_refused)
{
    static float rows[64 * SIDE];
    att_network *network = open_network(VIT);
    att_explorer *explorer = explore(network);
    float logits[CLASSES];
    assert_fails(context, att_explorer_row(explorer, 0, 0, NULL, rows), ATT_ERR_ARGUMENT, "no image has been run yet");
    run_explorer(explorer, logits);
    assert_fails(context, att_explorer_row(explorer, 2, 0, NULL, rows), ATT_ERR_ARGUMENT, "the network has 2, from 0");
    assert_fails(context, att_explorer_row(explorer, -1, 0, NULL, rows), ATT_ERR_ARGUMENT, "layer -1");
    assert_fails(context, att_explorer_row(explorer, 1, 17, NULL, rows), ATT_ERR_ARGUMENT, "it has 17, from 0");
    assert_fails(context, att_explorer_change_head(explorer, 0, 2, ATT_HEAD_REMOVED), ATT_ERR_ARGUMENT,
                 "expected 0 to 1");
    assert_fails(context, att_explorer_change_head(explorer, 2, 0, ATT_HEAD_REMOVED), ATT_ERR_ARGUMENT,
                 "attention layer 2");
    assert_fails(context, att_explorer_change_head(explorer, 0, 0, (att_head_change)3), ATT_ERR_ARGUMENT, "no change");
    assert_fails(context, att_explorer_remove_branch(explorer, 4, true), ATT_ERR_ARGUMENT, "expected 0 to 3");
    assert_fails(context, att_explorer_remove_token(explorer, 17, true), ATT_ERR_ARGUMENT, "expected 0 to 16");
    close_both(&explorer, &network);
    network = open_network(SWIN);
    explorer = explore(network);
    assert_false(att_explorer_has_removable_tokens(explorer));
    assert_fails(context, att_explorer_remove_token(explorer, 0, true), ATT_ERR_UNSUPPORTED, "without windows");
    close_both(&explorer, &network);
}

/* In F64 all changes are inputs in double precision. */
TEST(a_network_in_double_precision_is_explored)
{
    enum { TOKENS = 17 };
    for (int n = 0; n < NETWORKS; n++) {
        float narrow[CLASSES], wide[CLASSES], rows[2][2 * TOKENS] = {0};
        for (int w = 0; w <= 1; w++) {
            att_network *network = w ? open_wide(n) : open_network(n);
            att_explorer *explorer = explore(network);
            if (att_explorer_layer_count(explorer) > 0) {
                must(att_explorer_change_head(explorer, 0, 0, ATT_HEAD_UNIFORM));
                must(att_explorer_change_head(explorer, 1, 1, ATT_HEAD_REMOVED));
            }
            must(att_explorer_remove_branch(explorer, 1, true));
            if (att_explorer_has_removable_tokens(explorer))
                must(att_explorer_remove_token(explorer, 3, true));
            run_explorer(explorer, w ? wide : narrow);
            if (n == VIT)
                must(att_explorer_row(explorer, 1, 0, NULL, rows[w]));
            close_both(&explorer, &network);
        }
        const double error = distance(narrow, wide, CLASSES) / size_of(wide, CLASSES);
        if (!(error < 1e-5)) /* measured: at most 1.1e-6 */
            fail_msg("network %d: the logits differ by %.2g", n, error);
        print_message("network %d: logits in F32 and F64 differ by %.2g\n", n, error);
        for (int j = 0; j < 2 * TOKENS; j++)
            assert_true(fabsf(rows[0][j] - rows[1][j]) < 1e-5F || (isnan(rows[0][j]) && isnan(rows[1][j])));
    }
}

TEST(outputs_that_are_not_finite_are_reported)
{
    const att_batch inputs = image_input(SIDE);
    att_network *network = open_network(VIT);
    att_explorer *explorer = explore(network);
    att_batch answers;
    att_weights *weights = att_network_weights(network);
    float bias[CLASSES] = {NAN};
    must(att_weights_set(weights, -1, att_weights_find(weights, "head.bias"), bias, CLASSES));
    assert_fails(context, att_explorer_run(explorer, &inputs, &answers), ATT_ERR_NONFINITE, "NaN or infinity");
    assert_true(isnan(((const float *)att_batch_field(&answers, "logits"))[0]));
    close_both(&explorer, &network);
}

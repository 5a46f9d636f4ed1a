/* Changes of explorers against networks whose weights were edited. */
#include "study/explore/networks.h"

TEST(an_unchanged_explorer_answers_like_the_network)
{
    for (int n = 0; n < NETWORKS; n++) {
        att_network *network = open_network(n);
        att_explorer *explorer = explore(network);
        float logits[CLASSES], own[CLASSES];
        run_explorer(explorer, logits);
        run_network(network, own);
        double error = distance(logits, own, CLASSES) / size_of(own, CLASSES);
        print_message("%s: logits differ by %.2g of the largest\n", networks[n].model, error);
        assert_true(error < 1e-5); /* measured: at most 5e-7 */
        close_both(&explorer, &network);
    }
}

/* Sets `count` elements of a tensor to 0, beginning at `first` and then every `stride`. */
static void zero(att_network *network, const char *name, int64_t first, int64_t count, int64_t stride)
{
    att_weights *weights = att_network_weights(network);
    int index = att_weights_find(weights, name);
    if (index < 0)
        fail_msg("no tensor %s", name);
    int64_t size = att_shape_count(att_weights_at(weights, index).shape);
    float *values = malloc((size_t)size * sizeof *values);
    assert_non_null(values);
    must(att_weights_get(weights, -1, index, values, size));
    for (int64_t i = 0; i < count; i++) {
        assert_true(first + i * stride < size);
        values[first + i * stride] = 0;
    }
    must(att_weights_set(weights, -1, index, values, size));
    free(values);
}

/* Compares the changed explorer with a second network, whose weights the caller edited. */
static void expect_like(att_explorer *explorer, att_network *edited, const float unchanged[CLASSES])
{
    float logits[CLASSES], expected[CLASSES];
    run_explorer(explorer, logits);
    run_network(edited, expected);
    double size = size_of(expected, CLASSES), error = distance(logits, expected, CLASSES) / size;
    assert_true(distance(logits, unchanged, CLASSES) / size > 1e-3); /* the change is visible */
    print_message("differs from edited weights by %.2g of the largest logit\n", error);
    assert_true(error < 1e-5); /* measured: at most 6e-7 */
}

typedef struct changed {
    att_network *network, *edited;
    att_explorer *explorer;
    float unchanged[CLASSES];
} changed;

static changed begin_change(int number)
{
    changed c = {open_network(number), open_network(number), NULL, {0}};
    c.explorer = explore(c.network);
    run_explorer(c.explorer, c.unchanged);
    return c;
}

/* The changes can be taken back. */
static void end_change(changed *c)
{
    float logits[CLASSES];
    expect_like(c->explorer, c->edited, c->unchanged);
    att_explorer_reset(c->explorer);
    run_explorer(c->explorer, logits);
    assert_memory_equal(logits, c->unchanged, sizeof logits);
    close_both(&c->explorer, &c->network);
    att_network_close(&c->edited);
}

TEST(a_removed_head_adds_nothing)
{
    enum { WIDTH = 32, HEAD = 16 };
    changed c = begin_change(VIT);
    must(att_explorer_change_head(c.explorer, 0, 1, ATT_HEAD_REMOVED));
    for (int row = 0; row < WIDTH; row++)
        zero(c.edited, "blocks.0.attn.proj.weight", row * WIDTH + HEAD, HEAD, 1);
    end_change(&c);
}

TEST(a_uniform_head_has_no_scores)
{
    enum { WIDTH = 32, HEAD = 16, SWIN_WIDTH = 16, SWIN_HEAD = 8, SHIFTS = 15 * 15, SWIN_HEADS = 2 };
    changed c = begin_change(RELATIVE);
    must(att_explorer_change_head(c.explorer, 1, 1, ATT_HEAD_UNIFORM));
    zero(c.edited, "blocks.1.attn.qkv.weight", HEAD * WIDTH, HEAD * WIDTH, 1);
    zero(c.edited, "blocks.1.attn.qkv.bias", HEAD, HEAD, 1);
    int table = att_weights_find(att_network_weights(c.edited), "blocks.1.attn.rel_pos.relative_position_bias_table");
    assert_true(table >= 0);
    int64_t rows = att_weights_at(att_network_weights(c.edited), table).shape.dims[0];
    zero(c.edited, "blocks.1.attn.rel_pos.relative_position_bias_table", 1, rows, 2);
    end_change(&c);
    c = begin_change(SWIN); /* with a rolled grid */
    must(att_explorer_change_head(c.explorer, 1, 0, ATT_HEAD_UNIFORM));
    zero(c.edited, "layers.0.blocks.1.attn.qkv.weight", 0, SWIN_HEAD * SWIN_WIDTH, 1);
    zero(c.edited, "layers.0.blocks.1.attn.qkv.bias", 0, SWIN_HEAD, 1);
    zero(c.edited, "layers.0.blocks.1.attn.relative_position_bias_table", 0, SHIFTS, SWIN_HEADS);
    end_change(&c);
}

/* Returns whether the head's row is uniform over the keys that the query sees. */
TEST(uniform_rows_are_shown)
{
    static float rows[64 * SIDE];
    for (int n = VIT; n < RESNET; n++) {
        att_network *network = open_network(n);
        att_explorer *explorer = explore(network);
        float logits[CLASSES];
        must(att_explorer_change_head(explorer, 1, 1, ATT_HEAD_UNIFORM));
        run_explorer(explorer, logits);
        att_explorer_layer layer = att_explorer_layer_at(explorer, 1);
        must(att_explorer_row(explorer, 1, layer.queries - 1, NULL, rows));
        int seen = 0;
        for (int j = 0; j < layer.tokens; j++)
            seen += !isnan(rows[layer.tokens + j]);
        for (int j = 0; j < layer.tokens; j++)
            assert_true(isnan(rows[layer.tokens + j]) || rows[layer.tokens + j] == (float)(1 / (double)seen));
        close_both(&explorer, &network);
    }
}

/* The sharpness of an isotropic head decides how much it differs from a uniform one. */
TEST(a_uniform_head_without_content)
{
    changed c = begin_change(ISOTROPIC);
    att_weights *weights = att_network_weights(c.edited);
    const char *name = NULL;
    for (int i = 0; i < att_weights_count(weights) && !name; i++)
        if (strstr(att_weights_at(weights, i).name, "spreads") || strstr(att_weights_at(weights, i).name, "sharpness"))
            name = att_weights_at(weights, i).name;
    if (!name)
        for (int i = 0; i < att_weights_count(weights); i++)
            print_message("%s\n", att_weights_at(weights, i).name);
    assert_non_null(name);
    must(att_explorer_change_head(c.explorer, 0, 2, ATT_HEAD_UNIFORM));
    zero(c.edited, name, 2, 1, 1);
    end_change(&c);
}

TEST(a_removed_branch_leaves_the_stream)
{
    enum { WIDTH = 32, HIDDEN = 128 };
    changed c = begin_change(VIT);
    assert_int_equal(att_explorer_branch_count(c.explorer), 4);
    assert_string_equal(att_explorer_branch_at(c.explorer, 2).scope, "blocks.1.add1");
    assert_string_equal(att_explorer_branch_at(c.explorer, 2).content, "attention");
    assert_string_equal(att_explorer_branch_at(c.explorer, 3).content, "MLP");
    must(att_explorer_remove_branch(c.explorer, 0, true)); /* attention of block 0 */
    must(att_explorer_remove_branch(c.explorer, 3, true)); /* MLP of block 1 */
    zero(c.edited, "blocks.0.attn.proj.weight", 0, WIDTH * WIDTH, 1);
    zero(c.edited, "blocks.0.attn.proj.bias", 0, WIDTH, 1);
    zero(c.edited, "blocks.1.mlp.fc2.weight", 0, WIDTH * HIDDEN, 1);
    zero(c.edited, "blocks.1.mlp.fc2.bias", 0, WIDTH, 1);
    end_change(&c);
    c = begin_change(RESNET);
    assert_int_equal(att_explorer_branch_count(c.explorer), 8);
    assert_string_equal(att_explorer_branch_at(c.explorer, 7).content, "convolution");
    must(att_explorer_remove_branch(c.explorer, 2, true));
    zero(c.edited, "layer2.0.bn2.weight", 0, 128, 1);
    zero(c.edited, "layer2.0.bn2.bias", 0, 128, 1);
    end_change(&c);
}

/* In the first layer the other weights of a row are divided by their sum; later layers follow the reference kernels. */
TEST(a_removed_token_is_no_key)
{
    enum { TOKEN = 6, ROOM = 1024 };
    float before[ROOM], after[ROOM], logits[CLASSES], unchanged[CLASSES], reference[CLASSES];
    att_network *network = open_network(REGISTERS), *slow = open_with(REGISTERS, "ref");
    att_explorer *explorer = explore(network), *slow_explorer = explore(slow);
    run_explorer(explorer, unchanged);
    att_explorer_layer layer = att_explorer_layer_at(explorer, 0);
    must(att_explorer_row(explorer, 0, 3, NULL, before));
    must(att_explorer_remove_token(explorer, TOKEN, true));
    must(att_explorer_row(explorer, 0, 3, NULL, after));
    assert_memory_equal(before, after, (size_t)(layer.heads * layer.tokens) * sizeof *before); /* no run yet */
    run_explorer(explorer, logits);
    must(att_explorer_row(explorer, 0, 3, NULL, after));
    for (int h = 0; h < layer.heads; h++) {
        const double rest = 1 - (double)before[h * layer.tokens + TOKEN];
        for (int j = 0; j < layer.tokens; j++) {
            double weight = (double)after[h * layer.tokens + j];
            assert_true(j == TOKEN ? isnan(weight)
                                   : fabs(weight - (double)before[h * layer.tokens + j] / rest) < 1e-6); /* 6e-8 */
        }
    }
    must(att_explorer_remove_token(slow_explorer, TOKEN, true));
    run_explorer(slow_explorer, reference);
    assert_true(distance(logits, reference, CLASSES) / size_of(reference, CLASSES) < 1e-5); /* measured: 7e-7 */
    assert_true(distance(logits, unchanged, CLASSES) / size_of(reference, CLASSES) > 1e-3);
    double even[ROOM], sums[ROOM];
    for (int i = 0; i < layer.queries; i++)
        even[i] = 1.0 / layer.queries;
    must(att_explorer_sum(explorer, 0, even, sums));
    for (int h = 0; h < layer.heads; h++) {
        double sum = 0;
        for (int j = 0; j < layer.tokens; j++)
            sum += sums[h * layer.tokens + j];
        assert_true(sums[h * layer.tokens + TOKEN] == 0 && fabs(sum - 1) < 1e-12); /* measured: 4e-16 */
    }
    must(att_explorer_remove_token(explorer, TOKEN, false));
    run_explorer(explorer, logits);
    assert_memory_equal(logits, unchanged, sizeof logits);
    must(att_explorer_remove_token(explorer, TOKEN, true));
    att_explorer_reset(explorer);
    run_explorer(explorer, logits);
    assert_memory_equal(logits, unchanged, sizeof logits);
    for (int token = 1; token < layer.tokens; token++)
        must(att_explorer_remove_token(explorer, token, true));
    assert_fails(context, att_explorer_remove_token(explorer, 0, true), ATT_ERR_ARGUMENT,
                 "is the last one that remains");
    run_explorer(explorer, logits);
    assert_true(isfinite(logits[0]));
    close_both(&explorer, &network);
    close_both(&slow_explorer, &slow);
}

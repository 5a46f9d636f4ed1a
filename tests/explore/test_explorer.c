/* The rows of explorers against the maps of networks, and changes against networks whose weights were edited. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <attscope/attscope.h>
#include <attscope/convert.h>

#include "formula.h"

enum { SIDE = 32 };

static att_context *context;

static int setup(void **state)
{
    (void)state;
    att_settings settings = att_settings_defaults();
    settings.threads = 2;
    return att_context_create(&settings, &context) == ATT_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    att_context_destroy(&context);
    return 0;
}

static void must(att_status status)
{
    if (status != ATT_OK)
        fail_msg("%s", att_context_message(context));
}

static void expect_message(att_status status, att_status expected, const char *part)
{
    if (status != expected || !strstr(att_context_message(context), part))
        fail_msg("status %d, message: %s", (int)status, att_context_message(context));
}

typedef struct option {
    const char *name, *text;
    double number;
} option;

static const struct network {
    const char *model;
    int patch; /* 0: not an option of the network */
    option options[7];
} networks[] = {
    {"vit_tiny_patch16_224", 8, {{"embed_dim", NULL, 32}, {"depth", NULL, 2}, {"num_heads", NULL, 2}}},
    {"vit_tiny_patch16_224",
     8,
     {{"embed_dim", NULL, 32},
      {"depth", NULL, 2},
      {"num_heads", NULL, 2},
      {"reg_tokens", NULL, 3},
      {"qk_norm", NULL, 1},
      {"init_values", NULL, 0.1}}},
    {"vit_tiny_patch16_224",
     8,
     {{"embed_dim", NULL, 32},
      {"depth", NULL, 2},
      {"num_heads", NULL, 2},
      {"pos_embed", "none", 0},
      {"rel_pos_type", "bias", 0}}},
    {"swin_tiny_patch4_window7_224",
     2,
     {{"embed_dim", NULL, 16}, {"window_size", "8", 0}, {"depths", "2,2", 0}, {"stage_heads", "2,4", 0}}},
    {"swinv2_tiny_window8_256",
     2,
     {{"embed_dim", NULL, 16}, {"window_size", "8", 0}, {"depths", "2,2", 0}, {"stage_heads", "2,4", 0}}},
    {"attention_cnn_isotropic", 8, {{"embed_dim", NULL, 32}, {"depth", NULL, 2}, {"num_heads", NULL, 3}}},
    {"attention_cnn_quadratic", 8, {{"embed_dim", NULL, 32}, {"depth", NULL, 2}, {"num_heads", NULL, 3}}},
    {"attention_cnn_content", 8, {{"embed_dim", NULL, 32}, {"depth", NULL, 2}, {"num_heads", NULL, 3}}},
    {"resnet18", 0, {{NULL, NULL, 0}}},
};
enum { VIT, REGISTERS, RELATIVE, SWIN, SWIN_V2, ISOTROPIC, QUADRATIC, CONTENT, RESNET, NETWORKS };

/* Multiplies the weights of queries and keys, so that maps differ from uniform ones, and gives relative biases that are
 * 0 at first other values; so it does with the last norm of a residual branch. */
static void sharpen(att_weights *weights)
{
    for (int i = 0; i < att_weights_count(weights); i++) {
        att_parameter_info info = att_weights_at(weights, i);
        int64_t count = att_shape_count(info.shape);
        bool factor = strstr(info.name, "qkv.weight") || strstr(info.name, "query") || strstr(info.name, "key");
        bool bias = strstr(info.name, "relative_position_bias_table"), norm = strstr(info.name, "bn2.weight");
        if (!factor && !bias && !norm)
            continue;
        float *values = malloc((size_t)count * sizeof *values);
        assert_non_null(values);
        must(att_weights_get(weights, -1, i, values, count));
        for (int64_t e = 0; e < count; e++)
            values[e] = norm ? 1 : bias ? (float)(2 * formula(info.name, (uint32_t)e)) : 12 * values[e];
        must(att_weights_set(weights, -1, i, values, count));
        free(values);
    }
}

static att_network *open_with(int number, const char *backend)
{
    const struct network *n = &networks[number];
    att_option_values options = att_options_none();
    att_network_options how = att_network_options_defaults();
    att_network *network = NULL;
    how.options = &options;
    how.backend = backend;
    how.seed = 7;
    att_options_set_sides(&options, "img_size", SIDE, SIDE);
    att_options_set(&options, "num_classes", 10);
    if (n->patch)
        att_options_set(&options, "patch_size", n->patch);
    for (const option *o = n->options; o->name; o++)
        if (o->text)
            att_options_set_text(&options, o->name, o->text);
        else
            att_options_set(&options, o->name, o->number);
    must(att_network_open(context, n->model, &how, &network));
    sharpen(att_network_weights(network));
    return network;
}

static att_network *open_network(int number)
{
    return open_with(number, "cpu");
}

static att_explorer *explore(att_network *network)
{
    att_explorer *explorer = NULL;
    must(att_explorer_create(network, &explorer));
    return explorer;
}

static const float *image(void)
{
    static float pixels[SIDE * SIDE * 3];
    for (uint32_t i = 0; i < SIDE * SIDE * 3; i++)
        pixels[i] = (float)(4 * formula("image", i));
    return pixels;
}

static void close_both(att_explorer **explorer, att_network **network)
{
    att_explorer_destroy(explorer);
    att_network_close(network);
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Largest difference of two arrays. */
static double distance(const float *a, const float *b, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        most = larger(most, isfinite(a[i]) && isfinite(b[i]) ? fabs((double)a[i] - (double)b[i]) : INFINITY);
    return most;
}

/* The largest absolute value. */
static double size_of(const float *a, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        most = larger(most, fabs((double)a[i]));
    return most;
}

enum { CLASSES = 10 };

static void run_explorer(att_explorer *explorer, float logits[CLASSES])
{
    att_batch answers;
    must(att_explorer_run(explorer, image(), &answers));
    memcpy(logits, att_batch_field(&answers, "logits"), CLASSES * sizeof *logits);
}

static void run_network(att_network *network, float logits[CLASSES])
{
    att_batch answers;
    must(att_network_run(network, image(), 1, SIDE, SIDE, &answers));
    memcpy(logits, att_batch_field(&answers, "logits"), CLASSES * sizeof *logits);
}

/* --- rows ----------------------------------------------------------------------------------------------------------
 */

/* The token of key j of the window in which `token` lies: the grid is rolled up and to the left, then cut. */
static int key_token(const att_explorer_layer *layer, int token, int j)
{
    if (!layer->window_h)
        return j;
    int h = layer->grid_h, w = layer->grid_w;
    int y = (token / w + h - layer->shift_h) % h, x = (token % w + w - layer->shift_w) % w;
    y = y / layer->window_h * layer->window_h + j / layer->window_w;
    x = x / layer->window_w * layer->window_w + j % layer->window_w;
    return (y + layer->shift_h) % h * w + (x + layer->shift_w) % w;
}

/* Compares a row of a head with that of a map. A key that is not in the row has no weight. */
static double row_error(const att_explorer_layer *layer, int query, const float *row, const float *map, int keys)
{
    double most = 0;
    int seen = 0, expected = 0;
    for (int j = 0; j < layer->tokens; j++)
        seen += !isnan(row[j]);
    for (int j = 0; j < keys; j++) {
        float weight = row[key_token(layer, query, j)];
        expected += !isnan(weight);
        most = larger(most, fabs((isnan(weight) ? 0 : (double)weight) - (double)map[j]));
    }
    assert_int_equal(seen, expected);
    return most;
}

static void rows_are_those_of_the_maps(void **state)
{
    (void)state;
    static float rows[64 * SIDE * SIDE];
    for (int n = 0; n < NETWORKS; n++) {
        att_network *network = open_network(n);
        att_explorer *explorer = explore(network);
        att_batch answers, maps;
        double most = 0, largest = 1;
        must(att_explorer_run(explorer, image(), &answers));
        int layers = att_explorer_layer_count(explorer);
        assert_int_equal(layers, n == RESNET ? 0 : n == SWIN || n == SWIN_V2 ? 4 : 2);
        if (layers > 0) {
            must(att_network_select_outputs(network, "*.map"));
            must(att_network_run(network, image(), 1, SIDE, SIDE, &maps));
        }
        for (int l = 0; l < layers; l++) {
            att_explorer_layer layer = att_explorer_layer_at(explorer, l);
            char name[128];
            snprintf(name, sizeof name, "%s.map", layer.scope);
            const float *map = att_batch_field(&maps, name);
            assert_non_null(map);
            int keys = layer.window_h ? layer.window_h * layer.window_w : layer.tokens;
            for (int i = 0; i < layer.queries; i++) {
                must(att_explorer_row(explorer, l, i, &(att_row_options){true, true, true}, rows));
                for (int e = 0; e < layer.heads * layer.tokens; e++)
                    largest = isnan(rows[e]) ? largest : larger(largest, fabs((double)rows[e]));
                must(att_explorer_row(explorer, l, i, NULL, rows));
                for (int h = 0; h < layer.heads; h++)
                    most = larger(most, row_error(&layer, i, rows + h * layer.tokens,
                                                  map + ((int64_t)h * layer.queries + i) * keys, keys));
            }
        }
        print_message("%s: rows differ from the map by at most %.2g, scores are at most %.3g\n", networks[n].model,
                      most, largest);
        assert_true(most < 1e-6 * largest); /* an error of a score is one of the weight; measured: at most 1e-7 */
        close_both(&explorer, &network);
    }
}

/* softmax(scores) is the row, and the scores are the sums of their terms. */
static void scores_are_sums_of_terms(void **state)
{
    (void)state;
    enum { ROOM = 64 * SIDE };
    static float rows[ROOM], scores[ROOM], content[ROOM], positions[ROOM];
    for (int n = VIT; n < RESNET; n++) {
        att_network *network = open_network(n);
        att_explorer *explorer = explore(network);
        att_batch answers;
        double most = 0;
        must(att_explorer_run(explorer, image(), &answers));
        att_explorer_layer layer = att_explorer_layer_at(explorer, 1);
        assert_true(layer.heads * layer.tokens <= ROOM);
        assert_int_equal(layer.content, n != ISOTROPIC && n != QUADRATIC);
        assert_int_equal(layer.positions, n >= RELATIVE);
        int query = layer.queries / 2;
        must(att_explorer_row(explorer, 1, query, NULL, rows));
        must(att_explorer_row(explorer, 1, query, &(att_row_options){true, true, true}, scores));
        must(att_explorer_row(explorer, 1, query, &(att_row_options){true, false, true}, content));
        must(att_explorer_row(explorer, 1, query, &(att_row_options){false, true, true}, positions));
        for (int h = 0; h < layer.heads; h++) {
            double sum = 0;
            for (int j = h * layer.tokens; j < (h + 1) * layer.tokens; j++)
                sum += isnan(scores[j]) ? 0 : exp((double)scores[j]);
            for (int j = h * layer.tokens; j < (h + 1) * layer.tokens; j++) {
                assert_int_equal(isnan(scores[j]), isnan(rows[j]));
                if (isnan(scores[j]))
                    continue;
                most = larger(most, fabs(exp((double)scores[j]) / sum - (double)rows[j]));
                most = larger(most, fabs((double)content[j] + (double)positions[j] - (double)scores[j]) /
                                        larger(1, fabs((double)scores[j])));
                assert_true(layer.content || content[j] == 0);
                assert_true(layer.positions || positions[j] == 0);
            }
        }
        print_message("%s: scores differ by at most %.2g\n", networks[n].model, most);
        assert_true(most < 1e-5); /* measured: 6e-7, at scores up to 40 */
        close_both(&explorer, &network);
    }
}

static void sums_and_rollout_follow_from_rows(void **state)
{
    (void)state;
    enum { ROOM = 4 * 256 };
    static float rows[ROOM];
    static double sums[ROOM], means[2][ROOM][ROOM];
    att_network *network = open_network(REGISTERS);
    att_explorer *explorer = explore(network);
    att_batch answers;
    double weights[ROOM], way[ROOM], expected[ROOM] = {0}, most = 0;
    must(att_explorer_run(explorer, image(), &answers));
    att_explorer_layer layer = att_explorer_layer_at(explorer, 0);
    const int tokens = layer.tokens;
    for (int l = 0; l < 2; l++) {
        for (int i = 0; i < tokens; i++)
            weights[i] = i % 3;
        must(att_explorer_sum(explorer, l, weights, sums));
        for (int i = 0; i < tokens; i++) {
            must(att_explorer_row(explorer, l, i, NULL, rows));
            for (int j = 0; j < tokens; j++)
                for (int h = 0; h < layer.heads; h++) {
                    means[l][i][j] += (double)rows[h * tokens + j] / layer.heads;
                    sums[h * tokens + j] -= weights[i] * (double)rows[h * tokens + j];
                }
        }
        for (int e = 0; e < layer.heads * tokens; e++)
            most = larger(most, fabs(sums[e]));
    }
    print_message("sums differ by %.2g\n", most);
    assert_true(most < 1e-5); /* measured: 4e-7; rows are rounded to f32 */
    const int query = 5;
    must(att_explorer_rollout(explorer, 1, query, way));
    most = 0;
    for (int i = 0; i < tokens; i++) {
        double above = means[1][query][i] / 2 + (i == query ? 0.5 : 0);
        for (int j = 0; j < tokens; j++)
            expected[j] += above * (means[0][i][j] / 2 + (i == j ? 0.5 : 0));
    }
    for (int j = 0; j < tokens; j++)
        most = larger(most, fabs(expected[j] - way[j]));
    print_message("rollout differs by %.2g\n", most);
    assert_true(most < 1e-6); /* measured: 1.4e-8 */
    close_both(&explorer, &network);
    network = open_network(SWIN);
    explorer = explore(network);
    must(att_explorer_run(explorer, image(), &answers));
    expect_message(att_explorer_rollout(explorer, 1, 0, way), ATT_ERR_UNSUPPORTED, "has windows");
    close_both(&explorer, &network);
}

/* --- changes -------------------------------------------------------------------------------------------------------
 */

static void an_unchanged_explorer_answers_like_the_network(void **state)
{
    (void)state;
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

static void a_removed_head_adds_nothing(void **state)
{
    (void)state;
    enum { WIDTH = 32, HEAD = 16 };
    changed c = begin_change(VIT);
    must(att_explorer_change_head(c.explorer, 0, 1, ATT_HEAD_REMOVED));
    for (int row = 0; row < WIDTH; row++)
        zero(c.edited, "blocks.0.attn.proj.weight", row * WIDTH + HEAD, HEAD, 1);
    end_change(&c);
}

static void a_uniform_head_has_no_scores(void **state)
{
    (void)state;
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
static void uniform_rows_are_shown(void **state)
{
    (void)state;
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
static void a_uniform_head_without_content(void **state)
{
    (void)state;
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

static void a_removed_branch_leaves_the_stream(void **state)
{
    (void)state;
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
static void a_removed_token_is_no_key(void **state)
{
    (void)state;
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
    expect_message(att_explorer_remove_token(explorer, 0, true), ATT_ERR_ARGUMENT, "is the last one that remains");
    run_explorer(explorer, logits);
    assert_true(isfinite(logits[0]));
    close_both(&explorer, &network);
    close_both(&slow_explorer, &slow);
}

/* --- refusals ------------------------------------------------------------------------------------------------------
 */

/* A wide map, whose second stage has windows as high as the map: they are shifted sideways only. */
static void shifts_are_per_axis(void **state)
{
    (void)state;
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
static void attention_of_convolutions_is_no_layer(void **state)
{
    (void)state;
    att_option_values options = att_options_none();
    att_attention_conversion made = {0};
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
    att_attention_conversion_free(&made);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void what_does_not_exist_is_refused(void **state)
{
    (void)state;
    static float rows[64 * SIDE];
    att_network *network = open_network(VIT);
    att_explorer *explorer = explore(network);
    float logits[CLASSES];
    expect_message(att_explorer_row(explorer, 0, 0, NULL, rows), ATT_ERR_ARGUMENT, "no image has been run yet");
    run_explorer(explorer, logits);
    expect_message(att_explorer_row(explorer, 2, 0, NULL, rows), ATT_ERR_ARGUMENT, "the network has 2, from 0");
    expect_message(att_explorer_row(explorer, -1, 0, NULL, rows), ATT_ERR_ARGUMENT, "layer -1");
    expect_message(att_explorer_row(explorer, 1, 17, NULL, rows), ATT_ERR_ARGUMENT, "it has 17, from 0");
    expect_message(att_explorer_change_head(explorer, 0, 2, ATT_HEAD_REMOVED), ATT_ERR_ARGUMENT, "expected 0 to 1");
    expect_message(att_explorer_change_head(explorer, 2, 0, ATT_HEAD_REMOVED), ATT_ERR_ARGUMENT, "attention layer 2");
    expect_message(att_explorer_change_head(explorer, 0, 0, (att_head_change)3), ATT_ERR_ARGUMENT, "no change");
    expect_message(att_explorer_remove_branch(explorer, 4, true), ATT_ERR_ARGUMENT, "expected 0 to 3");
    expect_message(att_explorer_remove_token(explorer, 17, true), ATT_ERR_ARGUMENT, "expected 0 to 16");
    close_both(&explorer, &network);
    network = open_network(SWIN);
    explorer = explore(network);
    assert_false(att_explorer_has_removable_tokens(explorer));
    expect_message(att_explorer_remove_token(explorer, 0, true), ATT_ERR_UNSUPPORTED, "without windows");
    close_both(&explorer, &network);
    att_network_options wide = att_network_options_defaults();
    wide.dtype = ATT_F64;
    must(att_network_open(context, "vit_tiny_patch16_224", &wide, &network));
    explorer = NULL;
    expect_message(att_explorer_create(network, &explorer), ATT_ERR_UNSUPPORTED, "explored in F32");
    assert_null(explorer);
    att_network_close(&network);
}

static void outputs_that_are_not_finite_are_reported(void **state)
{
    (void)state;
    att_network *network = open_network(VIT);
    att_explorer *explorer = explore(network);
    att_batch answers;
    att_weights *weights = att_network_weights(network);
    float bias[CLASSES] = {NAN};
    must(att_weights_set(weights, -1, att_weights_find(weights, "head.bias"), bias, CLASSES));
    expect_message(att_explorer_run(explorer, image(), &answers), ATT_ERR_NONFINITE, "NaN or infinity");
    assert_true(isnan(((const float *)att_batch_field(&answers, "logits"))[0]));
    close_both(&explorer, &network);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rows_are_those_of_the_maps),
    cmocka_unit_test(scores_are_sums_of_terms),
    cmocka_unit_test(sums_and_rollout_follow_from_rows),
    cmocka_unit_test(an_unchanged_explorer_answers_like_the_network),
    cmocka_unit_test(a_removed_head_adds_nothing),
    cmocka_unit_test(a_uniform_head_has_no_scores),
    cmocka_unit_test(uniform_rows_are_shown),
    cmocka_unit_test(a_uniform_head_without_content),
    cmocka_unit_test(a_removed_branch_leaves_the_stream),
    cmocka_unit_test(a_removed_token_is_no_key),
    cmocka_unit_test(shifts_are_per_axis),
    cmocka_unit_test(attention_of_convolutions_is_no_layer),
    cmocka_unit_test(what_does_not_exist_is_refused),
    cmocka_unit_test(outputs_that_are_not_finite_are_reported),
};

int main(void)
{
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* Heads that attend by position: their shapes, degenerate heads, the nearest convolution, and networks without some of
 * their heads. */
#include <attscope/position_heads.h>

#include "context.h"
#include "networks/models/net.h"

SHARED_CONTEXT(threads, 0)

enum { WIDTH = 32, MOST_HEADS = 9 };

static att_option_values small(const char *encoding, int depth)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", 28), att_options_set(&options, "in_chans", 1);
    att_options_set_sides(&options, "patch_size", 7, 4);
    att_options_set(&options, "embed_dim", WIDTH), att_options_set(&options, "depth", depth);
    att_options_set(&options, "num_heads", 3);
    att_options_set_text(&options, "encoding", encoding);
    return options;
}

/* As tools/goldens/position_heads.py. */
static void fill(const net *n)
{
    for (int i = 0; i < att_weights_count(n->weights); i++) {
        att_parameter_info p = att_weights_at(n->weights, i);
        int64_t count = att_shape_count(p.shape);
        double *values = malloc((size_t)count * sizeof *values), wide = p.shape.rank > 1 ? 0.4 : 0.2;
        bool gain = strstr(p.name, "norm") && ends_in(p.name, "weight");
        if (ends_in(p.name, "centers") || ends_in(p.name, "factors") || ends_in(p.name, "sharpness") ||
            ends_in(p.name, "embed"))
            wide *= 10;
        for (int64_t e = 0; e < count; e++)
            values[e] = gain + wide * formula(p.name, (uint32_t)e);
        CHECK(n->context, att_weights_set(n->weights, -1, i, values, count));
        free(values);
    }
}

static void get(const net *n, const char *name, double *values, int64_t count)
{
    CHECK(n->context, att_weights_get(n->weights, -1, att_weights_find(n->weights, name), values, count));
}

static void set(const net *n, const char *name, const double *values, int64_t count)
{
    CHECK(n->context, att_weights_set(n->weights, -1, att_weights_find(n->weights, name), values, count));
}

/* Depends on the order of the values. */
static double checksum(const float *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)values[i] * sin((double)i);
    return sum;
}

static void is_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance * fmax(1, fabs(expected))))
        fail_msg("%.15g, expected %.15g", value, expected);
}

/* --- against PyTorch ---------------------------------------------------------------------------------------------- */

static void check_head(const att_position_heads *heads, int index, const double expected[4])
{
    att_position_head head;
    assert_int_equal(att_position_heads_at(heads, index, &head), ATT_OK);
    const double found[] = {head.shift[0], head.shift[1], head.spread, head.most};
    for (int i = 0; i < 4; i++)
        is_near(found[i], expected[i], 1e-12); /* measured: 4e-16 */
}

static void check_convolution(att_position_heads *heads, int kernel, const double expected[4])
{
    const int64_t count = (int64_t)WIDTH * WIDTH * kernel * kernel;
    float *weight = malloc((size_t)count * sizeof *weight), bias[WIDTH];
    att_nearest_convolution found;
    assert_int_equal(att_position_heads_convolution(heads, kernel, weight, bias, &found), ATT_OK);
    is_near(found.error, expected[0], 1e-12);
    is_near(found.grid_error, expected[1], 1e-12);
    is_near(checksum(weight, count), expected[2], 1e-6); /* the weight is f32 */
    is_near(checksum(bias, WIDTH), expected[3], 1e-6);
    free(weight);
}

static void check_line(const char *what, const char *encoding, int index, const double figures[4])
{
    att_option_values options = small(encoding, 1);
    att_position_heads *heads;
    net n = net_create(context, "attention_cnn_isotropic", &options);
    fill(&n);
    must(att_position_heads_read(n.model, n.weights, 0, &heads));
    net_destroy(&n);
    if (strcmp(what, "head") == 0)
        check_head(heads, index, figures);
    else
        check_convolution(heads, index, figures);
    att_position_heads_destroy(&heads);
    assert_null(heads);
}

TEST(heads_and_nearest_convolutions_are_those_of_pytorch)
{
    FILE *file = golden_open("position_heads.txt");
    char what[8], encoding[16];
    double figures[4];
    int index, lines = 0;
    while (fscanf(file, "%7s %15s %d %lf %lf %lf %lf", what, encoding, &index, &figures[0], &figures[1], &figures[2],
                  &figures[3]) == 7) {
        check_line(what, encoding, index, figures);
        lines++;
    }
    fclose(file);
    assert_int_equal(lines, 21);
}

/* --- closed forms ------------------------------------------------------------------------------------------------- */

/* Nine sharp heads at the shifts of a 3 x 3 kernel are a convolution, except at the border. */
/* The middle of a grid of 4 rows and 4 columns is its third row and column; the largest of equal weights is the first.
 * Maps that are 0 miss nothing. */
TEST(heads_are_read_from_the_middle_of_an_even_grid)
{
    static const double zeros[3 * WIDTH * WIDTH], centers[] = {0, 0, 1, 1, -2, -2}, sharpness[] = {0, 10, 10};
    static const double shifts[] = {-0.5, 1, -2}, most_at[] = {-2, 1, -2};
    att_option_values options = small("isotropic", 1);
    att_options_set_sides(&options, "patch_size", 7, 7);
    net n = net_create(context, "attention_cnn_isotropic", &options);
    att_position_heads *heads;
    att_nearest_convolution found;
    fill(&n);
    set(&n, "blocks.0.attn.centers", centers, 6);
    set(&n, "blocks.0.attn.sharpness", sharpness, 3);
    set(&n, "blocks.0.attn.value.weight", zeros, 3 * (int64_t)WIDTH * WIDTH);
    must(att_position_heads_read(n.model, n.weights, 0, &heads));
    for (int h = 0; h < 3; h++) {
        att_position_head head;
        must(att_position_heads_at(heads, h, &head));
        for (int axis = 0; axis < 2; axis++) {
            is_near(head.shift[axis], shifts[h], 1e-12);
            assert_int_equal(head.most_at[axis], (int)most_at[h]);
        }
    }
    must(att_position_heads_convolution(heads, 3, NULL, NULL, &found));
    assert_true(found.error == 0 && found.grid_error == 0);
    att_position_heads_destroy(&heads);
    net_destroy(&n);
}

TEST(sharp_heads_are_a_convolution)
{
    att_option_values options = small("isotropic", 1);
    att_options_set_sides(&options, "patch_size", 4, 4), att_options_set(&options, "num_heads", MOST_HEADS);
    net n = net_create(context, "attention_cnn_isotropic", &options);
    double centers[2 * MOST_HEADS], sharpness[MOST_HEADS];
    att_position_heads *heads;
    att_nearest_convolution three, one;
    fill(&n);
    for (int h = 0; h < MOST_HEADS; h++)
        centers[2 * h] = h / 3 - 1, centers[2 * h + 1] = h % 3 - 1, sharpness[h] = 10;
    set(&n, "blocks.0.attn.centers", centers, 2 * (int64_t)MOST_HEADS);
    set(&n, "blocks.0.attn.sharpness", sharpness, MOST_HEADS);
    must(att_position_heads_read(n.model, n.weights, 0, &heads));
    for (int h = 0; h < MOST_HEADS; h++) {
        att_position_head head;
        must(att_position_heads_at(heads, h, &head));
        assert_true(head.quadratic && !head.degenerate);
        for (int axis = 0; axis < 2; axis++) {
            is_near(head.shift[axis], centers[2 * h + axis], 1e-12);
            assert_int_equal(head.most_at[axis], (int)centers[2 * h + axis]);
            is_near(head.precision[axis], 100, 1e-12);
        }
        assert_true(head.spread < 1e-9);
    }
    must(att_position_heads_convolution(heads, 3, NULL, NULL, &three));
    must(att_position_heads_convolution(heads, 1, NULL, NULL, &one));
    assert_true(three.error < 1e-12); /* measured: 2e-22 */
    assert_true(three.grid_error > 0.1 && three.grid_error < 0.6);
    assert_true(one.error > 0.8 && one.grid_error > three.grid_error);
    assert_fails(context, att_position_heads_convolution(heads, 2, NULL, NULL, &one), ATT_ERR_ARGUMENT,
                 "the kernel's size is 2");
    att_position_heads_destroy(&heads);
    net_destroy(&n);
}

/* S and whether the head is degenerate, on both sides of each bound. */
static const struct {
    double factors[4];
    bool degenerate;
} forms[] = {
    {{1, 0, 0, 1}, false},      {{0.0031, 0, 0, 0.0031}, true}, {{0.0032, 0, 0, 0.0032}, false},
    {{1, 0, 0, 0.0317}, false}, {{1, 0, 0, 0.0316}, true},      {{0, 1, 0, 0}, true},
    {{1, 1, 1, 1}, true},       {{0, 0, 0, 0}, true},           {{0.6, -0.8, 0.8, 0.6}, false},
};
enum { FORMS = sizeof forms / sizeof *forms };

TEST(degenerate_heads_follow_the_rule)
{
    att_option_values options = small("quadratic", 1);
    att_options_set(&options, "num_heads", FORMS);
    net n = net_create(context, "attention_cnn_isotropic", &options);
    double factors[4 * FORMS];
    att_position_heads *heads;
    for (int h = 0; h < FORMS; h++)
        memcpy(factors + 4 * (size_t)h, forms[h].factors, sizeof forms[h].factors);
    set(&n, "blocks.0.attn.factors", factors, 4 * (int64_t)FORMS);
    must(att_position_heads_read(n.model, n.weights, 0, &heads));
    for (int h = 0; h < FORMS; h++) {
        att_position_head head;
        must(att_position_heads_at(heads, h, &head));
        if (head.degenerate != forms[h].degenerate)
            fail_msg("head %d, eigenvalues %g and %g", h, head.precision[0], head.precision[1]);
    }
    att_position_heads_destroy(&heads);
    factors[5] = NAN;
    set(&n, "blocks.0.attn.factors", factors, 4 * (int64_t)FORMS);
    assert_fails(context, att_position_heads_read(n.model, n.weights, 0, &heads), ATT_ERR_NONFINITE,
                 "blocks.0.attn.factors");
    assert_int_equal(att_position_heads_read(n.model, n.weights, 1, &heads), ATT_ERR_ARGUMENT);
    net_destroy(&n);
}

/* --- pruning ------------------------------------------------------------------------------------------------------ */

static void run(const net *n, double logits[10])
{
    static double image[28 * 28];
    for (uint32_t i = 0; i < 28 * 28; i++)
        image[i] = 4 * formula("image", i);
    net_run(n, image, logits);
}

/* Sets the columns of a head in value.weight to 0. */
static void silence(const net *n, int layer, int head)
{
    double weight[WIDTH * WIDTH * 3];
    char name[64];
    snprintf(name, sizeof name, "blocks.%d.attn.value.weight", layer);
    get(n, name, weight, WIDTH * WIDTH * 3);
    for (int row = 0; row < WIDTH; row++)
        memset(weight + (row * 3 + head) * WIDTH, 0, WIDTH * sizeof *weight);
    set(n, name, weight, WIDTH * WIDTH * 3);
}

static void check_pruning(const char *encoding)
{
    static const att_head_place removed[] = {{0, 1}, {0, 2}, {2, 0}};
    att_option_values options = small(encoding, 3);
    double before[10], after[10];
    net n = net_create(context, "attention_cnn_isotropic", &options), pruned = {.context = context};
    fill(&n);
    for (int i = 0; i < 3; i++)
        silence(&n, removed[i].layer, removed[i].head);
    must(att_model_prune_heads(n.model, n.weights, removed, 3, &pruned.model, &pruned.weights));
    assert_string_equal(att_options_text(att_model_options(pruned.model), "layer_heads"), "1,3,2");
    assert_true(att_options_number(att_model_options(pruned.model), "num_heads", 0) == 3);
    run(&n, before);
    run(&pruned, after);
    for (int i = 0; i < 10; i++)
        is_near(after[i], before[i], 1e-12); /* measured: 0 */
    net_destroy(&pruned);
    net_destroy(&n);
}

TEST(heads_without_projection_can_be_removed)
{
    static const char *const encodings[] = {"isotropic", "quadratic", "learned"};
    for (int i = 0; i < 3; i++)
        check_pruning(encodings[i]);
}

/* The numbers of heads of 127 blocks fit into an option, those of 129 do not. */
TEST(a_list_of_heads_that_is_too_long_is_refused)
{
    static const att_head_place first[] = {{0, 0}};
    for (int depth = 127; depth <= 129; depth += 2) {
        att_option_values options = small("isotropic", depth);
        net n = net_create(context, "attention_cnn_isotropic", &options), pruned = {.context = context};
        att_status status = att_model_prune_heads(n.model, n.weights, first, 1, &pruned.model, &pruned.weights);
        assert_int_equal(status, depth == 127 ? ATT_OK : ATT_ERR_UNSUPPORTED);
        if (status == ATT_OK)
            net_destroy(&pruned);
        else
            assert_message(context, "the 129 blocks would have different numbers of heads");
        net_destroy(&n);
    }
}

TEST(one_head_of_a_layer_stays)
{
    static const att_head_place all[] = {{0, 0}, {0, 1}, {0, 2}, {1, 2}, {1, 0}}, twice[] = {{0, 0}, {0, 0}},
                                none[] = {{0, 3}};
    att_option_values options = small("quadratic", 2);
    net n = net_create(context, "attention_cnn_isotropic", &options), pruned = {.context = context};
    fill(&n);
    must(att_model_prune_heads(n.model, n.weights, all, 4, &pruned.model, &pruned.weights));
    assert_string_equal(att_options_text(att_model_options(pruned.model), "layer_heads"), "1,2");
    double centers[6], kept[2]; /* head 0 stays */
    get(&n, "blocks.0.attn.centers", centers, 6);
    get(&pruned, "blocks.0.attn.centers", kept, 2);
    assert_memory_equal(kept, centers, sizeof kept);
    assert_true(centers[0] != centers[2] && centers[1] != centers[3]);
    net_destroy(&pruned);
    must(att_model_prune_heads(n.model, n.weights, all, 5, &pruned.model, &pruned.weights));
    assert_string_equal(att_options_text(att_model_options(pruned.model), "layer_heads"), "");
    assert_true(att_options_number(att_model_options(pruned.model), "num_heads", 0) == 1);
    net_destroy(&pruned);
    assert_int_equal(att_model_prune_heads(n.model, n.weights, twice, 2, &pruned.model, &pruned.weights),
                     ATT_ERR_ARGUMENT);
    assert_fails(context, att_model_prune_heads(n.model, n.weights, none, 1, &pruned.model, &pruned.weights),
                 ATT_ERR_ARGUMENT, "there is no head 3 in layer 0");
    net_destroy(&n);
    options = small("learned_content", 1);
    n = net_create(context, "attention_cnn_isotropic", &options);
    assert_int_equal(att_position_layers(n.model), 0);
    assert_int_equal(att_model_prune_heads(n.model, n.weights, none, 1, &pruned.model, &pruned.weights),
                     ATT_ERR_UNSUPPORTED);
    net_destroy(&n);
}

/* The largest number is num_heads; other lists are refused. */
TEST(lists_of_heads_are_checked)
{
    static const char *const wrong[] = {"3", "3,2,1", "3,0", "3,", ",3", "3,x", "3,65537", "3,99999999999999999999"};
    att_option_values options = small("quadratic", 2);
    att_model *model;
    att_options_unset(&options, "num_heads");
    att_options_set_text(&options, "layer_heads", "3,4");
    must(att_model_create(context, "attention_cnn_quadratic", &options, ATT_F32, &model));
    assert_true(att_options_number(att_model_options(model), "num_heads", 0) == 4);
    att_model_destroy(&model);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        att_options_set_text(&options, "layer_heads", wrong[i]);
        assert_fails(context, att_model_create(context, "attention_cnn_quadratic", &options, ATT_F32, &model),
                     ATT_ERR_ARGUMENT, "numbers of heads of the 2 blocks");
    }
}

/* Scores of known encodings, written with the operations, against plain sums; in f64. */
#include "engine/ops/finite_difference.h"

TEST_GROUP(fd_setup, close_context)

enum { HEADS = 2, WIDTH = 4, HEIGHT = 3, BREADTH = 2, TOKENS = HEIGHT * BREADTH, VALUE = 5 };
static const double scale = 0.4;

/* The numbers of a model; those of a shared value and those of the first sample. */
typedef struct numbers {
    double q[TOKENS][HEADS][WIDTH], k[TOKENS][HEADS][WIDTH], v[TOKENS][VALUE];
    double key_bias[HEADS][WIDTH], position_bias[HEADS][WIDTH];
    double rows[2 * HEIGHT - 1][WIDTH], columns[2 * BREADTH - 1][WIDTH]; /* of which `halves` uses the first half */
} numbers;

static void draw(double *to, size_t bytes, const char *name)
{
    att_random random = att_random_from(att_random_hash(name));
    for (size_t i = 0; i < bytes / sizeof *to; i++)
        to[i] = att_random_normal(&random);
}

static att_value input(fd_model *model, att_shape shape, const void *first_sample)
{
    att_value value = fd_input(model, ATT_F64, shape, 1, 0, 0);
    memcpy(model->input[model->input_count - 1].rows, first_sample, (size_t)att_shape_count(shape) * sizeof(double));
    return value;
}

static att_value constant(fd_model *model, att_shape shape, const void *data)
{
    return att_graph_constant(model->graph, ATT_F64, shape, data);
}

static double dot(const double *a, const double *bias, const double *b, int count)
{
    double sum = 0;
    for (int c = 0; c < count; c++)
        sum += (a[c] + bias[c]) * b[c];
    return sum;
}

/* Content and position of the key, each with the query and with a bias in its place: four terms. */
static double score(const numbers *n, bool halves, int head, int i, int j)
{
    const double *q = n->q[i][head], *bias = n->position_bias[head];
    const double *row = n->rows[i / BREADTH - j / BREADTH + HEIGHT - 1];
    const double *column = n->columns[i % BREADTH - j % BREADTH + BREADTH - 1];
    int width = halves ? WIDTH / 2 : WIDTH, second = halves ? WIDTH / 2 : 0;
    return scale * (dot(q, n->key_bias[head], n->k[j][head], WIDTH) + dot(q, bias, row, width) +
                    dot(q + second, bias + second, column, width));
}

static double expected(const numbers *n, bool halves, int head, int i, int channel)
{
    double sum = 0, weighted = 0;
    for (int j = 0; j < TOKENS; j++) {
        double p = exp(score(n, halves, head, i, j));
        sum += p, weighted += p * n->v[j][channel];
    }
    return weighted / sum;
}

/* The first `width` columns of a table. */
static att_value table_of(fd_model *model, const double *table, int rows, int width)
{
    double narrow[(2 * HEIGHT - 1) * WIDTH];
    for (int i = 0; i < rows * width; i++)
        narrow[i] = table[i / width * WIDTH + i % width];
    return constant(model, att_shape_of(rows, width), narrow);
}

static att_value attend(fd_model *model, const numbers *n, bool halves)
{
    att_graph *graph = model->graph;
    const att_shape heads = att_shape_of(TOKENS, HEADS * WIDTH), bias = att_shape_of(HEADS * WIDTH);
    int width = halves ? WIDTH / 2 : WIDTH;
    att_value q = input(model, heads, n->q), k = input(model, heads, n->k);
    att_value v = input(model, att_shape_of(TOKENS, VALUE), n->v);
    att_attention_terms terms = att_attention_no_terms();
    const att_axis_terms_options axes = {
        .heads = HEADS, .width = WIDTH, .grid_h = HEIGHT, .grid_w = BREADTH, .scale = scale};
    att_axis_terms(graph, att_add(graph, q, constant(model, bias, n->position_bias)),
                   table_of(model, n->rows[0], 2 * HEIGHT - 1, width),
                   table_of(model, n->columns[0], 2 * BREADTH - 1, width), &axes, &terms);
    const att_attention_options options = {
        .heads = HEADS, .value_heads = 1, .grid_h = HEIGHT, .grid_w = BREADTH, .scale = scale, .terms = &terms};
    return att_attention(graph, att_add(graph, q, constant(model, bias, n->key_bias)), k, v, &options);
}

static void compare(const numbers *n, bool halves)
{
    double o[TOKENS][HEADS][VALUE];
    fd_model model = fd_create();
    att_graph_output(model.graph, "o", attend(&model, n, halves));
    must(att_graph_status(model.graph));
    fd_run run = {0};
    att_plan_options options = att_plan_options_defaults();
    options.backend = "ref";
    must(att_plan_compile(model.graph, &options, &run.plan));
    must(att_weights_create(model.graph, "ref", &run.weights));
    must(att_session_create(run.plan, run.weights, 1, &run.session));
    for (int i = 0; i < model.input_count; i++)
        must(att_session_bind(run.session, model.input[i].name, model.input[i].rows));
    must(att_session_run(run.session, 1));
    must(att_session_output(run.session, "o", 0, 1, o));
    for (int i = 0; i < TOKENS; i++)
        for (int head = 0; head < HEADS; head++)
            for (int c = 0; c < VALUE; c++)
                assert_true(fabs(o[i][head][c] - expected(n, halves, head, i, c)) < 1e-13); /* 9e-16 */
    fd_close(&run);
    fd_destroy(&model);
}

static numbers draw_numbers(void)
{
    numbers n;
    draw(&n.q[0][0][0], sizeof n.q, "q"), draw(&n.k[0][0][0], sizeof n.k, "k"), draw(&n.v[0][0], sizeof n.v, "v");
    draw(&n.key_bias[0][0], sizeof n.key_bias, "u"), draw(&n.position_bias[0][0], sizeof n.position_bias, "w");
    draw(&n.rows[0][0], sizeof n.rows, "rows"), draw(&n.columns[0][0], sizeof n.columns, "columns");
    return n;
}

/* (q_i + u) . k_j + (q_i + w) . r_(i - j), with vectors r for rows and for columns. (Dai et al., ACL 2019) */
TEST(transformer_xl_is_two_biases)
{
    const numbers n = draw_numbers();
    compare(&n, false);
}

/* q_i . k_j + q_i . r_(i - j): one half of q_i meets vectors for rows, the other those for columns. (Cordonnier et al.,
 * ICLR 2020) */
TEST(learned_positions_meet_halves_of_queries)
{
    numbers n = draw_numbers();
    memset(n.key_bias, 0, sizeof n.key_bias), memset(n.position_bias, 0, sizeof n.position_bias);
    compare(&n, true);
}

/* --- excluded keys ------------------------------------------------------------------------------------------------ */

/* Attention of 3 queries to `keys` keys of two heads; with `mask`, the term of each of them. */
static fd_model attend_to(int keys, const double *mask)
{
    static const att_init drawn = {ATT_INIT_NORMAL, 1};
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_attention_terms terms = att_attention_no_terms();
    const att_shape q_shape = att_shape_of(3, HEADS * WIDTH), kv_shape = att_shape_of(5, 2 * HEADS * WIDTH);
    att_value q = att_add(graph, fd_input(&model, ATT_F64, q_shape, 0, 0, 0),
                          att_graph_parameter(graph, "q", q_shape, drawn, true));
    att_value kv = att_add(graph, fd_input(&model, ATT_F64, kv_shape, 0, 0, 0),
                           att_graph_parameter(graph, "kv", kv_shape, drawn, true));
    if (mask) {
        terms.keys = fd_input(&model, ATT_F64, att_shape_of(keys), 0, 0, 0);
        for (int sample = 0; sample < FD_BATCH; sample++)
            memcpy((double *)model.input[model.input_count - 1].rows + sample * keys, mask,
                   (size_t)keys * sizeof *mask);
    }
    if (keys < 5)
        kv = att_slice_tokens(graph, kv, 0, keys);
    const att_attention_options options = {.heads = HEADS, .terms = &terms};
    att_graph_scope(graph, "attn");
    att_graph_output(graph, "o", att_attention(graph, q, kv, ATT_NONE, &options));
    return model;
}

/* The output, and the mean entropy of each head. */
static void run_masked(fd_model *model, double o[3 * HEADS * WIDTH], double summary[HEADS * ATT_ATTENTION_SUMMARY])
{
    must(att_graph_probe_attention_summary(model->graph, "*"));
    fd_run run = {0};
    att_plan_options options = att_plan_options_defaults();
    options.backend = "ref";
    must(att_plan_compile(model->graph, &options, &run.plan));
    must(att_weights_create(model->graph, "ref", &run.weights));
    must(att_weights_initialise(run.weights, 7));
    must(att_session_create(run.plan, run.weights, 1, &run.session));
    for (int i = 0; i < model->input_count; i++)
        must(att_session_bind(run.session, model->input[i].name, model->input[i].rows));
    must(att_session_run(run.session, 1));
    must(att_session_output(run.session, "o", 0, 1, o));
    must(att_session_output(run.session, "attn.summary", 0, 1, summary));
    fd_close(&run);
    fd_destroy(model);
}

TEST(excluded_keys_are_as_if_absent)
{
    static const double mask[] = {0, 0, 0, -INFINITY, -INFINITY};
    double masked[3 * HEADS * WIDTH], cut[3 * HEADS * WIDTH];
    double of_masked[HEADS * ATT_ATTENTION_SUMMARY], of_cut[HEADS * ATT_ATTENTION_SUMMARY];
    fd_model all = attend_to(5, mask), fewer = attend_to(3, NULL);
    run_masked(&all, masked, of_masked);
    run_masked(&fewer, cut, of_cut);
    for (int i = 0; i < 3 * HEADS * WIDTH; i++)
        assert_true(fabs(masked[i] - cut[i]) < 1e-14);
    for (int i = 0; i < HEADS * ATT_ATTENTION_SUMMARY; i++) /* the weight on the query itself needs as many keys */
        assert_true(fabs(of_masked[i] - of_cut[i]) < 1e-14 || i % ATT_ATTENTION_SUMMARY == 6);
}

TEST(a_query_without_keys_gives_zeros)
{
    static const double mask[] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY};
    double o[3 * HEADS * WIDTH], summary[HEADS * ATT_ATTENTION_SUMMARY];
    fd_model model = attend_to(5, mask);
    run_masked(&model, o, summary);
    for (int i = 0; i < 3 * HEADS * WIDTH; i++)
        assert_true(o[i] == 0);
    for (int head = 0; head < HEADS; head++)
        assert_true(summary[head * ATT_ATTENTION_SUMMARY] == 0);
}

TEST(masked_attention_has_the_right_gradients)
{
    static const double masks[][5] = {{0, 0.5, -1, -INFINITY, -INFINITY},
                                      {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY}};
    for (int i = 0; i < 2; i++) {
        fd_model model = attend_to(5, masks[i]);
        fd_loss_of(&model, att_graph_find_output(model.graph, "o"));
        print_message("largest error of a gradient %.2g\n", fd_check(&model, "masked", 1, 1e-8)); /* 2e-10, 0 */
        fd_destroy(&model);
    }
}

TEST(a_mask_has_no_gradient)
{
    fd_model model = fd_create();
    att_value x = fd_input(&model, ATT_F64, att_shape_of(5, 3), 1, 0, 0),
              keys = fd_input(&model, ATT_F64, att_shape_of(5), 1, 0, 0);
    att_attention_terms terms = att_attention_no_terms();
    terms.keys =
        att_add(model.graph, keys,
                att_graph_parameter(model.graph, "mask", att_shape_of(5), (att_init){ATT_INIT_NORMAL, 1}, true));
    const att_attention_options options = {.heads = 1, .terms = &terms};
    fd_loss_of(&model, att_attention(model.graph, x, ATT_NONE, ATT_NONE, &options));
    att_plan_options plan_options = att_plan_options_defaults();
    plan_options.purpose = ATT_TRAIN;
    plan_options.backend = "ref";
    att_plan *plan = NULL;
    assert_fails(context, att_plan_compile(model.graph, &plan_options, &plan), ATT_ERR_UNSUPPORTED,
                 "the terms of keys are a mask, which has no gradient");
    fd_destroy(&model);
}

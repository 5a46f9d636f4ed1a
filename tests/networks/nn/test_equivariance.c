/* Attention without positions commutes with permutations of the tokens; with terms of shifts its scores commute with
 * translations of the content. (Cordonnier et al., ICLR 2020) */
#include "networks/models/fixture.h"

#include "context.h"
#include <attscope/attscope.h>

enum { HEIGHT = 4, WIDTH = 6, TOKENS = HEIGHT * WIDTH, CHANNELS = 8, HEADS = 2, ROW = HEADS * CHANNELS };

typedef enum positions { NONE, TABLE, QUADRATIC, AXES, EMBEDDED, POSITIONS } positions;

typedef struct tokens {
    float rows[TOKENS][CHANNELS];
} tokens;

typedef struct result {
    float out[TOKENS][ROW], map[HEADS][TOKENS][TOKENS];
} result;

SHARED_CONTEXT(threads, 0)

static att_value parameter(att_graph *graph, const char *name, att_shape shape)
{
    return att_graph_parameter(graph, name, shape, (att_init){ATT_INIT_NORMAL, 0.6}, false);
}

static void add_terms(att_graph *graph, positions kind, att_value q, att_attention_terms *terms)
{
    const att_axis_terms_options options = {
        .heads = HEADS, .width = CHANNELS, .grid_h = HEIGHT, .grid_w = WIDTH, .scale = 0.5};
    if (kind == TABLE)
        terms->relative = parameter(graph, "table", att_shape_of((2 * HEIGHT - 1) * (2 * WIDTH - 1), HEADS));
    if (kind == QUADRATIC)
        att_isotropic_shifts(graph, HEIGHT, WIDTH, parameter(graph, "centers", att_shape_of(HEADS, 2)),
                             parameter(graph, "sharpness", att_shape_of(HEADS)), terms);
    if (kind == AXES)
        att_axis_terms(graph, q, parameter(graph, "of_rows", att_shape_of(2 * HEIGHT - 1, CHANNELS)),
                       parameter(graph, "of_columns", att_shape_of(2 * WIDTH - 1, CHANNELS)), &options, terms);
}

static att_graph *make_graph(positions kind)
{
    att_graph *graph;
    must(att_graph_create(context, ATT_F32, &graph));
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(TOKENS, CHANNELS));
    att_attention_terms terms = att_attention_no_terms();
    if (kind == EMBEDDED)
        x = att_add(graph, x, parameter(graph, "embedding", att_shape_of(TOKENS, CHANNELS)));
    att_value q = att_linear(graph, x, parameter(graph, "q", att_shape_of(ROW, CHANNELS)), ATT_NONE);
    att_value k = att_linear(graph, x, parameter(graph, "k", att_shape_of(ROW, CHANNELS)), ATT_NONE);
    att_value v = att_linear(graph, x, parameter(graph, "v", att_shape_of(ROW, CHANNELS)), ATT_NONE);
    add_terms(graph, kind, q, &terms);
    const att_attention_options options = {.heads = HEADS, .grid_h = HEIGHT, .grid_w = WIDTH, .terms = &terms};
    att_graph_scope(graph, "attn");
    att_graph_output(graph, "o", att_attention(graph, q, k, v, &options));
    must(att_graph_probe_attention_map(graph, "attn"));
    return graph;
}

static void attend(positions kind, const tokens *x, result *found)
{
    att_graph *graph = make_graph(kind);
    att_plan_options options = att_plan_options_defaults();
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    must(att_plan_compile(graph, &options, &plan));
    must(att_weights_create(graph, "cpu", &weights));
    must(att_weights_initialise(weights, 5));
    must(att_session_create(plan, weights, 1, &session));
    must(att_session_bind(session, "x", x->rows));
    must(att_session_run(session, 1));
    must(att_session_output(session, "o", 0, 1, found->out));
    must(att_session_output(session, "attn.map", 0, 1, found->map));
    att_session_destroy(&session);
    att_weights_destroy(&weights);
    att_plan_destroy(&plan);
    att_graph_destroy(&graph);
}

static tokens draw(const char *key)
{
    tokens x;
    for (uint32_t i = 0; i < TOKENS * CHANNELS; i++)
        x.rows[i / CHANNELS][i % CHANNELS] = (float)(2 * formula(key, i));
    return x;
}

/* The token that takes the place of token i. */
static int permuted(int i)
{
    return (7 * i + 3) % TOKENS;
}

/* The largest difference between attention to permuted tokens and permuted attention. */
static double permutation_error(positions kind)
{
    static result before, after;
    tokens x = draw("x"), y;
    double worst = 0;
    for (int i = 0; i < TOKENS; i++)
        memcpy(y.rows[i], x.rows[permuted(i)], sizeof y.rows[i]);
    attend(kind, &x, &before);
    attend(kind, &y, &after);
    for (int i = 0; i < TOKENS * ROW; i++) {
        double difference = fabs((double)after.out[i / ROW][i % ROW] - (double)before.out[permuted(i / ROW)][i % ROW]);
        worst = isnan(difference) ? INFINITY : fmax(worst, difference);
    }
    return worst;
}

TEST(attention_without_positions_commutes_with_permutations)
{
    assert_true(permutation_error(NONE) < 1e-6); /* 1.8e-7 */
    for (positions kind = NONE + 1; kind < POSITIONS; kind++)
        assert_true(permutation_error(kind) > 0.01); /* at least 1.0 */
}

enum { DOWN = 1, RIGHT = 2 }; /* the translation */

/* Token i after the translation; -1: outside of the grid. */
static int moved(int i)
{
    int y = i / WIDTH + DOWN, x = i % WIDTH + RIGHT;
    return y < HEIGHT && x < WIDTH ? y * WIDTH + x : -1;
}

/* The largest difference between log(a_ij / a_ii), which is a difference of scores, before and after the content has
 * moved, over tokens that stay in the grid. The other tokens get other content. */
static double translation_error(positions kind)
{
    static result before, after;
    tokens x = draw("x"), y = draw("y");
    double worst = 0;
    for (int i = 0; i < TOKENS; i++)
        if (moved(i) >= 0)
            memcpy(y.rows[moved(i)], x.rows[i], sizeof y.rows[i]);
    attend(kind, &x, &before);
    attend(kind, &y, &after);
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < TOKENS; i++)
            for (int j = 0; j < TOKENS; j++) {
                if (moved(i) < 0 || moved(j) < 0)
                    continue;
                const float *from = before.map[h][i], *to = after.map[h][moved(i)];
                double difference =
                    fabs(log((double)from[j] / (double)from[i]) - log((double)to[moved(j)] / (double)to[moved(i)]));
                worst = isnan(difference) ? INFINITY : fmax(worst, difference);
            }
    return worst;
}

TEST(scores_with_terms_of_shifts_commute_with_translations)
{
    for (positions kind = NONE; kind <= AXES; kind++)
        assert_true(translation_error(kind) < 1e-5); /* 1.2e-6 */
    assert_true(translation_error(EMBEDDED) > 0.1);  /* 28 */
}

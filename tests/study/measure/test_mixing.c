/* Attention without content and attention with zero queries and keys have the same figures and gradients. */
#include <attscope/attscope.h>

#include "context.h"

SHARED_CONTEXT(threads, 0)

enum { HEIGHT = 5, WIDTH = 7, HEADS = 3, CHANNELS = 6, SAMPLES = 3 };

static att_value parameter(att_graph *graph, const char *name, att_shape shape)
{
    return att_graph_parameter(graph, name, shape, (att_init){ATT_INIT_NORMAL, 0.7}, true);
}

/* Two attentions with the same terms and values, "free" and "full"; the second has zero queries and keys. With `axes`
 * the terms are those of both axes. */
static att_graph *make_graph(bool axes, int prefix)
{
    att_graph *graph;
    must(att_graph_create(context, ATT_F32, &graph));
    int64_t tokens = prefix + HEIGHT * WIDTH;
    att_value x = att_graph_input(graph, "v", ATT_F32, att_shape_of(tokens, CHANNELS));
    att_value v = att_linear(graph, x, parameter(graph, "weight", att_shape_of(CHANNELS, CHANNELS)), ATT_NONE);
    att_value q = att_graph_input(graph, "q", ATT_F32, att_shape_of(tokens, HEADS));
    att_attention_terms terms = att_attention_no_terms();
    att_value centers = parameter(graph, "centers", att_shape_of(HEADS, 2));
    if (axes)
        att_isotropic_shifts(graph, HEIGHT, WIDTH, centers, parameter(graph, "sharpness", att_shape_of(HEADS)), &terms);
    else
        terms.relative =
            att_quadratic_shifts(graph, HEIGHT, WIDTH, centers, parameter(graph, "factors", att_shape_of(HEADS, 2, 2)));
    const att_attention_options options = {.heads = HEADS,
                                           .value_heads = 1,
                                           .prefix = prefix,
                                           .grid_h = HEIGHT,
                                           .grid_w = WIDTH,
                                           .step_h = 4,
                                           .step_w = 2,
                                           .terms = &terms};
    att_graph_scope(graph, "free");
    att_graph_output(graph, "o", att_attention(graph, ATT_NONE, ATT_NONE, v, &options));
    att_graph_scope(graph, "full");
    att_graph_output(graph, "p", att_attention(graph, q, q, v, &options));
    must(att_graph_status(graph));
    return graph;
}

static att_session *run(att_graph *graph, att_precision precision, att_plan **plan, att_weights **weights)
{
    static float v[SAMPLES * (HEIGHT * WIDTH + 2) * CHANNELS], q[SAMPLES * (HEIGHT * WIDTH + 2) * HEADS];
    att_session *session;
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        v[i] = (float)sin((double)i);
    att_plan_options options = att_plan_options_defaults();
    options.precision = precision;
    must(att_plan_compile(graph, &options, plan));
    must(att_weights_create(graph, "cpu", weights));
    must(att_weights_initialise(*weights, 3));
    must(att_session_create(*plan, *weights, SAMPLES, &session));
    must(att_session_bind(session, "v", v));
    must(att_session_bind(session, "q", q));
    must(att_session_run(session, SAMPLES));
    return session;
}

/* Returns the number of figures that were compared. */
static int compare_figures(const att_measure *measure)
{
    int compared = 0;
    for (int i = 0; i < att_measure_count(measure); i++) {
        att_measurement one = att_measure_at(measure, i);
        for (int j = 0; j < att_measure_count(measure) && !strcmp(one.node, "free"); j++) {
            att_measurement other = att_measure_at(measure, j);
            if (strcmp(other.node, "full") || strcmp(one.instrument, other.instrument) ||
                strcmp(one.statistic, other.statistic) || one.head != other.head)
                continue;
            if (!(fabs(one.mean - other.mean) <= 1e-6 * fabs(other.mean))) /* 0 */
                fail_msg("%s %s of head %d is %g, should be %g", one.instrument, one.statistic, one.head, one.mean,
                         other.mean);
            assert_true(one.count == SAMPLES && one.deviation == 0);
            compared++;
        }
    }
    return compared;
}

static void compare_outputs(att_session *session, int tokens)
{
    static float free_of_content[(HEIGHT * WIDTH + 2) * HEADS * CHANNELS],
        full[(HEIGHT * WIDTH + 2) * HEADS * CHANNELS];
    double worst = 0;
    must(att_session_output(session, "o", 1, 1, free_of_content));
    must(att_session_output(session, "p", 1, 1, full));
    for (int i = 0; i < tokens * HEADS * CHANNELS; i++)
        worst = isnan(free_of_content[i]) ? INFINITY : fmax(worst, fabs(free_of_content[i] - full[i]));
    if (!(worst <= 2e-6)) /* 4.2e-7 */
        fail_msg("an output differs by %g", worst);
}

/* In mixed precision both layers round the values, and no scores. */
static void compare_layers(bool axes, int prefix, att_precision precision)
{
    enum { STATISTICS = 12 }; /* of entropy, distance, jacobian and head_shape */
    att_graph *graph = make_graph(axes, prefix);
    att_measure *measure;
    att_plan *plan;
    att_weights *weights;
    must(att_measure_create(graph, "entropy,distance,jacobian,head_shape", "*", &measure));
    att_session *session = run(graph, precision, &plan, &weights);
    must(att_measure_observe(measure, session, SAMPLES, NULL));
    assert_int_equal(compare_figures(measure), STATISTICS * (HEADS + 1));
    compare_outputs(session, prefix + HEIGHT * WIDTH);
    att_session_destroy(&session);
    att_weights_destroy(&weights);
    att_plan_destroy(&plan);
    att_measure_destroy(&measure);
    att_graph_destroy(&graph);
}

TEST(figures_are_those_of_zero_queries)
{
    for (int prefix = 0; prefix < 3; prefix += 2)
        for (int axes = 0; axes < 2; axes++) {
            compare_layers(axes, prefix, ATT_FULL);
            compare_layers(axes, prefix, ATT_MIXED);
        }
}

/* A pattern for one layer does not select the other, and instruments added later find no more layers. */
TEST(layers_are_found_once)
{
    att_graph *graph = make_graph(true, 0);
    att_measure *first, *second;
    must(att_measure_create(graph, "entropy", "free", &first));
    must(att_measure_create(graph, "entropy,distance", "*", &second));
    assert_int_equal(att_measure_count(first), HEADS + 1);
    assert_int_equal(att_measure_count(second), 2 * (HEADS + 1) * 3);
    att_measure_destroy(&first);
    att_measure_destroy(&second);
    att_graph_destroy(&graph);
}

/* --- training ----------------------------------------------------------------------------------------------------- */

enum { STEPS = 2, PARAMETERS = 3, MOST = 64, NUMBERS = STEPS * PARAMETERS * MOST };

/* Gradients of the loss in two steps, MOST numbers for each parameter. The loss depends on the output `name` only, and
 * the weights change between the steps. */
static void find_gradients(bool axes, int prefix, const char *name, float found[NUMBERS])
{
    static const int32_t targets[SAMPLES] = {0, 5, 11};
    static float v[SAMPLES * (HEIGHT * WIDTH + 2) * CHANNELS], q[SAMPLES * (HEIGHT * WIDTH + 2) * HEADS];
    att_graph *graph = make_graph(axes, prefix);
    att_value target = att_graph_input(graph, "target", ATT_I32, (att_shape){.rank = 0});
    att_value logits = att_token_mean(graph, att_tanh(graph, att_graph_find_output(graph, name)), 0);
    att_graph_output(graph, "loss", att_cross_entropy(graph, logits, target, 0));
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN;
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    att_gradient *gradient;
    must(att_plan_compile(graph, &options, &plan));
    must(att_weights_create(graph, "cpu", &weights));
    must(att_weights_initialise(weights, 3));
    must(att_session_create(plan, weights, SAMPLES, &session));
    must(att_gradient_create(weights, &gradient));
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        v[i] = 3 * (float)sin((double)i);
    must(att_session_bind(session, "v", v));
    must(att_session_bind(session, "q", q));
    must(att_session_bind(session, "target", targets));
    assert_int_equal(att_weights_count(weights), PARAMETERS);
    for (int step = 0; step < STEPS; step++) {
        att_gradient_begin(gradient);
        must(att_session_accumulate(session, gradient, SAMPLES, 1, 0, step, 0));
        for (int i = 0; i < PARAMETERS; i++) {
            int64_t count = att_shape_count(att_weights_at(weights, i).shape);
            float *numbers = found + (step * PARAMETERS + i) * MOST, changed[MOST];
            assert_in_range(count, 1, MOST);
            must(att_gradient_get(gradient, i, numbers, count));
            for (int64_t e = 0; e < count; e++)
                changed[e] = (float)cos((double)e);
            must(att_weights_set(weights, -1, i, changed, count));
        }
    }
    att_gradient_destroy(&gradient);
    att_session_destroy(&session);
    att_weights_destroy(&weights);
    att_plan_destroy(&plan);
    att_graph_destroy(&graph);
}

/* Gradients are those of attention with zero queries, also after a change of the weights, of which maps are derived. */
TEST(gradients_are_those_of_zero_queries)
{
    for (int prefix = 0; prefix < 3; prefix += 2)
        for (int axes = 0; axes < 2; axes++) {
            static float free_of_content[NUMBERS], full[NUMBERS];
            find_gradients(axes, prefix, "o", free_of_content);
            find_gradients(axes, prefix, "p", full);
            double worst = 0, largest = 0;
            for (int i = 0; i < NUMBERS; i++) {
                worst = isnan(free_of_content[i]) ? INFINITY : fmax(worst, fabs(free_of_content[i] - full[i]));
                largest = fmax(largest, fabs(full[i]));
            }
            assert_true(largest > 0.1);
            if (!(worst <= 3e-6 * largest)) /* 6.5e-7 */
                fail_msg("a gradient differs by %g of %g", worst, largest);
        }
}

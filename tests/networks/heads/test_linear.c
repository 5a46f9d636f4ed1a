/* The linear head: which stages it reads, its parameters, and its values against sums of products. */
#include <attscope/ops.h>
#include <attscope/plan.h>

#include "engine/graph/graph.h"
#include "engine/ops/drop.h"
#include "networks/heads/heads.h"
#include "test.h"

enum { SIDE = 2, OUTPUTS = 3, CHANNELS = 2 };

typedef struct headed {
    att_context *context;
    att_graph *graph;
    att_backbone backbone;
    att_value y;
} headed;

/* A graph whose stages are inputs of these heights and widths. */
static headed head_on_maps(int (*maps)[2], int count, double drop_rate)
{
    headed h = {.backbone.drop_rate = drop_rate};
    char name[16];
    assert_int_equal(att_context_create(NULL, &h.context), ATT_OK);
    CHECK(h.context, att_graph_create(h.context, ATT_F32, &h.graph));
    h.backbone.features.stage_count = count;
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "stage%d", i);
        h.backbone.features.stages[i] =
            att_graph_input(h.graph, name, ATT_F32, att_shape_of(maps[i][0], maps[i][1], CHANNELS));
    }
    const att_scope root = att_scope_root(h.graph), scope = att_scope_in(&root, "segmenter");
    h.y = att_head_linear(&scope, &h.backbone, OUTPUTS);
    return h;
}

/* The same for square maps. */
static headed head_on(const int *sides, int count)
{
    int maps[ATT_FEATURE_STAGES][2];
    for (int i = 0; i < count; i++)
        maps[i][0] = maps[i][1] = sides[i];
    return head_on_maps(maps, count, 0);
}

static void close_head(headed *h)
{
    att_graph_destroy(&h->graph);
    att_context_destroy(&h->context);
}

static void expect_parameter(const headed *h, int index, const char *name, att_shape shape)
{
    const att_parameter_info found = att_graph_parameter_at(h->graph, index);
    assert_string_equal(found.name, name);
    assert_true(att_shape_equal(found.shape, shape));
}

TEST(maps_of_one_size_are_side_by_side)
{
    const int sides[] = {SIDE, SIDE, SIDE, SIDE};
    headed h = head_on(sides, 4);
    assert_true(att_shape_equal(att_value_shape(h.graph, h.y), att_shape_of(SIDE, SIDE, OUTPUTS)));
    expect_parameter(&h, 0, "segmenter.bn.weight", att_shape_of(4 * CHANNELS));
    expect_parameter(&h, att_graph_parameter_count(h.graph) - 2, "segmenter.linear.weight",
                     att_shape_of(OUTPUTS, 4 * CHANNELS));
    expect_parameter(&h, att_graph_parameter_count(h.graph) - 1, "segmenter.linear.bias", att_shape_of(OUTPUTS));
    close_head(&h);
}

TEST(of_a_network_that_shrinks_its_map_the_last_stage_counts)
{
    const int sides[] = {8, 4, SIDE};
    headed h = head_on(sides, 3);
    assert_true(att_shape_equal(att_value_shape(h.graph, h.y), att_shape_of(SIDE, SIDE, OUTPUTS)));
    expect_parameter(&h, att_graph_parameter_count(h.graph) - 2, "segmenter.linear.weight",
                     att_shape_of(OUTPUTS, CHANNELS));
    close_head(&h);
}

TEST(maps_of_another_width_or_height_do_not_count)
{
    int maps[][2] = {{SIDE, 2 * SIDE}, {2 * SIDE, SIDE}, {SIDE, SIDE}};
    headed h = head_on_maps(maps, 3, 0);
    expect_parameter(&h, 0, "segmenter.bn.weight", att_shape_of(CHANNELS));
    close_head(&h);
}

static double dropout_rate_of(const headed *h)
{
    for (int i = 0; i < h->graph->nodes.count; i++)
        if (strcmp(h->graph->nodes.items[i].op->name, "dropout") == 0)
            return ATT_ATTRS(&h->graph->nodes.items[i], drop)->rate;
    return 0;
}

TEST(the_layer_drops_with_the_rate_of_the_backbone)
{
    int maps[][2] = {{SIDE, SIDE}};
    headed h = head_on_maps(maps, 1, 0.25);
    assert_true(dropout_rate_of(&h) == 0.25);
    close_head(&h);
    h = head_on_maps(maps, 1, 0);
    assert_true(dropout_rate_of(&h) == 0);
    close_head(&h);
}

TEST(a_network_without_maps_is_refused)
{
    headed h = head_on(NULL, 0);
    assert_int_equal(h.y, ATT_NONE);
    assert_fails(h.context, att_graph_status(h.graph), ATT_ERR_UNSUPPORTED, "no map of features");
    close_head(&h);
}

static int find_parameter(const att_weights *weights, const char *name)
{
    for (int i = 0; i < att_weights_count(weights); i++)
        if (strcmp(att_weights_at(weights, i).name, name) == 0)
            return i;
    fail_msg("there is no parameter %s", name);
    return -1;
}

static void set(const headed *h, att_weights *weights, const char *name, const float *values, int count)
{
    CHECK(h->context, att_weights_set(weights, -1, find_parameter(weights, name), values, count));
}

/* A place's answer is a weighted sum of its own channels, normalised with the running statistics. */
TEST(answers_are_linear_in_the_normalised_channels)
{
    static const int sides[] = {SIDE, SIDE};
    static const float weight[OUTPUTS][2 * CHANNELS] = {{1, 2, 3, 4}, {0, -1, 0.5f, 0}, {-2, 0, 0, 1}};
    static const float bias[OUTPUTS] = {0.5f, 0, -1}, mean[2 * CHANNELS] = {1, -1, 0, 2},
                       variance[2 * CHANNELS] = {4, 1, 0.25f, 9};
    float stages[2][SIDE * SIDE][CHANNELS], found[SIDE * SIDE][OUTPUTS];
    headed h = head_on(sides, 2);
    att_plan *plan = NULL;
    att_weights *weights = NULL;
    att_session *session = NULL;
    const att_plan_options options = att_plan_options_defaults();
    att_graph_output(h.graph, "y", h.y);
    CHECK(h.context, att_weights_create(h.graph, "cpu", &weights));
    CHECK(h.context, att_weights_initialise(weights, 1));
    set(&h, weights, "segmenter.linear.weight", weight[0], OUTPUTS * 2 * CHANNELS);
    set(&h, weights, "segmenter.linear.bias", bias, OUTPUTS);
    set(&h, weights, "segmenter.bn.running_mean", mean, 2 * CHANNELS);
    set(&h, weights, "segmenter.bn.running_var", variance, 2 * CHANNELS);
    for (int p = 0; p < SIDE * SIDE; p++)
        for (int c = 0; c < 2 * CHANNELS; c++)
            stages[c / CHANNELS][p][c % CHANNELS] = (float)((p * 2 * CHANNELS + c) * 5 % 7) - 3;
    CHECK(h.context, att_plan_compile(h.graph, &options, &plan));
    CHECK(h.context, att_session_create(plan, weights, 1, &session));
    CHECK(h.context, att_session_bind(session, "stage0", stages[0]));
    CHECK(h.context, att_session_bind(session, "stage1", stages[1]));
    CHECK(h.context, att_session_run(session, 1));
    CHECK(h.context, att_session_output(session, "y", 0, 1, found));
    for (int p = 0; p < SIDE * SIDE; p++)
        for (int o = 0; o < OUTPUTS; o++) {
            double expected = bias[o];
            for (int c = 0; c < 2 * CHANNELS; c++)
                expected +=
                    weight[o][c] * (stages[c / CHANNELS][p][c % CHANNELS] - mean[c]) / sqrt((double)variance[c] + 1e-5);
            assert_float_equal(found[p][o], expected, 1e-5); /* measured: 2e-6 */
        }
    att_session_destroy(&session);
    att_plan_destroy(&plan);
    att_weights_destroy(&weights);
    close_head(&h);
}

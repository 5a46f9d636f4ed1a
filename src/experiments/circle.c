/* The circle task: one layer moves two points along a circle, and is then applied to its own output. */
#include <math.h>
#include <string.h>

#include <attscope/ops.h>

#include "experiments/list.h"

enum { POINTS = 1000, PAIRS = POINTS / 2, TOKENS = 2 };
static const double RADIUS = 0.3, TWO_PI = 6.283185307179586;

typedef struct circle_variant {
    const char *name;
    bool skip, mlp;
} circle_variant;
static const circle_variant variants[ATT_CIRCLE_VARIANTS] = {
    {"base", false, false}, {"skip", true, false}, {"mlp", false, true}};

typedef float pair[TOKENS][ATT_SAN_POINT];

/* Points number i and i + PAIRS of the circle, which lie opposite each other. */
static void set_pair(int i, pair points)
{
    for (int n = 0; n < TOKENS; n++) {
        double angle = TWO_PI * (i + n * PAIRS) / POINTS;
        points[n][0] = (float)(RADIUS * cos(angle));
        points[n][1] = (float)(RADIUS * sin(angle));
    }
}

/* With `skip` the network learns the step from a point to the next one. */
static att_status make_samples(const att_experiment_job *job, bool skip, att_samples *samples)
{
    ATT_TRY(att_samples_create(job->arena, PAIRS, TOKENS, sizeof(pair), sizeof(pair), false, samples));
    for (int i = 0; i < PAIRS; i++) {
        float *x = (float *)samples->x + (size_t)i * TOKENS * ATT_SAN_POINT;
        float *target = (float *)samples->target + (size_t)i * TOKENS * ATT_SAN_POINT;
        pair now, next;
        set_pair(i, now);
        set_pair(i + 1, next);
        memcpy(x, now, sizeof now);
        for (int e = 0; e < TOKENS * ATT_SAN_POINT; e++)
            target[e] = (&next[0][0])[e] - (skip ? (&now[0][0])[e] : 0);
    }
    return ATT_OK;
}

/* The squared error of a sample, summed over both points. */
static void add_loss(att_graph *graph, att_value y)
{
    att_value target = att_graph_input(graph, "target", ATT_F32, att_shape_of(TOKENS, ATT_SAN_POINT));
    att_value error = att_reshape(graph, att_combine(graph, 1, y, -1, target), att_shape_of(1, TOKENS * ATT_SAN_POINT));
    att_value squares = att_matmul(graph, error, error, true, 1);
    att_graph_output(graph, "loss", att_reshape(graph, squares, (att_shape){.rank = 0}));
}

static double distance(const double a[2], const double b[2])
{
    return hypot(a[0] - b[0], a[1] - b[1]);
}

static att_status roll_out(const att_predictor *network, bool skip, att_circle_result *result)
{
    static const double center[2] = {0, 0};
    pair x, y;
    double error = 0;
    set_pair(0, x);
    ATT_TRY(att_session_bind(network->session, "x", x));
    for (int i = 0; i < ATT_CIRCLE_STEPS; i++) {
        for (int n = 0; n < TOKENS; n++) {
            double *point = result->points[i][n];
            point[0] = (double)x[n][0], point[1] = (double)x[n][1];
            error += fabs(distance(point, center) - RADIUS);
        }
        ATT_TRY(att_session_run(network->session, 1));
        ATT_TRY(att_session_output(network->session, "logits", 0, 1, y));
        for (int e = 0; e < TOKENS * ATT_SAN_POINT; e++)
            (&x[0][0])[e] = (&y[0][0])[e] + (skip ? (&x[0][0])[e] : 0);
    }
    result->radius_error = error / (ATT_CIRCLE_STEPS * TOKENS);
    result->distance[0] = distance(result->points[0][0], result->points[0][1]);
    result->distance[1] = distance(result->points[ATT_CIRCLE_STEPS - 1][0], result->points[ATT_CIRCLE_STEPS - 1][1]);
    return ATT_OK;
}

static att_status train_variant(const att_experiment_job *job, const circle_variant *variant, const att_graph *graph,
                                att_weights *weights, att_experiment_result *result)
{
    att_samples samples;
    att_learned learned;
    att_learning learning = att_experiment_learning(job, variant->name);
    att_circle_result *circle = &result->circle[result->circle_count];
    learning.mean = false;
    ATT_TRY(att_weights_initialise(weights, job->options->seed));
    ATT_TRY(make_samples(job, variant->skip, &samples));
    ATT_TRY(att_learn(job->context, graph, weights, &samples, &learning, &learned));
    result->training_samples = samples.count;
    result->updates = learned.updates;
    att_predictor network = {NULL, NULL};
    att_status status = att_predictor_open(graph, weights, "logits", &network);
    if (status == ATT_OK)
        status = roll_out(&network, variant->skip, circle);
    att_predictor_close(&network);
    circle->name = variant->name;
    circle->loss = learned.loss;
    result->circle_count++;
    return status;
}

static att_status run_variant(const att_experiment_job *job, const circle_variant *variant,
                              att_experiment_result *result)
{
    att_san_spec spec = att_experiment_spec(job);
    att_graph *graph = NULL;
    att_weights *weights = NULL;
    spec.mlp = variant->mlp;
    ATT_TRY(att_graph_create(job->context, ATT_F32, &graph));
    add_loss(graph, att_san_build(graph, &spec));
    att_status status = att_weights_create(graph, "cpu", &weights);
    if (status == ATT_OK)
        status = train_variant(job, variant, graph, weights, result);
    att_weights_destroy(&weights);
    att_graph_destroy(&graph);
    return status;
}

static att_status run(const att_experiment_job *job, att_experiment_result *result)
{
    result->whole = result->baseline = NAN;
    for (int i = 0; i < ATT_CIRCLE_VARIANTS; i++)
        ATT_TRY(run_variant(job, &variants[i], result));
    return ATT_OK;
}

const att_experiment att_experiment_circle = {
    .info = {.name = "circle",
             .summary = "moves two points along a circle, 300 steps from its own output",
             .reading =
                 "1,000 points lie on a circle of radius 0.3. Samples are the pairs of opposite points, targets the "
                 "pairs after them; the loss is the squared error summed over a batch. base: x <- f(x); skip: x <- "
                 "x + f(x), where f learns the difference to the next points; mlp: base with an MLP in the layer. "
                 "In all three the layer keeps the residual of its attention.",
             .depth = 1,
             .heads = 2,
             .width = 32,
             .optimizer = "adam",
             .lr = 1e-5,
             .batch_size = 30,
             .epochs = 70,
             .published_whole = NAN,
             .published_baseline = NAN},
    .spec = {.tokens = TOKENS, .outputs = ATT_SAN_POINT},
    .run = run,
};

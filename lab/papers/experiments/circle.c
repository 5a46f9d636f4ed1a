/* The circle task: one layer moves two points along a circle, and is then applied to its own output. */
#include <math.h>
#include <string.h>

#include <attscope/ops.h>

#include "lab/papers/experiments/circle.h"
#include "lab/papers/experiments/list.h"

enum { POINTS = 1000, TOKENS = ATT_CIRCLE_TOKENS };
static const double RADIUS = 0.3, TWO_PI = 6.283185307179586;

typedef struct circle_variant {
    const char *name;
    bool skip, mlp;
} circle_variant;
static const circle_variant variants[ATT_CIRCLE_VARIANTS] = {
    {"base", false, false}, {"skip", true, false}, {"mlp", false, true}};

/* With `skip` the network learns the step from a point to the next one. With the quirk "sums" it learns the next point
 * from the sum of two samples. */
static att_circle_task task_of(const att_experiment_job *job, const circle_variant *variant)
{
    bool sums = variant->skip && att_experiment_has(job, "sums");
    return (att_circle_task){.pairs = att_experiment_has(job, "pairs") ? POINTS / 2 - 1 : POINTS / 2,
                             .steps = variant->skip && !sums,
                             .sums = sums};
}

/* Points number i and i + apart of the circle. */
static void set_pair(int i, int apart, att_circle_pair points)
{
    for (int n = 0; n < TOKENS; n++) {
        double angle = TWO_PI * (i + n * apart) / POINTS;
        points[n][0] = (float)(RADIUS * cos(angle));
        points[n][1] = (float)(RADIUS * sin(angle));
    }
}

/* to += factor times from */
static void add_pair(att_circle_pair to, float factor, att_circle_pair from)
{
    for (int n = 0; n < TOKENS; n++)
        for (int axis = 0; axis < ATT_SAN_POINT; axis++)
            to[n][axis] += factor * from[n][axis];
}

void att_circle_sample(const att_circle_task *task, int i, att_circle_pair x, att_circle_pair target)
{
    att_circle_pair before;
    set_pair(i, task->pairs, x);
    set_pair(i + 1, task->pairs, target);
    if (task->steps)
        add_pair(target, -1, x);
    if (task->sums && i >= ATT_CIRCLE_BATCH) {
        set_pair(i - ATT_CIRCLE_BATCH, task->pairs, before);
        add_pair(x, 1, before);
    }
}

static att_status make_samples(const att_experiment_job *job, const att_circle_task *task, att_samples *samples)
{
    ATT_TRY(att_samples_create(job->arena, task->pairs, TOKENS, sizeof(att_circle_pair), sizeof(att_circle_pair), false,
                               samples));
    att_circle_pair *x = (att_circle_pair *)samples->x, *target = (att_circle_pair *)samples->target;
    for (int i = 0; i < task->pairs; i++)
        att_circle_sample(task, i, x[i], target[i]);
    return ATT_OK;
}

/* The squared error of a sample, summed over both points. */
static void add_loss(att_graph *graph, att_value y)
{
    att_value target = att_graph_input(graph, "expected", ATT_F32, att_shape_of(TOKENS, ATT_SAN_POINT));
    att_value error = att_reshape(graph, att_combine(graph, 1, y, -1, target), att_shape_of(1, TOKENS * ATT_SAN_POINT));
    att_value squares = att_matmul(graph, error, error, true, 1);
    att_graph_output(graph, "loss", att_reshape(graph, squares, (att_shape){.rank = 0}));
}

static double distance(const double a[2], const double b[2])
{
    return hypot(a[0] - b[0], a[1] - b[1]);
}

/* Records a step; returns the sum of both points' errors of the radius. */
static double record_step(att_circle_result *result, int step, att_circle_pair shown)
{
    static const double center[2] = {0, 0};
    double error = 0;
    for (int n = 0; n < TOKENS; n++) {
        double *point = result->points[step][n];
        point[0] = (double)shown[n][0], point[1] = (double)shown[n][1];
        error += fabs(distance(point, center) - RADIUS);
    }
    return error;
}

/* With the quirk "sums" the points are the outputs, and the state is the sum of all of them. */
static att_status roll_out(const circle_variant *variant, const att_circle_task *task, const att_predictor *network,
                           att_circle_result *result)
{
    att_circle_pair x, y;
    double error = 0;
    set_pair(0, task->pairs, x);
    memcpy(y, x, sizeof y);
    ATT_TRY(att_session_bind(network->session, "x", x));
    for (int i = 0; i < ATT_CIRCLE_STEPS; i++) {
        error += record_step(result, i, task->sums ? y : x);
        ATT_TRY(att_session_run(network->session, 1));
        ATT_TRY(att_session_output(network->session, "result", 0, 1, y));
        if (variant->skip)
            add_pair(x, 1, y);
        else
            memcpy(x, y, sizeof x);
    }
    const double(*last)[2] = (const double(*)[2])result->points[ATT_CIRCLE_STEPS - 1];
    result->radius_error = att_experiment_value(error / (ATT_CIRCLE_STEPS * TOKENS));
    result->distance = att_experiment_value(distance(last[0], last[1]));
    return ATT_OK;
}

static att_status train_variant(const att_experiment_job *job, const circle_variant *variant, const att_graph *graph,
                                att_weights *weights, att_experiment_result *result)
{
    att_samples samples;
    att_learned learned;
    const att_circle_task task = task_of(job, variant);
    att_learning learning = att_experiment_learning(job, variant->name);
    att_circle_result *circle = &result->circle[result->circle_count];
    learning.mean = false;
    ATT_TRY(att_weights_initialise(weights, learning.seed));
    ATT_TRY(make_samples(job, &task, &samples));
    ATT_TRY(att_learn(job->context, graph, weights, &samples, &learning, &learned));
    result->training_samples = samples.count;
    result->updates = learned.updates;
    att_predictor network = {NULL, NULL};
    att_status status = att_predictor_open(graph, weights, "result", &network);
    if (status == ATT_OK)
        status = roll_out(variant, &task, &network, circle);
    att_predictor_close(&network);
    circle->name = variant->name;
    circle->loss = att_experiment_value(learned.loss);
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
    result->loss = result->whole = result->baseline = att_experiment_value(NAN);
    for (int i = 0; i < ATT_CIRCLE_VARIANTS; i++)
        ATT_TRY(run_variant(job, &variants[i], result));
    return ATT_OK;
}

static const att_experiment_quirk quirks[] = {
    ATT_QUIRK_UNSHUFFLED,
    {"pairs", "499 pairs of points that are 499 points apart, not 500 pairs of opposite points"},
    {"sums", "skip trains on the sum of each batch and the one before it, and sums its outputs up"},
    {NULL, NULL}};

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
             .batch_size = ATT_CIRCLE_BATCH,
             .epochs = 70,
             .quirks = quirks,
             .published_whole = NAN,
             .published_baseline = NAN},
    .spec = {.tokens = TOKENS, .outputs = ATT_SAN_POINT},
    .run = run,
};

/* The convex hull task: points in, whether each is a vertex of their convex hull out. */
#include "experiments/hull_vertices.h"
#include "experiments/list.h"

enum { POINTS = 10, CLASSES = 2, TRAINING = 10000, EVALUATION = 300 };
static const double SIDE = 10, SHIFT = 3.3;

/* Coordinates are rounded to f32 first, so that the classes are those of the points that the network sees. */
static void make_sample(att_random *random, float (*points)[ATT_SAN_POINT], int32_t *classes)
{
    double shift[ATT_SAN_POINT], exact[POINTS][ATT_SAN_POINT];
    bool vertex[POINTS];
    for (int axis = 0; axis < ATT_SAN_POINT; axis++)
        shift[axis] = SHIFT * att_random_normal(random);
    for (int n = 0; n < POINTS; n++)
        for (int axis = 0; axis < ATT_SAN_POINT; axis++) {
            points[n][axis] = (float)(SIDE * att_random_uniform(random) + shift[axis]);
            exact[n][axis] = (double)points[n][axis];
        }
    att_hull_vertices((const double(*)[2])exact, POINTS, vertex);
    for (int n = 0; n < POINTS; n++)
        classes[n] = vertex[n];
}

static att_status make_set(const att_experiment_job *job, const char *set, int count, att_samples *samples)
{
    size_t points = POINTS * ATT_SAN_POINT * sizeof(float), classes = POINTS * sizeof(int32_t);
    ATT_TRY(att_samples_create(job->arena, count, POINTS, points, classes, false, samples));
    for (int i = 0; i < count; i++) {
        att_random random = att_experiment_random(job, set, i);
        make_sample(&random, (float(*)[ATT_SAN_POINT])(samples->x + (size_t)i * points),
                    (int32_t *)(samples->target + (size_t)i * classes));
    }
    return ATT_OK;
}

static att_status make(const att_experiment_job *job, att_san_spec *spec, att_samples *training,
                       att_samples *evaluation)
{
    (void)spec;
    ATT_TRY(make_set(job, "training", TRAINING, training));
    return make_set(job, "evaluation", EVALUATION, evaluation);
}

const att_experiment att_experiment_hull = {
    .info = {.name = "hull",
             .summary = "finds the vertices of the convex hull of 10 points",
             .reading =
                 "Points are uniform in [0, 10] x [0, 10], shifted together by N(0, 3.3^2) on each axis; the class "
                 "of a token says whether its point is a vertex of the convex hull, which is computed exactly. "
                 "10,000 samples for training, 300 for evaluation. Weight decay 1e-3 is part of the gradient, for "
                 "all parameters; the learning rate is multiplied by 0.91 at epochs 15, 30, 40, 50 and 60.",
             .depth = 6,
             .heads = 3,
             .width = 84,
             .optimizer = "adam",
             .lr = 1e-5,
             .batch_size = 30,
             .epochs = 70,
             .paths = true,
             .published_whole = 0.9,
             .published_baseline = 0.54},
    .spec = {.tokens = POINTS, .outputs = CLASSES, .deep_embedding = true},
    .weight_decay = 1e-3,
    .schedule = ATT_RATE_STEPS,
    .make = make,
};

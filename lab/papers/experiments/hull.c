/* The convex hull task: points in, whether each is a vertex of their convex hull out. */
#include "lab/papers/experiments/hull_vertices.h"
#include "lab/papers/experiments/list.h"

enum { POINTS = 10, CLASSES = 2 };
static const double SIDE = 10, SHIFT = 3.3;

/* Coordinates are rounded to f32 first, so that the classes are those of the points that the network sees. */
static void draw(att_random *random, void *x, void *target)
{
    float(*points)[ATT_SAN_POINT] = x;
    int32_t *classes = target;
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

static const att_experiment_quirk quirks[] = {ATT_QUIRK_UNSHUFFLED, {NULL, NULL}};

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
             .quirks = quirks,
             .published_whole = 0.9,
             .published_baseline = 0.54},
    .spec = {.tokens = POINTS, .outputs = CLASSES, .deep_embedding = true},
    .weight_decay = 1e-3,
    .schedule = ATT_RATE_STEPS,
    .training = 10000,
    .evaluation = 300,
    .x_bytes = POINTS * ATT_SAN_POINT * sizeof(float),
    .target_bytes = POINTS * sizeof(int32_t),
    .draw = draw,
};

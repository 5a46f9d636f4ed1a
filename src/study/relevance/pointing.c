/* The pointing game. */
#include <math.h>

#include "base/core/error.h"
#include "study/relevance/method.h"

/* The cell with the largest value, the first of equal ones; -1: all are NaN. */
static int largest_cell(const att_relevance_map *map)
{
    int best = -1;
    for (int i = 0; i < map->height * map->width; i++)
        if (!isnan(map->values[i]) && (best < 0 || map->values[i] > map->values[best]))
            best = i;
    return best;
}

/* Moves a point of the input to the photograph. */
static void move_back(const att_geometry *g, double *x, double *y)
{
    const double(*m)[3] = g->map, right = *x - m[0][2], down = *y - m[1][2];
    const double determinant = m[0][0] * m[1][1] - m[0][1] * m[1][0];
    *x = (m[1][1] * right - m[0][1] * down) / determinant;
    *y = (m[0][0] * down - m[1][0] * right) / determinant;
}

static bool is_in(const att_true_box *box, double x, double y, double margin)
{
    return x >= box->x - margin && x <= box->x + box->width + margin && y >= box->y - margin &&
           y <= box->y + box->height + margin;
}

/* Whether a part of the box is inside of the input. */
static bool is_seen(const att_geometry *g, const att_true_box *box)
{
    double left = box->x, top = box->y, right = box->x + box->width, bottom = box->y + box->height;
    att_geometry_move(g, &left, &top);
    att_geometry_move(g, &right, &bottom);
    return fmin(left, right) < g->width && fmax(left, right) > 0 && fmin(top, bottom) < g->height &&
           fmax(top, bottom) > 0;
}

att_pointing att_relevance_point(const att_relevance_map *map, const att_geometry *g, const att_true_box *boxes,
                                 int count, int label, double margin)
{
    const int cell = largest_cell(map);
    double x = (cell % map->width + 0.5) * g->width / map->width;
    double y = ((cell - cell % map->width) / map->width + 0.5) * g->height / map->height;
    bool seen = false, in_crowd = false;
    if (cell < 0)
        return ATT_POINTING_MISS;
    move_back(g, &x, &y);
    for (int b = 0; b < count; b++) {
        if (boxes[b].label != label)
            continue;
        const bool inside = is_in(&boxes[b], x, y, margin);
        if (inside && !boxes[b].crowd)
            return ATT_POINTING_HIT;
        seen = seen || (!boxes[b].crowd && is_seen(g, &boxes[b]));
        in_crowd = in_crowd || inside;
    }
    return seen && !in_crowd ? ATT_POINTING_MISS : ATT_POINTING_NEITHER;
}

att_status att_relevance_choose(att_relevance *r, const att_batch *inputs, const int *classes, int count, int *target)
{
    att_batch answers;
    for (int i = 0; i < count; i++)
        if (classes[i] < 0 || classes[i] >= r->classes)
            return att_fail(r->context, ATT_ERR_ARGUMENT, "class %d does not exist: expected 0 to %d", classes[i],
                            r->classes - 1);
    if (count < 1)
        return att_fail(r->context, ATT_ERR_ARGUMENT, "there are no classes to choose from");
    ATT_TRY(att_explorer_run(r->explorer, inputs, &answers));
    const float *logits = att_batch_field(&answers, r->logits_name);
    *target = classes[0];
    for (int i = 1; i < count; i++)
        if (logits[classes[i]] > logits[*target])
            *target = classes[i];
    return ATT_OK;
}

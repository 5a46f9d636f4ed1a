#include "study/relevance/list.h"

/* The square of the distance of a cell from the middle, in sides. */
static double distance(int at, int count)
{
    const double from = (at - (count - 1) / 2.0) / count;
    return from * from;
}

static att_status compute(att_relevance_job *job)
{
    const att_relevance *r = job->relevance;
    double *map = att_relevance_begin_map(job, r->height, r->width);
    for (int i = 0; i < r->height * r->width; i++)
        map[i] = -(distance(i / r->width, r->height) + distance(i % r->width, r->width));
    return ATT_OK;
}

const att_relevance_method att_relevance_centre = {.info = {.name = "centre",
                                                            .title = "Centre",
                                                            .summary = "nearness to the middle, for comparisons",
                                                            .needs_image = true},
                                                   .compute = compute};

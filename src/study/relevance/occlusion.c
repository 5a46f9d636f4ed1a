#include <string.h>

#include "base/core/error.h"
#include "study/relevance/list.h"

enum { CELL, SQUARE };
static const att_detail options[] = {
    {"cell", "side of a cell of the map in pixels, and the step of the square", 16, 1, 4096, NULL, true},
    {"square", "side of the square in cells", 2, 1, 64, NULL, true},
};

typedef struct grid {
    int cell, square, height, width; /* height, width: cells */
} grid;

/* Paints a square whose upper left cell is (y, x). */
static void paint(const att_relevance_job *job, const grid *g, int y, int x)
{
    const att_relevance *r = job->relevance;
    const int side = g->square * g->cell;
    memcpy(r->image, job->image, (size_t)r->height * (size_t)r->width * (size_t)r->channels * sizeof *r->image);
    for (int row = y * g->cell; row < r->height && row < y * g->cell + side; row++) {
        const int first = x * g->cell, end = first + side < r->width ? first + side : r->width;
        memset(r->image + ((ptrdiff_t)row * r->width + first) * r->channels, 0,
               (size_t)(end - first) * (size_t)r->channels * sizeof *r->image);
    }
}

/* The number of squares that cover cell `at` of `count` along one side. */
static int covering(int at, int count, int square)
{
    const int last = count - square, first = at - square + 1 > 0 ? at - square + 1 : 0;
    return (at < last ? at : last) - first + 1;
}

static void add_square(const grid *g, int y, int x, double change, double *map)
{
    for (int row = y; row < y + g->square; row++)
        for (int column = x; column < x + g->square; column++)
            map[row * g->width + column] +=
                change / (covering(row, g->height, g->square) * covering(column, g->width, g->square));
}

static att_status compute(att_relevance_job *job)
{
    const att_relevance *r = job->relevance;
    grid g = {.cell = (int)job->options[CELL], .square = (int)job->options[SQUARE]};
    g.height = (r->height + g.cell - 1) / g.cell;
    g.width = (r->width + g.cell - 1) / g.cell;
    if (g.square > g.height || g.square > g.width)
        return att_fail(r->context, ATT_ERR_ARGUMENT,
                        "occlusion: a square of %d cells is larger than the image, which has %d x %d cells of %d "
                        "pixels; give a smaller cell or square",
                        g.square, g.height, g.width, g.cell);
    double *map = att_relevance_begin_map(job, g.height, g.width), logit;
    memset(map, 0, (size_t)g.height * (size_t)g.width * sizeof *map);
    for (int y = 0; y + g.square <= g.height; y++)
        for (int x = 0; x + g.square <= g.width; x++) {
            paint(job, &g, y, x);
            ATT_TRY(att_relevance_logit(job, r->image, &logit));
            add_square(&g, y, x, job->logit - logit, map);
        }
    return att_relevance_logit(job, job->image, &logit); /* for the explorer's rows */
}

const att_relevance_method att_relevance_occlusion = {
    .info = {.name = "occlusion",
             .title = "Occlusion",
             .summary = "how much the logit falls when a square has the mean colour",
             .source = "Zeiler and Fergus, ECCV 2014",
             .options = options,
             .option_count = sizeof options / sizeof *options,
             .needs_image = true},
    .compute = compute};

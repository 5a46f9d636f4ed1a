#include "networks/tasks/pixels.h"

#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/threads.h"
#include "engine/ops/upsample_bilinear.h"
#include "networks/tasks/answer.h"
#include "networks/tasks/task.h"

/* --- one pixel ---------------------------------------------------------------------------------------------------- */

/* Where a point of the image lies between the places of the map, along one axis. */
static att_upsample_place place_of(double at, int side, int64_t places)
{
    const double last = (double)places - 1, x = fmin(fmax(at * (double)places / side - 0.5, 0), last);
    const int64_t low = (int64_t)x;
    return (att_upsample_place){low, low + 1 < places ? low + 1 : low, x - (double)low};
}

bool att_pixel_logits_find(const att_batch *answers, const char *name, int sample, att_pixel_logits *map)
{
    const void *logits = NULL;
    const att_field *field = att_answer_field(answers, name, &logits);
    if (!field)
        return false;
    const int64_t *size = field->shape.dims;
    *map =
        (att_pixel_logits){(const float *)logits + sample * att_shape_count(field->shape), size[0], size[1], size[2]};
    return true;
}

void att_pixel_logits_at(const att_pixel_logits *map, int width, int height, double x, double y, float *logits)
{
    const att_upsample_place row = place_of(y, height, map->h), column = place_of(x, width, map->w);
    const float *upper = map->values + row.low * map->w * map->classes,
                *lower = map->values + row.high * map->w * map->classes;
    const float *a = upper + column.low * map->classes, *b = upper + column.high * map->classes;
    const float *c = lower + column.low * map->classes, *d = lower + column.high * map->classes;
    const float right = (float)column.share, left = 1 - right, low = (float)row.share, high = 1 - low;
    const float of_a = high * left, of_b = high * right, of_c = low * left, of_d = low * right;
#pragma omp simd
    for (int64_t i = 0; i < map->classes; i++)
        logits[i] = of_a * a[i] + of_b * b[i] + of_c * c[i] + of_d * d[i];
}

uint16_t att_pixel_class(const float *values, int64_t count)
{
    int64_t top = 0;
    float largest = -INFINITY;
    for (int64_t i = 0; i < count; i++)
        if (values[i] > largest) {
            largest = values[i];
            top = i;
        }
    return (uint16_t)top;
}

att_status att_pixel_logits_of(att_context *context, const char *name, const att_batch *answers, att_pixel_logits *map)
{
    const att_task *task;
    ATT_TRY(att_task_choose(context, name, &task));
    if (!task->pixel_logits)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "networks of the task \"%s\" give pixels no class", name);
    return att_pixel_logits_find(answers, task->pixel_logits, 0, map)
               ? ATT_OK
               : att_fail(context, ATT_ERR_MISMATCH, "the network has no head, so it predicts no class for a pixel");
}

/* --- windows ------------------------------------------------------------------------------------------------------ */

att_slide att_slide_over(int side, int length, int stride)
{
    const int beyond = side > length ? side - length : 0;
    return (att_slide){side, length, stride, (beyond + stride - 1) / stride + 1};
}

int att_slide_begin(const att_slide *windows, int window)
{
    const int last = windows->side > windows->length ? windows->side - windows->length : 0;
    const int64_t begin = (int64_t)window * windows->stride;
    return begin < last ? (int)begin : last;
}

/* --- the places that a pixel is made of --------------------------------------------------------------------------- */

/* A place of the logits along one axis, number window * places + place, and its share in a pixel. */
typedef struct part {
    int64_t place;
    double share;
} part;

/* The parts of every pixel of the photograph along one axis: those of pixel i are parts[first[i]..first[i + 1] - 1]. */
typedef struct axis {
    int *first;
    part *parts;
    int count, room;
} axis;

/* Adds a share of a place to those of a pixel, which begin at `first`. */
static bool add_part(att_context *context, axis *to, int first, int64_t place, double share)
{
    for (int i = first; i < to->count; i++)
        if (to->parts[i].place == place) {
            to->parts[i].share += share;
            return true;
        }
    if (!att_list_grow(context, &to->parts, to->count, &to->room, sizeof *to->parts))
        return false;
    to->parts[to->count++] = (part){place, share};
    return true;
}

/* Adds a share of pixel `at` of the resized photograph: the mean of the windows that show it. */
static bool add_pixel(att_context *context, axis *to, int first, const att_slide *windows, int64_t places, int64_t at,
                      double share)
{
    int from = 0, covering = 0;
    while (att_slide_begin(windows, from) + windows->length <= at)
        from++;
    while (from + covering < windows->count && att_slide_begin(windows, from + covering) <= at)
        covering++;
    bool enough = true;
    for (int k = from; enough && k < from + covering; k++) {
        const att_upsample_place in = att_upsample_place_of(at - att_slide_begin(windows, k), places, windows->length);
        enough = add_part(context, to, first, k * places + in.low, share * (1 - in.share) / covering) &&
                 add_part(context, to, first, k * places + in.high, share * in.share / covering);
    }
    return enough;
}

/* Fills the axis for `pixels` pixels of the photograph. On failure the caller frees it, too. */
static bool fill_axis(att_context *context, const att_slide *windows, int64_t places, bool mirrored, int pixels,
                      axis *to)
{
    to->first = att_allocate_array(context, (size_t)pixels + 1, sizeof *to->first);
    bool enough = to->first != NULL;
    for (int i = 0; enough && i < pixels; i++) {
        const att_upsample_place in = att_upsample_place_of(i, windows->side, pixels);
        const int64_t low = mirrored ? windows->side - 1 - in.low : in.low;
        const int64_t high = mirrored ? windows->side - 1 - in.high : in.high;
        enough = add_pixel(context, to, to->first[i], windows, places, low, 1 - in.share) &&
                 (in.share == 0 || add_pixel(context, to, to->first[i], windows, places, high, in.share));
        to->first[i + 1] = to->count;
    }
    return enough;
}

static void free_axis(att_context *context, axis *of)
{
    att_free(context, of->first);
    att_free(context, of->parts);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

typedef struct photograph {
    const att_pass *passes;
    int count;
    int64_t classes;
    axis *down, *across; /* [count] */
    att_mask *mask;
    int threads;
    size_t line_floats, row_floats;
    float *lines; /* [threads][line_floats], a row of the logits of all windows across */
    float *rows;  /* [threads][row_floats], a row of the photograph: sums over the passes for each class */
} photograph;

static void add_scaled(float *restrict to, const float *restrict from, float share, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        to[i] += share * from[i];
}

/* Makes the row of logits of row y of the photograph, [across.count][w][classes]. */
static void make_line(const att_pass *pass, int64_t classes, const part *parts, int count, float *line)
{
    const int64_t row = pass->w * classes, window = pass->h * row;
    memset(line, 0, (size_t)(pass->across.count * row) * sizeof *line);
    for (int t = 0; t < count; t++) {
        const float *from =
            pass->logits + parts[t].place / pass->h * pass->across.count * window + parts[t].place % pass->h * row;
        for (int k = 0; k < pass->across.count; k++)
            add_scaled(line + k * row, from + k * window, (float)parts[t].share, row);
    }
}

/* Replaces logits by their softmax. */
static void soften(float *values, int64_t count)
{
    float most = values[0], sum = 0;
    for (int64_t i = 1; i < count; i++)
        most = values[i] > most ? values[i] : most;
    for (int64_t i = 0; i < count; i++) {
        values[i] = expf(values[i] - most);
        sum += values[i];
    }
    for (int64_t i = 0; i < count; i++)
        values[i] /= sum;
}

/* Adds the pass to a row of the photograph. values: space for the classes of a pixel. */
static void add_pass(const photograph *of, int pass, const float *line, float *row, float *values)
{
    const axis *across = &of->across[pass];
    const int64_t classes = of->classes;
    for (int x = 0; x < of->mask->width; x++) {
        memset(values, 0, (size_t)classes * sizeof *values);
        for (int t = across->first[x]; t < across->first[x + 1]; t++)
            add_scaled(values, line + across->parts[t].place * classes, (float)across->parts[t].share, classes);
        if (of->count > 1)
            soften(values, classes);
        add_scaled(row + x * classes, values, 1, classes);
    }
}

static void classify_row(const photograph *of, int y, float *line, float *row)
{
    float *values = row + of->mask->width * of->classes;
    uint16_t *classes = of->mask->classes + (size_t)y * (size_t)of->mask->width;
    memset(row, 0, of->row_floats * sizeof *row);
    for (int p = 0; p < of->count; p++) {
        const axis *down = &of->down[p];
        make_line(&of->passes[p], of->classes, down->parts + down->first[y], down->first[y + 1] - down->first[y], line);
        add_pass(of, p, line, row, values);
    }
    for (int x = 0; x < of->mask->width; x++)
        classes[x] = att_pixel_class(row + x * of->classes, of->classes);
}

/* As att_work_fn. */
static void classify_rows(void *user, int thread)
{
    const photograph *of = user;
    for (int y = thread; y < of->mask->height; y += of->threads)
        classify_row(of, y, of->lines + (size_t)thread * of->line_floats, of->rows + (size_t)thread * of->row_floats);
}

/* Returns whether there is enough memory. */
static bool prepare(att_context *context, photograph *of)
{
    const size_t threads = (size_t)of->threads;
    of->down = att_allocate_array(context, (size_t)of->count, sizeof *of->down);
    of->across = att_allocate_array(context, (size_t)of->count, sizeof *of->across);
    bool enough = of->down && of->across;
    for (int p = 0; enough && p < of->count; p++) {
        const att_pass *pass = &of->passes[p];
        const size_t floats = (size_t)(pass->across.count * pass->w * of->classes);
        of->line_floats = floats > of->line_floats ? floats : of->line_floats;
        enough = fill_axis(context, &pass->down, pass->h, false, of->mask->height, &of->down[p]) &&
                 fill_axis(context, &pass->across, pass->w, pass->mirrored, of->mask->width, &of->across[p]);
    }
    of->row_floats = ((size_t)of->mask->width + 1) * (size_t)of->classes;
    of->lines = enough ? att_allocate_array(context, threads, of->line_floats * sizeof *of->lines) : NULL;
    of->rows = enough ? att_allocate_array(context, threads, of->row_floats * sizeof *of->rows) : NULL;
    return of->lines && of->rows;
}

att_status att_pixels_classify(att_context *context, const att_pass *passes, int count, int64_t classes, att_mask *mask)
{
    photograph of = {
        .passes = passes, .count = count, .classes = classes, .mask = mask, .threads = att_context_threads(context)};
    const bool enough = prepare(context, &of);
    if (enough)
        att_threads_run(context, of.threads, classify_rows, &of);
    for (int p = 0; of.down && of.across && p < count; p++) {
        free_axis(context, &of.down[p]);
        free_axis(context, &of.across[p]);
    }
    att_free(context, of.down);
    att_free(context, of.across);
    att_free(context, of.lines);
    att_free(context, of.rows);
    return enough ? ATT_OK
                  : att_fail_memory(context, of.row_floats * sizeof *of.rows, "the classes of a photograph's pixels");
}

#include "study/train/passes.h"

#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/threads.h"
#include "data/transform.h"
#include "networks/tasks/pixels.h"
#include "study/train/inference.h"

/* --- options ------------------------------------------------------------------------------------------------------ */

bool att_passes_are_on(const att_pass_options *options)
{
    return options->longer > 0 || options->stride[0] > 0 || options->scale_count > 0 || options->flips;
}

static int scale_count(const att_pass_options *options)
{
    return options->scale_count > 0 ? options->scale_count : 1;
}

/* A side that is too large stays so, and is refused. */
static int scaled(int side, double factor)
{
    return (int)fmin(side * factor, INT32_MAX);
}

/* The transform of a scale, of which the sides to resize to matter. */
static att_transform_options transform_at(const att_passes *passes, int scale)
{
    const att_pass_options *options = &passes->options;
    const double factor = options->scale_count > 0 ? options->scales[scale] : 1;
    att_transform_options at = passes->transform;
    const int height = at.height, width = at.width;
    at.crop = ATT_CROP_KEEP;
    at.longer = scaled(options->longer > 0 ? options->longer : height > width ? height : width, factor);
    at.shorter = scaled(options->longer > 0 ? options->shorter : height > width ? width : height, factor);
    return at;
}

static att_status check_stride(att_context *context, const att_passes *passes)
{
    const int sides[] = {passes->transform.height, passes->transform.width}, *stride = passes->options.stride;
    for (int axis = 0; axis < 2; axis++)
        if ((stride[axis] != 0 || stride[!axis] != 0) && (stride[axis] < 1 || stride[axis] > sides[axis]))
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "a stride of %d x %d pixels between windows of %d x %d: expected 1 to the side of a window "
                            "(the network's images), so that the windows leave no pixel out",
                            stride[0], stride[1], sides[0], sides[1]);
    return ATT_OK;
}

att_status att_passes_check(att_context *context, const att_passes *passes)
{
    const att_pass_options *options = &passes->options;
    if (!passes->task->observe_pixels)
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "the task \"%s\" sees each image once: --stride, --scales, --flips and --img-scale are for "
                        "networks that give each pixel a class",
                        passes->task->info.name);
    if (options->scale_count < 0 || options->scale_count > ATT_MOST_SCALES)
        return att_fail(context, ATT_ERR_ARGUMENT, "%d scales of a photograph, expected at most %d",
                        options->scale_count, ATT_MOST_SCALES);
    if (options->batch_size < 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "runs of %d windows of a photograph, expected at least 1",
                        options->batch_size);
    ATT_TRY(check_stride(context, passes));
    for (int i = 0; i < scale_count(options); i++) {
        if (options->scale_count > 0 && !(options->scales[i] > 0 && options->scales[i] <= 100))
            return att_fail(context, ATT_ERR_ARGUMENT, "a photograph at the scale %g, expected a number in (0, 100]",
                            options->scales[i]);
        const att_transform_options transform = transform_at(passes, i);
        if (att_transform_check(context, &transform) != ATT_OK)
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "photographs of at most %d x %d pixels (--img-scale, the longer side first, times a factor "
                            "of --scales): %s",
                            transform.longer, transform.shorter, att_context_message(context));
    }
    return ATT_OK;
}

/* --- a photograph ------------------------------------------------------------------------------------------------- */

typedef struct photograph {
    att_context *context;
    const att_passes *of;
    const att_image *image;
    att_pass passes[2 * ATT_MOST_SCALES];
    float *logits[2 * ATT_MOST_SCALES]; /* of the passes */
    int count;
    int64_t classes;
    bool finite;
    /* The windows that are made for a run: */
    const att_pass *pass;
    int first, windows, threads;
    float *pixels;
    atomic_int status;
} photograph;

/* Windows along an axis. own: the side of the network's images. */
static att_slide lay_windows(int side, int own, int stride, int divisor)
{
    const int filled = stride > 0 && own % divisor != 0 ? own : (side + divisor - 1) / divisor * divisor;
    const int length = stride > 0 && filled > own ? own : filled;
    return att_slide_over(side, length, stride > 0 ? stride : length);
}

/* Lays out the passes of all scales. */
static att_status lay_out(photograph *p)
{
    const att_pass_options *options = &p->of->options;
    for (int s = 0; s < scale_count(options); s++) {
        const att_transform_options at = transform_at(p->of, s);
        att_transform_window fitted;
        ATT_TRY(att_transform_fit(p->context, &at, p->image->width, p->image->height, &fitted));
        for (int flip = 0; flip <= options->flips; flip++)
            p->passes[p->count++] =
                (att_pass){.down = lay_windows(fitted.height, at.height, options->stride[0], at.divisor),
                           .across = lay_windows(fitted.width, at.width, options->stride[1], at.divisor),
                           .mirrored = flip};
    }
    return ATT_OK;
}

static size_t window_floats(const photograph *p)
{
    return (size_t)p->pass->down.length * (size_t)p->pass->across.length * (size_t)p->of->transform.channels;
}

/* As att_work_fn. */
static void make_windows(void *user, int thread)
{
    photograph *p = user;
    const att_pass *pass = p->pass;
    for (int i = thread; i < p->windows; i += p->threads) {
        const int number = p->first + i, across = number % pass->across.count, down = number / pass->across.count;
        const att_transform_window window = {.height = pass->down.side,
                                             .width = pass->across.side,
                                             .mirrored = pass->mirrored,
                                             .box = {att_slide_begin(&pass->across, across),
                                                     att_slide_begin(&pass->down, down), pass->across.length,
                                                     pass->down.length}};
        att_status status = att_transform_window_image(p->context, &p->of->transform, p->image, &window,
                                                       p->pixels + (size_t)i * window_floats(p));
        if (status != ATT_OK)
            atomic_store(&p->status, (int)status);
    }
}

/* Keeps the logits of the windows that were run. */
static att_status keep_logits(photograph *p, int number, const att_batch *answers)
{
    att_pass *pass = &p->passes[number];
    const char *name = p->of->task->pixel_logits;
    att_pixel_logits map;
    if (!att_pixel_logits_find(answers, name, 0, &map))
        return att_fail(p->context, ATT_ERR_MISMATCH,
                        "the network does not compute the output \"%s\", which passes over a photograph need", name);
    const size_t each = (size_t)(map.h * map.w * map.classes), all = (size_t)(pass->down.count * pass->across.count);
    float **kept = &p->logits[number];
    if (!*kept)
        ATT_TRY(att_new(p->context, kept, att_size_product(all, each), "the logits of a photograph's windows"));
    memcpy(*kept + (size_t)p->first * each, map.values, (size_t)p->windows * each * sizeof **kept);
    pass->logits = *kept;
    pass->h = map.h;
    pass->w = map.w;
    p->classes = map.classes;
    for (int i = 0; i < p->windows; i++)
        p->finite = p->finite && att_inference_is_finite(answers, i);
    return ATT_OK;
}

/* Runs the windows that are the next ones of pass `number`. */
static att_status run_windows(photograph *p, int number)
{
    att_field field = p->of->image;
    att_batch answers;
    const void *const data[] = {p->pixels};
    field.shape.dims[0] = p->pass->down.length;
    field.shape.dims[1] = p->pass->across.length;
    atomic_store(&p->status, ATT_OK);
    att_threads_run(p->context, p->threads, make_windows, p);
    ATT_TRY((att_status)atomic_load(&p->status));
    ATT_TRY(p->of->run(p->of->user, &(att_batch){.count = p->windows, .field_count = 1, .fields = &field, .data = data},
                       &answers));
    return keep_logits(p, number, &answers);
}

static att_status run_pass(photograph *p, int number)
{
    const att_pass *pass = &p->passes[number];
    const int all = pass->down.count * pass->across.count;
    const int most = all < p->of->most_windows ? all : p->of->most_windows;
    p->pass = pass;
    ATT_TRY(
        att_new(p->context, &p->pixels, att_size_product((size_t)most, window_floats(p)), "a photograph's windows"));
    att_status status = ATT_OK;
    for (p->first = 0; status == ATT_OK && p->first < all; p->first += most) {
        p->windows = all - p->first < most ? all - p->first : most;
        status = run_windows(p, number);
    }
    att_free(p->context, p->pixels);
    return status;
}

static att_status classify(photograph *p, att_mask *classes)
{
    att_mask made = {.width = p->image->width, .height = p->image->height};
    ATT_TRY(lay_out(p));
    for (int i = 0; i < p->count; i++)
        ATT_TRY(run_pass(p, i));
    ATT_TRY(
        att_new(p->context, &made.classes, (size_t)made.width * (size_t)made.height, "the classes of a photograph"));
    att_status status = att_pixels_classify(p->context, p->passes, p->count, p->classes, &made);
    if (status == ATT_OK)
        *classes = made;
    else
        att_mask_free(p->context, &made);
    return status;
}

att_status att_passes_classify(att_context *context, const att_passes *passes, const att_image *image,
                               att_mask *classes, bool *finite)
{
    photograph p = {
        .context = context, .of = passes, .image = image, .finite = true, .threads = att_context_threads(context)};
    att_status status = classify(&p, classes);
    for (int i = 0; i < p.count; i++)
        att_free(context, p.logits[i]);
    *finite = p.finite;
    return status;
}

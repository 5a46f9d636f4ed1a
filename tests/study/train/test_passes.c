/* Passes over photographs: the classes of an independent implementation in PyTorch (tools/goldens/passes.py), whatever
 * the number of threads and the windows of a run. */
#include "study/train/passes.h"

#include "failing.h"
#include "golden_path.h"
#include "networks/tasks/list.h"
#include "networks/tasks/pixels.h"
#include "test.h"

enum { CLASSES = 5, CHANNELS = 3, MOST_SIDE = 40, MOST_PLACES = 4096, PATCH = 4 };

/* The photograph of passes.py. */
static void draw_photograph(int height, int width, uint8_t *pixels)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < CHANNELS; c++)
                *pixels++ = (uint8_t)(y * 37 + x * 91 + c * 53 + (y * x * 7 + c) % 61 * 3);
}

typedef struct network {
    int runs, windows;
    bool nan; /* the logits of the first run hold a NaN */
    const char *output;
    att_field field;
    float logits[MOST_PLACES * CLASSES];
    const void *data[1];
} network;

/* The network of passes.py. */
static void answer(const float *image, int64_t h, int64_t w, float *logits)
{
    for (int64_t i = 0; i < h; i++)
        for (int64_t j = 0; j < w; j++)
            for (int c = 0; c < CLASSES; c++) {
                float sum = 0;
                for (int64_t p = 0; p < PATCH * PATCH; p++)
                    sum +=
                        image[((i * PATCH + p / PATCH) * w * PATCH + j * PATCH + p % PATCH) * CHANNELS + c % CHANNELS];
                *logits++ = 2 * cosf(1.3F * (float)c + 9 * sum / (PATCH * PATCH)) +
                            2 * sinf(1.7F * (float)i + 2.3F * (float)j + 2 * (float)c);
            }
}

static att_status run(void *user, const att_batch *images, att_batch *answers)
{
    network *own = user;
    const att_shape shape = images->fields[0].shape;
    const int64_t h = shape.dims[0] / PATCH, w = shape.dims[1] / PATCH, each = h * w * CLASSES;
    assert_string_equal(images->fields[0].name, "picture");
    assert_true(shape.dims[0] % PATCH == 0 && shape.dims[1] % PATCH == 0 && shape.dims[2] == CHANNELS);
    assert_true(images->count * each <= (int64_t)(sizeof own->logits / sizeof *own->logits));
    for (int i = 0; i < images->count; i++)
        answer((const float *)images->data[0] + i * att_shape_count(shape), h, w, own->logits + i * each);
    if (own->nan && own->runs == 0)
        own->logits[images->count * each - 1] = NAN;
    own->runs++;
    own->windows += images->count;
    own->field = (att_field){.name = own->output, .dtype = ATT_F32, .shape = att_shape_of(h, w, CLASSES)};
    own->data[0] = own->logits;
    *answers = (att_batch){.count = images->count, .field_count = 1, .fields = &own->field, .data = own->data};
    return ATT_OK;
}

static att_passes passes_of(network *own, int window_height, int window_width)
{
    *own = (network){.output = "pixel_logits"};
    att_passes passes = {.task = &att_task_segmentation,
                         .transform = att_transform_options_defaults(window_height, window_width, CHANNELS),
                         .image = {"picture", ATT_F32, att_shape_of(window_height, window_width, CHANNELS)},
                         .most_windows = 3,
                         .run = run,
                         .user = own};
    passes.transform.interpolation = ATT_BILINEAR;
    passes.transform.divisor = PATCH;
    return passes;
}

static att_context *context_of(int threads)
{
    att_context *context;
    att_settings settings = att_settings_defaults();
    settings.threads = threads;
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    return context;
}

/* --- goldens ------------------------------------------------------------------------------------------------------ */

typedef struct golden {
    int height, width, window[2];
    att_pass_options options;
    uint16_t classes[MOST_SIDE * MOST_SIDE];
} golden;

static int read_int(FILE *file)
{
    int value;
    assert_int_equal(fscanf(file, "%d", &value), 1);
    return value;
}

/* Returns false at the end of the file. */
static bool read_golden(FILE *file, golden *it)
{
    *it = (golden){.height = 0};
    if (fscanf(file, "%d", &it->height) != 1)
        return false;
    it->width = read_int(file);
    it->window[0] = read_int(file);
    it->window[1] = read_int(file);
    it->options.longer = read_int(file);
    it->options.shorter = read_int(file);
    it->options.stride[0] = read_int(file);
    it->options.stride[1] = read_int(file);
    it->options.flips = read_int(file);
    it->options.scale_count = read_int(file);
    for (int i = 0; i < it->options.scale_count; i++)
        assert_int_equal(fscanf(file, "%lf", &it->options.scales[i]), 1);
    for (int i = 0; i < it->height * it->width; i++)
        it->classes[i] = (uint16_t)read_int(file);
    return true;
}

static att_status classify(att_context *context, const att_passes *passes, int height, int width, att_mask *classes,
                           bool *finite)
{
    static uint8_t pixels[MOST_SIDE * MOST_SIDE * CHANNELS];
    const att_image image = {width, height, CHANNELS, pixels};
    draw_photograph(height, width, pixels);
    return att_passes_classify(context, passes, &image, classes, finite);
}

TEST(classes_are_those_of_pytorch)
{
    static network own;
    static golden it;
    char path[512];
    int cases = 0;
    golden_path("passes.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (; read_golden(file, &it); cases++)
        for (int threads = 1; threads <= 3; threads += 2) {
            att_context *context = context_of(threads);
            att_passes passes = passes_of(&own, it.window[0], it.window[1]);
            att_mask found;
            bool finite;
            passes.options = it.options;
            passes.most_windows = threads;
            CHECK(context, att_passes_check(context, &passes));
            CHECK(context, classify(context, &passes, it.height, it.width, &found, &finite));
            assert_true(finite && found.width == it.width && found.height == it.height);
            for (int i = 0; i < it.height * it.width; i++)
                if (found.classes[i] != it.classes[i])
                    fail_msg("case %d, pixel %d, %d: class %d, expected %d", cases, i / it.width, i % it.width,
                             found.classes[i], it.classes[i]);
            att_mask_free(context, &found);
            att_context_destroy(&context);
        }
    fclose(file);
    assert_int_equal(cases, 7);
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

TEST(windows_cover_a_side)
{
    for (int side = 1; side < 40; side++)
        for (int length = 1; length < 20; length++)
            for (int stride = 1; stride <= length; stride++) {
                const att_slide windows = att_slide_over(side, length, stride);
                int end = 0;
                assert_int_equal(att_slide_begin(&windows, 0), 0);
                for (int k = 0; k < windows.count; k++) {
                    const int begin = att_slide_begin(&windows, k);
                    assert_true(begin <= end && begin + length > end);
                    end = begin + length;
                }
                assert_true(side <= length ? windows.count == 1 : end == side);
            }
}

/* Two passes over a photograph of one pixel. */
static int class_of_pixel(const float *first, const float *second)
{
    att_context *context = context_of(1);
    const att_slide whole = att_slide_over(1, 1, 1);
    const att_pass passes[] = {{.down = whole, .across = whole, .h = 1, .w = 1, .logits = first},
                               {.down = whole, .across = whole, .h = 1, .w = 1, .logits = second}};
    uint16_t found;
    att_mask mask = {.width = 1, .height = 1, .classes = &found};
    CHECK(context, att_pixels_classify(context, passes, 2, CLASSES, &mask));
    att_context_destroy(&context);
    return found;
}

TEST(passes_are_averaged_as_probabilities)
{
    static const float sure[CLASSES] = {0, 0, 1000, 999}, other[CLASSES] = {0, 0, -1000, 0, 1};
    static const float equal[CLASSES] = {0, 7, 0, 7};
    assert_int_equal(class_of_pixel(sure, sure), 2);   /* e^1000 is infinite */
    assert_int_equal(class_of_pixel(sure, other), 2);  /* the largest sum of logits is that of class 3 */
    assert_int_equal(class_of_pixel(equal, equal), 1); /* of equal ones the lowest class */
}

TEST(a_window_is_run_once)
{
    static network own;
    att_context *context = context_of(1);
    att_passes passes = passes_of(&own, 16, 16);
    att_mask found;
    bool finite;
    passes.options = (att_pass_options){.longer = 36, .shorter = 20, .stride = {10, 10}, .flips = true};
    own.nan = true;
    CHECK(context, classify(context, &passes, 20, 36, &found, &finite));
    assert_int_equal(own.windows, 2 * 2 * 3);
    assert_int_equal(own.runs, 2 * 2);
    assert_false(finite);
    att_mask_free(context, &found);
    att_passes odd = passes_of(&own, 12, 12); /* a network that need not take sides that are multiples of 8 */
    odd.transform.divisor = 8;
    odd.options = (att_pass_options){.longer = 7, .shorter = 5, .stride = {10, 10}};
    CHECK(context, classify(context, &odd, 5, 7, &found, &finite));
    assert_true(att_shape_equal(own.field.shape, att_shape_of(3, 3, CLASSES)));
    att_mask_free(context, &found);
    own.output = "other";
    assert_fails(context, classify(context, &passes, 20, 36, &found, &finite), ATT_ERR_MISMATCH,
                 "does not compute the output \"pixel_logits\"");
    passes.options = (att_pass_options){.longer = 16, .shorter = 1, .flips = true};
    assert_fails(context, classify(context, &passes, 1, 40, &found, &finite), ATT_ERR_UNSUPPORTED, "too narrow");
    att_context_destroy(&context);
}

/* The longer side of a photograph is that of the network's images, upright or not. */
TEST(without_img_scale_the_sides_of_the_network_count)
{
    static network own;
    att_context *context = context_of(1);
    for (int upright = 0; upright < 2; upright++) {
        att_passes passes = passes_of(&own, upright ? 24 : 16, upright ? 16 : 24);
        att_mask found;
        bool finite;
        passes.options.flips = true;
        CHECK(context, att_passes_check(context, &passes));
        CHECK(context, classify(context, &passes, 30, 20, &found, &finite));
        assert_true(att_shape_equal(own.field.shape, att_shape_of(24 / PATCH, 16 / PATCH, CLASSES)));
        att_mask_free(context, &found);
    }
    att_context_destroy(&context);
}

static void is_refused(att_context *context, att_pass_options options, const char *part)
{
    static network own;
    att_passes passes = passes_of(&own, 16, 24);
    passes.options = options;
    assert_fails(context, att_passes_check(context, &passes), ATT_ERR_ARGUMENT, part);
}

TEST(impossible_passes_are_refused)
{
    static network own;
    att_context *context = context_of(1);
    is_refused(context, (att_pass_options){.stride = {17, 17}},
               "a stride of 17 x 17 pixels between windows of 16 x 24: expected 1 to the side of a window");
    is_refused(context, (att_pass_options){.stride = {16, 25}}, "a stride of 16 x 25");
    is_refused(context, (att_pass_options){.stride = {0, 5}}, "a stride of 0 x 5");
    is_refused(
        context, (att_pass_options){.longer = 10, .shorter = 20},
        "photographs of at most 10 x 20 pixels (--img-scale, the longer side first, times a factor of --scales): "
        "transform: shorter must lie in 1..longer");
    is_refused(context, (att_pass_options){.longer = INT32_MAX, .shorter = 1, .scale_count = 1, .scales = {100}},
               "photographs of at most 2147483647 x 100 pixels");
    is_refused(context, (att_pass_options){.scale_count = 2, .scales = {1, 0}}, "at the scale 0");
    is_refused(context, (att_pass_options){.scale_count = 1, .scales = {NAN}}, "at the scale nan");
    is_refused(context, (att_pass_options){.scale_count = 1, .scales = {0.01}}, "shorter must lie in 1..longer");
    is_refused(context, (att_pass_options){.scale_count = 9}, "9 scales of a photograph, expected at most 8");
    att_passes passes = passes_of(&own, 16, 16);
    passes.task = &att_task_classification;
    passes.options.flips = true;
    assert_fails(context, att_passes_check(context, &passes), ATT_ERR_UNSUPPORTED,
                 "the task \"classification\" sees each image once");
    att_context_destroy(&context);
}

TEST(failing_allocations_are_survived)
{
    static network own;
    failing memory = {.left = -1};
    att_context *context;
    const att_settings settings = failing_settings(&memory);
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    att_passes passes = passes_of(&own, 16, 16);
    passes.options = (att_pass_options){.longer = 30, .shorter = 20, .stride = {10, 10}, .flips = true};
    lack of = lack_of_memory(context, &memory);
    while (lack_again(&of)) {
        att_mask found = {.width = 0};
        bool finite;
        of.status = classify(context, &passes, 12, 17, &found, &finite);
        att_mask_free(context, &found);
    }
    att_context_destroy(&context);
}

/* Targets that are not classes: points in an image, a variable number of them, which follow the pixels through crops
 * and flips and are mixed with the images. The loader knows them only by their target rules. */
#include "base/core/memory.h"
#include "data/augment.h"
#include "data/loading.h"
#include "data/pictures.h"

enum { WIDE = 96, TALL = 64, IMAGES = 24, MOST = 3, ROOM = 2 * MOST, BRIGHT = 160, REACH = 2 };

/* --- images: a black background with a bright square of 5 x 5 pixels around each point ---------------------------- */

static int points_of(int64_t image)
{
    return (int)(image % (MOST + 1));
}

/* The pixel at the centre of a square. No two images have a square at the same place; squares of one image lie 32
 * pixels apart. */
static void place_of(int64_t image, int point, int *x, int *y)
{
    *x = 8 * (int)(4 * point + image % 4) + 3;
    *y = 8 * (int)((image / 4 + point) % 8) + 3;
}

static void paint_point(uint8_t *pixels, int x, int y)
{
    for (int dy = -REACH; dy <= REACH; dy++)
        memset(pixels + (y + dy) * WIDE + x - REACH, BRIGHT, 2 * REACH + 1);
}

static void write_images(const scratch *self)
{
    static const uint8_t images_header[16] = {0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, TALL, 0, 0, 0, WIDE};
    static const uint8_t labels[8 + IMAGES] = {0, 0, 8, 1, 0, 0, 0, IMAGES};
    static uint8_t pixels[IMAGES][TALL * WIDE];
    memset(pixels, 0, sizeof pixels);
    for (int i = 0; i < IMAGES; i++)
        for (int p = 0; p < points_of(i); p++) {
            int x, y;
            place_of(i, p, &x, &y);
            paint_point(pixels[i], x, y);
        }
    char path[512];
    snprintf(path, sizeof path, "%s/train-images-idx3-ubyte", self->folder);
    FILE *file = fopen(path, "wb");
    assert_true(file && fwrite(images_header, 16, 1, file) == 1 && fwrite(pixels, sizeof pixels, 1, file) == 1);
    assert_int_equal(fclose(file), 0);
    snprintf(path, sizeof path, "%s/train-labels-idx1-ubyte", self->folder);
    file = fopen(path, "wb");
    assert_true(file && fwrite(labels, sizeof labels, 1, file) == 1);
    assert_int_equal(fclose(file), 0);
}

/* --- the task ------------------------------------------------------------------------------------------------------
 */

typedef struct points {
    float (*at)[2];
    float *weight;
    int32_t *count;
} points;

enum { AT, WEIGHT, COUNT, FIELDS };
static const att_field fields[FIELDS] = {
    {"points", ATT_F32, {2, {ROOM, 2}}}, {"weights", ATT_F32, {1, {ROOM}}}, {"count", ATT_I32, {0}}};

static points points_in(void *const *rows)
{
    return (points){rows[AT], rows[WEIGHT], rows[COUNT]};
}

static void add_point(points *to, float x, float y, float weight)
{
    assert_true(*to->count < ROOM);
    to->at[*to->count][0] = x;
    to->at[*to->count][1] = y;
    to->weight[(*to->count)++] = weight;
}

static void clear_points(points *it)
{
    memset(it->at, 0, ROOM * sizeof *it->at);
    memset(it->weight, 0, ROOM * sizeof *it->weight);
    *it->count = 0;
}

static att_status fill(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                       const att_geometry *geometry, void *const *rows)
{
    (void)user, (void)context, (void)dataset;
    points made = points_in(rows);
    clear_points(&made);
    assert_int_equal(geometry->from_width, WIDE);
    assert_int_equal(geometry->from_height, TALL);
    for (int p = 0; p < points_of(index); p++) {
        int pixel_x, pixel_y;
        place_of(index, p, &pixel_x, &pixel_y);
        double x = pixel_x + 0.5, y = pixel_y + 0.5;
        att_geometry_move(geometry, &x, &y);
        if (x >= 0 && x < geometry->width && y >= 0 && y < geometry->height)
            add_point(&made, (float)x, (float)y, 1);
    }
    return ATT_OK;
}

static bool in_box(const att_mixing *mixing, const float at[2])
{
    return (int)at[0] >= mixing->left && (int)at[0] < mixing->right && (int)at[1] >= mixing->top &&
           (int)at[1] < mixing->bottom;
}

/* The weight of a point after mixing: all or nothing if a box was cut out. */
static float weight_of(const att_mixing *mixing, const float at[2], bool own)
{
    if (mixing->cuts)
        return in_box(mixing, at) != own ? 1.0f : 0.0f;
    return (float)(own ? mixing->lambda : 1 - mixing->lambda);
}

static void take_points(const points *from, const att_mixing *mixing, bool own, points *to)
{
    for (int p = 0; p < *from->count; p++) {
        float weight = weight_of(mixing, from->at[p], own);
        if (weight > 0)
            add_point(to, from->at[p][0], from->at[p][1], weight);
    }
}

static void mix(const void *user, void *const *own, const void *const *other, const att_mixing *mixing)
{
    (void)user;
    float at[ROOM][2], weight[ROOM];
    int32_t count;
    points made = {at, weight, &count}, mine = points_in(own);
    const points others = points_in((void *const *)other);
    if (mixing->with_itself)
        return;
    clear_points(&made);
    take_points(&mine, mixing, true, &made);
    take_points(&others, mixing, false, &made);
    memcpy(mine.at, at, sizeof at);
    memcpy(mine.weight, weight, sizeof weight);
    *mine.count = count;
}

static att_target_rules rules(void)
{
    return (att_target_rules){.fields = fields, .count = FIELDS, .fill = fill, .mix = mix};
}

/* --- the loader ----------------------------------------------------------------------------------------------------
 */

static att_dataset *open_images(scratch *self)
{
    att_dataset *dataset = NULL;
    write_images(self);
    assert_int_equal(att_dataset_open(self->context, self->folder, NULL, &dataset), ATT_OK);
    return dataset;
}

/* Pixels keep their values; pixels from outside the image are black, as the background. */
static att_loader_options options_of(int height, int width)
{
    att_loader_options options = att_loader_options_defaults(height, width, 1);
    options.transform.mean[0] = 0;
    options.transform.std[0] = 1.0f / 255;
    options.image = "pixels";
    options.targets = rules();
    options.workers = 0;
    return options;
}

static points points_at(const att_batch *batch, int sample)
{
    return (points){(float(*)[2])(uintptr_t)att_batch_field(batch, "points") + sample * ROOM,
                    (float *)(uintptr_t)att_batch_field(batch, "weights") + sample * ROOM,
                    (int32_t *)(uintptr_t)att_batch_field(batch, "count") + sample};
}

static void assert_padded(const points *it)
{
    assert_true(*it->count >= 0 && *it->count <= ROOM);
    for (int p = *it->count; p < ROOM; p++)
        assert_true(it->at[p][0] == 0 && it->at[p][1] == 0 && it->weight[p] == 0);
}

/* --- finding the squares ------------------------------------------------------------------------------------------ */

enum { SIDE = 48, WINDOW = 5, MARGIN = 7 };

/* Computes the distance of each pixel from the background, the most frequent value, relative to the largest distance.
 * Returns false if no pixel differs (Posterize and Solarize may hide a square). */
static bool stand_out(const float *image, float *shares)
{
    int histogram[256] = {0}, ground = 0;
    float most = 0;
    for (int i = 0; i < SIDE * SIDE; i++)
        histogram[lrintf(image[i])]++;
    for (int v = 0; v < 256; v++)
        ground = histogram[v] > histogram[ground] ? v : ground;
    for (int i = 0; i < SIDE * SIDE; i++) {
        shares[i] = fabsf(image[i] - (float)ground);
        most = fmaxf(most, shares[i]);
    }
    for (int i = 0; i < SIDE * SIDE && most > 0; i++)
        shares[i] /= most;
    return most >= 10;
}

static bool is_inner(double x, double y, int margin)
{
    return x >= margin && x < SIDE - margin && y >= margin && y < SIDE - margin;
}

/* Returns the distance from a point to the centre of the bright pixels around it, and removes these from the image; NaN
 * if there are none. */
static double take_square(float *shares, double x, double y)
{
    double sum = 0, sum_x = 0, sum_y = 0;
    for (int v = (int)y - WINDOW; v <= (int)y + WINDOW; v++)
        for (int u = (int)x - WINDOW; u <= (int)x + WINDOW; u++) {
            if (u < 0 || u >= SIDE || v < 0 || v >= SIDE)
                continue;
            double share = (double)shares[v * SIDE + u];
            sum += share, sum_x += share * (u + 0.5), sum_y += share * (v + 0.5);
            shares[v * SIDE + u] = 0;
        }
    return sum > 1 ? hypot(sum_x / sum - x, sum_y / sum - y) : (double)NAN;
}

typedef struct found {
    int squares, pictures;
    double worst, tolerance;
} found;

static void compare(const float *image, const points *said, found *all)
{
    static float shares[SIDE * SIDE];
    assert_padded(said);
    if (*said->count == 0 || !stand_out(image, shares))
        return;
    all->pictures++;
    for (int p = 0; p < *said->count; p++) {
        double x = (double)said->at[p][0], y = (double)said->at[p][1];
        bool inner = is_inner(x, y, MARGIN); /* the border cuts off the other squares */
        double error = take_square(shares, x, y);
        if (inner && !(error <= all->tolerance))
            fail_msg("a point at %g, %g is %g pixels off its square", x, y, error);
        all->squares += inner;
        all->worst = inner ? fmax(all->worst, error) : all->worst;
    }
    for (int i = 0; i < SIDE * SIDE; i++)
        if (shares[i] > 0.5f && is_inner(i % SIDE, i / SIDE, MARGIN))
            fail_msg("a square at %d, %d has no point", i % SIDE, i / SIDE);
}

static void look_through(scratch *self, const att_dataset *dataset, const att_loader_options *options, int epochs,
                         found *all)
{
    att_loader *loader = make_loader(self, dataset, options);
    for (int epoch = 0; epoch < epochs; epoch++) {
        att_batch batch = {.count = 1};
        assert_int_equal(att_loader_start(loader, epoch, 0), ATT_OK);
        while (batch.count > 0) {
            assert_int_equal(att_loader_next(loader, &batch), ATT_OK);
            for (int i = 0; i < batch.count; i++) {
                points said = points_at(&batch, i);
                const float *images = att_batch_field(&batch, "pixels");
                compare(images + (ptrdiff_t)i * SIDE * SIDE, &said, all);
            }
        }
    }
    att_loader_destroy(&loader);
}

SCRATCH_TEST(points_follow_crops_sizes_flips_and_rand_augment)
{
    att_dataset *dataset = open_images(self);
    for (att_crop crop = ATT_CROP_CENTER; crop <= ATT_CROP_SIMPLE; crop++) {
        /* measured: 0.05; with RandAugment 1.0, because changes of brightness move the centre of a blurred square */
        found exact = {.tolerance = 0.1}, all = {.tolerance = 1.25};
        att_loader_options options = options_of(SIDE, SIDE);
        options.transform.crop = crop;
        options.transform.crop_pct = 0.9;
        options.transform.scale[0] = 0.5;
        options.transform.pad = crop == ATT_CROP_SIMPLE ? 0 : 6; /* reflected squares are not where their points are */
        options.transform.flip = options.transform.vertical_flip = 0.5;
        options.transform.interpolation = ATT_RANDOM_INTERPOLATION;
        look_through(self, dataset, &options, 4, &exact);
        options.transform.rand_augment = (att_rand_augment){1, 5, 2, 10, 1, true};
        look_through(self, dataset, &options, 6, &all);
        print_message("crop %d: %d squares at most %.3f pixels off, %d with RandAugment %.2f\n", (int)crop,
                      exact.squares, exact.worst, all.squares, all.worst);
        assert_true(exact.squares > 30 && all.squares > 50);
    }
    att_dataset_close(&dataset);
}

/* One operation after another: each operation of RandAugment that moves pixels. */
TEST(operations_that_move_pixels_add_up)
{
    static const int moving[] = {3, 11, 12, 13, 14};
    static uint8_t pixels[TALL * WIDE], room[TALL * WIDE];
    att_transform_options options = options_of(TALL, WIDE).transform;
    options.interpolation = ATT_BILINEAR;
    for (int pair = 0; pair < 5 * 5; pair++) {
        att_image image = {WIDE, TALL, 1, pixels};
        att_geometry geometry = att_geometry_of(WIDE, TALL);
        int operations[2] = {moving[pair / 5], moving[pair % 5]};
        memset(pixels, 0, sizeof pixels);
        paint_point(pixels, 40, 35);
        for (int i = 0; i < 2; i++)
            att_augment_apply(operations[i], &options, &image, att_augment_argument(operations[i], true, 3, i), room,
                              &geometry);
        double x = 40.5, y = 35.5, sum = 0, sum_x = 0, sum_y = 0;
        att_geometry_move(&geometry, &x, &y);
        for (int i = 0; i < TALL * WIDE; i++) {
            sum += pixels[i];
            sum_x += pixels[i] * (i % WIDE + 0.5), sum_y += pixels[i] * (i / WIDE + 0.5);
        }
        assert_true(sum > 0);
        if (!(hypot(sum_x / sum - x, sum_y / sum - y) <= 0.02)) /* measured: less than 0.006 */
            fail_msg("%s, then %s: the square is at %g, %g, the point at %g, %g", att_augment_name(operations[0], true),
                     att_augment_name(operations[1], true), sum_x / sum, sum_y / sum, x, y);
    }
}

/* --- mixing --------------------------------------------------------------------------------------------------------
 */

static float weight_at(const points *it, int x, int y)
{
    float sum = 0;
    for (int p = 0; p < *it->count; p++)
        if ((int)it->at[p][0] == x && (int)it->at[p][1] == y)
            sum += it->weight[p];
    return sum;
}

/* Images keep their size. The brightness of a pixel gives the weight of its point. */
static int assert_mixed(const att_batch *batch, int sample)
{
    points said = points_at(batch, sample);
    const float *image = (const float *)att_batch_field(batch, "pixels") + (ptrdiff_t)sample * TALL * WIDE;
    int partner = batch->count - 1 - sample, seen = 0;
    assert_padded(&said);
    for (int side = 0; side < (partner == sample ? 1 : 2); side++) {
        int64_t index = batch->indices[side ? partner : sample];
        for (int p = 0; p < points_of(index); p++) {
            int x, y;
            place_of(index, p, &x, &y);
            float weight = weight_at(&said, x, y);
            assert_float_equal(image[y * WIDE + x] / BRIGHT, weight, 1e-6); /* measured: less than 1e-8 */
            seen += weight > 0;
        }
    }
    assert_int_equal(seen, *said.count);
    return seen;
}

SCRATCH_TEST(points_are_mixed_as_the_pixels_are)
{
    att_dataset *dataset = open_images(self);
    for (int kind = 0; kind < 3; kind++)
        for (att_mix_mode mode = ATT_MIX_BATCH; mode <= ATT_MIX_ELEM; mode++) {
            att_loader_options options = options_of(TALL, WIDE);
            options.mix.mixup = kind != 1 ? 1 : 0;
            options.mix.cutmix = kind != 0 ? 1 : 0;
            options.mix.mode = mode;
            options.batch_size = 7; /* the fourth sample is mixed with itself */
            options.workers = kind;
            att_loader *loader = make_loader(self, dataset, &options);
            int seen = 0;
            for (int epoch = 0; epoch < 5; epoch++) {
                att_batch batch = {.count = 1};
                assert_int_equal(att_loader_start(loader, epoch, 0), ATT_OK);
                while (batch.count > 0) {
                    assert_int_equal(att_loader_next(loader, &batch), ATT_OK);
                    for (int i = 0; i < batch.count; i++)
                        seen += assert_mixed(&batch, i);
                }
            }
            assert_true(seen > 5 * IMAGES);
            att_loader_destroy(&loader);
        }
    att_dataset_close(&dataset);
}

/* --- what is refused -----------------------------------------------------------------------------------------------
 */

static void expect_refused(scratch *self, const att_dataset *dataset, const att_loader_options *options,
                           att_status status, const char *part)
{
    att_loader *loader = NULL;
    size_t allocated = att_context_allocations(self->context).bytes_now;
    assert_int_equal(att_loader_create(self->context, dataset, options, &loader), status);
    assert_null(loader);
    assert_message_has(self, part);
    assert_int_equal(att_context_allocations(self->context).bytes_now, allocated);
}

SCRATCH_TEST(rules_that_do_not_fit_are_refused)
{
    att_dataset *dataset = open_images(self);
    att_loader_options options = options_of(SIDE, SIDE);
    options.targets.mix = NULL;
    att_loader *loader = make_loader(self, dataset, &options); /* nothing is mixed */
    att_loader_destroy(&loader);
    options.mix.cutmix = 1;
    expect_refused(self, dataset, &options, ATT_ERR_UNSUPPORTED, "Mixup and CutMix");
    options = options_of(SIDE, SIDE);
    options.image = "weights";
    expect_refused(self, dataset, &options, ATT_ERR_ARGUMENT, "two fields are called \"weights\"");
    att_field twice[2] = {fields[COUNT], fields[COUNT]};
    options = options_of(SIDE, SIDE);
    options.targets.fields = twice;
    options.targets.count = 2;
    expect_refused(self, dataset, &options, ATT_ERR_ARGUMENT, "two fields are called \"count\"");
    twice[0] = (att_field){"long", ATT_F32, att_shape_of(INT64_MAX / 2, 3)};
    expect_refused(self, dataset, &options, ATT_ERR_ARGUMENT, "\"long\"");
    twice[0].shape = att_shape_of(0);
    expect_refused(self, dataset, &options, ATT_ERR_ARGUMENT, "\"long\"");
    options.targets.count = ATT_MAX_TARGETS + 1;
    expect_refused(self, dataset, &options, ATT_ERR_ARGUMENT, "17 targets");
    att_dataset_close(&dataset);
}

/* The targets of image 9 cannot be read. */
static att_status fill_or_fail(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                               const att_geometry *geometry, void *const *rows)
{
    if (index == 9) /* a format error of the sample, or the error at `user` */
        return user ? *(const att_status *)user : ATT_ERR_FORMAT;
    return fill(NULL, context, dataset, index, geometry, rows);
}

SCRATCH_TEST(targets_that_cannot_be_made_count_as_images_that_cannot)
{
    static const att_status memory = ATT_ERR_MEMORY;
    att_dataset *dataset = open_images(self);
    att_loader_options options = options_of(SIDE, SIDE);
    options.targets.fill = fill_or_fail;
    options.corrupt = ATT_CORRUPT_LEFT_OUT;
    options.batch_size = IMAGES;
    att_loader *loader = make_loader(self, dataset, &options);
    att_batch batch;
    assert_int_equal(att_loader_next(loader, &batch), ATT_OK);
    assert_int_equal(batch.count, IMAGES - 1);
    assert_int_equal(batch.indices[9], 10);
    points moved = points_at(&batch, 9); /* moved with its image into the gap of a removed one */
    assert_padded(&moved);
    assert_int_equal(*moved.count > 0, points_of(10) > 0);
    att_loader_destroy(&loader);
    options.targets.user = &memory;
    loader = make_loader(self, dataset, &options);
    assert_int_equal(att_loader_next(loader, &batch), ATT_ERR_MEMORY);
    att_loader_destroy(&loader);
    att_dataset_close(&dataset);
}

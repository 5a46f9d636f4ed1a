/* Puts images into network->pixels in the layout that the network takes. */
#include "base/core/error.h"
#include "base/core/threads.h"
#include "base/io/image_codec.h"
#include "data/transform.h"
#include "networks/models/family.h"
#include "study/network/network.h"

/* Reserves network->pixels for `count` images of *each floats. */
static att_status reserve(att_network *network, int height, int width, int count, size_t *each)
{
    ATT_TRY(att_model_need_image(network->model));
    *each = (size_t)height * (size_t)width * (size_t)network->identity.preprocess.in_chans;
    size_t outputs = att_size_product(count > 0 ? (size_t)count : 1, *each);
    if (outputs <= network->pixel_room)
        return ATT_OK;
    att_free(network->context, network->pixels);
    network->pixels = att_allocate_array(network->context, outputs, sizeof *network->pixels);
    network->pixel_room = network->pixels ? outputs : 0;
    return network->pixels ? ATT_OK
                           : att_fail_memory(network->context, att_size_product(outputs, sizeof(float)), "images");
}

/* Runs network->pixels. places: NULL, or where the samples show their photographs. */
static att_status run_prepared(att_network *network, int count, int height, int width, const att_geometry *places,
                               att_batch *answers)
{
    att_field field = att_model_image(network->model).field;
    const void *const data[] = {network->pixels};
    field.shape.dims[0] = height;
    field.shape.dims[1] = width;
    const att_batch inputs = {.count = count, .field_count = 1, .fields = &field, .data = data};
    return att_network_run_placed(network, &inputs, places, answers);
}

att_transform_options att_network_photograph_transform(const att_network *network)
{
    return att_model_task_of(network->model)->image_size ? att_evaluate_loading(&network->identity.preprocess)
                                                         : att_network_transform(network);
}

bool att_network_varies(const att_network *network)
{
    const att_transform_options transform = att_network_photograph_transform(network);
    return att_transform_varies(&transform);
}

/* Transforms photograph `index` of `count` into network->pixels and keeps its place. If the sides of images depend on
 * the photograph, the first one sets those of *transform, and the others must have the same. */
static att_status put_photograph(att_network *network, att_transform_options *transform, const att_image *image,
                                 int index, int count)
{
    size_t each;
    if (!att_list_grow(network->context, &network->places, index, &network->place_room, sizeof *network->places))
        return att_fail_memory(network->context, sizeof *network->places, "the places of photographs");
    att_geometry *place = &network->places[index];
    att_transform_options own = att_network_photograph_transform(network);
    ATT_TRY(att_transform_geometry(network->context, &own, image->width, image->height, place));
    if (index == 0) {
        transform->height = place->height;
        transform->width = place->width;
        ATT_TRY(reserve(network, place->height, place->width, count, &each));
    }
    if (place->height != transform->height || place->width != transform->width)
        return att_fail(network->context, ATT_ERR_ARGUMENT,
                        "photographs of %d x %d and %d x %d pixels after resizing, which cannot be run together; run "
                        "one at a time",
                        transform->height, transform->width, place->height, place->width);
    each = (size_t)place->height * (size_t)place->width * (size_t)transform->channels;
    return att_transform_image(network->context, transform, image, 0, 0, index, network->pixels + (size_t)index * each);
}

/* Runs the photographs in network->pixels. */
static att_status run_photographs(att_network *network, const att_transform_options *transform, int count,
                                  att_batch *answers)
{
    ATT_TRY(run_prepared(network, count, transform->height, transform->width, network->places, answers));
    network->place_count = count;
    network->placed = answers->field_count > 0 ? answers->data[0] : NULL;
    return ATT_OK;
}

static att_status check_some(const att_network *network, int count)
{
    ATT_TRY(att_model_need_image(network->model));
    return count >= 1 ? ATT_OK
                      : att_fail(network->context, ATT_ERR_ARGUMENT, "a run of %d samples, expected at least 1", count);
}

static att_status check_one(const att_network *network, int count)
{
    if (count == 1)
        return ATT_OK;
    return att_fail(network->context, ATT_ERR_ARGUMENT,
                    "passes over %d photographs, whose answers have different sizes; run one at a time", count);
}

att_status att_network_read_image(att_network *network, const char *path, int channels, att_image *image)
{
    int orientation = 1;
    att_image_limits limits = att_image_limits_defaults();
    const att_image_need need = {.orientation = &orientation};
    limits.exif_transpose = network->identity.preprocess.exif_transpose;
    ATT_TRY(att_require(network->context, path, "the path of an image"));
    const att_status status = att_image_read_needed(network->context, path, channels, &limits, &need, image);
    ATT_TRY(att_network_explain_path(network, path, status));
    if (orientation > 1 && !limits.exif_transpose && !network->noted_turned) {
        network->noted_turned = true;
        att_log(network->context, ATT_LOG_INFO,
                "%s: EXIF says to turn it for display, and images are read as they are stored, as in timm; "
                "--exif-transpose turns them",
                path);
    }
    return ATT_OK;
}

/* Runs one file in passes. */
static att_status run_file_in_passes(att_network *network, const char *path, int channels, att_batch *answers)
{
    att_image image = {0};
    ATT_TRY(att_network_read_image(network, path, channels, &image));
    att_status status = att_network_run_passes(network, &image, answers);
    att_image_free(network->context, &image);
    return status;
}

att_status att_network_run_images(att_network *network, const att_image *images, int count, att_batch *answers)
{
    att_transform_options transform = att_network_transform(network);
    ATT_TRY(att_require(network->context, images, "the images of a run"));
    if (att_passes_are_on(&network->passes)) {
        ATT_TRY(check_one(network, count));
        return att_network_run_passes(network, images, answers);
    }
    ATT_TRY(check_some(network, count));
    for (int i = 0; i < count; i++)
        ATT_TRY(put_photograph(network, &transform, &images[i], i, count));
    return run_photographs(network, &transform, count, answers);
}

att_status att_network_run_files(att_network *network, const char *const *paths, int count, att_batch *answers)
{
    att_transform_options transform = att_network_transform(network);
    ATT_TRY(att_require_texts(network->context, paths, count, "the path of an image"));
    if (att_passes_are_on(&network->passes)) {
        ATT_TRY(check_one(network, count));
        return run_file_in_passes(network, paths[0], transform.channels, answers);
    }
    ATT_TRY(check_some(network, count));
    for (int i = 0; i < count; i++) {
        att_image image = {0};
        ATT_TRY(att_network_read_image(network, paths[i], transform.channels, &image));
        att_status status = put_photograph(network, &transform, &image, i, count);
        att_image_free(network->context, &image);
        ATT_TRY(status);
    }
    return run_photographs(network, &transform, count, answers);
}

att_status att_network_run_file(att_network *network, const char *path, att_batch *answers)
{
    return att_network_run_files(network, &path, 1, answers);
}

/* --- images whose channels are planes ----------------------------------------------------------------------------- */

typedef struct interleaving {
    const float *const *images;
    float *pixels; /* [count, points, channels] */
    int count, threads, channels;
    size_t points; /* of a plane */
} interleaving;

/* Copies every `threads`-th image, from number `thread` on. */
static void interleave(void *user, int thread)
{
    const interleaving *all = user;
    const size_t channels = (size_t)all->channels;
    for (int i = thread; i < all->count; i += all->threads)
        for (size_t c = 0; c < channels; c++) {
            const float *plane = all->images[i] + c * all->points;
            float *out = all->pixels + (size_t)i * all->points * channels + c;
            for (size_t p = 0; p < all->points; p++)
                out[p * channels] = plane[p];
        }
}

att_status att_network_run_planes(att_network *network, const float *const *images, int count, int height, int width,
                                  att_batch *answers)
{
    att_context *context = network->context;
    size_t each;
    ATT_TRY(att_require(context, images, "the images of a run"));
    if (height < 1 || width < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "images of %d x %d pixels, expected at least 1 x 1", height, width);
    ATT_TRY(reserve(network, height, width, count, &each));
    for (int i = 0; i < count; i++)
        ATT_TRY(att_require(context, images[i], "an image of a run"));
    const int channels = network->identity.preprocess.in_chans;
    interleaving all = {.images = images,
                        .pixels = network->pixels,
                        .count = count,
                        .threads = att_context_threads(context),
                        .channels = channels,
                        .points = each / (size_t)channels};
    att_threads_run(context, all.threads, interleave, &all);
    return run_prepared(network, count, height, width, NULL, answers);
}

/* Images that are similar to one: features of the engine's images, a few in each request, and the nearest of them. */
#include <stdio.h>
#include <string.h>

#include <attscope/embed.h>

#include "base/core/clock.h"
#include "data/dataset.h"
#include "lab/serve/engine_parts.h"
#include "networks/models/inputs.h"

/* Images of a run, and seconds after which a request computes no further ones, so that the page shows progress and
 * other requests do not wait long. */
enum { CHUNK = 8 };
static const double patience = 0.5;

void att_engine_end_comparison(att_context *context, att_opened *o)
{
    att_embedding_free(context, &o->compared.features);
    o->compared = (att_compared){0};
}

/* Lets runs of the network return features. */
static att_status select_features(att_opened *o)
{
    if (o->compared.selected)
        return ATT_OK;
    ATT_TRY(att_network_select_outputs(o->network, "features"));
    o->compared.selected = true;
    return ATT_OK;
}

att_status att_engine_select_answers(att_opened *o)
{
    if (!o->compared.selected)
        return ATT_OK;
    ATT_TRY(att_network_select_outputs(o->network, NULL));
    o->compared.selected = false;
    return ATT_OK;
}

/* Number k of the compared images among the server's. */
static int64_t index_of(const att_engine *engine, const att_compared *c, int64_t k)
{
    return (2 * k + 1) * att_dataset_count(engine->images) / (2 * c->total);
}

/* Runs the network on images that begin at `pixels`; *features lives until its next run. */
static att_status run(const att_opened *o, const float *pixels, int count, const float **features, att_shape *shape)
{
    const att_transform_options transform = att_network_transform(o->network);
    const att_geometry place = {.height = transform.height, .width = transform.width};
    att_field field;
    const void *data[1];
    att_batch inputs = att_engine_inputs(o, pixels, &place, &field, data), answers;
    inputs.count = count;
    ATT_TRY(att_network_run(o->network, &inputs, &answers));
    *features = answers.data[0];
    *shape = answers.fields[0].shape;
    return ATT_OK;
}

static att_status read_pixels(const att_engine *engine, const att_opened *o, const char *id, float *pixels)
{
    const att_transform_options transform = att_network_transform(o->network);
    att_image image = {0};
    ATT_TRY(att_engine_read_image(engine, id, transform.channels, &image));
    const att_status status = att_transform_image(engine->context, &transform, &image, 0, 0, 0, pixels);
    att_image_free(engine->context, &image);
    return status;
}

/* Makes room for the features of all compared images. */
static att_status begin(const att_engine *engine, att_compared *c, att_shape shape)
{
    att_embedding made = {.shape = shape};
    if (c->features.values)
        return ATT_OK;
    ATT_TRY(
        att_new(engine->context, &made.values, (size_t)(c->total * att_shape_count(shape)), "the features of images"));
    const att_status status = att_new(engine->context, &made.indices, (size_t)c->total, "the features of images");
    if (status == ATT_OK)
        c->features = made;
    else
        att_free(engine->context, made.values);
    return status;
}

/* Computes the features of the next images. pixels: room for CHUNK images. */
static att_status add_chunk(const att_engine *engine, att_opened *o, float *pixels)
{
    att_compared *c = &o->compared;
    char id[ATT_ENGINE_ID];
    const float *features;
    att_shape shape;
    int count = 0;
    for (; count < CHUNK && c->features.count + count < c->total; count++) {
        snprintf(id, sizeof id, "d%lld", (long long)index_of(engine, c, c->features.count + count));
        ATT_TRY(read_pixels(engine, o, id, pixels + count * att_shape_count(o->compared.image)));
    }
    ATT_TRY(run(o, pixels, count, &features, &shape));
    ATT_TRY(begin(engine, c, shape));
    const size_t each = (size_t)att_shape_count(shape);
    memcpy(c->features.values + (size_t)c->features.count * each, features, (size_t)count * each * sizeof *features);
    for (int i = 0; i < count; i++, c->features.count++)
        c->features.indices[c->features.count] = index_of(engine, c, c->features.count);
    return ATT_OK;
}

/* The features of the view's image, which the caller frees. */
static att_status find_features(const att_engine *engine, const att_opened *o, const char *image, float *pixels,
                                float **features)
{
    const float *found;
    att_shape shape;
    ATT_TRY(read_pixels(engine, o, image, pixels));
    ATT_TRY(run(o, pixels, 1, &found, &shape));
    const size_t count = (size_t)att_shape_count(shape);
    ATT_TRY(att_new(engine->context, features, count, "the features of an image"));
    memcpy(*features, found, count * sizeof *found);
    return ATT_OK;
}

static void write_neighbours(const att_engine *engine, const att_compared *c, const char *image,
                             const att_neighbour *found, int count, int most, att_json_writer *writer)
{
    char id[ATT_ENGINE_ID], name[ATT_DATA_MAX_NAME];
    att_json_put_integer(writer, "total", c->total);
    att_json_put_integer(writer, "count", att_dataset_count(engine->images));
    att_json_put_integer(writer, "images", c->features.count);
    att_json_put_array(writer, "nearest");
    for (int i = 0, written = 0; i < count && written < most; i++) {
        const int64_t index = c->features.indices[found[i].image];
        snprintf(id, sizeof id, "d%lld", (long long)index);
        if (strcmp(id, image) == 0)
            continue;
        att_json_begin_object(writer);
        att_json_put_string(writer, "id", id);
        att_json_put_string(writer, "name", att_dataset_short_name(engine->images, index, name, sizeof name));
        att_json_put_number(writer, "similarity", found[i].similarity);
        att_json_end_object(writer);
        written++;
    }
    att_json_end_array(writer);
}

/* The image itself may be among the nearest, which are therefore one more. */
static att_status find_nearest(const att_engine *engine, const att_compared *c, const char *image,
                               const float *features, int most, att_json_writer *writer)
{
    att_neighbour *found;
    int count;
    ATT_TRY(att_new(engine->context, &found, (size_t)most + 1, "the nearest images"));
    const att_status status = att_embedding_nearest(engine->context, &c->features, features, most + 1, found, &count);
    if (status == ATT_OK)
        write_neighbours(engine, c, image, found, count, most, writer);
    att_free(engine->context, found);
    return status;
}

static att_status answer(const att_engine *engine, att_opened *o, const char *image, int most, float *pixels,
                         att_json_writer *writer)
{
    att_compared *c = &o->compared;
    const double start = att_seconds_now();
    float *features = NULL;
    while (c->features.count < c->total && (c->features.count == 0 || att_seconds_now() - start < patience))
        ATT_TRY(add_chunk(engine, o, pixels));
    att_status status = find_features(engine, o, image, pixels, &features);
    if (status == ATT_OK)
        status = find_nearest(engine, c, image, features, most, writer);
    att_free(engine->context, features);
    return status;
}

static att_status compare(const att_engine *engine, att_opened *o, const char *image, int most, att_json_writer *writer)
{
    const int64_t all = engine->images ? att_dataset_count(engine->images) : 0;
    float *pixels;
    ATT_TRY(att_model_need_image(att_network_model(o->network)));
    if (all == 0)
        return att_fail(engine->context, ATT_ERR_NOT_FOUND,
                        "no images were named: attscope serve CHECKPOINT --images FOLDER");
    if (att_network_varies(o->network))
        return att_fail(engine->context, ATT_ERR_UNSUPPORTED,
                        "images are compared by networks that take all images in one size, which this one does not");
    ATT_TRY(select_features(o));
    o->compared.total = all < ATT_ENGINE_COMPARED ? all : ATT_ENGINE_COMPARED;
    o->compared.image = att_model_image(att_network_model(o->network)).field.shape;
    ATT_TRY(att_new(engine->context, &pixels, CHUNK * (size_t)att_shape_count(o->compared.image), "images"));
    const att_status status = answer(engine, o, image, most, pixels, writer);
    att_free(engine->context, pixels);
    return status;
}

att_status att_engine_write_nearest(att_engine *engine, att_context *context, const char *path, const char *image,
                                    int most, att_json_writer *writer)
{
    att_opened *o;
    ATT_TRY(att_engine_enter(engine, context));
    att_status status = att_engine_find(engine, path, &o);
    if (status == ATT_OK)
        status = compare(engine, o, image, most, writer);
    return att_engine_leave(engine, status);
}

/* Images: those of a folder, and uploads. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io/image_codec.h"
#include "base/io/png_write.h"
#include "lab/serve/engine_parts.h"

enum { THUMBNAIL = 96 };

static void write_image(att_json_writer *writer, const char *id, const char *name)
{
    att_json_begin_object(writer);
    att_json_put_string(writer, "id", id);
    att_json_put_string(writer, "name", name);
    att_json_end_object(writer);
}

/* NULL: there is no such upload, or it was forgotten. */
static const att_upload *find_upload(const att_engine *engine, int64_t number)
{
    const att_upload *kept = &engine->uploads[number % ATT_ENGINE_UPLOADS];
    return kept->image.pixels && kept->number == number ? kept : NULL;
}

static void write_uploads(const att_engine *engine, att_json_writer *writer)
{
    char id[ATT_ENGINE_ID];
    const att_upload *upload;
    att_json_put_array(writer, "uploads");
    for (int64_t n = engine->upload_count - 1; n >= 0 && (upload = find_upload(engine, n)); n--) {
        snprintf(id, sizeof id, "u%lld", (long long)n);
        write_image(writer, id, upload->name);
    }
    att_json_end_array(writer);
}

att_status att_engine_write_images(att_engine *engine, att_context *context, int64_t first, int64_t count,
                                   att_json_writer *writer)
{
    char id[ATT_ENGINE_ID], name[256];
    const int64_t all = engine->images ? att_dataset_count(engine->images) : 0;
    att_json_put_array(writer, "images");
    for (int64_t i = first; i < all && i - first < count; i++) {
        snprintf(id, sizeof id, "d%lld", (long long)i);
        write_image(writer, id, att_dataset_short_name(engine->images, i, name, sizeof name));
    }
    att_json_end_array(writer);
    att_json_put_integer(writer, "count", all);
    ATT_TRY(att_engine_enter(engine, context));
    write_uploads(engine, writer);
    att_engine_write_texts(engine, first, count, writer);
    return att_engine_leave(engine, ATT_OK);
}

static size_t bytes_of(const att_image *image)
{
    return image->pixels ? (size_t)image->width * (size_t)image->height * (size_t)image->channels : 0;
}

static att_status copy_image(const att_engine *engine, const att_image *image, att_image *copy)
{
    const size_t count = bytes_of(image);
    *copy = *image;
    copy->pixels = att_allocate(engine->context, count);
    if (!copy->pixels)
        return att_fail_memory(engine->context, count, "an image");
    memcpy(copy->pixels, image->pixels, count);
    return ATT_OK;
}

/* Forgets the oldest uploads until `bytes` more may be kept, in the place of the next upload. */
static void forget_uploads(att_engine *engine, size_t bytes)
{
    for (int i = 0; i < ATT_ENGINE_UPLOADS; i++)
        bytes += bytes_of(&engine->uploads[i].image);
    for (int i = 0; i < ATT_ENGINE_UPLOADS && (i == 0 || bytes > engine->upload_bytes); i++) {
        att_upload *oldest = &engine->uploads[(engine->upload_count + i) % ATT_ENGINE_UPLOADS];
        bytes -= bytes_of(&oldest->image);
        att_image_free(engine->context, &oldest->image);
    }
}

/* Keeps a copy in the engine's memory. */
static att_status keep_upload(att_engine *engine, const char *name, const att_image *image,
                              char id[static ATT_ENGINE_ID])
{
    att_image copy;
    forget_uploads(engine, bytes_of(image));
    ATT_TRY(copy_image(engine, image, &copy));
    att_upload *kept = &engine->uploads[engine->upload_count % ATT_ENGINE_UPLOADS];
    *kept = (att_upload){.number = engine->upload_count++, .image = copy};
    snprintf(kept->name, sizeof kept->name, "%s", name);
    snprintf(id, ATT_ENGINE_ID, "u%lld", (long long)kept->number);
    return ATT_OK;
}

/* Decodes with the context of the request, so that requests for other answers need not wait, and the pixels count among
 * the memory of requests. */
static att_status decode_upload(att_engine *engine, att_context *context, const char *name, const void *bytes,
                                size_t size, char id[static ATT_ENGINE_ID])
{
    const att_image_limits limits = att_engine_image_limits();
    att_image image = {0};
    ATT_TRY(att_image_decode_named(context, name, bytes, size, 3, &limits, NULL, &image));
    att_status status = att_engine_enter(engine, context);
    if (status == ATT_OK)
        status = att_engine_leave(engine, keep_upload(engine, name, &image, id));
    att_image_free(context, &image);
    return status;
}

att_status att_engine_upload(att_engine *engine, att_context *context, const char *name, const void *bytes, size_t size,
                             char id[static ATT_ENGINE_ID])
{
    ATT_TRY(att_engine_wait(&engine->uploading, context));
    const att_status status = decode_upload(engine, context, name, bytes, size, id);
    pthread_mutex_unlock(&engine->uploading);
    return status;
}

/* Parses "d7" or "u2". */
static bool parse_id(const char *id, char *kind, int64_t *number)
{
    *kind = *id;
    return (*id == 'd' || *id == 'u') && id[1] >= '0' && id[1] <= '9' && att_text_to_i64(id + 1, number);
}

static att_status fail_image(const att_engine *engine, const char *id)
{
    return att_fail(engine->context, ATT_ERR_NOT_FOUND,
                    "there is no image \"%s\": expected d0 to d%lld, or one of the last %d uploads", id,
                    engine->images ? (long long)att_dataset_count(engine->images) - 1 : -1, (int)ATT_ENGINE_UPLOADS);
}

/* A copy with one channel, Pillow's "L": (19595 R + 38470 G + 7471 B + 0x8000) / 65536. */
static att_status to_grey(const att_engine *engine, const att_image *image, att_image *grey)
{
    const size_t count = (size_t)image->width * (size_t)image->height;
    *grey = (att_image){image->width, image->height, 1, att_allocate(engine->context, count)};
    if (!grey->pixels)
        return att_fail_memory(engine->context, count, "a grey image");
    for (size_t i = 0; i < count; i++) {
        const uint8_t *p = image->pixels + 3 * i;
        grey->pixels[i] = (uint8_t)((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 0x8000u) >> 16);
    }
    return ATT_OK;
}

/* Decodes an image; the caller frees it. */
att_status att_engine_read_image(const att_engine *engine, const char *id, int channels, att_image *image)
{
    char kind;
    int64_t number;
    if (!parse_id(id, &kind, &number))
        return fail_image(engine, id);
    if (kind == 'd') {
        if (!engine->images || number >= att_dataset_count(engine->images))
            return fail_image(engine, id);
        return att_dataset_read(engine->images, engine->context, number, channels, image);
    }
    const att_upload *kept = find_upload(engine, number);
    if (!kept)
        return fail_image(engine, id);
    return channels == 1 ? to_grey(engine, &kept->image, image) : copy_image(engine, &kept->image, image);
}

/* The middle square, in THUMBNAIL x THUMBNAIL pixels with values of 0 to 1. */
static att_status shrink(const att_engine *engine, const att_image *image, att_image *small)
{
    enum { COUNT = THUMBNAIL * THUMBNAIL * 3 };
    att_transform_options options = att_transform_options_defaults(THUMBNAIL, THUMBNAIL, 3);
    float *values = att_allocate_array(engine->context, COUNT, sizeof *values);
    uint8_t *pixels = att_allocate(engine->context, COUNT);
    att_status status =
        values && pixels ? ATT_OK : att_fail_memory(engine->context, COUNT * sizeof *values, "a thumbnail");
    for (int c = 0; c < 3; c++)
        options.mean[c] = 0, options.std[c] = 1;
    if (status == ATT_OK)
        status = att_transform_image(engine->context, &options, image, 0, 0, 0, values);
    for (int i = 0; i < COUNT && status == ATT_OK; i++)
        pixels[i] = (uint8_t)lroundf(255 * values[i]);
    att_free(engine->context, values);
    *small = (att_image){THUMBNAIL, THUMBNAIL, 3, pixels};
    return status;
}

static att_status make_thumbnail(const att_engine *engine, const char *id, att_text *out)
{
    att_image image = {0}, small = {0};
    att_status status = att_engine_read_image(engine, id, 3, &image);
    if (status == ATT_OK)
        status = shrink(engine, &image, &small);
    if (status == ATT_OK)
        status = att_png_write(engine->context, &small, out);
    att_image_free(engine->context, &small);
    att_image_free(engine->context, &image);
    return status;
}

att_status att_engine_thumbnail(att_engine *engine, att_context *context, const char *image, att_text *out)
{
    ATT_TRY(att_engine_enter(engine, context));
    return att_engine_leave(engine, make_thumbnail(engine, image, out));
}

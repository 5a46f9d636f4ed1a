/* Means of the maps of the engine's images, some images in each request. */
#include <stdio.h>
#include <string.h>

#include "base/core/clock.h"
#include "data/dataset.h"
#include "lab/serve/engine_parts.h"
#include "study/pictures/maps.h"

/* Seconds of a request, so that the page shows progress, and other requests do not wait long. */
static const double share = 0.3;

void att_engine_end_means(att_opened *o)
{
    att_map_files_close(&o->mean.maps);
    att_dataset_close(&o->mean.images);
    o->mean = (att_averaging){0};
}

/* All layers and heads, or the mean over the heads of the last layer for each class. */
static att_status begin(const att_engine *engine, att_opened *o, const att_engine_means *how)
{
    att_averaging *m = &o->mean;
    snprintf(m->show, sizeof m->show, "%s", how->show);
    m->by_class = how->by_class;
    m->wanted = how->images;
    ATT_TRY(att_engine_open_images(engine, o, &m->images));
    const int64_t all = att_dataset_count(m->images);
    m->total = how->images < all ? how->images : all;
    if (how->by_class && att_dataset_class_count(m->images) == 0)
        return att_fail(engine->context, ATT_ERR_ARGUMENT,
                        "means of classes need images with the network's classes: a folder of class folders");
    att_map_options options = att_map_options_defaults();
    options.show = m->show;
    options.layers = how->by_class ? "last" : "all";
    options.heads = how->by_class ? "mean" : "all";
    options.means = how->by_class ? "class" : "all";
    return att_map_files_open(o->network, &options, NULL, &m->maps);
}

static att_status add_image(const att_engine *engine, att_averaging *m, float *pixels)
{
    const int64_t index = att_engine_spaced(m->images, m->total, m->seen);
    const att_transform_options *transform = &m->maps->transform;
    att_image image = {0};
    ATT_TRY(att_dataset_read(m->images, engine->context, index, transform->channels, &image));
    att_status status = att_transform_image(engine->context, transform, &image, 0, 0, 0, pixels);
    att_image_free(engine->context, &image);
    if (status == ATT_OK)
        status = att_map_files_add(m->maps, "", att_dataset_label(m->images, index), pixels);
    m->seen += status == ATT_OK;
    return status;
}

static att_status go_on(const att_engine *engine, att_averaging *m)
{
    const double started = att_seconds_now();
    float *pixels;
    ATT_TRY(att_new(engine->context, &pixels, m->maps->pixels, "an image"));
    att_status status = ATT_OK;
    while (status == ATT_OK && m->seen < m->total && (m->seen == 0 || att_seconds_now() - started < share))
        status = add_image(engine, m, pixels);
    att_free(engine->context, pixels);
    return status;
}

static att_status prepare(const att_engine *engine, att_opened *o, const att_engine_means *how)
{
    att_averaging *m = &o->mean;
    if (m->maps && (strcmp(m->show, how->show) != 0 || m->by_class != how->by_class || m->wanted != how->images))
        att_engine_end_means(o);
    const bool fresh = !m->maps;
    att_status status = fresh ? begin(engine, o, how) : ATT_OK;
    if (status == ATT_OK)
        status = go_on(engine, m);
    if (status != ATT_OK && fresh)
        att_engine_end_means(o);
    return status;
}

static void write_mean(const att_opened *o, const att_map_mean *mean, att_json_writer *writer)
{
    const att_map_list *list = &o->mean.maps->list;
    att_json_begin_object(writer);
    att_json_put_integer(writer, "class", mean->label);
    att_json_put_string(writer, "label", mean->label < 0 ? NULL : att_network_class_name(o->network, mean->label));
    att_json_put_integer(writer, "images", (int64_t)mean->images);
    att_json_put_array(writer, "maps");
    for (int i = 0; i < mean->count; i++) {
        const att_relevance_map *map = &list->items[i].map;
        att_json_begin_object(writer);
        att_json_put_string(writer, "name", list->items[i].name);
        att_json_put_integer(writer, "height", map->height);
        att_json_put_integer(writer, "width", map->width);
        att_json_put_array(writer, "values");
        for (int c = 0; c < map->height * map->width; c++)
            att_json_number(writer, mean->values[i][c] / mean->images);
        att_json_end_array(writer);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
    att_json_end_object(writer);
}

att_status att_engine_write_means(att_engine *engine, att_context *context, const char *path,
                                  const att_engine_means *how, att_json_writer *writer)
{
    att_opened *o;
    ATT_TRY(att_engine_enter(engine, context));
    att_status status = att_engine_find(engine, path, &o);
    if (status == ATT_OK)
        status = prepare(engine, o, how);
    if (status == ATT_OK) {
        att_json_put_integer(writer, "total", o->mean.total);
        att_json_put_integer(writer, "seen", o->mean.seen);
        att_json_put_array(writer, "means");
        for (int i = 0; i < o->mean.maps->mean_count; i++)
            write_mean(o, &o->mean.maps->means[i], writer);
        att_json_end_array(writer);
    }
    return att_engine_leave(engine, status);
}

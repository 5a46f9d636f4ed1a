/* Ablations of the engine's images, a few images in each request. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/dataset.h"
#include "lab/runs/ablation/ablation.h"
#include "lab/serve/engine_parts.h"
#include "study/network/network.h"

/* Images of a request: few, so that the page shows progress, and other requests do not wait long. */
enum { CHUNK = 2 };

void att_engine_end_ablation(att_opened *o)
{
    att_ablation_destroy(&o->cut.ablation);
    att_dataset_close(&o->cut.images);
    o->cut = (att_cutting){0};
}

/* Opens the images with their classes if these are the network's, else without. */
static att_status open_images(const att_engine *engine, const att_opened *o, att_dataset **images)
{
    att_dataset_options options = att_dataset_options_defaults();
    options.limits = att_engine_image_limits();
    options.split = "validation";
    options.unlabelled = true;
    const char *path = engine->folder;
    if (!path)
        return att_fail(engine->context, ATT_ERR_NOT_FOUND, "no images were named: attscope serve --images FOLDER");
    att_status status = att_network_open_dataset(o->network, &path, 1, &options, images);
    if (status == ATT_OK && att_dataset_class_count(*images) > 0)
        status = att_network_compare_classes(o->network, *images, true);
    if (status == ATT_OK || status == ATT_ERR_STOPPED || status == ATT_ERR_MEMORY)
        return status;
    att_dataset_close(images);
    return att_dataset_open_images(engine->context, &path, 1, &options, images);
}

static att_status begin(const att_engine *engine, att_opened *o, const att_engine_cuts *cuts)
{
    att_cutting *c = &o->cut;
    att_ablation_options options = att_ablation_options_defaults();
    options.heads = cuts->branches ? NULL : "all";
    options.branches = cuts->branches ? "all" : NULL;
    options.uniform = cuts->uniform;
    options.batch_size = CHUNK;
    ATT_TRY(open_images(engine, o, &c->images));
    const int64_t all = att_dataset_count(c->images);
    c->cuts = *cuts;
    c->total = cuts->images < all ? cuts->images : all;
    return att_ablation_create(o->network, &options, c->total, &c->ablation);
}

/* Image k of the total, evenly spaced through the data set. */
static int64_t index_of(const att_cutting *c, int64_t k)
{
    return (2 * k + 1) * att_dataset_count(c->images) / (2 * c->total);
}

static att_status read_image(const att_engine *engine, const att_opened *o, int64_t index, float *pixels)
{
    const att_transform_options transform = att_network_transform(o->network);
    att_image image = {0};
    ATT_TRY(att_dataset_read(o->cut.images, engine->context, index, transform.channels, &image));
    const att_status status = att_transform_image(engine->context, &transform, &image, 0, 0, 0, pixels);
    att_image_free(engine->context, &image);
    return status;
}

/* Runs the next images with all changes. pixels: room for CHUNK images. */
static att_status go_on(const att_engine *engine, att_opened *o, float *pixels)
{
    const att_field field = att_model_image(att_network_model(o->network)).field;
    const void *const data[] = {pixels};
    const int64_t seen = att_ablation_describe(o->cut.ablation).images;
    int64_t indices[CHUNK];
    int count = 0;
    for (; count < CHUNK && seen + count < o->cut.total; count++) {
        indices[count] = index_of(&o->cut, seen + count);
        ATT_TRY(read_image(engine, o, indices[count], pixels + count * att_shape_count(field.shape)));
    }
    const att_batch batch = {
        .count = count, .rows = count, .indices = indices, .field_count = 1, .fields = &field, .data = data};
    ATT_TRY(att_ablation_observe(o->cut.ablation, &batch, o->cut.images));
    return att_ablation_conclude(o->cut.ablation);
}

static bool is_same(const att_engine_cuts *a, const att_engine_cuts *b)
{
    return a->branches == b->branches && a->uniform == b->uniform && a->images == b->images;
}

/* Sees to it that the network's ablation is this one, and has seen images. more: runs further images, if any are left.
 */
static att_status prepare(const att_engine *engine, att_opened *o, const att_engine_cuts *cuts, bool more)
{
    if (o->cut.ablation && !is_same(&o->cut.cuts, cuts))
        att_engine_end_ablation(o);
    const bool fresh = !o->cut.ablation;
    att_status status = fresh ? begin(engine, o, cuts) : ATT_OK;
    if (status == ATT_OK && (fresh || more) && att_ablation_describe(o->cut.ablation).images < o->cut.total) {
        float *pixels = NULL;
        const size_t size = (size_t)att_shape_count(att_model_image(att_network_model(o->network)).field.shape);
        status = att_new(engine->context, &pixels, CHUNK * size, "images");
        if (status == ATT_OK)
            status = go_on(engine, o, pixels);
        if (pixels)
            att_free(engine->context, pixels);
    }
    if (status != ATT_OK && fresh)
        att_engine_end_ablation(o);
    return status;
}

att_status att_engine_write_ablation(att_engine *engine, att_context *context, const char *path,
                                     const att_engine_cuts *cuts, att_json_writer *writer)
{
    att_opened *o;
    ATT_TRY(att_engine_enter(engine, context));
    att_status status = att_engine_find(engine, path, &o);
    if (status == ATT_OK)
        status = prepare(engine, o, cuts, true);
    if (status == ATT_OK) {
        att_json_put_integer(writer, "total", o->cut.total);
        att_ablation_write_json(o->cut.ablation, writer);
    }
    return att_engine_leave(engine, status);
}

/* --- images that change most -------------------------------------------------------------------------------------- */

/* Writes the engine's identifier of an image, or "" if it has none. */
static void write_id(const att_engine *engine, const att_dataset *images, int64_t index, char id[ATT_ENGINE_ID])
{
    char name[ATT_DATA_MAX_NAME], other[ATT_DATA_MAX_NAME];
    const int64_t count = engine->images ? att_dataset_count(engine->images) : 0;
    (void)att_dataset_name(images, index, name, sizeof name);
    *id = '\0';
    for (int64_t i = 0; i < count && !*id; i++)
        if (strcmp(att_dataset_name(engine->images, i, other, sizeof other), name) == 0)
            snprintf(id, ATT_ENGINE_ID, "d%lld", (long long)i);
}

static void write_answer(att_json_writer *writer, const char *key, const att_ablation *a, int change, int64_t image)
{
    const double loss = att_ablation_losses(a, change)[image];
    att_json_put_object(writer, key);
    att_json_put_number(writer, "loss", loss);
    att_json_put_number(writer, "p_class", exp(-loss));
    att_json_put_bool(writer, "right", att_ablation_right(a, change)[image]);
    att_json_end_object(writer);
}

static void write_image(const att_engine *engine, const att_opened *o, int part, int64_t number,
                        att_json_writer *writer)
{
    const att_ablation *a = o->cut.ablation;
    const att_ablation_image image = att_ablation_image_at(a, number);
    char id[ATT_ENGINE_ID];
    write_id(engine, o->cut.images, image.index, id);
    att_json_begin_object(writer);
    att_json_put_string(writer, "id", *id ? id : NULL);
    att_json_put_string(writer, "name", image.name);
    att_json_put_integer(writer, "class", image.label);
    att_json_put_string(writer, "label", att_network_class_name(o->network, image.label));
    write_answer(writer, "unchanged", a, -1, number);
    write_answer(writer, "changed", a, part, number);
    att_json_end_object(writer);
}

static att_status write_images(const att_engine *engine, const att_opened *o, int part, att_json_writer *writer)
{
    enum { SHOWN = 8 };
    int64_t images[SHOWN];
    const int parts = att_ablation_count(o->cut.ablation);
    if (part < 0 || part >= parts)
        return att_fail(engine->context, ATT_ERR_ARGUMENT, "part %d does not exist: expected 0 to %d", part, parts - 1);
    const int count = att_ablation_most_changed(o->cut.ablation, part, images, SHOWN);
    att_json_put_string(writer, "name", att_ablation_at(o->cut.ablation, part).name);
    att_json_put_array(writer, "images");
    for (int i = 0; i < count; i++)
        write_image(engine, o, part, images[i], writer);
    att_json_end_array(writer);
    return ATT_OK;
}

att_status att_engine_write_changed(att_engine *engine, att_context *context, const char *path,
                                    const att_engine_cuts *cuts, int part, att_json_writer *writer)
{
    att_opened *o;
    ATT_TRY(att_engine_enter(engine, context));
    att_status status = att_engine_find(engine, path, &o);
    if (status == ATT_OK)
        status = prepare(engine, o, cuts, false);
    if (status == ATT_OK)
        status = write_images(engine, o, part, writer);
    return att_engine_leave(engine, status);
}

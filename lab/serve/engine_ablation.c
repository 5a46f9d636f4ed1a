/* Ablations of the engine's images, a few images in each request. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/dataset.h"
#include "lab/runs/ablation/ablation.h"
#include "lab/serve/engine_parts.h"
#include "study/network/network.h"

/* Images of a request: few, so that the page shows progress, and other requests do not wait long; and those that are
 * measured together. */
enum { CHUNK = 2, MEASURED = 32 };

void att_engine_end_ablation(att_opened *o)
{
    att_ablation_destroy(&o->cut.ablation);
    att_dataset_close(&o->cut.images);
    o->cut = (att_cutting){0};
}

att_status att_engine_open_images(const att_engine *engine, const att_opened *o, att_dataset **images)
{
    att_dataset_options options = att_dataset_options_defaults();
    options.limits = att_engine_image_limits();
    options.split = "validation";
    options.unlabelled = true;
    const char *path = engine->folder;
    ATT_TRY(att_model_need_image(att_network_model(o->network)));
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

/* "" means none. */
static const char *list_of(const char *text)
{
    return *text ? text : NULL;
}

static att_status begin(const att_engine *engine, att_opened *o, const att_engine_cuts *cuts)
{
    att_cutting *c = &o->cut;
    att_ablation_options options = att_ablation_options_defaults();
    options.heads = list_of(cuts->heads);
    options.branches = list_of(cuts->branches);
    options.tokens = list_of(cuts->tokens);
    options.uniform = cuts->uniform;
    options.greedy = cuts->greedy;
    options.bound = cuts->bound;
    options.batch_size = CHUNK;
    ATT_TRY(att_engine_open_images(engine, o, &c->images));
    const int64_t all = att_dataset_count(c->images);
    c->cuts = *cuts;
    c->total = cuts->images < all ? cuts->images : all;
    return att_ablation_create(o->network, &options, c->total, &c->ablation);
}

/* --- images ------------------------------------------------------------------------------------------------------- */

/* Some of the images, from number `first` of the total on. */
typedef struct chunk {
    att_field field;
    const void *data[1];
    int64_t indices[MEASURED];
    att_batch batch;
} chunk;

int64_t att_engine_spaced(const att_dataset *images, int64_t total, int64_t k)
{
    return (2 * k + 1) * att_dataset_count(images) / (2 * total);
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

/* Reads `most` images, or as many as there are. pixels: room for them. */
static att_status read_images(const att_engine *engine, const att_opened *o, int64_t first, int most, float *pixels,
                              chunk *c)
{
    c->field = att_model_image(att_network_model(o->network)).field;
    c->data[0] = pixels;
    const int64_t size = att_shape_count(c->field.shape), left = o->cut.total - first;
    const int count = left < most ? (int)left : most;
    for (int i = 0; i < count; i++) {
        c->indices[i] = att_engine_spaced(o->cut.images, o->cut.total, first + i);
        ATT_TRY(read_image(engine, o, c->indices[i], pixels + i * size));
    }
    c->batch = (att_batch){
        .count = count, .rows = count, .indices = c->indices, .field_count = 1, .fields = &c->field, .data = c->data};
    return ATT_OK;
}

/* Runs the next images with all changes. */
static att_status run_images(const att_engine *engine, att_opened *o, float *pixels)
{
    att_cutting *c = &o->cut;
    chunk next;
    ATT_TRY(read_images(engine, o, c->ablation->pass_count, CHUNK, pixels, &next));
    ATT_TRY(att_ablation_observe(c->ablation, &next.batch, c->images));
    const bool is_last = c->ablation->pass_count == c->total;
    if (!c->cuts.greedy) {
        c->seen = is_last;
        return att_ablation_conclude(c->ablation);
    }
    ATT_TRY(is_last ? att_ablation_end_pass(c->ablation, &c->seen) : ATT_OK);
    c->done = c->seen;
    return ATT_OK;
}

/* Measures all images. The network keeps the probes of its last measure only, which other requests replace, so that
 * this is not done in parts. */
static att_status measure_images(const att_engine *engine, att_opened *o, float *pixels)
{
    att_measure *measure = NULL;
    chunk next;
    ATT_TRY(att_network_observe(o->network, ATT_ABLATION_INSTRUMENTS, NULL, &measure));
    att_status status = ATT_OK;
    for (int64_t first = 0; first < o->cut.total && status == ATT_OK; first += MEASURED) {
        status = read_images(engine, o, first, MEASURED, pixels, &next);
        if (status == ATT_OK)
            status = att_network_measure(o->network, measure, &next.batch, NULL);
    }
    if (status == ATT_OK)
        status = att_ablation_correlate(o->cut.ablation, measure);
    o->cut.done = status == ATT_OK;
    att_measure_destroy(&measure);
    return status;
}

static att_status go_on(const att_engine *engine, att_opened *o)
{
    float *pixels;
    const size_t size = (size_t)att_shape_count(att_model_image(att_network_model(o->network)).field.shape);
    ATT_TRY(att_new(engine->context, &pixels, (o->cut.seen ? MEASURED : CHUNK) * size, "images"));
    const att_status status = o->cut.seen ? measure_images(engine, o, pixels) : run_images(engine, o, pixels);
    att_free(engine->context, pixels);
    return status;
}

static bool is_same(const att_engine_cuts *a, const att_engine_cuts *b)
{
    return strcmp(a->heads, b->heads) == 0 && strcmp(a->branches, b->branches) == 0 &&
           strcmp(a->tokens, b->tokens) == 0 && a->uniform == b->uniform && a->greedy == b->greedy &&
           a->bound == b->bound && a->images == b->images;
}

/* Sees to it that the network's ablation is this one, and has seen images. more: goes on, unless it is done. */
static att_status prepare(const att_engine *engine, att_opened *o, const att_engine_cuts *cuts, bool more)
{
    if (o->cut.ablation && !is_same(&o->cut.cuts, cuts))
        att_engine_end_ablation(o);
    const bool fresh = !o->cut.ablation;
    att_status status = fresh ? begin(engine, o, cuts) : ATT_OK;
    if (status == ATT_OK && (fresh || more) && !o->cut.done)
        status = go_on(engine, o);
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
        att_json_put_integer(writer, "seen", o->cut.ablation->pass_count);
        att_json_put_bool(writer, "done", o->cut.done);
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

/* Adds the words of a part: "h3.1r-h3.2r". */
static void append_words(const att_ablation *a, const att_ablated_part *part, att_text *text)
{
    for (int i = 0; i < part->count; i++) {
        const att_cut cut = part->cuts[i];
        const char *dash = text->length > 0 ? "-" : "";
        if (cut.kind == ATT_ABLATED_HEADS)
            att_text_append(text, "%sh%d.%d%c", dash, cut.part, cut.head, a->uniform ? 'u' : 'r');
        else
            att_text_append(text, "%s%c%d", dash, cut.kind == ATT_ABLATED_BRANCHES ? 'b' : 't', cut.part);
    }
}

/* Writes what a part changes; a greedy step has the changes of all earlier ones. */
static att_status write_changes(const att_engine *engine, const att_ablation *a, int part, att_json_writer *writer)
{
    att_text text = {.context = engine->context};
    for (int p = a->greedy ? 0 : part; p <= part; p++)
        append_words(a, &att_ablation_shown(a)->items[p], &text);
    if (!text.failed)
        att_json_put_string(writer, "changes", text.data);
    const att_status status = text.failed ? att_fail_memory(engine->context, text.length, "changes") : ATT_OK;
    att_text_free(&text);
    return status;
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
    ATT_TRY(write_changes(engine, o->cut.ablation, part, writer));
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

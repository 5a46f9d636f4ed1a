#include "serve/engine.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/memory.h"
#include "io/png_write.h"

enum { THUMBNAIL = 96 };
static const int64_t MOST_PIXELS = INT64_C(1) << 25;

typedef struct upload {
    int64_t number; /* from 0; -1: none */
    att_image image;
} upload;

/* An explorer and its last run. */
typedef struct seat {
    att_explorer *explorer; /* NULL: unused */
    float *pixels;
    bool has_pixels, has_run;
    char image[ATT_ENGINE_ID], changes[ATT_ENGINE_CHANGES];
    att_batch answers;
    double milliseconds;
    uint64_t used; /* number of the request that used it last */
} seat;

/* An open network. It has several seats, so that a page that compares it with and without a change does not run it
 * again for each row. */
enum { SEATS = 2 };
typedef struct opened {
    char *path;
    att_network *network;
    seat seats[SEATS];
    struct opened *next;
} opened;

struct att_engine {
    att_context *context; /* its own */
    pthread_mutex_t lock;
    att_dataset *images; /* NULL: none */
    upload uploads[ATT_ENGINE_UPLOADS];
    int64_t upload_count; /* ever */
    opened *first;
    uint64_t requests;
};

/* --- creation ------------------------------------------------------------------------------------------------------
 */

/* Passes the message of the engine's context on to that of the request. */
static att_status pass_on(const att_engine *engine, att_context *context, att_status status)
{
    return status == ATT_OK ? ATT_OK : att_fail(context, status, "%s", att_context_message(engine->context));
}

static att_status open_images(att_engine *engine, const char *path)
{
    att_dataset_options options = att_dataset_options_defaults();
    options.limits.pixels = MOST_PIXELS;
    return path ? att_dataset_open_images(engine->context, &path, 1, &options, &engine->images) : ATT_OK;
}

att_status att_engine_create(att_context *context, const char *images, att_engine **out)
{
    att_context *own = NULL;
    if (att_context_create(NULL, &own) != ATT_OK)
        return att_fail_memory(context, sizeof(att_engine), "an engine");
    att_engine *engine = att_allocate(own, sizeof *engine);
    if (!engine) {
        att_context_destroy(&own);
        return att_fail_memory(context, sizeof *engine, "an engine");
    }
    engine->context = own;
    pthread_mutex_init(&engine->lock, NULL);
    att_status status = pass_on(engine, context, open_images(engine, images));
    if (status == ATT_OK)
        *out = engine;
    else
        att_engine_destroy(&engine);
    return status;
}

static void close_opened(att_engine *engine, opened *o)
{
    for (int i = 0; i < SEATS; i++) {
        att_explorer_destroy(&o->seats[i].explorer);
        att_free(engine->context, o->seats[i].pixels);
    }
    att_network_close(&o->network);
    att_free(engine->context, o->path);
    att_free(engine->context, o);
}

void att_engine_destroy(att_engine **out)
{
    if (!out || !*out)
        return;
    att_engine *engine = *out;
    att_context *context = engine->context;
    while (engine->first) {
        opened *o = engine->first;
        engine->first = o->next;
        close_opened(engine, o);
    }
    for (int i = 0; i < ATT_ENGINE_UPLOADS; i++)
        att_image_free(context, &engine->uploads[i].image);
    att_dataset_close(&engine->images);
    pthread_mutex_destroy(&engine->lock);
    att_free(context, engine);
    att_context_destroy(&context);
    *out = NULL;
}

/* --- images --------------------------------------------------------------------------------------------------------
 */

static void write_image(att_json_writer *writer, const char *id, const char *name)
{
    att_json_begin_object(writer);
    att_json_key(writer, "id");
    att_json_string(writer, id);
    att_json_key(writer, "name");
    att_json_string(writer, name);
    att_json_end_object(writer);
}

att_status att_engine_write_images(att_engine *engine, att_context *context, int64_t first, int64_t count,
                                   att_json_writer *writer)
{
    (void)context;
    char id[ATT_ENGINE_ID], name[256];
    const int64_t all = engine->images ? att_dataset_count(engine->images) : 0;
    att_json_key(writer, "images");
    att_json_begin_array(writer);
    for (int64_t i = first; i < all && i - first < count; i++) {
        snprintf(id, sizeof id, "d%lld", (long long)i);
        write_image(writer, id, att_dataset_short_name(engine->images, i, name, sizeof name));
    }
    att_json_end_array(writer);
    att_json_key(writer, "count");
    att_json_integer(writer, all);
    return ATT_OK;
}

att_status att_engine_upload(att_engine *engine, att_context *context, const void *bytes, size_t size,
                             char id[static ATT_ENGINE_ID])
{
    att_image_limits limits = att_image_limits_defaults();
    att_image image = {0};
    limits.pixels = MOST_PIXELS;
    if (size == 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "the upload is empty, expected a JPEG, PNG or WebP image");
    pthread_mutex_lock(&engine->lock);
    att_status status = pass_on(engine, context, att_image_decode(engine->context, bytes, size, 3, &limits, &image));
    if (status == ATT_OK) {
        upload *kept = &engine->uploads[engine->upload_count % ATT_ENGINE_UPLOADS];
        att_image_free(engine->context, &kept->image);
        *kept = (upload){.number = engine->upload_count++, .image = image};
        snprintf(id, ATT_ENGINE_ID, "u%lld", (long long)kept->number);
    }
    pthread_mutex_unlock(&engine->lock);
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

static const upload *find_upload(const att_engine *engine, int64_t number)
{
    const upload *kept = &engine->uploads[number % ATT_ENGINE_UPLOADS];
    return kept->image.pixels && kept->number == number ? kept : NULL;
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

static att_status copy_image(const att_engine *engine, const att_image *image, att_image *copy)
{
    const size_t count = (size_t)image->width * (size_t)image->height * (size_t)image->channels;
    *copy = *image;
    copy->pixels = att_allocate(engine->context, count);
    if (!copy->pixels)
        return att_fail_memory(engine->context, count, "an image");
    memcpy(copy->pixels, image->pixels, count);
    return ATT_OK;
}

/* Decodes an image; the caller frees it. */
static att_status read_image(const att_engine *engine, const char *id, int channels, att_image *image)
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
    const upload *kept = find_upload(engine, number);
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
    att_status status = read_image(engine, id, 3, &image);
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
    pthread_mutex_lock(&engine->lock);
    att_status status = pass_on(engine, context, make_thumbnail(engine, image, out));
    pthread_mutex_unlock(&engine->lock);
    return status;
}

/* --- networks ------------------------------------------------------------------------------------------------------
 */

static att_status prepare_seat(const att_engine *engine, const opened *o, seat *s)
{
    const att_transform_options transform = att_network_transform(o->network);
    const size_t count = (size_t)transform.height * (size_t)transform.width * (size_t)transform.channels;
    if (!s->explorer)
        ATT_TRY(att_explorer_create(o->network, &s->explorer));
    if (!s->pixels)
        s->pixels = att_allocate_array(engine->context, count, sizeof *s->pixels);
    return s->pixels ? ATT_OK : att_fail_memory(engine->context, count * sizeof *s->pixels, "an image");
}

static att_status open_path(att_engine *engine, const char *path, opened *o)
{
    o->path = att_copy_string(engine->context, path);
    if (!o->path)
        return att_fail_memory(engine->context, strlen(path), "the path of a checkpoint");
    ATT_TRY(att_network_open(engine->context, path, NULL, &o->network));
    return prepare_seat(engine, o, &o->seats[0]);
}

static att_status find_network(att_engine *engine, const char *path, opened **found)
{
    for (opened *o = engine->first; o; o = o->next)
        if (strcmp(o->path, path) == 0) {
            *found = o;
            return ATT_OK;
        }
    opened *o = att_allocate(engine->context, sizeof *o);
    if (!o)
        return att_fail_memory(engine->context, sizeof *o, "a network");
    att_status status = open_path(engine, path, o);
    if (status != ATT_OK) {
        close_opened(engine, o);
        return status;
    }
    o->next = engine->first;
    engine->first = *found = o;
    return ATT_OK;
}

static void write_integer(att_json_writer *writer, const char *key, int64_t value)
{
    att_json_key(writer, key);
    att_json_integer(writer, value);
}

static void write_layer(att_json_writer *writer, const att_explorer_layer *layer)
{
    att_json_begin_object(writer);
    att_json_key(writer, "node");
    att_json_string(writer, layer->scope);
    write_integer(writer, "heads", layer->heads);
    write_integer(writer, "queries", layer->queries);
    write_integer(writer, "tokens", layer->tokens);
    write_integer(writer, "prefix", layer->prefix);
    write_integer(writer, "grid_h", layer->grid_h);
    write_integer(writer, "grid_w", layer->grid_w);
    write_integer(writer, "window_h", layer->window_h);
    write_integer(writer, "window_w", layer->window_w);
    write_integer(writer, "shift_h", layer->shift_h);
    write_integer(writer, "shift_w", layer->shift_w);
    att_json_key(writer, "content");
    att_json_bool(writer, layer->content);
    att_json_key(writer, "positions");
    att_json_bool(writer, layer->positions);
    att_json_end_object(writer);
}

static void write_network(const opened *o, att_json_writer *writer)
{
    const att_explorer *explorer = o->seats[0].explorer;
    att_json_key(writer, "network");
    att_json_string(writer, att_model_name(att_network_model(o->network)));
    att_json_key(writer, "layers");
    att_json_begin_array(writer);
    for (int l = 0; l < att_explorer_layer_count(explorer); l++) {
        const att_explorer_layer layer = att_explorer_layer_at(explorer, l);
        write_layer(writer, &layer);
    }
    att_json_end_array(writer);
    att_json_key(writer, "branches");
    att_json_begin_array(writer);
    for (int b = 0; b < att_explorer_branch_count(explorer); b++)
        att_json_string(writer, att_explorer_branch_at(explorer, b));
    att_json_end_array(writer);
    write_integer(writer, "tokens",
                  att_explorer_has_removable_tokens(explorer) ? att_explorer_layer_at(explorer, 0).tokens : 0);
    write_integer(writer, "classes", att_model_classes(att_network_model(o->network)));
}

att_status att_engine_write_model(att_engine *engine, att_context *context, const char *path, att_json_writer *writer)
{
    opened *o;
    pthread_mutex_lock(&engine->lock);
    att_status status = pass_on(engine, context, find_network(engine, path, &o));
    if (status == ATT_OK)
        write_network(o, writer);
    pthread_mutex_unlock(&engine->lock);
    return status;
}

/* --- changes -------------------------------------------------------------------------------------------------------
 */

static att_status fail_change(const att_engine *engine, const char *word, size_t length)
{
    return att_fail(engine->context, ATT_ERR_ARGUMENT,
                    "the change \"%.*s\" is none of h<layer>.<head>r, h<layer>.<head>u, b<branch>, t<token>",
                    (int)(length < 40 ? length : 40), word);
}

/* Reads a number below 10^6 and moves *at behind it. */
static bool read_number(const char **at, int *number)
{
    int digits = 0;
    for (*number = 0; **at >= '0' && **at <= '9' && digits < 6; digits++)
        *number = *number * 10 + *(*at)++ - '0';
    return digits > 0;
}

static att_status change_one(const att_engine *engine, att_explorer *explorer, const char *word, size_t length)
{
    const char *at = word + 1;
    int first, head;
    if (length < 2 || !read_number(&at, &first))
        return fail_change(engine, word, length);
    if (*word == 'h' && *at++ == '.' && read_number(&at, &head) && at + 1 == word + length &&
        (*at == 'r' || *at == 'u'))
        return att_explorer_change_head(explorer, first, head, *at == 'r' ? ATT_HEAD_REMOVED : ATT_HEAD_UNIFORM);
    if (*word == 'b' && at == word + length)
        return att_explorer_remove_branch(explorer, first, true);
    if (*word == 't' && at == word + length)
        return att_explorer_remove_token(explorer, first, true);
    return fail_change(engine, word, length);
}

static att_status change(const att_engine *engine, att_explorer *explorer, const char *changes)
{
    att_explorer_reset(explorer);
    for (const char *word = changes; *word;) {
        size_t length = strcspn(word, "-");
        ATT_TRY(change_one(engine, explorer, word, length));
        word += length + (word[length] == '-');
    }
    return ATT_OK;
}

/* --- runs ----------------------------------------------------------------------------------------------------------
 */

/* Prepares the image, unless the seat has it. */
static att_status load_pixels(const att_engine *engine, const opened *o, const char *id, seat *s)
{
    const att_transform_options transform = att_network_transform(o->network);
    att_image image = {0};
    if (s->has_pixels && strcmp(s->image, id) == 0)
        return ATT_OK;
    s->has_pixels = s->has_run = false;
    ATT_TRY(read_image(engine, id, transform.channels, &image));
    att_status status = att_transform_image(engine->context, &transform, &image, 0, 0, 0, s->pixels);
    att_image_free(engine->context, &image);
    snprintf(s->image, sizeof s->image, "%s", id);
    s->has_pixels = status == ATT_OK;
    return status;
}

static bool has_view(const seat *s, const att_engine_view *view)
{
    return s->has_run && strcmp(s->image, view->image) == 0 && strcmp(s->changes, view->changes) == 0;
}

/* The seat with the view, else the one that was used least recently. */
static seat *choose_seat(opened *o, const att_engine_view *view)
{
    seat *oldest = &o->seats[0];
    for (int i = 0; i < SEATS; i++) {
        if (has_view(&o->seats[i], view))
            return &o->seats[i];
        if (o->seats[i].used < oldest->used)
            oldest = &o->seats[i];
    }
    return oldest;
}

static att_status run_seat(const att_engine *engine, const opened *o, const att_engine_view *view, seat *s)
{
    ATT_TRY(prepare_seat(engine, o, s));
    ATT_TRY(load_pixels(engine, o, view->image, s));
    s->has_run = false;
    ATT_TRY(change(engine, s->explorer, view->changes));
    const double start = att_seconds_now();
    ATT_TRY(att_explorer_run(s->explorer, s->pixels, &s->answers));
    s->milliseconds = 1000 * (att_seconds_now() - start);
    snprintf(s->changes, sizeof s->changes, "%s", view->changes);
    s->has_run = true;
    return ATT_OK;
}

/* Runs the network for the view, unless a seat has it. */
static att_status run_view(att_engine *engine, const att_engine_view *view, opened **found, seat **taken)
{
    ATT_TRY(find_network(engine, view->path, found));
    if (strlen(view->changes) >= ATT_ENGINE_CHANGES)
        return att_fail(engine->context, ATT_ERR_ARGUMENT, "the changes have more than %d bytes",
                        ATT_ENGINE_CHANGES - 1);
    seat *s = *taken = choose_seat(*found, view);
    s->used = ++engine->requests;
    return has_view(s, view) ? ATT_OK : run_seat(engine, *found, view, s);
}

static att_status write_answer(const opened *o, const seat *s, att_json_writer *writer)
{
    const att_transform_options transform = att_network_transform(o->network);
    att_answer_options options = att_answer_options_defaults();
    options.outputs = true;
    att_json_key(writer, "input");
    att_json_begin_array(writer);
    att_json_integer(writer, transform.height);
    att_json_integer(writer, transform.width);
    att_json_integer(writer, transform.channels);
    att_json_end_array(writer);
    att_json_key(writer, "milliseconds");
    att_json_number(writer, s->milliseconds);
    return att_model_classes(att_network_model(o->network)) > 0
               ? att_network_write(o->network, &s->answers, &options, writer)
               : ATT_OK;
}

att_status att_engine_write_answer(att_engine *engine, att_context *context, const att_engine_view *view,
                                   att_json_writer *writer)
{
    opened *o;
    seat *s;
    pthread_mutex_lock(&engine->lock);
    att_status status = run_view(engine, view, &o, &s);
    if (status == ATT_OK)
        status = write_answer(o, s, writer);
    status = pass_on(engine, context, status);
    pthread_mutex_unlock(&engine->lock);
    return status;
}

static void append_input(const opened *o, const seat *s, att_text *out)
{
    const att_transform_options t = att_network_transform(o->network);
    const size_t count = (size_t)t.height * (size_t)t.width * (size_t)t.channels;
    for (size_t i = 0; i < count; i++) {
        const size_t c = i % (size_t)t.channels;
        const double value = 255 * ((double)s->pixels[i] * t.std[c] + t.mean[c]);
        att_text_append_bytes(out, &(uint8_t){value >= 255 ? 255 : value > 0 ? (uint8_t)lround(value) : 0}, 1);
    }
}

att_status att_engine_input(att_engine *engine, att_context *context, const att_engine_view *view, att_text *out)
{
    opened *o;
    seat *s;
    pthread_mutex_lock(&engine->lock);
    att_status status = run_view(engine, view, &o, &s);
    if (status == ATT_OK)
        append_input(o, s, out);
    status = pass_on(engine, context, status);
    pthread_mutex_unlock(&engine->lock);
    return out->failed ? att_fail_memory(context, out->length, "an image") : status;
}

/* --- weights -------------------------------------------------------------------------------------------------------
 */

/* What all layers of a request share. */
typedef struct weights {
    const att_explorer *explorer;
    att_engine_way way;
    const att_row_options *options;
    float *rows;  /* scratch: [H, N] */
    double *sums; /* scratch: [H, N] and [N] after it */
} weights;

static void narrow(const double *from, int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)from[i];
}

/* Writes the numbers of a layer to w->rows, and their count to *count. */
static att_status find_weights(const weights *w, int number, int query, int64_t *count)
{
    const att_explorer_layer layer = att_explorer_layer_at(w->explorer, number);
    *count = (int64_t)layer.heads * layer.tokens;
    if (w->way == ATT_ENGINE_ROW)
        return att_explorer_row(w->explorer, number, query, w->options, w->rows);
    if (w->way == ATT_ENGINE_MEAN) {
        double *share = w->sums + *count;
        for (int i = 0; i < layer.queries; i++)
            share[i] = 1.0 / layer.queries;
        ATT_TRY(att_explorer_sum(w->explorer, number, share, w->sums));
    } else {
        *count = layer.tokens;
        ATT_TRY(att_explorer_rollout(w->explorer, number, query, w->sums));
    }
    narrow(w->sums, *count, w->rows);
    return ATT_OK;
}

static att_status append_layers(const weights *w, const int *queries, att_text *out)
{
    for (int l = 0; l < att_explorer_layer_count(w->explorer); l++) {
        int64_t count;
        ATT_TRY(find_weights(w, l, queries ? queries[l] : 0, &count));
        att_text_append_bytes(out, w->rows, (size_t)count * sizeof *w->rows);
    }
    return ATT_OK;
}

static size_t most_numbers(const att_explorer *explorer)
{
    size_t most = 1;
    for (int l = 0; l < att_explorer_layer_count(explorer); l++) {
        const att_explorer_layer layer = att_explorer_layer_at(explorer, l);
        const int tokens = layer.queries > layer.tokens ? layer.queries : layer.tokens;
        const size_t numbers = (size_t)(layer.heads + 1) * (size_t)tokens;
        most = numbers > most ? numbers : most;
    }
    return most;
}

static att_status append_weights(const att_engine *engine, const att_explorer *explorer, att_engine_way way,
                                 const int *queries, int query_count, const att_row_options *options, att_text *out)
{
    weights w = {.explorer = explorer, .way = way, .options = options};
    const size_t numbers = most_numbers(explorer);
    if (way != ATT_ENGINE_MEAN && query_count != att_explorer_layer_count(explorer))
        return att_fail(engine->context, ATT_ERR_ARGUMENT, "%d queries, but the network has %d attention layers",
                        query_count, att_explorer_layer_count(explorer));
    w.rows = att_allocate_array(engine->context, numbers, sizeof *w.rows);
    w.sums = att_allocate_array(engine->context, numbers, sizeof *w.sums);
    att_status status = w.rows && w.sums ? append_layers(&w, way == ATT_ENGINE_MEAN ? NULL : queries, out)
                                         : att_fail_memory(engine->context, numbers * sizeof *w.sums, "weights");
    att_free(engine->context, w.sums);
    att_free(engine->context, w.rows);
    return status;
}

att_status att_engine_weights(att_engine *engine, att_context *context, const att_engine_view *view, att_engine_way way,
                              const int *queries, int query_count, const att_row_options *options, att_text *out)
{
    opened *o;
    seat *s;
    pthread_mutex_lock(&engine->lock);
    att_status status = run_view(engine, view, &o, &s);
    if (status == ATT_OK)
        status = append_weights(engine, s->explorer, way, queries, query_count, options, out);
    status = pass_on(engine, context, status);
    pthread_mutex_unlock(&engine->lock);
    return out->failed ? att_fail_memory(context, out->length, "weights of attention") : status;
}

/* Views: an image in a network with changes, and its weights of attention. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/clock.h"
#include "lab/runs/ablation/ablation.h"
#include "lab/serve/engine_parts.h"
#include "networks/tasks/answer.h"
#include "networks/tasks/draw.h"
#include "networks/tasks/pixels.h"
#include "study/explore/explorer.h"
#include "study/network/network.h"

/* --- changes ------------------------------------------------------------------------------------------------------ */

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

/* --- runs --------------------------------------------------------------------------------------------------------- */

static att_status transform_image(const att_engine *engine, att_transform_options transform, const att_image *image,
                                  float **pixels, att_geometry *place)
{
    ATT_TRY(att_transform_geometry(engine->context, &transform, image->width, image->height, place));
    transform.height = place->height;
    transform.width = place->width;
    const size_t count = (size_t)transform.height * (size_t)transform.width * (size_t)transform.channels;
    ATT_TRY(att_new(engine->context, pixels, count, "an image"));
    const att_status status = att_transform_image(engine->context, &transform, image, 0, 0, 0, *pixels);
    if (status != ATT_OK)
        att_free(engine->context, *pixels);
    return status;
}

att_status att_engine_load(const att_engine *engine, const att_transform_options *transform, const char *id,
                           float **pixels, att_geometry *place)
{
    att_image image = {0};
    ATT_TRY(att_engine_read_image(engine, id, transform->channels, &image));
    const att_status status = transform_image(engine, *transform, &image, pixels, place);
    att_image_free(engine->context, &image);
    return status;
}

static att_status load_pixels(const att_engine *engine, const att_opened *o, const char *id, att_seat *s)
{
    const att_transform_options transform = att_network_photograph_transform(o->network);
    float *pixels;
    att_geometry place;
    ATT_TRY(att_engine_load(engine, &transform, id, &pixels, &place));
    att_free(engine->context, s->pixels);
    s->pixels = pixels;
    s->place = place;
    return ATT_OK;
}

static att_status load_text(const att_engine *engine, const att_opened *o, const char *id, att_seat *s)
{
    att_token_texts text;
    ATT_TRY(att_engine_tokenize(engine, o, id, &text));
    att_token_texts_free(engine->context, &s->text);
    s->text = text;
    return ATT_OK;
}

static att_status check_kind(const att_engine *engine, const att_opened *o, const char *id)
{
    const char *network = att_model_name(att_network_model(o->network));
    if (att_engine_reads_texts(o) && (*id == 'd' || *id == 'u'))
        return att_fail(engine->context, ATT_ERR_UNSUPPORTED, "%s reads texts, and %s is an image", network, id);
    if (!att_engine_reads_texts(o) && *id == 't')
        return att_fail(engine->context, ATT_ERR_UNSUPPORTED, "%s reads images, and this is a text", network);
    return ATT_OK;
}

/* Prepares the image or the text, unless the seat has it. */
static att_status load(const att_engine *engine, const att_opened *o, const char *id, att_seat *s)
{
    if ((s->pixels || s->text.count > 0) && strcmp(s->image, id) == 0)
        return ATT_OK;
    s->has_run = false;
    ATT_TRY(check_kind(engine, o, id));
    ATT_TRY(att_engine_reads_texts(o) ? load_text(engine, o, id, s) : load_pixels(engine, o, id, s));
    snprintf(s->image, sizeof s->image, "%s", id);
    return ATT_OK;
}

static bool has_view(const att_seat *s, const att_engine_view *view)
{
    return s->has_run && strcmp(s->image, view->image) == 0 && strcmp(s->changes, view->changes) == 0;
}

/* The seat with the view, else the one that was used least recently. */
static att_seat *choose_seat(att_opened *o, const att_engine_view *view)
{
    att_seat *oldest = &o->seats[0];
    for (int i = 0; i < ATT_SEATS; i++) {
        if (has_view(&o->seats[i], view))
            return &o->seats[i];
        if (o->seats[i].used < oldest->used)
            oldest = &o->seats[i];
    }
    return oldest;
}

static att_status run_seat(const att_engine *engine, const att_opened *o, const att_engine_view *view, att_seat *s)
{
    att_seat_inputs room;
    ATT_TRY(load(engine, o, view->image, s));
    ATT_TRY(att_engine_prepare_seat(o, s));
    s->has_run = false;
    ATT_TRY(change(engine, s->explorer, view->changes));
    const double start = att_seconds_now();
    const att_batch inputs = att_engine_seat_inputs(o, s, &room);
    ATT_TRY(att_explorer_run_placed(s->explorer, &inputs, s->text.count > 0 ? NULL : &s->place, &s->answers));
    s->milliseconds = 1000 * (att_seconds_now() - start);
    snprintf(s->changes, sizeof s->changes, "%s", view->changes);
    s->has_run = true;
    return ATT_OK;
}

/* Runs an open network for the view, unless a seat has it. */
static att_status run_view(att_engine *engine, att_opened *o, const att_engine_view *view, att_seat **taken)
{
    if (strlen(view->changes) >= ATT_ENGINE_CHANGES)
        return att_fail(engine->context, ATT_ERR_ARGUMENT, "the changes have more than %d bytes",
                        ATT_ENGINE_CHANGES - 1);
    att_seat *s = *taken = choose_seat(o, view);
    s->used = ++engine->requests;
    return has_view(s, view) ? ATT_OK : run_seat(engine, o, view, s);
}

att_status att_engine_run(att_engine *engine, const att_engine_view *view, att_opened **found, att_seat **taken)
{
    ATT_TRY(att_engine_find(engine, view->path, found));
    return run_view(engine, *found, view, taken);
}

static void write_integers(att_json_writer *writer, const char *key, const int *values, int count)
{
    att_json_put_array(writer, key);
    for (int i = 0; i < count; i++)
        att_json_integer(writer, values[i]);
    att_json_end_array(writer);
}

static void write_place(const att_geometry *place, int channels, att_json_writer *writer)
{
    write_integers(writer, "input", (const int[]){place->height, place->width, channels}, 3);
    write_integers(writer, "photograph", (const int[]){place->from_height, place->from_width}, 2);
    att_json_put_array(writer, "map");
    for (int i = 0; i < 6; i++)
        att_json_number(writer, place->map[i / 3][i % 3]);
    att_json_end_array(writer);
}

/* Compares the vector with that of the unchanged network, which runs in another seat. */
static att_status write_vector(att_engine *engine, att_opened *o, const att_seat *s, const att_engine_view *view,
                               att_json_writer *writer)
{
    const char *name = att_engine_vector(o);
    const att_engine_view unchanged = {view->path, view->image, ""};
    att_seat *first;
    ATT_TRY(run_view(engine, o, &unchanged, &first));
    const void *vector;
    const int64_t width = att_shape_count(att_answer_field(&s->answers, name, &vector)->shape);
    att_json_put_object(writer, "vector");
    att_json_put_string(writer, "name", name);
    att_json_put_integer(writer, "width", width);
    att_json_put_number(writer, "distance",
                        att_ablation_distance(vector, att_batch_field(&first->answers, name), width));
    att_json_end_object(writer);
    return ATT_OK;
}

/* Why a projection gives no classes is in "no_classes". */
static att_status write_answer(att_engine *engine, att_opened *o, const att_seat *s, const att_engine_view *view,
                               att_json_writer *writer)
{
    att_answer_options options = att_answer_options_defaults();
    options.outputs = true;
    if (s->text.count > 0)
        att_engine_write_text(&s->text, writer);
    else {
        options.geometry = &s->place;
        write_place(&s->place, att_network_transform(o->network).channels, writer);
    }
    att_json_put_number(writer, "milliseconds", s->milliseconds);
    att_engine_write_layers(s->explorer, writer);
    if (att_engine_has_classes(o))
        return att_network_write(o->network, &s->answers, &options, writer);
    if (att_model_classes(att_network_model(o->network)) > 0)
        att_json_put_string(writer, "no_classes", att_context_message(engine->context));
    return write_vector(engine, o, s, view, writer);
}

att_status att_engine_write_answer(att_engine *engine, att_context *context, const att_engine_view *view,
                                   att_json_writer *writer)
{
    att_opened *o;
    att_seat *s;
    ATT_TRY(att_engine_enter(engine, context));
    att_status status = att_engine_run(engine, view, &o, &s);
    if (status == ATT_OK)
        status = write_answer(engine, o, s, view, writer);
    return att_engine_leave(engine, status);
}

static void append_input(const att_opened *o, const att_seat *s, att_text *out)
{
    const att_transform_options t = att_network_transform(o->network);
    const size_t count = (size_t)s->height * (size_t)s->width * (size_t)t.channels;
    for (size_t i = 0; i < count; i++) {
        const size_t c = i % (size_t)t.channels;
        const double value = 255 * ((double)s->pixels[i] * t.std[c] + t.mean[c]);
        att_text_append_bytes(out, &(uint8_t){value >= 255 ? 255 : value > 0 ? (uint8_t)lround(value) : 0}, 1);
    }
}

att_status att_engine_input(att_engine *engine, att_context *context, const att_engine_view *view, att_text *out)
{
    att_opened *o;
    att_seat *s;
    ATT_TRY(att_engine_enter(engine, context));
    att_status status = att_engine_run(engine, view, &o, &s);
    if (status == ATT_OK && s->text.count > 0)
        status =
            att_fail(engine->context, ATT_ERR_UNSUPPORTED, "the input of this network is a text, which has no pixels");
    if (status == ATT_OK)
        append_input(o, s, out);
    status = att_engine_leave(engine, status);
    return out->failed ? att_fail_memory(context, out->length, "an image") : status;
}

/* Draws the answer into the network's input. */
static att_status draw_input(const att_engine *engine, const att_opened *o, const att_seat *s, att_drawing *drawing)
{
    const att_model *model = att_network_model(o->network);
    const int channels = att_network_transform(o->network).channels;
    att_text pixels = {.context = engine->context};
    append_input(o, s, &pixels);
    const att_image input = {s->width, s->height, channels, (uint8_t *)pixels.data};
    att_status status = pixels.failed
                            ? att_fail_memory(engine->context, pixels.length, "an image")
                            : att_task_draw(engine->context, att_model_task(model).name, att_model_classes(model),
                                            &s->answers, NULL, &input, NULL, drawing);
    if (status == ATT_OK && !drawing->classes.classes)
        status = att_fail(engine->context, ATT_ERR_UNSUPPORTED, "networks of the task \"%s\" give pixels no class",
                          att_model_task(model).name);
    att_text_free(&pixels);
    return status;
}

att_status att_engine_classes(att_engine *engine, att_context *context, const att_engine_view *view, att_text *out)
{
    att_opened *o;
    att_seat *s;
    att_drawing drawing = {0};
    ATT_TRY(att_engine_enter(engine, context));
    att_status status = att_engine_run(engine, view, &o, &s);
    if (status == ATT_OK)
        status = draw_input(engine, o, s, &drawing);
    const att_mask *mask = &drawing.classes;
    att_text_append_bytes(out, mask->classes, (size_t)mask->width * (size_t)mask->height * sizeof *mask->classes);
    att_drawing_free(engine->context, &drawing);
    status = att_engine_leave(engine, status);
    return out->failed ? att_fail_memory(context, out->length, "the classes of an image") : status;
}

static att_status append_logits(const att_engine *engine, const att_opened *o, const att_seat *s, int row, int column,
                                att_text *out)
{
    att_pixel_logits map;
    float *logits;
    if (row >= s->height || column >= s->width)
        return att_fail(engine->context, ATT_ERR_ARGUMENT,
                        "row %d, column %d is no pixel of the network's input, which has %d rows and %d columns", row,
                        column, s->height, s->width);
    ATT_TRY(
        att_pixel_logits_of(engine->context, att_model_task(att_network_model(o->network)).name, &s->answers, &map));
    ATT_TRY(att_new(engine->context, &logits, (size_t)map.classes, "the logits of a pixel"));
    att_pixel_logits_at(&map, s->width, s->height, column + 0.5, row + 0.5, logits);
    att_text_append_bytes(out, logits, (size_t)map.classes * sizeof *logits);
    att_free(engine->context, logits);
    return ATT_OK;
}

att_status att_engine_logits(att_engine *engine, att_context *context, const att_engine_view *view, int row, int column,
                             att_text *out)
{
    att_opened *o;
    att_seat *s;
    ATT_TRY(att_engine_enter(engine, context));
    att_status status = att_engine_run(engine, view, &o, &s);
    if (status == ATT_OK)
        status = append_logits(engine, o, s, row, column, out);
    status = att_engine_leave(engine, status);
    return out->failed ? att_fail_memory(context, out->length, "the logits of a pixel") : status;
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

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
    att_opened *o;
    att_seat *s;
    ATT_TRY(att_engine_enter(engine, context));
    att_status status = att_engine_run(engine, view, &o, &s);
    if (status == ATT_OK)
        status = append_weights(engine, s->explorer, way, queries, query_count, options, out);
    status = att_engine_leave(engine, status);
    return out->failed ? att_fail_memory(context, out->length, "weights of attention") : status;
}

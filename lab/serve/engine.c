#include "lab/serve/engine.h"

#include <stdio.h>
#include <string.h>

#include "lab/serve/engine_parts.h"
#include "networks/models/inputs.h"
#include "networks/tasks/draw.h"
#include "study/explore/explorer.h"
#include <attscope/lab/json.h>
#include <attscope/lab/runs.h>

/* --- creation ----------------------------------------------------------------------------------------------------- */

/* Passes the message of the engine's context on to that of the caller. Returns `status`. */
static att_status pass_on(const att_engine *engine, att_context *context, att_status status)
{
    return status == ATT_OK ? ATT_OK : att_fail(context, status, "%s", att_context_message(engine->context));
}

static bool is_stop_asked(void *user)
{
    const att_engine *engine = user;
    return engine->asking && att_stop_asked(engine->asking);
}

static att_status open_images(att_engine *engine, const char *path)
{
    att_dataset_options options = att_dataset_options_defaults();
    options.limits = att_engine_image_limits();
    return path ? att_dataset_open_images(engine->context, &path, 1, &options, &engine->images) : ATT_OK;
}

/* NULL stays NULL. */
static att_status keep_text(const att_engine *engine, const char *text, char **kept)
{
    *kept = text ? att_copy_string(engine->context, text) : NULL;
    return !text || *kept ? ATT_OK : att_fail_memory(engine->context, strlen(text), text);
}

static att_status take_options(att_engine *engine, const att_engine_options *options)
{
    ATT_TRY(keep_text(engine, options->network, &engine->network));
    ATT_TRY(keep_text(engine, options->labels, &engine->labels));
    ATT_TRY(keep_text(engine, options->images, &engine->folder));
    ATT_TRY(keep_text(engine, options->tokenizer, &engine->tokenizer));
    if (options->texts)
        ATT_TRY(att_text_file_read(engine->context, options->texts, &engine->texts));
    return open_images(engine, options->images);
}

att_status att_engine_create(att_context *context, const att_engine_options *options, att_engine **out)
{
    att_engine *engine;
    ATT_TRY(att_new(context, &engine, 1, "an engine"));
    att_settings settings = att_settings_defaults();
    settings.stop = is_stop_asked;
    settings.stop_user = engine;
    if (att_context_create(&settings, &engine->context) != ATT_OK) {
        att_free(context, engine);
        return att_fail_memory(context, sizeof *engine, "an engine");
    }
    engine->owner = context;
    engine->upload_bytes = ATT_ENGINE_UPLOAD_BYTES;
    pthread_mutex_init(&engine->lock, NULL);
    pthread_mutex_init(&engine->uploading, NULL);
    att_status status = pass_on(engine, context, take_options(engine, options));
    if (status == ATT_OK)
        *out = engine;
    else
        att_engine_destroy(&engine);
    return status;
}

static void close_opened(att_engine *engine, att_opened *o)
{
    for (int i = 0; i < ATT_SEATS; i++) {
        att_relevance_destroy(&o->seats[i].relevance);
        att_explorer_destroy(&o->seats[i].explorer);
        att_free(engine->context, o->seats[i].pixels);
        att_token_texts_free(engine->context, &o->seats[i].text);
    }
    att_engine_end_ablation(o);
    att_engine_end_comparison(engine->context, o);
    att_engine_end_means(o);
    att_network_close(&o->network);
    att_free(engine->context, o->path);
    att_free(engine->context, o);
}

static void free_label(const att_engine *engine, att_labelled *label)
{
    att_free(engine->context, label->path);
    att_free(engine->context, label->given);
    att_free(engine->context, label);
}

void att_engine_destroy(att_engine **out)
{
    if (!out || !*out)
        return;
    att_engine *engine = *out;
    att_context *context = engine->context;
    while (engine->first) {
        att_opened *o = engine->first;
        engine->first = o->next;
        close_opened(engine, o);
    }
    while (engine->labelled) {
        att_labelled *label = engine->labelled;
        engine->labelled = label->next;
        free_label(engine, label);
    }
    for (int i = 0; i < ATT_ENGINE_UPLOADS; i++)
        att_image_free(context, &engine->uploads[i].image);
    att_dataset_close(&engine->images);
    att_free(context, engine->network);
    att_free(context, engine->labels);
    att_free(context, engine->folder);
    att_free(context, engine->tokenizer);
    att_text_file_free(context, &engine->texts);
    pthread_mutex_destroy(&engine->uploading);
    pthread_mutex_destroy(&engine->lock);
    att_context_destroy(&context);
    att_free(engine->owner, engine);
    *out = NULL;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

att_status att_engine_wait(pthread_mutex_t *lock, att_context *context)
{
    pthread_mutex_lock(lock);
    if (!att_stop_asked(context))
        return ATT_OK;
    pthread_mutex_unlock(lock);
    return att_fail(context, ATT_ERR_STOPPED, "the answer is no longer wanted");
}

att_status att_engine_enter(att_engine *engine, att_context *context)
{
    ATT_TRY(att_engine_wait(&engine->lock, context));
    engine->asking = context;
    return ATT_OK;
}

att_status att_engine_leave(att_engine *engine, att_status status)
{
    status = pass_on(engine, engine->asking, status);
    engine->asking = NULL;
    pthread_mutex_unlock(&engine->lock);
    return status;
}

/* --- networks ----------------------------------------------------------------------------------------------------- */

bool att_engine_reads_texts(const att_opened *o)
{
    return att_network_most_tokens(o->network) > 0;
}

bool att_engine_has_classes(const att_opened *o)
{
    return att_engine_reads_texts(o) ? att_model_classes(att_network_model(o->network)) > 0
                                     : att_network_need_head(o->network, NULL) == ATT_OK;
}

const char *att_engine_vector(const att_opened *o)
{
    return att_engine_reads_texts(o) ? "mean" : "features";
}

att_batch att_engine_seat_inputs(const att_opened *o, const att_seat *s, att_seat_inputs *room)
{
    return s->text.count > 0 ? att_network_text_inputs(o->network, s->text.texts, &room->text)
                             : att_engine_inputs(o, s->pixels, &s->place, &room->field, room->data);
}

/* inputs: NULL: of the network's own shapes */
static att_status create_explorer(const att_opened *o, const att_batch *inputs, att_seat *s)
{
    att_explorer_form form = att_explorer_form_whole();
    if (!att_engine_has_classes(o))
        form.outputs = att_engine_vector(o);
    s->has_run = false;
    att_relevance_destroy(&s->relevance);
    att_explorer_destroy(&s->explorer);
    return att_explorer_create_form(o->network, &form, inputs, &s->explorer);
}

att_status att_engine_prepare_seat(const att_opened *o, att_seat *s)
{
    att_seat_inputs room;
    const bool text = s->text.count > 0;
    const int height = text ? 1 : s->place.height, width = text ? s->text.texts->count : s->place.width;
    if (s->explorer && s->height == height && s->width == width)
        return ATT_OK;
    const att_batch inputs = att_engine_seat_inputs(o, s, &room);
    s->height = height;
    s->width = width;
    return create_explorer(o, &inputs, s);
}

/* Prepares a seat for a text of one token, which is compiled soonest. */
static att_status prepare_text(const att_opened *o, att_seat *s)
{
    static const int32_t zero = 0;
    const att_token_ids text = {.tokens = &zero, .types = &zero, .count = 1};
    att_text_inputs room;
    const att_batch inputs = att_network_text_inputs(o->network, &text, &room);
    s->height = s->width = 1;
    return create_explorer(o, &inputs, s);
}

/* Prepares a seat for images of the network's own size, or for a short text. */
static att_status prepare_first(const att_opened *o, att_seat *s)
{
    const att_transform_options transform = att_network_transform(o->network);
    if (att_engine_reads_texts(o))
        return prepare_text(o, s);
    ATT_TRY(att_model_need_image(att_network_model(o->network)));
    s->height = transform.height;
    s->width = transform.width;
    return create_explorer(o, NULL, s);
}

att_batch att_engine_inputs(const att_opened *o, const float *pixels, const att_geometry *place, att_field *field,
                            const void *data[1])
{
    *field = att_model_image(att_network_model(o->network)).field;
    field->shape.dims[0] = place->height;
    field->shape.dims[1] = place->width;
    data[0] = pixels;
    return (att_batch){.count = 1, .field_count = 1, .fields = field, .data = data};
}

static att_labelled *find_label(const att_engine *engine, const char *path)
{
    att_labelled *label = engine->labelled;
    while (label && strcmp(label->path, path) != 0)
        label = label->next;
    return label;
}

static att_status make_label(att_engine *engine, const char *path, const char *given, att_labelled **made)
{
    att_labelled *label;
    ATT_TRY(att_new(engine->context, &label, 1, "the name of a network"));
    label->path = att_copy_string(engine->context, path);
    att_status status = keep_text(engine, given, &label->given);
    if (!label->path || status != ATT_OK) {
        free_label(engine, label);
        return att_fail_memory(engine->context, strlen(path), path);
    }
    label->next = engine->labelled;
    *made = engine->labelled = label;
    return ATT_OK;
}

static const char *given_network(const att_engine *engine, const char *path)
{
    const att_labelled *label = find_label(engine, path);
    return label ? label->given : NULL;
}

att_status att_engine_name_network(att_engine *engine, att_context *context, const char *path, const char *network)
{
    att_labelled *label;
    ATT_TRY(att_engine_enter(engine, context));
    return att_engine_leave(engine, make_label(engine, path, network, &label));
}

/* Finds the network in the header of the checkpoint's file, as open_network() does. */
static att_status identify(const att_engine *engine, const char *path, att_labelled *label)
{
    char file[ATT_RUN_PATH];
    att_tensors *tensors = NULL;
    att_identity identity;
    ATT_TRY(att_network_find_file(engine->context, path, file, sizeof file));
    if (!*file) {
        snprintf(label->network, sizeof label->network, "%s", path);
        return ATT_OK;
    }
    ATT_TRY(att_model_open_file_as(engine->context, file, label->given, &tensors));
    att_status status = att_model_identify(engine->context, tensors, NULL, label->given, NULL, &identity);
    if (status != ATT_OK && !label->given && engine->network)
        status = att_model_identify(engine->context, tensors, NULL, engine->network, NULL, &identity);
    if (status == ATT_OK)
        snprintf(label->network, sizeof label->network, "%s", identity.name);
    att_tensors_close(&tensors);
    return status;
}

static att_status find_network(att_engine *engine, const char *path, char network[static ATT_ENGINE_NETWORK])
{
    att_labelled *label = find_label(engine, path);
    if (!label)
        ATT_TRY(make_label(engine, path, NULL, &label));
    if (!label->looked && identify(engine, path, label) == ATT_ERR_STOPPED)
        return ATT_ERR_STOPPED;
    label->looked = true;
    strcpy(network, label->network);
    return ATT_OK;
}

att_status att_engine_find_network(att_engine *engine, att_context *context, const char *path,
                                   char network[static ATT_ENGINE_NETWORK])
{
    ATT_TRY(att_engine_enter(engine, context));
    return att_engine_leave(engine, find_network(engine, path, network));
}

/* Notes the network of a checkpoint that was opened: its file may have been replaced by that of another one. */
static void note_network(const att_engine *engine, const att_opened *o)
{
    att_labelled *label = find_label(engine, o->path);
    if (!label)
        return;
    snprintf(label->network, sizeof label->network, "%s", att_model_name(att_network_model(o->network)));
    label->looked = true;
}

/* Opens the checkpoint as the network that the user named for it, else as that which it names, else as engine->network.
 */
static att_status open_network(const att_engine *engine, const char *path, att_network **network)
{
    att_network_options options = att_network_options_defaults();
    options.model = given_network(engine, path);
    if (options.model)
        return att_network_open(engine->context, path, &options, network);
    att_status status = att_network_open(engine->context, path, &options, network);
    if (status == ATT_ERR_NOT_FOUND && !engine->network && strchr(path, '/')) {
        char why[1024];
        snprintf(why, sizeof why, "%s", att_context_message(engine->context));
        return att_fail(engine->context, status, "%s (attscope serve NETWORK=%s)", why, path);
    }
    if (status == ATT_OK || !engine->network)
        return status;
    options.model = engine->network;
    return att_network_open(engine->context, path, &options, network);
}

/* The state of the file of weights; zeros for a network without a file. */
static struct stat file_of(const att_opened *o)
{
    struct stat file = {0};
    const att_tensors *weights = att_network_file(o->network);
    if (weights && stat(att_tensors_path(weights), &file) != 0)
        file = (struct stat){0};
    return file;
}

/* Whether the file of weights was replaced or written since it was read, as by a training run. */
static bool is_outdated(const att_opened *o)
{
    const struct stat now = file_of(o), then = o->file;
    return now.st_ino != then.st_ino || now.st_dev != then.st_dev || now.st_size != then.st_size ||
           now.st_mtim.tv_sec != then.st_mtim.tv_sec || now.st_mtim.tv_nsec != then.st_mtim.tv_nsec;
}

/* Sets the names of classes; a network with another number of classes keeps its own. */
static att_status name_classes(const att_engine *engine, att_network *network)
{
    const att_status status = engine->labels ? att_network_name_classes(network, engine->labels) : ATT_OK;
    return status == ATT_ERR_MISMATCH ? ATT_OK : status;
}

static att_status open_path(att_engine *engine, const char *path, att_opened *o)
{
    o->path = att_copy_string(engine->context, path);
    if (!o->path)
        return att_fail_memory(engine->context, strlen(path), "the path of a checkpoint");
    ATT_TRY(open_network(engine, path, &o->network));
    o->file = file_of(o);
    note_network(engine, o);
    ATT_TRY(name_classes(engine, o->network));
    return prepare_first(o, &o->seats[0]);
}

/* Closes the network at this place of the list. */
static void close_at(att_engine *engine, att_opened **at)
{
    att_opened *old = *at;
    *at = old->next;
    close_opened(engine, old);
}

/* Closes the network that was used least recently, if no further one may be open. */
static void make_room(att_engine *engine)
{
    int count = 0;
    att_opened **oldest = &engine->first;
    for (att_opened **at = &engine->first; *at; at = &(*at)->next, count++)
        if ((*at)->used < (*oldest)->used)
            oldest = at;
    if (count >= ATT_ENGINE_NETWORKS)
        close_at(engine, oldest);
}

att_status att_engine_find(att_engine *engine, const char *path, att_opened **found)
{
    att_opened **at = &engine->first;
    while (*at && strcmp((*at)->path, path) != 0)
        at = &(*at)->next;
    if (*at && !is_outdated(*at)) {
        (*at)->used = ++engine->requests;
        *found = *at;
        return ATT_OK;
    }
    if (*at)
        close_at(engine, at);
    make_room(engine);
    att_opened *o;
    ATT_TRY(att_new(engine->context, &o, 1, "a network"));
    att_status status = open_path(engine, path, o);
    if (status != ATT_OK) {
        close_opened(engine, o);
        return status;
    }
    o->used = ++engine->requests;
    o->next = engine->first;
    engine->first = *found = o;
    return ATT_OK;
}

att_status att_engine_open(att_engine *engine, att_context *context, const char *path)
{
    att_opened *o;
    ATT_TRY(att_engine_enter(engine, context));
    return att_engine_leave(engine, att_engine_find(engine, path, &o));
}

static void write_layer(att_json_writer *writer, const att_explorer_layer *layer)
{
    att_json_begin_object(writer);
    att_json_put_string(writer, "node", layer->scope);
    att_json_put_integer(writer, "heads", layer->heads);
    att_json_put_integer(writer, "queries", layer->queries);
    att_json_put_integer(writer, "tokens", layer->tokens);
    att_json_put_integer(writer, "prefix", layer->prefix);
    att_json_put_integer(writer, "grid_h", layer->grid_h);
    att_json_put_integer(writer, "grid_w", layer->grid_w);
    att_json_put_integer(writer, "window_h", layer->window_h);
    att_json_put_integer(writer, "window_w", layer->window_w);
    att_json_put_integer(writer, "shift_h", layer->shift_h);
    att_json_put_integer(writer, "shift_w", layer->shift_w);
    att_json_put_bool(writer, "content", layer->content);
    att_json_put_bool(writer, "positions", layer->positions);
    att_json_end_object(writer);
}

static void write_branch(att_json_writer *writer, att_explorer_branch branch)
{
    att_json_begin_object(writer);
    att_json_put_string(writer, "scope", branch.scope);
    att_json_put_string(writer, "content", branch.content);
    att_json_end_object(writer);
}

void att_engine_write_layers(const att_explorer *explorer, att_json_writer *writer)
{
    att_json_put_array(writer, "layers");
    for (int l = 0; l < att_explorer_layer_count(explorer); l++) {
        const att_explorer_layer layer = att_explorer_layer_at(explorer, l);
        write_layer(writer, &layer);
    }
    att_json_end_array(writer);
    att_json_put_integer(writer, "tokens",
                         att_explorer_has_removable_tokens(explorer) ? att_explorer_layer_at(explorer, 0).tokens : 0);
}

/* Writes the names of the tokens before the patches, in their order. */
static void write_prefix(const att_opened *o, att_json_writer *writer)
{
    const att_option_values *options = att_model_options(att_network_model(o->network));
    const int registers = (int)att_options_number(options, "reg_tokens", 0);
    att_json_put_array(writer, "prefix");
    if (att_options_number(options, "class_token", 0) > 0)
        att_json_string(writer, "class token");
    if (att_options_number(options, "distilled", 0) > 0)
        att_json_string(writer, "distillation token");
    for (int i = 0; i < registers; i++) {
        char name[32];
        snprintf(name, sizeof name, "register %d", i);
        att_json_string(writer, name);
    }
    att_json_end_array(writer);
}

static void write_network(const att_opened *o, att_json_writer *writer)
{
    const att_explorer *explorer = o->seats[0].explorer;
    att_json_put_string(writer, "network", att_model_name(att_network_model(o->network)));
    att_json_put_string(writer, "reads", att_engine_reads_texts(o) ? "texts" : "images");
    write_prefix(o, writer);
    att_json_put_array(writer, "branches");
    for (int b = 0; b < att_explorer_branch_count(explorer); b++)
        write_branch(writer, att_explorer_branch_at(explorer, b));
    att_json_end_array(writer);
    att_engine_write_layers(explorer, writer);
    att_json_put_integer(writer, "classes", att_model_classes(att_network_model(o->network)));
}

static void write_drawn(const att_network *network, att_json_writer *writer)
{
    char colour[ATT_COLOUR_TEXT];
    const uint8_t *colours = att_network_class_colours(network);
    if (!att_network_draws(network) || !colours) {
        att_json_put_string(writer, "drawn", NULL);
        return;
    }
    att_json_put_array(writer, "drawn");
    for (int c = 0; c < att_model_classes(att_network_model(network)); c++) {
        att_json_begin_object(writer);
        att_json_put_string(writer, "label", att_network_class_name(network, c));
        att_json_put_string(writer, "colour", att_colour_text(colours, c, colour));
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

att_status att_engine_write_model(att_engine *engine, att_context *context, const char *path, att_json_writer *writer)
{
    att_opened *o;
    ATT_TRY(att_engine_enter(engine, context));
    att_status status = att_engine_find(engine, path, &o);
    if (status == ATT_OK && !o->seats[0].explorer) /* it could not be made for the last image */
        status = prepare_first(o, &o->seats[0]);
    if (status == ATT_OK)
        write_network(o, writer);
    if (status == ATT_OK)
        write_drawn(o->network, writer);
    if (status == ATT_OK)
        att_engine_write_methods(o, writer);
    if (status == ATT_OK)
        status = att_engine_write_instruments(engine, o, writer);
    return att_engine_leave(engine, status);
}

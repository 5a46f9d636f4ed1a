/* Writes the records of a measurement. */
#include <stdio.h>
#include <string.h>

#include <attscope/maps.h>

#include "base/core/error.h"
#include "base/io/file.h"
#include "data/dataset.h"
#include "lab/runs/records/measuring.h"
#include "networks/models/family.h"
#include "study/train/maps.h"

/* --- figures ------------------------------------------------------------------------------------------------------ */

static double seconds_since(const struct timespec *begun)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begun->tv_sec) + 1e-9 * (double)(now.tv_nsec - begun->tv_nsec);
}

static att_status emit(const att_measuring *m, att_event_kind kind, const att_event_field *fields, int count)
{
    att_event event = {.kind = kind,
                       .epoch = m->stood.epoch,
                       .step = m->stood.update,
                       .seconds = seconds_since(&m->begun),
                       .fields = fields,
                       .field_count = count};
    if (kind == ATT_EVENT_MEASURE)
        event.measurements = att_measure_observed(m->found->measure, &event.measurement_count);
    return m->records.emit(m->records.user, &event);
}

enum { NETWORK_FIELDS = ATT_MOST_OPTIONS + 1 };
typedef char option_texts[ATT_MOST_OPTIONS][ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES];

/* Returns false if the option does not belong to the network or has no value. *field points into `texts`. */
static bool make_option_field(const att_option *option, const att_option_values *options,
                              char texts[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES], att_event_field *field)
{
    const att_option_value *value = att_options_find(options, option->key);
    const int parts = att_option_format(option, options, texts);
    if (parts == 0 || option->internal || option->training)
        return false;
    if (parts > 1)
        snprintf(texts[0], ATT_OPTION_TEXT_BYTES, "%dx%d", (int)value->numbers[0], (int)value->numbers[1]);
    const bool is_text = option->kind == ATT_OPTION_TEXT || option->kind == ATT_OPTION_SWITCH || parts > 1;
    *field = is_text ? (att_event_field){.name = option->key, .text = texts[0]}
                     : (att_event_field){.name = option->key, .number = value->numbers[0]};
    return true;
}

/* Fills `fields` with the network's options, under the names that a run's records use, and with the number of keys
 * of its largest attention. Returns the number of fields. */
static int make_network_fields(const att_measuring *m, att_event_field fields[NETWORK_FIELDS], option_texts texts)
{
    const att_identity *identity = att_network_identity(m->network);
    const att_family_info family = att_model_family_of(identity->name);
    const int64_t tokens = att_model_tokens(att_network_model(m->network));
    int count = 0;
    for (int i = 0; i < family.option_count; i++)
        count += make_option_field(&family.options[i], &identity->options, texts[i], &fields[count]);
    if (tokens > 0)
        fields[count++] = (att_event_field){.name = "tokens", .number = (double)tokens};
    return count;
}

enum { CHANNELS_TEXT = 3 * ATT_NUMBER_TEXT };

/* "0.485 0.456 0.406" */
static const char *channels_text(const double values[3], int channels, char text[CHANNELS_TEXT])
{
    size_t length = 0;
    for (int c = 0; c < channels; c++) {
        char number[ATT_NUMBER_TEXT];
        length += (size_t)snprintf(text + length, CHANNELS_TEXT - length, "%s%s", c ? " " : "",
                                   att_format_number(values[c], number));
    }
    return text;
}

/* Describes the measured images: the path of the data set, or the first of several paths. */
static const char *data_text(const att_measuring *m, char *text, size_t size)
{
    if (m->data_count > 1)
        snprintf(text, size, "%s and %d more", m->data[0], m->data_count - 1);
    else
        snprintf(text, size, "%s", m->data[0]);
    return text;
}

static const char *precision_name(const att_network *network)
{
    bool wide = att_graph_dtype(att_model_graph(att_network_model(network))) == ATT_F64;
    return wide ? "f64" : att_precision_name(att_network_precision(network));
}

/* Records the settings that determine the figures. A later call compares its settings with these to decide whether to
 * keep the figures. */
static att_status emit_begin(const att_measuring *m)
{
    const att_identity *identity = att_network_identity(m->network);
    const att_preprocess *p = &identity->preprocess;
    const att_graph *graph = att_model_graph(att_network_model(m->network));
    char mean[CHANNELS_TEXT], std[CHANNELS_TEXT], data[ATT_RUN_PATH], seed[16];
    snprintf(seed, sizeof seed, "%d", m->options->init_seed);
    const att_event_field common[] = {
        {.name = "model", .text = identity->name},
        {.name = "checkpoint", .text = m->checkpoint},
        {.name = "weights", .text = m->weights},
        {.name = "use_ema", .text = att_network_is_averaged(m->network) ? "true" : "false"},
        {.name = "data", .text = data_text(m, data, sizeof data)},
        {.name = "contents", .text = m->contents},
        {.name = "split", .text = m->found->split},
        {.name = "images", .number = (double)m->found->evaluation.count},
        {.name = "precision", .text = precision_name(m->network)},
        {.name = "backend", .text = att_network_backend(m->network)},
        {.name = "mean", .text = channels_text(p->mean, p->in_chans, mean)},
        {.name = "std", .text = channels_text(p->std, p->in_chans, std)},
        {.name = "crop_pct", .number = p->crop_pct},
        {.name = "crop_mode", .text = p->crop_mode},
        {.name = "interpolation", .text = p->interpolation},
        {.name = "parameters", .number = (double)att_graph_parameter_elements(graph)},
        {.name = "init_seed", .text = seed}, /* the last, because only random weights have it */
    };
    enum { COMMON = sizeof common / sizeof *common };
    int count = COMMON - !att_measuring_initialises(m->options);
    att_event_field fields[COMMON + 1 + NETWORK_FIELDS];
    option_texts texts;
    memcpy(fields, common, sizeof common);
    if (p->exif_transpose)
        fields[count++] = (att_event_field){.name = "exif_transpose", .text = "true"};
    return emit(m, ATT_EVENT_RUN_BEGIN, fields, count + make_network_fields(m, fields + count, texts));
}

/* The task's figures, at the same step as those of the instruments. */
static att_status emit_details(const att_measuring *m)
{
    const att_event_field fields[] = {{.name = "split", .text = m->found->split},
                                      {.name = "images", .number = (double)m->found->evaluation.count}};
    const att_event event = {.kind = ATT_EVENT_MEASURE,
                             .epoch = m->stood.epoch,
                             .step = m->stood.update,
                             .seconds = seconds_since(&m->begun),
                             .fields = fields,
                             .field_count = sizeof fields / sizeof *fields,
                             .measurements = m->details,
                             .measurement_count = m->detail_count};
    return m->detail_count > 0 ? m->records.emit(m->records.user, &event) : ATT_OK;
}

static att_status emit_figures(const att_measuring *m)
{
    const att_measuring_options *o = m->options;
    const att_event_field fields[] = {{.name = "split", .text = m->found->split},
                                      {.name = "images", .number = (double)m->found->evaluation.count},
                                      {.name = "class_map", .text = o->class_map ? o->class_map : ""},
                                      {.name = "with", .text = m->with.data},
                                      {.name = "nodes", .text = o->nodes}};
    return emit(m, ATT_EVENT_MEASURE, fields, sizeof fields / sizeof *fields);
}

att_status att_measuring_write_records(const att_measuring *m)
{
    const att_event_field end[] = {{.name = "status", .text = att_status_name(ATT_OK)}};
    if (!*m->found->folder && att_measuring_initialises(m->options)) {
        att_log(m->context, ATT_LOG_INFO, "no record is kept of random weights, because no output folder is named");
        return ATT_OK;
    }
    if (!*m->found->folder) {
        att_log(m->context, ATT_LOG_INFO,
                "no record is kept: %s does not lie in a run's folder, and no output folder is named", m->checkpoint);
        return ATT_OK;
    }
    ATT_TRY(emit_begin(m));
    ATT_TRY(emit_details(m));
    ATT_TRY(emit_figures(m));
    return emit(m, ATT_EVENT_RUN_END, end, 1);
}

/* --- maps --------------------------------------------------------------------------------------------------------- */

/* Logs a message if the folder keeps maps of an earlier call that are of other weights than the figures. */
static void log_old_maps(const att_measuring *m, const char *path)
{
    att_tensors *file = NULL;
    if (!att_file_exists(path) || att_tensors_open(m->context, path, &file) != ATT_OK)
        return;
    const char *weights = att_tensors_metadata(file, "weights");
    if (weights && strcmp(weights, m->weights) != 0)
        att_log(m->context, ATT_LOG_INFO, "%s shows other weights: a report leaves it out; new maps replace it", path);
    att_tensors_close(&file);
}

static att_status write_maps(const att_measuring *m, const char *path)
{
    const att_measuring_options *o = m->options;
    const att_model *model = att_network_model(m->network);
    const att_transform_options transform = att_network_transform(m->network);
    att_maps_options maps = att_maps_options_defaults();
    maps.class_names = att_network_class_names(m->network, &maps.class_count);
    maps.class_colours = att_network_class_colours(m->network);
    maps.unlabelled = !att_dataset_fits_classes(m->dataset, att_model_classes(model));
    maps.nodes = o->nodes;
    maps.images = m->chosen;
    maps.count = m->chosen ? m->chosen_count : o->maps;
    maps.backend = att_network_backend(m->network);
    maps.precision = att_network_precision(m->network);
    maps.skip_corrupt = o->skip_corrupt;
    maps.weights = m->weights;
    maps.progress = o->progress;
    maps.progress_user = o->progress_user;
    att_status status = att_maps_write(model, att_network_weights(m->network), m->dataset, &transform, &maps, path);
    if (status == ATT_ERR_STOPPED)
        return att_fail(m->context, status, "stopped; the records are written, maps are not");
    return status;
}

att_status att_measuring_write_maps(const att_measuring *m)
{
    char path[ATT_RUN_PATH];
    if (!*m->found->folder)
        return ATT_OK;
    ATT_TRY(att_path_join(m->context, m->found->folder, "maps.safetensors", path, sizeof path));
    if (att_measuring_wants_maps(m->options))
        return write_maps(m, path);
    log_old_maps(m, path);
    return ATT_OK;
}

/* Writes a network's config.json: its layout's table of settings, read backwards, and the names of its classes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/layouts/layout.h"
#include "networks/models/checkpoint.h"
#include "networks/models/family.h"

enum { MOST_LIST = 64 };

void att_layout_put_list(att_json_writer *json, const char *key, const int *numbers, int count)
{
    att_json_put_array(json, key);
    for (int i = 0; i < count; i++)
        att_json_integer(json, numbers[i]);
    att_json_end_array(json);
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

static att_status put_word(const att_layout_target *target, const att_layout_setting *setting, const char *text,
                           att_json_writer *json)
{
    const char *const(*words)[2] = setting->words;
    while (words[0][0] && strcmp(words[0][1], text) != 0)
        words++;
    if (!words[0][0])
        return att_fail(target->context, ATT_ERR_UNSUPPORTED, "its %s is \"%.64s\", for which %s has no word",
                        setting->option, text, target->layout->name);
    att_json_put_string(json, setting->key, words[0][0]);
    return ATT_OK;
}

static void put_text(const att_layout_setting *setting, const char *text, att_json_writer *json)
{
    int numbers[MOST_LIST];
    const int count = att_text_to_list(text, 0, 1 << 24, numbers, MOST_LIST);
    if (count == 1 && !setting->list)
        att_json_put_integer(json, setting->key, numbers[0]);
    else if (count > 0)
        att_layout_put_list(json, setting->key, numbers, count);
    else
        att_json_put_string(json, setting->key, text);
}

static void put_numbers(const att_layout_setting *setting, const att_option *option, const att_option_value *value,
                        att_json_writer *json)
{
    const int sides[2] = {(int)value->numbers[0], (int)value->numbers[1]};
    if (option->kind == ATT_OPTION_REAL) {
        att_json_key(json, setting->key);
        att_json_float(json, value->numbers[0]);
    } else if (option->kind == ATT_OPTION_SWITCH) {
        att_json_put_bool(json, setting->key, value->numbers[0] != 0);
    } else if (value->count == 2 && sides[0] != sides[1]) {
        att_layout_put_list(json, setting->key, sides, 2);
    } else {
        att_json_put_integer(json, setting->key, sides[0]);
    }
}

/* Writes what the tensors show. */
static void put_shown(const att_layout_target *target, const att_layout_setting *setting, att_json_writer *json)
{
    const int index = att_weights_find(target->weights, setting->has ? setting->has : setting->rows_of);
    if (setting->has)
        att_json_put_bool(json, setting->key, index >= 0);
    else if (index >= 0)
        att_json_put_integer(json, setting->key, att_weights_at(target->weights, index).shape.dims[0]);
}

static att_status put_setting(const att_layout_target *target, const att_option_table *table,
                              const att_layout_setting *setting, att_json_writer *json)
{
    const att_option *option = setting->option ? att_option_find(table, setting->option) : NULL;
    const att_option_value *value = option ? att_options_find(&target->identity->options, option->key) : NULL;
    if (!setting->option)
        put_shown(target, setting, json);
    else if (value && setting->words)
        return put_word(target, setting, value->text, json);
    else if (value && option->kind == ATT_OPTION_TEXT)
        put_text(setting, value->text, json);
    else if (value)
        put_numbers(setting, option, value, json);
    return ATT_OK;
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

typedef struct label {
    const char *text;
    int number;
} label;

static int compare_labels(const void *a, const void *b)
{
    const label *l = a, *m = b;
    const int order = strcmp(l->text, m->text);
    return order ? order : l->number - m->number;
}

/* Classes without names are called as the transformers library calls them. */
static void put_numbered(int count, att_json_writer *json)
{
    char number[16], text[32];
    att_json_put_object(json, "id2label");
    for (int i = 0; i < count; i++) {
        snprintf(number, sizeof number, "%d", i);
        snprintf(text, sizeof text, "LABEL_%d", i);
        att_json_put_string(json, number, text);
    }
    att_json_end_object(json);
    att_json_put_object(json, "label2id");
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "LABEL_%d", i);
        att_json_put_integer(json, text, i);
    }
    att_json_end_object(json);
}

static void put_named(label *labels, int count, att_json_writer *json)
{
    char number[16];
    att_json_put_object(json, "id2label");
    for (int i = 0; i < count; i++) {
        snprintf(number, sizeof number, "%d", i);
        att_json_put_string(json, number, labels[i].text);
    }
    att_json_end_object(json);
    qsort(labels, (size_t)count, sizeof *labels, compare_labels);
    att_json_put_object(json, "label2id");
    for (int i = 0; i < count; i++) /* of classes with the same name, the first */
        if (i == 0 || strcmp(labels[i].text, labels[i - 1].text) != 0)
            att_json_put_integer(json, labels[i].text, labels[i].number);
    att_json_end_object(json);
}

static att_status put_classes(const att_layout_target *target, att_json_writer *json)
{
    const int count = (int)att_options_number(&target->identity->options, "num_classes", 0);
    label *labels;
    if (count > 0 && !target->class_names)
        put_numbered(count, json);
    if (count == 0 || !target->class_names)
        return ATT_OK;
    ATT_TRY(att_new(target->context, &labels, (size_t)count, "the names of classes"));
    for (int i = 0; i < count; i++)
        labels[i] = (label){target->class_names[i], i};
    put_named(labels, count, json);
    att_free(target->context, labels);
    return ATT_OK;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static att_status put_members(const att_layout_target *target, att_json_writer *json)
{
    att_json_put_array(json, "architectures");
    att_json_string(json, target->form->class);
    att_json_end_array(json);
    att_json_put_string(json, "model_type", target->form->type);
    att_json_put_string(json, "dtype", "float32");
    for (const att_layout_setting *s = target->layout->settings; s && s->key; s++)
        ATT_TRY(put_setting(target, target->family->options, s, json));
    if (target->layout->describe)
        ATT_TRY(target->layout->describe(target, json));
    return put_classes(target, json);
}

/* Writes a file with the object whose members put() writes. */
static att_status write_object(const att_layout_target *target, const char *path,
                               att_status (*put)(const att_layout_target *target, att_json_writer *json))
{
    att_json_writer *json;
    const char *text;
    size_t length;
    ATT_TRY(att_json_writer_create(target->context, true, &json));
    att_json_begin_object(json);
    att_status status = put(target, json);
    att_json_end_object(json);
    if (status == ATT_OK)
        status = att_json_writer_finish(json, &text, &length);
    if (status == ATT_OK)
        status = att_file_replace(target->context, path, text, length);
    att_json_writer_destroy(&json);
    return status;
}

att_status att_layout_write_config(const att_layout_target *target, const char *path)
{
    return write_object(target, path, put_members);
}

/* --- images ------------------------------------------------------------------------------------------------------- */

static void put_sides(att_json_writer *json, const char *key, int height, int width)
{
    att_json_put_object(json, key);
    att_json_put_integer(json, "height", height);
    att_json_put_integer(json, "width", width);
    att_json_end_object(json);
}

static void put_channels(att_json_writer *json, const char *key, const double values[3])
{
    att_json_put_array(json, key);
    for (int c = 0; c < 3; c++)
        att_json_float(json, values[c]);
    att_json_end_array(json);
}

/* The classes of processors that do what attscope does. */
static const char *processor_of(const att_preprocess *p)
{
    const bool squashes = strcmp(p->crop_mode, "squash") == 0;
    if (strstr(p->interpolation, "_float"))
        return "DINOv3ViTImageProcessor";
    return !squashes ? "BitImageProcessor" : p->crop_pct < 1 ? "DeiTImageProcessor" : "ViTImageProcessor";
}

static void put_sizes(const att_preprocess *p, att_json_writer *json)
{
    const int height = (int)floor(p->height / p->crop_pct), width = (int)floor(p->width / p->crop_pct);
    const bool squashes = strcmp(p->crop_mode, "squash") == 0;
    if (squashes) {
        put_sides(json, "size", height, width);
    } else {
        att_json_put_object(json, "size");
        att_json_put_integer(json, "shortest_edge", height); /* the images are squares */
        att_json_end_object(json);
    }
    const bool crops = !squashes || p->crop_pct < 1;
    att_json_put_bool(json, "do_center_crop", crops);
    if (crops)
        put_sides(json, "crop_size", p->height, p->width);
}

/* Numbers of interpolations are those of PIL. */
static att_status put_processor(const att_layout_target *target, att_json_writer *json)
{
    const att_preprocess *p = &target->identity->preprocess;
    if (p->in_chans != 3)
        return att_fail(target->context, ATT_ERR_UNSUPPORTED, "its images have %d channel, transformers' have three",
                        p->in_chans);
    att_json_put_string(json, "image_processor_type", processor_of(p));
    att_json_put_bool(json, "do_convert_rgb", true);
    att_json_put_bool(json, "do_resize", true);
    put_sizes(p, json);
    att_json_put_integer(json, "resample",
                         strncmp(p->interpolation, "bicubic", 7) == 0    ? 3
                         : strncmp(p->interpolation, "bilinear", 8) == 0 ? 2
                                                                         : 0);
    att_json_put_bool(json, "do_rescale", true);
    att_json_put_number(json, "rescale_factor", 1.0 / 255);
    att_json_put_bool(json, "do_normalize", true);
    put_channels(json, "image_mean", p->mean);
    put_channels(json, "image_std", p->std);
    return ATT_OK;
}

att_status att_layout_write_processor(const att_layout_target *target, const char *path)
{
    return write_object(target, path, put_processor);
}

/* Descriptions of instruments as JSON, and names of figures. */
#include <string.h>

#include <attscope/measure.h>

#include "base/io/json.h"

/* --- as JSON ------------------------------------------------------------------------------------------------------ */

static void write_text(att_json_writer *writer, const char *key, const char *text)
{
    if (!text)
        return;
    att_json_put_string(writer, key, text);
}

static void write_flag(att_json_writer *writer, const char *key, bool set)
{
    if (!set)
        return;
    att_json_put_bool(writer, key, true);
}

static void write_statistics(att_json_writer *writer, const att_statistic_info *statistics)
{
    att_json_put_array(writer, "statistics");
    for (; statistics->name; statistics++) {
        att_json_begin_object(writer);
        write_text(writer, "statistic", statistics->name);
        write_text(writer, "title", statistics->title);
        write_text(writer, "unit", statistics->unit);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

/* scales: NULL: none */
static void write_scales(att_json_writer *writer, const char *key, const att_statistic_scale *scales)
{
    if (!scales)
        return;
    att_json_put_array(writer, key);
    for (; scales->text; scales++) {
        att_json_begin_object(writer);
        write_text(writer, "statistic", scales->statistic);
        write_text(writer, "text", scales->text);
        write_text(writer, "source", scales->source);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

/* texts: NULL-terminated; NULL: none */
static void write_texts(att_json_writer *writer, const char *key, const char *const *texts)
{
    if (!texts)
        return;
    att_json_put_array(writer, key);
    for (; *texts; texts++)
        att_json_string(writer, *texts);
    att_json_end_array(writer);
}

static void write_options(att_json_writer *writer, const att_instrument_info *info)
{
    if (info->option_count == 0)
        return;
    att_json_put_array(writer, "options");
    for (int i = 0; i < info->option_count; i++)
        att_detail_write_json(&info->options[i], writer);
    att_json_end_array(writer);
}

void att_instrument_write_json(const att_instrument_info *info, att_json_writer *writer)
{
    att_json_begin_object(writer);
    write_text(writer, "name", info->name);
    write_text(writer, "summary", info->summary);
    write_text(writer, "title", info->title);
    write_text(writer, "view", info->view);
    write_text(writer, "unit", info->unit);
    write_text(writer, "formula", info->formula);
    write_text(writer, "source", info->source);
    write_text(writer, "reading", info->reading);
    write_options(writer, info);
    write_flag(writer, "needs_labels", info->needs_labels);
    write_flag(writer, "costly", info->costly);
    write_flag(writer, "scores", info->scores);
    write_flag(writer, "by_sample", info->by_sample);
    write_flag(writer, "by_block", info->by_block);
    if (info->statistics)
        write_statistics(writer, info->statistics);
    write_scales(writer, "scales", info->scales);
    write_scales(writer, "scales_f64", info->scales_f64);
    write_texts(writer, "readings", info->readings);
    write_text(writer, "readings_agree", info->readings_agree);
    write_texts(writer, "by_head", info->by_head);
    write_text(writer, "brief", info->brief);
    write_text(writer, "score", info->score);
    write_text(writer, "predictor", info->predictor);
    write_text(writer, "excluded", info->excluded);
    att_json_end_object(writer);
}

/* --- names of figures --------------------------------------------------------------------------------------------- */

/* Returns the rest of `name` after the prefix `part`; NULL if `name` does not begin with it. */
static const char *after_prefix(const char *name, const char *part)
{
    size_t length = strlen(part);
    return name && strncmp(name, part, length) == 0 ? name + length : NULL;
}

bool att_measurement_is_called(const att_measurement *m, const char *name)
{
    name = after_prefix(after_prefix(name, m->instrument), "/");
    if (*m->node)
        name = after_prefix(after_prefix(name, m->node), "/");
    return m->head < 0 && name && strcmp(name, m->statistic) == 0;
}

#include "lab/report/page_figures.h"

#include <math.h>

static void write_samples(att_json_writer *json, const att_measurement *m)
{
    if (m->sample_count == 0)
        return;
    att_json_begin_array(json);
    for (int i = 0; i < m->sample_count; i++)
        att_json_number(json, m->samples[i]);
    att_json_end_array(json);
}

void att_figures_write(att_json_writer *json, const att_figures *figures)
{
    att_json_begin_object(json);
    att_json_key(json, "epoch");
    att_json_integer(json, figures->epoch);
    att_json_key(json, "step");
    att_json_integer(json, figures->step);
    att_json_key(json, "split");
    att_json_string(json, figures->split);
    att_json_key(json, "nodes");
    att_json_string(json, figures->nodes);
    att_json_key(json, "images");
    att_json_number(json, figures->images);
    att_json_key(json, "figures");
    att_json_begin_array(json);
    for (int i = 0; i < figures->count; i++) {
        const att_measurement *m = &figures->items[i];
        att_json_begin_array(json);
        att_json_string(json, m->instrument);
        att_json_string(json, m->node);
        att_json_integer(json, m->head);
        att_json_string(json, m->statistic);
        att_json_number(json, m->mean);
        att_json_number(json, m->deviation);
        att_json_integer(json, m->count);
        att_json_bool(json, m->excluded);
        att_json_number(json, m->bound);
        att_json_number(json, m->uniform);
        write_samples(json, m);
        att_json_end_array(json);
    }
    att_json_end_array(json);
    att_json_end_object(json);
}

static void write_series(att_json_writer *json, att_figures *const *events, int count, int index)
{
    const att_measurement *figure = &events[count - 1]->items[index];
    static const char *const columns[] = {"mean", "deviation", "n"};
    att_json_begin_object(json);
    att_json_key(json, "instrument");
    att_json_string(json, figure->instrument);
    att_json_key(json, "node");
    att_json_string(json, figure->node);
    att_json_key(json, "head");
    att_json_integer(json, figure->head);
    att_json_key(json, "statistic");
    att_json_string(json, figure->statistic);
    att_json_key(json, "excluded");
    att_json_bool(json, figure->excluded);
    for (int column = 0; column < 3; column++) {
        att_json_key(json, columns[column]);
        att_json_begin_array(json);
        for (int i = 0; i < count; i++) {
            const att_measurement *m = att_figures_find(events[i], figure);
            att_json_number(json, m == NULL     ? NAN
                                  : column == 0 ? m->mean
                                  : column == 1 ? m->deviation
                                                : (double)m->count);
        }
        att_json_end_array(json);
    }
    att_json_end_object(json);
}

void att_figures_write_series(att_json_writer *json, att_figures *const *events, int count)
{
    static const char *const columns[] = {"step", "epoch", "images"};
    att_json_begin_object(json);
    for (int column = 0; column < 3; column++) {
        att_json_key(json, columns[column]);
        att_json_begin_array(json);
        for (int i = 0; i < count; i++)
            att_json_number(json, column == 0   ? (double)events[i]->step
                                  : column == 1 ? (double)events[i]->epoch
                                                : events[i]->images);
        att_json_end_array(json);
    }
    att_json_key(json, "series");
    att_json_begin_array(json);
    for (int i = 0; count > 0 && i < events[count - 1]->count; i++)
        write_series(json, events, count, i);
    att_json_end_array(json);
    att_json_end_object(json);
}

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
    att_json_put_integer(json, "epoch", figures->epoch);
    att_json_put_integer(json, "step", figures->step);
    att_json_put_string(json, "split", figures->split);
    att_json_put_number(json, "images", figures->images);
    att_json_put_array(json, "figures");
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
    att_json_put_string(json, "instrument", figure->instrument);
    att_json_put_string(json, "node", figure->node);
    att_json_put_integer(json, "head", figure->head);
    att_json_put_string(json, "statistic", figure->statistic);
    att_json_put_bool(json, "excluded", figure->excluded);
    for (int column = 0; column < 3; column++) {
        att_json_put_array(json, columns[column]);
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
        att_json_put_array(json, columns[column]);
        for (int i = 0; i < count; i++)
            att_json_number(json, column == 0   ? (double)events[i]->step
                                  : column == 1 ? (double)events[i]->epoch
                                                : events[i]->images);
        att_json_end_array(json);
    }
    att_json_put_array(json, "series");
    for (int i = 0; count > 0 && i < events[count - 1]->count; i++)
        write_series(json, events, count, i);
    att_json_end_array(json);
    att_json_end_object(json);
}

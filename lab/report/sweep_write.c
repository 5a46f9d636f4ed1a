/* Writes the statistics of a sweep as JSON. */
#include <attscope/lab/sweep.h>

#include <attscope/store.h>

#include <attscope/lab/json.h>

#include "lab/report/sweep.h"

static void write_figure(att_json_writer *json, const att_measurement *figure)
{
    att_json_begin_object(json);
    att_json_put_string(json, "instrument", figure->instrument);
    att_json_put_string(json, "node", figure->node);
    att_json_put_string(json, "statistic", figure->statistic);
    att_json_put_string(json, "unit", figure->unit);
    att_json_put_number(json, "mean", figure->mean);
    att_json_put_number(json, "deviation", figure->deviation);
    att_json_put_integer(json, "n", figure->count);
    if (figure->undefined > 0)
        att_json_put_integer(json, "undefined", figure->undefined);
    if (figure->excluded)
        att_json_put_bool(json, ATT_EXCLUDED_KEY, true);
    att_json_end_object(json);
}

/* Writes members: n, mean, deviation, low, high. */
void att_paired_write_members(att_json_writer *json, const att_paired *paired)
{
    att_json_put_integer(json, "n", paired->count);
    att_json_put_number(json, "mean", paired->mean);
    att_json_put_number(json, "deviation", paired->deviation);
    att_json_put_number(json, "low", paired->low);
    att_json_put_number(json, "high", paired->high);
}

/* Writes the difference of a setting's score from that of the first setting. */
static void write_score_difference(att_json_writer *json, const att_sweep *sweep, int index)
{
    att_paired paired = att_sweep_score_difference(sweep, index, 0);
    if (index == 0 || paired.count == 0)
        return;
    att_json_put_object(json, "score_difference");
    att_json_put_string(json, "from", att_sweep_setting_at(sweep, 0).name);
    att_paired_write_members(json, &paired);
    att_json_end_object(json);
}

static void write_setting(att_json_writer *json, const att_sweep *sweep, int index)
{
    const att_sweep_setting s = att_sweep_setting_at(sweep, index);
    att_json_begin_object(json);
    att_json_put_string(json, "setting", s.name);
    att_json_put_string(json, "model", s.model);
    att_json_put_integer(json, "n", s.runs);
    att_json_put_array(json, "seeds");
    for (int i = 0; i < s.runs; i++)
        att_json_integer(json, (int64_t)s.seeds[i]);
    att_json_end_array(json);
    att_json_put_number(json, "parameters", s.parameters);
    att_json_put_number(json, "seconds", s.seconds);
    att_json_put_number(json, "seconds_deviation", s.seconds_deviation);
    att_json_put_string(json, "task", s.task);
    att_json_put_string(json, "metric", s.metric ? s.metric->name : NULL);
    att_json_put_number(json, "score", s.score);
    att_json_put_number(json, "score_deviation", s.score_deviation);
    write_score_difference(json, sweep, index);
    att_json_put_array(json, "figures");
    for (int i = 0; i < s.figure_count; i++) {
        att_measurement figure = att_sweep_figure_at(sweep, index, i);
        write_figure(json, &figure);
    }
    att_json_end_array(json);
    att_json_end_object(json);
}

static void write_ranks(att_json_writer *json, const char *key, const att_rank_correlation *c)
{
    att_json_put_object(json, key);
    att_json_put_number(json, "value", c->value);
    att_json_put_number(json, "p", c->p);
    att_json_put_number(json, "least_p", c->least_p);
    att_json_put_number(json, "adjusted_p", c->adjusted_p);
    att_json_put_number(json, "low", c->low);
    att_json_put_number(json, "high", c->high);
    att_json_end_object(json);
}

void att_correlation_write_members(att_json_writer *json, const att_correlation *c)
{
    att_json_put_integer(json, "n", c->count);
    att_json_put_integer(json, "groups", c->groups);
    write_ranks(json, "kendall", &c->kendall);
    write_ranks(json, "spearman", &c->spearman);
    att_json_put_integer(json, "permutations", c->permutations);
    att_json_put_bool(json, "exact", c->exact);
    att_json_put_integer(json, "resamples", c->resamples);
}

static void write_correlation(att_json_writer *json, const att_sweep_correlation *c)
{
    att_json_begin_object(json);
    att_json_put_string(json, "x", c->of.x);
    att_json_put_string(json, "y", c->of.y);
    att_json_put_string(json, "setting", c->setting);
    att_json_put_string(json, "model", c->model);
    att_correlation_write_members(json, &c->runs);
    if (!c->setting) {
        att_json_put_object(json, "means");
        att_correlation_write_members(json, &c->means);
        att_json_end_object(json);
    }
    att_json_end_object(json);
}

static void write_name(att_json_writer *json, const att_measurement *figure)
{
    att_json_put_string(json, "instrument", figure->instrument);
    att_json_put_string(json, "node", figure->node);
    att_json_put_string(json, "statistic", figure->statistic);
}

/* Writes the differences of a setting from the first one. */
static void write_differences_of(att_json_writer *json, const att_sweep *sweep, int index)
{
    const att_sweep_setting s = att_sweep_setting_at(sweep, index);
    for (int f = 0; f < s.figure_count; f++) {
        const att_measurement figure = att_sweep_figure_at(sweep, index, f);
        int other = att_sweep_figure_index(sweep, 0, figure.instrument, figure.node, figure.statistic);
        att_paired paired = att_sweep_difference(sweep, index, f, 0, other);
        if (paired.count == 0)
            continue;
        att_json_begin_object(json);
        att_json_put_string(json, "setting", s.name);
        att_json_put_string(json, "from", att_sweep_setting_at(sweep, 0).name);
        write_name(json, &figure);
        att_paired_write_members(json, &paired);
        att_json_end_object(json);
    }
}

/* Writes the ranking by a figure of setting `index`, unless an earlier setting has the figure, too. */
static void write_ranking(att_json_writer *json, const att_sweep *sweep, int index, const att_measurement *figure)
{
    for (int i = 0; i < index; i++)
        if (att_sweep_figure_index(sweep, i, figure->instrument, figure->node, figure->statistic) >= 0)
            return;
    att_sweep_ranking ranking = att_sweep_rank(sweep, figure->instrument, figure->node, figure->statistic);
    if (ranking.second < 0)
        return;
    att_json_begin_object(json);
    write_name(json, figure);
    att_json_put_string(json, "best", att_sweep_setting_at(sweep, ranking.best).name);
    att_json_put_string(json, "second", att_sweep_setting_at(sweep, ranking.second).name);
    att_paired_write_members(json, &ranking.lead);
    att_json_put_bool(json, "separated", att_paired_is_separated(&ranking.lead));
    att_json_end_object(json);
}

static void write_comparisons(att_json_writer *json, const att_sweep *sweep)
{
    att_json_put_array(json, "differences");
    for (int i = 1; i < att_sweep_setting_count(sweep); i++)
        write_differences_of(json, sweep, i);
    att_json_end_array(json);
    att_json_put_array(json, "rankings");
    for (int i = 0; i < att_sweep_setting_count(sweep); i++)
        for (int f = 0; f < att_sweep_setting_at(sweep, i).figure_count; f++) {
            att_measurement figure = att_sweep_figure_at(sweep, i, f);
            write_ranking(json, sweep, i, &figure);
        }
    att_json_end_array(json);
}

static void write_methods(att_json_writer *json)
{
    att_json_put_array(json, "methods");
    for (int i = 0; i < att_correlation_method_count(); i++) {
        att_correlation_method method = att_correlation_method_at(i);
        att_json_begin_object(json);
        att_json_put_string(json, "name", method.name);
        att_json_put_string(json, "formula", method.formula);
        att_json_put_string(json, "source", method.source);
        att_json_end_object(json);
    }
    att_json_end_array(json);
}

void att_sweep_write_json(const att_sweep *sweep, att_json_writer *json)
{
    att_json_put_array(json, "settings");
    for (int i = 0; i < att_sweep_setting_count(sweep); i++)
        write_setting(json, sweep, i);
    att_json_end_array(json);
    write_comparisons(json, sweep);
    att_json_put_string(json, "differences_are", ATT_PAIRED_NOTE);
    att_json_put_array(json, "correlations");
    for (int i = 0; i < att_sweep_correlation_count(sweep); i++) {
        att_sweep_correlation correlation = att_sweep_correlation_at(sweep, i);
        write_correlation(json, &correlation);
    }
    att_json_end_array(json);
    write_methods(json);
}

#include <attscope/lab/sweep.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/measure.h>
#include <attscope/store.h>

#include "base/core/error.h"
#include "base/core/spread.h"
#include "base/core/text.h"
#include "lab/report/correlations.h"
#include "lab/report/paired.h"
#include "lab/report/sweep.h"
#include "networks/tasks/task.h"

typedef struct setting {
    const char *name, *model;
    int runs;
    uint64_t *seeds;
    double *scores; /* [runs]: the metric after the last evaluated epoch; NaN if not evaluated */
    double parameters;
    att_spread seconds, score;
    const char *task;
    const att_metric *metric;
    att_measurement *figures;
    double **values; /* [figure_count][runs]: the value of each run; NaN if it has none */
    int figure_count;
} setting;

struct att_sweep {
    att_context *context;
    att_arena arena; /* owns everything below */
    setting *settings;
    int setting_count;
    att_sweep_pair *pairs;
    int pair_count;
    att_sweep_correlation *correlations;
    int correlation_count;
};

/* --- one run ------------------------------------------------------------------------------------------------------ */

static double number_of(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Total seconds of the training. The clock of the records restarts from 0 on a resume. */
static double seconds_of(const att_report_run *run)
{
    double all = 0, before = 0;
    for (int i = 0; i <= run->epochs.count; i++) {
        const json_t *event = i < run->epochs.count ? run->epochs.records[i] : run->end;
        double seconds = number_of(event, "seconds");
        if (isnan(seconds))
            continue;
        all += seconds >= before ? seconds - before : seconds;
        before = seconds;
    }
    return all;
}

/* Finds the task of the run's training. Records without a task are from versions that had only the first task of the
 * list. */
static bool find_task(const att_context *context, const att_report_run *run, att_task_info *task)
{
    const char *name = json_string_value(json_object_get(run->begin, "task"));
    for (int t = 0; run->begin && t < att_task_count(context); t++) {
        *task = att_task_at(context, t);
        if (!name || strcmp(task->name, name) == 0)
            return true;
    }
    return false;
}

/* The metric of the last evaluated epoch; NaN if none was evaluated. */
static double score_of(const att_report_run *run, const att_metric *metric)
{
    char key[64];
    double score = NAN;
    snprintf(key, sizeof key, "eval_%s", metric->name);
    for (int i = run->epochs.count - 1; i >= 0 && isnan(score); i--)
        score = number_of(run->epochs.records[i], key);
    return score;
}

/* Finds a figure measured on a checkpoint. Figures observed during training do not count, because the weights were
 * changing. */
static const att_measurement *figure_of(const att_report_run *run, const att_measurement *wanted)
{
    const att_measurement *found = NULL;
    for (int i = 0; run->has_measure_file && !found && i < run->measured.count; i++)
        found = att_figures_find(run->measured.records[i], wanted);
    return found;
}

/* The mean of the figure `name` of a checkpoint; NaN if the run has none. */
static double value_of(const att_report_run *run, const char *name)
{
    for (int e = 0; run->has_measure_file && e < run->measured.count; e++) {
        const att_figures *figures = run->measured.records[e];
        for (int i = 0; i < figures->count; i++)
            if (att_measurement_is_called(&figures->items[i], name))
                return figures->items[i].mean;
    }
    return NAN;
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

static att_status out_of_memory(const att_sweep *sweep)
{
    return att_fail_memory(sweep->context, sizeof(setting), "a sweep's figures");
}

/* Sets the score of the setting's last run. Runs of one setting have the same task; the score of a run with another
 * task than the setting's first run is NaN. */
static void add_score(const att_context *context, setting *s, const att_report_run *run)
{
    att_task_info task;
    s->scores[s->runs - 1] = NAN;
    if (!find_task(context, run, &task) || (s->task && strcmp(s->task, task.name) != 0))
        return;
    s->task = task.name;
    double score = score_of(run, &task.metrics[task.best]);
    if (isnan(score))
        return;
    s->metric = &task.metrics[task.best];
    s->scores[s->runs - 1] = score;
    att_spread_add(&s->score, score);
}

/* The setting of that name; NULL if there is none yet. */
static setting *setting_of(const att_sweep *sweep, const char *name)
{
    for (int i = 0; i < sweep->setting_count; i++)
        if (strcmp(sweep->settings[i].name, name) == 0)
            return &sweep->settings[i];
    return NULL;
}

static const char *model_of(const att_report_run *run)
{
    const char *trained = json_string_value(json_object_get(run->begin, "model"));
    const char *measured = json_string_value(json_object_get(run->measured_begin, "model"));
    return trained ? trained : measured ? measured : "";
}

/* Adds a setting with room for `most` runs. Returns NULL if out of memory. */
static setting *add_setting(att_sweep *sweep, const att_sweep_member *member, int most)
{
    setting *s = &sweep->settings[sweep->setting_count];
    s->name = att_arena_string(&sweep->arena, member->setting);
    s->model = att_arena_string(&sweep->arena, model_of(member->run));
    s->seeds = att_arena_allocate(&sweep->arena, (size_t)most * sizeof *s->seeds);
    s->scores = att_arena_allocate(&sweep->arena, (size_t)most * sizeof *s->scores);
    s->parameters = NAN;
    if (!s->name || !s->model || !s->seeds || !s->scores)
        return NULL;
    sweep->setting_count++;
    return s;
}

static att_status collect_settings(att_sweep *sweep, const att_sweep_member *members, int count)
{
    sweep->settings = att_arena_allocate(&sweep->arena, ((size_t)count + 1) * sizeof *sweep->settings);
    if (!sweep->settings)
        return out_of_memory(sweep);
    for (int i = 0; i < count; i++) {
        setting *s = setting_of(sweep, members[i].setting);
        if (!s && !(s = add_setting(sweep, &members[i], count)))
            return out_of_memory(sweep);
        s->seeds[s->runs++] = members[i].seed;
        add_score(sweep->context, s, members[i].run);
        if (members[i].run->epochs.count > 0)
            att_spread_add(&s->seconds, seconds_of(members[i].run));
        double parameters = number_of(members[i].run->begin, "parameters");
        s->parameters = isnan(s->parameters) ? parameters : s->parameters;
    }
    return ATT_OK;
}

static const char *unit_of(const att_context *context, const char *instrument)
{
    att_instrument_info info;
    return att_instrument_find(context, instrument, &info) ? info.unit : "";
}

/* Computes a figure's mean and deviation over the runs of a setting, and keeps the values of the runs. Returns false if
 * out of memory. */
static bool aggregate_figure(att_sweep *sweep, const att_sweep_member *members, int count, setting *s,
                             const att_measurement *wanted)
{
    att_spread spread = {0};
    double *values = att_arena_allocate(&sweep->arena, (size_t)s->runs * sizeof *values);
    for (int i = 0, run = 0; values && i < count; i++) {
        if (strcmp(members[i].setting, s->name) != 0)
            continue;
        const att_measurement *found = figure_of(members[i].run, wanted);
        values[run] = found ? found->mean : NAN;
        if (!isnan(values[run]))
            att_spread_add(&spread, values[run]);
        run++;
    }
    att_measurement *figure = &s->figures[s->figure_count];
    *figure = (att_measurement){.instrument = att_arena_string(&sweep->arena, wanted->instrument),
                                .node = att_arena_string(&sweep->arena, wanted->node),
                                .statistic = att_arena_string(&sweep->arena, wanted->statistic),
                                .unit = unit_of(sweep->context, wanted->instrument),
                                .head = -1,
                                .mean = att_spread_mean(&spread),
                                .deviation = att_spread_deviation(&spread),
                                .count = spread.count,
                                .excluded = wanted->excluded};
    s->values[s->figure_count++] = values;
    return values && figure->instrument && figure->node && figure->statistic;
}

static att_status fill_setting(att_sweep *sweep, const att_sweep_member *members, int count, setting *s)
{
    const att_report_run *first = NULL;
    size_t most = 1;
    for (int i = 0; !first && i < count; i++)
        if (strcmp(members[i].setting, s->name) == 0 && members[i].run->has_measure_file)
            first = members[i].run;
    for (int e = 0; first && e < first->measured.count; e++)
        most += (size_t)((att_figures *)first->measured.records[e])->count;
    s->figures = att_arena_allocate(&sweep->arena, most * sizeof *s->figures);
    s->values = att_arena_allocate(&sweep->arena, most * sizeof *s->values);
    if (!s->figures || !s->values)
        return out_of_memory(sweep);
    for (int e = 0; first && e < first->measured.count; e++) {
        const att_figures *figures = first->measured.records[e];
        for (int i = 0; i < figures->count; i++) {
            if (figures->items[i].head >= 0)
                continue;
            if (!aggregate_figure(sweep, members, count, s, &figures->items[i]))
                return out_of_memory(sweep);
        }
    }
    return ATT_OK;
}

/* --- correlations ------------------------------------------------------------------------------------------------- */

/* Returns "instrument/statistic", or "instrument/statistic reading" if there is a reading; NULL if out of memory. */
static const char *name_figure(att_sweep *sweep, const char *instrument, const char *statistic, const char *reading)
{
    att_text name = {.context = sweep->context};
    att_text_append(&name, "%s/%s%s%s", instrument, statistic, reading ? " " : "", reading ? reading : "");
    const char *kept = name.failed ? NULL : att_arena_string(&sweep->arena, name.data);
    att_text_free(&name);
    return kept;
}

/* Pairs a predictor, in one reading, with the score of each instrument that has a score, and adds the pairs. */
static att_status add_pairs(att_sweep *sweep, const att_instrument_info *predictor_info, const char *reading)
{
    for (int i = 0; i < att_instrument_count(sweep->context); i++) {
        att_instrument_info info = att_instrument_at(sweep->context, i);
        if (!info.score || sweep->pair_count == ATT_SWEEP_MOST_PAIRS)
            continue;
        att_sweep_pair *pair = &sweep->pairs[sweep->pair_count++];
        pair->x = name_figure(sweep, predictor_info->name, predictor_info->predictor, reading);
        pair->y = name_figure(sweep, info.name, info.score, NULL);
        if (!pair->x || !pair->y)
            return out_of_memory(sweep);
    }
    return ATT_OK;
}

static att_status add_default_pairs(att_sweep *sweep)
{
    for (int i = 0; i < att_instrument_count(sweep->context); i++) {
        att_instrument_info info = att_instrument_at(sweep->context, i);
        if (info.predictor && !info.readings)
            ATT_TRY(add_pairs(sweep, &info, NULL));
        for (const char *const *reading = info.readings; info.predictor && reading && *reading; reading++)
            ATT_TRY(add_pairs(sweep, &info, *reading));
    }
    return ATT_OK;
}

static att_status copy_pairs(att_sweep *sweep, const att_sweep_pair *pairs, int count)
{
    sweep->pairs = att_arena_allocate(&sweep->arena, ATT_SWEEP_MOST_PAIRS * sizeof *sweep->pairs);
    if (!sweep->pairs)
        return out_of_memory(sweep);
    for (; sweep->pair_count < count; sweep->pair_count++) {
        att_sweep_pair *kept = &sweep->pairs[sweep->pair_count];
        kept->x = att_arena_string(&sweep->arena, pairs[sweep->pair_count].x);
        kept->y = att_arena_string(&sweep->arena, pairs[sweep->pair_count].y);
        if (!kept->x || !kept->y)
            return out_of_memory(sweep);
    }
    return count > 0 ? ATT_OK : add_default_pairs(sweep);
}

static double value_in(const void *user, int run, const char *name)
{
    const att_sweep_member *members = user;
    return value_of(members[run].run, name);
}

static att_status correlate_all(att_sweep *sweep, const att_sweep_member *members, int count, uint64_t seed)
{
    att_correlated_run *runs = att_arena_allocate(&sweep->arena, ((size_t)count + 1) * sizeof *runs);
    if (!runs)
        return out_of_memory(sweep);
    for (int i = 0; i < count; i++) {
        const setting *s = setting_of(sweep, members[i].setting);
        runs[i] = (att_correlated_run){s->name, s->model};
    }
    att_correlations all = {.arena = &sweep->arena,
                            .runs = runs,
                            .run_count = count,
                            .pairs = sweep->pairs,
                            .pair_count = sweep->pair_count,
                            .value = value_in,
                            .user = members,
                            .seed = seed};
    ATT_TRY(att_correlations_make(&all));
    sweep->correlations = all.items;
    sweep->correlation_count = all.count;
    return ATT_OK;
}

/* --- creation ----------------------------------------------------------------------------------------------------- */

att_status att_sweep_from_runs(att_context *context, const att_sweep_member *members, int count,
                               const att_sweep_pair *pairs, int pair_count, uint64_t seed, att_sweep **out)
{
    att_sweep *sweep;
    ATT_TRY(att_new(context, &sweep, 1, "a sweep"));
    sweep->context = sweep->arena.context = context;
    att_status status = collect_settings(sweep, members, count);
    for (int i = 0; status == ATT_OK && i < sweep->setting_count; i++)
        status = fill_setting(sweep, members, count, &sweep->settings[i]);
    if (status == ATT_OK)
        status = copy_pairs(sweep, pairs, pair_count);
    if (status == ATT_OK)
        status = correlate_all(sweep, members, count, seed);
    if (status != ATT_OK)
        att_sweep_destroy(&sweep);
    else
        *out = sweep;
    return status;
}

att_status att_sweep_check_pairs(att_context *context, const att_sweep_pair *pairs, int count)
{
    if (count < 0 || count > ATT_SWEEP_MOST_PAIRS)
        return att_fail(context, ATT_ERR_ARGUMENT, "%d correlations of a sweep, expected 0 to %d", count,
                        (int)ATT_SWEEP_MOST_PAIRS);
    if (count > 0)
        ATT_TRY(att_require(context, pairs, "the list of correlations of a sweep"));
    for (int i = 0; i < count; i++) {
        ATT_TRY(att_require(context, pairs[i].x, "a figure of a correlation"));
        ATT_TRY(att_require(context, pairs[i].y, "a figure of a correlation"));
    }
    return ATT_OK;
}

static att_status check_runs(att_context *context, const att_sweep_run *runs, int count)
{
    if (count < 0 || count > ATT_SWEEP_MOST_RUNS)
        return att_fail(context, ATT_ERR_ARGUMENT, "a sweep of %d runs, expected 0 to %d", count,
                        (int)ATT_SWEEP_MOST_RUNS);
    if (count > 0)
        ATT_TRY(att_require(context, runs, "the list of runs of a sweep"));
    for (int i = 0; i < count; i++) {
        ATT_TRY(att_require(context, runs[i].folder, "the folder of a run"));
        ATT_TRY(att_require(context, runs[i].setting, "the setting of a run"));
    }
    return ATT_OK;
}

att_status att_sweep_read(att_context *context, const att_sweep_run *runs, int count, const att_sweep_pair *pairs,
                          int pair_count, uint64_t seed, att_sweep **sweep)
{
    ATT_TRY(check_runs(context, runs, count));
    ATT_TRY(att_sweep_check_pairs(context, pairs, pair_count));
    att_report_run *read = att_allocate_array(context, (size_t)count + 1, sizeof *read);
    att_sweep_member *members = att_allocate_array(context, (size_t)count + 1, sizeof *members);
    att_status status = read && members ? ATT_OK : att_fail_memory(context, (size_t)count * sizeof *read, "a sweep");
    int done = 0;
    while (status == ATT_OK && done < count) {
        members[done] = (att_sweep_member){&read[done], runs[done].setting, runs[done].seed};
        status = att_report_run_read(context, runs[done].folder, &read[done]);
        done += status == ATT_OK;
    }
    if (status == ATT_OK)
        status = att_sweep_from_runs(context, members, count, pairs, pair_count, seed, sweep);
    for (int i = 0; i < done; i++)
        att_report_run_free(&read[i]);
    att_free(context, members);
    att_free(context, read);
    return status;
}

void att_sweep_destroy(att_sweep **sweep)
{
    if (!sweep || !*sweep)
        return;
    att_sweep *it = *sweep;
    att_arena_free(&it->arena);
    att_free(it->context, it);
    *sweep = NULL;
}

/* --- access ------------------------------------------------------------------------------------------------------- */

int att_sweep_setting_count(const att_sweep *sweep)
{
    return sweep->setting_count;
}

att_sweep_setting att_sweep_setting_at(const att_sweep *sweep, int index)
{
    if (index < 0 || index >= sweep->setting_count)
        return (att_sweep_setting){.name = NULL};
    const setting *s = &sweep->settings[index];
    return (att_sweep_setting){.name = s->name,
                               .model = s->model,
                               .runs = s->runs,
                               .seeds = s->seeds,
                               .parameters = s->parameters,
                               .seconds = att_spread_mean(&s->seconds),
                               .seconds_deviation = att_spread_deviation(&s->seconds),
                               .task = s->task,
                               .metric = s->metric,
                               .score = att_spread_mean(&s->score),
                               .score_deviation = att_spread_deviation(&s->score),
                               .figure_count = s->figure_count};
}

static const att_measurement no_figure = {.mean = NAN, .deviation = NAN, .head = -1};

att_measurement att_sweep_figure_at(const att_sweep *sweep, int index, int figure)
{
    if (figure < 0 || figure >= att_sweep_setting_at(sweep, index).figure_count)
        return no_figure;
    return sweep->settings[index].figures[figure];
}

int att_sweep_figure_index(const att_sweep *sweep, int index, const char *instrument, const char *node,
                           const char *statistic)
{
    if (!instrument || !node || !statistic || index < 0 || index >= sweep->setting_count)
        return -1;
    const setting *s = &sweep->settings[index];
    for (int i = 0; i < s->figure_count; i++)
        if (strcmp(s->figures[i].instrument, instrument) == 0 && strcmp(s->figures[i].node, node) == 0 &&
            strcmp(s->figures[i].statistic, statistic) == 0)
            return i;
    return -1;
}

att_measurement att_sweep_figure_find(const att_sweep *sweep, int index, const char *instrument, const char *node,
                                      const char *statistic)
{
    return att_sweep_figure_at(sweep, index, att_sweep_figure_index(sweep, index, instrument, node, statistic));
}

int att_sweep_correlation_count(const att_sweep *sweep)
{
    return sweep->correlation_count;
}

att_sweep_correlation att_sweep_correlation_at(const att_sweep *sweep, int index)
{
    if (index < 0 || index >= sweep->correlation_count)
        return (att_sweep_correlation){.setting = NULL};
    return sweep->correlations[index];
}

/* --- differences -------------------------------------------------------------------------------------------------- */

static bool has_figure(const att_sweep *sweep, int index, int figure)
{
    return figure >= 0 && figure < att_sweep_setting_at(sweep, index).figure_count;
}

/* a, b: [runs] the values of the runs of `one` and `two`. */
static att_paired difference_over_seeds(const setting *one, const double *a, const setting *two, const double *b)
{
    double left[ATT_SWEEP_MOST_RUNS], right[ATT_SWEEP_MOST_RUNS];
    int count = 0;
    for (int i = 0; i < one->runs; i++)
        for (int k = 0; k < two->runs; k++)
            if (one->seeds[i] == two->seeds[k] && count < ATT_SWEEP_MOST_RUNS) {
                left[count] = a[i];
                right[count++] = b[k];
                break;
            }
    return att_paired_difference(left, right, count);
}

att_paired att_sweep_difference(const att_sweep *sweep, int index, int figure, int other, int other_figure)
{
    if (!has_figure(sweep, index, figure) || !has_figure(sweep, other, other_figure))
        return att_paired_difference(NULL, NULL, 0);
    const setting *one = &sweep->settings[index], *two = &sweep->settings[other];
    return difference_over_seeds(one, one->values[figure], two, two->values[other_figure]);
}

att_paired att_sweep_score_difference(const att_sweep *sweep, int index, int other)
{
    const att_metric *metric = att_sweep_setting_at(sweep, index).metric;
    if (!metric || att_sweep_setting_at(sweep, other).metric != metric)
        return att_paired_difference(NULL, NULL, 0);
    const setting *one = &sweep->settings[index], *two = &sweep->settings[other];
    return difference_over_seeds(one, one->scores, two, two->scores);
}

int att_sweep_direction(const att_context *context, const char *instrument, const char *statistic)
{
    att_instrument_info info;
    if (!instrument || !statistic || !att_instrument_find(context, instrument, &info) || !info.scores)
        return 0;
    for (int t = 0; t < att_task_count(context); t++) {
        att_task_info task = att_task_at(context, t);
        int metric = att_task_metric(&task, statistic);
        if (metric >= 0)
            return task.metrics[metric].larger_is_better ? 1 : -1;
    }
    return 0;
}

att_sweep_ranking att_sweep_rank(const att_sweep *sweep, const char *instrument, const char *node,
                                 const char *statistic)
{
    const att_sweep_ranking none = {-1, -1, att_paired_difference(NULL, NULL, 0)};
    att_sweep_ranking r = none;
    double mean[2] = {NAN, NAN};
    const int direction = att_sweep_direction(sweep->context, instrument, statistic);
    for (int i = 0; direction != 0 && i < sweep->setting_count; i++) {
        double value = direction * att_sweep_figure_find(sweep, i, instrument, node, statistic).mean;
        if (isnan(value) || value <= mean[1])
            continue;
        bool first = !(value <= mean[0]);
        r.second = first ? r.best : i;
        mean[1] = first ? mean[0] : value;
        r.best = first ? i : r.best;
        mean[0] = first ? value : mean[0];
    }
    if (mean[0] == mean[1])
        return none;
    if (r.second >= 0)
        r.lead = att_sweep_difference(sweep, r.best, att_sweep_figure_index(sweep, r.best, instrument, node, statistic),
                                      r.second, att_sweep_figure_index(sweep, r.second, instrument, node, statistic));
    return r;
}

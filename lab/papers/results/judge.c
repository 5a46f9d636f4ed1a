#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "lab/papers/results/list.h"
#include "lab/papers/results/record.h"
#include "lab/report/paired.h"

/* --- the lists ---------------------------------------------------------------------------------------------------- */

#define TABLE(name) &att_results_##name,
static const att_results_table *const tables[] = {ATT_RESULTS_LIST(TABLE)};
#undef TABLE
enum { TABLES = sizeof tables / sizeof *tables };

int att_result_count(void)
{
    int count = 0;
    for (int t = 0; t < TABLES; t++)
        count += tables[t]->count;
    return count;
}

const att_result *att_result_find(int index)
{
    for (int t = 0; index >= 0 && t < TABLES; t++) {
        if (index < tables[t]->count)
            return &tables[t]->results[index];
        index -= tables[t]->count;
    }
    return NULL;
}

const att_result_info *att_result_at(int index)
{
    const att_result *result = att_result_find(index);
    return result ? &result->info : NULL;
}

const char *att_verdict_name(att_verdict verdict)
{
    static const char *const names[] = {[ATT_VERDICT_NOT_RUN] = "not run",
                                        [ATT_VERDICT_AGREES] = "agrees",
                                        [ATT_VERDICT_DISAGREES] = "disagrees",
                                        [ATT_VERDICT_CANNOT_TELL] = "cannot tell",
                                        [ATT_VERDICT_NONE] = "no verdict"};
    return names[verdict];
}

/* --- one criterion ------------------------------------------------------------------------------------------------ */

/* Differences over the seeds that both have; of the values themselves if `against` has none and is not read. */
static att_paired compare(const att_result_values *value, const att_result_values *against, bool paired)
{
    double a[ATT_SWEEP_MOST_RUNS], b[ATT_SWEEP_MOST_RUNS];
    int count = 0;
    for (int i = 0; i < value->count; i++)
        for (int k = 0; k < (paired ? against->count : 1); k++)
            if (!paired || against->seeds[k] == value->seeds[i]) {
                a[count] = value->values[i];
                b[count++] = paired ? against->values[k] : 0;
            }
    return att_paired_difference(a, b, count);
}

static double mean_of(const att_result_values *values)
{
    double sum = 0;
    for (int i = 0; i < values->count; i++)
        sum += values->values[i];
    return sum / values->count;
}

/* low, high: whether these ends of the interval are on the expected side. */
static att_verdict side(bool low, bool high)
{
    return low && high ? ATT_VERDICT_AGREES : low || high ? ATT_VERDICT_CANNOT_TELL : ATT_VERDICT_DISAGREES;
}

/* Whether no chance decides the value, so that it has no interval. */
static bool is_exact(const att_reading *reading)
{
    return !reading->setting && !strstr(reading->file, "{seed}");
}

static att_verdict judge_interval(const att_criterion *criterion, const att_paired *value, double scale)
{
    const bool exact = is_exact(&criterion->value);
    const double low = exact ? value->mean : value->low, high = exact ? value->mean : value->high;
    const double bound = criterion->bound, reach = bound * scale;
    if (isnan(low)) /* a single seed, or none with a number */
        return ATT_VERDICT_CANNOT_TELL;
    switch (criterion->expected) {
    case ATT_EXPECT_ABOVE:
        return side(low > bound, high > bound);
    case ATT_EXPECT_BELOW:
        return side(low < bound, high < bound);
    case ATT_EXPECT_WITHIN:
        break;
    }
    return fabs(low) < reach && fabs(high) < reach ? ATT_VERDICT_AGREES
           : low > reach || high < -reach          ? ATT_VERDICT_DISAGREES
                                                   : ATT_VERDICT_CANNOT_TELL;
}

static att_status judge_criterion(att_context *context, const json_t *record, const att_criterion *criterion,
                                  att_judged *judged)
{
    const bool paired = criterion->against.figure != NULL;
    att_result_values value = {.count = 0}, against = {.count = 0};
    ATT_TRY(att_record_values(context, record, &criterion->value, &value));
    if (paired)
        ATT_TRY(att_record_values(context, record, &criterion->against, &against));
    *judged = (att_judged){
        .says = criterion->says, .expects = criterion->expects, .value = compare(&value, &against, paired)};
    judged->verdict = !value.found || (paired && !against.found)
                          ? ATT_VERDICT_NOT_RUN
                          : judge_interval(criterion, &judged->value, paired ? fabs(mean_of(&against)) : 1);
    return ATT_OK;
}

/* --- one result --------------------------------------------------------------------------------------------------- */

static int count_of(const att_judgement *judgement, att_verdict verdict)
{
    int count = 0;
    for (int i = 0; i < judgement->count; i++)
        count += judgement->criteria[i].verdict == verdict;
    return count;
}

static att_verdict conclude(const att_judgement *judgement)
{
    return judgement->count == 0                              ? ATT_VERDICT_NONE
           : count_of(judgement, ATT_VERDICT_NOT_RUN) > 0     ? ATT_VERDICT_NOT_RUN
           : count_of(judgement, ATT_VERDICT_DISAGREES) > 0   ? ATT_VERDICT_DISAGREES
           : count_of(judgement, ATT_VERDICT_CANNOT_TELL) > 0 ? ATT_VERDICT_CANNOT_TELL
                                                              : ATT_VERDICT_AGREES;
}

static att_status judge(att_context *context, const json_t *record, const att_result *result, att_judgement *judgement)
{
    for (int i = 0; i < result->count; i++)
        ATT_TRY(judge_criterion(context, record, &result->criteria[i], &judgement->criteria[i]));
    judgement->count = result->count;
    judgement->verdict = conclude(judgement);
    return ATT_OK;
}

att_status att_result_judge(att_context *context, const char *records, int index, att_judgement *judgement)
{
    const att_result *result = att_result_find(index);
    json_t *record = NULL;
    *judgement = (att_judgement){.verdict = ATT_VERDICT_NOT_RUN};
    if (!result || !records)
        return att_fail(context, ATT_ERR_ARGUMENT, "there is no result %d, or no folder is given", index);
    if (!result->info.run)
        return ATT_OK;
    ATT_TRY(att_record_open(context, records, result->info.run, &record));
    judgement->outdated = record && !att_record_is_of(record, att_result_run_find(result->info.run));
    att_status status = judge(context, record, result, judgement);
    json_decref(record);
    return status;
}

/* --- as JSON ------------------------------------------------------------------------------------------------------ */

static void write_criterion(const att_judged *judged, att_json_writer *writer)
{
    att_json_begin_object(writer);
    att_json_put_string(writer, "says", judged->says);
    att_json_put_string(writer, "expects", judged->expects);
    att_json_put_integer(writer, "n", judged->value.count);
    att_json_put_number(writer, "mean", judged->value.mean);
    att_json_put_number(writer, "low", judged->value.low);
    att_json_put_number(writer, "high", judged->value.high);
    att_json_put_string(writer, "verdict", att_verdict_name(judged->verdict));
    att_json_end_object(writer);
}

void att_result_write_json(int index, const att_judgement *judgement, att_json_writer *writer)
{
    const att_result_info *info = att_result_at(index);
    if (!info)
        return;
    att_json_put_string(writer, "name", info->name);
    att_json_put_string(writer, "paper", info->paper);
    att_json_put_string(writer, "place", info->place);
    att_json_put_string(writer, "claim", info->claim);
    att_json_put_string(writer, "scale", info->scale);
    att_json_put_string(writer, "run", info->run);
    att_json_put_string(writer, "note", info->note);
    att_json_put_string(writer, "verdict", att_verdict_name(judgement->verdict));
    att_json_put_bool(writer, "outdated", judgement->outdated);
    att_json_put_array(writer, "criteria");
    for (int i = 0; i < judgement->count; i++)
        write_criterion(&judgement->criteria[i], writer);
    att_json_end_array(writer);
}

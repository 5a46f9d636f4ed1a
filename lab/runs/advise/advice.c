#include <attscope/lab/advise.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "lab/report/correlations.h"
#include "lab/report/paired.h"
#include "lab/runs/advise/advice.h"

const char *att_advice_text(att_advice *advice, const char *format, ...)
{
    char text[ATT_RUN_PATH];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return length >= 0 && length < (int)sizeof text ? att_arena_string(&advice->texts, text) : NULL;
}

att_advise_options att_advise_options_defaults(void)
{
    return (att_advise_options){.candidates = ATT_ADVISE_CANDIDATES,
                                .batch_size = att_evaluate_options_defaults().batch_size};
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static att_status check(att_context *context, const att_advise_options *options)
{
    ATT_TRY(att_require(context, options, "the options of an advice"));
    ATT_TRY(att_require(context, options->checkpoint, "the checkpoint of an advice"));
    ATT_TRY(att_require(context, options->data, "the data of an advice"));
    ATT_TRY(att_require(context, options->module, "the module of an advice"));
    ATT_TRY(att_require(context, options->output, "the output folder of an advice"));
    if (options->candidates < 1 || options->candidates > ATT_ADVISE_MOST)
        return att_fail(context, ATT_ERR_ARGUMENT, "an advice of %d candidates; expected 1 to %d", options->candidates,
                        (int)ATT_ADVISE_MOST);
    if (options->seed_count < 2)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "an advice with %d seed; expected 2 or more, because the interval of a gain comes from the "
                        "differences between seeds",
                        options->seed_count);
    return ATT_OK;
}

/* "resnet20-se" of "weights/resnet20.th" and "se:ratio=8@after_branch" */
static const char *name_experiment(att_advice *advice)
{
    const char *module = advice->options.module;
    const char *file = att_path_last(advice->options.checkpoint), *dot = strrchr(file, '.');
    return att_advice_text(advice, "%.*s-%.*s", dot && dot > file ? (int)(dot - file) : (int)strlen(file), file,
                           (int)strcspn(module, ":@"), module);
}

static att_status prepare(att_advice *advice, att_network *network)
{
    const char *given = advice->options.experiment;
    advice->experiment = given && *given ? given : name_experiment(advice);
    const char *own = att_options_text(&att_network_identity(network)->options, "modules");
    advice->base = *own ? att_arena_string(&advice->texts, own) : "none";
    if (!advice->experiment || !advice->base)
        return att_fail_memory(advice->context, ATT_OPTION_TEXT_BYTES, "the names of an advice");
    ATT_TRY(att_advice_read_module(advice, network));
    ATT_TRY(att_advice_list_blocks(advice, network));
    ATT_TRY(att_advice_check_start(advice, network));
    ATT_TRY(att_advice_rank(advice, network));
    return att_advice_open_plan(advice);
}

att_status att_advice_open(att_context *context, const att_advise_options *options, att_advice **advice)
{
    att_network_options network_options = att_network_options_defaults();
    att_network *network = NULL;
    ATT_TRY(check(context, options));
    network_options.model = options->model;
    ATT_TRY(att_network_open(context, options->checkpoint, &network_options, &network));
    att_advice *made = att_allocate(context, sizeof *made);
    att_status status = made ? ATT_OK : att_fail_memory(context, sizeof *made, "an advice");
    if (made) {
        *made = (att_advice){.context = context, .options = *options, .texts.context = context};
        made->score = made->score_deviation = NAN;
        status = prepare(made, network);
    }
    att_network_close(&network);
    if (status == ATT_OK)
        *advice = made;
    else
        att_advice_close(&made);
    return status;
}

void att_advice_close(att_advice **advice)
{
    if (!advice || !*advice)
        return;
    att_sweep_plan_close(&(*advice)->plan);
    att_arena_free(&(*advice)->texts);
    att_free((*advice)->context, *advice);
    *advice = NULL;
}

att_sweep_plan *att_advice_plan(att_advice *advice)
{
    return advice->plan;
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

/* The setting of the sweep with these modules; -1: none of its runs is finished. */
static int find_setting(const att_sweep *results, const char *modules)
{
    static const char prefix[] = "modules=";
    for (int i = 0; i < att_sweep_setting_count(results); i++) {
        const char *name = att_sweep_setting_at(results, i).name;
        if (strncmp(name, prefix, sizeof prefix - 1) == 0 && strcmp(name + sizeof prefix - 1, modules) == 0)
            return i;
    }
    return -1;
}

static void flip(att_paired *gain)
{
    const double low = gain->low;
    gain->mean = -gain->mean;
    gain->low = -gain->high;
    gain->high = -low;
}

static void judge(const att_advice *advice, const att_sweep *results, int base, att_advised *candidate)
{
    const int setting = find_setting(results, candidate->modules);
    const att_sweep_setting found = att_sweep_setting_at(results, setting);
    candidate->score = setting < 0 ? NAN : found.score;
    candidate->score_deviation = setting < 0 ? NAN : found.score_deviation;
    candidate->gain = att_sweep_score_difference(results, setting, base);
    att_paired_widen(&candidate->gain, advice->tested);
    if (advice->metric && !advice->metric->larger_is_better)
        flip(&candidate->gain);
}

static att_status correlate(att_advice *advice)
{
    double predicted[ATT_ADVISE_MOST], gained[ATT_ADVISE_MOST];
    int count = 0;
    for (int i = 0; i < advice->tested; i++) {
        const att_advised *candidate = &advice->blocks[i].shown;
        if (candidate->gain.count == 0 || !isfinite(candidate->gain.mean))
            continue;
        predicted[count] = candidate->predicted;
        gained[count++] = candidate->gain.mean;
    }
    return att_correlate(advice->context, predicted, gained, NULL, count, 0, &advice->correlation);
}

att_status att_advice_judge(att_advice *advice)
{
    const att_sweep *results = att_sweep_plan_results(advice->plan);
    if (!results)
        return att_fail(advice->context, ATT_ERR_ARGUMENT,
                        "the fine-tunings have not been run; call att_sweep_plan_run() before att_advice_judge()");
    const int base = find_setting(results, advice->base);
    const att_sweep_setting found = att_sweep_setting_at(results, base);
    advice->metric = found.metric;
    advice->score = base < 0 ? NAN : found.score;
    advice->score_deviation = base < 0 ? NAN : found.score_deviation;
    for (int i = 0; i < advice->tested; i++)
        judge(advice, results, base, &advice->blocks[i].shown);
    return correlate(advice);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

int att_advice_count(const att_advice *advice)
{
    return advice->count;
}

att_advised att_advice_at(const att_advice *advice, int index)
{
    return index >= 0 && index < advice->count ? advice->blocks[index].shown : (att_advised){0};
}

const char *att_advised_verdict(const att_advised *advised)
{
    if (!advised->tested)
        return "not tested";
    return !att_paired_is_separated(&advised->gain) ? "no evidence" : advised->gain.low > 0 ? "gain" : "loss";
}

att_advice_facts att_advice_facts_of(const att_advice *advice)
{
    return (att_advice_facts){.instrument = advice->instrument,
                              .statistic = advice->statistic,
                              .unit = advice->unit,
                              .base = advice->base,
                              .metric = advice->metric,
                              .score = advice->score,
                              .score_deviation = advice->score_deviation,
                              .correlation = advice->correlation};
}

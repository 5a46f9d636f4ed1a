#include "lab/bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include <attscope/task.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/session/session.h"
#include "engine/update/update.h"
#include "engine/weights/gradient.h"
#include "lab/bench/clock.h"
#include "networks/models/inputs.h"
#include "networks/tasks/task.h"
#include "study/train/freeze.h"

/* --- creation ----------------------------------------------------------------------------------------------------- */

att_bench_options att_bench_options_defaults(void)
{
    return (att_bench_options){.backend = "cpu", .batch_size = 32, .repeats = 5, .warmup = 2};
}

att_status att_bench_check_repeats(att_context *context, int repeats, int warmup)
{
    if (repeats < 1 || repeats > ATT_BENCH_REPEATS || warmup < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "bench: repeats must be in 1..%d and warmup at least 1",
                        ATT_BENCH_REPEATS);
    return ATT_OK;
}

/* Gives a model without a head ImageNet's 1000 classes, so that it can be trained. */
static att_status ensure_classes(att_context *context, const char *name, att_option_values *options)
{
    att_model *model;
    ATT_TRY(att_model_create(context, name, options, ATT_F32, &model));
    if (att_model_classes(model) == 0)
        att_options_set(options, "num_classes", 1000);
    att_model_destroy(&model);
    return ATT_OK;
}

/* Marks the parameters that options->freeze names, and the statistics that their norms do not change. */
static att_status freeze(att_bench *b)
{
    const att_graph *graph = att_model_graph(b->model);
    const size_t count = (size_t)graph->parameters.count;
    ATT_TRY(att_new(b->context, &b->rates, count + 1, "the parameters' rates"));
    ATT_TRY(att_new(b->context, &b->frozen, count + 1, "the parameters' rates"));
    for (size_t i = 0; i < count; i++)
        b->rates[i] = att_parameter_rates_defaults(&graph->parameters.items[i]);
    ATT_TRY(att_freeze_apply(b->context, b->model, b->options.freeze, b->rates));
    for (size_t i = 0; i < count; i++)
        b->frozen[i] = b->rates[i].frozen;
    att_freeze_count(b->model, true, b->frozen);
    for (size_t i = 0; i < count; i++)
        b->rates[i].frozen = b->frozen[i];
    return ATT_OK;
}

static att_status add_loss(att_bench *b)
{
    const char *task = att_model_task(b->model).name;
    const att_task_setup setup = {.classes = att_model_classes(b->model), .network = att_model_options(b->model)};
    ATT_TRY(att_task_add_loss(task, att_model_graph(b->model), &setup));
    att_task_drop_outputs(task, att_model_graph(b->model));
    return freeze(b);
}

/* Lists the outputs without the probes between the parts of a network, which runs compute only on request. */
static att_status list_outputs(att_bench *b)
{
    const att_graph *graph = att_model_graph(b->model);
    int count = 0;
    ATT_TRY(att_new(b->context, &b->outputs, (size_t)graph->outputs.count + 1, "the names of outputs"));
    for (int i = 0; i < graph->outputs.count; i++)
        if (!graph->outputs.items[i].probe)
            b->outputs[count++] = graph->outputs.items[i].name;
    return ATT_OK;
}

static att_status make_network(att_bench *b)
{
    const att_bench_options *options = &b->options;
    att_option_values network = options->network ? *options->network : att_options_none();
    if (options->training && !att_options_find(&network, "num_classes"))
        ATT_TRY(ensure_classes(b->context, options->model, &network));
    ATT_TRY(att_model_create(b->context, options->model, &network, ATT_F32, &b->model));
    if (options->training)
        ATT_TRY(add_loss(b));
    if (options->instruments)
        ATT_TRY(att_measure_create(att_model_graph(b->model), options->instruments, "*", &b->measure));
    att_timed_options timed = {.plan = att_plan_options_defaults(),
                               .without = b->without,
                               .task = att_task_named(b->context, att_model_task(b->model).name),
                               .batch = options->batch_size,
                               .classes = att_model_classes(b->model),
                               .vocabulary = (int)att_options_number(att_model_options(b->model), "vocab_size", 0)};
    timed.plan.backend = options->backend;
    timed.plan.precision = options->precision;
    if (!options->training && !options->instruments) {
        ATT_TRY(list_outputs(b));
        timed.plan.outputs = b->outputs;
    }
    if (options->training) {
        timed.plan.purpose = ATT_TRAIN;
        timed.plan.comm = options->comm;
        timed.plan.sync_statistics = options->sync_statistics;
        timed.plan.frozen = b->frozen;
        timed.optimizer = "adamw";
        timed.rates = b->rates;
    }
    return att_timed_create(att_model_graph(b->model), &timed, &b->timed);
}

att_status att_bench_create(att_context *context, const att_bench_options *options, att_bench **bench)
{
    return att_bench_create_without(context, options, NULL, bench);
}

att_status att_bench_create_without(att_context *context, const att_bench_options *options, const char *pattern,
                                    att_bench **bench)
{
    if (options->batch_size < 1 || options->batch_size > ATT_BENCH_BATCH)
        return att_fail(context, ATT_ERR_ARGUMENT, "bench: batch_size must be in 1..%d, not %d", ATT_BENCH_BATCH,
                        options->batch_size);
    att_bench *b;
    ATT_TRY(att_new(context, &b, 1, "a benchmark"));
    b->context = context;
    b->options = *options;
    b->without = pattern;
    att_status status = make_network(b);
    if (status == ATT_OK)
        *bench = b;
    else
        att_bench_destroy(&b);
    return status;
}

void att_bench_destroy(att_bench **bench)
{
    if (!bench || !*bench)
        return;
    att_bench *b = *bench;
    att_triad_destroy(&b->triad);
    att_gemm_destroy(&b->gemm);
    att_timed_destroy(&b->timed);
    att_measure_destroy(&b->measure);
    att_model_destroy(&b->model);
    att_free(b->context, (void *)b->outputs);
    att_free(b->context, b->rates);
    att_free(b->context, b->frozen);
    att_free(b->context, b);
    *bench = NULL;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

att_status att_bench_time(att_bench *b, int batch, double *seconds)
{
    double begin = att_seconds_now();
    ATT_TRY(att_timed_run(&b->timed, batch));
    if (b->measure)
        ATT_TRY(att_measure_observe(b->measure, b->timed.session, batch, NULL));
    *seconds = att_seconds_now() - begin;
    return ATT_OK;
}

att_bench_size att_bench_size_of(const att_bench *b)
{
    return (att_bench_size){.parameters = att_graph_parameter_elements(att_model_graph(b->model)),
                            .peak_bytes = att_clock_peak_bytes()};
}

static att_status time_network(att_bench *b)
{
    for (int i = 0; i < b->options.repeats; i++) {
        ATT_TRY(att_bench_time(b, b->options.batch_size, &b->network_seconds[i]));
        double begin = att_seconds_now();
        if (b->gemm)
            ATT_TRY(att_gemm_run(b->gemm));
        b->gemm_seconds[i] = att_seconds_now() - begin;
    }
    return ATT_OK;
}

/* Runs after the other measurements, because its arrays would evict theirs from the caches. */
static att_status time_triad(att_bench *b)
{
    ATT_TRY(att_triad_create(b->context, &b->triad));
    att_triad_run(b->triad);
    for (int i = 0; i < b->options.repeats; i++) {
        double begin = att_seconds_now();
        att_triad_run(b->triad);
        b->triad_seconds[i] = att_seconds_now() - begin;
    }
    return ATT_OK;
}

att_precision att_bench_gemm_precision(const att_context *context, att_precision precision)
{
    return att_context_has_bf16(context) ? precision : ATT_FULL;
}

static att_status start_profile(att_bench *b)
{
    if (b->timed.update)
        ATT_TRY(att_update_profile(b->timed.update, true));
    return att_session_profile(b->timed.session, true);
}

/* The rates of the processor say nothing about a device. */
static bool computes_on_device(const att_bench *b)
{
    return strcmp(b->options.backend, "cuda") == 0;
}

static att_status create_gemm(att_bench *b)
{
    att_precision precision = att_bench_gemm_precision(b->context, b->options.precision);
    ATT_TRY(att_gemm_create(att_model_graph(b->model), b->options.batch_size, precision, &b->gemm));
    return att_gemm_run(b->gemm);
}

static att_status run_case(att_bench *b, att_bench_result *result)
{
    const att_bench_options *options = &b->options;
    for (int i = 0; i < options->warmup; i++)
        ATT_TRY(att_timed_run(&b->timed, options->batch_size));
    result->peak_bytes = att_clock_peak_bytes();
    if (!computes_on_device(b))
        ATT_TRY(create_gemm(b));
    if (options->profile)
        ATT_TRY(start_profile(b));
    ATT_TRY(time_network(b));
    return computes_on_device(b) ? ATT_OK : time_triad(b);
}

/* --- results ------------------------------------------------------------------------------------------------------ */

static void summarise_rates(att_bench *b, att_bench_result *result)
{
    int repeats = b->options.repeats;
    double flops = att_gemm_flops(b->gemm);
    result->gemm_rate = flops / att_median(b->gemm_seconds, repeats);
    result->share = (b->options.training ? 3 : 1) * flops / result->step_seconds / result->gemm_rate;
    result->memory_rate = att_triad_bytes(b->triad) / att_median(b->triad_seconds, repeats);
}

static att_bench_memory memory_of(const att_bench *b)
{
    const att_timed *timed = &b->timed;
    att_memory_part parts[ATT_SESSION_PARTS];
    att_session_parts(timed->plan, b->options.batch_size, parts);
    const size_t values = att_weights_bytes(timed->weights), held = att_weights_held_bytes(timed->weights);
    att_bench_memory memory = {.weights = values - att_session_given_back(timed->session),
                               .trained = parts[ATT_SESSION_LANES].bytes + held - values,
                               .packed = parts[ATT_SESSION_PACKED].bytes,
                               .layers = parts[ATT_SESSION_LAYERS].bytes,
                               .kept = parts[ATT_SESSION_KEPT].bytes,
                               .transfers = parts[ATT_SESSION_OUTPUTS].bytes};
    for (int i = 0; att_plan_input_at(timed->plan, i).name; i++) {
        const att_field input = att_plan_input_at(timed->plan, i);
        memory.transfers += (size_t)b->options.batch_size * att_field_bytes(&input);
    }
    if (b->options.training)
        memory.trained += att_gradient_bytes(timed->weights, b->frozen);
    return memory;
}

static void summarise(att_bench *b, att_bench_result *result)
{
    const att_graph *graph = att_model_graph(b->model);
    int repeats = b->options.repeats, batch = b->options.batch_size;
    const att_preprocess *image = att_model_image(b->model).image;
    result->height = image ? image->height : 0;
    result->width = image ? image->width : 0;
    result->parameters = att_graph_parameter_elements(graph);
    result->gmacs = 1e-9 * att_graph_cost(graph).macs;
    for (int i = 0; i < repeats; i++)
        result->all_seconds += b->network_seconds[i];
    result->step_seconds = att_median(b->network_seconds, repeats);
    result->images_per_second = batch / result->step_seconds;
    if (!computes_on_device(b))
        summarise_rates(b, result);
    result->memory = memory_of(b);
    result->compile_seconds = b->timed.compile_seconds;
    result->plan = att_plan_describe(b->timed.plan);
    if (b->options.training)
        result->plan.gradient_bytes += att_gradient_bytes(b->timed.weights, b->frozen);
}

double att_bench_floor(const att_bench_result *result, const att_profile_row *row)
{
    if (result->gemm_rate == 0)
        return 0;
    double computing = row->flops / result->gemm_rate, moving = row->bytes / result->memory_rate;
    return computing > moving ? computing : moving;
}

static int compare_rows(const void *a, const void *b)
{
    double x = ((const att_profile_row *)a)->seconds, y = ((const att_profile_row *)b)->seconds;
    return (x < y) - (x > y);
}

static att_status report_profile(att_bench *b)
{
    const att_session *session = b->timed.session;
    const att_update *update = b->timed.update;
    int session_rows = att_session_profile_count(session);
    int count = session_rows + (update ? att_update_profile_count(update) : 0);
    if (!b->options.profile || !b->options.row || count <= 0)
        return ATT_OK;
    att_profile_row *rows;
    ATT_TRY(att_new(b->context, &rows, (size_t)count, "a profile"));
    for (int i = 0; i < count; i++)
        rows[i] =
            i < session_rows ? att_session_profile_at(session, i) : att_update_profile_at(update, i - session_rows);
    qsort(rows, (size_t)count, sizeof *rows, compare_rows);
    for (int i = 0; i < count; i++)
        b->options.row(b->options.row_user, &rows[i]);
    att_free(b->context, rows);
    return ATT_OK;
}

att_status att_bench_run(att_context *context, const att_bench_options *options, att_bench_result *result)
{
    ATT_TRY(att_bench_check_repeats(context, options->repeats, options->warmup));
    att_bench *b;
    ATT_TRY(att_bench_create(context, options, &b));
    att_bench_result measured = {0};
    att_status status = run_case(b, &measured);
    if (status == ATT_OK)
        status = report_profile(b);
    if (status == ATT_OK) {
        summarise(b, &measured);
        *result = measured;
    }
    att_bench_destroy(&b);
    return status;
}

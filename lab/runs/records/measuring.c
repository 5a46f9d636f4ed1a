/* Measures a checkpoint on images. */
#include "lab/runs/records/measuring.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "data/choose.h"
#include "data/dataset.h"
#include "engine/graph/graph.h"
#include "engine/weights/weights.h"
#include "lab/runs/records/given.h"
#include "lab/runs/records/instruments.h"
#include "networks/models/family.h"

/* Instruments that compute less than this share of the network are not worth a line in the log. */
static const double LOGGED_SHARE = 0.01;

att_measuring_options att_measuring_options_defaults(void)
{
    const att_evaluate_options evaluate = att_evaluate_options_defaults();
    const att_dataset_options data = att_dataset_options_defaults();
    return (att_measuring_options){.with = "all",
                                   .nodes = "*",
                                   .split = "validation",
                                   .reduce_zero_label = data.reduce_zero_label,
                                   .ignore_label = data.ignore_label,
                                   .cache_bytes = data.cache_bytes,
                                   .batch_size = evaluate.batch_size,
                                   .workers = evaluate.workers};
}

void att_measured_free(att_measured *measured)
{
    if (!measured)
        return;
    att_measure_destroy(&measured->measure);
    *measured = (att_measured){0};
}

/* --- checks before anything is read ------------------------------------------------------------------------------- */

/* Returns the options with defaults in place of NULL, and NULL in place of empty names of folders. */
static att_measuring_options complete(const att_measuring_options *given)
{
    const att_measuring_options defaults = att_measuring_options_defaults();
    att_measuring_options options = given ? *given : defaults;
    options.with = options.with ? options.with : defaults.with;
    options.nodes = options.nodes ? options.nodes : defaults.nodes;
    options.split = options.split ? options.split : defaults.split;
    options.output = att_given(options.output);
    options.experiment = att_given(options.experiment);
    options.raw = att_given(options.raw);
    options.raw_arrays = att_given(options.raw_arrays);
    return options;
}

static att_status check_options(att_context *context, int data_count, const att_measuring_options *options)
{
    const char *wanting = att_instruments_needing_labels(context, options->with);
    if (options->maps > 0 && options->map_images)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "maps takes the first images, map_images names them: only one of both can be given");
    if (data_count < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "a measurement on %d paths, expected 1 or more", data_count);
    if (data_count > 1 && wanting)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s needs classes: name one data set instead of %d paths of images",
                        wanting, data_count);
    return att_instruments_check(context, options->with);
}

static att_status check_raw(att_context *context, const char *checkpoint, const att_measuring_options *options)
{
    if (!options->raw && !options->raw_arrays)
        return ATT_OK;
    if (!options->raw)
        return att_fail(context, ATT_ERR_ARGUMENT, "raw_arrays chooses the arrays of raw, which is missing");
    if (att_file_is_same(options->raw, checkpoint))
        return att_fail(context, ATT_ERR_ARGUMENT, "raw output would replace the checkpoint %s", checkpoint);
    ATT_TRY(att_raw_check_path(context, options->raw, 0));
    return att_raw_check_list(context, options->raw_arrays);
}

att_status att_measuring_check(att_context *context, const char *checkpoint, int data_count,
                               const att_measuring_options *options)
{
    const att_measuring_options completed = complete(options);
    char folder[ATT_RUN_PATH];
    ATT_TRY(att_require(context, checkpoint, "the path of the checkpoint to measure"));
    ATT_TRY(check_options(context, data_count, &completed));
    ATT_TRY(check_raw(context, checkpoint, &completed));
    return att_measuring_folder(context, checkpoint, false, &completed, folder);
}

/* --- instruments -------------------------------------------------------------------------------------------------- */

static int classes_of(const att_measuring *m)
{
    return att_model_classes(att_network_model(m->network));
}

/* Removes the instruments that need labels from "all". */
static void leave_out_labels(att_measuring *m)
{
    bool any = false;
    for (int i = 0; i < att_instrument_count(m->context); i++) {
        const att_instrument_info info = att_instrument_at(m->context, i);
        char left_out[64];
        snprintf(left_out, sizeof left_out, "-%s", info.name);
        if (!info.needs_labels || att_instruments_name(m->options->with, left_out))
            continue;
        att_log(m->context, ATT_LOG_INFO, "%s is left out: %s", info.name,
                classes_of(m) > 0 ? "the images have no classes, or others than the network"
                                  : "the network has no classes");
        any = true;
    }
    if (any)
        att_instruments_leave_out_labels(&m->with);
}

/* Whether this process writes files. */
static bool writes(const att_measuring *m)
{
    return att_comm_rank(m->options->comm) == 0;
}

static unsigned wanted_annotations(const att_measuring *m)
{
    return att_task_annotations(m->context, att_model_task(att_network_model(m->network)).name);
}

/* Whether the network's task can be evaluated with annotations of the images other than a class. */
static bool has_annotations(const att_measuring *m)
{
    const unsigned wanted = wanted_annotations(m);
    return wanted && (att_dataset_annotations(m->dataset) & wanted) == wanted &&
           att_dataset_class_count(m->dataset) == classes_of(m);
}

static void warn_without_annotations(const att_measuring *m)
{
    const unsigned lacking = wanted_annotations(m) & ~att_dataset_annotations(m->dataset);
    const bool boxes = lacking & ATT_ANNOTATION_BOXES;
    if (lacking == 0 || !writes(m))
        return;
    att_log(m->context, ATT_LOG_WARNING,
            "%s has no %s that belong to its photographs, so that %s of the classes are not measured; to measure them, "
            "give the folder that contains the photographs and the %s, and name the split (--split)",
            m->data[0], att_annotation_name(lacking), boxes ? "AP and AR" : "IoU and accuracy",
            att_annotation_name(lacking));
}

/* Decides whether labels are used, and by which instruments. */
static att_status choose_labels(att_measuring *m)
{
    const char *with = m->options->with, *wanting = att_instruments_needing_labels(m->context, with);
    const bool all = att_instruments_take_all(with);
    char consequence[96];
    if (all && att_dataset_fits_classes(m->dataset, classes_of(m)))
        m->unlabelled = false;
    else if (all)
        leave_out_labels(m);
    snprintf(consequence, sizeof consequence, "%s cannot be told", wanting ? wanting : "");
    if (!all && wanting)
        ATT_TRY(att_network_need_head(m->network, consequence));
    if (has_annotations(m))
        m->unlabelled = false;
    warn_without_annotations(m);
    return m->unlabelled ? ATT_OK : att_network_compare_classes(m->network, m->dataset, !all);
}

static att_status make_instruments(att_measuring *m)
{
    ATT_TRY(choose_labels(m));
    ATT_TRY(att_measuring_spend_budget(m));
    if (m->with.failed)
        return att_fail_memory(m->context, m->with.length, "a list of instruments");
    att_status status = att_network_observe(m->network, m->with.data, m->options->nodes, &m->measure);
    if (status == ATT_ERR_NOT_FOUND) /* the message says which instrument or node */
        status = ATT_ERR_ARGUMENT;
    return status == ATT_OK ? att_measure_keep_samples(m->measure, m->options->samples) : status;
}

static att_status open_raw(att_measuring *m)
{
    const att_measuring_options *o = m->options;
    const att_model *observed = att_network_observed(m->network);
    if (!o->raw)
        return ATT_OK;
    ATT_TRY(att_raw_create(observed, o->raw_arrays, o->nodes, &m->raw));
    if (att_comm_rank(o->comm) != 0)
        return ATT_OK;
    const att_raw_fact facts[] = {{"weights", m->weights, true}};
    return att_raw_open(m->raw, o->raw, m->dataset, facts, 1);
}

/* Costly instruments repeat parts of the network: the log says how much they compute with each image. Studies add no
 * more than probes to that, and log the cost of their own plans. */
static att_status log_cost(const att_measuring *m)
{
    const att_graph *observed = att_model_graph(att_network_observed(m->network));
    const double all = att_graph_cost(observed).flops;
    att_cost network;
    bool costly = false;
    for (int i = 0; i < att_measure_instrument_count(m->measure); i++)
        costly |= att_measure_instrument_at(m->measure, i).costly;
    ATT_TRY(att_graph_inference_cost(observed, &network));
    const double own = network.flops;
    if (costly && all - own >= LOGGED_SHARE * own)
        att_log(m->context, ATT_LOG_INFO,
                "the instruments compute %.3g GFLOP for each image, %.3g times as much as the network (%.3g GFLOP)",
                (all - own) / 1e9, (all - own) / own, own / 1e9);
    return ATT_OK;
}

/* --- measuring ---------------------------------------------------------------------------------------------------- */

static att_status check_network(const att_measuring *m)
{
    if (!att_network_file(m->network) && !att_measuring_initialises(m->options))
        return att_fail(m->context, ATT_ERR_ARGUMENT,
                        "%s has no file of weights: open a checkpoint to measure it, not a network's name",
                        att_network_identity(m->network)->name);
    if (att_measuring_wants_maps(m->options) && att_model_tokens(att_network_model(m->network)) == 0)
        return att_fail(m->context, ATT_ERR_ARGUMENT, "maps show attention between tokens, and %s has none",
                        att_network_identity(m->network)->name);
    return ATT_OK;
}

/* If data without usable classes was refused, adds to the message which instrument needs them. */
static att_status explain_classes(const att_measuring *m, att_status status)
{
    char message[1024];
    const char *wanting = att_instruments_needing_labels(m->context, m->options->with);
    if (status != ATT_ERR_FORMAT || !wanting)
        return status;
    snprintf(message, sizeof message, "%s", att_context_message(m->context));
    return att_fail(m->context, status, "%s needs classes, but %s", wanting, message);
}

static att_status open_data(att_measuring *m)
{
    const att_measuring_options *o = m->options;
    att_dataset_options options = att_dataset_options_defaults();
    options.split = o->split;
    options.class_map = o->class_map;
    options.coarse = o->coarse_labels;
    options.reduce_zero_label = o->reduce_zero_label;
    options.ignore_label = o->ignore_label;
    options.cache_bytes = o->cache_bytes;
    options.unlabelled = m->unlabelled = !att_instruments_needing_labels(m->context, o->with);
    ATT_TRY(explain_classes(m, att_network_open_dataset(m->network, m->data, m->data_count, &options, &m->dataset)));
    const char *split = att_dataset_split(m->dataset);
    snprintf(m->found->split, sizeof m->found->split, "%s", *split ? split : "all");
    return ATT_OK;
}

static att_status prepare(att_measuring *m)
{
    const att_measuring_options *o = m->options;
    ATT_TRY(check_options(m->context, m->data_count, o));
    ATT_TRY(att_require_texts(m->context, m->data, m->data_count, "the path of the images to measure"));
    ATT_TRY(check_network(m));
    ATT_TRY(check_raw(m->context, m->checkpoint, o));
    ATT_TRY(att_measuring_folder(m->context, m->checkpoint, m->from_memory, o, m->found->folder));
    if (att_measuring_initialises(o))
        ATT_TRY(att_weights_initialise(att_network_weights(m->network), (uint64_t)o->init_seed));
    else
        ATT_TRY(att_checkpoint_describe(m->context, att_network_file(m->network), &m->stood));
    ATT_TRY(open_data(m));
    ATT_TRY(make_instruments(m));
    ATT_TRY(log_cost(m));
    if (o->map_images)
        ATT_TRY(att_dataset_choose(m->dataset, m->context, o->map_images, &m->chosen, &m->chosen_count));
    if (writes(m)) {
        ATT_TRY(att_weights_digest(att_network_weights(m->network), m->weights));
        ATT_TRY(att_measuring_open_records(m));
    }
    return open_raw(m);
}

/* As att_evaluate_options.detailed. */
static att_status keep_details(void *user, const att_measurement *figures, int count)
{
    att_measuring *m = user;
    ATT_TRY(att_new(m->context, &m->details, (size_t)count, "the figures of a task"));
    for (int i = 0; i < count; i++) {
        const size_t size = strlen(figures[i].node) + 1;
        char *node = att_arena_allocate(&m->names, size);
        if (!node)
            return att_fail_memory(m->context, size, "the figures of a task");
        m->details[i] = figures[i];
        m->details[i].node = memcpy(node, figures[i].node, size);
        m->detail_count++;
    }
    return ATT_OK;
}

/* Runs the network on every image. */
static att_status observe_images(att_measuring *m)
{
    const att_measuring_options *o = m->options;
    att_evaluate_options options = att_evaluate_options_defaults();
    options.batch_size = o->batch_size;
    options.workers = o->workers;
    options.limit = o->limit;
    options.skip_corrupt = o->skip_corrupt;
    options.comm = o->comm;
    options.unlabelled = m->unlabelled;
    options.measure = m->measure;
    options.detailed = keep_details;
    options.detailed_user = m;
    options.stage = "measure";
    options.observed = m->raw ? att_raw_observe : NULL;
    options.observed_user = m->raw;
    options.progress = o->progress;
    options.progress_user = o->progress_user;
    att_status status = att_network_evaluate(m->network, m->dataset, &options, &m->found->evaluation);
    if (status == ATT_ERR_STOPPED)
        return att_fail(m->context, status, "stopped before every image was seen; there is no result");
    return status;
}

static att_status record(att_measuring *m)
{
    ATT_TRY(att_dataset_contents(m->dataset, m->context, m->contents));
    ATT_TRY(att_measuring_write_records(m));
    ATT_TRY(m->raw ? att_raw_commit(m->raw) : ATT_OK);
    return att_measuring_write_maps(m);
}

static att_status measure(att_measuring *m)
{
    ATT_TRY(prepare(m));
    ATT_TRY(observe_images(m));
    m->found->measure = m->measure;
    m->measure = NULL;
    return writes(m) ? record(m) : ATT_OK;
}

att_status att_measure_checkpoint(att_network *network, const char *const *data, int data_count,
                                  const att_measuring_options *options, att_measured *measured)
{
    const att_measuring_options completed = complete(options);
    att_context *context = att_graph_context(att_model_graph(att_network_model(network)));
    const char *path = att_network_path(network);
    att_measuring m = {.context = context,
                       .network = network,
                       .checkpoint = path ? path : att_network_identity(network)->name,
                       .from_memory = !path,
                       .data = data,
                       .data_count = data_count,
                       .options = &completed,
                       .with = {.context = context},
                       .names = {.context = context},
                       .found = measured};
    ATT_TRY(att_require(context, measured, "the result of a measurement"));
    clock_gettime(CLOCK_MONOTONIC, &m.begun);
    att_text_append(&m.with, "%s", m.options->with);
    att_status status = measure(&m);
    att_measuring_close_records(&m);
    att_raw_destroy(&m.raw);
    att_free(context, m.chosen);
    att_measure_destroy(&m.measure);
    att_dataset_close(&m.dataset);
    att_text_free(&m.with);
    att_free(context, m.details);
    att_arena_free(&m.names);
    return status;
}

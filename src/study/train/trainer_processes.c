/* What a training run of several processes adds to that of one. */
#include <stdio.h>
#include <string.h>

#include "base/comm/comm.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/random.h"
#include "engine/graph/graph.h"
#include "engine/passes/passes.h"
#include "engine/weights/weights.h"
#include "study/train/metadata.h"
#include "study/train/trainer.h"

enum { MOST_LINES = ATT_METADATA_MAX, MEASURING = 96 };

bool att_trainer_writes(const att_trainer *trainer)
{
    return att_comm_rank(trainer->options->comm) == 0;
}

/* --- settings ---------------------------------------------------------------------------------------------------- */

typedef struct line_list {
    att_arena arena;
    att_shared_line lines[MOST_LINES];
    int count;
    bool failed;
} line_list;

static void add_line(void *user, const char *what, const char *value, const char *default_value)
{
    (void)default_value;
    line_list *list = user;
    att_shared_line line = {att_arena_string(&list->arena, what), att_arena_string(&list->arena, value)};
    if (!line.what || !line.value || list->count == MOST_LINES)
        list->failed = true;
    else
        list->lines[list->count++] = line;
}

/* The number of settings depends on network and task, so these are compared first. */
static att_status compare_networks(att_trainer *trainer)
{
    const att_train_options *options = trainer->options;
    char text[ATT_IDENTITY_TEXT];
    const att_model *model = trainer->run.model;
    att_identity identity = att_model_identity(model);
    ATT_TRY(att_model_identity_text(trainer->context, &identity, text, sizeof text));
    const att_shared_line lines[] = {
        {"the network", att_model_name(model)},
        {"the task", att_model_task(model).name},
        {"the version of attscope", att_version()},
        {"the precision", att_precision_name(options->precision)},
        {"whether there are images to evaluate on", trainer->run.data->eval ? "yes" : "no"},
        {"--sync-bn", options->sync_bn ? "yes" : "no"},
        {"--skip-corrupt", options->skip_corrupt ? "yes" : "no"},
        {"the network's options", text}};
    return att_processes_compare(&trainer->processes, lines, sizeof lines / sizeof *lines);
}

/* The instruments decide which probes the processes exchange. */
static char *measuring_text(const att_trainer *trainer, char text[MEASURING])
{
    const att_train_options *options = trainer->options;
    uint64_t hash = att_random_hash("");
    int count = options->measure ? att_measure_count(options->measure) : 0;
    for (int i = 0; i < count; i++) {
        const att_measurement m = att_measure_at(options->measure, i);
        const char *const names[] = {m.instrument, m.node, m.statistic};
        for (int k = 0; k < 3; k++)
            hash = att_random_hash_more(hash, names[k] ? names[k] : "", names[k] ? strlen(names[k]) + 1 : 1);
    }
    snprintf(text, MEASURING, "%d figures (%016llx), every %lld updates", count, (unsigned long long)hash,
             (long long)(options->measure ? options->measure_every : 0));
    return text;
}

static att_status compare_settings(att_trainer *trainer)
{
    char digest[ATT_WEIGHTS_DIGEST], update[24], measuring[MEASURING];
    line_list list = {.arena = {.context = trainer->context}};
    ATT_TRY(att_weights_digest(trainer->run.weights, digest));
    snprintf(update, sizeof update, "%lld", (long long)trainer->state.update);
    add_line(&list, "the processor tier (ATTSCOPE_CPU lowers it)", att_context_tier(trainer->context), NULL);
    att_metadata_each(&trainer->run, add_line, &list);
    add_line(&list, "the number of finished updates", update, NULL);
    add_line(&list, "what is measured during training (--measure)", measuring_text(trainer, measuring), NULL);
    add_line(&list, "the weights", digest, NULL);
    att_status status = list.failed ? att_fail_memory(trainer->context, sizeof list, "the settings of a training run")
                                    : att_processes_compare(&trainer->processes, list.lines, list.count);
    att_arena_free(&list.arena);
    return status;
}

att_status att_trainer_compare(att_trainer *trainer)
{
    if (att_comm_size(trainer->options->comm) == 1)
        return ATT_OK;
    ATT_TRY(compare_networks(trainer));
    return compare_settings(trainer);
}

/* Whether each process takes statistics of batch norm over its own samples, so that results depend on their number.
 * Batch norm of frozen parts takes none. */
static bool splits_statistics(const att_trainer *trainer)
{
    const att_graph *graph = att_model_graph(trainer->run.model);
    bool splits = false;
    for (int i = 0; i < graph->nodes.count && !splits; i++)
        splits = strcmp(graph->nodes.items[i].op->name, "batch_norm") == 0 &&
                 !att_scope_is_frozen(graph, trainer->frozen, graph->nodes.items[i].scope, false);
    return splits && att_comm_size(trainer->options->comm) > 1 && !trainer->options->sync_bn;
}

void att_trainer_log_processes(const att_trainer *trainer)
{
    int processes = att_comm_size(trainer->options->comm);
    if (att_trainer_writes(trainer) && splits_statistics(trainer))
        att_log(trainer->context, ATT_LOG_INFO,
                "each of the %d processes normalises by the statistics of its own %d images of a batch, so the results "
                "depend on the number of processes; with --sync-bn they do not",
                processes, trainer->options->batch_size / processes);
}

/* --- batch norm -------------------------------------------------------------------------------------------------- */

static att_status broadcast(att_trainer *trainer, int slot, int index)
{
    att_weights *weights = trainer->run.weights;
    int64_t count = att_shape_count(att_weights_at(weights, index).shape);
    float *values = att_allocate_array(trainer->context, (size_t)count, sizeof *values);
    if (!values && count > 0)
        return att_fail_memory(trainer->context, (size_t)count * sizeof *values, "running statistics");
    att_status status = att_weights_get(weights, slot, index, values, count);
    if (status == ATT_OK)
        status = att_comm_broadcast(trainer->options->comm, ATT_COMM_MAIN, values, (size_t)count * sizeof *values, 0);
    if (status == ATT_OK)
        status = att_weights_set(weights, slot, index, values, count);
    att_free(trainer->context, values);
    return status;
}

att_status att_trainer_share_statistics(att_trainer *trainer)
{
    const att_weights *weights = trainer->run.weights;
    int average = att_trainer_average_slot(weights);
    if (!splits_statistics(trainer))
        return ATT_OK;
    for (int i = 0; i < att_weights_count(weights); i++) {
        if (!att_weights_at(weights, i).buffer)
            continue;
        ATT_TRY(broadcast(trainer, -1, i));
        if (average >= 0 && att_weights_in_slot(weights, average, i))
            ATT_TRY(broadcast(trainer, average, i));
    }
    return ATT_OK;
}

/* --- failures ---------------------------------------------------------------------------------------------------- */

att_status att_trainer_share_node(att_trainer *trainer, char node[ATT_NODE_TEXT])
{
    att_comm *comm = trainer->options->comm;
    size_t count = (size_t)att_comm_size(comm);
    char(*nodes)[ATT_NODE_TEXT] = att_allocate_array(trainer->context, count, sizeof *nodes);
    if (!nodes)
        return att_fail_memory(trainer->context, count * sizeof *nodes, "the names of nodes");
    memcpy(nodes[att_comm_rank(comm)], node, ATT_NODE_TEXT);
    att_status status = att_comm_collect(comm, ATT_COMM_MAIN, nodes, sizeof *nodes);
    size_t first = 0;
    while (first + 1 < count && !*nodes[first])
        first++;
    if (status == ATT_OK)
        memcpy(node, nodes[first], ATT_NODE_TEXT);
    att_free(trainer->context, nodes);
    return status;
}

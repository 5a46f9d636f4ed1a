#include <stdio.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "engine/graph/graph.h"
#include "engine/ops/attention.h"
#include "networks/models/family.h"
#include "study/network/network.h"

/* Requests for attention nodes, by the ending of the name. */
static const struct {
    const char *ending;
    att_status (*add_probes)(att_graph *graph, const char *pattern);
} attention_requests[] = {{".map", att_graph_probe_attention_map},
                          {".stats", att_graph_probe_attention_stats},
                          {".summary", att_graph_probe_attention_summary}};
enum { ATTENTION_REQUESTS = sizeof attention_requests / sizeof *attention_requests, NAME_SIZE = 256 };

typedef struct output_request {
    const att_model *model;
    att_graph *graph;
    const char **names;
    int count, room;
} output_request;

static att_context *context_of(const output_request *w)
{
    return w->graph->context;
}

static void add_output(output_request *w, const char *name, att_value value)
{
    if (value != ATT_NONE && att_graph_find_output(w->graph, name) == ATT_NONE)
        att_graph_output(w->graph, name, value);
}

/* Adds outputs for the features that heads read, so that these can be requested. A family without stages gets those
 * that the task would choose. */
static att_status add_features(output_request *w)
{
    static const char *const stages[ATT_FEATURE_STAGES] = {"stage1", "stage2", "stage3", "stage4"};
    att_features features = *att_model_features(w->model);
    if (features.stage_count == 0)
        att_task_tap_blocks(att_model_task_of(w->model), w->graph, att_model_options(w->model), &features);
    add_output(w, "features", features.pooled);
    add_output(w, "tokens", features.tokens);
    for (int i = 0; i < features.stage_count; i++)
        add_output(w, stages[i], features.stages[i]);
    return w->graph->status;
}

/* If the name is a request for attention, adds the probes that it requests. */
static att_status ask_attention(output_request *w, const char *requested)
{
    char pattern[NAME_SIZE];
    size_t length = strlen(requested);
    for (int i = 0; i < ATTENTION_REQUESTS; i++) {
        size_t end = strlen(attention_requests[i].ending);
        if (length <= end || strcmp(requested + length - end, attention_requests[i].ending) != 0)
            continue;
        snprintf(pattern, sizeof pattern, "%.*s", (int)(length - end), requested);
        att_status status = attention_requests[i].add_probes(w->graph, pattern);
        return status == ATT_ERR_NOT_FOUND ? ATT_OK : status; /* select_outputs() reports the available names */
    }
    return ATT_OK;
}

/* The tokens of a request, and what follows them in the name: those of the last block for "class", those of block 3 for
 * "blocks.3.class" and "blocks.3". ATT_NONE: the network has no such tokens. */
static att_value requested_tokens(const att_features *features, const char *requested, const char **part)
{
    int block, length = 0;
    *part = requested;
    if (sscanf(requested, "blocks.%d%n", &block, &length) != 1)
        return features->tokens;
    *part = requested[length] == '.' ? requested + length + 1 : requested + length;
    return block >= 0 && block < features->block_count ? features->blocks[block] : ATT_NONE;
}

/* Mean of the tokens of the grid, without class token and registers, or of all tokens of a text without padding. */
static att_value grid_mean(output_request *w, const att_features *features, att_value tokens)
{
    if (features->shares == ATT_NONE)
        return att_token_mean(w->graph, tokens, features->prefix);
    const att_value mean = att_matmul(w->graph, features->shares, tokens, false, 1);
    return att_reshape(w->graph, mean, att_shape_of(att_value_shape(w->graph, mean).dims[1]));
}

static att_value first_token(output_request *w, att_value tokens)
{
    const att_value row = att_slice_tokens(w->graph, tokens, 0, 1);
    return att_reshape(w->graph, row, att_shape_of(att_value_shape(w->graph, row).dims[1]));
}

/* If the name is a request for tokens, adds this output. */
static att_status ask_tokens(output_request *w, const char *requested)
{
    const char *part;
    const att_features *features = att_model_features(w->model);
    const att_value tokens = requested_tokens(features, requested, &part);
    /* The first token of a text stands for the text. */
    const bool has_class =
        att_options_number(att_model_options(w->model), "class_token", 0) > 0 || features->shares != ATT_NONE;
    const att_scope root = att_scope_root(w->graph), scope = att_scope_in(&root, "features");
    if (tokens == ATT_NONE || att_value_shape(w->graph, tokens).rank != 2)
        return ATT_OK; /* select_outputs() reports the available names */
    att_scope_enter(&scope);
    if (!*part)
        add_output(w, requested, tokens);
    else if (strcmp(part, "mean") == 0)
        add_output(w, requested, grid_mean(w, features, tokens));
    else if (strcmp(part, "class") == 0 && has_class)
        add_output(w, requested, first_token(w, tokens));
    else if (strcmp(part, "both") == 0 && has_class)
        add_output(w, requested, att_concat(w->graph, first_token(w, tokens), grid_mean(w, features, tokens)));
    return w->graph->status;
}

static att_status select_name(output_request *w, const char *name)
{
    if (!att_list_grow(context_of(w), &w->names, w->count + 1, &w->room, sizeof *w->names))
        return att_fail_memory(context_of(w), sizeof *w->names, "a network's outputs");
    w->names[w->count++] = name;
    return ATT_OK;
}

/* The message lists the outputs and the scopes of attention nodes. */
static att_status fail_unknown(const output_request *w, const char *requested)
{
    att_text has = {.context = context_of(w)};
    bool attends = false;
    for (int i = 0; i < w->graph->outputs.count; i++)
        if (!w->graph->outputs.items[i].probe)
            att_text_append(&has, "%s%s", has.length ? ", " : "", w->graph->outputs.items[i].name);
    for (int i = 0; i < w->graph->nodes.count && !attends; i++) {
        const att_node *node = &w->graph->nodes.items[i];
        attends = att_is_attention(node);
        if (attends)
            att_text_append(&has, "; for attention nodes such as %s: .map, .stats, .summary", node->scope);
    }
    if (att_model_features(w->model)->block_count > 0)
        att_text_append(&has,
                        "; of tokens: mean, class and both (with a class token), blocks.0 to blocks.%d, "
                        "blocks.0.mean and the like",
                        att_model_features(w->model)->block_count - 1);
    att_status status = has.failed ? att_fail_memory(context_of(w), has.length, "a message")
                                   : att_fail(context_of(w), ATT_ERR_NOT_FOUND,
                                              "the network has no output \"%s\"; it has %s", requested, has.data);
    att_text_free(&has);
    return status;
}

static att_status select_outputs(output_request *w, const char *requested)
{
    bool found = false;
    ATT_TRY(ask_attention(w, requested));
    ATT_TRY(ask_tokens(w, requested));
    for (int i = 0; i < w->graph->outputs.count; i++) {
        if (!att_text_matches(requested, w->graph->outputs.items[i].name))
            continue;
        ATT_TRY(select_name(w, w->graph->outputs.items[i].name));
        found = true;
    }
    return found ? ATT_OK : fail_unknown(w, requested);
}

/* Copies the name of `length` bytes at `from` without surrounding blanks, truncated to fit. */
static void copy_name(const char *from, size_t length, char name[NAME_SIZE])
{
    static const char blanks[] = " \t\n";
    for (; length > 0 && strchr(blanks, *from); length--)
        from++;
    while (length > 0 && strchr(blanks, from[length - 1]))
        length--;
    snprintf(name, NAME_SIZE, "%.*s", (int)(length < NAME_SIZE ? length : NAME_SIZE - 1), from);
}

static att_status select_list(output_request *w, const char *list)
{
    char requested[NAME_SIZE];
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        copy_name(at, length, requested);
        ATT_TRY(select_outputs(w, requested));
        at += length;
        if (!*at)
            return ATT_OK;
    }
}

static att_status select_task_outputs(output_request *w)
{
    for (int i = 0; i < w->graph->outputs.count; i++) {
        const att_named_value *output = &w->graph->outputs.items[i];
        if (!output->probe && strcmp(output->name, "loss") != 0)
            ATT_TRY(select_name(w, output->name));
    }
    return ATT_OK;
}

static att_status fill(output_request *w, const char *outputs)
{
    if (!outputs)
        return select_task_outputs(w);
    ATT_TRY(add_features(w));
    return select_list(w, outputs);
}

att_status att_network_build_outputs(const att_model *model, const char *outputs, att_graph **graph,
                                     const char ***names)
{
    const att_graph *own = att_model_graph(model);
    output_request w = {.model = model, .graph = att_graph_copy(own)};
    if (!w.graph)
        return att_fail_memory(att_graph_context(own), sizeof(void *), "a network's graph");
    att_status status = fill(&w, outputs);
    if (status == ATT_OK) {
        w.names[w.count] = NULL;
        *graph = w.graph;
        *names = w.names;
        return ATT_OK;
    }
    att_free(context_of(&w), w.names);
    att_graph_destroy(&w.graph);
    return status;
}

const char *att_network_class_output(const att_network *network)
{
    const att_task *task = att_model_task_of(network->model);
    return task->class_field ? task->class_output : NULL;
}

/* Requests of instruments: the rows that they read and the series of figures that they declare. */
#include "study/measure/measure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "engine/ops/attention.h"
#include "networks/tasks/task.h"
#include "study/measure/instrument.h"
#include "study/measure/study.h"

att_graph *att_requests_graph(const att_requests *requests)
{
    return requests->graph;
}

double att_requests_option(const att_requests *requests, int index)
{
    return requests->options[index];
}

static bool is_node_of(const att_node *node, const char *op)
{
    return strcmp(op, "attention") == 0 ? att_is_attention(node) : !node->copy && strcmp(node->op->name, op) == 0;
}

int att_requests_node(const att_requests *requests, const char *op, int after)
{
    for (int i = after + 1; i < requests->graph->nodes.count; i++) {
        const att_node *node = &requests->graph->nodes.items[i];
        if (is_node_of(node, op) && att_text_matches_any(requests->nodes, node->scope))
            return i;
    }
    return -1;
}

/* Grows a list of the measure by one item if necessary. False if out of memory. */
#define GROW(requests, list)                                                              \
    att_list_grow((requests)->measure->context, (void *)&(requests)->measure->list.items, \
                  (requests)->measure->list.count, &(requests)->measure->list.capacity,   \
                  sizeof *(requests)->measure->list.items)

static const char *copy_text(att_requests *requests, const char *text)
{
    const char *copy = att_arena_string(&requests->measure->arena, text);
    if (!copy && requests->status == ATT_OK)
        requests->status = att_fail_memory(requests->measure->context, strlen(text), "a measure");
    return copy;
}

/* Number of elements per sample of the output or probe `name`; -1 if there is none. */
static int64_t elements_of(const att_graph *graph, const char *name)
{
    for (int i = 0; i < graph->outputs.count; i++)
        if (strcmp(graph->outputs.items[i].name, name) == 0)
            return att_shape_count(att_value_shape(graph, graph->outputs.items[i].value));
    return -1;
}

static void add_row(att_requests *requests, att_requested_row row)
{
    att_measure *measure = requests->measure;
    if (!GROW(requests, rows))
        requests->status = att_fail_memory(measure->context, sizeof(att_requested_row), "a measure");
    else
        measure->rows.items[measure->rows.count++] = row;
}

void att_requests_study_row(att_requests *requests, int64_t elements, double constant)
{
    if (requests->status == ATT_OK)
        add_row(requests, (att_requested_row){NULL, elements, constant});
}

void att_requests_row(att_requests *requests, const char *name, double constant)
{
    att_measure *measure = requests->measure;
    const char *copy = copy_text(requests, name);
    if (requests->status != ATT_OK || requests->graph->status != ATT_OK)
        return;
    int64_t elements = elements_of(requests->graph, name);
    if (elements < 0) {
        requests->status = att_fail(measure->context, ATT_ERR_ARGUMENT,
                                    "instrument \"%s\" asks for \"%s\", which is not an output or probe of the graph",
                                    requests->instrument->info.name, name);
        return;
    }
    add_row(requests, (att_requested_row){copy, elements, constant});
}

void att_requests_series(att_requests *requests, const char *node, int head, const char *statistic)
{
    att_measure *measure = requests->measure;
    const char *copy = copy_text(requests, node);
    if (requests->status != ATT_OK)
        return;
    if (!GROW(requests, series)) {
        requests->status = att_fail_memory(measure->context, sizeof(att_series), "a measure");
        return;
    }
    measure->series.items[measure->series.count++] = (att_series){.node = copy, .statistic = statistic, .head = head};
}

void att_requests_reading(att_requests *requests, const char *node, int head, const char *statistic,
                          const char *reading)
{
    char name[96];
    snprintf(name, sizeof name, "%s%s%s", statistic ? statistic : "", statistic && reading ? " " : "",
             reading ? reading : "");
    att_requests_series(requests, node, head, copy_text(requests, name));
}

void att_requests_heads(att_requests *requests, const att_node *node, const char *statistic, const char *reading)
{
    for (int head = 0; head < ATT_ATTRS(node, attention)->heads; head++)
        att_requests_reading(requests, node->scope, head, statistic, reading);
    att_requests_reading(requests, node->scope, -1, statistic, reading);
}

void att_requests_exclude(att_requests *requests)
{
    if (requests->status == ATT_OK && requests->measure->series.count > 0)
        requests->measure->series.items[requests->measure->series.count - 1].excluded = true;
}

void att_requests_bound(att_requests *requests, double bound)
{
    if (requests->status == ATT_OK && requests->measure->series.count > 0)
        requests->measure->series.items[requests->measure->series.count - 1].bound = bound;
}

void att_requests_uniform(att_requests *requests, double value)
{
    if (requests->status == ATT_OK && requests->measure->series.count > 0)
        requests->measure->series.items[requests->measure->series.count - 1].uniform = value;
}

att_status att_requests_found_nothing(const att_requests *requests, const char *what)
{
    if (strcmp(requests->nodes, "*") == 0)
        return att_requests_fail(requests, "the network has no %s", what);
    return att_fail(requests->measure->context, ATT_ERR_NOT_FOUND,
                    "instrument \"%s\": the network has no %s that matches \"%s\"", requests->instrument->info.name,
                    what, requests->nodes);
}

att_status att_requests_need_classes(const att_requests *requests)
{
    const char *output = att_task_class_output(requests->graph);
    char what[64];
    if (att_graph_find_output(requests->graph, output) != ATT_NONE)
        return ATT_OK;
    snprintf(what, sizeof what, "output named %s", output);
    return att_requests_found_nothing(requests, what);
}

att_status att_requests_fail(const att_requests *requests, const char *format, ...)
{
    char reason[768];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return att_fail(requests->measure->context, ATT_ERR_NOT_FOUND, "instrument \"%s\" has nothing to observe: %s",
                    requests->instrument->info.name, reason);
}

/* Calls the instrument's function `request`. What it adds to the graph counts as a copy, so that other instruments do
 * not measure it. After a failure its rows and series are removed; probes stay in the graph. */
static att_status request(att_requests *requests, const att_instrument *instrument)
{
    att_measure *measure = requests->measure;
    int row_count = measure->rows.count, series_count = measure->series.count;
    requests->graph->copying = true;
    att_status status = instrument->request(requests);
    requests->graph->copying = false;
    if (status != ATT_OK) {
        measure->rows.count = row_count;
        measure->series.count = series_count;
    }
    return status;
}

/* After ERR_NOT_FOUND for a name without wildcards: adds to the message the pattern "*NAME*" if the instrument observes
 * nodes that match it. Returns ERR_NOT_FOUND. */
static att_status suggest_wildcards(att_requests *requests, const att_instrument *instrument)
{
    const char *nodes = requests->nodes;
    char message[1024], wider[256];
    snprintf(message, sizeof message, "%s", att_context_message(requests->measure->context));
    if (strpbrk(nodes, "*?,") || snprintf(wider, sizeof wider, "*%s*", nodes) >= (int)sizeof wider)
        return ATT_ERR_NOT_FOUND;
    requests->nodes = wider;
    const bool fits = request(requests, instrument) == ATT_OK;
    requests->nodes = nodes;
    return att_fail(requests->measure->context, ATT_ERR_NOT_FOUND, "%s%s%s%s", message, fits ? "; did you mean \"" : "",
                    fits ? wider : "", fits ? "\"?" : "");
}

att_status att_requests_add(att_requests *requests, const att_instrument *instrument)
{
    att_measure *measure = requests->measure;
    for (int i = 0; i < measure->active.count; i++)
        if (measure->active.items[i].instrument == instrument)
            return att_fail(measure->context, ATT_ERR_ARGUMENT, "instrument \"%s\" is named twice",
                            instrument->info.name);
    if (!GROW(requests, active))
        return att_fail_memory(measure->context, sizeof(att_active_instrument), "a measure");
    requests->instrument = instrument;
    att_active_instrument active = {
        .instrument = instrument, .first_row = measure->rows.count, .first_series = measure->series.count};
    memcpy(active.options, requests->options, sizeof active.options);
    const att_status status = request(requests, instrument);
    if (status == ATT_ERR_NOT_FOUND)
        return suggest_wildcards(requests, instrument);
    ATT_TRY(status);
    ATT_TRY(requests->status);
    ATT_TRY(requests->graph->status);
    active.row_count = measure->rows.count - active.first_row;
    active.series_count = measure->series.count - active.first_series;
    measure->active.items[measure->active.count++] = active;
    return ATT_OK;
}

att_status att_requests_add_if_applicable(att_requests *requests, const att_instrument *instrument)
{
    const char *nodes = requests->nodes;
    att_status status = att_requests_add(requests, instrument);
    if (status != ATT_ERR_NOT_FOUND)
        return status;
    requests->nodes = "*";
    bool fits = request(requests, instrument) != ATT_ERR_NOT_FOUND;
    requests->nodes = nodes;
    return fits ? att_requests_add(requests, instrument) : ATT_OK;
}

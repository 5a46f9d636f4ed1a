/* The blocks of a network, and the figures by which they are ranked. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <attscope/lab/measuring.h>

#include "base/core/error.h"
#include "engine/graph/graph.h"
#include "lab/runs/advise/advice.h"

/* --- the blocks --------------------------------------------------------------------------------------------------- */

/* Length of the module's scope in the name of a node: that of "layer1.0.se" in "layer1.0.se.gate"; 0: the node is not
 * the module's. */
static size_t module_length(const char *node, const char *scope)
{
    const size_t length = strlen(scope);
    for (const char *at = strchr(node, '.'); at; at = strchr(at + 1, '.'))
        if (strncmp(at + 1, scope, length) == 0 && (at[1 + length] == '.' || at[1 + length] == '\0'))
            return (size_t)(at + 1 - node) + length;
    return 0;
}

/* Length of the block's scope in that of a module: "blocks.3" of "blocks.3.mlp.cb", up to its last number. */
static size_t block_length(const char *scope)
{
    size_t found = 0;
    for (const char *at = scope; at; at = strchr(at, '.') ? strchr(at, '.') + 1 : NULL) {
        const size_t length = strcspn(at, ".");
        if (length > 0 && strspn(at, "0123456789") == length)
            found = (size_t)(at - scope) + length;
    }
    return found;
}

static bool is_in(const char *name, const char *block)
{
    const size_t length = strlen(block);
    return strncmp(name, block, length) == 0 && name[length] == '.';
}

/* The first residual addition of the block after node `last`, or else the block's last one. */
static const char *find_step(att_advice *advice, const att_graph *graph, const char *block, int last)
{
    att_residual_step step = {.node = -1};
    char found[sizeof step.scope] = "";
    while (att_residual_step_next(graph, step.node, &step)) {
        if (!is_in(step.scope, block))
            continue;
        memcpy(found, step.scope, sizeof found);
        if (step.node > last)
            break;
    }
    return *found ? att_arena_string(&advice->texts, found) : NULL;
}

/* Lists the module's scopes in the order of the graph, which is that of the blocks. */
static att_status list(att_advice *advice, const att_graph *graph, const char *scope)
{
    const char *previous = "";
    for (int i = 0; i < graph->nodes.count; i++) {
        const char *node = graph->nodes.items[i].scope;
        const size_t length = node ? module_length(node, scope) : 0;
        if (length == 0 || (strncmp(previous, node, length) == 0 && strlen(previous) == length))
            continue;
        previous = att_advice_text(advice, "%.*s", (int)length, node);
        int last = i;
        while (last + 1 < graph->nodes.count && module_length(graph->nodes.items[last + 1].scope, scope) == length &&
               strncmp(graph->nodes.items[last + 1].scope, node, length) == 0)
            last++;
        if (!previous)
            return att_fail_memory(advice->context, length, "the name of a block");
        att_advice_block *block = &advice->blocks[advice->count];
        block->shown.block = advice->count++;
        block->scope = att_advice_text(advice, "%.*s", (int)block_length(previous), previous);
        block->step = block->scope ? find_step(advice, graph, block->scope, last) : NULL;
    }
    return ATT_OK;
}

static bool has_op(const att_graph *graph, const char *name)
{
    for (int i = 0; i < graph->nodes.count; i++)
        if (strcmp(graph->nodes.items[i].op->name, name) == 0)
            return true;
    return false;
}

/* Modules with gates scale the residual step; others are for attention. */
static void choose_instrument(att_advice *advice, const att_graph *graph)
{
    const bool gates = has_op(graph, "gate") || has_op(graph, "pixel_gate");
    advice->instrument = gates ? "nsi" : "entropy";
    advice->statistic = gates ? "attention" : "mean";
    advice->batch_norm = has_op(graph, "batch_norm");
}

/* Names the candidates. Blocks that cannot have the module, because they have one already, get no name. */
static void name_candidates(att_advice *advice, const att_identity *identity)
{
    const bool alone = strcmp(advice->base, "none") == 0;
    for (int i = 0; i < advice->count; i++) {
        att_option_values values = identity->options;
        att_model *model = NULL;
        const char *modules = att_advice_text(advice, "%s%s%s@%s:%d", alone ? "" : advice->base, alone ? "" : "+",
                                              advice->module, advice->place, i);
        if (!modules || strlen(modules) >= ATT_OPTION_TEXT_BYTES)
            continue;
        att_options_set_text(&values, "modules", modules);
        if (att_model_create(advice->context, identity->name, &values, ATT_F32, &model) == ATT_OK)
            advice->blocks[i].shown.modules = modules;
        att_model_destroy(&model);
    }
}

att_status att_advice_list_blocks(att_advice *advice, const att_network *network)
{
    const att_identity *identity = att_network_identity(network);
    att_option_values values = identity->options;
    att_model *model = NULL;
    att_module_choice choice;
    const char *everywhere = att_advice_text(advice, "%s@%s", advice->module, advice->place);
    if (!everywhere)
        return att_fail_memory(advice->context, strlen(advice->module), "the name of a module");
    att_options_set_text(&values, "modules", everywhere);
    ATT_TRY(att_module_parse(advice->context, advice->module, &choice));
    ATT_TRY(att_model_create(advice->context, identity->name, &values, ATT_F32, &model));
    const att_graph *graph = att_model_graph(model);
    choose_instrument(advice, graph);
    advice->blocks = att_arena_allocate(&advice->texts, (size_t)graph->nodes.count * sizeof *advice->blocks);
    att_status status = advice->blocks ? list(advice, graph, choice.module->scope)
                                       : att_fail_memory(advice->context, sizeof *advice->blocks, "a list of blocks");
    att_model_destroy(&model);
    if (status == ATT_OK)
        name_candidates(advice, identity);
    return status;
}

/* --- their figures ------------------------------------------------------------------------------------------------ */

/* Whether the figure is the one by which the block is ranked. */
static bool is_of(const att_advice *advice, const att_advice_block *block, const att_measurement *figure)
{
    if (strcmp(figure->instrument, advice->instrument) != 0 || strcmp(figure->statistic, advice->statistic) != 0 ||
        figure->head >= 0 || figure->excluded || !isfinite(figure->mean))
        return false;
    return strcmp(advice->instrument, "nsi") == 0 ? block->step && strcmp(figure->node, block->step) == 0
                                                  : is_in(figure->node, block->scope);
}

static void take_figure(att_advice *advice, att_advice_block *block, const att_measure *measure)
{
    for (int i = 0; i < att_measure_count(measure) && !block->shown.node; i++) {
        const att_measurement figure = att_measure_at(measure, i);
        if (!is_of(advice, block, &figure))
            continue;
        block->shown.predicted = figure.mean;
        block->shown.node = att_arena_string(&advice->texts, figure.node);
    }
}

/* Larger figures first, then earlier blocks. */
static int compare_blocks(const void *a, const void *b)
{
    const att_advised *one = &((const att_advice_block *)a)->shown, *other = &((const att_advice_block *)b)->shown;
    if (one->predicted != other->predicted)
        return one->predicted < other->predicted ? 1 : -1;
    return one->block - other->block;
}

static att_status sort(att_advice *advice, const att_measure *measure)
{
    const int all = advice->count;
    advice->count = 0;
    for (int i = 0; i < all; i++) {
        att_advice_block block = advice->blocks[i];
        take_figure(advice, &block, measure);
        if (block.shown.node && block.shown.modules)
            advice->blocks[advice->count++] = block;
        else
            att_log(advice->context, ATT_LOG_INFO, "block %d, %s, is no candidate: %s", i, block.scope,
                    block.shown.modules ? "it has no figure, or begins a stage"
                                        : "it cannot have the module beside those that it has");
    }
    if (advice->count == 0)
        return att_fail(advice->context, ATT_ERR_UNSUPPORTED,
                        "no block of %s can be ranked for \"%s@%s\": none has a figure of the instrument %s",
                        advice->options.checkpoint, advice->module, advice->place, advice->instrument);
    qsort(advice->blocks, (size_t)advice->count, sizeof *advice->blocks, compare_blocks);
    advice->tested = advice->count < advice->options.candidates ? advice->count : advice->options.candidates;
    return ATT_OK;
}

att_status att_advice_rank(att_advice *advice, att_network *network)
{
    att_measuring_options options = att_measuring_options_defaults();
    att_measured measured = {0};
    options.with = advice->instrument;
    options.output = att_advice_text(advice, "%s/%s", advice->options.output, advice->experiment);
    options.experiment = "ranking";
    options.batch_size = advice->options.batch_size;
    options.progress = advice->options.progress;
    options.progress_user = advice->options.progress_user;
    if (!options.output)
        return att_fail_memory(advice->context, strlen(advice->options.output), "the path of a folder");
    att_status status = att_measure_checkpoint(network, &advice->options.data, 1, &options, &measured);
    att_instrument_info info;
    if (status == ATT_OK && att_instrument_find(advice->context, advice->instrument, &info))
        advice->unit = info.unit;
    if (status == ATT_OK)
        status = sort(advice, measured.measure);
    att_measured_free(&measured);
    return status;
}

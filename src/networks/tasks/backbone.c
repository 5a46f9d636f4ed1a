#include <attscope/ops.h>

#include "networks/tasks/task.h"

static att_value classify(att_graph *graph, const att_backbone *backbone, const char *name, att_value features)
{
    att_scope root = att_scope_root(graph), scope = att_scope_in(&root, "%s", name);
    att_scope_enter(&scope);
    features = att_dropout(graph, features, backbone->drop_rate);
    return backbone->classifier.build(&scope, features, backbone->classes);
}

att_value att_backbone_classify(att_graph *graph, const att_backbone *backbone)
{
    const att_classifier_form *classifier = &backbone->classifier;
    const att_features *features = &backbone->features;
    if (!classifier->second)
        return classify(graph, backbone, classifier->scope, features->pooled);
    att_value first = classify(graph, backbone, classifier->scope, features->classified[0]);
    att_value second = classify(graph, backbone, classifier->second, features->classified[1]);
    return att_combine(graph, 0.5, first, 0.5, second);
}

/* --- stages from blocks ------------------------------------------------------------------------------------------- */

int att_taps_last(const att_option_values *options, int block_count, int blocks[ATT_FEATURE_STAGES])
{
    (void)options;
    const int count = block_count < ATT_FEATURE_STAGES ? block_count : ATT_FEATURE_STAGES;
    for (int i = 0; i < count; i++)
        blocks[i] = block_count - count + i;
    return count;
}

static bool are_valid(const int *blocks, int count, int block_count)
{
    for (int i = 0; i < count && i < ATT_FEATURE_STAGES; i++)
        if (blocks[i] < 0 || blocks[i] >= block_count)
            return false;
    return count >= 1 && count <= ATT_FEATURE_STAGES;
}

/* A block's result without the prefix, as a map: [N, C] -> [h, w, C]. */
static att_value as_map(att_graph *graph, const att_features *features, att_value tokens)
{
    const int64_t height = features->grid[0], width = features->grid[1];
    const int64_t channels = att_value_shape(graph, tokens).dims[1];
    if (features->prefix > 0)
        tokens = att_slice_tokens(graph, tokens, features->prefix, (int)(height * width));
    return att_reshape(graph, tokens, att_shape_of(height, width, channels));
}

/* Reads the option "taps". Returns the number of blocks; 0 after the graph has failed. */
static int read_taps(att_graph *graph, const char *text, int block_count, int blocks[ATT_FEATURE_STAGES])
{
    const int count = att_text_to_list(text, 0, block_count - 1, blocks, ATT_FEATURE_STAGES);
    if (block_count == 0)
        att_graph_fail(graph, att_fail(att_graph_context(graph), ATT_ERR_ARGUMENT,
                                       "taps (--taps) chooses among blocks, but the head of this network reads the "
                                       "results of its stages: leave the option out"));
    else if (count == 0)
        att_graph_fail(graph, att_fail(att_graph_context(graph), ATT_ERR_ARGUMENT,
                                       "taps (--taps) is \"%s\", expected one to %d numbers of blocks from 0 to %d, "
                                       "separated by commas",
                                       text, ATT_FEATURE_STAGES, block_count - 1));
    return block_count == 0 ? 0 : count;
}

/* As read_taps(), for the blocks that the task chooses. */
static int ask_taps(const att_task *task, att_graph *graph, const att_option_values *options, int block_count,
                    int blocks[ATT_FEATURE_STAGES])
{
    const int count = (task->taps ? task->taps : att_taps_last)(options, block_count, blocks);
    if (are_valid(blocks, count, block_count))
        return count;
    att_graph_fail(graph, att_fail(att_graph_context(graph), ATT_ERR_ARGUMENT,
                                   "task \"%s\": its function `taps` must return 1 to %d and choose blocks 0 to %d",
                                   task->info.name, ATT_FEATURE_STAGES, block_count - 1));
    return 0;
}

/* Whether the option "tap_norm" is on. The graph fails if there is no norm after the last block. */
static bool read_norm(att_graph *graph, const att_option_values *options, const att_features *features)
{
    const int last = features->block_count - 1;
    const bool has_norm = last >= 0 && features->stage_count == 0 && features->tokens != features->blocks[last];
    if (att_options_number(options, "tap_norm", 0) == 0)
        return false;
    if (!has_norm)
        att_graph_fail(graph, att_fail(att_graph_context(graph), ATT_ERR_ARGUMENT,
                                       "tap_norm (--tap-norm) needs a norm between the last block and the pooling, "
                                       "which this network lacks: leave the option out"));
    return has_norm;
}

void att_task_tap_blocks(const att_task *task, att_graph *graph, const att_option_values *options,
                         att_features *features)
{
    int blocks[ATT_FEATURE_STAGES];
    const char *taps = att_options_text(options, "taps");
    const bool normed = read_norm(graph, options, features);
    if (!*taps && (features->stage_count > 0 || features->block_count == 0))
        return;
    const int count = *taps ? read_taps(graph, taps, features->stage_count ? 0 : features->block_count, blocks)
                            : ask_taps(task, graph, options, features->block_count, blocks);
    const att_scope root = att_scope_root(graph);
    for (int i = 0; i < count; i++) {
        const att_scope stage = att_scope_in(&root, "stage%d", i + 1);
        att_scope_enter(&stage);
        features->stages[features->stage_count++] =
            as_map(graph, features,
                   normed && blocks[i] == features->block_count - 1 ? features->tokens : features->blocks[blocks[i]]);
    }
}

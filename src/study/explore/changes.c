#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "study/explore/explorer.h"

static att_status fail_number(const att_explorer *explorer, const char *what, int number, int64_t count)
{
    if (count == 0)
        return att_fail(explorer->context, ATT_ERR_ARGUMENT, "the network has no %s", what);
    return att_fail(explorer->context, ATT_ERR_ARGUMENT, "%s %d does not exist: expected 0 to %lld", what, number,
                    (long long)count - 1);
}

static void fill(const att_factors *factors, int64_t first, int64_t count, float value)
{
    for (int64_t i = first; i < first + count; i++)
        factors->values[i] = value;
}

static void set_head(att_explored_layer *layer, int head, att_head_change change)
{
    int64_t width = layer->keep.count / layer->attrs.heads;
    layer->changes[head] = change;
    fill(&layer->keep, head * width, width, change == ATT_HEAD_KEPT);
    fill(&layer->even, head * width, width, change == ATT_HEAD_UNIFORM);
}

att_status att_explorer_change_head(att_explorer *explorer, int layer, int head, att_head_change change)
{
    if (layer < 0 || layer >= explorer->layer_count)
        return fail_number(explorer, "attention layer", layer, explorer->layer_count);
    if (head < 0 || head >= explorer->layers[layer].attrs.heads)
        return fail_number(explorer, "head", head, explorer->layers[layer].attrs.heads);
    if (change < ATT_HEAD_KEPT || change > ATT_HEAD_UNIFORM)
        return att_fail(explorer->context, ATT_ERR_ARGUMENT, "%d is no change of a head", (int)change);
    set_head(&explorer->layers[layer], head, change);
    return ATT_OK;
}

att_status att_explorer_remove_branch(att_explorer *explorer, int branch, bool removed)
{
    if (branch < 0 || branch >= explorer->branch_count)
        return fail_number(explorer, "residual branch", branch, explorer->branch_count);
    const att_factors *keep = &explorer->branches[branch].keep;
    fill(keep, 0, keep->count, !removed);
    return ATT_OK;
}

bool att_explorer_has_removable_tokens(const att_explorer *explorer)
{
    return explorer->removed.count > 0;
}

att_status att_explorer_remove_token(att_explorer *explorer, int token, bool removed)
{
    const att_factors *tokens = &explorer->removed;
    if (tokens->count == 0)
        return att_fail(explorer->context, ATT_ERR_UNSUPPORTED,
                        "tokens can be removed only if all attention layers read the same tokens, by content and "
                        "without windows");
    if (token < 0 || token >= tokens->count)
        return fail_number(explorer, "token", token, tokens->count);
    bool remains = !removed;
    for (int64_t i = 0; i < tokens->count; i++)
        remains = remains || (i != token && tokens->values[i] == 0);
    if (!remains)
        return att_fail(explorer->context, ATT_ERR_ARGUMENT, "token %d is the last one that remains", token);
    tokens->values[token] = removed ? -INFINITY : 0;
    return ATT_OK;
}

void att_explorer_reset(att_explorer *explorer)
{
    for (int l = 0; l < explorer->layer_count; l++)
        for (int h = 0; h < explorer->layers[l].attrs.heads; h++)
            set_head(&explorer->layers[l], h, ATT_HEAD_KEPT);
    for (int b = 0; b < explorer->branch_count; b++)
        fill(&explorer->branches[b].keep, 0, explorer->branches[b].keep.count, 1);
    fill(&explorer->removed, 0, explorer->removed.count, 0);
}

static att_status bind(const att_explorer *explorer, const att_factors *factors)
{
    return att_session_bind(explorer->inference.session, factors->name, factors->values);
}

att_status att_explorer_bind(att_explorer *explorer)
{
    for (int l = 0; l < explorer->layer_count; l++) {
        ATT_TRY(bind(explorer, &explorer->layers[l].keep));
        ATT_TRY(bind(explorer, &explorer->layers[l].even));
    }
    for (int b = 0; b < explorer->branch_count; b++)
        ATT_TRY(bind(explorer, &explorer->branches[b].keep));
    return explorer->removed.count > 0 ? bind(explorer, &explorer->removed) : ATT_OK;
}

void att_explorer_note(att_explorer *explorer)
{
    for (int l = 0; l < explorer->layer_count; l++)
        for (int h = 0; h < explorer->layers[l].attrs.heads; h++)
            explorer->layers[l].is_even[h] = explorer->layers[l].changes[h] == ATT_HEAD_UNIFORM;
    for (int64_t i = 0; i < explorer->removed.count; i++)
        explorer->hidden[i] = explorer->removed.values[i] != 0;
}

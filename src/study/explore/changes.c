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

/* Sets `count` factors of each selected sample, if there are such factors. */
static void fill(const att_explorer *explorer, const att_factors *factors, int64_t first, int64_t count, float value)
{
    for (int s = explorer->first; factors->count > 0 && s < explorer->first + explorer->count; s++)
        for (int64_t i = first; i < first + count; i++) {
            factors->values[s * factors->count + i] = value;
            if (factors->wide)
                factors->wide[s * factors->count + i] = value;
        }
}

static void fill_all(const att_explorer *explorer, const att_factors *factors, float value)
{
    fill(explorer, factors, 0, factors->count, value);
}

static void set_head(const att_explorer *explorer, att_explored_layer *layer, int head, att_head_change change)
{
    int64_t width = layer->keep.count / layer->attrs.heads;
    layer->changes[head] = change;
    fill(explorer, &layer->keep, head * width, width, change == ATT_HEAD_KEPT);
    fill(explorer, &layer->even, head * width, width, change == ATT_HEAD_UNIFORM);
}

void att_explorer_select(att_explorer *explorer, int first, int count)
{
    explorer->first = first;
    explorer->count = count;
}

att_status att_explorer_change_head(att_explorer *explorer, int layer, int head, att_head_change change)
{
    if (layer < 0 || layer >= explorer->layer_count)
        return fail_number(explorer, "attention layer", layer, explorer->layer_count);
    if (head < 0 || head >= explorer->layers[layer].attrs.heads)
        return fail_number(explorer, "head", head, explorer->layers[layer].attrs.heads);
    if (change < ATT_HEAD_KEPT || change > ATT_HEAD_UNIFORM)
        return att_fail(explorer->context, ATT_ERR_ARGUMENT, "%d is no change of a head", (int)change);
    set_head(explorer, &explorer->layers[layer], head, change);
    return ATT_OK;
}

att_status att_explorer_remove_branch(att_explorer *explorer, int branch, bool removed)
{
    if (branch < 0 || branch >= explorer->branch_count)
        return fail_number(explorer, "residual branch", branch, explorer->branch_count);
    fill_all(explorer, &explorer->branches[branch].keep, !removed);
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
    const float *first = tokens->values + explorer->first * tokens->count;
    for (int64_t i = 0; i < tokens->count; i++)
        remains = remains || (i != token && first[i] == 0);
    if (!remains)
        return att_fail(explorer->context, ATT_ERR_ARGUMENT, "token %d is the last one that remains", token);
    fill(explorer, tokens, token, 1, removed ? -INFINITY : 0);
    return ATT_OK;
}

void att_explorer_reset(att_explorer *explorer)
{
    for (int l = 0; l < explorer->layer_count; l++)
        for (int h = 0; h < explorer->layers[l].attrs.heads; h++)
            set_head(explorer, &explorer->layers[l], h, ATT_HEAD_KEPT);
    for (int b = 0; b < explorer->branch_count; b++)
        fill_all(explorer, &explorer->branches[b].keep, 1);
    fill_all(explorer, &explorer->removed, 0);
}

static att_status bind(att_session *session, const att_factors *factors)
{
    const void *values = factors->wide ? (const void *)factors->wide : factors->values;
    return factors->count > 0 ? att_session_bind(session, factors->name, values) : ATT_OK;
}

att_status att_explorer_bind(const att_explorer *explorer, att_session *session)
{
    for (int l = 0; l < explorer->layer_count; l++) {
        ATT_TRY(bind(session, &explorer->layers[l].keep));
        ATT_TRY(bind(session, &explorer->layers[l].even));
    }
    for (int b = 0; b < explorer->branch_count; b++)
        ATT_TRY(bind(session, &explorer->branches[b].keep));
    return bind(session, &explorer->removed);
}

void att_explorer_note(att_explorer *explorer)
{
    for (int l = 0; l < explorer->layer_count; l++)
        for (int h = 0; h < explorer->layers[l].attrs.heads; h++)
            explorer->layers[l].is_even[h] = explorer->layers[l].changes[h] == ATT_HEAD_UNIFORM;
    for (int64_t i = 0; i < explorer->removed.count; i++)
        explorer->hidden[i] = explorer->removed.values[i] != 0;
}

#include "models/token_tensors.h"

const char *const att_token_branches[ATT_TOKEN_HOOKS] = {
    [ATT_TOKEN_AFTER_MLP] = "mlp",          [ATT_TOKEN_AFTER_ATTN] = "attn",       [ATT_TOKEN_ATTN] = "attn",
    [ATT_TOKEN_BEFORE_MLP] = "norm2",       [ATT_TOKEN_MID_MLP] = "mlp.act",       [ATT_TOKEN_BEFORE_ATTN] = "norm1",
    [ATT_TOKEN_STREAM_AFTER_ATTN] = "add1", [ATT_TOKEN_STREAM_AFTER_MLP] = "add2", [ATT_TOKEN_HEADS] = "attn"};

const att_module *att_token_module_at(const att_context *context, const char *rest, bool has_attention, int *hook)
{
    const att_module *module = NULL;
    for (*hook = 0; *hook < ATT_TOKEN_HOOKS; ++*hook) {
        if (*hook == (has_attention ? ATT_TOKEN_ATTN : ATT_TOKEN_AFTER_ATTN))
            continue;
        module = att_detected_find(context, rest, att_token_branches[*hook], att_token_hooks.items[*hook].place);
        if (module)
            break;
    }
    return module;
}

bool att_token_owns(const att_context *context, const char *rest)
{
    bool is = false;
    for (int hook = 0; hook < ATT_TOKEN_HOOKS; hook++)
        is = is || att_detected_owns(context, rest, att_token_branches[hook], att_token_hooks.items[hook].place);
    return is;
}

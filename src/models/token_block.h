/* models/token_block.h - the residual block of networks of tokens: attention and an MLP, each behind a norm and added
 * to the stream, with the places for modules. Families that share this block share its options, its tensor names and
 * its places. Tensor names are timm's. */
#ifndef ATT_MODELS_TOKEN_BLOCK_H
#define ATT_MODELS_TOKEN_BLOCK_H

#include <attscope/nn.h>

#include "models/placement.h"

/* The places for modules, in the order of att_token_hooks. */
enum {
    ATT_TOKEN_AFTER_MLP,
    ATT_TOKEN_AFTER_ATTN,
    ATT_TOKEN_ATTN,
    ATT_TOKEN_BEFORE_MLP,
    ATT_TOKEN_MID_MLP,
    ATT_TOKEN_BEFORE_ATTN,
    ATT_TOKEN_STREAM_AFTER_ATTN,
    ATT_TOKEN_STREAM_AFTER_MLP,
    ATT_TOKEN_HEADS,
    ATT_TOKEN_HOOKS
};
extern const att_module_hook att_token_hook_list[ATT_TOKEN_HOOKS];
#define ATT_TOKEN_HOOK_SET                   \
    {                                        \
        att_token_hook_list, ATT_TOKEN_HOOKS \
    }
extern const att_hooks att_token_hooks;
/* One stage that holds all blocks. */
att_stages att_token_stages(int depth);
/* Parses the option "modules" of a network with these stages; heads[s]: heads of a block in stage s. Errors: those of
 * att_modules_parse(); ERR_ARGUMENT if modules leave a block's attention without a head. */
att_status att_token_modules_in(att_context *context, const char *text, const att_stages *stages, const int *heads,
                                att_modules *modules);
/* The same for one stage of `depth` blocks. */
att_status att_token_modules(att_context *context, const char *text, int depth, int heads, att_modules *modules);

/* What all blocks of a network have in common. */
typedef struct att_token_form {
    int width, heads;
    double norm_eps;
    bool qkv_bias;
    double init_values;            /* of LayerScale; 0: none */
    int prefix, grid[2], patch[2]; /* tokens before those of the grid; the grid; pixels of a patch */
    bool relative_bias;            /* attention has the parameter relative_position_bias_table */
    int window[2], shift[2];       /* attention in shifted windows, see att_attention_options; 0: in the whole grid */
} att_token_form;

/* A block of the network, or a residual layer beside them. */
typedef struct att_token_block {
    const att_token_form *form;
    const att_modules *modules;
    att_scope scope;
    int index;      /* by which modules are chosen */
    int64_t hidden; /* channels inside the MLP */
    double drop_path;
} att_token_block;

/* x + drop_path(layer_scale(attention(norm(x)))): tensors norm1, attn, ls1. x [N, C] -> [N, C]. */
att_value att_token_attend(const att_token_block *block, att_value x);
/* x + drop_path(layer_scale(mlp(norm(x)))): tensors norm2, mlp, ls2. */
att_value att_token_transform(const att_token_block *block, att_value x);

#endif

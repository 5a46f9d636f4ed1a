/* models/token_block.h - the residual block of networks of tokens: attention and an MLP, each behind a norm and added
 * to the stream, with the places for modules. Families that share this block share its options, its tensor names and
 * its places. Tensor names are timm's. */
#ifndef ATT_MODELS_TOKEN_BLOCK_H
#define ATT_MODELS_TOKEN_BLOCK_H

#include <attscope/nn.h>

#include "networks/models/placement.h"
#include "networks/models/relative_bias.h"

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
/* Parses the option "modules" of a network with these stages; heads[s]: heads of a block in stage s. Errors: those of
 * att_modules_parse(); ERR_ARGUMENT if modules leave a block's attention without a head. */
att_status att_token_modules_in(att_context *context, const char *text, const att_stages *stages, const int *heads,
                                att_modules *modules);
/* The same for one stage of `depth` blocks. */
att_status att_token_modules(att_context *context, const char *text, int depth, int heads, att_modules *modules);

/* --- parts of a block ------------------------------------------------------------------------------------------- */

/* A norm over the channels of a token: a layer norm, or an RMS norm, which has no bias. */
typedef struct att_norm_form {
    bool rms;
    double eps;
} att_norm_form;
/* Tensors weight (initialised to `start`) and bias. x [.., C] -> [.., C]. */
att_value att_token_norm(const att_scope *scope, att_value x, const att_norm_form *form, double start);

/* Activations by timm's names: gelu, gelu_tanh, quick_gelu, silu, relu. */
typedef att_value att_activate(att_graph *graph, att_value x);
const char *att_activation_name(int index);
/* Returns NULL for an unknown name. */
att_activate *att_activation_named(const char *name);

/* An MLP. PLAIN: fc2(act(fc1(x))). SWIGLU: fc2(silu(fc1_g(x)) (.) fc1_x(x)). PACKED, timm's SwiGLUPacked: the same with
 * both layers in fc1, so that `hidden`, the outputs of fc1, are twice the inputs of fc2. timm starts SwiGLU's gate near
 * zero with bias 1; of a PACKED one attscope starts both halves as linear layers. */
typedef enum att_mlp_kind { ATT_MLP_PLAIN, ATT_MLP_SWIGLU, ATT_MLP_PACKED } att_mlp_kind;
/* The kinds by name, in their order: mlp, swiglu, swiglu_packed. NULL past the last. */
const char *att_mlp_name(int kind);
/* Returns PLAIN for an unknown name. */
att_mlp_kind att_mlp_named(const char *name);

/* How linear layers start. NORMAL: weights with deviation 0.02, biases 0. RESCALED: the same, but the weights of the
 * layers that end a branch are divided by sqrt(2 (index + 1)), as in BEiT and EVA, and the gate of SwiGLU starts as
 * other layers. UNIFORM: as PyTorch's, both within 1 / sqrt(inputs). */
typedef enum att_token_start { ATT_START_NORMAL, ATT_START_RESCALED, ATT_START_UNIFORM } att_token_start;

/* What all blocks of a network have in common. */
typedef struct att_token_form {
    int width, heads;
    att_norm_form norm;
    bool post_norm;           /* the norms are at the end of the branches, in place of LayerScale */
    bool sum_norm;            /* the norms follow the additions, as in BERT: norm(x + branch) */
    double post_norm_start;   /* initial weights of the norms at the end of branches */
    bool qkv_bias, proj_bias; /* proj_bias: also of the MLP */
    bool qv_bias;             /* q_bias and v_bias in place of qkv.bias, so that keys have no bias */
    bool qkv_apart;           /* layers q_proj, k_proj and v_proj in place of qkv; with qv_bias k_proj has no bias */
    bool block_gammas;        /* LayerScale's parameters are gamma_1 and gamma_2 in place of ls1.gamma and ls2.gamma */
    att_token_start start;
    bool qk_norm;             /* norms of the queries and keys of each head */
    bool attn_norm, mlp_norm; /* a norm of the heads before proj; of the hidden channels before fc2 */
    bool differential;        /* differential attention, see att_token_heads() */
    att_mlp_kind mlp;
    att_activate *activate;
    double init_values;            /* of LayerScale; 0: none */
    int prefix, grid[2], patch[2]; /* tokens before those of the grid; the grid; pixels of a patch */
    att_relative_form relative;    /* biases of attention that depend on the shift */
    int cosine;                    /* cosine attention: axes of its parameter logit_scale, 1: [heads], 3: [heads, 1, 1];
                                      0: products over sqrt(d). See att_cosine_heads() */
    int window[2], shift[2];       /* attention in shifted windows, see att_attention_options; 0: in the whole grid */
    bool pad_before_shift;         /* windows are filled up before the shift, else after that, see att_window_pad() */
    double attn_drop;              /* dropout of the maps of attention in training */
    const att_value *keys;         /* added to the scores of keys, see att_attention_terms.keys; NULL: nothing */
} att_token_form;

/* Rotary positions of queries and keys: table and halves as for att_rotary(). */
typedef struct att_token_rotary {
    att_value table;
    bool halves;
} att_token_rotary;

/* A block of the network, or a residual layer beside them. */
typedef struct att_token_block {
    const att_token_form *form;
    const att_modules *modules;
    att_scope scope;
    int index;      /* by which modules are chosen */
    int64_t hidden; /* channels inside the MLP: outputs of fc1 */
    double drop_path;
    const att_token_rotary *rotary; /* NULL: none */
} att_token_block;

/* A linear layer's parameters, declared at once and applied in parts. */
typedef struct att_projection {
    att_value weight, bias; /* [O, I], [O] or ATT_NONE */
} att_projection;
att_projection att_project_declare(const att_scope *scope, int64_t outputs, int64_t inputs, bool bias);
/* Outputs first .. first + count - 1 of the layer, for x [.., I]. */
att_value att_project(const att_scope *scope, const att_projection *layer, att_value x, int64_t first, int64_t count);

/* The heads of an attention, side by side [N, heads d], with queries, keys and values from outputs `first` on of
 * `qkv`. Tensors in `scope`: q_norm and k_norm; of differential attention lambda_* and sub_norm. `node` is the scope of
 * the attention itself; `relative` is the table of relative positions, or ATT_NONE. Differential attention (Ye et al.,
 * ICLR 2025) has two maps per head with half as wide queries and keys: (a - lambda a') v, lambda = exp(q1 . k1) -
 * exp(q2 . k2) + start, start = 0.8 - 0.6 exp(-0.3 index), then an RMS norm of each head, times 1 - start. */
att_value att_token_heads(const att_token_block *block, const att_scope *scope, const att_scope *node, att_value x,
                          att_value relative, const att_projection *qkv, int64_t first, int heads);

/* att_nn_linear() as a classifier. */
att_value att_token_classifier(const att_scope *scope, att_value features, int64_t classes);
/* A classifier whose weights start at a thousandth of those of att_nn_linear(), as in BEiT and EVA. */
att_value att_token_small_classifier(const att_scope *scope, att_value features, int64_t classes);

/* --- branches ----------------------------------------------------------------------------------------------------- */

/* A branch with its modules, without LayerScale and addition. Tensors: of the norm in the scope `norm`, all others in
 * `attn` or `mlp`. x [N, C] -> [N, C]. */

att_value att_token_attention_branch(const att_token_block *block, const att_scope *norm, const att_scope *attn,
                                     att_value x);
att_value att_token_mlp_branch(const att_token_block *block, const att_scope *norm, const att_scope *mlp, att_value x);
/* drop_path(layer_scale(branch)); scale, gamma: scope and name of LayerScale's parameter; drop: scope of drop path. */
att_value att_token_end_branch(const att_token_block *block, const att_scope *scale, const char *gamma,
                               const att_scope *drop, att_value branch);
/* x + branch, in the scope "add<half>", and the modules on the stream; with sum_norm then the norm "norm<half>".
 * half: 1, attention, or 2, MLP. */
att_value att_token_add(const att_token_block *block, int half, att_value x, att_value branch);

/* --- a block in sequence ------------------------------------------------------------------------------------------ */

/* x + drop_path(layer_scale(attention(norm(x)))): tensors norm1, attn, ls1 or gamma_1. x [N, C] -> [N, C]. */
att_value att_token_attend(const att_token_block *block, att_value x);
/* x + drop_path(layer_scale(mlp(norm(x)))): tensors norm2, mlp, ls2 or gamma_2. */
att_value att_token_transform(const att_token_block *block, att_value x);

#endif

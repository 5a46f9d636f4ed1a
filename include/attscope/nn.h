/* attscope/nn.h - layers: operations together with the parameters they need, under the names of the ecosystem.
 *
 * A scope gives names: in scope "blocks.3.attn", a layer "qkv" declares "blocks.3.attn.qkv.weight", and its nodes are
 * named "blocks.3.attn.qkv" for probes and profiles. Every layer sets the graph's scope to its own before it adds
 * nodes. Layers are sticky as operations are (attscope/graph.h): after a failure they return ATT_NONE.
 */
#ifndef ATTSCOPE_NN_H
#define ATTSCOPE_NN_H

#include <attscope/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A place in a graph's tree of names. A value type: the graph must outlive it. */
typedef struct att_scope {
    att_graph *graph;
    char path[128]; /* "" at the root */
} att_scope;

ATT_API att_scope att_scope_root(att_graph *graph);
/* The scope below, its name formatted as printf does. A path of more than 127 bytes fails the graph (ERR_ARGUMENT). */
ATT_API att_scope att_scope_in(const att_scope *scope, const char *format, ...) ATT_PRINTF(2, 3);
/* Nodes made from now on bear the scope's path. */
ATT_API void att_scope_enter(const att_scope *scope);
/* The parameter "<path>.<name>". */
ATT_API att_value att_scope_parameter(const att_scope *scope, const char *name, att_shape shape, att_init init,
                                      bool decay);
/* The buffer "<path>.<name>". */
ATT_API att_value att_scope_buffer(const att_scope *scope, const char *name, att_shape shape, double start);

/* How timm initialises a linear layer of a ViT: truncated normal, standard deviation 0.02. */
ATT_API att_init att_init_linear(void);

/* y = x weight' + bias. weight [outputs, I], decayed, started by att_init_linear(); bias [outputs] zero, not decayed.
 * x [.., I] -> [.., outputs]. */
ATT_API att_value att_nn_linear(const att_scope *scope, att_value x, int64_t outputs, bool bias);

/* weight (ones), bias (zeros) [C], not decayed. x [.., C] -> [.., C]. */
ATT_API att_value att_nn_layer_norm(const att_scope *scope, att_value x, double eps);

/* Multi-head self-attention: linear qkv, attention (its node bears the scope's own path), linear proj.
 * x [N, C] -> [N, C]. */
typedef struct att_nn_attention_options {
    int heads; /* divide C */
    bool qkv_bias;
    int prefix, grid_h, grid_w; /* this line and the next: as in att_attention_options */
    double step_h, step_w;
} att_nn_attention_options;
ATT_API att_value att_nn_attention(const att_scope *scope, att_value x, const att_nn_attention_options *options);

/* Linear fc1 to `hidden`, GELU, linear fc2 back. x [.., C] -> [.., C]. */
ATT_API att_value att_nn_mlp(const att_scope *scope, att_value x, int64_t hidden);

/* A convolution of P x Q pixels (patch_h, patch_w) with that stride: proj.weight [width, channels, P, Q], decayed, and
 * proj.bias [width], both started uniformly within 1 / sqrt(channels P Q) as PyTorch does. image [h, w, channels] ->
 * [N, width]. */
ATT_API att_value att_nn_patch_embed(const att_scope *scope, att_value image, int patch_h, int patch_w, int64_t width);

/* y = x (.) gamma; gamma [C] starts at `start`, not decayed. */
ATT_API att_value att_nn_layer_scale(const att_scope *scope, att_value x, double start);

/* A convolution of kernel x kernel pixels, kernel odd, with kernel / 2 pixels of padding: weight [O, C / groups,
 * kernel, kernel], decayed, started as N(0, 2 / (O kernel^2)) (He et al. 2015, over outputs); with `bias`, bias [O]
 * from zero, not decayed. x [h, w, C] -> [ceil(h / stride), ceil(w / stride), O]. */
typedef struct att_nn_conv_options {
    int kernel;
    int stride, groups; /* 0: 1 */
    bool bias;
} att_nn_conv_options;
ATT_API att_value att_nn_conv(const att_scope *scope, att_value x, int64_t outputs, const att_nn_conv_options *options);

/* weight (from `start`) and bias (zeros) [C], not decayed; buffers running_mean (zeros) and running_var (ones) [C].
 * eps and momentum are att_batch_norm()'s own. x [.., C] -> [.., C]. */
ATT_API att_value att_nn_batch_norm(const att_scope *scope, att_value x, double start);

/* As att_nn_linear(), its weight and bias started uniformly within 1 / sqrt(I), as PyTorch does: the classifier of a
 * convolutional network. */
ATT_API att_value att_nn_classifier(const att_scope *scope, att_value x, int64_t outputs);

/* --- modules: what can be put on a residual branch, by name ------------------------------------------------------
 *
 * A module changes a residual branch at a place of a network: branch -> apply(branch), which has the same shape. It is
 * one descriptor. A program registers its own:
 *
 *     static const att_module mine = {.name = "mine", .meaning = "x <- 2 x", .place = ATT_ON_TOKENS, .scope = "mine",
 *                                     .apply = apply};
 *     att_module_register(context, &mine);
 *     att_options_set_text(&options, "modules", "mine@after_attn:0-5");
 *
 * From then on it is as good as a built-in one in every call for this context, and for no other context: in the option
 * "modules" of networks, in checkpoints, which record it by its name, in listings. A program that opens such a
 * checkpoint registers the module before. examples/module.c is a whole program. */

enum { ATT_MODULE_OPTIONS = 4, ATT_MODULE_OTHER_NAMES = 2 };

/* An option that users may set, "se:ratio=8". apply() gets its value: the number, or the index of the choice. */
typedef struct att_module_option {
    const char *name;           /* 1 to 23 letters, digits and underscores, the first a letter */
    const char *meaning;        /* one line */
    double start, low, high;    /* default and closed range; of choices: of their index, so that low is 0 */
    const char *const *choices; /* names, NULL-terminated, without the characters ":,=@+" and blanks; NULL: the option
                                 * is a number */
    bool whole;                 /* the number must be whole */
} att_module_option;

/* What a module's branch must be. X(name, rank, text) */
#define ATT_MODULE_PLACE_LIST(X) X(TOKENS, 2, "tokens [N, C]") X(MAPS, 3, "feature maps [h, w, C]")

typedef enum att_module_place {
#define ATT_MODULE_PLACE_ENUM(name, rank, text) ATT_ON_##name,
    ATT_MODULE_PLACE_LIST(ATT_MODULE_PLACE_ENUM)
#undef ATT_MODULE_PLACE_ENUM
} att_module_place;

typedef struct att_module {
    const char *name;       /* what users write: 1 to 23 letters, digits and underscores, the first a letter; not
                             * "none" */
    const char *meaning;    /* one line with its source */
    att_module_place place; /* it fits every hook of this place */
    att_module_option options[ATT_MODULE_OPTIONS];
    int option_count;
    const char *scope;     /* the scope that it is applied in, below the branch's: "cb"; spelled as a name is. Not that
                            * of a layer of a network. Modules that share a scope cannot both be at one place */
    const char *parameter; /* the name of one parameter ("weight"; '*' and '?' allowed). A checkpoint without metadata
                            * has the module where this name is in the module's scope. NULL: the module has no
                            * parameters. A module with parameters must set it */
    /* Names in checkpoints of other widespread code. other_names: pairs of a parameter's name here and there,
     * {"fc1", "fc.0"}. other_scope: the scope there, "eca". constant: a tensor in that scope that is not learnt and
     * shows that the module is there. NULL: none. */
    const char *other_names[ATT_MODULE_OTHER_NAMES][2];
    const char *other_scope, *constant;
    double (*constant_at)(att_shape shape, int64_t e); /* value of element e of `constant`, of shape [C, h, w] */
    /* Adds the module to the scope's graph and returns the branch that will be added to `identity`, in the shape of
     * `branch`. scope: the module's own at this place, "blocks.0.mlp.cb"; parameters are declared in it
     * (att_scope_parameter()), and nodes bear its name after att_scope_enter(). values: one for each option. It uses
     * the operations of attscope/ops.h, which have gradients, and the layers above. It is called once for each place
     * when a network is built. The library also calls it on other graphs, to compare the shapes of its parameters with
     * those in a file.
     *
     * Failing: att_graph_fail(), and ATT_NONE is returned. After any failure `branch` is ATT_NONE, which operations
     * accept; its shape then has rank 0. Another shape than the branch's, a parameter outside of the scope, and
     * parameters of which `parameter` names none fail the graph (ERR_MISMATCH). */
    att_value (*apply)(const att_scope *scope, const double *values, att_value branch, att_value identity);
} att_module;

/* Registers a module with the context. The descriptor is not copied: it, and all that it points to, must outlive the
 * context. Not while another call for this context runs. Errors, the context is then as before: ERR_ARGUMENT, in one
 * sentence, for a name that there is already (a second registration, too) or that cannot be one, and for a member that
 * is missing or cannot be; ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_module_register(att_context *context, const att_module *module);

/* The modules that a context has: the built-in ones, then those that were registered, in that order. context NULL: the
 * built-in ones. NULL outside of 0..count-1. */
ATT_API int att_module_count(const att_context *context);
ATT_API const att_module *att_module_at(const att_context *context, int index);
/* "none", then the names of the modules that fit a place; NULL past the last. */
ATT_API const char *att_module_name(const att_context *context, att_module_place place, int index);

/* A point of a network where modules can be put. Each family of networks has some (attscope/models.h). */
typedef struct att_module_hook {
    const char *name; /* "after_mlp" */
    const char *help; /* one line */
    att_module_place place;
} att_module_hook;

/* A module with its options' values, said in text: "none", "cb", "cb_s:init=0.1", "step:adaptor=style,input=both". */
typedef struct att_module_choice {
    const att_module *module; /* NULL: none */
    double values[ATT_MODULE_OPTIONS];
} att_module_choice;
/* Errors: ERR_NOT_FOUND for a module's name, with the nearest; ERR_ARGUMENT for its options: an unknown name, one said
 * twice, a value. */
ATT_API att_status att_module_parse(att_context *context, const char *text, att_module_choice *choice);
/* Applies the choice in its scope below `scope` ("blocks.0.mlp" gives "blocks.0.mlp.cb.weight"); the branch itself
 * where there is none. A branch that is not what the module fits fails the graph (ERR_UNSUPPORTED). */
ATT_API att_value att_module_apply(const att_module_choice *choice, const att_scope *scope, att_value branch,
                                   att_value identity);

#ifdef __cplusplus
}
#endif
#endif

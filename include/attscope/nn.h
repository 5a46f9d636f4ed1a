/* attscope/nn.h - layers (operations with their parameters, under timm's names) and modules.
 *
 * A scope is a prefix of names: in the scope "blocks.3.attn", the layer "qkv" declares the parameter
 * "blocks.3.attn.qkv.weight", and its nodes are named "blocks.3.attn.qkv" in probes and profiles. Every layer enters
 * its own scope before it adds nodes. Errors are sticky, as for operations (attscope/graph.h): after a failure layers
 * return ATT_NONE.
 */
#ifndef ATTSCOPE_NN_H
#define ATTSCOPE_NN_H

#include <attscope/graph.h>
#include <attscope/ops.h>
#include <attscope/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A prefix of names in a graph. A value type; the graph must outlive it. */
typedef struct att_scope {
    att_graph *graph;
    char path[128]; /* "" at the root */
    /* Layers read the parameters and buffers of their names, which the graph has already, and declare none: a part of a
     * network is built again for other inputs. A name that is missing, or has another shape, fails the graph
     * (ERR_NOT_FOUND, ERR_MISMATCH). Scopes below inherit it. */
    bool again;
    /* Names of parameters and buffers have this text in place of the first `replaced` bytes of the path: with
     * "blocks.0" in place of "blocks.3" and `again`, a block has the parameters of another one. "": they have the path
     * itself. Scopes below inherit it. */
    char source[24];
    int replaced;
} att_scope;

ATT_API att_scope att_scope_root(att_graph *graph);
/* Returns the scope below `scope`, with a name formatted as by printf(). A path of more than 127 bytes fails the graph
 * (ERR_ARGUMENT). */
ATT_API att_scope att_scope_in(const att_scope *scope, const char *format, ...) ATT_PRINTF(2, 3);
/* Names all nodes that are added afterwards after this scope. */
ATT_API void att_scope_enter(const att_scope *scope);
/* Adds the parameter "<path>.<name>" (att_graph_parameter()). */
ATT_API att_value att_scope_parameter(const att_scope *scope, const char *name, att_shape shape, att_init init,
                                      bool decay);
/* Adds the buffer "<path>.<name>" (att_graph_buffer()). */
ATT_API att_value att_scope_buffer(const att_scope *scope, const char *name, att_shape shape, double start);

/* timm's initialisation of linear layers in a ViT: truncated normal with standard deviation 0.02. */
ATT_API att_init att_init_linear(void);

/* y = x weight' + bias. weight [outputs, I]: with weight decay, initialised by att_init_linear(). bias [outputs]:
 * zeros, no decay. x [.., I] -> [.., outputs]. */
ATT_API att_value att_nn_linear(const att_scope *scope, att_value x, int64_t outputs, bool bias);

/* Layer norm with weight (ones) and bias (zeros) [C], no decay. x [.., C] -> [.., C]. */
ATT_API att_value att_nn_layer_norm(const att_scope *scope, att_value x, double eps);

/* Patch embedding: a convolution of P x Q pixels (P = patch_h, Q = patch_w) with the same stride. proj.weight [width,
 * channels, P, Q], with decay, and, if `bias`, proj.bias [width], without; both initialised uniformly within 1 /
 * sqrt(channels P Q), as in PyTorch. image [h, w, channels] -> [N, width], N = floor(h / P) floor(w / Q): as in timm,
 * pixels beyond the last whole patch are left out. */
ATT_API att_value att_nn_patch_embed(const att_scope *scope, att_value image, int patch_h, int patch_w, int64_t width,
                                     bool bias);

/* A convolution of kernel x kernel pixels, kernel odd, with padding dilation (kernel / 2). weight [O, C / groups,
 * kernel, kernel]: with decay, initialised by N(0, 2 / (O kernel^2)) (He et al. 2015, over outputs). bias [O], if
 * `bias`: zeros, no decay. x [h, w, C] -> [ceil(h / stride), ceil(w / stride), O]. */
typedef struct att_nn_conv_options {
    int kernel;
    int stride, dilation, groups; /* 0: 1 */
    bool bias;
} att_nn_conv_options;
ATT_API att_value att_nn_conv(const att_scope *scope, att_value x, int64_t outputs, const att_nn_conv_options *options);

/* A transposed convolution (att_conv_transpose2d()) of kernel x kernel pixels. weight [C, O, kernel, kernel], with
 * decay, and, if `bias`, bias [O], without; both initialised uniformly within 1 / sqrt(O kernel^2), as in PyTorch. x
 * [h, w, C] -> [stride (h - 1) + kernel - 2 padding, likewise, O]: with a kernel of 2 and a stride of 2, a map of twice
 * the size. */
typedef struct att_nn_conv_transpose_options {
    int kernel;
    int stride; /* 0: 1 */
    int padding;
    bool bias;
} att_nn_conv_transpose_options;
ATT_API att_value att_nn_conv_transpose(const att_scope *scope, att_value x, int64_t outputs,
                                        const att_nn_conv_transpose_options *options);

/* Attention of kernel x kernel heads in place of a convolution, with the same shapes: att_pair_attention() with a ring
 * of dilation (kernel - 1) / 2 tokens and with centers at the kernel's shifts, then the projections of the heads.
 * row_centers, column_centers [kernel]: initialised to dilation (i - (kernel - 1) / 2), no decay. row_sharpness,
 * column_sharpness [kernel]: initialised to sqrt(2 ATT_ATTENTION_ALPHA), no decay; a head's score is -alpha |shift -
 * center|^2 with alpha = sharpness^2 / 2. weight, bias: as those of att_nn_conv(); weight[:, :, i, j] is the projection
 * of the head of row i and column j. The larger alpha, the closer is the result to that of the convolution: a head
 * gives less than 4 exp(-alpha) of its weight to pixels around its center. (Cordonnier et al., ICLR 2020) */
#define ATT_ATTENTION_ALPHA 20.0
typedef struct att_nn_attention_conv_options {
    int kernel;                   /* odd */
    int stride, dilation, groups; /* 0: 1 */
    bool bias;
    double step_h, step_w; /* distances between rows and between columns of x; 0: 1 */
} att_nn_attention_conv_options;
ATT_API att_value att_nn_attention_conv(const att_scope *scope, att_value x, int64_t outputs,
                                        const att_nn_attention_conv_options *options);

/* Batch norm with weight (initialised to `start`) and bias (zeros) [C], no decay; buffers running_mean (zeros) and
 * running_var (ones) [C]; default eps and momentum of att_batch_norm(). x [.., C] -> [.., C]. */
ATT_API att_value att_nn_batch_norm(const att_scope *scope, att_value x, double start);

/* The same with other options of att_batch_norm(). */
ATT_API att_value att_nn_batch_norm_with(const att_scope *scope, att_value x, double start,
                                         const att_batch_norm_options *options);

/* As att_nn_linear(), with weight and bias initialised uniformly within 1 / sqrt(I), as in PyTorch: the classifier of a
 * convolutional network. */
ATT_API att_value att_nn_classifier(const att_scope *scope, att_value x, int64_t outputs);

/* --- modules: named changes of residual branches ------------------------------------------------------------------
 *
 * A module changes a value at a place of a network, usually a residual branch: branch -> apply(branch), with the same
 * shape. It is one descriptor. A program registers its own module:
 *
 *     static const att_module mine = {.name = "mine", .meaning = "x <- 2 x", .places = ATT_ON_TOKENS, .scope = "mine",
 *                                     .apply = apply};
 *     att_module_register(context, &mine);
 *     att_options_set_text(&options, "modules", "mine@after_attn:0-5");
 *
 * Every later call for this context treats it like a built-in module: in the option "modules", in checkpoints, which
 * record its name, and in listings. Other contexts do not know it. A program that opens such a checkpoint must register
 * the module first. examples/module.c is a whole program.
 */

enum { ATT_MODULE_OPTIONS = 5, ATT_MODULE_OTHER_NAMES = 2 };

/* What a module changes: tokens, a feature map, or the output of an attention, beside whose heads it works. Bits, so
 * that a module can fit several. X(name, bit, rank, text) */
#define ATT_MODULE_PLACE_LIST(X)            \
    X(TOKENS, 1, 2, "tokens [N, C]")        \
    X(MAPS, 2, 3, "feature maps [h, w, C]") \
    X(HEADS, 4, 2, "heads of attention")

typedef enum att_module_place {
#define ATT_MODULE_PLACE_ENUM(name, bit, rank, text) ATT_ON_##name = bit,
    ATT_MODULE_PLACE_LIST(ATT_MODULE_PLACE_ENUM)
#undef ATT_MODULE_PLACE_ENUM
} att_module_place;

/* Writes the texts of several places, "tokens [N, C] or feature maps [h, w, C]", and returns `text`. 96 bytes suffice.
 */
ATT_API char *att_module_places_text(unsigned places, char *text, size_t size);

/* Where a module is applied. Members that a place does not have are ATT_NONE and 0. */
typedef struct att_module_site {
    /* The value to change: inside a residual branch, or, at a place on the stream, the sum of stream and branch. At
     * ATT_ON_HEADS, the output of the attention. */
    att_value branch;
    att_value identity; /* the stream to which the branch is added later; on the stream: the stream before the sum */
    att_value input;    /* ATT_ON_HEADS: tokens [N, C] that the attention reads, after its norm */
    int prefix;         /* tokens before those of the grid, the class token first */
    int grid_h, grid_w; /* the other tokens are this grid, row by row */
    int heads;          /* ATT_ON_HEADS: H, the heads that the attention has without modules; they are C / H wide */
    bool qkv_bias;      /* ATT_ON_HEADS: whether queries, keys and values have biases */
} att_module_site;

typedef struct att_module {
    /* The name that users write: 1 to 23 letters, digits and underscores, the first a letter; not "none". */
    const char *name;
    const char *meaning; /* one line, with the source */
    unsigned places;     /* the bits of att_module_place that it fits: it can be used at every hook of these places */
    att_detail options[ATT_MODULE_OPTIONS]; /* apply() gets their values (attscope/options.h) */
    int option_count;
    /* Name of the module's scope below the branch's scope: "cb"; 1 to 23 letters, digits and underscores, the first a
     * letter; not the name of a layer of a network. Two modules with the same scope cannot be at one place. */
    const char *scope;
    /* Name of one parameter below the scope ("weight"; '*' and '?' allowed). If a checkpoint has no metadata, a
     * parameter of this name in the module's scope shows that the network has the module at that place. Required for a
     * module with parameters; NULL: the module has none. */
    const char *parameter;
    /* Names in checkpoints of other widely used implementations. other_names: pairs of a parameter's name here and in
     * those checkpoints, {"fc1", "fc.0"}. other_scope: the scope in those checkpoints, "eca". constant: name of a
     * tensor in that scope that is not learnt; its presence shows that the network has the module. NULL: none. */
    const char *other_names[ATT_MODULE_OTHER_NAMES][2];
    const char *other_scope, *constant;
    double (*constant_at)(att_shape shape, int64_t e); /* value of element e of `constant`, of shape [C, h, w] */
    /* Adds the module to the scope's graph and returns the changed branch, with the shape of site->branch. scope: the
     * module's own at this place, "blocks.0.mlp.cb". Declare parameters in it (att_scope_parameter()), and call
     * att_scope_enter() so that nodes are named after the scope. values: one for each option. Use the operations of
     * attscope/ops.h, which have gradients, and the layers above. The library calls this once for each place when it
     * builds a network, and on other graphs to compare the shapes of parameters with those of a file.
     *
     * Report failures with att_graph_fail() and return ATT_NONE. After any failure site->branch is ATT_NONE, which
     * operations accept; its shape then has rank 0. The graph fails with ERR_MISMATCH if the result has another shape
     * than the branch, if a parameter is outside of the scope, or if there are parameters and `parameter` matches none
     * of them. */
    att_value (*apply)(const att_scope *scope, const double *values, const att_module_site *site);
    /* Returns how many of its heads the attention leaves to the module, which must fit ATT_ON_HEADS: the attention is
     * then built with that many heads less, of the same width. NULL: none. */
    int (*replaced_heads)(const double *values);
    /* Returns whether the module has parameters with these values of its options. NULL: it has if `parameter` is not
     * NULL. */
    bool (*has_parameters)(const double *values);
} att_module;

/* Registers a module with the context. The descriptor is not copied; it and everything that it points to must outlive
 * the context. Do not call this while another call for this context runs. Errors, which leave the context unchanged:
 * ERR_ARGUMENT (a name that is taken, also by an earlier registration, or invalid; a member that is missing or
 * invalid), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_module_register(att_context *context, const att_module *module);

/* The modules of a context: the built-in ones, then the registered ones in the order of registration. context NULL: the
 * built-in ones. NULL for an index outside 0..count-1. */
ATT_API int att_module_count(const att_context *context);
ATT_API const att_module *att_module_at(const att_context *context, int index);

/* A place in a network for modules. Each family of networks has its own (attscope/models.h). */
typedef struct att_module_hook {
    const char *name; /* "after_mlp" */
    const char *help; /* one line */
    att_module_place place;
} att_module_hook;

/* A module with the values of its options. As text: "none", "cb", "cb_s:init=0.1", "step:adaptor=style,input=both". */
typedef struct att_module_choice {
    const att_module *module; /* NULL: none */
    double values[ATT_MODULE_OPTIONS];
} att_module_choice;
/* Parses the text of a choice. Errors: ERR_NOT_FOUND for an unknown module, with the nearest name; ERR_ARGUMENT for its
 * options: an unknown name, one given twice, an invalid value. */
ATT_API att_status att_module_parse(att_context *context, const char *text, att_module_choice *choice);

#ifdef __cplusplus
}
#endif
#endif

/* measure/variants.h - the stream of a network's tokens with skips, MLPs and norms switched off, as copies of parts of
 * the graph (measure/clone.h). */
#ifndef ATT_MEASURE_VARIANTS_H
#define ATT_MEASURE_VARIANTS_H

#include "base/core/memory.h"
#include "study/measure/instrument.h"

/* Calls X(skip, mlp, norms, name) for every variant. Without norms, the norms in the blocks are the identity. */
#define ATT_VARIANT_LIST(X)                     \
    X(false, false, true, "attention")          \
    X(true, false, true, "skip")                \
    X(false, true, true, "mlp")                 \
    X(true, true, true, "both")                 \
    X(false, false, false, "attention_no_norm") \
    X(true, false, false, "skip_no_norm")       \
    X(false, true, false, "mlp_no_norm")        \
    X(true, true, false, "both_no_norm")
enum { ATT_VARIANTS = 8 };
typedef struct att_variant {
    bool skip, mlp, norms;
} att_variant;
extern const att_variant att_variants[ATT_VARIANTS];
/* NULL-terminated: the readings of an instrument that observes variants. */
extern const char *const att_variant_names[];

/* The option "norms" of such an instrument, and its values. */
enum { ATT_NORMS_ON, ATT_NORMS_OFF, ATT_NORMS_ALL };
extern const char *const att_norms_choices[];
#define ATT_NORMS_OPTION                                                                           \
    {                                                                                              \
        .name = "norms", .meaning = "the norms in the blocks: as they are, switched off, or both", \
        .high = ATT_NORMS_ALL, .choices = att_norms_choices                                        \
    }
/* The option "parts": the network as it is, or also without skips, without MLPs, and without both. */
enum { ATT_PARTS_BOTH, ATT_PARTS_ALL };
extern const char *const att_parts_choices[];
#define ATT_PARTS_OPTION                                                                                            \
    {                                                                                                               \
        .name = "parts", .meaning = "the network as it is, or also with its skips, its MLPs and both switched off", \
        .high = ATT_PARTS_ALL, .choices = att_parts_choices                                                         \
    }
/* What the switches mean, for att_instrument_info.reading. */
#define ATT_VARIANTS_READING                                                                                           \
    "a residual addition is an attention step if its branch contains attention, or no activation, else an MLP step; "  \
    "attention: x -> f(x) in attention steps, MLP steps are left out; skip: x -> x + f(x), MLP steps are left out; "   \
    "mlp: x -> f(x) in all steps; both: the network as it is; LayerScale belongs to f; of a block with attention and " \
    "MLP side by side, the output of the MLP is left out and a common bias stays; a norm after an MLP's addition is "  \
    "left out with it; _no_norm: layer and RMS norms in the blocks are the identity, without scale and shift, except " \
    "those of queries and keys and those between stages"

/* The tokens of a variant before the first residual addition of the network, or after one. */
typedef struct att_variant_row {
    const char *node;  /* for figures: "input" or the scope of the addition */
    const char *scope; /* of the addition */
    char probe[256];   /* prefix for the names of probes, unique for this row */
    int variant;
    att_value x;   /* [N, C] */
    bool original; /* x is a value of the network itself, no copy */
    bool selected; /* by the user's pattern */
    bool ends_layer;
} att_variant_row;

/* Rows ordered by variant, then by depth. */
typedef struct att_variant_rows {
    att_arena arena;
    att_variant_row *items;
    int count;
} att_variant_rows;

/* Adds copies of the network's stream to the graph for each chosen variant. On success the caller frees *rows with
 * att_arena_free(&rows->arena). Errors: ERR_NOT_FOUND (no residual addition of attention between tokens, or none that
 * the user selects), ERR_MEMORY, those of att_clone_value(). */
att_status att_variants_request(att_requests *requests, const bool chosen[ATT_VARIANTS], att_variant_rows *rows);

/* Chooses the variants by the values of the options "parts" and "norms". */
void att_variants_choose(double parts, double norms, bool chosen[ATT_VARIANTS]);

/* For instruments whose first options are ATT_PARTS_OPTION and ATT_NORMS_OPTION: requests value_of(graph, x) of each
 * selected row, by a probe whose name ends in `what`. The constant of a row is the number of its tokens. The caller
 * frees *rows as after att_variants_request(), whose errors it returns. */
att_status att_variants_request_values(att_requests *requests, const char *what,
                                       att_value (*value_of)(att_graph *graph, att_value x), att_variant_rows *rows);

/* Declares a series for each selected row; the reading is the row's variant. */
void att_variants_add_series(att_requests *requests, const att_variant_rows *rows, const char *statistic);

#endif

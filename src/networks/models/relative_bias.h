/* models/relative_bias.h - biases of attention scores that depend on the shift between query and key:
 * att_attention_terms.relative. */
#ifndef ATT_MODELS_RELATIVE_BIAS_H
#define ATT_MODELS_RELATIVE_BIAS_H

#include <attscope/nn.h>

typedef enum att_relative_kind {
    ATT_RELATIVE_NONE,
    /* The parameter relative_position_bias_table [S, heads], with three more rows if there are prefix tokens. */
    ATT_RELATIVE_TABLE,
    /* mlp.fc2(relu(mlp.fc1(s))) of each shift s, with sign(d) ln(1 + |d|) for the shift d on each axis: timm's
     * RelPosMlp of mode "cr". Scores with prefix tokens have no bias. In training timm also drops an eighth of the
     * hidden channels; attscope does not. */
    ATT_RELATIVE_MLP,
    /* 16 sigmoid(cpb_mlp.2(relu(cpb_mlp.0(s)))) of each shift s, scaled as by att_log_shifts(): Swin V2. The last layer
     * has no bias. */
    ATT_RELATIVE_SIGMOID,
    ATT_RELATIVE_SHARED /* att_relative_form.shared, computed once for all blocks */
} att_relative_kind;

typedef struct att_relative_form {
    att_relative_kind kind;
    const char *scope; /* of the parameters, below that of the attention; NULL: that of the attention */
    att_init start;    /* of a table */
    bool decay;        /* of a table */
    const char *mlp;   /* scope of the MLP of ATT_RELATIVE_MLP, below the one above; NULL: "mlp" */
    int hidden;        /* channels of an MLP */
    int pretrained;    /* of ATT_RELATIVE_SIGMOID: side of the window to which shifts refer; 0: the window itself */
    att_value shared;
} att_relative_form;

/* Rows of a table for scores with prefix tokens; they come last. */
enum { ATT_RELATIVE_PREFIX_ROWS = 3 };
/* Rows of a table for shifts in a window of this height and width: S = (2 height - 1) (2 width - 1). */
int64_t att_relative_shifts(const int sides[2]);
/* Returns the side of a square window with `rows` shifts; 0 if there is none. */
int att_relative_side(int64_t rows);

/* Returns the biases [S, heads] of a window with these sides; ATT_NONE for ATT_RELATIVE_NONE. scope: that of the
 * attention. */
att_value att_relative_bias(const att_scope *scope, const att_relative_form *form, const int sides[2], int prefix,
                            int heads);

#endif

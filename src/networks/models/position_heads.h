/* models/position_heads.h - what families say about heads that attend by position. */
#ifndef ATT_MODELS_POSITION_HEADS_H
#define ATT_MODELS_POSITION_HEADS_H

#include <attscope/position_heads.h>

/* The quadratic form of a head's scores. */
typedef struct att_position_form {
    double center[2], factors[2][2]; /* Delta and S */
} att_position_form;

struct att_position_heads {
    att_context *context;
    char scope[64];
    int count, grid[2];
    int64_t inputs, outputs, middle; /* W_h = value_h' proj': I -> middle -> O */
    att_position_form *forms;        /* [H]; NULL: the scores are no quadratic forms */
    double *scores; /* [H, 2 grid_h - 1, 2 grid_w - 1], by the shift from query to key; set for forms, too */
    double *value, *proj, *value_bias, *proj_bias; /* [middle, H I], [O, middle], [middle], [O] */
    double *maps;                                  /* W_h' of all heads: [H, O, I]; NULL until needed */
};

/* Part of a family (att_family.positions). `options` are those of the family. */
typedef struct att_position_family {
    /* Returns the number of layers; 0: the heads of this network do not attend by position. */
    int (*layers)(const void *options);
    int (*heads)(const void *options, int layer);
    /* Sets scope, grid, inputs, outputs and middle, and reads the parameters with att_position_parameter() into either
     * `forms` or `scores`, and the arrays after them. */
    att_status (*read)(const void *options, const att_model *model, const att_weights *weights, int layer,
                       att_position_heads *heads);
    /* Returns the axis along which the heads of `layer` lie side by side in the parameter, -1 if it has none. */
    int (*head_axis)(const char *name, int layer);
    /* Changes the options to those of a network with so many heads in each layer; false if an option cannot hold the
     * numbers. */
    bool (*set_heads)(const int *heads, int layers, att_option_values *options);
} att_position_family;

/* Reads the parameter "<heads->scope>.<name>" of `count` elements into memory that the caller frees with att_free().
 * Errors: those of att_position_heads_read(). */
att_status att_position_parameter(const att_position_heads *heads, const att_model *model, const att_weights *weights,
                                  const char *name, int64_t count, double **values);

#endif

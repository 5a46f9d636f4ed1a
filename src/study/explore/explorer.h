/* explore/explorer.h - the struct of an explorer, and functions shared by its files. */
#ifndef ATT_EXPLORE_EXPLORER_H
#define ATT_EXPLORE_EXPLORER_H

#include <attscope/explore.h>

#include "base/core/memory.h"
#include "engine/ops/attention.h"
#include "study/network/network.h"

/* What a run keeps of an attention layer, for the rows of its map. */
typedef enum att_kept {
    ATT_KEPT_Q,        /* [queries, H d]; absent, like K, if the scores have no content */
    ATT_KEPT_K,        /* [N, G d] */
    ATT_KEPT_RELATIVE, /* [S, H]; this and the others are absent if the scores do not have them */
    ATT_KEPT_ROWS,     /* [queries, H h] */
    ATT_KEPT_COLUMNS,  /* [queries, H w] */
    ATT_KEPT_KEYS,     /* [N]: e to the power of what is added to the scores of a key; 0 for padding */
    ATT_KEPTS
} att_kept;

enum { ATT_EXPLORER_NAME = 48 };

/* A vector that the plan reads: factors of what a change scales. */
typedef struct att_factors {
    char name[ATT_EXPLORER_NAME]; /* of the plan's input */
    float *values;                /* [samples][count] */
    double *wide;                 /* the same, for a plan in F64; else NULL */
    int64_t count;                /* 0: there is no such input */
} att_factors;

/* What an explorer can change, and what its runs keep. Each kind of change costs time in every run. */
typedef struct att_explorer_form {
    int samples;                           /* the most of a run */
    bool rows;                             /* keep what att_explorer_row() reads; for one sample */
    bool heads, uniform, branches, tokens; /* uniform: as well as `heads`, which can be removed */
    const char *outputs;                   /* as in att_explorer_create_for() */
} att_explorer_form;

typedef struct att_explored_layer {
    const char *scope;
    att_attention_attrs attrs;
    int64_t queries, tokens;
    int64_t width;                                /* d; 0 without content */
    int64_t relative_rows;                        /* S */
    att_value made, output;                       /* in explorer->graph: of attention itself, and after the changes */
    char kept_name[ATT_KEPTS][ATT_EXPLORER_NAME]; /* outputs of the plan; "": absent */
    const float *kept[ATT_KEPTS];                 /* of the last run; NULL: absent */
    att_factors keep, even;                       /* of a head's output, and of the mean of its values: [H e] */
    att_head_change *changes;                     /* [H]: of the next run's last selected sample */
    bool *is_even;                                /* [H]: made uniform in the last run */
} att_explored_layer;

typedef struct att_explored_branch {
    const char *scope, *content;
    att_value sum;    /* in explorer->graph: the result of the addition */
    att_factors keep; /* of the branch's channels */
} att_explored_branch;

struct att_explorer {
    att_context *context;
    att_network *network;
    att_explorer_form form;
    int first, count; /* the samples whose changes are set */
    att_reshaped reshaped;
    att_graph *graph; /* the network's, with inputs for the changes */
    att_inference inference;
    att_arena arena; /* the arrays of layers and branches */
    att_explored_layer *layers;
    att_explored_branch *branches;
    int layer_count, layer_room, branch_count, branch_room;
    att_factors removed; /* [N]: 0, or minus infinity for a removed token; none if tokens cannot be removed */
    bool *hidden;        /* [N]: tokens that were removed in the last run */
    bool has_run;
};

/* What att_explorer_create() makes: all changes of one sample, with rows and the task's outputs. */
ATT_FOR_LAB att_explorer_form att_explorer_form_whole(void);
/* As att_explorer_create(), of another form. inputs: one sample of the shapes of all; NULL: the network's own. */
ATT_FOR_LAB ATT_MUST_CHECK att_status att_explorer_create_form(att_network *network, const att_explorer_form *form,
                                                               const att_batch *inputs, att_explorer **explorer);
/* Selects samples [first, first + count) of the next run, which later changes and resets concern; at first all. */
ATT_FOR_LAB void att_explorer_select(att_explorer *explorer, int first, int count);
/* Runs `count` samples, of which `inputs` has the network's inputs by name. Outputs may be NaN or infinite. */
ATT_FOR_LAB ATT_MUST_CHECK att_status att_explorer_run_samples(att_explorer *explorer, const att_batch *inputs,
                                                               int count, att_batch *answers);
/* As att_explorer_run(), for one sample. place: where it shows its photograph; NULL: everywhere. */
ATT_FOR_LAB ATT_MUST_CHECK att_status att_explorer_run_placed(att_explorer *explorer, const att_batch *inputs,
                                                              const att_geometry *place, att_batch *answers);

/* build.c: makes explorer->graph from the network's, and lists layers and branches. */
att_status att_explorer_build(att_explorer *explorer);

/* changes.c: binds the inputs of the changes, which the plan of the session reads. */
att_status att_explorer_bind(const att_explorer *explorer, att_session *session);
/* Remembers the changes of this run, which the rows of its maps depend on. */
void att_explorer_note(att_explorer *explorer);

/* rows.c: writes the weights of one head for all keys of the query's window, as att_explorer_row(): row [N], NaN for
 * keys that it does not see. Layer, query and head exist, and there was a run. Thread-safe. */
void att_explorer_head_row(const att_explorer *explorer, int layer, int64_t query, int head, double *row);
/* ERR_UNSUPPORTED unless the layers 0..layer have the same tokens and no windows. what: a method, which begins the
 * message. */
att_status att_explorer_check_tokens(const att_explorer *explorer, int layer, const char *what);
/* Follows weights of tokens from layer `layer` down to the first, in place: way = way / 2 + way A / 2, A the mean over
 * heads. way: [N]. For layers with the same tokens (att_explorer_check_tokens()). */
att_status att_explorer_follow(const att_explorer *explorer, int layer, double *way);
/* a . b, as scores are computed. */
double att_explorer_dot(const float *a, const float *b, int64_t count);

#endif

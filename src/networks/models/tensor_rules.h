/* models/tensor_rules.h - recognises the files of a family by a table: which tensor tells which option. The options are
 * accepted only if the network that is built from them has exactly the file's tensors. So the rules of a family need
 * not check anything, and its descriptor needs no functions for names of tensors. */
#ifndef ATT_MODELS_TENSOR_RULES_H
#define ATT_MODELS_TENSOR_RULES_H

#include <attscope/options.h>
#include <attscope/tensors.h>

#include "networks/models/foreign_tensors.h"

struct att_family;

typedef enum att_rule_kind {
    ATT_RULE_SIDE, /* the number `side` of the shape; divided by `other_side` of the tensor `other`, if that is given */
    ATT_RULE_BLOCKS, /* how many blocks there are in each stage */
    ATT_RULE_HAS,    /* `yes` if there is the tensor, of the rank `rank` unless that is 0 */
    ATT_RULE_SAME    /* `yes` if `side` is equal to `other_side` of the tensor `other`; both tensors must be there */
} att_rule_kind;

/* What a tensor tells about an option. In its name '#' stands for the number of a stage: the option is a list with a
 * number for each stage. '@' stands for the number of a block. A later rule replaces the value of an earlier one. */
typedef struct att_tensor_rule {
    const char *option;
    att_rule_kind kind;
    const char *tensor;
    int side;
    const char *other;
    int other_side, rank;
    const char *yes, *no; /* `no` is the value otherwise, and of a SIDE without its tensor; NULL: none */
} att_tensor_rule;

/* The rules of a family. */
typedef struct att_tensor_rules {
    const att_tensor_rule *rules;
    int count;
    const char *what;  /* the family's networks, for messages: "ConvNeXt" */
    const char *block; /* scope of a block: "stages.#.blocks.@" */
    int first;         /* number of the first stage, and of the first block in a stage */
    /* The hooks are att_branch_hooks: the scope that has the scopes of modules, below the block's, and a tensor of the
     * block whose first side is the channels there. */
    const char *branch, *width;
    const char *stem, *last; /* scopes before the blocks, and of a norm after them; NULL: there is none */
} att_tensor_rules;

/* What att_family.recognise, foreign, is_added and layer are for other families. */
att_status att_rules_recognise(att_context *context, const struct att_family *family, const att_tensors *file,
                               att_option_values *found);
att_foreign att_rules_foreign(att_context *context, const struct att_family *family, const att_tensors *file);
bool att_rules_is_added(const att_context *context, const att_tensor_rules *rules, const char *name);
int att_rules_layer(const att_tensor_rules *rules, const char *name);

#endif

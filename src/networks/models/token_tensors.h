/* models/token_tensors.h - what families of tokens (models/token_block.h) have in common when they recognise a file by
 * its tensors. */
#ifndef ATT_MODELS_TOKEN_TENSORS_H
#define ATT_MODELS_TOKEN_TENSORS_H

#include "networks/models/detected_modules.h"
#include "networks/models/family.h"
#include "networks/models/token_block.h"

/* The hooks of a family, and where their tensors are. */
typedef struct att_token_places {
    const att_hooks *hooks;
    const char *const *branches; /* the scope of each hook's modules, below a block */
    int inside, after; /* the hooks in place of the block's attention, or what a family has there, and at its end */
} att_token_places;
extern const att_token_places att_token_places_of_blocks; /* of att_token_hooks */

/* Returns the module of a parameter, and its hook; NULL for others. rest: the parameter's name within the block;
 * has_attention: whether the file has the block's own attention. */
const att_module *att_token_module_at(const att_context *context, const att_token_places *places, const char *rest,
                                      bool has_attention, int *hook);
/* Returns whether `rest` lies in the scope of a module. */
bool att_token_owns(const att_context *context, const att_token_places *places, const char *rest);

/* --- names of networks whose blocks are "blocks.N.*" -------------------------------------------------------------- */

/* Returns whether the name is "<scope>." and then one of the list. */
bool att_token_lists_below(const char *names, const char *name, const char *scope);

/* The tensors of a family. */
typedef struct att_token_tensors {
    const char *outer, *block; /* names outside of the blocks, and in a block */
    bool (*is_of_block)(const att_tensors *file,
                        const char *rest);               /* whether a block has a tensor; NULL: see `block` */
    bool (*attends)(const att_tensors *file, int block); /* whether a block has attention of its own */
    const char *what; /* of the message for a name that the family lacks: "ViT here" */
    const att_token_places *places;
} att_token_tensors;

/* Tensors of pooling by attention (models/token_ends.h), as part of a list. */
#define ATT_TOKEN_MAP_NAMES                                                                       \
    "attn_pool.latent attn_pool.q.weight attn_pool.q.bias attn_pool.kv.weight attn_pool.kv.bias " \
    "attn_pool.proj.weight attn_pool.proj.bias attn_pool.norm.weight attn_pool.norm.bias "        \
    "attn_pool.mlp.fc1.weight attn_pool.mlp.fc1.bias attn_pool.mlp.fc2.weight attn_pool.mlp.fc2.bias"

/* att_family.foreign */
att_foreign att_token_foreign(const att_context *context, const att_tensors *file, const att_token_tensors *like);
/* Reads depth and modules from the names of all tensors. Refuses the file if the family lacks a name. */
att_status att_token_read_names(att_context *context, const att_tensors *file, const att_token_tensors *like,
                                att_option_values *found, att_detected_modules *detected);
/* Sets the option "modules". `found` must have embed_dim and mlp_ratio. */
att_status att_token_write_modules(att_context *context, const att_tensors *file, const att_detected_modules *detected,
                                   att_option_values *found);
/* Sets num_heads if a uniform head shows the width of a head. */
void att_token_read_heads(const att_tensors *file, att_option_values *found);
/* Returns whether there is a tensor "<name>.weight" or "<name>.bias". */
bool att_token_has_norm(const att_tensors *file, const char *name);
/* Sets num_classes from the classifier "head"; unless that has an unexpected shape, a file without one has 0 classes.
 */
void att_token_read_classes(const att_tensors *file, att_option_values *found);

/* An argument of timm's constructor that is true or false, and its option: a switch, or a text with these values for
 * false and true. opposite: the switch is on if the argument is false. The last of a list has a NULL key. */
typedef struct att_switch_argument {
    const char *key, *option, *texts[2];
    bool opposite;
} att_switch_argument;
/* Part of att_family.take_argument. */
bool att_token_take_switch(const att_switch_argument *arguments, const char *key, const att_fact *fact,
                           att_option_values *options);
/* Whether the network has tokens before the patches and a learned position embedding, so that embed_class matters. */
bool att_token_embeds_prefix(const att_option_values *options);
/* Part of att_timm_form.give_argument: false if no argument is the option's. */
bool att_token_give_switch(const att_switch_argument *arguments, const att_timm_network *network,
                           const att_option *option, att_json_writer *writer);

/* Sets class_token, reg_tokens and pos_embed, and global_pool if the tensors show it. */
void att_token_read_tokens(const att_tensors *file, att_option_values *found);

/* att_family.disambiguate: the grid of the position embedding; the kind of blocks and of pooling. */
void att_token_disambiguate(const att_tensors *file, const att_known *known, att_option_values *found);

/* att_family.is_added and att_family.layer. */
bool att_token_is_added(const att_context *context, const char *name);
int att_token_layer(const char *name);

/* Parts of att_family.check_undetermined. Refuse options of side files and flags that the tensors contradict (keys:
 * NULL-terminated); pooling by attention that has no tensors; an unknown number of heads. */
att_status att_token_check_shown(att_context *context, const char *const *keys, const att_option_sources *sources);
/* Refuses a file without the class token, distillation token, registers or position embedding of the named network
 * unless an option says that its network has none. */
att_status att_token_check_tokens(att_context *context, const att_option_sources *sources);
att_status att_token_check_map(att_context *context, const att_tensors *file, const att_option_sources *sources);
att_status att_token_check_heads(att_context *context, const att_option_sources *sources);

#endif

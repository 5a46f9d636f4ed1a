/* models/bert.h - shared by the files of the BERT family. */
#ifndef ATT_MODELS_BERT_H
#define ATT_MODELS_BERT_H

#include "networks/models/family.h"

/* The family's options; options without a comment are explained by their help (bert.c). */
typedef struct att_bert_options {
    ATT_SHARED_MEMBERS;
    int context_length; /* tokens of the texts of a run, padding included */
    int vocab_size, type_vocab_size, max_positions;
    int embed_dim, embed_rank, depth, groups, num_heads, rel_pos_bias;
    double mlp_ratio, norm_eps, attn_drop_rate;
    char act_layer[16], global_pool[8], pooler[8];
} att_bert_options;

/* Values of "global_pool" and "pooler". */
#define ATT_BERT_CLASS "token"
#define ATT_BERT_MEAN "avg"
#define ATT_BERT_NO_POOLER "none"

extern const att_variants att_bert_variants;

/* att_family.build */
void att_bert_build(att_graph *graph, const void *options, att_features *features);

/* att_family.foreign, recognise and check_undetermined. */
att_foreign att_bert_foreign(const att_context *context, const att_tensors *file);
att_status att_bert_recognise(att_context *context, const att_tensors *file, att_option_values *found);
att_status att_bert_check_undetermined(att_context *context, const att_tensors *file,
                                       const att_option_sources *sources);

#endif

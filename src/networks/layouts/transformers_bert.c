/* transformers' encoders of texts: bert (which MiniLM is, too), distilbert, albert and mpnet. Of their heads the
 * classifier of a whole text is read. */
#include "networks/layouts/layout.h"

/* Names of norms in the oldest files. */
#define OLD_WEIGHT ".gamma"
#define OLD_BIAS ".beta"
#define NORM(name, to_name)                                             \
    {name ".weight", .also = name OLD_WEIGHT, .to = to_name ".weight"}, \
    {                                                                   \
        name ".bias", .also = name OLD_BIAS, .to = to_name ".bias"      \
    }
#define QKV(layer, q, k, v)                                                                                         \
    {layer q ".@", .to = "blocks.#.attn.qkv.@", .part = 0}, {layer k ".@", .to = "blocks.#.attn.qkv.@", .part = 1}, \
    {                                                                                                               \
        layer v ".@", .to = "blocks.#.attn.qkv.@", .part = 2                                                        \
    }
#define EMBEDDINGS                                                              \
    {"embeddings.word_embeddings.weight", .to = "word_embed.weight"},           \
        {"embeddings.token_type_embeddings.weight", .to = "type_embed.weight"}, \
        {"embeddings.position_ids", .to = NULL, .computed = true},              \
        {"embeddings.token_type_ids", .to = NULL, .computed = true}, NORM("embeddings.LayerNorm", "norm_embed")
#define POSITIONS                                                         \
    {                                                                     \
        "embeddings.position_embeddings.weight", .to = "pos_embed.weight" \
    }
/* A classifier behind the layer `pooler` reads the whole text, any other each token. */
#define CLASSIFIER(pooler)                                                                                            \
    {"classifier.@", .to = "head.@", .bare = true, .when = pooler}, {"classifier.@", .to = NULL, .when = "!" pooler}, \
    {                                                                                                                 \
        "qa_outputs.@", .to = NULL                                                                                    \
    }

#define SHOWN_TABLES                                        \
    {                                                       \
        "vocab_size", .option = "vocab_size", .shown = true \
    }

/* Refuses decoders, and other positions than those in a table. */
static att_status check(const att_layout_source *source)
{
    ATT_TRY(att_layout_require_number(source, "is_decoder", 0));
    ATT_TRY(att_layout_require_number(source, "add_cross_attention", 0));
    return att_layout_require_text(source, "position_embedding_type", "absolute");
}

static att_status complete(const att_layout_source *source, att_config *config)
{
    (void)config;
    return check(source);
}

/* --- BERT --------------------------------------------------------------------------------------------------------- */

#define BERT_LAYER "encoder.layer.#."
static const att_layout_row bert_rows[] = {
    EMBEDDINGS,
    POSITIONS,
    QKV(BERT_LAYER "attention.self.", "query", "key", "value"),
    {BERT_LAYER "attention.output.dense.@", .to = "blocks.#.attn.proj.@"},
    NORM(BERT_LAYER "attention.output.LayerNorm", "blocks.#.norm1"),
    {BERT_LAYER "intermediate.dense.@", .to = "blocks.#.mlp.fc1.@"},
    {BERT_LAYER "output.dense.@", .to = "blocks.#.mlp.fc2.@"},
    NORM(BERT_LAYER "output.LayerNorm", "blocks.#.norm2"),
    {"pooler.dense.@", .to = "pooler.@"},
    CLASSIFIER("pooler.dense.weight"),
    {"cls.*", .to = NULL},
};

static const att_layout_setting bert_settings[] = {
    {"num_attention_heads", .option = "num_heads"},
    {"layer_norm_eps", .option = "norm_eps"},
    {"hidden_act", .option = "act_layer", .words = att_layout_activations},
    {"hidden_size", .option = "embed_dim", .shown = true},
    {"num_hidden_layers", .option = "depth", .shown = true},
    {"type_vocab_size", .option = "type_vocab_size", .shown = true},
    {"max_position_embeddings", .option = "max_positions", .shown = true},
    SHOWN_TABLES,
    {.key = NULL},
};

const att_layout att_layout_transformers_bert = {
    .name = "transformers' BERT",
    .types = "bert",
    .prefixes = "bert.",
    .signature = "encoder.layer.0.attention.self.query.weight",
    .variants =
        "bert_base_uncased bert_base_cased bert_large_uncased bert_large_cased bert_tiny bert_mini bert_small "
        "bert_medium minilm_l6_h384 minilm_l12_h384",
    ATT_LAYOUT_ROWS(bert_rows),
    .settings = bert_settings,
    .defaults = "num_heads=12 norm_eps=1e-12 act_layer=gelu global_pool=token ",
    .complete = complete,
};

/* --- DistilBERT --------------------------------------------------------------------------------------------------- */

#define DISTIL_LAYER "transformer.layer.#."
static const att_layout_row distilbert_rows[] = {
    EMBEDDINGS,
    POSITIONS,
    QKV(DISTIL_LAYER "attention.", "q_lin", "k_lin", "v_lin"),
    {DISTIL_LAYER "attention.out_lin.@", .to = "blocks.#.attn.proj.@"},
    NORM(DISTIL_LAYER "sa_layer_norm", "blocks.#.norm1"),
    {DISTIL_LAYER "ffn.lin1.@", .to = "blocks.#.mlp.fc1.@"},
    {DISTIL_LAYER "ffn.lin2.@", .to = "blocks.#.mlp.fc2.@"},
    NORM(DISTIL_LAYER "output_layer_norm", "blocks.#.norm2"),
    {"pre_classifier.@", .to = "pooler.@", .bare = true},
    CLASSIFIER("pre_classifier.weight"),
    {"vocab_transform.@", .to = NULL},
    {"vocab_layer_norm.@", .to = NULL},
    {"vocab_projector.@", .to = NULL},
};

static const att_layout_setting distilbert_settings[] = {
    {"n_heads", .option = "num_heads"},
    {"activation", .option = "act_layer", .words = att_layout_activations},
    {"dim", .option = "embed_dim", .shown = true},
    {"n_layers", .option = "depth", .shown = true},
    {"max_position_embeddings", .option = "max_positions", .shown = true},
    SHOWN_TABLES,
    {.key = NULL},
};

/* The layer before the classifier has a ReLU. */
static att_status complete_distilbert(const att_layout_source *source, att_config *config)
{
    if (att_tensors_find(source->file, "pooler.weight") >= 0)
        att_options_set_text(&config->options, "pooler", "relu");
    return check(source);
}

const att_layout att_layout_transformers_distilbert = {
    .name = "transformers' DistilBERT",
    .types = "distilbert",
    .prefixes = "distilbert.",
    .signature = "transformer.layer.0.attention.q_lin.weight",
    .variants = "distilbert_base_uncased distilbert_base_cased",
    ATT_LAYOUT_ROWS(distilbert_rows),
    .settings = distilbert_settings,
    .defaults = "num_heads=12 norm_eps=1e-12 act_layer=gelu global_pool=token ",
    .complete = complete_distilbert,
};

/* --- ALBERT ------------------------------------------------------------------------------------------------------- */

#define ALBERT_LAYER "encoder.albert_layer_groups.#.albert_layers.0."
static const att_layout_row albert_rows[] = {
    EMBEDDINGS,
    POSITIONS,
    {"encoder.embedding_hidden_mapping_in.@", .to = "embed_proj.@"},
    QKV(ALBERT_LAYER "attention.", "query", "key", "value"),
    {ALBERT_LAYER "attention.dense.@", .to = "blocks.#.attn.proj.@"},
    NORM(ALBERT_LAYER "attention.LayerNorm", "blocks.#.norm1"),
    {ALBERT_LAYER "ffn.@", .to = "blocks.#.mlp.fc1.@"},
    {ALBERT_LAYER "ffn_output.@", .to = "blocks.#.mlp.fc2.@"},
    NORM(ALBERT_LAYER "full_layer_layer_norm", "blocks.#.norm2"),
    {"pooler.@", .to = "pooler.@"},
    CLASSIFIER("pooler.weight"),
    {"predictions.*", .to = NULL},
    {"sop_classifier.*", .to = NULL},
};

static const att_layout_setting albert_settings[] = {
    {"num_attention_heads", .option = "num_heads"},
    {"layer_norm_eps", .option = "norm_eps"},
    {"hidden_act", .option = "act_layer", .words = att_layout_activations},
    {"num_hidden_layers", .option = "depth"},
    {"num_hidden_groups", .option = "groups", .shown = true},
    {"hidden_size", .option = "embed_dim", .shown = true},
    {"embedding_size", .option = "embed_rank", .shown = true},
    {"type_vocab_size", .option = "type_vocab_size", .shown = true},
    {"max_position_embeddings", .option = "max_positions", .shown = true},
    SHOWN_TABLES,
    {.key = NULL},
};

static att_status complete_albert(const att_layout_source *source, att_config *config)
{
    (void)config;
    ATT_TRY(att_layout_require_number(source, "inner_group_num", 1));
    return check(source);
}

const att_layout att_layout_transformers_albert = {
    .name = "transformers' ALBERT",
    .types = "albert",
    .prefixes = "albert.",
    .signature = "encoder.albert_layer_groups.0.albert_layers.0.ffn.weight",
    .variants = "albert_base_v2 albert_large_v2 albert_xlarge_v2 albert_xxlarge_v2",
    ATT_LAYOUT_ROWS(albert_rows),
    .settings = albert_settings,
    .defaults = "num_heads=64 depth=12 norm_eps=1e-12 act_layer=gelu_tanh global_pool=token ",
    .complete = complete_albert,
};

/* --- MPNet -------------------------------------------------------------------------------------------------------- */

#define MPNET_LAYER "encoder.layer.#."
static const att_layout_row mpnet_rows[] = {
    EMBEDDINGS,
    /* The first two rows are of no token and of padding. */
    {"embeddings.position_embeddings.weight", .to = "pos_embed.weight", .first = 2},
    {"encoder.relative_attention_bias.weight", .to = "rel_pos_bias.weight"},
    QKV(MPNET_LAYER "attention.attn.", "q", "k", "v"),
    {MPNET_LAYER "attention.attn.o.@", .to = "blocks.#.attn.proj.@"},
    NORM(MPNET_LAYER "attention.LayerNorm", "blocks.#.norm1"),
    {MPNET_LAYER "intermediate.dense.@", .to = "blocks.#.mlp.fc1.@"},
    {MPNET_LAYER "output.dense.@", .to = "blocks.#.mlp.fc2.@"},
    NORM(MPNET_LAYER "output.LayerNorm", "blocks.#.norm2"),
    {"pooler.dense.@", .to = "pooler.@"},
    {"classifier.dense.@", .to = "pooler.@", .bare = true},
    {"classifier.out_proj.@", .to = "head.@", .bare = true},
    CLASSIFIER("pooler.dense.weight"),
    {"lm_head.*", .to = NULL},
};

static const att_layout_setting mpnet_settings[] = {
    {"num_attention_heads", .option = "num_heads"},
    {"layer_norm_eps", .option = "norm_eps"},
    {"hidden_act", .option = "act_layer", .words = att_layout_activations},
    {"hidden_size", .option = "embed_dim", .shown = true},
    {"num_hidden_layers", .option = "depth", .shown = true},
    SHOWN_TABLES,
    {.key = NULL},
};

static att_status complete_mpnet(const att_layout_source *source, att_config *config)
{
    (void)config;
    ATT_TRY(att_layout_require_number(source, "relative_attention_num_buckets", 32));
    return check(source);
}

const att_layout att_layout_transformers_mpnet = {
    .name = "transformers' MPNet",
    .types = "mpnet",
    .prefixes = "mpnet.",
    .signature = "encoder.relative_attention_bias.weight",
    .variants = "mpnet_base",
    ATT_LAYOUT_ROWS(mpnet_rows),
    .settings = mpnet_settings,
    .defaults = "num_heads=12 norm_eps=1e-12 act_layer=gelu global_pool=token ",
    .complete = complete_mpnet,
};

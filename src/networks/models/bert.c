/* BERT (Devlin et al., NAACL 2019), DistilBERT (Sanh et al., 2019), ALBERT (Lan et al., ICLR 2020), MiniLM (Wang et
 * al., NeurIPS 2020) and MPNet (Song et al., NeurIPS 2020): encoders of texts, whose norms follow the additions. */
#include "networks/models/bert.h"

#include <string.h>

#include "base/core/error.h"
#include "networks/models/checkpoint.h"
#include "networks/models/patches.h"
#include "networks/models/token_block.h"
#include "networks/models/token_ends.h"
#include "networks/models/variants.h"

/* --- options ------------------------------------------------------------------------------------------------------ */

ATT_CHOICES(pooler_names, ATT_BERT_NO_POOLER, "tanh", "relu")

#define BERT(member) ATT_OPTION_AT(att_bert_options, member)
static const att_option bert_options[] = {
    ATT_SHARED_OPTIONS(att_bert_options),
    ATT_ATTENTION_DROP_OPTION(att_bert_options),
    {"context_length", .kind = ATT_OPTION_WHOLE, .value = "N",
     .help = "tokens of a text with its padding; runs may have others", .not_compared = true, .low = 1, .high = 65536,
     BERT(context_length)},
    {"vocab_size", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "tokens of the vocabulary", .not_compared = true,
     .low = 1, .high = 1 << 24, BERT(vocab_size)},
    {"type_vocab_size", .kind = ATT_OPTION_WHOLE, .value = "N",
     .help = "types of tokens, such as those of the first and of the second sentence; 0: there are no types",
     .high = 65536, BERT(type_vocab_size)},
    {"max_positions", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "tokens of the longest text",
     .not_compared = true, .low = 1, .high = 65536, BERT(max_positions)},
    {"embed_dim", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "width of a token", .low = 1, .high = 65536,
     BERT(embed_dim)},
    {"embed_rank", .kind = ATT_OPTION_WHOLE, .value = "N",
     .help = "width of the embeddings, which a linear layer makes embed_dim wide, as in ALBERT; 0: there is no such "
             "layer",
     .high = 65536, BERT(embed_rank)},
    {"depth", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "blocks", .low = 1, .high = 1024, BERT(depth)},
    {"groups", .kind = ATT_OPTION_WHOLE, .value = "N",
     .help = "groups of neighbouring blocks that share their weights, as in ALBERT; 0: each block has its own",
     .high = 1024, BERT(groups)},
    {"num_heads", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "attention heads of a block",
     .not_in_tensors = "the number of heads", .low = 1, .high = 65536, BERT(num_heads)},
    {"rel_pos_bias", .kind = ATT_OPTION_SWITCH,
     .help = "a bias of attention for each of 32 ranges of distances between tokens, as in MPNet", BERT(rel_pos_bias)},
    {"mlp_ratio", .kind = ATT_OPTION_REAL, .value = "X", .help = "width of the MLP over that of a token", .low = 1e-3,
     .high = 64, BERT(mlp_ratio)},
    {"act_layer", .kind = ATT_OPTION_TEXT, .value = "NAME", .help = "activation of the MLPs",
     .choice = att_activation_name, .not_in_tensors = "the activation", BERT(act_layer)},
    {"norm_eps", .kind = ATT_OPTION_REAL, .value = "X", .help = "eps of the norms", .low = 1e-12, .high = 1,
     BERT(norm_eps)},
    {"global_pool", .alias = "gp", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "what the head reads: token (the first token) or avg (the mean of all tokens but padding)",
     .choice = att_token_pool_name, .not_in_tensors = "the pooling", BERT(global_pool)},
    {"pooler", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "a linear layer with this activation before the head, as wide as a token: none, tanh or relu",
     .choice = pooler_names, BERT(pooler)},
};
ATT_ASSERT_SETTINGS_FIT(att_bert_options);
static const att_option_table bert_table = {bert_options, sizeof bert_options / sizeof *bert_options,
                                            sizeof(att_bert_options)};

/* --- checks ------------------------------------------------------------------------------------------------------- */

/* Tokens of a text, if nothing else is known. */
enum { USUAL_LENGTH = 128 };

static att_status check_groups(att_context *context, const att_bert_options *o)
{
    if (o->groups > 0 && (o->groups > o->depth || o->depth % o->groups))
        return att_fail(context, ATT_ERR_ARGUMENT, "groups %d does not divide depth %d", o->groups, o->depth);
    if (o->groups > 0 && o->embed_rank == 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "groups %d needs an embed_rank above 0, as in ALBERT", o->groups);
    return ATT_OK;
}

static att_status check_length(att_context *context, const att_bert_options *o)
{
    if (o->context_length <= o->max_positions)
        return ATT_OK;
    return att_fail(context, ATT_ERR_ARGUMENT,
                    "a text of %d tokens is longer than the network's table of positions, which has %d rows; shorten "
                    "the text",
                    o->context_length, o->max_positions);
}

static att_status bert_complete(att_context *context, void *options)
{
    static const att_hooks no_hooks = {0};
    att_bert_options *o = options;
    const att_stages stages = {.count = 1, .blocks = {o->depth}};
    att_modules modules;
    ATT_TRY(att_modules_parse(context, &no_hooks, &stages, o->modules, &modules));
    if (o->context_length == ATT_OPTION_UNSET)
        o->context_length = o->max_positions < USUAL_LENGTH ? o->max_positions : USUAL_LENGTH;
    if (o->embed_dim % o->num_heads)
        return att_fail(context, ATT_ERR_ARGUMENT, "embed_dim %d is not a multiple of num_heads %d", o->embed_dim,
                        o->num_heads);
    if (strcmp(o->global_pool, ATT_BERT_CLASS) != 0 && strcmp(o->global_pool, ATT_BERT_MEAN) != 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "global_pool is \"%s\"; networks for texts have token and avg only",
                        o->global_pool);
    ATT_TRY(check_groups(context, o));
    ATT_TRY(check_length(context, o));
    return att_mlp_check(context, "mlp_ratio", o->embed_dim, o->mlp_ratio);
}

/* --- the family --------------------------------------------------------------------------------------------------- */

static att_classifier_form bert_classifier(const void *options)
{
    (void)options;
    return (att_classifier_form){.scope = "head", .build = att_token_classifier};
}

static int bert_layer(const char *name)
{
    const char *rest;
    const int block = att_checkpoint_block(name, "blocks", &rest);
    if (block >= 0)
        return 1 + block;
    return att_checkpoint_below(name, "head") || att_checkpoint_below(name, "pooler") ? ATT_LAYER_HEAD : 0;
}

/* Networks of the same width share their settings. Pretrained networks have these vocabularies. */
#define UNCASED "vocab_size=30522 "
#define CASED "vocab_size=28996 "
#define NO_TYPES "type_vocab_size=0 "
#define SIX "embed_dim=768 depth=6 num_heads=12 "
#define SHARED_BLOCKS "vocab_size=30000 embed_rank=128 groups=1 act_layer=gelu_tanh "
#define BERT_TEXT "BERT (Devlin et al., NAACL 2019)"
#define SMALL_TEXT "small BERT (Turc et al., 2019)"
#define DISTILLED_TEXT "DistilBERT (Sanh et al., 2019)"
#define ALBERT_TEXT "ALBERT v2 (Lan et al., ICLR 2020)"
#define MINI_LM_TEXT "MiniLM (Wang et al., NeurIPS 2020)"
#define MP_NET_TEXT "MPNet (Song et al., NeurIPS 2020)"

static const att_variant_row bert_rows[] = {
    {"bert_base_uncased", BERT_TEXT, .settings = UNCASED ATT_BASE},
    {"bert_base_cased", BERT_TEXT, .settings = CASED ATT_BASE},
    {"bert_large_uncased", BERT_TEXT, .settings = UNCASED ATT_LARGE},
    {"bert_large_cased", BERT_TEXT, .settings = CASED ATT_LARGE},
    {"bert_tiny", SMALL_TEXT, .settings = UNCASED "embed_dim=128 depth=2 num_heads=2 "},
    {"bert_mini", SMALL_TEXT, .settings = UNCASED "embed_dim=256 depth=4 num_heads=4 "},
    {"bert_small", SMALL_TEXT, .settings = UNCASED "embed_dim=512 depth=4 num_heads=8 "},
    {"bert_medium", SMALL_TEXT, .settings = UNCASED "embed_dim=512 depth=8 num_heads=8 "},
    {"distilbert_base_uncased", DISTILLED_TEXT, .settings = UNCASED NO_TYPES "pooler=none " SIX},
    {"distilbert_base_cased", DISTILLED_TEXT, .settings = CASED NO_TYPES "pooler=none " SIX},
    {"minilm_l6_h384", MINI_LM_TEXT, .settings = UNCASED "embed_dim=384 depth=6 num_heads=12 "},
    {"minilm_l12_h384", MINI_LM_TEXT, .settings = UNCASED "embed_dim=384 depth=12 num_heads=12 "},
    {"albert_base_v2", ALBERT_TEXT, .settings = SHARED_BLOCKS ATT_BASE},
    {"albert_large_v2", ALBERT_TEXT, .settings = SHARED_BLOCKS ATT_LARGE},
    {"albert_xlarge_v2", ALBERT_TEXT, .settings = SHARED_BLOCKS "embed_dim=2048 depth=24 num_heads=16 "},
    {"albert_xxlarge_v2", ALBERT_TEXT, .settings = SHARED_BLOCKS "embed_dim=4096 depth=12 num_heads=64 "},
    {"mpnet_base", MP_NET_TEXT, .settings = "vocab_size=30527 rel_pos_bias=true norm_eps=1e-5 " NO_TYPES ATT_BASE},
};

const att_variants att_bert_variants = {
    .rows = bert_rows,
    .count = sizeof bert_rows / sizeof *bert_rows,
    .shared =
        "max_positions=512 type_vocab_size=2 embed_rank=0 groups=0 rel_pos_bias=false mlp_ratio=4 act_layer=gelu "
        "norm_eps=1e-12 global_pool=token pooler=tanh attn_drop_rate=0 ",
};

extern const att_family att_family_bert;

const att_family att_family_bert = {
    .name = "bert",
    .signatures = {"word_embed.weight"},
    .inputs = {{.name = ATT_TOKENS,
                .dtype = ATT_I32,
                .dims = {"context_length"},
                .varies = "context_length",
                .below = "vocab_size"},
               {.name = ATT_TOKEN_TYPES,
                .dtype = ATT_I32,
                .dims = {"context_length"},
                .varies = "context_length",
                .below = "type_vocab_size",
                .when = "type_vocab_size"},
               {.name = ATT_TOKEN_COUNT, .dtype = ATT_I32, .counts = "context_length"}},
    .options = &bert_table,
    .classifier = bert_classifier,
    .variants = &att_bert_variants,
    .complete = bert_complete,
    .build = att_bert_build,
    .foreign = att_bert_foreign,
    .recognise = att_bert_recognise,
    .check_undetermined = att_bert_check_undetermined,
    .layer = bert_layer,
};

/* Recognises networks of the BERT family by attscope's tensor names. */
#include "networks/models/bert.h"

#include "base/core/error.h"
#include "networks/models/checkpoint.h"
#include "networks/models/patches.h"
#include "networks/models/token_tensors.h"

static const char outer_names[] =
    "word_embed.weight pos_embed.weight type_embed.weight norm_embed.weight norm_embed.bias embed_proj.weight "
    "embed_proj.bias rel_pos_bias.weight pooler.weight pooler.bias head.weight head.bias";
static const char block_names[] =
    "attn.qkv.weight attn.qkv.bias attn.proj.weight attn.proj.bias norm1.weight norm1.bias mlp.fc1.weight "
    "mlp.fc1.bias mlp.fc2.weight mlp.fc2.bias norm2.weight norm2.bias";

static bool attends(const att_tensors *file, int block)
{
    return att_checkpoint_has(file, "blocks.%d.attn.qkv.weight", block);
}

static const att_hooks no_hooks = {0};
static const att_token_places no_places = {.hooks = &no_hooks};
static const att_token_tensors like = {.outer = outer_names,
                                       .block = block_names,
                                       .attends = attends,
                                       .what = "network of the BERT family here",
                                       .places = &no_places};

att_foreign att_bert_foreign(const att_context *context, const att_tensors *file)
{
    return att_token_foreign(context, file, &like);
}

/* Tensors show the groups of blocks that share weights, but not how many blocks a group has. Only networks with a layer
 * after the embeddings share weights. */
static void read_blocks(const att_tensors *file, att_option_values *found)
{
    const bool factorised = att_checkpoint_has(file, "embed_proj.weight");
    att_options_set(found, "groups", factorised ? att_options_number(found, "depth", 0) : 0);
    if (factorised)
        att_options_unset(found, "depth");
}

static void read_tables(const att_tensors *file, att_option_values *found)
{
    const int64_t width = att_checkpoint_side(file, 0, "embed_proj.weight"),
                  rank = att_checkpoint_side(file, 1, "word_embed.weight");
    const int64_t words = att_checkpoint_side(file, 0, "word_embed.weight"),
                  positions = att_checkpoint_side(file, 0, "pos_embed.weight");
    att_options_set(found, "embed_dim", (double)(width > 0 ? width : rank));
    att_options_set(found, "embed_rank", width > 0 ? (double)rank : 0);
    att_options_set(found, "vocab_size", (double)words);
    att_options_set(found, "type_vocab_size", (double)att_checkpoint_side(file, 0, "type_embed.weight"));
    if (positions > 0)
        att_options_set(found, "max_positions", (double)positions);
    att_options_set(found, "rel_pos_bias", att_checkpoint_has(file, "rel_pos_bias.weight"));
    if (att_checkpoint_has(file, "rel_pos_bias.weight"))
        att_options_set(found, "num_heads", (double)att_checkpoint_side(file, 1, "rel_pos_bias.weight"));
}

att_status att_bert_recognise(att_context *context, const att_tensors *file, att_option_values *found)
{
    att_detected_modules none = {0};
    ATT_TRY(att_token_read_names(context, file, &like, found, &none));
    if (att_checkpoint_side(file, 0, "word_embed.weight") == 0)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s: the tensor \"word_embed.weight\" is no table of embeddings",
                        att_tensors_path(file));
    read_blocks(file, found);
    read_tables(file, found);
    const int64_t hidden = att_checkpoint_side(file, 0, "blocks.0.mlp.fc1.weight");
    if (hidden > 0)
        att_options_set(found, "mlp_ratio", att_mlp_ratio((int)att_options_number(found, "embed_dim", 1), hidden));
    if (!att_checkpoint_has(file, "pooler.weight"))
        att_options_set_text(found, "pooler", ATT_BERT_NO_POOLER);
    att_token_read_classes(file, found);
    return ATT_OK;
}

att_status att_bert_check_undetermined(att_context *context, const att_tensors *file, const att_option_sources *sources)
{
    static const char *const shown[] = {"groups",        "embed_rank",   "vocab_size", "type_vocab_size",
                                        "max_positions", "rel_pos_bias", NULL};
    (void)file;
    ATT_TRY(att_token_check_shown(context, shown, sources));
    return att_token_check_heads(context, sources);
}

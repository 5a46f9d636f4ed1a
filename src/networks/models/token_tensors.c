#include "networks/models/token_tensors.h"

#include <string.h>

#include "base/core/error.h"
#include "networks/models/checkpoint.h"
#include "networks/models/foreign_tensors.h"
#include "networks/models/patches.h"
#include "networks/models/position_grid.h"
#include "networks/models/token_ends.h"

static const char *const branches[ATT_TOKEN_HOOKS] = {
    [ATT_TOKEN_AFTER_MLP] = "mlp",          [ATT_TOKEN_AFTER_ATTN] = "attn",       [ATT_TOKEN_ATTN] = "attn",
    [ATT_TOKEN_BEFORE_MLP] = "norm2",       [ATT_TOKEN_MID_MLP] = "mlp.act",       [ATT_TOKEN_BEFORE_ATTN] = "norm1",
    [ATT_TOKEN_STREAM_AFTER_ATTN] = "add1", [ATT_TOKEN_STREAM_AFTER_MLP] = "add2", [ATT_TOKEN_HEADS] = "attn"};
const att_token_places att_token_places_of_blocks = {
    .hooks = &att_token_hooks, .branches = branches, .inside = ATT_TOKEN_ATTN, .after = ATT_TOKEN_AFTER_ATTN};

const att_module *att_token_module_at(const att_context *context, const att_token_places *places, const char *rest,
                                      bool has_attention, int *hook)
{
    const att_module *module = NULL;
    for (*hook = 0; *hook < places->hooks->count; ++*hook) {
        if (*hook == (has_attention ? places->inside : places->after))
            continue;
        module = att_detected_find(context, rest, places->branches[*hook], places->hooks->items[*hook].place);
        if (module)
            break;
    }
    return module;
}

bool att_token_owns(const att_context *context, const att_token_places *places, const char *rest)
{
    bool is = false;
    for (int hook = 0; hook < places->hooks->count; hook++)
        is = is || att_detected_owns(context, rest, places->branches[hook], places->hooks->items[hook].place);
    return is;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

bool att_token_lists_below(const char *names, const char *name, const char *scope)
{
    const char *rest = att_checkpoint_below(name, scope);
    return rest && att_checkpoint_lists(names, rest);
}

typedef struct token_names {
    const att_context *context;
    const att_tensors *file;
    const att_token_tensors *like;
} token_names;

static bool knows(const void *user, const char *name)
{
    const token_names *names = user;
    const char *rest;
    if (att_checkpoint_block(name, "blocks", &rest) < 0)
        return att_checkpoint_lists(names->like->outer, name);
    return att_token_owns(names->context, names->like->places, rest) ||
           (names->like->is_of_block ? names->like->is_of_block(names->file, rest)
                                     : att_checkpoint_lists(names->like->block, rest));
}

att_foreign att_token_foreign(const att_context *context, const att_tensors *file, const att_token_tensors *like)
{
    const token_names names = {context, file, like};
    return att_foreign_find(context, file, knows, &names);
}

att_status att_token_read_names(att_context *context, const att_tensors *file, const att_token_tensors *like,
                                att_option_values *found, att_detected_modules *detected)
{
    const token_names names = {context, file, like};
    const att_foreign foreign = att_token_foreign(context, file, like);
    ATT_TRY(att_foreign_refuse(context, file, &foreign, like->what));
    for (int i = 0; i < att_tensors_count(file); i++) {
        const char *name = att_tensors_at(file, i).name, *rest = NULL;
        int hook = 0, block = att_checkpoint_block(name, "blocks", &rest);
        const att_module *module = NULL;
        if (block >= 0 && block < ATT_BLOCKS && like->places->hooks->count > 0)
            module = att_token_module_at(context, like->places, rest, like->attends(file, block), &hook);
        if (block >= att_options_number(found, "depth", 0) && knows(&names, name))
            att_options_set(found, "depth", block + 1);
        if (module)
            att_detected_add(context, detected, module, hook, block);
    }
    return ATT_OK;
}

att_status att_token_write_modules(att_context *context, const att_tensors *file, const att_detected_modules *detected,
                                   att_option_values *found)
{
    int64_t widths[ATT_TOKEN_HOOKS];
    int width = (int)att_options_number(found, "embed_dim", 1);
    for (int hook = 0; hook < ATT_TOKEN_HOOKS; hook++)
        widths[hook] = width;
    widths[ATT_TOKEN_MID_MLP] = att_mlp_hidden(width, att_options_number(found, "mlp_ratio", 1));
    return att_detected_write_blocks(context, file, &att_token_hooks, branches, widths, detected, found);
}

/* --- options ------------------------------------------------------------------------------------------------------ */

/* A uniform head shows the width d of a head: an attention that leaves one head to it has C - d inner channels; the
 * uniform head of another is d wide. */
void att_token_read_heads(const att_tensors *file, att_option_values *found)
{
    int depth = (int)att_options_number(found, "depth", 0);
    int64_t channels = (int64_t)att_options_number(found, "embed_dim", 1);
    for (int b = 0; b < depth; b++) {
        int64_t packed = att_checkpoint_side(file, 0, "blocks.%d.attn.qkv.weight", b);
        int64_t v = att_checkpoint_side(file, 0, "blocks.%d.attn.uniform_head.v.weight", b);
        int64_t inner = packed ? packed / 3 : att_checkpoint_side(file, 0, "blocks.%d.attn.q_proj.weight", b);
        int64_t width = !inner || !v ? 0 : inner < channels ? channels - inner : v;
        if (width > 0 && channels % width == 0) {
            att_options_set(found, "num_heads", (double)(channels / width));
            return;
        }
    }
}

bool att_token_has_norm(const att_tensors *file, const char *name)
{
    return att_checkpoint_has(file, "%s.weight", name) || att_checkpoint_has(file, "%s.bias", name);
}

void att_token_read_classes(const att_tensors *file, att_option_values *found)
{
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(file, "head.weight", 2, &shape);
    if (dims || !att_token_has_norm(file, "head"))
        att_options_set(found, "num_classes", dims ? (double)dims[0] : 0);
}

bool att_token_take_switch(const att_switch_argument *arguments, const char *key, const att_fact *fact,
                           att_option_values *options)
{
    const att_switch_argument *a = arguments;
    while (a->key && strcmp(a->key, key) != 0)
        a++;
    if (!a->key || fact->kind != ATT_FACT_NUMBERS || fact->count != 1 ||
        (fact->numbers[0] != 0 && fact->numbers[0] != 1))
        return false;
    const bool value = (fact->numbers[0] == 1) != a->opposite, given = att_options_find(options, a->option);
    if (!given && a->texts[0])
        att_options_set_text(options, a->option, a->texts[value]);
    else if (!given)
        att_options_set(options, a->option, value);
    return true;
}

bool att_token_embeds_prefix(const att_option_values *options)
{
    return att_options_number(options, "class_token", 0) + att_options_number(options, "reg_tokens", 0) > 0 &&
           strcmp(att_options_text(options, "pos_embed"), "learn") == 0;
}

bool att_token_give_switch(const att_switch_argument *arguments, const att_timm_network *network,
                           const att_option *option, att_json_writer *writer)
{
    const att_switch_argument *a = arguments;
    while (a->key && strcmp(a->option, option->key) != 0)
        a++;
    if (!a->key)
        return false;
    const bool value = a->texts[1] ? strcmp(att_options_text(network->options, a->option), a->texts[1]) == 0
                                   : att_options_number(network->options, a->option, 0) != 0;
    att_json_put_bool(writer, a->key, value != a->opposite);
    return true;
}

void att_token_read_tokens(const att_tensors *file, att_option_values *found)
{
    att_shape shape;
    const int64_t *registers = att_checkpoint_dims(file, "reg_token", 3, &shape);
    bool has_class = att_checkpoint_has(file, "cls_token"), maps = att_checkpoint_has(file, "attn_pool.latent");
    att_options_set(found, "class_token", has_class);
    att_options_set(found, "reg_tokens", registers ? (double)registers[1] : 0);
    att_options_set_text(found, "pos_embed", att_checkpoint_has(file, "pos_embed") ? "learn" : "none");
    if (maps || !has_class)
        att_options_set_text(found, "global_pool", maps ? "map" : "avg");
}

/* For a text that is one of `names`, between which tensors do not decide: takes the value that is given, or that of the
 * variant, if it is one of them, too. */
static void take_unseen(const char *key, const att_known *known, const char *names, att_option_values *found)
{
    const char *given = att_options_text(known->given, key),
               *wanted = *given ? given : att_options_text(known->own, key);
    if (att_checkpoint_lists(names, att_options_text(found, key)) && att_checkpoint_lists(names, wanted))
        att_options_set_text(found, key, wanted);
}

/* Blocks with norms at the front and at the end have the same tensors; so have several ways of pooling patches. */
void att_token_disambiguate(const att_tensors *file, const att_known *known, att_option_values *found)
{
    att_positions_disambiguate(file, known, found);
    take_unseen("block_fn", known, "Block ResPostBlock", found);
    take_unseen("global_pool", known, ATT_TOKEN_MEAN_POOLS, found);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

att_status att_token_check_shown(att_context *context, const char *const *keys, const att_option_sources *u)
{
    for (; *keys; keys++) {
        const att_option *option = att_family_option(*keys);
        char given[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES], found[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES];
        if (att_option_format(option, u->given, given) > 0 && att_option_format(option, u->found, found) > 0 &&
            strcmp(given[0], found[0]) != 0)
            return att_fail(context, ATT_ERR_MISMATCH, "%s: %s is given as %.32s, but the tensors show %.32s", u->path,
                            *keys, given[0], found[0]);
    }
    return ATT_OK;
}

/* Whether the options have the tensor of this key, "class_token" or "pos_embed". */
static bool has_tensor(const att_option_values *options, const char *key)
{
    const char *text = att_options_text(options, key);
    return *text ? strcmp(text, "none") != 0 : att_options_number(options, key, 0) > 0;
}

att_status att_token_check_tokens(att_context *context, const att_option_sources *u)
{
    static const struct {
        const char *key, *tensor, *off, *flag;
    } parts[] = {{"class_token", "cls_token", "false", "--no-class-token"},
                 {"distilled", "dist_token", "false", "--no-distilled"},
                 {"reg_tokens", "reg_token", "0", "--reg-tokens 0"},
                 {"pos_embed", "pos_embed", "none", "--pos-embed none"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (has_tensor(u->own, parts[i].key) && !has_tensor(u->found, parts[i].key) &&
            !att_options_find(u->given, parts[i].key))
            return att_fail(context, ATT_ERR_MISMATCH,
                            "%s: there is no tensor \"%s\", which %s has; if the file's network was made without it, "
                            "give %s %s (%s)",
                            u->path, parts[i].tensor, u->name, parts[i].key, parts[i].off, parts[i].flag);
    return ATT_OK;
}

att_status att_token_check_map(att_context *context, const att_tensors *file, const att_option_sources *u)
{
    if (strcmp(att_options_text(u->given, "global_pool"), "map") != 0 || att_checkpoint_has(file, "attn_pool.latent"))
        return ATT_OK;
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "%s: global_pool is given as map, but there is no tensor \"attn_pool.latent\"", u->path);
}

att_status att_token_check_heads(att_context *context, const att_option_sources *u)
{
    int own = (int)att_options_number(u->own, "embed_dim", 0);
    int width = (int)att_options_number(u->given, "embed_dim", att_options_number(u->found, "embed_dim", own));
    if (att_options_find(u->given, "num_heads") || att_options_find(u->found, "num_heads") || width == own)
        return ATT_OK;
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "%s: the tensors are %d wide, %s is %d wide; the tensors do not show the number of heads; "
                    "give num_heads (--num-heads N)",
                    u->path, width, u->name, own);
}

/* --- parameters --------------------------------------------------------------------------------------------------- */

bool att_token_is_added(const att_context *context, const char *name)
{
    const char *rest;
    return att_checkpoint_block(name, "blocks", &rest) >= 0 &&
           att_token_owns(context, &att_token_places_of_blocks, rest);
}

/* As timm's VisionTransformer, VisionTransformerDistilled, VisionTransformerRelPos, Beit, Eva and MlpMixer; fc_norm,
 * shared_rel_pos and rope are beside the head. */
int att_token_layer(const char *name)
{
    static const char *const stem[] = {"cls_token",   "dist_token", "reg_token",    "pos_embed",
                                       "patch_embed", "norm_pre",   "rel_pos_bias", "stem."};
    const char *rest;
    int block = att_checkpoint_block(name, "blocks", &rest);
    for (size_t i = 0; i < sizeof stem / sizeof *stem; i++)
        if (strncmp(name, stem[i], strlen(stem[i])) == 0)
            return 0;
    if (strncmp(name, "norm.", 5) == 0)
        return ATT_LAYER_LAST_BLOCK;
    return block < 0 ? ATT_LAYER_HEAD : 1 + block;
}

/* The settings of other programs' networks, as options of attscope's. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "networks/layouts/layout.h"
#include "networks/models/family.h"

const char *const att_layout_activations[][2] = {{"gelu", "gelu"},
                                                 {"gelu_pytorch_tanh", "gelu_tanh"},
                                                 {"gelu_new", "gelu_tanh"},
                                                 {"gelu_fast", "gelu_tanh"},
                                                 {"quick_gelu", "quick_gelu"},
                                                 {"relu", "relu"},
                                                 {"silu", "silu"},
                                                 {"swish", "silu"},
                                                 {NULL, NULL}};

const att_layout_setting att_layout_vit_settings[] = {
    {"image_size", .option = "img_size"},
    {"num_attention_heads", .option = "num_heads"},
    {"layer_norm_eps", .option = "norm_eps"},
    {"hidden_act", .option = "act_layer", .words = att_layout_activations},
    ATT_LAYOUT_SHOWN,
    {"qkv_bias", .option = "qkv_bias", .shown = true},
    {"intermediate_size", .rows_of = "blocks.0.mlp.fc1.weight"},
    {.key = NULL},
};

static att_status refuse_word(const att_layout_source *source, const char *key, const char *word)
{
    return att_fail(source->context, ATT_ERR_UNSUPPORTED, "%s: %s is \"%.64s\", which attscope does not support",
                    source->path, key, word ? word : "not a text");
}

static att_status translate(const att_layout_source *source, const att_layout_setting *setting, att_fact *fact)
{
    const char *word = fact->kind == ATT_FACT_TEXT ? fact->text : NULL;
    const char *const(*words)[2] = setting->words;
    while (word && words[0][0] && strcmp(words[0][0], word) != 0)
        words++;
    if (!word || !words[0][0])
        return refuse_word(source, setting->key, word);
    fact->text = words[0][1];
    return ATT_OK;
}

static att_status note_settings(const att_layout *layout, const att_layout_source *source, att_config *config)
{
    for (const att_layout_setting *s = layout->settings; s && s->key; s++) {
        const json_t *value = json_object_get(source->config, s->key);
        char what[512];
        if (!value || json_is_null(value) || s->shown || !s->option)
            continue;
        att_fact fact = att_fact_of_json(value);
        if (s->words)
            ATT_TRY(translate(source, s, &fact));
        snprintf(what, sizeof what, "%.400s: %s", source->path, s->key);
        ATT_TRY(att_config_note(source->context, what, s->option, &fact, config));
    }
    return ATT_OK;
}

att_status att_layout_require_text(const att_layout_source *source, const char *key, const char *text)
{
    const json_t *value = json_object_get(source->config, key);
    const char *word = json_string_value(value);
    if (!value || json_is_null(value) || (word && strcmp(word, text) == 0))
        return ATT_OK;
    return att_fail(source->context, ATT_ERR_UNSUPPORTED, "%s: %s is \"%.64s\"; attscope has \"%s\" only", source->path,
                    key, word ? word : "not a text", text);
}

att_status att_layout_require_number(const att_layout_source *source, const char *key, double number)
{
    const json_t *value = json_object_get(source->config, key);
    const att_fact fact = att_fact_of_json(value);
    if (!value || json_is_null(value) || (fact.count == 1 && fact.numbers[0] == number))
        return ATT_OK;
    if (fact.kind != ATT_FACT_NUMBERS || fact.count != 1)
        return att_fail(source->context, ATT_ERR_FORMAT, "%s: %s must be a number", source->path, key);
    if (fact.is_truth)
        return att_fail(source->context, ATT_ERR_UNSUPPORTED, "%s: %s is %s, which attscope does not support",
                        source->path, key, number == 0 ? "true" : "false");
    return att_fail(source->context, ATT_ERR_UNSUPPORTED, "%s: %s is %g; attscope has %g only", source->path, key,
                    fact.numbers[0], number);
}

bool att_layout_is_on(const att_layout_source *source, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(source->config, key);
    return json_is_number(value)    ? json_number_value(value) > 0
           : json_is_boolean(value) ? json_is_true(value)
                                    : otherwise;
}

att_status att_layout_require_agreement(const att_layout_source *source, const char *key, bool on, bool agrees)
{
    if (agrees)
        return ATT_OK;
    return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                    "%s: %s is %s, but the tensors of %s are those of a network with the opposite; correct the setting",
                    source->path, key, on ? "on" : "off", att_tensors_path(source->file));
}

att_status att_layout_require_square(const att_layout_source *source, const att_config *config)
{
    const att_option_value *size = att_options_find(&config->options, "img_size");
    if (!size || size->numbers[0] == size->numbers[1])
        return ATT_OK;
    return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                    "%s: image_size is %g x %g; attscope opens networks of this type whose image_size is a square",
                    source->path, size->numbers[0], size->numbers[1]);
}

const char *att_layout_class(const att_layout_source *source)
{
    const char *name = json_string_value(json_array_get(json_object_get(source->root, "architectures"), 0));
    return name ? name : "";
}

/* Returns 0 if the variant is not as wide or deep as the network or has other patches; else 1, and 1 more for each of
 * the same activation, size of images and vocabulary. */
static int likeness(const att_variant *variant, const att_option_values *found)
{
    enum { LIKE = 3 }; /* the first keys make it more like the network; the others must agree */
    static const char *const keys[] = {"act_layer", "img_size", "vocab_size", "embed_dim",   "depth",     "layers",
                                       "depths",    "dims",     "block",      "window_size", "patch_size"};
    att_option_values own;
    att_preprocess preprocess;
    int like = 1;
    att_variant_defaults(variant, NULL, &own, &preprocess);
    for (int i = 0; i < (int)(sizeof keys / sizeof *keys); i++) {
        const att_option *option = att_option_find(variant->family->options, keys[i]);
        const bool both = option && att_options_find(found, keys[i]) && att_options_find(&own, keys[i]);
        const bool same = both && att_option_same(option, found, &own);
        if (both && !same && i >= LIKE)
            return 0;
        like += same && i < LIKE;
    }
    return like;
}

static att_status refuse_shown(const att_layout_source *source, const char *key)
{
    return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                    "%s: %s is not that of the network whose tensors %s has; is this the file of another network?",
                    source->path, key, att_tensors_path(source->file));
}

/* Refuses a setting that the tensors show otherwise. found: what they show. */
static att_status check_shown(const att_layout_setting *s, const att_layout_source *source, const json_t *value,
                              const att_option_table *table, const att_option_values *found)
{
    const att_option *option = s->option ? att_option_find(table, s->option) : NULL;
    att_fact fact = att_fact_of_json(value);
    att_config given = att_config_none();
    char what[512];
    if (!s->shown || !option || !att_options_find(found, option->key))
        return ATT_OK;
    if (s->words)
        ATT_TRY(translate(source, s, &fact));
    snprintf(what, sizeof what, "%.400s: %s", source->path, s->key);
    if (att_config_note(source->context, what, s->option, &fact, &given) != ATT_OK)
        return ATT_OK; /* no value that a network here can have: complete() says more */
    return att_option_same(option, found, &given.options) ? ATT_OK : refuse_shown(source, s->key);
}

/* Refuses an image_size with another number of patches than the table of positions has, besides at most two tokens. */
static att_status check_positions(const att_layout_source *source, const att_option_values *found)
{
    enum { TOKENS = 2 };
    const int table = att_tensors_find(source->file, "pos_embed");
    const att_option_value *patch = att_options_find(found, "patch_size");
    const json_t *value = json_object_get(source->config, "image_size");
    const att_fact image = att_fact_of_json(value);
    if (table < 0 || !value || !patch || image.kind != ATT_FACT_NUMBERS || image.count < 1 || image.count > 2)
        return ATT_OK;
    const att_shape shape = att_tensors_at(source->file, table).shape;
    const double patches =
        floor(image.numbers[0] / patch->numbers[0]) * floor(image.numbers[image.count - 1] / patch->numbers[1]);
    const double others = shape.rank == 3 ? (double)shape.dims[1] - patches : 0;
    return others >= 0 && others <= TOKENS ? ATT_OK : refuse_shown(source, "image_size");
}

/* Sets *found to the options that the tensors show. Refuses settings of config.json that differ. */
static att_status recognise(const att_layout *layout, const att_layout_source *source, const att_family *family,
                            att_option_values *found)
{
    *found = att_options_none();
    ATT_TRY(att_family_recognise(source->context, family, source->file, found));
    for (const att_layout_setting *s = layout->settings; s && s->key; s++) {
        const json_t *value = json_object_get(source->config, s->key);
        if (value && !json_is_null(value))
            ATT_TRY(check_shown(s, source, value, family->options, found));
        if (strcmp(s->key, "image_size") == 0)
            ATT_TRY(check_positions(source, found));
    }
    return ATT_OK;
}

/* Names the network after the variant that is most like it, the first of several. */
static att_status choose_name(const att_layout *layout, const att_layout_source *source, att_config *config)
{
    att_option_values found = att_options_none();
    int best = 0;
    for (const char *at = layout->variants; *at; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        char name[sizeof config->name];
        att_variant variant;
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        ATT_TRY(att_variant_find(source->context, name, &variant));
        if (at == layout->variants) {
            ATT_TRY(recognise(layout, source, variant.family, &found));
            att_options_fill(&found, &config->options);
            memcpy(config->name, name, sizeof name);
        }
        at += length;
        const int like = likeness(&variant, &found);
        if (like <= best)
            continue;
        memcpy(config->name, name, sizeof name);
        best = like;
    }
    return ATT_OK;
}

att_status att_layout_configure(const att_layout *layout, const att_layout_source *source, att_config *config)
{
    att_variant variant;
    ATT_TRY(note_settings(layout, source, config));
    ATT_TRY(choose_name(layout, source, config));
    if (layout->complete)
        ATT_TRY(layout->complete(source, config));
    ATT_TRY(att_variant_find(source->context, config->name, &variant));
    return att_config_read_settings(source->context, variant.family->options, layout->defaults,
                                    strlen(layout->defaults), config);
}

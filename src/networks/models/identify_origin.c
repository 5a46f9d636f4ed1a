/* The origin of an identity: which source gave its name, options and preprocessing. */
#include "networks/models/identify.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "networks/models/patches.h"
#include "networks/models/position_grid.h"

static const char VARIANT[] = "the model's defaults";
static const char TENSORS[] = "the tensors", IMPLIED[] = "following from these";

/* The source of an option's value. found: from the tensors, which decide about num_classes even if it is given. */
static const char *source_of(const att_identification *s, const att_option *option, const att_option_values *options,
                             const att_option_values *found)
{
    const char *from = att_identify_provider(s, option->key);
    bool is_found = att_option_same(option, options, found);
    if (from && (!is_found || att_option_same(option, options, &s->config.options)))
        return from;
    return is_found ? TENSORS : IMPLIED;
}

/* Appends `before` and the options of a source that differ from the variant's; nothing if there are none. */
static void append_source(const att_identification *s, const char *from, const char *before,
                          const att_option_values *options, const att_option_values *found,
                          const att_option_values *own, att_text *text)
{
    const att_option_table *table = s->variant.family->options;
    att_option_values part = att_options_none();
    att_text values = {.context = s->context};
    for (int i = 0; i < table->count; i++)
        if (att_options_find(options, table->options[i].key) &&
            source_of(s, &table->options[i], options, found) == from)
            att_option_copy(table->options[i].key, options, &part);
    if (att_options_differences(&values, table, &part, own))
        att_text_append(text, "%s%s", before, values.data ? values.data : "");
    text->failed = text->failed || values.failed;
    att_text_free(&values);
}

/* Appends the options that differ from the variant's, by their source; that of the name is first. */
static void append_sources(const att_identification *s, const att_option_values *options,
                           const att_option_values *found, const att_option_values *own, att_text *text)
{
    static const char *const sources[] = {
        att_from_caller,      att_from_arguments,  att_from_config,    att_from_metadata, att_from_architecture,
        att_from_description, att_from_attributes, att_from_file_name, TENSORS,           IMPLIED};
    char before[96];
    append_source(s, s->name_from, " with ", options, found, own, text);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        snprintf(before, sizeof before, "; %s: ", sources[i]);
        if (sources[i] != s->name_from)
            append_source(s, sources[i], before, options, found, own, text);
    }
}

/* Appends what the tensors do not show, and nothing but the name that the caller gives says. */
static void append_assumed(const att_identification *s, const char *name, const att_option_values *options,
                           const att_option_values *found, att_text *text)
{
    const att_option_table *table = s->variant.family->options;
    const char *before = "; assumed, as in ";
    for (int i = 0; i < table->count; i++) {
        const att_option *option = &table->options[i];
        char value[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES];
        if (!option->not_in_tensors || att_options_find(found, option->key) || att_identify_provider(s, option->key) ||
            att_option_format(option, options, value) == 0)
            continue;
        att_text_append(text, "%s%s%s%s %s", before, *before == ';' ? name : "", *before == ';' ? ": " : "",
                        option->key, value[0]);
        before = ", ";
    }
}

/* Appends what another program's file does not show, and its layout assumes, unless the caller gives it. */
static void append_defaults(const att_identification *s, const att_option_values *options, att_text *text)
{
    const char *before = "; assumed, as its program does by default: ";
    for (const char *at = s->file->assumed ? s->file->assumed : ""; *at; at += strspn(at, " ")) {
        char key[ATT_OPTION_KEY], value[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES];
        const size_t length = strcspn(at, " ");
        snprintf(key, sizeof key, "%.*s", (int)length, at);
        const att_option *option = att_option_find(s->variant.family->options, key);
        at += length;
        if (!option || att_identify_provider(s, key) == att_from_caller ||
            att_option_format(option, options, value) == 0)
            continue;
        att_text_append(text, "%s%s %s", before, key, value[0]);
        before = ", ";
    }
}

/* Whether a source gives an image size with the grid of patches that the tensors were taken for. */
static bool is_grid_given(const att_identification *s, const att_option_values *found)
{
    const att_option_value *patch = att_options_find(found, "patch_size");
    int given[2], taken[2];
    return att_patches_grid(&s->config.options, patch, given) && att_patches_grid(found, patch, taken) &&
           memcmp(given, taken, sizeof given) == 0;
}

/* Whether the tensors were taken for a square grid although the tokens before the patches then have, or lack, positions
 * unlike in the named network, and no source says so. */
static bool contradicts_tokens(const att_identification *s, const att_option_values *found,
                               const att_option_values *own)
{
    const att_option *embeds = att_option_find(s->variant.family->options, "embed_class");
    return embeds && att_positions_prefix(found) > 0 && att_options_find(found, "img_size") &&
           !att_option_same(embeds, found, own) && !att_identify_provider(s, embeds->key) && !is_grid_given(s, found);
}

/* Appends the size of images that follows from tensors which fit other sizes, too. */
static void append_size(const att_identification *s, const att_option_values *found, const att_option_values *own,
                        att_text *text)
{
    const att_family *family = s->variant.family;
    const bool embeds = att_options_number(found, "embed_class", 0) != 0, unlike = contradicts_tokens(s, found, own);
    att_preprocess images = {0}, named = {0};
    att_options_size(found, &images);
    att_options_size(own, &named);
    const bool sized = images.height > 0 && !att_identify_provider(s, "img_size") &&
                       (images.height != named.height || images.width != named.width);
    if (!sized && !unlike)
        return;
    att_text_append(text, "; assumed: ");
    if (sized)
        att_text_append(text, "img_size %d%s", images.height, unlike ? ", " : ", because ");
    if (unlike)
        att_text_append(text, "embed_class %s, because ", embeds ? "true" : "false");
    if (family->explain_size)
        family->explain_size(s->file, found, text);
    else
        att_text_append(text, "the positions can form a square");
    if (unlike)
        att_text_append(text, " with%s that of the class token; for oblong images give img_size H W (--img-size H W)",
                        embeds ? "" : "out");
}

att_status att_identify_describe(const att_identification *s, const att_option_values *own,
                                 const att_option_values *found, att_identity *identity)
{
    att_text text = {.context = s->context}, brief = {.context = s->context};
    const char *preprocess_from = s->preprocess_from ? s->preprocess_from : VARIANT;
    const char *notes = s->notes.data ? s->notes.data : "", *tag = s->named.tag;
    const bool images = att_options_find(own, "img_size");
    att_text_append(&text, "architecture: %s (%s%s%s)", s->name_from, identity->name, *tag ? "." : "", tag);
    append_sources(s, &identity->options, found, own, &text);
    if (images)
        att_text_append(&text, "; preprocessing: %s", preprocess_from);
    att_text_append(&text, "%s", notes);
    if (*att_tensors_origin(s->file))
        att_text_append(&text, "; weights: %s", att_tensors_origin(s->file));
    att_text_append(&brief, "%s%s%s", s->name_from, *tag ? ", pretrained tag " : "", tag);
    if (images && strcmp(preprocess_from, s->name_from) != 0)
        att_text_append(&brief, "; preprocessing: %s", preprocess_from);
    if (*att_tensors_origin(s->file))
        att_text_append(&brief, "; weights: %s", att_tensors_origin(s->file));
    att_text_append(&brief, "%s", notes);
    att_text *const texts[] = {&text, &brief};
    const bool by_caller = s->name_from == att_from_caller, by_names = s->name_from == att_from_tensor_names;
    for (int i = 0; i < 2 && !s->is_described; i++) {
        if (by_caller)
            append_assumed(s, identity->name, &identity->options, found, texts[i]);
        else if (by_names)
            append_defaults(s, &identity->options, texts[i]);
        append_size(s, found, own, texts[i]);
    }
    bool failed = text.failed || brief.failed || s->notes.failed;
    if (!failed) {
        snprintf(identity->origin, sizeof identity->origin, "%s", text.data);
        snprintf(identity->brief, sizeof identity->brief, "%s", brief.data);
    }
    att_text_free(&text);
    att_text_free(&brief);
    return failed ? att_fail_memory(s->context, sizeof identity->origin, "a message") : ATT_OK;
}

/* Resolves names of networks. */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/models/config.h"
#include "networks/models/family.h"
#include "networks/models/timm.h"
#include "networks/models/typo.h"

/* --- attscope's variants ------------------------------------------------------------------------------------------ */

/* Returns the index of a variant; -1 if there is none of that name. */
static int find_variant(const char *name)
{
    for (int i = 0; name && i < att_variant_count(); i++)
        if (strcmp(att_model_at(i).name, name) == 0)
            return i;
    return -1;
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

static bool begins_a_name(const char *text)
{
    for (int i = 0; i < att_model_count(); i++)
        if (*text && strncmp(att_model_at(i).name, text, strlen(text)) == 0)
            return true;
    return false;
}

static bool is_in_a_name(const char *text)
{
    for (int i = 0; i < att_model_count(); i++)
        if (*text && strstr(att_model_at(i).name, text))
            return true;
    return false;
}

static att_status fail_unknown(att_context *context, const char *network)
{
    const char *meant = NULL;
    bool several = false;
    for (int i = 0; i < att_model_count(); i++)
        if (att_name_is_typo(network, att_model_at(i).name)) {
            several = meant != NULL;
            meant = att_model_at(i).name;
        }
    if (meant && !several)
        return att_fail(context, ATT_ERR_NOT_FOUND, "there is no model \"%.64s\"; did you mean \"%s\"?", network,
                        meant);
    if (begins_a_name(network))
        return att_fail(context, ATT_ERR_NOT_FOUND,
                        "there is no model \"%.64s\"; attscope models '%.64s*' lists those whose names begin with it",
                        network, network);
    if (is_in_a_name(network))
        return att_fail(context, ATT_ERR_NOT_FOUND,
                        "there is no model \"%.64s\"; attscope models '*%.64s*' lists those whose names contain it",
                        network, network);
    return att_fail(context, ATT_ERR_NOT_FOUND, "there is no model \"%.64s\"; attscope models lists all", network);
}

/* Fails because attscope lacks the network. old: the deprecated name that the caller gave; NULL: none. */
static att_status fail_lacking(att_context *context, const char *network, const char *old)
{
    att_timm_name timm;
    char lacks[192] = "", renamed[112] = "";
    if (!att_timm_find_name(network, &timm))
        return fail_unknown(context, network);
    if (timm.lacks.length)
        snprintf(lacks, sizeof lacks, " (%.*s)", (int)timm.lacks.length, timm.lacks.bytes);
    if (old)
        snprintf(renamed, sizeof renamed, ", formerly %s", old);
    return att_fail(context, ATT_ERR_UNSUPPORTED, "timm has %s%s%s; attscope does not support it", network, lacks,
                    renamed);
}

static att_status fail_tag(att_context *context, const att_network_name *name)
{
    att_text known = {.context = context};
    att_timm_tag tag;
    for (size_t at = 0; att_timm_next_tag(name->network, &at, &tag);)
        att_text_append(&known, "%s%.*s", known.length ? ", " : "", (int)tag.tag.length, tag.tag.bytes);
    att_status status = ATT_ERR_NOT_FOUND;
    if (known.failed)
        status = att_fail_memory(context, 1024, "a message");
    else if (known.length)
        att_context_set_message(context, "%s has no pretrained tag \"%s\"; its tags are %s", name->network, name->tag,
                                known.data);
    else
        att_context_set_message(context, "%s has no pretrained tags; \"%s\" is none of them", name->network, name->tag);
    att_text_free(&known);
    return status;
}

/* --- resolving --------------------------------------------------------------------------------------------------- */

/* Removes the prefix of timm's models on the Hugging Face hub. */
static const char *without_hub(const char *text)
{
    static const char *const prefixes[] = {"hf-hub:timm/", "hf_hub:timm/", "timm/"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0)
            return text + strlen(prefixes[i]);
    return text;
}

/* Splits "network.tag" or "network"; returns false if a part is too long to be known. */
static bool split_tag(const char *text, size_t length, att_network_name *name)
{
    const char *dot = memchr(text, '.', length);
    size_t network = dot ? (size_t)(dot - text) : length, tag = dot ? length - network - 1 : 0;
    if (network >= sizeof name->network || tag >= sizeof name->tag)
        return false;
    *name = (att_network_name){.deprecated = false};
    memcpy(name->network, text, network);
    if (dot)
        memcpy(name->tag, dot + 1, tag);
    return true;
}

att_status att_model_resolve(att_context *context, const char *text, att_network_name *name)
{
    att_network_name found;
    att_timm_name timm;
    att_timm_tag tag;
    ATT_TRY(att_require(context, text, "the name of a network"));
    text = without_hub(text);
    if (!split_tag(text, strlen(text), &found))
        return fail_unknown(context, text);
    char old[sizeof found.network];
    memcpy(old, found.network, sizeof old);
    if (att_timm_find_name(found.network, &timm) && timm.current.length) {
        att_network_name current;
        if (!split_tag(timm.current.bytes, timm.current.length, &current))
            return fail_unknown(context, text);
        memcpy(found.network, current.network, sizeof found.network);
        if (!found.tag[0])
            memcpy(found.tag, current.tag, sizeof found.tag);
        found.deprecated = true;
    }
    if (find_variant(found.network) < 0)
        return fail_lacking(context, found.network, found.deprecated ? old : NULL);
    if (found.tag[0] && !att_timm_find_tag(found.network, found.tag, &tag))
        return fail_tag(context, &found);
    *name = found;
    return ATT_OK;
}

/* Adds the settings of a tag to the variant. headless: the tag's weights have no classifier. The variant keeps its
 * number of classes then, because a file's tensors show whether there is a classifier. */
static att_status read_tag(att_context *context, const att_timm_tag *tag, att_variant *variant, bool *headless)
{
    ATT_TRY(att_config_read_settings(context, variant->family->options, tag->values.bytes, tag->values.length,
                                     &variant->tag));
    *headless = att_options_number(&variant->tag.options, "num_classes", 1) == 0;
    if (*headless)
        att_options_unset(&variant->tag.options, "num_classes");
    return ATT_OK;
}

att_status att_variant_find(att_context *context, const char *text, att_variant *variant)
{
    att_network_name name;
    att_timm_tag tag;
    bool headless;
    ATT_TRY(att_model_resolve(context, text, &name));
    *variant = att_variant_at(find_variant(name.network));
    if (name.tag[0] && att_timm_find_tag(name.network, name.tag, &tag))
        return read_tag(context, &tag, variant, &headless);
    return ATT_OK;
}

att_status att_model_tag_at(att_context *context, const char *network, int index, att_model_tag *tag)
{
    att_timm_tag found;
    int variant_index = find_variant(network);
    *tag = (att_model_tag){.num_classes = 0};
    if (variant_index < 0)
        return ATT_OK;
    att_variant variant = att_variant_at(variant_index);
    for (size_t at = 0; att_timm_next_tag(network, &at, &found);) {
        if (index-- != 0)
            continue;
        att_option_values options;
        bool headless;
        ATT_TRY(read_tag(context, &found, &variant, &headless));
        att_variant_defaults(&variant, NULL, &options, &tag->preprocess);
        tag->num_classes = headless ? 0 : (int)att_options_number(&options, "num_classes", 0);
        snprintf(tag->name, sizeof tag->name, "%.*s", (int)found.tag.length, found.tag.bytes);
        return ATT_OK;
    }
    return ATT_OK;
}

/* The sources of a network's configuration, merged: what each source gives fills only what earlier ones left open. */
#include "networks/models/identify.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/file.h"
#include "networks/models/torchvision.h"

const char att_from_metadata[] = "the file's metadata";
const char att_from_architecture[] = "the checkpoint's \"" ATT_TENSORS_ARCHITECTURE "\"";
const char att_from_description[] = "the training's settings stored in the checkpoint";
const char att_from_attributes[] = "the attributes of the network, which was saved whole";
const char att_from_caller[] = "as given";
const char att_from_arguments[] = "args.yaml", att_from_config[] = "config.json";
const char att_from_tensor_names[] = "the names of the tensors";
const char att_from_processor[] = "preprocessor_config.json", att_from_type[] = "the defaults of its model type";
const char att_from_file_name[] = "torchvision's name of the file";
static const char OPTIONS[] = "the checkpoint's \"" ATT_TENSORS_OPTIONS "\"";

static void note_left_out(att_identification *s, const char *from, const char *name)
{
    att_text_append(&s->notes, "; %s, which names %s, was left out", from, name);
}

static bool has_preprocess(const att_config *config)
{
    return config->has_mean || config->has_std || config->crop_pct != 0 || config->crop_mode[0] ||
           config->interpolation[0];
}

/* Extends the context's message: if the tensors fit no network of attscope, appends an explanation of what they are. */
static att_status fail_with_tensors(const att_identification *s, att_status status)
{
    att_text why = {.context = s->context};
    att_option_values found = att_options_none();
    att_text_append(&why, "%s", att_context_message(s->context));
    att_status recognised = att_identify_recognise(s, &found);
    if (recognised != ATT_OK)
        att_text_append(&why, "; %s", att_context_message(s->context));
    if (why.failed || recognised == ATT_ERR_MEMORY)
        status = att_fail_memory(s->context, 1024, "a message");
    else
        att_context_set_message(s->context, "%s", why.data);
    att_text_free(&why);
    return status;
}

/* Handles a name that is no network of attscope. If timm has a network of that name, this is an error: the weights
 * belong to a network that computes something else, even if the tensors fit. Other unknown names are ignored if the
 * network is known already. */
static att_status refuse_name(att_identification *s, const char *from, const att_config *given, att_status status)
{
    bool beside = strcmp(from, att_from_arguments) == 0 || strcmp(from, att_from_config) == 0;
    if (status == ATT_ERR_MEMORY)
        return status;
    if (strcmp(from, att_from_caller) == 0)
        return fail_with_tensors(s, status);
    if (status == ATT_ERR_NOT_FOUND && s->name_from) {
        note_left_out(s, from, given->name);
        return ATT_OK;
    }
    return att_fail(s->context, status, "%s: %s names the network \"%s\": %s%s%s%s", s->path, from, given->name,
                    att_context_message(s->context), beside ? " (where " : "", beside ? from : "",
                    beside ? " belongs to another file, move that file to a folder of its own)" : "");
}

static bool is_same_name(const att_network_name *a, const att_network_name *b)
{
    return strcmp(a->network, b->network) == 0 && (!a->tag[0] || !b->tag[0] || strcmp(a->tag, b->tag) == 0);
}

/* Takes the network that a source names, and adds the settings of the name's tag to *given. Returns false if another
 * network is known already. */
static bool merge_name(att_identification *s, const char *from, const att_network_name *name,
                       const att_variant *variant, att_config *given)
{
    if (s->name_from && !is_same_name(&s->named, name)) {
        note_left_out(s, from, given->name);
        return false;
    }
    if (name->deprecated)
        att_text_append(&s->notes, "; %s is timm's deprecated name of %s%s%s", given->name, name->network,
                        name->tag[0] ? "." : "", name->tag);
    if (!s->name_from)
        s->name_from = from;
    if (!s->named.tag[0]) {
        s->tag_from = name->tag[0] ? from : NULL;
        s->named = *name;
        s->variant = *variant;
    }
    att_config images = variant->tag;
    images.options = att_options_none();
    /* An image size or crop of the source replaces the evaluation settings of its tag, too. */
    if (att_options_find(&given->options, "img_size"))
        images.test_height = images.test_width = 0;
    if (given->crop_pct > 0)
        images.test_crop_pct = 0;
    att_config_fill(given, &images);
    snprintf(given->name, sizeof given->name, "%s", name->network);
    return true;
}

static bool is_same_preprocess(const att_preprocess *a, const att_preprocess *b)
{
    return a->height == b->height && a->width == b->width && memcmp(a->mean, b->mean, sizeof a->mean) == 0 &&
           memcmp(a->std, b->std, sizeof a->std) == 0 && a->crop_pct == b->crop_pct &&
           strcmp(a->crop_mode, b->crop_mode) == 0 && strcmp(a->interpolation, b->interpolation) == 0;
}

/* Drops the preprocessing of a source in favour of that of the tag. If the two differ, adds a note. */
static void drop_preprocess(att_identification *s, const char *from, att_config *given)
{
    att_option_values own;
    att_preprocess preprocess, other;
    att_variant_defaults(&s->variant, NULL, &own, &preprocess);
    other = preprocess;
    att_options_size(&given->options, &other);
    att_config_apply(given, &other);
    if (!is_same_preprocess(&preprocess, &other))
        att_text_append(&s->notes, "; the preprocessing of the tag replaces that of %s", from);
    att_config kept = att_config_none();
    kept.options = given->options;
    att_options_unset(&kept.options, "img_size");
    memcpy(kept.name, given->name, sizeof kept.name);
    *given = kept;
}

const char *att_identify_provider(const att_identification *s, const char *key)
{
    for (int i = 0; i < s->provider_count; i++)
        if (strcmp(s->providers[i].key, key) == 0)
            return s->providers[i].from;
    return NULL;
}

static void note_providers(att_identification *s, const char *from, const att_option_values *given)
{
    for (int i = 0; i < given->count && s->provider_count < ATT_MOST_OPTIONS; i++) {
        att_provider *added = &s->providers[s->provider_count];
        if (att_identify_provider(s, given->items[i].key))
            continue;
        memcpy(added->key, given->items[i].key, sizeof added->key);
        added->from = from;
        s->provider_count++;
    }
}

/* Merges the values of a source. Its preprocessing comes from `preprocess_from`, a part of the source. */
/* Another task has another head: the options of the source's head are left out. */
static void drop_other_head(const att_option_values *known, att_option_values *given)
{
    const char *task = att_options_text(known, "task"), *own = att_options_text(given, "task");
    for (int i = given->count; i-- > 0 && *task && *own && strcmp(task, own) != 0;) {
        const att_option *option = att_family_option(given->items[i].key);
        if (option && option->of_maps)
            att_options_unset(given, option->key);
    }
}

static att_status merge_parts(att_identification *s, const char *from, const char *preprocess_from, att_config *given)
{
    att_network_name name;
    att_variant variant;
    if (!has_preprocess(given))
        preprocess_from = from; /* the settings of the name's tag */
    if (given->name[0]) {
        att_status status = strcmp(from, att_from_caller) == 0 ? att_model_resolve(s->context, given->name, &name)
                                                               : att_config_resolve(s->context, given->name, &name);
        if (status == ATT_OK)
            status = att_variant_find(s->context, given->name, &variant);
        if (status != ATT_OK)
            return refuse_name(s, from, given, status);
        if (!merge_name(s, from, &name, &variant, given))
            return ATT_OK;
    }
    if (strcmp(from, att_from_caller) != 0 && s->tag_from == att_from_caller)
        drop_preprocess(s, preprocess_from, given);
    if (!s->preprocess_from && has_preprocess(given))
        s->preprocess_from = preprocess_from;
    drop_other_head(&s->config.options, &given->options);
    note_providers(s, from, &given->options);
    att_config_fill(&s->config, given);
    if (strcmp(from, att_from_caller) != 0)
        att_options_fill(&s->from_file, &given->options);
    return ATT_OK;
}

static att_status merge(att_identification *s, const char *from, att_config *given)
{
    return merge_parts(s, from, from, given);
}

/* Reads the file `name` in the folder of the weights, if it exists. Tensors in memory have no folder. */
static att_status read_side_file(att_identification *s, const char *name,
                                 att_status (*read)(att_context *context, const char *path, const att_tensors *file,
                                                    att_config *config))
{
    att_text path = {.context = s->context};
    if (att_tensors_are_borrowed(s->file))
        return ATT_OK;
    const char *slash = strrchr(s->path, '/');
    att_text_append_bytes(&path, s->path, slash ? (size_t)(slash - s->path) + 1 : 0);
    att_text_append(&path, "%s", name);
    att_config given = att_config_none();
    att_status status = path.failed ? att_fail_memory(s->context, strlen(s->path), "a path") : ATT_OK;
    if (status == ATT_OK && att_file_exists(path.data)) {
        status = read(s->context, path.data, s->file, &given);
        if (status == ATT_OK)
            status = merge(s, name, &given);
    }
    att_text_free(&path);
    return status;
}

/* Reads metadata of other programs. A name unknown to timm is kept for the error message only. */
static att_status read_metadata(att_identification *s)
{
    att_network_name resolved;
    att_config given = att_config_none();
    const bool is_whole = att_tensors_metadata(s->file, ATT_TENSORS_ATTRIBUTES);
    const char *from = att_tensors_metadata(s->file, ATT_TENSORS_ARCHITECTURE) ? att_from_architecture
                       : is_whole                                              ? att_from_attributes
                                                                               : att_from_description;
    char what[512];
    snprintf(what, sizeof what, "%s: its metadata", s->path);
    ATT_TRY(att_config_read_metadata(s->context, what, s->file, &given));
    if (given.name[0] && att_config_resolve(s->context, given.name, &resolved) == ATT_ERR_NOT_FOUND) {
        memcpy(s->unknown, given.name, sizeof s->unknown);
        s->unknown_from = from;
        if (s->name_from)
            note_left_out(s, from, given.name);
        given.name[0] = '\0';
    }
    const char *options = att_tensors_metadata(s->file, ATT_TENSORS_OPTIONS);
    return merge_parts(s, from, options ? OPTIONS : is_whole ? att_from_attributes : att_from_description, &given);
}

/* torchvision's files have no metadata, but names that contain a part of their hash. */
static att_status read_file_name(att_identification *s)
{
    const att_torchvision *known = att_torchvision_of_file(s->path);
    att_config given = att_config_none();
    if (!known)
        return ATT_OK;
    snprintf(given.name, sizeof given.name, "%s", known->network);
    given.crop_pct = known->crop_pct;
    snprintf(given.interpolation, sizeof given.interpolation, "%s", known->interpolation);
    return merge(s, att_from_file_name, &given);
}

att_status att_identify_read_sources(att_identification *s, const char *name, const att_option_values *flags)
{
    att_config given = att_config_none();
    if (flags)
        given.options = *flags;
    s->caller_gives_classes = att_options_find(&given.options, "num_classes");
    if (name)
        snprintf(given.name, sizeof given.name, "%s", name);
    ATT_TRY(merge(s, att_from_caller, &given));
    ATT_TRY(read_side_file(s, att_from_arguments, att_config_read_args));
    ATT_TRY(read_side_file(s, att_from_config, att_config_read_json));
    const char *text = att_tensors_metadata(s->file, ATT_IDENTITY_KEY);
    if (!text) {
        ATT_TRY(read_metadata(s));
        return read_file_name(s);
    }
    given = att_config_none();
    char what[512];
    snprintf(what, sizeof what, "%s: its metadata", s->path);
    ATT_TRY(att_config_parse(s->context, what, text, &given));
    const char *from = s->file->identity_from ? s->file->identity_from : att_from_metadata;
    ATT_TRY(merge_parts(s, from, s->file->preprocess_from ? s->file->preprocess_from : from, &given));
    s->is_described = from == att_from_metadata && strcmp(given.name, s->named.network) == 0;
    return ATT_OK;
}

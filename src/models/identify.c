#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/text.h"
#include "io/file.h"
#include "io/tensors.h"
#include "models/config.h"
#include "models/family.h"
#include "models/patches.h"
#include "models/timm.h"
#include "models/torchvision.h"

static const char METADATA[] = "the file's metadata";
static const char ARCHITECTURE[] = "the checkpoint's \"" ATT_TENSORS_ARCHITECTURE "\"";
static const char OPTIONS[] = "the checkpoint's \"" ATT_TENSORS_OPTIONS "\"";
static const char DESCRIPTION[] = "the checkpoint's description of its training";
static const char CALLER[] = "as given";
static const char ARGUMENTS[] = "args.yaml", CONFIG[] = "config.json";
static const char FILE_NAME[] = "torchvision's name of the file";
static const char VARIANT[] = "the model's defaults";
static const char TENSORS[] = "the tensors", IMPLIED[] = "following from these";

/* Which source gave an option first. */
typedef struct provider {
    char key[ATT_OPTION_KEY];
    const char *from;
} provider;

typedef struct search {
    att_context *context;
    const att_tensors *file;
    const char *path;
    att_config config;                    /* config.name has no tag */
    att_option_values from_file;          /* options of all sources except the caller */
    provider providers[ATT_MOST_OPTIONS]; /* of config.options */
    int provider_count;
    const char *name_from, *tag_from, *preprocess_from; /* sources of name, tag and preprocessing; NULL: not given */
    att_network_name named;                             /* the name, as name_from gives it */
    att_variant variant;                                /* variant of that name */
    att_text notes;            /* for the user: "; config.json, which names deit_tiny, was left out" */
    bool caller_gives_classes; /* including "no classes" */
    char unknown[128];         /* the file's name of its network if attscope knows no such name; "" */
    const char *unknown_from;
} search;

/* --- sources ----------------------------------------------------------------------------------------------------- */

static void note_left_out(search *s, const char *from, const char *name)
{
    att_text_append(&s->notes, "; %s, which names %s, was left out", from, name);
}

static bool has_preprocess(const att_config *config)
{
    return config->has_mean || config->has_std || config->crop_pct != 0 || config->crop_mode[0] ||
           config->interpolation[0];
}

static const att_family *family_of(const search *s)
{
    return att_family_nearest(s->context, s->file);
}

/* Sets the options that the tensors show. If they fit no network of attscope, the message explains what they are. */
static att_status recognise(const search *s, att_option_values *found)
{
    ATT_TRY(att_family_check_tensors(s->context, s->file));
    return family_of(s)->recognise(s->context, s->file, found);
}

/* Extends the context's message: if the tensors fit no network of attscope, appends an explanation of what they are. */
static att_status fail_with_tensors(const search *s, att_status status)
{
    att_text why = {.context = s->context};
    att_option_values found = att_options_none();
    att_text_append(&why, "%s", att_context_message(s->context));
    att_status recognised = recognise(s, &found);
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
static att_status refuse_name(search *s, const char *from, const att_config *given, att_status status)
{
    bool beside = strcmp(from, ARGUMENTS) == 0 || strcmp(from, CONFIG) == 0;
    if (status == ATT_ERR_MEMORY)
        return status;
    if (strcmp(from, CALLER) == 0)
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
static bool merge_name(search *s, const char *from, const att_network_name *name, const att_variant *variant,
                       att_config *given)
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
static void drop_preprocess(search *s, const char *from, att_config *given)
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

static const char *provider_of(const search *s, const char *key)
{
    for (int i = 0; i < s->provider_count; i++)
        if (strcmp(s->providers[i].key, key) == 0)
            return s->providers[i].from;
    return NULL;
}

static void note_providers(search *s, const char *from, const att_option_values *given)
{
    for (int i = 0; i < given->count && s->provider_count < ATT_MOST_OPTIONS; i++) {
        provider *added = &s->providers[s->provider_count];
        if (provider_of(s, given->items[i].key))
            continue;
        memcpy(added->key, given->items[i].key, sizeof added->key);
        added->from = from;
        s->provider_count++;
    }
}

/* Merges the values of a source. Its preprocessing comes from `preprocess_from`, a part of the source. */
static att_status merge_parts(search *s, const char *from, const char *preprocess_from, att_config *given)
{
    att_network_name name;
    att_variant variant;
    att_model_upgrade_options(&given->options);
    if (!has_preprocess(given))
        preprocess_from = from; /* the settings of the name's tag */
    if (given->name[0]) {
        att_status status = strcmp(from, CALLER) == 0 ? att_model_resolve(s->context, given->name, &name)
                                                      : att_config_resolve(s->context, given->name, &name);
        if (status == ATT_OK)
            status = att_variant_find(s->context, given->name, &variant);
        if (status != ATT_OK)
            return refuse_name(s, from, given, status);
        if (!merge_name(s, from, &name, &variant, given))
            return ATT_OK;
    }
    if (strcmp(from, CALLER) != 0 && s->tag_from == CALLER)
        drop_preprocess(s, preprocess_from, given);
    if (!s->preprocess_from && has_preprocess(given))
        s->preprocess_from = preprocess_from;
    note_providers(s, from, &given->options);
    att_config_fill(&s->config, given);
    if (strcmp(from, CALLER) != 0)
        att_options_fill(&s->from_file, &given->options);
    return ATT_OK;
}

static att_status merge(search *s, const char *from, att_config *given)
{
    return merge_parts(s, from, from, given);
}

/* Reads the file `name` in the folder of the weights, if it exists. Tensors in memory have no folder. */
static att_status read_side_file(search *s, const char *name,
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
static att_status read_metadata(search *s)
{
    att_network_name resolved;
    att_config given = att_config_none();
    const char *from = att_tensors_metadata(s->file, ATT_TENSORS_ARCHITECTURE) ? ARCHITECTURE : DESCRIPTION;
    char what[512];
    snprintf(what, sizeof what, "%s: its metadata", s->path);
    ATT_TRY(att_config_read_metadata(s->context, what, s->file, &given));
    if (given.name[0] && att_config_resolve(s->context, given.name, &resolved) == ATT_ERR_NOT_FOUND) {
        memcpy(s->unknown, given.name, sizeof s->unknown);
        s->unknown_from = from;
        given.name[0] = '\0';
    }
    const char *options = att_tensors_metadata(s->file, ATT_TENSORS_OPTIONS);
    return merge_parts(s, from, options ? OPTIONS : DESCRIPTION, &given);
}

/* torchvision's files have no metadata, but names that contain a part of their hash. */
static att_status read_file_name(search *s)
{
    const att_torchvision *known = att_torchvision_of_file(s->path);
    att_config given = att_config_none();
    if (!known)
        return ATT_OK;
    snprintf(given.name, sizeof given.name, "%s", known->network);
    given.crop_pct = known->crop_pct;
    snprintf(given.interpolation, sizeof given.interpolation, "bilinear");
    return merge(s, FILE_NAME, &given);
}

static att_status read_sources(search *s, const char *name, const att_option_values *flags)
{
    att_config given = att_config_none();
    if (flags)
        given.options = *flags;
    s->caller_gives_classes = att_options_find(&given.options, "num_classes");
    if (name)
        snprintf(given.name, sizeof given.name, "%s", name);
    ATT_TRY(merge(s, CALLER, &given));
    ATT_TRY(read_side_file(s, ARGUMENTS, att_config_read_args));
    ATT_TRY(read_side_file(s, CONFIG, att_config_read_json));
    const char *text = att_tensors_metadata(s->file, ATT_IDENTITY_KEY);
    if (!text) {
        ATT_TRY(read_metadata(s));
        return read_file_name(s);
    }
    given = att_config_none();
    char what[512];
    snprintf(what, sizeof what, "%s: its metadata", s->path);
    ATT_TRY(att_config_parse(s->context, what, text, &given));
    return merge(s, METADATA, &given);
}

/* --- unnamed networks --------------------------------------------------------------------------------------------- */

/* Whether a variant with the options `changes` (NULL: none) has the options found from the tensors. */
static bool fits(att_context *context, att_variant variant, const att_option_values *changes,
                 const att_option_values *found)
{
    att_option_values own, changed = changes ? *changes : att_options_none();
    att_preprocess preprocess;
    att_variant_defaults(&variant, changes, &own, &preprocess);
    att_options_fill(&changed, &own);
    att_option_values sized = *found;
    att_patches_adopt_size(&changed, &sized);
    return att_family_complete(context, variant.family, &changed) == ATT_OK && att_options_agree(&sized, &changed) &&
           att_placed_same(att_options_text(found, "modules"), att_options_text(&changed, "modules"));
}

/* Appends the names of the variants that fit with the options `changes`. */
static void list_fitting(const search *s, const att_option_values *changes, const att_option_values *found,
                         att_text *names)
{
    const att_family *family = family_of(s);
    for (int i = 0; i < att_variant_count(); i++) {
        att_variant variant = att_variant_at(i);
        if (variant.family == family && fits(s->context, variant, changes, found))
            att_text_append(names, "%s%s", names->length ? ", " : "", att_model_at(i).name);
    }
}

/* Returns the found options in which a file's network may differ from the named ones (att_option.differs_as). */
static att_option_values find_differing(const att_option_table *table, const att_option_values *found)
{
    att_option_values differing = att_options_none();
    for (int i = 0; i < table->count; i++)
        if (table->options[i].differs_as)
            att_option_copy(table->options[i].key, found, &differing);
    return differing;
}

/* The variants whose tensors fit: exactly, or for images of another size, or else with other values of some options. */
typedef struct nearest {
    /* found: options from the tensors. differing: those of `found` in which the file's network may differ from the
     * named networks. */
    att_option_values found, differing;
    att_text names;
    bool exact, resized; /* resized: exact but for the size of the images */
} nearest;

/* The caller frees n->names, also after a failure. */
static att_status find_nearest(const search *s, nearest *n)
{
    *n = (nearest){.names.context = s->context};
    ATT_TRY(recognise(s, &n->found));
    list_fitting(s, NULL, &n->found, &n->names);
    if (n->names.length == 0) {
        att_option_values any_size = n->found;
        att_options_unset(&any_size, "img_size");
        list_fitting(s, NULL, &any_size, &n->names);
        n->resized = n->names.length > 0;
    }
    n->exact = n->names.length > 0;
    if (n->exact)
        return ATT_OK;
    n->differing = find_differing(family_of(s)->options, &n->found);
    list_fitting(s, &n->differing, &n->found, &n->names);
    return ATT_OK;
}

/* Appends networks of timm's that attscope lacks and whose tensors are those of one of `names`. */
static void list_equivalents(const char *names, att_text *equivalents)
{
    att_timm_name timm;
    for (size_t at = 0; att_timm_next_name(&at, &timm);) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)timm.equivalent.length, timm.equivalent.bytes);
        const char *found = name[0] ? strstr(names, name) : NULL;
        if (found && (found == names || found[-1] == ' ') && strchr(",", found[strlen(name)]))
            att_text_append(equivalents, "%s%.*s",
                            equivalents->length ? ", "
                                                : ". timm's networks with the same tensors, which "
                                                  "attscope does not support: ",
                            (int)timm.name.length, timm.name.bytes);
    }
}

/* Appends the options that tensors do not show, or did not: " and the number of heads". */
static void list_unseen(const att_option_table *table, const att_option_values *found, att_text *words)
{
    for (int i = 0; i < table->count; i++)
        if (table->options[i].not_in_tensors && !att_options_find(found, table->options[i].key))
            att_text_append(words, " and %s", table->options[i].not_in_tensors);
}

/* unseen: from list_unseen() */
static att_status fail_nearest(const search *s, const nearest *n, const char *why, const char *found_text,
                               const char *equivalents, const char *unseen)
{
    const char *names = n->names.data;
    att_preprocess images = {0};
    char size[64] = "";
    att_options_size(&n->found, &images);
    if (n->resized && images.height > 0)
        snprintf(size, sizeof size, "for images of %d x %d pixels, ", images.height, images.width);
    if (n->exact)
        return att_fail(
            s->context, ATT_ERR_NOT_FOUND, "%s: %s; %sits tensors fit %s%s%s", s->path, why, size, names,
            strchr(names, ',')
                ? ", which may expect different images; name one of them"
                : "; give that name, or the name of a network with the same tensors that expects other images",
            equivalents);
    if (n->names.length)
        return att_fail(s->context, ATT_ERR_NOT_FOUND,
                        "%s: %s, and no named network has these tensors (%s); name the nearest, %s", s->path, why,
                        found_text, names);
    return att_fail(s->context, ATT_ERR_NOT_FOUND,
                    "%s: %s, and no named network has these tensors (%s); name the nearest one%s", s->path, why,
                    found_text, unseen);
}

static att_status fail_unnamed(const search *s)
{
    att_text found_text = {.context = s->context}, why = {.context = s->context}, equivalents = {.context = s->context},
             unseen = {.context = s->context};
    const att_option_table *table = family_of(s)->options;
    const att_option_values nothing = att_options_none();
    nearest n;
    att_status status = find_nearest(s, &n);
    if (s->unknown[0])
        att_text_append(&why, "%s names the network \"%s\", which is unknown here", s->unknown_from, s->unknown);
    else
        att_text_append(&why, "nothing says which network this is");
    if (status == ATT_OK)
        att_options_differences(&found_text, table, &n.found, &nothing);
    list_unseen(table, &n.found, &unseen);
    if (status == ATT_OK && n.exact && !n.names.failed)
        list_equivalents(n.names.data, &equivalents);
    if (status == ATT_OK && (equivalents.failed || n.names.failed || found_text.failed || why.failed || unseen.failed))
        status = att_fail_memory(s->context, 1024, "a message");
    else if (status == ATT_OK)
        status = fail_nearest(s, &n, why.data, found_text.data, equivalents.data ? equivalents.data : "",
                              unseen.data ? unseen.data : "");
    att_text_free(&unseen);
    att_text_free(&equivalents);
    att_text_free(&n.names);
    att_text_free(&found_text);
    att_text_free(&why);
    return status;
}

/* --- named networks ----------------------------------------------------------------------------------------------- */

static void disambiguate(const search *s, const att_family *family, const att_option_values *own,
                         att_option_values *found)
{
    if (family->disambiguate)
        family->disambiguate(s->file, &(att_known){&s->config.options, &s->from_file, own}, found);
}

/* Appends how the file's network may differ from the nearest named ones: " but for the module, the stem or the width".
 */
static void list_beside(const att_option_table *table, att_text *words)
{
    const char *before = " but for ", *last = NULL;
    for (int i = 0; i < table->count; i++) {
        if (!table->options[i].differs_as)
            continue;
        if (last) {
            att_text_append(words, "%s%s", before, last);
            before = ", ";
        }
        last = table->options[i].differs_as;
    }
    if (last)
        att_text_append(words, "%s%s", words->length ? " or " : before, last);
}

static att_status fail_other_tensors(const search *s, const nearest *n)
{
    bool by_caller = s->name_from == CALLER;
    att_text beside = {.context = s->context};
    if (!n->exact)
        list_beside(family_of(s)->options, &beside);
    att_status status =
        beside.failed
            ? att_fail_memory(s->context, 128, "a message")
            : att_fail(s->context, ATT_ERR_MISMATCH, "%s: its tensors are not those of %s%s%s%s; they fit %s%s",
                       s->path, s->config.name, by_caller ? "" : " (the name in ", by_caller ? "" : s->name_from,
                       by_caller ? "" : ")", n->names.data, beside.data ? beside.data : "");
    att_text_free(&beside);
    return status;
}

/* Refuses a name if the tensors fit another network but not this one. Images of any size are accepted, and so is a name
 * if the tensors fit no network: a later check reports that for the named family. */
static att_status check_name(const search *s, att_variant variant)
{
    nearest n;
    bool known = find_nearest(s, &n) == ATT_OK && !n.names.failed && n.names.length > 0;
    att_option_values changes = s->config.options, own;
    att_preprocess preprocess;
    att_variant_defaults(&variant, NULL, &own, &preprocess);
    if (known)
        disambiguate(s, family_of(s), &own, &n.found);
    att_options_unset(&n.found, "img_size");
    if (strcmp(att_options_text(&n.found, "modules"), "none") == 0)
        att_options_unset(&changes, "modules"); /* adding a module to the weights does not make another network */
    att_status status = ATT_OK;
    if (known && !fits(s->context, variant, &changes, &n.found) && !fits(s->context, variant, &n.differing, &n.found))
        status = fail_other_tensors(s, &n);
    att_text_free(&n.names);
    return status;
}

/* Sets *found to the options that the variant's family finds in the tensors, *own and *preprocess to the variant's
 * values. */
static att_status read_tensors(const search *s, const att_variant *variant, att_option_values *found,
                               att_option_values *own, att_preprocess *preprocess)
{
    *found = att_options_none();
    ATT_TRY(variant->family->recognise(s->context, s->file, found));
    att_variant_defaults(variant, found, own, preprocess);
    disambiguate(s, variant->family, own, found);
    att_patches_adopt_size(own, found);
    return ATT_OK;
}

/* Decides from the tensors whether there is a classifier: side files of networks without a head often give the number
 * of classes of another checkpoint. */
static void resolve_classes(const search *s, const att_option_values *found, att_option_values *options)
{
    for (int i = 0; i < att_tensors_count(s->file); i++)
        if (att_task_of_parameter(s->context, att_tensors_at(s->file, i).name))
            return; /* the task brings its own head */
    static const char key[] = "num_classes";
    bool headless = att_options_number(found, key, 1) == 0, given_headless = att_options_number(options, key, 1) == 0;
    if (!s->caller_gives_classes && att_options_find(found, key) && headless != given_headless)
        att_option_copy(key, found, options);
}

/* For options of which the tensors only show whether they are 0, takes the value of the variant. */
static void take_present_values(const att_option_table *table, const att_option_values *own, att_option_values *found)
{
    for (int i = 0; i < table->count; i++) {
        const char *key = table->options[i].key;
        if (table->options[i].compare_presence && att_options_number(found, key, 0) > 0 &&
            att_options_number(own, key, 0) > 0)
            att_option_copy(key, own, found);
    }
}

/* Sets the options that only the tensors determine. */
static att_status fit(const search *s, const att_family *family, att_option_values *options)
{
    att_settings_buffer settings;
    ATT_TRY(att_options_read(s->context, family->options, options, &settings));
    ATT_TRY(family->fit(s->context, s->file, &settings));
    att_options_write(family->options, &settings, options);
    return ATT_OK;
}

static att_status resolve_options(const search *s, const att_variant *variant, att_option_values found,
                                  const att_option_values *own, att_option_values *options)
{
    const att_family *family = variant->family;
    *options = s->config.options;
    resolve_classes(s, &found, options);
    ATT_TRY(att_family_check(s->context, family, options));
    const char *modules = att_options_text(&found, "modules");
    ATT_TRY(att_placed_complete(s->context, *modules ? modules : att_options_text(own, "modules"), options));
    if (family->check_undetermined)
        ATT_TRY(family->check_undetermined(s->context, s->file,
                                           &(att_option_sources){s->path, s->config.name, options, &found, own}));
    take_present_values(family->options, own, &found);
    att_options_fill(options, &found);
    att_options_fill(options, own);
    att_options_drop_training(options);
    /* Values found from tensors are not trusted either. */
    if (att_family_check(s->context, family, options) != ATT_OK)
        return att_fail(s->context, ATT_ERR_FORMAT,
                        "%s: its tensors have dimensions that no model of attscope can have", s->path);
    ATT_TRY(att_family_complete(s->context, family, options));
    return family->fit ? fit(s, family, options) : ATT_OK;
}

static void resolve_preprocess(const search *s, att_preprocess *preprocess, const att_option_values *options)
{
    att_options_size(options, preprocess);
    att_config_apply(&s->config, preprocess);
}

/* The source of an option's value. found: from the tensors, which decide about num_classes even if it is given. */
static const char *source_of(const search *s, const att_option *option, const att_option_values *options,
                             const att_option_values *found)
{
    const char *from = provider_of(s, option->key);
    bool is_found = att_option_same(option, options, found);
    if (from && (!is_found || att_option_same(option, options, &s->config.options)))
        return from;
    return is_found ? TENSORS : IMPLIED;
}

/* Appends `before` and the options of a source that differ from the variant's; nothing if there are none. */
static void append_source(const search *s, const char *from, const char *before, const att_option_values *options,
                          const att_option_values *found, const att_option_values *own, att_text *text)
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
static void append_sources(const search *s, const att_option_values *options, const att_option_values *found,
                           const att_option_values *own, att_text *text)
{
    static const char *const sources[] = {CALLER,      ARGUMENTS, CONFIG,  METADATA, ARCHITECTURE,
                                          DESCRIPTION, FILE_NAME, TENSORS, IMPLIED};
    char before[96];
    append_source(s, s->name_from, " with ", options, found, own, text);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        snprintf(before, sizeof before, "; %s: ", sources[i]);
        if (sources[i] != s->name_from)
            append_source(s, sources[i], before, options, found, own, text);
    }
}

static att_status describe(const search *s, const att_option_values *own, const att_option_values *found,
                           att_identity *identity)
{
    att_text text = {.context = s->context}, brief = {.context = s->context};
    const char *preprocess_from = s->preprocess_from ? s->preprocess_from : VARIANT;
    const char *notes = s->notes.data ? s->notes.data : "", *tag = s->named.tag;
    att_text_append(&text, "architecture: %s (%s%s%s)", s->name_from, identity->name, *tag ? "." : "", tag);
    append_sources(s, &identity->options, found, own, &text);
    att_text_append(&text, "; preprocessing: %s%s", preprocess_from, notes);
    if (*att_tensors_origin(s->file))
        att_text_append(&text, "; weights: %s", att_tensors_origin(s->file));
    att_text_append(&brief, "%s%s%s", s->name_from, *tag ? ", pretrained tag " : "", tag);
    if (strcmp(preprocess_from, s->name_from) != 0)
        att_text_append(&brief, "; preprocessing: %s", preprocess_from);
    if (*att_tensors_origin(s->file))
        att_text_append(&brief, "; weights: %s", att_tensors_origin(s->file));
    att_text_append(&brief, "%s", notes);
    bool failed = text.failed || brief.failed || s->notes.failed;
    if (!failed) {
        snprintf(identity->origin, sizeof identity->origin, "%s", text.data);
        snprintf(identity->brief, sizeof identity->brief, "%s", brief.data);
    }
    att_text_free(&text);
    att_text_free(&brief);
    return failed ? att_fail_memory(s->context, sizeof identity->origin, "a message") : ATT_OK;
}

/* Returns the file's value of a text option unless the caller gives another; "" if there is none. */
static const char *left_to_file(const search *s, const char *key)
{
    const char *by_file = att_options_text(&s->from_file, key);
    return strcmp(by_file, att_options_text(&s->config.options, key)) == 0 ? by_file : "";
}

/* Refuses a network with modules or tasks that another program had registered and this context lacks. */
static att_status check_registered(const search *s)
{
    static const char refusal[] =
        "%s: its network has the %s \"%s\", which is neither built in nor registered with this context (%s)";
    const char *task = left_to_file(s, "task");
    char module[ATT_OPTION_TEXT_BYTES];
    att_task_info info;
    if (att_modules_find_missing(s->context, left_to_file(s, "modules"), module, sizeof module))
        return att_fail(s->context, ATT_ERR_UNSUPPORTED, refusal, s->path, "module", module, "att_module_register()");
    if (*task && att_task_find(s->context, task, &info) != ATT_OK)
        return att_fail(s->context, ATT_ERR_UNSUPPORTED, refusal, s->path, "task", task, "att_task_register()");
    return ATT_OK;
}

static att_status identify(search *s, const char *name, const att_option_values *flags, att_identity *identity)
{
    ATT_TRY(read_sources(s, name, flags));
    ATT_TRY(check_registered(s));
    if (!s->config.name[0])
        return fail_unnamed(s);
    att_variant variant = s->variant;
    if (s->name_from != METADATA) /* attscope's metadata gives every option */
        ATT_TRY(check_name(s, variant));
    att_identity made = {0};
    att_option_values found, own;
    snprintf(made.name, sizeof made.name, "%s", s->named.network);
    ATT_TRY(read_tensors(s, &variant, &found, &own, &made.preprocess));
    att_status status = resolve_options(s, &variant, found, &own, &made.options);
    if (status != ATT_OK)
        return status == ATT_ERR_NOT_FOUND ? ATT_ERR_ARGUMENT : status; /* NOT_FOUND: an unknown network */
    resolve_preprocess(s, &made.preprocess, &made.options);
    made.test_height = s->config.test_height;
    made.test_width = s->config.test_width;
    made.test_crop_pct = s->config.test_crop_pct;
    ATT_TRY(att_family_complete(s->context, variant.family, &own));
    ATT_TRY(describe(s, &own, &found, &made));
    if (flags)
        att_family_note_ignored(s->context, variant.family, flags, &made.options);
    *identity = made;
    return ATT_OK;
}

static att_status search_network(att_context *context, const att_tensors *file, const char *path, const char *name,
                                 const att_option_values *flags, att_identity *identity)
{
    search s = {.context = context,
                .file = file,
                .path = path ? path : att_tensors_path(file),
                .config = att_config_none(),
                .from_file = att_options_none(),
                .notes.context = context};
    att_status status = identify(&s, name, flags, identity);
    att_text_free(&s.notes);
    return status;
}

/* Invalid options are reported as the caller's error only if the file is valid without the caller's options. */
att_status att_model_identify(att_context *context, const att_tensors *file, const char *path, const char *name,
                              const att_option_values *flags, att_identity *identity)
{
    att_identity unused;
    char message[512];
    ATT_TRY(att_require(context, file, "the file to identify"));
    att_status status = search_network(context, file, path, name, flags, identity);
    if (status != ATT_ERR_ARGUMENT)
        return status;
    snprintf(message, sizeof message, "%s", att_context_message(context));
    if (search_network(context, file, path, name, NULL, &unused) != ATT_ERR_ARGUMENT)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s", message);
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "%s: the network that the file and its side files describe cannot be built: %s",
                    path ? path : att_tensors_path(file), message);
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

static void write_channels(att_json_writer *writer, const char *key, const double *values, int count)
{
    att_json_key(writer, key);
    att_json_begin_array(writer);
    for (int i = 0; i < count; i++)
        att_json_number(writer, values[i]);
    att_json_end_array(writer);
}

att_status att_model_identity_text(att_context *context, const att_identity *identity, char *text, size_t size)
{
    att_json_writer *writer;
    att_variant variant;
    ATT_TRY(att_variant_find(context, identity->name, &variant));
    ATT_TRY(att_json_writer_create(context, false, &writer));
    att_json_begin_object(writer);
    att_json_key(writer, "model");
    att_json_string(writer, identity->name);
    att_options_write_json(writer, variant.family->options, &identity->options);
    write_channels(writer, "mean", identity->preprocess.mean, identity->preprocess.in_chans);
    write_channels(writer, "std", identity->preprocess.std, identity->preprocess.in_chans);
    att_json_key(writer, "crop_pct");
    att_json_number(writer, identity->preprocess.crop_pct);
    att_json_key(writer, "crop_mode");
    att_json_string(writer, identity->preprocess.crop_mode);
    att_json_key(writer, "interpolation");
    att_json_string(writer, identity->preprocess.interpolation);
    att_json_end_object(writer);
    const char *made;
    size_t length;
    att_status status = att_json_writer_finish(writer, &made, &length);
    if (status == ATT_OK && length >= size)
        status =
            att_fail(context, ATT_ERR_ARGUMENT, "a model's identity takes %zu bytes, there are %zu", length + 1, size);
    if (status == ATT_OK)
        memcpy(text, made, length + 1);
    att_json_writer_destroy(&writer);
    return status;
}

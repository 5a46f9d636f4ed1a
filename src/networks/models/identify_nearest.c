/* The named networks that a file's tensors fit, and errors that name them. */
#include "networks/models/identify.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "networks/models/patches.h"
#include "networks/models/timm.h"

static const att_family *family_of(const att_identification *s)
{
    return att_family_nearest(s->context, s->file);
}

att_status att_identify_recognise(const att_identification *s, att_option_values *found)
{
    ATT_TRY(att_family_check_tensors(s->context, s->file));
    return att_family_recognise(s->context, family_of(s), s->file, found);
}

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
static void list_fitting(const att_identification *s, const att_option_values *changes, const att_option_values *found,
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
static att_status find_nearest(const att_identification *s, nearest *n)
{
    *n = (nearest){.names.context = s->context};
    ATT_TRY(att_identify_recognise(s, &n->found));
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

/* How a caller names the network. */
#define NAME_IT "(--model NAME; model in Python, att_network_options.model in C)"

/* unseen: from list_unseen() */
static att_status fail_nearest(const att_identification *s, const nearest *n, const char *why, const char *found_text,
                               const char *equivalents, const char *unseen)
{
    const char *names = n->names.data;
    att_preprocess images = {0};
    char size[64] = "";
    att_options_size(&n->found, &images);
    if (n->resized && images.height > 0)
        snprintf(size, sizeof size, "for images of %d x %d pixels, ", images.height, images.width);
    if (n->exact)
        return att_fail(s->context, ATT_ERR_NOT_FOUND, "%s: %s; %sits tensors fit %s%s%s", s->path, why, size, names,
                        strchr(names, ',') ? ", which may expect different images; name one of them " NAME_IT
                                           : "; give that name " NAME_IT
                                             ", or that of another network with these tensors, whose images differ",
                        equivalents);
    if (n->names.length)
        return att_fail(s->context, ATT_ERR_NOT_FOUND,
                        "%s: %s, and no named network has these tensors (%s); name the nearest, %s " NAME_IT, s->path,
                        why, found_text, names);
    return att_fail(s->context, ATT_ERR_NOT_FOUND,
                    "%s: %s, and no named network has these tensors (%s); name the nearest one%s " NAME_IT, s->path,
                    why, found_text, unseen);
}

att_status att_identify_fail_unnamed(const att_identification *s)
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
        att_text_append(&why, "the file does not say which network it is of");
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

static att_status fail_other_tensors(const att_identification *s, const nearest *n)
{
    bool by_caller = s->name_from == att_from_caller;
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

att_status att_identify_check_name(const att_identification *s, att_variant variant)
{
    nearest n;
    bool known = find_nearest(s, &n) == ATT_OK && !n.names.failed && n.names.length > 0;
    att_option_values changes = s->config.options, own;
    att_preprocess preprocess;
    att_variant_defaults(&variant, NULL, &own, &preprocess);
    if (known)
        att_identify_disambiguate(s, family_of(s), &own, &n.found);
    att_options_unset(&n.found, "img_size");
    if (strcmp(att_options_text(&n.found, "modules"), "none") == 0)
        att_options_unset(&changes, "modules"); /* adding a module to the weights does not make another network */
    att_status status = ATT_OK;
    if (known && !fits(s->context, variant, &changes, &n.found) && !fits(s->context, variant, &n.differing, &n.found))
        status = fail_other_tensors(s, &n);
    att_text_free(&n.names);
    return status;
}

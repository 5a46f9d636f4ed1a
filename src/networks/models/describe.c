#include "networks/models/describe.h"

#include <stdio.h>
#include <string.h>

#include <attscope/models.h>
#include <attscope/task.h>

/* Whether the task has a head of its own instead of the classifier. */
static bool has_own_head(const att_context *context, const char *task)
{
    for (int t = 0; t < att_task_count(context); t++)
        if (strcmp(att_task_at(context, t).name, task) == 0)
            return att_task_at(context, t).head_scope != NULL;
    return false;
}

char *att_head_describe(const att_context *context, const att_option_values *options, char text[ATT_HEAD_TEXT])
{
    const att_option_values none = att_options_none();
    options = options ? options : &none;
    int classes = (int)att_options_number(options, "num_classes", 0);
    const char *task = att_options_text(options, "task"), *kind = att_options_text(options, "head");
    if (classes == 0)
        snprintf(text, ATT_HEAD_TEXT, "no head");
    else if (has_own_head(context, task))
        snprintf(text, ATT_HEAD_TEXT, "task %s%s%s", task, *kind ? ", head " : "", kind);
    else
        snprintf(text, ATT_HEAD_TEXT, "%d class%s", classes, classes == 1 ? "" : "es");
    return text;
}

/* Returns the value of an option that adds something; "" if it is not given or "none". */
static const char *added(const att_option_values *options, const char *key)
{
    const char *text = att_options_text(options, key);
    return strcmp(text, "none") == 0 ? "" : text;
}

char *att_additions_describe(const att_option_values *options, char text[ATT_ADDITIONS_TEXT])
{
    const char *modules = added(options, "modules"), *layer = added(options, "extra_layer");
    snprintf(text, ATT_ADDITIONS_TEXT, "%s%s%s%.12s", modules, *modules && *layer ? ", " : "",
             *layer ? "extra layer " : "", layer);
    return text;
}

/* Lists the changed settings: "; --mean, --std: as given"; "" if there are none. */
static char *name_changes(const att_preprocess *own, const att_preprocess *taken, char *text, size_t size)
{
    const size_t channels = (size_t)own->in_chans * sizeof *own->mean;
    const struct {
        const char *flag;
        bool differs;
    } all[] = {{"--mean", memcmp(taken->mean, own->mean, channels) != 0},
               {"--std", memcmp(taken->std, own->std, channels) != 0},
               {"--crop-pct", taken->crop_pct != own->crop_pct},
               {"--crop-mode", strcmp(taken->crop_mode, own->crop_mode) != 0},
               {"--interpolation", strcmp(taken->interpolation, own->interpolation) != 0}};
    char flags[96] = "";
    size_t length = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].differs && length < sizeof flags)
            length += (size_t)snprintf(flags + length, sizeof flags - length, "%s%s", length ? ", " : "", all[i].flag);
    snprintf(text, size, length ? "; %s: as given" : "%s", flags);
    return text;
}

char *att_identity_describe(const att_context *context, const att_identity *identity, const att_preprocess *taken,
                            char text[ATT_IDENTITY_DESCRIPTION])
{
    const att_preprocess *own = &identity->preprocess;
    taken = taken ? taken : own;
    char sides[48] = "", changes[128], head[ATT_HEAD_TEXT], additions[ATT_ADDITIONS_TEXT];
    att_additions_describe(&identity->options, additions);
    if (own->in_chans > 0)
        snprintf(sides, sizeof sides, "%d x %d x %d, ", own->height, own->width, own->in_chans);
    snprintf(text, ATT_IDENTITY_DESCRIPTION, "%s, %s%s%s%s%s%s%s", identity->name, sides,
             att_head_describe(context, &identity->options, head), *additions ? ", " : "", additions,
             *identity->brief ? "; network: " : "", identity->brief, name_changes(own, taken, changes, sizeof changes));
    return text;
}

/* The definition of a sweep: what all its workers must agree on. Its keys are options of the command ("--seeds") and
 * settings of the training ("lr"); the training has a setting "measure", too. */
#include <stdio.h>
#include <string.h>

#include <attscope/lab/flags.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "lab/runs/sweep/plan.h"

static const char images[] = "images";

static void put(att_json_writer *writer, const char *key, const att_text *text)
{
    att_json_put_string(writer, key, text->data ? text->data : "");
}

static void start(att_text *text)
{
    text->length = 0;
    att_text_append(text, "%s", "");
}

static void put_texts(att_json_writer *writer, att_text *text, const char *key, const char *const *texts, int count)
{
    start(text);
    for (int i = 0; i < count; i++)
        att_text_append(text, "%s%s", i > 0 ? " " : "", texts[i]);
    put(writer, key, text);
}

static void put_seeds(att_json_writer *writer, att_text *text, const att_sweep_options *options)
{
    start(text);
    for (int i = 0; i < options->seed_count; i++)
        att_text_append(text, "%s%llu", i > 0 ? "," : "", (unsigned long long)options->seeds[i]);
    put(writer, "--seeds", text);
}

static void put_pairs(att_json_writer *writer, att_text *text, const att_sweep_options *options)
{
    start(text);
    for (int i = 0; i < options->pair_count; i++)
        att_text_append(text, "%s%s,%s", i > 0 ? " " : "", options->pairs[i].x, options->pairs[i].y);
    put(writer, "--correlate", text);
}

/* The settings of the training. plan->recipe: that of the first run. */
static void put_settings(att_json_writer *writer, att_text *text, const att_sweep_plan *plan)
{
    char key[ATT_SWEEP_FLAG], numbers[ATT_MOST_REALS][ATT_FLAG_VALUE_BYTES];
    const char *values[ATT_MOST_REALS];
    for (int i = 0; i < att_flags_count(plan->flags); i++) {
        const att_flag_place place = att_flags_at(plan->flags, i);
        snprintf(key, sizeof key, "%s", place.flag->name);
        for (char *c = key; *c; c++)
            *c = *c == '-' ? '_' : *c;
        if (!place.flag->once && !att_plan_sets_flag(key) && !att_plan_may_change(key))
            put_texts(writer, text, key, values, att_flag_format(&place, &plan->recipe, numbers, values));
    }
}

att_status att_plan_write_definition(att_sweep_plan *plan, att_json_writer *writer)
{
    const att_sweep_options *options = &plan->options;
    att_text text = {.context = plan->context};
    ATT_TRY(att_plan_build_recipe(plan, &plan->runs[0]));
    att_json_begin_object(writer);
    put_texts(writer, &text, "--vary", options->vary, options->vary_count);
    put_seeds(writer, &text, options);
    put_texts(writer, &text, "--measure", &plan->measure, 1);
    put_pairs(writer, &text, options);
    put_settings(writer, &text, plan);
    put_texts(writer, &text, images, &(const char *){plan->listing}, 1);
    att_json_end_object(writer);
    att_status status = text.failed ? att_fail_memory(plan->context, text.length, "the definition of a sweep") : ATT_OK;
    att_text_free(&text);
    return status;
}

static const char *describe(const char *value)
{
    return *value ? value : "no value";
}

/* own: this plan's definition, parsed. */
static att_status compare(const att_sweep_plan *plan, json_t *own, const json_t *other)
{
    const char *key;
    json_t *member;
    json_object_foreach(own, key, member)
    {
        const char *mine = json_string_value(member), *theirs = json_string_value(json_object_get(other, key));
        theirs = theirs ? theirs : "";
        if (strcmp(mine, theirs) == 0)
            continue;
        if (strcmp(key, images) != 0)
            return att_fail(
                plan->context, ATT_ERR_MISMATCH,
                "%s: workers are at work here with %s: %s, this sweep has %s; wait for them, or use another "
                "--experiment",
                plan->folder, key, describe(theirs), describe(mine));
        if (*mine && *theirs) /* otherwise one of the workers had no reason to open the images */
            return att_fail(plan->context, ATT_ERR_MISMATCH,
                            "%s: workers are at work here with other images than %s has; use another --experiment",
                            plan->folder, plan->recipe.data.data_dir);
    }
    return ATT_OK;
}

att_status att_plan_compare_definition(att_sweep_plan *plan, const json_t *other)
{
    att_json_writer *writer;
    json_t *own = NULL;
    const char *text;
    size_t length;
    ATT_TRY(att_json_writer_create(plan->context, false, &writer));
    att_status status = att_plan_write_definition(plan, writer);
    if (status == ATT_OK)
        status = att_json_writer_finish(writer, &text, &length);
    if (status == ATT_OK)
        status = att_json_parse(plan->context, "the definition of a sweep", text, length, &own);
    if (status == ATT_OK)
        status = compare(plan, own, other);
    json_decref(own);
    att_json_writer_destroy(&writer);
    return status;
}

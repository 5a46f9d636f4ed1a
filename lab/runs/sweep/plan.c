#include "lab/runs/sweep/plan.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "lab/runs/recipe/recipe.h"
#include "lab/runs/records/folder.h"

/* --- options ------------------------------------------------------------------------------------------------------ */

bool att_plan_sets_flag(const char *flag)
{
    static const char *const names[] = {"seed", "output", "experiment", "resume", "config", "json", "data-dir", "data"};
    char dashed[ATT_SWEEP_FLAG];
    snprintf(dashed, sizeof dashed, "%s", flag);
    for (char *c = dashed; *c; c++)
        if (*c == '_')
            *c = '-';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(dashed, names[i]) == 0)
            return true;
    return false;
}

/* Splits the text at commas that have no backslash before them. Returns the number of parts; -1 if it exceeds `most`.
 */
static int split(char *text, const char **parts, int most)
{
    int count = 0;
    char *to = text;
    parts[count++] = to;
    for (const char *from = text; *from; from++) {
        if (*from == '\\' && from[1] == ',')
            *to++ = *++from;
        else if (*from != ',')
            *to++ = *from;
        else if (count == most)
            return -1;
        else {
            *to++ = '\0';
            parts[count++] = to;
        }
    }
    *to = '\0';
    return count;
}

/* Returns whether two names mean the same flag of the training: "weight-decay", "weight_decay", or an alias. */
static bool is_same_flag(const att_sweep_plan *plan, const char *a, const char *b)
{
    const att_flag *flag = att_flags_find(plan->flags, a).flag;
    return flag ? flag == att_flags_find(plan->flags, b).flag : strcmp(a, b) == 0;
}

/* Returns the earlier axis for the same flag, or NULL. */
static const att_sweep_axis *find_axis(const att_sweep_plan *plan, const att_sweep_axis *axes, int count,
                                       const char *flag)
{
    for (int i = 0; i < count; i++)
        if (is_same_flag(plan, axes[i].flag, flag))
            return &axes[i];
    return NULL;
}

/* Splits "FLAG=VALUE" and removes dashes before FLAG. option: "--vary" or "--set", for messages. */
static att_status read_flag(att_sweep_plan *plan, const char *option, const char *text, att_sweep_axis *axis,
                            char **value)
{
    const char *name = text + strspn(text, "-"), *equals = strchr(name, '=');
    if (!equals || equals == name || equals - name >= ATT_SWEEP_FLAG)
        return att_fail(plan->context, ATT_ERR_ARGUMENT, "%s: \"%s\" is not of the form FLAG=VALUE", option, text);
    snprintf(axis->flag, sizeof axis->flag, "%.*s", (int)(equals - name), name);
    if (is_same_flag(plan, axis->flag, "data-dir"))
        return att_fail(plan->context, ATT_ERR_ARGUMENT,
                        "%s: all runs of a sweep have the data set DATA, the operand after the recipe; leave %s out",
                        option, axis->flag);
    if (att_plan_sets_flag(axis->flag))
        return att_fail(plan->context, ATT_ERR_ARGUMENT,
                        "%s: a sweep sets --%s for each run (see --seeds, --output, --experiment and DATA)", option,
                        axis->flag);
    *value = att_arena_string(&plan->texts, equals + 1);
    return *value ? ATT_OK : att_fail_memory(plan->context, strlen(equals), "the values of a sweep");
}

static att_status read_axis(att_sweep_plan *plan, const char *text)
{
    if (plan->axis_count == ATT_SWEEP_AXES)
        return att_fail(plan->context, ATT_ERR_ARGUMENT, "--vary is given more than %d times", (int)ATT_SWEEP_AXES);
    att_sweep_axis *axis = &plan->axes[plan->axis_count];
    char *values;
    ATT_TRY(read_flag(plan, "--vary", text, axis, &values));
    if (find_axis(plan, plan->axes, plan->axis_count, axis->flag))
        return att_fail(plan->context, ATT_ERR_ARGUMENT, "--vary: %s is varied twice; one list holds all its values",
                        axis->flag);
    axis->count = split(values, axis->values, ATT_SWEEP_VALUES);
    if (axis->count < 0)
        return att_fail(plan->context, ATT_ERR_ARGUMENT, "--vary: %s has more than %d values", axis->flag,
                        (int)ATT_SWEEP_VALUES);
    plan->axis_count++;
    return ATT_OK;
}

static att_status read_set(att_sweep_plan *plan, const char *text)
{
    if (plan->set_count == ATT_MOST_TEXTS)
        return att_fail(plan->context, ATT_ERR_ARGUMENT, "--set is given more than %d times", (int)ATT_MOST_TEXTS);
    att_sweep_axis *set = &plan->sets[plan->set_count];
    char *value;
    ATT_TRY(read_flag(plan, "--set", text, set, &value));
    if (find_axis(plan, plan->sets, plan->set_count, set->flag))
        return att_fail(plan->context, ATT_ERR_ARGUMENT, "--set: %s is set twice; expected one value", set->flag);
    if (find_axis(plan, plan->axes, plan->axis_count, set->flag))
        return att_fail(plan->context, ATT_ERR_ARGUMENT, "--set: %s is also varied; use --vary or --set for a flag",
                        set->flag);
    set->values[0] = value;
    set->count = 1;
    plan->set_count++;
    return ATT_OK;
}

static att_status check_seeds(const att_sweep_plan *plan)
{
    const att_sweep_options *o = &plan->options;
    if (o->seed_count < 1 || o->seed_count > ATT_SWEEP_MOST_RUNS)
        return att_fail(plan->context, ATT_ERR_ARGUMENT, "a sweep of %d seeds; expected 1 to %d", o->seed_count,
                        (int)ATT_SWEEP_MOST_RUNS);
    for (int i = 0; i < o->seed_count; i++)
        for (int k = 0; k < i; k++)
            if (o->seeds[i] == o->seeds[k])
                return att_fail(plan->context, ATT_ERR_ARGUMENT, "--seeds: %llu is named twice",
                                (unsigned long long)o->seeds[i]);
    return ATT_OK;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static bool append(char name[ATT_SWEEP_NAME], const char *text)
{
    size_t length = strlen(name);
    if (length + strlen(text) >= ATT_SWEEP_NAME)
        return false;
    strcpy(name + length, text);
    return true;
}

/* Replaces characters that should not occur in the name of a folder. */
static void make_plain(char *name)
{
    for (; *name; name++) {
        bool fine = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                    (*name >= '0' && *name <= '9') || strchr("._=+-,", *name);
        if (!fine)
            *name = '_';
    }
}

/* "cifar10-quick" of "recipes/cifar10-quick.yaml" */
static bool append_recipe(const char *path, char name[ATT_SWEEP_NAME])
{
    char plain[ATT_SWEEP_NAME];
    snprintf(plain, sizeof plain, "%s", att_path_last(path));
    char *dot = strrchr(plain, '.');
    if (dot && dot > plain)
        *dot = '\0';
    return append(name, plain);
}

static att_status name_folder(att_sweep_plan *plan)
{
    const att_sweep_options *o = &plan->options;
    const att_run_place place = {.output = o->output, .experiment = o->experiment};
    char name[ATT_SWEEP_NAME] = "";
    ATT_TRY(att_run_place_check(plan->context, &place));
    if (!o->experiment && !append_recipe(o->recipe, name))
        return att_fail(plan->context, ATT_ERR_ARGUMENT,
                        "the recipe's name is too long for a folder name; give --experiment NAME");
    make_plain(name);
    return att_path_join(plan->context, o->output, o->experiment ? o->experiment : name, plan->folder,
                         sizeof plan->folder);
}

static bool name_setting(const att_sweep_plan *plan, att_plan_run *run)
{
    bool fits = plan->axis_count > 0 || append_recipe(plan->options.recipe, run->setting);
    for (int i = 0; fits && i < plan->axis_count; i++)
        fits = (i == 0 || append(run->setting, ",")) && append(run->setting, plan->axes[i].flag) &&
               append(run->setting, "=") && append(run->setting, plan->axes[i].values[run->choice[i]]);
    return fits;
}

static att_status name_run(const att_sweep_plan *plan, att_plan_run *run)
{
    if (!name_setting(plan, run))
        return att_fail(plan->context, ATT_ERR_ARGUMENT, "--vary: the values are too long for a folder name");
    snprintf(run->name, sizeof run->name, "%s-seed%llu", run->setting, (unsigned long long)run->seed);
    make_plain(run->name);
    for (const att_plan_run *earlier = plan->runs; earlier < run; earlier++)
        if (strcmp(earlier->name, run->name) == 0)
            return att_fail(plan->context, ATT_ERR_ARGUMENT, "--vary: two settings would share the folder %s",
                            run->name);
    return att_path_join(plan->context, plan->folder, run->name, run->folder, sizeof run->folder);
}

/* --- the runs ----------------------------------------------------------------------------------------------------- */

/* Seeds vary fastest, so that the runs of a setting follow each other. */
static att_status make_runs(att_sweep_plan *plan)
{
    const int seeds = plan->options.seed_count;
    long count = seeds;
    for (int i = 0; i < plan->axis_count && count <= ATT_SWEEP_MOST_RUNS; i++)
        count *= plan->axes[i].count;
    if (count > ATT_SWEEP_MOST_RUNS)
        return att_fail(plan->context, ATT_ERR_ARGUMENT, "a sweep of more than %d runs", (int)ATT_SWEEP_MOST_RUNS);
    ATT_TRY(att_new(plan->context, &plan->runs, (size_t)count, "the runs of a sweep"));
    for (plan->run_count = 0; plan->run_count < count; plan->run_count++) {
        att_plan_run *run = &plan->runs[plan->run_count];
        int rest = plan->run_count / seeds;
        run->seed = plan->options.seeds[plan->run_count % seeds];
        run->status = "waiting";
        run->lease = "";
        for (int i = plan->axis_count - 1; i >= 0; i--) {
            run->choice[i] = rest % plan->axes[i].count;
            rest /= plan->axes[i].count;
        }
        ATT_TRY(name_run(plan, run));
    }
    return ATT_OK;
}

att_status att_plan_build_recipe(att_sweep_plan *plan, const att_plan_run *run)
{
    att_recipe *r = &plan->recipe;
    att_flags_default(plan->flags, r);
    ATT_TRY(att_flags_read(plan->flags, plan->options.recipe, plan->yaml, r, &plan->ignored));
    for (int i = 0; i < plan->set_count; i++)
        ATT_TRY(att_flags_set(plan->flags, plan->sets[i].flag, plan->sets[i].values[0], r));
    for (int i = 0; i < plan->axis_count; i++)
        ATT_TRY(att_flags_set(plan->flags, plan->axes[i].flag, plan->axes[i].values[run->choice[i]], r));
    ATT_TRY(att_flags_complete(plan->flags, r));
    if (plan->options.data)
        r->data.data_dir = plan->options.data;
    r->train.seed = run->seed;
    r->files.output = plan->folder;
    r->files.experiment = run->name;
    r->files.resume = NULL;
    if (r->data.data_dir && *r->data.data_dir)
        return ATT_OK;
    return att_fail(plan->context, ATT_ERR_ARGUMENT, "sweep needs DATA: %s names none", plan->options.recipe);
}

/* --- settings with the same meaning ------------------------------------------------------------------------------- */

/* *run: the first run of an earlier setting with the same meaning as plan->recipe, or NULL. kept: the recipes of the
 * `count` earlier settings, whose runs are the first in plan->runs. */
static att_status find_same(const att_sweep_plan *plan, const att_recipe *kept, int count, const att_plan_run **run)
{
    bool same = false;
    *run = NULL;
    for (int i = 0; i < count && !same; i++) {
        ATT_TRY(att_recipes_same(plan, &kept[i], &plan->recipe, &same));
        if (same)
            *run = &plan->runs[i * plan->options.seed_count];
    }
    return ATT_OK;
}

/* Builds the recipe of every setting and drops settings that repeat another one. kept: has room for all recipes. */
static att_status keep_distinct(att_sweep_plan *plan, att_recipe *kept)
{
    const int seeds = plan->options.seed_count;
    int count = 0;
    for (int i = 0; i < plan->run_count; i += seeds) {
        att_plan_run *runs = &plan->runs[i];
        const att_plan_run *same;
        ATT_TRY(att_plan_build_recipe(plan, runs));
        ATT_TRY(find_same(plan, kept, count, &same));
        if (same) {
            att_log(plan->context, ATT_LOG_INFO, "%s is the same setting as %s; it runs once", runs->setting,
                    same->setting);
            continue;
        }
        memmove(&plan->runs[count * seeds], runs, (size_t)seeds * sizeof *runs);
        kept[count++] = plan->recipe;
    }
    plan->run_count = count * seeds;
    return ATT_OK;
}

static att_status drop_duplicates(att_sweep_plan *plan)
{
    size_t settings = (size_t)(plan->run_count / plan->options.seed_count);
    att_recipe *kept;
    ATT_TRY(att_new(plan->context, &kept, settings, "the settings of a sweep"));
    att_status status = keep_distinct(plan, kept);
    att_free(plan->context, kept);
    return status;
}

/* Logs the settings, so that users see how commas and combinations were understood. */
static void log_settings(const att_sweep_plan *plan)
{
    const int seeds = plan->options.seed_count, count = plan->run_count / seeds;
    if (plan->axis_count == 0)
        return;
    att_log(plan->context, ATT_LOG_INFO,
            "%d setting%s with %d seed%s each (a comma separates the values of --vary; write \\, for a comma within a "
            "value):",
            count, count == 1 ? "" : "s", seeds, seeds == 1 ? "" : "s");
    for (int i = 0; i < plan->run_count; i += seeds)
        att_log(plan->context, ATT_LOG_INFO, "  %s", plan->runs[i].setting);
}

att_status att_plan_lay_out(att_sweep_plan *plan)
{
    const att_sweep_options *o = &plan->options;
    ATT_TRY(name_folder(plan));
    ATT_TRY(check_seeds(plan));
    ATT_TRY(att_recipe_flags(plan->context, &plan->flags));
    for (int i = 0; i < o->vary_count; i++)
        ATT_TRY(read_axis(plan, o->vary[i]));
    for (int i = 0; i < o->set_count; i++)
        ATT_TRY(read_set(plan, o->set[i]));
    ATT_TRY(att_yaml_read(plan->context, o->recipe, &plan->yaml));
    ATT_TRY(make_runs(plan));
    ATT_TRY(drop_duplicates(plan));
    att_ignored_flags_log(plan->context, &plan->ignored);
    log_settings(plan);
    for (int i = 0; i < plan->run_count; i++)
        plan->runs[i].measure = plan->measure;
    return ATT_OK;
}

/* Checks of data, networks and instruments before the first run of a sweep. */
#include <stdio.h>
#include <string.h>

#include <attscope/measure.h>

#include "base/core/error.h"
#include "base/io/file.h"
#include "data/dataset.h"
#include "lab/report/sweep.h"
#include "lab/runs/recipe/network.h"
#include "lab/runs/recipe/recipe.h"
#include "lab/runs/records/instruments.h"
#include "lab/runs/sweep/plan.h"

/* --- data --------------------------------------------------------------------------------------------------------- */

/* The data sets of a setting, as opened by open_data(). */
typedef struct opened_data {
    att_recipe_data data;              /* the data that were opened last; zero: none */
    int classes;                       /* number of classes of the training images */
    char listing[ATT_DATASET_LISTING]; /* digest of the training images */
    att_dataset *measured;
} opened_data;

/* Opens a split. trained: the data set whose class numbers are used; NULL: the split numbers its own classes. */
static att_status open_split(att_context *context, const att_recipe *recipe, const char *split,
                             const att_dataset *trained, att_dataset **dataset)
{
    att_dataset_options options = att_recipe_dataset_options(context, recipe, split);
    options.trained = trained ? att_dataset_class_names(trained) : NULL;
    options.trained_count = trained ? att_dataset_class_count(trained) : 0;
    return att_dataset_open(context, recipe->data.data_dir, &options, dataset);
}

/* Opens the data sets of the training and the split to measure. Only the split to measure stays open, in *opened. */
static att_status open_data(att_context *context, const att_recipe *recipe, opened_data *opened)
{
    const att_recipe_data *data = &recipe->data;
    att_dataset *trained = NULL, *evaluated = NULL;
    att_dataset_close(&opened->measured);
    opened->data = *data;
    att_status status = open_split(context, recipe, data->train_split, NULL, &trained);
    opened->classes = status == ATT_OK ? att_dataset_class_count(trained) : 0;
    if (status == ATT_OK)
        att_dataset_listing(trained, opened->listing);
    if (status == ATT_OK && *att_dataset_split(trained) && *data->val_split)
        status = open_split(context, recipe, data->val_split, trained, &evaluated);
    if (status == ATT_OK)
        status = open_split(context, recipe, "test", trained, &opened->measured);
    att_dataset_close(&evaluated);
    att_dataset_close(&trained);
    return status;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_same_data(const att_recipe_data *a, const att_recipe_data *b)
{
    return is_same_text(a->data_dir, b->data_dir) && is_same_text(a->train_split, b->train_split) &&
           is_same_text(a->val_split, b->val_split) && is_same_text(a->class_map, b->class_map) &&
           a->coarse_labels == b->coarse_labels && a->reduce_zero_label == b->reduce_zero_label &&
           a->ignore_label == b->ignore_label;
}

typedef struct data_digests {
    att_recipe_data data;                /* the data whose digests these are; zero: none */
    char listing[ATT_DATASET_LISTING];   /* of the training images */
    char contents[ATT_DATASET_CONTENTS]; /* of the images to measure */
} data_digests;

static att_status read_digests(att_context *context, const att_recipe *recipe, data_digests *digests)
{
    const att_recipe_data *data = &recipe->data;
    att_dataset *trained = NULL, *measured = NULL;
    if (is_same_data(data, &digests->data))
        return ATT_OK;
    att_status status = open_split(context, recipe, data->train_split, NULL, &trained);
    if (status == ATT_OK)
        status = open_split(context, recipe, "test", NULL, &measured);
    if (status == ATT_OK) {
        att_dataset_listing(trained, digests->listing);
        status = att_dataset_contents(measured, context, digests->contents);
    }
    if (status == ATT_OK)
        digests->data = *data;
    att_dataset_close(&measured);
    att_dataset_close(&trained);
    return status;
}

static att_status refuse_data(const att_sweep_plan *plan, const att_plan_run *run, const char *what)
{
    return att_fail(plan->context, ATT_ERR_MISMATCH,
                    "%s was %s other images than %s has; use another --experiment to keep both", run->folder, what,
                    plan->recipe.data.data_dir);
}

/* Refuses runs of a setting whose records are of other images. Runs without such records pass. */
static att_status compare_data(const att_sweep_plan *plan, int first, data_digests *here)
{
    for (int i = first; i < first + plan->options.seed_count; i++) {
        const att_plan_run *run = &plan->runs[i];
        const att_run_state *found = &run->found;
        if (*found->listing || *found->contents)
            ATT_TRY(read_digests(plan->context, &plan->recipe, here));
        if (*found->listing && strcmp(found->listing, here->listing) != 0)
            return refuse_data(plan, run, "begun with");
        if (*found->contents && strcmp(found->contents, here->contents) != 0)
            return refuse_data(plan, run, "measured on");
    }
    return ATT_OK;
}

/* --- networks and instruments ------------------------------------------------------------------------------------- */

/* The instruments to measure with. A list that means "all" is one item, since each network then gets those that fit.
 * All memory is the plan's. */
typedef struct instrument_list {
    const char **items;
    int count;
    bool takes_all;
} instrument_list;

static att_status fail_list_memory(const att_sweep_plan *plan)
{
    return att_fail_memory(plan->context, strlen(plan->measure), "a list of instruments");
}

static att_status split_list(att_sweep_plan *plan, instrument_list *list)
{
    char *at = att_arena_string(&plan->texts, plan->measure);
    size_t most = 1;
    for (const char *comma = plan->measure; (comma = strchr(comma, ',')) != NULL; comma++)
        most++;
    list->items = att_arena_allocate(&plan->texts, most * sizeof *list->items);
    if (!at || !list->items)
        return fail_list_memory(plan);
    list->takes_all = att_instruments_take_all(plan->measure);
    while (at) {
        list->items[list->count++] = at;
        char *end = at + (list->takes_all ? strlen(at) : att_instruments_item(at));
        at = *end ? end + 1 : NULL;
        *end = '\0';
    }
    return ATT_OK;
}

/* finds[k]: whether instrument k has something to observe in the network of plan->recipe. */
static att_status check_network(att_sweep_plan *plan, const instrument_list *list, bool *finds)
{
    att_trained_network network = {.context = plan->context};
    att_status status = att_trained_network_find(&plan->recipe, "", &network);
    for (int k = 0; status == ATT_OK && k < list->count; k++)
        status = att_trained_network_sees(&plan->recipe, &network, list->items[k], &finds[k]);
    att_trained_network_free(&network);
    return status;
}

static bool needs_labels(const att_sweep_plan *plan, const char *item)
{
    att_instrument_info info;
    return att_instrument_find(plan->context, item, &info) && info.needs_labels;
}

static bool any_needs_labels(const att_sweep_plan *plan, const instrument_list *list)
{
    for (int k = 0; k < list->count; k++)
        if (needs_labels(plan, list->items[k]))
            return true;
    return false;
}

static bool is_item(const instrument_list *list, const char *instrument)
{
    for (int k = 0; k < list->count; k++)
        if (strcmp(list->items[k], instrument) == 0)
            return true;
    return false;
}

/* Frees the text and returns a copy in the plan's memory, or NULL if memory is exhausted. */
static const char *keep_text(att_sweep_plan *plan, att_text *text)
{
    const char *copy = text->failed ? NULL : att_arena_string(&plan->texts, text->data ? text->data : "");
    att_text_free(text);
    return copy;
}

static void set_measure(att_sweep_plan *plan, int first, const char *measure)
{
    for (int i = first; i < first + plan->options.seed_count; i++)
        plan->runs[i].measure = measure;
}

/* Removes the instruments that need labels from the setting's list, which means "all". */
static att_status leave_out_labels(att_sweep_plan *plan, int first)
{
    att_text text = {.context = plan->context};
    att_text_append(&text, "%s", plan->runs[first].measure);
    att_instruments_leave_out_labels(&text);
    const char *measure = keep_text(plan, &text);
    if (!measure)
        return fail_list_memory(plan);
    set_measure(plan, first, measure);
    return ATT_OK;
}

static void log_without_labels(const att_sweep_plan *plan, int first, int network, const opened_data *opened,
                               const instrument_list *list)
{
    for (int k = 0; k < att_instrument_count(plan->context); k++) {
        att_instrument_info info = att_instrument_at(plan->context, k);
        if (info.needs_labels && (list->takes_all || is_item(list, info.name)))
            att_log(plan->context, ATT_LOG_INFO, "%s is measured without %s: the network has %d class%s, the images %d",
                    plan->runs[first].setting, info.name, network, network == 1 ? "" : "es",
                    att_dataset_class_count(opened->measured));
    }
}

/* If the network's classes differ from those of the images to measure, the setting is measured without the instruments
 * that need labels. If the caller named one of these, the sweep is refused. */
static att_status check_classes(att_sweep_plan *plan, int first, const opened_data *opened, const instrument_list *list,
                                bool *finds)
{
    int network = (int)att_options_number(&plan->recipe.network.options, "num_classes", opened->classes);
    const bool needing_labels = any_needs_labels(plan, list);
    if (att_dataset_fits_classes(opened->measured, network) || (!needing_labels && !list->takes_all))
        return ATT_OK;
    if (needing_labels && plan->options.measure)
        return att_dataset_check_classes(opened->measured, plan->context, network);
    log_without_labels(plan, first, network, opened, list);
    for (int k = 0; k < list->count; k++)
        finds[k] = finds[k] && !needs_labels(plan, list->items[k]);
    return list->takes_all ? leave_out_labels(plan, first) : ATT_OK;
}

/* Restricts the setting's runs to the instruments in `finds`. The log names those that are left out, except those that
 * no setting can use. */
static att_status leave_out(att_sweep_plan *plan, int first, const instrument_list *list, const bool *finds,
                            const bool *somewhere)
{
    att_text stays = {.context = plan->context}, left = {.context = plan->context};
    for (int k = 0; k < list->count; k++) {
        att_text *text = finds[k] ? &stays : &left;
        if (finds[k] || somewhere[k])
            att_text_append(text, "%s%s", text->length > 0 ? "," : "", list->items[k]);
    }
    const char *measure = keep_text(plan, &stays), *without = keep_text(plan, &left);
    if (!measure || !without)
        return fail_list_memory(plan);
    set_measure(plan, first, measure);
    if (*without)
        att_log(plan->context, ATT_LOG_INFO, "%s is measured without %s, which has nothing to observe there",
                plan->runs[first].setting, without);
    return ATT_OK;
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

/* Adds the setting to the message, if there are several. */
static att_status refuse_setting(const att_sweep_plan *plan, int first, att_status status)
{
    if (plan->run_count == plan->options.seed_count)
        return status;
    return att_fail(plan->context, status, "%s (of the setting %s; no run was started)",
                    att_context_message(plan->context), plan->runs[first].setting);
}

static att_status refuse_measured(const att_sweep_plan *plan, int first, att_status status)
{
    return att_fail(plan->context, status, "%s (of the setting %s, measured with --measure %s; no run was started)",
                    att_context_message(plan->context), plan->runs[first].setting, plan->measure);
}

/* Makes plan->recipe the complete recipe of the setting (att_recipe_resolve()). */
static att_status resolve_setting(att_sweep_plan *plan, int first)
{
    ATT_TRY(att_plan_build_recipe(plan, &plan->runs[first]));
    return att_recipe_resolve(plan->context, &plan->recipe);
}

/* Fails with the reason why the setting cannot be measured with `instrument`. */
static att_status refuse_instrument(att_sweep_plan *plan, int first, const char *instrument)
{
    att_trained_network network = {.context = plan->context};
    att_status status = resolve_setting(plan, first);
    if (status == ATT_OK)
        status = att_trained_network_find(&plan->recipe, "", &network);
    if (status == ATT_OK)
        status = att_trained_network_try(&plan->recipe, &network, instrument, "*");
    att_trained_network_free(&network);
    return status == ATT_OK ? ATT_OK : refuse_measured(plan, first, status);
}

static bool is_to_do(const att_sweep_plan *plan, int first)
{
    for (int i = first; i < first + plan->options.seed_count; i++)
        if (strcmp(plan->runs[i].status, "measured") != 0)
            return true;
    return false;
}

static int count_true(const bool *values, int count)
{
    int found = 0;
    for (int k = 0; k < count; k++)
        found += values[k];
    return found;
}

/* Leaves each instrument out of the settings in which it has nothing to observe. Refuses instruments that the caller
 * named and that have nothing to observe in any setting, and settings without any instrument. finds: a row of
 * list->count values for each setting. */
static att_status choose_instruments(att_sweep_plan *plan, const instrument_list *list, const bool *finds)
{
    const int seeds = plan->options.seed_count, settings = plan->run_count / seeds, count = list->count;
    bool *somewhere = att_arena_allocate(&plan->texts, (size_t)count * sizeof *somewhere);
    if (!somewhere)
        return fail_list_memory(plan);
    for (int i = 0; i < settings * count; i++)
        somewhere[i % count] |= finds[i];
    for (int k = 0; k < count && plan->options.measure; k++)
        if (!somewhere[k])
            return refuse_instrument(plan, 0, list->items[k]);
    for (int i = 0; i < settings; i++)
        if (count_true(finds + i * count, count) == 0)
            return refuse_instrument(plan, i * seeds, list->items[0]);
    for (int i = 0; i < settings; i++)
        if (count_true(finds + i * count, count) < count)
            ATT_TRY(leave_out(plan, i * seeds, list, finds + i * count, somewhere));
    return ATT_OK;
}

/* Returns whether the settings use different data. */
static bool is_data_varied(att_sweep_plan *plan)
{
    att_recipe_data first = {0};
    for (int i = 0; i < plan->run_count; i += plan->options.seed_count) {
        if (att_plan_build_recipe(plan, &plan->runs[i]) != ATT_OK)
            return false;
        if (i == 0)
            first = plan->recipe.data;
        if (!is_same_data(&first, &plan->recipe.data))
            return true;
    }
    return false;
}

/* Checks a setting with a run to do. finds[k]: whether instrument k has something to observe in it. */
static att_status check_setting(att_sweep_plan *plan, int first, opened_data *opened, const instrument_list *list,
                                bool *finds)
{
    att_status status = resolve_setting(plan, first);
    if (status == ATT_OK && !is_same_data(&opened->data, &plan->recipe.data))
        status = open_data(plan->context, &plan->recipe, opened);
    if (status != ATT_OK)
        return is_data_varied(plan) ? refuse_setting(plan, first, status) : status;
    if (first == 0)
        snprintf(plan->listing, sizeof plan->listing, "%s", opened->listing);
    status = check_network(plan, list, finds);
    if (status != ATT_OK)
        return refuse_setting(plan, first, status);
    status = check_classes(plan, first, opened, list, finds);
    return status == ATT_OK ? ATT_OK : refuse_measured(plan, first, status);
}

/* Writes to `finds` a row for each setting, as choose_instruments() reads it. */
static att_status check_settings(att_sweep_plan *plan, const instrument_list *list, bool *finds)
{
    const int seeds = plan->options.seed_count;
    opened_data opened = {0};
    att_status status = ATT_OK;
    for (int i = 0; status == ATT_OK && i < plan->run_count / seeds; i++) {
        bool *row = finds + i * list->count;
        for (int k = 0; k < list->count; k++)
            row[k] = true;
        if (is_to_do(plan, i * seeds))
            status = check_setting(plan, i * seeds, &opened, list, row);
    }
    att_dataset_close(&opened.measured);
    return status;
}

att_status att_plan_check(att_sweep_plan *plan)
{
    instrument_list list = {0};
    att_status status = att_instruments_check(plan->context, plan->measure);
    if (status != ATT_OK)
        return status == ATT_ERR_NOT_FOUND ? ATT_ERR_ARGUMENT : status;
    ATT_TRY(split_list(plan, &list));
    bool *finds = att_arena_allocate(
        &plan->texts, att_size_product((size_t)(plan->run_count / plan->options.seed_count), (size_t)list.count));
    if (!finds)
        return fail_list_memory(plan);
    ATT_TRY(check_settings(plan, &list, finds));
    return choose_instruments(plan, &list, finds);
}

att_status att_plan_check_images(att_sweep_plan *plan)
{
    data_digests here = {0};
    for (int i = 0; i < plan->run_count; i += plan->options.seed_count) {
        ATT_TRY(att_plan_build_recipe(plan, &plan->runs[i]));
        if (is_to_do(plan, i) || att_file_exists(plan->recipe.data.data_dir))
            ATT_TRY(compare_data(plan, i, &here));
    }
    return ATT_OK;
}

/* --- records ------------------------------------------------------------------------------------------------------ */

att_status att_plan_check_records(const att_sweep_plan *plan, const att_plan_run *run)
{
    const att_sweep_run one = {run->folder, run->setting, run->seed};
    att_sweep *sweep = NULL;
    att_hold_stop(plan->context, true);
    att_status status = att_sweep_read(plan->context, &one, 1, NULL, 0, 0, &sweep);
    att_hold_stop(plan->context, false);
    att_sweep_destroy(&sweep);
    return status;
}

#include "lab/papers/results/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/ranks.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "lab/papers/results/stiffest.h"

enum { MOST_BYTES = 64 << 20, COMPONENT = 64, FIRST_ROOM = 16 };

/* --- the folder --------------------------------------------------------------------------------------------------- */

/* Returns "folder/name", which the caller frees; NULL if out of memory. */
static char *join(att_context *context, const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = att_allocate(context, size);
    if (path)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static att_status read_runs(att_result_folder *folder)
{
    const int count = folder->sweep.count;
    folder->runs = att_allocate_array(folder->context, (size_t)count + 1, sizeof *folder->runs);
    if (!folder->runs)
        return att_fail_memory(folder->context, (size_t)count * sizeof *folder->runs, folder->path);
    for (int i = 0; i < count; i++)
        folder->runs[i] = (att_report_run){.context = folder->context};
    for (int i = 0; i < count; i++)
        ATT_TRY(att_report_run_read(folder->context, folder->sweep.runs[i].folder, &folder->runs[i]));
    return ATT_OK;
}

att_status att_result_folder_open(att_context *context, const char *root, const char *name, att_result_folder *folder)
{
    *folder = (att_result_folder){.context = context, .path = join(context, root, name)};
    if (!folder->path)
        return att_fail_memory(context, strlen(root), root);
    ATT_TRY(att_sweep_file_read(context, folder->path, &folder->is_sweep, &folder->sweep));
    return folder->is_sweep ? read_runs(folder) : ATT_OK;
}

att_status att_result_visit_folders(att_context *context, const char *path,
                                    att_status (*visit)(void *user, const char *folder), void *user)
{
    att_sweep_file sweep = {.arena = {.context = context}};
    bool found = false;
    att_status status = att_sweep_file_read(context, path, &found, &sweep);
    for (int i = 0; status == ATT_OK && found && i < sweep.count; i++)
        status = visit(user, sweep.runs[i].folder);
    if (found)
        att_sweep_file_free(&sweep);
    return status;
}

void att_result_folder_close(att_result_folder *folder)
{
    for (int i = 0; folder->runs && i < folder->sweep.count; i++)
        att_report_run_free(&folder->runs[i]);
    att_free(folder->context, folder->runs);
    if (folder->is_sweep)
        att_sweep_file_free(&folder->sweep);
    att_free(folder->context, folder->path);
    *folder = (att_result_folder){.context = folder->context};
}

/* --- numbers of one run ------------------------------------------------------------------------------------------- */

/* The numbers that a reading selects, in order. */
typedef struct numbers {
    att_context *context;
    double *items;
    int count, room;
} numbers;

static bool add_number(numbers *n, double value)
{
    if (n->count == n->room) {
        const int room = n->room > 0 ? 2 * n->room : FIRST_ROOM;
        double *items = att_allocate_array(n->context, (size_t)room, sizeof *items);
        if (!items)
            return false;
        if (n->count > 0)
            memcpy(items, n->items, (size_t)n->count * sizeof *items);
        att_free(n->context, n->items);
        n->items = items;
        n->room = room;
    }
    n->items[n->count++] = value;
    return true;
}

static bool add_measured(const att_report_run *run, const att_reading *reading, numbers *n)
{
    for (int e = 0; run->has_measure_file && e < run->measured.count; e++) {
        const att_figures *figures = run->measured.records[e];
        for (int i = 0; i < figures->count; i++) {
            const att_measurement *item = &figures->items[i];
            if (item->head < 0 && strcmp(item->instrument, reading->figure) == 0 &&
                strcmp(item->statistic, reading->statistic) == 0 &&
                att_text_matches_any(reading->nodes ? reading->nodes : "", item->node) && !add_number(n, item->mean))
                return false;
        }
    }
    return true;
}

/* Whether a component of a path names element `index`: its number, "2-" for all from number 2 on, "*" for all. */
static bool names_element(const char *component, size_t index)
{
    char *end;
    const unsigned long long first = strtoull(component, &end, 10);
    return strcmp(component, "*") == 0 || (end != component && (*end == '-' ? index >= first : index == first));
}

/* Adds what a path such as "layers.*.residual" names: members of objects and elements of arrays; NaN for null. */
static bool add_members(const json_t *value, const char *path, numbers *n)
{
    char name[COMPONENT];
    const size_t length = strcspn(path, ".");
    const char *rest = path[length] ? path + length + 1 : path + length;
    if (*path == '\0')
        return json_is_null(value) ? add_number(n, NAN)
                                   : !json_is_number(value) || add_number(n, json_number_value(value));
    snprintf(name, sizeof name, "%.*s", (int)length, path);
    if (json_is_object(value))
        return add_members(json_object_get(value, name), rest, n);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (names_element(name, i) && !add_members(json_array_get(value, i), rest, n))
            return false;
    return true;
}

/* Adds the means over all heads that the reading selects of a list of measurements. */
static bool add_measurements(const json_t *list, const att_reading *reading, numbers *n)
{
    size_t index;
    json_t *item;
    json_array_foreach((json_t *)list, index, item)
    {
        const char *instrument = json_string_value(json_object_get(item, "instrument")),
                   *statistic = json_string_value(json_object_get(item, "statistic")),
                   *node = json_string_value(json_object_get(item, "node"));
        const bool selected = instrument && statistic && node && !json_object_get(item, "head") &&
                              strcmp(instrument, reading->figure) == 0 && strcmp(statistic, reading->statistic) == 0 &&
                              att_text_matches_any(reading->nodes ? reading->nodes : "", node);
        if (selected && !add_members(json_object_get(item, "mean"), "", n))
            return false;
    }
    return true;
}

/* Adds what reading->figure names, and to `less` what reading->less names. If their counts differ, both are empty. */
static bool add_pairs(const json_t *root, const att_reading *reading, numbers *n, numbers *less)
{
    if (reading->statistic)
        return add_measurements(json_object_get(root, "measurements"), reading, n);
    if (!add_members(root, reading->figure, n) || (reading->less && !add_members(root, reading->less, less)))
        return false;
    if (reading->less && less->count != n->count)
        n->count = less->count = 0;
    for (int i = 0; reading->less && reading->fold != ATT_FOLD_RHO && i < n->count; i++)
        n->items[i] -= less->items[i];
    return true;
}

/* A file that is missing gives no numbers. */
static att_status add_from_file(const char *folder, const char *name, const att_reading *reading, numbers *n,
                                numbers *less)
{
    char *path = join(n->context, folder, name), *bytes = NULL;
    size_t size;
    json_t *root = NULL;
    att_status status = path ? ATT_OK : att_fail_memory(n->context, strlen(folder), folder);
    if (status == ATT_OK && att_file_exists(path)) {
        status = att_file_read(n->context, path, MOST_BYTES, &bytes, &size);
        if (status == ATT_OK)
            status = att_json_parse(n->context, path, bytes, size, &root);
        if (status == ATT_OK && !add_pairs(root, reading, n, less))
            status = att_fail_memory(n->context, size, path);
        json_decref(root);
        att_free(n->context, bytes);
    }
    att_free(n->context, path);
    return status;
}

/* --- one number --------------------------------------------------------------------------------------------------- */

static double mean_of(const numbers *n)
{
    double sum = 0;
    for (int i = 0; i < n->count; i++)
        sum += n->items[i];
    return sum / n->count;
}

static double largest_of(const numbers *n)
{
    double most = -INFINITY;
    for (int i = 0; i < n->count; i++)
        most = fmax(most, n->items[i]);
    return most;
}

static double share_of(const numbers *n, double limit)
{
    int low = 0;
    for (int i = 0; i < n->count; i++)
        low += n->items[i] <= limit;
    return (double)low / n->count;
}

static double slope_of(const numbers *n)
{
    const double middle = (n->count - 1) / 2.0;
    double product = 0, square = 0;
    for (int i = 0; i < n->count; i++) {
        product += (i - middle) * n->items[i];
        square += (i - middle) * (i - middle);
    }
    return product / square;
}

static double correlation_of(const numbers *a, const numbers *b)
{
    numbers ranks = {.context = a->context};
    double rho = NAN;
    for (int i = 0; i < 2 * a->count; i++)
        if (!add_number(&ranks, 0))
            break;
    if (ranks.count == 2 * a->count && a->count == b->count) {
        att_rank_twice(a->items, a->count, ranks.items);
        att_rank_twice(b->items, b->count, ranks.items + a->count);
        rho = att_spearman(ranks.items, ranks.items + a->count, a->count);
    }
    att_free(a->context, ranks.items);
    return rho;
}

/* NaN without numbers, and if one of them is NaN. */
static double fold(const att_reading *reading, const numbers *n, const numbers *less)
{
    if (n->count == 0 || isnan(mean_of(n)))
        return NAN;
    switch (reading->fold) {
    case ATT_FOLD_MAX:
        return largest_of(n);
    case ATT_FOLD_PEAK:
        return largest_of(n) / mean_of(n);
    case ATT_FOLD_SHARE:
        return share_of(n, reading->limit);
    case ATT_FOLD_SLOPE:
        return slope_of(n);
    case ATT_FOLD_RHO:
        return correlation_of(n, less);
    case ATT_FOLD_MEAN:
        break;
    }
    return mean_of(n);
}

/* --- all runs ----------------------------------------------------------------------------------------------------- */

/* Adds the folded numbers, if there are any. */
static void add_value(const att_reading *reading, const numbers *n, const numbers *less, uint64_t seed,
                      att_result_values *values)
{
    const double value = fold(reading, n, less);
    values->found = values->found || n->count > 0;
    if (!isfinite(value) || values->count == ATT_SWEEP_MOST_RUNS)
        return;
    values->seeds[values->count] = seed;
    values->values[values->count++] = value;
}

static att_status read_file(att_context *context, const char *folder, const char *name, uint64_t seed,
                            const att_reading *reading, att_result_values *values)
{
    numbers n = {.context = context}, less = n;
    att_status status = add_from_file(folder, name, reading, &n, &less);
    if (status == ATT_OK)
        add_value(reading, &n, &less, seed, values);
    att_free(context, n.items);
    att_free(context, less.items);
    return status;
}

/* A file whose name has {seed} is one for each seed from 1 on. */
static att_status read_files(const att_result_folder *folder, const att_reading *reading, att_result_values *values)
{
    static const char word[] = "{seed}";
    const char *at = strstr(reading->file, word);
    if (!at)
        return read_file(folder->context, folder->path, reading->file, 0, reading, values);
    for (int seed = 1; seed <= ATT_RESULT_SEEDS; seed++) {
        char name[128];
        snprintf(name, sizeof name, "%.*s%d%s", (int)(at - reading->file), reading->file, seed, at + sizeof word - 1);
        ATT_TRY(read_file(folder->context, folder->path, name, (uint64_t)seed, reading, values));
    }
    return ATT_OK;
}

static att_status read_measured(att_context *context, const att_sweep_run *member, const att_report_run *run,
                                const att_reading *reading, att_result_values *values)
{
    numbers n = {.context = context};
    const bool fits = add_measured(run, reading, &n);
    if (fits)
        add_value(reading, &n, NULL, member->seed, values);
    att_free(context, n.items);
    return fits ? ATT_OK : att_fail_memory(context, sizeof *n.items, member->folder);
}

/* Replaces the numbers of a seed, which several settings have, by their mean. */
static void merge_seeds(att_result_values *values)
{
    const att_result_values all = *values;
    values->count = 0;
    for (int i = 0; i < all.count; i++) {
        int same = 0, before = 0;
        double sum = 0;
        for (int k = 0; k < all.count; k++) {
            before += k < i && all.seeds[k] == all.seeds[i];
            same += all.seeds[k] == all.seeds[i];
            sum += all.seeds[k] == all.seeds[i] ? all.values[k] : 0;
        }
        if (before > 0)
            continue;
        values->seeds[values->count] = all.seeds[i];
        values->values[values->count++] = sum / same;
    }
}

static att_status read_setting(const att_result_folder *folder, const att_reading *reading, const char *setting,
                               att_result_values *values)
{
    const att_sweep_run *members = folder->sweep.runs;
    att_context *context = folder->context;
    *values = (att_result_values){.count = 0};
    for (int i = 0; folder->is_sweep && i < folder->sweep.count; i++) {
        if (!att_result_is_setting(folder, setting, members[i].setting))
            continue;
        if (reading->file)
            ATT_TRY(read_file(context, members[i].folder, reading->file, members[i].seed, reading, values));
        else
            ATT_TRY(read_measured(context, &members[i], &folder->runs[i], reading, values));
    }
    merge_seeds(values);
    return ATT_OK;
}

/* Subtracts `other` seed by seed. Seeds that only one of both has are left out. */
static void subtract(att_result_values *values, const att_result_values *other)
{
    int count = 0;
    for (int i = 0; i < values->count; i++)
        for (int k = 0; k < other->count; k++)
            if (other->seeds[k] == values->seeds[i]) {
                values->seeds[count] = values->seeds[i];
                values->values[count++] = values->values[i] - other->values[k];
            }
    values->count = count;
    values->found = values->found && other->found;
}

att_status att_result_values_read(const att_result_folder *folder, const att_reading *reading,
                                  att_result_values *values)
{
    att_result_values other;
    *values = (att_result_values){.count = 0};
    if (!reading->setting)
        return read_files(folder, reading, values);
    ATT_TRY(read_setting(folder, reading, reading->setting, values));
    if (!reading->minus)
        return ATT_OK;
    ATT_TRY(read_setting(folder, reading, reading->minus, &other));
    subtract(values, &other);
    return ATT_OK;
}

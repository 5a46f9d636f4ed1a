#include <attscope/lab/collection.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/yaml.h"
#include "lab/report/sweep.h"
#include "study/store/run_list.h"

typedef struct collected_run {
    const char *folder;
    att_report_run records;
    json_t *configuration; /* options of the training, texts; NULL: the run has no training */
    uint64_t seed;
    int part; /* the number of the part that it belongs to */
    const char *setting;
} collected_run;

struct att_collection {
    att_context *context;
    att_arena arena;   /* owns the texts */
    const char *above; /* the database's folder with a slash at its end */
    const char *pattern;
    collected_run runs[ATT_SWEEP_MOST_RUNS];
    int run_count, part_count;
};

/* --- options of a run --------------------------------------------------------------------------------------------- */

/* Whether an option does not distinguish settings. */
static bool is_ignored(const char *key)
{
    return strcmp(key, "seed") == 0 || strcmp(key, "data_dir") == 0 || att_run_is_volatile(key);
}

static att_status add_option(att_context *context, json_t *configuration, const att_yaml_entry *entry)
{
    att_text value = {.context = context};
    for (int i = 0; i < entry->value_count; i++)
        att_text_append(&value, "%s%s", i > 0 ? " " : "", entry->values[i]);
    bool kept =
        !value.failed && json_object_set_new(configuration, entry->key, json_string(value.data ? value.data : "")) == 0;
    att_text_free(&value);
    return kept ? ATT_OK : att_fail_memory(context, sizeof *entry, "the options of a run");
}

static att_status read_configuration(collected_run *run)
{
    att_context *context = run->records.context;
    const att_yaml *settings = run->records.settings;
    if (!settings)
        return ATT_OK;
    run->configuration = json_object();
    if (!run->configuration)
        return att_fail_memory(context, sizeof *run, "the options of a run");
    for (int i = 0; i < att_yaml_count(settings); i++) {
        att_yaml_entry entry = att_yaml_at(settings, i);
        if (strcmp(entry.key, "seed") == 0 && entry.value_count == 1)
            run->seed = strtoull(entry.values[0], NULL, 10);
        if (!is_ignored(entry.key) && entry.kind != ATT_YAML_NULL)
            ATT_TRY(add_option(context, run->configuration, &entry));
    }
    return ATT_OK;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Keeps the text and frees its buffer. Returns NULL if out of memory. */
static const char *keep(att_collection *c, att_text *text)
{
    const char *kept = text->failed || !text->data ? NULL : att_arena_string(&c->arena, text->data);
    att_text_free(text);
    return kept;
}

static const char *path_of(att_collection *c, const char *folder)
{
    att_text path = {.context = c->context};
    att_text_append(&path, "%s%s", *folder == '/' ? "" : c->above, folder);
    return keep(c, &path);
}

static void free_run(collected_run *run)
{
    att_report_run_free(&run->records);
    json_decref(run->configuration);
    *run = (collected_run){.folder = NULL};
}

/* Reads the run into the next place of the list, which it keeps if it has a measurement of a checkpoint. */
static att_status add_run(att_collection *c, const char *folder)
{
    collected_run *run = &c->runs[c->run_count];
    if (!(run->folder = path_of(c, folder)))
        return att_fail_memory(c->context, strlen(folder), folder);
    if (!att_file_exists_in(run->folder, "measure.jsonl")) {
        att_log(c->context, ATT_LOG_INFO, "%s is left out: it has no measure.jsonl", run->folder);
        free_run(run);
        return ATT_OK;
    }
    att_status status = att_report_run_read(c->context, run->folder, &run->records);
    if (status == ATT_OK)
        status = read_configuration(run);
    if (status == ATT_OK && run->records.has_measure_file)
        c->run_count++;
    else
        free_run(run);
    return status;
}

static att_status visit(void *user, const char *folder)
{
    att_collection *c = user;
    if (c->pattern && !att_text_matches(c->pattern, folder))
        return ATT_OK;
    if (c->run_count == ATT_SWEEP_MOST_RUNS)
        return att_fail(c->context, ATT_ERR_ARGUMENT,
                        "the database has more than %d measured runs; select some of them", (int)ATT_SWEEP_MOST_RUNS);
    return add_run(c, folder);
}

/* Stores the folder of the database. */
static att_status find_above(att_collection *c, const char *path)
{
    char *whole = realpath(path, NULL), *slash = whole ? strrchr(whole, '/') : NULL;
    if (slash)
        slash[1] = '\0';
    c->above = att_arena_string(&c->arena, slash ? whole : "");
    free(whole);
    return c->above ? ATT_OK : att_fail_memory(c->context, strlen(path), path);
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

/* Whether the runs were measured on the same images. Records without a digest of the images name their data. */
static bool is_same_part(const collected_run *a, const collected_run *b)
{
    static const char *const keys[] = {"split", "images", "precision"};
    const json_t *one = a->records.measured_begin, *other = b->records.measured_begin;
    const char *of = json_object_get(one, "contents") ? "contents" : "data";
    bool same = json_equal(json_object_get(one, of), json_object_get(other, of));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *x = json_object_get(one, keys[i]), *y = json_object_get(other, keys[i]);
        same &= x && y ? json_equal(x, y) : x == y;
    }
    return same;
}

static void number_parts(att_collection *c)
{
    for (int i = 0; i < c->run_count; i++) {
        int first = 0;
        while (first < i && !is_same_part(&c->runs[first], &c->runs[i]))
            first++;
        c->runs[i].part = first < i ? c->runs[first].part : c->part_count++;
    }
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

/* Whether the trained runs of the part differ in an option. */
static bool differs(const att_collection *c, int part, const char *key)
{
    const json_t *first = NULL;
    bool any = false;
    for (int i = 0; i < c->run_count; i++) {
        const collected_run *run = &c->runs[i];
        const json_t *value = json_object_get(run->configuration, key);
        if (run->part != part || !run->configuration)
            continue;
        if (any && (value && first ? !json_equal(value, first) : value != first))
            return true;
        first = value;
        any = true;
    }
    return false;
}

/* Whether a run of the part before run `index` has the option. */
static bool is_named(const att_collection *c, int index, const char *key)
{
    for (int i = 0; i < index; i++)
        if (c->runs[i].part == c->runs[index].part && json_object_get(c->runs[i].configuration, key))
            return true;
    return false;
}

/* Appends "key=value" of each option in which runs differ. */
static void append_differences(const att_collection *c, const collected_run *run, att_text *name)
{
    const char *key;
    json_t *unused;
    for (int i = 0; i < c->run_count; i++) {
        if (c->runs[i].part != run->part)
            continue;
        json_object_foreach(c->runs[i].configuration, key, unused)
        {
            const char *value = json_string_value(json_object_get(run->configuration, key));
            if (!is_named(c, i, key) && differs(c, run->part, key))
                att_text_append(name, "%s%s=%s", name->length > 0 ? " " : "", key, value ? value : "-");
        }
    }
}

static const char *text_in(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Names the setting of a run. A run that trained nothing is a setting of its own. */
static att_status name_setting(att_collection *c, collected_run *run)
{
    att_text name = {.context = c->context};
    if (run->configuration)
        append_differences(c, run, &name);
    else
        att_text_append(&name, "%s", run->records.name);
    if (name.length == 0)
        att_text_append(&name, "model=%s", text_in(run->configuration, "model"));
    run->setting = keep(c, &name);
    return run->setting ? ATT_OK : att_fail_memory(c->context, sizeof *run, "the name of a setting");
}

static att_status read(att_collection *c, const char *path)
{
    ATT_TRY(find_above(c, path));
    ATT_TRY(att_store_list_runs(c->context, path, visit, c));
    number_parts(c);
    for (int i = 0; i < c->run_count; i++)
        ATT_TRY(name_setting(c, &c->runs[i]));
    return ATT_OK;
}

att_status att_collection_read(att_context *context, const char *path, const char *pattern, att_collection **collection)
{
    ATT_TRY(att_require(context, path, "the path of the database"));
    att_collection *c;
    ATT_TRY(att_new(context, &c, 1, path));
    c->context = c->arena.context = context;
    c->pattern = pattern;
    att_status status = read(c, path);
    c->pattern = NULL;
    if (status != ATT_OK)
        att_collection_destroy(&c);
    else
        *collection = c;
    return status;
}

void att_collection_destroy(att_collection **collection)
{
    if (!collection || !*collection)
        return;
    att_collection *c = *collection;
    for (int i = 0; i < c->run_count; i++)
        free_run(&c->runs[i]);
    att_arena_free(&c->arena);
    att_free(c->context, c);
    *collection = NULL;
}

/* --- access ------------------------------------------------------------------------------------------------------- */

int att_collection_count(const att_collection *c)
{
    return c->part_count;
}

/* Whether no earlier run of the part has the setting of run `index`. */
static bool begins_setting(const att_collection *c, int index)
{
    for (int i = 0; i < index; i++)
        if (c->runs[i].part == c->runs[index].part && strcmp(c->runs[i].setting, c->runs[index].setting) == 0)
            return false;
    return true;
}

att_collection_part att_collection_at(const att_collection *c, int part)
{
    att_collection_part found = {.data = NULL};
    for (int i = 0; i < c->run_count; i++) {
        const json_t *begin = c->runs[i].records.measured_begin, *images = json_object_get(begin, "images");
        if (c->runs[i].part != part)
            continue;
        if (found.runs++ == 0) {
            found.data = text_in(begin, "data");
            found.split = text_in(begin, "split");
            found.images = json_is_number(images) ? json_number_value(images) : NAN;
        }
        found.settings += begins_setting(c, i);
    }
    return found;
}

att_status att_collection_sweep(const att_collection *c, int part, const att_sweep_pair *pairs, int pair_count,
                                uint64_t seed, att_sweep **sweep)
{
    att_sweep_member members[ATT_SWEEP_MOST_RUNS];
    int count = 0;
    if (part < 0 || part >= c->part_count)
        return att_fail(c->context, ATT_ERR_ARGUMENT, "part %d of a collection that has %d", part, c->part_count);
    ATT_TRY(att_sweep_check_pairs(c->context, pairs, pair_count));
    for (int i = 0; i < c->run_count; i++)
        if (c->runs[i].part == part)
            members[count++] = (att_sweep_member){&c->runs[i].records, c->runs[i].setting, c->runs[i].seed};
    return att_sweep_from_runs(c->context, members, count, pairs, pair_count, seed, sweep);
}

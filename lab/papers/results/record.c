#include "lab/papers/results/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "lab/papers/results/list.h"

enum { MOST_BYTES = 1 << 20, LINE = 1024, PATH = 4096 };

/* --- names of readings -------------------------------------------------------------------------------------------- */

/* The name of a reading in records, "modules=se: nsi/attention of layer1.*, largest". */
static const char *name_reading(const att_reading *r, char text[LINE])
{
    static const char *const folds[] = {[ATT_FOLD_MEAN] = "",
                                        [ATT_FOLD_MAX] = ", largest",
                                        [ATT_FOLD_PEAK] = ", largest over mean",
                                        [ATT_FOLD_SHARE] = ", share up to ",
                                        [ATT_FOLD_SLOPE] = ", slope",
                                        [ATT_FOLD_RHO] = ", rho"};
    char limit[32] = "";
    if (r->fold == ATT_FOLD_SHARE)
        snprintf(limit, sizeof limit, "%g", r->limit);
    snprintf(text, LINE, "%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s", r->setting ? r->setting : "", r->minus ? " minus " : "",
             r->minus ? r->minus : "", r->setting ? ": " : "", r->file ? r->file : "", r->file ? " " : "", r->figure,
             r->statistic ? "/" : "", r->statistic ? r->statistic : "", r->nodes ? " of " : "",
             r->nodes ? r->nodes : "", r->less ? " less " : "", r->less ? r->less : "", folds[r->fold], limit);
    return text;
}

/* Calls visit() with each reading of each criterion on the run, until it fails. */
static att_status visit_readings(const char *run,
                                 att_status (*visit)(void *user, const char *result, const att_reading *reading),
                                 void *user)
{
    const att_result *result;
    for (int i = 0; (result = att_result_find(i)) != NULL; i++) {
        if (!result->info.run || strcmp(result->info.run, run) != 0)
            continue;
        for (int c = 0; c < result->count; c++) {
            ATT_TRY(visit(user, result->info.name, &result->criteria[c].value));
            if (result->criteria[c].against.figure)
                ATT_TRY(visit(user, result->info.name, &result->criteria[c].against));
        }
    }
    return ATT_OK;
}

/* --- what a run is ------------------------------------------------------------------------------------------------ */

static const char *name_command(const att_result_step *step, char text[LINE])
{
    size_t used = 0;
    for (int i = 0; step->arguments[i] && used < LINE; i++)
        used += (size_t)snprintf(text + used, LINE - used, "%s%s", i ? " " : "", step->arguments[i]);
    return text;
}

/* Writes the next line of a recipe that is not empty without its comment. Returns false after the last one. */
static bool next_line(const char **recipe, char line[LINE])
{
    size_t length = 0;
    while (*recipe && **recipe && length == 0) {
        const size_t whole = strcspn(*recipe, "\n");
        length = strcspn(*recipe, "#\n");
        while (length > 0 && (*recipe)[length - 1] == ' ')
            length--;
        snprintf(line, LINE, "%.*s", (int)length, *recipe);
        *recipe += whole + ((*recipe)[whole] == '\n');
    }
    return length > 0;
}

static bool is_text(const json_t *list, size_t index, const char *text)
{
    const char *item = json_string_value(json_array_get(list, index));
    return item && strcmp(item, text) == 0;
}

bool att_record_is_of(const json_t *root, const att_result_run *run)
{
    const json_t *commands = json_object_get(root, "commands"), *recipe = json_object_get(root, "recipe");
    const char *text = run->recipe;
    char line[LINE];
    size_t count = 0, lines = 0;
    bool same = true;
    for (; count < ATT_RESULT_STEPS && run->steps[count].arguments[0]; count++)
        same = same && is_text(commands, count, name_command(&run->steps[count], line));
    for (; next_line(&text, line); lines++)
        same = same && is_text(recipe, lines, line);
    return same && json_array_size(commands) == count && json_array_size(recipe) == lines;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

att_status att_record_open(att_context *context, const char *records, const char *run, json_t **root)
{
    char name[64], path[PATH], *bytes = NULL;
    size_t size;
    *root = NULL;
    snprintf(name, sizeof name, "%s.json", run);
    ATT_TRY(att_path_join(context, records, name, path, sizeof path));
    if (!att_file_exists(path))
        return ATT_OK;
    ATT_TRY(att_file_read(context, path, MOST_BYTES, &bytes, &size));
    att_status status = att_json_parse(context, path, bytes, size, root);
    att_free(context, bytes);
    if (status == ATT_OK && !json_is_object(json_object_get(*root, "figures"))) {
        status =
            att_fail(context, ATT_ERR_FORMAT, "%s: expected the record of a run, an object with \"figures\"", path);
        json_decref(*root);
        *root = NULL;
    }
    return status;
}

static bool is_seed(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

static att_status fail_figure(att_context *context, const json_t *root, const char *name)
{
    const char *run = json_string_value(json_object_get(root, "run"));
    return att_fail(
        context, ATT_ERR_FORMAT,
        "the record of %s: figure \"%s\": expected an object with a number for each seed; remove the record "
        "to execute the run again",
        run ? run : "a run", name);
}

att_status att_record_values(att_context *context, const json_t *root, const att_reading *reading,
                             att_result_values *values)
{
    char name[LINE];
    json_t *figure = json_object_get(json_object_get(root, "figures"), name_reading(reading, name)), *value;
    const char *seed;
    *values = (att_result_values){.found = figure != NULL};
    if (figure && !json_is_object(figure))
        return fail_figure(context, root, name);
    json_object_foreach(figure, seed, value)
    {
        if (!is_seed(seed) || !json_is_number(value) || values->count == ATT_SWEEP_MOST_RUNS)
            return fail_figure(context, root, name);
        values->seeds[values->count] = strtoull(seed, NULL, 10);
        values->values[values->count++] = json_number_value(value);
    }
    return ATT_OK;
}

typedef struct completeness {
    att_context *context;
    const json_t *root;
    bool complete;
} completeness;

static att_status look_up(void *user, const char *result, const att_reading *reading)
{
    completeness *all = user;
    att_result_values values;
    (void)result;
    ATT_TRY(att_record_values(all->context, all->root, reading, &values));
    all->complete = all->complete && values.found;
    return ATT_OK;
}

static void copy_text(const json_t *root, const char *key, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(root, key));
    snprintf(text, size, "%s", value ? value : "");
}

att_status att_result_record_read(att_context *context, const char *records, int run, att_result_record *record)
{
    const att_result_run *of = att_result_run_at(run);
    json_t *root = NULL;
    *record = (att_result_record){.state = ATT_RECORD_MISSING};
    if (!of || !records)
        return att_fail(context, ATT_ERR_ARGUMENT, "there is no run %d, or no folder is given", run);
    ATT_TRY(att_record_open(context, records, of->name, &root));
    if (!root)
        return ATT_OK;
    completeness all = {context, root, true};
    att_status status = visit_readings(of->name, look_up, &all);
    record->state = !att_record_is_of(root, of) ? ATT_RECORD_OUTDATED
                    : all.complete              ? ATT_RECORD_CURRENT
                                                : ATT_RECORD_INCOMPLETE;
    copy_text(root, "version", record->source.version, sizeof record->source.version);
    copy_text(root, "date", record->source.date, sizeof record->source.date);
    copy_text(root, "machine", record->source.machine, sizeof record->source.machine);
    record->source.seconds = json_number_value(json_object_get(root, "seconds"));
    json_decref(root);
    return status;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

typedef struct recording {
    att_result_folder folder;
    const char *run;
    att_json_writer *json;
    int index; /* of the reading that is visited */
} recording;

typedef struct search {
    const char *name;
    int before; /* number of readings that are left */
    bool found;
} search;

static att_status find_name(void *user, const char *result, const att_reading *reading)
{
    search *s = user;
    char name[LINE];
    (void)result;
    s->found = s->found || (s->before-- > 0 && strcmp(name_reading(reading, name), s->name) == 0);
    return ATT_OK;
}

/* Whether an earlier reading has the same name. */
static bool is_repeated(const recording *r, const char *name)
{
    search s = {.name = name, .before = r->index};
    return visit_readings(r->run, find_name, &s) == ATT_OK && s.found;
}

static att_status record_reading(void *user, const char *result, const att_reading *reading)
{
    recording *r = user;
    att_result_values values;
    char name[LINE], seed[24];
    const bool repeated = is_repeated(r, name_reading(reading, name));
    r->index++;
    if (repeated)
        return ATT_OK;
    ATT_TRY(att_result_values_read(&r->folder, reading, &values));
    if (!values.found)
        return att_fail(r->folder.context, ATT_ERR_NOT_FOUND,
                        "%s has no figure \"%s\", on which %s is judged: are all commands of the run finished?",
                        r->folder.path, name, result);
    att_json_put_object(r->json, name);
    for (int i = 0; i < values.count; i++) {
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)values.seeds[i]);
        att_json_put_number(r->json, seed, values.values[i]);
    }
    att_json_end_object(r->json);
    return ATT_OK;
}

static void write_source(const att_result_run *run, const att_result_source *source, att_json_writer *json)
{
    const char *recipe = run->recipe;
    char line[LINE];
    att_json_put_string(json, "run", run->name);
    att_json_put_string(json, "version", source->version);
    att_json_put_string(json, "date", source->date);
    att_json_put_string(json, "machine", source->machine);
    att_json_put_number(json, "seconds", round(10 * source->seconds) / 10);
    att_json_put_array(json, "commands");
    for (int i = 0; i < ATT_RESULT_STEPS && run->steps[i].arguments[0]; i++)
        att_json_string(json, name_command(&run->steps[i], line));
    att_json_end_array(json);
    att_json_put_array(json, "recipe");
    while (next_line(&recipe, line))
        att_json_string(json, line);
    att_json_end_array(json);
}

static att_status save(att_context *context, const char *records, const char *run, att_json_writer *json)
{
    char name[64], path[PATH];
    const char *text;
    size_t length;
    att_file_writer *file = NULL;
    snprintf(name, sizeof name, "%s.json", run);
    ATT_TRY(att_path_join(context, records, name, path, sizeof path));
    ATT_TRY(att_json_writer_finish(json, &text, &length));
    ATT_TRY(att_file_make_folders(context, records));
    ATT_TRY(att_file_writer_open(context, path, &file));
    att_status status = att_file_writer_write(file, text, length);
    if (status == ATT_OK)
        status = att_file_writer_write(file, "\n", 1);
    if (status == ATT_OK)
        return att_file_writer_commit(&file);
    att_file_writer_abort(&file);
    return status;
}

att_status att_result_record_write(att_context *context, const char *root, int run, const att_result_source *source,
                                   const char *records)
{
    const att_result_run *of = att_result_run_at(run);
    recording r = {.folder = {.context = context}};
    if (!of || !root || !source || !records)
        return att_fail(context, ATT_ERR_ARGUMENT, "there is no run %d, or a folder is missing", run);
    r.run = of->name;
    ATT_TRY(att_json_writer_create(context, true, &r.json));
    att_status status = att_result_folder_open(context, root, of->name, &r.folder);
    att_json_begin_object(r.json);
    write_source(of, source, r.json);
    att_json_put_object(r.json, "figures");
    if (status == ATT_OK)
        status = visit_readings(of->name, record_reading, &r);
    att_json_end_object(r.json);
    att_json_end_object(r.json);
    if (status == ATT_OK)
        status = save(context, records, of->name, r.json);
    att_result_folder_close(&r.folder);
    att_json_writer_destroy(&r.json);
    return status;
}

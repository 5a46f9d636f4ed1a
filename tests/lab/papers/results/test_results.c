/* Published results: that their tables fit their runs, and how files become verdicts. */
#include <attscope/lab/results.h>

#include "base/io/scratch.h"
#include "lab/papers/results/list.h"
#include "lab/papers/results/record.h"

/* --- the tables --------------------------------------------------------------------------------------------------- */

static const att_result_run *run_named(const char *name)
{
    for (int i = 0; i < att_result_run_count(); i++)
        if (strcmp(att_result_run_at(i)->name, name) == 0)
            return att_result_run_at(i);
    return NULL;
}

/* Returns the argument after `flag` in the step; NULL if there is none. */
static const char *value_of(const att_result_step *step, const char *flag)
{
    for (int i = 0; step->arguments[i]; i++)
        if (strcmp(step->arguments[i], flag) == 0)
            return step->arguments[i + 1];
    return NULL;
}

/* Whether the list, separated by commas, has the item. */
static bool lists(const char *list, const char *item)
{
    const size_t length = strlen(item);
    for (const char *at = list; at && (at = strstr(at, item)); at++)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

/* Whether the sweep varies FLAG and its list has VALUE, for "FLAG=VALUE". */
static bool varies(const att_result_step *sweep, const char *setting)
{
    const size_t flag = strcspn(setting, "=") + 1;
    for (int i = 0; sweep->arguments[i]; i++)
        if (strcmp(sweep->arguments[i], "--vary") == 0 && strncmp(sweep->arguments[i + 1], setting, flag) == 0 &&
            lists(sweep->arguments[i + 1] + flag, setting + flag))
            return true;
    return false;
}

/* Whether the run's sweep, its first step, has the setting: "FLAG=VALUE,FLAG=VALUE". */
static bool has_setting(const att_result_run *run, const char *setting)
{
    char text[128], *rest = text, *word;
    snprintf(text, sizeof text, "%s", setting);
    if ((word = strchr(text, '{')) != NULL)
        strcpy(word, "4"); /* the number of a block */
    for (char *part; (part = strtok_r(rest, ",", &rest)) != NULL;)
        if (!varies(&run->steps[0], part))
            return false;
    return true;
}

/* Whether a step of the run leaves what the reading reads. */
static bool is_made(const att_result_run *run, const att_reading *reading)
{
    bool file = !reading->file || strcmp(reading->file, "sweep.json") == 0;
    for (int s = 0; reading->file && s < ATT_RESULT_STEPS && run->steps[s].arguments[0]; s++) {
        const char *writes = run->steps[s].writes, *name = writes ? strrchr(writes, '/') : NULL;
        file = file || (name && strcmp(name + 1, reading->file) == 0);
    }
    if (!reading->setting)
        return file && reading->file;
    return file && has_setting(run, reading->setting) && (!reading->minus || has_setting(run, reading->minus)) &&
           (reading->file || lists(value_of(&run->steps[0], "--measure"), reading->figure));
}

static void check_reading(const att_result *result, const att_reading *reading)
{
    const att_result_run *run = run_named(result->info.run);
    if (!is_made(run, reading))
        fail_msg("%s reads %s %s %s, which no step of %s leaves", result->info.name, reading->setting,
                 reading->file ? reading->file : "", reading->figure, run->name);
    assert_true(reading->file || reading->statistic);
}

SCRATCH_TEST(tables)
{
    (void)self;
    for (int i = 0; i < att_result_count(); i++) {
        const att_result *result = att_result_find(i);
        const att_result_info *info = att_result_at(i);
        assert_ptr_equal(info, &result->info);
        assert_true(info->name && info->paper && info->place && info->claim && info->scale);
        assert_true(info->run ? run_named(info->run) != NULL : info->note != NULL);
        assert_in_range(result->count, 0, ATT_RESULT_CRITERIA);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(att_result_at(k)->name, info->name);
        for (int c = 0; c < result->count; c++) {
            assert_true(result->criteria[c].says && result->criteria[c].expects);
            check_reading(result, &result->criteria[c].value);
            if (result->criteria[c].against.figure)
                check_reading(result, &result->criteria[c].against);
        }
    }
    assert_null(att_result_at(-1));
    assert_null(att_result_at(att_result_count()));
    assert_null(att_result_run_at(att_result_run_count()));
}

/* --- verdicts ----------------------------------------------------------------------------------------------------- */

static int index_of(const char *name)
{
    for (int i = 0; i < att_result_count(); i++)
        if (strcmp(att_result_at(i)->name, name) == 0)
            return i;
    fail_msg("there is no result %s", name);
    return -1;
}

static void write_text(const scratch *self, const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", self->folder, folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", self->folder, folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Writes the record of a run with these figures. */
static void write_record(const scratch *self, const char *run, const char *figures)
{
    char name[64], text[4096];
    snprintf(name, sizeof name, "%s.json", run);
    snprintf(text, sizeof text, "{\"figures\":{%s}}", figures);
    write_text(self, "records", name, text);
}

static att_judgement judge(const scratch *self, const char *name)
{
    char records[256];
    att_judgement judgement;
    snprintf(records, sizeof records, "%s/records", self->folder);
    CHECK(self->context, att_result_judge(self->context, records, index_of(name), &judgement));
    return judgement;
}

/* ln r of three seeds with skips; without them it is -5, -6 and -7. */
static att_judgement judge_skips(const scratch *self, double a, double b, double c)
{
    char text[512];
    snprintf(text, sizeof text,
             "\"skip-{seed}.json stacks.0.layers.6.residual.ln\":{\"1\":%g,\"2\":%g,\"3\":%g},"
             "\"attention-{seed}.json stacks.0.layers.6.residual.ln\":{\"1\":-5,\"2\":-6,\"3\":-7}",
             a, b, c);
    write_record(self, "stacks", text);
    return judge(self, "dong-skips");
}

SCRATCH_TEST(intervals)
{
    assert_int_equal(judge(self, "dong-skips").verdict, ATT_VERDICT_NOT_RUN);
    att_judgement judged = judge_skips(self, 4, 5, 6);
    assert_int_equal(judged.verdict, ATT_VERDICT_AGREES);
    assert_int_equal(judged.count, 2);
    assert_int_equal(judged.criteria[0].value.count, 3);
    assert_float_equal(judged.criteria[0].value.mean, 5, 1e-12);
    /* 5 -/+ 4.3027 / sqrt(3) */
    assert_float_equal(judged.criteria[0].value.low, 5 - 2.48414, 1e-5);
    assert_float_equal(judged.criteria[1].value.mean, -6, 1e-12);
    assert_int_equal(judge_skips(self, 1, 5, 9).verdict, ATT_VERDICT_CANNOT_TELL);
    judged = judge_skips(self, -4, -5, -6);
    assert_int_equal(judged.verdict, ATT_VERDICT_DISAGREES);
    assert_int_equal(judged.criteria[1].verdict, ATT_VERDICT_AGREES);
}

SCRATCH_TEST(a_single_seed_cannot_tell)
{
    write_record(self, "stacks",
                 "\"skip-{seed}.json stacks.0.layers.6.residual.ln\":{\"1\":5},"
                 "\"attention-{seed}.json stacks.0.layers.6.residual.ln\":{}");
    att_judgement judged = judge(self, "dong-skips");
    assert_int_equal(judged.criteria[0].value.count, 1);
    assert_int_equal(judged.criteria[1].value.count, 0);
    assert_int_equal(judged.criteria[1].verdict, ATT_VERDICT_CANNOT_TELL);
    assert_int_equal(judged.verdict, ATT_VERDICT_CANNOT_TELL);
}

/* Differences are taken seed by seed: here 1 in each, while the values differ by 10. */
SCRATCH_TEST(pairs)
{
    write_record(self, "stacks",
                 "\"mlp-{seed}.json stacks.0.layers.6.residual.ln\":{\"1\":-8.99,\"2\":-18.98,\"3\":-28.97,\"4\":9},"
                 "\"attention-{seed}.json stacks.0.layers.6.residual.ln\":{\"1\":-10,\"2\":-20,\"3\":-30}");
    att_judgement judged = judge(self, "dong-mlps");
    assert_int_equal(judged.verdict, ATT_VERDICT_AGREES);
    assert_float_equal(judged.criteria[0].value.mean, 1.02, 1e-12);
    assert_int_equal(judged.criteria[0].value.count, 3);
}

/* --- records ------------------------------------------------------------------------------------------------------ */

static int run_index(const char *name)
{
    for (int i = 0; i < att_result_run_count(); i++)
        if (strcmp(att_result_run_at(i)->name, name) == 0)
            return i;
    fail_msg("there is no run %s", name);
    return -1;
}

static att_status record(const scratch *self, const char *run)
{
    static const att_result_source source = {"0.2.0", "2026-11-30", "a machine", 12.5};
    char records[256];
    snprintf(records, sizeof records, "%s/records", self->folder);
    return att_result_record_write(self->context, self->folder, run_index(run), &source, records);
}

static att_result_record state_of(const scratch *self, const char *run)
{
    char records[256];
    att_result_record state;
    snprintf(records, sizeof records, "%s/records", self->folder);
    CHECK(self->context, att_result_record_read(self->context, records, run_index(run), &state));
    return state;
}

static void write_costs(const scratch *self, int added)
{
    char text[256];
    snprintf(text, sizeof text,
             "[{\"with\":[{\"added_param_count\":%d,\"added_infer_flops\":5},{\"added_param_count\":4608},{},"
             "{\"added_infer_flops\":6}]}]",
             added);
    write_text(self, "costs", "costs.json", text);
}

SCRATCH_TEST(records_outlive_the_files)
{
    write_costs(self, 0);
    assert_int_equal(state_of(self, "costs").state, ATT_RECORD_MISSING);
    CHECK(self->context, record(self, "costs"));
    const att_result_record state = state_of(self, "costs");
    assert_int_equal(state.state, ATT_RECORD_CURRENT);
    assert_string_equal(state.source.machine, "a machine");
    assert_float_equal(state.source.seconds, 12.5, 0);
    write_text(self, "costs", "costs.json", "");
    assert_int_equal(judge(self, "hyeon-woo-table2").verdict, ATT_VERDICT_AGREES);
    write_costs(self, 1); /* no chance decides this figure, so it is compared itself */
    CHECK(self->context, record(self, "costs"));
    assert_int_equal(judge(self, "hyeon-woo-table2").verdict, ATT_VERDICT_DISAGREES);
}

SCRATCH_TEST(a_run_that_lacks_figures_is_not_recorded)
{
    write_text(self, "costs", "costs.json", "[{\"with\":[{\"added_param_count\":0}]}]");
    assert_fails(self->context, record(self, "costs"), ATT_ERR_NOT_FOUND, "0.with.1.added_param_count");
    assert_int_equal(state_of(self, "costs").state, ATT_RECORD_MISSING);
}

/* The record of another command, and one without a figure. */
SCRATCH_TEST(records_that_are_not_current)
{
    char path[256], text[4096] = "";
    write_costs(self, 0);
    CHECK(self->context, record(self, "costs"));
    snprintf(path, sizeof path, "%s/records/costs.json", self->folder);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_in_range(fread(text, 1, sizeof text - 1, file), 1, sizeof text - 2);
    fclose(file);
    char *figure = strstr(text, "costs.json 0.with.3");
    figure[0] = 'C';
    write_text(self, "records", "costs.json", text);
    assert_int_equal(state_of(self, "costs").state, ATT_RECORD_INCOMPLETE);
    assert_int_equal(judge(self, "hyeon-woo-table2").verdict, ATT_VERDICT_NOT_RUN);
    figure[0] = 'c';
    strstr(text, "vit_small")[0] = 'V';
    write_text(self, "records", "costs.json", text);
    assert_int_equal(state_of(self, "costs").state, ATT_RECORD_OUTDATED);
    assert_int_equal(judge(self, "hyeon-woo-table2").verdict, ATT_VERDICT_AGREES);
}

static bool is_of(const char *record, const att_result_run *run)
{
    json_t *root = json_loads(record, 0, NULL);
    assert_non_null(root);
    const bool same = att_record_is_of(root, run);
    json_decref(root);
    return same;
}

SCRATCH_TEST(comments_do_not_change_a_recipe)
{
    (void)self;
    static const att_result_run run = {
        .name = "any", .recipe = "# a comment\na: 1 # another\n\n  b: 2\n", .steps = {{.arguments = {"x", "--y"}}}};
    assert_true(is_of("{\"commands\":[\"x --y\"],\"recipe\":[\"a: 1\",\"  b: 2\"]}", &run));
    assert_false(is_of("{\"commands\":[\"x --y\"],\"recipe\":[\"a: 1\"]}", &run));
    assert_false(is_of("{\"commands\":[\"x --y\"],\"recipe\":[\"a: 1\",\"  b: 2\",\"c: 3\"]}", &run));
    assert_false(is_of("{\"commands\":[\"x --y\",\"z\"],\"recipe\":[\"a: 1\",\"  b: 2\"]}", &run));
    assert_false(is_of("{\"commands\":[\"x --z\"],\"recipe\":[\"a: 1\",\"  b: 2\"]}", &run));
    assert_false(is_of("{}", &run));
}

SCRATCH_TEST(damaged)
{
    static const char *const figures[] = {"[1]", "{\"1\":\"x\"}", "{\"-1\":2}", "{\"\":2}"};
    char records[256], text[256];
    att_judgement judgement;
    snprintf(records, sizeof records, "%s/records", self->folder);
    write_text(self, "records", "stacks.json", "{\"figures\":[");
    assert_fails(self->context, att_result_judge(self->context, records, index_of("dong-skips"), &judgement),
                 ATT_ERR_FORMAT, "stacks.json");
    write_text(self, "records", "stacks.json", "{\"figures\":[]}");
    assert_fails(self->context, att_result_judge(self->context, records, index_of("dong-skips"), &judgement),
                 ATT_ERR_FORMAT, "expected the record of a run");
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        snprintf(text, sizeof text, "\"skip-{seed}.json stacks.0.layers.6.residual.ln\":%s", figures[i]);
        write_record(self, "stacks", text);
        assert_fails(self->context, att_result_judge(self->context, records, index_of("dong-skips"), &judgement),
                     ATT_ERR_FORMAT, "skip-{seed}.json");
    }
    assert_fails(self->context, att_result_judge(self->context, records, 1000, &judgement), ATT_ERR_ARGUMENT, "1000");
}

/* --- figures in files --------------------------------------------------------------------------------------------- */

static double read_value(const scratch *self, const char *figure, const char *less, att_fold fold)
{
    const att_reading reading = {.file = "numbers.json", .figure = figure, .less = less, .fold = fold, .limit = 2};
    att_result_folder folder;
    att_result_values values;
    CHECK(self->context, att_result_folder_open(self->context, self->folder, "any", &folder));
    CHECK(self->context, att_result_values_read(&folder, &reading, &values));
    att_result_folder_close(&folder);
    return values.count == 1 ? values.values[0] : NAN;
}

SCRATCH_TEST(paths_name_members_and_elements)
{
    write_text(self, "any", "numbers.json", "{\"rows\":[{\"x\":9,\"y\":1},{\"x\":1,\"y\":1},{\"x\":3,\"y\":5}]}");
    assert_float_equal(read_value(self, "rows.0.x", NULL, ATT_FOLD_MEAN), 9, 0);
    assert_float_equal(read_value(self, "rows.1-.x", NULL, ATT_FOLD_MEAN), 2, 0);
    assert_float_equal(read_value(self, "rows.*.x", NULL, ATT_FOLD_MAX), 9, 0);
    assert_float_equal(read_value(self, "rows.1-.x", NULL, ATT_FOLD_PEAK), 1.5, 0);
    assert_float_equal(read_value(self, "rows.1-.x", NULL, ATT_FOLD_SHARE), 0.5, 0);
    assert_float_equal(read_value(self, "rows.*.x", NULL, ATT_FOLD_SLOPE), -3, 1e-12);
    assert_float_equal(read_value(self, "rows.*.x", "rows.*.y", ATT_FOLD_MAX), 8, 0);
    assert_true(isnan(read_value(self, "rows.*.x", "rows.1-.y", ATT_FOLD_MAX)));
    /* Ranks 3, 1, 2 and 1.5, 1.5, 3: not the correlation of the differences. */
    assert_float_equal(read_value(self, "rows.*.x", "rows.*.y", ATT_FOLD_RHO), 0, 1e-12);
    assert_float_equal(read_value(self, "rows.1-.x", "rows.1-.y", ATT_FOLD_RHO), 1, 1e-12);
    assert_true(isnan(read_value(self, "rows.*.z", NULL, ATT_FOLD_MEAN)));
    write_text(self, "any", "numbers.json", "{\"rows\":[{\"x\":null},{\"x\":1}]}");
    assert_true(isnan(read_value(self, "rows.*.x", NULL, ATT_FOLD_MAX)));
}

static void add_item(char text[2048], const char *instrument, const char *node, const char *statistic,
                     const char *members)
{
    snprintf(text + strlen(text), 2048 - strlen(text),
             "{\"instrument\":\"%s\",\"node\":\"%s\",\"statistic\":\"%s\",%s},", instrument, node, statistic, members);
}

/* Of what attscope measure writes, a reading takes means over all heads of nodes that match. */
SCRATCH_TEST(measurements_in_files)
{
    static const char skip[] = "composite skip";
    att_reading reading = {
        .file = "bert-{seed}.json", .figure = "collapse", .statistic = skip, .nodes = "blocks.*.add1"};
    char text[2048] = "{\"model\":\"bert\",\"measurements\":[";
    att_result_folder folder;
    att_result_values values;
    add_item(text, "collapse", "input", skip, "\"mean\":99");
    add_item(text, "collapse", "blocks.0.add1", skip, "\"mean\":1,\"n\":4");
    add_item(text, "collapse", "blocks.0.add1", skip, "\"mean\":77,\"head\":0");
    add_item(text, "collapse", "blocks.1.add1", skip, "\"mean\":4");
    add_item(text, "collapse", "blocks.1.add1", "composite both", "\"mean\":88");
    add_item(text, "residual", "blocks.1.add1", skip, "\"mean\":66");
    snprintf(text + strlen(text), sizeof text - strlen(text), "{\"instrument\":1},3]}");
    write_text(self, "any", "bert-2.json", text);
    CHECK(self->context, att_result_folder_open(self->context, self->folder, "any", &folder));
    CHECK(self->context, att_result_values_read(&folder, &reading, &values));
    assert_int_equal(values.count, 1);
    assert_int_equal(values.seeds[0], 2);
    assert_float_equal(values.values[0], 2.5, 0);
    reading.nodes = NULL; /* the whole network */
    CHECK(self->context, att_result_values_read(&folder, &reading, &values));
    assert_false(values.found);
    att_result_folder_close(&folder);
}

/* --- sweeps ------------------------------------------------------------------------------------------------------- */

#define MEASURED(instrument, node, statistic) \
    "{\"instrument\":\"" instrument "\",\"node\":\"" node "\",\"statistic\":\"" statistic "\",\"mean\":%g,\"n\":9},"
static void write_member(const scratch *self, const char *setting, int seed, double entropy, double distance,
                         double scale, char *list)
{
    char folder[64], text[2048];
    snprintf(folder, sizeof folder, "context/%s-%d", setting, seed);
    snprintf(text, sizeof text,
             "{\"event\":\"run_begin\"}\n{\"event\":\"measure\",\"step\":1,\"with\":\"entropy\",\"measurements\":["
             MEASURED("entropy", "blocks.0.attn", "mean") MEASURED("entropy", "blocks.4.attn", "mean")
             MEASURED("distance", "blocks.0.attn", "mean") MEASURED("cbs_scale", "blocks.0.cb_s", "mean")
             MEASURED("cbs_scale", "blocks.1.cb_s", "mean")
             "{\"instrument\":\"entropy\",\"node\":\"blocks.4.attn\",\"head\":0,\"statistic\":\"mean\",\"mean\":77,"
             "\"n\":9}]}\n",
             50.0, entropy, distance, scale, 3 * scale);
    write_text(self, folder, "measure.jsonl", text);
    snprintf(list + strlen(list), 2048 - strlen(list),
             "%s{\"name\":\"%s-%d\",\"setting\":\"modules=%s\",\"seed\":%d,\"status\":\"measured\"}", *list ? "," : "",
             setting, seed, setting, seed);
}

static void write_context(const scratch *self)
{
    char list[2048] = "", text[2200];
    write_text(self, "context", "sweep.json", "");
    for (int seed = 1; seed <= 3; seed++) {
        write_member(self, "none", seed, 3 + 0.1 * seed, 0.5, 0, list);
        write_member(self, "cb_s", seed, 1, 0.5, 1 + 0.1 * seed, list);
    }
    snprintf(text, sizeof text, "{\"runs\":[%s]}", list);
    write_text(self, "context", "sweep.json", text);
}

static att_result_values read_reading(const scratch *self, const att_reading *reading)
{
    att_result_folder folder;
    att_result_values values;
    CHECK(self->context, att_result_folder_open(self->context, self->folder, "context", &folder));
    CHECK(self->context, att_result_values_read(&folder, reading, &values));
    att_result_folder_close(&folder);
    return values;
}

/* Reads criterion `index` of hyeon-woo-fig5. */
static att_result_values read_criterion(const scratch *self, int index, bool against)
{
    const att_criterion *criterion = &att_result_find(index_of("hyeon-woo-fig5"))->criteria[index];
    return read_reading(self, against ? &criterion->against : &criterion->value);
}

/* A run with the module in block `member`, -1 for none. The blocks have zeta 0.1, 0.5 and 0.9 - seed. */
static void write_block_run(const scratch *self, int member, int seed, char *list)
{
    static const double top1[] = {0, 40, 60, 50};
    char folder[64], text[2048], setting[64];
    snprintf(folder, sizeof folder, "context/%d-%d", member, seed);
    snprintf(
        text, sizeof text,
        "{\"event\":\"run_begin\"}\n{\"event\":\"measure\",\"step\":1,\"with\":\"nsi\",\"measurements\":[" MEASURED(
            "nsi", "layer1.0.add", "attention") MEASURED("nsi", "layer1.1.add", "attention")
            MEASURED("nsi", "layer1.2.add", "attention") MEASURED(
                "nsi", "layer1.2.add",
                "unit") "{\"instrument\":\"accuracy\",\"node\":\"\",\"statistic\":\"top1\",\"mean\":%g,\"n\":9}]}\n",
        0.1, 0.5, 0.9 - seed, 77.0, top1[member + 1] + seed);
    write_text(self, folder, "measure.jsonl", text);
    snprintf(setting, sizeof setting, member < 0 ? "none" : "se@after_branch:%d", member);
    snprintf(list + strlen(list), 2048 - strlen(list),
             "%s{\"name\":\"%d-%d\",\"setting\":\"modules=%s\",\"seed\":%d,\"status\":\"measured\"}", *list ? "," : "",
             member, seed, setting, seed);
}

SCRATCH_TEST(the_stiffest_block)
{
    char list[2048] = "", text[2200];
    write_text(self, "context", "sweep.json", "");
    for (int seed = 1; seed <= 2; seed++)
        for (int member = -1; member < 3; member++)
            write_block_run(self, member, seed, list);
    snprintf(text, sizeof text, "{\"runs\":[%s]}", list);
    write_text(self, "context", "sweep.json", text);
    const att_criterion *criterion = &att_result_find(index_of("huang-few-blocks"))->criteria[0];
    const att_result_values values = read_reading(self, &criterion->value);
    const att_result_values others = read_reading(self, &criterion->against);
    assert_int_equal(values.count, 2);
    assert_float_equal(values.values[1], 62, 1e-12); /* block 1: the mean of block 2 is below 0 */
    assert_int_equal(others.count, 2);
    assert_float_equal(others.values[0], 46, 1e-12);
}

SCRATCH_TEST(sweeps)
{
    write_context(self);
    att_result_values values = read_criterion(self, 0, true);
    assert_int_equal(values.count, 3);
    assert_int_equal((int)values.seeds[2], 3);
    assert_float_equal(values.values[2], 3.3, 1e-12); /* only blocks.4, and no single heads */
    assert_false(read_criterion(self, 0, false).found);
    const att_reading gain = {.setting = "modules=cb_s",
                              .minus = "modules=none",
                              .figure = "entropy",
                              .statistic = "mean",
                              .nodes = "blocks.4.*"};
    values = read_reading(self, &gain);
    assert_int_equal(values.count, 3);
    assert_float_equal(values.values[1], 1 - 3.2, 1e-12);
    assert_float_equal(read_criterion(self, 2, false).values[0], 2.2, 1e-9); /* the slope of 1.1 and 3.3 */
}

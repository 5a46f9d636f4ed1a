/* Published results: that their tables fit their runs, and how files become verdicts. */
#include <attscope/lab/results.h>

#include "base/io/scratch.h"
#include "lab/papers/results/list.h"
#include "lab/papers/results/values.h"

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

/* Whether a step of the run leaves what the reading reads. */
static bool is_made(const att_result_run *run, const att_reading *reading)
{
    const char *sweep_vary = value_of(&run->steps[0], "--vary");
    bool file = !reading->file || strcmp(reading->file, "sweep.json") == 0;
    for (int s = 0; reading->file && s < ATT_RESULT_STEPS && run->steps[s].arguments[0]; s++) {
        const char *writes = run->steps[s].writes, *name = writes ? strrchr(writes, '/') : NULL;
        file = file || (name && strcmp(name + 1, reading->file) == 0);
    }
    if (!reading->setting)
        return file && reading->file;
    const char *setting = strchr(reading->setting, '=');
    return file && setting && sweep_vary && lists(strchr(sweep_vary, '=') + 1, setting + 1) &&
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

/* A stack of six layers whose last residual is e^ln. */
static void write_stack(const scratch *self, const char *kind, int seed, double ln)
{
    char name[64], text[1024];
    snprintf(name, sizeof name, "%s-%d.json", kind, seed);
    snprintf(text, sizeof text,
             "{\"stacks\":[{\"layers\":[0,1,2,3,4,5,{\"residual\":{\"ln\":%g}},{\"residual\":{\"ln\":99}}]}]}", ln);
    write_text(self, "stacks", name, text);
}

static att_judgement judge(const scratch *self, const char *name)
{
    att_judgement judgement;
    assert_int_equal(att_result_judge(self->context, self->folder, index_of(name), &judgement), ATT_OK);
    return judgement;
}

/* ln r of three seeds with skips; without them it is -5, -6 and -7. */
static att_judgement judge_skips(const scratch *self, double a, double b, double c)
{
    const double with[] = {a, b, c};
    for (int seed = 1; seed <= 3; seed++) {
        write_stack(self, "skip", seed, with[seed - 1]);
        write_stack(self, "attention", seed, -4.0 - seed);
    }
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
    write_stack(self, "skip", 1, 5);
    write_stack(self, "attention", 1, -5);
    att_judgement judged = judge(self, "dong-skips");
    assert_int_equal(judged.criteria[0].value.count, 1);
    assert_int_equal(judged.verdict, ATT_VERDICT_CANNOT_TELL);
}

SCRATCH_TEST(values_that_no_chance_decides_are_compared)
{
    static const char costs[] =
        "[{\"with\":[{\"added_param_count\":%d,\"added_infer_flops\":5},{\"added_param_count\":4608},{},"
        "{\"added_infer_flops\":%d}]}]";
    char text[256];
    snprintf(text, sizeof text, costs, 0, 6);
    write_text(self, "costs", "costs.json", text);
    assert_int_equal(judge(self, "hyeon-woo-table2").verdict, ATT_VERDICT_AGREES);
    snprintf(text, sizeof text, costs, 1, 6);
    write_text(self, "costs", "costs.json", text);
    assert_int_equal(judge(self, "hyeon-woo-table2").verdict, ATT_VERDICT_DISAGREES);
}

/* Differences are taken seed by seed: here 1 in each, while the values differ by 10. */
SCRATCH_TEST(pairs)
{
    for (int seed = 1; seed <= 3; seed++) {
        write_stack(self, "attention", seed, -10.0 * seed);
        write_stack(self, "mlp", seed, -10.0 * seed + 1 + 0.01 * seed);
    }
    att_judgement judged = judge(self, "dong-mlps");
    assert_int_equal(judged.verdict, ATT_VERDICT_AGREES);
    assert_float_equal(judged.criteria[0].value.mean, 1.02, 1e-12);
    write_stack(self, "mlp", 4, 1000); /* no such seed without MLPs */
    assert_int_equal(judge(self, "dong-mlps").criteria[0].value.count, 3);
}

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
    assert_true(isnan(read_value(self, "rows.*.z", NULL, ATT_FOLD_MEAN)));
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

static void write_context(const scratch *self, double entropy_of_cb, double distance_of_cb)
{
    char list[2048] = "", text[2200];
    write_text(self, "context", "sweep.json", "");
    for (int seed = 1; seed <= 3; seed++) {
        write_member(self, "none", seed, 3 + 0.1 * seed, 0.5, 0, list);
        write_member(self, "cb", seed, entropy_of_cb + 0.11 * seed, distance_of_cb, 0, list);
        write_member(self, "cb_s", seed, 1, 0.5, 1 + 0.1 * seed, list);
    }
    snprintf(text, sizeof text, "{\"runs\":[%s]}", list);
    write_text(self, "context", "sweep.json", text);
}

SCRATCH_TEST(sweeps)
{
    write_context(self, 2.5, 0.51);
    att_judgement judged = judge(self, "hyeon-woo-fig5");
    assert_int_equal(judged.verdict, ATT_VERDICT_AGREES);
    assert_float_equal(judged.criteria[0].value.mean, -0.48, 1e-9); /* only blocks.4, and no single heads */
    assert_float_equal(judged.criteria[1].value.mean, 0.01, 1e-9);  /* 2 % of 0.5 */
    assert_float_equal(judged.criteria[2].value.mean, 2.4, 1e-9);   /* the slope of 1.2 and 3.6 */
    write_context(self, 2.5, 0.53);
    assert_int_equal(judge(self, "hyeon-woo-fig5").verdict, ATT_VERDICT_DISAGREES); /* 6 % */
}

SCRATCH_TEST(damaged)
{
    att_judgement judgement;
    write_stack(self, "skip", 1, 1);
    write_text(self, "stacks", "skip-2.json", "{\"stacks\":[");
    assert_fails(self->context, att_result_judge(self->context, self->folder, index_of("dong-skips"), &judgement),
                 ATT_ERR_FORMAT, "skip-2.json");
    assert_fails(self->context, att_result_judge(self->context, self->folder, 1000, &judgement), ATT_ERR_ARGUMENT,
                 "1000");
}

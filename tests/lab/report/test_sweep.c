/* Several runs together: means and deviations over seeds, the state of a run, and the report of a sweep. */
#include <attscope/lab/report.h>
#include <attscope/lab/sweep.h>

#include "base/io/json.h"
#include "base/io/scratch.h"
#include "lab/report/paired.h"
#include "lab/report/sweep.h"

enum { RUNS = 6 };

static const struct {
    const char *setting;
    uint64_t seed;
    double top1, tns, nsi, seconds;
} made[RUNS] = {{"a", 1, 90, 0.5, 0.25, 10},  {"a", 2, 92, 0.75, 0.5, 14}, {"a", 3, 94, 0.25, 0.75, 12},
                {"b", 1, 91, 1.5, 1.25, 100}, {"b", 2, 93, 1.75, 1.5, 90}, {"b", 3, 96, 1.25, NAN, 95}};

static char *path_of(const scratch *self, const char *folder, const char *name, char path[256])
{
    snprintf(path, 256, "%s/%s%s%s", self->folder, folder, *folder ? "/" : "", name);
    return path;
}

static void write_text(const scratch *self, const char *folder, const char *name, const char *text)
{
    char path[256];
    path_of(self, folder, "", path);
    mkdir(path, 0777);
    FILE *file = fopen(path_of(self, folder, name, path), "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static const char *number(double value, char text[32])
{
    snprintf(text, 32, isnan(value) ? "null" : "%.17g", value);
    return text;
}

#define BEGIN "{\"event\":\"run_begin\",\"parameters\":1000}\n"
#define OTHER "\"deviation\":3,\"n\":64"

/* Writes a training run that was stopped after its first epoch and resumed, with a clock that starts again, and its
 * measurement. */
static void write_run(const scratch *self, int i)
{
    char folder[32], text[2048], numbers[4][32];
    snprintf(folder, sizeof folder, "run%d", i);
    snprintf(text, sizeof text,
             BEGIN
             "{\"event\":\"epoch\",\"epoch\":0,\"step\":6,\"seconds\":%s,\"eval_top1\":1}\n"
             "{\"event\":\"epoch\",\"epoch\":1,\"step\":12,\"seconds\":1,\"eval_top1\":%d}\n"
             "{\"event\":\"run_end\",\"epoch\":2,\"step\":12,\"seconds\":2,\"status\":\"OK\"}\n",
             number(made[i].seconds - 2, numbers[0]), 50 + 10 * i);
    write_text(self, folder, "metrics.jsonl", text);
    snprintf(
        text, sizeof text,
        "{\"event\":\"run_begin\"}\n{\"event\":\"measure\",\"step\":12,\"with\":\"accuracy,nsi,tns\","
        "\"measurements\":[{\"instrument\":\"accuracy\",\"node\":\"\",\"statistic\":\"top1\",\"mean\":%s," OTHER
        "},"
        "{\"instrument\":\"nsi\",\"node\":\"layer1.0.add\",\"statistic\":\"attention\",\"mean\":%s," OTHER
        ",\"samples\":[0.5,null,0.25]},"
        "{\"instrument\":\"nsi\",\"node\":\"layer1.0.add\",\"head\":0,\"statistic\":\"attention\",\"mean\":7," OTHER
        "},{\"instrument\":\"tns\",\"node\":\"\",\"statistic\":\"tns attention\",\"mean\":%s," OTHER "}]}\n",
        number(made[i].top1, numbers[0]), number(made[i].nsi, numbers[1]), number(made[i].tns, numbers[2]));
    write_text(self, folder, "measure.jsonl", text);
}

static void write_runs(const scratch *self, att_sweep_run runs[RUNS], char folders[RUNS][256])
{
    for (int i = 0; i < RUNS; i++) {
        write_run(self, i);
        snprintf(folders[i], 256, "%s/run%d", self->folder, i);
        runs[i] = (att_sweep_run){folders[i], made[i].setting, made[i].seed};
    }
}

static void near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-13 * fabs(expected)))
        fail_msg("%.17g, expected %.17g", value, expected);
}

SCRATCH_TEST(figures_are_averaged_over_the_runs_of_a_setting)
{
    att_sweep_run runs[RUNS];
    char folders[RUNS][256];
    write_runs(self, runs, folders);
    att_sweep *sweep = NULL;
    CHECK(self->context, att_sweep_read(self->context, runs, RUNS, NULL, 0, 0, &sweep));
    assert_int_equal(att_sweep_setting_count(sweep), 2);
    att_sweep_setting a = att_sweep_setting_at(sweep, 0), b = att_sweep_setting_at(sweep, 1);
    assert_string_equal(a.name, "a");
    assert_string_equal(b.name, "b");
    assert_true(b.runs == 3 && b.seeds[0] == 1 && b.seeds[2] == 3 && a.parameters == 1000);
    assert_int_equal(a.figure_count, 3); /* without single heads */
    near(a.seconds, 12);
    near(a.seconds_deviation, 2);
    assert_string_equal(a.metric->name, "top1"); /* the first task, because the records name none */
    near(a.score, 60);
    near(a.score_deviation, 10);
    near(b.score, 90);
    att_measurement top1 = att_sweep_figure_find(sweep, 0, "accuracy", "", "top1");
    near(top1.mean, 92);
    near(top1.deviation, 2);
    assert_int_equal(top1.count, 3);
    att_measurement nsi = att_sweep_figure_find(sweep, 1, "nsi", "layer1.0.add", "attention");
    near(nsi.mean, 1.375); /* NaN is not counted */
    near(nsi.deviation, 0.25 / sqrt(2));
    assert_int_equal(nsi.count, 2);
    assert_int_equal(att_sweep_figure_find(sweep, 1, "nsi", "", "attention").count, 0);
    att_sweep_destroy(&sweep);
    assert_null(sweep);
}

SCRATCH_TEST(correlations_are_of_all_runs_and_of_each_setting)
{
    att_sweep_run runs[RUNS];
    char folders[RUNS][256];
    write_runs(self, runs, folders);
    att_sweep *sweep = NULL;
    CHECK(self->context, att_sweep_read(self->context, runs, RUNS, NULL, 0, 0, &sweep));
    assert_int_equal(att_sweep_correlation_count(sweep), 3); /* no run has the other reading */
    att_sweep_correlation all = att_sweep_correlation_at(sweep, 0), a = att_sweep_correlation_at(sweep, 1);
    assert_null(all.setting);
    assert_string_equal(all.of.x, "tns/tns attention");
    assert_string_equal(all.of.y, "accuracy/top1");
    assert_int_equal(all.runs.count, RUNS);
    near(all.runs.kendall.value, 1.0 / 15); /* 8 of 15 pairs are concordant */
    assert_string_equal(a.setting, "a");
    near(a.runs.kendall.value, -1.0 / 3);
    assert_true(isnan(a.runs.kendall.low));
    assert_true(a.runs.groups == 3 && a.runs.permutations == 6 && a.means.count == 0);
    near(a.runs.kendall.p, 1);
    assert_true(all.runs.groups == 2 && all.runs.permutations == 2); /* settings, not runs */
    assert_int_equal(all.means.count, 2);
    near(all.means.kendall.value, 1);                      /* b has the larger mean of both figures */
    near(all.runs.kendall.adjusted_p, all.runs.kendall.p); /* one reading */
    att_sweep_destroy(&sweep);

    const att_sweep_pair pairs[] = {{"accuracy/top1", "nsi/layer1.0.add/attention"}, {"accuracy/top1", "tns/nothing"}};
    CHECK(self->context, att_sweep_read(self->context, runs, RUNS, pairs, 2, 0, &sweep));
    assert_int_equal(att_sweep_correlation_count(sweep), 3); /* no correlation of a figure that no run has */
    all = att_sweep_correlation_at(sweep, 0);
    assert_string_equal(all.of.x, "accuracy/top1");
    assert_string_equal(all.of.y, "nsi/layer1.0.add/attention");
    assert_int_equal(all.runs.count, RUNS - 1); /* NaN has no rank */
    att_sweep_destroy(&sweep);
    assert_int_equal(att_sweep_read(self->context, runs, RUNS, pairs, ATT_SWEEP_MOST_PAIRS + 1, 0, &sweep),
                     ATT_ERR_ARGUMENT);

    CHECK(self->context, att_sweep_read(self->context, runs, 3, NULL, 0, 0, &sweep)); /* one setting is not repeated */
    assert_int_equal(att_sweep_correlation_count(sweep), 1);
    att_sweep_destroy(&sweep);
    CHECK(self->context, att_sweep_read(self->context, runs, 0, NULL, 0, 0, &sweep));
    assert_int_equal(att_sweep_setting_count(sweep) + att_sweep_correlation_count(sweep), 0);
    att_sweep_destroy(&sweep);
    assert_int_equal(att_sweep_read(self->context, runs, ATT_SWEEP_MOST_RUNS + 1, NULL, 0, 0, &sweep),
                     ATT_ERR_ARGUMENT);
    runs[2].folder = "/nowhere";
    assert_int_equal(att_sweep_read(self->context, runs, RUNS, NULL, 0, 0, &sweep), ATT_ERR_NOT_FOUND);
}

/* top1 of a: 90, 92, 94; of b: 91, 93, 96. By seed, b - a is 1, 1, 2: mean 4/3, deviation 1/sqrt(3). */
SCRATCH_TEST(settings_are_compared_seed_by_seed)
{
    att_sweep_run runs[RUNS];
    char folders[RUNS][256];
    write_runs(self, runs, folders);
    att_sweep_run first = runs[0];
    runs[0] = runs[2]; /* the order of seeds does not matter */
    runs[2] = first;
    att_sweep *sweep = NULL;
    CHECK(self->context, att_sweep_read(self->context, runs, RUNS, NULL, 0, 0, &sweep));
    int top1 = att_sweep_figure_index(sweep, 0, "accuracy", "", "top1");
    att_paired paired =
        att_sweep_difference(sweep, 1, att_sweep_figure_index(sweep, 1, "accuracy", "", "top1"), 0, top1);
    assert_int_equal(paired.count, 3);
    near(paired.mean, 4.0 / 3);
    near(paired.deviation, 1 / sqrt(3));
    near(paired.high, 4.0 / 3 + att_student_quantile(2, 0.95) / 3);
    int nsi = att_sweep_figure_index(sweep, 0, "nsi", "layer1.0.add", "attention");
    paired = att_sweep_difference(sweep, 1, nsi, 0, nsi);
    assert_int_equal(paired.count, 2); /* seed 3 of b has no value */
    near(paired.mean, 1);
    assert_int_equal(att_sweep_difference(sweep, 1, 99, 0, top1).count, 0);
    assert_int_equal(att_sweep_difference(sweep, 1, top1, -1, top1).count, 0);
    paired = att_sweep_score_difference(sweep, 1, 0); /* the last evaluations of b are 30 above those of a */
    assert_true(paired.count == 3 && paired.mean == 30 && paired.deviation == 0);
    assert_int_equal(att_sweep_score_difference(sweep, 1, 2).count, 0);
    assert_int_equal(att_sweep_score_difference(sweep, -1, 0).count, 0);

    att_sweep_ranking ranking = att_sweep_rank(sweep, "accuracy", "", "top1");
    assert_true(ranking.best == 1 && ranking.second == 0);
    near(ranking.lead.mean, 4.0 / 3);
    assert_false(att_paired_is_separated(&ranking.lead));                         /* 1.33 +- 1.43 */
    assert_int_equal(att_sweep_rank(sweep, "tns", "", "tns attention").best, -1); /* no figure that rates a network */
    assert_int_equal(att_sweep_rank(sweep, "accuracy", "", "absent").best, -1);
    att_sweep_destroy(&sweep);
    CHECK(self->context, att_sweep_read(self->context, runs, 3, NULL, 0, 0, &sweep));
    ranking = att_sweep_rank(sweep, "accuracy", "", "top1");
    assert_true(ranking.best == 0 && ranking.second == -1);
    att_sweep_destroy(&sweep);
    assert_int_equal(att_sweep_direction(NULL, "accuracy", "top1"), 1);
    assert_int_equal(att_sweep_direction(NULL, "accuracy", "loss"), -1);
    assert_int_equal(att_sweep_direction(NULL, "entropy", "mean"), 0);
    assert_int_equal(att_sweep_direction(NULL, "unknown", "loss"), 0);
}

static att_run_state state_of(const scratch *self, const char *folder, const char *with)
{
    char path[256];
    att_run_state state = {.trained = true, .measured = true};
    CHECK(self->context, att_run_state_read(self->context, path_of(self, folder, "", path), with, &state));
    return state;
}

SCRATCH_TEST(a_run_is_trained_and_measured_when_its_logs_say_so)
{
    att_run_state s = state_of(self, "absent", "nsi");
    assert_true(!s.trained && !s.measured);
    write_run(self, 0);
    s = state_of(self, "run0", "accuracy,nsi,tns");
    assert_true(s.trained && s.measured);
    s = state_of(self, "run0", "accuracy");
    assert_true(s.trained && !s.measured);
    write_text(self, "run0", "metrics.jsonl", BEGIN "{\"event\":\"run_end\",\"step\":13,\"status\":\"OK\"}\n");
    s = state_of(self, "run0", "accuracy,nsi,tns"); /* measured at an earlier update */
    assert_true(s.trained && !s.measured);
    write_text(self, "run0", "metrics.jsonl", BEGIN "{\"event\":\"run_end\",\"step\":12,\"status\":\"ERR_STOPPED\"}\n");
    s = state_of(self, "run0", "accuracy,nsi,tns");
    assert_true(!s.trained && !s.measured);
    assert_true(!*s.listing && !*s.contents);
    write_text(self, "run0", "metrics.jsonl",
               "{\"event\":\"run_begin\",\"listing\":\"0123456789abcdef\"}\n"
               "{\"event\":\"run_end\",\"step\":12,\"status\":\"OK\"}\n");
    write_text(self, "run0", "measure.jsonl",
               "{\"event\":\"run_begin\",\"contents\":\"fedcba9876543210 and more\"}\n"
               "{\"event\":\"measure\",\"step\":12,\"with\":\"nsi\",\"split\":\"val\"}\n");
    s = state_of(self, "run0", "nsi");
    assert_string_equal(s.listing, "0123456789abcdef");
    assert_string_equal(s.contents, "fedcba9876543210");
    assert_string_equal(s.split, "val");
    s = state_of(self, "run0", "tns"); /* a measurement on unknown images */
    assert_true(s.trained && !s.measured && !*s.contents && !*s.split);
}

static att_status report(scratch *self)
{
    const char *folders[] = {self->folder};
    char page[256];
    return att_report_write(self->context, folders, 1, NULL, path_of(self, "", "page.html", page), NULL);
}

#define RUN(name, status) "{\"name\":\"" name "\",\"setting\":\"a\",\"seed\":1,\"status\":\"" status "\"}"

SCRATCH_TEST(a_sweeps_folder_becomes_a_page_of_its_runs)
{
    att_report_result result;
    const char *folders[] = {self->folder};
    char page[256];
    write_run(self, 0);
    write_run(self, 1);
    write_text(self, "", "sweep.json",
               "{\"runs\":[" RUN("run0", "measured") "," RUN("run1", "measured") "," RUN("run2", "failed") "]}");
    CHECK(self->context,
          att_report_write(self->context, folders, 1, NULL, path_of(self, "", "page.html", page), &result));
    assert_int_equal(result.runs, 2);

    static const char *const refused[] = {
        "",
        "null",
        "[]",
        "{\"runs\":3}",
        "{\"runs\":null}",
        "{\"runs\":[3]}",
        "{\"runs\":[{}]}",
        "{\"runs\":[" RUN("..", "measured") "]}",
        "{\"runs\":[" RUN("", "measured") "]}",
        "{\"runs\":[" RUN("../run0", "measured") "]}",
        "{\"runs\":[" RUN("/etc", "measured") "]}",
        "{\"runs\":[{\"name\":\"run0\",\"setting\":\"a\",\"seed\":-1,\"status\":\"measured\"}]}",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        write_text(self, "", "sweep.json", refused[i]);
        assert_fails(self->context, report(self), ATT_ERR_FORMAT, "sweep.json");
    }
    write_text(self, "", "sweep.json", "{\"runs\":[" RUN("run2", "failed") "]}");
    assert_int_equal(report(self), ATT_ERR_NOT_FOUND);
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    write_run(self, 0);
    write_run(self, 1);
    write_text(self, "", "sweep.json", "{\"runs\":[" RUN("run0", "measured") "," RUN("run1", "measured") "]}");
    assert_survives_lack_of_memory(self, report);
}

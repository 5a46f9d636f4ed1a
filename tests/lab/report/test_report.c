/* The report has exactly the figures of the folders, escapes all texts, and names damaged files. */
#include "lab/report/fixture.h"
#include "lab/report/page_data.h"
#include "lab/report/report.h"
#include "test.h"

static void assert_same_number(const json_t *value, double expected)
{
    if (isnan(expected))
        assert_true(json_is_null(value));
    else
        assert_true(json_is_number(value) && json_number_value(value) == expected);
}

/* Checks samples, which NSI and TNS have, to five digits. */
static void assert_same_samples(const json_t *samples, const att_measurement *m)
{
    const bool by_sample = strcmp(m->instrument, "nsi") == 0 || strcmp(m->instrument, "tns") == 0;
    assert_int_equal(m->sample_count, by_sample ? FIXTURE_SAMPLES : 0);
    assert_int_equal(json_array_size(samples), m->sample_count);
    for (int i = 0; i < m->sample_count; i++)
        if (!(fabs(json_number_value(json_array_get(samples, (size_t)i)) / m->samples[i] - 1) <= 5e-5))
            fail_msg("sample %d of %s", i, m->node);
}

static void assert_same_figures(const json_t *figures, att_measure *measure)
{
    const att_measurement *all = att_measure_all(measure);
    assert_int_equal(json_array_size(figures), att_measure_count(measure));
    for (int i = 0; i < att_measure_count(measure); i++) {
        const json_t *row = json_array_get(figures, (size_t)i);
        assert_string_equal(json_string_value(json_array_get(row, 0)), all[i].instrument);
        assert_string_equal(json_string_value(json_array_get(row, 1)), all[i].node);
        assert_int_equal(json_integer_value(json_array_get(row, 2)), all[i].head);
        assert_string_equal(json_string_value(json_array_get(row, 3)), all[i].statistic);
        assert_same_number(json_array_get(row, 4), all[i].mean);
        assert_same_number(json_array_get(row, 5), all[i].deviation);
        assert_int_equal(json_integer_value(json_array_get(row, 6)), all[i].count);
        assert_int_equal(json_is_true(json_array_get(row, 7)),
                         strcmp(all[i].instrument, "nsi") == 0 && strcmp(all[i].node, "blocks.0.add1") == 0);
        assert_true(json_number_value(json_array_get(row, 8)) == all[i].bound);
        assert_true(json_number_value(json_array_get(row, 9)) == all[i].uniform);
        assert_same_samples(json_array_get(row, 10), &all[i]);
    }
}

static void assert_development(const json_t *run, const fixture *f)
{
    const json_t *development = json_object_get(run, "development"), *series = json_object_get(development, "series");
    assert_int_equal(json_array_size(json_object_get(development, "step")), FIXTURE_MEASURES);
    int expected = 0;
    const att_measurement *all = att_measure_all(f->measure);
    for (int i = 0; i < att_measure_count(f->measure); i++)
        expected += all[i].head < 0;
    assert_int_equal(json_array_size(series), expected);
    for (size_t i = 0; i < json_array_size(series); i++)
        for (size_t k = 0; k < FIXTURE_MEASURES; k++)
            assert_true(json_is_number(json_array_get(json_object_get(json_array_get(series, i), "mean"), k)));
}

/* A context with ops and models. */
static int setup_whole(void **state)
{
    if (scratch_setup(state) != 0)
        return -1;
    scratch *self = *state;
    att_context_destroy(&self->context);
    return att_context_create(NULL, &self->context) == ATT_OK ? 0 : -1;
}

#define WHOLE_TEST(name) TEST_WITH(name, scratch *self, setup_whole, scratch_teardown)

WHOLE_TEST(the_page_has_every_figure_of_a_run)
{
    char folder[100];
    snprintf(folder, sizeof(folder), "%s/run", self->folder);
    fixture f;
    CHECK(self->context, fixture_make(self->context, 1, &f));
    CHECK(self->context, fixture_run(self->context, &f, folder, "a model", "7", "cb"));
    const char *folders[] = {folder};
    att_report_result result;
    const char *none[] = {NULL};
    assert_int_equal(att_report_write(self->context, NULL, 1, NULL, page_path(self), NULL), ATT_ERR_ARGUMENT);
    assert_int_equal(att_report_write(self->context, none, 1, NULL, page_path(self), NULL), ATT_ERR_ARGUMENT);
    assert_int_equal(att_report_write(self->context, folders, 1, NULL, NULL, NULL), ATT_ERR_ARGUMENT);
    CHECK(self->context, att_report_write(self->context, folders, 1, NULL, page_path(self), &result));

    json_t *data = page_data(self);
    const json_t *run = run_of(data, 0);
    assert_string_equal(json_string_value(json_object_get(run, "name")), "run");
    assert_same_figures(json_object_get(json_array_get(json_object_get(run, "measured"), 0), "figures"), f.measure);
    assert_development(run, &f);
    const json_t *steps = json_object_get(run, "steps"), *loss = json_object_get(steps, "loss");
    assert_int_equal(json_array_size(loss), FIXTURE_EPOCHS * FIXTURE_STEPS);
    assert_true(json_is_null(json_array_get(loss, 6)));
    assert_true(json_number_value(json_array_get(loss, 7)) == 2.0 / 9);
    assert_int_equal(json_array_size(json_object_get(run, "epochs")), FIXTURE_EPOCHS);
    assert_string_equal(json_string_value(json_object_get(json_object_get(run, "settings"), "broadcast")), "cb");
    assert_string_equal(json_string_value(json_object_get(json_object_get(run, "settings"), "mean")),
                        "0.485 0.456 0.406");

    const json_t *listed = json_object_get(data, "instruments");
    assert_int_equal(json_array_size(listed), att_instrument_count(NULL));
    for (int i = 0; i < att_instrument_count(NULL); i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(listed, (size_t)i), "formula")),
                            att_instrument_at(NULL, i).formula);

    const att_task_info task = att_task_at(NULL, 0);
    const json_t *told = json_array_get(json_object_get(data, "tasks"), 0), *metrics = json_object_get(told, "metrics");
    assert_string_equal(json_string_value(json_object_get(told, "best")), task.metrics[task.best].name);
    assert_int_equal(json_array_size(metrics), task.metric_count);
    for (int i = 0; i < task.metric_count; i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(metrics, (size_t)i), "unit")),
                            task.metrics[i].unit);

    const json_t *maps = json_object_get(run, "maps");
    assert_int_equal(json_integer_value(json_object_get(maps, "count")), FIXTURE_IMAGES);
    assert_int_equal(json_array_size(json_object_get(maps, "nodes")), FIXTURE_DEPTH);
    const json_t *node = json_array_get(json_object_get(maps, "nodes"), 0);
    assert_string_equal(json_string_value(json_object_get(node, "node")), "blocks.0.attn");
    /* Image 0, head 0. Queries 0, 1, ...: 255, 32, 64, 96; 0, 255, 64, 96; ... Figures of query 0 in little endian,
     * f32: its entropy of 0.00153843 nats, 100000/100014 twice, 8/100014. Places 0, 1, ... (RFC 4648 by hand) */
    assert_memory_equal(json_string_value(json_object_get(node, "levels")), "/yBAYAD/QGAA", 12);
    assert_memory_equal(json_string_value(json_object_get(node, "figures")), "DqXJOtT2fz/U9n8/qb+n", 20);
    assert_memory_equal(json_string_value(json_object_get(node, "place")), "AAAAAAEAAAAC", 12);
    const json_t *picture = json_array_get(json_object_get(maps, "pictures"), 1);
    assert_string_equal(json_string_value(json_object_get(picture, "name")), "dog/<b>.png");
    assert_string_equal(json_string_value(json_object_get(picture, "caption")), FIXTURE_CAPTION_1);
    assert_int_equal(json_object_size(picture), 2);
    assert_int_equal(result.images, FIXTURE_IMAGES);
    struct stat info;
    assert_int_equal(stat(self->path, &info), 0);
    assert_int_equal(result.bytes, info.st_size);
    json_decref(data);

    size_t size, again_size;
    char *once = read_text(self->path, &size);
    CHECK(self->context, att_report_write(self->context, folders, 1, NULL, self->path, NULL));
    char *again = read_text(self->path, &again_size);
    assert_int_equal(size, again_size);
    assert_memory_equal(once, again, size);
    free(once);
    free(again);
    fixture_free(&f);
}

WHOLE_TEST(samples_are_kept_up_to_the_number_asked_for)
{
    fixture f;
    CHECK(self->context, fixture_make(self->context, 1, &f));
    assert_int_equal(att_measure_keep_samples(f.measure, -1), ATT_ERR_ARGUMENT);
    assert_int_equal(att_measure_keep_samples(f.measure, ATT_MEASURE_MOST_SAMPLES + 1), ATT_ERR_ARGUMENT);
    CHECK(self->context, att_measure_keep_samples(f.measure, FIXTURE_BATCH + 1));
    CHECK(self->context, fixture_observe(&f, 0));
    int figures = 0;
    for (int i = 0; i < att_measure_count(f.measure); i++) {
        att_measurement m = att_measure_at(f.measure, i);
        double sum = 0;
        for (int k = 0; k < m.sample_count; k++)
            sum += m.samples[k];
        if (m.sample_count > 0 && !(fabs(sum / FIXTURE_BATCH / m.mean - 1) <= 1e-14)) /* measured: 2e-16 */
            fail_msg("the samples of %s have another mean", m.node);
        figures += m.sample_count == FIXTURE_BATCH;
    }
    assert_int_equal(figures,
                     3 * 2 * FIXTURE_DEPTH + 3 * 4); /* readings of nsi at each addition; tns, zeta*, mu, ... */
    CHECK(self->context, att_measure_keep_samples(f.measure, 0));
    CHECK(self->context, fixture_observe(&f, 0));
    for (int i = 0; i < att_measure_count(f.measure); i++)
        assert_int_equal(att_measure_at(f.measure, i).sample_count, 0);
    fixture_free(&f);
}

/* If the checkpoint itself was not measured, the figures of the training are shown. */
SCRATCH_TEST(figures_of_the_training_stand_in_for_a_measurement)
{
    write_text(
        self->folder, "metrics.jsonl",
        "{\"event\":\"measure\",\"epoch\":0,\"step\":4,\"split\":\"train\",\"measurements\":[{\"instrument\":"
        "\"entropy\",\"node\":\"b\",\"head\":1,\"statistic\":\"mean\",\"mean\":null,\"deviation\":null,\"n\":0}]}\n");
    const char *folders[] = {self->folder};
    CHECK(self->context, att_report_write(self->context, folders, 1, NULL, page_path(self), NULL));
    json_t *data = page_data(self);
    const json_t *measured = json_array_get(json_object_get(run_of(data, 0), "measured"), 0);
    assert_true(json_is_false(json_object_get(run_of(data, 0), "has_measure_file")));
    const json_t *row = json_array_get(json_object_get(measured, "figures"), 0);
    assert_int_equal(json_integer_value(json_array_get(row, 2)), 1);
    assert_true(json_is_null(json_array_get(row, 4)));
    assert_int_equal(json_array_size(json_object_get(json_object_get(run_of(data, 0), "development"), "series")), 0);
    json_decref(data);
}

/* Each measurement of a checkpoint is shown in place of the training's; warnings are shown. */
SCRATCH_TEST(each_measurement_of_a_checkpoint_is_shown)
{
#define MEASURE(instrument, nodes)                                                                   \
    "{\"event\":\"measure\",\"nodes\":\"" nodes "\",\"measurements\":[{\"instrument\":\"" instrument \
    "\",\"node\":\"b\",\"statistic\":\"mean\",\"mean\":1,\"deviation\":null,\"n\":1}]}\n"
    write_text(
        self->folder, "metrics.jsonl",
        MEASURE("tns", "*") "{\"event\":\"warning\",\"step\":3,\"message\":\"image 7 is none\",\"set\":\"train\"}\n");
    write_text(self->folder, "measure.jsonl", MEASURE("nsi", "*") MEASURE("entropy", "blocks.0.*"));
    const char *folders[] = {self->folder};
    CHECK(self->context, att_report_write(self->context, folders, 1, NULL, page_path(self), NULL));
    json_t *data = page_data(self);
    const json_t *measured = json_object_get(run_of(data, 0), "measured");
    assert_int_equal(json_array_size(measured), 2);
    const json_t *last = json_array_get(measured, 1), *row = json_array_get(json_object_get(last, "figures"), 0);
    assert_string_equal(json_string_value(json_array_get(row, 0)), "entropy");
    const json_t *warning = json_array_get(json_object_get(run_of(data, 0), "warnings"), 0);
    assert_string_equal(json_string_value(json_object_get(warning, "message")), "image 7 is none");
    json_decref(data);
}

static int count_of(const char *text, size_t size, const char *part)
{
    int count = 0;
    for (size_t i = 0; i + strlen(part) <= size; i++)
        count += memcmp(text + i, part, strlen(part)) == 0;
    return count;
}

SCRATCH_TEST(hostile_texts_never_become_markup)
{
    char folder[100];
    snprintf(folder, sizeof(folder), "%s/<img src=x onerror=boom()>", self->folder);
    write_text(folder, "metrics.jsonl",
               "{\"event\":\"run_begin\",\"model\":\"</script><script>boom()</script><!--\",\"</script>\":1,"
               "\"__proto__\":\"x\",\"seed\":\"\\u003c/script\\u003e\\u2028\"}\n");
    const char *folders[] = {folder};
    const att_report_options options = {.title = "</title></script><script>boom()</script>"};
    CHECK(self->context, att_report_write(self->context, folders, 1, &options, page_path(self), NULL));
    size_t size;
    char *text = read_text(self->path, &size);
    const size_t begin = att_page_report.before_size;
    const size_t data = size - begin - att_page_middle_size - att_page_report.after_size;
    assert_int_equal(count_of(text + begin, data, "<"), 0);
    assert_int_equal(count_of(text + begin, data, "boom()"), 6);
    free(text);
    json_t *read = page_data(self);
    assert_string_equal(json_string_value(json_object_get(run_of(read, 0), "name")), "<img src=x onerror=boom()>");
    json_decref(read);
}

SCRATCH_TEST(damaged_logs_are_refused_with_their_line)
{
#define FIGURE "\"instrument\":\"e\",\"node\":\"b\",\"statistic\":\"m\",\"mean\":1,\"deviation\":1"
    static const char *const lines[] = {
        "",
        "nonsense",
        "{\"event\":\"step\",\"loss\":NaN}",
        "{\"event\":\"step\",\"loss\":1e999}",
        "[1,2]",
        "{\"event\":3}",
        "{\"epoch\":1}",
        "{\"event\":\"step\",\"step\":-1}",
        "{\"event\":\"step\",\"step\":1.5}",
        "{\"event\":\"measure\"}",
        "{\"event\":\"measure\",\"measurements\":{}}",
        "{\"event\":\"measure\",\"measurements\":[1]}",
        "{\"event\":\"measure\",\"measurements\":[{" FIGURE "}]}",
        "{\"event\":\"measure\",\"measurements\":[{" FIGURE ",\"n\":-1}]}",
        "{\"event\":\"measure\",\"measurements\":[{" FIGURE ",\"n\":1,\"head\":-2}]}",
        "{\"event\":\"measure\",\"measurements\":[{" FIGURE ",\"n\":1,\"head\":\"x\"}]}",
        "{\"event\":\"measure\",\"measurements\":[{" FIGURE ",\"n\":1,\"samples\":3}]}",
    };
    const char *folders[] = {self->folder};
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        char text[1000];
        snprintf(text, sizeof(text), "{\"event\":\"run_begin\"}\n%s\n{\"event\":\"run_end\"}\n", lines[i]);
        write_text(self->folder, "metrics.jsonl", text);
        write_text(self->folder, "page.html", "before");
        assert_fails(self->context, att_report_write(self->context, folders, 1, NULL, page_path(self), NULL),
                     ATT_ERR_FORMAT, "metrics.jsonl, line 2");
        assert_text_file(self->path, "before");
    }
    write_text(self->folder, "metrics.jsonl", "{\"event\":\"run_begin\"}\n{\"event\":\"st");
    CHECK(self->context, att_report_write(self->context, folders, 1, NULL, page_path(self), NULL));
    write_text(self->folder, "args.yaml", "a: [\n");
    assert_fails(self->context, att_report_write(self->context, folders, 1, NULL, page_path(self), NULL),
                 ATT_ERR_FORMAT, "args.yaml");
}

SCRATCH_TEST(folders_without_a_run_are_refused)
{
    const char *folders[ATT_REPORT_MAX_RUNS + 1] = {"/tmp/att_there_is_no_such_folder"};
    assert_fails(self->context, att_report_write(self->context, folders, 1, NULL, page_path(self), NULL),
                 ATT_ERR_NOT_FOUND, "/tmp/att_there_is_no_such_folder");
    folders[0] = self->folder;
    assert_fails(self->context, att_report_write(self->context, folders, 1, NULL, page_path(self), NULL),
                 ATT_ERR_FORMAT, "neither metrics.jsonl nor measure.jsonl");
    write_text(self->folder, "file", "");
    char file[100];
    snprintf(file, sizeof(file), "%s/file", self->folder);
    folders[0] = file;
    assert_fails(self->context, att_report_write(self->context, folders, 1, NULL, page_path(self), NULL),
                 ATT_ERR_FORMAT, "is a file");
    assert_int_equal(att_report_write(self->context, folders, 0, NULL, page_path(self), NULL), ATT_ERR_ARGUMENT);
    assert_int_equal(att_report_write(self->context, folders, ATT_REPORT_MAX_RUNS + 1, NULL, page_path(self), NULL),
                     ATT_ERR_ARGUMENT);
}

/* Two runs with one name are told apart. A long log is downsampled; its first and last line are kept. */
SCRATCH_TEST(a_long_log_is_thinned)
{
    enum { LINES = 5003 };
    char folders[2][100];
    for (int r = 0; r < 2; r++) {
        char parent[90];
        snprintf(parent, sizeof(parent), "%s/%d", self->folder, r);
        mkdir(parent, 0777);
        snprintf(folders[r], sizeof(folders[r]), "%s/run", parent);
        mkdir(folders[r], 0777);
        char path[320];
        snprintf(path, sizeof(path), "%s/metrics.jsonl", folders[r]);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        for (int i = 1; i <= LINES; i++)
            fprintf(file, "{\"event\":\"step\",\"epoch\":0,\"step\":%d,\"loss\":%d}\n", i, i);
        fclose(file);
    }
    CHECK(self->context,
          att_report_write(self->context, (const char *[]){folders[0], folders[1]}, 2, NULL, page_path(self), NULL));
    json_t *data = page_data(self);
    assert_string_equal(json_string_value(json_object_get(run_of(data, 1), "name")), folders[1]);
    const json_t *steps = json_object_get(run_of(data, 0), "steps"), *loss = json_object_get(steps, "loss");
    int64_t stride = json_integer_value(json_object_get(steps, "stride"));
    size_t count = json_array_size(loss);
    assert_true(count <= 1001 && count >= 500);
    assert_int_equal(stride, 8);
    for (size_t i = 0; i + 1 < count; i++)
        assert_int_equal(json_integer_value(json_array_get(loss, i)), 1 + (int64_t)i * stride);
    assert_int_equal(json_integer_value(json_array_get(loss, count - 1)), LINES);
    json_decref(data);
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    char path[100];
    write_text(self->folder, "metrics.jsonl",
               "{\"event\":\"run_begin\"}\n{\"event\":\"step\",\"step\":1}\n{\"event\":\"epoch\",\"step\":1}\n"
               "{\"event\":\"measure\",\"measurements\":[{" FIGURE ",\"n\":3},{" FIGURE ",\"n\":3,\"head\":0}]}\n");
    write_text(self->folder, "args.yaml", "a: b\n");
    snprintf(path, sizeof(path), "%s/maps.safetensors", self->folder);
    for (int version = 2; version <= 3; version++) {
        CHECK(self->context, fixture_maps(self->context, path, 1, "2", version));
        self->memory.recovers = false;
        assert_survives_lack_of_memory(self, write_page_of);
        self->memory.recovers = true;
        assert_survives_lack_of_memory(self, write_page_of);
    }
}

SCRATCH_TEST(the_page_never_replaces_a_file_that_it_shows)
{
    static const char text[] = "{\"event\":\"run_begin\"}\n{\"event\":\"step\",\"step\":1}\n";
    const char *folders[] = {self->folder};
    char path[120], by_link[120], run[100];
    size_t size;
    write_text(self->folder, "metrics.jsonl", text);
    write_text(self->folder, "args.yaml", "a: b\n");
    snprintf(path, sizeof(path), "%s/args.yaml", self->folder);
    assert_fails(self->context, att_report_write(self->context, folders, 1, NULL, path, NULL), ATT_ERR_ARGUMENT,
                 "args.yaml is the args.yaml of a run or sweep in the report: write the page to another");
    snprintf(path, sizeof(path), "%s/./metrics.jsonl", self->folder);
    assert_int_equal(att_report_write(self->context, folders, 1, NULL, path, NULL), ATT_ERR_ARGUMENT);
    snprintf(by_link, sizeof(by_link), "%s/page.html", self->folder);
    assert_int_equal(symlink("metrics.jsonl", by_link), 0);
    assert_int_equal(att_report_write(self->context, folders, 1, NULL, by_link, NULL), ATT_ERR_ARGUMENT);
    char *kept = read_text(path, &size);
    assert_string_equal(kept, text);
    free(kept);

    /* The files of a sweep and of its runs count, too. */
    snprintf(run, sizeof(run), "%s/run", self->folder);
    assert_int_equal(mkdir(run, 0777), 0);
    write_text(run, "metrics.jsonl", text);
    write_text(self->folder, "sweep.json",
               "{\"runs\":[{\"name\":\"run\",\"setting\":\"a\",\"seed\":1,\"status\":\"measured\"}]}");
    snprintf(path, sizeof(path), "%s/run/metrics.jsonl", self->folder);
    assert_int_equal(att_report_write(self->context, folders, 1, NULL, path, NULL), ATT_ERR_ARGUMENT);
    snprintf(path, sizeof(path), "%s/sweep.json", self->folder);
    assert_fails(self->context, att_report_write(self->context, folders, 1, NULL, path, NULL), ATT_ERR_ARGUMENT,
                 "sweep.json is the sweep.json of a run or sweep");
    unlink(by_link);
    CHECK(self->context, att_report_write(self->context, folders, 1, NULL, by_link, NULL));
}

SCRATCH_TEST(a_page_in_memory_has_the_bytes_of_the_file)
{
    char folder[100];
    snprintf(folder, sizeof folder, "%s/a <run>", self->folder);
    write_text(folder, "metrics.jsonl", "{\"event\":\"run_begin\",\"model\":\"</script>\"}\n");
    const char *folders[] = {folder};
    att_text page = {.context = self->context};
    CHECK(self->context, att_report_write(self->context, folders, 1, NULL, page_path(self), NULL));
    CHECK(self->context, att_report_append(self->context, folders, NULL, 1, NULL, &att_page_report, &page));
    size_t size;
    char *text = read_text(self->path, &size);
    assert_int_equal(page.length, size);
    assert_memory_equal(page.data, text, size);
    free(text);
    att_text_free(&page);
}

SCRATCH_TEST(other_pages_have_the_same_data)
{
    char folder[100];
    snprintf(folder, sizeof folder, "%s/run", self->folder);
    write_text(folder, "metrics.jsonl", "{\"event\":\"run_begin\",\"model\":\"vit\"}\n");
    const char *folders[] = {folder};
    att_text page = {.context = self->context};
    CHECK(self->context, att_report_append(self->context, folders, NULL, 1, NULL, &att_page_live, &page));
    json_t *read = parse_page(self, &att_page_live, page.data, page.length);
    assert_string_equal(json_string_value(json_object_get(run_of(read, 0), "name")), "run");
    json_decref(read);
    att_text_free(&page);
}

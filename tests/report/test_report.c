/* The page holds what the folders say, exactly; nothing in them becomes markup; damage is named. */
#include <attscope/report.h>

#include "io/json.h"
#include "io/scratch.h"
#include "report/fixture.h"
#include "report/map_file.h"
#include "report/page.h"

static const char *page_path(scratch *self)
{
    snprintf(self->path, sizeof(self->path), "%s/page.html", self->folder);
    return self->path;
}

static void must(const scratch *self, att_status status)
{
    if (status != ATT_OK)
        fail_msg("%s", att_context_message(self->context));
}

static char *read_text(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(1, *size + 1);
    assert_int_equal(fread(text, 1, *size, file), *size);
    fclose(file);
    return text;
}

/* The data between the two parts of the page. */
static json_t *page_data(scratch *self)
{
    size_t size;
    char *text = read_text(page_path(self), &size);
    assert_true(size > att_page_before_size + att_page_after_size);
    assert_memory_equal(text, att_page_before, att_page_before_size);
    assert_memory_equal(text + size - att_page_after_size, att_page_after, att_page_after_size);
    json_t *root = NULL;
    must(self, att_json_parse(self->context, "page", text + att_page_before_size,
                              size - att_page_before_size - att_page_after_size, &root));
    free(text);
    return root;
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[400];
    mkdir(folder, 0777);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static const json_t *run_of(const json_t *data, size_t index)
{
    return json_array_get(json_object_get(data, "runs"), index);
}

static void assert_same_number(const json_t *value, double expected)
{
    if (isnan(expected))
        assert_true(json_is_null(value));
    else
        assert_true(json_is_number(value) && json_number_value(value) == expected);
}

/* Of NSI only, to five digits. */
static void assert_same_samples(const json_t *samples, const att_measurement *m)
{
    assert_int_equal(m->sample_count, strcmp(m->instrument, "nsi") == 0 ? FIXTURE_SAMPLES : 0);
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
        assert_same_samples(json_array_get(row, 8), &all[i]);
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

static void test_every_figure(void **state)
{
    scratch *self = *state;
    char folder[100];
    snprintf(folder, sizeof(folder), "%s/run", self->folder);
    fixture f;
    must(self, fixture_make(self->context, 1, &f));
    must(self, fixture_run(self->context, &f, folder, "a model", "7", "cb"));
    const char *folders[] = {folder};
    att_report_result result;
    must(self, att_report_write(self->context, folders, 1, NULL, page_path(self), &result));

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
    assert_int_equal(json_array_size(listed), att_instrument_count());
    for (int i = 0; i < att_instrument_count(); i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(listed, (size_t)i), "formula")),
                            att_instrument_at(i).formula);

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
    assert_string_equal(json_string_value(json_object_get(picture, "label_name")), "<b>dog</b>");
    const json_t *top = json_array_get(json_object_get(picture, "top"), 0);
    assert_string_equal(json_string_value(json_object_get(top, "name")), "cat");
    assert_true(json_number_value(json_object_get(top, "probability")) == (double)0.51234F);
    picture = json_array_get(json_object_get(maps, "pictures"), 2);
    assert_true(json_is_null(json_object_get(picture, "label_name")));
    assert_int_equal(json_integer_value(json_object_get(picture, "label")), -1);
    assert_true(json_is_null(json_object_get(json_array_get(json_object_get(picture, "top"), 0), "name")));
    assert_int_equal(result.images, FIXTURE_IMAGES);
    struct stat info;
    assert_int_equal(stat(self->path, &info), 0);
    assert_int_equal(result.bytes, info.st_size);
    json_decref(data);

    size_t size, again_size;
    char *once = read_text(self->path, &size);
    must(self, att_report_write(self->context, folders, 1, NULL, self->path, NULL));
    char *again = read_text(self->path, &again_size);
    assert_int_equal(size, again_size);
    assert_memory_equal(once, again, size);
    free(once);
    free(again);
    fixture_free(&f);
}

/* Figures of the training stand in where nothing was measured apart. */
static void test_samples(void **state)
{
    scratch *self = *state;
    fixture f;
    must(self, fixture_make(self->context, 1, &f));
    assert_int_equal(att_measure_keep_samples(f.measure, -1), ATT_ERR_ARGUMENT);
    assert_int_equal(att_measure_keep_samples(f.measure, ATT_MEASURE_MOST_SAMPLES + 1), ATT_ERR_ARGUMENT);
    must(self, att_measure_keep_samples(f.measure, FIXTURE_BATCH + 1));
    must(self, fixture_observe(&f, 0));
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
    assert_int_equal(figures, 2 * 2 * FIXTURE_DEPTH);
    must(self, att_measure_keep_samples(f.measure, 0));
    must(self, fixture_observe(&f, 0));
    for (int i = 0; i < att_measure_count(f.measure); i++)
        assert_int_equal(att_measure_at(f.measure, i).sample_count, 0);
    fixture_free(&f);
}

static void test_figures_of_training(void **state)
{
    scratch *self = *state;
    write_text(
        self->folder, "metrics.jsonl",
        "{\"event\":\"measure\",\"epoch\":0,\"step\":4,\"split\":\"train\",\"measurements\":[{\"instrument\":"
        "\"entropy\",\"node\":\"b\",\"head\":1,\"statistic\":\"mean\",\"mean\":null,\"deviation\":null,\"n\":0}]}\n");
    const char *folders[] = {self->folder};
    must(self, att_report_write(self->context, folders, 1, NULL, page_path(self), NULL));
    json_t *data = page_data(self);
    const json_t *measured = json_array_get(json_object_get(run_of(data, 0), "measured"), 0);
    assert_true(json_is_false(json_object_get(run_of(data, 0), "measured_apart")));
    const json_t *row = json_array_get(json_object_get(measured, "figures"), 0);
    assert_int_equal(json_integer_value(json_array_get(row, 2)), 1);
    assert_true(json_is_null(json_array_get(row, 4)));
    assert_int_equal(json_array_size(json_object_get(json_object_get(run_of(data, 0), "development"), "series")), 0);
    json_decref(data);
}

/* Each measurement of a checkpoint counts, and takes the place of the training's; warnings are shown. */
static void test_several_measurements(void **state)
{
    scratch *self = *state;
#define MEASURE(instrument, nodes)                                                                   \
    "{\"event\":\"measure\",\"nodes\":\"" nodes "\",\"measurements\":[{\"instrument\":\"" instrument \
    "\",\"node\":\"b\",\"statistic\":\"mean\",\"mean\":1,\"deviation\":null,\"n\":1}]}\n"
    write_text(
        self->folder, "metrics.jsonl",
        MEASURE("tns", "*") "{\"event\":\"warning\",\"step\":3,\"message\":\"image 7 is none\",\"set\":\"train\"}\n");
    write_text(self->folder, "measure.jsonl", MEASURE("nsi", "*") MEASURE("entropy", "blocks.0.*"));
    const char *folders[] = {self->folder};
    must(self, att_report_write(self->context, folders, 1, NULL, page_path(self), NULL));
    json_t *data = page_data(self);
    const json_t *measured = json_object_get(run_of(data, 0), "measured");
    assert_int_equal(json_array_size(measured), 2);
    const json_t *last = json_array_get(measured, 1), *row = json_array_get(json_object_get(last, "figures"), 0);
    assert_string_equal(json_string_value(json_object_get(last, "nodes")), "blocks.0.*");
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

static void test_hostile_texts(void **state)
{
    scratch *self = *state;
    char folder[100];
    snprintf(folder, sizeof(folder), "%s/<img src=x onerror=boom()>", self->folder);
    write_text(folder, "metrics.jsonl",
               "{\"event\":\"run_begin\",\"model\":\"</script><script>boom()</script><!--\",\"</script>\":1,"
               "\"__proto__\":\"x\",\"seed\":\"\\u003c/script\\u003e\\u2028\"}\n");
    const char *folders[] = {folder};
    const att_report_options options = {.title = "</title></script><script>boom()</script>"};
    must(self, att_report_write(self->context, folders, 1, &options, page_path(self), NULL));
    size_t size;
    char *text = read_text(self->path, &size);
    size_t data = size - att_page_before_size - att_page_after_size;
    assert_int_equal(count_of(text + att_page_before_size, data, "<"), 0);
    assert_int_equal(count_of(text + att_page_before_size, data, "boom()"), 5);
    free(text);
    json_t *read = page_data(self);
    assert_string_equal(json_string_value(json_object_get(run_of(read, 0), "name")), "<img src=x onerror=boom()>");
    json_decref(read);
}

static void test_damage(void **state)
{
    scratch *self = *state;
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
        assert_int_equal(att_report_write(self->context, folders, 1, NULL, page_path(self), NULL), ATT_ERR_FORMAT);
        assert_message_has(self, "metrics.jsonl, line 2");
        assert_text_file(self->path, "before");
    }
    write_text(self->folder, "metrics.jsonl", "{\"event\":\"run_begin\"}\n{\"event\":\"st");
    must(self, att_report_write(self->context, folders, 1, NULL, page_path(self), NULL));
    write_text(self->folder, "args.yaml", "a: [\n");
    assert_int_equal(att_report_write(self->context, folders, 1, NULL, page_path(self), NULL), ATT_ERR_FORMAT);
    assert_message_has(self, "args.yaml");
}

static void test_nothing_there(void **state)
{
    scratch *self = *state;
    const char *folders[ATT_REPORT_MAX_RUNS + 1] = {"/tmp/att_there_is_no_such_folder"};
    assert_int_equal(att_report_write(self->context, folders, 1, NULL, page_path(self), NULL), ATT_ERR_NOT_FOUND);
    assert_message_has(self, "/tmp/att_there_is_no_such_folder");
    folders[0] = self->folder;
    assert_int_equal(att_report_write(self->context, folders, 1, NULL, page_path(self), NULL), ATT_ERR_FORMAT);
    assert_message_has(self, "neither metrics.jsonl nor measure.jsonl");
    write_text(self->folder, "file", "");
    char file[100];
    snprintf(file, sizeof(file), "%s/file", self->folder);
    folders[0] = file;
    assert_int_equal(att_report_write(self->context, folders, 1, NULL, page_path(self), NULL), ATT_ERR_FORMAT);
    assert_message_has(self, "is a file");
    assert_int_equal(att_report_write(self->context, folders, 0, NULL, page_path(self), NULL), ATT_ERR_ARGUMENT);
    assert_int_equal(att_report_write(self->context, folders, ATT_REPORT_MAX_RUNS + 1, NULL, page_path(self), NULL),
                     ATT_ERR_ARGUMENT);
}

/* Two runs of one name are told apart; a long log is thinned, its first and last line kept. */
static void test_long_log(void **state)
{
    scratch *self = *state;
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
    must(self,
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

static size_t base64_length(int64_t bytes)
{
    return (size_t)((bytes + 2) / 3 * 4);
}

/* What the smallest file of maps has: an image of one pixel, seen as one patch by one head of each layer. */
enum { LAYERS = 3, SMALLEST_TENSORS = 2 + 3 * LAYERS };

typedef struct smallest {
    att_safetensors_tensor tensors[SMALLEST_TENSORS];
    att_safetensors_pair metadata[7];
    char names[3 * LAYERS][32];
} smallest;

/* Layers 10, 2 and 11, whose order in the file and in the alphabet is not the network's. */
static void smallest_make(smallest *made)
{
    static const char *const layers[LAYERS] = {"10", "2", "11"};
    static const uint8_t bytes[3];
    static const uint16_t level[1] = {65535};
    static const int64_t label[1];
    static const float figures[2 * 4] = {0, 1, 0, 1, 0, 1, 0, 1};
    static const int32_t place[2];
    const att_safetensors_tensor each[] = {
        {"patches", ATT_SAFETENSORS_U16, att_shape_of(1, 1, 1, 1), level},
        {"figures", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1, 4), figures},
        {"place", ATT_SAFETENSORS_I32, att_shape_of(1, 2, 1), place},
    };
    *made = (smallest){.tensors = {{"image", ATT_SAFETENSORS_U8, att_shape_of(1, 1, 1, 3), bytes},
                                   {"label", ATT_SAFETENSORS_I64, att_shape_of(1), label}},
                       .metadata = {{"maps", "2"},
                                    {"grid_h", "1"},
                                    {"grid_w", "1"},
                                    {"prefix", "0"},
                                    {"names", "[\"a\"]"},
                                    {"label_names", "[\"\"]"},
                                    {"classes", "[]"}}};
    for (int t = 0; t < 3 * LAYERS; t++) {
        snprintf(made->names[t], sizeof(made->names[t]), "blocks.%s.attn.%s", layers[t / 3], each[t % 3].name);
        made->tensors[2 + t] = each[t % 3];
        made->tensors[2 + t].name = made->names[t];
    }
}

static void smallest_write(scratch *self, const char *folder, const smallest *made, int tensor_count)
{
    char path[200];
    snprintf(path, sizeof(path), "%.150s/maps.safetensors", folder);
    const att_safetensors_content content = {
        .tensors = made->tensors, .tensor_count = tensor_count, .metadata = made->metadata, .metadata_count = 7};
    must(self, att_safetensors_write(self->context, path, &content));
}

static att_status write_page_of(scratch *self)
{
    const char *folders[] = {self->folder};
    return att_report_write(self->context, folders, 1, NULL, page_path(self), NULL);
}

/* As layers follow in the network: 2 before 10, whatever the file's order and the alphabet's. */
static void test_maps_are_in_the_network_s_order(void **state)
{
    scratch *self = *state;
    static const char *const wanted[] = {"blocks.2.attn", "blocks.10.attn", "blocks.11.attn"};
    smallest made;
    smallest_make(&made);
    smallest_write(self, self->folder, &made, SMALLEST_TENSORS);
    write_text(self->folder, "metrics.jsonl", "{\"event\":\"run_begin\"}\n");
    must(self, write_page_of(self));
    json_t *data = page_data(self);
    const json_t *maps = json_object_get(run_of(data, 0), "maps"), *nodes = json_object_get(maps, "nodes");
    assert_int_equal(json_array_size(nodes), 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(nodes, i), "node")), wanted[i]);
    const json_t *picture = json_array_get(json_object_get(maps, "pictures"), 0);
    assert_int_equal(json_array_size(json_object_get(picture, "top")), 0); /* a network without classes */
    assert_true(json_is_null(json_object_get(picture, "label_name")));
    json_decref(data);
}

/* A tensor or a text of the smallest file that is something else. */
static void test_damaged_maps(void **state)
{
    scratch *self = *state;
    static const float not_finite[2 * 4] = {0, 1, 0, 1, NAN, 1, 0, 1}, negative[2 * 4] = {0, 1, 0, 1, 0, -1e-3F, 0, 1};
    static const float entropy[2 * 4] = {0, 1, 0, 1, 0.02F, 1, 0, 1}, share[2 * 4] = {0, 1, 0, 1, 0, 1.02F, 0, 1};
    static const float infinite[2 * 4] = {0, 1, 0, 1, 0, INFINITY, 0, 1}, no_entropy[2 * 4] = {-INFINITY, 1, 0, 1};
    static const int32_t outside[2] = {0, 1}, before[2] = {-1, 0};
    static const int64_t low[1] = {-99}, high[1] = {(int64_t)1 << 62};
    const struct {
        int at;
        att_safetensors_tensor tensor;
        const char *message;
    } tensors[] = {
        {0, {"picture", ATT_SAFETENSORS_U8, att_shape_of(1, 1, 1, 3), outside}, "tensor image is missing"},
        {1, {"labels", ATT_SAFETENSORS_I64, att_shape_of(1), outside}, "tensor label is missing"},
        {1, {"label", ATT_SAFETENSORS_F32, att_shape_of(1), outside}, "is not I64 [K]"},
        {2, {"blocks.10.attn.patches", ATT_SAFETENSORS_U8, att_shape_of(1, 1, 1, 1), outside}, "U16 [K, heads, N"},
        {2, {"blocks.10.attn.patches", ATT_SAFETENSORS_U16, att_shape_of(1, 1, 1, 2), outside}, "U16 [K, heads, N"},
        {3, {"blocks.10.attn.figure", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1, 4), not_finite}, "10.attn.figures is"},
        {3, {"blocks.10.attn.figures", ATT_SAFETENSORS_F32, att_shape_of(1, 1, 1, 4), not_finite}, "F32 [K, heads + 1"},
        {3, {"blocks.10.attn.figures", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1, 4), not_finite}, "entropy from 0 to"},
        {3, {"blocks.10.attn.figures", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1, 4), negative}, "entropy from 0 to"},
        {3, {"blocks.10.attn.figures", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1, 4), entropy}, "entropy from 0 to"},
        {3, {"blocks.10.attn.figures", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1, 4), share}, "weight from 0 to 1"},
        {3, {"blocks.10.attn.figures", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1, 4), infinite}, "weight from 0 to 1"},
        {3, {"blocks.10.attn.figures", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1, 4), no_entropy}, "entropy from 0"},
        {1, {"label", ATT_SAFETENSORS_I64, att_shape_of(1), low}, "tensor label has a value that is no class number"},
        {1, {"label", ATT_SAFETENSORS_I64, att_shape_of(1), high}, "tensor label has a value that is no class number"},
        {2, {".patches", ATT_SAFETENSORS_U16, att_shape_of(1, 1, 1, 1), outside}, "tensor .patches names no scope"},
        {4, {"blocks.10.attn.place", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1), negative}, "I32 [K, heads + 1, N]"},
        {4, {"blocks.10.attn.place", ATT_SAFETENSORS_I32, att_shape_of(1, 2, 1), outside}, "place in the grid"},
        {4, {"blocks.10.attn.place", ATT_SAFETENSORS_I32, att_shape_of(1, 2, 1), before}, "place in the grid"},
    };
    static const struct {
        int at;
        const char *value, *message;
    } texts[] = {
        {4, "[]", "names, a JSON array of one text for each image"},
        {4, "[1]", "names, a JSON array of one text for each image"},
        {5, "{}", "label_names, a JSON array of one text"},
        {6, "[null]", "classes, a JSON array of texts"},
        {4, "[", "names of its metadata"},
    };
    write_text(self->folder, "metrics.jsonl", "{\"event\":\"run_begin\"}\n");
    for (size_t i = 0; i < sizeof(tensors) / sizeof(*tensors); i++) {
        smallest made;
        smallest_make(&made);
        made.tensors[tensors[i].at] = tensors[i].tensor;
        smallest_write(self, self->folder, &made, SMALLEST_TENSORS);
        assert_int_equal(write_page_of(self), ATT_ERR_FORMAT);
        assert_message_has(self, tensors[i].message);
        assert_message_has(self, self->folder);
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        smallest made;
        smallest_make(&made);
        made.metadata[texts[i].at].value = texts[i].value;
        smallest_write(self, self->folder, &made, SMALLEST_TENSORS);
        assert_int_equal(write_page_of(self), ATT_ERR_FORMAT);
        assert_message_has(self, texts[i].message);
        assert_message_has(self, self->folder);
    }
}

/* A file of maps whose network gives the classes `top` these probabilities. */
static void top_write(scratch *self, int64_t top, float probability)
{
    smallest made;
    att_safetensors_tensor tensors[SMALLEST_TENSORS + 2];
    smallest_make(&made);
    memcpy(tensors, made.tensors, sizeof(made.tensors));
    tensors[SMALLEST_TENSORS] =
        (att_safetensors_tensor){"probability", ATT_SAFETENSORS_F32, att_shape_of(1, 1), &probability};
    tensors[SMALLEST_TENSORS + 1] = (att_safetensors_tensor){"top", ATT_SAFETENSORS_I64, att_shape_of(1, 1), &top};
    snprintf(self->path, sizeof(self->path), "%s/maps.safetensors", self->folder);
    const att_safetensors_content content = {
        .tensors = tensors, .tensor_count = SMALLEST_TENSORS + 2, .metadata = made.metadata, .metadata_count = 7};
    must(self, att_safetensors_write(self->context, self->path, &content));
}

static void test_damaged_classes(void **state)
{
    scratch *self = *state;
    static const struct {
        int64_t top;
        float probability;
        const char *message; /* NULL: fine */
    } cases[] = {
        {0, 1.0000001F, NULL},
        {0, 0, NULL},
        {-7, 0.5F, "maps.safetensors: tensor top has a value that is no class number"},
        {(int64_t)1 << 62, 0.5F, "maps.safetensors: tensor top has a value that is no class number"},
        {0, NAN, "maps.safetensors: tensor probability has a value that is no number from 0 to 1"},
        {0, -5e30F, "maps.safetensors: tensor probability has a value that is no number from 0 to 1"},
        {0, 1.02F, "maps.safetensors: tensor probability has a value that is no number from 0 to 1"},
        {0, INFINITY, "maps.safetensors: tensor probability has a value that is no number from 0 to 1"},
    };
    write_text(self->folder, "metrics.jsonl", "{\"event\":\"run_begin\"}\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        top_write(self, cases[i].top, cases[i].probability);
        assert_int_equal(write_page_of(self), cases[i].message != NULL ? ATT_ERR_FORMAT : ATT_OK);
        if (cases[i].message != NULL)
            assert_message_has(self, cases[i].message);
    }
}

/* A file of maps whose last tensors are probability and top; att_safetensors_write() would have them first. */
enum { CUT_BYTES = 80 };
static void write_to_be_cut(scratch *self)
{
    static const char header[] =
        "{\"__metadata__\":{\"maps\":\"2\",\"grid_h\":\"1\",\"grid_w\":\"1\",\"prefix\":\"0\",\"names\":\"[\\\"a\\\"]"
        "\","
        "\"label_names\":\"[\\\"\\\"]\",\"classes\":\"[]\"},"
        "\"image\":{\"dtype\":\"U8\",\"shape\":[1,2,3,1],\"data_offsets\":[0,6]},"
        "\"b.patches\":{\"dtype\":\"U16\",\"shape\":[1,1,1,1],\"data_offsets\":[6,8]},"
        "\"label\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[8,16]},"
        "\"b.figures\":{\"dtype\":\"F32\",\"shape\":[1,2,1,4],\"data_offsets\":[16,48]},"
        "\"b.place\":{\"dtype\":\"I32\",\"shape\":[1,2,1],\"data_offsets\":[48,56]},"
        "\"probability\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[56,64]},"
        "\"top\":{\"dtype\":\"I64\",\"shape\":[1,2],\"data_offsets\":[64,80]}}";
    static const char zeros[CUT_BYTES];
    const uint64_t length = sizeof(header) - 1;
    snprintf(self->path, sizeof(self->path), "%s/maps.safetensors", self->folder);
    FILE *file = fopen(self->path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(&length, sizeof(length), 1, file), 1);
    assert_int_equal(fwrite(header, length, 1, file), 1);
    assert_int_equal(fwrite(zeros, sizeof(zeros), 1, file), 1);
    assert_int_equal(fclose(file), 0);
}

/* Cut after opening: top alone cannot be read, then probability, then the tensors before them. The whole file
 * is written without an error. */
static void test_maps_cut_short(void **state)
{
    scratch *self = *state;
    size_t before = att_context_allocations(self->context).bytes_now;
    for (off_t lost = 0; lost <= CUT_BYTES; lost++) {
        att_map_file maps;
        att_json_writer *json;
        struct stat whole;
        write_to_be_cut(self);
        assert_int_equal(stat(self->path, &whole), 0);
        must(self, att_map_file_open(self->context, self->path, &maps));
        assert_int_equal(truncate(self->path, whole.st_size - lost), 0);
        must(self, att_json_writer_create(self->context, false, &json));
        att_status status = att_map_file_write(json, &maps, (const int64_t[]){0}, 1);
        assert_int_equal(status == ATT_OK, lost == 0);
        if (lost > 0)
            assert_message_has(self, self->path);
        att_json_writer_destroy(&json);
        att_map_file_close(&maps);
        assert_int_equal(att_context_allocations(self->context).bytes_now, before);
    }
}

/* Images and labels are there, but no attention map. */
static void test_no_maps(void **state)
{
    scratch *self = *state;
    smallest made;
    smallest_make(&made);
    smallest_write(self, self->folder, &made, 2);
    write_text(self->folder, "metrics.jsonl", "{\"event\":\"run_begin\"}\n");
    assert_int_equal(write_page_of(self), ATT_ERR_FORMAT);
    assert_message_has(self, "0 tensors named <scope>.patches");
}

/* Maps of another version of the format are left out, and the page says so. */
static void test_other_versions(void **state)
{
    scratch *self = *state;
    static const char *const versions[] = {"1", "3", ""};
    write_text(self->folder, "metrics.jsonl", "{\"event\":\"run_begin\"}\n");
    for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
        smallest made;
        smallest_make(&made);
        made.metadata[0].value = versions[i];
        smallest_write(self, self->folder, &made, SMALLEST_TENSORS);
        must(self, write_page_of(self));
        json_t *data = page_data(self);
        assert_true(json_is_null(json_object_get(run_of(data, 0), "maps")));
        assert_string_equal(json_string_value(json_object_get(run_of(data, 0), "maps_left_out")),
                            "in a version of the format that is not read");
        json_decref(data);
    }
    /* Version 1 did not say its number. */
    smallest made;
    smallest_make(&made);
    made.metadata[0].key = "version";
    made.tensors[2].name = "blocks.10.attn.map";
    smallest_write(self, self->folder, &made, SMALLEST_TENSORS);
    must(self, write_page_of(self));
    made.tensors[2].name = "blocks.10.attn.other";
    smallest_write(self, self->folder, &made, SMALLEST_TENSORS);
    assert_int_equal(write_page_of(self), ATT_ERR_FORMAT);
    assert_message_has(self, "holds no attention maps");
}

static void test_maps(void **state)
{
    scratch *self = *state;
    const char *folders[] = {self->folder};
    char path[100];
    write_text(self->folder, "metrics.jsonl", "{\"event\":\"run_begin\"}\n");
    snprintf(path, sizeof(path), "%s/maps.safetensors", self->folder);
    must(self, fixture_maps(self->context, path, FIXTURE_IMAGES, "2"));
    /* An image's pixels, and of each layer the weights' levels and the queries' figures. */
    enum {
        pixels = FIXTURE_SIDE * FIXTURE_SIDE * 3,
        levels = FIXTURE_HEADS * FIXTURE_TOKENS * (FIXTURE_TOKENS - 1),
        figures = (FIXTURE_HEADS + 1) * FIXTURE_TOKENS * 4 * (int)sizeof(float),
        place = (FIXTURE_HEADS + 1) * FIXTURE_TOKENS * (int)sizeof(int32_t)
    };
    const size_t image = pixels + FIXTURE_DEPTH * (levels + figures + place);
    const struct {
        size_t bytes;
        int64_t shown;
    } rooms[] = {{0, 0}, {image - 1, 0}, {image, 1}, {3 * image - 1, 2}, {3 * image, 3}, {SIZE_MAX, 3}};
    for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
        att_report_result result;
        const att_report_options options = {.map_bytes = rooms[i].bytes};
        must(self, att_report_write(self->context, folders, 1, &options, page_path(self), &result));
        assert_int_equal(result.images, rooms[i].shown);
        assert_int_equal(result.images_wanted, FIXTURE_IMAGES);
        json_t *data = page_data(self);
        const json_t *maps = json_object_get(run_of(data, 0), "maps");
        assert_int_equal(json_integer_value(json_object_get(maps, "images")), FIXTURE_IMAGES);
        assert_int_equal(json_array_size(json_object_get(maps, "pictures")), rooms[i].shown);
        const json_t *node = json_array_get(json_object_get(maps, "nodes"), 0);
        assert_int_equal(json_string_length(json_object_get(node, "levels")), base64_length(rooms[i].shown * levels));
        assert_int_equal(json_string_length(json_object_get(node, "figures")), base64_length(rooms[i].shown * figures));
        assert_int_equal(json_string_length(json_object_get(node, "place")), base64_length(rooms[i].shown * place));
        assert_int_equal(json_string_length(json_object_get(json_object_get(maps, "image"), "data")),
                         base64_length(rooms[i].shown * pixels));
        json_decref(data);
    }
    static const char *const grids[] = {"3", "0", "-2", "x", "99999999999999999999", "1000000"};
    for (size_t i = 0; i < sizeof(grids) / sizeof(*grids); i++) {
        must(self, fixture_maps(self->context, path, FIXTURE_IMAGES, grids[i]));
        assert_int_equal(att_report_write(self->context, folders, 1, NULL, page_path(self), NULL), ATT_ERR_FORMAT);
        assert_message_has(self, "maps.safetensors");
    }
    write_text(self->folder, "maps.safetensors", "nonsense");
    assert_int_equal(att_report_write(self->context, folders, 1, NULL, page_path(self), NULL), ATT_ERR_FORMAT);
    const att_safetensors_content empty = {0};
    must(self, att_safetensors_write(self->context, path, &empty));
    assert_int_equal(att_report_write(self->context, folders, 1, NULL, page_path(self), NULL), ATT_ERR_FORMAT);
}

/* The names of the images with maps on the page, "a b" of each run. */
static void assert_pictures(scratch *self, const char *const *wanted, int runs)
{
    json_t *data = page_data(self);
    for (int r = 0; r < runs; r++) {
        const json_t *pictures = json_object_get(json_object_get(run_of(data, r), "maps"), "pictures");
        char names[200] = "";
        for (size_t i = 0; i < json_array_size(pictures); i++) {
            const char *name = json_string_value(json_object_get(json_array_get(pictures, i), "name"));
            snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i > 0 ? " " : "", name);
        }
        assert_string_equal(names, wanted[r]);
    }
    json_decref(data);
}

/* Several runs show the same images: those of all runs first, as many as there is room for. */
static void test_room_is_shared(void **state)
{
    scratch *self = *state;
    enum { RUNS = 3, PIXEL = 3, LAYER = 1 + 2 * (4 + 1) * 4, IMAGE = PIXEL + LAYERS * LAYER };
    static const char *const names[RUNS] = {"[\"a\",\"b\",\"c\",\"d\"]", "[\"d\",\"b\",\"e\",\"a\"]",
                                            "[\"f\",\"b\",\"a\",\"g\"]"};
    static const uint8_t bytes[4 * PIXEL];
    static const uint16_t level[4];
    static const int64_t label[4];
    static const float figures[4 * 2 * 4];
    static const int32_t place[4 * 2];
    char folders[RUNS][100];
    for (int r = 0; r < RUNS; r++) {
        smallest made;
        smallest_make(&made);
        for (int t = 0; t < SMALLEST_TENSORS; t++)
            made.tensors[t].shape.dims[0] = 4;
        made.tensors[0].data = bytes, made.tensors[1].data = label;
        for (int t = 2; t < SMALLEST_TENSORS; t += 3)
            made.tensors[t].data = level, made.tensors[t + 1].data = figures, made.tensors[t + 2].data = place;
        made.metadata[4].value = names[r];
        made.metadata[5].value = "[\"\",\"\",\"\",\"\"]";
        snprintf(folders[r], sizeof(folders[r]), "%.80s/run%d", self->folder, r);
        mkdir(folders[r], 0700);
        write_text(folders[r], "metrics.jsonl", "{\"event\":\"run_begin\"}\n");
        smallest_write(self, folders[r], &made, SMALLEST_TENSORS);
    }
    static const struct {
        size_t images; /* that there is room for */
        const char *shown[RUNS];
    } rooms[] = {
        {0, {"", "", ""}},
        {2, {"a", "a", ""}}, /* of the first picture alone some runs may have it */
        {3, {"a", "a", "a"}},
        {5, {"a", "a", "a"}},
        {6, {"a b", "a b", "a b"}},
        {7, {"a b", "a b", "a b"}},
        {8, {"a b d", "a b d", "a b"}},
        {9, {"a b d", "a b d", "a b f"}},
        {10, {"a b d c", "a b d", "a b f"}},
        {99, {"a b d c", "a b d e", "a b f g"}},
    };
    const char *runs[RUNS] = {folders[0], folders[1], folders[2]};
    for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
        const att_report_options options = {.map_bytes = rooms[i].images * IMAGE};
        must(self, att_report_write(self->context, runs, RUNS, &options, page_path(self), NULL));
        assert_pictures(self, rooms[i].shown, RUNS);
    }
}

static void test_lack_of_memory(void **state)
{
    scratch *self = *state;
    char path[100];
    write_text(self->folder, "metrics.jsonl",
               "{\"event\":\"run_begin\"}\n{\"event\":\"step\",\"step\":1}\n{\"event\":\"epoch\",\"step\":1}\n"
               "{\"event\":\"measure\",\"measurements\":[{" FIGURE ",\"n\":3},{" FIGURE ",\"n\":3,\"head\":0}]}\n");
    write_text(self->folder, "args.yaml", "a: b\n");
    snprintf(path, sizeof(path), "%s/maps.safetensors", self->folder);
    must(self, fixture_maps(self->context, path, 1, "2"));
    assert_survives_lack_of_memory(self, write_page_of);
    self->recovers = true;
    assert_survives_lack_of_memory(self, write_page_of);
}

/* A context that knows ops and models. */
static int setup_whole(void **state)
{
    if (scratch_setup(state) != 0)
        return -1;
    scratch *self = *state;
    att_context_destroy(&self->context);
    return att_context_create(NULL, &self->context) == ATT_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_figure, setup_whole, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_samples, setup_whole, scratch_teardown),
        scratch_test(test_figures_of_training),
        scratch_test(test_several_measurements),
        scratch_test(test_hostile_texts),
        scratch_test(test_damage),
        scratch_test(test_nothing_there),
        scratch_test(test_long_log),
        scratch_test(test_maps_are_in_the_network_s_order),
        scratch_test(test_damaged_maps),
        scratch_test(test_damaged_classes),
        scratch_test(test_maps_cut_short),
        scratch_test(test_no_maps),
        scratch_test(test_other_versions),
        scratch_test(test_maps),
        scratch_test(test_room_is_shared),
        scratch_test(test_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

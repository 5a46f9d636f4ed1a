/* Measuring a checkpoint and recording the result in one call. */
#include <attscope/lab/measuring.h>

#include "study/train/fixture.h"

/* Exports the fixture's weights to the file `name` and opens it. */
static att_network *open_checkpoint(const fixture *f, const char *name)
{
    char path[160];
    att_network *network = NULL;
    assert_int_equal(att_checkpoint_export(f->model, f->weights, path_in(f, name, path)), ATT_OK);
    CHECK(f->context, att_network_open(f->context, path, NULL, &network));
    return network;
}

static att_status measure(const fixture *f, att_network *network, const att_measuring_options *options,
                          att_measured *found)
{
    const char *const data = f->folder;
    return att_measure_checkpoint(network, &data, 1, options, found);
}

/* Options for measuring on the fixture's evaluation images, into its folder. */
static att_measuring_options small_measuring(const fixture *f)
{
    att_measuring_options options = att_measuring_options_defaults();
    options.batch_size = 4;
    options.workers = 0;
    options.output = f->folder;
    return options;
}

static const att_measurement *find(const att_measured *found, const char *name)
{
    static att_measurement m;
    for (int i = 0; i < att_measure_count(found->measure); i++) {
        m = att_measure_at(found->measure, i);
        if (m.head < 0 && att_measurement_is_called(&m, name))
            return &m;
    }
    fail_msg("there is no figure %s", name);
    return NULL;
}

FIXTURE_TEST(figures_and_maps_are_recorded)
{
    att_network *network = open_checkpoint(f, "some.safetensors");
    att_measuring_options options = small_measuring(f);
    att_measured found = {0};
    att_evaluation evaluation;
    char folder[160];
    options.with = "accuracy,entropy";
    options.maps = 2;
    assert_int_equal(measure(f, network, &options, &found), ATT_OK);
    assert_string_equal(found.folder, path_in(f, "some", folder));
    assert_string_equal(found.split, "t10k");
    assert_int_equal(found.evaluation.count, EVAL_IMAGES);
    assert_int_equal(find(&found, "entropy/blocks.1.attn/mean")->count, EVAL_IMAGES);
    assert_int_equal(att_network_evaluate(network, f->eval, NULL, &evaluation), ATT_OK);
    assert_float_equal(find(&found, "accuracy/top1")->mean, evaluation.metrics[TOP1], 1e-12);
    assert_float_equal(found.evaluation.metrics[TOP1], evaluation.metrics[TOP1], 1e-12);

    size_t size;
    char *records = read_all(f, "some/measure.jsonl", &size), digest[ATT_WEIGHTS_DIGEST], part[64];
    records[size] = '\0';
    assert_int_equal(att_weights_digest(f->weights, digest), ATT_OK);
    snprintf(part, sizeof part, "\"weights\":\"%s\"", digest);
    assert_non_null(strstr(records, part));
    assert_non_null(strstr(records, "\"entropy\""));
    assert_non_null(strstr(records, "\"event\":\"run_end\""));
    free(records);
    assert_true(exists(f, "some/maps.safetensors"));
    att_measured_free(&found);
    assert_null(found.measure);
    att_network_close(&network);
}

FIXTURE_TEST(without_a_runs_folder_figures_are_not_recorded)
{
    att_network *network = open_checkpoint(f, "some.safetensors");
    att_measuring_options options = small_measuring(f);
    att_measured found = {0};
    options.output = "";
    options.experiment = "";
    options.with = "entropy";
    assert_int_equal(measure(f, network, &options, &found), ATT_OK);
    assert_string_equal(found.folder, "");
    assert_true(find(&found, "entropy/blocks.0.attn/mean")->mean > 0);
    assert_false(exists(f, "measure.jsonl"));
    att_measured_free(&found);
    att_network_close(&network);
}

FIXTURE_TEST(contradicting_options_are_refused)
{
    const char *const data[] = {f->folder, f->folder};
    const att_measuring_options good = small_measuring(f);
    att_measuring_options wrong[8];
    for (int i = 0; i < 8; i++)
        wrong[i] = good;
    wrong[0].maps = 1;
    wrong[0].map_images = "1";
    wrong[1].experiment = "a/b";
    wrong[2].output = NULL;
    wrong[2].experiment = "x";
    wrong[3].output = NULL;
    wrong[3].maps = 1;
    static const char *const parts[] = {"only one of both",
                                        "is a path",
                                        "output, which is missing",
                                        "maps need an output folder",
                                        "no image is called \"zebra\"",
                                        "there is no image 10; the data set has 10",
                                        "has an empty item",
                                        "nosuch.*"};
    wrong[4].map_images = "zebra";
    wrong[5].map_images = "3,10";
    wrong[6].map_images = "1,,2";
    wrong[7].nodes = "nosuch.*";
    att_network *network = open_checkpoint(f, "some.safetensors");
    for (int i = 0; i < 8; i++) {
        att_measured found = {0};
        const bool early = i < 4;
        assert_int_equal(att_measuring_check(f->context, att_network_path(network), 1, &wrong[i]),
                         early ? ATT_ERR_ARGUMENT : ATT_OK);
        assert_fails(f->context, measure(f, network, &wrong[i], &found), ATT_ERR_ARGUMENT, parts[i]);
        assert_null(found.measure);
        att_measured_free(&found);
    }
    assert_false(exists(f, "some"));
    wrong[0] = good;
    wrong[0].with = "accuracy";
    assert_int_equal(att_measuring_check(f->context, "x", 2, &wrong[0]), ATT_ERR_ARGUMENT);
    wrong[0].with = "acuracy";
    assert_int_equal(att_measuring_check(f->context, "x", 1, &wrong[0]), ATT_ERR_NOT_FOUND);

    att_measured found = {0};
    att_network *named = NULL;
    assert_int_equal(att_network_open(f->context, "resnet20", NULL, &named), ATT_OK);
    assert_fails(f->context, att_measure_checkpoint(named, data, 1, &good, &found), ATT_ERR_ARGUMENT,
                 "resnet20 has no file of weights");
    att_network_close(&named);
    att_option_values asked = tiny_options();
    const att_network_options how = {.options = &asked, .seed = 7};
    att_measuring_options random = good;
    char folder[160];
    random.with = "entropy";
    random.init_seed = 7;
    assert_int_equal(att_network_open(f->context, "vit_tiny_patch16_224", &how, &named), ATT_OK);
    assert_int_equal(measure(f, named, &random, &found), ATT_OK);
    assert_string_equal(found.folder, path_in(f, "vit_tiny_patch16_224-init-7", folder));
    att_measured_free(&found);
    att_network_close(&named);
    att_network_close(&network);
}

/* Figures of weights in memory are recorded only in a folder that the caller names. */
FIXTURE_TEST(weights_in_memory_are_measured)
{
    enum { MOST = 64 };
    att_safetensors_tensor tensors[MOST];
    const int count = att_weights_count(f->weights);
    att_option_values asked = tiny_options();
    const att_network_options how = {.model = "vit_tiny_patch16_224", .options = &asked};
    att_network *network = NULL, *file = open_checkpoint(f, "some.safetensors");
    att_measuring_options options = small_measuring(f);
    att_measured found = {0}, wanted = {0};
    char folder[160];
    assert_true(count <= MOST);
    for (int i = 0; i < count; i++) {
        const att_parameter_info p = att_weights_at(f->weights, i);
        float *values = calloc((size_t)att_shape_count(p.shape), sizeof *values);
        assert_int_equal(att_weights_get(f->weights, -1, i, values, att_shape_count(p.shape)), ATT_OK);
        tensors[i] = (att_safetensors_tensor){.name = p.name, .shape = p.shape, .data = values};
        tensors[i].dtype = ATT_SAFETENSORS_F32;
    }
    assert_int_equal(att_network_open_tensors(f->context, tensors, count, &how, &network), ATT_OK);
    for (int i = 0; i < count; i++)
        free((void *)tensors[i].data);
    options.with = "accuracy,entropy";
    assert_int_equal(measure(f, file, &options, &wanted), ATT_OK);
    assert_int_equal(measure(f, network, &options, &found), ATT_OK);
    assert_string_equal(found.folder, path_in(f, "vit_tiny_patch16_224", folder));
    assert_int_equal(att_measure_count(found.measure), att_measure_count(wanted.measure));
    for (int i = 0; i < att_measure_count(found.measure); i++)
        assert_true(att_measure_at(found.measure, i).mean == att_measure_at(wanted.measure, i).mean);
    att_measured_free(&wanted);
    att_measured_free(&found);
    options.output = NULL;
    assert_int_equal(measure(f, network, &options, &found), ATT_OK);
    assert_string_equal(found.folder, "");
    att_measured_free(&found);
    options.maps = 1;
    assert_int_equal(measure(f, network, &options, &found), ATT_ERR_ARGUMENT);
    att_measured_free(&found);
    att_network_close(&file);
    att_network_close(&network);
}

static bool stop_at(void *user, const att_progress *progress)
{
    return strcmp(progress->stage, user) != 0;
}

FIXTURE_TEST(a_stop_leaves_nothing_or_records_without_maps)
{
    char stage[] = "measure";
    att_network *network = open_checkpoint(f, "some.safetensors");
    att_measuring_options options = small_measuring(f);
    att_measured found = {0};
    options.with = "entropy";
    options.maps = 2;
    options.progress = stop_at;
    options.progress_user = stage;
    assert_int_equal(measure(f, network, &options, &found), ATT_ERR_STOPPED);
    assert_null(found.measure);
    assert_false(exists(f, "some"));
    att_measured_free(&found);

    strcpy(stage, "maps");
    assert_fails(f->context, measure(f, network, &options, &found), ATT_ERR_STOPPED,
                 "the records are written, maps are not");
    assert_non_null(found.measure);
    assert_true(exists(f, "some/measure.jsonl"));
    assert_false(exists(f, "some/maps.safetensors"));
    att_measured_free(&found);
    att_network_close(&network);
}

/* One allocation fails, later and later in the call. */
FIXTURE_TEST(lack_of_memory_leaves_nothing_behind)
{
    att_network *network = open_checkpoint(f, "some.safetensors");
    att_measuring_options options = small_measuring(f);
    options.with = "entropy";
    options.map_images = "1,t10k*[7]";
    att_status status = ATT_ERR_MEMORY;
    for (long allowed = 0; status != ATT_OK; allowed += 1 + allowed / 8) {
        att_measured found = {0};
        f->memory.left = allowed;
        status = measure(f, network, &options, &found);
        f->memory.left = -1;
        assert_true(status == ATT_OK || status == ATT_ERR_MEMORY);
        assert_true(status == ATT_OK || found.measure || !exists(f, "some/measure.jsonl"));
        att_measured_free(&found);
    }
    att_network_close(&network); /* the fixture checks what is left allocated */
}

FIXTURE_TEST(null_is_refused_or_means_the_default)
{
    att_network *network = open_checkpoint(f, "some.safetensors");
    const att_measuring_options open = {.batch_size = 4, .cache_bytes = 1 << 20};
    const char *const data = f->folder, *const none = NULL;
    att_measured found = {0};
    assert_int_equal(att_measuring_check(f->context, NULL, 1, NULL), ATT_ERR_ARGUMENT);
    assert_int_equal(att_measuring_check(f->context, att_network_path(network), 1, NULL), ATT_OK);
    assert_int_equal(att_measure_checkpoint(network, NULL, 1, NULL, &found), ATT_ERR_ARGUMENT);
    assert_int_equal(att_measure_checkpoint(network, &none, 1, NULL, &found), ATT_ERR_ARGUMENT);
    assert_int_equal(att_measure_checkpoint(network, &data, 1, NULL, NULL), ATT_ERR_ARGUMENT);
    CHECK(f->context, att_measure_checkpoint(network, &data, 1, &open, &found));
    assert_string_equal(found.split, "t10k");
    assert_true(att_measure_instrument_count(found.measure) > 2); /* "all" */
    att_measured_free(&found);
    att_measured_free(NULL);
    att_network_close(&network);
}

/* The file of attention maps, against the maps themselves. */
#include "train/fixture.h"

enum { SHOWN = 7, HEADS = 2, TOKENS = 5, NODES = 2, PIXELS = SIDE * SIDE };

static void must(const fixture *f, att_status status)
{
    if (status != ATT_OK)
        fail_msg("%s", att_context_message(f->context));
}

static att_status write_maps(const fixture *f, const att_maps_options *options)
{
    char path[160];
    return att_maps_write(f->model, f->weights, f->eval, &f->eval_transform, options,
                          path_in(f, "maps.safetensors", path));
}

/* A network whose attention differs between queries. */
static void sharpen(const fixture *f)
{
    int64_t count;
    for (int i = 0; i < att_weights_count(f->weights); i++) {
        att_parameter_info info = att_weights_at(f->weights, i);
        count = att_shape_count(info.shape);
        float *values = malloc((size_t)count * sizeof *values);
        must(f, att_weights_get(f->weights, -1, i, values, count));
        for (int64_t e = 0; strstr(info.name, "qkv.weight") && e < count; e++)
            values[e] *= 40;
        must(f, att_weights_set(f->weights, -1, i, values, count));
        free(values);
    }
}

static att_tensors *open_maps(const fixture *f)
{
    char path[160];
    att_tensors *file;
    must(f, att_tensors_open(f->context, path_in(f, "maps.safetensors", path), &file));
    return file;
}

static void read_tensor(const fixture *f, const att_tensors *file, const char *name, att_safetensors_dtype dtype,
                        att_shape shape, void *out)
{
    int index = att_tensors_find(file, name);
    if (index < 0)
        fail_msg("no tensor %s", name);
    assert_true(att_shape_equal(att_tensors_at(file, index).shape, shape));
    must(f, att_tensors_read(file, index, dtype, out, att_shape_count(shape)));
}

static void check_pixels(const fixture *f, const att_tensors *file)
{
    uint8_t pixels[SHOWN][PIXELS];
    read_tensor(f, file, "image", ATT_SAFETENSORS_U8, att_shape_of(SHOWN, SIDE, SIDE, 1), pixels);
    for (int i = 0; i < SHOWN; i++) {
        att_image image = {0};
        must(f, att_dataset_read(f->eval, f->context, i, 1, &image));
        assert_memory_equal(pixels[i], image.pixels, PIXELS);
        att_image_free(f->context, &image);
    }
}

typedef struct direct {
    att_plan *plan;
    att_session *session;
} direct;

static direct direct_open(const fixture *f)
{
    direct d;
    att_plan_options options = att_plan_options_defaults();
    must(f, att_ask_attention_map(att_model_graph(f->model), "*"));
    must(f, att_plan_compile(att_model_graph(f->model), &options, &d.plan));
    must(f, att_session_create(d.plan, f->weights, 1, &d.session));
    return d;
}

static void run_image(const fixture *f, const direct *d, int index)
{
    att_image image = {0};
    float pixels[PIXELS];
    int32_t target = 0;
    must(f, att_dataset_read(f->eval, f->context, index, 1, &image));
    must(f, att_transform_image(f->context, &f->eval_transform, &image, 0, 0, index, pixels));
    must(f, att_session_bind(d->session, "image", pixels));
    must(f, att_session_bind(d->session, "target", &target));
    must(f, att_session_run(d->session, 1));
    att_image_free(f->context, &image);
}

static void compare_map(const fixture *f, const direct *d, const char *node, const uint8_t *map, const float *max)
{
    float rows[HEADS][TOKENS][TOKENS];
    char name[64];
    snprintf(name, sizeof name, "%s.map", node);
    must(f, att_session_output(d->session, name, 0, 1, rows));
    for (int r = 0; r < HEADS * TOKENS; r++) {
        const float *row = &rows[0][0][0] + (size_t)r * TOKENS;
        float largest = 0;
        for (int j = 0; j < TOKENS; j++)
            largest = row[j] > largest ? row[j] : largest;
        assert_true(fabsf(max[r] - largest) <= 1e-6f); /* another group may sum in another order */
        for (int j = 0; j < TOKENS; j++)
            assert_true(fabs(255.0 * (double)row[j] / (double)largest - map[r * TOKENS + j]) <= 0.51);
    }
}

static void check_maps(const fixture *f, const att_tensors *file)
{
    static const char *const nodes[NODES] = {"blocks.0.attn", "blocks.1.attn"};
    static uint8_t map[NODES][SHOWN][HEADS * TOKENS * TOKENS];
    static float max[NODES][SHOWN][HEADS * TOKENS];
    int64_t labels[SHOWN], predictions[SHOWN];
    char name[64];
    read_tensor(f, file, "label", ATT_SAFETENSORS_I64, att_shape_of(SHOWN), labels);
    read_tensor(f, file, "prediction", ATT_SAFETENSORS_I64, att_shape_of(SHOWN), predictions);
    for (int n = 0; n < NODES; n++) {
        snprintf(name, sizeof name, "%s.map", nodes[n]);
        read_tensor(f, file, name, ATT_SAFETENSORS_U8, att_shape_of(SHOWN, HEADS, TOKENS, TOKENS), map[n]);
        snprintf(name, sizeof name, "%s.max", nodes[n]);
        read_tensor(f, file, name, ATT_SAFETENSORS_F32, att_shape_of(SHOWN, HEADS, TOKENS), max[n]);
    }
    direct d = direct_open(f);
    for (int i = 0; i < SHOWN; i++) {
        float logits[CLASSES];
        att_ranked best;
        run_image(f, &d, i);
        must(f, att_session_output(d.session, "logits", 0, 1, logits));
        att_rank_classes(logits, CLASSES, &best, 1);
        assert_int_equal(predictions[i], best.class_number);
        assert_int_equal(labels[i], att_dataset_label(f->eval, i));
        for (int n = 0; n < NODES; n++)
            compare_map(f, &d, nodes[n], map[n][i], max[n][i]);
    }
    att_session_destroy(&d.session);
    att_plan_destroy(&d.plan);
}

static void the_file_holds_the_maps(void **state)
{
    fixture *f = *state;
    sharpen(f);
    att_maps_options options = att_maps_options_defaults();
    options.count = SHOWN;
    must(f, write_maps(f, &options));
    att_tensors *file = open_maps(f);
    assert_int_equal(att_tensors_count(file), 3 + 2 * NODES);
    assert_string_equal(att_tensors_metadata(file, "model"), "vit_tiny_patch16_224");
    assert_string_equal(att_tensors_metadata(file, "nodes"), "[\"blocks.0.attn\",\"blocks.1.attn\"]");
    assert_string_equal(att_tensors_metadata(file, "prefix"), "1");
    assert_string_equal(att_tensors_metadata(file, "grid_h"), "2");
    assert_string_equal(att_tensors_metadata(file, "grid_w"), "2");
    assert_string_equal(att_tensors_metadata(file, "classes"), "[\"0\",\"1\",\"2\",\"3\"]");
    check_pixels(f, file);
    check_maps(f, file);
    att_tensors_close(&file);
}

static bool stop(void *user, const att_progress *progress)
{
    (void)user;
    return progress->batch < 2;
}

static void refusals_leave_the_file(void **state)
{
    fixture *f = *state;
    att_maps_options options = att_maps_options_defaults();
    options.count = 100;
    options.nodes = "blocks.1.*";
    must(f, write_maps(f, &options));
    size_t size, size_after;
    char *before = read_all(f, "maps.safetensors", &size);
    att_tensors *file = open_maps(f);
    assert_int_equal(att_tensors_count(file), 3 + 2);
    assert_int_equal(att_tensors_at(file, att_tensors_find(file, "label")).count, EVAL_IMAGES);
    att_tensors_close(&file);
    options.nodes = "blocks.7.attn";
    assert_int_equal(write_maps(f, &options), ATT_ERR_NOT_FOUND);
    assert_message_has(f, "blocks.7.attn");
    options.nodes = "*";
    options.count = 0;
    assert_int_equal(write_maps(f, &options), ATT_ERR_ARGUMENT);
    options.count = 9;
    options.progress = stop;
    assert_int_equal(write_maps(f, &options), ATT_ERR_STOPPED);
    options.progress = NULL;
    f->eval_transform.width = 9;
    assert_int_equal(write_maps(f, &options), ATT_ERR_MISMATCH);
    f->eval_transform.width = SIDE;
    long allowed = 0;
    for (; allowed < 10000; allowed += allowed / 16 + 1) {
        f->allocations_left = allowed;
        att_status status = write_maps(f, &options);
        f->allocations_left = -1;
        if (status == ATT_OK)
            break;
        assert_int_equal(status, ATT_ERR_MEMORY);
        char *after = read_all(f, "maps.safetensors", &size_after);
        assert_true(size == size_after && memcmp(before, after, size) == 0);
        free(after);
    }
    assert_true(allowed > 10 && allowed < 10000);
    free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {fixture_test(the_file_holds_the_maps), fixture_test(refusals_leave_the_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The file of attention maps against the maps themselves. */
#include "base/io/json.h"
#include "networks/tasks/list.h"
#include "study/train/fixture.h"
#include "study/train/maps.h"

enum { SHOWN = 7, HEADS = 2, TOKENS = 5, PATCHES = 4, NODES = 2, PIXELS = SIDE * SIDE, OWN = 3, EACH = 4 };

static att_status write_maps(const fixture *f, const att_maps_options *options)
{
    char path[160];
    return att_maps_write(f->model, f->weights, f->eval, &f->eval_transform, options,
                          path_in(f, "maps.safetensors", path));
}

static void sharpen_by(const fixture *f, float factor)
{
    int64_t count;
    for (int i = 0; i < att_weights_count(f->weights); i++) {
        att_parameter_info info = att_weights_at(f->weights, i);
        count = att_shape_count(info.shape);
        float *values = malloc((size_t)count * sizeof *values);
        CHECK(f->context, att_weights_get(f->weights, -1, i, values, count));
        for (int64_t e = 0; strstr(info.name, "qkv.weight") && e < count; e++)
            values[e] *= factor;
        CHECK(f->context, att_weights_set(f->weights, -1, i, values, count));
        free(values);
    }
}

/* Makes the attention differ between queries. */
static void sharpen(const fixture *f)
{
    sharpen_by(f, 40);
}

static att_tensors *open_maps(const fixture *f)
{
    char path[160];
    att_tensors *file;
    CHECK(f->context, att_tensors_open(f->context, path_in(f, "maps.safetensors", path), &file));
    return file;
}

static void read_tensor(const fixture *f, const att_tensors *file, const char *name, att_safetensors_dtype dtype,
                        att_shape shape, void *out)
{
    int index = att_tensors_find(file, name);
    if (index < 0)
        fail_msg("no tensor %s", name);
    assert_true(att_shape_equal(att_tensors_at(file, index).shape, shape));
    CHECK(f->context, att_tensors_read(file, index, dtype, out, att_shape_count(shape)));
}

static void check_pixels(const fixture *f, const att_tensors *file)
{
    uint8_t pixels[SHOWN][PIXELS];
    read_tensor(f, file, "image", ATT_SAFETENSORS_U8, att_shape_of(SHOWN, SIDE, SIDE, 1), pixels);
    for (int i = 0; i < SHOWN; i++) {
        att_image image = {0};
        CHECK(f->context, att_dataset_read(f->eval, f->context, i, 1, &image));
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
    CHECK(f->context, att_graph_probe_attention_map(att_model_graph(f->model), "*"));
    CHECK(f->context, att_plan_compile(att_model_graph(f->model), &options, &d.plan));
    CHECK(f->context, att_session_create(d.plan, f->weights, 1, &d.session));
    return d;
}

static void run_image(const fixture *f, const direct *d, int index)
{
    att_image image = {0};
    float pixels[PIXELS];
    CHECK(f->context, att_dataset_read(f->eval, f->context, index, 1, &image));
    CHECK(f->context, att_transform_image(f->context, &f->eval_transform, &image, 0, 0, index, pixels));
    CHECK(f->context, att_session_bind(d->session, "image", pixels));
    CHECK(f->context, att_session_run(d->session, 1));
    att_image_free(f->context, &image);
}

typedef struct kept {
    uint16_t patches[SHOWN][HEADS][TOKENS][PATCHES];
    float prefix[SHOWN][HEADS][TOKENS][1];
    float figures[SHOWN][HEADS + 1][TOKENS][4];
    int32_t place[SHOWN][HEADS + 1][TOKENS];
} kept;

static void read_kept(const fixture *f, const att_tensors *file, const char *node, kept *k)
{
    const struct {
        const char *name;
        att_safetensors_dtype dtype;
        att_shape shape;
        void *out;
    } tensors[EACH] = {
        {"patches", ATT_SAFETENSORS_U16, att_shape_of(SHOWN, HEADS, TOKENS, PATCHES), k->patches},
        {"prefix", ATT_SAFETENSORS_F32, att_shape_of(SHOWN, HEADS, TOKENS, 1), k->prefix},
        {"figures", ATT_SAFETENSORS_F32, att_shape_of(SHOWN, HEADS + 1, TOKENS, 4), k->figures},
        {"place", ATT_SAFETENSORS_I32, att_shape_of(SHOWN, HEADS + 1, TOKENS), k->place},
    };
    for (int t = 0; t < EACH; t++) {
        char name[64];
        snprintf(name, sizeof name, "%s.%s", node, tensors[t].name);
        read_tensor(f, file, name, tensors[t].dtype, tensors[t].shape, tensors[t].out);
    }
}

/* Measured: 1.2e-7, because another group size may sum in another order. */
static void assert_figure(double got, double wanted)
{
    if (!(fabs(got - wanted) <= 1e-6))
        fail_msg("%.9g is kept, %.9g is right", got, wanted);
}

/* Checks the figures of one query's weights on all keys, in f64. */
static void check_figures(const double row[TOKENS], int query, const float figures[4], int32_t place)
{
    double entropy = 0, largest = 0;
    for (int j = 0; j < TOKENS; j++) {
        entropy -= row[j] > 0 ? row[j] * log(row[j]) : 0;
        largest = j > 0 && row[j] > largest ? row[j] : largest;
    }
    assert_figure((double)figures[0], entropy);
    assert_figure((double)figures[1], row[query]);
    assert_figure((double)figures[2], row[0]);
    assert_figure((double)figures[3], largest);
    assert_true(place >= 0 && place < PATCHES);
    assert_figure(row[1 + place], largest);
}

static void check_weights(const kept *k, int image, int head, int query, const double row[TOKENS])
{
    double largest = (double)k->figures[image][head][query][3];
    assert_figure((double)k->prefix[image][head][query][0], row[0]);
    for (int j = 0; j < PATCHES; j++)
        assert_true(fabs(k->patches[image][head][query][j] / 65535.0 * largest - row[1 + j]) <=
                    largest / 131070 + 1e-6);
}

static void compare_map(const fixture *f, const direct *d, const char *node, const kept *k, int image)
{
    float rows[HEADS][TOKENS][TOKENS];
    char name[64];
    snprintf(name, sizeof name, "%s.map", node);
    CHECK(f->context, att_session_output(d->session, name, 0, 1, rows));
    for (int i = 0; i < TOKENS; i++) {
        double mean[TOKENS] = {0};
        for (int h = 0; h < HEADS; h++) {
            double row[TOKENS];
            for (int j = 0; j < TOKENS; j++) {
                row[j] = (double)rows[h][i][j];
                mean[j] += row[j] / HEADS;
            }
            check_figures(row, i, k->figures[image][h][i], k->place[image][h][i]);
            check_weights(k, image, h, i, row);
        }
        check_figures(mean, i, k->figures[image][HEADS][i], k->place[image][HEADS][i]);
    }
}

/* shown: indices of the images in the data set. */
static void check_maps(const fixture *f, const att_tensors *file, const int64_t shown[SHOWN])
{
    static const char *const nodes[NODES] = {"blocks.0.attn", "blocks.1.attn"};
    static kept all[NODES];
    int64_t labels[SHOWN];
    float logits[SHOWN][CLASSES];
    read_tensor(f, file, "label", ATT_SAFETENSORS_I64, att_shape_of(SHOWN), labels);
    read_tensor(f, file, "output.logits", ATT_SAFETENSORS_F32, att_shape_of(SHOWN, CLASSES), logits);
    for (int n = 0; n < NODES; n++)
        read_kept(f, file, nodes[n], &all[n]);
    direct d = direct_open(f);
    for (int i = 0; i < SHOWN; i++) {
        float wanted[CLASSES];
        run_image(f, &d, (int)shown[i]);
        CHECK(f->context, att_session_output(d.session, "logits", 0, 1, wanted));
        for (int c = 0; c < CLASSES; c++)
            assert_figure((double)logits[i][c], (double)wanted[c]);
        assert_int_equal(labels[i], att_dataset_label(f->eval, shown[i]));
        for (int n = 0; n < NODES; n++)
            compare_map(f, &d, nodes[n], &all[n], i);
    }
    att_session_destroy(&d.session);
    att_plan_destroy(&d.plan);
}

/* Checks that captions are those of the task for the predictions in the file, the images and these class names. */
static void check_captions(const fixture *f, const att_tensors *file, const int64_t *shown, bool unlabelled,
                           const att_answer_options *names)
{
    float logits[SHOWN][CLASSES];
    json_t *captions;
    const char *list = att_tensors_metadata(file, "captions");
    read_tensor(f, file, "output.logits", ATT_SAFETENSORS_F32, att_shape_of(SHOWN, CLASSES), logits);
    CHECK(f->context, att_json_parse(f->context, "captions", list, strlen(list), &captions));
    assert_int_equal(json_array_size(captions), SHOWN);
    for (int i = 0; i < SHOWN; i++) {
        const att_field field = {.name = "logits", .dtype = ATT_F32, .shape = att_shape_of(CLASSES)};
        const void *row = logits[i];
        const att_batch answer = {.count = 1, .field_count = 1, .fields = &field, .data = &row};
        const att_task_image image = {.dataset = f->eval, .index = shown[i], .unlabelled = unlabelled};
        att_text text = {.context = f->context};
        CHECK(f->context, att_task_classification.caption(f->context, &answer, names, &image, &text));
        assert_string_equal(json_string_value(json_array_get(captions, (size_t)i)), text.data);
        att_text_free(&text);
    }
    json_decref(captions);
}

static const int64_t first_images[SHOWN] = {0, 1, 2, 3, 4, 5, 6};

FIXTURE_TEST(the_file_holds_the_maps)
{
    sharpen(f);
    att_maps_options options = att_maps_options_defaults();
    options.count = SHOWN;
    CHECK(f->context, write_maps(f, &options));
    att_tensors *file = open_maps(f);
    assert_int_equal(att_tensors_count(file), OWN + EACH * NODES);
    assert_string_equal(att_tensors_metadata(file, "maps"), "4");
    assert_string_equal(att_tensors_metadata(file, "model"), "vit_tiny_patch16_224");
    const char *layout =
        ",\"prefix\":1,\"grid_h\":2,\"grid_w\":2,\"window_h\":2,\"window_w\":2,\"shift_h\":0,\"shift_w\":0}";
    char nodes[400];
    snprintf(nodes, sizeof nodes, "[{\"node\":\"blocks.0.attn\"%s,{\"node\":\"blocks.1.attn\"%s]", layout, layout);
    assert_string_equal(att_tensors_metadata(file, "nodes"), nodes);
    const att_answer_options names = {.labels = att_dataset_class_names(f->eval), .label_count = CLASSES};
    check_captions(f, file, first_images, false, &names);
    assert_non_null(strstr(att_tensors_metadata(file, "names"), "[\"t10k-images-idx3-ubyte[0]\",\"t10k-"));
    check_pixels(f, file);
    check_maps(f, file, first_images);
    att_tensors_close(&file);
}

/* The chosen images in the chosen order. Labels of classes that the network does not have are not written. */
FIXTURE_TEST(the_chosen_images_have_maps)
{
    static const int64_t chosen[SHOWN] = {9, 0, 4, 2, 3, 8, 1};
    static const char *const names[CLASSES] = {"up", "down", "left", "right"};
    sharpen(f);
    att_maps_options options = att_maps_options_defaults();
    options.images = chosen;
    options.count = SHOWN;
    CHECK(f->context, write_maps(f, &options));
    att_tensors *file = open_maps(f);
    assert_non_null(strstr(att_tensors_metadata(file, "names"), "ubyte[9]\",\"t10k-images-idx3-ubyte[0]\""));
    check_maps(f, file, chosen);
    att_tensors_close(&file);
    options.unlabelled = true;
    CHECK(f->context, write_maps(f, &options));
    file = open_maps(f);
    check_captions(f, file, chosen, true, &(att_answer_options){.labels = NULL});
    int64_t labels[SHOWN];
    read_tensor(f, file, "label", ATT_SAFETENSORS_I64, att_shape_of(SHOWN), labels);
    for (int i = 0; i < SHOWN; i++)
        assert_int_equal(labels[i], -1);
    att_tensors_close(&file);
    options.class_names = names;
    options.class_count = CLASSES;
    CHECK(f->context, write_maps(f, &options));
    file = open_maps(f);
    check_captions(f, file, chosen, true, &(att_answer_options){.labels = names, .label_count = CLASSES});
    att_tensors_close(&file);
    options.unlabelled = false;
    CHECK(f->context, write_maps(f, &options));
    file = open_maps(f);
    check_captions(f, file, chosen, false, &(att_answer_options){.labels = names, .label_count = CLASSES});
    att_tensors_close(&file);
    options.images = (const int64_t[]){3, EVAL_IMAGES};
    options.count = 2;
    assert_fails(f->context, write_maps(f, &options), ATT_ERR_ARGUMENT, "image 10 of a data set of 10 images");
}

/* Nearly all attention is on the class token: the other weights keep their precision. */
FIXTURE_TEST(small_weights_beside_a_dominating_one_keep_their_digits)
{
    float largest = 0;
    for (double factor = 1; factor < 1e5 && largest < 0.999F; factor *= 4) {
        if (factor > 1)
            sharpen_by(f, 4);
        att_maps_options options = att_maps_options_defaults();
        options.count = SHOWN;
        CHECK(f->context, write_maps(f, &options));
        att_tensors *file = open_maps(f);
        static kept k;
        read_kept(f, file, "blocks.0.attn", &k);
        for (int i = 0; i < SHOWN * (HEADS + 1) * TOKENS; i++) {
            float prefix = (&k.figures[0][0][0][0])[4 * i + 2];
            largest = prefix > largest ? prefix : largest;
        }
        check_maps(f, file, first_images);
        att_tensors_close(&file);
    }
    assert_true(largest >= 0.999F);
}

/* Creates the network again with these options. */
static void make_anew(fixture *f, const char *name, const att_option_values *options)
{
    att_weights_destroy(&f->weights);
    att_model_destroy(&f->model);
    CHECK(f->context, att_model_create(f->context, name, options, ATT_F32, &f->model));
    CHECK(f->context, att_weights_create(att_model_graph(f->model), "cpu", &f->weights));
    CHECK(f->context, att_weights_initialise(f->weights, 1));
}

/* Makes a network without class token, which classifies the mean of the patches. */
static void drop_class_token(fixture *f)
{
    att_option_values options = tiny_options();
    att_options_set(&options, "class_token", 0);
    att_options_set_text(&options, "global_pool", "avg");
    make_anew(f, "vit_tiny_patch16_224", &options);
}

/* The data set gives the images' classes; the features of a backbone have no caption. */
FIXTURE_TEST(a_network_without_a_head_has_maps)
{
    att_option_values network = tiny_options();
    att_options_set(&network, "num_classes", 0);
    make_anew(f, "vit_tiny_patch16_224", &network);
    att_maps_options options = att_maps_options_defaults();
    options.count = 2;
    CHECK(f->context, write_maps(f, &options));
    att_tensors *file = open_maps(f);
    assert_string_equal(att_tensors_metadata(file, "captions"), "[\"0.\",\"1.\"]");
    float features[2][16];
    read_tensor(f, file, "output.features", ATT_SAFETENSORS_F32, att_shape_of(2, 16), features);
    assert_true(isfinite(features[1][15]) && features[1][15] != 0);
    att_tensors_close(&file);
}

/* The class of each pixel of the image, which the network's own class map has too. */
FIXTURE_TEST(a_segmenter_has_the_class_of_each_pixel)
{
    static const uint8_t colours[CLASSES][3] = {{1, 2, 3}, {255, 0, 128}};
    static const char *const names[] = {"sky", "road"};
    uint16_t classes[2][PIXELS];
    int32_t map[2][PIXELS];
    att_option_values network = tiny_options();
    att_options_set_text(&network, "task", "segment");
    make_anew(f, "vit_tiny_patch16_224", &network);
    att_maps_options options = att_maps_options_defaults();
    options.count = 2;
    options.class_names = names;
    options.class_count = 2;
    options.class_colours = *colours;
    CHECK(f->context, write_maps(f, &options));
    att_tensors *file = open_maps(f);
    read_tensor(f, file, "classes", ATT_SAFETENSORS_U16, att_shape_of(2, SIDE, SIDE), classes);
    read_tensor(f, file, "output.class_map", ATT_SAFETENSORS_I32, att_shape_of(2, SIDE, SIDE), map);
    for (int i = 0; i < 2; i++)
        for (int p = 0; p < PIXELS; p++)
            assert_int_equal(classes[i][p], map[i][p]);
    const char *list = att_tensors_metadata(file, "classes");
    assert_non_null(strstr(list,
                           "[{\"label\":\"sky\",\"colour\":\"#010203\"},"
                           "{\"label\":\"road\",\"colour\":\"#ff0080\"},"
                           "{\"label\":null,\"colour\":\"#000000\"}"));
    att_tensors_close(&file);
}

/* Probes and a loss in the model's graph are not written to the file and do not change the maps. */
FIXTURE_TEST(nodes_added_to_the_graph_change_no_map)
{
    size_t size, size_after;
    att_maps_options options = att_maps_options_defaults();
    sharpen(f);
    CHECK(f->context, write_maps(f, &options));
    char *before = read_all(f, "maps.safetensors", &size);
    att_graph *graph = att_model_graph(f->model);
    att_measure *measure;
    CHECK(f->context, att_measure_create(graph, "entropy,nsi", "*", &measure));
    CHECK(f->context, att_graph_probe_attention_map(graph, "blocks.0.*"));
    CHECK(f->context, att_task_add_loss("classification", graph, &(att_task_setup){.classes = CLASSES}));
    CHECK(f->context, write_maps(f, &options));
    char *after = read_all(f, "maps.safetensors", &size_after);
    assert_int_equal(size, size_after);
    assert_memory_equal(before, after, size);
    free(before);
    free(after);
    att_measure_destroy(&measure);
}

FIXTURE_TEST(without_a_class_token_attention_on_prefixes_is_zero)
{
    float figures[SHOWN][HEADS + 1][PATCHES][4];
    drop_class_token(f);
    sharpen(f);
    att_maps_options options = att_maps_options_defaults();
    options.count = SHOWN;
    CHECK(f->context, write_maps(f, &options));
    att_tensors *file = open_maps(f);
    assert_non_null(strstr(att_tensors_metadata(file, "nodes"), "\"prefix\":0"));
    assert_int_equal(att_tensors_find(file, "blocks.0.attn.prefix"), -1);
    read_tensor(f, file, "blocks.0.attn.figures", ATT_SAFETENSORS_F32, att_shape_of(SHOWN, HEADS + 1, PATCHES, 4),
                figures);
    for (int i = 0; i < SHOWN * (HEADS + 1) * PATCHES; i++)
        assert_true((&figures[0][0][0][0])[4 * i + 2] == 0);
    att_tensors_close(&file);
}

FIXTURE_TEST(the_first_of_equal_weights_is_the_largest)
{
    static kept k;
    sharpen_by(f, 0);
    att_maps_options options = att_maps_options_defaults();
    options.count = SHOWN;
    CHECK(f->context, write_maps(f, &options));
    att_tensors *file = open_maps(f);
    read_kept(f, file, "blocks.0.attn", &k);
    for (int i = 0; i < SHOWN * (HEADS + 1) * TOKENS; i++) {
        assert_figure((double)(&k.figures[0][0][0][0])[4 * i + 3], 1.0 / TOKENS);
        assert_int_equal((&k.place[0][0][0])[i], 0);
    }
    att_tensors_close(&file);
}

/* The first stage has 4 x 4 patches in windows of 2 x 2, which are shifted by one patch in its second block. The second
 * stage has 2 x 2 patches in one window. */
enum { WINDOW = 4, MOST_PATCHES = 16 };

static void make_swin(fixture *f)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", SIDE);
    att_options_set(&options, "patch_size", 2);
    att_options_set(&options, "in_chans", 1);
    att_options_set(&options, "num_classes", CLASSES);
    att_options_set(&options, "embed_dim", 16);
    att_options_set_text(&options, "window_size", "2");
    att_options_set_text(&options, "depths", "2,1");
    att_options_set_text(&options, "stage_heads", "2,2");
    make_anew(f, "swin_tiny_patch4_window7_224", &options);
}

/* Number in a grid of side x side patches of patch i of the window of patch `query`. */
static int patch_of_window(int query, int side, int shift, int i)
{
    int y = (query / side - shift + side) % side / 2 * 2 + i / 2,
        x = (query % side - shift + side) % side / 2 * 2 + i % 2;
    return (y + shift) % side * side + (x + shift) % side;
}

static void compare_windows(const fixture *f, const att_tensors *file, const direct *d, const char *node, int side,
                            int shift)
{
    static uint16_t patches[SHOWN * HEADS * MOST_PATCHES][WINDOW];
    static float figures[SHOWN][HEADS + 1][MOST_PATCHES][4], map[HEADS][MOST_PATCHES][WINDOW];
    static int32_t place[SHOWN * (HEADS + 1) * MOST_PATCHES];
    int n = side * side;
    char name[64];
    snprintf(name, sizeof name, "%s.patches", node);
    read_tensor(f, file, name, ATT_SAFETENSORS_U16, att_shape_of(SHOWN, HEADS, n, WINDOW), patches);
    snprintf(name, sizeof name, "%s.figures", node);
    read_tensor(f, file, name, ATT_SAFETENSORS_F32, att_shape_of(SHOWN, HEADS + 1, n, 4), figures);
    snprintf(name, sizeof name, "%s.place", node);
    read_tensor(f, file, name, ATT_SAFETENSORS_I32, att_shape_of(SHOWN, HEADS + 1, n), place);
    snprintf(name, sizeof name, "%s.map", node);
    run_image(f, d, SHOWN - 1);
    CHECK(f->context, att_session_output(d->session, name, 0, 1, map));
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < n; i++) {
            const float *row = &map[0][0][0] + (h * n + i) * WINDOW;
            const float *told = &figures[0][0][0][0] + (((SHOWN - 1) * (HEADS + 1) + h) * n + i) * 4;
            const uint16_t *levels = patches[((SHOWN - 1) * HEADS + h) * n + i];
            double entropy = 0, self = -1;
            int best = 0;
            for (int j = 0; j < WINDOW; j++) {
                entropy -= row[j] > 0 ? (double)row[j] * log((double)row[j]) : 0;
                best = row[j] > row[best] ? j : best;
                self = patch_of_window(i, side, shift, j) == i ? (double)row[j] : self;
                assert_true(fabs(levels[j] / 65535.0 * (double)told[3] - (double)row[j]) <=
                            (double)told[3] / 131070 + 1e-6);
            }
            assert_figure((double)told[0], entropy);
            assert_figure((double)told[1], self);
            assert_true(told[2] == 0);
            assert_figure((double)told[3], (double)row[best]);
            assert_int_equal(place[((SHOWN - 1) * (HEADS + 1) + h) * n + i], patch_of_window(i, side, shift, best));
        }
}

FIXTURE_TEST(windows_have_maps_of_their_own_patches)
{
    make_swin(f);
    sharpen(f);
    att_maps_options options = att_maps_options_defaults();
    options.count = SHOWN;
    CHECK(f->context, write_maps(f, &options));
    att_tensors *file = open_maps(f);
    const char *nodes = att_tensors_metadata(file, "nodes");
    assert_non_null(strstr(nodes,
                           "{\"node\":\"layers.0.blocks.1.attn\",\"prefix\":0,\"grid_h\":4,\"grid_w\":4,"
                           "\"window_h\":2,\"window_w\":2,\"shift_h\":1,\"shift_w\":1}"));
    assert_non_null(strstr(nodes, "{\"node\":\"layers.1.blocks.0.attn\",\"prefix\":0,\"grid_h\":2,"));
    direct d = direct_open(f);
    compare_windows(f, file, &d, "layers.0.blocks.0.attn", 4, 0);
    compare_windows(f, file, &d, "layers.0.blocks.1.attn", 4, 1);
    compare_windows(f, file, &d, "layers.1.blocks.0.attn", 2, 0);
    att_session_destroy(&d.session);
    att_plan_destroy(&d.plan);
    att_tensors_close(&file);
}

/* Attention pooling has one query, which is no token of the grid. */
FIXTURE_TEST(pooling_has_no_map)
{
    att_option_values network = tiny_options();
    att_options_set_text(&network, "global_pool", "map");
    att_options_set(&network, "class_token", 0);
    make_anew(f, "vit_tiny_patch16_224", &network);
    att_maps_options options = att_maps_options_defaults();
    CHECK(f->context, write_maps(f, &options));
    att_tensors *file = open_maps(f);
    assert_true(att_tensors_find(file, "blocks.1.attn.patches") >= 0);
    assert_null(strstr(att_tensors_metadata(file, "nodes"), "pool"));
    att_tensors_close(&file);
    options.nodes = "attn_pool*";
    assert_fails(f->context, write_maps(f, &options), ATT_ERR_UNSUPPORTED,
                 "no attention on a grid of tokens matches \"attn_pool*\"");
}

static void damage(const fixture *f, const char *weight)
{
    int index = att_weights_find(f->weights, weight);
    int64_t count = att_shape_count(att_weights_at(f->weights, index).shape);
    float *values = malloc((size_t)count * sizeof *values);
    for (int64_t e = 0; e < count; e++)
        values[e] = NAN;
    CHECK(f->context, att_weights_set(f->weights, -1, index, values, count));
    free(values);
}

FIXTURE_TEST(damaged_weights_are_refused)
{
    att_maps_options options = att_maps_options_defaults();
    damage(f, "head.bias");
    assert_fails(f->context, write_maps(f, &options), ATT_ERR_NONFINITE,
                 "the network's outputs contain NaN or infinity; the weights are damaged: tensor head.bias has ");
    assert_message_has(f, "values that are not finite");
    damage(f, "blocks.1.attn.qkv.weight");
    assert_fails(f->context, write_maps(f, &options), ATT_ERR_NONFINITE,
                 "blocks.1.attn: NaN or infinity in the attention map; the weights are damaged: tensor "
                 "blocks.1.attn.qkv.weight has ");
    assert_message_has(f, "values that are not finite, and 1 other tensor has such values");
}

static bool stop(void *user, const att_progress *progress)
{
    (void)user;
    return progress->batch < 2;
}

FIXTURE_TEST(refusals_leave_the_file)
{
    att_maps_options options = att_maps_options_defaults();
    options.count = 100;
    options.nodes = "blocks.1.*";
    CHECK(f->context, write_maps(f, &options));
    size_t size, size_after;
    char *before = read_all(f, "maps.safetensors", &size);
    att_tensors *file = open_maps(f);
    assert_int_equal(att_tensors_count(file), OWN + EACH);
    assert_int_equal(att_tensors_at(file, att_tensors_find(file, "label")).count, EVAL_IMAGES);
    att_tensors_close(&file);
    options.nodes = "blocks.7.attn";
    assert_fails(f->context, write_maps(f, &options), ATT_ERR_NOT_FOUND, "blocks.7.attn");
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
        f->memory.left = allowed;
        att_status status = write_maps(f, &options);
        f->memory.left = -1;
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

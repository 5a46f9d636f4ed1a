/* Predictions drawn into their photographs, and the colours of a network's classes. */
#include "base/io/safetensors.h"
#include "networks/tasks/task.h"
#include "study/network/fixture.h"

static void make_segmenter(fixture *f)
{
    att_option_values options = tiny_options();
    att_weights_destroy(&f->weights);
    att_model_destroy(&f->model);
    att_options_set_text(&options, "task", "segment");
    CHECK(f->context, att_model_create(f->context, "vit_tiny_patch16_224", &options, ATT_F32, &f->model));
    CHECK(f->context, att_weights_create(att_model_graph(f->model), "cpu", &f->weights));
    CHECK(f->context, att_weights_initialise(f->weights, 1));
}

/* The network sees the middle square of a photograph that is wider than high. */
FIXTURE_TEST(a_prediction_is_drawn_in_the_size_of_the_photograph)
{
    enum { WIDTH = 40, HEIGHT = 20 };
    static uint8_t pixels[WIDTH * HEIGHT];
    char path[160];
    att_batch answers;
    att_drawing drawing = {0};
    make_segmenter(f);
    att_network *network = open_network(f, export(f, path));
    att_preprocess preprocess = att_network_identity(network)->preprocess;
    snprintf(preprocess.crop_mode, sizeof preprocess.crop_mode, "center");
    CHECK(f->context, att_network_set_preprocess(network, &preprocess));
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        pixels[i] = (uint8_t)(i * 7);
    const att_image photograph = {WIDTH, HEIGHT, 1, pixels};
    CHECK(f->context, att_network_run_images(network, &photograph, 1, &answers));
    CHECK(f->context, att_network_draw(network, &answers, NULL, &photograph, &drawing));
    assert_int_equal(drawing.image.width, WIDTH);
    assert_int_equal(drawing.class_count, CLASSES);
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        const bool seen = i % WIDTH >= 10 && i % WIDTH < 30;
        const uint16_t found = drawing.classes.classes[i];
        assert_true(seen ? found < CLASSES : found == ATT_MASK_NONE);
        for (int c = 0; c < 3; c++)
            assert_int_equal(drawing.image.pixels[3 * i + c],
                             seen ? (pixels[i] + drawing.colours[3 * found + c] + 1) / 2 : pixels[i]);
    }
    att_drawing_free(f->context, &drawing);
    assert_true(att_network_draws(network));
    att_network_close(&network);
}

static void keep_line(void *user, const char *text)
{
    strcat(user, text);
    strcat(user, "\n");
}

/* The second photograph has bars above and below it. */
FIXTURE_TEST(shares_of_classes_are_those_of_the_photograph)
{
    enum { WIDTH = 40, HEIGHT = 10, TEXT = 1024 };
    static uint8_t pixels[WIDTH * WIDTH];
    char path[160], shown[TEXT] = "", expected[TEXT] = "", whole[TEXT] = "";
    att_batch answers;
    att_geometry geometry;
    make_segmenter(f);
    att_network *network = open_network(f, export(f, path));
    att_preprocess preprocess = att_network_identity(network)->preprocess;
    preprocess.crop_pct = 1;
    snprintf(preprocess.crop_mode, sizeof preprocess.crop_mode, "border");
    CHECK(f->context, att_network_set_preprocess(network, &preprocess));
    for (int i = 0; i < WIDTH * WIDTH; i++)
        pixels[i] = (uint8_t)(i * 7);
    const att_image photographs[] = {{WIDTH, WIDTH, 1, pixels}, {WIDTH, HEIGHT, 1, pixels}};
    const att_transform_options transform = att_network_transform(network);
    CHECK(f->context, att_transform_geometry(f->context, &transform, WIDTH, HEIGHT, &geometry));
    CHECK(f->context, att_network_run_images(network, photographs, 2, &answers));
    const void *second[ATT_MAX_TARGETS];
    for (int i = 0; i < answers.field_count; i++)
        second[i] = (const char *)answers.data[i] +
                    (size_t)att_shape_count(answers.fields[i].shape) * att_dtype_size(answers.fields[i].dtype);
    const att_batch answer = {.count = 1, .field_count = answers.field_count, .fields = answers.fields, .data = second};
    att_answer_options options = {.topk = CLASSES, .geometry = &geometry};
    CHECK(f->context, att_task_describe(f->context, "segment", &answer, &options, keep_line, expected));
    options.geometry = NULL;
    CHECK(f->context, att_task_describe(f->context, "segment", &answer, &options, keep_line, whole));
    CHECK(f->context, att_network_describe(network, &answer, &options, keep_line, shown));
    assert_string_equal(shown, expected);
    assert_string_not_equal(shown, whole);
    att_network_close(&network);
}

FIXTURE_TEST(answers_without_what_is_drawn_are_refused)
{
    static uint8_t pixels[SIDE * SIDE];
    char path[160];
    const att_image photograph = {SIDE, SIDE, 1, pixels};
    att_batch answers;
    att_drawing drawing = {0};
    att_network *network = open_network(f, export(f, path));
    assert_false(att_network_draws(network));
    CHECK(f->context, att_network_run_images(network, &photograph, 1, &answers));
    assert_fails(f->context, att_network_draw(network, &answers, NULL, &photograph, &drawing), ATT_ERR_UNSUPPORTED,
                 "predictions of the task \"classification\" cannot be drawn");
    assert_fails(f->context, att_network_draw(network, &answers, NULL, NULL, &drawing), ATT_ERR_ARGUMENT,
                 "the photograph of a drawing");
    att_network_close(&network);
    make_segmenter(f);
    network = open_network(f, export(f, path));
    CHECK(f->context, att_network_select_outputs(network, "features"));
    CHECK(f->context, att_network_run_images(network, &photograph, 1, &answers));
    assert_fails(f->context, att_network_draw(network, &answers, NULL, &photograph, &drawing), ATT_ERR_MISMATCH,
                 "the selected outputs (features) do not include");
    assert_null(drawing.colours);
    att_network_close(&network);
}

static att_status name_classes(const fixture *f, att_network *network, const char *text)
{
    char path[160];
    FILE *file = fopen(path_to(f, "classes.txt", path), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return att_network_name_classes(network, path);
}

FIXTURE_TEST(names_of_classes_may_have_colours)
{
    static const uint8_t given[CLASSES * 3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 255, 0, 10};
    uint8_t usual[CLASSES * 3];
    char path[160];
    att_class_colours(CLASSES, usual);
    att_network *network = open_network(f, export(f, path));
    assert_memory_equal(att_network_class_colours(network), usual, sizeof usual);
    CHECK(f->context, name_classes(f, network, "a 1 2 3\nb c 4 5 6\nd 7 8 9\ne 255 0 10\n"));
    assert_memory_equal(att_network_class_colours(network), given, sizeof given);
    assert_string_equal(att_network_class_name(network, 1), "b c");
    assert_fails(f->context, name_classes(f, network, "a 1 2 3\nb 4 5 6\nd 7 8 9\ne\n"), ATT_ERR_FORMAT,
                 "line 4 has no colour");
    assert_memory_equal(att_network_class_colours(network), given, sizeof given);
    CHECK(f->context, name_classes(f, network, "a\nb\nd\ne 1\n"));
    assert_memory_equal(att_network_class_colours(network), usual, sizeof usual);
    assert_string_equal(att_network_class_name(network, 3), "e 1");
    att_network_close(&network);
}

FIXTURE_TEST(names_of_a_data_set_bring_its_colours)
{
    att_option_values options = tiny_options();
    att_model *model;
    att_weights *weights;
    att_network *network;
    att_options_set(&options, "num_classes", 11);
    CHECK(f->context, att_model_create(f->context, "vit_tiny_patch16_224", &options, ATT_F32, &model));
    CHECK(f->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    CHECK(f->context, att_network_wrap(model, weights, NULL, &network));
    CHECK(f->context, att_network_name_classes(network, "camvid"));
    assert_memory_equal(att_network_class_colours(network) + 9, ((uint8_t[]){128, 64, 128}), 3);
    att_network_close(&network);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
}

/* Adds an entry to the metadata of a file of weights. */
static void add_metadata(const fixture *f, const char *path, const char *key, const char *value)
{
    enum { MOST = 64 };
    att_tensors *file;
    att_safetensors_tensor tensors[MOST];
    att_safetensors_pair pairs[MOST];
    CHECK(f->context, att_tensors_open(f->context, path, &file));
    const int count = att_tensors_count(file), texts = att_tensors_metadata_count(file);
    assert_true(count < MOST && texts < MOST);
    for (int i = 0; i < count; i++) {
        const att_tensors_info info = att_tensors_at(file, i);
        float *values = malloc((size_t)info.count * sizeof *values);
        CHECK(f->context, att_tensors_read(file, i, ATT_SAFETENSORS_F32, values, info.count));
        tensors[i] = (att_safetensors_tensor){info.name, ATT_SAFETENSORS_F32, info.shape, values};
    }
    for (int i = 0; i < texts; i++) {
        const char *own = att_tensors_metadata_key(file, i);
        pairs[i] = (att_safetensors_pair){own, att_tensors_metadata(file, own)};
    }
    pairs[texts] = (att_safetensors_pair){key, value};
    const att_safetensors_content content = {
        .tensors = tensors, .tensor_count = count, .metadata = pairs, .metadata_count = (size_t)texts + 1};
    CHECK(f->context, att_safetensors_write(f->context, path, &content));
    for (int i = 0; i < count; i++)
        free((void *)tensors[i].data);
    att_tensors_close(&file);
}

/* Colours that are damaged, or those of more or fewer classes, are ignored. */
FIXTURE_TEST(colours_of_a_file_are_taken_if_they_are_whole)
{
    static const uint8_t given[CLASSES * 3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 255, 0, 10};
    static const struct {
        const char *text;
        bool whole;
    } files[] = {{"#010203\n#040506\n#070809\n#ff000a\n", true},
                 {"#010203\n#040506\n#070809\n", false},
                 {"#010203\n#040506\n#070809\n#ff000a\n#000000\n", false},
                 {"#010203\n#040506\n#0708\n#ff000a\n", false},
                 {"", false},
                 {"#010203 #040506 #070809 #ff000a ", false}};
    uint8_t usual[CLASSES * 3];
    char path[160];
    att_class_colours(CLASSES, usual);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        add_metadata(f, export(f, path), "attscope.train.class_colours", files[i].text);
        att_network *network = open_network(f, path);
        assert_memory_equal(att_network_class_colours(network), files[i].whole ? given : usual, sizeof usual);
        att_network_close(&network);
    }
}

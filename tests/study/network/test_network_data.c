/* att_network: names of classes, data sets, missing heads, digests, weights that are not finite. */
#include "study/network/fixture.h"

enum { LINE = 1024 };

FIXTURE_TEST(classes_are_called_as_a_list_says)
{
    char path[160], list[160];
    int count = -1;
    att_network *network = open_network(f, export(f, path));
    assert_null(att_network_class_names(network, &count));
    assert_int_equal(count, 0);
    assert_null(att_network_known_classes(network));
    write_text(path_to(f, "names", list), "\xEF\xBB\xBFone\r\ntwo\nn01440764\nfour\n\n");
    assert_int_equal(att_network_name_classes(network, list), ATT_OK);
    assert_string_equal(att_network_class_name(network, 0), "one");
    assert_string_equal(att_network_class_names(network, &count)[2], "n01440764 tench");
    assert_int_equal(count, CLASSES);

    static const struct {
        const char *from, *part;
        att_status status;
    } refused[] = {{"nosuch", "\"nosuch\" is neither a file nor a data set whose classes are built in (ade20k, camvid",
                    ATT_ERR_ARGUMENT},
                   {"cifar10", "cifar10 names 10 classes, but the network has 4", ATT_ERR_MISMATCH},
                   {"./missing", "./missing could not be opened", ATT_ERR_NOT_FOUND}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_fails(f->context, att_network_name_classes(network, refused[i].from), refused[i].status,
                     refused[i].part);
    }
    write_text(list, "one\ntwo\n");
    assert_int_equal(att_network_name_classes(network, list), ATT_ERR_MISMATCH);
    assert_string_equal(att_network_class_name(network, 3), "four");
    att_network_close(&network);
}

FIXTURE_TEST(classes_are_called_as_config_json_says)
{
    static const struct {
        const char *config, *first, *third; /* names of classes 0 and 2; NULL: none */
    } cases[] = {
        {"{\"label_names\": [\"one\", \"two\", \"n01440764\", \"four\"]}", "one", "n01440764 tench"},
        {"{\"label_names\": {\"0\": \"one\", \"1\": \"two\", \"2\": \"three\", \"3\": \"four\"}}", "one", "three"},
        {"{\"pretrained_cfg\": {\"label_names\": [\"one\", \"two\", \"three\", \"four\"]}}", "one", "three"},
        {"{\"id2label\": {\"3\": \"four\", \"2\": \"three\", \"1\": \"two\", \"0\": \"one\"}}", "one", "three"},
        {"{\"id2label\": {\"0\": \"LABEL_0\", \"1\": \"LABEL_1\", \"2\": \"LABEL_2\", \"3\": \"LABEL_3\"}}", NULL,
         NULL},
        {"{\"label_names\": [\"a\", \"b\", \"c\", \"d\"], \"label_descriptions\": {\"c\": \"a cat\", \"a\": 1}}", "a",
         "a cat"},
        {"{\"label_names\": [\"one\", \"two\", \"three\"]}", NULL, NULL},
        {"{\"label_names\": [\"one\", \"two\", \"three\", \"four\", \"five\"]}", NULL, NULL},
        {"{\"label_names\": [\"one\", \"two\", \"three\", 4]}", NULL, NULL},
        {"{\"label_names\": [\"one\", \"two\", \"three\", \"\"]}", NULL, NULL},
        {"{\"label_names\": [\"one\", \"two\", \"three\", \"4\\n5\"]}", NULL, NULL},
        {"{\"label_names\": [\"one\", \"two\", \"three\", \"\\u001b[31m\"]}", NULL, NULL},
        {"{\"label_names\": {\"0\": \"one\", \"1\": \"two\", \"2\": \"three\", \"4\": \"four\"}}", NULL, NULL},
        {"{\"label_names\": \"one\", \"label_descriptions\": []}", NULL, NULL},
        {"{\"architecture\": \"resnet18\", \"label_names\": [\"one\", \"two\", \"three\", \"four\"]}", NULL, NULL},
    };
    char path[160], config[160];
    export(f, path);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(path_to(f, "config.json", config), cases[i].config);
        att_network *network = NULL;
        const att_network_options options = {.model = att_model_name(f->model), .backend = "cpu"};
        if (att_network_open(f->context, path, &options, &network) != ATT_OK)
            fail_msg("%s: %s", cases[i].config, att_context_message(f->context));
        const char *first = att_network_class_name(network, 0), *third = att_network_class_name(network, 2);
        if (!cases[i].first
                ? first || third
                : !first || !third || strcmp(first, cases[i].first) != 0 || strcmp(third, cases[i].third) != 0)
            fail_msg("%s: \"%s\", \"%s\"", cases[i].config, first ? first : "none", third ? third : "none");
        assert_null(att_network_known_classes(network));
        att_network_close(&network);
    }
    unlink(config);
}

static void keep_warning(void *user, att_log_level level, const char *line)
{
    if (level == ATT_LOG_WARNING)
        snprintf(user, LINE, "%s", line);
}

#define FOUR(third, fourth) "{\"id2label\": {\"0\": \"a\", \"1\": \"b\", " third ", " fourth "}}"
#define UNNAMED(number, problem)             \
    "config.json: class " number " " problem \
    "; the classes must have the numbers 0 to 3 and a line of text each, so these names are not used"

FIXTURE_TEST(names_that_do_not_fit_are_not_left_out_silently)
{
    static const struct {
        const char *config, *warning; /* warning: "": there is none */
    } cases[] = {{"{\"id2label\": {\"0\": \"one\", \"1\": \"two\", \"2\": \"three\"}}",
                  "config.json: names 3 classes, but the network's classifier has 4; these names are not used"},
                 {FOUR("\"2\": \"c\"", "\"3\": \"d\""), ""},
                 {FOUR("\"2\": \"c\"", "\"4\": \"d\""), UNNAMED("3", "has no name")},
                 {FOUR("\"c\": \"c\"", "\"d\": \"d\""), UNNAMED("2", "has no name")},
                 {FOUR("\"2\": 7", "\"3\": \"d\""), UNNAMED("2", "has a name that is no line of text")},
                 {FOUR("\"2\": \"c\\nc\"", "\"3\": \"d\""), UNNAMED("2", "has a name that is no line of text")},
                 {FOUR("\"2\": \"c\", \"2\": \"e\"", "\"3\": \"d\""),
                  "duplicate object key near '\"2\"'; names of classes in this file are not used"},
                 {FOUR("\"2\": \"LABEL_2\"", "\"3\": \"d\""), ""},
                 {"{\"architecture\": \"resnet18\", \"label_names\": [\"one\", \"two\", \"three\"]}", ""},
                 {"{}", ""}};
    char path[160], config[160];
    export(f, path);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char said[LINE] = "";
        att_settings settings = att_settings_defaults();
        const att_network_options options = {.model = att_model_name(f->model), .backend = "cpu"};
        att_context *context;
        att_network *network = NULL;
        settings.log = keep_warning;
        settings.log_user = said;
        write_text(path_to(f, "config.json", config), cases[i].config);
        assert_int_equal(att_context_create(&settings, &context), ATT_OK);
        CHECK(context, att_network_open(context, path, &options, &network));
        if (!strstr(said, cases[i].warning) || !*said != !*cases[i].warning)
            fail_msg("%s: \"%s\"", cases[i].config, said);
        att_network_close(&network);
        att_context_destroy(&context);
    }
    unlink(config);
}

FIXTURE_TEST(a_data_set_is_opened_for_a_network)
{
    char path[160];
    const char *const data = f->folder;
    const char *const twice[] = {f->folder, f->folder};
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    att_network *network = open_network(f, export(f, path));
    options.split = "val";
    assert_int_equal(att_network_open_dataset(network, &data, 1, &options, &dataset), ATT_OK);
    assert_int_equal(att_dataset_count(dataset), EVAL_IMAGES);
    assert_int_equal(att_network_compare_classes(network, dataset, true), ATT_OK);
    assert_int_equal(att_network_need_head(network, "unused"), ATT_OK);
    att_dataset_close(&dataset);
    options.class_map = "map";
    assert_fails(f->context, att_network_open_dataset(network, twice, 2, &options, &dataset), ATT_ERR_ARGUMENT,
                 "class_map needs a single data set");
    assert_null(dataset);
    att_network_close(&network);
}

/* With a class map, images without classes are an error, also if they are accepted otherwise. */
FIXTURE_TEST(a_class_map_needs_classes)
{
    char path[160], folder[160], map[160], picture[200];
    att_dataset *dataset = NULL;
    att_network *network = open_network(f, export(f, path));
    assert_int_equal(mkdir(path_to(f, "flat", folder), 0777), 0);
    snprintf(picture, sizeof picture, "%s/one.png", folder);
    write_picture(picture);
    write_text(path_to(f, "map", map), "one\ntwo\nthree\nfour\n");
    att_dataset_options options = att_dataset_options_defaults();
    const char *const data = folder;
    options.unlabelled = true;
    assert_int_equal(att_network_open_dataset(network, &data, 1, &options, &dataset), ATT_OK);
    assert_int_equal(att_dataset_count(dataset), 1);
    att_dataset_close(&dataset);
    options.class_map = map;
    assert_int_equal(att_network_open_dataset(network, &data, 1, &options, &dataset), ATT_ERR_FORMAT);
    assert_null(dataset);
    att_network_close(&network);
}

/* Class folders are numbered by the names of the training, unless the caller gives others. */
FIXTURE_TEST(class_folders_are_numbered_by_the_training)
{
    static const char *const folders[] = {"z", "x"};
    char list[160], trained[160], folder[160], path[240];
    att_dataset_options named = att_dataset_options_defaults();
    att_dataset *train = NULL;
    write_text(path_to(f, "names", list), "w\nx\ny\nz\n");
    named.class_map = list;
    assert_int_equal(att_dataset_open(f->context, f->folder, &named, &train), ATT_OK);
    att_train_data data = f->data;
    data.train = train;
    att_train_options training = small_training();
    training.epochs = 1;
    training.output = path_to(f, "trained", trained);
    CHECK(f->context, att_train(f->model, f->weights, &data, &training, NULL));
    att_dataset_close(&train);
    assert_int_equal(mkdir(path_to(f, "folders", folder), 0777), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, folders[i]);
        assert_int_equal(mkdir(path, 0777), 0);
        snprintf(path, sizeof path, "%s/%s/one.png", folder, folders[i]);
        write_picture(path);
    }
    att_network *network = open_network(f, trained);
    const char *const images = folder;
    for (int given = 0; given < 2; given++) {
        att_dataset *dataset = NULL;
        att_dataset_options options = att_dataset_options_defaults();
        options.trained = given ? folders : NULL;
        options.trained_count = given ? 2 : 0;
        CHECK(f->context, att_network_open_dataset(network, &images, 1, &options, &dataset));
        assert_string_equal(att_dataset_class_name(dataset, given ? 0 : 3), "z");
        assert_string_equal(att_dataset_class_name(dataset, 1), "x");
        att_dataset_close(&dataset);
    }
    att_network_close(&network);
}

FIXTURE_TEST(a_missing_head_is_reported)
{
    att_network_options options = att_network_options_defaults();
    att_option_values values = tiny_options();
    att_network *network = NULL;
    att_options_set(&values, "num_classes", 0);
    options.options = &values;
    assert_int_equal(att_network_open(f->context, "vit_tiny_patch16_224", &options, &network), ATT_OK);
    assert_fails(f->context, att_network_need_head(network, "it cannot be evaluated"), ATT_ERR_UNSUPPORTED,
                 "vit_tiny_patch16_224: the network has no head: it cannot be evaluated");
    att_network_close(&network);
}

FIXTURE_TEST(weights_have_a_digest)
{
    char one[ATT_WEIGHTS_DIGEST], other[ATT_WEIGHTS_DIGEST];
    float bias[CLASSES];
    const int index = att_weights_find(f->weights, "head.bias");
    assert_int_equal(att_weights_digest(f->weights, one), ATT_OK);
    assert_int_equal(att_weights_get(f->weights, -1, index, bias, CLASSES), ATT_OK);
    bias[CLASSES - 1] += 1;
    assert_int_equal(att_weights_set(f->weights, -1, index, bias, CLASSES), ATT_OK);
    assert_int_equal(att_weights_digest(f->weights, other), ATT_OK);
    assert_string_not_equal(one, other);
    bias[CLASSES - 1] -= 1;
    assert_int_equal(att_weights_set(f->weights, -1, index, bias, CLASSES), ATT_OK);
    assert_int_equal(att_weights_digest(f->weights, other), ATT_OK);
    assert_string_equal(one, other);
}

FIXTURE_TEST(non_finite_weights_are_reported)
{
    const float bias[CLASSES] = {NAN};
    const int index = att_weights_find(f->weights, "head.bias");
    assert_int_equal(att_weights_set(f->weights, -1, index, bias, CLASSES), ATT_OK);
    att_network *network = NULL;
    att_evaluation found = {0};
    assert_int_equal(att_network_wrap(f->model, f->weights, NULL, &network), ATT_OK);
    assert_fails(f->context, att_network_evaluate(network, f->eval, NULL, &found), ATT_ERR_NONFINITE,
                 "the weights are damaged: tensor head.bias has 1 of ");
    assert_int_equal(found.not_finite, EVAL_IMAGES);
    const att_preprocess look = att_model_preprocess(f->model);
    float *pixels = calloc((size_t)look.height * (size_t)look.width * (size_t)look.in_chans, sizeof *pixels);
    att_batch answers;
    assert_fails(f->context, run_pixels(network, pixels, 1, look.height, look.width, &answers), ATT_ERR_NONFINITE,
                 "the weights are damaged: tensor head.bias has 1 of 4 values that are not finite");
    const float finite[CLASSES] = {0};
    assert_int_equal(att_weights_set(f->weights, -1, index, finite, CLASSES), ATT_OK);
    for (int64_t i = 0; i < (int64_t)look.height * look.width * look.in_chans; i++)
        pixels[i] = INFINITY;
    assert_fails(f->context, run_pixels(network, pixels, 1, look.height, look.width, &answers), ATT_ERR_NONFINITE,
                 "sample 0 of the input \"image\" contains NaN or infinity");
    free(pixels);
    att_network_close(&network);
}

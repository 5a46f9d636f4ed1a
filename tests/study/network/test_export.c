/* Folders of a network for timm and the transformers library: files, class names, failures. */
#include <ctype.h>

#include "base/core/names.h"
#include "base/io/json.h"
#include "study/network/fixture.h"
#include "study/train/checkpoint.h"

static json_t *read_config(const fixture *f, const char *name)
{
    size_t size;
    char *text = read_all(f, name, &size);
    json_t *config = json_loadb(text, size, 0, NULL);
    free(text);
    assert_non_null(config);
    return config;
}

static att_network *wrap(const fixture *f)
{
    att_network *network;
    CHECK(f->context, att_network_wrap(f->model, f->weights, NULL, &network));
    return network;
}

static void export_to(const fixture *f, const att_network *network, const char *name)
{
    char folder[160];
    CHECK(f->context, att_network_export(network, path_to(f, name, folder)));
}

FIXTURE_TEST(an_exported_network_opens_with_the_same_bits_and_settings)
{
    char folder[160], digest[2][ATT_WEIGHTS_DIGEST];
    att_network *network = wrap(f);
    export_to(f, network, "some/folder");
    export_to(f, network, "some/folder"); /* replaces the files */
    att_network *opened = open_network(f, path_to(f, "some/folder", folder));
    const att_identity *a = att_network_identity(network), *b = att_network_identity(opened);
    assert_string_equal(a->name, b->name);
    for (int i = 0; i < b->options.count; i++)
        if (strcmp(b->options.items[i].key, "file_grid") != 0)
            assert_memory_equal(att_options_find(&a->options, b->options.items[i].key), &b->options.items[i],
                                sizeof b->options.items[i]);
    assert_memory_equal(&a->preprocess, &b->preprocess, sizeof a->preprocess);
    CHECK(f->context, att_weights_digest(att_network_weights(network), digest[0]));
    CHECK(f->context, att_weights_digest(att_network_weights(opened), digest[1]));
    assert_string_equal(digest[0], digest[1]);
    for (int i = 0; i < att_tensors_count(att_network_file(opened)); i++)
        assert_null(strstr(att_tensors_at(att_network_file(opened), i).name, "optimizer"));
    att_network_close(&opened);
    att_network_close(&network);
}

/* --- class names -------------------------------------------------------------------------------------------------- */

static void assert_member(const json_t *config, const char *key, const char *expected)
{
    char *text = json_dumps(json_object_get(config, key), JSON_COMPACT | JSON_ENCODE_ANY);
    if (!expected != !text || (text && strcmp(text, expected) != 0))
        fail_msg("%s is %s instead of %s", key, text ? text : "missing", expected ? expected : "missing");
    free(text);
}

FIXTURE_TEST(class_names_are_those_of_the_training)
{
    static const struct {
        const char *config, *names, *descriptions, *trained;
    } cases[] = {
        {"{}", NULL, NULL, NULL},
        {"{\"label_names\": [\"a\", \"b\", \"c\", \"d\"]}", "[\"a\",\"b\",\"c\",\"d\"]", NULL, "a\nb\nc\nd\n"},
        {"{\"label_names\": [\"a\", \"a b\", \"n01440764\", \"d\"], \"label_descriptions\": {\"d\": \"dog\"}}",
         "[\"a\",\"a b\",\"n01440764\",\"d\"]", "{\"n01440764\":\"tench\",\"d\":\"dog\"}", "a\na b\nn01440764\nd\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[160];
        const char *weights = export(f, path);
        char beside[160];
        write_text(path_to(f, "config.json", beside), cases[i].config);
        att_network *network = open_network(f, weights);
        export_to(f, network, "folder");
        json_t *config = read_config(f, "folder/config.json");
        assert_member(config, "label_names", cases[i].names);
        assert_member(config, "label_descriptions", cases[i].descriptions);
        json_decref(config);
        att_network_close(&network);
        network = open_network(f, path_to(f, "folder", path));
        if (cases[i].trained)
            assert_string_equal(att_network_trained_names(network), cases[i].trained);
        else
            assert_null(att_network_trained_names(network));
        att_network_close(&network);
    }
}

/* Opens the fixture's network with another number of classes, as those of a data set (NULL: unknown). */
static att_network *open_known(const fixture *f, int classes, const char *name)
{
    char path[160];
    att_option_values options = tiny_options();
    att_options_set(&options, "num_classes", classes);
    att_model *model;
    att_weights *weights;
    CHECK(f->context, att_model_create(f->context, "vit_tiny_patch16_224", &options, ATT_F32, &model));
    CHECK(f->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    CHECK(f->context, att_weights_initialise(weights, 1));
    CHECK(f->context,
          att_checkpoint_export_named(model, weights, NULL, name, false, NULL, path_to(f, "known.safetensors", path)));
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    return open_network(f, path);
}

/* Other programs know those of ImageNet's orders. */
FIXTURE_TEST(names_of_known_classes_are_written_unless_they_are_imagenets)
{
    static const struct {
        const char *known;
        int classes;
        bool written;
    } cases[] = {{"cifar10", 10, true}, {"imagenet-1k", 1000, false}, {NULL, 1000, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[160];
        att_network *network = open_known(f, cases[i].classes, cases[i].known);
        export_to(f, network, "folder");
        json_t *config = read_config(f, "folder/config.json");
        const json_t *names = json_object_get(config, "label_names");
        assert_int_equal(json_array_size(names), cases[i].written ? cases[i].classes : 0);
        if (cases[i].written)
            assert_string_equal(json_string_value(json_array_get(names, 0)), "airplane");
        json_decref(config);
        att_network_close(&network);
        network = open_network(f, path_to(f, "folder", path));
        const char *known = att_network_known_classes(network);
        assert_string_equal(known ? known : "none", cases[i].known ? cases[i].known : "none");
        att_network_close(&network);
    }
}

/* The names of ImageNet's classes as transformers writes them: several synonyms, some of them those of two classes. */
FIXTURE_TEST(names_like_those_of_known_classes_are_these)
{
    enum { CLASSES_OF_IMAGENET = 1000 };
    const att_known_classes *imagenet = att_known_classes_find("imagenet-1k");
    static const int others[] = {0, 240, 260}; /* names that differ; more than a quarter are another data set's */
    for (size_t i = 0; i < 3; i++) {
        char path[160], folder[160], name[256], number[8];
        att_network *network = open_known(f, CLASSES_OF_IMAGENET, NULL);
        export_to(f, network, "folder");
        att_network_close(&network);
        json_t *config = read_config(f, "folder/config.json"), *names = json_object();
        for (int c = 0; c < CLASSES_OF_IMAGENET; c++) {
            snprintf(name, sizeof name, "%s%s", c < others[i] ? "other " : "", att_known_classes_label(imagenet, c));
            name[0] = (char)toupper((unsigned char)name[0]);
            strcat(name, c % 2 ? ", Synonyma" : ": what it is");
            snprintf(number, sizeof number, "%d", c);
            json_object_set_new(names, number, json_string(name));
        }
        json_object_set_new(config, "id2label", names);
        assert_int_equal(json_dump_file(config, path_to(f, "folder/config.json", path), 0), 0);
        json_decref(config);
        network = open_network(f, path_to(f, "folder", folder));
        const char *known = att_network_known_classes(network);
        assert_string_equal(known ? known : "none", others[i] <= 250 ? "imagenet-1k" : "none");
        att_network_close(&network);
    }
}

/* attscope does not read a config.json of more than 1 MiB. */
FIXTURE_TEST(very_many_names_are_left_out_of_config_json)
{
    enum { MANY = 20000 };
    char path[160], *lines = malloc(MANY * 32), *at = lines;
    att_option_values options = tiny_options();
    att_options_set(&options, "num_classes", MANY);
    att_model *model;
    att_weights *weights;
    for (int c = 0; c < MANY; c++)
        at += sprintf(at, "a class with the number %d\n", c);
    CHECK(f->context, att_model_create(f->context, "vit_tiny_patch16_224", &options, ATT_F32, &model));
    CHECK(f->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    CHECK(f->context, att_weights_initialise(weights, 1));
    CHECK(f->context,
          att_checkpoint_export_named(model, weights, lines, NULL, false, NULL, path_to(f, "many.safetensors", path)));
    att_network *network = open_network(f, path);
    export_to(f, network, "folder");
    json_t *config = read_config(f, "folder/config.json");
    assert_null(json_object_get(config, "label_names"));
    json_decref(config);
    att_network_close(&network);
    network = open_network(f, path_to(f, "folder", path));
    assert_string_equal(att_network_trained_names(network), lines);
    att_network_close(&network);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    free(lines);
}

/* --- failures ----------------------------------------------------------------------------------------------------- */

FIXTURE_TEST(a_network_that_timm_lacks_leaves_the_folder_unchanged)
{
    char folder[160];
    att_option_values options = tiny_options();
    att_options_set_text(&options, "modules", "cb_s");
    att_network_options how = att_network_options_defaults();
    how.options = &options;
    att_network *network;
    CHECK(f->context, att_network_open(f->context, "vit_tiny_patch16_224", &how, &network));
    assert_fails(f->context, att_network_export(network, path_to(f, "folder", folder)), ATT_ERR_UNSUPPORTED,
                 "timm cannot build this network: modules is cb_s");
    assert_false(exists(f, "folder"));
    att_network_close(&network);
}

static void assert_old(const fixture *f, const char *name)
{
    size_t size;
    char *text = read_all(f, name, &size);
    assert_int_equal(size, 3);
    assert_memory_equal(text, "old", 3);
    free(text);
}

FIXTURE_TEST(a_failed_export_leaves_the_folder_unchanged)
{
    char folder[160], weights[160], config[160];
    att_network *network = wrap(f);
    export_to(f, network, "folder");
    write_text(path_to(f, "folder/config.json", config), "old");
    assert_int_equal(unlink(path_to(f, "folder/model.safetensors", weights)), 0);
    assert_int_equal(mkdir(weights, 0777), 0);
    assert_fails(f->context, att_network_export(network, path_to(f, "folder", folder)), ATT_ERR_IO,
                 "folder/model.safetensors");
    assert_old(f, "folder/config.json");
    assert_int_equal(rmdir(weights), 0);
    write_text(weights, "old");
    assert_int_equal(unlink(config), 0);
    assert_int_equal(mkdir(config, 0777), 0);
    assert_fails(f->context, att_network_export(network, folder), ATT_ERR_IO, "folder/config.json");
    assert_old(f, "folder/model.safetensors");
    write_text(path_to(f, "file", folder), "");
    assert_fails(f->context, att_network_export(network, folder), ATT_ERR_IO, "file");
    assert_int_equal(att_network_export(network, NULL), ATT_ERR_ARGUMENT);
    assert_int_equal(rmdir(config), 0);
    att_network_close(&network);
}

FIXTURE_TEST(exports_survive_failing_allocations)
{
    char path[160], folder[160];
    const char *weights = export(f, path);
    write_text(path_to(f, "config.json", folder),
               "{\"label_names\": [\"a\", \"b\", \"n01440764\", \"d\"], \"label_descriptions\": {\"d\": \"dog\"}}");
    att_network *network = open_network(f, weights);
    path_to(f, "folder", folder);
    lack of = lack_of_memory(f->context, &f->memory);
    while (lack_again(&of))
        of.status = att_network_export(network, folder);
    assert_true(exists(f, "folder/config.json"));
    att_network_close(&network);
}

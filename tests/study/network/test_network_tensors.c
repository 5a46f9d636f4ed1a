/* Networks whose weights are in memory. */
#include <limits.h>

#include "study/network/fixture.h"

enum { MOST_TENSORS = 64 };

/* A state_dict: a copy of the fixture's weights, as its owner keeps them. */
typedef struct state_dict {
    int count;
    att_safetensors_tensor tensors[MOST_TENSORS];
    char names[MOST_TENSORS][96];
    void *data[MOST_TENSORS];
} state_dict;

/* Copies the fixture's weights, converted to f64 if `wide`; `prefix` stands before each name. */
static void copy_weights(const fixture *f, const char *prefix, bool wide, state_dict *dict)
{
    *dict = (state_dict){.count = att_weights_count(f->weights)};
    assert_true(dict->count <= MOST_TENSORS);
    for (int i = 0; i < dict->count; i++) {
        const att_parameter_info parameter = att_weights_at(f->weights, i);
        const int64_t count = att_shape_count(parameter.shape);
        float *values = calloc((size_t)count, sizeof *values);
        assert_non_null(values);
        assert_int_equal(att_weights_get(f->weights, -1, i, values, count), ATT_OK);
        dict->data[i] = values;
        if (wide) {
            double *converted = calloc((size_t)count, sizeof *converted);
            assert_non_null(converted);
            for (int64_t k = 0; k < count; k++)
                converted[k] = (double)values[k];
            free(values);
            dict->data[i] = converted;
        }
        snprintf(dict->names[i], sizeof dict->names[i], "%s%s", prefix, parameter.name);
        dict->tensors[i] = (att_safetensors_tensor){.name = dict->names[i],
                                                    .dtype = wide ? ATT_SAFETENSORS_F64 : ATT_SAFETENSORS_F32,
                                                    .shape = parameter.shape,
                                                    .data = dict->data[i]};
    }
}

/* Overwrites everything that was lent, and frees it. */
static void take_back(const fixture *f, state_dict *dict)
{
    for (int i = 0; i < dict->count; i++) {
        const size_t elements = (size_t)att_shape_count(att_weights_at(f->weights, i).shape);
        memset(dict->data[i], 0x55, elements * sizeof(float));
        free(dict->data[i]);
    }
    memset(dict, 0x55, sizeof *dict);
}

static const att_option_values *options_of(att_option_values *options)
{
    *options = tiny_options();
    return options;
}

static void expect_answers_of_the_file(const fixture *f, att_network *network)
{
    char path[160];
    float pixels[2 * SIDE * SIDE], wanted[2 * CLASSES];
    att_batch answers;
    for (int i = 0; i < 2 * SIDE * SIDE; i++)
        pixels[i] = (float)(i * 37 % 101) / 101 - 0.5F;
    att_network *file = open_network(f, export(f, path));
    assert_int_equal(run_pixels(file, pixels, 2, SIDE, SIDE, &answers), ATT_OK);
    memcpy(wanted, att_batch_field(&answers, "logits"), sizeof wanted);
    assert_int_equal(run_pixels(network, pixels, 2, SIDE, SIDE, &answers), ATT_OK);
    assert_memory_equal(att_batch_field(&answers, "logits"), wanted, sizeof wanted);
    assert_int_equal(run_pixels(network, pixels, 1, 2 * SIDE, SIDE, &answers), ATT_OK);
    att_network_close(&file);
}

FIXTURE_TEST(weights_in_memory_are_copied)
{
    static const struct {
        const char *prefix;
        bool wide;
    } cases[] = {{"", false}, {"module.", true}};
    for (int c = 0; c < 2; c++) {
        state_dict dict;
        att_option_values asked;
        att_network *network = NULL;
        att_network_options options = att_network_options_defaults();
        options.model = "vit_tiny_patch16_224";
        options.options = options_of(&asked);
        copy_weights(f, cases[c].prefix, cases[c].wide, &dict);
        CHECK(f->context, att_network_open_tensors(f->context, dict.tensors, dict.count, &options, &network));
        take_back(f, &dict);
        memset(&asked, 0x55, sizeof asked);
        expect_answers_of_the_file(f, network);
        /* another plan, which packs the weights again */
        CHECK(f->context, att_network_select_outputs(network, "features,logits"));
        expect_answers_of_the_file(f, network);

        const att_tensors *file = att_network_file(network);
        float value[16];
        assert_null(att_network_path(network));
        assert_int_equal(att_tensors_count(file), att_weights_count(f->weights));
        const int bias = att_tensors_find(file, "norm.bias");
        assert_int_equal(att_tensors_at(file, bias).count, 16);
        assert_fails(f->context, att_tensors_read_f32(file, bias, value, 16), ATT_ERR_ARGUMENT,
                     "norm.bias were in memory that is no longer borrowed");
        att_network_close(&network);
    }
}

/* Files of the current folder describe other weights. */
FIXTURE_TEST(side_files_are_not_read)
{
    char path[160], before[PATH_MAX];
    state_dict dict;
    att_option_values asked;
    att_network *network = NULL;
    att_network_options options = {.model = "vit_tiny_patch16_224", .options = options_of(&asked)};
    FILE *file = fopen(path_to(f, "config.json", path), "w");
    assert_non_null(file);
    fputs("{\"architecture\": \"resnet18\", \"num_classes\": 7}", file);
    assert_int_equal(fclose(file), 0);
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(f->folder), 0);
    copy_weights(f, "", false, &dict);
    att_options_unset(&asked, "num_classes");
    att_status status = att_network_open_tensors(f->context, dict.tensors, dict.count, &options, &network);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(status, ATT_OK);
    assert_string_equal(att_network_identity(network)->name, "vit_tiny_patch16_224");
    assert_null(strstr(att_network_identity(network)->origin, "config.json"));
    take_back(f, &dict);
    att_network_close(&network);
}

FIXTURE_TEST(wrong_tensors_are_refused)
{
    static const struct {
        att_status status;
        const char *part;
    } wanted[] = {{ATT_ERR_ARGUMENT, "the tensors in memory: tensor number 1 has no name"},
                  {ATT_ERR_ARGUMENT, "the tensors in memory: tensor number 1 has no name"},
                  {ATT_ERR_ARGUMENT, "the tensors in memory: pos_embed has no data"},
                  {ATT_ERR_ARGUMENT, "the tensors in memory: pos_embed has the unknown type 99"},
                  {ATT_ERR_ARGUMENT, "the shape of pos_embed is of rank 6, which no tensor can have"},
                  {ATT_ERR_ARGUMENT, "the shape of pos_embed is [1, -5, 16], which no tensor can have"},
                  {ATT_ERR_FORMAT, "the tensors in memory: two tensors are called cls_token"},
                  {ATT_ERR_MISMATCH, "the tensors in memory"},
                  {ATT_ERR_ARGUMENT, "a network of 0 tensors"},
                  {ATT_ERR_ARGUMENT, "the tensors of a network"},
                  {ATT_ERR_NOT_FOUND, "the tensors in memory"},
                  {ATT_ERR_NOT_FOUND, "holds no averaged weights"}};
    enum { CASES = sizeof wanted / sizeof *wanted };
    const size_t before = att_context_allocations(f->context).bytes_now;
    for (int c = 0; c < CASES; c++) {
        state_dict dict;
        att_option_values asked;
        att_network *network = NULL;
        att_network_options options = {.model = "vit_tiny_patch16_224", .options = options_of(&asked)};
        copy_weights(f, "", false, &dict);
        assert_string_equal(dict.names[0], "cls_token");
        assert_string_equal(dict.names[1], "pos_embed");
        att_safetensors_tensor *second = &dict.tensors[1];
        second->name = c == 0 ? NULL : c == 1 ? "" : c == 6 ? "cls_token" : second->name;
        second->data = c == 2 ? NULL : second->data;
        second->dtype = c == 3 ? (att_safetensors_dtype)99 : c == 7 ? ATT_SAFETENSORS_I64 : second->dtype;
        second->shape.rank = c == 4 ? 6 : second->shape.rank;
        second->shape.dims[1] = c == 5 ? -5 : second->shape.dims[1];
        options.model = c == 10 ? NULL : options.model;
        options.averaged = c == 11;
        att_status status = att_network_open_tensors(f->context, c == 9 ? NULL : dict.tensors, c == 8 ? 0 : dict.count,
                                                     &options, &network);
        if (status != wanted[c].status)
            fail_msg("case %d: %s: %s", c, att_status_name(status), att_context_message(f->context));
        assert_message_has(f, wanted[c].part);
        assert_null(network);
        take_back(f, &dict);
    }
    assert_int_equal(att_context_allocations(f->context).bytes_now, before);
}

FIXTURE_TEST(failed_allocations_leave_nothing_behind)
{
    state_dict dict;
    att_option_values asked;
    att_network_options options = {.model = "vit_tiny_patch16_224", .options = options_of(&asked)};
    copy_weights(f, "", false, &dict);
    lack of = lack_of_memory(f->context, &f->memory);
    while (lack_again(&of)) {
        att_network *network = NULL;
        of.status = att_network_open_tensors(f->context, dict.tensors, dict.count, &options, &network);
        assert_true(of.status == ATT_OK || !network);
        att_network_close(&network);
    }
    take_back(f, &dict);
}

/* Networks whose convolutions are attention (attscope/convert.h): outputs, files, refusals, gradients, figures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <attscope/attscope.h>
#include <attscope/convert.h>

#include "models/fixture.h"
#include "models/loss.h"
#include "sanitized.h"

enum { IMAGES = 1, SEED = 3 };

static att_context *context;

static int setup(void **state)
{
    (void)state;
    return att_context_create(NULL, &context) != ATT_OK;
}

static int teardown(void **state)
{
    (void)state;
    att_context_destroy(&context);
    return 0;
}

typedef struct network {
    att_model *model;
    att_weights *weights;
} network;

static network open_random(const char *name, int side, const char *modules)
{
    network n = {0};
    att_option_values options = att_options_none();
    att_options_set_sides(&options, "img_size", side, side);
    if (modules)
        att_options_set_text(&options, "modules", modules);
    if (strstr(name, "res"))
        att_options_set(&options, "zero_init_last", 0); /* so that all branches count */
    CHECK(context, att_model_create(context, name, &options, ATT_F32, &n.model));
    CHECK(context, att_weights_create(att_model_graph(n.model), "cpu", &n.weights));
    CHECK(context, att_weights_initialise(n.weights, SEED));
    return n;
}

static void close_network(network *n)
{
    att_weights_destroy(&n->weights);
    att_model_destroy(&n->model);
}

static att_attention_conversion convert(const network *n, const char *layers)
{
    att_attention_conversion made = {0};
    CHECK(context, att_model_to_attention(n->model, n->weights, layers, 0, &made));
    assert_true(made.alpha == ATT_ATTENTION_ALPHA && made.leak < 1e-8);
    return made;
}

static const char *layers_of(const att_model *model)
{
    return att_options_text(att_model_options(model), "attention_layers");
}

/* --- outputs ------------------------------------------------------------------------------------------------------ */

static void converted_networks_have_the_same_outputs(void **state)
{
    (void)state;
    static const struct {
        const char *name, *layers;
        int side, converted, heads;
    } cases[] = {
        {"resnet20", "all", 32, 19, 171},
        {"resnet50", "conv1", 32, 1, 49}, /* 7 x 7, stride 2, padding 3 */
        {"resnext50_32x4d", "layer1.*.conv2,layer2.0.*", 32, 7, 39},
        {"resnet26d", "all", 32, 31, 119},
        {"preresnet29", "all", 32, 31, 111},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (is_sanitized() && i > 0)
            continue;
        double error;
        network n = open_random(cases[i].name, cases[i].side, NULL);
        att_attention_conversion made = convert(&n, cases[i].layers);
        assert_string_equal(layers_of(made.model), cases[i].layers);
        CHECK(context, att_models_compare(n.model, n.weights, made.model, made.weights, IMAGES, SEED, &error));
        print_message("%s, %s: %d layers, %d heads, error %.2g\n", cases[i].name, cases[i].layers, made.layers,
                      made.heads, error);
        assert_int_equal(made.layers, cases[i].converted);
        assert_true(made.heads == cases[i].heads);
        if (!(error > 0 && error <= ATT_CONVERSION_ERROR)) /* 2e-6 */
            fail_msg("%s, %s: the outputs differ by %g of the largest", cases[i].name, cases[i].layers, error);
        att_attention_conversion_free(&made);
        close_network(&n);
    }
}

/* A later conversion leaves layers of attention as they are. */
static void conversions_add_up(void **state)
{
    (void)state;
    double error;
    network n = open_random("resnet20", 16, "se");
    att_attention_conversion stem = convert(&n, "conv1, layer1.0.conv?");
    assert_int_equal(stem.layers, 3);
    network of_stem = {stem.model, stem.weights};
    att_attention_conversion all = convert(&of_stem, "all");
    assert_int_equal(all.layers, 16);
    CHECK(context, att_models_compare(n.model, n.weights, all.model, all.weights, IMAGES, SEED, &error));
    assert_true(error <= ATT_CONVERSION_ERROR);
    att_attention_conversion_free(&all);
    att_attention_conversion_free(&stem);
    close_network(&n);
}

static void alpha_and_preprocessing_are_those_that_were_asked_for(void **state)
{
    (void)state;
    static const char *const names[] = {"conv1.row_sharpness", "conv1.column_sharpness"};
    network n = open_random("resnet20", 16, NULL);
    att_preprocess images = att_model_preprocess(n.model);
    images.mean[0] = 0.125;
    images.std[2] = 0.75;
    att_model_set_preprocess(n.model, &images);
    att_attention_conversion made = {0};
    CHECK(context, att_model_to_attention(n.model, n.weights, "conv1", 32, &made));
    assert_true(made.alpha == 32);
    for (int i = 0; i < 2; i++) {
        float sharpness[3];
        int index = att_weights_find(made.weights, names[i]);
        assert_true(index >= 0);
        CHECK(context, att_weights_get(made.weights, -1, index, sharpness, 3));
        for (int k = 0; k < 3; k++)
            assert_true(sharpness[k] == 8); /* alpha = sharpness^2 / 2 */
    }
    images = att_model_preprocess(made.model);
    assert_true(images.mean[0] == 0.125 && images.std[2] == 0.75);
    att_attention_conversion_free(&made);
    close_network(&n);
}

static void a_comparison_notices_another_weight(void **state)
{
    (void)state;
    double error;
    float center[3] = {-1, 1, 1};
    network n = open_random("resnet20", 16, NULL);
    att_attention_conversion made = convert(&n, "layer2.1.conv1");
    int index = att_weights_find(made.weights, "layer2.1.conv1.row_centers");
    assert_true(index >= 0);
    CHECK(context, att_weights_set(made.weights, -1, index, center, 3));
    CHECK(context, att_models_compare(n.model, n.weights, made.model, made.weights, IMAGES, SEED, &error));
    assert_true(error > 1e-3);
    network other = open_random("resnet20", 32, NULL);
    assert_int_equal(att_models_compare(n.model, n.weights, other.model, other.weights, 1, SEED, &error),
                     ATT_ERR_MISMATCH);
    assert_int_equal(att_models_compare(n.model, n.weights, n.model, n.weights, 0, SEED, &error), ATT_ERR_ARGUMENT);
    close_network(&other);
    att_attention_conversion_free(&made);
    close_network(&n);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* Writes the same tensors without metadata. */
static void strip(const char *from, const char *to)
{
    att_tensors *file = NULL;
    CHECK(context, att_tensors_open(context, from, &file));
    int count = att_tensors_count(file);
    att_safetensors_tensor *tensors = calloc((size_t)count, sizeof *tensors);
    assert_non_null(tensors);
    for (int i = 0; i < count; i++) {
        att_tensors_info info = att_tensors_at(file, i);
        float *values = calloc((size_t)info.count, sizeof *values);
        assert_non_null(values);
        CHECK(context, att_tensors_read(file, i, ATT_SAFETENSORS_F32, values, info.count));
        tensors[i] = (att_safetensors_tensor){info.name, ATT_SAFETENSORS_F32, info.shape, values};
    }
    const att_safetensors_content content = {.tensors = tensors, .tensor_count = count};
    CHECK(context, att_safetensors_write(context, to, &content));
    for (int i = 0; i < count; i++)
        free((void *)tensors[i].data);
    free(tensors);
    att_tensors_close(&file);
}

/* name: of the network, if the file does not give it */
static void assert_reopens(const char *path, const char *name, const att_attention_conversion *made, const char *layers)
{
    att_network *opened = NULL;
    double error;
    att_network_options options = att_network_options_defaults();
    att_option_values size = att_options_none();
    const att_preprocess images = att_model_preprocess(made->model);
    att_options_set_sides(&size, "img_size", images.height, images.width);
    options.model = name;
    options.options = name ? &size : NULL;
    CHECK(context, att_network_open(context, path, &options, &opened));
    assert_string_equal(layers_of(att_network_model(opened)), layers);
    CHECK(context, att_models_compare(made->model, made->weights, att_network_model(opened),
                                      att_network_weights(opened), IMAGES, SEED, &error));
    assert_true(error == 0);
    att_network_close(&opened);
}

/* Without metadata only the tensors tell which layers are attention. */
static void assert_too_long(const char *path, const char *name)
{
    att_network *opened = NULL;
    att_network_options options = att_network_options_defaults();
    options.model = name;
    assert_int_equal(att_network_open(context, path, &options, &opened), ATT_ERR_UNSUPPORTED);
    assert_non_null(
        strstr(att_context_message(context), "the names of its layers of attention take more than 255 bytes"));
}

/* By the metadata, and by the tensors alone. read: NULL if the tensors tell too many names. */
static void files_tell_which_layers_are_attention(void **state)
{
    (void)state;
    static const struct {
        const char *name, *layers, *read;
    } cases[] = {
        {"resnet20", "all", "all"},
        {"resnet20", "layer1.*.conv2,conv1,layer3.2.conv1", "conv1,layer1.*.conv2,layer3.2.conv1"},
        {"resnet18", "*.conv1,*downsample*",
         "layer1.*.conv1,layer2.*.conv1,layer2.0.downsample.0,layer3.*.conv1,"
         "layer3.0.downsample.0,layer4.*.conv1,layer4.0.downsample.0"},
        {"resnet56", "*.1.*,*.3.*,*.5.*,*.7.*", NULL}, /* 24 names of 14 bytes */
    };
    char folder[] = "/tmp/attscope-convert-XXXXXX", path[64], bare[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/converted.safetensors", folder);
    snprintf(bare, sizeof bare, "%s/bare.safetensors", folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool small = strcmp(cases[i].name, "resnet18") != 0;
        if (is_sanitized() && !small)
            continue;
        network n = open_random(cases[i].name, 32, NULL);
        att_attention_conversion made = convert(&n, cases[i].layers);
        CHECK(context, att_checkpoint_export(made.model, made.weights, path));
        assert_reopens(path, NULL, &made, cases[i].layers);
        strip(path, bare);
        if (cases[i].read)
            assert_reopens(bare, cases[i].name, &made, cases[i].read);
        else
            assert_too_long(bare, cases[i].name);
        att_attention_conversion_free(&made);
        close_network(&n);
    }
    unlink(path);
    unlink(bare);
    rmdir(folder);
}

/* A network with attention starts from the weights of one without. */
static void weights_of_convolutions_start_a_training(void **state)
{
    (void)state;
    char path[] = "/tmp/attscope-convert-XXXXXX";
    double error;
    int file_descriptor = mkstemp(path);
    assert_true(file_descriptor >= 0);
    close(file_descriptor);
    network n = open_random("resnet20", 16, NULL), attending = {0};
    CHECK(context, att_checkpoint_export(n.model, n.weights, path));
    att_option_values options = *att_model_options(n.model);
    att_options_set_text(&options, "attention_layers", "all");
    CHECK(context, att_model_create(context, "resnet20", &options, ATT_F32, &attending.model));
    CHECK(context, att_weights_create(att_model_graph(attending.model), "cpu", &attending.weights));
    CHECK(context, att_weights_initialise(attending.weights, SEED));
    att_tensors *file = NULL;
    CHECK(context, att_tensors_open(context, path, &file));
    assert_int_not_equal(att_model_load(attending.model, file, attending.weights), ATT_OK);
    CHECK(context, att_model_load_pretrained(attending.model, file, attending.weights, NULL));
    CHECK(context, att_models_compare(n.model, n.weights, attending.model, attending.weights, IMAGES, SEED, &error));
    assert_true(error <= ATT_CONVERSION_ERROR);
    att_tensors_close(&file);
    unlink(path);
    close_network(&attending);
    close_network(&n);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void assert_refused(const network *n, const char *layers, double alpha, att_status status, const char *message)
{
    att_attention_conversion made = {0};
    att_status got = att_model_to_attention(n->model, n->weights, layers, alpha, &made);
    assert_null(made.model);
    if (got != status || !strstr(att_context_message(context), message))
        fail_msg("\"%s\" does not contain \"%s\"", att_context_message(context), message);
}

static void what_cannot_be_converted_is_refused(void **state)
{
    (void)state;
    network n = open_random("resnet20", 16, "cbam"), vit = open_random("vit_tiny_patch16_224", 32, NULL);
    assert_refused(&n, "layer1.0.convl", 0, ATT_ERR_NOT_FOUND,
                   "has no convolution \"layer1.0.convl\"; did you mean \"layer1.0.conv1\"?");
    assert_refused(&n, "layer7.*", 0, ATT_ERR_NOT_FOUND, "has no convolution \"layer7.*\"");
    assert_refused(&n, "", 0, ATT_ERR_ARGUMENT, "no layers are named");
    assert_refused(&n, "linear", 0, ATT_ERR_UNSUPPORTED, "\"linear\" cannot become attention: it is a linear layer");
    assert_refused(&n, "conv1,bn1", 0, ATT_ERR_UNSUPPORTED, "\"bn1\" cannot become attention: it is a norm");
    assert_refused(&n, "layer1.0.se.spatial.conv.conv", 0, ATT_ERR_UNSUPPORTED, "it is a convolution of a module");
    assert_refused(&n, "all", 5, ATT_ERR_ARGUMENT, "alpha is 5, must be 13 to 1e+06");
    assert_refused(&n, "all", NAN, ATT_ERR_ARGUMENT, "alpha is nan");
    assert_refused(&n, "all", 2e6, ATT_ERR_ARGUMENT, "alpha is 2e+06");
    assert_refused(&n, " conv1 , bn1 ", 0, ATT_ERR_UNSUPPORTED, "\"bn1\" cannot become attention: it is a norm");
    assert_refused(&vit, "all", 0, ATT_ERR_UNSUPPORTED,
                   "vit_tiny_patch16_224 has no convolution that can become attention");
    att_attention_conversion made = convert(&n, "all");
    network attending = {made.model, made.weights};
    assert_refused(&attending, "conv1", 0, ATT_ERR_UNSUPPORTED, "\"conv1\" is attention already");
    assert_refused(&attending, "layer1.*", 0, ATT_ERR_UNSUPPORTED,
                   "all convolutions that match \"layer1.*\" are attention already");
    att_attention_conversion_free(&made);
    close_network(&vit);
    close_network(&n);
}

static void a_name_of_no_convolution_is_no_option(void **state)
{
    (void)state;
    att_model *model = NULL;
    att_option_values options = att_options_none();
    att_options_set_text(&options, "attention_layers", "conv1,layer4.0.conv1");
    assert_int_equal(att_model_create(context, "resnet20", &options, ATT_F32, &model), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_context_message(context),
                           "\"layer4.0.conv1\" matches no convolution of this network; "
                           "did you mean \"layer1.0.conv1\"?"));
}

/* --- training and figures ----------------------------------------------------------------------------------------- */

static double norm_of(const att_weights *weights, const att_gradient *gradient, const char *name)
{
    float values[8192];
    int index = att_weights_find(weights, name);
    assert_true(index >= 0);
    int64_t count = att_shape_count(att_weights_at(weights, index).shape);
    assert_in_range(count, 1, 8192);
    CHECK(context, att_gradient_get(gradient, index, values, count));
    double squares = 0;
    for (int64_t i = 0; i < count; i++)
        squares += (double)values[i] * (double)values[i];
    return sqrt(squares);
}

/* In one update of a training, every parameter of attention has a gradient. */
static void gradients_reach_centers_sharpness_and_projections(void **state)
{
    (void)state;
    static const char *const names[] = {"row_centers", "column_centers", "row_sharpness", "column_sharpness", "weight"};
    static float images[4 * 16 * 16 * 3];
    int32_t classes[4] = {0, 1, 2, 3};
    network n = open_random("resnet20", 16, NULL);
    att_attention_conversion made = convert(&n, "all");
    att_plan *plan = NULL;
    att_session *session = NULL;
    att_gradient *gradient = NULL;
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN;
    loss_add(made.model, 0);
    CHECK(context, att_plan_compile(att_model_graph(made.model), &options, &plan));
    CHECK(context, att_session_create(plan, made.weights, 4, &session));
    CHECK(context, att_gradient_create(made.weights, &gradient));
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        images[i] = (float)formula("image", (uint32_t)i);
    CHECK(context, att_session_bind(session, "image", images));
    CHECK(context, att_session_bind(session, "target", classes));
    att_gradient_begin(gradient);
    CHECK(context, att_session_accumulate(session, gradient, 4, 0.25, 9, 1, 0));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        snprintf(name, sizeof name, "layer2.0.conv1.%s", names[i]);
        double norm = norm_of(made.weights, gradient, name);
        print_message("%s: norm of the gradient %.3g\n", name, norm);
        assert_true(norm > 0 && isfinite(norm));
    }
    att_gradient_destroy(&gradient);
    att_session_destroy(&session);
    att_plan_destroy(&plan);
    att_attention_conversion_free(&made);
    close_network(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(converted_networks_have_the_same_outputs),
        cmocka_unit_test(conversions_add_up),
        cmocka_unit_test(alpha_and_preprocessing_are_those_that_were_asked_for),
        cmocka_unit_test(a_comparison_notices_another_weight),
        cmocka_unit_test(files_tell_which_layers_are_attention),
        cmocka_unit_test(weights_of_convolutions_start_a_training),
        cmocka_unit_test(what_cannot_be_converted_is_refused),
        cmocka_unit_test(a_name_of_no_convolution_is_no_option),
        cmocka_unit_test(gradients_reach_centers_sharpness_and_projections),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* Networks whose convolutions are attention (attscope/convert.h): outputs, files, refusals, gradients, figures. */
#include <unistd.h>

#include <attscope/attscope.h>
#include <attscope/convert.h>

#include "context.h"
#include "networks/models/family.h"
#include "networks/models/fixture.h"
#include "networks/models/loss.h"
#include "sanitized.h"

enum { IMAGES = 1, SEED = 3 };

SHARED_CONTEXT(threads, 0)

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
    must(att_model_create(context, name, &options, ATT_F32, &n.model));
    must(att_weights_create(att_model_graph(n.model), "cpu", &n.weights));
    must(att_weights_initialise(n.weights, SEED));
    return n;
}

static void close_network(network *n)
{
    att_weights_destroy(&n->weights);
    att_model_destroy(&n->model);
}

static att_conversion convert(const network *n, const char *layers)
{
    att_conversion made = {0};
    must(att_model_to_attention(n->model, n->weights, layers, 0, &made));
    assert_true(made.alpha == ATT_ATTENTION_ALPHA && made.leak < 1e-8);
    return made;
}

static const char *layers_of(const att_model *model)
{
    return att_options_text(att_model_options(model), "attention_layers");
}

/* The largest difference of a convolution's weights in two networks. */
static double weight_difference(const att_weights *first, const att_weights *second, const char *name, bool flipped)
{
    int of[] = {att_weights_find(first, name), att_weights_find(second, name)};
    assert_true(of[0] >= 0 && of[1] >= 0);
    att_shape shape = att_weights_at(first, of[0]).shape;
    int64_t count = att_shape_count(shape), kernel = shape.dims[2], taps = kernel * kernel;
    float *values[2];
    double most = 0;
    assert_true(att_shape_equal(shape, att_weights_at(second, of[1]).shape));
    for (int i = 0; i < 2; i++) {
        values[i] = calloc((size_t)count, sizeof **values);
        assert_non_null(values[i]);
        must(att_weights_get(i ? second : first, -1, of[i], values[i], count));
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t row = i % taps / kernel, to = flipped ? i + (kernel - 1 - 2 * row) * kernel : i;
        double difference = fabs((double)values[0][i] - (double)values[1][to]);
        most = isnan(difference) ? INFINITY : fmax(most, difference);
    }
    free(values[0]);
    free(values[1]);
    return most;
}

static att_conversion convert_back(const att_conversion *of, const char *layers)
{
    att_conversion back = {0};
    must(att_model_to_convolution(of->model, of->weights, layers, &back));
    return back;
}

/* Converts back, and compares with the network that had convolutions. */
static void check_way_back(const network *n, const att_conversion *made, const char *layers, const char *left)
{
    double error, most = 0;
    att_conversion back = convert_back(made, layers);
    assert_string_equal(layers_of(back.model), left);
    assert_int_equal(att_model_attention_convolutions(back.model, back.weights),
                     att_model_attention_convolutions(made->model, made->weights) - back.layers);
    must(att_models_compare(n->model, n->weights, back.model, back.weights, IMAGES, SEED, &error));
    for (int i = 0; i < att_weights_count(n->weights); i++)
        if (att_weights_at(n->weights, i).shape.rank == 4)
            most = fmax(most, weight_difference(n->weights, back.weights, att_weights_at(n->weights, i).name, false));
    print_message("back to %s: error of layers %.2g, weights differ by %.2g, outputs by %.2g\n", left, back.error, most,
                  error);
    assert_true(error <= ATT_CONVERSION_ERROR);
    assert_true(most <= 1e-7);                         /* 4e-9 */
    assert_true(back.error > 0 && back.error <= 1e-8); /* 4e-9 */
    att_conversion_free(&back);
}

/* --- outputs ------------------------------------------------------------------------------------------------------ */

TEST(converted_networks_have_the_same_outputs)
{
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
        att_conversion made = convert(&n, cases[i].layers);
        assert_string_equal(layers_of(made.model), cases[i].layers);
        must(att_models_compare(n.model, n.weights, made.model, made.weights, IMAGES, SEED, &error));
        print_message("%s, %s: %d layers, %d heads, error %.2g\n", cases[i].name, cases[i].layers, made.layers,
                      made.heads, error);
        assert_int_equal(made.layers, cases[i].converted);
        assert_true(made.heads == cases[i].heads);
        if (!(error > 0 && error <= ATT_CONVERSION_ERROR)) /* 2e-6 */
            fail_msg("%s, %s: the outputs differ by %g of the largest", cases[i].name, cases[i].layers, error);
        check_way_back(&n, &made, "all", "none");
        att_conversion_free(&made);
        close_network(&n);
    }
}

/* A later conversion leaves layers of attention as they are, and so does one back. */
TEST(conversions_add_up)
{
    double error;
    network n = open_random("resnet20", 16, "se");
    att_conversion stem = convert(&n, "conv1, layer1.0.conv?");
    assert_int_equal(stem.layers, 3);
    network of_stem = {stem.model, stem.weights};
    att_conversion all = convert(&of_stem, "all");
    assert_int_equal(all.layers, 16);
    must(att_models_compare(n.model, n.weights, all.model, all.weights, IMAGES, SEED, &error));
    assert_true(error <= ATT_CONVERSION_ERROR);
    check_way_back(&n, &all, "*.conv1,conv1", "layer1.*.conv2,layer2.*.conv2,layer3.*.conv2");
    att_conversion_free(&all);
    att_conversion_free(&stem);
    close_network(&n);
}

TEST(alpha_and_preprocessing_are_those_that_were_asked_for)
{
    static const char *const names[] = {"conv1.row_sharpness", "conv1.column_sharpness"};
    network n = open_random("resnet20", 16, NULL);
    att_preprocess images = att_model_preprocess(n.model);
    images.mean[0] = 0.125;
    images.std[2] = 0.75;
    att_model_set_preprocess(n.model, &images);
    att_conversion made = {0};
    must(att_model_to_attention(n.model, n.weights, "conv1", 32, &made));
    assert_true(made.alpha == 32);
    for (int i = 0; i < 2; i++) {
        float sharpness[3];
        int index = att_weights_find(made.weights, names[i]);
        assert_true(index >= 0);
        must(att_weights_get(made.weights, -1, index, sharpness, 3));
        for (int k = 0; k < 3; k++)
            assert_true(sharpness[k] == 8); /* alpha = sharpness^2 / 2 */
    }
    images = att_model_preprocess(made.model);
    assert_true(images.mean[0] == 0.125 && images.std[2] == 0.75);
    att_conversion_free(&made);
    close_network(&n);
}

TEST(a_comparison_notices_another_weight)
{
    double error;
    float center[3] = {-1, 1, 1};
    network n = open_random("resnet20", 16, NULL);
    att_conversion made = convert(&n, "layer2.1.conv1");
    int index = att_weights_find(made.weights, "layer2.1.conv1.row_centers");
    assert_true(index >= 0);
    must(att_weights_set(made.weights, -1, index, center, 3));
    must(att_models_compare(n.model, n.weights, made.model, made.weights, IMAGES, SEED, &error));
    assert_true(error > 1e-3);
    network other = open_random("resnet20", 32, NULL);
    assert_int_equal(att_models_compare(n.model, n.weights, other.model, other.weights, 1, SEED, &error),
                     ATT_ERR_MISMATCH);
    assert_int_equal(att_models_compare(n.model, n.weights, n.model, n.weights, 0, SEED, &error), ATT_ERR_ARGUMENT);
    close_network(&other);
    att_conversion_free(&made);
    close_network(&n);
}

/* --- the way back ------------------------------------------------------------------------------------------------- */

static void set_vector(att_weights *weights, const char *name, const float *values, int64_t count)
{
    int index = att_weights_find(weights, name);
    assert_true(index >= 0);
    must(att_weights_set(weights, -1, index, values, count));
}

/* Rows of heads in the reverse order are the convolution with reversed rows, with stride and without. */
TEST(moved_heads_move_the_weights)
{
    static const float reversed[] = {1, 0, -1};
    network n = open_random("resnet20", 16, NULL);
    att_conversion made = convert(&n, "layer1.1.conv2,layer2.0.conv1");
    set_vector(made.weights, "layer1.1.conv2.row_centers", reversed, 3);
    set_vector(made.weights, "layer2.0.conv1.row_centers", reversed, 3);
    att_conversion back = convert_back(&made, "all");
    double error;
    must(att_models_compare(made.model, made.weights, back.model, back.weights, IMAGES, SEED, &error));
    assert_true(error <= ATT_CONVERSION_ERROR);
    assert_true(back.error <= 1e-8);
    assert_true(weight_difference(n.weights, back.weights, "layer1.1.conv2.weight", true) <= 1e-7);
    assert_true(weight_difference(n.weights, back.weights, "layer2.0.conv1.weight", true) <= 1e-7);
    assert_true(weight_difference(n.weights, back.weights, "layer2.0.conv1.weight", false) > 1e-2);
    att_conversion_free(&back);
    att_conversion_free(&made);
    close_network(&n);
}

/* Squares of the weights of the kernel's row 0, and of all. */
static double share_of_first_row(const att_weights *weights, const char *name)
{
    int index = att_weights_find(weights, name);
    int64_t count = att_shape_count(att_weights_at(weights, index).shape);
    float *values = calloc((size_t)count, sizeof *values);
    double first = 0, all = 0;
    assert_non_null(values);
    must(att_weights_get(weights, -1, index, values, count));
    for (int64_t i = 0; i < count; i++) {
        all += (double)values[i] * (double)values[i];
        first += i % 9 < 3 ? (double)values[i] * (double)values[i] : 0;
    }
    free(values);
    return sqrt(first / all);
}

/* Heads that look beyond the kernel are missed: |W_0|, of the row that moved, over |W|. */
TEST(what_the_kernel_does_not_reach_is_the_error)
{
    static const float away[] = {3, 0, 1};
    double error;
    network n = open_random("resnet20", 32, NULL);
    att_conversion made = convert(&n, "layer1.0.conv1,layer2.0.conv1");
    set_vector(made.weights, "layer2.0.conv1.row_centers", away, 3);
    att_conversion back = convert_back(&made, "layer?.0.conv1");
    double expected = share_of_first_row(n.weights, "layer2.0.conv1.weight");
    assert_string_equal(back.worst, "layer2.0.conv1");
    print_message("error %.9g, expected within %.2g\n", back.error, fabs(back.error - expected));
    if (!(fabs(back.error - expected) <= 1e-7)) /* 1e-9 */
        fail_msg("error %.9g, expected %.9g", back.error, expected);
    must(att_models_compare(made.model, made.weights, back.model, back.weights, IMAGES, SEED, &error));
    assert_true(error > 1e-3);
    att_conversion_free(&back);
    att_conversion_free(&made);
    close_network(&n);
}

/* The weight of the query in the middle for the keys of one axis, from the formula. */
static void soft_map(const float *centers, const float *sharpness, int shift_least, int keys, double *map)
{
    for (int i = 0; i < 3; i++) {
        double sum = 0;
        for (int k = 0; k < keys; k++) {
            double from = (double)sharpness[i] * (shift_least + k - (double)centers[i]);
            sum += map[i * keys + k] = exp(-from * from / 2);
        }
        for (int k = 0; k < keys; k++)
            map[i * keys + k] /= sum;
    }
}

/* Soft heads, by the sums of the definition: layer2.0.conv1 has 16 x 16 pixels, a ring of 1, and queries at even
 * pixels, of which (8, 8) is in the middle. */
TEST(soft_heads_become_the_nearest_convolution)
{
    enum { KEYS = 18, FIRST = -9, TAP = 8, SIZE = 32 * 16 }; /* key 8 has the shift -1 */
    static const float centers[2][3] = {{-0.8F, 0.3F, 1.4F}, {-1.2F, 0.1F, 0.7F}},
                       sharpness[2][3] = {{1.1F, 0.6F, 1.7F}, {0.9F, 2.1F, 1.3F}};
    static float weight[SIZE * 9], found[SIZE * 9];
    double rows[3 * KEYS], columns[3 * KEYS], missed = 0, all = 0, most = 0;
    network n = open_random("resnet20", 16, NULL);
    att_conversion made = convert(&n, "layer2.0.conv1");
    set_vector(made.weights, "layer2.0.conv1.row_centers", centers[0], 3);
    set_vector(made.weights, "layer2.0.conv1.column_centers", centers[1], 3);
    set_vector(made.weights, "layer2.0.conv1.row_sharpness", sharpness[0], 3);
    set_vector(made.weights, "layer2.0.conv1.column_sharpness", sharpness[1], 3);
    att_conversion back = convert_back(&made, "all");
    must(att_weights_get(made.weights, -1, att_weights_find(made.weights, "layer2.0.conv1.weight"), weight, SIZE * 9));
    must(att_weights_get(back.weights, -1, att_weights_find(back.weights, "layer2.0.conv1.weight"), found, SIZE * 9));
    soft_map(centers[0], sharpness[0], FIRST, KEYS, rows);
    soft_map(centers[1], sharpness[1], FIRST, KEYS, columns);
    for (int i = 0; i < SIZE; i++)
        for (int key = 0; key < KEYS * KEYS; key++) {
            const int y = key / KEYS - TAP, x = key % KEYS - TAP;
            double m = 0;
            for (int head = 0; head < 9; head++)
                m += rows[head / 3 * KEYS + key / KEYS] * columns[head % 3 * KEYS + key % KEYS] *
                     (double)weight[i * 9 + head];
            all += m * m;
            if (y < 0 || y > 2 || x < 0 || x > 2)
                missed += m * m;
            else
                most = fmax(most, fabs(m - (double)found[i * 9 + y * 3 + x]));
        }
    print_message("error %.6g, expected within %.2g; weights differ by %.2g\n", back.error,
                  fabs(back.error - sqrt(missed / all)), most);
    assert_true(most <= 1e-7);                                   /* 3e-9 */
    assert_true(fabs(back.error - sqrt(missed / all)) <= 1e-12); /* 2e-16 */
    assert_true(back.error > 0.1);
    att_conversion_free(&back);
    att_conversion_free(&made);
    close_network(&n);
}

static void assert_not_converted_back(const network *n, const char *layers, att_status status, const char *message)
{
    att_conversion made = {0};
    assert_fails(context, att_model_to_convolution(n->model, n->weights, layers, &made), status, message);
    assert_null(made.model);
}

TEST(what_cannot_become_a_convolution_is_refused)
{
    static const float bad[] = {-1, NAN, 1};
    network n = open_random("resnet20", 16, NULL), vit = open_random("vit_tiny_patch16_224", 32, NULL);
    assert_not_converted_back(&n, "all", ATT_ERR_UNSUPPORTED, "resnet20 has no attention in the place of convolutions");
    assert_not_converted_back(&vit, "all", ATT_ERR_UNSUPPORTED, "has no attention in the place of convolutions");
    att_conversion made = convert(&n, "conv1,layer1.*");
    network attending = {made.model, made.weights};
    assert_not_converted_back(&attending, "", ATT_ERR_ARGUMENT, "no layers are named");
    assert_not_converted_back(&attending, "layer2.0.conv1", ATT_ERR_UNSUPPORTED,
                              "\"layer2.0.conv1\" is a convolution already");
    assert_not_converted_back(&attending, "layer2.*", ATT_ERR_UNSUPPORTED,
                              "all convolutions that match \"layer2.*\" are convolutions already");
    assert_not_converted_back(&attending, "linear", ATT_ERR_UNSUPPORTED,
                              "\"linear\" cannot become a convolution: it is a linear layer, and only attention in the "
                              "place of convolutions can");
    assert_not_converted_back(&attending, "conv2", ATT_ERR_NOT_FOUND, "did you mean \"conv1\"?");
    set_vector(made.weights, "layer1.2.conv1.column_centers", bad, 3);
    assert_not_converted_back(&attending, "all", ATT_ERR_NONFINITE,
                              "parameter \"layer1.2.conv1.column_centers\": element 1 is not finite");
    att_conversion_free(&made);
    close_network(&vit);
    close_network(&n);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* Writes the same tensors without metadata. */
static void strip(const char *from, const char *to)
{
    att_tensors *file = NULL;
    must(att_tensors_open(context, from, &file));
    int count = att_tensors_count(file);
    att_safetensors_tensor *tensors = calloc((size_t)count, sizeof *tensors);
    assert_non_null(tensors);
    for (int i = 0; i < count; i++) {
        att_tensors_info info = att_tensors_at(file, i);
        float *values = calloc((size_t)info.count, sizeof *values);
        assert_non_null(values);
        must(att_tensors_read(file, i, ATT_SAFETENSORS_F32, values, info.count));
        tensors[i] = (att_safetensors_tensor){info.name, ATT_SAFETENSORS_F32, info.shape, values};
    }
    const att_safetensors_content content = {.tensors = tensors, .tensor_count = count};
    must(att_safetensors_write(context, to, &content));
    for (int i = 0; i < count; i++)
        free((void *)tensors[i].data);
    free(tensors);
    att_tensors_close(&file);
}

/* name: of the network, if the file does not give it */
static void assert_reopens(const char *path, const char *name, const att_conversion *made, const char *layers)
{
    att_network *opened = NULL;
    double error;
    att_network_options options = att_network_options_defaults();
    att_option_values size = att_options_none();
    const att_preprocess images = att_model_preprocess(made->model);
    att_options_set_sides(&size, "img_size", images.height, images.width);
    options.model = name;
    options.options = name ? &size : NULL;
    must(att_network_open(context, path, &options, &opened));
    assert_string_equal(layers_of(att_network_model(opened)), layers);
    must(att_models_compare(made->model, made->weights, att_network_model(opened), att_network_weights(opened), IMAGES,
                            SEED, &error));
    assert_true(error == 0);
    att_network_close(&opened);
}

/* Without metadata only the tensors tell which layers are attention. patterns: shorter than their names */
static void assert_too_long(const char *path, const char *name, const char *patterns)
{
    att_network *opened = NULL;
    att_network_options options = att_network_options_defaults();
    att_option_values given = att_options_none();
    options.model = name;
    assert_fails(context, att_network_open(context, path, &options, &opened), ATT_ERR_UNSUPPORTED,
                 "the names of its 24 layers of attention take more than 255 bytes; give the option "
                 "attention_layers, patterns such as layer1.*.conv1 that match them: layer1.1.conv1, "
                 "layer1.1.conv2, layer1.3.conv1, ");
    att_options_set_text(&given, "attention_layers", patterns);
    options.options = &given;
    must(att_network_open(context, path, &options, &opened));
    assert_string_equal(layers_of(att_network_model(opened)), patterns);
    att_network_close(&opened);
}

/* Attention cannot be left out when a file is opened. */
static void assert_attention_stays(const char *path)
{
    static const char *const lists[] = {"none", "conv1"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        att_network *opened = NULL;
        att_network_options options = att_network_options_defaults();
        att_option_values given = att_options_none();
        att_options_set_text(&given, "attention_layers", lists[i]);
        options.options = &given;
        assert_fails(context, att_network_open(context, path, &options, &opened), ATT_ERR_MISMATCH,
                     "is attention in this file, and attention_layers");
    }
}

/* By the metadata, and by the tensors alone. read: NULL if the tensors tell too many names. */
TEST(files_tell_which_layers_are_attention)
{
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
        att_conversion made = convert(&n, cases[i].layers);
        must(att_checkpoint_export(made.model, made.weights, path));
        assert_reopens(path, NULL, &made, cases[i].layers);
        strip(path, bare);
        if (cases[i].read)
            assert_reopens(bare, cases[i].name, &made, cases[i].read);
        else
            assert_too_long(bare, cases[i].name, cases[i].layers);
        assert_attention_stays(path);
        att_conversion_free(&made);
        close_network(&n);
    }
    unlink(path);
    unlink(bare);
    rmdir(folder);
}

/* A network with attention starts from the weights of one without. */
TEST(weights_of_convolutions_start_a_training)
{
    char path[] = "/tmp/attscope-convert-XXXXXX";
    double error;
    int file_descriptor = mkstemp(path);
    assert_true(file_descriptor >= 0);
    close(file_descriptor);
    network n = open_random("resnet20", 16, NULL), attending = {0};
    must(att_checkpoint_export(n.model, n.weights, path));
    att_option_values options = *att_model_options(n.model);
    att_options_set_text(&options, "attention_layers", "all");
    must(att_model_create(context, "resnet20", &options, ATT_F32, &attending.model));
    must(att_weights_create(att_model_graph(attending.model), "cpu", &attending.weights));
    must(att_weights_initialise(attending.weights, SEED));
    att_tensors *file = NULL;
    must(att_tensors_open(context, path, &file));
    assert_int_not_equal(att_model_load(attending.model, file, attending.weights), ATT_OK);
    must(att_model_load_pretrained(attending.model, file, attending.weights, NULL));
    must(att_models_compare(n.model, n.weights, attending.model, attending.weights, IMAGES, SEED, &error));
    assert_true(error <= ATT_CONVERSION_ERROR);
    att_tensors_close(&file);
    unlink(path);
    close_network(&attending);
    close_network(&n);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void assert_refused(const network *n, const char *layers, double alpha, att_status status, const char *message)
{
    att_conversion made = {0};
    assert_fails(context, att_model_to_attention(n->model, n->weights, layers, alpha, &made), status, message);
    assert_null(made.model);
}

TEST(what_cannot_be_converted_is_refused)
{
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
    att_conversion made = convert(&n, "all");
    network attending = {made.model, made.weights};
    assert_refused(&attending, "conv1", 0, ATT_ERR_UNSUPPORTED, "\"conv1\" is attention already");
    assert_refused(&attending, "layer1.*", 0, ATT_ERR_UNSUPPORTED,
                   "all convolutions that match \"layer1.*\" are attention already");
    att_conversion_free(&made);
    close_network(&vit);
    close_network(&n);
}

TEST(a_name_of_no_convolution_is_no_option)
{
    att_model *model = NULL;
    att_option_values options = att_options_none();
    att_options_set_text(&options, "attention_layers", "conv1,layer4.0.conv1");
    assert_fails(context, att_model_create(context, "resnet20", &options, ATT_F32, &model), ATT_ERR_ARGUMENT,
                 "\"layer4.0.conv1\" matches no convolution of this network; "
                 "did you mean \"layer1.0.conv1\"?");
}

/* --- training and figures ----------------------------------------------------------------------------------------- */

static double norm_of(const att_weights *weights, const att_gradient *gradient, const char *name)
{
    float values[8192];
    int index = att_weights_find(weights, name);
    assert_true(index >= 0);
    int64_t count = att_shape_count(att_weights_at(weights, index).shape);
    assert_in_range(count, 1, 8192);
    must(att_gradient_get(gradient, index, values, count));
    double squares = 0;
    for (int64_t i = 0; i < count; i++)
        squares += (double)values[i] * (double)values[i];
    return sqrt(squares);
}

/* In one update of a training run, every parameter of attention has a gradient. */
TEST(gradients_reach_centers_sharpness_and_projections)
{
    static const char *const names[] = {"row_centers", "column_centers", "row_sharpness", "column_sharpness", "weight"};
    static float images[4 * 16 * 16 * 3];
    int32_t classes[4] = {0, 1, 2, 3};
    network n = open_random("resnet20", 16, NULL);
    att_conversion made = convert(&n, "all");
    att_plan *plan = NULL;
    att_session *session = NULL;
    att_gradient *gradient = NULL;
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN;
    loss_add(made.model, 0);
    must(att_plan_compile(att_model_graph(made.model), &options, &plan));
    must(att_session_create(plan, made.weights, 4, &session));
    must(att_gradient_create(made.weights, &gradient));
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        images[i] = (float)formula("image", (uint32_t)i);
    must(att_session_bind(session, "image", images));
    must(att_session_bind(session, "target", classes));
    att_gradient_begin(gradient);
    must(att_session_accumulate(session, gradient, 4, 0.25, 9, 1, 0));
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
    att_conversion_free(&made);
    close_network(&n);
}

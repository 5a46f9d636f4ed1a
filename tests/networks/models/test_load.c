/* Loading of weights: files that do not fit a network, and files of which a part is loaded. */
#include "networks/models/checkpoints.h"
#include "networks/models/regrid.h"

static att_status load(const place *p, const att_model *model, att_weights *weights)
{
    att_tensors *file;
    CHECK(p->context, att_tensors_open(p->context, p->weights, &file));
    att_status status = att_model_load(model, file, weights);
    att_tensors_close(&file);
    return status;
}

PLACE_TEST(load_copies_every_tensor)
{
    att_option_values options = small();
    write_model(p, "vit_tiny_patch16_224", &options, false);
    for (int wide = 0; wide < 2; wide++) {
        att_model *model;
        att_weights *weights;
        CHECK(p->context,
              att_model_create(p->context, "vit_tiny_patch16_224", &options, wide ? ATT_F64 : ATT_F32, &model));
        CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
        CHECK(p->context, load(p, model, weights));
        for (int i = 0; i < att_weights_count(weights); i++) {
            att_parameter_info parameter = att_weights_at(weights, i);
            int64_t count = att_shape_count(parameter.shape);
            void *values = malloc((size_t)count * sizeof(double));
            CHECK(p->context, att_weights_get(weights, -1, i, values, count));
            for (int64_t e = 0; e < count; e++) {
                float value = wide ? (float)((double *)values)[e] : ((float *)values)[e];
                assert_true(value == (float)formula(parameter.name, (uint32_t)e));
            }
            free(values);
        }
        att_weights_destroy(&weights);
        att_model_destroy(&model);
    }
}

/* Returns element i of a tensor as a number of this type, and its bits. */
static double typed_value(att_safetensors_dtype dtype, const char *name, uint32_t i)
{
    if (dtype == ATT_SAFETENSORS_F64)
        return formula(name, i);
    if (dtype == ATT_SAFETENSORS_F16)
        return 0.25 * (1 + (i % 1024) / 1024.0);
    return 0.25 * (1 + (i % 128) / 128.0);
}

static att_status fill_typed(void *user, int index, void *out, size_t bytes)
{
    const att_safetensors_tensor *tensor = &((const tensors *)user)->items[index];
    bool wide = tensor->dtype == ATT_SAFETENSORS_F64;
    for (size_t i = 0; i < bytes / (wide ? 8 : 2); i++) {
        if (wide)
            ((double *)out)[i] = typed_value(tensor->dtype, tensor->name, (uint32_t)i);
        else if (tensor->dtype == ATT_SAFETENSORS_F16)
            ((uint16_t *)out)[i] = (uint16_t)(0x3400 + i % 1024);
        else
            ((uint16_t *)out)[i] = (uint16_t)(0x3e80 + i % 128);
    }
    return ATT_OK;
}

static void holds_typed(const place *p, att_dtype dtype, att_safetensors_dtype file_dtype)
{
    att_option_values options = small();
    att_model *model;
    att_weights *weights;
    CHECK(p->context, att_model_create(p->context, "vit_tiny_patch16_224", &options, dtype, &model));
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    tensors t = tensors_of(model);
    for (int i = 0; i < t.count; i++)
        t.items[i].dtype = file_dtype;
    att_safetensors_content content = {
        .tensors = t.items, .tensor_count = t.count, .fill = fill_typed, .fill_user = &t};
    CHECK(p->context, att_safetensors_write(p->context, p->weights, &content));
    CHECK(p->context, load(p, model, weights));
    for (int i = 0; i < att_weights_count(weights); i++) {
        att_parameter_info parameter = att_weights_at(weights, i);
        int64_t count = att_shape_count(parameter.shape);
        double *values = malloc((size_t)count * sizeof *values);
        CHECK(p->context, att_weights_get(weights, -1, i, values, count));
        for (int64_t e = 0; e < count; e++) {
            double expected = typed_value(file_dtype, parameter.name, (uint32_t)e);
            assert_true(dtype == ATT_F64 ? values[e] == expected : ((float *)values)[e] == (float)expected);
        }
        free(values);
    }
    att_weights_destroy(&weights);
    att_model_destroy(&model);
}

PLACE_TEST(every_type_of_number_is_taken)
{
    static const att_safetensors_dtype dtypes[] = {ATT_SAFETENSORS_F64, ATT_SAFETENSORS_F16, ATT_SAFETENSORS_BF16};
    for (int i = 0; i < 3; i++) {
        holds_typed(p, ATT_F32, dtypes[i]);
        holds_typed(p, ATT_F64, dtypes[i]);
    }
}

/* Weights of a network with fewer parameters, and of one with other parameters under the same names. */
PLACE_TEST(weights_must_be_the_model_s)
{
    att_option_values options = small(), other = small();
    write_model(p, "vit_tiny_patch16_224", &options, false);
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    for (int i = 0; i < 2; i++) {
        att_options_set(&other, "depth", i ? 2 : 1);
        att_options_set(&other, "num_classes", i ? 8 : 7);
        att_model *stranger = make(p, "vit_tiny_patch16_224", &other);
        att_weights *weights;
        CHECK(p->context, att_weights_create(att_model_graph(stranger), "cpu", &weights));
        assert_int_equal(load(p, model, weights), ATT_ERR_MISMATCH);
        says(att_context_message(p->context), "the weights were not made for this model");
        says(att_context_message(p->context), i ? "\"head.weight\" differs" : "\"blocks.1.norm1.weight\" differs");
        att_weights_destroy(&weights);
        att_model_destroy(&stranger);
    }
    att_model_destroy(&model);
}

PLACE_TEST(load_lists_all_that_does_not_fit)
{
    att_option_values options = small();
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    att_weights *weights;
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    tensors t = tensors_of(model);
    for (int i = 0; i < t.count; i++) {
        if (strcmp(t.items[i].name, "cls_token") == 0)
            t.items[i].name = "blocks.5.norm1.weight";
        if (strcmp(t.items[i].name, "head.bias") == 0)
            t.items[i].shape = att_shape_of(8);
        if (strcmp(t.items[i].name, "norm.weight") == 0)
            t.items[i].dtype = ATT_SAFETENSORS_I32;
    }
    write_tensors(p, &t, NULL);
    assert_int_equal(load(p, model, weights), ATT_ERR_MISMATCH);
    const char *message = att_context_message(p->context);
    says(message, "1 missing: cls_token");
    says(message, "1 extra: blocks.5.norm1.weight");
    says(message, "1 mis-shaped: head.bias F32 [8] instead of [7]");
    says(message, "1 of a type other than F32, F16, BF16 and F64: norm.weight I32");
    float bias[7];
    CHECK(p->context, att_weights_get(weights, -1, att_weights_find(weights, "head.bias"), bias, 7));
    for (int i = 0; i < 7; i++)
        assert_true(bias[i] == 0); /* unchanged */
    t.count = 0;
    add_tensor(&t, "only", att_shape_of(1));
    write_tensors(p, &t, NULL);
    assert_int_equal(load(p, model, weights), ATT_ERR_MISMATCH);
    says(att_context_message(p->context), "32 missing: ");
    says(att_context_message(p->context), ", ...");
    att_weights_destroy(&weights);
    att_model_destroy(&model);
}

/* Tensors that a training run stores beside the weights are ignored in attscope's checkpoints. */
PLACE_TEST(a_trainings_tensors_are_passed_over)
{
    att_option_values options = small();
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    tensors t = tensors_of(model);
    add_tensor(&t, "ema.head.bias", att_shape_of(7));
    add_tensor(&t, "optimizer.exp_avg.head.bias", att_shape_of(7));
    char text[ATT_IDENTITY_TEXT];
    att_identity identity = att_model_identity(model);
    CHECK(p->context, att_model_identity_text(p->context, &identity, text, sizeof text));
    assert_int_equal(att_model_identity_text(p->context, &identity, text, 100), ATT_ERR_ARGUMENT);
    write_tensors(p, &t, text);
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    att_weights *weights;
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    CHECK(p->context, load(p, model, weights));
    att_weights_destroy(&weights);
    att_model_destroy(&model);
}

/* --- initial checkpoints ------------------------------------------------------------------------------------------ */

static att_status load_pretrained(const place *p, const att_model *model, att_weights *weights, att_new_head *head)
{
    att_tensors *file;
    CHECK(p->context, att_tensors_open(p->context, p->weights, &file));
    att_status status = att_model_load_pretrained(model, file, weights, head);
    att_tensors_close(&file);
    return status;
}

/* Checks that every parameter has the file's numbers; head_kept: that the head has its initial numbers. */
static void holds_formula(const place *p, const att_weights *weights, bool head_kept, float kept)
{
    for (int i = 0; i < att_weights_count(weights); i++) {
        att_parameter_info parameter = att_weights_at(weights, i);
        int64_t count = att_shape_count(parameter.shape);
        float *values = malloc((size_t)count * sizeof *values);
        CHECK(p->context, att_weights_get(weights, -1, i, values, count));
        bool is_kept = head_kept && strncmp(parameter.name, "head.", 5) == 0;
        for (int64_t e = 0; e < count; e++)
            assert_true(values[e] == (is_kept ? kept : (float)formula(parameter.name, (uint32_t)e)));
        free(values);
    }
}

static void fill(const place *p, att_weights *weights, const char *name, float value)
{
    int index = att_weights_find(weights, name);
    int64_t count = att_shape_count(att_weights_at(weights, index).shape);
    float *values = malloc((size_t)count * sizeof *values);
    for (int64_t e = 0; e < count; e++)
        values[e] = value;
    CHECK(p->context, att_weights_set(weights, -1, index, values, count));
    free(values);
}

PLACE_TEST(another_number_of_classes_leaves_the_head_initialised)
{
    att_option_values options = small();
    write_model(p, "vit_tiny_patch16_224", &options, false);
    for (int classes = 7; classes >= 5; classes -= 2) {
        att_options_set(&options, "num_classes", classes);
        att_model *model = make(p, "vit_tiny_patch16_224", &options);
        att_weights *weights;
        CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
        fill(p, weights, "head.weight", 0.75F);
        fill(p, weights, "head.bias", 0.75F);
        att_new_head head;
        CHECK(p->context, load_pretrained(p, model, weights, &head));
        assert_string_equal(head.names, classes == 7 ? "" : "head.weight, head.bias");
        assert_int_equal(head.classes, classes == 7 ? 0 : 7);
        holds_formula(p, weights, classes != 7, 0.75F);
        att_weights_destroy(&weights);
        att_model_destroy(&model);
    }
}

/* Fills a parameter by a formula; variances are positive. */
static att_status fill_positive(void *user, int index, void *out, size_t bytes)
{
    float *values = out;
    (void)user, (void)index;
    for (size_t i = 0; i < bytes / sizeof *values; i++)
        values[i] = 0.5F;
    return ATT_OK;
}

/* The head has more layers than the one with the classes: all start anew. The second network has as many classes as
 * that layer has inputs. */
PLACE_TEST(a_tasks_head_with_other_classes_starts_anew)
{
    enum { INPUTS = 64 };
    static const int numbers[] = {5, INPUTS};
    att_option_values options = small();
    att_options_set_text(&options, "task", "segment");
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    tensors t = tensors_of(model);
    att_safetensors_content content = {
        .tensors = t.items, .tensor_count = t.count, .fill = fill_positive, .fill_user = &t};
    CHECK(p->context, att_safetensors_write(p->context, p->weights, &content));
    att_model_destroy(&model);
    for (int i = 0; i < 2; i++) {
        att_options_set(&options, "num_classes", numbers[i]);
        model = make(p, "vit_tiny_patch16_224", &options);
        att_weights *weights;
        att_new_head head;
        CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
        fill(p, weights, "segmenter.bn.weight", 0.75F);
        CHECK(p->context, load_pretrained(p, model, weights, &head));
        assert_int_equal(head.classes, 7);
        says(head.names, "segmenter.bn.weight, segmenter.bn.bias");
        says(head.names, "segmenter.linear.weight, segmenter.linear.bias");
        float values[INPUTS];
        CHECK(p->context,
              att_weights_get(weights, -1, att_weights_find(weights, "segmenter.bn.weight"), values, INPUTS));
        assert_true(values[0] == 0.75F);
        att_weights_destroy(&weights);
        att_model_destroy(&model);
    }
}

/* Both heads have the classes. A file with the linear head has no head of the model's kind. */
PLACE_TEST(other_classes_and_other_heads_make_upernet_new)
{
    for (int linear = 0; linear < 2; linear++) {
        att_option_values options = small();
        att_options_set_text(&options, "task", "segment");
        if (!linear)
            att_options_set_text(&options, "head", "uper");
        att_model *model = make(p, "vit_tiny_patch16_224", &options);
        tensors t = tensors_of(model);
        att_safetensors_content content = {
            .tensors = t.items, .tensor_count = t.count, .fill = fill_positive, .fill_user = &t};
        CHECK(p->context, att_safetensors_write(p->context, p->weights, &content));
        att_model_destroy(&model);
        att_options_set_text(&options, "head", "uper"), att_options_set(&options, "num_classes", 5);
        model = make(p, "vit_tiny_patch16_224", &options);
        att_weights *weights;
        att_new_head head;
        CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
        CHECK(p->context, load_pretrained(p, model, weights, &head));
        assert_int_equal(head.classes, linear ? 0 : 7);
        says(head.names, "segmenter.lateral_convs.0.conv.weight, ");
        says(head.names, "segmenter.lateral_convs.1.bn.bias and 61 more");
        att_weights_destroy(&weights);
        att_model_destroy(&model);
    }
}

PLACE_TEST(a_network_without_a_head_takes_no_head)
{
    att_option_values options = small();
    write_model(p, "vit_tiny_patch16_224", &options, false);
    att_options_set(&options, "num_classes", 0);
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    att_weights *weights;
    att_new_head head;
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    CHECK(p->context, load_pretrained(p, model, weights, &head));
    assert_string_equal(head.names, "");
    holds_formula(p, weights, false, 0);
    assert_int_equal(load(p, model, weights), ATT_ERR_MISMATCH);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
}

PLACE_TEST(a_file_without_a_head_leaves_the_head_initialised)
{
    att_option_values options = small();
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    tensors t = tensors_of(model);
    for (int half = 1; half >= 0; half--) { /* without the weight, then without weight and bias */
        for (int i = 0; i < t.count; i++)
            if (strcmp(t.items[i].name, half ? "head.weight" : "head.bias") == 0)
                t.items[i] = t.items[--t.count];
        write_tensors(p, &t, NULL);
        att_weights *weights;
        att_new_head head = {.classes = 9};
        CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
        fill(p, weights, "head.weight", 0.75F);
        fill(p, weights, "head.bias", 0.75F);
        assert_int_equal(load_pretrained(p, model, weights, &head), half ? ATT_ERR_MISMATCH : ATT_OK);
        if (!half) {
            assert_string_equal(head.names, "head.weight, head.bias");
            assert_int_equal(head.classes, 0);
            holds_formula(p, weights, true, 0.75F);
        }
        assert_int_equal(load(p, model, weights), ATT_ERR_MISMATCH);
        att_weights_destroy(&weights);
    }
    att_model_destroy(&model);
}

static void mismatch(const place *p, const att_model *model, const char *words)
{
    att_weights *weights;
    att_new_head head = {.names = "untouched"};
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    assert_int_equal(load_pretrained(p, model, weights, &head), ATT_ERR_MISMATCH);
    assert_string_equal(head.names, "untouched");
    says(att_context_message(p->context), words);
    assert_int_equal(load(p, model, weights), ATT_ERR_MISMATCH);
    att_weights_destroy(&weights);
}

PLACE_TEST(a_head_that_differs_otherwise_is_refused)
{
    att_option_values options = small();
    att_options_set(&options, "num_classes", 5);
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    static const struct {
        const char *words;
        int64_t weight[2], bias;
        att_safetensors_dtype dtype;
        const char *bias_name;
    } heads[] = {
        {"2 mis-shaped: head.weight", {7, 16}, 7, ATT_SAFETENSORS_F32, "head.bias"},
        {"2 mis-shaped: head.weight", {7, 32}, 8, ATT_SAFETENSORS_F32, "head.bias"},
        {"1 mis-shaped: head.weight", {7, 32}, 5, ATT_SAFETENSORS_F32, "head.bias"},
        {"1 mis-shaped: head.bias", {5, 32}, 7, ATT_SAFETENSORS_F32, "head.bias"},
        {"2 mis-shaped: head.weight I32", {7, 32}, 7, ATT_SAFETENSORS_I32, "head.bias"},
        {"1 missing: head.bias; 1 extra: head.offset; 1 mis-shaped: head.weight",
         {7, 32},
         7,
         ATT_SAFETENSORS_F32,
         "head.offset"},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        tensors t = tensors_of(model);
        for (int n = 0; n < t.count; n++) {
            if (strcmp(t.items[n].name, "head.weight") == 0) {
                t.items[n].shape = att_shape_of(heads[i].weight[0], heads[i].weight[1]);
                t.items[n].dtype = heads[i].dtype;
            }
            if (strcmp(t.items[n].name, "head.bias") == 0) {
                t.items[n].shape = att_shape_of(heads[i].bias);
                t.items[n].name = heads[i].bias_name;
            }
        }
        write_tensors(p, &t, NULL);
        mismatch(p, model, heads[i].words);
    }
    att_model_destroy(&model);
}

PLACE_TEST(all_but_the_head_must_match)
{
    att_option_values options = small();
    att_options_set(&options, "depth", 3);
    write_model(p, "vit_tiny_patch16_224", &options, false);
    att_options_set(&options, "depth", 2);
    att_options_set(&options, "num_classes", 5);
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    mismatch(p, model, "12 extra: blocks.2.");
    att_model_destroy(&model);
    att_options_set(&options, "depth", 1);
    model = make(p, "vit_tiny_patch16_224", &options);
    mismatch(p, model, "does not fit the model: it was made with depth 3; 24 extra: blocks.1.");
    att_model_destroy(&model);
}

/* The last message of the log. */
static char heard[512];

static void hear(void *user, att_log_level level, const char *line)
{
    (void)user;
    assert_int_equal(level, ATT_LOG_INFO);
    snprintf(heard, sizeof heard, "%s", line);
}

/* Gives the place a context whose last message is in `heard`. */
static void listen_to(place *p)
{
    att_settings settings = att_settings_defaults();
    settings.log = hear;
    heard[0] = '\0';
    att_context_destroy(&p->context);
    assert_int_equal(att_context_create(&settings, &p->context), ATT_OK);
}

/* For every type of the graph and of the file, the resampled numbers are the same; test_regrid.c compares them with
 * timm's. */
PLACE_TEST(another_grid_is_resampled)
{
    listen_to(p);
    att_option_values options = small();
    enum { WIDTH = 32, FROM = 1 + 4 * 4, TO = 1 + 6 * 6 };
    write_model(p, "vit_tiny_patch16_224", &options, false);
    double in[FROM * WIDTH], expected[TO * WIDTH];
    for (int i = 0; i < FROM * WIDTH; i++)
        in[i] = (float)formula("pos_embed", (uint32_t)i);
    const att_regrid grid = {.extra = 1, .from = {4, 4}, .to = {6, 6}, .width = WIDTH};
    CHECK(p->context, att_regrid_table(p->context, &grid, in, expected));
    att_options_set(&options, "img_size", 48);
    for (int wide = 0; wide < 2; wide++) {
        att_model *model;
        att_weights *weights;
        CHECK(p->context,
              att_model_create(p->context, "vit_tiny_patch16_224", &options, wide ? ATT_F64 : ATT_F32, &model));
        CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
        heard[0] = '\0';
        CHECK(p->context, load(p, model, weights));
        assert_string_equal(heard, "pos_embed: resampled from 4 x 4 patches to 6 x 6");
        double found[TO * WIDTH];
        CHECK(p->context, att_weights_get(weights, -1, att_weights_find(weights, "pos_embed"), found, TO * WIDTH));
        for (int i = 0; i < TO * WIDTH; i++)
            assert_true(wide ? found[i] == expected[i] : ((float *)found)[i] == (float)expected[i]);
        att_weights_destroy(&weights);
        att_model_destroy(&model);
    }
}

/* The first convolution of a network for colours, [width, 3, P, Q]. */
PLACE_TEST(colours_are_summed_for_grey_images)
{
    listen_to(p);
    att_option_values vit = small(), residual = att_options_none();
    att_options_set(&residual, "img_size", 32), att_options_set(&residual, "num_classes", 7);
    const struct {
        const char *model, *convolution;
        att_option_values options;
    } all[] = {{"vit_tiny_patch16_224", "patch_embed.proj.weight", vit},
               {"resnet20", "conv1.weight", residual},
               {"resnet18d", "conv1.0.weight", residual}};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        att_option_values options = all[k].options;
        char words[96];
        write_model(p, all[k].model, &options, false);
        att_options_set(&options, "in_chans", 1);
        att_model *model = make(p, all[k].model, &options);
        att_weights *weights;
        CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
        heard[0] = '\0';
        CHECK(p->context, load(p, model, weights));
        snprintf(words, sizeof words, "%s: summed over the three colours, for grey images", all[k].convolution);
        assert_string_equal(heard, words);
        int index = att_weights_find(weights, all[k].convolution);
        att_shape shape = att_weights_at(weights, index).shape;
        uint32_t pixels = (uint32_t)(shape.dims[2] * shape.dims[3]), count = (uint32_t)att_shape_count(shape);
        assert_int_equal(count, shape.dims[0] * pixels);
        float *found = malloc(count * sizeof *found);
        CHECK(p->context, att_weights_get(weights, -1, index, found, count));
        for (uint32_t i = 0; i < count; i++) {
            double sum = 0;
            for (uint32_t c = 0; c < 3; c++)
                sum += (float)formula(all[k].convolution, (3 * (i / pixels) + c) * pixels + i % pixels);
            assert_true(found[i] == (float)sum);
        }
        free(found);
        att_weights_destroy(&weights);
        att_model_destroy(&model);
    }
}

PLACE_TEST(grey_weights_read_no_colours)
{
    att_option_values options = small();
    att_options_set(&options, "in_chans", 1);
    write_model(p, "vit_tiny_patch16_224", &options, false);
    att_options_set(&options, "in_chans", 3);
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    att_weights *weights;
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    assert_int_equal(load(p, model, weights), ATT_ERR_MISMATCH);
    says(att_context_message(p->context),
         "\"patch_embed.proj.weight\" reads images of 1 channel, not of 3: leave in_chans out");
    att_weights_destroy(&weights);
    att_model_destroy(&model);
}

/* For tables of the same shape, the grid in the file's metadata decides. */
PLACE_TEST(grids_of_as_many_patches_differ)
{
    listen_to(p);
    for (int known = 0; known < 2; known++) {
        att_option_values options = small();
        att_options_set_sides(&options, "img_size", 16, 32);
        write_model(p, "vit_tiny_patch16_224", &options, known);
        att_options_set_sides(&options, "img_size", 32, 16);
        att_model *model = make(p, "vit_tiny_patch16_224", &options);
        att_weights *weights;
        CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
        heard[0] = '\0';
        CHECK(p->context, load(p, model, weights));
        assert_string_equal(heard, known ? "pos_embed: resampled from 2 x 4 patches to 4 x 2" : "");
        att_weights_destroy(&weights);
        att_model_destroy(&model);
    }
}

/* 49 positions: the class token and 6 x 8 patches, as the file beside the weights says. */
PLACE_TEST(the_file_beside_the_weights_says_their_grid)
{
    static const int asked[][2] = {{64, 48}, {80, 80}};
    static const char *const told[] = {"pos_embed: resampled from 6 x 8 patches to 8 x 6",
                                       "pos_embed: resampled from 6 x 8 patches to 10 x 10"};
    listen_to(p);
    att_option_values options = small();
    att_options_set_sides(&options, "img_size", 48, 64);
    write_model(p, "vit_tiny_patch16_224", &options, false);
    write_beside(p, "config.json",
                 "{\"architecture\": \"vit_tiny_patch16_224\", \"model_args\": {\"img_size\": [48, 64], "
                 "\"patch_size\": 8, \"embed_dim\": 32, \"depth\": 2, \"num_heads\": 2}}");
    for (int i = 0; i < 2; i++) {
        att_option_values flags = att_options_none();
        att_identity identity;
        att_weights *weights;
        att_options_set_sides(&flags, "img_size", asked[i][0], asked[i][1]);
        CHECK(p->context, identify(p, NULL, &flags, &identity));
        att_model *model = make(p, identity.name, &identity.options);
        CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
        heard[0] = '\0';
        CHECK(p->context, load(p, model, weights));
        assert_string_equal(heard, told[i]);
        att_weights_destroy(&weights);
        att_model_destroy(&model);
    }
}

/* Tables that differ in more than their grid. */
PLACE_TEST(other_tables_are_refused)
{
    static const struct {
        const char *words;
        int64_t dims[3];
        att_safetensors_dtype dtype;
    } files[] = {
        {"\"pos_embed\" is [1, 18, 32], not [1, 17, 32]: it was made for another grid",
         {1, 18, 32},
         ATT_SAFETENSORS_F32},
        {"\"pos_embed\" is [1, 16, 32], not [1, 17, 32]: it was made for another grid",
         {1, 16, 32},
         ATT_SAFETENSORS_F32},
        {"1 mis-shaped: pos_embed F32 [1, 10, 16] instead of [1, 17, 32]", {1, 10, 16}, ATT_SAFETENSORS_F32},
        {"1 mis-shaped: pos_embed F32 [2, 10, 32] instead of [1, 17, 32]", {2, 10, 32}, ATT_SAFETENSORS_F32},
        {"1 mis-shaped: pos_embed I32 [1, 10, 32] instead of [1, 17, 32]", {1, 10, 32}, ATT_SAFETENSORS_I32},
        {"\"pos_embed\" is [1, 1, 32], not [1, 17, 32]: it was made for another grid", {1, 1, 32}, ATT_SAFETENSORS_F32},
    };
    att_option_values options = small();
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        tensors t = tensors_of(model);
        for (int n = 0; n < t.count; n++)
            if (strcmp(t.items[n].name, "pos_embed") == 0) {
                t.items[n].shape = att_shape_of(files[i].dims[0], files[i].dims[1], files[i].dims[2]);
                t.items[n].dtype = files[i].dtype;
            }
        write_tensors(p, &t, NULL);
        mismatch(p, model, files[i].words);
    }
    att_model_destroy(&model);
}

/* Weights of a plain network are loaded into one with a module, another grid and other classes; the log reports all
 * three. */
PLACE_TEST(a_module_that_is_new_starts_anew)
{
    listen_to(p);
    att_option_values options = small();
    write_model(p, "vit_tiny_patch16_224", &options, false);
    att_options_set_text(&options, "modules", "cb_s:init=0.25");
    att_options_set(&options, "img_size", 24);
    att_options_set(&options, "num_classes", 5);
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    att_weights *weights;
    att_new_head head;
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    CHECK(p->context, att_weights_initialise(weights, 1));
    assert_int_equal(load(p, model, weights), ATT_ERR_MISMATCH);
    says(att_context_message(p->context), "2 missing: blocks.0.mlp.cb.weight, blocks.1.mlp.cb.weight");
    CHECK(p->context, load_pretrained(p, model, weights, &head));
    assert_string_equal(head.names, "head.weight, head.bias");
    says(heard, "blocks.0.mlp.cb.weight and 1 more like it keep their initial values: ");
    float values[32];
    CHECK(p->context, att_weights_get(weights, -1, att_weights_find(weights, "blocks.1.mlp.cb.weight"), values, 32));
    for (int i = 0; i < 32; i++)
        assert_true(values[i] == 0.25F);
    /* A file with this parameter in one block is not the file of a plain network. */
    tensors t = tensors_of(model);
    for (int i = 0; i < t.count; i++)
        if (strcmp(t.items[i].name, "blocks.1.mlp.cb.weight") == 0)
            t.items[i] = t.items[--t.count];
    write_tensors(p, &t, NULL);
    assert_int_equal(load_pretrained(p, model, weights, &head), ATT_ERR_MISMATCH);
    says(att_context_message(p->context), "1 missing: blocks.1.mlp.cb.weight");
    att_weights_destroy(&weights);
    att_model_destroy(&model);
}

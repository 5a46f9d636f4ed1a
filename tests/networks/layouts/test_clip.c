/* What the side files of CLIP and SigLIP leave open, and what of their files is left out. Their answers are compared in
 * test_transformers.c. */
#include <attscope/models.h>

#include "base/io/scratch.h"
#include "context.h"
#include "networks/layouts/layout.h"

SHARED_CONTEXT(threads, 1)

enum { WIDTH = 8, SIDE = 2 /* of a patch */, PATCHES = 9, MOST_TENSORS = 48 };

typedef struct made {
    att_safetensors_tensor tensors[MOST_TENSORS];
    char names[MOST_TENSORS][96];
    int count;
} made;

static const float numbers[8 * WIDTH * WIDTH];

/* Adds the tensor "<scope><name>". */
static void put(made *m, const char *scope, const char *name, att_shape shape)
{
    assert_true(m->count < MOST_TENSORS && att_shape_count(shape) <= (int64_t)(sizeof numbers / sizeof *numbers));
    snprintf(m->names[m->count], sizeof m->names[0], "%s%s", scope, name);
    m->tensors[m->count] = (att_safetensors_tensor){m->names[m->count], ATT_SAFETENSORS_F32, shape, numbers};
    m->count++;
}

/* columns 0: a norm */
static void put_layer(made *m, const char *scope, int rows, int columns)
{
    put(m, scope, ".weight", columns ? att_shape_of(rows, columns) : att_shape_of(rows));
    put(m, scope, ".bias", att_shape_of(rows));
}

#define NETWORK "vision_model."
#define BLOCK NETWORK "encoder.layers.0."

/* Adds what CLIP and SigLIP have in common, with one block. */
static void put_network(made *m, int positions)
{
    put(m, NETWORK, "embeddings.position_embedding.weight", att_shape_of(positions, WIDTH));
    put(m, NETWORK, "embeddings.position_ids", att_shape_of(1, positions));
    put_layer(m, BLOCK "layer_norm1", WIDTH, 0);
    put_layer(m, BLOCK "self_attn.q_proj", WIDTH, WIDTH);
    put_layer(m, BLOCK "self_attn.k_proj", WIDTH, WIDTH);
    put_layer(m, BLOCK "self_attn.v_proj", WIDTH, WIDTH);
    put_layer(m, BLOCK "self_attn.out_proj", WIDTH, WIDTH);
    put_layer(m, BLOCK "layer_norm2", WIDTH, 0);
    put_layer(m, BLOCK "mlp.fc1", 2 * WIDTH, WIDTH);
    put_layer(m, BLOCK "mlp.fc2", WIDTH, 2 * WIDTH);
    put_layer(m, NETWORK "post_layernorm", WIDTH, 0);
}

static void put_clip(made *m)
{
    put(m, NETWORK, "embeddings.class_embedding", att_shape_of(WIDTH));
    put(m, NETWORK, "embeddings.patch_embedding.weight", att_shape_of(WIDTH, 3, SIDE, SIDE));
    put_layer(m, NETWORK "pre_layrnorm", WIDTH, 0);
    put_network(m, PATCHES + 1);
}

static void put_siglip2(made *m, int channels)
{
    put_layer(m, NETWORK "embeddings.patch_embedding", WIDTH, channels * SIDE * SIDE);
    put_network(m, PATCHES);
}

static void put_texts(made *m)
{
    put_layer(m, "text_model.encoder.layers.0.mlp.fc1", WIDTH, WIDTH);
    put_layer(m, "text_model.final_layer_norm", WIDTH, 0);
    put(m, "", "logit_scale", att_shape_of(1));
}

/* Writes the tensors, and config.json beside them. Sets self->path to theirs. */
static void save(scratch *self, const made *m, const char *config)
{
    snprintf(self->path, sizeof self->path, "%s/config.json", self->folder);
    FILE *out = fopen(self->path, "w");
    assert_non_null(out);
    fputs(config, out);
    fclose(out);
    snprintf(self->path, sizeof self->path, "%s/model.safetensors", self->folder);
    const att_safetensors_content content = {.tensors = m->tensors, .tensor_count = m->count};
    CHECK(self->context, att_safetensors_write(self->context, self->path, &content));
}

static att_status open_with(scratch *self, const made *m, const char *config, att_tensors **file)
{
    save(self, m, config);
    return att_model_open_file(self->context, self->path, file);
}

static void identify(scratch *self, const made *m, const char *config, att_identity *identity)
{
    att_tensors *file;
    CHECK(self->context, open_with(self, m, config, &file));
    CHECK(self->context, att_model_identify(self->context, file, NULL, NULL, NULL, identity));
    att_tensors_close(&file);
}

static void check_text(const att_identity *identity, const char *key, const char *expected)
{
    assert_string_equal(att_options_text(&identity->options, key), expected);
}

static void check_number(const att_identity *identity, const char *key, double expected)
{
    assert_float_equal(att_options_number(&identity->options, key, -1), expected, 1e-12);
}

SCRATCH_TEST(settings_of_clip_that_are_missing_are_transformers_defaults)
{
    made m = {.count = 0};
    att_identity identity;
    put_clip(&m);
    identify(self, &m, "{\"model_type\": \"clip\", \"vision_config\": {\"num_attention_heads\": 4}}", &identity);
    check_text(&identity, "act_layer", "quick_gelu");
    check_number(&identity, "norm_eps", 1e-5);
    check_number(&identity, "num_heads", 4);
    check_text(&identity, "pos_embed_resize", "bicubic_plain");
}

SCRATCH_TEST(an_older_description_of_clip_replaces_the_other)
{
    made m = {.count = 0};
    att_identity identity;
    put_clip(&m);
    identify(self, &m,
             "{\"model_type\": \"clip\", \"vision_config\": {\"num_attention_heads\": 2, \"layer_norm_eps\": 0.1},"
             "\"vision_config_dict\": {\"num_attention_heads\": 4, \"hidden_act\": \"gelu\"}}",
             &identity);
    check_text(&identity, "act_layer", "gelu");
    check_number(&identity, "norm_eps", 1e-5);
    check_number(&identity, "num_heads", 4);
    identify(self, &m,
             "{\"model_type\": \"clip\", \"vision_config\": {\"num_attention_heads\": 2, \"layer_norm_eps\": 0.1}, "
             "\"vision_config_dict\": null}",
             &identity);
    check_number(&identity, "num_heads", 2);
    check_number(&identity, "norm_eps", 0.1);
}

/* Checks the name that CLIP's layout gives to the tensors of the network `like` beside this config.json. */
static void check_name(const char *like, const char *config, const char *expected)
{
    enum { MOST = 256 };
    att_safetensors_tensor tensors[MOST];
    att_option_values options = att_options_none();
    att_config found = att_config_none();
    att_tensors *file;
    att_model *model;
    must(att_model_create(context, like, &options, ATT_F32, &model));
    const att_graph *graph = att_model_graph(model);
    const int count = att_graph_parameter_count(graph);
    assert_true(count <= MOST);
    for (int i = 0; i < count; i++) {
        const att_parameter_info parameter = att_graph_parameter_at(graph, i);
        tensors[i] = (att_safetensors_tensor){parameter.name, ATT_SAFETENSORS_F32, parameter.shape, numbers};
    }
    must(att_tensors_borrow(context, tensors, count, &file));
    att_tensors_forget(file);
    json_t *root = json_loads(config, 0, NULL);
    const att_layout_source source = {context, file, "config.json", root, root};
    must(att_layout_configure(att_layout_of_type("clip"), &source, &found));
    assert_string_equal(found.name, expected);
    json_decref(root);
    att_tensors_close(&file);
    att_model_destroy(&model);
}

TEST(a_network_is_named_after_one_of_its_size_and_activation)
{
    static const char like[] = "vit_base_patch32_clip_224";
    check_name(like, "{\"hidden_act\": \"gelu\"}", "vit_base_patch32_clip_224");
    check_name(like, "{\"hidden_act\": \"quick_gelu\"}", "vit_base_patch32_clip_quickgelu_224");
    check_name(like, "{}", "vit_base_patch32_clip_quickgelu_224");
    check_name(like, "{\"hidden_act\": \"relu\"}", "vit_base_patch32_clip_quickgelu_224");
    check_name("vit_tiny_patch16_224", "{\"hidden_act\": \"gelu\"}", "vit_base_patch16_clip_quickgelu_224");
}

SCRATCH_TEST(tensors_that_are_left_out_are_named)
{
    static const char pair[] = "{\"model_type\": \"clip\", \"vision_config\": {\"num_attention_heads\": 4}}";
    made m = {.count = 0};
    att_tensors *file;
    put_clip(&m);
    CHECK(self->context, open_with(self, &m, pair, &file));
    assert_string_equal(att_tensors_skipped(file), "");
    att_tensors_close(&file);
    put_texts(&m);
    put_layer(&m, "classifier", 2, WIDTH);
    CHECK(self->context, open_with(self, &m, pair, &file));
    assert_string_equal(att_tensors_skipped(file), "text_model.* (4), logit_scale, post_layernorm.* (2)");
    att_tensors_close(&file);
}

SCRATCH_TEST(a_classifier_of_clip_that_is_missing_is_refused)
{
    made m = {.count = 0};
    att_tensors *file;
    put_clip(&m);
    assert_fails(self->context,
                 open_with(self, &m,
                           "{\"model_type\": \"clip\", \"architectures\": [\"CLIPForImageClassification\"], "
                           "\"vision_config\": {\"num_attention_heads\": 4}}",
                           &file),
                 ATT_ERR_UNSUPPORTED, "but the file has no tensor \"classifier.weight\"");
}

SCRATCH_TEST(images_of_siglip_2_have_as_many_patches_as_there_are_positions)
{
    made m = {.count = 0};
    att_identity identity;
    put_siglip2(&m, 3);
    identify(self, &m,
             "{\"model_type\": \"siglip2_vision_model\", \"num_attention_heads\": 4, \"image_size\": 224, "
             "\"vision_use_head\": false}",
             &identity);
    check_number(&identity, "img_size", 3 * SIDE);
    assert_int_equal(identity.preprocess.height, 3 * SIDE);
    assert_int_equal(identity.preprocess.width, 3 * SIDE);
    check_text(&identity, "pos_embed_resize", "bilinear_antialiased");
    check_text(&identity, "act_layer", "gelu_tanh");
    check_text(&identity, "global_pool", "avg");
    check_number(&identity, "norm_eps", 1e-6);
}

SCRATCH_TEST(patches_of_siglip_2_with_other_channels_are_refused)
{
    made twelve = {.count = 0}, four = {.count = 0};
    att_tensors *file;
    put_siglip2(&twelve, 12);
    assert_fails(self->context,
                 open_with(self, &twelve,
                           "{\"model_type\": \"siglip2_vision_model\", \"num_attention_heads\": 4, "
                           "\"num_channels\": 12}",
                           &file),
                 ATT_ERR_UNSUPPORTED, "num_channels is 12; attscope has 3 only");
    put_siglip2(&four, 4);
    assert_fails(
        self->context,
        open_with(self, &four, "{\"model_type\": \"siglip2_vision_model\", \"num_attention_heads\": 4}", &file),
        ATT_ERR_FORMAT, "is no layer for patches of square sides with three channels");
}

SCRATCH_TEST(memory_may_run_out_while_a_file_is_opened)
{
    made m = {.count = 0};
    put_clip(&m);
    put_texts(&m);
    put(&m, "", "visual_projection.weight", att_shape_of(4, WIDTH));
    save(self, &m, "{\"model_type\": \"clip\", \"vision_config\": {\"num_attention_heads\": 4}}");
    lack of = lack_of_memory(self->context, &self->memory);
    while (lack_again(&of)) {
        att_tensors *file = NULL;
        of.status = att_model_open_file(self->context, self->path, &file);
        att_tensors_close(&file);
    }
}

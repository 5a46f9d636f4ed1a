/* Opening files beside a config.json of the transformers library, with right and wrong content. */
#include <attscope/models.h>

#include "base/io/scratch.h"
#include "golden_path.h"
#include "networks/layouts/layout.h"

#define FITTING "{\"model_type\": \"vit\", \"image_size\": 8, \"num_attention_heads\": 2"

static void copy_golden(scratch *self, const char *name, const char *as)
{
    static char bytes[1 << 16];
    char path[4096];
    golden_path(name, path, sizeof path);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s cannot be opened", path);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(size, 1, sizeof bytes - 1);
    scratch_write_as(self, as, bytes, size);
}

/* Opens a ViT's weights beside this config.json. */
static att_status open_beside(scratch *self, const char *config, att_tensors **file)
{
    char path[512];
    copy_golden(self, "layouts/vit/model.safetensors", "model.safetensors");
    scratch_text(self, "config.json", config);
    return att_model_open_file(self->context, scratch_path(self, "model.safetensors", path), file);
}

static att_status identify_beside(scratch *self, const char *config, att_identity *identity)
{
    att_tensors *file = NULL;
    att_status status = open_beside(self, config, &file);
    if (status == ATT_OK)
        status = att_model_identify(self->context, file, NULL, NULL, NULL, identity);
    att_tensors_close(&file);
    return status;
}

/* --- content of config.json --------------------------------------------------------------------------------------- */

static void refuses(scratch *self, att_status status, const char *config, const char *part)
{
    att_tensors *file = NULL;
    assert_fails(self->context, open_beside(self, config, &file), status, part);
    assert_null(file);
    assert_message_has(self, "config.json: ");
}

SCRATCH_TEST(a_config_that_is_no_object_is_refused)
{
    att_identity identity;
    refuses(self, ATT_ERR_FORMAT, "", "not valid JSON");
    refuses(self, ATT_ERR_FORMAT, "{\"model_type\": \"vit\"", "not valid JSON");
    refuses(self, ATT_ERR_FORMAT, "3", "not valid JSON");
    assert_fails(self->context, identify_beside(self, "[\"vit\"]", &identity), ATT_ERR_FORMAT,
                 "an object was expected");
}

SCRATCH_TEST(unknown_model_types_are_refused)
{
    refuses(self, ATT_ERR_UNSUPPORTED, "{\"model_type\": \"vit_unheard_of\"}",
            "model_type is \"vit_unheard_of\"; attscope opens these: ");
    refuses(self, ATT_ERR_UNSUPPORTED, "{\"model_type\": \"\"}", "model_type is \"\"");
    refuses(self, ATT_ERR_UNSUPPORTED, "{\"model_type\": \"vit deit\"}", "model_type is \"vit deit\"");
}

/* Every type of the list, beside weights that are not its own. */
SCRATCH_TEST(weights_of_another_network_are_refused)
{
    const att_layout *layout;
    for (int i = 0; (layout = att_layout_at(i)); i++) {
        char types[256], config[512], name[128];
        snprintf(types, sizeof types, "%s", layout->types ? layout->types : "");
        snprintf(name, sizeof name, "describes %s, but ", layout->name);
        for (char *type = strtok(types, " "); type; type = strtok(NULL, " ")) {
            snprintf(config, sizeof config, "{\"model_type\": \"%s\"}", type);
            if (layout != att_layout_of_type("vit") && layout != att_layout_of_type("beit"))
                refuses(self, ATT_ERR_UNSUPPORTED, config, name);
        }
    }
}

SCRATCH_TEST(a_text_that_is_no_model_type_is_no_transformers_network)
{
    att_identity identity;
    assert_int_not_equal(identify_beside(self, "{\"model_type\": 5}", &identity), ATT_OK);
    assert_message_has(self, "a sign of the transformers library's names");
}

SCRATCH_TEST(settings_of_a_wrong_type_are_refused)
{
    static const struct {
        const char *setting, *part;
    } cases[] = {
        {"\"image_size\": \"big\"", "image_size: \"img_size\" must be one or two whole numbers"},
        {"\"image_size\": 1000000000", "image_size: "},
        {"\"image_size\": [8, 8, 8]", "image_size: "},
        {"\"image_size\": {\"height\": 8}", "image_size: "},
        {"\"num_attention_heads\": 2.5", "num_attention_heads: \"num_heads\" must be a whole number"},
        {"\"num_attention_heads\": 0", "num_attention_heads: "},
        {"\"layer_norm_eps\": \"small\"", "layer_norm_eps: \"norm_eps\" must be a number"},
        {"\"layer_norm_eps\": -1", "layer_norm_eps: "},
        {"\"layer_norm_eps\": 1e400", "not valid JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char config[256];
        snprintf(config, sizeof config, "{\"model_type\": \"vit\", %s}", cases[i].setting);
        refuses(self, ATT_ERR_FORMAT, config, cases[i].part);
    }
    refuses(self, ATT_ERR_UNSUPPORTED, FITTING ", \"hidden_act\": \"mish\"}", "hidden_act is \"mish\"");
    refuses(self, ATT_ERR_UNSUPPORTED, FITTING ", \"hidden_act\": 3}", "hidden_act is ");
}

/* As many blanks as names of ImageNet-22k's classes take. */
SCRATCH_TEST(a_long_config_opens)
{
    static char config[ATT_JSON_SETTINGS_BYTES + 2];
    att_identity identity;
    memset(config, ' ', sizeof config - 1);
    memcpy(config, FITTING "}", sizeof FITTING);
    config[2 << 20] = '\0';
    CHECK(self->context, identify_beside(self, config, &identity));
    config[2 << 20] = ' ';
    assert_fails(self->context, identify_beside(self, config, &identity), ATT_ERR_FORMAT,
                 "larger than the limit of 4194304");
}

SCRATCH_TEST(missing_settings_are_those_of_the_model_type)
{
    att_identity identity;
    CHECK(self->context, identify_beside(self, FITTING "}", &identity));
    assert_true(att_options_number(&identity.options, "norm_eps", 0) == 1e-12);
    assert_string_equal(att_options_text(&identity.options, "act_layer"), "gelu");
    CHECK(self->context, identify_beside(self, FITTING ", \"layer_norm_eps\": null}", &identity));
    assert_true(att_options_number(&identity.options, "norm_eps", 0) == 1e-12);
    /* 12 heads do not divide this file's width. */
    assert_fails(self->context, identify_beside(self, "{\"model_type\": \"vit\", \"image_size\": 8}", &identity),
                 ATT_ERR_UNSUPPORTED, "embed_dim 8 is not a multiple of num_heads 12; flags, such as --num-heads");
}

SCRATCH_TEST(the_origin_names_the_side_files)
{
    att_identity identity;
    CHECK(self->context, identify_beside(self, FITTING "}", &identity));
    assert_non_null(strstr(identity.origin, "architecture: config.json (vit_base_patch16_224) with img_size 8"));
    assert_non_null(strstr(identity.origin, "preprocessing: the defaults of its model type"));
    assert_non_null(strstr(identity.brief, "names and settings of transformers' ViT, changed to timm's"));
    scratch_text(self, "preprocessor_config.json", "{\"image_mean\": [0.1, 0.2, 0.3]}");
    CHECK(self->context, identify_beside(self, FITTING "}", &identity));
    assert_non_null(strstr(identity.origin, "preprocessing: preprocessor_config.json"));
    assert_true(identity.preprocess.mean[1] == 0.2 && identity.preprocess.std[1] == 0.5);
}

/* Older versions of transformers write no settings of images into it. */
SCRATCH_TEST(a_processor_of_images_and_texts_takes_precedence)
{
    att_identity identity;
    scratch_text(self, "preprocessor_config.json", "{\"image_mean\": [0.1, 0.2, 0.3]}");
    scratch_text(self, "processor_config.json", "{\"processor_class\": \"CLIPProcessor\", \"image_processor\": null}");
    CHECK(self->context, identify_beside(self, FITTING "}", &identity));
    assert_non_null(strstr(identity.origin, "preprocessing: preprocessor_config.json"));
    assert_true(identity.preprocess.mean[1] == 0.2);
    scratch_text(self, "processor_config.json", "{\"image_processor\": {\"image_mean\": [0.3, 0.4, 0.5]}}");
    CHECK(self->context, identify_beside(self, FITTING "}", &identity));
    assert_non_null(strstr(identity.origin, "preprocessing: processor_config.json"));
    assert_true(identity.preprocess.mean[1] == 0.4);
    scratch_text(self, "processor_config.json", "{\"image_processor\": 5}");
    assert_fails(self->context, identify_beside(self, FITTING "}", &identity), ATT_ERR_FORMAT,
                 "processor_config.json: the settings of images must be an object");
}

SCRATCH_TEST(a_preprocessing_that_cannot_be_read_is_refused)
{
    att_identity identity;
    scratch_text(self, "preprocessor_config.json", "{");
    assert_fails(self->context, identify_beside(self, FITTING "}", &identity), ATT_ERR_FORMAT,
                 "preprocessor_config.json: not valid JSON");
    scratch_text(self, "preprocessor_config.json", "{\"image_mean\": \"grey\"}");
    assert_fails(self->context, identify_beside(self, FITTING "}", &identity), ATT_ERR_FORMAT,
                 "preprocessor_config.json");
}

/* --- kinds of files ----------------------------------------------------------------------------------------------- */

static void write_file(scratch *self, const char *name, const att_safetensors_tensor *tensors, int count,
                       const char *identity)
{
    char path[512];
    const att_safetensors_pair metadata = {ATT_IDENTITY_KEY, identity};
    const att_safetensors_content content = {
        .tensors = tensors, .tensor_count = count, .metadata = &metadata, .metadata_count = identity != NULL};
    CHECK(self->context, att_safetensors_write(self->context, scratch_path(self, name, path), &content));
}

/* attscope's own checkpoint describes itself, whatever lies beside it. */
SCRATCH_TEST(a_file_of_attscope_is_left_as_it_is)
{
    static const float zero[4];
    static const att_safetensors_tensor tensor = {"embeddings.cls_token", ATT_SAFETENSORS_F32, {1, {4}}, zero};
    char path[512];
    att_tensors *file;
    write_file(self, "model.safetensors", &tensor, 1, "{}");
    scratch_text(self, "config.json", "{\"model_type\": \"vit_unheard_of\"}");
    CHECK(self->context, att_model_open_file(self->context, scratch_path(self, "model.safetensors", path), &file));
    assert_true(att_tensors_find(file, "embeddings.cls_token") == 0);
    att_tensors_close(&file);
}

enum { MOST = 64, LARGEST = 512 };

/* Writes the weights of the golden ViT as two shards and an index. Parts of one tensor come into different shards. */
static void write_shards(scratch *self)
{
    static float values[MOST][LARGEST];
    att_safetensors_tensor shards[2][MOST];
    int counts[2] = {0, 0};
    char path[512], index[1 << 14] = "{\"weight_map\": {";
    size_t length = strlen(index);
    att_tensors *whole;
    copy_golden(self, "layouts/vit/model.safetensors", "whole");
    CHECK(self->context, att_tensors_open(self->context, scratch_path(self, "whole", path), &whole));
    assert_in_range(att_tensors_count(whole), 2, MOST);
    for (int i = 0; i < att_tensors_count(whole); i++) {
        const att_tensors_info info = att_tensors_at(whole, i);
        const int shard = i % 2;
        assert_in_range(info.count, 1, LARGEST);
        CHECK(self->context, att_tensors_read_f32(whole, i, values[i], info.count));
        shards[shard][counts[shard]++] =
            (att_safetensors_tensor){info.name, ATT_SAFETENSORS_F32, info.shape, values[i]};
        length += (size_t)snprintf(index + length, sizeof index - length, "%s\"%s\": \"shard%d.safetensors\"",
                                   i ? ", " : "", info.name, shard);
    }
    assert_in_range(length, 1, sizeof index - 3);
    strcat(index, "}}");
    write_file(self, "shard0.safetensors", shards[0], counts[0], NULL);
    write_file(self, "shard1.safetensors", shards[1], counts[1], NULL);
    scratch_text(self, "model.safetensors.index.json", index);
    att_tensors_close(&whole);
}

static att_status open_shards(scratch *self)
{
    char path[512];
    att_tensors *file = NULL;
    att_identity identity;
    scratch_path(self, "model.safetensors.index.json", path);
    att_status status = att_model_open_file(self->context, path, &file);
    if (status == ATT_OK)
        status = att_model_identify(self->context, file, NULL, NULL, NULL, &identity);
    att_tensors_close(&file);
    return status;
}

SCRATCH_TEST(shards_are_opened_like_one_file)
{
    char path[512];
    att_tensors *one, *shards;
    write_shards(self);
    CHECK(self->context, open_beside(self, FITTING "}", &one));
    scratch_path(self, "model.safetensors.index.json", path);
    CHECK(self->context, att_model_open_file(self->context, path, &shards));
    assert_int_equal(att_tensors_count(one), att_tensors_count(shards));
    for (int i = 0; i < att_tensors_count(one); i++) {
        const att_tensors_info info = att_tensors_at(one, i);
        float a[LARGEST], b[LARGEST];
        const int j = att_tensors_find(shards, info.name);
        assert_true(j >= 0 && info.count <= LARGEST);
        CHECK(self->context, att_tensors_read_f32(one, i, a, info.count));
        CHECK(self->context, att_tensors_read_f32(shards, j, b, info.count));
        assert_memory_equal(a, b, sizeof(float[1]) * (size_t)info.count);
    }
    att_tensors_close(&one);
    att_tensors_close(&shards);
}

SCRATCH_TEST(failing_allocations_leave_nothing_behind)
{
    write_shards(self);
    scratch_text(self, "config.json", FITTING "}");
    scratch_text(self, "preprocessor_config.json", "{\"image_mean\": [0.1, 0.2, 0.3]}");
    assert_survives_lack_of_memory(self, open_shards);
}

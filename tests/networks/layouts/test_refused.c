/* Networks of the transformers library that attscope would compute otherwise, which it refuses. */
#include <string.h>
#include <unistd.h>

#include <attscope/models.h>

#include "base/core/memory.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "base/io/scratch.h"
#include "golden_path.h"

/* A setting that replaces that of a golden file. */
typedef struct change {
    const char *folder; /* in tests/goldens/layouts */
    const char *key, *value;
    const char *message; /* a part of it; NULL: the file opens */
    const char *tensor;  /* that the file has, too, with one element; NULL: none */
} change;

#define BEIT_TABLE "beit.encoder.relative_position_bias.relative_position_bias_table"
#define BEIT_INDEX "relative_position_bias.relative_position_index"
#define SWIN_INDEX "encoder.layers.0.blocks.0.attention.self.relative_position_index"

static const change changes[] = {
    {"beit", "image_size", "[8, 8]", .message = NULL},
    {"beit", "use_mean_pooling", "null", .message = NULL},
    {"beit", "layer_scale_init_value", "null", .message = NULL},
    {"beit", "image_size", "[8, 16]", .message = "image_size is 8 x 16; attscope opens networks of this type whose"},
    {"beit", "use_relative_position_bias", "false", .message = "use_relative_position_bias is off, but the tensors of"},
    {"beit", "use_shared_relative_position_bias", "true", .message = "use_shared_relative_position_bias is on, but"},
    {"beit", "use_absolute_position_embeddings", "true", .message = "use_absolute_position_embeddings is on, but"},
    {"beit", "layer_scale_init_value", "0", .message = "layer_scale_init_value is off, but"},
    {"beit", "use_mean_pooling", "false", .message = "use_mean_pooling is off, but"},
    {"beit_class", "use_mean_pooling", "true", .message = "use_mean_pooling is on, but"},
    {"beit_masked", "architectures", "[\"BeitModel\"]", .message = "use_mean_pooling is on, but"},
    {"beit", "use_shared_relative_position_bias", "true", .message = "are both true", .tensor = BEIT_TABLE},
    {"beit", "image_size", "8", .tensor = "beit.encoder.layer.0.attention.attention." BEIT_INDEX},
    {"beit_masked", "image_size", "8", .tensor = "beit.encoder." BEIT_INDEX},
    {"beit", "image_size", "8", .tensor = "beit.embeddings.mask_token"},
    {"beit", "hidden_act", "\"relu6\"", .message = "hidden_act is \"relu6\""},
    {"swin", "image_size", "16", .message = NULL},
    {"swin", "image_size", "[8, 16]", .message = "stage 2 has 2 x 4 tokens, which windows of 2 x 2 do not fill"},
    {"swin", "image_size", "12", .message = "stage 2 has 3 x 3 tokens, which windows of 2 x 2 do not fill"},
    {"swin", "image_size", "4", .message = "stage 2 has 1 x 1 tokens"},
    {"swin", "image_size", "9", .message = "image_size 9 is no multiple of the patches' 2 pixels"},
    {"swin", "window_size", "3", .message = "window_size is 3, but the tables"},
    {"swin", "window_size", "0", .message = "window_size must be a whole number above 0"},
    {"swin", "window_size", "[2, 2]", .message = "window_size must be a whole number above 0"},
    {"swin", "hidden_act", "\"relu\"", .message = "hidden_act is \"relu\"; attscope has \"gelu\" only"},
    {"swin", "layer_norm_eps", "1e-6", .message = "layer_norm_eps is 1e-06; attscope has 1e-05 only"},
    {"swin", "use_absolute_embeddings", "true",
     .message = "use_absolute_embeddings is true, which attscope does not support"},
    {"swin", "use_absolute_embeddings", "false", .tensor = "swin.embeddings.position_embeddings"},
    {"swin", "image_size", "8", .tensor = "swin." SWIN_INDEX},
    {"swinv2", "image_size", "8", .tensor = "swinv2." SWIN_INDEX},
    {"swinv2", "image_size", "8", .tensor = "swinv2.encoder.layers.0.blocks.0.attention.self.relative_coords_table"},
    {"swinv2", "window_size", "4", .message = NULL},
    {"swinv2", "image_size", "4", .message = NULL},
    {"swinv2", "image_size", "[8, 16]", .message = "stage 2 has 2 x 4 tokens"},
    {"swinv2", "image_size", "6", .message = "stage 1 has 3 x 3 tokens"},
    {"swinv2", "pretrained_window_sizes", "[3, 4]", .message = NULL},
    {"swinv2", "pretrained_window_sizes", "[3]",
     .message = "pretrained_window_sizes must be a list of whole numbers, one for"},
    {"swinv2", "pretrained_window_sizes", "[3, -1]",
     .message = "pretrained_window_sizes must be a list of whole numbers"},
    {"resnet", "hidden_act", "\"gelu\"", .message = "hidden_act is \"gelu\"; attscope has \"relu\" only"},
    {"resnet", "downsample_in_first_stage", "true",
     .message = "downsample_in_first_stage is true, which attscope does not"},
    {"resnet", "embedding_size", "4", .message = "embedding_size is not that of the network whose tensors"},
    {"resnet", "hidden_sizes", "[2, 4, 8, 12]", .message = "double from stage to stage"},
    {"resnet", "hidden_sizes", "[2, 4, 8, \"a\"]", .message = "double from stage to stage"},
    {"resnet", "hidden_sizes", "[2, 5, 10, 20]", .message = "double from stage to stage"},
    {"resnet_bottleneck", "hidden_sizes", "[5, 10, 20, 40]", .message = "begin with 4 times embedding_size"},
    {"resnet_bottleneck", "hidden_sizes", "null", .message = "begin with 4 times embedding_size"},
    {"resnet_bottleneck", "layer_type", "\"basic\"", .message = "layer_type is not that of the network whose tensors"},
    {"vit", "hidden_act", "\"gelu\"", .tensor = "vit.pooler.dense.weight", .message = "pooler.dense.weight"},
    {"vit", "num_hidden_layers", "1", .message = "num_hidden_layers is not that of the network whose tensors"},
    {"vit", "image_size", "6", .message = "image_size is not that of the network whose tensors"},
    {"vit", "image_size", "64", .message = "image_size is not that of the network whose tensors"},
    {"vit", "qkv_bias", "false", .message = "qkv_bias is not that of the network whose tensors"},
    {"dinov2", "use_swiglu_ffn", "true", .message = "use_swiglu_ffn is on, but the tensors of"},
    {"dinov2_base", "use_swiglu_ffn", "false", .message = "use_swiglu_ffn is off, but"},
    {"dinov3", "query_bias", "false", .message = "query_bias is off, but"},
    {"dinov3_value_bias", "query_bias", "null", .message = "query_bias is on, but"},
    {"dinov3", "key_bias", "true", .message = "key_bias is on, but"},
    {"dinov3_query_bias", "value_bias", "true", .message = "value_bias is on, but"},
    {"dinov3_value_bias", "proj_bias", "true", .message = "proj_bias is on, but"},
    {"dinov3_gated", "use_gated_mlp", "false", .message = "use_gated_mlp is off, but"},
    {"siglip_vision", "vision_use_head", "false", .message = "vision_use_head is off, but"},
    {"siglip_vision", "vision_use_head", "null", .message = NULL},
    {"swin", "depths", "[1, 9]", .message = "depths is not that of the network whose tensors"},
};

static void path_of(const change *c, const char *file, char path[4096])
{
    char name[256];
    snprintf(name, sizeof name, "layouts/%s/%s", c->folder, file);
    golden_path(name, path, 4096);
}

/* Writes the golden weights with another tensor at the end: 8 bytes for the header's length, the header, the data. */
static void write_weights(const scratch *self, const change *c, const char *path)
{
    char golden[4096], *data;
    size_t size;
    uint64_t length;
    path_of(c, "model.safetensors", golden);
    assert_int_equal(att_file_read(self->context, golden, 1 << 20, &data, &size), ATT_OK);
    memcpy(&length, data, sizeof length);
    const size_t start = sizeof length + length, end = size - start;
    json_t *header = json_loadb(data + sizeof length, length, 0, NULL);
    json_t *entry =
        json_pack("{s:s, s:[i], s:[i, i]}", "dtype", "F32", "shape", 1, "data_offsets", (int)end, (int)end + 4);
    json_object_set_new(header, c->tensor, entry);
    char *text = json_dumps(header, 0);
    length = strlen(text);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite(&length, sizeof length, 1, file);
    fwrite(text, 1, length, file);
    fwrite(data + start, 1, end, file);
    fwrite("\0\0\0\0", 1, 4, file);
    fclose(file);
    free(text);
    json_decref(header);
    att_free(self->context, data);
}

static void write_config(const change *c, const char *path)
{
    char golden[4096];
    path_of(c, "config.json", golden);
    json_t *root = json_load_file(golden, 0, NULL);
    assert_non_null(root);
    assert_int_equal(json_object_set_new(root, c->key, json_loads(c->value, JSON_DECODE_ANY, NULL)), 0);
    assert_int_equal(json_dump_file(root, path, 0), 0);
    json_decref(root);
}

/* Makes a folder with the golden weights and the configuration after the change. */
static void prepare(const scratch *self, const change *c, char weights[256])
{
    char golden[4096], config[256];
    snprintf(weights, 256, "%s/model.safetensors", self->folder);
    snprintf(config, sizeof config, "%s/config.json", self->folder);
    unlink(weights);
    path_of(c, "model.safetensors", golden);
    if (c->tensor)
        write_weights(self, c, weights);
    else
        assert_int_equal(symlink(golden, weights), 0);
    write_config(c, config);
}

SCRATCH_TEST(settings_that_attscope_lacks_are_refused)
{
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const change *c = &changes[i];
        char weights[256];
        att_tensors *file = NULL;
        prepare(self, c, weights);
        const att_status status = att_model_open_file(self->context, weights, &file);
        const bool refused = status == ATT_ERR_UNSUPPORTED || status == ATT_ERR_FORMAT;
        if (c->message ? !refused || !strstr(att_context_message(self->context), c->message) : status != ATT_OK)
            fail_msg("%s, %s %s: %s, \"%s\"", c->folder, c->key, c->value, att_status_name(status),
                     att_context_message(self->context));
        for (int t = 0; status == ATT_OK && t < att_tensors_count(file); t++)
            assert_null(c->tensor && strstr(att_tensors_at(file, t).name, c->tensor));
        if (status == ATT_OK)
            att_tensors_close(&file);
    }
}

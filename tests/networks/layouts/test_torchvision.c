/* Files of torchvision, which have no settings beside them: names, options and preprocessing. */
#include "base/io/scratch.h"

#include <attscope/models.h>

enum { MOST = 32, WIDTH = 64, CLASSES = 3 };

static float values[3 * WIDTH * WIDTH * 4]; /* 0, 1, 2, ... */

typedef struct content {
    att_safetensors_tensor tensors[MOST];
    int count;
} content;

static void add(content *c, const char *name, att_shape shape)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        values[i] = (float)i;
    c->tensors[c->count++] =
        (att_safetensors_tensor){.name = name, .dtype = ATT_SAFETENSORS_F32, .shape = shape, .data = values};
}

#define BLOCK "encoder.layers.encoder_layer_0."

/* A ViT of one block for images of 32 x 32 pixels. first, second: its MLP's layers. */
static content small_vit(const char *first[2], const char *second[2])
{
    content c = {.count = 0};
    add(&c, "class_token", att_shape_of(1, 1, WIDTH)), add(&c, "conv_proj.weight", att_shape_of(WIDTH, 3, 16, 16));
    add(&c, "conv_proj.bias", att_shape_of(WIDTH)), add(&c, "encoder.pos_embedding", att_shape_of(1, 5, WIDTH));
    add(&c, BLOCK "ln_1.weight", att_shape_of(WIDTH)), add(&c, BLOCK "ln_1.bias", att_shape_of(WIDTH));
    add(&c, BLOCK "self_attention.in_proj_weight", att_shape_of(3 * WIDTH, WIDTH));
    add(&c, BLOCK "self_attention.in_proj_bias", att_shape_of(3 * WIDTH));
    add(&c, BLOCK "self_attention.out_proj.weight", att_shape_of(WIDTH, WIDTH));
    add(&c, BLOCK "self_attention.out_proj.bias", att_shape_of(WIDTH));
    add(&c, BLOCK "ln_2.weight", att_shape_of(WIDTH)), add(&c, BLOCK "ln_2.bias", att_shape_of(WIDTH));
    add(&c, first[0], att_shape_of(2 * WIDTH, WIDTH)), add(&c, first[1], att_shape_of(2 * WIDTH));
    add(&c, second[0], att_shape_of(WIDTH, 2 * WIDTH)), add(&c, second[1], att_shape_of(WIDTH));
    add(&c, "encoder.ln.weight", att_shape_of(WIDTH)), add(&c, "encoder.ln.bias", att_shape_of(WIDTH));
    add(&c, "heads.head.weight", att_shape_of(CLASSES, WIDTH)), add(&c, "heads.head.bias", att_shape_of(CLASSES));
    return c;
}

static att_tensors *write_and_open(scratch *self, const char *path, const content *c)
{
    const att_safetensors_content whole = {.tensors = c->tensors, .tensor_count = c->count};
    att_tensors *file;
    CHECK(self->context, att_safetensors_write(self->context, path, &whole));
    CHECK(self->context, att_model_open_file(self->context, path, &file));
    return file;
}

SCRATCH_TEST(a_vit_opens_under_its_newer_and_older_names)
{
    static const char *names[][2][2] = {
        {{BLOCK "mlp.0.weight", BLOCK "mlp.0.bias"}, {BLOCK "mlp.3.weight", BLOCK "mlp.3.bias"}},
        {{BLOCK "mlp.linear_1.weight", BLOCK "mlp.linear_1.bias"},
         {BLOCK "mlp.linear_2.weight", BLOCK "mlp.linear_2.bias"}}};
    for (int age = 0; age < 2; age++) {
        content c = small_vit(names[age][0], names[age][1]);
        att_tensors *file = write_and_open(self, self->path, &c);
        att_option_values flags = att_options_none();
        att_identity identity;
        assert_fails(self->context, att_model_identify(self->context, file, NULL, NULL, NULL, &identity),
                     ATT_ERR_UNSUPPORTED, "give num_heads (--num-heads N)");
        att_options_set(&flags, "num_heads", 2);
        CHECK(self->context, att_model_identify(self->context, file, NULL, NULL, &flags, &identity));
        assert_true(att_options_number(&identity.options, "norm_eps", 0) == 1e-6);
        assert_int_equal(att_options_number(&identity.options, "num_classes", 0), CLASSES);
        assert_int_equal(identity.preprocess.height, 32);
        assert_true(identity.preprocess.crop_pct == 0.875);
        assert_string_equal(identity.preprocess.interpolation, "bilinear");
        assert_true(att_tensors_find(file, "blocks.0.mlp.fc2.bias") >= 0);
        assert_int_equal(att_tensors_count(file), c.count);
        att_tensors_close(&file);
    }
}

SCRATCH_TEST(the_name_of_a_file_tells_its_preprocessing)
{
    static const char *first[] = {BLOCK "mlp.0.weight", BLOCK "mlp.0.bias"},
                      *second[] = {BLOCK "mlp.3.weight", BLOCK "mlp.3.bias"};
    char path[256];
    content c = small_vit(first, second);
    snprintf(path, sizeof path, "%s/vit_b_16_swag-9ac1b537.pth", self->folder);
    att_tensors *file = write_and_open(self, path, &c);
    att_option_values flags = att_options_none();
    att_identity identity;
    att_options_set(&flags, "num_heads", 2);
    CHECK(self->context, att_model_identify(self->context, file, NULL, NULL, &flags, &identity));
    assert_true(identity.preprocess.crop_pct == 1);
    assert_string_equal(identity.preprocess.interpolation, "bicubic");
    att_tensors_close(&file);
}

/* Such a file is another program's. */
SCRATCH_TEST(a_file_beside_config_json_is_not_taken_for_torchvisions)
{
    static const char *first[] = {BLOCK "mlp.0.weight", BLOCK "mlp.0.bias"},
                      *second[] = {BLOCK "mlp.3.weight", BLOCK "mlp.3.bias"};
    static const char *const configs[] = {"{\"architecture\": \"vit_base_patch16_224\"}", "[]"};
    content c = small_vit(first, second);
    for (int i = 0; i < 2; i++) {
        scratch_text(self, "config.json", configs[i]);
        att_tensors *file = write_and_open(self, self->path, &c);
        assert_true(att_tensors_find(file, "class_token") >= 0);
        att_tensors_close(&file);
    }
}

/* torchvision sets the bias of keys to 0 when it runs; timm has none. */
SCRATCH_TEST(a_swin_v2_has_no_bias_of_keys)
{
    static const char *const names[] = {"layers.0.blocks.0.attn.q_bias", "layers.0.blocks.0.attn.v_bias"};
    content c = {.count = 0};
    add(&c, "features.0.0.weight", att_shape_of(WIDTH, 3, 4, 4)), add(&c, "features.0.0.bias", att_shape_of(WIDTH));
    add(&c, "features.0.2.weight", att_shape_of(WIDTH)), add(&c, "features.0.2.bias", att_shape_of(WIDTH));
    add(&c, "features.1.0.attn.logit_scale", att_shape_of(2, 1, 1));
    add(&c, "features.1.0.attn.relative_coords_table", att_shape_of(1, 15, 15, 2));
    add(&c, "features.1.0.attn.qkv.weight", att_shape_of(3 * WIDTH, WIDTH));
    add(&c, "features.1.0.attn.qkv.bias", att_shape_of(3 * WIDTH));
    add(&c, "features.1.0.attn.cpb_mlp.0.weight", att_shape_of(512, 2));
    add(&c, "features.1.0.attn.cpb_mlp.0.bias", att_shape_of(512));
    add(&c, "features.1.0.attn.cpb_mlp.2.weight", att_shape_of(2, 512));
    add(&c, "features.1.0.attn.proj.weight", att_shape_of(WIDTH, WIDTH));
    add(&c, "features.1.0.attn.proj.bias", att_shape_of(WIDTH));
    add(&c, "features.1.0.norm1.weight", att_shape_of(WIDTH)), add(&c, "features.1.0.norm1.bias", att_shape_of(WIDTH));
    add(&c, "features.1.0.norm2.weight", att_shape_of(WIDTH)), add(&c, "features.1.0.norm2.bias", att_shape_of(WIDTH));
    add(&c, "features.1.0.mlp.0.weight", att_shape_of(WIDTH, WIDTH)),
        add(&c, "features.1.0.mlp.0.bias", att_shape_of(WIDTH));
    add(&c, "features.1.0.mlp.3.weight", att_shape_of(WIDTH, WIDTH)),
        add(&c, "features.1.0.mlp.3.bias", att_shape_of(WIDTH));
    add(&c, "norm.weight", att_shape_of(WIDTH)), add(&c, "norm.bias", att_shape_of(WIDTH));
    att_tensors *file = write_and_open(self, self->path, &c);
    for (int part = 0; part < 2; part++) {
        float read[WIDTH];
        CHECK(self->context, att_tensors_read_f32(file, att_tensors_find(file, names[part]), read, WIDTH));
        assert_true(read[0] == (float)(part * 2 * WIDTH) && read[WIDTH - 1] == (float)(part * 2 * WIDTH + WIDTH - 1));
    }
    assert_true(att_tensors_find(file, "patch_embed.norm.weight") >= 0);
    assert_int_equal(att_tensors_find(file, "features.1.0.attn.relative_coords_table"), -1);
    assert_string_equal(att_tensors_skipped(file), "");
    att_tensors_close(&file);
}

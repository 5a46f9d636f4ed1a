/* DINOv2 and DINOv3 of the transformers library: what config.json leaves open, and what is refused. */
#include <attscope/models.h>

#include "base/core/memory.h"
#include "base/io/file.h"
#include "base/io/scratch.h"
#include "golden_path.h"

#define FITTING(type) "{\"model_type\": \"" type "\", \"image_size\": 8, \"num_attention_heads\": 2"
#define V2 FITTING("dinov2")
#define V2_REGISTERS FITTING("dinov2_with_registers")
#define V3 FITTING("dinov3_vit")
#define V3_GATED V3 ", \"use_gated_mlp\": true"

/* Opens a golden file's weights beside this config.json. */
static att_status identify(scratch *self, const char *golden, const char *config, att_identity *identity)
{
    char name[256], path[4096], *bytes;
    size_t size;
    att_tensors *file = NULL;
    snprintf(name, sizeof name, "layouts/%s/model.safetensors", golden);
    golden_path(name, path, sizeof path);
    CHECK(self->context, att_file_read(self->context, path, 1 << 20, &bytes, &size));
    scratch_write_as(self, "model.safetensors", bytes, size);
    att_free(self->context, bytes);
    scratch_text(self, "config.json", config);
    att_status status = att_model_open_file(self->context, scratch_path(self, "model.safetensors", path), &file);
    if (status == ATT_OK)
        status = att_model_identify(self->context, file, NULL, NULL, NULL, identity);
    att_tensors_close(&file);
    return status;
}

static void refuses(scratch *self, const char *golden, const char *config, const char *part)
{
    att_identity identity;
    assert_fails(self->context, identify(self, golden, config, &identity), ATT_ERR_UNSUPPORTED, part);
}

static void check_preprocess(const att_preprocess *p, double crop_pct, const char *mode, const char *interpolation)
{
    assert_true(p->crop_pct == crop_pct && p->mean[0] == 0.485 && p->std[2] == 0.225);
    assert_string_equal(p->crop_mode, mode);
    assert_string_equal(p->interpolation, interpolation);
}

SCRATCH_TEST(missing_settings_are_those_of_the_model_type)
{
    att_identity found;
    CHECK(self->context, identify(self, "dinov2", V2 "}", &found));
    assert_true(att_options_number(&found.options, "norm_eps", 0) == 1e-6);
    assert_string_equal(att_options_text(&found.options, "act_layer"), "gelu");
    assert_string_equal(att_options_text(&found.options, "pos_embed_resize"), "bicubic_plain");
    check_preprocess(&found.preprocess, 0.875, "center", "bicubic");
    CHECK(self->context, identify(self, "dinov2_registers", V2_REGISTERS "}", &found));
    assert_true(att_options_number(&found.options, "norm_eps", 0) == 1e-6);
    assert_string_equal(att_options_text(&found.options, "pos_embed_resize"), "bicubic");
    CHECK(self->context, identify(self, "dinov3", V3 "}", &found));
    assert_true(att_options_number(&found.options, "norm_eps", 0) == 1e-5);
    assert_true(att_options_number(&found.options, "rope_temperature", 0) == 100);
    check_preprocess(&found.preprocess, 1, "squash", "bilinear_float");
}

SCRATCH_TEST(activations_and_biases_that_the_family_lacks_are_refused)
{
    att_identity found;
    refuses(self, "dinov3", V3 ", \"hidden_act\": \"silu\"}", "hidden_act is \"silu\"; attscope has \"gelu\" only");
    refuses(self, "dinov3", V3 ", \"mlp_bias\": false}", "mlp_bias is ");
    refuses(self, "dinov3_gated", V3_GATED ", \"hidden_act\": \"gelu\"}", "attscope has \"silu\" only");
    refuses(self, "dinov3_gated", V3_GATED "}", "config.json: hidden_act is missing, which means \"gelu\"");
    CHECK(self->context, identify(self, "dinov3_gated", V3_GATED ", \"hidden_act\": \"silu\"}", &found));
    refuses(self, "dinov3", FITTING("dinov3_convnext") "}", "model_type is \"dinov3_convnext\"");
}

SCRATCH_TEST(positions_of_a_grid_that_is_no_square_are_refused)
{
    static const char start[] = "{\"model_type\": \"dinov2\", \"num_attention_heads\": 2, \"image_size\": ";
    char config[256];
    att_identity found;
    snprintf(config, sizeof config, "%s[4, 16]}", start);
    refuses(self, "dinov2", config, "image_size is 4 x 16; attscope opens networks of this type");
    snprintf(config, sizeof config, "%s[8, 8]}", start);
    CHECK(self->context, identify(self, "dinov2", config, &found));
}

/* preprocessor_config.json: what its settings mean for images. tools/versus_transformers compares whole networks. */
#include <math.h>

#include "base/io/scratch.h"

#include "base/io/json.h"
#include "networks/layouts/layout.h"

static att_status read_settings(scratch *self, const char *text, att_config *config)
{
    json_t *root = NULL;
    CHECK(self->context, att_json_parse(self->context, "the settings", text, strlen(text), &root));
    *config = att_config_none();
    att_status status = att_layout_preprocess(self->context, "preprocessor_config.json", root, config);
    json_decref(root);
    return status;
}

SCRATCH_TEST(sizes_crops_and_interpolations_are_read)
{
    static const struct {
        const char *text, *mode, *interpolation;
        int side, resized; /* of the network's images; before the crop */
    } cases[] = {
        {"{}", "squash", "bilinear", 224, 224},
        {"{\"image_processor_type\": \"ViTImageProcessorFast\", \"size\": 384, \"resample\": 3}", "squash", "bicubic",
         384, 384},
        {"{\"feature_extractor_type\": \"ViTFeatureExtractor\", \"size\": [96, 96], \"resample\": 0}", "squash",
         "nearest", 96, 96},
        {"{\"image_processor_type\": \"DeiTImageProcessor\"}", "squash", "bicubic", 224, 256},
        {"{\"image_processor_type\": \"CLIPImageProcessor\", \"size\": {\"shortest_edge\": 251}}", "floor", "bicubic",
         224, 251},
        {"{\"image_processor_type\": \"BitImageProcessor\", \"size\": {\"shortest_edge\": 256}, \"crop_size\": 224}",
         "floor", "bicubic", 224, 256},
        {"{\"image_processor_type\": \"ConvNextImageProcessor\", \"size\": {\"shortest_edge\": 224}, \"crop_pct\": "
         "0.875}",
         "floor", "bicubic", 224, 256},
        {"{\"image_processor_type\": \"ConvNextImageProcessor\", \"size\": {\"shortest_edge\": 384}}", "squash",
         "bicubic", 384, 384},
        {"{\"image_processor_type\": \"CLIPImageProcessor\", \"size\": {\"shortest_edge\": 199}}", "floor", "bicubic",
         224, 199},
        {"{\"image_processor_type\": \"DeiTImageProcessor\", \"size\": 222}", "squash", "bicubic", 224, 222},
        {"{\"image_processor_type\": \"DINOv3ViTImageProcessorFast\"}", "squash", "bilinear_float", 224, 224},
        {"{\"image_processor_type\": \"DINOv3ViTImageProcessor\", \"resample\": 3}", "squash", "bicubic_float", 224,
         224},
        {"{\"image_processor_type\": \"DINOv3ViTImageProcessor\", \"do_rescale\": false}", "squash", "bilinear", 224,
         224},
        {"{\"image_processor_type\": \"DINOv3ViTImageProcessor\", \"resample\": 0}", "squash", "nearest", 224, 224},
        {"{\"size\": 16384}", "squash", "bilinear", 16384, 16384},
        /* 224 / (224 / 354) is less than 354 in doubles. */
        {"{\"image_processor_type\": \"CLIPImageProcessor\", \"size\": {\"shortest_edge\": 354}}", "floor", "bicubic",
         224, 354},
        {"{\"image_processor_type\": \"SiglipImageProcessor\", \"size\": {\"height\": 96, \"width\": 96}}", "squash",
         "bicubic", 96, 96},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_config config;
        CHECK(self->context, read_settings(self, cases[i].text, &config));
        assert_string_equal(config.crop_mode, cases[i].mode);
        assert_string_equal(config.interpolation, cases[i].interpolation);
        assert_int_equal(att_options_find(&config.options, "img_size")->numbers[0], cases[i].side);
        assert_int_equal((int)floor(cases[i].side / config.crop_pct), cases[i].resized);
    }
}

SCRATCH_TEST(height_and_width_may_differ)
{
    att_config config;
    CHECK(self->context,
          read_settings(self,
                        "{\"image_processor_type\": \"DeiTImageProcessor\", \"size\": {\"height\": 256, \"width\": "
                        "128}, \"crop_size\": [224, 112]}",
                        &config));
    const att_option_value *sides = att_options_find(&config.options, "img_size");
    assert_true(sides->numbers[0] == 224 && sides->numbers[1] == 112 && config.crop_pct == 0.875);
}

/* (pixel / 255 - mean) / std of a pixel must be what the processor computes. */
SCRATCH_TEST(scales_of_pixels_become_means_and_deviations)
{
    static const struct {
        const char *text;
        double of_0, of_255;
    } cases[] = {
        {"{}", -1, 1},
        {"{\"image_mean\": [0.25, 0.25, 0.25], \"image_std\": 0.5}", -0.5, 1.5},
        {"{\"do_normalize\": false}", 0, 1},
        {"{\"do_rescale\": false, \"do_normalize\": false}", 0, 255},
        {"{\"rescale_factor\": 0.00784313725490196}", -1, 3},
        {"{\"do_rescale\": false, \"image_mean\": 100, \"image_std\": 10}", -10, 15.5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_config config;
        CHECK(self->context, read_settings(self, cases[i].text, &config));
        for (int c = 0; c < 3; c++) {
            /* Measured: 2e-14, of 255. */
            assert_true(fabs((0 - config.mean[c]) / config.std[c] - cases[i].of_0) <= 1e-12);
            assert_true(fabs((1 - config.mean[c]) / config.std[c] - cases[i].of_255) <= 1e-12);
        }
    }
}

SCRATCH_TEST(what_attscope_would_do_otherwise_is_refused)
{
    static const struct {
        const char *text, *message;
        att_status status;
    } cases[] = {
        {"{\"image_processor_type\": \"OwlViTImageProcessor\"}", "OwlViTImageProcessor", ATT_ERR_UNSUPPORTED},
        {"{\"do_resize\": false}", "do_resize", ATT_ERR_UNSUPPORTED},
        {"{\"do_pad\": true}", "do_pad", ATT_ERR_UNSUPPORTED},
        {"{\"resample\": 1}", "resample", ATT_ERR_UNSUPPORTED},
        {"{\"size\": \"large\"}", "size", ATT_ERR_UNSUPPORTED},
        {"{\"size\": 0}", "size is not a whole number", ATT_ERR_UNSUPPORTED},
        {"{\"size\": 16385}", "size is not a whole number from 1 to 16384", ATT_ERR_UNSUPPORTED},
        {"{\"size\": [96, 96, 96]}", "size has neither the numbers", ATT_ERR_UNSUPPORTED},
        {"{\"image_processor_type\": \"CLIPImageProcessor\", \"crop_size\": {\"shortest_edge\": 224}}",
         "crop_size has no \"height\" and \"width\"", ATT_ERR_UNSUPPORTED},
        {"{\"image_processor_type\": \"CLIPImageProcessor\", \"crop_size\": {\"height\": 224}}",
         "crop_size has neither", ATT_ERR_UNSUPPORTED},
        {"{\"image_processor_type\": \"DeiTImageProcessor\", \"size\": [256, 24], \"crop_size\": [224, 21]}",
         "odd rest", ATT_ERR_UNSUPPORTED},
        {"{\"size\": {\"shortest_edge\": 224, \"longest_edge\": 300}}", "limits the longer side", ATT_ERR_UNSUPPORTED},
        {"{\"size\": {\"shortest_edge\": 224}}", "do_center_crop", ATT_ERR_UNSUPPORTED},
        {"{\"image_processor_type\": \"CLIPImageProcessor\", \"size\": {\"shortest_edge\": 22}}",
         "crop_size is more than 10 times as large", ATT_ERR_UNSUPPORTED},
        {"{\"image_processor_type\": \"CLIPImageProcessor\", \"crop_size\": {\"height\": 224, \"width\": 100}}",
         "another shape", ATT_ERR_UNSUPPORTED},
        {"{\"image_processor_type\": \"DeiTImageProcessor\", \"size\": 227}", "odd rest", ATT_ERR_UNSUPPORTED},
        {"{\"image_processor_type\": \"DeiTImageProcessor\", \"size\": 221}", "odd rest", ATT_ERR_UNSUPPORTED},
        {"{\"image_processor_type\": \"ConvNextImageProcessor\", \"crop_pct\": 2}", "crop_pct", ATT_ERR_UNSUPPORTED},
        {"{\"do_flip_channel_order\": true}", "do_flip_channel_order", ATT_ERR_UNSUPPORTED},
        {"{\"rescale_factor\": 0}", "rescale_factor", ATT_ERR_UNSUPPORTED},
        {"{\"image_std\": [1, 0, 1]}", "image_std must be one or three positive numbers", ATT_ERR_FORMAT},
        {"{\"image_mean\": [1, 1]}", "image_mean must be one or three numbers", ATT_ERR_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_config config;
        assert_fails(self->context, read_settings(self, cases[i].text, &config), cases[i].status, cases[i].message);
    }
}

/* Identification of the network in a file. */
#include "base/io/tensors.h"
#include "failing.h"
#include "networks/models/checkpoints.h"

static void same_options(const att_option_values *a, const att_option_values *b)
{
    assert_int_equal(att_options_number(a, "img_size", -1), att_options_number(b, "img_size", -1));
    assert_int_equal(att_options_number(a, "in_chans", -1), att_options_number(b, "in_chans", -1));
    assert_int_equal(att_options_number(a, "num_classes", -1), att_options_number(b, "num_classes", -1));
    assert_int_equal(att_options_number(a, "patch_size", -1), att_options_number(b, "patch_size", -1));
    assert_int_equal(att_options_number(a, "embed_dim", -1), att_options_number(b, "embed_dim", -1));
    assert_int_equal(att_options_number(a, "depth", -1), att_options_number(b, "depth", -1));
    assert_int_equal(att_options_number(a, "num_heads", -1), att_options_number(b, "num_heads", -1));
    assert_true(att_options_number(a, "mlp_ratio", -1) == att_options_number(b, "mlp_ratio", -1));
    assert_string_equal(att_options_text(a, "global_pool"), att_options_text(b, "global_pool"));
    assert_int_equal(att_options_number(a, "fc_norm", -1), att_options_number(b, "fc_norm", -1));
    assert_int_equal(att_options_number(a, "class_token", -1), att_options_number(b, "class_token", -1));
    assert_int_equal(att_options_number(a, "embed_class", -1), att_options_number(b, "embed_class", -1));
    assert_int_equal(att_options_number(a, "qkv_bias", -1), att_options_number(b, "qkv_bias", -1));
    assert_true(att_options_number(a, "init_values", -1) == att_options_number(b, "init_values", -1));
    assert_string_equal(att_options_text(a, "modules"), att_options_text(b, "modules"));
}

/* --- where a file names its network ------------------------------------------------------------------------------- */

PLACE_TEST(a_checkpoint_of_attscope_records_everything)
{
    att_option_values options = small();
    att_options_set(&options, "class_token", 0), att_options_set(&options, "qkv_bias", 0),
        att_options_set(&options, "init_values", 0.25), att_options_set(&options, "mlp_ratio", 2.7);
    att_options_set_text(&options, "global_pool", "avg");
    att_options_set_text(&options, "modules", "cb");
    write_model(p, "deit_tiny_patch16_224", &options, true);
    att_model *model = make(p, "deit_tiny_patch16_224", &options);
    att_option_values expected = *att_model_options(model);
    att_identity identity;
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_string_equal(identity.name, "deit_tiny_patch16_224");
    same_options(&identity.options, &expected);
    assert_true(identity.preprocess.mean[0] == 0.485 && identity.preprocess.crop_pct == 0.9);
    assert_int_equal(identity.preprocess.height, 32);
    says(identity.origin, "architecture: the file's metadata (deit_tiny_patch16_224)");
    says(identity.origin, "preprocessing: the file's metadata");
    att_model_destroy(&model);
}

/* What tensors show is found without side files: the kind of model, and a name. */
PLACE_TEST(dimensions_come_from_tensors)
{
    att_option_values kinds[4];
    for (int i = 0; i < 4; i++) {
        kinds[i] = small();
        att_options_set(&kinds[i], "embed_dim", 192),
            att_options_set(&kinds[i], "num_heads", 3); /* tensors do not show the number of heads */
    }
    att_options_set(&kinds[0], "mlp_ratio", 2.7), att_options_set(&kinds[0], "in_chans", 1);
    att_options_set(&kinds[1], "init_values", 1e-5), att_options_set(&kinds[1], "embed_class", 0);
    att_options_set(&kinds[2], "class_token", 0), att_options_set(&kinds[2], "qkv_bias", 0),
        att_options_set_text(&kinds[2], "global_pool", "avg");
    att_options_set(&kinds[3], "fc_norm", 0), att_options_set(&kinds[3], "class_token", 0),
        att_options_set_text(&kinds[3], "global_pool", "avg");
    att_options_set_text(&kinds[3], "modules", "cb_s");
    for (int i = 0; i < 4; i++) {
        write_model(p, "vit_tiny_patch16_224", &kinds[i], false);
        att_model *model = make(p, "vit_tiny_patch16_224", &kinds[i]);
        att_option_values expected = *att_model_options(model);
        att_identity identity;
        att_option_values flags = att_options_none();
        if (att_options_find(&kinds[i], "class_token"))
            att_options_set(&flags, "class_token", 0);
        CHECK(p->context, identify(p, "vit_tiny_patch16_224.augreg_in21k", &flags, &identity));
        assert_true((int)(192 * att_options_number(&identity.options, "mlp_ratio", -1)) ==
                    (int)(192 * att_options_number(&expected, "mlp_ratio", -1)));
        att_options_set(&identity.options, "mlp_ratio", att_options_number(&expected, "mlp_ratio", -1));
        same_options(&identity.options, &expected);
        says(identity.origin, "architecture: as given");
        says(identity.origin, "preprocessing: the model's defaults");
        says(identity.origin, "patch_size 8");
        att_model_destroy(&model);
    }
}

/* What only the name says, and whether it is there, is part of the line that every command prints. */
PLACE_TEST(what_the_name_alone_says_is_called_assumed)
{
    att_option_values options = small(), flags = att_options_none();
    att_identity identity;
    att_options_set(&options, "embed_dim", 192), att_options_set(&options, "num_heads", 3);
    write_model(p, "vit_tiny_patch16_224", &options, false);
    CHECK(p->context, identify(p, "vit_tiny_patch16_224", NULL, &identity));
    says(identity.brief, "; assumed, as in vit_tiny_patch16_224: num_heads 3, global_pool token, act_layer gelu");
    says(identity.brief, "; assumed: img_size 32, because the positions can form a square");
    att_options_set(&flags, "num_heads", 6), att_options_set(&flags, "img_size", 32);
    CHECK(p->context, identify(p, "vit_tiny_patch16_224", &flags, &identity));
    says(identity.brief, "; assumed, as in vit_tiny_patch16_224: global_pool token, act_layer gelu");
    assert_null(strstr(identity.brief, "square"));
    write_beside(p, "config.json",
                 "{\"architecture\": \"vit_tiny_patch16_224\", \"model_args\": {\"img_size\": 32, "
                 "\"patch_size\": 8, \"depth\": 2}}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_null(strstr(identity.brief, "assumed"));
}

static void has_class_position(const place *p, const char *name, const att_option_values *flags, int expected)
{
    att_identity identity;
    CHECK(p->context, identify(p, name, flags, &identity));
    assert_int_equal(att_options_number(&identity.options, "embed_class", -1), expected);
}

/* 49 positions fit 7 x 7 patches, or 6 x 8 patches and the class token. */
PLACE_TEST(positions_of_oblong_and_square_grids_are_distinguished)
{
    att_option_values options = small(), flags = att_options_none();
    att_options_set_sides(&options, "img_size", 48, 64);
    write_model(p, "vit_tiny_patch16_224", &options, false);
    att_options_set(&flags, "num_heads", 2);
    att_options_set_sides(&flags, "img_size", 48, 64);
    has_class_position(p, "vit_tiny_patch16_224", &flags, 1);
    att_options_set_sides(&flags, "img_size", 96, 128); /* to be resampled */
    has_class_position(p, "vit_tiny_patch16_224", &flags, 1);
    att_options_set_sides(&flags, "img_size", 64, 104); /* no grid of 48 patches has these proportions */
    has_class_position(p, "vit_tiny_patch16_224", &flags, 0);
    att_options_set(&options, "img_size", 56);
    write_model(p, "deit3_small_patch16_224", &options, false);
    att_options_set_sides(&flags, "img_size", 48, 64);
    has_class_position(p, "deit3_small_patch16_224", &flags, 0);
}

/* 25 positions fit 5 x 5 patches, or 4 x 6 patches and the class token, which the named network has. */
PLACE_TEST(a_square_that_contradicts_the_named_network_is_called_assumed)
{
    static const char assumed[] =
        "; assumed: img_size 40, embed_class false, because the positions can form a square "
        "without that of the class token; for oblong images give img_size H W",
                      class_only[] = "; assumed: embed_class false, because";
    att_option_values options = small(), flags = att_options_none();
    att_identity found;
    att_options_set(&options, "embed_dim", 192), att_options_set(&options, "num_heads", 3);
    att_options_set_sides(&options, "img_size", 32, 48);
    write_model(p, "vit_tiny_patch16_224", &options, false);
    CHECK(p->context, identify(p, "vit_tiny_patch16_224", NULL, &found));
    says(found.brief, assumed), says(found.origin, assumed);
    write_beside(p, "config.json",
                 "{\"architecture\": \"vit_tiny_patch16_224\", \"model_args\": {\"patch_size\": 8, \"depth\": 2}}");
    CHECK(p->context, identify(p, NULL, NULL, &found));
    says(found.brief, assumed);
    write_beside(p, "config.json", "{}");
    att_options_set_sides(&flags, "img_size", 32, 48);
    has_class_position(p, "vit_tiny_patch16_224", &flags, 1);
    att_options_set_sides(&flags, "img_size", 40, 40); /* says that the grid is a square */
    CHECK(p->context, identify(p, "vit_tiny_patch16_224", &flags, &found));
    assert_null(strstr(found.brief, "embed_class"));
    att_options_set_sides(&flags, "img_size", 224, 224); /* may be to resample either */
    CHECK(p->context, identify(p, "vit_tiny_patch16_224", &flags, &found));
    says(found.brief, class_only);
    att_options_set(&flags, "embed_class", 0);
    CHECK(p->context, identify(p, "vit_tiny_patch16_224", &flags, &found));
    assert_null(strstr(found.brief, "embed_class"));
    flags = att_options_none(); /* DeiT III's class token has no position */
    att_options_set(&flags, "num_heads", 3);
    CHECK(p->context, identify(p, "deit3_small_patch16_224", &flags, &found));
    assert_null(strstr(found.brief, "embed_class"));
}

/* 50 positions fit 5 x 10 patches, or 7 x 7 patches and the class token. */
PLACE_TEST(timm_says_that_the_class_token_has_no_position)
{
    att_option_values options = small();
    att_options_set_sides(&options, "img_size", 40, 80), att_options_set(&options, "embed_class", 0);
    write_model(p, "vit_tiny_patch16_224", &options, false);
    write_beside(
        p, "config.json",
        "{\"architecture\": \"vit_tiny_patch16_224\", \"model_args\": {\"img_size\": [40, 80], \"patch_size\": 8, "
        "\"embed_dim\": 32, \"depth\": 2, \"num_heads\": 2, \"no_embed_class\": true}}");
    has_class_position(p, NULL, NULL, 0);
}

/* 14 x 16 patches have 225 positions, as many as 15 x 15 patches, which another network of the same dimensions has. */
PLACE_TEST(an_oblong_grid_does_not_make_another_network)
{
    att_option_values oblong = att_options_none();
    att_options_set_sides(&oblong, "img_size", 224, 256);
    write_model(p, "vit_small_patch16_224", &oblong, false);
    has_class_position(p, "vit_small_patch16_224", &oblong, 1);
    refused(p, "vit_small_patch16_224", ATT_ERR_MISMATCH, "they fit flexivit_small");
}

PLACE_TEST(the_number_of_heads_must_be_given)
{
    att_option_values options = small();
    write_model(p, "vit_tiny_patch16_224", &options, false);
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "num_heads");
    att_option_values flags = att_options_none();
    att_options_set(&flags, "num_heads", 4);
    att_identity identity;
    CHECK(p->context, identify(p, "vit_tiny_patch16_224", &flags, &identity));
    assert_int_equal(att_options_number(&identity.options, "num_heads", -1), 4);
    assert_int_equal(att_options_number(&identity.options, "embed_dim", -1), 32);
    att_options_set(&flags, "num_heads", 5);
    assert_int_equal(identify(p, "vit_tiny_patch16_224", &flags, &identity), ATT_ERR_ARGUMENT);
}

PLACE_TEST(a_nameless_file_lists_what_fits)
{
    write_model(p, "vit_tiny_patch16_224", NULL, false);
    refused(p, NULL, ATT_ERR_NOT_FOUND, "vit_tiny_patch16_224, deit_tiny_patch16_224, which may expect");
    write_model(p, "deit3_small_patch16_384", NULL, false);
    refused(p, NULL, ATT_ERR_NOT_FOUND, "fit deit3_small_patch16_384; give that name");
    att_option_values options = small();
    write_model(p, "vit_tiny_patch16_224", &options, false);
    refused(p, NULL, ATT_ERR_NOT_FOUND, "img_size 32, in_chans 3, num_classes 7, patch_size 8, embed_dim 32, depth 2");
    says(att_context_message(p->context), "name the nearest one and the number of heads");
    refused(p, "vit_tny_patch16_224", ATT_ERR_NOT_FOUND, "vit_tiny_patch16_224");
}

/* Most files for images of another size are those of networks that were fine-tuned. */
PLACE_TEST(the_images_of_a_file_may_have_another_size)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", 96), att_options_set(&options, "num_classes", 7);
    write_model(p, "deit_tiny_patch16_224", &options, false);
    refused(p, NULL, ATT_ERR_NOT_FOUND,
            "for images of 96 x 96 pixels, its tensors fit vit_tiny_patch16_224, vit_tiny_patch16_384, "
            "deit_tiny_patch16_224, which may expect different images");
    refused(p, "deit_tiny_distilled_patch16_224", ATT_ERR_MISMATCH, "they fit vit_tiny_patch16_224");
    att_identity identity;
    CHECK(p->context, identify(p, "deit_tiny_patch16_224", NULL, &identity));
    assert_int_equal(att_options_number(&identity.options, "img_size", -1), 96);
}

/* The classifier of the distillation token shows a distilled network, even if the token is missing. */
/* A table of learned encodings has a row for each shift of one grid. Sides that make the same grid are allowed. */
PLACE_TEST(learned_encodings_of_shifts_fit_one_grid)
{
    static const int sides[][2] = {{32, 32}, {35, 28}, {28, 32}, {34, 31}};
    const char *const name = "attention_cnn_learned";
    att_option_values options = att_options_none(), flags = att_options_none();
    att_identity found;
    att_options_set(&options, "img_size", 28), att_options_set_sides(&options, "patch_size", 7, 4);
    att_options_set(&options, "embed_dim", 32), att_options_set(&options, "depth", 1);
    att_options_set(&options, "num_heads", 3);
    for (int i = 0; i < 4 * 2; i++) {
        write_model(p, name, &options, i % 2);
        att_options_set_sides(&flags, "img_size", sides[i / 2][0], sides[i / 2][1]);
        if (i / 2 == 3)
            CHECK(p->context, identify(p, name, &flags, &found));
        else
            assert_fails(p->context, identify(p, name, &flags, &found), ATT_ERR_UNSUPPORTED,
                         "the learned encodings of positions fit images of 28 x 28 pixels, not of ");
    }
}

PLACE_TEST(a_distilled_network_without_its_token_is_no_other_network)
{
    att_model *model = make(p, "deit_tiny_distilled_patch16_224", NULL);
    tensors all = tensors_of(model), some = {0};
    for (int i = 0; i < all.count; i++)
        if (strcmp(all.items[i].name, "dist_token") != 0)
            some.items[some.count++] = all.items[i];
    assert_int_equal(some.count, all.count - 1);
    write_tensors(p, &some, NULL);
    refused(p, NULL, ATT_ERR_NOT_FOUND, "its tensors fit deit_tiny_distilled_patch16_224; give that name");
    refused(p, "deit_tiny_patch16_224", ATT_ERR_MISMATCH, "they fit deit_tiny_distilled_patch16_224");
    att_model_destroy(&model);
}

/* The tables of BEiT show the number of heads. */
PLACE_TEST(only_what_tensors_do_not_show_is_asked_for)
{
    att_option_values options = small();
    write_model(p, "beit_base_patch16_224", &options, false);
    refused(p, NULL, ATT_ERR_NOT_FOUND, "num_heads 2");
    says(att_context_message(p->context), "name the nearest one and the pooling and the activation");
}

/* As timm writes it for the hub. */
static const char hub_config[] =
    "{\"architecture\": \"deit_tiny_patch16_224\", \"num_classes\": 7, \"num_features\": 192, \"global_pool\": "
    "\"token\","
    "\"model_args\": {\"patch_size\": [8, 8], \"embed_dim\": 32, \"num_heads\": 4, \"qk_norm\": false, \"depth\": 2,"
    "\"drop_path_rate\": 0.1, \"no_embed_class\": false},"
    "\"pretrained_cfg\": {\"tag\": \"fb_in1k\", \"input_size\": [3, 32, 32], \"num_classes\": 1000,"
    "\"interpolation\": \"bilinear\", \"crop_pct\": 0.75, \"crop_mode\": \"squash\", \"mean\": [0.1, 0.2, 0.3], "
    "\"std\": [0.4, 0.5, 0.6],"
    "\"pool_size\": null, \"first_conv\": \"patch_embed.proj\", \"license\": \"apache-2.0\"}}";

PLACE_TEST(hub_config_is_read)
{
    att_option_values options = small();
    write_model(p, "vit_tiny_patch16_224", &options, false);
    write_beside(p, "config.json", hub_config);
    att_identity identity;
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_string_equal(identity.name, "deit_tiny_patch16_224");
    assert_int_equal(att_options_number(&identity.options, "num_heads", -1), 4);
    assert_int_equal(att_options_number(&identity.options, "num_classes", -1), 7);
    assert_int_equal(att_options_number(&identity.options, "img_size", -1), 32);
    assert_true(identity.preprocess.mean[1] == 0.2 && identity.preprocess.std[2] == 0.6);
    assert_true(identity.preprocess.crop_pct == 0.75);
    assert_string_equal(identity.preprocess.interpolation, "bilinear");
    assert_string_equal(identity.preprocess.crop_mode, "squash");
    says(identity.origin, "architecture: config.json (deit_tiny_patch16_224.fb_in1k)");
    assert_string_equal(identity.brief, "config.json, pretrained tag fb_in1k");
    says(identity.origin, "preprocessing: config.json");
}

/* Each option is credited to the source that gave it. */
PLACE_TEST(options_are_credited_to_their_sources)
{
    att_option_values options = small(), flags = att_options_none();
    att_identity identity;
    write_model(p, "vit_tiny_patch16_224", &options, false);
    write_beside(
        p, "config.json",
        "{\"architecture\": \"vit_tiny_patch16_224\", \"num_classes\": 7, \"model_args\": {\"img_size\": 32}}");
    att_options_set(&flags, "num_heads", 4);
    CHECK(p->context, identify(p, NULL, &flags, &identity));
    says(identity.origin,
         "architecture: config.json (vit_tiny_patch16_224) with img_size 32, num_classes 7; as given: "
         "num_heads 4; the tensors: patch_size 8, embed_dim 32, depth 2; preprocessing: ");
    att_options_unset(&options, "num_classes");
    write_model(p, "vit_tiny_patch16_224", &options, true);
    write_beside(p, "config.json", "{}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    says(identity.origin,
         "architecture: the file's metadata (vit_tiny_patch16_224) with img_size 32, patch_size 8, "
         "embed_dim 32, depth 2, num_heads 2; preprocessing: ");
}

PLACE_TEST(a_side_file_of_another_network_is_refused_by_name)
{
    att_option_values options = small();
    write_model(p, "vit_tiny_patch16_224", &options, false);
    write_beside(p, "config.json",
                 "{\"architecture\": \"vit_tiny_patch16_224\", \"model_args\": {\"img_size\": 32, \"patch_size\": 8, "
                 "\"embed_dim\": 32, \"num_heads\": 2, \"depth\": 3}}");
    refused(p, NULL, ATT_ERR_MISMATCH,
            "config.json says depth 3, but the tensors show 2; if config.json belongs to another file, move");
}

PLACE_TEST(the_run_folder_takes_precedence_over_config)
{
    att_option_values options = small();
    write_model(p, "deit_tiny_patch16_224", &options, true);
    write_beside(p, "config.json", hub_config);
    write_beside(p, "args.yaml",
                 "model: vit_tiny_patch16_224\nnum_heads: 2\nlr: 0.1\ncrop_pct: 0.5\ncrop-mode: border\nmean:\n- 0.25\n"
                 "- 0.25\n- 0.25\nimg_size: null\nmodel_ema: true\n");
    att_identity identity;
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_string_equal(identity.name, "vit_tiny_patch16_224");
    assert_int_equal(att_options_number(&identity.options, "num_heads", -1), 2);
    assert_true(identity.preprocess.crop_pct == 0.5 && identity.preprocess.mean[0] == 0.25);
    assert_string_equal(identity.preprocess.crop_mode, "border");
    assert_true(identity.preprocess.std[0] == 0.5); /* the variant's value, because no file gives one */
    says(identity.origin, "architecture: args.yaml");
    says(identity.origin, "config.json, which names deit_tiny_patch16_224.fb_in1k, was left out");
    says(identity.origin, "metadata, which names deit_tiny_patch16_224, was left out");
}

/* Each image setting is taken from the first file that has it. */
PLACE_TEST(each_image_setting_comes_from_the_first_file_with_it)
{
    att_option_values options = small();
    att_options_set(&options, "num_heads", 4);
    write_model(p, "deit_tiny_patch16_224", &options, true);
    write_beside(p, "args.yaml", "std: [0.25, 0.25, 0.75]\n");
    write_beside(p, "config.json",
                 "{\"architecture\": \"deit_tiny_patch16_224\", \"pretrained_cfg\": {\"mean\": [0.1, 0.2, 0.3], "
                 "\"std\": [0.4, 0.5, 0.6], \"crop_pct\": 0.75, \"crop_mode\": \"border\"}}");
    att_identity identity;
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_true(identity.preprocess.std[0] == 0.25 && identity.preprocess.std[2] == 0.75); /* from args.yaml */
    says(identity.origin, "preprocessing: args.yaml"); /* the first file with image settings */
    assert_true(identity.preprocess.mean[0] == 0.1 && identity.preprocess.mean[2] == 0.3); /* from config.json */
    assert_true(identity.preprocess.crop_pct == 0.75);
    assert_string_equal(identity.preprocess.crop_mode, "border");
    write_beside(p, "args.yaml", "mean: 0.125\ncrop_pct: 0.5\ncrop_mode: center\n");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_string_equal(identity.preprocess.crop_mode, "center");
    assert_true(identity.preprocess.mean[0] == 0.125 && identity.preprocess.mean[2] == 0.125);
    assert_true(identity.preprocess.std[1] == 0.5);
    assert_true(identity.preprocess.crop_pct == 0.5);
}

/* As timm's loader does; a value for one channel stays as it is. */
PLACE_TEST(mean_and_std_of_grey_images_are_averages)
{
    att_option_values options = small(), grey = att_options_none();
    att_options_set(&options, "num_heads", 4), att_options_set(&grey, "in_chans", 1);
    write_model(p, "deit_tiny_patch16_224", &options, true);
    write_beside(p, "config.json",
                 "{\"architecture\": \"deit_tiny_patch16_224\", \"pretrained_cfg\": {\"mean\": [0.125, 0.25, 0.75]}}");
    write_beside(p, "args.yaml", "std: 0.1\n");
    att_identity identity;
    CHECK(p->context, identify(p, NULL, &grey, &identity));
    assert_int_equal(identity.preprocess.in_chans, 1);
    assert_true(identity.preprocess.mean[0] == 0.375 && identity.preprocess.std[0] == 0.1);
    att_model *model = make(p, "deit_tiny_patch16_224", &grey);
    att_preprocess own = att_model_preprocess(model); /* ImageNet's 0.485, 0.456, 0.406 and 0.229, 0.224, 0.225 */
    assert_true(fabs(own.mean[0] - 0.449) < 1e-12 && fabs(own.std[0] - 0.226) < 1e-12);
    att_model_destroy(&model);
}

/* If one file gives a setting twice, the first place counts. */
PLACE_TEST(the_first_place_in_a_config_counts)
{
    write_model(p, "vit_tiny_patch16_224", NULL, false);
    write_beside(p, "config.json",
                 "{\"architecture\": \"vit_tiny_patch16_224\", \"model_args\": {\"mean\": 0.25, \"std\": 0.125, "
                 "\"crop_pct\": 0.5, \"interpolation\": \"bilinear\"}, \"pretrained_cfg\": {\"mean\": 0.5, "
                 "\"std\": 0.5, \"crop_pct\": 0.75, \"interpolation\": \"bicubic\"}}");
    att_identity identity;
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_true(identity.preprocess.mean[0] == 0.25 && identity.preprocess.std[2] == 0.125);
    assert_true(identity.preprocess.crop_pct == 0.5);
    assert_string_equal(identity.preprocess.interpolation, "bilinear");
}

/* Tensors do not show the initial value of LayerScale; the variant gives it. Other networks may have another one. */
PLACE_TEST(layer_scale_starts_as_the_variant_s)
{
    att_option_values options = small();
    att_options_set(&options, "embed_dim", 384), att_options_set(&options, "num_heads", 6);
    write_model(p, "deit3_small_patch16_224", &options, false);
    att_identity identity;
    CHECK(p->context, identify(p, "deit3_small_patch16_224", NULL, &identity));
    assert_true(att_options_number(&identity.options, "init_values", -1) == 1e-6);
    att_option_values flags = att_options_none();
    att_options_set(&flags, "init_values", 0.125);
    CHECK(p->context, identify(p, "deit3_small_patch16_224", &flags, &identity));
    assert_true(att_options_number(&identity.options, "init_values", -1) == 0.125);
    att_options_set(&options, "init_values", 0); /* tensors take precedence over the variant */
    write_model(p, "deit3_small_patch16_224", &options, false);
    CHECK(p->context, identify(p, "deit3_small_patch16_224", NULL, &identity));
    assert_true(att_options_number(&identity.options, "init_values", -1) == 0);
}

/* Mean pooling has an fc_norm; so has a network with timm's argument fc_norm, which pools the class token. */
PLACE_TEST(the_source_that_names_the_network_decides_the_pooling)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "depth", 1), att_options_set(&options, "fc_norm", 1);
    write_model(p, "vit_tiny_patch16_224", &options, false);
    static const struct {
        const char *file, *text, *pool; /* pool NULL: the caller must give it */
    } cases[] = {
        {"config.json", "{\"architecture\": \"vit_tiny_patch16_224\", \"model_args\": {\"fc_norm\": true}}", "token"},
        {"config.json",
         "{\"architecture\": \"vit_tiny_patch16_224\", \"global_pool\": \"avg\", \"model_args\": {\"fc_norm\": true}}",
         "avg"},
        {"config.json", "{\"architecture\": \"vit_tiny_patch16_224\", \"global_pool\": \"token\"}", "token"},
        {"config.json", "{\"architecture\": \"vit_tiny_patch16_224\"}", NULL},
        {"args.yaml", "model: vit_tiny_patch16_224\nmodel_kwargs: {fc_norm: true}\n", "token"},
        {"args.yaml", "model: vit_tiny_patch16_224\ngp: avg\n", "avg"},
        {"args.yaml", "model: vit_tiny_patch16_224\n", NULL},
        {"args.yaml", "{}\n", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[128];
        att_identity identity;
        write_beside(p, cases[i].file, cases[i].text);
        if (cases[i].pool) {
            CHECK(p->context, identify(p, "vit_tiny_patch16_224", NULL, &identity));
            assert_string_equal(att_options_text(&identity.options, "global_pool"), cases[i].pool);
            assert_int_equal(att_options_number(&identity.options, "fc_norm", -1), 1);
        } else {
            refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED,
                    "which the tensors do not show; give global_pool (--global-pool)");
        }
        path_in(p, cases[i].file, path);
        unlink(path);
    }
}

PLACE_TEST(the_caller_takes_precedence)
{
    att_option_values options = small();
    write_model(p, "vit_tiny_patch16_224", &options, true);
    write_beside(p, "config.json", hub_config);
    att_identity identity;
    CHECK(p->context, identify(p, "vit_tiny_patch16_224", NULL, &identity));
    assert_true(identity.preprocess.mean[0] == 0.5);
    assert_int_equal(att_options_number(&identity.options, "num_heads", -1), 2); /* from the metadata, which agrees */
    says(identity.origin, "config.json, which names deit_tiny_patch16_224.fb_in1k, was left out");
}

/* --- what is refused --------------------------------------------------------------------------------------------- */

PLACE_TEST(tensors_of_other_networks_are_named)
{
    static const struct {
        const char *tensor, *sign;
    } strangers[] = {
        {"register_tokens", "DINOv2 under its authors' names"},
        {"neck.0.weight", "Segment Anything's ViT"},
        {"blocks.0.mlp.w12.weight", "a gated MLP"},
        {"blocks.1.attns.0.qkv.weight", "parallel"}, /* beside blocks in sequence */
        {"patch_embed.backbone.stem.conv.weight", "hybrid"},
        {"vit.encoder.layer.0.output.dense.weight", "transformers library"},
        {"vision_model.embeddings.patch_embedding.weight", "transformers library"},
        {"resnet.embedder.embedder.convolution.weight", "transformers library"},
        {"deit.embeddings.cls_token", "transformers library"},
        {"blocks.0.linear_tokens.weight", "ResMLP"},
        {"blocks.0.mlp_channels.gate.proj.weight", "gMLP"},
        {"vit.patch_embed.proj.weight", "names with a prefix"},
        {"net.layer1.0.conv1.weight", "names with a prefix"},
        {"optimizer.exp_avg.head.weight", "a_name_nobody_knows"}, /* of a training run only with attscope's metadata */
        {"blocks.00.norm1.weight", "a_name_nobody_knows"},
        {"blocks.99999999999999999999.norm1.weight", "a_name_nobody_knows"}};
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        att_option_values options = small();
        att_model *model = make(p, "vit_tiny_patch16_224", &options);
        tensors t = tensors_of(model);
        add_tensor(&t, "a_name_nobody_knows", att_shape_of(3));
        add_tensor(&t, strangers[i].tensor, att_shape_of(3));
        write_tensors(p, &t, NULL);
        refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, strangers[i].sign);
        refused(p, NULL, ATT_ERR_UNSUPPORTED, strangers[i].sign);
        refused(p, NULL, ATT_ERR_UNSUPPORTED, "the nearest family, vit, lacks 2 of 34, such as \"");
        att_model_destroy(&model);
    }
}

/* Some tensors of other networks of timm, the file's only ones. */
PLACE_TEST(families_of_other_networks_are_named)
{
    static const struct {
        const char *names[6], *message;
    } files[] = {
        {{"stages.0.blocks.0.conv_dw.weight", "stages.0.blocks.1.xca.qkv.weight", "head.fc.weight"},
         "no network of attscope has all of its tensors: the nearest family, convnext, lacks 1 of 3, such as "
         "\"stages.0.blocks.1.xca.qkv.weight\", a sign of EdgeNeXt"},
        {{"cls_token", "pos_embed", "patch_embed.proj.weight", "blocks.0.attn.qkv.weight",
          "blocks.0.attn.proj_l.weight", "blocks_token_only.0.attn.q.weight"},
         "the nearest family, vit, lacks 2 of 6, such as \"blocks_token_only.0.attn.q.weight\", a sign of CaiT "
         "(talking "
         "heads, class attention)"},
        {{"stem.conv1.weight", "stages.0.blocks.0.attn_block.attn.qkv.weight", "head.fc.weight"},
         "the nearest family, swin, lacks 2 of 3, such as \"stages.0.blocks.0.attn_block.attn.qkv.weight\", a sign of "
         "MaxViT"},
        {{"conv1.weight", "layer1.0.conv2.fc1.weight", "layer1.0.conv2.conv.weight", "fc.bias"},
         "the nearest family, resnet, lacks 2 of 4, such as \"layer1.0.conv2.fc1.weight\", a sign of ResNeSt"},
        {{"features.denseblock1.denselayer1.conv1.weight", "classifier.weight", "a.num_batches_tracked"},
         "no network of attscope has any of its 2 tensors, such as \"features.denseblock1.denselayer1.conv1.weight\", "
         "a "
         "sign of DenseNet"},
        {{"a.weight"}, "no network of attscope has any of its 1 tensors, such as \"a.weight\""},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        tensors t = {0};
        for (int n = 0; n < 6 && files[i].names[n]; n++)
            add_tensor(&t, files[i].names[n], att_shape_of(3));
        write_tensors(p, &t, NULL);
        refused(p, NULL, ATT_ERR_UNSUPPORTED, files[i].message);
    }
}

PLACE_TEST(odd_shapes_are_refused)
{
    tensors t = {0};
    add_tensor(&t, "head.weight", att_shape_of(3, 4));
    write_tensors(p, &t, NULL);
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "no patch embedding");
    t.count = 0;
    add_tensor(&t, "patch_embed.proj.weight", att_shape_of(192, 3, 8, 8));
    add_tensor(&t, "pos_embed", att_shape_of(1, 15, 192));
    write_tensors(p, &t, NULL);
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "15 positions");
    t.count = 0;
    add_tensor(&t, "patch_embed.proj.weight", att_shape_of(192, 5, 8, 8));
    add_tensor(&t, "cls_token", att_shape_of(1, 1, 192)), add_tensor(&t, "pos_embed", att_shape_of(1, 17, 192));
    write_tensors(p, &t, NULL);
    refused(p, "vit_tiny_patch16_224", ATT_ERR_FORMAT, "dimensions");
}

PLACE_TEST(side_files_are_hostile)
{
    write_model(p, "vit_tiny_patch16_224", NULL, false);
    static const struct {
        const char *text;
        att_status status;
        const char *words;
    } configs[] = {
        {"{", ATT_ERR_FORMAT, "config.json"},
        {"[]", ATT_ERR_FORMAT, "object"},
        {"{\"architecture\": 3}", ATT_ERR_FORMAT, "architecture"},
        {"{\"architecture\": \"vit_base_patch16_sapiens2\"}", ATT_ERR_UNSUPPORTED, "vit_base_patch16_sapiens2"},
        {"{\"architecture\": \"vit_tiny_patch16_224\", \"num_classes\": -1}", ATT_ERR_FORMAT, "num_classes"},
        {"{\"architecture\": \"vit_tiny_patch16_224\", \"num_classes\": 1e300}", ATT_ERR_FORMAT, "num_classes"},
        {"{\"architecture\": \"vit_tiny_patch16_224\", \"crop_pct\": 0}", ATT_ERR_FORMAT, "crop_pct"},
        {"{\"architecture\": \"vit_tiny_patch16_224\", \"crop_mode\": \"squish\"}", ATT_ERR_FORMAT, "crop_mode"},
        {"{\"architecture\": \"vit_tiny_patch16_224\", \"std\": [0, 1, 1]}", ATT_ERR_FORMAT, "std"},
        {"{\"architecture\": \"vit_tiny_patch16_224\", \"mean\": [0, \"x\", 1]}", ATT_ERR_FORMAT, "mean"},
        {"{\"architecture\": \"vit_tiny_patch16_224\", \"mean\": [0, 1]}", ATT_ERR_FORMAT, "mean"},
        {"{\"architecture\": \"vit_tiny_patch16_224\", \"interpolation\": \"lanczos\"}", ATT_ERR_FORMAT,
         "interpolation"},
        {"{\"architecture\": \"vit_tiny_patch16_224\", \"input_size\": [3, 224, 0]}", ATT_ERR_FORMAT, "img_size"},
        {"{\"architecture\": \"vit_tiny_patch16_224\", \"model_args\": {\"qk_norm\": true}}", ATT_ERR_MISMATCH,
         "qk_norm"},
        {"{\"architecture\": \"vit_tiny_patch16_224\", \"model_args\": {\"num_heads\": 5}}", ATT_ERR_UNSUPPORTED,
         "num_heads 5"},
        {"{\"architecture\": \"vit_tiny_patch16_224\", \"model_args\": {\"modules\": \"cc\"}}", ATT_ERR_UNSUPPORTED,
         "cc"},
        {"{\"architecture\": \"vit_tiny_patch16_224\", \"global_pool\": \"map\"}", ATT_ERR_UNSUPPORTED, "map"},
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        write_beside(p, "config.json", configs[i].text);
        refused(p, NULL, configs[i].status, configs[i].words);
    }
}

PLACE_TEST(metadata_is_hostile)
{
    att_model *model = make(p, "vit_tiny_patch16_224", NULL);
    tensors t = tensors_of(model);
    write_tensors(p, &t, "not json");
    char words[160];
    snprintf(words, sizeof words, "%s: its metadata", p->weights);
    refused(p, NULL, ATT_ERR_FORMAT, words);
    write_tensors(p, &t, "{\"model\": \"vit_tiny_patch16_224\", \"depth\": 1000000000}");
    refused(p, NULL, ATT_ERR_FORMAT, "depth");
    write_tensors(p, &t, "{\"model\": \"vit_tiny_patch16_224\", \"depth\": 2.5}");
    refused(p, NULL, ATT_ERR_FORMAT, "depth");
    write_tensors(p, &t, "{\"model\": \"vit_tiny_patch16_224\", \"from_a_later_version\": {\"a\": []}}");
    att_identity identity;
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    att_model_destroy(&model);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static att_status identify_and_load(att_context *context, const char *path)
{
    att_tensors *file = NULL;
    att_model *model = NULL;
    att_weights *weights = NULL;
    att_identity identity;
    att_status status = att_tensors_open(context, path, &file);
    if (status == ATT_OK)
        status = att_model_identify(context, file, path, NULL, NULL, &identity);
    if (status == ATT_OK)
        status = att_model_create(context, identity.name, &identity.options, ATT_F32, &model);
    if (status == ATT_OK)
        status = att_weights_create(att_model_graph(model), "cpu", &weights);
    if (status == ATT_OK)
        status = att_model_load(model, file, weights);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    att_tensors_close(&file);
    return status;
}

/* Fails the first allocation, then the second, and so on, until identification succeeds. */
static void survives(const place *p)
{
    failing memory = {0};
    att_settings settings = failing_settings(&memory);
    att_context *context;
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    lack of = lack_of_memory(context, &memory);
    while (lack_again(&of))
        of.status = identify_and_load(context, p->weights);
    assert_true(of.allowed >= 20);
    att_context_destroy(&context);
}

PLACE_TEST(every_failed_allocation_is_survived)
{
    att_option_values options = small();
    att_options_set(&options, "depth", 1);
    write_model(p, "deit_tiny_patch16_224", &options, true);
    write_beside(p, "config.json", "{\"architecture\": \"deit_tiny_patch16_224\"}");
    write_beside(p, "args.yaml", "model: deit_tiny_patch16_224\n");
    survives(p);
}

/* Options of modules are found by trials, which allocate memory. */
PLACE_TEST(every_failed_allocation_is_survived_with_modules)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", 8), att_options_set(&options, "width", 4);
    att_options_set_text(&options, "layers", "1,1,1"),
        att_options_set_text(&options, "modules", "step:adaptor=iebn,input=x_t@after_branch:0");
    write_model(p, "resnet164", &options, false);
    write_beside(p, "args.yaml", "model: resnet164\n");
    survives(p);
}

/* --- stopping ----------------------------------------------------------------------------------------------------- */

/* Stop questions; those after the first `allowed` are answered yes. */
typedef struct questions {
    int asked, allowed;
} questions;

static bool asks_to_stop(void *user)
{
    questions *q = user;
    return ++q->asked > q->allowed;
}

/* Identifies a network among empty tensors. format: their names. */
static att_status identify_empty(questions *q, const char *format, const char *network)
{
    enum { COUNT = 200 };
    char names[COUNT][48];
    att_safetensors_tensor empty[COUNT];
    att_settings settings = att_settings_defaults();
    att_context *context;
    att_tensors *file;
    att_identity identity;
    settings.threads = 1;
    settings.stop = asks_to_stop;
    settings.stop_user = q;
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], format, i);
        empty[i] = (att_safetensors_tensor){.name = names[i], .dtype = ATT_SAFETENSORS_F32, .shape = att_shape_of(0)};
    }
    empty[0].name = "patch_embed.proj.weight";
    CHECK(context, att_tensors_borrow(context, empty, COUNT, &file));
    att_status status = att_model_identify(context, file, ATT_TENSORS_HERE, network, NULL, &identity);
    att_tensors_close(&file);
    att_context_destroy(&context);
    return status;
}

PLACE_TEST(the_search_for_a_network_stops_when_asked)
{
    static const char *const formats[] = {"t%d.weight", "blocks.%d.x.weight", "blocks.0.mlp.act.se.x%d"};
    static const char *const networks[] = {NULL, "vit_tiny_patch16_224"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats * 2; i++) {
        questions all = {.allowed = INT32_MAX};
        assert_int_equal(identify_empty(&all, formats[i / 2], networks[i % 2]), ATT_ERR_UNSUPPORTED);
        assert_true(all.asked > 200);
        for (int allowed = 0; allowed < all.asked; allowed += all.asked / 7) {
            questions some = {.allowed = allowed};
            assert_int_equal(identify_empty(&some, formats[i / 2], networks[i % 2]), ATT_ERR_STOPPED);
            assert_true(some.asked < allowed + 50);
        }
    }
}

/* A file of a network that attscope lacks is called by that network's name. */
PLACE_TEST(tensors_are_a_sign_of_their_network)
{
    static const struct {
        const char *name, *sign;
    } all[] = {
        {"stages.2.blocks.0.attn.rel_pos.relative_position_bias_table", "CoAtNet or a relative"},
        {"stages.1.0.self_attn.pos_embed.height_rel", "timm's networks of configurable blocks"},
        {"stages.0.conv_down.1.conv.weight", "a cross stage partial network"},
        {"stages.0.1.attention.fc.weight", "CSPNeXt"},
        {"stages.0.blocks.0.mixer.BCdt_proj.conv.weight", "EfficientViM"},
        {"stages.0.0.dw_conv.conv.weight", "PP-LCNetV2"},
        {"stages.0.0.main.spatial_conv.conv.weight", "CPUBone, LowFormer or a relative"},
        {"stages.0.blocks.0.fc1.weight", "MambaOut"},
        {"stages.0.blocks.0.conv.m.c.weight", "SHViT"},
        {"stages.0.0.dwconv2.conv.weight", "StarNet"},
        {"features.0.conv6.0.weight", "SelecSLS"},
        {"visual.layer1.0.conv1.weight", "CLIP's residual network, which pools by attention"},
        {"conv_root.kernel", "a convolutional network before the patches (a hybrid ViT)"},
        {"stages.0.blocks.0.mlp.fc1.weight", "a network of stages that attscope lacks"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char expected[128];
        att_identity found;
        tensors t = {.count = 0};
        add_tensor(&t, all[i].name, att_shape_of(2));
        write_tensors(p, &t, NULL);
        assert_int_equal(identify(p, NULL, NULL, &found), ATT_ERR_UNSUPPORTED);
        snprintf(expected, sizeof expected, "a sign of %s", all[i].sign);
        says(att_context_message(p->context), expected);
    }
}

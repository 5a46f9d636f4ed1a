/* Pretrained tags: their values are timm's, and they decide how images are preprocessed. */
#include "networks/models/checkpoints.h"
#include "networks/models/family.h"

/* The values of timm's validate.py; the tag's own values if it has no others. */
static void check_test_images(const place *p, const char *network, const char *tag, const att_preprocess *own,
                              FILE *golden)
{
    int size;
    double crop;
    char name[128];
    att_variant variant;
    assert_int_equal(fscanf(golden, "%d %lf", &size, &crop), 2);
    snprintf(name, sizeof name, "%s.%s", network, tag);
    CHECK(p->context, att_variant_find(p->context, name, &variant));
    assert_int_equal(variant.tag.test_height ? variant.tag.test_height : own->height, size);
    assert_true((variant.tag.test_crop_pct > 0 ? variant.tag.test_crop_pct : own->crop_pct) == crop);
}

static void check_tag(const place *p, const char *network, int index, FILE *golden)
{
    char name[64], tag[64], mode[16], interpolation[16];
    int size, classes;
    double mean[3], std[3], crop;
    att_model_tag found;
    assert_int_equal(fscanf(golden, "%63s %63s %d %d %lf %lf %lf %lf %lf %lf %lf %15s %15s", name, tag, &size, &classes,
                            &mean[0], &mean[1], &mean[2], &std[0], &std[1], &std[2], &crop, mode, interpolation),
                     13);
    assert_string_equal(name, network);
    CHECK(p->context, att_model_tag_at(p->context, network, index, &found));
    assert_string_equal(found.name, tag);
    assert_int_equal(found.num_classes, classes);
    assert_int_equal(found.preprocess.height, size);
    assert_memory_equal(found.preprocess.mean, mean, sizeof mean);
    assert_memory_equal(found.preprocess.std, std, sizeof std);
    assert_true(found.preprocess.crop_pct == crop);
    assert_string_equal(found.preprocess.crop_mode, mode);
    assert_string_equal(found.preprocess.interpolation, interpolation);
    check_test_images(p, network, tag, &found.preprocess, golden);
}

/* All values of all tags, in the order of the goldens: networks by name, tags in timm's order. */
PLACE_TEST(tags_have_timms_values)
{
    FILE *golden = golden_open("tags.txt");
    char network[64], last[64] = "";
    int index = 0, tags = 0;
    for (long at = ftell(golden); fscanf(golden, "%63s", network) == 1; at = ftell(golden)) {
        assert_int_equal(fseek(golden, at, SEEK_SET), 0);
        index = strcmp(network, last) == 0 ? index + 1 : 0;
        memcpy(last, network, sizeof last);
        check_tag(p, network, index, golden);
        tags++;
        assert_int_equal(fgetc(golden), '\n');
    }
    assert_true(tags >= 230);
    fclose(golden);
    att_model_tag none;
    CHECK(p->context, att_model_tag_at(p->context, "resnet20", 0, &none));
    assert_string_equal(none.name, "");
    CHECK(p->context, att_model_tag_at(p->context, "resnet50", 1000, &none));
    assert_string_equal(none.name, "");
}

PLACE_TEST(a_tag_gives_a_new_network_its_images_and_classes)
{
    att_model *model = make(p, "resnet50.tv2_in1k", NULL);
    assert_string_equal(att_model_name(model), "resnet50");
    assert_int_equal(att_model_preprocess(model).height, 176);
    assert_true(att_model_preprocess(model).crop_pct == 0.875);
    assert_string_equal(att_model_preprocess(model).interpolation, "bilinear");
    att_model_destroy(&model);
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", 64);
    /* a network for small images, whose preprocessing is not the tag's */
    att_options_set_text(&options, "stem_type", "conv3");
    model = make(p, "resnet50.tv2_in1k", &options);
    assert_int_equal(att_model_preprocess(model).height, 64);
    assert_true(att_model_preprocess(model).crop_pct == 1);
    att_model_destroy(&model);
    model = make(p, "vit_tiny_patch16_224_in21k", NULL);
    assert_int_equal(att_model_classes(model), 21843);
    att_model_destroy(&model);
}

static const char tagged[] = "{\"architecture\": \"vit_tiny_patch16_224\", \"pretrained_cfg\": {\"tag\": \"%s\"%s}}";

PLACE_TEST(a_file_is_preprocessed_as_its_tag_says)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "depth", 1), att_options_set(&options, "num_classes", 7);
    write_model(p, "deit3_small_patch16_224", &options, false);
    att_identity identity;
    CHECK(p->context, identify(p, "deit3_small_patch16_224.fb_in22k_ft_in1k", NULL, &identity));
    assert_true(identity.preprocess.crop_pct == 1);
    /* tensors take precedence over the tag */
    assert_int_equal(att_options_number(&identity.options, "num_classes", -1), 7);
    says(identity.origin, "architecture: as given (deit3_small_patch16_224.fb_in22k_ft_in1k)");
    CHECK(p->context, identify(p, "deit3_small_patch16_224_in21ft1k", NULL, &identity));
    assert_true(identity.preprocess.crop_pct == 1);
    says(identity.brief,
         "deit3_small_patch16_224_in21ft1k is timm's deprecated name of "
         "deit3_small_patch16_224.fb_in22k_ft_in1k");
    CHECK(p->context, identify(p, "deit3_small_patch16_224", NULL, &identity));
    assert_true(identity.preprocess.crop_pct == 0.9);
    write_beside(
        p, "config.json",
        "{\"architecture\": \"deit3_small_patch16_224\", \"pretrained_cfg\": {\"tag\": \"fb_in22k_ft_in1k\"}}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_true(identity.preprocess.crop_pct == 1);
    CHECK(p->context, identify(p, "deit3_small_patch16_224", NULL, &identity));
    assert_true(identity.preprocess.crop_pct == 1);
    /* the config of another network */
    CHECK(p->context, identify(p, "deit3_small_patch16_224.fb_in1k", NULL, &identity));
    assert_true(identity.preprocess.crop_pct == 0.9);
    says(identity.brief, "config.json, which names deit3_small_patch16_224.fb_in22k_ft_in1k, was left out");
    write_beside(p, "args.yaml", "model: deit3_small_patch16_224.fb_in22k_ft_in1k\ncrop_pct: 0.5\n");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_true(identity.preprocess.crop_pct == 0.5); /* the file takes precedence over its tag */
}

/* The config.json beside the weights may come from another training run of the same network. */
PLACE_TEST(the_callers_tag_takes_precedence_over_the_config)
{
    att_identity identity;
    write_model(p, "resnet18", NULL, false);
    write_beside(
        p, "config.json",
        "{\"architecture\": \"resnet18\", \"pretrained_cfg\": {\"crop_pct\": 0.5, \"input_size\": [3, 96, 96], "
        "\"test_input_size\": [3, 128, 128], \"test_crop_pct\": 0.75}}");
    CHECK(p->context, identify(p, "resnet18.a1_in1k", NULL, &identity));
    assert_int_equal(identity.preprocess.height, 224);
    assert_true(identity.preprocess.crop_pct == 0.95);
    assert_int_equal(identity.test_height, 288);
    assert_true(identity.test_crop_pct == 1);
    says(identity.brief, "the preprocessing of the tag replaces that of config.json");
    CHECK(p->context, identify(p, "resnet18", NULL, &identity));
    assert_int_equal(identity.preprocess.height, 96);
    assert_true(identity.preprocess.crop_pct == 0.5);
    assert_int_equal(identity.test_height, 128);
    assert_true(identity.test_crop_pct == 0.75);
    assert_null(strstr(identity.brief, "left out"));
    write_beside(p, "config.json", "{\"architecture\": \"resnet18\", \"pretrained_cfg\": {\"crop_pct\": 0.95}}");
    CHECK(p->context, identify(p, "resnet18.a1_in1k", NULL, &identity));
    assert_null(strstr(identity.brief, "left out")); /* both are the same */
    /* Image settings given by a source take precedence over the evaluation settings of its tag. */
    write_beside(p, "config.json", "{}");
    write_beside(p, "args.yaml", "model: resnet18.a1_in1k\nimg_size: 96\n");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_int_equal(identity.test_height, 0);
    assert_true(identity.test_crop_pct == 1);
    write_beside(p, "args.yaml", "model: resnet18.a1_in1k\ncrop_pct: 0.5\n");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_int_equal(identity.test_height, 288);
    assert_true(identity.test_crop_pct == 0);
    write_beside(p, "config.json", "{\"pretrained_cfg\": {\"test_input_size\": [3, 128, 0]}}");
    refused(p, "resnet18", ATT_ERR_FORMAT, "test_input_size");
}

/* As in timm before 0.9, and in a config without image settings. */
PLACE_TEST(images_may_be_described_beside_the_name)
{
    static const char *const members[] = {"", ", \"pretrained_cfg\": null"};
    write_model(p, "resnet18", NULL, false);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        char text[128];
        att_identity identity;
        snprintf(text, sizeof text, "{\"architecture\": \"resnet18\", \"crop_pct\": 0.5%s}", members[i]);
        write_beside(p, "config.json", text);
        CHECK(p->context, identify(p, NULL, NULL, &identity));
        assert_true(identity.preprocess.crop_pct == 0.5);
    }
    write_beside(p, "config.json", "{\"architecture\": \"resnet18\", \"pretrained_cfg\": \"tv_in1k\"}");
    refused(p, NULL, ATT_ERR_FORMAT, "\"pretrained_cfg\" must be an object");
}

/* The caller's tag takes precedence over all sources of image settings. */
PLACE_TEST(the_callers_tag_takes_precedence_over_all_sources)
{
    static const char own[] = "{\"model\": \"resnet18\", \"crop_pct\": 0.5, \"mean\": 0.25}";
    att_model *model = make(p, "resnet18", NULL);
    tensors t = tensors_of(model);
    att_identity identity;
    write_tensors(p, &t, own);
    CHECK(p->context, identify(p, "resnet18", NULL, &identity));
    assert_true(identity.preprocess.crop_pct == 0.5 && identity.preprocess.mean[0] == 0.25);
    CHECK(p->context, identify(p, "resnet18.tv_in1k", NULL, &identity));
    assert_true(identity.preprocess.crop_pct == 0.875 && identity.preprocess.mean[0] == 0.485);
    assert_string_equal(identity.preprocess.interpolation, "bilinear");
    says(identity.brief, "the preprocessing of the tag replaces that of the file's metadata");
    write_tensors(p, &t, NULL);
    write_beside(p, "args.yaml", "model: resnet18\ncrop_pct: 0.5\nmean: 0.25\ninterpolation: bicubic\n");
    CHECK(p->context, identify(p, "resnet18.tv_in1k", NULL, &identity));
    assert_true(identity.preprocess.crop_pct == 0.875 && identity.preprocess.mean[0] == 0.485);
    assert_string_equal(identity.preprocess.interpolation, "bilinear");
    says(identity.brief, "the preprocessing of the tag replaces that of args.yaml");
    att_model_destroy(&model);
}

PLACE_TEST(tags_of_others_than_timm_say_nothing)
{
    char config[256];
    write_model(p, "vit_tiny_patch16_224", NULL, false);
    snprintf(config, sizeof config, tagged, "mine", ", \"crop_pct\": 0.5");
    write_beside(p, "config.json", config);
    att_identity identity;
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_true(identity.preprocess.crop_pct == 0.5);
}

/* The tag in a name counts, whatever another part of that source or another source gives. */
PLACE_TEST(the_first_tag_counts)
{
    att_identity identity;
    write_model(p, "resnet18", NULL, false);
    write_beside(p, "config.json",
                 "{\"architecture\": \"resnet18.a1_in1k\", \"pretrained_cfg\": {\"tag\": \"tv_in1k\"}}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    says(identity.origin, "(resnet18.a1_in1k)");
    write_beside(p, "config.json", "{\"architecture\": \"resnet18\"}");
    CHECK(p->context, identify(p, "resnet18.a1_in1k", NULL, &identity));
    says(identity.origin, "(resnet18.a1_in1k)");
}

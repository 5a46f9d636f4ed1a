/* Which network a name means: timm's list, deprecated names, pretrained tags, slips. */
#include "models/made.h"

#include "models/family.h"
#include "models/slip.h"
#include "models/timm.h"

static void resolves(const place *p, const char *text, const char *network, const char *tag, bool deprecated)
{
    att_network_name name;
    CHECK(p->context, att_model_resolve(p->context, text, &name));
    assert_string_equal(name.network, network);
    assert_string_equal(name.tag, tag);
    assert_int_equal(name.deprecated, deprecated);
}

static void does_not_resolve(const place *p, const char *text, att_status status, const char *words)
{
    att_network_name name = {.network = "untouched"};
    assert_int_equal(att_model_resolve(p->context, text, &name), status);
    assert_string_equal(name.network, "untouched");
    says(att_context_message(p->context), words);
}

static bool is_listed(const char *name)
{
    for (int i = 0; i < att_model_count(); i++)
        if (strcmp(att_model_at(i).name, name) == 0)
            return true;
    return false;
}

/* Every name of timm's is one of the list, or refused with what attscope lacks; none is taken for a slip. */
static void every_name_of_timm_is_known(void **state)
{
    const place *p = *state;
    att_timm_name timm;
    int names = 0, deprecated = 0, listed = 0;
    for (size_t at = 0; att_timm_next_name(&at, &timm);) {
        char text[128];
        att_network_name name;
        snprintf(text, sizeof text, "%.*s", (int)timm.name.length, timm.name.bytes);
        att_status status = att_model_resolve(p->context, text, &name);
        deprecated += timm.current.length > 0;
        names += timm.current.length == 0;
        if (status == ATT_OK) {
            assert_true(is_listed(name.network));
            listed += !name.deprecated;
            continue;
        }
        assert_int_equal(status, ATT_ERR_UNSUPPORTED);
        says(att_context_message(p->context), "timm has ");
        says(att_context_message(p->context), "; attscope does not support it");
        assert_true(timm.current.length > 0 || timm.lacks.length > 0);
        assert_null(strstr(att_context_message(p->context), "did you mean"));
    }
    assert_true(names > 1300 && deprecated > 150 && listed >= 100);
}

/* names.txt says of exactly those networks that attscope lacks something which attscope does not have. */
static void the_list_is_that_of_the_networks(void **state)
{
    (void)state;
    att_timm_name timm;
    for (size_t at = 0; att_timm_next_name(&at, &timm);) {
        char text[128];
        snprintf(text, sizeof text, "%.*s", (int)timm.name.length, timm.name.bytes);
        if (timm.current.length == 0 && is_listed(text) != (timm.lacks.length == 0))
            fail_msg("%s: run tools/goldens/timm_names.py", text);
    }
}

static void what_is_lacking_is_said(void **state)
{
    const place *p = *state;
    static const char *const lacking[][2] = {
        {"resnetaa50", "timm has resnetaa50 (anti-aliased downsampling); attscope does not support it"},
        {"resnetaa50.a1h_in1k", "timm has resnetaa50 (anti-aliased downsampling)"},
        {"resnetblur18", "by a blur"},
        {"vit_base_patch16_rpn_224", "norms after the branches"},
        {"vit_base_patch16_reg4_gap_256", "register tokens"},
        {"resnet50_gn", "group norm"},
        {"convnext_tiny", "ConvNeXt"},
        {"convnext_tiny_in22ft1k", "timm has convnext_tiny (ConvNeXt), formerly convnext_tiny_in22ft1k"},
        {"ig_resnext101_32x48d", "another width"},
    };
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++)
        does_not_resolve(p, lacking[i][0], ATT_ERR_UNSUPPORTED, lacking[i][1]);
}

static void deprecated_names_are_replaced(void **state)
{
    const place *p = *state;
    resolves(p, "tv_resnet50", "resnet50", "tv_in1k", true);
    resolves(p, "vit_base_patch16_224_in21k", "vit_base_patch16_224", "augreg_in21k", true);
    resolves(p, "seresnext26tn_32x4d", "seresnext26t_32x4d", "", true);
    resolves(p, "tv_resnet50.a1_in1k", "resnet50", "a1_in1k", true);
    resolves(p, "resnet50", "resnet50", "", false);
    resolves(p, "hf-hub:timm/resnet50.a1_in1k", "resnet50", "a1_in1k", false);
}

static void only_sure_slips_are_suggested(void **state)
{
    const place *p = *state;
    static const char *const slips[][2] = {
        {"resnt50", "resnet50"},
        {"renset50d", "resnet50d"},
        {"ResNet-50", "resnet50"},
        {"vit_tny_patch16_224", "vit_tiny_patch16_224"},
        {"vit_tini_patch16_224", "vit_tiny_patch16_224"},
        {"vit_tiny_patch16_244", "vit_tiny_patch16_224"},
        {"deit_small_pacth16_224", "deit_small_patch16_224"},
    };
    static const char *const others[] = {"resnet51",
                                         "resnet49",
                                         "xresnet50",
                                         "rednet50",
                                         "resnetx50",
                                         "resnet50b",
                                         "seresnet26",
                                         "ecaresnet34",
                                         "resnetab50",
                                         "resnetaa51",
                                         "resnetblr50",
                                         "resnext50_32x8d",
                                         "wide_resnet50_3",
                                         "vit_base_patch14_224",
                                         "dit_base_patch16_224",
                                         "pit_tiny_patch16_224",
                                         "vit_small_patch16_gap_224",
                                         "vit_base_patch16_rpm_224",
                                         "nothing_of_the_kind",
                                         "resnet103",                  /* a depth, no image size */
                                         "vit_tny_pacth16_224",        /* two slips */
                                         "vit_medium_patch16_gap_250", /* of gap_240 or of gap_256 */
                                         ""};
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++) {
        char words[96];
        snprintf(words, sizeof words, "did you mean \"%s\"?", slips[i][1]);
        does_not_resolve(p, slips[i][0], ATT_ERR_NOT_FOUND, words);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        does_not_resolve(p, others[i], ATT_ERR_NOT_FOUND, "there is no model");
        if (strstr(att_context_message(p->context), "did you mean"))
            fail_msg("%s: %s", others[i], att_context_message(p->context));
    }
    assert_false(att_name_is_slip("resnetv2_103", "resnetv2_101")); /* a depth, though three digits at the end */
}

/* --- pretrained tags --------------------------------------------------------------------------------------------- */

/* Those of timm's validate.py: the tag's own where the tag says no others. */
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
    assert_int_equal(variant.tag.test_img_size ? variant.tag.test_img_size : own->img_size, size);
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
    assert_int_equal(found.preprocess.img_size, size);
    assert_memory_equal(found.preprocess.mean, mean, sizeof mean);
    assert_memory_equal(found.preprocess.std, std, sizeof std);
    assert_true(found.preprocess.crop_pct == crop);
    assert_string_equal(found.preprocess.crop_mode, mode);
    assert_string_equal(found.preprocess.interpolation, interpolation);
    check_test_images(p, network, tag, &found.preprocess, golden);
}

/* All values of all tags, in the order of the goldens: of networks by name, of tags as timm has them. */
static void tags_have_timms_values(void **state)
{
    const place *p = *state;
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

static void a_tag_gives_a_new_network_its_images_and_classes(void **state)
{
    const place *p = *state;
    att_model *model = make(p, "resnet50.tv2_in1k", NULL);
    assert_string_equal(att_model_name(model), "resnet50");
    assert_int_equal(att_model_preprocess(model).img_size, 176);
    assert_true(att_model_preprocess(model).crop_pct == 0.875);
    assert_string_equal(att_model_preprocess(model).interpolation, "bilinear");
    att_model_destroy(&model);
    att_model_options options = att_model_options_defaults();
    options.img_size = 64;
    strcpy(options.stem_type, "conv3"); /* a network for small images, which the tag's are not */
    model = make(p, "resnet50.tv2_in1k", &options);
    assert_int_equal(att_model_preprocess(model).img_size, 64);
    assert_true(att_model_preprocess(model).crop_pct == 1);
    att_model_destroy(&model);
    model = make(p, "vit_tiny_patch16_224_in21k", NULL);
    assert_int_equal(att_model_options_of(model).num_classes, 21843);
    att_model_destroy(&model);
}

static void unknown_tags_are_refused(void **state)
{
    const place *p = *state;
    does_not_resolve(p, "deit_tiny_patch16_224.fb_in22k", ATT_ERR_NOT_FOUND,
                     "deit_tiny_patch16_224 has no pretrained tag \"fb_in22k\"; its tags are fb_in1k");
    does_not_resolve(p, "resnet20.a1_in1k", ATT_ERR_NOT_FOUND, "resnet20 has no pretrained tags");
}

/* --- files ------------------------------------------------------------------------------------------------------- */

static const char tagged[] = "{\"architecture\": \"vit_tiny_patch16_224\", \"pretrained_cfg\": {\"tag\": \"%s\"%s}}";

static void a_file_takes_the_tags_images(void **state)
{
    const place *p = *state;
    att_model_options options = att_model_options_defaults();
    options.depth = 1, options.num_classes = 7;
    write_model(p, "deit3_small_patch16_224", &options, false);
    att_identity identity;
    CHECK(p->context, identify(p, "deit3_small_patch16_224.fb_in22k_ft_in1k", NULL, &identity));
    assert_true(identity.preprocess.crop_pct == 1);
    assert_int_equal(identity.options.num_classes, 7); /* tensors go before the tag */
    says(identity.origin, "architecture: as asked for (deit3_small_patch16_224.fb_in22k_ft_in1k)");
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
    CHECK(p->context, identify(p, "deit3_small_patch16_224.fb_in1k", NULL, &identity)); /* another one's config */
    assert_true(identity.preprocess.crop_pct == 0.9);
    says(identity.brief, "config.json, which names deit3_small_patch16_224.fb_in22k_ft_in1k, was left out");
    write_beside(p, "args.yaml", "model: deit3_small_patch16_224.fb_in22k_ft_in1k\ncrop_pct: 0.5\n");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_true(identity.preprocess.crop_pct == 0.5); /* what the file says goes before its tag's */
}

static void refused(const place *p, const char *name, att_status status, const char *words)
{
    att_identity identity;
    assert_int_equal(identify(p, name, NULL, &identity), status);
    says(att_context_message(p->context), words);
}

/* config.json beside the weights may be of another training of the same network. */
static void the_callers_tag_goes_before_the_config(void **state)
{
    const place *p = *state;
    att_identity identity;
    write_model(p, "resnet18", NULL, false);
    write_beside(
        p, "config.json",
        "{\"architecture\": \"resnet18\", \"pretrained_cfg\": {\"crop_pct\": 0.5, \"input_size\": [3, 96, 96], "
        "\"test_input_size\": [3, 128, 128], \"test_crop_pct\": 0.75}}");
    CHECK(p->context, identify(p, "resnet18.a1_in1k", NULL, &identity));
    assert_int_equal(identity.preprocess.img_size, 224);
    assert_true(identity.preprocess.crop_pct == 0.95);
    assert_int_equal(identity.test_img_size, 288);
    assert_true(identity.test_crop_pct == 1);
    says(identity.brief, "the preprocessing of config.json was left out for that of the tag");
    CHECK(p->context, identify(p, "resnet18", NULL, &identity));
    assert_int_equal(identity.preprocess.img_size, 96);
    assert_true(identity.preprocess.crop_pct == 0.5);
    assert_int_equal(identity.test_img_size, 128);
    assert_true(identity.test_crop_pct == 0.75);
    assert_null(strstr(identity.brief, "left out"));
    write_beside(p, "config.json", "{\"architecture\": \"resnet18\", \"pretrained_cfg\": {\"crop_pct\": 0.95}}");
    CHECK(p->context, identify(p, "resnet18.a1_in1k", NULL, &identity));
    assert_null(strstr(identity.brief, "left out")); /* both are the same */
    /* What a source says of images goes before what its tag says of the evaluation. */
    write_beside(p, "config.json", "{}");
    write_beside(p, "args.yaml", "model: resnet18.a1_in1k\nimg_size: 96\n");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_int_equal(identity.test_img_size, 0);
    assert_true(identity.test_crop_pct == 1);
    write_beside(p, "args.yaml", "model: resnet18.a1_in1k\ncrop_pct: 0.5\n");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_int_equal(identity.test_img_size, 288);
    assert_true(identity.test_crop_pct == 0);
    write_beside(p, "config.json", "{\"pretrained_cfg\": {\"test_input_size\": [3, 128, 96]}}");
    refused(p, "resnet18", ATT_ERR_FORMAT, "test_input_size");
}

/* As in timm before 0.9, and where a config says that it has none. */
static void images_may_be_described_beside_the_name(void **state)
{
    const place *p = *state;
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

/* Whatever else describes images. */
static void the_callers_tag_goes_before_all_sources(void **state)
{
    const place *p = *state;
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
    says(identity.brief, "the preprocessing of the file's metadata was left out for that of the tag");
    write_tensors(p, &t, NULL);
    write_beside(p, "args.yaml", "model: resnet18\ncrop_pct: 0.5\nmean: 0.25\ninterpolation: bicubic\n");
    CHECK(p->context, identify(p, "resnet18.tv_in1k", NULL, &identity));
    assert_true(identity.preprocess.crop_pct == 0.875 && identity.preprocess.mean[0] == 0.485);
    assert_string_equal(identity.preprocess.interpolation, "bilinear");
    says(identity.brief, "the preprocessing of args.yaml was left out for that of the tag");
    att_model_destroy(&model);
}

static void tags_of_others_than_timm_say_nothing(void **state)
{
    const place *p = *state;
    char config[256];
    write_model(p, "vit_tiny_patch16_224", NULL, false);
    snprintf(config, sizeof config, tagged, "mine", ", \"crop_pct\": 0.5");
    write_beside(p, "config.json", config);
    att_identity identity;
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_true(identity.preprocess.crop_pct == 0.5);
}

/* A name that has a tag keeps it, whatever another part of the source or another source says. */
static void the_first_tag_counts(void **state)
{
    const place *p = *state;
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

/* Their tensors are those of a network here, what they compute is not. */
static void networks_with_the_same_tensors_are_refused(void **state)
{
    const place *p = *state;
    att_model_options options = att_model_options_defaults();
    strcpy(options.layers, "1,1,1,1");
    options.width = 8;
    write_model(p, "resnet50", &options, false);
    refused(p, "resnetaa50", ATT_ERR_UNSUPPORTED, "timm has resnetaa50 (anti-aliased downsampling)");
    write_model(p, "resnet50", NULL, false);
    refused(p, NULL, ATT_ERR_NOT_FOUND,
            "its tensors fit resnet50; give that name, or the name of a network with the same tensors that expects "
            "other images. timm's networks with the same "
            "tensors, which attscope does not support: resnetaa50, resnetblur50");
    static const char *const files[][2] = {
        {"config.json", "{\"architecture\": \"resnetaa50\"}"},
        {"config.json", "{\"architecture\": \"resnetaa50\", \"pretrained_cfg\": {\"tag\": \"a1h_in1k\"}}"},
        {"args.yaml", "model: resnetaa50\n"},
        {"args.yaml", "model: resnetaa50.a1h_in1k\n"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[128];
        write_beside(p, files[i][0], files[i][1]);
        refused(p, NULL, ATT_ERR_UNSUPPORTED, "timm has resnetaa50 (anti-aliased downsampling)");
        refused(p, "resnet50", ATT_ERR_UNSUPPORTED, files[i][0]); /* the caller does not make it another one */
        path_in(p, files[i][0], path);
        unlink(path);
    }
    att_identity identity;
    write_beside(p, "config.json", "{\"architecture\": \"my_own_network\"}");
    CHECK(p->context, identify(p, "resnet50", NULL, &identity));
    says(identity.brief, "config.json, which names my_own_network, was left out");
}

/* What shows in tensors only is said beside what the name means. */
static void a_lacking_name_and_the_tensors_are_explained(void **state)
{
    const place *p = *state;
    att_model_options options = small();
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    tensors t = tensors_of(model);
    add_tensor(&t, "reg_token", att_shape_of(1, 4, 32));
    write_tensors(p, &t, NULL);
    att_model_destroy(&model);
    static const char *const names[] = {"vit_base_patch16_dinov3", "vit_base_patch16_reg4_gap_256", "no_such_name"};
    for (int i = 0; i < 3; i++) {
        att_status status = i < 2 ? ATT_ERR_UNSUPPORTED : ATT_ERR_NOT_FOUND;
        refused(p, names[i], status, names[i]);
        refused(p, names[i], status, "tensor \"reg_token\"");
        refused(p, names[i], status, "register tokens");
    }
}

/* --- arguments --------------------------------------------------------------------------------------------------- */

typedef struct argument {
    const char *json, *yaml;
    const char *refusal; /* NULL: harmless */
} argument;

static void takes_arguments(const place *p, const char *network, const argument *arguments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const argument *a = &arguments[i];
        for (int form = 0; form < 2; form++) {
            char config[256], args[256], *text = form ? args : config;
            const char *const files[] = {"config.json", "args.yaml"};
            snprintf(config, sizeof config, "{\"architecture\": \"%s\", \"model_args\": {%s}}", network, a->json);
            snprintf(args, sizeof args, "model: %s\nmodel_kwargs:\n  %s\n", network, a->yaml);
            write_beside(p, files[form], text);
            att_identity identity;
            att_status status = identify(p, NULL, NULL, &identity);
            if ((status == ATT_OK) != !a->refusal)
                fail_msg("%s: %s", text, status == ATT_OK ? "is taken" : att_context_message(p->context));
            if (a->refusal) {
                assert_int_equal(status, ATT_ERR_UNSUPPORTED);
                says(att_context_message(p->context), a->refusal);
                refused(p, network, ATT_ERR_UNSUPPORTED, a->refusal);
            }
            char path[128];
            path_in(p, files[form], path);
            unlink(path);
        }
    }
}

static void arguments_that_change_a_vit_are_refused(void **state)
{
    const place *p = *state;
    att_model_options options = att_model_options_defaults();
    options.depth = 1;
    write_model(p, "vit_tiny_patch16_224", &options, false);
    static const argument arguments[] = {
        {"\"act_layer\": \"silu\"", "act_layer: silu", "made with act_layer \"silu\""},
        {"\"act_layer\": \"relu\"", "act_layer: relu", "act_layer"},
        {"\"act_layer\": \"gelu\"", "act_layer: gelu", NULL},
        {"\"norm_layer\": \"rmsnorm\"", "norm_layer: rmsnorm", "norm_layer"},
        {"\"norm_layer\": \"layernorm\"", "norm_layer: layernorm", NULL},
        {"\"qk_norm\": true", "qk_norm: true", "qk_norm true"},
        {"\"qk_norm\": false", "qk_norm: false", NULL},
        {"\"pool_include_prefix\": true", "pool_include_prefix: true", "pool_include_prefix true"},
        {"\"reg_tokens\": 4", "reg_tokens: 4", "reg_tokens 4"},
        {"\"reg_tokens\": 0", "reg_tokens: 0", NULL},
        {"\"pos_embed\": \"learn\"", "pos_embed: learn", NULL},
        {"\"pos_embed\": \"none\"", "pos_embed: none", "pos_embed \"none\""},
        {"\"pre_norm\": true", "pre_norm: true", "pre_norm true"},
        {"\"proj_bias\": true", "proj_bias: true", NULL},
        {"\"proj_bias\": false", "proj_bias: false", "proj_bias false"},
        {"\"drop_rate\": 0.5", "drop_rate: 0.5", NULL},
        {"\"drop_path_rate\": 0.1", "drop_path_rate: 0.1", NULL},
        {"\"dynamic_img_size\": true", "dynamic_img_size: true", NULL},
        {"\"a_later_switch\": false", "a_later_switch: false", NULL},
        {"\"a_later_switch\": true", "a_later_switch: true", "a_later_switch true"},
        {"\"a_later_one\": {\"x\": 1}", "a_later_one: [a, b]", "a_later_one"},
    };
    takes_arguments(p, "vit_tiny_patch16_224", arguments, sizeof arguments / sizeof *arguments);
}

static void arguments_that_change_a_resnet_are_refused(void **state)
{
    const place *p = *state;
    att_model_options options = att_model_options_defaults();
    strcpy(options.layers, "1,1,1,1");
    options.width = 8;
    write_model(p, "resnet50", &options, false);
    static const argument arguments[] = {
        {"\"aa_layer\": \"avg\"", "aa_layer: avg", "made with aa_layer \"avg\""},
        {"\"output_stride\": 8", "output_stride: 8", "output_stride 8"},
        {"\"output_stride\": 32", "output_stride: 32", NULL},
        {"\"act_layer\": \"gelu\"", "act_layer: gelu", "act_layer"},
        {"\"act_layer\": \"relu\"", "act_layer: relu", NULL},
        {"\"norm_layer\": \"groupnorm\"", "norm_layer: groupnorm", "norm_layer"},
        {"\"down_kernel_size\": 3", "down_kernel_size: 3", "down_kernel_size 3"},
        {"\"down_kernel_size\": 1", "down_kernel_size: 1", NULL},
        {"\"drop_block_rate\": 0.1", "drop_block_rate: 0.1", NULL},
        {"\"layers\": [1, 1, 1, 1]", "layers: [1, 1, 1, 1]", NULL},
        {"\"block_args\": {}", "block_args: {}", NULL},
        {"\"block_args\": {\"attn_layer\": \"se\"}", "block_args: [se]", "block_args"},
    };
    takes_arguments(p, "resnet50", arguments, sizeof arguments / sizeof *arguments);
    write_beside(p, "args.yaml", "model: resnet50\nbn_eps: 0.001\n");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "bn_eps 0.001");
    write_beside(p, "args.yaml", "model: resnet50\nbn_eps: 1.0e-05\nbn_tf: false\ngp: max\n");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "model.safetensors: the network that this file and those beside it describe");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "global_pool must be \"avg\"");
    write_beside(p, "args.yaml", "model: resnet50\ngp: catavgmax\n");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "gp is \"catavgmax\", which attscope does not have");
    att_identity identity;
    write_beside(p, "args.yaml", "model: resnet50\n");
    strcpy(options.global_pool, "max"); /* the caller's error, not the file's */
    assert_int_equal(identify(p, NULL, &options, &identity), ATT_ERR_ARGUMENT);
}

/* A source that names no network of attscope does not make another family's value harmless. */
static void arguments_beside_unknown_names_are_checked(void **state)
{
    const place *p = *state;
    static const struct {
        const char *file, *text, *argument; /* two places for values */
    } sources[] = {
        {"args.yaml", "model: my_network\nmodel_kwargs:\n  act_layer: %s\n", "act_layer"},
        {"args.yaml", "model_kwargs:\n  norm_layer: %s\n", "norm_layer"},
        {"config.json", "{\"model_args\": {\"act_layer\": \"%s\"}}", "act_layer"},
        {"config.json", "{\"architecture\": \"my_network\", \"model_args\": {\"norm_layer\": \"%s\"}}", "norm_layer"},
    };
    static const struct {
        const char *network, *act, *norm;
    } families[] = {{"vit_tiny_patch16_224", "gelu", "layernorm"}, {"resnet18", "relu", "batchnorm2d"}};
    for (int f = 0; f < 2; f++) {
        att_model_options options = att_model_options_defaults();
        options.depth = f == 0 ? 1 : 0;
        write_model(p, families[f].network, &options, false);
        for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
            bool is_act = strcmp(sources[i].argument, "act_layer") == 0;
            char text[160], path[128];
            att_identity identity;
            snprintf(text, sizeof text, sources[i].text, is_act ? families[f].act : families[f].norm);
            write_beside(p, sources[i].file, text);
            CHECK(p->context, identify(p, families[f].network, NULL, &identity));
            snprintf(text, sizeof text, sources[i].text, is_act ? families[!f].act : families[!f].norm);
            write_beside(p, sources[i].file, text);
            refused(p, families[f].network, ATT_ERR_UNSUPPORTED, sources[i].argument);
            path_in(p, sources[i].file, path);
            unlink(path);
        }
    }
}

static void arguments_in_no_mapping_are_refused(void **state)
{
    const place *p = *state;
    static const char *const files[][3] = {
        {"config.json", "{\"model_args\": [\"act_layer\", \"relu\"]}", "made with model_args"},
        {"args.yaml", "model_kwargs: act_layer=relu\n", "made with model_kwargs"},
        {"args.yaml", "model_kwargs:\n  a_name_that_is_too_long_to_be_one_of_those_that_any_network_here_has: 1\n",
         "made with a_name_that_is_too_long"},
    };
    att_model_options options = att_model_options_defaults();
    options.depth = 1;
    write_model(p, "vit_tiny_patch16_224", &options, false);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[128];
        write_beside(p, files[i][0], files[i][1]);
        refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, files[i][2]);
        path_in(p, files[i][0], path);
        unlink(path);
    }
}

static void other_librarys_configs_are_refused(void **state)
{
    const place *p = *state;
    att_identity identity;
    write_model(p, "vit_tiny_patch16_224", NULL, false);
    write_beside(p, "config.json", "{\"model_type\": \"vit\", \"layer_norm_eps\": 1e-12, \"hidden_act\": \"gelu\"}");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "transformers library (model_type \"vit\")");
    write_beside(
        p, "config.json",
        "{\"architecture\": \"vit_tiny_patch16_224\", \"model_type\": \"timm_wrapper\", \"num_classes\": 1000}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
}

/* As other codes write them into safetensors. */
static void write_described(const place *p, const char *key, const char *value)
{
    att_model_options options = att_model_options_defaults();
    options.depth = 1;
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    tensors t = tensors_of(model);
    att_safetensors_pair metadata[] = {{"arch", "vit_tiny_patch16_224"}, {key, value}};
    bool names = strcmp(key, "arch") == 0;
    att_safetensors_content content = {.tensors = t.items,
                                       .tensor_count = t.count,
                                       .metadata = metadata + names,
                                       .metadata_count = 2 - names,
                                       .fill = fill_formula,
                                       .fill_user = &t};
    CHECK(p->context, att_safetensors_write(p->context, p->weights, &content));
    att_model_destroy(&model);
}

static void metadata_of_others_is_read(void **state)
{
    const place *p = *state;
    att_identity identity;
    write_described(p, "arch", "vit_base_patch16_rpn_224");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "norms after the branches");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "norms after the branches");
    write_described(p, "model_args", "{\"act_layer\": \"silu\"}");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "act_layer");
    write_described(p, "config", "{\"model_type\": \"vit\"}");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "transformers library");
    write_described(p, "args", "{\"model\": \"vit_tiny_patch16_224\", \"gp\": null, \"model_kwargs.qk_norm\": true}");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "qk_norm");
    write_described(p, "args", "{\"model\": \"my_vit\", \"model_kwargs.act_layer\": \"relu\"}");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "act_layer");
    write_described(p, "args", "{\"model_kwargs\": {\"unreadable\": true}}");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "model_kwargs");
    write_described(p, "args", "{\"patch_size\": 7, \"input_size\": 224}"); /* not timm's: other meanings */
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    write_described(p, "args", "{\"model\": \"vit_small_patch16_224\"}");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "names two networks, \"vit_tiny_patch16_224\" and");
    write_described(p, "args", "{\"model\": \"my_own\"}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    static const char *const empty[] = {"", " ", "null", "None", "{}"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        write_described(p, "model_args", empty[i]);
        CHECK(p->context, identify(p, NULL, NULL, &identity));
    }
    write_described(p, "args", "{\"gp\": null, \"crop_pct\": 0.5}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_non_null(strstr(identity.brief, "the checkpoint's \"arch\"; preprocessing: the checkpoint's \"args\""));
    write_described(p, "pretrained_cfg", "{\"crop_pct\": 0.5}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_true(identity.preprocess.crop_pct == 0.5);
}

/* What is there and cannot be read may ask for another computation. */
static void metadata_that_cannot_be_read_is_refused(void **state)
{
    const place *p = *state;
    static const char *const keys[] = {"model_args",       "model_kwargs", "kwargs",        "args",
                                       "hyper_parameters", "config",       "pretrained_cfg"};
    static const char *const texts[] = {"no object", "{'act_layer': 'silu'}", "[[\"act_layer\", \"silu\"]]"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            char words[64];
            write_described(p, keys[k], texts[i]);
            snprintf(words, sizeof words, "\"%s\" is no JSON object", keys[k]);
            refused(p, "vit_tiny_patch16_224", ATT_ERR_FORMAT, words);
        }
    write_described(p, "model_args", " {\"act_layer\": \"silu\"}");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "act_layer");
    write_described(p, "hyper_parameters", "{\"model_kwargs.act_layer\": \"silu\"}");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "act_layer");
}

static void a_source_that_names_two_networks_is_refused(void **state)
{
    const place *p = *state;
    att_identity identity;
    static const char *const keys[] = {"architecture", "model_name", "model", "timm_model"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        write_described(p, keys[i], "vit_base_patch16_rpn_224");
        refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "names two networks");
        write_described(p, keys[i], "vit_tiny_patch16_224.augreg_in21k");
        CHECK(p->context, identify(p, NULL, NULL, &identity));
        write_described(p, keys[i], "of_my_own");
        CHECK(p->context, identify(p, NULL, NULL, &identity));
    }
    char description[200];
    memset(description, 'x', sizeof description - 1);
    description[sizeof description - 1] = '\0';
    write_described(p, "model", description);
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    write_described(p, "hyper_parameters", "{\"model_name\": \"vit_small_patch16_224\"}");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "names two networks");
    write_model(p, "vit_tiny_patch16_224", NULL, false);
    write_beside(p, "config.json",
                 "{\"architecture\": \"vit_tiny_patch16_224\", "
                 "\"pretrained_cfg\": {\"architecture\": \"deit_tiny_patch16_224\"}}");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "names two networks");
    write_beside(p, "config.json", "{\"pretrained_cfg\": {\"architecture\": \"vit_tiny_patch16_224\"}}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
}

/* Names that mean a network of timm's for a human. */
static void names_that_are_nearly_timms_are_refused(void **state)
{
    const place *p = *state;
    static const char *const names[][2] = {{"ResNetBlur18", "timm has resnetblur18"},
                                           {" resnetblur18\\n", "timm has resnetblur18"},
                                           {"resnetblur18.mine", "timm has resnetblur18"},
                                           {"resnet18.foo", "resnet18 has no pretrained tag \"foo\""}};
    write_model(p, "resnet18", NULL, false);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"architecture\": \"%s\"}", names[i][0]);
        write_beside(p, "config.json", text);
        refused(p, "resnet18", ATT_ERR_UNSUPPORTED, names[i][1]);
        refused(p, NULL, ATT_ERR_UNSUPPORTED, names[i][1]);
    }
}

static void arguments_count_wherever_they_lie(void **state)
{
    const place *p = *state;
    static const char *const members[][2] = {
        {"\"model_kwargs\": {\"act_layer\": \"silu\"}", "act_layer \"silu\""},
        {"\"kwargs\": {\"act_layer\": \"silu\"}", "act_layer \"silu\""},
        {"\"kwargs\": [\"act_layer\"]", "kwargs"},
        {"\"act_layer\": \"silu\"", "act_layer \"silu\""},
        {"\"model_args\": {\"global_pool\": \"\"}", "global_pool is \"\""},
        {"\"global_pool\": \"\"", "global_pool is \"\""},
    };
    att_identity identity;
    write_model(p, "resnet18", NULL, false);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        char text[160];
        snprintf(text, sizeof text, "{\"architecture\": \"resnet18\", %s}", members[i][0]);
        write_beside(p, "config.json", text);
        refused(p, "resnet18", ATT_ERR_UNSUPPORTED, members[i][1]);
    }
    write_beside(p, "config.json",
                 "\xEF\xBB\xBF{\"architecture\": \"resnet18\", \"act_layer\": \"relu\", "
                 "\"model_args\": {\"pretrained\": true, \"stem_type\": \"\"}}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    write_beside(p, "config.json", "{}");
    write_beside(p, "args.yaml", "model: resnet18\ngp: ''\n");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "gp is \"\"");
    write_beside(p, "args.yaml", "model: resnet18\nmodel_kwargs: {global_pool: ''}\n");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "global_pool is \"\"");
    write_beside(p, "args.yaml", "model: resnet18\ngp:\ninterpolation: ''\n");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_name_of_timm_is_known),
        TEST(the_list_is_that_of_the_networks),
        TEST(what_is_lacking_is_said),
        TEST(deprecated_names_are_replaced),
        TEST(only_sure_slips_are_suggested),
        TEST(tags_have_timms_values),
        TEST(a_tag_gives_a_new_network_its_images_and_classes),
        TEST(unknown_tags_are_refused),
        TEST(a_file_takes_the_tags_images),
        TEST(the_callers_tag_goes_before_the_config),
        TEST(images_may_be_described_beside_the_name),
        TEST(the_callers_tag_goes_before_all_sources),
        TEST(tags_of_others_than_timm_say_nothing),
        TEST(the_first_tag_counts),
        TEST(networks_with_the_same_tensors_are_refused),
        TEST(a_lacking_name_and_the_tensors_are_explained),
        TEST(arguments_that_change_a_vit_are_refused),
        TEST(arguments_that_change_a_resnet_are_refused),
        TEST(arguments_beside_unknown_names_are_checked),
        TEST(arguments_in_no_mapping_are_refused),
        TEST(other_librarys_configs_are_refused),
        TEST(metadata_of_others_is_read),
        TEST(metadata_that_cannot_be_read_is_refused),
        TEST(a_source_that_names_two_networks_is_refused),
        TEST(names_that_are_nearly_timms_are_refused),
        TEST(arguments_count_wherever_they_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Checkpoints of residual networks: what is derived from tensors and metadata, and which files are refused. */
#include "networks/models/module_options.h"
#include "networks/models/residual.h"
#include "sanitized.h"

PLACE_TEST(tensors_tell_the_network)
{
    att_option_values options = tiny("se:ratio=4", "layer1:1,layer3:all");
    att_options_set(&options, "in_chans", 1);
    write_model(p, "resnet164", &options, false);
    att_identity found;
    identifies(p, "resnet164", &found);
    const att_option_values *o = &found.options;
    assert_int_equal(att_options_number(o, "depth", -1), 20);
    assert_int_equal(att_options_number(o, "width", -1), 4);
    assert_int_equal(att_options_number(o, "in_chans", -1), 1);
    assert_int_equal(att_options_number(o, "num_classes", -1), 7);
    assert_string_equal(att_options_text(o, "layers"), "2,2,2");
    assert_string_equal(att_options_text(o, "block"), "bottleneck");
    assert_string_equal(att_options_text(o, "shortcut"), "conv");
    assert_string_equal(att_options_text(o, "stem_type"), "conv3");
    has_module(o, "se:ratio=4", "1,4-5");
    assert_int_equal(att_options_number(o, "img_size", -1), 32);
}

static void options_are_seen(const place *p, const char *name, int width, const char *made, const char *told)
{
    att_option_values options = tiny(made, "all");
    att_options_set(&options, "width", width);
    write_model(p, name, &options, false);
    att_identity found;
    identifies(p, name, &found);
    has_module(&found.options, told, NULL);
}

/* Ratios with rounded hidden widths, biases, kernels, StepNet's adaptors and inputs. Options that leave no trace in
 * tensors stay at their defaults. */
PLACE_TEST(tensors_tell_a_modules_options)
{
    static const char *const texts[] = {"se",
                                        "se:ratio=8",
                                        "se:ratio=2,bias=0",
                                        "se:ratio=3",
                                        "se:bias=0,divisor=8",
                                        "eca",
                                        "fca:ratio=4",
                                        "srm",
                                        "cbam:kernel=3",
                                        "cbam:ratio=4",
                                        "step",
                                        "step:input=x_t",
                                        "step:adaptor=iebn,input=x_t1",
                                        "step:adaptor=bottleneck,ratio=4",
                                        "step:adaptor=conv1d",
                                        "step:adaptor=style,input=difference",
                                        "step:adaptor=dct,ratio=8",
                                        "step:adaptor=linear"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        options_are_seen(p, "resnet164", 16, texts[i], texts[i]);
    static const char *const timms[][2] = {
        {"seresnet18", "se:divisor=8"}, {"seresnet50", "se"}, {"ecaresnet50t", "eca"}};
    for (int i = 0; i < 3; i++) {
        att_option_values options = att_options_none();
        att_options_set_text(&options, "layers", "1,1,1,1");
        write_model(p, timms[i][0], &options, false);
        att_identity found;
        CHECK(p->context, identify(p, timms[i][0], &options, &found));
        has_module(&found.options, timms[i][1], NULL);
    }
    options_are_seen(p, "resnet164", 16, "fca:shrink=3", "fca");
    options_are_seen(p, "resnet164", 20, "se:ratio=7", "se:ratio=7");
    options_are_seen(p, "resnet164", 4, "se:ratio=1024", "se:ratio=64"); /* both give one hidden channel */
}

/* In the same blocks and in different ones. */
PLACE_TEST(several_modules_are_seen)
{
    static const char *const texts[] = {"se:ratio=4+srm", "se:ratio=2@after_branch:0-1+srm+cbam@after_branch:2-4"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        att_option_values options = tiny("none", "all");
        att_options_set(&options, "width", 16);
        att_options_set_text(&options, "modules", texts[i]);
        write_model(p, "resnet164", &options, false);
        att_identity found;
        identifies(p, "resnet164", &found);
        assert_string_equal(att_options_text(&found.options, "modules"), texts[i]);
    }
}

static bool no_alias(const att_context *context, const char *name, int index, char *other, size_t size)
{
    (void)context, (void)name, (void)index, (void)other, (void)size;
    return false;
}

/* Options are guessed from the first eight ratios of channels to rows among a block's tensors. A ninth ratio is
 * ignored, and does not overflow the array. */
PLACE_TEST(ratios_beyond_the_eighth_are_left_out)
{
    static const int rows[] = {120, 80, 60, 40, 30, 24, 20, 15, 12, 10}; /* ratios 2 to 24, without 5 */
    att_module_choice se;
    CHECK(p->context, att_module_parse(p->context, "se", &se));
    for (int before = 0; before < 10; before++) {
        tensors t = {0};
        att_module_block site = {.block = "layer1.0", .place = ATT_ON_MAPS, .channels = 240, .tensors = 4};
        char name[10][32], text[64];
        for (int i = 0; i < 10; i++) {
            snprintf(name[i], sizeof name[i], "layer1.0.%s%d.weight", i < before ? "before" : "then", i);
            if (i == before) {
                add_tensor(&t, "layer1.0.se.fc1.weight", att_shape_of(48, 240, 1, 1));
                add_tensor(&t, "layer1.0.se.fc1.bias", att_shape_of(48));
                add_tensor(&t, "layer1.0.se.fc2.weight", att_shape_of(240, 48, 1, 1));
                add_tensor(&t, "layer1.0.se.fc2.bias", att_shape_of(240));
            }
            add_tensor(&t, name[i], att_shape_of(rows[i], 3));
        }
        write_tensors(p, &t, NULL);
        att_tensors *file;
        CHECK(p->context, att_tensors_open(p->context, p->weights, &file));
        const att_module_places places = {file, &site, 1, no_alias};
        bool fits;
        CHECK(p->context, att_module_options_infer(p->context, &places, se.module, text, sizeof text, &fits));
        assert_string_equal(text, before < 8 ? "se:ratio=5" : "se");
        att_tensors_close(&file);
    }
}

PLACE_TEST(metadata_tells_what_tensors_do_not)
{
    att_option_values options = tiny("se:ratio=4", "every:3");
    write_model(p, "preresnet164", &options, true);
    att_identity found;
    identifies(p, NULL, &found);
    assert_string_equal(found.name, "preresnet164");
    has_module(&found.options, "se:ratio=4", "every:3");
    assert_int_equal(att_options_number(&found.options, "img_size", -1), 8);
}

static void says_dimensions(const place *p, const char *name, const char *block, const char *stem, const char *shortcut)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "width", 8), att_options_set(&options, "img_size", 32);
    att_options_set_text(&options, "layers", "1,2,1,1");
    write_model(p, name, &options, false);
    att_identity found;
    identifies(p, name, &found);
    assert_string_equal(att_options_text(&found.options, "layers"), "1,2,1,1");
    assert_string_equal(att_options_text(&found.options, "block"), block);
    assert_string_equal(att_options_text(&found.options, "stem_type"), stem);
    assert_string_equal(att_options_text(&found.options, "shortcut"), shortcut);
    assert_int_equal(att_options_number(&found.options, "width", -1), 8);
}

/* timm's resnet50s has a stem of 64, 64 and 128 channels. */
PLACE_TEST(deep_stems_of_other_widths_are_refused)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "width", 16), att_options_set_text(&options, "layers", "1,1,1,1");
    att_model *model = make(p, "resnet50c", &options);
    tensors t = tensors_of(model);
    for (int i = 0; i < t.count; i++)
        if (strcmp(t.items[i].name, "conv1.0.weight") == 0)
            t.items[i].shape.dims[0] = 16;
    write_tensors(p, &t, NULL);
    refused(p, "resnet50c", ATT_ERR_UNSUPPORTED,
            "its stem have 16, 8 and 16 channels; a network of this width has 6, 8");
    att_model_destroy(&model);
}

PLACE_TEST(blocks_stems_and_shortcuts_are_recognised)
{
    says_dimensions(p, "resnet18", "basic", "conv7", "conv");
    says_dimensions(p, "resnet18d", "basic", "deep", "avg_conv");
    says_dimensions(p, "resnet50", "bottleneck", "conv7", "conv");
    says_dimensions(p, "resnet50c", "bottleneck", "deep", "conv");
    says_dimensions(p, "ecaresnet50t", "bottleneck", "deep_tiered", "avg_conv");
}

PLACE_TEST(groups_and_widths_are_seen)
{
    static const struct {
        const char *name;
        int cardinality, base_width;
    } cases[] = {{"wide_resnet50_2", 1, 128}, {"resnext50_32x4d", 32, 4}, {"resnext101_32x8d", 32, 8}};
    for (int i = 0; i < 3; i++) {
        att_option_values options = att_options_none();
        att_options_set_text(&options, "layers", "1,1,1,1");
        write_model(p, cases[i].name, &options, false);
        att_identity found;
        identifies(p, "resnet50", &found);
        assert_int_equal(att_options_number(&found.options, "cardinality", -1), cases[i].cardinality);
        assert_int_equal(att_options_number(&found.options, "base_width", -1), cases[i].base_width);
        assert_int_equal(att_options_number(&found.options, "width", -1), 64);
    }
}

/* For names that differ in the module only. */
PLACE_TEST(a_module_decides_which_name_fits)
{
    static const char *const names[] = {"resnet18", "seresnet18", "resnet50", "seresnet50", "ecaresnet50d"};
    att_identity found;
    const size_t count = is_sanitized() ? 2 : sizeof names / sizeof *names;
    for (size_t i = 0; i < count; i++) {
        char expected[80];
        att_option_values options = att_options_none();
        att_options_set(&options, "num_classes", 3);
        write_model(p, names[i], &options, false);
        assert_int_equal(identify(p, NULL, NULL, &found), ATT_ERR_NOT_FOUND);
        snprintf(expected, sizeof expected, "its tensors fit %s; give that name", names[i]);
        says(att_context_message(p->context), expected);
    }
}

/* The architecture in a training script's checkpoint counts if it is a name of attscope. */
PLACE_TEST(an_architecture_in_the_file_is_taken)
{
    att_model *model = make(p, "resnet20", NULL);
    tensors t = tensors_of(model);
    att_safetensors_pair metadata = {ATT_TENSORS_ARCHITECTURE, "resnet20"};
    att_safetensors_content content = {.tensors = t.items,
                                       .tensor_count = t.count,
                                       .metadata = &metadata,
                                       .metadata_count = 1,
                                       .fill = fill_formula,
                                       .fill_user = &t};
    att_identity found;
    CHECK(p->context, att_safetensors_write(p->context, p->weights, &content));
    CHECK(p->context, identify(p, NULL, NULL, &found));
    assert_string_equal(found.name, "resnet20");
    says(found.origin, "architecture: the checkpoint's \"arch\" (resnet20)");
    metadata.value = "resnet32";
    CHECK(p->context, att_safetensors_write(p->context, p->weights, &content));
    CHECK(p->context, identify(p, "resnet20", NULL, &found));
    says(found.origin, "names resnet32, was left out");
    assert_int_equal(identify(p, NULL, NULL, &found), ATT_ERR_MISMATCH);
    says(att_context_message(p->context), "not those of resnet32 (the name in the checkpoint's \"arch\"); they fit");
    metadata.value = "resnet";
    CHECK(p->context, att_safetensors_write(p->context, p->weights, &content));
    assert_int_equal(identify(p, NULL, NULL, &found), ATT_ERR_NOT_FOUND);
    says(att_context_message(p->context),
         "\"arch\" names the network \"resnet\", which is unknown here; its tensors fit "
         "resnet20; give that name");
    CHECK(p->context, identify(p, "resnet20", NULL, &found));
    says(found.brief, "the checkpoint's \"arch\", which names resnet, was left out");
    att_model_destroy(&model);
}

/* Tensors of another network are accepted only if the caller's options describe them. */
PLACE_TEST(tensors_of_another_network_are_refused)
{
    att_option_values options = att_options_none();
    att_identity found;
    write_model(p, "resnet32", NULL, false);
    assert_int_equal(identify(p, "resnet20", NULL, &found), ATT_ERR_MISMATCH);
    says(att_context_message(p->context), "its tensors are not those of resnet20; they fit resnet32");
    assert_int_equal(identify(p, "vit_tiny_patch16_224", NULL, &found), ATT_ERR_MISMATCH);
    att_options_set(&options, "depth", 32);
    CHECK(p->context, identify(p, "resnet20", &options, &found));
    att_options_unset(&options, "depth"), att_options_set(&options, "img_size", 64);
    CHECK(p->context, identify(p, "resnet32", &options, &found));
    att_options_set_text(&options, "modules", "se");
    write_model(p, "resnet18", NULL, false);
    CHECK(p->context, identify(p, "resnet18", &options, &found));
    write_model(p, "resnet18", &options, false);
    assert_int_equal(identify(p, "resnet18", NULL, &found), ATT_ERR_MISMATCH);
    CHECK(p->context, identify(p, "resnet18", &options, &found));
    att_options_set_text(&options, "modules", "step"); /* no named network has it */
    att_options_unset(&options, "img_size");
    write_model(p, "resnet20", &options, false);
    CHECK(p->context, identify(p, "resnet20", NULL, &found));
    assert_int_equal(identify(p, "resnet56", NULL, &found), ATT_ERR_MISMATCH);
    says(att_context_message(p->context),
         "not those of resnet56; they fit resnet20 but for the module, the stem or the width");
}

/* A source that names another network is refused, unless its own arguments make it this one. */
PLACE_TEST(a_source_that_names_another_network_is_refused)
{
    static const struct {
        const char *file, *text, *words; /* words NULL: accepted */
    } cases[] = {
        {"config.json", "{\"architecture\": \"seresnet18\"}",
         "not those of seresnet18 (the name in config.json); they fit resnet18"},
        {"config.json", "{\"architecture\": \"resnet34\"}", "they fit resnet18"},
        {"config.json", "{\"architecture\": \"wide_resnet50_2\"}", "they fit resnet18"},
        {"config.json", "{\"architecture\": \"resnet34\", \"model_args\": {\"layers\": [2, 2, 2, 2]}}", NULL},
        {"args.yaml", "model: seresnet18\n", "not those of seresnet18 (the name in args.yaml); they fit resnet18"},
        {"args.yaml", "model: resnet34\nmodel_kwargs: {layers: [2, 2, 2, 2]}\n", NULL},
    };
    att_identity found;
    char path[128];
    write_model(p, "resnet18", NULL, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_beside(p, cases[i].file, cases[i].text);
        att_status status = identify(p, NULL, NULL, &found);
        assert_int_equal(status, cases[i].words ? ATT_ERR_MISMATCH : ATT_OK);
        if (cases[i].words)
            says(att_context_message(p->context), cases[i].words);
        path_in(p, cases[i].file, path);
        unlink(path);
    }
}

PLACE_TEST(a_nameless_file_lists_what_fits)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "num_classes", 3);
    write_model(p, "resnet32", &options, false);
    att_identity found;
    assert_int_equal(identify(p, NULL, NULL, &found), ATT_ERR_NOT_FOUND);
    says(att_context_message(p->context), "its tensors fit resnet32; give that name");
    att_options_set(&options, "width", 8);
    write_model(p, "resnet32", &options, false);
    assert_int_equal(identify(p, NULL, NULL, &found), ATT_ERR_NOT_FOUND);
    says(att_context_message(p->context),
         "depth 32, block basic, stem_type conv3, shortcut pad, layers 5,5,5, width 8");
    says(att_context_message(p->context), "name the nearest, resnet32");
}

PLACE_TEST(other_tensors_are_refused)
{
    att_option_values options = tiny("none", "all");
    att_model *model = make(p, "resnet164", &options);
    static const char *const strange[][2] = {
        {"layer1.0.bn4.weight", ""},
        {"layer5.0.conv1.weight", ""},
        {"layer1.x.conv1.weight", ""},
        {"layer1.01.conv1.weight", ""},
        {"layer9.0.conv1.weight", ""},
        {"cls_token", ""},
        {"layer1.0.conv2.gain", "a sign of convolutions with standardised weights"},
        {"layer1.0.aa.filt", "a sign of anti-aliased downsampling"},
        {"layer1.0.convs.0.weight", "a sign of Res2Net (convolutions at several scales in a block)"}};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        tensors t = tensors_of(model);
        add_tensor(&t, strange[i][0], att_shape_of(4));
        write_tensors(p, &t, NULL);
        refused(p, "resnet164", ATT_ERR_UNSUPPORTED, strange[i][0]);
        refused(p, "resnet164", ATT_ERR_UNSUPPORTED, strange[i][1]);
    }
    tensors t = tensors_of(model);
    for (int i = 0; i < t.count; i++)
        if (strcmp(t.items[i].name, "layer1.0.conv2.weight") == 0)
            t.items[i].shape = att_shape_of(4, 3, 3, 3);
    write_tensors(p, &t, NULL);
    refused(p, "resnet164", ATT_ERR_UNSUPPORTED, "layer1.0.conv2.weight");
    static char names[MOST][96];
    t = tensors_of(model);
    rename_tensors(&t, names, "layer2.", "layer4.");
    write_tensors(p, &t, NULL);
    refused(p, "resnet164", ATT_ERR_UNSUPPORTED, "has 4 stages");
    att_model_destroy(&model);
}

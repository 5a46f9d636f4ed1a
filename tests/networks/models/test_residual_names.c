/* Checkpoints of residual networks from other programs, with other names for the same tensors. */
#include "networks/models/residual.h"

/* Convolutions whose names contain `part` become linear layers. */
static void make_linear(tensors *t, const char *part)
{
    for (int i = 0; i < t->count; i++)
        if (strstr(t->items[i].name, part) && t->items[i].shape.rank == 4)
            t->items[i].shape.rank = 2;
}

/* Public programs name the module "attention_module", use linear layers, and have num_batches_tracked. */
PLACE_TEST(other_names_are_understood)
{
    static char names[MOST][96];
    att_option_values options = tiny("se:ratio=4", "layer2:all");
    att_model *model = make(p, "resnet164", &options);
    tensors t = tensors_of(model);
    assert_int_equal(rename_tensors(&t, names, ".se.", ".attention_module."), 8);
    make_linear(&t, ".attention_module.");
    for (int i = 0; i < t.count; i++)
        if (strcmp(t.items[i].name, "fc.weight") == 0)
            t.items[i].name = "linear.weight";
    add_tensor(&t, "layer1.0.bn1.num_batches_tracked", (att_shape){.rank = 0});
    write_tensors(p, &t, NULL);
    att_identity found;
    identifies(p, "resnet164", &found);
    has_module(&found.options, "se:ratio=4", "2-3");
    CHECK(p->context, load_into(p, "resnet164", &options));
    add_tensor(&t, "layer2.0.attention_module.fc3.weight", att_shape_of(2, 2));
    write_tensors(p, &t, NULL);
    assert_int_equal(load_into(p, "resnet164", &options), ATT_ERR_MISMATCH);
    says(att_context_message(p->context), "1 extra: layer2.0.attention_module.fc3.weight");
    att_model_destroy(&model);
}

/* Four stages after a stem without stride, shortcuts with another name. */
PLACE_TEST(a_resnet18_for_small_images_is_understood)
{
    static char names[MOST][96];
    att_option_values options = att_options_none();
    att_options_set(&options, "width", 4), att_options_set(&options, "img_size", 8),
        att_options_set(&options, "num_classes", 7);
    att_options_set_text(&options, "stem_type", "conv3");
    att_model *model = make(p, "resnet18", &options);
    tensors t = tensors_of(model);
    int renamed = 0;
    for (int stage = 2; stage <= 4; stage++) {
        char own[32], other[32];
        snprintf(own, sizeof own, "layer%d.0.downsample.", stage);
        snprintf(other, sizeof other, "layer%d.0.shortcut.", stage);
        renamed += rename_tensors(&t, names, own, other);
    }
    assert_int_equal(renamed, 15);
    write_tensors(p, &t, NULL);
    att_identity found;
    identifies(p, "resnet18", &found);
    assert_string_equal(att_options_text(&found.options, "stem_type"), "conv3");
    assert_string_equal(att_options_text(&found.options, "shortcut"), "conv");
    assert_string_equal(att_options_text(&found.options, "layers"), "2,2,2,2");
    assert_int_equal(found.preprocess.height, 32);
    assert_true(found.preprocess.crop_pct == 1 && found.preprocess.mean[0] == 0.4914);
    assert_int_equal(identify(p, "resnet34", NULL, &found), ATT_ERR_MISMATCH);
    says(att_context_message(p->context), "not those of resnet34; they fit resnet18, seresnet18 but for the module");
    CHECK(p->context, load_into(p, "resnet18", &options));
    att_model_destroy(&model);
}

/* The tensors give this module, and they load into the network of `options`. */
static void module_is(const place *p, tensors *t, const char *model, const att_option_values *options, const char *attn)
{
    att_identity found;
    write_tensors(p, t, NULL);
    identifies(p, model, &found);
    has_module(&found.options, attn, NULL);
    CHECK(p->context, load_into(p, model, options));
}

/* As in the SE networks of many programs: linear layers without biases, in a sequence. */
PLACE_TEST(squeeze_and_excitation_may_lie_in_a_sequence)
{
    static char names[MOST][96];
    att_option_values options = tiny("se:ratio=4,bias=0", "layer2:all");
    att_model *model = make(p, "resnet164", &options);
    tensors t = tensors_of(model);
    assert_int_equal(rename_tensors(&t, names, ".se.fc1", ".se.fc.0"), 2);
    assert_int_equal(rename_tensors(&t, names, ".se.fc2", ".se.fc.2"), 2);
    make_linear(&t, ".se.fc");
    module_is(p, &t, "resnet164", &options, "se:ratio=4,bias=0");
    att_identity found;
    att_option_values alone = att_options_none();
    att_options_set_text(&alone, "modules", "se");
    CHECK(p->context, identify(p, "resnet164", &alone, &found));
    has_module(&found.options, "se:ratio=4,bias=0", "2-3");
    att_model_destroy(&model);
}

/* A sequence of two linear layers in a scope without a known name is SE; with FcaNet's cosines beside it, it is FCA. */
PLACE_TEST(cosines_distinguish_fca_from_se)
{
    static char names[MOST][96];
    att_option_values options = tiny("se:ratio=4,bias=0", "1");
    att_model *model = make(p, "resnet164", &options);
    tensors t = tensors_of(model);
    assert_int_equal(rename_tensors(&t, names, ".se.fc1", ".attention_module.fc.0"), 1);
    assert_int_equal(rename_tensors(&t, names, ".se.fc2", ".attention_module.fc.2"), 1);
    make_linear(&t, ".attention_module.");
    module_is(p, &t, "resnet164", &options, "se:ratio=4,bias=0");
    att_model_destroy(&model);
    att_options_set_text(&options, "modules", "fca:ratio=4@after_branch:1");
    model = make(p, "resnet164", &options);
    t = tensors_of(model);
    add_tensor(&t, "layer1.1.att.dct_layer.weight", att_shape_of(16, 7, 7));
    module_is(p, &t, "resnet164", &options, "fca:ratio=4");
    assert_true(rename_tensors(&t, names, ".att.", ".attention_module.") >= 3);
    module_is(p, &t, "resnet164", &options, "fca:ratio=4");
    assert_int_equal(rename_tensors(&t, names, ".attention_module.dct_layer.", ".other.dct_layer."), 1);
    write_tensors(p, &t, NULL); /* the formula's numbers instead of cosines */
    assert_int_equal(load_into(p, "resnet164", &options), ATT_ERR_UNSUPPORTED);
    says(att_context_message(p->context), "is not the constant of the module fca");
    att_model_destroy(&model);
}

/* The scope names used by ECA's authors and by Cadene's networks. */
PLACE_TEST(other_scopes_of_a_module_are_understood)
{
    static char names[MOST][96];
    static const struct {
        const char *attn, *scope;
        int tensors;
    } codes[] = {{"eca", ".eca.", 6}, {"se:ratio=4", ".se_module.", 24}};
    for (int i = 0; i < 2; i++) {
        att_option_values options = tiny(codes[i].attn, "all");
        att_model *model = make(p, "resnet164", &options);
        tensors t = tensors_of(model);
        assert_int_equal(rename_tensors(&t, names, ".se.", codes[i].scope), codes[i].tensors);
        module_is(p, &t, "resnet164", &options, codes[i].attn);
        att_model_destroy(&model);
    }
}

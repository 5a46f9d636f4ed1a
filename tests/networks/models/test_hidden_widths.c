/* Hidden widths of channel attention are read from tensors, and kept when the checkpoint is written again. */
#include "networks/models/residual.h"

/* Writes a tiny network's checkpoint with these hidden widths. metadata: the module's text in attscope's metadata;
 * NULL: as timm, without metadata. */
static void write_widths(const place *p, const char *attn, const char *widths, const char *metadata)
{
    att_option_values options = tiny(attn, "all");
    att_options_set(&options, "width", 10);
    att_options_set_text(&options, "modules_hidden", widths);
    att_model *model = make(p, "resnet164", &options);
    tensors t = tensors_of(model);
    char text[ATT_IDENTITY_TEXT];
    att_identity identity = att_model_identity(model);
    if (metadata)
        att_options_set_text(&identity.options, "modules", metadata);
    CHECK(p->context, att_model_identity_text(p->context, &identity, text, sizeof text));
    write_tensors(p, &t, metadata ? text : NULL);
    att_model_destroy(&model);
}

/* The identified network accepts the file's weights, and its checkpoint is identified as the same network. */
static void widths_are_kept(const place *p, const char *name, const att_option_values *flags, const char *attn,
                            const char *widths)
{
    att_identity found;
    for (int again = 0; again < 2; again++) {
        CHECK(p->context, identify(p, name, flags, &found));
        has_module(&found.options, attn, NULL);
        assert_string_equal(att_options_text(&found.options, "modules_hidden"), widths);
        CHECK(p->context, load_into(p, found.name, &found.options));
        write_model(p, found.name, &found.options, true);
    }
}

PLACE_TEST(hidden_widths_are_read_from_tensors)
{
    /* 40 / 16, 80 / 16 and 160 / 16, rounded to the nearest: metadata of earlier versions have no hidden widths. */
    write_widths(p, "se", "3x2,5x2,10x2", "se");
    widths_are_kept(p, NULL, NULL, "se", "3x2,5x2,10x2");
    write_widths(p, "se", "3x2,5x2,10x2", "se:ratio=16");
    widths_are_kept(p, NULL, NULL, "se:ratio=16", "3x2,5x2,10x2");
    att_option_values flags = att_options_none(); /* as in args.yaml when a run is resumed */
    att_options_set_text(&flags, "modules", "se:ratio=16");
    write_widths(p, "se", "3x2,5x2,10x2", NULL);
    widths_are_kept(p, "resnet164", &flags, "se:ratio=16", "3x2,5x2,10x2");
    write_widths(p, "se", "2x2,5x2,10x2", NULL); /* rounded down: these are the default widths */
    widths_are_kept(p, "resnet164", &flags, "se:ratio=16", "");
    /* No rule gives these widths. */
    write_widths(p, "se:bias=0", "7,1,90,12,161,3", NULL);
    widths_are_kept(p, "resnet164", NULL, "se:bias=0", "7,1,90,12,161,3");
    write_widths(p, "cbam:kernel=3", "7,1,4x4", NULL);
    widths_are_kept(p, "resnet164", NULL, "cbam:kernel=3", "7,1,4x4");
    write_widths(p, "step:adaptor=bottleneck,input=x_t", "5,4x5", NULL);
    widths_are_kept(p, "resnet164", NULL, "step:adaptor=bottleneck,input=x_t", "5,4x5");
    /* A given ratio must be the file's, except for rounding; so must a given width. */
    static const char *const others[] = {"se:ratio=8", "se:hidden=4"};
    for (int i = 0; i < 2; i++) {
        att_identity found;
        att_options_set_text(&flags, "modules", others[i]);
        write_widths(p, "se", "3x2,5x2,10x2", NULL);
        CHECK(p->context, identify(p, "resnet164", &flags, &found));
        assert_int_equal(load_into(p, "resnet164", &found.options), ATT_ERR_MISMATCH);
        says(att_context_message(p->context), "layer1.0.se.fc1.weight");
    }
}

PLACE_TEST(hidden_widths_are_refused_for_modules_without_them)
{
    att_option_values options = tiny("eca", "all");
    att_model *model = NULL;
    att_options_set_text(&options, "modules_hidden", "3x6");
    assert_int_equal(att_model_create(p->context, "resnet164", &options, ATT_F32, &model), ATT_ERR_ARGUMENT);
    says(att_context_message(p->context), "the module \"eca\" has no hidden width");
    att_options_set_text(&options, "modules", "se");
    att_options_set_text(&options, "modules_hidden", "3x5");
    assert_int_equal(att_model_create(p->context, "resnet164", &options, ATT_F32, &model), ATT_ERR_ARGUMENT);
    says(att_context_message(p->context), "fewer widths than blocks");
}

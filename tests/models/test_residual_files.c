/* Checkpoints of residual networks: what their tensors say, other names for them, what is refused. */
#include "models/made.h"
#include "models/module_options.h"

static att_model_options tiny(const char *attn, const char *blocks)
{
    att_model_options options = att_model_options_defaults();
    options.depth = 20, options.width = 4, options.img_size = 8, options.num_classes = 7;
    strcpy(options.attn, attn);
    strcpy(options.attn_blocks, blocks);
    return options;
}

static void identifies(const place *p, const char *name, att_identity *identity)
{
    CHECK(p->context, identify(p, name, NULL, identity));
}

static void tensors_tell_the_network(void **state)
{
    const place *p = *state;
    att_model_options options = tiny("se:ratio=4", "layer1:1,layer3:all");
    options.in_chans = 1;
    write_model(p, "resnet164", &options, false);
    att_identity found;
    identifies(p, "resnet164", &found);
    const att_model_options *o = &found.options;
    assert_int_equal(o->depth, 20);
    assert_int_equal(o->width, 4);
    assert_int_equal(o->in_chans, 1);
    assert_int_equal(o->num_classes, 7);
    assert_string_equal(o->layers, "2,2,2");
    assert_string_equal(o->block, "bottleneck");
    assert_string_equal(o->shortcut, "conv");
    assert_string_equal(o->stem_type, "conv3");
    assert_string_equal(o->attn, "se:ratio=4");
    assert_string_equal(o->attn_blocks, "1,4-5");
    assert_int_equal(o->img_size, 32);
}

static void options_are_seen(const place *p, const char *name, int width, const char *made, const char *told)
{
    att_model_options options = tiny(made, "all");
    options.width = width;
    write_model(p, name, &options, false);
    att_identity found;
    identifies(p, name, &found);
    assert_string_equal(found.options.attn, told);
}

/* Ratios over rounded hidden widths, biases, kernels, StepNet's adaptors and what they are told; what leaves no trace
 * in tensors stays the default. */
static void tensors_tell_a_modules_options(void **state)
{
    const place *p = *state;
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
        att_model_options options = att_model_options_defaults();
        strcpy(options.layers, "1,1,1,1");
        write_model(p, timms[i][0], &options, false);
        att_identity found;
        CHECK(p->context, identify(p, timms[i][0], &options, &found));
        assert_string_equal(found.options.attn, timms[i][1]);
    }
    options_are_seen(p, "resnet164", 16, "fca:shrink=3", "fca");
    options_are_seen(p, "resnet164", 20, "se:ratio=7", "se:ratio=7");
    options_are_seen(p, "resnet164", 4, "se:ratio=1024", "se:ratio=64"); /* one hidden channel either way */
}

static bool no_alias(const char *name, int index, char *other, size_t size)
{
    (void)name, (void)index, (void)other, (void)size;
    return false;
}

/* Options are guessed from the first eight ratios of channels to rows that tensors of a block have. A ninth is left
 * out, and writes nowhere. */
static void ratios_beyond_the_eighth_are_left_out(void **state)
{
    const place *p = *state;
    static const int rows[] = {120, 80, 60, 40, 30, 24, 20, 15, 12, 10}; /* ratios 2 to 24, without 5 */
    att_module_choice se;
    CHECK(p->context, att_module_parse(p->context, "se", &se));
    for (int before = 0; before < 10; before++) {
        tensors t = {0};
        att_module_site site = {.block = "layer1.0", .channels = 240, .tensors = 4};
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
        CHECK(p->context, att_module_options_infer(p->context, &places, se.module, text, sizeof text));
        assert_string_equal(text, before < 8 ? "se:ratio=5" : "se");
        att_tensors_close(&file);
    }
}

static void metadata_tells_what_tensors_do_not(void **state)
{
    const place *p = *state;
    att_model_options options = tiny("se:ratio=4", "every:3");
    write_model(p, "preresnet164", &options, true);
    att_identity found;
    identifies(p, NULL, &found);
    assert_string_equal(found.name, "preresnet164");
    assert_string_equal(found.options.attn, "se:ratio=4");
    assert_string_equal(found.options.attn_blocks, "every:3");
    assert_int_equal(found.options.img_size, 8);
}

static void says_dimensions(const place *p, const char *name, const char *block, const char *stem, const char *shortcut)
{
    att_model_options options = att_model_options_defaults();
    options.width = 8, options.img_size = 32;
    strcpy(options.layers, "1,2,1,1");
    write_model(p, name, &options, false);
    att_identity found;
    identifies(p, name, &found);
    assert_string_equal(found.options.layers, "1,2,1,1");
    assert_string_equal(found.options.block, block);
    assert_string_equal(found.options.stem_type, stem);
    assert_string_equal(found.options.shortcut, shortcut);
    assert_int_equal(found.options.width, 8);
}

static void every_kind_is_told_apart(void **state)
{
    const place *p = *state;
    says_dimensions(p, "resnet18", "basic", "conv7", "conv");
    says_dimensions(p, "resnet18d", "basic", "deep", "avg_conv");
    says_dimensions(p, "resnet50", "bottleneck", "conv7", "conv");
    says_dimensions(p, "resnet50c", "bottleneck", "deep", "conv");
    says_dimensions(p, "ecaresnet50t", "bottleneck", "deep_tiered", "avg_conv");
}

static void groups_and_widths_are_seen(void **state)
{
    const place *p = *state;
    static const struct {
        const char *name;
        int cardinality, base_width;
    } cases[] = {{"wide_resnet50_2", 1, 128}, {"resnext50_32x4d", 32, 4}, {"resnext101_32x8d", 32, 8}};
    for (int i = 0; i < 3; i++) {
        att_model_options options = att_model_options_defaults();
        strcpy(options.layers, "1,1,1,1");
        write_model(p, cases[i].name, &options, false);
        att_identity found;
        identifies(p, "resnet50", &found);
        assert_int_equal(found.options.cardinality, cases[i].cardinality);
        assert_int_equal(found.options.base_width, cases[i].base_width);
        assert_int_equal(found.options.width, 64);
    }
}

/* Of the names that differ in the module alone. */
static void a_module_decides_which_name_fits(void **state)
{
    static const char *const names[] = {"resnet18", "seresnet18", "resnet50", "seresnet50", "ecaresnet50d"};
    const place *p = *state;
    att_identity found;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char expected[80];
        att_model_options options = att_model_options_defaults();
        options.num_classes = 3;
        write_model(p, names[i], &options, false);
        assert_int_equal(identify(p, NULL, NULL, &found), ATT_ERR_NOT_FOUND);
        snprintf(expected, sizeof expected, "its tensors fit %s; give that name", names[i]);
        says(att_context_message(p->context), expected);
    }
}

/* What a training script's checkpoint calls its network counts where that is a name of ours. */
static void an_architecture_in_the_file_is_taken(void **state)
{
    const place *p = *state;
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
    says(att_context_message(p->context), "not those of resnet32 (the name in the checkpoint's \"arch\"), they fit");
    metadata.value = "resnet";
    CHECK(p->context, att_safetensors_write(p->context, p->weights, &content));
    assert_int_equal(identify(p, NULL, NULL, &found), ATT_ERR_NOT_FOUND);
    says(att_context_message(p->context),
         "\"arch\" names the network \"resnet\", which is unknown here; its tensors fit "
         "resnet20; give that name");
    att_model_destroy(&model);
}

/* Unless the caller's options make them so. */
static void tensors_of_another_network_are_refused(void **state)
{
    const place *p = *state;
    att_model_options options = att_model_options_defaults();
    att_identity found;
    write_model(p, "resnet32", NULL, false);
    assert_int_equal(identify(p, "resnet20", NULL, &found), ATT_ERR_MISMATCH);
    says(att_context_message(p->context), "its tensors are not those of resnet20, they fit resnet32");
    assert_int_equal(identify(p, "vit_tiny_patch16_224", NULL, &found), ATT_ERR_MISMATCH);
    options.depth = 32;
    CHECK(p->context, identify(p, "resnet20", &options, &found));
    options.depth = 0, options.img_size = 64;
    CHECK(p->context, identify(p, "resnet32", &options, &found));
    strcpy(options.attn, "se");
    write_model(p, "resnet18", NULL, false);
    CHECK(p->context, identify(p, "resnet18", &options, &found));
    write_model(p, "resnet18", &options, false);
    assert_int_equal(identify(p, "resnet18", NULL, &found), ATT_ERR_MISMATCH);
    CHECK(p->context, identify(p, "resnet18", &options, &found));
    strcpy(options.attn, "step"); /* which no named network has */
    options.img_size = 0;
    write_model(p, "resnet20", &options, false);
    CHECK(p->context, identify(p, "resnet20", NULL, &found));
    assert_int_equal(identify(p, "resnet56", NULL, &found), ATT_ERR_MISMATCH);
    says(att_context_message(p->context), "not those of resnet56, they fit resnet20 but for the module");
}

/* By whichever source, unless its own arguments make them so. */
static void a_source_that_names_another_network_is_refused(void **state)
{
    const place *p = *state;
    static const struct {
        const char *file, *text, *words; /* words NULL: taken */
    } cases[] = {
        {"config.json", "{\"architecture\": \"seresnet18\"}",
         "not those of seresnet18 (the name in config.json), they fit resnet18"},
        {"config.json", "{\"architecture\": \"resnet34\"}", "they fit resnet18"},
        {"config.json", "{\"architecture\": \"wide_resnet50_2\"}", "they fit resnet18"},
        {"config.json", "{\"architecture\": \"resnet34\", \"model_args\": {\"layers\": [2, 2, 2, 2]}}", NULL},
        {"args.yaml", "model: seresnet18\n", "not those of seresnet18 (the name in args.yaml), they fit resnet18"},
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

static void a_nameless_file_lists_what_fits(void **state)
{
    const place *p = *state;
    att_model_options options = att_model_options_defaults();
    options.num_classes = 3;
    write_model(p, "resnet32", &options, false);
    att_identity found;
    assert_int_equal(identify(p, NULL, NULL, &found), ATT_ERR_NOT_FOUND);
    says(att_context_message(p->context), "its tensors fit resnet32; give that name");
    options.width = 8;
    write_model(p, "resnet32", &options, false);
    assert_int_equal(identify(p, NULL, NULL, &found), ATT_ERR_NOT_FOUND);
    says(att_context_message(p->context),
         "depth 32, block basic, stem_type conv3, shortcut pad, layers 5,5,5, width 8");
    says(att_context_message(p->context), "name the nearest, resnet32");
}

/* Loads the file into a network with options; every parameter must hold the formula's numbers for the file's name. */
static att_status load_into(const place *p, const char *name, const att_model_options *options)
{
    att_model *model = make(p, name, options);
    att_weights *weights;
    att_tensors *file;
    CHECK(p->context, att_weights_create(att_model_graph(model), &weights));
    CHECK(p->context, att_tensors_open(p->context, p->weights, &file));
    att_status status = att_model_load(model, file, weights);
    att_tensors_close(&file);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    return status;
}

/* Where a name holds `from`, `to` takes its place. Answers how many. */
static int rename_tensors(tensors *t, char names[][96], const char *from, const char *to)
{
    int renamed = 0;
    for (int i = 0; i < t->count; i++) {
        att_safetensors_tensor *item = &t->items[i];
        const char *own = strstr(item->name, from);
        if (!own)
            continue;
        snprintf(names[i], sizeof *names, "%.*s%s%s", (int)(own - item->name), item->name, to, own + strlen(from));
        item->name = names[i];
        renamed++;
    }
    return renamed;
}

/* Convolutions whose names hold `part` become linear layers. */
static void make_linear(tensors *t, const char *part)
{
    for (int i = 0; i < t->count; i++)
        if (strstr(t->items[i].name, part) && t->items[i].shape.rank == 4)
            t->items[i].shape.rank = 2;
}

/* Public codes name the module "attention_module", its layers linear, and count batches. */
static void other_names_are_understood(void **state)
{
    const place *p = *state;
    static char names[MOST][96];
    att_model_options options = tiny("se:ratio=4", "layer2:all");
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
    assert_string_equal(found.options.attn, "se:ratio=4");
    assert_string_equal(found.options.attn_blocks, "2-3");
    CHECK(p->context, load_into(p, "resnet164", &options));
    add_tensor(&t, "layer2.0.attention_module.fc3.weight", att_shape_of(2, 2));
    write_tensors(p, &t, NULL);
    assert_int_equal(load_into(p, "resnet164", &options), ATT_ERR_MISMATCH);
    says(att_context_message(p->context), "1 extra: layer2.0.attention_module.fc3.weight");
    att_model_destroy(&model);
}

/* Four stages behind a stem without stride, shortcuts by another name. */
static void a_resnet18_for_small_images_is_understood(void **state)
{
    const place *p = *state;
    static char names[MOST][96];
    att_model_options options = att_model_options_defaults();
    options.width = 4, options.img_size = 8, options.num_classes = 7;
    strcpy(options.stem_type, "conv3");
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
    assert_string_equal(found.options.stem_type, "conv3");
    assert_string_equal(found.options.shortcut, "conv");
    assert_string_equal(found.options.layers, "2,2,2,2");
    assert_int_equal(found.preprocess.img_size, 32);
    assert_true(found.preprocess.crop_pct == 1 && found.preprocess.mean[0] == 0.4914);
    assert_int_equal(identify(p, "resnet34", NULL, &found), ATT_ERR_MISMATCH);
    says(att_context_message(p->context), "not those of resnet34, they fit resnet18, seresnet18 but for the module");
    CHECK(p->context, load_into(p, "resnet18", &options));
    att_model_destroy(&model);
}

/* As the tensors tell it, and they load into the network of `options`. */
static void module_is(const place *p, tensors *t, const char *model, const att_model_options *options, const char *attn)
{
    att_identity found;
    write_tensors(p, t, NULL);
    identifies(p, model, &found);
    assert_string_equal(found.options.attn, attn);
    CHECK(p->context, load_into(p, model, options));
}

/* As in the SE networks of many codes: layers in a sequence, linear and without biases. */
static void squeeze_and_excitation_may_lie_in_a_sequence(void **state)
{
    const place *p = *state;
    static char names[MOST][96];
    att_model_options options = tiny("se:ratio=4,bias=0", "layer2:all");
    att_model *model = make(p, "resnet164", &options);
    tensors t = tensors_of(model);
    assert_int_equal(rename_tensors(&t, names, ".se.fc1", ".se.fc.0"), 2);
    assert_int_equal(rename_tensors(&t, names, ".se.fc2", ".se.fc.2"), 2);
    make_linear(&t, ".se.fc");
    module_is(p, &t, "resnet164", &options, "se:ratio=4,bias=0");
    att_identity found;
    att_model_options alone = att_model_options_defaults();
    strcpy(alone.attn, "se");
    CHECK(p->context, identify(p, "resnet164", &alone, &found));
    assert_string_equal(found.options.attn, "se:ratio=4,bias=0");
    assert_string_equal(found.options.attn_blocks, "2-3");
    att_model_destroy(&model);
}

/* A sequence of two linear layers in a scope that says nothing is SE, and FcaNet's where its cosines lie beside. */
static void what_lies_beside_tells_fca_from_se(void **state)
{
    const place *p = *state;
    static char names[MOST][96];
    att_model_options options = tiny("se:ratio=4,bias=0", "1");
    att_model *model = make(p, "resnet164", &options);
    tensors t = tensors_of(model);
    assert_int_equal(rename_tensors(&t, names, ".se.fc1", ".attention_module.fc.0"), 1);
    assert_int_equal(rename_tensors(&t, names, ".se.fc2", ".attention_module.fc.2"), 1);
    make_linear(&t, ".attention_module.");
    module_is(p, &t, "resnet164", &options, "se:ratio=4,bias=0");
    att_model_destroy(&model);
    strcpy(options.attn, "fca:ratio=4");
    model = make(p, "resnet164", &options);
    t = tensors_of(model);
    add_tensor(&t, "layer1.1.att.dct_layer.weight", att_shape_of(16, 7, 7));
    module_is(p, &t, "resnet164", &options, "fca:ratio=4");
    assert_true(rename_tensors(&t, names, ".att.", ".attention_module.") >= 3);
    module_is(p, &t, "resnet164", &options, "fca:ratio=4");
    assert_int_equal(rename_tensors(&t, names, ".attention_module.dct_layer.", ".other.dct_layer."), 1);
    write_tensors(p, &t, NULL); /* the formula's numbers, which are no cosines */
    assert_int_equal(load_into(p, "resnet164", &options), ATT_ERR_UNSUPPORTED);
    says(att_context_message(p->context), "is not what fca computes with here");
    att_model_destroy(&model);
}

/* The scopes that ECA's authors and Cadene's networks have. */
static void other_scopes_of_a_module_are_understood(void **state)
{
    const place *p = *state;
    static char names[MOST][96];
    static const struct {
        const char *attn, *scope;
        int tensors;
    } codes[] = {{"eca", ".eca.", 6}, {"se:ratio=4", ".se_module.", 24}};
    for (int i = 0; i < 2; i++) {
        att_model_options options = tiny(codes[i].attn, "all");
        att_model *model = make(p, "resnet164", &options);
        tensors t = tensors_of(model);
        assert_int_equal(rename_tensors(&t, names, ".se.", codes[i].scope), codes[i].tensors);
        module_is(p, &t, "resnet164", &options, codes[i].attn);
        att_model_destroy(&model);
    }
}

/* --- hidden widths ------------------------------------------------------------------------------------------------ */

/* Writes a tiny network's checkpoint with hidden widths of its own, as `metadata` says (NULL: timm's, without). */
static void write_widths(const place *p, const char *attn, const char *widths, const char *metadata)
{
    att_model_options options = tiny(attn, "all");
    options.width = 10;
    strcpy(options.attn_hidden, widths);
    att_model *model = make(p, "resnet164", &options);
    tensors t = tensors_of(model);
    char text[ATT_IDENTITY_TEXT];
    att_identity identity = att_model_identity(model);
    if (metadata)
        strcpy(identity.options.attn, metadata);
    CHECK(p->context, att_model_identity_text(p->context, &identity, text, sizeof text));
    write_tensors(p, &t, metadata ? text : NULL);
    att_model_destroy(&model);
}

/* The network found is the file's: it takes the file's weights, and written again it is found again. */
static void widths_are_kept(const place *p, const char *name, const att_model_options *flags, const char *attn,
                            const char *widths)
{
    att_identity found;
    for (int again = 0; again < 2; again++) {
        CHECK(p->context, identify(p, name, flags, &found));
        assert_string_equal(found.options.attn, attn);
        assert_string_equal(found.options.attn_hidden, widths);
        CHECK(p->context, load_into(p, found.name, &found.options));
        write_model(p, found.name, &found.options, true);
    }
}

static void hidden_widths_are_read_from_tensors(void **state)
{
    const place *p = *state;
    /* 40 / 16, 80 / 16 and 160 / 16 to the nearest, as metadata of earlier versions say them. */
    write_widths(p, "se", "3x2,5x2,10x2", "se");
    widths_are_kept(p, NULL, NULL, "se", "3x2,5x2,10x2");
    write_widths(p, "se", "3x2,5x2,10x2", "se:ratio=16");
    widths_are_kept(p, NULL, NULL, "se:ratio=16", "3x2,5x2,10x2");
    att_model_options flags = att_model_options_defaults(); /* a run's args.yaml when it goes on */
    strcpy(flags.attn, "se:ratio=16");
    write_widths(p, "se", "3x2,5x2,10x2", NULL);
    widths_are_kept(p, "resnet164", &flags, "se:ratio=16", "3x2,5x2,10x2");
    write_widths(p, "se", "2x2,5x2,10x2", NULL); /* rounded down: no widths of its own */
    widths_are_kept(p, "resnet164", &flags, "se:ratio=16", "");
    /* No rule gives these. */
    write_widths(p, "se:bias=0", "7,1,90,12,161,3", NULL);
    widths_are_kept(p, "resnet164", NULL, "se:bias=0", "7,1,90,12,161,3");
    write_widths(p, "cbam:kernel=3", "7,1,4x4", NULL);
    widths_are_kept(p, "resnet164", NULL, "cbam:kernel=3", "7,1,4x4");
    write_widths(p, "step:adaptor=bottleneck,input=x_t", "5,4x5", NULL);
    widths_are_kept(p, "resnet164", NULL, "step:adaptor=bottleneck,input=x_t", "5,4x5");
    /* A ratio that is said must be that of the file, but for the rounding, and so must a width. */
    static const char *const others[] = {"se:ratio=8", "se:hidden=4"};
    for (int i = 0; i < 2; i++) {
        att_identity found;
        strcpy(flags.attn, others[i]);
        write_widths(p, "se", "3x2,5x2,10x2", NULL);
        CHECK(p->context, identify(p, "resnet164", &flags, &found));
        assert_int_equal(load_into(p, "resnet164", &found.options), ATT_ERR_MISMATCH);
        says(att_context_message(p->context), "layer1.0.se.fc1.weight");
    }
}

static void hidden_widths_need_a_module_that_has_them(void **state)
{
    const place *p = *state;
    att_model_options options = tiny("eca", "all");
    att_model *model = NULL;
    strcpy(options.attn_hidden, "3x6");
    assert_int_equal(att_model_create(p->context, "resnet164", &options, ATT_F32, &model), ATT_ERR_ARGUMENT);
    says(att_context_message(p->context), "the module \"eca\" has no hidden width");
    strcpy(options.attn, "se");
    strcpy(options.attn_hidden, "3x5");
    assert_int_equal(att_model_create(p->context, "resnet164", &options, ATT_F32, &model), ATT_ERR_ARGUMENT);
    says(att_context_message(p->context), "fewer widths than blocks");
}

static void refused_with(const place *p, const char *name, const char *words)
{
    att_identity found;
    assert_int_equal(identify(p, name, NULL, &found), ATT_ERR_UNSUPPORTED);
    says(att_context_message(p->context), words);
}

static void other_tensors_are_refused(void **state)
{
    const place *p = *state;
    att_model_options options = tiny("none", "all");
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
        {"layer1.0.convs.0.weight", "a sign of convolutions at several scales in a block (Res2Net)"}};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        tensors t = tensors_of(model);
        add_tensor(&t, strange[i][0], att_shape_of(4));
        write_tensors(p, &t, NULL);
        refused_with(p, "resnet164", strange[i][0]);
        refused_with(p, "resnet164", strange[i][1]);
    }
    tensors t = tensors_of(model);
    for (int i = 0; i < t.count; i++)
        if (strcmp(t.items[i].name, "layer1.0.conv2.weight") == 0)
            t.items[i].shape = att_shape_of(4, 3, 3, 3);
    write_tensors(p, &t, NULL);
    refused_with(p, "resnet164", "layer1.0.conv2.weight");
    static char names[MOST][96];
    t = tensors_of(model);
    rename_tensors(&t, names, "layer2.", "layer4.");
    write_tensors(p, &t, NULL);
    refused_with(p, "resnet164", "has 4 stages");
    att_model_destroy(&model);
}

static void cannot_be_built(const place *p, const char *name, const att_model_options *options, const char *words)
{
    att_model *model = NULL;
    assert_int_equal(att_model_create(p->context, name, options, ATT_F32, &model), ATT_ERR_ARGUMENT);
    assert_null(model);
    says(att_context_message(p->context), words);
}

static void layers_take_the_place_of_a_depth(void **state)
{
    const place *p = *state;
    att_model_options options = att_model_options_defaults();
    strcpy(options.layers, "1,2,1");
    att_model *model = make(p, "resnet20", &options);
    assert_int_equal(att_model_options_of(model).depth, 10);
    att_model_destroy(&model);
}

static void contradicting_options_are_refused(void **state)
{
    const place *p = *state;
    att_model_options o = att_model_options_defaults();
    o.depth = 30;
    cannot_be_built(p, "resnet164", &o, "9 n + 2 layers deep (11, 20, 29, ...)");
    cannot_be_built(p, "resnet20", &o, "6 n + 2");
    cannot_be_built(p, "resnet50", &o, "depth 30 does not go with layers 3,4,6,3, which are 50 deep");
    o = att_model_options_defaults(), strcpy(o.layers, "3,4,6");
    cannot_be_built(p, "resnet50", &o, "4 stages");
    strcpy(o.layers, "3,0,6,3");
    cannot_be_built(p, "resnet50", &o, "not \"3,0,6,3\"");
    strcpy(o.layers, "500,4,6,3");
    cannot_be_built(p, "resnet50", &o, "at most 512");
    o = att_model_options_defaults(), o.img_size = 31;
    cannot_be_built(p, "resnet50", &o, "img_size 31");
    o = att_model_options_defaults(), strcpy(o.stem_type, "conv7");
    cannot_be_built(p, "resnet20", &o, "stem_type conv7 goes before four stages: layers must say them");
    o = att_model_options_defaults(), strcpy(o.layers, "1,1");
    cannot_be_built(p, "resnet20", &o, "3 or 4 stages");
    o = att_model_options_defaults(), strcpy(o.stem_type, "conv3"), o.img_size = 7;
    cannot_be_built(p, "resnet18", &o, "img_size 7: the network halves images until one of 8 pixels");
    o = att_model_options_defaults(), o.cardinality = 2;
    cannot_be_built(p, "resnet18", &o, "bottleneck's");
    o = att_model_options_defaults(), o.zero_init_last = 1;
    cannot_be_built(p, "preresnet29", &o, "zero_init_last");
    o = att_model_options_defaults(), strcpy(o.global_pool, "token");
    cannot_be_built(p, "resnet50", &o, "global_pool");
    o = att_model_options_defaults(), strcpy(o.attn, "se"), strcpy(o.attn_blocks, "18");
    cannot_be_built(p, "resnet50", &o, "there is no block 18");
    o = att_model_options_defaults(), strcpy(o.attn_blocks, "all");
    cannot_be_built(p, "resnet50", &o,
                    "attn_blocks \"all\" says which blocks have a module, but attn does not say which");
    o = att_model_options_defaults(), o.depth = 20, strcpy(o.layers, "1,1,1");
    cannot_be_built(p, "resnet20", &o,
                    "depth 20 does not go with layers 1,1,1, which are 8 deep; leave one of them out");
    o = att_model_options_defaults(), strcpy(o.attn, "fca"), o.width = 4;
    cannot_be_built(p, "resnet20", &o, "its 16 frequencies take a branch whose channels are a multiple of 16, not 4");
    o = att_model_options_defaults(), strcpy(o.attn, "srm"), o.img_size = 4;
    cannot_be_built(p, "resnet20", &o, "has a single pixel in layer3.0.srm");
    strcpy(o.attn, "step:adaptor=style");
    cannot_be_built(p, "resnet20", &o, "has a single pixel in layer3.0.step.style");
    o = att_model_options_defaults(), o.in_chans = 2;
    cannot_be_built(p, "resnet20", &o, "in_chans must be 1 or 3, not 2");
    o = att_model_options_defaults(), o.patch_size = 16;
    cannot_be_built(p, "resnet50", &o, "patch_size is an option of the family \"vit\", not of \"resnet\"");
    o = att_model_options_defaults(), strcpy(o.attn, "se");
    cannot_be_built(p, "vit_tiny_patch16_224", &o, "attn is an option of the family \"resnet\", not of \"vit\"");
    o = att_model_options_defaults(), strcpy(o.shortcut, "B");
    cannot_be_built(p, "resnet50", &o, "shortcut must be one of \"conv\", \"avg_conv\", \"pad\", not \"B\"");
}

static void starts_at(const att_graph *graph, const char *name, double value)
{
    for (int i = 0; i < att_graph_parameter_count(graph); i++) {
        att_parameter_info parameter = att_graph_parameter_at(graph, i);
        if (strcmp(parameter.name, name) != 0)
            continue;
        assert_true(parameter.init.value == value);
        return;
    }
    fail_msg("there is no %s", name);
}

static void last_norms_start_at_zero_where_timms_do(void **state)
{
    const place *p = *state;
    for (int own = 0; own < 2; own++) {
        att_model_options options = att_model_options_defaults();
        options.zero_init_last = own ? -1 : 0;
        att_model *model = make(p, "resnet50", &options);
        starts_at(att_model_graph(model), "layer1.0.bn3.weight", own ? 0 : 1);
        starts_at(att_model_graph(model), "layer1.0.bn2.weight", 1);
        att_model_destroy(&model);
    }
    att_model *model = make(p, "resnet20", NULL);
    starts_at(att_model_graph(model), "layer1.0.bn2.weight", 1);
    att_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tensors_tell_the_network),
        TEST(tensors_tell_a_modules_options),
        TEST(ratios_beyond_the_eighth_are_left_out),
        TEST(metadata_tells_what_tensors_do_not),
        TEST(every_kind_is_told_apart),
        TEST(groups_and_widths_are_seen),
        TEST(squeeze_and_excitation_may_lie_in_a_sequence),
        TEST(a_source_that_names_another_network_is_refused),
        TEST(a_nameless_file_lists_what_fits),
        TEST(tensors_of_another_network_are_refused),
        TEST(a_module_decides_which_name_fits),
        TEST(an_architecture_in_the_file_is_taken),
        TEST(other_names_are_understood),
        TEST(a_resnet18_for_small_images_is_understood),
        TEST(what_lies_beside_tells_fca_from_se),
        TEST(other_scopes_of_a_module_are_understood),
        TEST(other_tensors_are_refused),
        TEST(layers_take_the_place_of_a_depth),
        TEST(contradicting_options_are_refused),
        TEST(last_norms_start_at_zero_where_timms_do),
        TEST(hidden_widths_are_read_from_tensors),
        TEST(hidden_widths_need_a_module_that_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

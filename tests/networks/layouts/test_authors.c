/* Files as the authors of networks publish them: names, options, and values of what is joined or divided. */
#include "networks/layouts/layout.h"
#include "networks/models/checkpoints.h"

enum { MOST_NAME = 128, WIDTH = 32 };

/* How the authors' file differs from timm's names. Each pair replaces a part of a name; the last is {NULL}. */
typedef struct authors {
    const char *network, *pairs[16][2];
    const char *others[4]; /* tensors [1] that have no counterpart; the last is NULL */
    bool joins_bias;       /* q_bias and v_bias are parts of qkv.bias, [q, k, v] */
    bool joins_class;      /* pos_embed has a row for the class token, which is added to it */
    bool has_shifts; /* tables of shifts in windows of 8 x 8, in the last stage 4 x 4, scaled for 6 x 6 and 3 x 3 */
} authors;

typedef struct renamed {
    char names[MOST][MOST_NAME];
    tensors timm, file;
} renamed;

static void rename_tensor(const authors *a, const char *from, char to[MOST_NAME])
{
    snprintf(to, MOST_NAME, "%s", from);
    for (int i = 0; a->pairs[i][0]; i++) {
        char rest[MOST_NAME], *found = strstr(to, a->pairs[i][0]);
        if (!found)
            continue;
        snprintf(rest, sizeof rest, "%s", found + strlen(a->pairs[i][0]));
        snprintf(found, (size_t)(to + MOST_NAME - found), "%s%s", a->pairs[i][1], rest);
        return;
    }
}

static bool is_joined(const authors *a, const char *name)
{
    return a->joins_bias && (strstr(name, "attn.q_bias") || strstr(name, "attn.v_bias"));
}

/* Adds the table of Swin V2's paper, sign(s) log2(1 + |s|) / log2(8) of s = 8 d / (trained - 1) for each shift d. */
static void add_shifts(tensors *t, const char *name, int window, int trained)
{
    static float tables[4][15 * 15 * 2];
    static int used;
    const int side = 2 * window - 1;
    float *values = tables[used++ % 4];
    for (int i = 0; i < side * side * 2; i++) {
        const int d = (i % 2 ? i / 2 % side : i / 2 / side) - (window - 1);
        const double scaled = 8.0 * abs(d) / (trained - 1);
        values[i] = (float)copysign(log2(1 + scaled) / log2(8), d);
    }
    add_tensor(t, name, att_shape_of(1, side, side, 2));
    t->items[t->count - 1].data = values;
}

/* Writes the file under the authors' names. */
static void write_authors(const place *p, const authors *a, const att_model *model, renamed *r)
{
    r->timm = tensors_of(model);
    r->file = (tensors){.count = 0};
    for (int i = 0; i < r->timm.count; i++) {
        att_shape shape = r->timm.items[i].shape;
        char *name = r->names[i];
        rename_tensor(a, r->timm.items[i].name, name);
        if (a->joins_class && strcmp(name, "pos_embed") == 0)
            shape.dims[1]++;
        if (is_joined(a, name)) {
            if (strstr(name, "v_bias"))
                continue;
            strcpy(strstr(name, "q_bias"), "qkv.bias");
            shape.dims[0] *= 3;
        }
        add_tensor(&r->file, name, shape);
    }
    for (int i = 0; a->others[i]; i++)
        add_tensor(&r->file, a->others[i], att_shape_of(1));
    static const char *const shifts[] = {
        "layers.0.blocks.0.attn.relative_coords_table", "layers.1.blocks.0.attn.relative_coords_table",
        "layers.2.blocks.0.attn.relative_coords_table", "layers.3.blocks.0.attn.relative_coords_table"};
    for (int s = 0; s < 4 && a->has_shifts; s++)
        add_shifts(&r->file, shifts[s], s == 3 ? 4 : 8, s == 3 ? 3 : 6);
    if (a->has_shifts)
        add_tensor(&r->file, "layers.0.blocks.1.attn_mask", att_shape_of(16, 64, 64));
    write_tensors(p, &r->file, NULL);
}

/* Element i of timm's tensor, computed from the authors' values. */
static double expected(const authors *a, const char *timm, const char *name, uint32_t i)
{
    if (is_joined(a, timm))
        return formula(name, i + (strstr(timm, "v_bias") ? 2 * WIDTH : 0));
    if (a->joins_class && strcmp(timm, "pos_embed") == 0)
        return formula(name, i + WIDTH);
    return formula(name, i) + (a->joins_class && strcmp(timm, "cls_token") == 0 ? formula("pos_embed", i) : 0);
}

static void check_values(const authors *a, const renamed *r, const att_tensors *file)
{
    static float values[1 << 20];
    char joined[MOST_NAME];
    assert_int_equal(att_tensors_count(file), r->timm.count);
    for (int i = 0; i < r->timm.count; i++) {
        const char *timm = r->timm.items[i].name;
        const int index = att_tensors_find(file, timm);
        if (index < 0)
            fail_msg("%s: there is no %s", a->network, timm);
        snprintf(joined, sizeof joined, "%s", r->names[i]);
        if (is_joined(a, joined)) /* v_bias */
            strcpy(strstr(joined, "v_bias"), "qkv.bias");
        const att_tensors_info info = att_tensors_at(file, index);
        assert_true(att_shape_equal(info.shape, r->timm.items[i].shape));
        assert_int_equal(att_tensors_read_f32(file, index, values, info.count), ATT_OK);
        for (uint32_t e = 0; e < (uint32_t)info.count; e++) /* sums are of two floats: one rounding, 6e-8 */
            if (!(fabs((double)values[e] - expected(a, timm, joined, e)) <= 1.2e-7))
                fail_msg("%s: %s[%u] is %.9g, not %.9g", a->network, timm, e, (double)values[e],
                         expected(a, timm, joined, e));
    }
}

/* flags: options of the network; those that tensors do not show are given, the others must be found. */
static att_identity opens(const place *p, const authors *a, const att_option_values *options,
                          const att_option_values *flags)
{
    static renamed r;
    att_model *model = make(p, a->network, options);
    att_tensors *file = NULL;
    att_identity identity;
    write_authors(p, a, model, &r);
    CHECK(p->context, att_model_open_file(p->context, p->weights, &file));
    check_values(a, &r, file);
    CHECK(p->context, att_model_identify(p->context, file, p->weights, NULL, flags, &identity));
    assert_string_equal(identity.name, a->network);
    att_model *again = make(p, identity.name, &identity.options);
    att_weights *weights;
    CHECK(p->context, att_weights_create(att_model_graph(again), "cpu", &weights));
    CHECK(p->context, att_model_load(again, file, weights));
    att_weights_destroy(&weights);
    att_model_destroy(&again);
    att_model_destroy(&model);
    att_tensors_close(&file);
    return identity;
}

/* Of a network of tokens without a classifier. The first network of each layout is the one that is found. */
static void opens_tokens(const place *p, const authors *a)
{
    att_option_values options = small(), flags = att_options_none();
    att_options_set(&options, "num_classes", 0);
    att_options_set(&flags, "num_heads", 2);
    att_options_set(&flags, "img_size", 32);
    opens(p, a, &options, &flags);
}

PLACE_TEST(dinov2_with_registers_opens)
{
    static const authors dinov2 = {
        .network = "vit_base_patch14_reg4_dinov2", .pairs = {{"reg_token", "register_tokens"}}, .joins_class = true};
    opens_tokens(p, &dinov2);
}

PLACE_TEST(dinov2_giant_opens)
{
    static const authors giant = {.network = "vit_giant_patch14_dinov2",
                                  .pairs = {{"mlp.fc1", "mlp.w12"}, {"mlp.fc2", "mlp.w3"}}};
    opens_tokens(p, &giant);
}

PLACE_TEST(dinov3_opens)
{
    static const authors dinov3 = {
        .network = "vit_base_patch16_dinov3_qkvb",
        .pairs = {{"reg_token", "storage_tokens"}, {"gamma_1", "ls1.gamma"}, {"gamma_2", "ls2.gamma"}},
        .others = {"rope_embed.periods", "blocks.0.attn.qkv.bias_mask"},
        .joins_bias = true};
    opens_tokens(p, &dinov3);
}

PLACE_TEST(eva02_opens)
{
    static const authors eva02 = {.network = "eva02_base_patch14_224",
                                  .pairs = {{"attn.q_proj.bias", "attn.q_bias"},
                                            {"attn.v_proj.bias", "attn.v_bias"},
                                            {"attn.norm", "attn.inner_attn_ln"},
                                            {"mlp.fc1_g", "mlp.w1"},
                                            {"mlp.fc1_x", "mlp.w2"},
                                            {"mlp.fc2", "mlp.w3"},
                                            {"mlp.norm", "mlp.ffn_ln"}},
                                  .others = {"rope.freqs_cos", "rope.freqs_sin", "blocks.1.attn.rope.freqs_cos"}};
    opens_tokens(p, &eva02);
}

PLACE_TEST(swin_opens)
{
    static const authors swin = {
        .network = "swin_tiny_patch4_window7_224",
        .pairs = {{"layers.1.downsample", "layers.0.downsample"},
                  {"layers.2.downsample", "layers.1.downsample"},
                  {"layers.3.downsample", "layers.2.downsample"},
                  {"head.fc", "head"}},
        .others = {"layers.0.blocks.0.attn.relative_position_index", "layers.0.blocks.1.attn_mask"}};
    att_option_values options = att_options_none();
    att_options_set(&options, "embed_dim", 32);
    att_options_set_text(&options, "depths", "1,1,1,1");
    att_options_set_text(&options, "stage_heads", "1,2,4,8");
    opens(p, &swin, &options, NULL);
}

PLACE_TEST(swin_v2_opens)
{
    static const authors swin = {.network = "swinv2_tiny_window8_256",
                                 .pairs = {{"layers.1.downsample", "layers.0.downsample"},
                                           {"layers.2.downsample", "layers.1.downsample"},
                                           {"layers.3.downsample", "layers.2.downsample"},
                                           {"head.fc", "head"}},
                                 .has_shifts = true};
    att_option_values options = att_options_none();
    att_options_set(&options, "embed_dim", 32), att_options_set(&options, "img_size", 128);
    att_options_set_text(&options, "depths", "2,1,1,1"), att_options_set_text(&options, "stage_heads", "1,2,4,8");
    att_options_set_text(&options, "pretrained_window_sizes", "6,6,6,3");
    const att_identity identity = opens(p, &swin, &options, NULL);
    assert_string_equal(att_options_text(&identity.options, "window_size"), "8");
    assert_string_equal(att_options_text(&identity.options, "pretrained_window_sizes"), "6,6,6,3");
    assert_int_equal(identity.preprocess.height, 128);
}

PLACE_TEST(convnext_opens)
{
    static const authors convnext = {.network = "convnext_tiny",
                                     .pairs = {{"stem.", "downsample_layers.0."},
                                               {"stages.1.downsample", "downsample_layers.1"},
                                               {"stages.2.downsample", "downsample_layers.2"},
                                               {"stages.3.downsample", "downsample_layers.3"},
                                               {"blocks.0.conv_dw", "0.dwconv"},
                                               {"blocks.0.norm", "0.norm"},
                                               {"blocks.0.mlp.fc1", "0.pwconv1"},
                                               {"blocks.0.mlp.fc2", "0.pwconv2"},
                                               {"blocks.0.gamma", "0.gamma"},
                                               {"head.norm", "norm"},
                                               {"head.fc", "head"}}};
    att_option_values options = att_options_none();
    att_options_set_text(&options, "depths", "1,1,1,1"), att_options_set_text(&options, "dims", "8,16,24,32");
    opens(p, &convnext, &options, NULL);
}

PLACE_TEST(deit3_opens)
{
    static const authors deit3 = {.network = "deit3_base_patch16_224",
                                  .pairs = {{"ls1.gamma", "gamma_1"}, {"ls2.gamma", "gamma_2"}}};
    opens_tokens(p, &deit3);
}

/* An EVA of timm's without frequencies has DeiT III's tensors: the name that the caller gives decides. */
PLACE_TEST(a_given_name_of_another_family_keeps_the_tensors_names)
{
    static const authors timm = {.network = "vit_small_patch16_rope_ape_224"};
    static const char *const names[] = {"vit_small_patch16_rope_ape_224", "deit3_base_patch16_224", "resnet50", NULL};
    static renamed r;
    att_option_values options = small();
    att_options_set(&options, "num_classes", 0);
    att_model *model = make(p, timm.network, &options);
    write_authors(p, &timm, model, &r);
    for (int i = 0; i < 4; i++) {
        att_tensors *file;
        CHECK(p->context, att_model_open_file_as(p->context, p->weights, names[i], &file));
        assert_int_equal(att_tensors_find(file, "blocks.0.gamma_1") >= 0, i == 0);
        assert_int_equal(att_tensors_find(file, "blocks.0.ls1.gamma") >= 0, i > 0);
        /* Without a name, what was assumed is said. */
        assert_int_equal(strstr(att_tensors_origin(file), "assumed: not one of timm's ViTs with fixed rotary") != NULL,
                         names[i] == NULL);
        att_tensors_close(&file);
    }
    att_model_destroy(&model);
}

/* Frequencies tell that a file is no DeiT III's. */
PLACE_TEST(frequencies_show_an_eva)
{
    static const authors timm = {.network = "vit_small_patch16_rope_mixed_ape_224"};
    static renamed r;
    att_option_values options = small();
    att_options_set(&options, "num_classes", 0);
    att_model *model = make(p, timm.network, &options);
    att_tensors *file;
    write_authors(p, &timm, model, &r);
    CHECK(p->context, att_model_open_file(p->context, p->weights, &file));
    assert_true(att_tensors_find(file, "blocks.0.gamma_1") >= 0);
    att_tensors_close(&file);
    att_model_destroy(&model);
}

/* Writes the header of a file with the network's tensors under other names, and opens it. */
static att_tensors *open_header(const place *p, const authors *a)
{
    static char header[1 << 17];
    char name[MOST_NAME], path[128];
    att_model *model = make(p, a->network, NULL);
    const tensors t = tensors_of(model);
    int64_t at = 0;
    size_t length = 0;
    for (int i = 0; i < t.count; i++) {
        const att_shape *shape = &t.items[i].shape;
        rename_tensor(a, t.items[i].name, name);
        length += (size_t)snprintf(header + length, sizeof header - length, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[",
                                   i ? "," : "{", name);
        for (int d = 0; d < shape->rank; d++)
            length +=
                (size_t)snprintf(header + length, sizeof header - length, "%s%d", d ? "," : "", (int)shape->dims[d]);
        length += (size_t)snprintf(header + length, sizeof header - length, "],\"data_offsets\":[%lld,%lld]}",
                                   (long long)at, (long long)(at + 4 * att_shape_count(*shape)));
        at += 4 * att_shape_count(*shape);
    }
    length += (size_t)snprintf(header + length, sizeof header - length, "}");
    assert_true(length < sizeof header);
    path_in(p, "header", path);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_true(fwrite(&(uint64_t){length}, 8, 1, out) == 1 && fwrite(header, 1, length, out) == length);
    fclose(out);
    att_tensors *file;
    CHECK(p->context, att_tensors_open_part(p->context, path, p->weights, (uint64_t)at + 8 + length, &file));
    unlink(path);
    att_model_destroy(&model);
    return file;
}

/* Networks for images of several sizes have the same tensors, but for their positions. */
PLACE_TEST(the_images_choose_the_network)
{
    static const char *const networks[] = {"deit3_small_patch16_224", "deit3_small_patch16_384"};
    for (int i = 0; i < 2; i++) {
        const authors deit3 = {.network = networks[i], .pairs = {{"ls1.gamma", "gamma_1"}, {"ls2.gamma", "gamma_2"}}};
        att_tensors *file = open_header(p, &deit3);
        att_identity identity;
        CHECK(p->context, att_layout_take(file, NULL));
        CHECK(p->context, att_model_identify(p->context, file, NULL, NULL, NULL, &identity));
        assert_string_equal(identity.name, networks[i]);
        assert_true(identity.preprocess.crop_pct == (i == 0 ? 0.9 : 1));
        att_tensors_close(&file);
    }
}

/* Positions of MoCo v3 begin with the row of a patch, those of MAE with its column. */
static void fill_positions(float *values, int side, int width, bool row_first)
{
    const int quarter = width / 4;
    for (int i = 0; i < width * (side * side + 1); i++) {
        const int patch = i / width - 1, c = i % width, axis = c / (2 * quarter);
        const int at = patch < 0 ? 0 : (axis == 0) == row_first ? patch / side : patch % side;
        const double angle = at * pow(10000, -(double)(c % quarter) / quarter);
        values[i] = patch < 0 ? 0 : (float)(c / quarter % 2 ? cos(angle) : sin(angle));
    }
}

/* After a training of the classifier, the files of MoCo v3 have no prefix. */
PLACE_TEST(positions_show_the_heads_of_moco_v3)
{
    static float positions[17 * 384];
    att_option_values options = small();
    att_options_set(&options, "embed_dim", 384);
    for (int moco = 0; moco < 2; moco++) {
        att_model *model = make(p, "vit_small_patch16_224", &options);
        tensors t = tensors_of(model);
        att_identity identity;
        fill_positions(positions, 4, 384, moco);
        for (int i = 0; i < t.count; i++)
            if (strcmp(t.items[i].name, "pos_embed") == 0)
                t.items[i].data = positions;
        write_tensors(p, &t, NULL);
        CHECK(p->context, identify(p, "vit_small_patch16_224", NULL, &identity));
        assert_int_equal(att_options_number(&identity.options, "num_heads", 0), moco ? 12 : 6);
        att_model_destroy(&model);
    }
}

/* The files of MoCo v3 have heads of 32 channels in the small network. */
PLACE_TEST(the_small_vit_of_moco_v3_has_12_heads)
{
    static char names[MOST][MOST_NAME];
    att_option_values options = small();
    att_options_set(&options, "embed_dim", 384), att_options_set(&options, "num_classes", 0);
    for (int moco = 0; moco < 2; moco++) {
        att_model *model = make(p, "vit_small_patch16_224", &options);
        tensors t = tensors_of(model);
        att_identity identity;
        for (int i = 0; i < t.count; i++) {
            snprintf(names[i], sizeof names[i], "%s%s", moco ? "module.base_encoder." : "module.", t.items[i].name);
            t.items[i].name = names[i];
        }
        write_tensors(p, &t, NULL);
        CHECK(p->context, identify(p, "vit_small_patch16_224", NULL, &identity));
        assert_int_equal(att_options_number(&identity.options, "num_heads", 0), moco ? 12 : 6);
        att_model_destroy(&model);
    }
}

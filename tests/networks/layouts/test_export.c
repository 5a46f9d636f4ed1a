/* Networks written for other programs: names and values of the goldens' own files, settings, refusals. */
#include <attscope/convert.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/io/json.h"
#include "base/io/scratch.h"
#include "base/io/tensors.h"
#include "networks/layouts/layout.h"
#include "networks/models/fixture.h"

enum { MOST_VALUES = 1 << 12 };

/* A scratch whose context can run networks. */
static int export_setup(void **state)
{
    if (scratch_setup(state) != 0)
        return -1;
    scratch *self = *state;
    const att_settings settings = failing_settings(&self->memory);
    att_context_destroy(&self->context);
    return att_context_create(&settings, &self->context) == ATT_OK ? 0 : -1;
}
#define EXPORT_TEST(name) TEST_WITH(name, scratch *self, export_setup, scratch_teardown)

/* --- networks ----------------------------------------------------------------------------------------------------- */

typedef struct network {
    att_identity identity;
    att_model *model;
    att_weights *weights;
} network;

static void free_network(network *n)
{
    att_weights_destroy(&n->weights);
    att_model_destroy(&n->model);
}

static att_status open_network(scratch *self, const char *path, network *n)
{
    att_tensors *file = NULL;
    *n = (network){.model = NULL};
    att_status status = att_model_open_file(self->context, path, &file);
    if (status == ATT_OK)
        status = att_model_identify(self->context, file, NULL, NULL, NULL, &n->identity);
    if (status == ATT_OK)
        status = att_model_create(self->context, n->identity.name, &n->identity.options, ATT_F32, &n->model);
    if (status == ATT_OK)
        status = att_weights_create(att_model_graph(n->model), "cpu", &n->weights);
    if (status == ATT_OK)
        status = att_model_load(n->model, file, n->weights);
    att_tensors_close(&file);
    return status;
}

static const char *golden_file(const char *folder, char path[4096])
{
    char name[256];
    snprintf(name, sizeof name, "layouts/%s/model.safetensors", folder);
    golden_path(name, path, 4096);
    return path;
}

/* Makes a network of the list with other options, "key=value key=value", and values by the formula. */
static network make_network(scratch *self, const char *name, const char *options)
{
    network n;
    char text[512];
    att_option_values values = att_options_none();
    snprintf(text, sizeof text, "%s", options);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        int height, width;
        if (sscanf(word, "img_size=%dx%d", &height, &width) == 2)
            att_options_set_sides(&values, "img_size", height, width);
        else
            take_option(word, &values);
    }
    CHECK(self->context, att_model_create(self->context, name, &values, ATT_F32, &n.model));
    CHECK(self->context, att_weights_create(att_model_graph(n.model), "cpu", &n.weights));
    formula_fill(self->context, att_model_graph(n.model), n.weights);
    n.identity = att_model_identity(n.model);
    return n;
}

static att_status export(scratch *self, const network *n, const char *program, const char *as)
{
    char path[512];
    return att_model_export(self->context, &n->identity, n->weights, NULL, program, scratch_path(self, as, path));
}

static void read_text(scratch *self, const char *name, char *text, size_t size)
{
    char path[512];
    FILE *file = fopen(scratch_path(self, name, path), "r");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

static void compare_parameter(scratch *self, const att_weights *weights, int index, const att_weights *read)
{
    const att_parameter_info info = att_weights_at(weights, index);
    const int64_t count = att_shape_count(info.shape);
    const size_t bytes = sizeof(float) * (size_t)count;
    float *own = malloc(bytes), *other = malloc(bytes);
    CHECK(self->context, att_weights_get(weights, -1, index, own, count));
    CHECK(self->context, att_weights_get(read, -1, att_weights_find(read, info.name), other, count));
    assert_memory_equal(own, other, bytes);
    free(own);
    free(other);
}

/* Reads the file, and compares images and weights. */
static void compare_network(scratch *self, const network *n, const char *name)
{
    char path[512];
    network read;
    CHECK(self->context, open_network(self, scratch_path(self, name, path), &read));
    assert_int_equal(att_weights_count(read.weights), att_weights_count(n->weights));
    for (int i = 0; i < att_weights_count(n->weights); i++)
        compare_parameter(self, n->weights, i, read.weights);
    assert_int_equal(read.identity.preprocess.height, n->identity.preprocess.height);
    assert_memory_equal(read.identity.preprocess.mean, n->identity.preprocess.mean, sizeof(double[3]));
    free_network(&read);
}

static void check_same(scratch *self, const network *n, const char *as)
{
    char name[128];
    CHECK(self->context, export(self, n, "transformers", as));
    snprintf(name, sizeof name, "%s/model.safetensors", as);
    compare_network(self, n, name);
}

/* --- the goldens -------------------------------------------------------------------------------------------------- */

typedef struct row {
    const char *folder;   /* in tests/goldens/layouts */
    const char *refused;  /* a part of the message; NULL: the network is written */
    const char *left_out; /* names of tensors that are not written; may contain '*' */
    const char *changed;  /* names, without prefix, of tensors with other values or shapes */
    const char *settings; /* keys of config.json with other values, which mean the same for what is written */
} row;

#define MASK "*embeddings.mask_token"
#define POSITIONS "embeddings.cls_token,embeddings.position_embeddings"

static const row rows[] = {
    {.folder = "vit"},
    {"vit_base", .left_out = "pooler.*"},
    {"vit_masked", .left_out = "decoder.*," MASK},
    {.folder = "deit"},
    {.folder = "deit_teacher"},
    {"vit_mae", .left_out = "decoder.*"},
    {"vit_msn", .left_out = MASK},
    {.folder = "ijepa"},
    {"ijepa_base", .left_out = "pooler.*"},
    {"dinov2", .left_out = MASK},
    {"dinov2_base", .left_out = MASK, .settings = "hidden_act,intermediate_size"},
    {"dinov2_registers", .left_out = MASK, .changed = POSITIONS},
    {"dinov2_resized", .left_out = MASK, .changed = POSITIONS, .settings = "image_size"},
    {"dinov2_registers_resized", .left_out = MASK, .changed = POSITIONS, .settings = "image_size"},
    {"dinov2_registers_none", .refused = "needs embed_class=1"},
    {"dinov3", .left_out = MASK},
    {"dinov3_gated", .left_out = MASK},
    {.folder = "beit"},
    {.folder = "beit_class"},
    {"beit_masked", .left_out = "lm_head.*", .settings = "use_mean_pooling"},
    {"beit_backbone", .left_out = "layernorm.*,lm_head.*"},
    {.folder = "data2vec"},
    {.folder = "data2vec_base"},
    {.folder = "swin"},
    {.folder = "swin_base"},
    {"swin_masked", .left_out = "decoder.*," MASK},
    {"swinv2", .settings = "pretrained_window_sizes"}, /* of two more stages */
    {"resnet", .left_out = "*.num_batches_tracked"},
    {"resnet_bottleneck", .left_out = "*.num_batches_tracked"},
    {"resnet_early", .left_out = "*.num_batches_tracked"},
    {"resnet_base", .left_out = "*.num_batches_tracked"},
    {.folder = "clip_vision"},
    {.folder = "clip_projection"},
    {"clip", .left_out = "text_model.*,text_projection.weight,logit_scale", .settings = "projection_dim"},
    {.folder = "siglip_vision"},
    {"siglip", .left_out = "text_model.*,logit_scale,logit_bias"},
    {"clip_classes", .refused = "transformers' CLIP (CLIPVisionModelWithProjection) needs the tensor norm.bias"},
    {"siglip2_vision", .changed = "embeddings.patch_embedding.weight"},
};

static bool lists(const char *patterns, const char *name)
{
    return patterns && *patterns && att_text_matches_any(patterns, name);
}

/* Every name of the golden's is among the written ones, with the same values, and there are no others. */
static void compare_files(const row *r, const att_layout *layout, const att_tensors *golden, const att_tensors *written)
{
    int expected = 0;
    for (int i = 0; i < att_tensors_count(golden); i++) {
        const att_tensors_info info = att_tensors_at(golden, i);
        const char *name = att_layout_bare(layout, info.name);
        float own[MOST_VALUES], other[MOST_VALUES];
        if (lists(r->left_out, info.name))
            continue;
        const int at = att_layout_find(layout, written, name);
        if (at < 0)
            fail_msg("%s: %s was not written", r->folder, info.name);
        expected++;
        if (lists(r->changed, name))
            continue;
        assert_true(att_shape_equal(att_tensors_at(written, at).shape, info.shape));
        assert_in_range(info.count, 1, MOST_VALUES);
        assert_int_equal(att_tensors_read_f32(golden, i, own, info.count), ATT_OK);
        assert_int_equal(att_tensors_read_f32(written, at, other, info.count), ATT_OK);
        if (memcmp(own, other, sizeof *own * (size_t)info.count) != 0)
            fail_msg("%s: %s has other values", r->folder, info.name);
    }
    assert_int_equal(att_tensors_count(written), expected);
}

static const att_layout *layout_of(const char *folder)
{
    static const char *const starts[] = {"dinov2", "dinov3_vit", "beit", "swinv2", "swin", "resnet", "clip", "siglip"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(folder, starts[i], i == 1 ? 6 : strlen(starts[i])) == 0)
            return att_layout_of_type(starts[i]);
    return att_layout_of_type(strncmp(folder, "data2vec", 8) == 0 ? "beit" : "vit");
}

static json_t *read_config(scratch *self, const char *path)
{
    static char bytes[1 << 14];
    json_t *root;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    CHECK(self->context, att_json_parse(self->context, path, bytes, size, &root));
    return root;
}

/* All written settings that the golden has, too, are the same. */
static void compare_configs(const row *r, json_t *golden, json_t *written)
{
    const char *key;
    json_t *value;
    json_object_foreach(written, key, value)
    {
        json_t *own = json_object_get(golden, key);
        const bool numbers = json_is_number(own) && json_is_number(value);
        if (!own || lists("architectures,model_type,dtype,use_mask_token", key) || lists(r->settings, key))
            continue;
        if (numbers ? json_number_value(own) != json_number_value(value) : !json_equal(own, value))
            fail_msg("%s: config.json has another %s", r->folder, key);
    }
}

static void check_config(scratch *self, const row *r)
{
    char name[256], path[4096];
    snprintf(name, sizeof name, "layouts/%s/config.json", r->folder);
    golden_path(name, path, sizeof path);
    json_t *golden = read_config(self, path), *vision = json_object_get(golden, "vision_config");
    snprintf(name, sizeof name, "out_%s/config.json", r->folder);
    json_t *written = read_config(self, scratch_path(self, name, path));
    compare_configs(r, vision ? vision : golden, written);
    json_decref(golden);
    json_decref(written);
}

static void check_golden(scratch *self, const row *r)
{
    char path[4096], as[512], out[512];
    att_tensors *golden, *written;
    network n;
    CHECK(self->context, open_network(self, golden_file(r->folder, path), &n));
    snprintf(as, sizeof as, "out_%s", r->folder);
    if (r->refused) {
        assert_fails(self->context, export(self, &n, "transformers", as), ATT_ERR_UNSUPPORTED, r->refused);
    } else {
        CHECK(self->context, export(self, &n, "transformers", as));
        strcat(as, "/model.safetensors");
        CHECK(self->context, att_tensors_open(self->context, golden_file(r->folder, path), &golden));
        CHECK(self->context, att_tensors_open(self->context, scratch_path(self, as, out), &written));
        compare_files(r, layout_of(r->folder), golden, written);
        att_tensors_close(&written);
        att_tensors_close(&golden);
        check_config(self, r);
    }
    free_network(&n);
}

EXPORT_TEST(goldens_are_written_under_their_own_names)
{
    for (const row *r = rows; r < rows + sizeof rows / sizeof *rows; r++)
        check_golden(self, r);
}

/* I-JEPA's classifier reads the mean of the tokens, too. */
EXPORT_TEST(a_network_becomes_any_class_that_computes_the_same)
{
    char path[4096], text[4096];
    network n;
    CHECK(self->context, open_network(self, golden_file("siglip_classes", path), &n));
    check_same(self, &n, "out");
    read_text(self, "out/config.json", text, sizeof text);
    assert_non_null(strstr(text, "IJepaForImageClassification"));
    free_network(&n);
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

#define VIT "vit_tiny_patch16_224", "img_size=8 patch_size=2 embed_dim=8 depth=1 num_heads=2 mlp_ratio=2 num_classes=3 "
#define SWIN "img_size=8 patch_size=2 embed_dim=8 depths=1,1 stage_heads=1,2 window_size=2 num_classes=3 "
#define RESNET "resnet18", "img_size=32 width=2 layers=1,1,1,1 num_classes=3 "

EXPORT_TEST(settings_are_those_of_the_network)
{
    static const char *const networks[][2] = {
        {VIT},
        {VIT "norm_eps=0.125 act_layer=gelu_tanh"},
        {VIT "norm_eps=1e-12 act_layer=quick_gelu qkv_bias=0"},
        {VIT "distilled=1 attn_drop_rate=0.5"},
        {VIT "patch_size=4 num_classes=0"},
        {"swin_tiny_patch4_window7_224", SWIN},
        {"swin_tiny_patch4_window7_224", SWIN "mlp_ratio=1.5 qkv_bias=0"},
        {"swinv2_tiny_window8_256", SWIN "pretrained_window_sizes=3,4"},
        {"swinv2_tiny_window8_256", SWIN},
        {RESNET},
        {RESNET "block=bottleneck"},
        {"vit_base_patch14_dinov2", "img_size=8 patch_size=2 embed_dim=8 depth=1 num_heads=2 mlp_ratio=3"},
        {"vit_base_patch16_dinov3_qkvb",
         "img_size=8 patch_size=2 embed_dim=16 depth=1 num_heads=2 mlp_ratio=2 qkv_fused=0 global_pool=token fc_norm=0 "
         "rope_temperature=10"},
        {"beit_base_patch16_224", "img_size=8 patch_size=2 embed_dim=8 depth=1 num_heads=2 mlp_ratio=2 num_classes=3"},
        {"vit_base_patch16_siglip_224", "img_size=8 patch_size=2 embed_dim=8 depth=1 num_heads=2 mlp_ratio=2"},
    };
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        char as[32];
        network n = make_network(self, networks[i][0], networks[i][1]);
        snprintf(as, sizeof as, "out%d", (int)i);
        check_same(self, &n, as);
        free_network(&n);
    }
}

EXPORT_TEST(oblong_images_have_two_sides)
{
    network n = make_network(self, "vit_tiny_patch16_224",
                             "img_size=8x12 patch_size=2 embed_dim=8 depth=1 num_heads=2 mlp_ratio=2 num_classes=3");
    strcpy(n.identity.preprocess.crop_mode, "squash");
    n.identity.preprocess.crop_pct = 1;
    check_same(self, &n, "out");
    n.identity.preprocess.crop_pct = 0.9; /* 8 x 13 pixels */
    assert_fails(self->context, export(self, &n, "transformers", "other"), ATT_ERR_UNSUPPORTED,
                 "crop_mode squash, bicubic): crop_size has another shape than size, which attscope does not support; "
                 "--crop-mode");
    free_network(&n);
}

/* The library reads lists of stages, also of one. */
EXPORT_TEST(one_stage_is_a_list)
{
    char text[4096];
    network n = make_network(self, "swin_tiny_patch4_window7_224",
                             "img_size=8 patch_size=2 embed_dim=8 depths=2 stage_heads=1 window_size=2 num_classes=3");
    check_same(self, &n, "out");
    read_text(self, "out/config.json", text, sizeof text);
    assert_non_null(strstr(text, "\"depths\": ["));
    assert_non_null(strstr(text, "\"num_heads\": ["));
    free_network(&n);
}

/* Its tensors are those of another network in the list than the one after which the layout names it. */
EXPORT_TEST(a_distilled_network_of_usual_size_is_written)
{
    network n = make_network(self, "deit_tiny_distilled_patch16_224", "img_size=32 depth=12");
    CHECK(self->context, export(self, &n, "transformers", "out"));
    free_network(&n);
}

EXPORT_TEST(images_are_prepared_as_the_network_expects)
{
    static const struct {
        double crop_pct;
        const char *mode, *interpolation, *read, *class, *crops;
    } cases[] = {{1, "squash", "bilinear", "squash", "ViT", "false"},
                 {0.8, "squash", "bicubic", "squash", "DeiT", "true"},
                 {1, "center", "nearest", "floor", "Bit", "true"},
                 {0.9, "center", "bicubic", "floor", "Bit", "true"},
                 {0.9, "center", "bilinear_float", "floor", "DINOv3ViT", "true"},
                 {0.875, "floor", "bilinear", "floor", "Bit", "true"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char as[64], path[512], text[4096], part[64];
        network n = make_network(self, VIT), read;
        att_preprocess *p = &n.identity.preprocess;
        p->crop_pct = cases[i].crop_pct;
        snprintf(p->crop_mode, sizeof p->crop_mode, "%s", cases[i].mode);
        snprintf(p->interpolation, sizeof p->interpolation, "%s", cases[i].interpolation);
        p->mean[1] = 0.1, p->std[2] = 1.0 / 3;
        snprintf(as, sizeof as, "out%d", (int)i);
        CHECK(self->context, export(self, &n, "transformers", as));
        snprintf(as, sizeof as, "out%d/preprocessor_config.json", (int)i);
        read_text(self, as, text, sizeof text);
        snprintf(part, sizeof part, "\"%sImageProcessor\"", cases[i].class);
        assert_non_null(strstr(text, part));
        snprintf(part, sizeof part, "\"do_center_crop\": %s", cases[i].crops);
        assert_non_null(strstr(text, part));
        snprintf(as, sizeof as, "out%d/model.safetensors", (int)i);
        CHECK(self->context, open_network(self, scratch_path(self, as, path), &read));
        assert_string_equal(read.identity.preprocess.crop_mode, cases[i].read);
        assert_string_equal(read.identity.preprocess.interpolation, cases[i].interpolation);
        assert_true(floor(8 / read.identity.preprocess.crop_pct) == floor(8 / cases[i].crop_pct));
        assert_memory_equal(read.identity.preprocess.mean, p->mean, sizeof p->mean);
        assert_memory_equal(read.identity.preprocess.std, p->std, sizeof p->std);
        free_network(&read);
        free_network(&n);
    }
}

EXPORT_TEST(classes_have_their_names)
{
    static const char *const names[] = {"crane", "\"owl\"", "crane"};
    char path[512], text[4096];
    network n = make_network(self, VIT);
    CHECK(self->context, att_model_export(self->context, &n.identity, n.weights, names, "transformers",
                                          scratch_path(self, "out", path)));
    read_text(self, "out/config.json", text, sizeof text);
    assert_non_null(strstr(text, "\"0\": \"crane\""));
    assert_non_null(strstr(text, "\"1\": \"\\\"owl\\\"\""));
    assert_non_null(strstr(text, "\"crane\": 0"));
    assert_null(strstr(text, "\"crane\": 2"));
    assert_non_null(strstr(text, "\"model_type\": \"vit\""));
    assert_non_null(strstr(text, "\"ViTForImageClassification\""));
    CHECK(self->context, export(self, &n, "transformers", "unnamed"));
    read_text(self, "unnamed/config.json", text, sizeof text);
    assert_non_null(strstr(text, "\"2\": \"LABEL_2\""));
    free_network(&n);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void refuses(scratch *self, const char *program, const char *name, const char *options, const char *part)
{
    network n = make_network(self, name, options);
    assert_fails(self->context, export(self, &n, program, "out"), ATT_ERR_UNSUPPORTED, part);
    assert_message_has(self, name);
    assert_int_equal(scratch_file_count(self), 0);
    free_network(&n);
}

EXPORT_TEST(networks_that_no_class_computes_are_refused)
{
    static const char hf[] = "transformers";
    refuses(self, hf, VIT "modules=se", "its tensor \"blocks.0.");
    refuses(self, hf, VIT "modules=cb", "transformers' ViT cannot express its modules cb");
    refuses(self, hf, VIT "global_pool=avg",
            "transformers' ViT (ViTForImageClassification) needs the tensor norm.bias");
    refuses(self, hf, VIT "global_pool=max fc_norm=0", "cannot express its global_pool max");
    refuses(self, hf, VIT "pos_embed=none", "needs the tensor ");
    refuses(self, hf, VIT "final_norm=0", "needs the tensor norm.bias");
    refuses(self, hf, VIT "reg_tokens=2", "(ViTForImageClassification) has no tensor reg_token");
    refuses(self, hf, VIT "embed_class=0", "(ViTForImageClassification) needs embed_class=1");
    refuses(self, hf, RESNET "block=bottleneck cardinality=2 base_width=32", "needs cardinality=1");
    refuses(self, hf, VIT "init_values=0.1 act_layer=relu mlp_ratio=2.125", "has no mlp_ratio for MLPs of 17 channels");
    refuses(self, hf, VIT "task=segment", "its tensor \"segmenter.");
    refuses(self, hf, VIT "in_chans=1", "its images have 1 channel");
    refuses(self, hf, "mixer_s32_224", "img_size=8 patch_size=2 embed_dim=8 depth=1 num_classes=3",
            "attscope writes no networks of the family mixer there");
    refuses(self, hf, RESNET "width=8 stem_type=deep", "its tensor \"conv1.0.weight\"");
    refuses(self, hf, RESNET "shortcut=avg_conv", "its tensor \"layer");
    refuses(self, hf, "swin_tiny_patch4_window7_224", SWIN "img_size=12", "windows of 2 x 2 do not fill");
    refuses(self, hf, "beit_base_patch16_224",
            "img_size=8 patch_size=2 embed_dim=8 depth=1 num_heads=2 num_classes=3 final_norm=0 fc_norm=0",
            "needs the tensor fc_norm.bias");
    refuses(self, "torchvision", VIT "global_pool=avg", "cannot be written for torchvision");
    refuses(self, "torchvision", RESNET "width=64 modules=se", "its tensor \"layer1.0.se");
    refuses(self, "torchvision", "swin_tiny_patch4_window7_224", SWIN, "cannot express its window_size 2");
    refuses(self, "torchvision", "swin_tiny_patch4_window7_224", SWIN "window_size=3", "(window_size 3) do not fill");
    refuses(self, "torchvision", "swin_tiny_patch4_window7_224", SWIN "window_size=7", "(window_size 7) do not fill");
    refuses(self, "torchvision", "swin_tiny_patch4_window7_224", SWIN "window_size=4", "(window_size 4) do not fill");
    refuses(self, "torchvision", "swin_tiny_patch4_window7_224", SWIN "window_size=1", "(window_size 1) do not fill");
    refuses(self, "torchvision", RESNET, "torchvision's ResNet (ResNet) needs width=64");
    refuses(self, "torchvision", RESNET "width=64 in_chans=1", "needs in_chans=3");
    refuses(self, "torchvision", RESNET "width=64 stem_type=conv3 stem_pool=1", "needs stem_type=conv7");
    refuses(self, "torchvision", RESNET "width=64 num_classes=0",
            "torchvision's ResNet (ResNet) needs the tensor fc.weight");
}

#define DETECTOR                                                                                        \
    "img_size=64 layers=1,1,1,1 num_classes=5 task=detect head_channels=4 box_channels=6 proposals=20 " \
    "nms_thresh=0.4 "

EXPORT_TEST(detectors_that_torchvision_lacks_are_refused)
{
    refuses(self, "torchvision", "resnet18", DETECTOR "modules=se",
            "its tensor \"layer1.0.se.fc1.weight\" has no place");
    refuses(self, "torchvision", "resnet18", DETECTOR "roi_aligned=1 bn_eps=0",
            "cannot express its roi_aligned 1, bn_eps 0");
}

EXPORT_TEST(preprocessing_that_transformers_lacks_is_refused)
{
    network n = make_network(self, VIT);
    strcpy(n.identity.preprocess.crop_mode, "border");
    assert_fails(self->context, export(self, &n, "transformers", "out"), ATT_ERR_UNSUPPORTED,
                 "transformers' ViT cannot express how its images are prepared (8 x 8, crop_pct 0.9, crop_mode border, "
                 "bicubic); --crop-mode, --crop-pct and --interpolation of attscope convert change that");
    strcpy(n.identity.preprocess.crop_mode, "squash");
    n.identity.preprocess.crop_pct = 0.7; /* 11 pixels: a rest of 3 */
    assert_fails(self->context, export(self, &n, "transformers", "out"), ATT_ERR_UNSUPPORTED,
                 "leaves an odd rest of size");
    assert_int_equal(scratch_file_count(self), 0);
    free_network(&n);
}

/* CLIP's projection has no bias. */
EXPORT_TEST(values_that_the_class_lacks_are_refused)
{
    char path[4096];
    network n;
    float bias[4] = {0, 0, 0, 0};
    CHECK(self->context, open_network(self, golden_file("clip_projection", path), &n));
    bias[2] = 1e-30F;
    CHECK(self->context, att_weights_set(n.weights, -1, att_weights_find(n.weights, "head.bias"), bias, 4));
    assert_fails(self->context, export(self, &n, "transformers", "out"), ATT_ERR_UNSUPPORTED,
                 "transformers' CLIP cannot express the values of its tensor \"head.bias\"");
    assert_int_equal(scratch_file_count(self), 0);
    free_network(&n);
}

EXPORT_TEST(images_of_clip_and_siglip_are_square)
{
    static const char *const folders[] = {"clip_vision", "siglip_vision"};
    for (int i = 0; i < 2; i++) {
        char path[4096];
        network n;
        CHECK(self->context, open_network(self, golden_file(folders[i], path), &n));
        att_options_set_sides(&n.identity.options, "img_size", 4, 16);
        assert_fails(self->context, export(self, &n, "transformers", "out"), ATT_ERR_UNSUPPORTED,
                     "has square images and patches only");
        free_network(&n);
    }
}

EXPORT_TEST(minus_zero_stays)
{
    char path[4096];
    network n;
    float token[8] = {-0.0F, 0, -0.0F};
    CHECK(self->context, open_network(self, golden_file("dinov2_registers", path), &n));
    CHECK(self->context, att_weights_set(n.weights, -1, att_weights_find(n.weights, "cls_token"), token, 8));
    check_same(self, &n, "out");
    free_network(&n);
}

static att_status forbid(const void *user, att_context *context, const char *path)
{
    (void)user;
    return att_fail(context, ATT_ERR_IO, "%s is not to be written", path);
}

EXPORT_TEST(a_guard_and_a_dangling_link_are_respected)
{
    char path[512];
    network n = make_network(self, VIT);
    att_context_guard_writes(self->context, forbid, NULL);
    assert_fails(self->context, export(self, &n, "transformers", "out"), ATT_ERR_IO, "out is not to be written");
    att_context_guard_writes(self->context, NULL, NULL);
    assert_int_equal(scratch_file_count(self), 0);
    assert_int_equal(symlink("nowhere", scratch_path(self, "out", path)), 0);
    assert_fails(self->context, export(self, &n, "transformers", "out"), ATT_ERR_IO, "out exists and is no empty");
    assert_int_equal(unlink(path), 0);
    free_network(&n);
}

EXPORT_TEST(nothing_else_is_overwritten)
{
    char path[512], taken[64];
    network n = make_network(self, VIT);
    scratch_text(self, "out/notes", "mine");
    assert_fails(self->context, export(self, &n, "transformers", "out"), ATT_ERR_IO,
                 "out exists and is no empty folder; give the new folder another name");
    assert_text_file(scratch_path(self, "out/notes", path), "mine");
    assert_fails(self->context, export(self, &n, "transformers", "out/notes"), ATT_ERR_IO, "is no empty folder");
    assert_int_equal(scratch_file_count(self), 1);
    assert_int_equal(unlink(path), 0);
    CHECK(self->context, export(self, &n, "transformers", "out"));
    assert_fails(self->context, export(self, &n, "transformers", "missing"), ATT_OK, "");
    assert_fails(self->context, export(self, &n, "onnx", "other"), ATT_ERR_ARGUMENT,
                 "expected transformers or torchvision, got \"onnx\"");
    assert_int_equal(scratch_file_count(self), 2);
    /* Neither what a killed process left nor other files are in the way. */
    scratch_text(self, "again.tmp/config.json", "mine");
    scratch_text(self, "again.tmp/model.safetensors", "mine");
    snprintf(taken, sizeof taken, "again.tmp-%ld-0/notes", (long)getpid());
    scratch_text(self, taken, "mine");
    CHECK(self->context, export(self, &n, "transformers", "again/"));
    assert_text_file(scratch_path(self, "again.tmp/config.json", path), "mine");
    assert_text_file(scratch_path(self, "again.tmp/model.safetensors", path), "mine");
    assert_int_equal(scratch_file_count(self), 5);
    free_network(&n);
}

/* --- torchvision -------------------------------------------------------------------------------------------------- */

/* The metadata of the file says how images are prepared. */
static att_tensors *export_torchvision(scratch *self, const network *n)
{
    char path[512];
    att_tensors *file;
    network read;
    scratch_text(self, "out.safetensors", "old");
    CHECK(self->context, export(self, n, "torchvision", "out.safetensors"));
    assert_int_equal(scratch_file_count(self), 1);
    compare_network(self, n, "out.safetensors");
    CHECK(self->context, open_network(self, scratch_path(self, "out.safetensors", path), &read));
    assert_string_equal(read.identity.name, n->identity.name);
    assert_memory_equal(&read.identity.preprocess, &n->identity.preprocess, sizeof read.identity.preprocess);
    free_network(&read);
    CHECK(self->context, att_tensors_open(self->context, path, &file));
    return file;
}

static void assert_has(const att_tensors *file, const char *const *names)
{
    for (; *names; names++)
        if (att_tensors_find(file, *names) < 0)
            fail_msg("there is no tensor %s", *names);
}

/* The width tells the number of heads. */
EXPORT_TEST(torchvisions_vit_is_written)
{
    static const char *const names[] = {"class_token",
                                        "conv_proj.bias",
                                        "encoder.pos_embedding",
                                        "encoder.layers.encoder_layer_0.mlp.3.weight",
                                        "encoder.layers.encoder_layer_0.self_attention.in_proj_weight",
                                        "encoder.ln.weight",
                                        "heads.head.bias",
                                        NULL};
    network n = make_network(self, "vit_base_patch32_224", "img_size=64 depth=1 mlp_ratio=0.02 num_classes=3");
    strcpy(n.identity.preprocess.crop_mode, "border"); /* which the file does not tell */
    att_options_set(&n.identity.options, "norm_eps", 1e-6);
    att_tensors *file = export_torchvision(self, &n);
    assert_has(file, names);
    assert_int_equal(att_tensors_count(file), 20);
    att_tensors_close(&file);
    free_network(&n);
}

EXPORT_TEST(torchvisions_vit_has_square_images)
{
    network n = make_network(self, "vit_base_patch32_224", "img_size=64 depth=1 mlp_ratio=0.02 num_classes=3");
    att_options_set_sides(&n.identity.options, "img_size", 64, 96);
    assert_fails(self->context, export(self, &n, "torchvision", "out.safetensors"), ATT_ERR_UNSUPPORTED,
                 "torchvision's ViT (VisionTransformer) needs images and patches that are squares");
    free_network(&n);
}

#define TORCH_SWIN "patch_size=2 embed_dim=8 depths=1,1 stage_heads=1,2 num_classes=3 "

static att_tensors *export_swin(scratch *self, const char *name, const char *options, const char *table)
{
    static const char *const names[] = {
        "features.0.0.weight", "features.0.2.bias", "features.1.0.mlp.3.bias",    "features.2.norm.weight",
        "norm.weight",         "head.weight",       "features.3.0.attn.qkv.bias", NULL};
    network n = make_network(self, name, options);
    att_tensors *file = export_torchvision(self, &n);
    assert_has(file, names);
    assert_true(att_tensors_find(file, table) >= 0);
    free_network(&n);
    return file;
}

EXPORT_TEST(torchvisions_swin_has_its_numbers_of_shifts)
{
    enum { TOKENS = 49, SHIFTS = 169 }; /* of windows of 7 x 7 */
    static const char table[] = "features.3.0.attn.relative_position_index";
    int64_t found[TOKENS][TOKENS];
    att_tensors *file = export_swin(self, "swin_tiny_patch4_window7_224", TORCH_SWIN "img_size=28", table);
    CHECK(self->context,
          att_tensors_read(file, att_tensors_find(file, table), ATT_SAFETENSORS_I64, found, (int64_t)TOKENS * TOKENS));
    for (int q = 0; q < TOKENS; q++)
        for (int k = 0; k < TOKENS; k++)
            assert_int_equal(found[q][k] + found[k][q], SHIFTS - 1);
    assert_int_equal(found[0][TOKENS - 1], 0);
    assert_int_equal(found[0][0], SHIFTS / 2);
    assert_int_equal(found[0][1], SHIFTS / 2 - 1);
    assert_int_equal(found[0][7], SHIFTS / 2 - 13);
    att_tensors_close(&file);
}

EXPORT_TEST(torchvisions_swin_v2_has_its_scaled_shifts)
{
    enum { SIDE = 15 }; /* shifts along a window of 8 */
    static const char table[] = "features.1.0.attn.relative_coords_table", qkv[] = "features.1.0.attn.qkv.bias";
    float found[SIDE][SIDE][2], bias[24];
    att_tensors *file = export_swin(self, "swinv2_tiny_window8_256", TORCH_SWIN "img_size=32", table);
    CHECK(self->context,
          att_tensors_read_f32(file, att_tensors_find(file, table), &found[0][0][0], (int64_t)SIDE * SIDE * 2));
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            assert_true(found[y][x][0] == found[x][y][1] && found[y][x][0] == -found[SIDE - 1 - y][x][0]);
    assert_true(found[14][3][0] == (float)(log2(9) / 3) && found[8][3][0] == (float)(log2(1 + 8.0 / 7) / 3));
    CHECK(self->context, att_tensors_read_f32(file, att_tensors_find(file, qkv), bias, 24));
    for (int i = 8; i < 16; i++) /* keys have no bias */
        assert_true(bias[i] == 0);
    assert_true(bias[0] != 0 && bias[7] != 0 && bias[16] != 0 && bias[23] != 0);
    att_tensors_close(&file);
}

EXPORT_TEST(torchvisions_resnet_keeps_its_names)
{
    static const char *const names[] = {"conv1.weight", "layer2.0.downsample.1.running_var", "fc.bias", NULL};
    network n = make_network(self, "resnet18", "img_size=32 layers=1,1,1,1 num_classes=3");
    att_tensors *file = export_torchvision(self, &n);
    assert_has(file, names);
    assert_int_equal(att_tensors_count(file), att_weights_count(n.weights));
    att_tensors_close(&file);
    free_network(&n);
}

/* Few tensors of the first version are without the prefix "backbone.", which a reader therefore removes. */
EXPORT_TEST(torchvisions_detectors_are_written)
{
    static const struct {
        const char *options, *names[8];
    } cases[] = {
        {DETECTOR,
         {"body.conv1.weight", "body.layer2.0.downsample.1.running_var", "fpn.inner_blocks.3.0.bias",
          "rpn.head.conv.0.0.weight", "roi_heads.box_head.fc6.bias", "roi_heads.box_predictor.bbox_pred.bias", NULL}},
        {DETECTOR "head=rcnn_v2",
         {"backbone.fpn.layer_blocks.3.1.running_mean", "rpn.head.conv.1.0.weight", "rpn.head.cls_logits.bias",
          "roi_heads.box_head.0.0.weight", "roi_heads.box_head.5.bias", NULL}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        network n = make_network(self, "resnet18", cases[i].options);
        att_tensors *file = export_torchvision(self, &n);
        assert_has(file, cases[i].names);
        assert_int_equal(att_tensors_count(file), att_weights_count(n.weights));
        att_tensors_close(&file);
        free_network(&n);
    }
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void remove_out(scratch *self)
{
    static const char *const names[] = {"out/config.json", "out/preprocessor_config.json", "out/model.safetensors"};
    char path[512];
    for (int i = 0; i < 3; i++)
        assert_int_equal(unlink(scratch_path(self, names[i], path)), 0);
    assert_int_equal(rmdir(scratch_path(self, "out", path)), 0);
}

static att_status export_golden(scratch *self, const char *folder)
{
    char path[4096];
    network n;
    att_status status = open_network(self, golden_file(folder, path), &n);
    if (status == ATT_OK)
        status = export(self, &n, "transformers", "out");
    if (status == ATT_OK)
        remove_out(self);
    free_network(&n);
    assert_int_equal(scratch_file_count(self), 0);
    return status;
}

static att_status export_registers(scratch *self)
{
    return export_golden(self, "dinov2_registers_resized");
}

static att_status export_swin_v2(scratch *self)
{
    char path[512];
    network n = {.model = NULL};
    att_option_values options = att_options_none();
    char text[] = TORCH_SWIN "img_size=32";
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        take_option(word, &options);
    att_status status = att_model_create(self->context, "swinv2_tiny_window8_256", &options, ATT_F32, &n.model);
    if (status == ATT_OK)
        status = att_weights_create(att_model_graph(n.model), "cpu", &n.weights);
    if (status == ATT_OK) {
        n.identity = att_model_identity(n.model);
        status = export(self, &n, "torchvision", "out.safetensors");
    }
    free_network(&n);
    assert_int_equal(scratch_file_count(self), status == ATT_OK);
    if (status == ATT_OK)
        assert_int_equal(unlink(scratch_path(self, "out.safetensors", path)), 0);
    return status;
}

/* Each run writes files, so only one of 23 allocations fails. */
static void survives(scratch *self, att_status (*call)(scratch *self))
{
    lack of = lack_of_memory(self->context, &self->memory);
    of.step = 23;
    while (lack_again(&of))
        of.status = call(self);
}

EXPORT_TEST(failing_allocations_leave_nothing_behind)
{
    survives(self, export_registers);
    survives(self, export_swin_v2);
}

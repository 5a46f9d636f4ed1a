/* Tiny networks of the transformers library against its own answers (tools/goldens/layouts.py). */
#include <unistd.h>

#include <attscope/plan.h>

#include "context.h"
#include "networks/models/fixture.h"

SHARED_CONTEXT(threads, 1)

enum { SIDE = 8, LARGE_SIDE = 32 /* of ResNets */, MOST_OUTPUTS = 64 };

typedef struct row {
    const char *folder;     /* in tests/goldens/layouts */
    const char *network;    /* expected name */
    const char *options;    /* expected values, "key=value key=value" */
    const char *preprocess; /* expected: "height x width mean std crop_pct crop_mode interpolation"; NULL: anything */
} row;

#define SMALL "patch_size=2 embed_dim=8 depth=2 num_heads=2 mlp_ratio=2 "
#define VIT "vit_base_patch16_224", SMALL
#define DINO_V2 "vit_base_patch14_dinov2", SMALL
#define DINO_V3 "vit_base_patch16_dinov3_qkvb", SMALL
#define BEIT "beit_base_patch16_224", SMALL
#define STAGES "patch_size=2 embed_dim=8 depths=1,1 window_size=2 stage_heads=1,2 "
#define SWIN "swin_tiny_patch4_window7_224", STAGES
#define SWIN_V2 "swinv2_tiny_window8_256", STAGES
#define RESNET "resnet50", "layers=1,1,1,1 block=basic width=2 "
#define CLIP "vit_base_patch16_clip_quickgelu_224", SMALL "norm_eps=1e-05 act_layer=quick_gelu pre_norm=true "
#define SIGLIP "vit_base_patch16_siglip_224", SMALL "norm_eps=1e-06 act_layer=gelu_tanh class_token=false "
#define CLASSES "num_classes=3 "
#define BASE "num_classes=0 "
#define HALF "8 x 8 0.5 0.5 "
#define SQUASHED HALF "1 squash bilinear"

static const row rows[] = {
    {"vit", VIT CLASSES "norm_eps=1e-12 act_layer=gelu class_token=true reg_tokens=0", SQUASHED},
    {"vit_base", VIT BASE "norm_eps=1e-12 act_layer=gelu_tanh class_token=true", SQUASHED},
    {"vit_masked", VIT BASE "norm_eps=1e-12", SQUASHED},
    {"deit", VIT CLASSES "norm_eps=1e-12 distilled=false reg_tokens=1", NULL},
    {"deit_teacher", VIT CLASSES "norm_eps=1e-12 distilled=true reg_tokens=0", NULL},
    {"vit_mae", VIT BASE "norm_eps=1e-12 class_token=true", SQUASHED},
    {"vit_msn", VIT CLASSES "norm_eps=1e-06 class_token=true", SQUASHED},
    {"ijepa", VIT CLASSES "class_token=false global_pool=avg fc_norm=false", SQUASHED},
    {"ijepa_base", VIT BASE "class_token=false global_pool=avg fc_norm=false", SQUASHED},
    {"dinov2", DINO_V2 CLASSES "norm_eps=1e-06 global_pool=cls_avg reg_tokens=0 pos_embed_resize=bicubic_plain", NULL},
    {"dinov2_base", "vit_base_patch14_dinov2", BASE "global_pool=token mlp_layer=swiglu_packed act_layer=silu", NULL},
    {"dinov2_registers", DINO_V2 CLASSES "global_pool=cls_avg reg_tokens=4 embed_class=false", NULL},
    {"dinov2_resized", DINO_V2 BASE "reg_tokens=0 pos_embed_resize=bicubic_plain norm_eps=0.01", NULL},
    {"dinov2_registers_resized", DINO_V2 BASE "reg_tokens=2 embed_class=false pos_embed_resize=bicubic", NULL},
    {"dinov2_registers_none", DINO_V2 CLASSES "global_pool=cls_avg reg_tokens=0 embed_class=false", NULL},
    {"dinov3", DINO_V3 BASE "global_pool=token reg_tokens=2", NULL},
    {"dinov3_gated", DINO_V3 BASE "global_pool=token reg_tokens=2 mlp_layer=swiglu", NULL},
    {"dinov3_query_bias", DINO_V3 BASE "reg_tokens=0 attn_type=rope rope_temperature=10 norm_eps=0.01", NULL},
    {"dinov3_value_bias", DINO_V3 BASE "reg_tokens=0 attn_type=eva", NULL},
    {"beit", BEIT CLASSES "norm_eps=1e-12 global_pool=avg fc_norm=true shared_rel_pos=false", NULL},
    {"beit_masked", BEIT BASE "global_pool=token fc_norm=false shared_rel_pos=true pos_embed=learn", NULL},
    {"beit_class", BEIT CLASSES "global_pool=token fc_norm=false rel_pos_type=none pos_embed=learn init_values=0",
     NULL},
    {"beit_backbone", BEIT BASE "global_pool=token fc_norm=false rel_pos_type=none pos_embed=none", NULL},
    {"data2vec_base", BEIT BASE "global_pool=avg final_norm=false shared_rel_pos=true", NULL},
    {"data2vec", BEIT CLASSES "norm_eps=1e-12 global_pool=avg fc_norm=true", NULL},
    {"swin", SWIN CLASSES, NULL},
    {"swin_base", SWIN BASE, NULL},
    {"swin_masked", "swin_tiny_patch4_window7_224", BASE "depths=2,1 window_size=2 qkv_bias=false", NULL},
    {"swinv2", SWIN_V2 CLASSES "pretrained_window_sizes=3,4", NULL},
    {"resnet", RESNET CLASSES, NULL},
    {"resnet_bottleneck", "resnet50", CLASSES "layers=1,1,1,1 block=bottleneck width=1", NULL},
    {"resnet_early", "resnet50", CLASSES "layers=1,1,1,1 block=bottleneck stride_in_1x1=true", NULL},
    {"resnet_base", RESNET BASE, NULL},
    {"clip", CLIP "num_classes=4 global_pool=token", NULL},
    {"clip_classes", CLIP CLASSES "global_pool=avg final_norm=false", NULL},
    {"clip_vision", CLIP BASE "global_pool=token", NULL},
    {"clip_projection", CLIP "num_classes=4 global_pool=token", NULL},
    {"siglip", SIGLIP BASE "global_pool=map", HALF "1 squash bicubic"},
    {"siglip_classes", SIGLIP CLASSES "global_pool=avg", HALF "1 squash bicubic"},
    {"siglip_vision", SIGLIP BASE "global_pool=map", HALF "1 squash bicubic"},
    {"siglip2_vision", SIGLIP BASE "global_pool=map", NULL},
    {"siglip2_classes", SIGLIP CLASSES "global_pool=avg", NULL},
    {"timm_wrapper", "vit_tiny_patch16_224", SMALL CLASSES "reg_tokens=1 norm_eps=1e-06", HALF "0.8 center bicubic"},
};

static void path_of(const row *r, const char *file, char path[4096])
{
    char name[256];
    snprintf(name, sizeof name, "layouts/%s/%s", r->folder, file);
    golden_path(name, path, 4096);
}

/* --- identity ----------------------------------------------------------------------------------------------------- */

static const att_option *option_of(const row *r, const char *key)
{
    const att_family_info family = att_model_family_of(r->network);
    for (int i = 0; i < family.option_count; i++)
        if (strcmp(family.options[i].key, key) == 0)
            return &family.options[i];
    fail_msg("%s: there is no option %s", r->folder, key);
    return NULL;
}

static void check_options(const row *r, const att_option_values *options)
{
    char text[512];
    snprintf(text, sizeof text, "%s", r->options);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '='), texts[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES] = {"nothing"};
        assert_non_null(value);
        *value++ = '\0';
        att_option_format(option_of(r, word), options, texts);
        if (strcmp(texts[0], value) != 0)
            fail_msg("%s: %s is %s instead of %s", r->folder, word, texts[0], value);
    }
}

static void check_preprocess(const row *r, const att_preprocess *p)
{
    char text[128];
    snprintf(text, sizeof text, "%d x %d %g %g %g %s %s", p->height, p->width, p->mean[0], p->std[0], p->crop_pct,
             p->crop_mode, p->interpolation);
    if (r->preprocess && strcmp(text, r->preprocess) != 0)
        fail_msg("%s: images are prepared by \"%s\" instead of \"%s\"", r->folder, text, r->preprocess);
}

static att_model *identify(const row *r, const att_tensors *file)
{
    att_identity identity;
    att_model *model;
    must(att_model_identify(context, file, NULL, NULL, NULL, &identity));
    assert_string_equal(identity.name, r->network);
    check_preprocess(r, &identity.preprocess);
    att_options_set(&identity.options, "img_size", strcmp(r->network, "resnet50") == 0 ? LARGE_SIDE : SIDE);
    must(att_model_create(context, identity.name, &identity.options, ATT_F32, &model));
    check_options(r, att_model_options(model));
    return model;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* Relative to the largest output; measured: 3.8e-7. */
static const double TOLERANCE = 1e-5;

static void run(const att_model *model, att_weights *weights, const char *output, float *values, int count)
{
    const int side = att_model_preprocess(model).height;
    float image[LARGE_SIDE * LARGE_SIDE * 3];
    att_plan_options options = att_plan_options_defaults();
    att_plan *plan;
    att_session *session;
    for (uint32_t i = 0; i < (uint32_t)(side * side * 3); i++)
        image[i] = (float)(4 * formula("image", i));
    must(att_plan_compile(att_model_graph(model), &options, &plan));
    must(att_session_create(plan, weights, 1, &session));
    must(att_session_bind(session, "image", image));
    must(att_session_run(session, 1));
    const att_graph *graph = att_model_graph(model);
    assert_int_equal(att_shape_count(att_value_shape(graph, att_graph_find_output(graph, output))), count);
    must(att_session_output(session, output, 0, 1, values));
    att_session_destroy(&session);
    att_plan_destroy(&plan);
}

static int read_expected(const row *r, double expected[MOST_OUTPUTS])
{
    char path[4096];
    int count = 0;
    path_of(r, "expected.txt", path);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s cannot be opened", path);
    while (count < MOST_OUTPUTS && fscanf(file, "%lf", &expected[count]) == 1)
        count++;
    fclose(file);
    return count;
}

static double compare(const row *r, const att_model *model, att_weights *weights)
{
    double expected[MOST_OUTPUTS], largest = 0, worst = 0;
    float values[MOST_OUTPUTS];
    const int count = read_expected(r, expected);
    run(model, weights, att_model_classes(model) ? "logits" : "features", values, count);
    for (int i = 0; i < count; i++)
        largest = fmax(largest, fabs(expected[i]));
    for (int i = 0; i < count; i++) {
        const double error = fabs(values[i] - expected[i]) / largest;
        if (!(error <= TOLERANCE))
            fail_msg("%s: output %d is %.7g instead of %.7g", r->folder, i, values[i], expected[i]);
        worst = fmax(worst, error);
    }
    return worst;
}

static double compare_file(const row *r, const char *path)
{
    att_tensors *file;
    att_weights *weights;
    must(att_model_open_file(context, path, &file));
    att_model *model = identify(r, file);
    must(att_weights_create(att_model_graph(model), "cpu", &weights));
    must(att_model_load(model, file, weights));
    const double error = compare(r, model, weights);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    att_tensors_close(&file);
    return error;
}

TEST(networks_of_transformers_give_its_answers)
{
    const int count = sizeof rows / sizeof *rows;
    double worst = 0;
    for (const row *r = rows; r < rows + count; r++) {
        char path[4096];
        path_of(r, "model.safetensors", path);
        if (access(path, F_OK) != 0)
            path_of(r, "model.safetensors.index.json", path);
        worst = fmax(worst, compare_file(r, path));
    }
    print_message("%d networks, relative errors up to %.2g\n", count, worst);
}

/* Those that layouts.py writes, too. */
TEST(tensors_may_have_the_names_that_they_have_in_memory)
{
    enum { FILES = 8 };
    int files = 0;
    for (const row *r = rows; r < rows + sizeof rows / sizeof *rows; r++) {
        char path[4096];
        path_of(r, "state_dict.safetensors", path);
        if (access(path, F_OK) != 0)
            continue;
        compare_file(r, path);
        files++;
    }
    assert_int_equal(files, FILES);
}

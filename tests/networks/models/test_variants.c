/* Every network of attscope that timm has, against timm: tensor names and shapes, weight decay, classes and
 * preprocessing. */
#include <inttypes.h>

#include <attscope/plan.h>

#include "context.h"
#include "engine/graph/graph.h"
#include "engine/ops/attention.h"
#include "engine/ops/drop.h"
#include "networks/models/family.h"
#include "networks/models/fixture.h"
#include "networks/models/loss.h"

SHARED_CONTEXT(threads, 0)

static uint64_t fnv(const char *text)
{
    uint64_t value = 0xcbf29ce484222325u;
    for (; *text; text++)
        value = (value ^ (unsigned char)*text) * 0x100000001b3u;
    return value;
}

typedef struct line {
    char name[64], interpolation[16], crop_mode[16];
    int64_t parameters, decayed;
    uint64_t hash;
    int classes, img_size;
    double mean[3], std[3], crop_pct;
} line;

static bool read_line(FILE *file, line *l)
{
    return fscanf(file, "%63s %" SCNd64 " %" SCNx64 " %" SCNd64 " %d %d %lf %lf %lf %lf %lf %lf %lf %15s %15s", l->name,
                  &l->parameters, &l->hash, &l->decayed, &l->classes, &l->img_size, &l->mean[0], &l->mean[1],
                  &l->mean[2], &l->std[0], &l->std[1], &l->std[2], &l->crop_pct, l->interpolation, l->crop_mode) == 15;
}

static void check_graph(const att_graph *graph, const line *l)
{
    uint64_t hash = 0;
    int64_t decayed = 0;
    for (int i = 0; i < att_graph_parameter_count(graph); i++) {
        att_parameter_info parameter = att_graph_parameter_at(graph, i);
        char shape[96], text[256];
        snprintf(text, sizeof text, "%s%s", parameter.name, att_shape_format(parameter.shape, shape, sizeof shape));
        hash += fnv(text);
        decayed += parameter.decay ? att_shape_count(parameter.shape) : 0;
    }
    assert_int_equal(att_graph_parameter_elements(graph), l->parameters);
    assert_true(hash == l->hash);
    assert_int_equal(decayed, l->decayed);
}

static void check_variant(const line *l)
{
    att_model *model;
    must(att_model_create(context, l->name, NULL, ATT_F32, &model));
    check_graph(att_model_graph(model), l);
    att_preprocess look = att_model_preprocess(model);
    assert_int_equal(att_model_classes(model), l->classes);
    assert_int_equal(look.height, l->img_size);
    assert_int_equal(look.in_chans, 3);
    assert_memory_equal(look.mean, l->mean, sizeof look.mean);
    assert_memory_equal(look.std, l->std, sizeof look.std);
    assert_true(look.crop_pct == l->crop_pct);
    assert_string_equal(look.interpolation, l->interpolation);
    assert_string_equal(look.crop_mode, l->crop_mode);
    att_model_destroy(&model);
}

static const struct {
    const char *name;
    int64_t parameters;
} cifar[] = {
    {"resnet20", 269722},
    {"resnet32", 464154},
    {"resnet44", 658586},
    {"resnet56", 853018},
    {"resnet110", 1727962},
    {"resnet29", 313114},
    {"resnet164", 1704154},
    {"preresnet29", 312218},
    {"preresnet164", 1703258},
    {"preresnet18", 11171146},
    {"preresnet34", 21279306},
    {"preresnet50", 23509066},
    {"preresnet101", 42501194},
    {"preresnet152", 58144842},
    {"wide_resnet16_8", 10961370},
    {"wide_resnet28_10", 36479194},
    {"wide_resnet40_2", 2243546},
    {"attention_cnn_isotropic", 12086844},
    {"attention_cnn_isotropic_many", 18806970},
    {"attention_cnn_quadratic", 12087006},
    {"attention_cnn_learned", 12278682},
    {"attention_cnn_content", 29484282},
};
enum { CIFAR_COUNT = sizeof cifar / sizeof *cifar };

/* An option given by its alias also takes precedence over the variant's value. */
TEST(aliases_are_taken)
{
    att_model *model;
    att_option_values options = att_options_none();
    att_options_set_text(&options, "gp", "avg");
    att_options_set(&options, "depth", 1);
    assert_int_equal(att_model_create(context, "vit_tiny_patch16_224", &options, ATT_F32, &model), ATT_OK);
    assert_string_equal(att_options_text(att_model_options(model), "global_pool"), "avg");
    assert_null(att_options_find(att_model_options(model), "gp"));
    att_model_destroy(&model);
}

static void read_settings(const att_family *family, const char *settings)
{
    att_config config = att_config_none();
    if (settings)
        must(att_config_read_settings(context, family->options, settings, strlen(settings), &config));
}

TEST(every_setting_is_known)
{
    for (int f = 0; f < att_family_count(); f++) {
        const att_family *family = att_family_at(f);
        const att_variants *variants = family->variants;
        read_settings(family, variants->shared);
        read_settings(family, variants->images_by.settings);
        for (int i = 0; i < variants->count; i++)
            read_settings(family, variants->rows[i].settings);
    }
    att_config config = att_config_none();
    const att_option_table *options = att_family_at(0)->options;
    assert_int_equal(att_config_read_settings(context, options, "depht=3", 7, &config), ATT_ERR_INTERNAL);
    assert_int_equal(att_config_read_settings(context, options, "depth", 5, &config), ATT_ERR_INTERNAL);
}

/* timm has no networks for texts; test_bert.c compares them. */
static int networks_for_texts(void)
{
    int count = 0;
    for (int i = 0; i < att_model_count(); i++)
        count += strcmp(att_model_family_of(att_model_at(i).name).name, "bert") == 0;
    return count;
}

TEST(every_variant_is_timms)
{
    FILE *file = golden_open("models.txt");
    line l;
    int count = 0;
    while (read_line(file, &l)) {
        print_message("%s\n", l.name);
        check_variant(&l);
        count++;
    }
    assert_true(feof(file));
    fclose(file);
    assert_int_equal(count, att_model_count() - CIFAR_COUNT - networks_for_texts());
}

/* Networks that timm lacks. The numbers of parameters are those of the public programs, counted with PyTorch. */
TEST(networks_for_cifar_have_their_parameters)
{
    for (int i = 0; i < CIFAR_COUNT; i++) {
        att_model_info info = {.name = cifar[i].name};
        must(att_model_count_cost(context, &info));
        assert_int_equal(info.parameters, cifar[i].parameters);
    }
}

/* ptflops and fvcore count 1.25 to 1.26 GMACs for DeiT-Tiny at 224 pixels: all products, including those of attention.
 * */
TEST(work_is_counted)
{
    att_model_info info = {.name = "deit_tiny_patch16_224"};
    must(att_model_count_cost(context, &info));
    assert_int_equal(info.parameters, 5717416);
    assert_true(info.gmacs > 1.24 && info.gmacs < 1.27);
}

TEST(a_vit_of_any_size_is_built)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", 28), att_options_set(&options, "in_chans", 1),
        att_options_set(&options, "num_classes", 10), att_options_set(&options, "patch_size", 4);
    att_options_set(&options, "embed_dim", 64), att_options_set(&options, "depth", 4),
        att_options_set(&options, "num_heads", 4);
    att_options_set_text(&options, "modules", "cb_s");
    att_model *model;
    must(att_model_create(context, "vit_tiny_patch16_224", &options, ATT_F32, &model));
    /* embedding 64 (17 + 50), classes 650, last norm 128, and four blocks of 12 64^2 + 13 64, each with 64 for CB_S */
    assert_int_equal(att_graph_parameter_elements(att_model_graph(model)),
                     64 * (17 + 1 + 50) + 650 + 128 + 4 * (12 * 4096 + 13 * 64 + 64));
    assert_int_equal(att_model_preprocess(model).height, 28);
    assert_int_equal(att_model_preprocess(model).in_chans, 1);
    assert_int_equal(att_options_number(att_model_options(model), "qkv_bias", -1), 1);
    att_model_destroy(&model);
}

static int group_of(const att_model *model, att_purpose purpose)
{
    att_plan_options options = att_plan_options_defaults();
    options.purpose = purpose;
    att_plan *plan;
    must(att_plan_compile(att_model_graph(model), &options, &plan));
    int group = att_plan_describe(plan).group;
    att_plan_destroy(&plan);
    return group;
}

/* A group is the largest power of two of samples whose largest matrix product has at most 800 rows in training, 256 in
 * inference. A sample of DeiT-Tiny has 197 rows. A sample of ResNet-20 has 1024 rows in the first segment and 64 in the
 * last; in inference there is one segment. */
TEST(groups_follow_from_rows_and_purpose)
{
    static const struct {
        const char *name;
        int train, infer;
    } cases[] = {{"deit_tiny_patch16_224", 4, 1}, {"resnet20", 8, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_model *model;
        must(att_model_create(context, cases[i].name, NULL, ATT_F32, &model));
        loss_add(model, 0);
        assert_int_equal(group_of(model, ATT_TRAIN), cases[i].train);
        assert_int_equal(group_of(model, ATT_INFER), cases[i].infer);
        att_model_destroy(&model);
    }
}

static void starts_as(const att_graph *graph, const char *name, att_init_rule rule, double value)
{
    for (int i = 0; i < att_graph_parameter_count(graph); i++) {
        att_parameter_info parameter = att_graph_parameter_at(graph, i);
        if (strcmp(parameter.name, name) == 0) {
            assert_int_equal(parameter.init.rule, rule);
            assert_true(parameter.init.value == value);
            return;
        }
    }
    fail_msg("there is no %s", name);
}

TEST(parameters_start_as_timms)
{
    att_model *model;
    must(att_model_create(context, "deit3_small_patch16_224", NULL, ATT_F32, &model));
    const att_graph *graph = att_model_graph(model);
    starts_as(graph, "cls_token", ATT_INIT_NORMAL, 1e-6);
    starts_as(graph, "pos_embed", ATT_INIT_TRUNC_NORMAL, 0.02);
    starts_as(graph, "blocks.11.ls2.gamma", ATT_INIT_CONSTANT, 1e-6);
    starts_as(graph, "head.weight", ATT_INIT_TRUNC_NORMAL, 0.02);
    starts_as(graph, "head.bias", ATT_INIT_CONSTANT, 0);
    att_model_destroy(&model);
}

TEST(beit_starts_as_timms)
{
    att_model *model;
    must(att_model_create(context, "beit_base_patch16_224", NULL, ATT_F32, &model));
    const att_graph *graph = att_model_graph(model);
    starts_as(graph, "cls_token", ATT_INIT_TRUNC_NORMAL, 0.02);
    starts_as(graph, "blocks.1.attn.relative_position_bias_table", ATT_INIT_CONSTANT, 0);
    starts_as(graph, "blocks.1.attn.q_bias", ATT_INIT_CONSTANT, 0);
    starts_as(graph, "blocks.1.attn.qkv.weight", ATT_INIT_TRUNC_NORMAL, 0.02);
    starts_as(graph, "blocks.1.attn.proj.weight", ATT_INIT_TRUNC_NORMAL, 0.02 / 2);
    starts_as(graph, "blocks.7.mlp.fc1.weight", ATT_INIT_TRUNC_NORMAL, 0.02);
    starts_as(graph, "blocks.7.mlp.fc2.weight", ATT_INIT_TRUNC_NORMAL, 0.02 / 4);
    starts_as(graph, "blocks.7.gamma_2", ATT_INIT_CONSTANT, 0.1);
    starts_as(graph, "head.weight", ATT_INIT_TRUNC_NORMAL, 0.02 / 1000);
    att_model_destroy(&model);
}

/* Linear layers start as PyTorch's; weights of norms at the end of branches like LayerScale. */
TEST(relative_vits_start_as_timms)
{
    att_model *model;
    must(att_model_create(context, "vit_relpos_small_patch16_rpn_224", NULL, ATT_F32, &model));
    const att_graph *graph = att_model_graph(model);
    starts_as(graph, "blocks.3.attn.rel_pos.mlp.fc1.weight", ATT_INIT_UNIFORM, 1 / sqrt(2));
    starts_as(graph, "blocks.3.attn.rel_pos.mlp.fc2.bias", ATT_INIT_UNIFORM, 1 / sqrt(128));
    starts_as(graph, "blocks.3.attn.qkv.weight", ATT_INIT_UNIFORM, 1 / sqrt(384));
    starts_as(graph, "blocks.3.attn.proj.bias", ATT_INIT_UNIFORM, 1 / sqrt(384));
    starts_as(graph, "blocks.3.mlp.fc2.weight", ATT_INIT_UNIFORM, 1 / sqrt(1536));
    starts_as(graph, "blocks.3.norm1.weight", ATT_INIT_CONSTANT, 1e-6);
    starts_as(graph, "head.bias", ATT_INIT_UNIFORM, 1 / sqrt(384));
    att_model_destroy(&model);
}

/* A residual network for CIFAR with 20 layers and a module in its blocks. */
static att_model *small_residual(const char *name, int width, const char *attn)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "depth", 20), att_options_set(&options, "width", width),
        att_options_set(&options, "drop_path_rate", 0.5);
    att_options_set_text(&options, "modules", attn);
    att_model *model;
    must(att_model_create(context, name, &options, ATT_F32, &model));
    return model;
}

/* New layers are initialised as in PyTorch; gates of StepNet's iebn start at sigmoid(-1). */
TEST(modules_start_as_pytorchs)
{
    att_model *model = small_residual("resnet164", 16, "se");
    starts_as(att_model_graph(model), "layer1.0.se.fc1.weight", ATT_INIT_UNIFORM, 1 / sqrt(64));
    starts_as(att_model_graph(model), "layer1.0.se.fc1.bias", ATT_INIT_UNIFORM, 1 / sqrt(64));
    starts_as(att_model_graph(model), "layer3.1.se.fc2.weight", ATT_INIT_UNIFORM, 1 / sqrt(16));
    att_model_destroy(&model);
    model = small_residual("resnet164", 16, "eca");
    starts_as(att_model_graph(model), "layer1.0.se.conv.weight", ATT_INIT_UNIFORM, 1 / sqrt(3));
    att_model_destroy(&model);
    static const char *const adaptors[] = {"affine", "iebn"};
    for (int i = 0; i < 2; i++) {
        char attn[32], name[64];
        snprintf(attn, sizeof attn, "step:adaptor=%s", adaptors[i]);
        model = small_residual("resnet164", 16, attn);
        snprintf(name, sizeof name, "layer2.1.step.%s.bias", adaptors[i]);
        starts_as(att_model_graph(model), name, ATT_INIT_CONSTANT, -1);
        snprintf(name, sizeof name, "layer2.1.step.%s.x_t.weight", adaptors[i]);
        starts_as(att_model_graph(model), name, ATT_INIT_CONSTANT, 0);
        att_model_destroy(&model);
    }
}

/* Rounded down, as in the public programs for CIFAR: 24 / 16, 40 / 16 and 56 / 16. With a divisor, rounded to the
 * nearest multiple as by timm's make_divisible(): 192 / 16 to a multiple of eight. */
TEST(hidden_widths_are_rounded)
{
    static const struct {
        const char *attn;
        int width, hidden;
    } cases[] = {{"se", 6, 1}, {"se", 10, 2}, {"se", 14, 3}, {"se:divisor=8", 48, 16}, {"se:ratio=1024", 4, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_model *model = small_residual("resnet164", cases[i].width, cases[i].attn);
        const att_graph *graph = att_model_graph(model);
        int found = 0;
        for (int j = 0; j < graph->parameters.count; j++)
            if (strcmp(graph->parameters.items[j].name, "layer1.0.se.fc1.weight") == 0) {
                assert_int_equal(graph->parameters.items[j].shape.dims[0], cases[i].hidden);
                found++;
            }
        assert_int_equal(found, 1);
        att_model_destroy(&model);
    }
}

static void check_colours(const char *name, const double *mean, const double *std)
{
    att_model *model;
    must(att_model_create(context, name, NULL, ATT_F32, &model));
    att_preprocess preprocess = att_model_preprocess(model);
    assert_memory_equal(preprocess.mean, mean, sizeof preprocess.mean);
    assert_memory_equal(preprocess.std, std, sizeof preprocess.std);
    att_model_destroy(&model);
}

/* Mean and deviation of the programs that published the weights: ImageNet's for networks with option A, CIFAR's for
 * others. */
TEST(networks_for_cifar_have_the_mean_and_std_of_their_programs)
{
    static const double imagenet[2][3] = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
    static const double cifar10[2][3] = {{0.4914, 0.4822, 0.4465}, {0.2023, 0.1994, 0.2010}};
    static const char *const own[] = {"resnet29", "resnet164", "preresnet29", "preresnet164"};
    check_colours("resnet20", imagenet[0], imagenet[1]);
    check_colours("resnet110", imagenet[0], imagenet[1]);
    for (int i = 0; i < 4; i++)
        check_colours(own[i], cifar10[0], cifar10[1]);
}

/* In residual networks as in timm: the rate rises from 0 in the first block to the full rate in the last, over all
 * stages. */
TEST(drop_path_rises_in_residual_networks)
{
    static const char *const scopes[] = {"layer1.1.drop_path", "layer2.0.drop_path", "layer2.1.drop_path",
                                         "layer3.0.drop_path", "layer3.1.drop_path"};
    att_model *model = small_residual("resnet164", 16, "none");
    const att_graph *graph = att_model_graph(model);
    int paths = 0;
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        if (strcmp(node->op->name, "drop_path") != 0)
            continue;
        assert_in_range(paths, 0, 4);
        assert_string_equal(node->scope, scopes[paths++]);
        assert_true(fabs(ATT_ATTRS(node, drop)->rate - 0.1 * paths) < 1e-12);
    }
    assert_int_equal(paths, 5);
    att_model_destroy(&model);
}

/* Every attention of a block has the rate, and draws of its own. */
TEST(maps_of_all_blocks_are_dropped)
{
    static const char *const names[] = {"vit_tiny_patch16_224",    "vit_base_patch16_xp_224",
                                        "eva02_tiny_patch14_224",  "swin_tiny_patch4_window7_224",
                                        "attention_cnn_isotropic", "attention_cnn_content"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        att_option_values options = att_options_none();
        att_options_set(&options, "attn_drop_rate", 0.3);
        att_model *model;
        must(att_model_create(context, names[n], &options, ATT_F32, &model));
        const att_graph *graph = att_model_graph(model);
        uint64_t last = 0;
        int attentions = 0;
        for (int i = 0; i < graph->nodes.count; i++) {
            const att_node *node = &graph->nodes.items[i];
            if (!att_is_attention(node))
                continue;
            assert_true(ATT_ATTRS(node, attention)->drop_rate == 0.3);
            assert_true(ATT_ATTRS(node, attention)->drop_stream != last);
            last = ATT_ATTRS(node, attention)->drop_stream;
            attentions++;
        }
        assert_true(attentions >= 6);
        att_model_destroy(&model);
    }
}

/* Rates rise linearly from 0 in the first block to the last block, equal in both branches. */
TEST(drop_path_rises_with_depth)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "depth", 5), att_options_set(&options, "drop_path_rate", 0.4),
        att_options_set(&options, "drop_rate", 0.25);
    att_model *model;
    must(att_model_create(context, "vit_tiny_patch16_224", &options, ATT_F32, &model));
    const att_graph *graph = att_model_graph(model);
    int paths = 0, dropouts = 0;
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        char scope[64];
        if (strcmp(node->op->name, "drop_path") == 0) {
            int block = 1 + paths / 2;
            snprintf(scope, sizeof scope, "blocks.%d.drop_path%d", block, 1 + paths % 2);
            assert_string_equal(node->scope, scope);
            assert_true(fabs(ATT_ATTRS(node, drop)->rate - 0.1 * block) < 1e-12);
            paths++;
        }
        if (strcmp(node->op->name, "dropout") == 0) {
            assert_true(ATT_ATTRS(node, drop)->rate == 0.25);
            dropouts++;
        }
    }
    assert_int_equal(paths, 8);
    assert_int_equal(dropouts, 1);
    att_model_destroy(&model);
}

/* Hyeon-Woo et al., ICCV 2023: 12 x 384 = 4,608 parameters for ViT-S. */
TEST(cb_s_costs_what_the_paper_says)
{
    att_option_values options = att_options_none();
    att_options_set_text(&options, "modules", "cb_s");
    att_model *with, *without;
    must(att_model_create(context, "vit_small_patch16_224", &options, ATT_F32, &with));
    att_options_set_text(&options, "modules", "cb");
    must(att_model_create(context, "vit_small_patch16_224", &options, ATT_F32, &without));
    assert_int_equal(att_graph_parameter_elements(att_model_graph(with)) -
                         att_graph_parameter_elements(att_model_graph(without)),
                     4608);
    att_model_destroy(&with);
    att_model_destroy(&without);
}

static void refuses(const char *name, const att_option_values *options, att_status status, const char *words)
{
    att_model *model = NULL;
    assert_int_equal(att_model_create(context, name, options, ATT_F32, &model), status);
    assert_null(model);
    assert_message(context, words);
}

TEST(what_cannot_be_built_is_said)
{
    const char *tiny = "vit_tiny_patch16_224";
    att_option_values o = att_options_none();
    refuses("vit_tiny_patch16_225", NULL, ATT_ERR_NOT_FOUND, "vit_tiny_patch16_224");
    refuses("resnet51", NULL, ATT_ERR_NOT_FOUND, "there is no model \"resnet51\"");
    att_options_set(&o, "num_heads", 5);
    refuses(tiny, &o, ATT_ERR_ARGUMENT, "embed_dim 192 is not a multiple of num_heads 5");
    o = att_options_none(), att_options_set(&o, "img_size", 15);
    refuses(tiny, &o, ATT_ERR_ARGUMENT, "img_size 15 is smaller than patch_size 16");
    o = att_options_none(), att_options_set(&o, "class_token", 0);
    refuses(tiny, &o, ATT_ERR_ARGUMENT, "avg");
    o = att_options_none(), att_options_set_text(&o, "global_pool", "prr");
    refuses(tiny, &o, ATT_ERR_ARGUMENT, "prr");
    o = att_options_none(), att_options_set_text(&o, "modules", "cbs");
    refuses(tiny, &o, ATT_ERR_NOT_FOUND, "cb");
    o = att_options_none(), att_options_set(&o, "drop_path_rate", 1);
    refuses(tiny, &o, ATT_ERR_ARGUMENT, "drop_path_rate");
    o = att_options_none(), att_options_set(&o, "depth", -3);
    refuses(tiny, &o, ATT_ERR_ARGUMENT, "depth");
}

/* Flags and files have one option for each key, for all families. */
TEST(families_agree_on_options)
{
    int count = 0;
    for (int f = 0; f < att_model_family_count(); f++) {
        att_family_info family = att_model_family_at(f);
        assert_true(family.option_count <= ATT_MOST_OPTIONS);
        for (int i = 0; i < family.option_count; i++) {
            const att_option *option = &family.options[i], *first = att_family_option(option->key);
            assert_true(strlen(option->key) < ATT_OPTION_KEY);
            assert_true(option->size <= ATT_OPTION_TEXT_BYTES);
            assert_true(option->internal || option->help);
            assert_int_equal(option->kind, first->kind);
            assert_true(option->low == first->low && option->high == first->high);
            count += option == first;
        }
    }
    assert_true(count > 20 && count <= 2 * ATT_MOST_OPTIONS); /* the rows that flags have room for */
}

/* A word that is longer than its member is refused, also without a context, as where the table of variants is read. */
TEST(words_longer_than_their_member_are_refused)
{
    att_option_values options = att_options_none();
    const att_option *block = att_family_option("block");
    char word[64] = "";
    memset(word, 'b', block->size);
    att_options_set_text(&options, "block", word);
    for (int f = 0; f < att_family_count(); f++) {
        att_settings_buffer settings;
        const att_family *family = att_family_at(f);
        if (att_option_find(family->options, "block"))
            assert_int_equal(att_options_read(NULL, family->options, &options, &settings), ATT_ERR_ARGUMENT);
    }
}

/* Every variant has the values of its row: none is too long for its member. */
TEST(every_variant_can_be_read)
{
    for (int i = 0; i < att_variant_count(); i++) {
        const att_variant variant = att_variant_at(i);
        att_option_values own;
        att_preprocess preprocess;
        att_variant_defaults(&variant, NULL, &own, &preprocess);
        if (!att_options_find(&own, "num_classes"))
            fail_msg("the settings of %s cannot be read", att_model_at(i).name);
    }
}

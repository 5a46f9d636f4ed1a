/* config.json for timm: tools/versus_timm --folders compares what timm makes of it with attscope's networks. */
#include <unistd.h>

#include "base/io/json.h"
#include "networks/models/checkpoints.h"
#include "networks/models/family.h"
#include "networks/models/timm.h"
#include "sanitized.h"

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* Takes "depth=2 img_size=32,48 depths=1;1", with ';' for the commas of texts. */
static att_option_values options_of(const char *network, const char *text)
{
    char words[512];
    const att_family_info family = att_model_family_of(network);
    att_option_values options = att_options_none();
    snprintf(words, sizeof words, "%s", text);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '='), *second = strchr(word, ',');
        const att_option *option = NULL;
        *value++ = '\0';
        for (char *at = value; (at = strchr(at, ';'));)
            *at = ',';
        if (second && *second == ',')
            *second++ = '\0';
        for (int i = 0; i < family.option_count; i++)
            option = strcmp(family.options[i].key, word) == 0 ? &family.options[i] : option;
        if (!option || !att_option_store(option, (const char *const[]){value, second}, second ? 2 : 1, &options))
            fail_msg("%s: %s=%s is no option", network, word, value);
    }
    return options;
}

static att_status write_config(const place *p, const att_model *model, const att_identity *identity, json_t **config)
{
    att_json_writer *writer;
    const char *text;
    size_t length;
    CHECK(p->context, att_json_writer_create(p->context, true, &writer));
    att_json_begin_object(writer);
    att_status status = att_timm_config_write(model, identity, writer);
    if (status == ATT_OK) {
        att_json_end_object(writer);
        CHECK(p->context, att_json_writer_finish(writer, &text, &length));
        write_beside(p, "config.json", text);
        *config = json_loads(text, 0, NULL);
        assert_non_null(*config);
    }
    att_json_writer_destroy(&writer);
    return status;
}

/* The config of the network, also written beside the place's weights. The caller owns it. */
static json_t *config_of(const place *p, const char *network, const char *options)
{
    json_t *config = NULL;
    const att_option_values values = options_of(network, options);
    att_model *model = make(p, network, &values);
    const att_identity identity = att_model_identity(model);
    CHECK(p->context, write_config(p, model, &identity, &config));
    att_model_destroy(&model);
    return config;
}

static void assert_json(const char *what, const json_t *value, const char *expected)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    if (!text || strcmp(text, expected) != 0)
        fail_msg("%s: %s instead of %s", what, text ? text : "nothing", expected);
    free(text);
}

/* --- arguments ---------------------------------------------------------------------------------------------------- */

typedef struct row {
    const char *network, *options, *arguments;
    const char *lost; /* options that arguments and tensors do not tell; NULL: they do not tell that the network fits */
} row;

#define TINY "img_size=32 num_classes=3 depth=1 "
#define STAGES "img_size=64 num_classes=3 depths=1;1;1;1 "
#define LAYERS "num_classes=3 layers=1;1;1;1 "
#define TINY_SAID "\"img_size\":32,\"depth\":1"
#define STAGES_SAID "\"img_size\":64,\"depths\":[1,1,1,1]"

static const row rows[] = {
    {"vit_tiny_patch16_224", TINY, "{" TINY_SAID "}", ""},
    {"vit_tiny_patch16_224", "img_size=32 depth=1 num_classes=0", "{" TINY_SAID "}", ""},
    {"vit_tiny_patch16_224", TINY "in_chans=1 patch_size=8,16 embed_dim=64 num_heads=2 mlp_ratio=2.5 qkv_bias=false",
     "{\"img_size\":32,\"in_chans\":1,\"patch_size\":[8,16],\"embed_dim\":64,\"depth\":1,\"num_heads\":2,"
     "\"mlp_ratio\":2.5,\"qkv_bias\":false}",
     ""},
    {"vit_tiny_patch16_224", "img_size=32,48 depth=1 class_token=false global_pool=avg",
     "{\"img_size\":[32,48],\"depth\":1,\"global_pool\":\"avg\",\"fc_norm\":true,\"class_token\":false}", ""},
    {"vit_tiny_patch16_224",
     TINY "reg_tokens=2 embed_class=false init_values=0.1 pool_include_prefix=true "
          "global_pool=map",
     "{" TINY_SAID ",\"global_pool\":\"map\",\"pool_include_prefix\":true,\"reg_tokens\":2,\"no_embed_class\":true,"
     "\"init_values\":0.1}",
     ""},
    {"vit_tiny_patch16_224", TINY "norm_layer=rmsnorm act_layer=gelu_tanh attn_layer=diff qk_norm=true",
     "{" TINY_SAID ",\"norm_layer\":\"rmsnorm\",\"qk_norm\":true,\"act_layer\":\"gelu_tanh\",\"attn_layer\":\"diff\"}",
     ""},
    {"vit_tiny_patch16_224",
     TINY "pos_embed=none pre_norm=true final_norm=false proj_bias=false "
          "scale_attn_norm=true scale_mlp_norm=true",
     "{" TINY_SAID ",\"final_norm\":false,\"pos_embed\":\"none\",\"pre_norm\":true,"
     "\"proj_bias\":false,\"scale_attn_norm\":true,\"scale_mlp_norm\":true}",
     ""},
    {"vit_base_patch16_gap_224", TINY "reg_tokens=2 embed_class=false",
     "{" TINY_SAID ",\"reg_tokens\":2,\"no_embed_class\":true}", ""},
    {"vit_base_patch16_gap_224", TINY "reg_tokens=2", "{" TINY_SAID ",\"reg_tokens\":2}", ""},
    {"vit_base_patch16_rope_224", TINY "pos_embed=learn embed_class=false",
     "{" TINY_SAID ",\"use_abs_pos_emb\":true,\"no_embed_class\":true}", ""},
    {"vit_base_patch16_clip_224", TINY "norm_eps=1e-6", "{" TINY_SAID ",\"norm_layer\":\"layernorm\"}", ""},
    {"vit_tiny_patch16_224", TINY "attn_drop_rate=0.1 pos_embed_resize=bilinear drop_rate=0.1", "{" TINY_SAID "}",
     "attn_drop_rate pos_embed_resize"},
    {"deit_tiny_distilled_patch16_224", TINY, "{" TINY_SAID "}", ""},
    {"deit3_small_patch16_224", TINY "init_values=0", "{" TINY_SAID ",\"init_values\":0}", ""},
    {"beit_base_patch16_224", TINY "global_pool=token pos_embed=learn shared_rel_pos=true scale_mlp_norm=true",
     "{" TINY_SAID ",\"global_pool\":\"token\",\"use_fc_norm\":false,\"use_abs_pos_emb\":true,"
     "\"use_rel_pos_bias\":false,\"use_shared_rel_pos_bias\":true,\"scale_mlp\":true}",
     ""},
    {"beit_base_patch16_224", TINY "rel_pos_type=none pos_embed=learn",
     "{" TINY_SAID ",\"use_abs_pos_emb\":true,\"use_rel_pos_bias\":false,\"use_shared_rel_pos_bias\":false}", ""},
    {"vit_relpos_small_patch16_224", TINY "rel_pos_type=bias class_token=true global_pool=token",
     "{" TINY_SAID ",\"global_pool\":\"token\",\"fc_norm\":false,\"class_token\":true,\"rel_pos_type\":\"bias\","
     "\"rel_pos_dim\":0}",
     ""},
    {"eva02_tiny_patch14_224", "img_size=28 depth=1 num_classes=3 global_pool=token rope_temperature=50 reg_tokens=1",
     "{\"img_size\":28,\"depth\":1,\"global_pool\":\"token\",\"use_fc_norm\":false,\"num_reg_tokens\":1,"
     "\"rope_temperature\":50}",
     ""},
    {"vit_base_patch16_rope_224", TINY "rope_type=none pos_embed=learn scale_attn_norm=true",
     "{" TINY_SAID ",\"use_abs_pos_emb\":true,\"scale_attn_inner\":true,\"use_rot_pos_emb\":false}", ""},
    {"swin_tiny_patch4_window7_224", STAGES "stage_heads=2;4;8;16 window_size=4 qkv_bias=false",
     "{" STAGES_SAID ",\"num_heads\":[2,4,8,16],\"window_size\":4,\"qkv_bias\":false}", ""},
    {"swin_tiny_patch4_window7_224", STAGES "window_size=2;4;2;2 embed_dim=48 always_partition=true",
     "{\"img_size\":64,\"embed_dim\":48,\"depths\":[1,1,1,1],\"window_size\":[2,4,2,2],\"always_partition\":true}", ""},
    {"swinv2_tiny_window8_256", STAGES "window_size=4 pretrained_window_sizes=6;6;6;3",
     "{" STAGES_SAID ",\"window_size\":4,\"pretrained_window_sizes\":[6,6,6,3]}", ""},
    {"swinv2_cr_tiny_224", STAGES "window_size=1/4 extra_norm_stage=true",
     "{" STAGES_SAID ",\"window_ratio\":4,\"extra_norm_stage\":true}", ""},
    {"swinv2_cr_tiny_224", STAGES "window_size=4;8 extra_norm_period=1",
     "{" STAGES_SAID ",\"window_size\":[4,8],\"extra_norm_period\":1}", "extra_norm_stage"},
    {"mixer_s32_224", "img_size=64 token_mlp_ratio=1", "{\"img_size\":64,\"mlp_ratio\":[1,4]}", ""},
    {"mixer_s32_224", "img_size=64 token_mlp_ratio=1 mlp_ratio=2", "{\"img_size\":64,\"mlp_ratio\":[1,2]}", ""},
    {"resnet18", LAYERS "in_chans=1 img_size=64", "{\"in_chans\":1,\"layers\":[1,1,1,1]}", ""},
    {"resnet18", LAYERS "modules=se:divisor=8", "{\"block_args\":{\"attn_layer\":\"se\"},\"layers\":[1,1,1,1]}", ""},
    {"resnet50", LAYERS "modules=se", "{\"block_args\":{\"attn_layer\":\"se\"},\"layers\":[1,1,1,1]}", ""},
    {"resnet18", LAYERS "output_stride=16", "{\"layers\":[1,1,1,1],\"output_stride\":16}", ""},
    {"resnet50", LAYERS "stem_type=deep shortcut=avg_conv",
     "{\"stem_type\":\"deep\",\"stem_width\":32,\"avg_down\":true,"
     "\"layers\":[1,1,1,1]}",
     ""},
    {"seresnet50", LAYERS "modules=eca cardinality=4 base_width=8",
     "{\"block_args\":{\"attn_layer\":\"eca\"},\"layers\":[1,1,1,1],\"cardinality\":4,\"base_width\":8}", ""},
    {"seresnet50t", LAYERS "modules=none stem_type=conv7",
     "{\"block_args\":{},\"stem_type\":\"\",\"stem_width\":64,\"layers\":[1,1,1,1]}", NULL},
};

PLACE_TEST(options_become_arguments_of_timm)
{
    for (const row *r = rows; r < rows + sizeof rows / sizeof *rows; r++) {
        json_t *config = config_of(p, r->network, r->options);
        assert_json(r->network, json_object_get(config, "model_args"), r->arguments);
        json_decref(config);
    }
}

/* Compares the network that is found with the row's. lost: options that may differ. */
static void find_again(const place *p, const row *r, const char *lost)
{
    const att_option_values values = options_of(r->network, r->options);
    att_model *model = make(p, r->network, &values);
    const att_identity expected = att_model_identity(model);
    const att_option_table *table = att_model_family(model)->options;
    att_identity found;
    if (identify(p, NULL, NULL, &found) != ATT_OK)
        fail_msg("%s %s: %s", r->network, r->options, att_context_message(p->context));
    assert_string_equal(found.name, r->network);
    for (int i = 0; i < table->count; i++) {
        const att_option *option = &table->options[i];
        if (!option->internal && !option->training && !strstr(lost, option->key) &&
            !att_option_same(option, &found.options, &expected.options))
            fail_msg("%s %s: another %s", r->network, r->options, option->key);
    }
    assert_memory_equal(&found.preprocess, &expected.preprocess, sizeof found.preprocess);
    att_model_destroy(&model);
}

/* With attscope's metadata in the weights, and with config.json alone. */
PLACE_TEST(attscope_reads_what_it_writes)
{
    for (const row *r = rows; r < rows + sizeof rows / sizeof *rows; r += is_sanitized() ? 6 : 2) {
        const att_option_values values = options_of(r->network, r->options);
        json_decref(config_of(p, r->network, r->options));
        write_model(p, r->network, &values, true);
        find_again(p, r, "");
        write_model(p, r->network, &values, false);
        if (r->lost)
            find_again(p, r, r->lost);
    }
}

/* --- the rest of config.json -------------------------------------------------------------------------------------- */

PLACE_TEST(config_says_what_timm_needs)
{
    static const struct {
        const char *network, *options, *features, *pool, *first, *classifier;
        bool sized;
    } all[] = {
        {"vit_tiny_patch16_224", TINY, "192", "\"token\"", "\"patch_embed.proj\"", "\"head\"", true},
        {"deit_tiny_distilled_patch16_224", TINY, "192", "\"token\"", "\"patch_embed.proj\"",
         "[\"head\",\"head_dist\"]", true},
        {"swin_tiny_patch4_window7_224", STAGES, "768", "\"avg\"", "\"patch_embed.proj\"", "\"head.fc\"", true},
        {"mixer_s32_224", "img_size=64 num_classes=3", "512", "\"avg\"", "\"stem.proj\"", "\"head\"", true},
        {"resnet18", LAYERS, "512", "\"avg\"", "\"conv1\"", "\"fc\"", false},
        {"resnet50d", LAYERS, "2048", "\"avg\"", "\"conv1.0\"", "\"fc\"", false},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        json_t *config = config_of(p, all[i].network, all[i].options);
        const json_t *cfg = json_object_get(config, "pretrained_cfg");
        assert_string_equal(json_string_value(json_object_get(config, "architecture")), all[i].network);
        assert_json(all[i].network, json_object_get(config, "num_classes"), "3");
        assert_json(all[i].network, json_object_get(config, "num_features"), all[i].features);
        assert_json(all[i].network, json_object_get(config, "global_pool"), all[i].pool);
        assert_json(all[i].network, json_object_get(cfg, "first_conv"), all[i].first);
        assert_json(all[i].network, json_object_get(cfg, "classifier"), all[i].classifier);
        assert_json(all[i].network, json_object_get(cfg, "fixed_input_size"), all[i].sized ? "true" : "false");
        json_decref(config);
    }
}

PLACE_TEST(images_are_prepared_as_said)
{
    const att_option_values values = options_of("vit_tiny_patch16_224", "img_size=32,48 in_chans=1 depth=1");
    att_model *model = make(p, "vit_tiny_patch16_224", &values);
    att_identity identity = att_model_identity(model);
    json_t *config = NULL;
    identity.test_height = identity.test_width = 64;
    identity.test_crop_pct = 0.95;
    snprintf(identity.preprocess.crop_mode, sizeof identity.preprocess.crop_mode, "squash");
    CHECK(p->context, write_config(p, model, &identity, &config));
    json_object_del(json_object_get(config, "pretrained_cfg"), "first_conv");
    assert_json("images", json_object_get(config, "pretrained_cfg"),
                "{\"input_size\":[1,32,48],\"mean\":[0.5],\"std\":[0.5],\"crop_pct\":0.9,\"crop_mode\":\"squash\","
                "\"interpolation\":\"bicubic\",\"test_input_size\":[1,64,64],\"test_crop_pct\":0.95,"
                "\"fixed_input_size\":true,\"classifier\":\"head\"}");
    json_decref(config);
    snprintf(identity.preprocess.crop_mode, sizeof identity.preprocess.crop_mode, "floor");
    assert_fails(p->context, write_config(p, model, &identity, &config), ATT_ERR_UNSUPPORTED,
                 "timm cannot prepare the images of this network: it has no crop_mode \"floor\"");
    snprintf(identity.preprocess.crop_mode, sizeof identity.preprocess.crop_mode, "center");
    snprintf(identity.preprocess.interpolation, sizeof identity.preprocess.interpolation, "bilinear_float");
    assert_fails(p->context, write_config(p, model, &identity, &config), ATT_ERR_UNSUPPORTED,
                 "it has no interpolation \"bilinear_float\"");
    att_model_destroy(&model);
}

PLACE_TEST(networks_that_timm_lacks_are_refused)
{
    static const struct {
        const char *network, *options, *part;
    } all[] = {
        {"resnet20", "", "timm cannot build this network: it has none called \"resnet20\""},
        {"attention_cnn_quadratic", "", "it has none called \"attention_cnn_quadratic\""},
        {"vit_tiny_patch16_224", TINY "modules=cb_s", "modules is cb_s, in timm's vit_tiny_patch16_224 it is none"},
        {"vit_tiny_patch16_224", TINY "extra_layer=attn", "extra_layer is attn"},
        {"vit_tiny_patch16_224", TINY "task=segment",
         "its task is segment, and timm has networks for classification only"},
        {"vit_tiny_patch16_224", TINY "norm_eps=1e-12",
         "norm_eps is 1e-12, in timm's vit_tiny_patch16_224 it is 1e-06"},
        {"vit_tiny_patch16_224", TINY "norm_layer=rmsnorm norm_eps=1e-5", "norm_layer is rmsnorm"},
        {"vit_tiny_patch16_224", TINY "global_pool=cls_avg", "global_pool is cls_avg"},
        {"vit_tiny_patch16_224", TINY "distilled=true", "distilled is true"},
        {"vit_tiny_patch16_224", TINY "block_fn=ParallelThingsBlock", "block_fn is ParallelThingsBlock"},
        {"vit_tiny_patch16_224", TINY "mlp_layer=swiglu act_layer=silu", "mlp_layer is swiglu"},
        {"vit_pwee_patch16_reg1_gap_256", TINY "init_values=0", "init_values is 0"},
        {"beit_base_patch16_224", TINY "norm_eps=1e-12", "norm_eps is 1e-12"},
        {"beit_base_patch16_224", TINY "global_pool=max", "global_pool is max"},
        {"beit_base_patch16_224", TINY "pos_embed=learn embed_class=false", "embed_class is false"},
        {"beit_base_patch16_224", TINY "act_layer=gelu_tanh", "act_layer is gelu_tanh"},
        {"vit_relpos_small_patch16_224", TINY "pos_embed=learn", "pos_embed is learn"},
        {"vit_relpos_small_patch16_224", TINY "rel_pos_type=none", "rel_pos_type is none"},
        {"eva02_tiny_patch14_224", "img_size=28 depth=1 norm_eps=1e-5", "norm_eps is 1e-05"},
        {"eva02_tiny_patch14_224", "img_size=28 depth=1 scale_mlp_norm=true", "scale_mlp_norm is true"},
        {"eva02_tiny_patch14_224", "img_size=28 depth=1 final_norm=false", "final_norm is false"},
        {"eva02_tiny_patch14_224", "img_size=28 depth=1 ref_feat_shape=0", "ref_feat_shape is 0"},
        {"vit_base_patch16_rope_224", TINY "init_values=0", "init_values is 0"},
        {"eva_giant_patch14_224", "img_size=28 depth=1 rope_type=cat", "rope_type is cat"},
        {"swin_tiny_patch4_window7_224", STAGES "window_size=1/8", "window_size is 1/8"},
        {"swin_tiny_patch4_window7_224", STAGES "swin_version=v2", "swin_version is v2"},
        {"swinv2_cr_tiny_224", STAGES "qkv_bias=false", "qkv_bias is false"},
        {"mixer_s32_224", "depth=2", "depth is 2, in timm's mixer_s32_224 it is 8"},
        {"resnet50", LAYERS "block=basic", "block is basic, in timm's resnet50 it is bottleneck"},
        {"resnet50", LAYERS "width=32", "width is 32"},
        {"resnet50", LAYERS "shortcut=pad", "shortcut is pad"},
        {"resnet50", LAYERS "stem_type=conv3 img_size=32", "stem_type is conv3"},
        {"resnet50", LAYERS "modules=se:ratio=8", "modules is se:ratio=8"},
        {"resnet50", LAYERS "modules=step", "modules is step,"},
        {"resnet18", LAYERS "modules=se", "modules is se"},
        {"resnet50", LAYERS "attention_layers=layer1.0.conv2", "attention_layers is layer1.0.conv2"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        json_t *config = NULL;
        const att_option_values values = options_of(all[i].network, all[i].options);
        att_model *model = make(p, all[i].network, &values);
        const att_identity identity = att_model_identity(model);
        assert_fails(p->context, write_config(p, model, &identity, &config), ATT_ERR_UNSUPPORTED, all[i].part);
        att_model_destroy(&model);
    }
}

/* Hidden widths of modules that differ from block to block. */
PLACE_TEST(modules_with_widths_of_their_own_are_refused)
{
    json_t *config = NULL;
    att_option_values values = options_of("seresnet50", LAYERS);
    att_options_set_text(&values, "modules_hidden", "16,32,64,64");
    att_model *model = make(p, "seresnet50", &values);
    const att_identity identity = att_model_identity(model);
    assert_fails(p->context, write_config(p, model, &identity, &config), ATT_ERR_UNSUPPORTED, "modules_hidden is 16");
    att_model_destroy(&model);
}

PLACE_TEST(timms_networks_need_no_arguments)
{
    int count = 0;
    for (int i = 0; i < att_model_count(); i += is_sanitized() ? 40 : 3) {
        const char *name = att_model_at(i).name;
        json_t *config = NULL;
        att_timm_name listed;
        if (!att_timm_find_name(name, &listed))
            continue;
        att_model *model = make(p, name, NULL);
        const att_identity identity = att_model_identity(model);
        CHECK(p->context, write_config(p, model, &identity, &config));
        assert_json(name, json_object_get(config, "model_args"), "{}");
        json_decref(config);
        att_model_destroy(&model);
        count++;
    }
    print_message("%d networks\n", count);
    assert_true(count > 5);
}

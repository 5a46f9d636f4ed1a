/* Options of ViTs: recognised from tensors, checked against each other, and layers of their parameters. */
#include <string.h>

#include "models/checkpoints.h"
#include "models/family.h"

/* An option: a text, or a number. */
typedef struct setting {
    const char *key, *text;
    double number;
} setting;
enum { MOST_SETTINGS = 10 };

static void set_all(const setting *settings, att_option_values *options)
{
    for (const setting *s = settings; s < settings + MOST_SETTINGS && s->key; s++)
        if (s->text)
            att_options_set_text(options, s->key, s->text);
        else
            att_options_set(options, s->key, s->number);
}

/* shown: options that the tensors show. told: options that they do not show, which the caller gives. */
static const struct {
    setting shown[MOST_SETTINGS], told[MOST_SETTINGS];
} networks[] = {
    {{{"class_token", NULL, 0}, {"global_pool", "avg", 0}, {"reg_tokens", NULL, 3}, {"embed_class", NULL, 0}}, {{0}}},
    {{{"class_token", NULL, 0}, {"global_pool", "avg", 0}, {"reg_tokens", NULL, 3}, {"embed_class", NULL, 1}}, {{0}}},
    {{{"reg_tokens", NULL, 2}, {"embed_class", NULL, 1}}, {{0}}},
    {{{"pre_norm", NULL, 1}}, {{"norm_eps", NULL, 1e-3}, {"act_layer", "quick_gelu", 0}}},
    {{{"norm_layer", "rmsnorm", 0},
      {"embed_norm_layer", "rmsnorm", 0},
      {"proj_bias", NULL, 0},
      {"qkv_bias", NULL, 0},
      {"mlp_layer", "swiglu", 0},
      {"mlp_ratio", NULL, 2.5}},
     {{"act_layer", "silu", 0}}},
    {{{"mlp_layer", "swiglu_packed", 0}, {"mlp_ratio", NULL, 3}}, {{"act_layer", "silu", 0}}},
    {{{"scale_attn_norm", NULL, 1}, {"scale_mlp_norm", NULL, 1}, {"qk_norm", NULL, 1}}, {{0}}},
    {{{"class_token", NULL, 0}, {"global_pool", "map", 0}}, {{"pool_include_prefix", NULL, 1}}},
    {{{"class_token", NULL, 0}, {"fc_norm", NULL, 1}}, {{"global_pool", "avgmax", 0}}},
    {{{"qkv_bias", NULL, 0}}, {{"block_fn", "ResPostBlock", 0}}},
    {{{"block_fn", "ParallelThingsBlock", 0}, {"init_values", NULL, 1e-5}, {"mlp_ratio", NULL, 3}}, {{0}}},
    {{{"block_fn", "ParallelScalingBlock", 0}, {"qk_norm", NULL, 1}, {"norm_layer", "rmsnorm", 0}}, {{0}}},
    {{{"block_fn", "ParallelScalingBlock", 0}, {"qkv_bias", NULL, 0}, {"mlp_ratio", NULL, 3}}, {{0}}},
    {{{"block_fn", "DiffParallelScalingBlock", 0}, {"proj_bias", NULL, 0}}, {{0}}},
    {{{"attn_layer", "diff", 0}}, {{0}}},
    {{{"distilled", NULL, 1}, {"embed_class", NULL, 1}}, {{0}}},
};

static void tensors_show_options(void **state)
{
    const place *p = *state;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        att_option_values options = small(), flags = att_options_none();
        att_identity found;
        set_all(networks[i].shown, &options);
        set_all(networks[i].told, &options);
        set_all(networks[i].told, &flags);
        att_options_set(&flags, "num_heads", 2);
        write_model(p, "vit_tiny_patch16_224", &options, false);
        CHECK(p->context, identify(p, "vit_tiny_patch16_224", &flags, &found));
        for (const setting *s = networks[i].shown; s->key; s++)
            if (s->text)
                assert_string_equal(att_options_text(&found.options, s->key), s->text);
            else if (att_options_number(&found.options, s->key, -1) != s->number)
                fail_msg("network %zu: %s is %g", i, s->key, att_options_number(&found.options, s->key, -1));
    }
}

static void options_must_fit_together(void **state)
{
    const place *p = *state;
    static const struct {
        setting settings[MOST_SETTINGS];
        const char *message;
    } refused_ones[] = {
        {{{"distilled", NULL, 1}, {"global_pool", "avg", 0}}, "a distilled network reads its class token"},
        {{{"distilled", NULL, 1}, {"reg_tokens", NULL, 1}}, "has no registers"},
        {{{"mlp_layer", "swiglu", 0}}, "act_layer must be \"silu\", not \"gelu\""},
        {{{"mlp_layer", "swiglu_packed", 0}, {"act_layer", "silu", 0}, {"mlp_ratio", NULL, 1.04}}, "two halves"},
        {{{"block_fn", "ParallelScalingBlock", 0}, {"scale_mlp_norm", NULL, 1}}, "has no scale_attn_norm"},
        {{{"block_fn", "ParallelThingsBlock", 0}, {"modules", "cb_s", 0}}, "has no places for modules"},
        {{{"block_fn", "ParallelThingsBlock", 0}, {"extra_layer", "mlp", 0}}, "does not fit block_fn"},
        {{{"attn_layer", "diff", 0}, {"embed_dim", NULL, 6}, {"num_heads", NULL, 2}}, "two halves"},
        {{{"act_layer", "elu", 0}}, "act_layer"},
        {{{"global_pool", "prr", 0}}, "global_pool"},
    };
    for (size_t i = 0; i < sizeof refused_ones / sizeof *refused_ones; i++) {
        att_option_values options = small();
        att_model *model;
        set_all(refused_ones[i].settings, &options);
        assert_int_equal(att_model_create(p->context, "vit_tiny_patch16_224", &options, ATT_F32, &model),
                         ATT_ERR_ARGUMENT);
        says(att_context_message(p->context), refused_ones[i].message);
    }
}

/* As the group matchers of timm's VisionTransformer and VisionTransformerDistilled. */
static void parameters_have_timms_layers(void **state)
{
    const place *p = *state;
    static const struct {
        const char *name;
        int layer;
    } layers[] = {{"reg_token", 0},
                  {"norm_pre.weight", 0},
                  {"patch_embed.norm.weight", 0},
                  {"dist_token", 0},
                  {"blocks.1.attns.0.norm.weight", 2},
                  {"norm.weight", ATT_LAYER_LAST_BLOCK},
                  {"attn_pool.latent", ATT_LAYER_HEAD},
                  {"head_dist.weight", ATT_LAYER_HEAD}};
    att_option_values options = small();
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        assert_int_equal(att_model_layer(model, layers[i].name), layers[i].layer);
    att_model_destroy(&model);
}

/* Both classifiers of a distilled network are its head. */
static void a_distilled_network_has_two_classifiers(void **state)
{
    const place *p = *state;
    att_option_values options = small();
    att_options_set(&options, "distilled", 1);
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    assert_true(att_model_is_head(model, "head.weight"));
    assert_true(att_model_is_head(model, "head_dist.bias"));
    assert_false(att_model_is_head(model, "head_other.bias"));
    att_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(tensors_show_options), TEST(options_must_fit_together),
                                       TEST(parameters_have_timms_layers),
                                       TEST(a_distilled_network_has_two_classifiers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Constructor arguments in files beside a checkpoint: arguments that change what the network computes are refused. */
#include "networks/models/checkpoints.h"

typedef struct argument {
    const char *json, *yaml;
    const char *refusal; /* NULL: accepted */
} argument;

static void takes_arguments(const place *p, const char *network, const argument *arguments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const argument *a = &arguments[i];
        for (int form = 0; form < 2; form++) {
            char config[256], args[256], *text = form ? args : config;
            const char *const files[] = {"config.json", "args.yaml"};
            snprintf(config, sizeof config, "{\"architecture\": \"%s\", \"model_args\": {%s}}", network, a->json);
            snprintf(args, sizeof args, "model: %s\nmodel_kwargs:\n  %s\n", network, a->yaml);
            write_beside(p, files[form], text);
            att_identity identity;
            att_status status = identify(p, NULL, NULL, &identity);
            if ((status == ATT_OK) != !a->refusal)
                fail_msg("%s: %s", text, status == ATT_OK ? "is taken" : att_context_message(p->context));
            if (a->refusal) {
                assert_true(status == ATT_ERR_UNSUPPORTED || status == ATT_ERR_MISMATCH);
                says(att_context_message(p->context), a->refusal);
                refused(p, network, status, a->refusal);
            }
            char path[128];
            path_in(p, files[form], path);
            unlink(path);
        }
    }
}

/* Arguments that change tensors must agree with the file; of those that do not, only known values are accepted. */
PLACE_TEST(arguments_of_a_vit_are_options)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "depth", 1);
    write_model(p, "vit_tiny_patch16_224", &options, false);
    static const argument arguments[] = {
        {"\"act_layer\": \"silu\"", "act_layer: silu", NULL},
        {"\"act_layer\": \"elu\"", "act_layer: elu", "act_layer must be one of"},
        {"\"act_layer\": \"gelu\"", "act_layer: gelu", NULL},
        {"\"norm_layer\": \"rmsnorm\"", "norm_layer: rmsnorm", "norm_layer is given as rmsnorm"},
        {"\"norm_layer\": \"layernorm\"", "norm_layer: layernorm", NULL},
        {"\"qk_norm\": true", "qk_norm: true", "qk_norm is given as true, but the tensors show false"},
        {"\"qk_norm\": false", "qk_norm: false", NULL},
        {"\"pool_include_prefix\": true", "pool_include_prefix: true", NULL},
        {"\"reg_tokens\": 4", "reg_tokens: 4", "reg_tokens is given as 4, but the tensors show 0"},
        {"\"reg_tokens\": 0", "reg_tokens: 0", NULL},
        {"\"pos_embed\": \"learn\"", "pos_embed: learn", NULL},
        {"\"pos_embed\": \"none\"", "pos_embed: none", "pos_embed is given as none"},
        {"\"pre_norm\": true", "pre_norm: true", "pre_norm is given as true"},
        {"\"proj_bias\": true", "proj_bias: true", NULL},
        {"\"proj_bias\": false", "proj_bias: false", "proj_bias is given as false"},
        {"\"drop_rate\": 0.5", "drop_rate: 0.5", NULL},
        {"\"drop_path_rate\": 0.1", "drop_path_rate: 0.1", NULL},
        {"\"attn_drop_rate\": 0.1", "attn_drop_rate: 0.1", NULL},
        {"\"dynamic_img_size\": true", "dynamic_img_size: true", NULL},
        {"\"a_later_switch\": false", "a_later_switch: false", NULL},
        {"\"a_later_switch\": true", "a_later_switch: true", "a_later_switch true"},
        {"\"a_later_one\": {\"x\": 1}", "a_later_one: [a, b]", "a_later_one"},
    };
    takes_arguments(p, "vit_tiny_patch16_224", arguments, sizeof arguments / sizeof *arguments);
}

/* A norm that an argument names has timm's eps, not the variant's. */
PLACE_TEST(a_named_norm_has_timms_eps)
{
    att_identity identity;
    att_option_values options = att_options_none();
    att_options_set(&options, "depth", 1);
    write_model(p, "vit_base_patch32_clip_224", &options, false);
    CHECK(p->context, identify(p, "vit_base_patch32_clip_224", NULL, &identity));
    assert_true(att_options_number(&identity.options, "norm_eps", 0) == 1e-5);
    write_beside(p, "config.json",
                 "{\"architecture\": \"vit_base_patch32_clip_224\", \"model_args\": {\"norm_layer\": \"layernorm\"}}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_true(att_options_number(&identity.options, "norm_eps", 0) == 1e-6);
}

PLACE_TEST(the_module_that_an_argument_names_must_be_in_the_tensors)
{
    att_option_values options = att_options_none();
    att_options_set_text(&options, "layers", "1,1,1,1");
    att_options_set_text(&options, "modules", "se");
    write_model(p, "resnet50", &options, false);
    static const argument arguments[] = {
        {"\"block_args\": {\"attn_layer\": \"se\"}", "block_args.attn_layer: se", NULL},
        {"\"block_args\": {\"attn_layer\": \"cbam\"}", "block_args.attn_layer: cbam", "block_args.attn_layer \"cbam\""},
    };
    takes_arguments(p, "resnet50", arguments, sizeof arguments / sizeof *arguments);
    write_beside(p, "config.json",
                 "{\"architecture\": \"resnet50\", \"model_args\": {\"block_args\": {\"attn_layer\": \"eca\"}}}");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "block_args.attn_layer \"eca\"");
    write_beside(p, "config.json",
                 "{\"architecture\": \"resnet50\", \"model_args\": {\"block_args\": {\"reduce_first\": 0}}}");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "block_args.reduce_first 0");
}

PLACE_TEST(arguments_that_change_a_resnet_are_refused)
{
    att_option_values options = att_options_none();
    att_options_set_text(&options, "layers", "1,1,1,1");
    att_options_set(&options, "width", 8);
    write_model(p, "resnet50", &options, false);
    static const argument arguments[] = {
        {"\"aa_layer\": \"avg\"", "aa_layer: avg", "made with aa_layer \"avg\""},
        {"\"output_stride\": 8", "output_stride: 8", NULL},
        {"\"output_stride\": 32", "output_stride: 32", NULL},
        {"\"act_layer\": \"gelu\"", "act_layer: gelu", "act_layer"},
        {"\"act_layer\": \"relu\"", "act_layer: relu", NULL},
        {"\"norm_layer\": \"groupnorm\"", "norm_layer: groupnorm", "norm_layer"},
        {"\"down_kernel_size\": 3", "down_kernel_size: 3", "down_kernel_size 3"},
        {"\"down_kernel_size\": 1", "down_kernel_size: 1", NULL},
        {"\"drop_block_rate\": 0.1", "drop_block_rate: 0.1", NULL},
        {"\"layers\": [1, 1, 1, 1]", "layers: [1, 1, 1, 1]", NULL},
        {"\"block_args\": {}", "block_args: {}", NULL},
        {"\"block_args\": {\"attn_layer\": \"se\"}", "block_args: [se]", "block_args"},
    };
    takes_arguments(p, "resnet50", arguments, sizeof arguments / sizeof *arguments);
    write_beside(p, "args.yaml", "model: resnet50\nbn_eps: 0.001\n");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "bn_eps 0.001");
    write_beside(p, "args.yaml", "model: resnet50\nbn_eps: 1.0e-05\nbn_tf: false\ngp: max\n");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "model.safetensors: the network that the file and its side files describe");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "global_pool must be \"avg\"");
    write_beside(p, "args.yaml", "model: resnet50\ngp: catavgmax\n");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "gp is \"catavgmax\", which attscope does not support");
    att_identity identity;
    write_beside(p, "args.yaml", "model: resnet50\n");
    att_options_set_text(&options, "global_pool", "max"); /* an error of the caller, not of the file */
    assert_int_equal(identify(p, NULL, &options, &identity), ATT_ERR_ARGUMENT);
}

/* A file that names no network of attscope may still have arguments of another family, which are checked. */
PLACE_TEST(arguments_beside_unknown_names_are_checked)
{
    static const struct {
        const char *file, *text, *argument; /* `argument` is given at two places */
    } sources[] = {
        {"args.yaml", "model: my_network\nmodel_kwargs:\n  act_layer: %s\n", "act_layer"},
        {"args.yaml", "model_kwargs:\n  norm_layer: %s\n", "norm_layer"},
        {"config.json", "{\"model_args\": {\"act_layer\": \"%s\"}}", "act_layer"},
        {"config.json", "{\"architecture\": \"my_network\", \"model_args\": {\"norm_layer\": \"%s\"}}", "norm_layer"},
    };
    static const struct {
        const char *network, *act, *norm, *other_act, *other_norm;
    } families[] = {{"vit_tiny_patch16_224", "gelu", "layernorm", "elu", "batchnorm2d"},
                    {"resnet18", "relu", "batchnorm2d", "gelu", "layernorm"}};
    for (int f = 0; f < 2; f++) {
        att_option_values options = att_options_none();
        if (f == 0)
            att_options_set(&options, "depth", 1);
        write_model(p, families[f].network, &options, false);
        for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
            bool is_act = strcmp(sources[i].argument, "act_layer") == 0;
            char text[160], path[128];
            att_identity identity;
            snprintf(text, sizeof text, sources[i].text, is_act ? families[f].act : families[f].norm);
            write_beside(p, sources[i].file, text);
            CHECK(p->context, identify(p, families[f].network, NULL, &identity));
            snprintf(text, sizeof text, sources[i].text, is_act ? families[f].other_act : families[f].other_norm);
            write_beside(p, sources[i].file, text);
            att_status status = identify(p, families[f].network, NULL, &identity);
            if (status != ATT_ERR_UNSUPPORTED && status != ATT_ERR_MISMATCH)
                fail_msg("%s: %s: %s", families[f].network, text,
                         status == ATT_OK ? "is taken" : att_context_message(p->context));
            says(att_context_message(p->context), sources[i].argument);
            path_in(p, sources[i].file, path);
            unlink(path);
        }
    }
}

PLACE_TEST(arguments_in_no_mapping_are_refused)
{
    static const char *const files[][3] = {
        {"config.json", "{\"model_args\": [\"act_layer\", \"relu\"]}", "made with model_args"},
        {"args.yaml", "model_kwargs: act_layer=relu\n", "made with model_kwargs"},
        {"args.yaml", "model_kwargs:\n  a_name_that_is_too_long_to_be_one_of_those_that_any_network_here_has: 1\n",
         "made with a_name_that_is_too_long"},
    };
    att_option_values options = att_options_none();
    att_options_set(&options, "depth", 1);
    write_model(p, "vit_tiny_patch16_224", &options, false);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[128];
        write_beside(p, files[i][0], files[i][1]);
        refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, files[i][2]);
        path_in(p, files[i][0], path);
        unlink(path);
    }
}

PLACE_TEST(arguments_count_wherever_they_lie)
{
    static const char *const members[][2] = {
        {"\"model_kwargs\": {\"act_layer\": \"silu\"}", "act_layer \"silu\""},
        {"\"kwargs\": {\"act_layer\": \"silu\"}", "act_layer \"silu\""},
        {"\"kwargs\": [\"act_layer\"]", "kwargs"},
        {"\"act_layer\": \"silu\"", "act_layer \"silu\""},
        {"\"model_args\": {\"global_pool\": \"\"}", "global_pool is \"\""},
        {"\"global_pool\": \"\"", "global_pool is \"\""},
    };
    att_identity identity;
    write_model(p, "resnet18", NULL, false);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        char text[160];
        snprintf(text, sizeof text, "{\"architecture\": \"resnet18\", %s}", members[i][0]);
        write_beside(p, "config.json", text);
        refused(p, "resnet18", ATT_ERR_UNSUPPORTED, members[i][1]);
    }
    write_beside(p, "config.json",
                 "\xEF\xBB\xBF{\"architecture\": \"resnet18\", \"act_layer\": \"relu\", "
                 "\"model_args\": {\"pretrained\": true, \"stem_type\": \"\"}}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    write_beside(p, "config.json", "{}");
    write_beside(p, "args.yaml", "model: resnet18\ngp: ''\n");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "gp is \"\"");
    write_beside(p, "args.yaml", "model: resnet18\nmodel_kwargs: {global_pool: ''}\n");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "global_pool is \"\"");
    write_beside(p, "args.yaml", "model: resnet18\ngp:\ninterpolation: ''\n");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
}

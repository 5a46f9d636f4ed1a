/* Networks named in config.json, args.yaml and a checkpoint's metadata: networks that attscope lacks, networks of other
 * libraries, unreadable files and contradictions. */
#include "networks/models/checkpoints.h"

/* Their tensors are those of a network of attscope, but they compute something else. */
PLACE_TEST(networks_with_the_same_tensors_are_refused)
{
    att_option_values options = att_options_none();
    att_options_set_text(&options, "layers", "1,1,1,1");
    att_options_set(&options, "width", 8);
    write_model(p, "resnet50", &options, false);
    refused(p, "resnetaa50", ATT_ERR_UNSUPPORTED, "timm has resnetaa50 (anti-aliased downsampling)");
    write_model(p, "resnet50", NULL, false);
    refused(p, NULL, ATT_ERR_NOT_FOUND,
            "its tensors fit resnet50; give that name (--model NAME; model in Python, att_network_options.model in C), "
            "or that of another network with these tensors, whose images differ. timm's networks with the same "
            "tensors, which attscope does not support: resnetaa50, resnetblur50");
    static const char *const files[][2] = {
        {"config.json", "{\"architecture\": \"resnetaa50\"}"},
        {"config.json", "{\"architecture\": \"resnetaa50\", \"pretrained_cfg\": {\"tag\": \"a1h_in1k\"}}"},
        {"args.yaml", "model: resnetaa50\n"},
        {"args.yaml", "model: resnetaa50.a1h_in1k\n"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[128];
        write_beside(p, files[i][0], files[i][1]);
        refused(p, NULL, ATT_ERR_UNSUPPORTED, "timm has resnetaa50 (anti-aliased downsampling)");
        refused(p, "resnet50", ATT_ERR_UNSUPPORTED, files[i][0]); /* the caller's name does not change that */
        path_in(p, files[i][0], path);
        unlink(path);
    }
    att_identity identity;
    write_beside(p, "config.json", "{\"architecture\": \"my_own_network\"}");
    CHECK(p->context, identify(p, "resnet50", NULL, &identity));
    says(identity.brief, "config.json, which names my_own_network, was left out");
}

/* The message gives the missing feature of the named network and the tensors that show another one. */
PLACE_TEST(a_name_that_attscope_lacks_and_the_tensors_are_explained)
{
    att_option_values options = small();
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    tensors t = tensors_of(model);
    add_tensor(&t, "register_tokens", att_shape_of(1, 4, 32));
    write_tensors(p, &t, NULL);
    att_model_destroy(&model);
    static const char *const names[] = {"vit_large_patch16_sapiens2", "vit_base_patch16_sapiens2", "no_such_name"};
    for (int i = 0; i < 3; i++) {
        att_status status = i < 2 ? ATT_ERR_UNSUPPORTED : ATT_ERR_NOT_FOUND;
        refused(p, names[i], status, names[i]);
        refused(p, names[i], status, "the nearest family, vit, lacks 1 of 33, such as \"register_tokens\"");
        refused(p, names[i], status, "a sign of DINOv2 under its authors' names");
    }
}

PLACE_TEST(other_librarys_configs_are_refused)
{
    att_identity identity;
    write_model(p, "vit_tiny_patch16_224", NULL, false);
    write_beside(p, "config.json", "{\"model_type\": \"vit\", \"layer_norm_eps\": 1e-12, \"hidden_act\": \"gelu\"}");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "transformers library (model_type \"vit\")");
    write_beside(
        p, "config.json",
        "{\"architecture\": \"vit_tiny_patch16_224\", \"model_type\": \"timm_wrapper\", \"num_classes\": 1000}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
}

/* As other programs write it into safetensors. */
static void write_described(const place *p, const char *key, const char *value)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "depth", 1);
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    tensors t = tensors_of(model);
    att_safetensors_pair metadata[] = {{"arch", "vit_tiny_patch16_224"}, {key, value}};
    bool names = strcmp(key, "arch") == 0;
    att_safetensors_content content = {.tensors = t.items,
                                       .tensor_count = t.count,
                                       .metadata = metadata + names,
                                       .metadata_count = 2 - names,
                                       .fill = fill_formula,
                                       .fill_user = &t};
    CHECK(p->context, att_safetensors_write(p->context, p->weights, &content));
    att_model_destroy(&model);
}

PLACE_TEST(metadata_of_others_is_read)
{
    att_identity identity;
    write_described(p, "arch", "vit_base_patch16_sapiens2");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "LayerScale of the attention only");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "LayerScale of the attention only");
    write_described(p, "model_args", "{\"act_layer\": \"elu\"}");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "act_layer");
    write_described(p, "config", "{\"model_type\": \"vit\"}");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "transformers library");
    write_described(p, "args", "{\"model\": \"vit_tiny_patch16_224\", \"gp\": null, \"model_kwargs.qk_norm\": true}");
    refused(p, NULL, ATT_ERR_MISMATCH, "qk_norm");
    write_described(p, "args", "{\"model\": \"my_vit\", \"model_kwargs.act_layer\": \"elu\"}");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "act_layer");
    write_described(p, "args", "{\"model_kwargs\": {\"unreadable\": true}}");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "model_kwargs");
    /* not timm's keys: they have other meanings */
    write_described(p, "args", "{\"patch_size\": 7, \"input_size\": 224}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    write_described(p, "args", "{\"model\": \"vit_small_patch16_224\"}");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "names two networks, \"vit_tiny_patch16_224\" and");
    write_described(p, "args", "{\"model\": \"my_own\"}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    static const char *const empty[] = {"", " ", "null", "None", "{}"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        write_described(p, "model_args", empty[i]);
        CHECK(p->context, identify(p, NULL, NULL, &identity));
    }
    write_described(p, "args", "{\"gp\": null, \"crop_pct\": 0.5}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_non_null(strstr(identity.brief, "the checkpoint's \"arch\"; preprocessing: the checkpoint's \"args\""));
    write_described(p, "pretrained_cfg", "{\"crop_pct\": 0.5}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_true(identity.preprocess.crop_pct == 0.5);
}

/* Unreadable metadata could request another computation. */
PLACE_TEST(metadata_that_cannot_be_read_is_refused)
{
    static const char *const keys[] = {"model_args",       "model_kwargs", "kwargs",        "args",
                                       "hyper_parameters", "config",       "pretrained_cfg"};
    static const char *const texts[] = {"no object", "{'act_layer': 'silu'}", "[[\"act_layer\", \"silu\"]]"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            char words[64];
            write_described(p, keys[k], texts[i]);
            snprintf(words, sizeof words, "\"%s\" is not a JSON object", keys[k]);
            refused(p, "vit_tiny_patch16_224", ATT_ERR_FORMAT, words);
        }
    write_described(p, "model_args", " {\"act_layer\": \"elu\"}");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "act_layer");
    write_described(p, "hyper_parameters", "{\"model_kwargs.act_layer\": \"elu\"}");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "act_layer");
}

PLACE_TEST(a_source_that_names_two_networks_is_refused)
{
    att_identity identity;
    static const char *const keys[] = {"architecture", "model_name", "model", "timm_model"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        write_described(p, keys[i], "vit_base_patch16_sapiens2");
        refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "names two networks");
        write_described(p, keys[i], "vit_tiny_patch16_224.augreg_in21k");
        CHECK(p->context, identify(p, NULL, NULL, &identity));
        write_described(p, keys[i], "of_my_own");
        CHECK(p->context, identify(p, NULL, NULL, &identity));
    }
    char description[200];
    memset(description, 'x', sizeof description - 1);
    description[sizeof description - 1] = '\0';
    write_described(p, "model", description);
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    write_described(p, "hyper_parameters", "{\"model_name\": \"vit_small_patch16_224\"}");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "names two networks");
    write_model(p, "vit_tiny_patch16_224", NULL, false);
    write_beside(p, "config.json",
                 "{\"architecture\": \"vit_tiny_patch16_224\", "
                 "\"pretrained_cfg\": {\"architecture\": \"deit_tiny_patch16_224\"}}");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_UNSUPPORTED, "names two networks");
    write_beside(p, "config.json", "{\"pretrained_cfg\": {\"architecture\": \"vit_tiny_patch16_224\"}}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
}

/* Names that a human would read as a name of timm's. */
PLACE_TEST(names_that_are_nearly_timms_are_refused)
{
    static const char *const names[][2] = {{"ResNetBlur18", "timm has resnetblur18"},
                                           {" resnetblur18\\n", "timm has resnetblur18"},
                                           {"resnetblur18.mine", "timm has resnetblur18"},
                                           {"resnet18.foo", "resnet18 has no pretrained tag \"foo\""}};
    write_model(p, "resnet18", NULL, false);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"architecture\": \"%s\"}", names[i][0]);
        write_beside(p, "config.json", text);
        refused(p, "resnet18", ATT_ERR_UNSUPPORTED, names[i][1]);
        refused(p, NULL, ATT_ERR_UNSUPPORTED, names[i][1]);
    }
}

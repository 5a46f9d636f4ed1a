/* Names of networks: timm's list, deprecated names, misspelled names. */
#include "networks/models/checkpoint.h"
#include "networks/models/checkpoints.h"
#include "networks/models/family.h"
#include "networks/models/timm.h"
#include "networks/models/typo.h"

static void resolves(const place *p, const char *text, const char *network, const char *tag, bool deprecated)
{
    att_network_name name;
    CHECK(p->context, att_model_resolve(p->context, text, &name));
    assert_string_equal(name.network, network);
    assert_string_equal(name.tag, tag);
    assert_int_equal(name.deprecated, deprecated);
}

static void does_not_resolve(const place *p, const char *text, att_status status, const char *words)
{
    att_network_name name = {.network = "untouched"};
    assert_int_equal(att_model_resolve(p->context, text, &name), status);
    assert_string_equal(name.network, "untouched");
    says(att_context_message(p->context), words);
}

static bool is_listed(const char *name)
{
    for (int i = 0; i < att_model_count(); i++)
        if (strcmp(att_model_at(i).name, name) == 0)
            return true;
    return false;
}

/* Every name of timm is in the list, or is refused with the feature that attscope lacks; none counts as misspelled. */
PLACE_TEST(every_name_of_timm_is_known)
{
    att_timm_name timm;
    int names = 0, deprecated = 0, listed = 0;
    for (size_t at = 0; att_timm_next_name(&at, &timm);) {
        char text[128];
        att_network_name name;
        snprintf(text, sizeof text, "%.*s", (int)timm.name.length, timm.name.bytes);
        att_status status = att_model_resolve(p->context, text, &name);
        deprecated += timm.current.length > 0;
        names += timm.current.length == 0;
        if (status == ATT_OK) {
            assert_true(is_listed(name.network));
            listed += !name.deprecated;
            continue;
        }
        assert_int_equal(status, ATT_ERR_UNSUPPORTED);
        says(att_context_message(p->context), "timm has ");
        says(att_context_message(p->context), "; attscope does not support it");
        assert_true(timm.current.length > 0 || timm.lacks.length > 0);
        assert_null(strstr(att_context_message(p->context), "did you mean"));
    }
    assert_true(names > 1300 && deprecated > 150 && listed >= 100);
}

/* names.txt describes a missing feature for exactly the networks that attscope lacks. */
PLACE_TEST(the_list_is_that_of_the_networks)
{
    att_timm_name timm;
    for (size_t at = 0; att_timm_next_name(&at, &timm);) {
        char text[128];
        snprintf(text, sizeof text, "%.*s", (int)timm.name.length, timm.name.bytes);
        if (timm.current.length == 0 && is_listed(text) != (timm.lacks.length == 0))
            fail_msg("%s: run tools/goldens/timm_names.py", text);
    }
}

PLACE_TEST(messages_name_what_attscope_lacks)
{
    static const char *const lacking[][2] = {
        {"resnetaa50", "timm has resnetaa50 (anti-aliased downsampling); attscope does not support it"},
        {"resnetaa50.a1h_in1k", "timm has resnetaa50 (anti-aliased downsampling)"},
        {"resnetblur18", "by a blur"},
        {"vit_base_patch16_sapiens2", "LayerScale of the attention only"},
        {"resnet50_gn", "group norm"},
        {"cait_s24_224", "CaiT: talking heads, class attention"},
        {"tv_densenet121", "timm has densenet121 (DenseNet), formerly tv_densenet121"},
        {"ig_resnext101_32x48d", "another width"},
    };
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++)
        does_not_resolve(p, lacking[i][0], ATT_ERR_UNSUPPORTED, lacking[i][1]);
}

PLACE_TEST(deprecated_names_are_replaced)
{
    resolves(p, "tv_resnet50", "resnet50", "tv_in1k", true);
    resolves(p, "vit_base_patch16_224_in21k", "vit_base_patch16_224", "augreg_in21k", true);
    resolves(p, "seresnext26tn_32x4d", "seresnext26t_32x4d", "", true);
    resolves(p, "tv_resnet50.a1_in1k", "resnet50", "a1_in1k", true);
    resolves(p, "resnet50", "resnet50", "", false);
    resolves(p, "hf-hub:timm/resnet50.a1_in1k", "resnet50", "a1_in1k", false);
}

PLACE_TEST(only_sure_typos_are_suggested)
{
    static const char *const typos[][2] = {
        {"resnt50", "resnet50"},
        {"renset50d", "resnet50d"},
        {"ResNet-50", "resnet50"},
        {"vit_tny_patch16_224", "vit_tiny_patch16_224"},
        {"vit_tini_patch16_224", "vit_tiny_patch16_224"},
        {"vit_tiny_patch16_244", "vit_tiny_patch16_224"},
        {"deit_small_pacth16_224", "deit_small_patch16_224"},
    };
    static const char *const others[] = {"resnet51",
                                         "resnet49",
                                         "xresnet50",
                                         "rednet50",
                                         "resnetx50",
                                         "resnet50b",
                                         "seresnet26",
                                         "ecaresnet34",
                                         "resnetab50",
                                         "resnetaa51",
                                         "resnetblr50",
                                         "resnext50_32x8d",
                                         "wide_resnet50_3",
                                         "vit_base_patch14_224",
                                         "dit_base_patch16_224",
                                         "pit_tiny_patch16_224",
                                         "vit_small_patch16_gap_224",
                                         "vit_base_patch16_rpm_224",
                                         "nothing_of_the_kind",
                                         "resnet103",                  /* a depth, not an image size */
                                         "vit_tny_pacth16_224",        /* two misspelled parts */
                                         "vit_medium_patch16_gap_250", /* may mean gap_240 or gap_256 */
                                         ""};
    for (size_t i = 0; i < sizeof typos / sizeof *typos; i++) {
        char words[96];
        snprintf(words, sizeof words, "did you mean \"%s\"?", typos[i][1]);
        does_not_resolve(p, typos[i][0], ATT_ERR_NOT_FOUND, words);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        does_not_resolve(p, others[i], ATT_ERR_NOT_FOUND, "there is no model");
        if (strstr(att_context_message(p->context), "did you mean"))
            fail_msg("%s: %s", others[i], att_context_message(p->context));
    }
    assert_false(att_name_is_typo("resnetv2_103", "resnetv2_101")); /* a depth, although three digits at the end */
}

TEST(lists_of_tensors_have_whole_names)
{
    static const char names[] = "norm.weight norm.bias head.bias";
    assert_true(att_checkpoint_lists(names, "norm.weight"));
    assert_true(att_checkpoint_lists(names, "head.bias"));
    assert_false(att_checkpoint_lists(names, "norm"));
    assert_false(att_checkpoint_lists(names, "bias"));
    assert_false(att_checkpoint_lists(names, "norm.weight norm.bias"));
    assert_false(att_checkpoint_lists(names, ""));
    assert_true(att_checkpoint_lists("gate2 gate", "gate"));
}

PLACE_TEST(unknown_tags_are_refused)
{
    does_not_resolve(p, "deit_tiny_patch16_224.fb_in22k", ATT_ERR_NOT_FOUND,
                     "deit_tiny_patch16_224 has no pretrained tag \"fb_in22k\"; its tags are fb_in1k");
    does_not_resolve(p, "resnet20.a1_in1k", ATT_ERR_NOT_FOUND, "resnet20 has no pretrained tags");
}

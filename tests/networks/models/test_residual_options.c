/* Options of residual networks: contradictions, and options that follow from others. */
#include "engine/graph/graph.h"
#include "engine/ops/batch_norm.h"
#include "networks/models/checkpoints.h"

static void cannot_be_built(const place *p, const char *name, const att_option_values *options, const char *words)
{
    att_model *model = NULL;
    assert_int_equal(att_model_create(p->context, name, options, ATT_F32, &model), ATT_ERR_ARGUMENT);
    assert_null(model);
    says(att_context_message(p->context), words);
}

PLACE_TEST(layers_take_the_place_of_a_depth)
{
    att_option_values options = att_options_none();
    att_options_set_text(&options, "layers", "1,2,1");
    att_model *model = make(p, "resnet20", &options);
    assert_int_equal(att_options_number(att_model_options(model), "depth", -1), 10);
    att_model_destroy(&model);
}

/* att_batch_norm() takes an eps of 0 for its default. */
PLACE_TEST(an_eps_of_zero_adds_nothing)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "bn_eps", 0);
    att_model *model = make(p, "resnet20", &options);
    const att_graph *graph = att_model_graph(model);
    int norms = 0;
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        if (strcmp(node->op->name, "batch_norm") != 0)
            continue;
        assert_true(((const att_batch_norm_attrs *)node->attrs)->eps < 1e-30);
        norms++;
    }
    assert_int_equal(norms, 19);
    att_model_destroy(&model);
}

PLACE_TEST(contradicting_options_are_refused)
{
    att_option_values o = att_options_none();
    att_options_set(&o, "depth", 30);
    cannot_be_built(p, "resnet164", &o, "9 n + 2 layers deep (11, 20, 29, ...)");
    cannot_be_built(p, "resnet20", &o, "6 n + 2");
    cannot_be_built(p, "resnet50", &o, "depth 30 does not go with layers 3,4,6,3, which are 50 deep");
    o = att_options_none(), att_options_set_text(&o, "layers", "3,4,6");
    cannot_be_built(p, "resnet50", &o, "4 stages");
    att_options_set_text(&o, "layers", "3,0,6,3");
    cannot_be_built(p, "resnet50", &o, "not \"3,0,6,3\"");
    att_options_set_text(&o, "layers", "1020,4,6,3");
    cannot_be_built(p, "resnet50", &o, "at most 1024");
    o = att_options_none(), att_options_set(&o, "img_size", 31);
    cannot_be_built(p, "resnet50", &o, "img_size 31");
    o = att_options_none(), att_options_set_text(&o, "stem_type", "conv7");
    cannot_be_built(p, "resnet20", &o, "stem_type conv7 needs four stages; give their numbers of blocks in layers");
    o = att_options_none(), att_options_set_text(&o, "layers", "1,1");
    cannot_be_built(p, "resnet20", &o, "3 or 4 stages");
    o = att_options_none(), att_options_set_text(&o, "stem_type", "conv3"), att_options_set(&o, "img_size", 7);
    cannot_be_built(p, "resnet18", &o, "img_size 7 is too small: the strides of this network need at least 8 pixels");
    o = att_options_none(), att_options_set(&o, "cardinality", 2);
    cannot_be_built(p, "resnet18", &o, "bottleneck's");
    o = att_options_none(), att_options_set(&o, "zero_init_last", 1);
    cannot_be_built(p, "preresnet29", &o, "zero_init_last");
    o = att_options_none(), att_options_set_text(&o, "global_pool", "token");
    cannot_be_built(p, "resnet50", &o, "global_pool");
    o = att_options_none(), att_options_set_text(&o, "modules", "se@after_branch:18");
    cannot_be_built(p, "resnet50", &o, "there is no block 18");
    o = att_options_none(), att_options_set_text(&o, "modules", "@after_branch:all");
    cannot_be_built(
        p, "resnet50", &o,
        "modules \"@after_branch:all\" places a module without naming it, but the network has none; name the module");
    o = att_options_none(), att_options_set(&o, "depth", 20), att_options_set_text(&o, "layers", "1,1,1");
    cannot_be_built(p, "resnet20", &o,
                    "depth 20 does not go with layers 1,1,1, which are 8 deep; leave one of them out");
    o = att_options_none(), att_options_set_text(&o, "modules", "fca"), att_options_set(&o, "width", 4);
    cannot_be_built(p, "resnet20", &o, "its 16 frequencies need a multiple of 16 channels, not 4");
    o = att_options_none(), att_options_set_text(&o, "modules", "srm"), att_options_set(&o, "img_size", 4);
    cannot_be_built(p, "resnet20", &o, "has a single pixel in layer3.0.srm");
    att_options_set_text(&o, "modules", "step:adaptor=style");
    cannot_be_built(p, "resnet20", &o, "has a single pixel in layer3.0.step.style");
    o = att_options_none(), att_options_set(&o, "in_chans", 2);
    cannot_be_built(p, "resnet20", &o, "in_chans must be 1 or 3, not 2");
    o = att_options_none(), att_options_set(&o, "patch_size", 16);
    cannot_be_built(p, "resnet50", &o,
                    "patch_size is an option of the families \"vit\", \"eva\", \"mixer\", \"swin\", \"attention_cnn\" "
                    "and \"convnext\", not of "
                    "\"resnet\"");
    o = att_options_none(), att_options_set_text(&o, "modules", "srm");
    cannot_be_built(p, "vit_tiny_patch16_224", &o,
                    "module \"srm\" works on feature maps [h, w, C], and \"@after_mlp\" has tokens [N, C]");
    o = att_options_none(), att_options_set_text(&o, "shortcut", "B");
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

PLACE_TEST(last_norms_start_at_zero_where_timms_do)
{
    for (int own = 0; own < 2; own++) {
        att_option_values options = att_options_none();
        if (!own)
            att_options_set(&options, "zero_init_last", 0);
        att_model *model = make(p, "resnet50", &options);
        starts_at(att_model_graph(model), "layer1.0.bn3.weight", own ? 0 : 1);
        starts_at(att_model_graph(model), "layer1.0.bn2.weight", 1);
        att_model_destroy(&model);
    }
    att_model *model = make(p, "resnet20", NULL);
    starts_at(att_model_graph(model), "layer1.0.bn2.weight", 1);
    att_model_destroy(&model);
}

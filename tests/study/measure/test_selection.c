/* The selection of instruments and nodes by name. */
#include "context.h"
#include "study/measure/small_vit.h"

SHARED_CONTEXT(threads, 0)

static void refused(const char *with, const char *nodes, att_status status, const char *words)
{
    att_model *model = make_model("none", 0, 0, false);
    att_measure *measure = NULL;
    assert_int_equal(att_measure_create(att_model_graph(model), with, nodes, &measure), status);
    assert_null(measure);
    assert_message(context, words);
    att_model_destroy(&model);
}

TEST(wrong_names_are_refused)
{
    refused("entorpy", "*", ATT_ERR_NOT_FOUND, "did you mean \"entropy\"?");
    refused("entropy,", "*", ATT_ERR_NOT_FOUND, "available: accuracy");
    refused("", "*", ATT_ERR_NOT_FOUND, "there is no instrument \"\"");
    refused("nsi,nsi", "*", ATT_ERR_ARGUMENT, "named twice");
    refused("all,nsi", "*", ATT_ERR_ARGUMENT, "named twice");
    refused("accuracy,-accuracy", "*", ATT_ERR_ARGUMENT, "\"accuracy,-accuracy\" selects no instrument");
    refused("nsi:per=blocks", "*", ATT_ERR_ARGUMENT,
            "instrument nsi: per cannot be \"blocks\"; did you mean \"block\"?");
    refused("nsi:block", "*", ATT_ERR_ARGUMENT, "\"block\" is not option=value; did you mean \"per=block\"?");
    refused("entropy:per=block", "*", ATT_ERR_ARGUMENT, "instrument entropy has no options, and so no \"per\"");
    refused("nsi:per=block,per=block", "*", ATT_ERR_ARGUMENT, "instrument nsi: per is given twice");
    refused("path_samples:count=65", "*", ATT_ERR_ARGUMENT, "path_samples: count must be in 1..64, not 65");
    refused("path_samples:count=2,sead=1", "*", ATT_ERR_ARGUMENT, "has no option \"sead\"; did you mean \"seed\"?");
    refused("path_samples:count=2,seed=x,nsi", "*", ATT_ERR_ARGUMENT, "path_samples: seed must be a number");
    refused("all:count=2", "*", ATT_ERR_ARGUMENT, "\"all\" has no options");
    refused("nsi:per=block,nsi", "*", ATT_ERR_ARGUMENT, "named twice");
    refused("entropy", "layers.*", ATT_ERR_NOT_FOUND, "no attention that matches \"layers.*\"");
    refused("entropy", "attn", ATT_ERR_NOT_FOUND, "no attention that matches \"attn\"; did you mean \"*attn*\"?");
    refused("nsi", "blocks.9.*", ATT_ERR_NOT_FOUND, "no residual addition that matches");
}

TEST(patterns_choose_nodes)
{
    att_model *model = make_model("none", 0, 0, false);
    att_measure *measure;
    must(att_measure_create(att_model_graph(model), "entropy", "blocks.1.*", &measure));
    assert_int_equal(att_measure_count(measure), 4); /* three heads, and all heads together */
    assert_string_equal(att_measure_at(measure, 0).node, "blocks.1.attn");
    assert_true(isnan(att_measure_at(measure, 0).mean));
    assert_int_equal(att_measure_instrument_count(measure), 1);
    assert_string_equal(att_measure_instrument_at(measure, 0).name, "entropy");
    att_measure_destroy(&measure);
    att_model_destroy(&model);
}

/* Who reads a number wants to know whether it is large. */
TEST(every_instrument_has_a_scale)
{
    for (int i = 0; i < att_instrument_count(NULL); i++) {
        const att_instrument_info info = att_instrument_at(NULL, i);
        if (!info.scales || !info.scales[0].text || !info.scales[0].source)
            fail_msg("%s has no scale", info.name);
    }
}

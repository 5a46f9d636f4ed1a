/* Places of modules: the hooks of a family, in some blocks. */
#include "base/core/options.h"
#include "networks/models/checkpoints.h"
#include "networks/models/detected_modules.h"
#include "networks/models/family.h"

static bool has_parameter(const att_model *model, const char *name)
{
    const att_graph *graph = att_model_graph(model);
    for (int i = 0; i < att_graph_parameter_count(graph); i++)
        if (strcmp(att_graph_parameter_at(graph, i).name, name) == 0)
            return true;
    return false;
}

static att_option_values with(const char *modules)
{
    att_option_values options = small();
    att_options_set(&options, "depth", 3);
    att_options_set_text(&options, "modules", modules);
    return options;
}

PLACE_TEST(modules_are_at_their_hooks_and_blocks)
{
    att_option_values options = with("cb_s@after_attn:0,2+cb_s");
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    for (int b = 0; b < 3; b++) {
        char attn[48], mlp[48];
        snprintf(attn, sizeof attn, "blocks.%d.attn.cb.weight", b);
        snprintf(mlp, sizeof mlp, "blocks.%d.mlp.cb.weight", b);
        assert_int_equal(has_parameter(model, attn), b != 1);
        assert_true(has_parameter(model, mlp));
    }
    att_model_destroy(&model);
}

/* With a module in place of attention, there are no queries, keys and values. */
PLACE_TEST(a_module_replaces_attention)
{
    att_option_values options = with("cb_s@attn:1");
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    assert_true(has_parameter(model, "blocks.0.attn.qkv.weight"));
    assert_false(has_parameter(model, "blocks.1.attn.qkv.weight"));
    assert_true(has_parameter(model, "blocks.1.attn.cb.weight"));
    att_model_destroy(&model);
}

/* From attscope's metadata, and from tensors alone. */
PLACE_TEST(files_are_identified)
{
    static const char *const all[] = {
        "cb_s",        "cb_s@after_mlp:every:2",         "cb_s@after_attn", "cb_s+cb_s@after_attn:0",
        "cb_s@attn:0", "cb_s@after_mlp:1+cb_s@attn:1-2", "cb_s@attn"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int ours = 0; ours < 2; ours++) {
            att_option_values options = with(all[i]), flags = att_options_none();
            att_options_set(&flags, "num_heads", 2);
            att_identity found;
            write_model(p, "vit_tiny_patch16_224", &options, ours);
            CHECK(p->context, identify(p, "vit_tiny_patch16_224", &flags, &found));
            assert_string_equal(att_options_text(&found.options, "modules"), all[i]);
        }
}

PLACE_TEST(all_tensors_of_a_module_are_its_own)
{
    assert_string_equal(att_detected_find(NULL, "mlp.cb.weight", "mlp", ATT_ON_TOKENS)->name, "cb_s");
    assert_null(att_detected_find(NULL, "mlp.cb.bias", "mlp", ATT_ON_TOKENS));
    assert_true(att_detected_owns(NULL, "mlp.cb.weight", "mlp", ATT_ON_TOKENS));
    assert_true(att_detected_owns(NULL, "mlp.cb.bias", "mlp", ATT_ON_TOKENS));
    assert_false(att_detected_owns(NULL, "mlp.cb.weight", "attn", ATT_ON_TOKENS));
    assert_false(att_detected_owns(NULL, "mlp.cbs.weight", "mlp", ATT_ON_TOKENS));
    assert_false(att_detected_owns(NULL, "mlp.srm.cfc", "mlp", ATT_ON_TOKENS)); /* a module of feature maps */
}

/* Modules are listed by hook, and at one hook in the order of the module list. A file with more than four modules is
 * refused. */
PLACE_TEST(detected_modules_are_in_order)
{
    static att_detected_modules detected;
    const att_module *cb = att_module_at(NULL, 0), *cb_s = att_module_at(NULL, 1);
    att_detected_add(NULL, &detected, cb_s, 1, 5);
    att_detected_add(NULL, &detected, cb_s, 0, 7);
    att_detected_add(NULL, &detected, cb, 1, 5);
    att_detected_add(NULL, &detected, cb_s, 1, 6);
    static const int hooks[] = {0, 1, 1}, blocks[] = {7, 5, 5};
    const att_module *const modules[] = {cb_s, cb, cb_s};
    assert_int_equal(detected.count, 3);
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(detected.items[i].module, modules[i]);
        assert_int_equal(detected.items[i].hook, hooks[i]);
        assert_true(detected.items[i].at[blocks[i]]);
    }
    assert_true(detected.items[2].at[6]);
    att_detected_add(NULL, &detected, cb, 0, 0);
    assert_false(detected.too_many);
    att_detected_add(NULL, &detected, cb, 2, 0);
    assert_int_equal(detected.count, 4);
    att_option_values options = with("none"), found = att_options_none();
    write_model(p, "vit_tiny_patch16_224", &options, false);
    att_tensors *file;
    CHECK(p->context, att_tensors_open(p->context, p->weights, &file));
    const att_block_layout places = {.file = file};
    assert_int_equal(att_detected_write(p->context, &places, &detected, &found), ATT_ERR_UNSUPPORTED);
    says(att_context_message(p->context), "at most 4 modules");
    att_tensors_close(&file);
}

/* A place without a module applies to the network's own module; options that a module leaves out come from the file. */
PLACE_TEST(open_parts_of_a_placement_are_the_networks_own)
{
    static const struct {
        const char *known, *said, *completed;
    } cases[] = {{"se:divisor=8", "@after_branch:every:2", "se:divisor=8@after_branch:every:2"},
                 {"se:ratio=4@after_branch:0", "se", "se:ratio=4@after_branch:0"},
                 {"se:ratio=4@after_branch:0", "se:ratio=8", "se:ratio=8@after_branch:0"},
                 {"se:ratio=4@after_branch:0", "se@after_branch:1", "se:ratio=4@after_branch:1"},
                 {"se:ratio=4@after_branch:0", "eca", "eca"},
                 {"none", "se", "se"},
                 {"", "se", "se"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_option_values options = att_options_none();
        att_options_set_text(&options, "modules", cases[i].said);
        CHECK(p->context, att_placed_complete(p->context, cases[i].known, &options));
        assert_string_equal(att_options_text(&options, "modules"), cases[i].completed);
    }
    att_option_values options = att_options_none();
    att_options_set_text(&options, "modules", "@after_attn");
    assert_int_equal(att_placed_complete(p->context, "cb+cb_s@attn", &options), ATT_ERR_ARGUMENT);
    says(att_context_message(p->context), "the network has several; name the module");
    assert_true(att_placed_same("cb", "cb@after_attn:0"));
    assert_false(att_placed_same("cb", "cb@after_attn+cb_s"));
    assert_false(att_placed_same("cb@after_attn+cb_s", "cb"));
}

/* A module without a place goes to the first hook of its kind. */
PLACE_TEST(the_first_hook_that_fits_is_taken)
{
    static const att_module_hook mixed[] = {{"maps", "", ATT_ON_MAPS}, {"tokens", "", ATT_ON_TOKENS}};
    const att_hooks hooks = {mixed, 2};
    const att_stages stages = {.count = 1, .blocks = {2}};
    att_modules modules;
    CHECK(p->context, att_modules_parse(p->context, &hooks, &stages, "cb_s+se", &modules));
    assert_int_equal(modules.items[0].hook, 1);
    assert_int_equal(modules.items[1].hook, 0);
    /* The same module twice at one hook, in different blocks. */
    CHECK(p->context, att_modules_parse(p->context, &hooks, &stages, "cb_s@tokens:0+cb_s:init=1@tokens:1", &modules));
    assert_int_equal(modules.count, 2);
}

PLACE_TEST(wrong_placements_are_refused)
{
    static const char *const wrong[][2] = {
        {"cb_s@after_mpl", "did you mean \"@after_mlp\"?"},
        {"cb_s@nowhere", "only after_mlp, after_attn, attn, before_mlp, mid_mlp"},
        {"cbs", "did you mean \"cb\"?"},
        {"cb_s@after_mlp:3", "there is no block 3; the network has blocks 0 to 2"},
        {"cb+none", "\"none\" cannot be combined"},
        {"none@attn", "\"none\" cannot be combined"},
        {"cb+cb+cb+cb+cb", "at most 4"},
        {"@after_attn", "the network has none; name the module"},
        {"cb_s@", "no \"@\""},
        {"none+cb", "\"none\" cannot be combined"},
        {"cb_s+cb_s", "\"cb_s\" and \"cb_s\" cannot both be at \"@after_mlp\" of a block"},
        {"cb_s@after_attn:0-1+cb_s@after_attn:1-2", "cannot both be at \"@after_attn\" of a block"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        att_option_values options = with(wrong[i][0]);
        att_model *model = NULL;
        att_status status = att_model_create(p->context, "vit_tiny_patch16_224", &options, ATT_F32, &model);
        if (status != ATT_ERR_ARGUMENT && status != ATT_ERR_NOT_FOUND)
            fail_msg("%s: status %d", wrong[i][0], status);
        says(att_context_message(p->context), wrong[i][1]);
    }
}

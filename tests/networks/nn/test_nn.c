/* Layers with PyTorch's names, and modules by name. */
#include <attscope/nn.h>
#include <attscope/ops.h>
#include <attscope/plan.h>

#include "context.h"
#include "networks/nn/module.h"

SHARED_CONTEXT(threads, 0)

static att_graph *new_graph(void)
{
    att_graph *graph;
    assert_int_equal(att_graph_create(context, ATT_F64, &graph), ATT_OK);
    return graph;
}

static void has_parameter(const att_graph *graph, int index, const char *name, att_shape shape, att_init init,
                          bool decay)
{
    assert_true(index < att_graph_parameter_count(graph));
    att_parameter_info parameter = att_graph_parameter_at(graph, index);
    assert_string_equal(parameter.name, name);
    assert_true(att_shape_equal(parameter.shape, shape));
    assert_int_equal(parameter.init.rule, init.rule);
    assert_true(parameter.init.value == init.value);
    assert_int_equal(parameter.decay, decay);
}

TEST(layers_declare_timms_parameters)
{
    const att_init zero = {ATT_INIT_CONSTANT, 0}, one = {ATT_INIT_CONSTANT, 1}, normal = att_init_linear();
    att_graph *graph = new_graph();
    att_scope root = att_scope_root(graph), embed = att_scope_in(&root, "patch_embed");
    att_value image = att_graph_input(graph, "image", ATT_F64, att_shape_of(8, 8, 4));
    att_value x = att_nn_patch_embed(&embed, image, 4, 4, 6, true);
    att_scope block = att_scope_in(&root, "blocks.%d", 3), norm = att_scope_in(&block, "norm1");
    att_scope fc1 = att_scope_in(&block, "mlp.fc1");
    x = att_nn_linear(&fc1, att_nn_layer_norm(&norm, x, 1e-6), 12, true);
    assert_int_equal(att_graph_status(graph), ATT_OK);
    assert_true(att_shape_equal(att_value_shape(graph, x), att_shape_of(4, 12)));

    att_init patch = {ATT_INIT_UNIFORM, 0.125}; /* 1 / sqrt(4 4 4) */
    has_parameter(graph, 0, "patch_embed.proj.weight", att_shape_of(6, 4, 4, 4), patch, true);
    has_parameter(graph, 1, "patch_embed.proj.bias", att_shape_of(6), patch, false);
    has_parameter(graph, 2, "blocks.3.norm1.weight", att_shape_of(6), one, false);
    has_parameter(graph, 3, "blocks.3.norm1.bias", att_shape_of(6), zero, false);
    has_parameter(graph, 4, "blocks.3.mlp.fc1.weight", att_shape_of(12, 6), normal, true);
    has_parameter(graph, 5, "blocks.3.mlp.fc1.bias", att_shape_of(12), zero, false);
    assert_int_equal(att_graph_parameter_count(graph), 6);
    att_graph_destroy(&graph);
}

/* As PyTorch's ConvTranspose2d. */
TEST(a_transposed_convolution_declares_pytorchs_parameters)
{
    const att_nn_conv_transpose_options options = {.kernel = 4, .stride = 2, .padding = 1, .bias = true},
                                        plain = {.kernel = 2};
    const att_init uniform = {ATT_INIT_UNIFORM, 0.0625}; /* 1 / sqrt(16 4 4) */
    att_graph *graph = new_graph();
    att_scope root = att_scope_root(graph), up = att_scope_in(&root, "fpn1.0"), more = att_scope_in(&root, "fpn1.3");
    att_value x = att_graph_input(graph, "x", ATT_F64, att_shape_of(3, 5, 6));
    x = att_nn_conv_transpose(&up, x, 16, &options);
    assert_true(att_shape_equal(att_value_shape(graph, x), att_shape_of(6, 10, 16)));
    x = att_nn_conv_transpose(&more, x, 4, &plain);
    assert_int_equal(att_graph_status(graph), ATT_OK);
    assert_true(att_shape_equal(att_value_shape(graph, x), att_shape_of(7, 11, 4)));
    has_parameter(graph, 0, "fpn1.0.weight", att_shape_of(6, 16, 4, 4), uniform, true);
    has_parameter(graph, 1, "fpn1.0.bias", att_shape_of(16), uniform, false);
    has_parameter(graph, 2, "fpn1.3.weight", att_shape_of(16, 4, 2, 2), (att_init){ATT_INIT_UNIFORM, 0.25}, true);
    assert_int_equal(att_graph_parameter_count(graph), 3);
    att_graph_destroy(&graph);
}

/* Probes find the attention op itself under "blocks.*.attn", not its linear layers. */
TEST(attention_has_the_name_of_its_scope)
{
    att_graph *graph = new_graph();
    att_scope root = att_scope_root(graph);
    att_value x = att_graph_input(graph, "x", ATT_F64, att_shape_of(4, 6));
    for (int i = 0; i < 2; i++) {
        att_scope attn = att_scope_in(&root, "blocks.%d.attn", i), in = att_scope_in(&attn, "qkv");
        att_value qkv = att_nn_linear(&in, x, 18, true);
        att_scope_enter(&attn);
        x = att_attention(graph, qkv, ATT_NONE, ATT_NONE, &(att_attention_options){.heads = 2});
    }
    assert_int_equal(att_graph_probe_attention_stats(graph, "blocks.*.attn"), ATT_OK);
    assert_int_equal(att_graph_status(graph), ATT_OK);
    assert_int_equal(att_graph_probe_attention_stats(graph, "blocks.*.attn.qkv"), ATT_ERR_NOT_FOUND);
    att_graph_destroy(&graph);
}

TEST(long_names_fail_the_graph)
{
    att_graph *graph = new_graph();
    att_scope scope = att_scope_root(graph);
    for (int i = 0; i < 20; i++)
        scope = att_scope_in(&scope, "%s", "ten_bytes_");
    assert_int_equal(att_graph_status(graph), ATT_ERR_ARGUMENT);
    att_graph_destroy(&graph);
    graph = new_graph();
    scope = att_scope_root(graph);
    char name[300];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    att_scope_in(&scope, "%s", name);
    assert_int_equal(att_graph_status(graph), ATT_ERR_ARGUMENT);
    att_graph_destroy(&graph);
}

/* att_scope_in() refuses a component that is too long, and a path that becomes too long: a path has at most 127 bytes,
 * and so has a name. */
TEST(scope_paths_end_at_their_limit)
{
    char longest[128], longer[129];
    memset(longest, 'x', 127), longest[127] = 0;
    memset(longer, 'x', 128), longer[128] = 0;
    const struct path {
        const char *first, *second;
        bool fits;
    } paths[] = {{longest, NULL, true},      {longer, NULL, false},  {"ab", longest + 3, true},
                 {"ab", longest + 2, false}, {"ab", longest, false}, {"ab", longer, false}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        att_graph *graph = new_graph();
        att_scope root = att_scope_root(graph), scope = att_scope_in(&root, "%s", paths[i].first);
        if (paths[i].second)
            scope = att_scope_in(&scope, "%s", paths[i].second);
        assert_int_equal(att_graph_status(graph), paths[i].fits ? ATT_OK : ATT_ERR_ARGUMENT);
        if (paths[i].fits)
            assert_int_equal(strlen(scope.path), 127);
        else
            assert_message(context, "is longer than 127 bytes");
        att_graph_destroy(&graph);
    }
}

/* As the box head of a detector, which its loss builds for other boxes. */
TEST(a_part_can_be_built_again_with_its_parameters)
{
    att_graph *graph = new_graph();
    att_scope root = att_scope_root(graph), again = root;
    again.again = true;
    att_scope first = att_scope_in(&root, "fc"), second = att_scope_in(&again, "fc");
    att_scope norm = att_scope_in(&root, "norm"), same_norm = att_scope_in(&again, "norm");
    att_value x = att_graph_input(graph, "x", ATT_F64, att_shape_of(5, 8));
    att_value y = att_graph_input(graph, "y", ATT_F64, att_shape_of(9, 8));
    att_nn_batch_norm(&norm, att_nn_linear(&first, x, 4, true), 1);
    const int count = att_graph_parameter_count(graph);
    att_value z = att_nn_batch_norm(&same_norm, att_nn_linear(&second, y, 4, true), 1);
    assert_int_equal(att_graph_status(graph), ATT_OK);
    assert_true(att_shape_equal(att_value_shape(graph, z), att_shape_of(9, 4)));
    assert_int_equal(att_graph_parameter_count(graph), count);
    assert_int_equal(att_nn_linear(&second, y, 3, true), ATT_NONE);
    assert_int_equal(att_graph_status(graph), ATT_ERR_MISMATCH);
    assert_message(context, "the parameter \"fc.weight\" has the shape [4, 8], but is read as [3, 8]");
    att_graph_destroy(&graph);
    graph = new_graph();
    second.graph = graph;
    att_nn_linear(&second, att_graph_input(graph, "x", ATT_F64, att_shape_of(5, 8)), 4, true);
    assert_int_equal(att_graph_status(graph), ATT_ERR_NOT_FOUND);
    assert_message(context, "there is no parameter \"fc.weight\"");
    att_graph_destroy(&graph);
}

TEST(modules_are_parsed_from_text)
{
    att_module_choice choice = {0};
    assert_int_equal(att_module_parse(context, "none", &choice), ATT_OK);
    assert_null(choice.module);
    assert_int_equal(att_module_parse(context, "cb", &choice), ATT_OK);
    assert_string_equal(choice.module->name, "cb");
    assert_int_equal(att_module_parse(context, "cb_s:init=0.25", &choice), ATT_OK);
    assert_string_equal(choice.module->name, "cb_s");
    assert_true(choice.values[0] == 0.25);
    assert_int_equal(att_module_parse(context, "cb_s", &choice), ATT_OK);
    assert_true(choice.values[0] == 0);

    att_module_choice before = choice;
    static const struct {
        const char *text, *words;
        att_status status;
    } wrong[] = {
        {"cbb", "did you mean \"cb\"", ATT_ERR_NOT_FOUND},
        {"", "module", ATT_ERR_NOT_FOUND},
        {"cb_s:int=1", "did you mean \"init\"", ATT_ERR_ARGUMENT},
        {"cb:0-5", "blocks are written after a place: cb@PLACE:0-5", ATT_ERR_ARGUMENT},
        {"uniform_head:replace", "did you mean \"how=replace\"?", ATT_ERR_ARGUMENT},
        {"cb:init=1", "module cb has no option \"init\", only pool", ATT_ERR_ARGUMENT},
        {"se:bogus=1", "module se has no option \"bogus\", only ratio, bias, divisor, hidden", ATT_ERR_ARGUMENT},
        {"se:ratio=8,bias=0,ratio=4", "module se: ratio is given twice", ATT_ERR_ARGUMENT},
        {"cb_s:init", "option=value", ATT_ERR_ARGUMENT},
        {"cb_s:init=x", "a number", ATT_ERR_ARGUMENT},
        {"cb_s:init=nan", "a number", ATT_ERR_ARGUMENT},
        {"cb_s:init=11", "-10..10", ATT_ERR_ARGUMENT},
        {"cb_s:init=1,", "option=value", ATT_ERR_ARGUMENT},
        {"none:init=1", "no options", ATT_ERR_ARGUMENT}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_fails(context, att_module_parse(context, wrong[i].text, &choice), wrong[i].status, wrong[i].words);
    }
    assert_memory_equal(&before, &choice, sizeof choice);
    char longer[200] = "cb_s:init=";
    memset(longer + 10, '0', 150);
    assert_int_equal(att_module_parse(context, longer, &choice), ATT_ERR_ARGUMENT);
}

TEST(every_module_explains_itself)
{
    for (int i = 0; i < att_module_count(NULL); i++) {
        const att_module *module = att_module_at(NULL, i);
        assert_true(module->name[0] && module->meaning[0] && module->scope[0] && module->apply);
        for (int o = 0; o < module->option_count; o++) {
            const att_detail *option = &module->options[o];
            assert_true(option->name[0] && option->meaning[0]);
            assert_true(option->low <= option->start && option->start <= option->high);
        }
        att_module_choice choice;
        assert_int_equal(att_module_parse(context, module->name, &choice), ATT_OK);
        assert_ptr_equal(choice.module, module);
    }
}

/* Checks the output of a module for two tokens of two channels, and the name of its parameter. */
static void apply(const char *text, const char *parameter, const double expected[4])
{
    att_graph *graph = new_graph();
    att_scope root = att_scope_root(graph), mlp = att_scope_in(&root, "blocks.0.mlp");
    att_value x = att_graph_input(graph, "x", ATT_F64, att_shape_of(2, 2));
    att_module_choice choice;
    assert_int_equal(att_module_parse(context, text, &choice), ATT_OK);
    const att_module_site site = {.branch = x, .identity = x, .input = ATT_NONE, .prefix = 1};
    att_graph_output(graph, "y", att_module_apply(&choice, &mlp, &site));
    att_weights *weights;
    assert_int_equal(att_weights_create(graph, "cpu", &weights), ATT_OK);
    assert_int_equal(att_weights_initialise(weights, 1), ATT_OK);
    if (parameter)
        assert_int_equal(att_weights_find(weights, parameter), 0);
    else
        assert_int_equal(att_weights_count(weights), 0);
    att_plan_options options = att_plan_options_defaults();
    options.backend = "ref";
    att_plan *plan;
    att_session *session;
    assert_int_equal(att_plan_compile(graph, &options, &plan), ATT_OK);
    assert_int_equal(att_session_create(plan, weights, 1, &session), ATT_OK);
    const double in[4] = {1, 2, 3, 8};
    double out[4];
    assert_int_equal(att_session_bind(session, "x", in), ATT_OK);
    assert_int_equal(att_session_run(session, 1), ATT_OK);
    assert_int_equal(att_session_output(session, "y", 0, 1, out), ATT_OK);
    for (int i = 0; i < 4; i++)
        assert_true(out[i] == expected[i]);
    att_session_destroy(&session);
    att_plan_destroy(&plan);
    att_weights_destroy(&weights);
    att_graph_destroy(&graph);
}

TEST(context_broadcasting_follows_its_formula)
{
    /* means over tokens: 2 and 5 */
    apply("cb", NULL, (const double[]){1.5, 3.5, 2.5, 6.5});
    apply("cb_s", "blocks.0.mlp.cb.weight", (const double[]){1, 2, 3, 8});
    apply("cb_s:init=0.5", "blocks.0.mlp.cb.weight", (const double[]){2, 4.5, 4, 10.5});
    /* maxima: 3 and 8; the class token: 1 and 2 */
    apply("cb:pool=max", NULL, (const double[]){2, 5, 3, 8});
    apply("cb:pool=class", NULL, (const double[]){1, 2, 2, 5});
    apply("cb_s:pool=max,init=0.5", "blocks.0.mlp.cb.weight", (const double[]){2.5, 6, 4.5, 12});
    apply("cb_s:pool=class,init=0.5", "blocks.0.mlp.cb.weight", (const double[]){1.5, 3, 3.5, 9});
}

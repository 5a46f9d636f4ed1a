/* The variants of uniform attention: losses and gradients against PyTorch in f64 (tools/goldens/uniform.py), numbers of
 * parameters, recognition of files, and wrong uses. */
#include <attscope/update.h>

#include "engine/graph/graph.h"
#include "engine/ops/drop.h"
#include "networks/models/checkpoints.h"
#include "networks/models/loss.h"

enum { BATCH = 8, CLASSES = 10, SIDE = 28, PIXELS = SIDE * SIDE, NORMS = 64 };
static const char VIT[] = "vit_tiny_patch16_224";

typedef struct golden {
    char modules[128], extra_layer[8];
    double loss, norms[NORMS];
    char names[NORMS][64];
    int count;
} golden;

/* Reads the next case; false at the end. */
static bool golden_read(FILE *file, golden *g)
{
    g->count = 0;
    if (fscanf(file, " case %127s %7s loss %lf", g->modules, g->extra_layer, &g->loss) != 3)
        return false;
    while (fscanf(file, " norm %63s %lf", g->names[g->count], &g->norms[g->count]) == 2)
        assert_true(++g->count < NORMS);
    return true;
}

static att_option_values tiny(const char *modules, const char *extra_layer)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", SIDE), att_options_set(&options, "in_chans", 1);
    att_options_set(&options, "num_classes", CLASSES), att_options_set(&options, "patch_size", 7);
    att_options_set(&options, "embed_dim", 32), att_options_set(&options, "depth", 2);
    att_options_set(&options, "num_heads", 4);
    att_options_set_text(&options, "modules", modules);
    att_options_set_text(&options, "extra_layer", extra_layer);
    return options;
}

/* --- against PyTorch ---------------------------------------------------------------------------------------------- */

typedef struct numbers {
    const char *backend;
    att_dtype dtype;
    att_precision precision;
    double loss_tolerance, norm_tolerance;
} numbers;

static double value_of(att_dtype dtype, const void *values, int64_t i)
{
    return dtype == ATT_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static void bind_batch(att_context *context, att_session *session, att_dtype dtype)
{
    static double wide[BATCH * PIXELS];
    static float narrow[BATCH * PIXELS];
    static int32_t labels[BATCH];
    for (uint32_t i = 0; i < BATCH * PIXELS; i++)
        wide[i] = narrow[i] = (float)(4 * formula("image", i));
    for (uint32_t i = 0; i < BATCH; i++)
        labels[i] = (int32_t)floor((formula("label", i) + 0.5) * CLASSES);
    CHECK(context, att_session_bind(session, "image", dtype == ATT_F64 ? (const void *)wide : (const void *)narrow));
    CHECK(context, att_session_bind(session, "target", labels));
}

/* Returns the norm of a parameter's gradient, without the key third of qkv.bias. */
static double gradient_norm(att_context *context, const att_gradient *gradient, const att_parameter_info *parameter,
                            int index, att_dtype dtype)
{
    int64_t count = att_shape_count(parameter->shape);
    void *values = malloc((size_t)count * sizeof(double));
    CHECK(context, att_gradient_get(gradient, index, values, count));
    bool skips_key = strstr(parameter->name, "qkv.bias") != NULL;
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        if (!skips_key || i < count / 3 || i >= 2 * count / 3)
            sum += value_of(dtype, values, i) * value_of(dtype, values, i);
    free(values);
    return sqrt(sum);
}

/* Written as not (error <= tolerance), so that NaN fails. */
static void check_close(const golden *g, const char *what, double value, double expected, double tolerance,
                        double *worst)
{
    double error = fabs(value - expected) / fabs(expected);
    if (!(error <= tolerance))
        fail_msg("%s %s: %s is %.12g instead of %.12g: relative error %g", g->modules, g->extra_layer, what, value,
                 expected, error);
    *worst = fmax(*worst, error);
}

static void compare(att_context *context, const golden *g, const numbers *how, double worst[2])
{
    att_option_values options = tiny(g->modules, g->extra_layer);
    att_plan_options plan_options = att_plan_options_defaults();
    plan_options.purpose = ATT_TRAIN, plan_options.backend = how->backend, plan_options.precision = how->precision;
    att_model *model;
    att_weights *weights;
    att_plan *plan;
    att_session *session;
    att_gradient *gradient;
    CHECK(context, att_model_create(context, VIT, &options, how->dtype, &model));
    loss_add(model, 0);
    CHECK(context, att_weights_create(att_model_graph(model), "cpu", &weights));
    formula_fill(context, att_model_graph(model), weights);
    CHECK(context, att_plan_compile(att_model_graph(model), &plan_options, &plan));
    CHECK(context, att_session_create(plan, weights, BATCH, &session));
    CHECK(context, att_gradient_create(weights, &gradient));
    bind_batch(context, session, how->dtype);
    CHECK(context, att_session_accumulate(session, gradient, BATCH, 1.0 / BATCH, 1, 0, 0));
    double losses[BATCH], loss = 0;
    CHECK(context, att_session_output(session, "loss", 0, BATCH, losses));
    for (int i = 0; i < BATCH; i++)
        loss += value_of(how->dtype, losses, i) / BATCH;
    check_close(g, "the loss", loss, g->loss, how->loss_tolerance, &worst[0]);
    if (att_weights_count(weights) != g->count)
        fail_msg("%s %s: %d parameters instead of %d", g->modules, g->extra_layer, att_weights_count(weights),
                 g->count);
    for (int i = 0; i < g->count; i++) {
        int index = att_weights_find(weights, g->names[i]);
        if (index < 0)
            fail_msg("%s: there is no %s", g->modules, g->names[i]);
        att_parameter_info parameter = att_weights_at(weights, index);
        check_close(g, g->names[i], gradient_norm(context, gradient, &parameter, index, how->dtype), g->norms[i],
                    how->norm_tolerance, &worst[1]);
    }
    att_gradient_destroy(&gradient);
    att_session_destroy(&session);
    att_plan_destroy(&plan);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
}

static void compare_all(att_context *context, const numbers *how)
{
    FILE *file = golden_open("uniform.txt");
    golden g;
    double worst[2] = {0};
    int cases = 0;
    for (; golden_read(file, &g); cases++)
        compare(context, &g, how, worst);
    fclose(file);
    assert_true(cases >= 20);
    print_message("%s %s: relative errors of %d cases up to %.2g (loss), %.2g (gradient norms)\n", how->backend,
                  att_dtype_name(how->dtype), cases, worst[0], worst[1]);
}

/* Measured: 1.9e-12 and 4.8e-9, the rounding of the goldens' 12 and 9 digits. */
PLACE_TEST(variants_equal_pytorchs_in_f64)
{
    compare_all(p->context, &(numbers){"ref", ATT_F64, ATT_FULL, 1e-11, 1e-8});
}

/* Measured: 7.2e-8 and 5.3e-7. */
PLACE_TEST(variants_equal_pytorchs_in_f32)
{
    compare_all(p->context, &(numbers){"cpu", ATT_F32, ATT_FULL, 1e-6, 5e-6});
}

/* --- parameters --------------------------------------------------------------------------------------------------- */

static int64_t parameters(const place *p, const char *name, const char *modules, const char *extra_layer)
{
    att_option_values options = att_options_none();
    att_options_set_text(&options, "modules", modules);
    att_options_set_text(&options, "extra_layer", extra_layer);
    att_model *model = make(p, name, &options);
    int64_t count = att_graph_parameter_elements(att_model_graph(model));
    att_model_destroy(&model);
    return count;
}

/* The figures of the paper: CB_S adds 4,608 parameters to ViT-S. d = 64 is the width of a head. */
PLACE_TEST(variants_have_the_papers_parameters)
{
    static const char vit[] = "vit_small_patch16_224";
    enum { C = 384, D = 64, BLOCKS = 12 };
    int64_t plain = parameters(p, vit, "none", "none");
    assert_int_equal(parameters(p, vit, "cb", "none"), plain);
    assert_int_equal(parameters(p, vit, "cb@mid_mlp", "none"), plain);
    assert_int_equal(parameters(p, vit, "cb_s", "none") - plain, 4608);
    assert_int_equal(parameters(p, vit, "cb_s@mid_mlp", "none") - plain, 4 * 4608);
    assert_int_equal(parameters(p, vit, "uniform_head", "none") - plain, BLOCKS * (2 * C * D + D));
    assert_int_equal(plain - parameters(p, vit, "uniform_head:how=replace", "none"), BLOCKS * (2 * C * D + 2 * D));
    assert_int_equal(plain - parameters(p, vit, "uniform_head:how=compensate", "none"), BLOCKS * D);
    assert_int_equal(plain - parameters(p, vit, "uniform_head:how=replace@heads:3", "none"), 2 * C * D + 2 * D);
    assert_int_equal(parameters(p, vit, "none", "attn") - plain, 4 * C * C + 6 * C);
    assert_int_equal(parameters(p, vit, "none", "mlp") - plain, 4 * C * C + 5 * C);
}

/* vit_base_patch16_224_miil has queries, keys and values without biases. */
PLACE_TEST(uniform_heads_have_biases_as_the_other_heads)
{
    static const char unbiased[] = "vit_base_patch16_224_miil";
    enum { C = 768, D = 64, BLOCKS = 12 };
    assert_int_equal(parameters(p, unbiased, "uniform_head", "none") - parameters(p, unbiased, "none", "none"),
                     BLOCKS * 2 * C * D);
}

/* Drop path rates rise linearly to that of the last layer, which may be the extra one. */
PLACE_TEST(drop_path_rises_to_the_extra_layer)
{
    static const struct {
        const char *extra_layer;
        int count;
        double rates[4]; /* of the branches with a rate above 0 */
    } cases[] = {{"none", 2, {0.3, 0.3}}, {"attn", 3, {0.15, 0.15, 0.3}}, {"mlp", 3, {0.15, 0.15, 0.3}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_option_values options = tiny("none", cases[i].extra_layer);
        att_options_set(&options, "drop_path_rate", 0.3);
        att_model *model = make(p, VIT, &options);
        const att_graph *graph = att_model_graph(model);
        int count = 0;
        for (int n = 0; n < graph->nodes.count; n++)
            if (strcmp(graph->nodes.items[n].op->name, "drop_path") == 0) {
                assert_in_range(count, 0, 3);
                assert_float_equal(ATT_ATTRS(&graph->nodes.items[n], drop)->rate, cases[i].rates[count], 1e-12);
                count++;
            }
        assert_int_equal(count, cases[i].count);
        att_model_destroy(&model);
    }
}

/* --- files -------------------------------------------------------------------------------------------------------- */

PLACE_TEST(files_are_identified)
{
    static const char *const all[][2] = {
        {"cb_s@before_mlp", "none"},
        {"cb_s@mid_mlp:1", "none"},
        {"cb_s@before_attn", "attn"},
        {"cb_s@stream_after_attn:0", "none"},
        {"cb_s+cb_s@stream_after_mlp", "mlp"},
        {"se:ratio=8", "none"},
        {"cb_s+se:ratio=8", "none"},
        {"se:ratio=4@mid_mlp:0", "none"},
        {"uniform_head", "none"},
        {"uniform_head@heads:1", "attn"},
        {"uniform_head:how=replace", "none"},
        {"uniform_head:how=compensate@heads:0", "mlp"},
        {"none", "attn"},
        {"none", "mlp"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int ours = 0; ours < 2; ours++) {
            att_option_values options = tiny(all[i][0], all[i][1]), flags = att_options_none();
            if (!strstr(all[i][0], "uniform"))
                att_options_set(&flags, "num_heads", 4);
            att_identity found;
            write_model(p, VIT, &options, ours);
            CHECK(p->context, identify(p, VIT, &flags, &found));
            const char *modules = att_options_text(&found.options, "modules");
            assert_string_equal(*modules ? modules : "none", all[i][0]);
            assert_string_equal(att_options_text(&found.options, "extra_layer"), all[i][1]);
            assert_int_equal(att_options_number(&found.options, "depth", 0), 2);
            assert_int_equal(att_options_number(&found.options, "num_heads", 0), 4);
        }
}

/* --- wrong uses --------------------------------------------------------------------------------------------------- */

PLACE_TEST(wrong_uses_are_refused)
{
    static const struct {
        const char *modules, *words;
        int heads;
        bool class_token;
    } wrong[] = {
        {"cb:pool=class", "blocks.0.mlp.cb: pool=class needs a class token, and this network has none", 4, false},
        {"cb_s:pool=class@before_attn:1", "blocks.1.norm1.cb: pool=class needs a class token", 4, false},
        {"cb:pool=sum", "pool cannot be \"sum\", only mean, max, class", 4, true},
        {"cb@heads", "module \"cb\" works on tokens [N, C], and \"@heads\" has heads of attention", 4, true},
        {"uniform_head@after_attn", "module \"uniform_head\" works on heads of attention", 4, true},
        {"uniform_head:how=replace", "in block 0 they replace 1 of num_heads 1; at least one head must remain", 1,
         true},
        {"cb+", "modules \"cb+\": the name of a module is missing", 4, true},
        {"cb+@after_attn:0", "modules \"cb+@after_attn:0\": the name of a module is missing", 4, true},
        {"cb@attn:1+uniform_head", "block 1 has a module in place of its attention (@attn)", 4, true},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        att_option_values options = tiny(wrong[i].modules, "none");
        att_options_set(&options, "num_heads", wrong[i].heads);
        att_options_set(&options, "class_token", wrong[i].class_token);
        if (!wrong[i].class_token)
            att_options_set_text(&options, "global_pool", "avg");
        att_model *model = NULL;
        att_status status = att_model_create(p->context, VIT, &options, ATT_F32, &model);
        assert_int_equal(status, ATT_ERR_ARGUMENT);
        says(att_context_message(p->context), wrong[i].words);
    }
    att_option_values options = tiny("none", "both");
    att_model *model = NULL;
    assert_int_equal(att_model_create(p->context, VIT, &options, ATT_F32, &model), ATT_ERR_ARGUMENT);
    says(att_context_message(p->context), "extra_layer");
}

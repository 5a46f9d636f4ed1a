/* The first updates of small networks against PyTorch in f64 (tools/goldens/training.py). */
#include <attscope/update.h>

#include <attscope/task.h>

#include "context.h"
#include "networks/models/fixture.h"
#include "sanitized.h"

SHARED_CONTEXT(threads, 0)

enum { STEPS = 20, BATCH = 8, CLASSES = 10, SIDE = 28, PIXELS = SIDE * SIDE, NORMS = 128 };

typedef struct golden {
    double losses[STEPS], norms[NORMS];
    char names[NORMS][64];
    int loss_count, norm_count;
} golden;

static golden golden_read(const char *name)
{
    char file_name[96], word[16];
    snprintf(file_name, sizeof file_name, "training_%s.txt", name);
    FILE *file = golden_open(file_name);
    golden g = {0};
    while (fscanf(file, "%15s", word) == 1)
        if (strcmp(word, "loss") == 0)
            g.loss_count += fscanf(file, "%lf", &g.losses[g.loss_count]);
        else if (fscanf(file, "%63s %lf", g.names[g.norm_count], &g.norms[g.norm_count]) == 2)
            g.norm_count++;
    fclose(file);
    assert_true(g.loss_count > 0);
    assert_true(g.norm_count > 0);
    return g;
}

typedef struct network {
    att_context *context;
    const char *name;
    att_model *model;
    att_weights *weights;
    att_plan *plan;
    att_session *session;
    att_gradient *gradient;
    att_update *update;
    att_dtype dtype;
    const char *optimizer;
} network;

static bool is_taught(const att_option_values *loss)
{
    return att_options_find(loss, "distillation_type");
}

/* loss: options of classification; a distillation_type means that there is a teacher. */
static void network_create(network *n, const att_option_values *options, const att_option_values *loss,
                           const char *backend)
{
    const att_task_setup setup = {.classes = CLASSES, .taught = is_taught(loss), .options = loss};
    att_plan_options plan = att_plan_options_defaults();
    plan.purpose = ATT_TRAIN, plan.backend = backend, plan.lanes = 2;
    CHECK(n->context, att_model_create(n->context, n->name, options, n->dtype, &n->model));
    CHECK(n->context, att_task_add_loss("classification", att_model_graph(n->model), &setup));
    CHECK(n->context, att_weights_create(att_model_graph(n->model), "cpu", &n->weights));
    formula_fill(n->context, att_model_graph(n->model), n->weights);
    CHECK(n->context, att_plan_compile(att_model_graph(n->model), &plan, &n->plan));
    CHECK(n->context, att_session_create(n->plan, n->weights, BATCH, &n->session));
    att_update_options update = {.backend = backend, .optimizer = n->optimizer};
    CHECK(n->context, att_gradient_create(n->weights, &n->gradient));
    CHECK(n->context, att_update_create(n->gradient, &update, &n->update));
}

static void network_destroy(network *n)
{
    att_update_destroy(&n->update);
    att_gradient_destroy(&n->gradient);
    att_session_destroy(&n->session);
    att_plan_destroy(&n->plan);
    att_weights_destroy(&n->weights);
    att_model_destroy(&n->model);
}

static double value_of(const network *n, const void *values, int64_t i)
{
    return n->dtype == ATT_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

/* Binds the class or the logits of a teacher, whichever the loss reads. */
static void bind_teacher(const network *n, const att_option_values *loss, int step)
{
    static double wide[BATCH * CLASSES];
    static float narrow[BATCH * CLASSES];
    static int32_t classes[BATCH];
    for (uint32_t i = 0; i < BATCH * CLASSES; i++) {
        wide[i] = narrow[i] = (float)(6 * formula("teacher", (uint32_t)step * BATCH * CLASSES + i));
        if (i % CLASSES == 0 || narrow[i] > narrow[i / CLASSES * CLASSES + (uint32_t)classes[i / CLASSES]])
            classes[i / CLASSES] = (int32_t)(i % CLASSES);
    }
    if (strcmp(att_options_text(loss, "distillation_type"), "hard") == 0)
        CHECK(n->context, att_session_bind(n->session, "teacher_class", classes));
    else
        CHECK(n->context, att_session_bind(n->session, "teacher_logits",
                                           n->dtype == ATT_F64 ? (const void *)wide : (const void *)narrow));
}

/* Runs forward and backward on the images of one step and returns the mean loss. */
static double accumulate(const network *n, const att_option_values *loss, int step)
{
    static double wide[BATCH * PIXELS];
    static float narrow[BATCH * PIXELS];
    int32_t labels[BATCH];
    for (uint32_t i = 0; i < BATCH * PIXELS; i++)
        wide[i] = narrow[i] = (float)(4 * formula("image", (uint32_t)step * BATCH * PIXELS + i));
    for (uint32_t i = 0; i < BATCH; i++)
        labels[i] = (int32_t)floor((formula("label", (uint32_t)step * BATCH + i) + 0.5) * CLASSES);
    const void *images = n->dtype == ATT_F64 ? (const void *)wide : (const void *)narrow;
    CHECK(n->context, att_session_bind(n->session, "image", images));
    CHECK(n->context, att_session_bind(n->session, "target", labels));
    if (is_taught(loss))
        bind_teacher(n, loss, step);
    att_gradient_begin(n->gradient);
    CHECK(n->context, att_session_accumulate(n->session, n->gradient, BATCH, 1.0 / BATCH, 1, step, 0));
    double losses[BATCH], sum = 0;
    CHECK(n->context, att_session_output(n->session, "loss", 0, BATCH, losses));
    for (int i = 0; i < BATCH; i++)
        sum += value_of(n, losses, i);
    return sum / BATCH;
}

/* Returns the norm of a parameter's gradient, without the key third of qkv.bias. */
static double gradient_norm(const network *n, int index)
{
    att_parameter_info parameter = att_weights_at(n->weights, index);
    int64_t count = att_shape_count(parameter.shape);
    void *gradient = malloc((size_t)count * sizeof(double));
    CHECK(n->context, att_gradient_get(n->gradient, index, gradient, count));
    bool skips_key = strstr(parameter.name, "qkv.bias") != NULL;
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        if (!skips_key || i < count / 3 || i >= 2 * count / 3)
            sum += value_of(n, gradient, i) * value_of(n, gradient, i);
    free(gradient);
    return sqrt(sum);
}

static double relative(double value, double expected)
{
    return fabs(value - expected) / fabs(expected);
}

/* Written as not (error <= tolerance), so that NaN fails. */
static void check_close(const char *what, double value, double expected, double tolerance, double *worst)
{
    double error = relative(value, expected);
    if (!(error <= tolerance))
        fail_msg("%s is %.12g instead of %.12g: relative error %g", what, value, expected, error);
    *worst = error > *worst ? error : *worst;
}

/* The gradient of differential attention's lambda is a sum over all heads and tokens that nearly cancels; measured in
 * f32: 6.3e-5. */
/* Whether the gradient is a sum of terms that nearly cancel. */
static bool cancels(const char *name)
{
    return strstr(name, ".lambda_") || strstr(name, ".logit_scale");
}

static void check_norms(const network *n, const golden *g, double tolerance, double *worst)
{
    assert_int_equal(att_weights_count(n->weights), g->norm_count);
    for (int i = 0; i < g->norm_count; i++) {
        int index = att_weights_find(n->weights, g->names[i]);
        assert_true(index >= 0);
        if (g->norms[i] == 0) /* 0 but for rounding; measured: f64 1.3e-17, f32 4.8e-9 */
            assert_true(gradient_norm(n, index) <= tolerance);
        else
            check_close(g->names[i], gradient_norm(n, index), g->norms[i],
                        cancels(g->names[i]) ? 100 * tolerance : tolerance, worst);
    }
}

typedef struct numbers {
    const char *backend;
    att_dtype dtype;
    double loss_tolerance, norm_tolerance;
} numbers;

/* Measured: f64 ref 2.4e-12 and 4.2e-9 (the rounding of the goldens' 12 and 9 digits); f32 cpu 3.4e-6 and 3.3e-7, the
 * largest of three tiers and two compilers. */
static const numbers f64_ref = {"ref", ATT_F64, 1e-11, 1e-8}, f32_cpu = {"cpu", ATT_F32, 2e-5, 2e-6};

static void train_with_loss(const char *network_name, const char *name, const att_option_values *options,
                            const att_option_values *loss, const char *optimizer, const numbers *how)
{
    golden g = golden_read(name);
    network n = {.context = context, .name = network_name, .dtype = how->dtype, .optimizer = optimizer};
    network_create(&n, options, loss, how->backend);
    bool adam = strcmp(optimizer, "adamw") == 0;
    att_hyper hyper = {.lr = adam ? 1e-3 : 0.05,
                       .weight_decay = 0.05,
                       .momentum = 0.9,
                       .nesterov = true,
                       .beta1 = 0.9,
                       .beta2 = 0.999,
                       .eps = 1e-8};
    double worst_loss = 0, worst_norm = 0;
    for (int step = 0; step < g.loss_count; step++) {
        char what[32];
        snprintf(what, sizeof what, "loss %d", step);
        check_close(what, accumulate(&n, loss, step), g.losses[step], how->loss_tolerance, &worst_loss);
        must(att_update_reduce(n.update, NULL));
        if (step == 0)
            check_norms(&n, &g, how->norm_tolerance, &worst_norm);
        hyper.update = step + 1;
        must(att_update_apply(n.update, &hyper));
    }
    print_message("%s, %s %s: relative errors up to %.2g (loss), %.2g (gradient norms)\n", name, how->backend,
                  att_dtype_name(how->dtype), worst_loss, worst_norm);
    network_destroy(&n);
}

static void train(const char *network_name, const char *name, const att_option_values *options, double smoothing,
                  const char *optimizer, const numbers *how)
{
    att_option_values loss = att_options_none();
    att_options_set(&loss, "smoothing", smoothing);
    train_with_loss(network_name, name, options, &loss, optimizer, how);
}

static void train_taught(const char *name, const char *type, double alpha, double tau, const att_option_values *options,
                         const char *optimizer, const numbers *how)
{
    att_option_values loss = att_options_none();
    att_options_set_text(&loss, "distillation_type", type);
    att_options_set(&loss, "distillation_alpha", alpha);
    att_options_set(&loss, "distillation_tau", tau);
    train_with_loss("vit_tiny_patch16_224", name, options, &loss, optimizer, how);
}

static att_option_values small(void)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", SIDE), att_options_set(&options, "in_chans", 1),
        att_options_set(&options, "num_classes", CLASSES), att_options_set(&options, "patch_size", 7);
    att_options_set(&options, "embed_dim", 32), att_options_set(&options, "depth", 2),
        att_options_set(&options, "num_heads", 2);
    return options;
}

/* An option of a ViT: a text, or a number. */
typedef struct setting {
    const char *key, *text;
    double number;
} setting;

/* In the order of VIT_CASES in training.py. */
static const struct vit_case {
    const char *name;
    setting settings[10];
} vit_cases[] = {
    {"registers",
     {{"class_token", NULL, 0},
      {"global_pool", "avg", 0},
      {"reg_tokens", NULL, 3},
      {"embed_class", NULL, 0},
      {"init_values", NULL, 0.1}}},
    {"embedded_registers", {{"reg_tokens", NULL, 2}}},
    {"clip", {{"pre_norm", NULL, 1}, {"norm_eps", NULL, 1e-3}, {"act_layer", "quick_gelu", 0}}},
    {"aim",
     {{"class_token", NULL, 0},
      {"global_pool", "avg", 0},
      {"fc_norm", NULL, 0},
      {"qkv_bias", NULL, 0},
      {"proj_bias", NULL, 0},
      {"norm_layer", "rmsnorm", 0},
      {"embed_norm_layer", "rmsnorm", 0},
      {"act_layer", "silu", 0},
      {"mlp_layer", "swiglu", 0},
      {"mlp_ratio", NULL, 2}}},
    {"packed", {{"act_layer", "silu", 0}, {"mlp_layer", "swiglu_packed", 0}, {"mlp_ratio", NULL, 3}}},
    {"scale_norms",
     {{"scale_attn_norm", NULL, 1}, {"scale_mlp_norm", NULL, 1}, {"qk_norm", NULL, 1}, {"global_pool", "avg", 0}}},
    {"map",
     {{"class_token", NULL, 0}, {"reg_tokens", NULL, 1}, {"global_pool", "map", 0}, {"act_layer", "gelu_tanh", 0}}},
    {"map_prefix",
     {{"global_pool", "map", 0}, {"pool_include_prefix", NULL, 1}, {"pos_embed", "none", 0}, {"act_layer", "relu", 0}}},
    {"max", {{"class_token", NULL, 0}, {"global_pool", "avgmax", 0}}},
    {"post_norm", {{"class_token", NULL, 0}, {"global_pool", "avg", 0}, {"block_fn", "ResPostBlock", 0}}},
    {"things", {{"block_fn", "ParallelThingsBlock", 0}, {"init_values", NULL, 0.1}}},
    {"scaling",
     {{"block_fn", "ParallelScalingBlock", 0},
      {"norm_layer", "rmsnorm", 0},
      {"qk_norm", NULL, 1},
      {"qkv_bias", NULL, 0},
      {"init_values", NULL, 0.1}}},
    {"scaling_bias", {{"block_fn", "ParallelScalingBlock", 0}}},
    {"diff", {{"attn_layer", "diff", 0}, {"scale_attn_norm", NULL, 1}}},
    {"diff_scaling", {{"block_fn", "DiffParallelScalingBlock", 0}}},
    {"distilled", {{"distilled", NULL, 1}}},
};

/* The same with patches of 7 x 4 pixels. */
static const struct vit_case wide_cases[] = {
    {"beit",
     {{"block_fn", "BeitBlock", 0},
      {"pos_embed", "none", 0},
      {"rel_pos_type", "bias", 0},
      {"global_pool", "avg", 0},
      {"init_values", NULL, 0.1}}},
    {"beit_shared",
     {{"block_fn", "BeitBlock", 0},
      {"rel_pos_type", "bias", 0},
      {"shared_rel_pos", NULL, 1},
      {"scale_mlp_norm", NULL, 1}}},
    {"relpos",
     {{"pos_embed", "none", 0},
      {"rel_pos_type", "mlp", 0},
      {"rel_pos_dim", NULL, 8},
      {"qk_norm", NULL, 1},
      {"init_values", NULL, 0.1}}},
    {"relpos_shared",
     {{"class_token", NULL, 0},
      {"global_pool", "avg", 0},
      {"fc_norm", NULL, 0},
      {"pos_embed", "none", 0},
      {"rel_pos_type", "mlp", 0},
      {"rel_pos_dim", NULL, 8},
      {"shared_rel_pos", NULL, 1},
      {"block_fn", "ResPostBlock", 0}}},
    {"relpos_bias",
     {{"global_pool", "avg", 0},
      {"pos_embed", "none", 0},
      {"rel_pos_type", "bias", 0},
      {"qkv_bias", NULL, 0},
      {"init_values", NULL, 0.1}}},
};

/* Rotary positions of every type, with the tensors and blocks that EVA-02, DINOv3, the Perception Encoder and others
 * have. */
static const struct vit_case eva_cases[] = {
    {"fused", {{"mlp_ratio", NULL, 1.5}, {"ref_feat_shape", NULL, 5}}},
    {"apart",
     {{"qkv_fused", NULL, 0},
      {"mlp_layer", "swiglu", 0},
      {"mlp_ratio", NULL, 1.5},
      {"scale_mlp_norm", NULL, 1},
      {"scale_attn_norm", NULL, 1},
      {"ref_feat_shape", NULL, 0},
      {"rope_temperature", NULL, 50},
      {"global_pool", "token", 0}}},
    {"post_norm",
     {{"mlp_ratio", NULL, 4},
      {"mlp_layer", "mlp", 0},
      {"rope_type", "none", 0},
      {"block_fn", "ResPostBlock", 0},
      {"reg_tokens", NULL, 1},
      {"global_pool", "token", 0}}},
    {"dinov3",
     {{"mlp_ratio", NULL, 4},
      {"mlp_layer", "swiglu", 0},
      {"rope_type", "dinov3", 0},
      {"rope_temperature", NULL, 100},
      {"rope_rotate_half", NULL, 1},
      {"pos_embed", "none", 0},
      {"reg_tokens", NULL, 3},
      {"fc_norm", NULL, 0},
      {"init_values", NULL, 0.1}}},
    {"mixed",
     {{"mlp_ratio", NULL, 4},
      {"mlp_layer", "mlp", 0},
      {"qkv_fused", NULL, 0},
      {"attn_type", "rope", 0},
      {"rope_type", "mixed", 0},
      {"rope_grid_indexing", "xy", 0},
      {"embed_class", NULL, 0},
      {"global_pool", "token", 0},
      {"init_values", NULL, 0.1}}},
    {"pe",
     {{"mlp_ratio", NULL, 4},
      {"mlp_layer", "mlp", 0},
      {"attn_type", "rope", 0},
      {"ref_feat_shape", NULL, 6},
      {"rope_grid_offset", NULL, 1},
      {"rope_grid_indexing", "xy", 0},
      {"pre_norm", NULL, 1},
      {"global_pool", "map", 0},
      {"attn_pool_num_heads", NULL, 4},
      {"attn_pool_mlp_ratio", NULL, 2}}},
};

/* The names of the goldens begin with `kind`. */
static void train_cases(const char *model, const char *kind, const struct vit_case *cases, size_t count,
                        int patch_width, const numbers *how)
{
    for (size_t c = 0; c < count; c++) {
        att_option_values options = small();
        char name[64];
        att_options_set_sides(&options, "patch_size", 7, patch_width);
        for (const setting *s = cases[c].settings; s < cases[c].settings + 10 && s->key; s++)
            if (s->text)
                att_options_set_text(&options, s->key, s->text);
            else
                att_options_set(&options, s->key, s->number);
        snprintf(name, sizeof name, "%s_%s", kind, cases[c].name);
        train(model, name, &options, 0, "adamw", how);
    }
}

static void train_vits(const numbers *how)
{
    static const char vit[] = "vit_tiny_patch16_224", eva[] = "eva02_tiny_patch14_224";
    train_cases(vit, "vit", vit_cases, sizeof vit_cases / sizeof *vit_cases, 7, how);
    train_cases(vit, "vit", wide_cases, sizeof wide_cases / sizeof *wide_cases, 4, how);
    train_cases(eva, "eva", eva_cases, sizeof eva_cases / sizeof *eva_cases, 4, how);
}

static void train_all(const numbers *how)
{
    static const char vit[] = "vit_tiny_patch16_224";
    att_option_values options = small();
    train(vit, "plain_adamw", &options, 0, "adamw", how);
    train(vit, "plain_sgd_smoothing", &options, 0.1, "sgd", how);
    train_taught("hard_teacher_adamw", "hard", 0.5, 1, &options, "adamw", how);
    train_taught("soft_teacher_sgd", "soft", 0.7, 3, &options, "sgd", how);
    att_options_set_text(&options, "modules", "cb");
    train(vit, "cb_adamw", &options, 0.1, "adamw", how);
    options = small();
    att_options_set_text(&options, "modules", "cb_s");
    att_options_set(&options, "init_values", 0.1), att_options_set(&options, "embed_class", 0);
    train(vit, "cb_s_layerscale_adamw", &options, 0, "adamw", how);
    options = small();
    att_options_set_text(&options, "global_pool", "avg");
    att_options_set(&options, "class_token", 0), att_options_set(&options, "qkv_bias", 0);
    train(vit, "mean_sgd", &options, 0, "sgd", how);
    options = small();
    att_options_unset(&options, "num_heads");
    att_options_set_sides(&options, "patch_size", 7, 4);
    att_options_set(&options, "token_mlp_ratio", 0.7), att_options_set(&options, "mlp_ratio", 2);
    train("mixer_s16_224", "mixer_adamw", &options, 0.1, "adamw", how);
}

static att_option_values small_swin(const char *depths)
{
    att_option_values options = small();
    att_options_unset(&options, "num_heads"), att_options_unset(&options, "depth");
    att_options_set_sides(&options, "patch_size", 2, 4);
    att_options_set(&options, "embed_dim", 16), att_options_set(&options, "mlp_ratio", 1.5);
    att_options_set(&options, "drop_path_rate", 0);
    att_options_set_text(&options, "depths", depths), att_options_set_text(&options, "stage_heads", "2,4");
    return options;
}

/* Grids that the windows do not divide. */
static att_option_values padded_swin(void)
{
    att_option_values options = small_swin("2,2");
    att_options_set_sides(&options, "patch_size", 4, 2), att_options_set_text(&options, "window_size", "4,5");
    att_options_set(&options, "always_partition", 1);
    return options;
}

static void train_swins(const numbers *how)
{
    static const char v1[] = "swin_tiny_patch4_window7_224", v2[] = "swinv2_tiny_window8_256",
                      cr[] = "swinv2_cr_tiny_224";
    att_option_values options = small_swin("2,2"), padded = padded_swin();
    train(v1, "swin_adamw", &options, 0.1, "adamw", how);
    train(v1, "swin_padded_sgd", &padded, 0, "sgd", how);
    train(v2, "swin_v2_padded_sgd", &padded, 0, "sgd", how);
    att_options_set_text(&options, "window_size", "7"),
        att_options_set_text(&options, "pretrained_window_sizes", "5,0");
    train(v2, "swin_v2_adamw", &options, 0.1, "adamw", how);
    options = small_swin("3,2");
    att_options_set_text(&options, "window_size", "1/2"), att_options_set(&options, "extra_norm_period", 2);
    train(cr, "swin_v2_cr_adamw", &options, 0.1, "adamw", how);
    att_options_set(&padded, "extra_norm_stage", 1);
    train(cr, "swin_v2_cr_padded_sgd", &padded, 0, "sgd", how);
}

/* In the order of CONVNEXT_CASES in training.py. */
static void train_convnexts(const numbers *how)
{
    static const char name[] = "convnext_tiny";
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", SIDE), att_options_set(&options, "in_chans", 1),
        att_options_set(&options, "num_classes", CLASSES), att_options_set(&options, "patch_size", 1);
    att_options_set_text(&options, "depths", "1,2,1,1"), att_options_set_text(&options, "dims", "8,12,16,20");
    att_option_values other = options;
    att_options_set_text(&options, "kernel_sizes", "7,5,3,3"), att_options_set(&options, "init_values", 0.1);
    train(name, "convnext_patch_adamw", &options, 0.1, "adamw", how);
    att_options_set(&other, "head_norm_first", 1), att_options_set(&other, "conv_mlp", 1);
    att_options_set_text(&other, "norm_layer", "rmsnorm"), att_options_set_text(&other, "act_layer", "silu");
    train(name, "convnext_norm_first_sgd", &other, 0, "sgd", how);
}

TEST(convnexts_train_as_in_pytorch_in_f64)
{
    train_convnexts(&f64_ref);
}

TEST(convnexts_train_as_in_pytorch_in_f32)
{
    train_convnexts(&f32_cpu);
}

static void train_encodings(const numbers *how)
{
    static const char *const encodings[] = {"isotropic", "quadratic", "learned", "learned_content"};
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
        att_option_values options = small();
        char name[64];
        att_options_set_sides(&options, "patch_size", 7, 4);
        att_options_set(&options, "num_heads", 3), att_options_set(&options, "proj_drop_rate", 0);
        att_options_set_text(&options, "encoding", encodings[i]);
        snprintf(name, sizeof name, "attention_cnn_%s", encodings[i]);
        train("attention_cnn_isotropic", name, &options, 0, "sgd", how);
    }
    att_option_values pruned = small();
    att_options_set_sides(&pruned, "patch_size", 7, 4), att_options_set(&pruned, "proj_drop_rate", 0);
    att_options_unset(&pruned, "num_heads"), att_options_set_text(&pruned, "layer_heads", "1,3");
    train("attention_cnn_quadratic", "attention_cnn_pruned", &pruned, 0, "sgd", how);
}

/* Each reference kernel runs under sanitizers in test_ref_cases. */
static void leave_to_f32(void)
{
    if (!is_sanitized())
        return;
    print_message("skipped: whole networks of the reference take long under sanitizers\n");
    skip();
}

TEST(encodings_train_as_in_pytorch_in_f64)
{
    train_encodings(&f64_ref);
}

TEST(encodings_train_as_in_pytorch_in_f32)
{
    train_encodings(&f32_cpu);
}

TEST(the_reference_trains_as_pytorch_in_f64)
{
    leave_to_f32();
    train_all(&f64_ref);
}

TEST(options_of_vits_train_as_in_pytorch_in_f64)
{
    leave_to_f32();
    train_vits(&f64_ref);
}

TEST(options_of_vits_train_as_in_pytorch_in_f32)
{
    train_vits(&f32_cpu);
}

TEST(swins_train_as_in_pytorch_in_f64)
{
    leave_to_f32();
    train_swins(&f64_ref);
}

TEST(swins_train_as_in_pytorch_in_f32)
{
    train_swins(&f32_cpu);
}

TEST(the_cpu_trains_as_pytorch_in_f32)
{
    train_all(&f32_cpu);
}

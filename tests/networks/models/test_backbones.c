/* Networks without a head, and the tensors that self-supervised training leaves in checkpoints. */
#include <attscope/plan.h>

#include "base/core/options.h"
#include "networks/models/checkpoints.h"

enum { WIDTH = 64, CLASSES = 7 };

static att_tensors *open_file(const place *p)
{
    att_tensors *file;
    CHECK(p->context, att_tensors_open(p->context, p->weights, &file));
    return file;
}

/* Runs the network in the file on an image by the formula and copies its output `name`. Returns the number of elements.
 * */
static int run_file(const place *p, const char *model_name, const att_option_values *flags, const char *name,
                    float *out)
{
    att_identity identity;
    att_tensors *file = open_file(p);
    CHECK(p->context, att_model_identify(p->context, file, p->weights, model_name, flags, &identity));
    att_model *model = make(p, identity.name, &identity.options);
    att_weights *weights;
    att_plan *plan;
    att_session *session;
    att_plan_options options = att_plan_options_defaults();
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    CHECK(p->context, att_model_load(model, file, weights));
    CHECK(p->context, att_plan_compile(att_model_graph(model), &options, &plan));
    CHECK(p->context, att_session_create(plan, weights, 1, &session));
    int size = att_options_number(&identity.options, "img_size", -1),
        count = size * size * att_options_number(&identity.options, "in_chans", -1);
    float *image = malloc((size_t)count * sizeof *image);
    for (int i = 0; i < count; i++)
        image[i] = (float)formula("image", (uint32_t)i);
    CHECK(p->context, att_session_bind(session, "image", image));
    CHECK(p->context, att_session_run(session, 1));
    CHECK(p->context, att_session_output(session, name, 0, 1, out));
    free(image);
    att_session_destroy(&session);
    att_plan_destroy(&plan);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    att_tensors_close(&file);
    return att_options_number(&identity.options, "num_classes", -1);
}

/* Fills tensors by the formula, with positive variances. */
static att_status fill(void *user, int index, void *out, size_t bytes)
{
    const att_safetensors_tensor *tensor = &((const tensors *)user)->items[index];
    float *values = out;
    for (size_t i = 0; i < bytes / sizeof *values; i++)
        values[i] = (float)formula(tensor->name, (uint32_t)i) + (strstr(tensor->name, "running_var") ? 1 : 0);
    return ATT_OK;
}

static bool begins(const char *name, const char *start)
{
    return strncmp(name, start, strlen(start)) == 0;
}

/* Writes the model's tensors, except those whose names begin with `left_out`. */
static void write_without(const place *p, const char *name, const att_option_values *options, const char *left_out)
{
    att_model *model = make(p, name, options);
    tensors all = tensors_of(model), kept = {0};
    for (int i = 0; i < all.count; i++)
        if (!begins(all.items[i].name, left_out))
            kept.items[kept.count++] = all.items[i];
    att_safetensors_content content = {
        .tensors = kept.items, .tensor_count = kept.count, .fill = fill, .fill_user = &kept};
    CHECK(p->context, att_safetensors_write(p->context, p->weights, &content));
    att_model_destroy(&model);
}

/* Applying the head by hand to the features gives the output of the network with its head. */
static void check_features(const place *p, const char *name, const att_option_values *options, const char *head,
                           int width)
{
    float logits[CLASSES], features[WIDTH];
    char weight[32], bias[32], prefix[32];
    att_option_values heads = att_options_none();
    att_option_copy("img_size", options, &heads);
    att_option_copy("num_heads", options, &heads);
    att_option_copy("global_pool", options, &heads);
    snprintf(weight, sizeof weight, "%s.weight", head);
    snprintf(bias, sizeof bias, "%s.bias", head);
    snprintf(prefix, sizeof prefix, "%s.", head);
    write_without(p, name, options, "nothing");
    assert_int_equal(run_file(p, name, &heads, "logits", logits), CLASSES);
    write_without(p, name, options, prefix);
    assert_int_equal(run_file(p, name, &heads, "features", features), 0);
    for (int c = 0; c < CLASSES; c++) {
        double expected = (float)formula(bias, (uint32_t)c);
        for (int i = 0; i < width; i++)
            expected += (double)features[i] * (float)formula(weight, (uint32_t)(c * width + i));
        if (!(fabs(logits[c] - expected) <= 2e-5 * (1 + fabs(expected)))) /* measured: 7e-8 */
            fail_msg("%s: logit %d is %g, by the features %g", name, c, (double)logits[c], expected);
    }
}

PLACE_TEST(features_are_what_a_head_reads)
{
    att_option_values options = small();
    check_features(p, "vit_tiny_patch16_224", &options, "head", 32);
    att_options_set_text(&options, "global_pool", "avg");
    check_features(p, "vit_tiny_patch16_224", &options, "head", 32);
    options = att_options_none();
    att_options_set(&options, "img_size", 8), att_options_set(&options, "depth", 11),
        att_options_set(&options, "width", 4), att_options_set(&options, "num_classes", CLASSES);
    check_features(p, "resnet29", &options, "fc", 64);
}

/* Applying the norm by hand to the features of a network without it gives the normalised features. */
PLACE_TEST(the_last_norm_may_be_missing)
{
    att_option_values options = small(), heads = att_options_none();
    att_options_set(&options, "num_classes", 0),
        att_options_set(&heads, "num_heads", att_options_number(&options, "num_heads", -1));
    float normalised[WIDTH], plain[WIDTH];
    double mean = 0, variance = 0;
    write_without(p, "vit_tiny_patch16_224", &options, "nothing");
    run_file(p, "vit_tiny_patch16_224", &heads, "features", normalised);
    write_without(p, "vit_tiny_patch16_224", &options, "norm.");
    run_file(p, "vit_tiny_patch16_224", &heads, "features", plain);
    for (int i = 0; i < 32; i++)
        mean += (double)plain[i] / 32;
    for (int i = 0; i < 32; i++)
        variance += ((double)plain[i] - mean) * ((double)plain[i] - mean) / 32;
    for (int i = 0; i < 32; i++) {
        double expected =
            ((double)plain[i] - mean) / sqrt(variance + 1e-6) * (float)formula("norm.weight", (uint32_t)i) +
            (float)formula("norm.bias", (uint32_t)i);
        assert_true(fabs(expected - (double)normalised[i]) <= 1e-5); /* measured: 7e-8 */
    }
    /* With a head, or if only the norm's weight is missing, the file counts as damaged. */
    att_identity identity;
    write_without(p, "vit_tiny_patch16_224", &options, "norm.weight");
    CHECK(p->context, identify(p, "vit_tiny_patch16_224", &heads, &identity));
    assert_int_equal(att_options_number(&identity.options, "final_norm", -1), 1);
    att_options_set_text(&options, "global_pool", "avg");
    att_options_set_text(&heads, "global_pool", "avg");
    write_without(p, "vit_tiny_patch16_224", &options, "fc_norm.weight");
    CHECK(p->context, identify(p, "vit_tiny_patch16_224", &heads, &identity));
    assert_int_equal(att_options_number(&identity.options, "final_norm", -1), 1);
    att_options_set_text(&options, "global_pool", "token");
    att_options_set_text(&heads, "global_pool", "token");
    att_options_set(&options, "num_classes", CLASSES);
    write_without(p, "vit_tiny_patch16_224", &options, "norm.");
    CHECK(p->context, identify(p, "vit_tiny_patch16_224", &heads, &identity));
    assert_int_equal(att_options_number(&identity.options, "final_norm", -1), 1);
}

/* Side files of such networks give the classes of other networks; only the caller's value counts. */
PLACE_TEST(tensors_tell_whether_there_is_a_head)
{
    att_option_values options = small(), flags = att_options_none();
    att_identity identity;
    write_without(p, "vit_tiny_patch16_224", &options, "head.");
    write_beside(p, "config.json",
                 "{\"architecture\": \"vit_tiny_patch16_224\", \"num_classes\": 0, \"model_args\": {\"num_heads\": 2}, "
                 "\"pretrained_cfg\": {\"num_classes\": 1000}}");
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_int_equal(att_options_number(&identity.options, "num_classes", -1), 0);
    att_options_set(&flags, "num_classes", 5);
    CHECK(p->context, identify(p, NULL, &flags, &identity));
    assert_int_equal(att_options_number(&identity.options, "num_classes", -1), 5);

    att_model *model = make(p, identity.name, &identity.options);
    att_weights *weights;
    att_new_head head;
    att_tensors *file = open_file(p);
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    assert_int_equal(att_model_load(model, file, weights), ATT_ERR_MISMATCH);
    says(att_context_message(p->context), "2 missing: head.weight, head.bias");
    CHECK(p->context, att_model_load_pretrained(model, file, weights, &head));
    assert_string_equal(head.names, "head.weight, head.bias");
    assert_int_equal(head.classes, 0);
    att_tensors_close(&file);
    att_weights_destroy(&weights);
    att_model_destroy(&model);

    write_model(p, "vit_tiny_patch16_224", &options, false);
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_int_equal(att_options_number(&identity.options, "num_classes", -1), CLASSES);
}

PLACE_TEST(a_checkpoint_of_attscope_records_that_there_is_no_head)
{
    att_option_values options = small();
    att_options_set(&options, "num_classes", 0);
    write_model(p, "vit_tiny_patch16_224", &options, true);
    att_identity identity;
    CHECK(p->context, identify(p, NULL, NULL, &identity));
    assert_int_equal(att_options_number(&identity.options, "num_classes", -1), 0);
    att_model *model = make(p, identity.name, &identity.options);
    assert_int_equal(att_model_classes(model), 0);
    att_model_destroy(&model);
}

/* --- tensors left by training ------------------------------------------------------------------------------------- */

/* Describes the tensors of a small network without its head, named "<prefix><name>"; chunks: with blocks in chunks of
 * one. */
static tensors backbone(const att_model *model, const char *prefix, bool chunks, char names[][64])
{
    tensors made = tensors_of(model);
    for (int i = 0; i < made.count; i++) {
        const char *name = made.items[i].name;
        if (chunks && begins(name, "blocks."))
            snprintf(names[i], 64, "%sblocks.%c.%s", prefix, name[7], name + 7);
        else
            snprintf(names[i], 64, "%s%s", prefix, name);
        made.items[i].name = names[i];
    }
    return made;
}

static void check_skipped(const place *p, const char *model_name, const att_option_values *options, const char *prefix,
                          bool chunks, const char *const *left, const char *skipped)
{
    static char names[MOST][64];
    att_option_values flags = att_options_none();
    att_identity identity;
    att_model *model = make(p, model_name, options);
    tensors t = backbone(model, prefix, chunks, names);
    int count = t.count;
    for (; *left; left++)
        add_tensor(&t, *left, att_shape_of(3));
    write_tensors(p, &t, NULL);
    att_tensors *file = open_file(p);
    assert_string_equal(att_tensors_skipped(file), skipped);
    assert_int_equal(att_tensors_count(file), count);
    att_option_copy("num_heads", options, &flags);
    att_option_copy("img_size", options, &flags);
    CHECK(p->context, att_model_identify(p->context, file, p->weights, model_name, &flags, &identity));
    att_weights *weights;
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    CHECK(p->context, att_model_load(model, file, weights));
    att_weights_destroy(&weights);
    att_tensors_close(&file);
    att_model_destroy(&model);
}

PLACE_TEST(leftovers_of_training_are_skipped)
{
    static const char *const none[] = {NULL},
                             *const mae[] = {"mask_token",
                                             "decoder_pos_embed",
                                             "decoder_embed.weight",
                                             "decoder_blocks.0.norm1.weight",
                                             "decoder_blocks.1.norm1.weight",
                                             NULL},
                             *const dino[] = {"head.mlp.0.weight", "head.mlp.0.bias", "head.last_layer.weight_g", NULL},
                             *const dinov2[] = {"backbone.mask_token", "dino_head.mlp.0.weight",
                                                "ibot_head.last_layer.weight_v", NULL},
                             *const moco[] = {"module.encoder_q.fc.0.weight",
                                              "module.encoder_q.fc.2.weight",
                                              "module.encoder_k.conv1.weight",
                                              "module.queue",
                                              "module.queue_ptr",
                                              NULL},
                             *const lightning[] = {"criterion.weight", "criterion.pos_weight",  "val_acc.tp",
                                                   "val_acc.fn",       "train_loss.mean_value", "metrics.top1.correct",
                                                   "class_weights",    "val_f1_best.max_value", NULL},
                             *const wrapped[] = {"module.loss_fn.weight",        "module.focal_loss.alpha",
                                                 "module.val_auc.preds",         "module.val_auc.target",
                                                 "ema_model.module.norm.weight", NULL},
                             *const states[] = {"val_iou.tp",          "val_iou.fp",         "val_iou.tn",
                                                "val_iou.fn",          "val_iou.confmat",    "val_iou.preds",
                                                "val_iou.target",      "val_iou.correct",    "val_iou.total",
                                                "val_iou.num_batches", "val_iou.mean_value", NULL},
                             *const copies[] = {"ema.a", "ema.b", "ema.c", "ema.d",     "ema.e", "ema.f", "ema.g",
                                                "ema.h", "ema.i", "ema.j", "ema.k",     "ema.l", "ema.m", "ema.n",
                                                "ema.o", "ema.p", "ema.q", "teacher.r", NULL};
    att_option_values options = small(), residual = att_options_none();
    att_options_set(&options, "num_classes", 0), att_options_set(&residual, "num_classes", 0);
    att_options_set(&residual, "img_size", 8), att_options_set(&residual, "depth", 11),
        att_options_set(&residual, "width", 4);
    check_skipped(p, "vit_tiny_patch16_224", &options, "", false, none, "");
    check_skipped(p, "vit_tiny_patch16_224", &options, "", false, mae,
                  "mask_token, decoder_pos_embed, decoder_embed.*, decoder_blocks.* (2)");
    check_skipped(p, "vit_tiny_patch16_224", &options, "backbone.", false, dino, "head.mlp.?.* (2), head.last_layer*");
    check_skipped(p, "vit_tiny_patch16_224", &options, "backbone.", true, dinov2,
                  "mask_token, dino_head.*, ibot_head.*");
    check_skipped(p, "resnet29", &residual, "module.encoder_q.", false, moco, "encoder_k.*, queue* (2), fc.* (2)");
    check_skipped(p, "resnet29", &residual, "backbone.", false, dino, "head.mlp.?.* (2), head.last_layer*");
    check_skipped(p, "vit_tiny_patch16_224", &options, "model.", false, lightning,
                  "criterion* (2), *loss.*, class_weight*, *metric*, *acc.* (2), *.*_value");
    check_skipped(p, "resnet29", &residual, "module.net.", false, wrapped, "loss*, *loss.*, *.preds, *.target, ema_*");
    check_skipped(p, "resnet29", &residual, "module.net.", false, states,
                  "*.tp, *.fp, *.tn, *.fn, *.confmat, *.preds, *.target, *.correct, *.total, *.num_batches, "
                  "*.*_value");
    check_skipped(p, "vit_tiny_patch16_224", &options, "model.", false, copies, "ema.* (17), teacher.*");
}

/* Tensors that belong to a network's computation are never skipped. */
PLACE_TEST(parts_of_a_network_are_not_skipped)
{
    static const struct {
        const char *prefix, *part, *says;
    } parts[] = {
        {"", "register_tokens", "register_tokens"},
        {"", "blocks.0.mlp.w12.weight", "blocks.0.mlp.w12.weight"},
        {"", "fc.0.weight", "fc.0.weight"},
        {"", "queue", "queue"},
        {"", "predictor.0.weight", "predictor.0.weight"},
        {"", "criterion.weight", "criterion.weight"},
        {"model.", "model.criterion.weight", "\"criterion.weight"},
        {"model.", "model.val_acc.tp", "\"val_acc.tp"},
        {"model.", "proj.weight", "proj.weight"},
    };
    static char names[MOST][64];
    att_option_values options = small();
    att_option_values heads = att_options_none();
    att_options_set(&heads, "num_heads", 2);
    att_identity identity;
    att_options_set(&options, "num_classes", 0);
    att_model *model = make(p, "vit_tiny_patch16_224", &options);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        tensors t = backbone(model, parts[i].prefix, false, names);
        add_tensor(&t, parts[i].part, att_shape_of(3));
        write_tensors(p, &t, NULL);
        assert_int_equal(identify(p, "vit_tiny_patch16_224", NULL, &identity), ATT_ERR_UNSUPPORTED);
        says(att_context_message(p->context), parts[i].says);
    }
    tensors t = backbone(model, "", false, names);
    for (int i = 0; i < t.count; i++)
        if (strcmp(t.items[i].name, "blocks.0.mlp.fc2.weight") == 0)
            t.items[i].shape.dims[1] /= 2;
    write_tensors(p, &t, NULL);
    CHECK(p->context, identify(p, "vit_tiny_patch16_224", &heads, &identity));
    assert_string_equal(att_options_text(&identity.options, "mlp_layer"), "swiglu_packed");
    assert_string_equal(att_options_text(&identity.options, "act_layer"), "silu");
    att_model_destroy(&model);
}

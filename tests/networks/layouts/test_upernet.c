/* Small segmenters of transformers and mmsegmentation, with the names of their files, against PyTorch in f64
 * (tools/goldens/segmenter_files.py). */
#include <attscope/plan.h>

#include "base/io/scratch.h"
#include "context.h"
#include "networks/layouts/golden_tensors.h"

SHARED_CONTEXT(threads, 1)

enum { SIDE = 32, CLASSES = 5, KEPT = 11, LOGITS = SIDE * SIDE / 4 * CLASSES / KEPT + 1, LINE = 8192 };

typedef struct golden {
    char config[LINE], processor[LINE];
    golden_tensors tensors;
    int logit_count;
    double logits[LOGITS];
} golden;

static double scale_of(const char *name, att_shape shape)
{
    (void)name;
    return shape.rank == 1 ? 0.2 : 0.4;
}

static golden *golden_read(const char *name)
{
    golden *g = calloc(1, sizeof *g);
    char line[LINE], word[16];
    bool mine = false;
    FILE *file = golden_open("segmenter_files.txt");
    while (fgets(line, sizeof line, file)) {
        char *rest = strchr(line, ' ') + 1;
        sscanf(line, "%15s", word);
        if (strcmp(word, "case") == 0)
            mine = strncmp(rest, name, strlen(name)) == 0 && rest[strlen(name)] == '\n';
        else if (mine && strcmp(word, "config") == 0)
            snprintf(g->config, sizeof g->config, "%s", rest);
        else if (mine && strcmp(word, "processor") == 0)
            snprintf(g->processor, sizeof g->processor, "%s", rest);
        else if (mine && strcmp(word, "tensor") == 0)
            golden_tensors_add(&g->tensors, rest, scale_of);
        else if (mine && g->logit_count < LOGITS)
            g->logits[g->logit_count++] = strtod(rest, NULL);
    }
    fclose(file);
    assert_true(g->tensors.count > 0 && g->logit_count > 0);
    return g;
}

static void golden_free(golden *g)
{
    golden_tensors_free(&g->tensors);
    free(g);
}

static att_status open_golden(scratch *self, const golden *g, att_tensors **file)
{
    char path[512];
    golden_tensors_write(self, &g->tensors, path);
    if (*g->config)
        scratch_text(self, "config.json", g->config);
    if (*g->processor)
        scratch_text(self, "preprocessor_config.json", g->processor);
    return att_model_open_file(context, path, file);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* Relative to the largest logit; measured: 7.1e-7. */
static const double TOLERANCE = 5e-6;

static void compare(const golden *g, const att_model *model, att_weights *weights)
{
    static float image[SIDE * SIDE * 3], logits[SIDE * SIDE / 4 * CLASSES];
    att_plan_options options = att_plan_options_defaults();
    att_plan *plan;
    att_session *session;
    double largest = 0, worst = 0;
    const att_graph *graph = att_model_graph(model);
    const int64_t count = att_shape_count(att_value_shape(graph, att_graph_find_output(graph, "pixel_logits")));
    assert_int_equal((count + KEPT - 1) / KEPT, g->logit_count);
    for (uint32_t i = 0; i < SIDE * SIDE * 3; i++)
        image[i] = (float)(4 * formula("image", i));
    options.outputs = (const char *const[]){"pixel_logits", NULL};
    must(att_plan_compile(graph, &options, &plan));
    must(att_session_create(plan, weights, 1, &session));
    must(att_session_bind(session, "image", image));
    must(att_session_run(session, 1));
    must(att_session_output(session, "pixel_logits", 0, 1, logits));
    for (int i = 0; i < g->logit_count; i++)
        largest = fmax(largest, fabs(g->logits[i]));
    for (int i = 0; i < g->logit_count; i++) {
        const double error = fabs((double)logits[KEPT * i] - g->logits[i]) / largest;
        if (!(error <= TOLERANCE))
            fail_msg("logit %d is %.7g instead of %.7g: relative error %g", i, (double)logits[KEPT * i], g->logits[i],
                     error);
        worst = fmax(worst, error);
    }
    print_message("relative errors up to %.2g\n", worst);
    att_session_destroy(&session);
    att_plan_destroy(&plan);
}

/* Leaves out the tensors whose names have this part. */
static void drop(golden *g, const char *part)
{
    int kept = 0;
    for (int i = 0; i < g->tensors.count; i++)
        if (strstr(g->tensors.tensors[i].name, part))
            free((void *)(uintptr_t)g->tensors.tensors[i].data);
        else
            g->tensors.tensors[kept++] = g->tensors.tensors[i];
    assert_in_range(kept, 1, g->tensors.count - 1);
    g->tensors.count = kept;
}

/* heads: of a ViT, whose tensors do not show them; 0: not given. without: a part of names that the file lacks, or
 * NULL. */
static void answers_without(scratch *self, const char *name, const char *without, const char *network, int heads,
                            att_identity *identity)
{
    golden *g = golden_read(name);
    if (without)
        drop(g, without);
    att_tensors *file;
    att_model *model;
    att_weights *weights;
    att_option_values flags = att_options_none();
    if (heads)
        att_options_set(&flags, "num_heads", heads);
    att_options_set_sides(&flags, "img_size", SIDE, SIDE);
    must(open_golden(self, g, &file));
    must(att_model_identify(context, file, NULL, NULL, &flags, identity));
    assert_string_equal(identity->name, network);
    must(att_model_create(context, identity->name, &identity->options, ATT_F32, &model));
    must(att_weights_create(att_model_graph(model), "cpu", &weights));
    must(att_model_load(model, file, weights));
    compare(g, model, weights);
    assert_int_equal(att_model_classes(model), CLASSES);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    att_tensors_close(&file);
    golden_free(g);
}

static void answers(scratch *self, const char *name, const char *network, int heads, att_identity *identity)
{
    answers_without(self, name, NULL, network, heads, identity);
}

SCRATCH_TEST(upernet_over_swin_of_transformers_gives_its_answers)
{
    att_identity identity;
    answers(self, "transformers", "swin_tiny_patch4_window7_224", 0, &identity);
    assert_float_equal(identity.preprocess.mean[0], 0.485, 0);
    assert_float_equal(identity.preprocess.crop_pct, 1, 0);
    assert_string_equal(identity.preprocess.crop_mode, "squash");
    assert_string_equal(identity.preprocess.interpolation, "bilinear");
}

SCRATCH_TEST(upernet_over_resnet_of_mmsegmentation_gives_its_answers)
{
    att_identity identity;
    answers(self, "resnet", "resnet50c", 0, &identity);
    assert_string_equal(identity.preprocess.crop_mode, "squash");
}

SCRATCH_TEST(upernet_over_swin_of_mmsegmentation_gives_its_answers)
{
    att_identity identity;
    answers(self, "swin", "swin_tiny_patch4_window7_224", 0, &identity);
}

SCRATCH_TEST(upernet_over_vit_of_mmsegmentation_gives_its_answers)
{
    att_identity identity;
    answers(self, "vit", "vit_base_patch16_224", 3, &identity);
    assert_string_equal(att_options_text(&identity.options, "taps"), "1,3,5,7");
    assert_null(att_options_find(&identity.options, "neck"));
    assert_null(att_options_find(&identity.options, "tap_norm"));
    answers(self, "vit_neck", "vit_base_patch16_224", 3, &identity);
    assert_string_equal(att_options_text(&identity.options, "neck"), "multi_level");
    assert_float_equal(att_options_number(&identity.options, "tap_norm", 0), 1, 0);
}

SCRATCH_TEST(upernet_over_beit_of_mmsegmentation_gives_its_answers)
{
    att_identity identity;
    answers(self, "beit", "beit_base_patch16_224", 0, &identity);
    assert_string_equal(att_options_text(&identity.options, "neck"), "feature2pyramid");
    assert_null(att_options_find(&identity.options, "taps"));
}

SCRATCH_TEST(images_are_those_of_mmsegmentations_configurations)
{
    static const struct {
        const char *name;
        int side;
    } files[] = {{"resnet", 512}, {"swin", 512}, {"beit", 640}};
    const att_option_values flags = att_options_none();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        golden *g = golden_read(files[i].name);
        att_tensors *file;
        att_identity identity;
        must(open_golden(self, g, &file));
        must(att_model_identify(context, file, NULL, NULL, &flags, &identity));
        const att_preprocess *images = &identity.preprocess;
        assert_int_equal(images->height, files[i].side);
        assert_int_equal(images->width, files[i].side);
        assert_memory_equal(images->mean, ((double[]){0.485, 0.456, 0.406}), sizeof images->mean);
        assert_memory_equal(images->std, ((double[]){0.229, 0.224, 0.225}), sizeof images->std);
        assert_float_equal(images->crop_pct, 1, 0);
        assert_string_equal(images->crop_mode, "squash");
        assert_string_equal(images->interpolation, "bilinear");
        att_tensors_close(&file);
        golden_free(g);
    }
}

/* Older versions of transformers wrote no last norm of the backbone. */
SCRATCH_TEST(files_may_lack_what_no_logit_depends_on)
{
    att_identity identity;
    answers_without(self, "resnet", "auxiliary_head.", "resnet50c", 0, &identity);
    assert_float_equal(att_options_number(&identity.options, "aux_channels", 1), 0, 0);
    answers_without(self, "transformers", "swin.layernorm.", "swin_tiny_patch4_window7_224", 0, &identity);
    assert_float_equal(att_options_number(&identity.options, "aux_channels", 1), 6, 0);
    answers_without(self, "transformers", "auxiliary_head.", "swin_tiny_patch4_window7_224", 0, &identity);
    assert_float_equal(att_options_number(&identity.options, "aux_channels", 1), 0, 0);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

/* Replaces a part of config.json. */
static void refuses(scratch *self, const char *part, const char *other, const char *message)
{
    golden *g = golden_read("transformers");
    att_tensors *file = NULL;
    char rest[LINE];
    char *at = strstr(g->config, part);
    assert_non_null(at);
    snprintf(rest, sizeof rest, "%s", at + strlen(part));
    snprintf(at, sizeof g->config - (size_t)(at - g->config), "%s%s", other, rest);
    assert_fails(context, open_golden(self, g, &file), ATT_ERR_UNSUPPORTED, message);
    assert_null(file);
    golden_free(g);
}

SCRATCH_TEST(settings_that_attscope_lacks_are_refused)
{
    refuses(self, "\"model_type\": \"swin\"", "\"model_type\": \"convnext\"",
            "the backbone of UPerNet has the model_type \"convnext\"; attscope opens UPerNet over \"swin\"");
    refuses(self, "\"pool_scales\": [1, 2, 3, 6]", "\"pool_scales\": [1, 2, 3]", "pool_scales are not 1, 2, 3, 6");
    refuses(self, "\"pool_scales\": [1, 2, 3, 6]", "\"pool_scales\": [1, 2, 3, 4]", "pool_scales are not 1, 2, 3, 6");
    refuses(self, "\"out_features\": [\"stage1\", ", "\"out_features\": [", "out_features of backbone_config are not");
    refuses(self, "\"auxiliary_num_convs\": 1", "\"auxiliary_num_convs\": 2",
            "auxiliary_num_convs is 2; attscope has 1 only");
    refuses(self, "\"auxiliary_concat_input\": false", "\"auxiliary_concat_input\": true",
            "auxiliary_concat_input is true, which attscope does not support");
    refuses(self, "\"hidden_act\": \"gelu\"", "\"hidden_act\": \"relu\"", "attscope has \"gelu\" only");
}

static att_status open_here(scratch *self)
{
    char path[512];
    att_tensors *file = NULL;
    att_status status = att_model_open_file(self->context, scratch_path(self, "model.safetensors", path), &file);
    att_tensors_close(&file);
    return status;
}

SCRATCH_TEST(failing_allocations_leave_nothing_behind)
{
    static const char *const names[] = {"swin", "vit_neck", "transformers"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        golden *g = golden_read(names[i]);
        att_tensors *file;
        must(open_golden(self, g, &file));
        att_tensors_close(&file);
        golden_free(g);
        assert_survives_lack_of_memory(self, open_here);
    }
}

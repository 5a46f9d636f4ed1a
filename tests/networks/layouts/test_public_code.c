/* Networks of small public code for PyTorch, with the names of their files, against their computation in f64
 * (tools/goldens/public_code.py). */
#include <unistd.h>

#include <attscope/plan.h>

#include "base/io/scratch.h"
#include "context.h"
#include "networks/layouts/golden_tensors.h"

SHARED_CONTEXT(threads, 1)

enum { MOST_SIDE = 64, CLASSES = 5, LINE = 512 };

typedef struct golden {
    char name[32];
    att_option_values flags;
    golden_tensors tensors;
    int logit_count;
    double logits[CLASSES];
} golden;

static double scale_of(const char *name, att_shape shape)
{
    (void)name;
    return shape.rank == 1 ? 0.2 : 0.4;
}

/* Takes "model=resnet18 stem_pool=1" without the model, whose name is returned in `name`. */
static void take_flags(char *text, golden *g)
{
    *g->name = '\0';
    for (char *word = strtok(text, " \n"); word; word = strtok(NULL, " \n"))
        if (strncmp(word, "model=", 6) == 0)
            snprintf(g->name, sizeof g->name, "%s", word + 6);
        else
            take_option(word, &g->flags);
}

static golden *golden_read(const char *name)
{
    golden *g = calloc(1, sizeof *g);
    char line[LINE], word[16];
    bool mine = false;
    FILE *file = golden_open("public_code.txt");
    while (fgets(line, sizeof line, file)) {
        char *rest = strchr(line, ' ') + 1;
        sscanf(line, "%15s", word);
        if (strcmp(word, "case") == 0)
            mine = strncmp(rest, name, strlen(name)) == 0 && rest[strlen(name)] == '\n';
        else if (mine && strcmp(word, "flags") == 0)
            take_flags(rest, g);
        else if (mine && strcmp(word, "tensor") == 0)
            golden_tensors_add(&g->tensors, rest, scale_of);
        else if (mine)
            g->logits[g->logit_count++] = strtod(rest, NULL);
    }
    fclose(file);
    assert_int_equal(g->logit_count, CLASSES);
    return g;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* Relative to the largest logit; measured: 1.3e-6 */
static const double TOLERANCE = 1e-5;

static void compare(const golden *g, const att_model *model, att_weights *weights)
{
    static float image[MOST_SIDE * MOST_SIDE * 3];
    float logits[CLASSES];
    att_plan_options options = att_plan_options_defaults();
    att_plan *plan;
    att_session *session;
    double largest = 0, worst = 0;
    for (uint32_t i = 0; i < MOST_SIDE * MOST_SIDE * 3; i++)
        image[i] = (float)(4 * formula("image", i));
    options.outputs = (const char *const[]){"logits", NULL};
    must(att_plan_compile(att_model_graph(model), &options, &plan));
    must(att_session_create(plan, weights, 1, &session));
    must(att_session_bind(session, "image", image));
    must(att_session_run(session, 1));
    must(att_session_output(session, "logits", 0, 1, logits));
    for (int i = 0; i < CLASSES; i++)
        largest = fmax(largest, fabs(g->logits[i]));
    for (int i = 0; i < CLASSES; i++) {
        const double error = fabs((double)logits[i] - g->logits[i]) / largest;
        if (!(error <= TOLERANCE))
            fail_msg("logit %d is %.7g instead of %.7g: relative error %g", i, (double)logits[i], g->logits[i], error);
        worst = fmax(worst, error);
    }
    print_message("relative errors up to %.2g\n", worst);
    att_session_destroy(&session);
    att_plan_destroy(&plan);
}

/* The network of a case is this one, with these modules, and gives its answers. */
static void answers(scratch *self, const char *name, const char *network, const char *modules, att_identity *identity)
{
    golden *g = golden_read(name);
    char path[512];
    att_tensors *file;
    att_model *model;
    att_weights *weights;
    must(att_model_open_file(context, golden_tensors_write(self, &g->tensors, path), &file));
    must(att_model_identify(context, file, NULL, *g->name ? g->name : NULL, &g->flags, identity));
    assert_string_equal(identity->name, network);
    if (modules)
        assert_string_equal(att_options_text(&identity->options, "modules"), modules);
    must(att_model_create(context, identity->name, &identity->options, ATT_F32, &model));
    must(att_weights_create(att_model_graph(model), "cpu", &weights));
    must(att_model_load(model, file, weights));
    assert_int_equal(att_model_classes(model), CLASSES);
    compare(g, model, weights);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    att_tensors_close(&file);
    golden_tensors_free(&g->tensors);
    free(g);
}

/* What tensors do not show is said to be assumed, unless it is given. */
SCRATCH_TEST(a_stem_for_small_images_may_have_a_pool)
{
    att_identity identity;
    answers(self, "cifar", "resnet18", "none", &identity);
    assert_non_null(strstr(identity.brief, "assumed, as in resnet18: stem_pool false, output_stride 32"));
    answers(self, "cifar_pool", "resnet18", "none", &identity);
    assert_non_null(strstr(identity.brief, "assumed, as in resnet18: output_stride 32"));
}

SCRATCH_TEST(the_stride_may_be_in_the_first_convolution)
{
    att_identity identity;
    answers(self, "caffe", "resnet50", "none", &identity);
    assert_non_null(strstr(identity.brief, "assumed, as in resnet50: stem_pool true, output_stride 32"));
}

SCRATCH_TEST(weiaicunzais_resnets_open)
{
    att_identity identity;
    answers(self, "cifar100", "resnet18", "none", &identity);
    assert_float_equal(identity.preprocess.mean[0], 0.5070751592371323, 0);
    assert_float_equal(identity.preprocess.crop_pct, 1, 0);
    answers(self, "cifar100_bottleneck", "resnet18", "none", &identity);
}

SCRATCH_TEST(networks_with_modules_under_their_authors_names_open)
{
    att_identity identity;
    answers(self, "se", "seresnet18", "se:ratio=4,bias=0", &identity);
    answers(self, "eca", "resnet50", "eca@after_branch:0-1+eca:k=5@after_branch:2+eca:k=7@after_branch:3", &identity);
    answers(self, "srm", "resnet18", "srm", &identity);
    answers(self, "se_of_srm", "resnet18", "se:ratio=4", &identity);
}

SCRATCH_TEST(jeonsworlds_vits_open)
{
    att_identity identity;
    answers(self, "jeonsworld", "vit_base_patch16_224", "none", &identity);
    assert_float_equal(identity.preprocess.mean[0], 0.5, 0);
    assert_string_equal(identity.preprocess.crop_mode, "squash");
}

/* A head has 64 channels, as the code has by default. */
SCRATCH_TEST(lucidrains_vits_open)
{
    att_identity identity;
    answers(self, "lucidrains_mean", "vit_base_patch16_224", "none", &identity);
    answers(self, "lucidrains_without_class", "vit_base_patch16_224", "none", &identity);
    assert_string_equal(att_options_text(&identity.options, "global_pool"), "avg");
    assert_null(strstr(identity.brief, "global_pool"));
    answers(self, "lucidrains_before", "vit_base_patch16_224", "none", &identity);
    answers(self, "lucidrains", "vit_base_patch16_224", "none", &identity);
    assert_int_equal(att_options_number(&identity.options, "num_heads", 0), 2);
    assert_non_null(strstr(identity.brief, "assumed, as its program does by default: global_pool token, num_heads 2"));
}

/* The file has no positions: these are computed for the size of the images. */
SCRATCH_TEST(lucidrains_simple_vits_open)
{
    att_identity identity;
    answers(self, "simple_vit", "vit_base_patch16_224", "none", &identity);
    assert_non_null(strstr(identity.brief, "assumed, as its program does by default: num_heads 2"));
}

/* OpenAI's own files are known by the size of the images in them. */
SCRATCH_TEST(vits_of_clip_open_under_openais_names)
{
    att_identity identity;
    answers(self, "openai_clip", "vit_base_patch32_clip_224", "none", &identity);
    assert_string_equal(att_options_text(&identity.options, "act_layer"), "quick_gelu");
    assert_null(strstr(identity.brief, "assumed, as its program"));
    answers(self, "open_clip", "vit_base_patch32_clip_224", "none", &identity);
    assert_non_null(strstr(identity.brief, "assumed, as its program does by default: act_layer gelu"));
}

static void write_beside(const scratch *self, const char *name, const char *text)
{
    char path[512];
    FILE *file = fopen(scratch_path(self, name, path), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* A folder of the hub has transformers' config.json for another file. */
SCRATCH_TEST(settings_of_open_clip_are_read)
{
    att_identity identity;
    write_beside(self, "config.json", "{\"model_type\": \"clip\"}");
    write_beside(
        self, "open_clip_config.json",
        "{\"model_cfg\": {\"vision_cfg\": {\"head_width\": 64}}, \"preprocess_cfg\": {\"mean\": [0.25, 0.5, 0.75], "
        "\"interpolation\": \"bilinear\", \"resize_mode\": \"squash\"}}");
    answers(self, "open_clip", "vit_base_patch32_clip_224", "none", &identity);
    assert_null(strstr(identity.brief, "assumed, as its program"));
    assert_non_null(strstr(identity.brief, "open_clip_config.json"));
    assert_float_equal(identity.preprocess.mean[0], 0.25, 0);
    assert_string_equal(identity.preprocess.crop_mode, "squash");
    assert_string_equal(identity.preprocess.interpolation, "bilinear");
    /* A head has 64 channels by default. */
    write_beside(self, "open_clip_config.json", "{\"model_cfg\": {\"vision_cfg\": {}, \"quick_gelu\": true}}");
    answers(self, "openai_clip", "vit_base_patch32_clip_224", "none", &identity);
    write_beside(self, "open_clip_config.json", "{\"model_cfg\": {}}");
    golden *g = golden_read("open_clip");
    char path[512];
    att_tensors *file;
    assert_fails(context, att_model_open_file(context, golden_tensors_write(self, &g->tensors, path), &file),
                 ATT_ERR_FORMAT, "open_clip_config.json: expected the objects \"model_cfg\" and in it \"vision_cfg\"");
    write_beside(self, "open_clip_config.json",
                 "{\"model_cfg\": {\"vision_cfg\": {}}, \"preprocess_cfg\": {\"resize_mode\": \"longest\"}}");
    assert_fails(context, att_model_open_file(context, path, &file), ATT_ERR_UNSUPPORTED, "resize_mode is \"longest\"");
    static const struct {
        const char *setting, *part;
    } others[] = {{"\"width\": 768", "width is not that of the network"},
                  {"\"layers\": 12", "layers is not that of the network"},
                  {"\"patch_size\": 32", "patch_size is not that of the network"},
                  {"\"image_size\": 224", "image_size is not that of the network"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"model_cfg\": {\"vision_cfg\": {%s}}}", others[i].setting);
        write_beside(self, "open_clip_config.json", text);
        assert_fails(context, att_model_open_file(context, path, &file), ATT_ERR_UNSUPPORTED, others[i].part);
    }
    golden_tensors_free(&g->tensors);
    free(g);
    const char *const names[] = {"config.json", "open_clip_config.json"};
    for (int i = 0; i < 2; i++)
        assert_int_equal(unlink(scratch_path(self, names[i], path)), 0);
}

SCRATCH_TEST(vits_of_google_open)
{
    att_identity identity;
    answers(self, "google", "vit_base_patch16_224", "none", &identity);
    assert_int_equal(att_options_number(&identity.options, "num_heads", 0), 4);
    assert_string_equal(identity.preprocess.crop_mode, "squash");
}

SCRATCH_TEST(pre_activation_networks_open)
{
    att_identity identity;
    answers(self, "preact", "preresnet18", "none", &identity);
    answers(self, "preact_bottleneck", "preresnet50", "none", &identity);
    answers(self, "wide", "wide_resnet28_10", "none", &identity);
    assert_string_equal(att_options_text(&identity.options, "layers"), "2,1,1");
    assert_int_equal(att_options_number(&identity.options, "stem_channels", 0), 4);
}

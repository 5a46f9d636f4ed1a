/* Tiny networks of the transformers library against its own answers (tools/goldens/layouts.py). */
#include <attscope/plan.h>

#include "context.h"
#include "networks/models/fixture.h"

SHARED_CONTEXT(threads, 1)

enum { MOST_OUTPUTS = 64 };

typedef struct row {
    const char *folder;     /* in tests/goldens/layouts */
    const char *network;    /* expected name */
    const char *options;    /* expected values, "key=value key=value" */
    const char *preprocess; /* expected: "height x width mean std crop_pct crop_mode interpolation"; NULL: anything */
} row;

#define VIT "vit_base_patch16_224", "img_size=8 patch_size=4 embed_dim=8 depth=2 num_heads=2 mlp_ratio=2 "
#define SQUASHED "8 x 8 0.5 0.5 1 squash bilinear"

static const row rows[] = {
    {"vit", VIT "num_classes=3 norm_eps=1e-12 act_layer=gelu class_token=true reg_tokens=0", SQUASHED},
    {"vit_base", VIT "num_classes=0 norm_eps=1e-12 act_layer=gelu_tanh class_token=true", SQUASHED},
    {"deit", VIT "num_classes=3 norm_eps=1e-12 distilled=false reg_tokens=1", NULL},
    {"deit_teacher", VIT "num_classes=3 norm_eps=1e-12 distilled=true reg_tokens=0", NULL},
    {"vit_mae", VIT "num_classes=0 norm_eps=1e-12 class_token=true", SQUASHED},
    {"vit_msn", VIT "num_classes=3 norm_eps=1e-06 class_token=true", SQUASHED},
    {"ijepa", VIT "num_classes=3 class_token=false global_pool=avg fc_norm=false", SQUASHED},
    {"ijepa_base", VIT "num_classes=0 class_token=false global_pool=avg fc_norm=false", SQUASHED},
};

static void path_of(const row *r, const char *file, char path[4096])
{
    char name[256];
    snprintf(name, sizeof name, "layouts/%s/%s", r->folder, file);
    golden_path(name, path, 4096);
}

/* --- identity ----------------------------------------------------------------------------------------------------- */

static const att_option *option_of(const row *r, const char *key)
{
    const att_family_info family = att_model_family_of(r->network);
    for (int i = 0; i < family.option_count; i++)
        if (strcmp(family.options[i].key, key) == 0)
            return &family.options[i];
    fail_msg("%s: there is no option %s", r->folder, key);
    return NULL;
}

static void check_options(const row *r, const att_option_values *options)
{
    char text[512];
    snprintf(text, sizeof text, "%s", r->options);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '='), texts[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES] = {"nothing"};
        assert_non_null(value);
        *value++ = '\0';
        att_option_format(option_of(r, word), options, texts);
        if (strcmp(texts[0], value) != 0)
            fail_msg("%s: %s is %s instead of %s", r->folder, word, texts[0], value);
    }
}

static void check_preprocess(const row *r, const att_preprocess *p)
{
    char text[128];
    snprintf(text, sizeof text, "%d x %d %g %g %g %s %s", p->height, p->width, p->mean[0], p->std[0], p->crop_pct,
             p->crop_mode, p->interpolation);
    if (r->preprocess && strcmp(text, r->preprocess) != 0)
        fail_msg("%s: images are prepared by \"%s\" instead of \"%s\"", r->folder, text, r->preprocess);
}

static att_model *identify(const row *r, const att_tensors *file)
{
    att_identity identity;
    att_model *model;
    must(att_model_identify(context, file, NULL, NULL, NULL, &identity));
    assert_string_equal(identity.name, r->network);
    check_preprocess(r, &identity.preprocess);
    must(att_model_create(context, identity.name, &identity.options, ATT_F32, &model));
    check_options(r, att_model_options(model));
    return model;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* Relative to the largest output; measured: 2.6e-7. */
static const double TOLERANCE = 1e-5;

static void run(const att_model *model, att_weights *weights, const char *output, float *values)
{
    const att_preprocess look = att_model_preprocess(model);
    const uint32_t count = (uint32_t)(look.height * look.width * look.in_chans);
    float *image = malloc(count * sizeof *image);
    att_plan_options options = att_plan_options_defaults();
    att_plan *plan;
    att_session *session;
    for (uint32_t i = 0; i < count; i++)
        image[i] = (float)(4 * formula("image", i));
    must(att_plan_compile(att_model_graph(model), &options, &plan));
    must(att_session_create(plan, weights, 1, &session));
    must(att_session_bind(session, "image", image));
    must(att_session_run(session, 1));
    must(att_session_output(session, output, 0, 1, values));
    att_session_destroy(&session);
    att_plan_destroy(&plan);
    free(image);
}

static int read_expected(const row *r, double expected[MOST_OUTPUTS])
{
    char path[4096];
    int count = 0;
    path_of(r, "expected.txt", path);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s cannot be opened", path);
    while (count < MOST_OUTPUTS && fscanf(file, "%lf", &expected[count]) == 1)
        count++;
    fclose(file);
    return count;
}

static double compare(const row *r, const att_model *model, att_weights *weights)
{
    double expected[MOST_OUTPUTS], largest = 0, worst = 0;
    float values[MOST_OUTPUTS];
    const int count = read_expected(r, expected), classes = att_model_classes(model);
    assert_int_equal(count, classes ? classes : (int)att_options_number(att_model_options(model), "embed_dim", 0));
    run(model, weights, classes ? "logits" : "features", values);
    for (int i = 0; i < count; i++)
        largest = fmax(largest, fabs(expected[i]));
    for (int i = 0; i < count; i++) {
        const double error = fabs(values[i] - expected[i]) / largest;
        if (!(error <= TOLERANCE))
            fail_msg("%s: output %d is %.7g instead of %.7g", r->folder, i, values[i], expected[i]);
        worst = fmax(worst, error);
    }
    return worst;
}

TEST(networks_of_transformers_give_its_answers)
{
    const int count = sizeof rows / sizeof *rows;
    double worst = 0;
    for (const row *r = rows; r < rows + count; r++) {
        char path[4096];
        att_tensors *file;
        att_weights *weights;
        path_of(r, "model.safetensors", path);
        must(att_model_open_file(context, path, &file));
        att_model *model = identify(r, file);
        must(att_weights_create(att_model_graph(model), "cpu", &weights));
        must(att_model_load(model, file, weights));
        worst = fmax(worst, compare(r, model, weights));
        att_weights_destroy(&weights);
        att_model_destroy(&model);
        att_tensors_close(&file);
    }
    print_message("%d networks, relative errors up to %.2g\n", count, worst);
}

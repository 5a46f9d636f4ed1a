/* Logits of small versions of timm's ViTs, BEiTs, EVAs, Swins and ConvNeXts for one image, against timm's
 * (tools/goldens/logits.py). The options that make a network small leave everything else of its name. */
#include <attscope/plan.h>

#include "context.h"
#include "networks/models/fixture.h"

SHARED_CONTEXT(threads, 0)

enum { CLASSES = 4, WORDS = 16 };

typedef struct line {
    char *words[WORDS];
    att_option_values options;
    double logits[CLASSES];
} line;

/* Reads "NAME OPTIONS... = LOGITS..." */
static void read_line(char *text, line *l)
{
    int count = 0, equals = 0;
    for (char *word = strtok(text, " \n"); word && count < WORDS; word = strtok(NULL, " \n"))
        l->words[count++] = word;
    while (equals < count && strcmp(l->words[equals], "=") != 0)
        equals++;
    assert_int_equal(count, equals + 1 + CLASSES);
    l->options = att_options_none();
    for (int i = 1; i < equals; i++)
        take_option(l->words[i], &l->options);
    att_options_set(&l->options, "num_classes", CLASSES);
    for (int c = 0; c < CLASSES; c++)
        l->logits[c] = strtod(l->words[equals + 1 + c], NULL);
}

static void run(const att_model *model, float logits[CLASSES])
{
    const att_preprocess look = att_model_preprocess(model);
    uint32_t count = (uint32_t)(look.height * look.width * look.in_chans);
    float *image = malloc(count * sizeof *image);
    att_plan_options options = att_plan_options_defaults();
    att_weights *weights;
    att_plan *plan;
    att_session *session;
    for (uint32_t i = 0; i < count; i++)
        image[i] = (float)(4 * formula("image", i));
    must(att_weights_create(att_model_graph(model), "cpu", &weights));
    formula_fill(context, att_model_graph(model), weights);
    must(att_plan_compile(att_model_graph(model), &options, &plan));
    must(att_session_create(plan, weights, 1, &session));
    must(att_session_bind(session, "image", image));
    must(att_session_run(session, 1));
    must(att_session_output(session, "logits", 0, 1, logits));
    att_session_destroy(&session);
    att_plan_destroy(&plan);
    att_weights_destroy(&weights);
    free(image);
}

/* Relative to the largest logit; measured: 2.2e-6. */
static const double TOLERANCE = 1e-5;

static double compare(const line *l, const float logits[CLASSES])
{
    double largest = 0, worst = 0;
    for (int c = 0; c < CLASSES; c++)
        largest = fmax(largest, fabs(l->logits[c]));
    for (int c = 0; c < CLASSES; c++) {
        double error = fabs(logits[c] - l->logits[c]) / largest;
        if (!(error <= TOLERANCE))
            fail_msg("%s: logit %d is %.7g instead of %.7g", l->words[0], c, logits[c], l->logits[c]);
        worst = fmax(worst, error);
    }
    return worst;
}

TEST(logits_are_timms)
{
    FILE *file = golden_open("logits.txt");
    char text[512];
    double worst = 0;
    int networks = 0;
    for (; fgets(text, sizeof text, file); networks++) {
        att_model *model;
        line l;
        float logits[CLASSES];
        read_line(text, &l);
        must(att_model_create(context, l.words[0], &l.options, ATT_F32, &model));
        run(model, logits);
        worst = fmax(worst, compare(&l, logits));
        att_model_destroy(&model);
    }
    fclose(file);
    print_message("%d networks, relative errors up to %.2g\n", networks, worst);
    assert_true(networks >= 350);
}

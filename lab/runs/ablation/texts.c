/* Ablations of texts. */
#include <math.h>

#include "base/core/clock.h"
#include "base/core/error.h"
#include "lab/runs/ablation/ablation.h"
#include "study/network/network.h"

enum { SAMPLES = 32 }; /* changes of a run, at most: enough for all threads of a small machine */

double att_ablation_distance(const float *a, const float *b, int64_t count)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < count; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return 1 - ab / sqrt(aa * bb);
}

/* --- preparing ---------------------------------------------------------------------------------------------------- */

typedef struct pass {
    att_ablation *ablation;
    const att_ablation_options *options;
    const att_token_texts *texts;
    int64_t *order; /* of the texts, the shortest first, so that the network is compiled once for each length */
    int64_t before; /* runs of earlier passes */
    int length;     /* of the texts that the explorer takes */
} pass;

static att_status check(att_network *network, const att_ablation_options *options)
{
    ATT_TRY(att_ablation_check_bound(network, options));
    if (att_network_most_tokens(network) == 0)
        return att_fail(network->context, ATT_ERR_UNSUPPORTED, "%s reads images, and these are texts",
                        network->identity.name);
    if (att_model_classes(network->model) > 0 && !att_network_class_output(network))
        return att_fail(network->context, ATT_ERR_UNSUPPORTED, "%s gives texts no class", network->identity.name);
    if (options->tokens)
        return att_fail(network->context, ATT_ERR_UNSUPPORTED,
                        "tokens \"%s\": token N of two texts are different words; heads and branches can be removed",
                        options->tokens);
    if (options->greedy && att_model_classes(network->model) == 0)
        return att_fail(network->context, ATT_ERR_UNSUPPORTED,
                        "a greedy ablation needs classes, whose accuracy it keeps, and %s has none",
                        network->identity.name);
    return ATT_OK;
}

/* What is known with the first explorer. */
static att_status begin(const pass *p)
{
    att_ablation *a = p->ablation;
    ATT_TRY(att_ablation_note_layers(a));
    ATT_TRY(att_ablation_select(a, p->options));
    return att_ablation_allocate(a, p->texts->count);
}

/* Compiles the network for texts of this length, unless it is. */
static att_status prepare_length(pass *p, const att_batch *inputs, int length)
{
    att_ablation *a = p->ablation;
    const bool first = !a->explorer;
    att_explorer_form form = att_ablation_form(a, p->options);
    if (p->length == length)
        return ATT_OK;
    form.outputs = a->vector;
    p->length = 0;
    att_ablation_end_runs(a);
    ATT_TRY(att_explorer_create_form(a->network, &form, inputs, &a->explorer));
    ATT_TRY(att_new(a->context, &a->tile, (size_t)a->samples * (2 * (size_t)length + 1) * sizeof(int32_t),
                    "the texts of a run"));
    p->length = length;
    return first ? begin(p) : ATT_OK;
}

/* --- passes ------------------------------------------------------------------------------------------------------- */

static att_status run_text(pass *p, int64_t index)
{
    att_text_inputs room;
    att_ablation *a = p->ablation;
    const att_token_ids *text = &p->texts->texts[index];
    att_batch inputs = att_network_text_inputs(a->network, text, &room);
    inputs.indices = &index;
    ATT_TRY(prepare_length(p, &inputs, text->count));
    a->pass_runs = p->before + p->texts->count * (1 + (int64_t)a->tried.count);
    return att_ablation_observe(a, &inputs, NULL);
}

static att_status run_all(pass *p)
{
    p->before = p->ablation->pass_runs;
    for (int64_t i = 0; i < p->texts->count; i++)
        ATT_TRY(run_text(p, p->order[i]));
    return ATT_OK;
}

static att_status correlate(const pass *p)
{
    att_measure *measure = NULL;
    ATT_TRY(att_network_measure_texts(p->ablation->network, p->texts->texts, p->texts->count, ATT_ABLATION_INSTRUMENTS,
                                      NULL, NULL, &measure));
    const att_status status = att_ablation_correlate(p->ablation, measure);
    att_measure_destroy(&measure);
    return status;
}

static att_status run(pass *p)
{
    ATT_TRY(att_network_order_texts(p->ablation->network, p->texts->texts, p->texts->count, &p->order));
    if (!p->ablation->greedy) {
        ATT_TRY(run_all(p));
        ATT_TRY(att_ablation_conclude(p->ablation));
        return correlate(p);
    }
    for (bool done = false; !done;) {
        ATT_TRY(run_all(p));
        ATT_TRY(att_ablation_end_pass(p->ablation, &done));
    }
    return ATT_OK;
}

att_status att_ablate_texts(att_network *network, const att_token_texts *texts, const att_ablation_options *given,
                            att_ablation **out)
{
    const att_ablation_options options = given ? *given : att_ablation_options_defaults();
    att_ablation *a = NULL;
    ATT_TRY(att_require(network->context, texts, "the texts of an ablation"));
    ATT_TRY(check(network, &options));
    ATT_TRY(att_ablation_new(network, &options, &a));
    pass p = {.ablation = a, .options = &options, .texts = texts};
    a->reads_texts = true;
    a->vector = a->classes == 0 ? "mean" : NULL;
    a->samples = options.batch_size < SAMPLES ? options.batch_size : SAMPLES;
    const att_status status = run(&p);
    att_free(a->context, p.order);
    att_ablation_end_runs(a);
    a->seconds = att_seconds_now() - a->started;
    if (status == ATT_OK)
        *out = a;
    else
        att_ablation_destroy(&a);
    return status;
}

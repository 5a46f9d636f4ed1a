/* Trains a small ViT for thirty updates on images made here: noise with a dark (class 0) or a bright (class 1) square
 * somewhere. This is the loop underneath att_train(), for those who want their own.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <attscope/models.h>
#include <attscope/task.h>
#include <attscope/update.h>

enum { SIDE = 16, BATCH = 32, UPDATES = 30 };

static uint32_t draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u; /* Numerical Recipes' generator; its high bits are the good ones */
    return *state >> 8;
}

static void make_batch(uint32_t *state, float images[BATCH][SIDE][SIDE], int32_t labels[BATCH])
{
    for (int i = 0; i < BATCH; i++) {
        for (int p = 0; p < SIDE * SIDE; p++)
            images[i][p / SIDE][p % SIDE] = (float)draw(state) / (1 << 24) - 0.5f;
        labels[i] = (int32_t)(draw(state) >> 23);
        uint32_t left = draw(state) >> 21, top = draw(state) >> 21; /* 0..7 */
        for (uint32_t y = top; y < top + 6; y++)
            for (uint32_t x = left; x < left + 6; x++)
                images[i][y][x] += labels[i] ? 1.0f : -1.0f;
    }
}

typedef struct trainer {
    att_session *session;
    att_gradient *gradient;
    att_update *update;
} trainer;

static att_status make_update(const trainer *t, uint32_t *state, int step, double *loss)
{
    static float images[BATCH][SIDE][SIDE], losses[BATCH];
    int32_t labels[BATCH];
    const att_hyper hyper = {
        .lr = 3e-3, .weight_decay = 0.05, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .update = step + 1};
    make_batch(state, images, labels);
    att_gradient_begin(t->gradient);
    att_status status = att_session_bind(t->session, "image", images);
    if (status == ATT_OK)
        status = att_session_bind(t->session, "target", labels);
    if (status == ATT_OK) /* each sample's loss counts 1 / BATCH: the gradient is that of the mean */
        status = att_session_accumulate(t->session, t->gradient, BATCH, 1.0 / BATCH, 0, step, 0);
    if (status == ATT_OK)
        status = att_session_output(t->session, "loss", 0, BATCH, losses);
    if (status == ATT_OK)
        status = att_update_reduce(t->update, NULL);
    if (status == ATT_OK)
        status = att_update_apply(t->update, &hyper);
    *loss = 0;
    for (int i = 0; status == ATT_OK && i < BATCH; i++)
        *loss += losses[i] / BATCH;
    return status;
}

static att_status train(const trainer *t)
{
    uint32_t state = 1;
    double loss = 0, first = 0;
    for (int step = 0; step < UPDATES; step++) {
        att_status status = make_update(t, &state, step, &loss);
        if (status != ATT_OK)
            return status;
        first = step ? first : loss;
        if (step % 5 == 0 || step == UPDATES - 1)
            printf("update %2d: loss %.3f\n", step, loss);
    }
    return loss < 0.5 * first ? ATT_OK : ATT_ERR_INTERNAL;
}

int main(void)
{
    att_context *context = NULL;
    att_model *model = NULL;
    att_weights *weights = NULL;
    att_plan *plan = NULL;
    trainer t = {.session = NULL};
    const att_update_options with = att_update_options_defaults(); /* AdamW */
    att_option_values network = att_options_none();
    att_options_set(&network, "img_size", SIDE);
    att_options_set(&network, "in_chans", 1);
    att_options_set(&network, "num_classes", 2);
    att_options_set(&network, "patch_size", 4);
    att_options_set(&network, "embed_dim", 32);
    att_options_set(&network, "depth", 2);
    att_options_set(&network, "num_heads", 2);
    att_options_set_text(&network, "modules", "cb"); /* context broadcasting at the end of each MLP */
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN;

    att_status status = att_context_create(NULL, &context);
    if (status == ATT_OK)
        status = att_model_create(context, "vit_tiny_patch16_224", &network, ATT_F32, &model);
    if (status == ATT_OK) /* the input "target" and the output "loss" */
        status = att_task_add_loss("classification", att_model_graph(model), &(att_task_setup){.classes = 2});
    if (status == ATT_OK)
        status = att_weights_create(att_model_graph(model), "cpu", &weights);
    if (status == ATT_OK)
        status = att_weights_initialise(weights, 42);
    if (status == ATT_OK)
        status = att_plan_compile(att_model_graph(model), &options, &plan);
    if (status == ATT_OK)
        status = att_session_create(plan, weights, BATCH, &t.session);
    if (status == ATT_OK)
        status = att_gradient_create(weights, &t.gradient);
    if (status == ATT_OK)
        status = att_update_create(t.gradient, &with, &t.update);
    if (status == ATT_OK)
        status = train(&t);
    if (status != ATT_OK)
        fprintf(stderr, "%s: %s\n", att_status_name(status), context ? att_context_message(context) : "");

    att_update_destroy(&t.update);
    att_gradient_destroy(&t.gradient);
    att_session_destroy(&t.session);
    att_plan_destroy(&plan);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    att_context_destroy(&context);
    return status != ATT_OK;
}

/* Training with several processes, here threads: the same bits as with one process. */
#include <attscope/update.h>

#include "base/comm/threads.h"
#include "base/core/clock.h"
#include "networks/models/fixture.h"
#include "networks/models/loss.h"
#include "sanitized.h"

/* The batch is no multiple of the lanes, so that shares of processes differ in size. */
enum { BATCH = 9, UPDATES = 3, LANES = 4, SIDE = 16, CLASSES = 3, PIXELS = 3 * SIDE * SIDE };

typedef struct setup {
    const char *name, *attn;
    att_precision precision;
    bool sync;
    int processes, threads;
} setup;

typedef struct outcome {
    const setup *with;
    int rank;
    float *values; /* of all tensors */
    int64_t count;
    float losses[UPDATES][BATCH], logits[UPDATES][BATCH][CLASSES];
    double norms[UPDATES];
    double seconds; /* of the last update */
    att_comm_figures figures;
    char fingerprint[512];
} outcome;

/* What a rank makes, freed together. */
typedef struct training {
    att_context *context;
    att_model *model;
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    att_gradient *gradient;
    att_update *update;
    float images[BATCH * PIXELS];
    int32_t targets[BATCH];
} training;

#define TRY(call)                                \
    do {                                         \
        if ((call) != ATT_OK)                    \
            return att_context_message(context); \
    } while (0)

static const char *make(training *it, att_comm *comm, const setup *with)
{
    att_context *context = it->context;
    att_option_values values = att_options_none();
    att_options_set(&values, "img_size", SIDE), att_options_set(&values, "num_classes", CLASSES);
    if (with->attn)
        att_options_set_text(&values, "modules", with->attn);
    else
        att_options_set(&values, "patch_size", 4), att_options_set(&values, "depth", 2);
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN, options.lanes = LANES, options.precision = with->precision;
    options.comm = comm, options.sync_statistics = with->sync;
    TRY(att_model_create(context, with->name, &values, ATT_F32, &it->model));
    loss_add(it->model, 0.1);
    const att_graph *graph = att_model_graph(it->model);
    TRY(att_plan_compile(graph, &options, &it->plan));
    TRY(att_weights_create(graph, "cpu", &it->weights));
    TRY(att_weights_initialise(it->weights, 1));
    TRY(att_session_create(it->plan, it->weights, BATCH, &it->session));
    TRY(att_gradient_create(it->weights, &it->gradient));
    TRY(att_update_create(it->gradient, &(att_update_options){.backend = "cpu", .optimizer = "sgd"}, &it->update));
    for (uint32_t i = 0; i < BATCH * PIXELS; i++)
        it->images[i] = (float)formula("image", i);
    for (int i = 0; i < BATCH; i++)
        it->targets[i] = i % CLASSES;
    int first = BATCH * att_comm_rank(comm) / att_comm_size(comm);
    TRY(att_session_bind(it->session, "image", it->images + (size_t)first * PIXELS));
    TRY(att_session_bind(it->session, "target", it->targets + first));
    return NULL;
}

/* Two batches to each update, the second at a later position. */
static const char *update(training *it, outcome *out, int step)
{
    att_context *context = it->context;
    att_hyper hyper = {.lr = 0.05, .momentum = 0.9, .update = step + 1};
    att_gradient_begin(it->gradient);
    for (int part = 0; part < 2; part++)
        TRY(att_session_accumulate(it->session, it->gradient, BATCH, 0.5 / BATCH, 1, step, part * BATCH));
    TRY(att_session_output(it->session, "loss", 0, BATCH, out->losses[step]));
    TRY(att_session_output(it->session, "logits", 0, BATCH, out->logits[step]));
    TRY(att_update_reduce(it->update, &out->norms[step]));
    TRY(att_update_apply(it->update, &hyper));
    return NULL;
}

static const char *read_values(const training *it, outcome *out)
{
    att_context *context = it->context;
    for (int i = 0; i < att_weights_count(it->weights); i++)
        out->count += att_shape_count(att_weights_at(it->weights, i).shape);
    float *to = out->values = malloc((size_t)out->count * sizeof *out->values);
    for (int i = 0; i < att_weights_count(it->weights); i++) {
        int64_t elements = att_shape_count(att_weights_at(it->weights, i).shape);
        TRY(att_weights_get(it->weights, -1, i, to, elements));
        to += elements;
    }
    snprintf(out->fingerprint, sizeof out->fingerprint, "%s", att_plan_fingerprint(it->plan));
    return NULL;
}

/* Rank 0 comes several updates late, so that the others wait for its sums. With `sync` they would wait for its
 * statistics. */
static void come_late(const outcome *out)
{
    double end = att_seconds_now() + 4 * out->seconds;
    while (!out->with->sync && out->with->processes > 1 && att_seconds_now() < end)
        att_sleep(0.001);
}

static const char *train(att_context *context, att_comm *comm, void *user)
{
    outcome *out = user;
    training *it = calloc(1, sizeof *it);
    it->context = context;
    out->rank = att_comm_rank(comm);
    const char *wrong = make(it, comm, out->with);
    for (int step = 0; step < UPDATES && !wrong; step++) {
        double begin = att_seconds_now();
        if (step == 1 && out->rank == 0)
            come_late(out);
        wrong = update(it, out, step);
        out->seconds = att_seconds_now() - begin;
    }
    if (!wrong)
        wrong = read_values(it, out);
    out->figures = att_comm_describe(comm);
    att_update_destroy(&it->update);
    att_gradient_destroy(&it->gradient);
    att_session_destroy(&it->session);
    att_weights_destroy(&it->weights);
    att_plan_destroy(&it->plan);
    att_model_destroy(&it->model);
    free(it);
    return wrong;
}

static void run(const setup *with, outcome outcomes[MOST_RANKS])
{
    for (int i = 0; i < with->processes; i++)
        outcomes[i] = (outcome){.with = with};
    run_ranks(with->processes, with->threads, train, outcomes, sizeof *outcomes);
}

static void assert_same(const outcome *a, const outcome *b)
{
    assert_string_equal(a->fingerprint, b->fingerprint);
    assert_memory_equal(a->losses, b->losses, sizeof a->losses);
    assert_memory_equal(a->logits, b->logits, sizeof a->logits);
    assert_memory_equal(a->norms, b->norms, sizeof a->norms);
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->values, b->values, (size_t)a->count * sizeof *a->values);
}

static void assert_figures(const outcome *out, int rank)
{
    const att_comm_figures *figures = &out->figures;
    assert_true(figures->bytes_sent > 0 && figures->bytes_received > 0 && figures->sum_seconds > 0);
    assert_true(figures->wait_seconds > figures->sum_wait_seconds);
    assert_true(out->with->sync || rank == 0 || figures->sum_wait_seconds > 0);
}

static void compare(setup with)
{
    static const int processes[] = {2, 4, 2}, threads[] = {2, 1, 1};
    outcome alone[MOST_RANKS], shared[MOST_RANKS];
    with.processes = 1, with.threads = 2;
    run(&with, alone);
    size_t count = is_sanitized() ? 1 : sizeof processes / sizeof *processes;
    for (size_t i = 0; i < count; i++) {
        with.processes = processes[i], with.threads = threads[i];
        run(&with, shared);
        for (int rank = 0; rank < with.processes; rank++) {
            assert_same(&shared[rank], alone);
            assert_figures(&shared[rank], rank);
            free(shared[rank].values);
        }
    }
    free(alone->values);
}

TEST(vits_have_the_same_bits)
{
    for (int mixed = 0; mixed < 2; mixed++)
        compare((setup){.name = "vit_tiny_patch16_224", .precision = mixed ? ATT_MIXED : ATT_FULL});
}

TEST(residual_networks_have_the_same_bits)
{
    static const char *const networks[][2] = {{"resnet29", "se"}, {"preresnet29", "cbam"}};
    for (int i = 0; i < 4; i += is_sanitized() ? 3 : 1)
        compare((setup){.name = networks[i / 2][0],
                        .attn = networks[i / 2][1],
                        .precision = i % 2 ? ATT_MIXED : ATT_FULL,
                        .sync = true});
}

/* Instruments with a state: their figures depend neither on threads nor on batch sizes. */
#include <attscope/attscope.h>

#include "base/core/spread.h"
#include "context.h"

/* --- instruments of this test ------------------------------------------------------------------------------------- */

enum { WIDTH = 3, SAMPLES = 300 };

/* The values of sample s are s, sin(s) and 1 / (1 + s). */
static float value_of(int sample, int column)
{
    return column == 0 ? (float)sample : column == 1 ? sinf((float)sample) : 1 / (1 + (float)sample);
}

/* Sums whose last bits depend on the order and grouping of samples; and whether a sample came out of order. */
typedef struct kept {
    int64_t count, first, last, out_of_turn;
    att_spread sines;
    double largest;
} kept;

static att_status ask_twice(att_requests *requests)
{
    att_requests_row(requests, "twice", 0.5);
    att_requests_series(requests, "", -1, "sine");
    att_requests_series(requests, "", -1, "largest");
    att_requests_series(requests, "", -1, "out of turn");
    return ATT_OK;
}

static size_t kept_size(const att_observed *shape)
{
    assert_int_equal(shape->count, 1);
    assert_int_equal(shape->lengths[0], WIDTH);
    assert_true(shape->constants[0] == 0.5);
    return sizeof(kept);
}

static void kept_observe(void *state, const att_observed *observed)
{
    kept *k = state;
    int64_t sample = (int64_t)(observed->rows[0][0] * observed->constants[0]);
    k->first = k->count == 0 ? sample : k->first;
    k->out_of_turn += k->count > 0 && sample != k->last + 1;
    k->last = sample;
    k->largest = k->count == 0 ? sample : fmax(k->largest, (double)sample);
    k->count++;
    att_spread_add(&k->sines, observed->rows[0][1] * observed->constants[0]);
}

static void kept_merge(void *state, const void *later, const att_observed *shape)
{
    kept *k = state;
    const kept *more = later;
    assert_int_equal(shape->count, 1);
    if (more->count == 0)
        return;
    k->out_of_turn += more->out_of_turn + (k->count > 0 && more->first != k->last + 1);
    k->first = k->count == 0 ? more->first : k->first;
    k->last = more->last;
    k->largest = k->count == 0 ? more->largest : fmax(k->largest, more->largest);
    k->count += more->count;
    att_spread_merge(&k->sines, &more->sines);
}

static void kept_report(const void *state, const att_observed *shape, att_figure *figures)
{
    const kept *k = state;
    assert_int_equal(shape->count, 1);
    figures[0] = (att_figure){att_spread_mean(&k->sines), att_spread_deviation(&k->sines), k->count, 0};
    figures[1] = (att_figure){k->count > 0 ? k->largest : NAN, NAN, k->count, 0};
    figures[2] = (att_figure){(double)k->out_of_turn, NAN, k->count, k->out_of_turn};
}

static const att_instrument keeper = {
    .info = {.name = "keeper", .summary = "twice", .unit = "1", .formula = "2 x", .by_sample = true},
    .request = ask_twice,
    .state = {kept_size, kept_observe, kept_merge, kept_report},
};

static const att_instrument labelled = {
    .info = {.name = "labelled", .summary = "twice", .unit = "1", .formula = "2 x", .needs_labels = true},
    .request = ask_twice,
    .state = {kept_size, kept_observe, kept_merge, kept_report},
};

static att_status ask_sine(att_requests *requests)
{
    att_requests_row(requests, "twice", 0.5);
    att_requests_series(requests, "", -1, "sine");
    return ATT_OK;
}

static void observe_sine(const att_observed *observed, double *values)
{
    values[0] = observed->rows[0][1] * observed->constants[0];
}

static const att_instrument plain = {
    .info = {.name = "plain", .summary = "twice", .unit = "1", .formula = "2 x", .by_sample = true},
    .request = ask_sine,
    .observe = observe_sine};

enum { SINE, LARGEST, OUT_OF_TURN, LABELLED, PLAIN = LABELLED + 3, FIGURES };

/* --- a graph for these instruments -------------------------------------------------------------------------------- */

typedef struct probed {
    att_graph *graph;
    att_measure *measure;
    att_plan *plan;
    att_weights *weights;
    att_session *session;
} probed;

static void set_up(probed *w, int batch)
{
    att_plan_options options = att_plan_options_defaults();
    must(att_graph_create(context, ATT_F32, &w->graph));
    att_value x = att_graph_input(w->graph, "x", ATT_F32, att_shape_of(WIDTH));
    att_graph_output(w->graph, "twice", att_add(w->graph, x, x));
    must(att_measure_create(w->graph, "all", "*", &w->measure)); /* the others find nothing to observe */
    must(att_plan_compile(w->graph, &options, &w->plan));
    must(att_weights_create(w->graph, "cpu", &w->weights));
    must(att_session_create(w->plan, w->weights, batch, &w->session));
}

static void observe(probed *w, int first, int count, const int32_t *labels)
{
    static float rows[SAMPLES][WIDTH];
    for (int i = 0; i < count; i++)
        for (int c = 0; c < WIDTH; c++)
            rows[i][c] = value_of(first + i, c);
    must(att_session_bind(w->session, "x", rows));
    must(att_session_run(w->session, count));
    must(att_measure_observe(w->measure, w->session, count, labels));
}

static void observe_all(probed *w, int batch)
{
    for (int first = 0; first < SAMPLES; first += batch)
        observe(w, first, SAMPLES - first < batch ? SAMPLES - first : batch, NULL);
}

static void tear_down(probed *w)
{
    att_session_destroy(&w->session);
    att_weights_destroy(&w->weights);
    att_plan_destroy(&w->plan);
    att_measure_destroy(&w->measure);
    att_graph_destroy(&w->graph);
}

static void open_context(int threads)
{
    att_settings settings = att_settings_defaults();
    settings.threads = threads;
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    must(att_instrument_register(context, &keeper));
    must(att_instrument_register(context, &labelled));
    must(att_instrument_register(context, &plain));
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

TEST(figures_depend_neither_on_threads_nor_on_batches)
{
    static const int threads[] = {1, 2, 5}, batches[] = {SAMPLES, 1, 7, ATT_STATE_CHUNK, 100, 2 * ATT_STATE_CHUNK};
    att_measurement first[FIGURES];
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        open_context(threads[t]);
        for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
            probed w;
            set_up(&w, batches[b]);
            assert_int_equal(att_measure_count(w.measure), FIGURES);
            observe_all(&w, batches[b]);
            for (int i = 0; i < FIGURES; i++) {
                att_measurement m = att_measure_at(w.measure, i);
                if (t == 0 && b == 0)
                    first[i] = m;
                assert_memory_equal(&m.mean, &first[i].mean, sizeof m.mean);
                assert_memory_equal(&m.deviation, &first[i].deviation, sizeof m.deviation);
                assert_int_equal(m.count, first[i].count);
                assert_int_equal(m.undefined, first[i].undefined);
            }
            tear_down(&w);
        }
        att_context_destroy(&context);
    }
    assert_int_equal(first[SINE].count, SAMPLES);
    assert_true(first[LARGEST].mean == SAMPLES - 1);
    assert_true(first[OUT_OF_TURN].mean == 0);
    /* Both forms compute the same mean; measured difference: 1e-17. */
    assert_true(fabs(first[SINE].mean - first[PLAIN].mean) < 1e-14);
    assert_true(fabs(first[SINE].deviation - first[PLAIN].deviation) < 1e-14);
}

TEST(cleared_samples_leave_nothing)
{
    open_context(2);
    probed w;
    set_up(&w, 100);
    assert_true(isnan(att_measure_at(w.measure, SINE).mean));
    assert_int_equal(att_measure_at(w.measure, SINE).count, 0);
    observe(&w, 0, 90, NULL);
    att_measure_clear(w.measure);
    assert_int_equal(att_measure_at(w.measure, SINE).count, 0);
    int observed = -1;
    (void)att_measure_observed(w.measure, &observed);
    assert_int_equal(observed, 0);
    observe(&w, 5, 100, NULL);
    observe(&w, 105, 100, NULL);
    assert_int_equal(att_measure_at(w.measure, SINE).count, 200);
    assert_true(att_measure_at(w.measure, LARGEST).mean == 204);
    assert_true(att_measure_at(w.measure, OUT_OF_TURN).mean == 0);
    tear_down(&w);
    att_context_destroy(&context);
}

TEST(samples_without_labels_are_left_out)
{
    static const int32_t labels[30] = {0};
    open_context(2);
    probed w;
    set_up(&w, 30);
    observe(&w, 0, 30, NULL);
    observe(&w, 30, 30, labels);
    assert_int_equal(att_measure_at(w.measure, SINE).count, 60);
    assert_int_equal(att_measure_at(w.measure, LABELLED + SINE).count, 30);
    tear_down(&w);
    att_context_destroy(&context);
}

/* A state keeps no numbers of single samples. */
TEST(single_samples_are_kept_of_the_other_form)
{
    open_context(1);
    probed w;
    set_up(&w, 30);
    must(att_measure_keep_samples(w.measure, 4));
    observe(&w, 0, 30, NULL);
    assert_int_equal(att_measure_at(w.measure, SINE).sample_count, 0);
    assert_int_equal(att_measure_at(w.measure, PLAIN).sample_count, 4);
    assert_true(att_measure_at(w.measure, PLAIN).samples[3] == sinf(3));
    tear_down(&w);
    att_context_destroy(&context);
}

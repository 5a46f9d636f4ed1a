/* Instruments registered by a program: wrong ones are refused, and the others work like built-in ones in
 * their context and in no other. */
#include "study/network/registered.h"

#include "study/measure/list.h"

/* The mean of the features after the last norm, in one of two units. */
static att_status request_features(att_requests *requests)
{
    att_graph *graph = att_requests_graph(requests);
    int node = -1, last = -1;
    while ((node = att_requests_node(requests, "layer_norm", node)) >= 0)
        last = node;
    if (last < 0)
        return att_requests_found_nothing(requests, "layer norm");
    const att_node_info info = att_graph_node_at(graph, last);
    assert_string_equal(info.op, "layer_norm");
    assert_true(info.in_count == 3 && info.out_count >= 1 && last < att_graph_node_count(graph));
    att_requests_value(requests, "own.features", info.out[0], 100);
    att_requests_series(requests, info.scope, -1, "mean");
    return ATT_OK;
}

static double mean_of(const att_observed *observed)
{
    double sum = 0;
    for (int64_t c = 0; c < observed->lengths[0]; c++)
        sum += (double)observed->rows[0][c];
    return sum / (double)observed->lengths[0];
}

static void observe_features(const att_observed *observed, double *values)
{
    values[0] = mean_of(observed) * (observed->options[0] == 1 ? observed->constants[0] : 1);
}

static const char *const units[] = {"one", "per_cent", NULL};
static const att_detail feature_options[] = {{.name = "in", .meaning = "unit", .high = 1, .choices = units}};
static const att_instrument features = {
    .info = {.name = "features",
             .summary = "s",
             .unit = "1",
             .formula = "f",
             .options = feature_options,
             .option_count = 1},
    .request = request_features,
    .observe = observe_features,
};

/* The largest mean over all samples. */
typedef struct largest {
    int64_t count;
    double value;
} largest;

static size_t largest_size(const att_observed *shape)
{
    (void)shape;
    return sizeof(largest);
}

static void largest_observe(void *state, const att_observed *observed)
{
    largest *l = state;
    double mean = mean_of(observed);
    l->value = l->count++ == 0 || mean > l->value ? mean : l->value;
}

static void largest_merge(void *state, const void *later, const att_observed *shape)
{
    (void)shape;
    largest *l = state;
    const largest *more = later;
    if (more->count > 0 && (l->count == 0 || more->value > l->value))
        l->value = more->value;
    l->count += more->count;
}

static void largest_report(const void *state, const att_observed *shape, att_figure *figures)
{
    (void)shape;
    const largest *l = state;
    figures[0] = (att_figure){.mean = l->count > 0 ? l->value : (double)NAN, .deviation = NAN, .count = l->count};
}

static const att_instrument most = {
    .info = {.name = "most", .summary = "s", .unit = "1", .formula = "f"},
    .request = request_features,
    .state = {largest_size, largest_observe, largest_merge, largest_report},
};

static att_status request_for_nothing_there(att_requests *requests)
{
    att_requests_exclude(requests); /* no series is declared yet */
    att_requests_row(requests, "nowhere", 1);
    att_requests_series(requests, "", -1, "mean");
    return ATT_OK;
}

FIXTURE_TEST(descriptors_of_instruments_are_checked)
{
    att_context *context = f->context;
#define INFO .summary = "s", .unit = "1", .formula = "f"
    static const char *const commas[] = {"a,b", NULL};
    static const att_detail unnamed = {.name = "p:r", .meaning = "m"},
                            with_comma = {.name = "per", .meaning = "m", .choices = commas};
    const struct {
        att_instrument instrument;
        const char *message;
    } wrong[] = {
        {{.info = {INFO}, .request = request_features, .observe = observe_features}, "this instrument has no name"},
        {{.info = {.name = "-mine", INFO}, .request = request_features, .observe = observe_features}, "a name must be"},
        {{.info = {.name = "a,b", INFO}, .request = request_features, .observe = observe_features}, "a name must be"},
        {{.info = {.name = "a/b", INFO}, .request = request_features, .observe = observe_features}, "a name must be"},
        {{.info = {.name = "all", INFO}, .request = request_features, .observe = observe_features},
         "this name is reserved"},
        {{.info = {.name = "nsi", INFO}, .request = request_features, .observe = observe_features},
         "this name is in use"},
        {{.info = {.name = "mine", .unit = "1", .formula = "f"},
          .request = request_features,
          .observe = observe_features},
         "it needs `summary`"},
        {{.info = {.name = "mine", INFO}, .observe = observe_features}, "no function `request`"},
        {{.info = {.name = "mine", INFO}, .request = request_features}, "either `observe` or all four"},
        {{.info = {.name = "mine", INFO}, .request = request_features, .state = {.size = largest_size}}, "all four"},
        {{.info = {.name = "mine", INFO},
          .request = request_features,
          .observe = observe_features,
          .state = {largest_size, largest_observe, largest_merge, largest_report}},
         "either `observe` or all four"},
        {{.info = {.name = "mine", INFO, .options = &unnamed, .option_count = 1},
          .request = request_features,
          .observe = observe_features},
         "each option needs a name"},
        {{.info = {.name = "mine", INFO, .options = &with_comma, .option_count = 1},
          .request = request_features,
          .observe = observe_features},
         "option \"per\": its choices must be"},
        {{.info = {.name = "mine", INFO, .options = &unnamed, .option_count = ATT_INSTRUMENT_OPTIONS + 1},
          .request = request_features,
          .observe = observe_features},
         "`option_count` must be in 0..5"},
    };
#undef INFO
    const int count = att_instrument_count(context);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(context, att_instrument_register(context, &wrong[i].instrument), ATT_ERR_ARGUMENT,
                     wrong[i].message);
    assert_fails(context, att_instrument_register(context, NULL), ATT_ERR_ARGUMENT, "NULL");
    assert_int_equal(att_instrument_count(context), count);
    add_instrument(f, &features);
    assert_fails(context, att_instrument_register(context, &features), ATT_ERR_ARGUMENT, "this name is in use");
    for (int i = 0; i < att_instrument_count(NULL); i++)
        CHECK(context, att_instrument_check(context, att_catalog_at(&att_instruments, NULL, i)));
}

static att_measurement figure(const att_measure *measure, const char *instrument)
{
    for (int i = 0; i < att_measure_count(measure); i++)
        if (strcmp(att_measure_at(measure, i).instrument, instrument) == 0)
            return att_measure_at(measure, i);
    fail_msg("%s has no figure", instrument);
    return (att_measurement){0};
}

FIXTURE_TEST(registered_instruments_measure)
{
    att_context *other = open_other();
    att_network *network = NULL;
    att_measure *one = NULL, *per_cent = NULL, *all = NULL;
    att_evaluate_options options = att_evaluate_options_defaults();
    att_evaluation result;
    att_instrument_info info;
    add_instrument(f, &features);
    add_instrument(f, &most);
    assert_true(att_instrument_find(f->context, "most", &info) && strcmp(info.unit, "1") == 0);
    assert_false(att_instrument_find(other, "most", &info));
    assert_int_equal(att_instrument_count(f->context), att_instrument_count(other) + 2);
    assert_string_equal(att_instrument_at(f->context, att_instrument_count(NULL)).name, "features");
    CHECK(f->context, att_network_wrap(f->model, f->weights, NULL, &network));
    options.batch_size = 3;
    CHECK(f->context, att_network_observe(network, "most,features", "*", &one));
    options.measure = one;
    CHECK(f->context, att_network_evaluate(network, f->eval, &options, &result));
    CHECK(f->context, att_network_observe(network, "features:in=per_cent", "*", &per_cent));
    options.measure = per_cent;
    CHECK(f->context, att_network_evaluate(network, f->eval, &options, &result));
    CHECK(f->context, att_network_observe(network, "all,-features", "*", &all));
    options.measure = all;
    CHECK(f->context, att_network_evaluate(network, f->eval, &options, &result));
    att_measurement mean = figure(one, "features"), hundredfold = figure(per_cent, "features"),
                    top = figure(one, "most");
    assert_int_equal(mean.count, EVAL_IMAGES);
    assert_int_equal(top.count, EVAL_IMAGES);
    assert_string_equal(mean.node, "norm");
    assert_true(fabs(hundredfold.mean - 100 * mean.mean) < 1e-9); /* measured: 0 */
    assert_true(top.mean >= mean.mean && mean.deviation > 0);
    assert_true(figure(all, "most").mean == top.mean);
    assert_true(att_measure_instrument_count(all) > 3);
    for (int i = 0; i < att_measure_instrument_count(all); i++)
        assert_string_not_equal(att_measure_instrument_at(all, i).name, "features");
    att_measure_destroy(&one);
    att_measure_destroy(&per_cent);
    att_measure_destroy(&all);
    att_network_close(&network);
    assert_fails(f->context, att_instruments_check(f->context, "features:in=miles"), ATT_ERR_ARGUMENT,
                 "in cannot be \"miles\", only one, per_cent");
    assert_fails(other, att_instruments_check(other, "most"), ATT_ERR_NOT_FOUND, "no instrument \"most\"");
    att_context_destroy(&other);
}

FIXTURE_TEST(a_row_that_the_graph_lacks_is_refused)
{
    static const att_instrument lost = {.info = {.name = "lost", .summary = "s", .unit = "1", .formula = "f"},
                                        .request = request_for_nothing_there,
                                        .observe = observe_features};
    att_measure *measure = NULL;
    add_instrument(f, &lost);
    assert_fails(f->context, att_measure_create(att_model_graph(f->model), "lost", "*", &measure), ATT_ERR_ARGUMENT,
                 "instrument \"lost\" asks for \"nowhere\"");
}

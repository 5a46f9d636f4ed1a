#include <stdio.h>

#include "networks/tasks/task.h"
#include "study/measure/list.h"
#include "study/measure/moments.h"
#include "study/measure/stiffness.h"

enum { DT }; /* options */
static const att_detail options[] = {ATT_DT_OPTION};

/* Requests the norms of all steps, then the logits, whose length is the number of classes. */
static att_status request(att_requests *requests)
{
    const att_graph *graph = att_requests_graph(requests);
    const char *output = att_task_class_output(graph);
    ATT_TRY(att_requests_need_classes(requests));
    ATT_TRY(att_stiffness_request(requests, (att_dt)att_requests_option(requests, DT)));
    int64_t classes = att_shape_count(att_value_shape(graph, att_graph_find_output(graph, output)));
    att_requests_row(requests, output, 0);
    for (int r = 0; r < ATT_READINGS; r++)
        for (int64_t c = 0; c < classes; c++) {
            char name[32];
            snprintf(name, sizeof name, "class.%lld", (long long)c);
            att_requests_series(requests, name, -1, att_nsi_readings[r]);
        }
    return ATT_OK;
}

/* --- the state: TNS of each reading and class --------------------------------------------------------------------- */

static int64_t classes_of(const att_observed *shape)
{
    return shape->lengths[shape->count - 1];
}

static int64_t tallies_of(const att_observed *shape)
{
    return ATT_READINGS * classes_of(shape);
}

static size_t size(const att_observed *shape)
{
    return (size_t)tallies_of(shape) * sizeof(att_tally);
}

static void observe(void *state, const att_observed *observed)
{
    att_tally *tns = state;
    if (observed->label < 0 || observed->label >= classes_of(observed))
        return;
    for (int r = 0; r < ATT_READINGS; r++) {
        const att_stiffness s = att_stiffness_of(observed, observed->count - 1, r);
        att_tally_add(&tns[r * classes_of(observed) + observed->label], att_tns(s.largest, s.sum / s.count));
    }
}

static void merge(void *state, const void *later, const att_observed *shape)
{
    att_tallies_merge(state, later, tallies_of(shape));
}

static void report(const void *state, const att_observed *shape, att_figure *figures)
{
    for (int64_t i = 0; i < tallies_of(shape); i++)
        figures[i] = att_tally_figure((const att_tally *)state + i);
}

static const att_statistic_scale scales[] = {
    {NULL, "0 if zeta is the same in all steps; tns of all images is the mean of its classes, weighted by their images",
     "the formula"},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_tns_classes = {
    .info = {.name = "tns_classes",
             .view = "step size",
             .title = "Total neural stiffness by class",
             .summary = "total neural stiffness of the images of each class",
             .unit = "1",
             .formula = "TNS as in tns, over the images of one class",
             .source = "TNS: Huang et al., ICCV 2023",
             .scales = scales,
             .reading = "classes are numbered as the network's outputs; readings, steps and undefined values as in tns",
             .options = options,
             .option_count = sizeof options / sizeof *options,
             .needs_labels = true,
             .costly = true,
             .readings = att_nsi_readings,
             .readings_agree = ATT_NSI_READINGS_AGREE},
    .request = request,
    .state = {size, observe, merge, report},
};

/* Registers an instrument of the program and prints its figures for a network.
 *
 *   instrument CHECKPOINT IMAGES
 *
 * CHECKPOINT is a weights file, the folder of a training, or the name of a network, which gets random weights. IMAGES
 * is an image file or a folder. The instrument reports the length of the mean token after each residual addition.
 */
#include <math.h>
#include <stdio.h>

#include <attscope/attscope.h>

/* Called when the measure is created. Finds the residual additions, asks for a value of each, and declares a figure for
 * each. */
static att_status request(att_requests *requests)
{
    att_graph *graph = att_requests_graph(requests);
    bool found = false;
    for (att_residual_step step = {.node = -1}; att_residual_step_next(graph, step.node, &step);) {
        char name[256];
        if (att_requests_node(requests, "add", step.node - 1) != step.node)
            continue; /* the user selected other nodes */
        snprintf(name, sizeof name, "%s.mean_token", step.scope);
        att_graph_scope(graph, step.scope);
        att_requests_value(requests, name, att_global_mean(graph, step.after), 1);
        att_requests_series(requests, step.scope, -1, "length");
        found = true;
    }
    return found ? ATT_OK : att_requests_found_nothing(requests, "residual addition");
}

/* Called for each sample. rows[i]: the i-th value asked for. values[i]: the number for the i-th figure. */
static void observe(const att_observed *observed, double *values)
{
    for (int i = 0; i < observed->count; i++) {
        double squares = 0;
        for (int64_t c = 0; c < observed->lengths[i]; c++)
            squares += (double)observed->rows[i][c] * (double)observed->rows[i][c];
        values[i] = sqrt(squares);
    }
}

static const att_instrument centre = {
    .info = {.name = "centre",
             .summary = "length of the mean token",
             .unit = "1",
             .formula = "|(1/N) sum_i x_i|_2 over the N tokens x_i after a residual addition"},
    .request = request,
    .observe = observe,
};

static att_status measure(att_context *context, const char *checkpoint, const char *image)
{
    att_network *network = NULL;
    att_measure *measure = NULL;
    att_dataset *images = NULL;
    att_evaluation result;
    att_evaluate_options options = att_evaluate_options_defaults();
    options.unlabelled = true; /* the images have no classes */
    att_status status = att_network_open(context, checkpoint, NULL, &network);
    if (status == ATT_OK)
        status = att_network_observe(network, "centre,entropy", "*", &measure); /* with a built-in instrument */
    if (status == ATT_OK)
        status = att_dataset_open_images(context, &image, 1, NULL, &images);
    options.measure = measure;
    if (status == ATT_OK)
        status = att_network_evaluate(network, images, &options, &result);
    for (int i = 0; status == ATT_OK && i < att_measure_count(measure); i++) {
        const att_measurement m = att_measure_at(measure, i);
        if (m.head < 0)
            printf("%-8s %-16s %-7s %8.3f %s\n", m.instrument, m.node, m.statistic, m.mean, m.unit);
    }
    att_dataset_close(&images);
    att_measure_destroy(&measure);
    att_network_close(&network);
    return status;
}

int main(int count, char **arguments)
{
    if (count != 3) {
        fprintf(stderr, "usage: instrument CHECKPOINT IMAGES\n");
        return 2;
    }
    att_context *context = NULL;
    att_status status = att_context_create(NULL, &context);
    if (status == ATT_OK)
        status = att_instrument_register(context, &centre);
    if (status == ATT_OK)
        status = measure(context, arguments[1], arguments[2]);
    if (status != ATT_OK)
        fprintf(stderr, "%s: %s\n", att_status_name(status), context ? att_context_message(context) : "");
    att_context_destroy(&context);
    return status != ATT_OK;
}

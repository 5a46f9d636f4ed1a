/* Figures of a few images. */
#include "base/core/error.h"
#include "study/measure/selection.h"
#include "study/network/network.h"

/* Instruments use labels as indices of the logits. */
static att_status check_labels(const att_network *network, int count, const int32_t *labels)
{
    const int classes = att_model_classes(network->model);
    for (int i = 0; i < count; i++)
        if (labels[i] < 0 || labels[i] >= classes)
            return att_fail(network->context, ATT_ERR_ARGUMENT,
                            "the label of image %d is %d, and the network has %d classes, numbered from 0", i,
                            labels[i], classes);
    return ATT_OK;
}

/* Refuses padded texts: instruments see all rows. */
static att_status check_padding(const att_network *network, const att_batch *given)
{
    att_model_input input;
    for (int i = 0; (input = att_model_input_at(network->model, i)).field.name; i++) {
        const int32_t *counts = input.least > 0 ? att_batch_rows(given, input.field.name) : NULL;
        for (int s = 0; counts && s < given->count; s++)
            if (counts[s] != input.most)
                return att_fail(network->context, ATT_ERR_UNSUPPORTED,
                                "text %d has %d tokens and is padded to %d, and figures would count its padding; "
                                "att_network_measure_texts() measures texts of any length",
                                s, counts[s], input.most);
    }
    return ATT_OK;
}

att_status att_network_measure(att_network *network, att_measure *measure, const att_batch *inputs,
                               const int32_t *labels)
{
    att_inference inference;
    att_batch given, answers;
    att_sized_inputs room;
    ATT_TRY(att_network_take_inputs_of(network, network->model, inputs, NULL, &given, &room));
    if (!measure || measure != network->measure)
        return att_fail(network->context, ATT_ERR_ARGUMENT,
                        "the instruments are not those that the last call of att_network_observe() made for this "
                        "network");
    ATT_TRY(check_padding(network, &given));
    ATT_TRY(labels ? check_labels(network, given.count, labels) : att_measure_check_unlabelled(measure));
    const att_inference_options options = {.backend = network->backend,
                                           .precision = network->precision,
                                           .max_batch = given.count,
                                           .probes = "*",
                                           .stops = true};
    ATT_TRY(att_inference_create(att_model_graph(network->observed), network->weights, &options, &inference));
    att_status status = att_inference_run(&inference, &given, given.rows, &answers);
    if (status == ATT_OK)
        status = att_measure_observe(measure, inference.session, given.count, labels);
    att_inference_free(&inference);
    return status;
}

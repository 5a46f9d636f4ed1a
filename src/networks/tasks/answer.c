#include "networks/tasks/answer.h"

#include <string.h>

#include "base/core/error.h"

const att_field *att_answer_field(const att_batch *answer, const char *name, const void **data)
{
    for (int f = 0; f < answer->field_count; f++)
        if (strcmp(answer->fields[f].name, name) == 0) {
            *data = answer->data[f];
            return &answer->fields[f];
        }
    return NULL;
}

const char *att_answer_label(const att_answer_options *options, int class_number)
{
    const char *label = class_number < options->label_count ? options->labels[class_number] : NULL;
    return label && *label ? label : NULL;
}

att_status att_answer_fail_headless(att_context *context, const char *consequence)
{
    return att_fail(context, ATT_ERR_MISMATCH, "the network has no head, %s", consequence);
}

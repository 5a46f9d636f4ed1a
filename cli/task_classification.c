/* task_classification.c - flags of the task "classification". */
#include "answer.h"
#include "network.h"

static const att_flag answer_options[] = {
    {"topk", .letter = 'k', .kind = ATT_FLAG_INT, .value = "N",
     .help = "number of classes to show; of a detector, all boxes are shown", ATT_FLAG_AT(cli_answer, topk), .low = 1,
     .high = 10000000},
    {"labels", .kind = ATT_FLAG_TEXT, .value = "NAME", .help = CLI_LABELS_HELP, ATT_FLAG_AT(cli_answer, labels)},
    {"logits", .kind = ATT_FLAG_SWITCH, .help = "print the network's outputs too, and write all of them to the JSON",
     ATT_FLAG_AT(cli_answer, outputs)},
};

static void answer_defaults(att_context *context, void *values)
{
    (void)context;
    ((cli_answer *)values)->topk = att_answer_options_defaults().topk;
}

const att_flag_group cli_group_answer = {"Answers", answer_options, sizeof answer_options / sizeof *answer_options,
                                         .defaults = answer_defaults};

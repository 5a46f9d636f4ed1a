/* task_classification.c - flags of the task "classification". */
#include "answer.h"
#include "network.h"

static const cli_option answer_options[] = {
    {"topk", .letter = 'k', .kind = CLI_INT, .value = "N", .help = "classes to name", CLI_AT(cli_answer, most),
     .low = 1, .high = 10000000},
    {"labels", .kind = CLI_TEXT, .value = "NAME", .help = CLI_LABELS_HELP, CLI_AT(cli_answer, labels)},
    {"logits", .kind = CLI_FLAG, .help = "the network's outputs too; all of them in JSON", CLI_AT(cli_answer, outputs)},
};

static void answer_defaults(void *values)
{
    ((cli_answer *)values)->most = 5;
}

const cli_group cli_group_answer = {"Answers", answer_options, sizeof answer_options / sizeof *answer_options,
                                    .defaults = answer_defaults};

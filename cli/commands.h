/* commands.h - the list of commands, in the order of the help. A new command is one line here. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli.h"

#define CLI_COMMAND_LIST(X) \
    X(train)                \
    X(validate)             \
    X(measure)              \
    X(ablate)               \
    X(sweep)                \
    X(advise)               \
    X(correlate)            \
    X(stack)                \
    X(predict)              \
    X(embed)                \
    X(probe)                \
    X(tokenize)             \
    X(maps)                 \
    X(explain)              \
    X(coco_eval)            \
    X(models)               \
    X(modules)              \
    X(inspect)              \
    X(convert)              \
    X(report)               \
    X(serve)                \
    X(tour)                 \
    X(experiment)           \
    X(reproduce)            \
    X(ode)                  \
    X(bench)

#define CLI_COMMAND_DECLARE(name) extern const cli_command cli_command_##name;
CLI_COMMAND_LIST(CLI_COMMAND_DECLARE)
#undef CLI_COMMAND_DECLARE

/* The purpose of the program, in one line. */
#define CLI_SUMMARY "trains vision networks with attention and measures what attention does"

/* Returns command `index` of the list; NULL past the last. */
const cli_command *cli_command_at(int index);

#endif

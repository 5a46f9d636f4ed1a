#include "commands.h"

const cli_command *cli_command_at(int index)
{
    static const cli_command *const commands[] = {
#define CLI_COMMAND_ENTRY(name) &cli_command_##name,
        CLI_COMMAND_LIST(CLI_COMMAND_ENTRY)
#undef CLI_COMMAND_ENTRY
    };
    return index < (int)(sizeof commands / sizeof *commands) ? commands[index] : NULL;
}

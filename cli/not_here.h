/* not_here.h - flags of timm's scripts that attscope does not have: those that only concern speed are ignored, the
 * others refused by name. */
#ifndef CLI_NOT_HERE_H
#define CLI_NOT_HERE_H

#include "cli.h"

/* True where timm has a flag or config key of this name, dashes or underscores. *instead: what there is instead of it;
 * NULL: nothing. */
bool cli_not_here(const char *name, const char **instead);
/* True where, besides, these values leave it without effect, as in the args.yaml of a timm run. */
bool cli_not_here_but_idle(const char *name, const char *const *values, int count);

/* True where attscope lacks the flag, but this value of its leaves it without effect: "--cooldown-epochs 0". */
bool cli_not_here_idle_word(const char *name, const char *word);

/* How many words after a flag are its value, as timm's parser takes them. */
typedef enum cli_takes {
    CLI_TAKES_UNKNOWN, /* no flag that may be ignored */
    CLI_TAKES_NOTHING,
    CLI_TAKES_ONE,
    CLI_TAKES_COMPILER, /* one, where the next word names a backend of torch.compile(); else none */
    CLI_TAKES_SEVERAL,  /* up to the next flag */
} cli_takes;

/* Of a flag or config key that only concerns the speed, memory, device or processes of PyTorch: attscope's results are
 * the same with and without it. */
cli_takes cli_not_here_takes(const char *name);
bool cli_is_torch_compiler(const char *word);
/* Whether such a flag may have this value: one that takes nothing is true or false. */
bool cli_not_here_is_value(const char *name, const char *word);
/* The names of such flags, NULL past the last. */
const char *cli_not_here_ignored_name(int index);
/* Adds such a flag to the list, where it is not in there; other names are passed over. */
void cli_not_here_ignore(cli_ignored *list, const char *name);
/* One note that names them; none where there are none. */
void cli_ignored_say(cli_app *cli, const cli_ignored *list);

#endif

/* not_here.h - flags of timm's scripts that attscope does not have yet, so that they are refused by name. */
#ifndef CLI_NOT_HERE_H
#define CLI_NOT_HERE_H

#include <stdbool.h>

/* True where timm has a flag or config key of this name, dashes or underscores. *instead: what there is instead of it;
 * NULL: nothing. */
bool cli_not_here(const char *name, const char **instead);
/* True where, besides, these values leave it without effect, as in the args.yaml of a timm run. */
bool cli_not_here_but_idle(const char *name, const char *const *values, int count);

#endif

/* stop.h - Ctrl-C, SIGTERM or a hangup (a terminal that is closed) asks a long command to stop in an orderly way; a
 * second Ctrl-C or SIGTERM ends it at once. */
#ifndef CLI_STOP_H
#define CLI_STOP_H

#include <stdbool.h>

void cli_stop_on_signals(void);
bool cli_stop_asked(void);

#endif

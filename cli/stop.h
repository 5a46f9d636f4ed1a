/* stop.h - orderly stop: Ctrl-C, SIGTERM or a hangup (a closed terminal) asks a long command to stop. A second Ctrl-C
 * or SIGTERM ends it immediately. */
#ifndef CLI_STOP_H
#define CLI_STOP_H

#include <stdbool.h>

void cli_stop_on_signals(void);
bool cli_stop_asked(void);

#endif

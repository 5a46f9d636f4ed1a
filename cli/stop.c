#include "stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t asked;

static void ask(int number)
{
    (void)number;
    asked = 1;
}

void cli_stop_on_signals(void)
{
    struct sigaction action = {.sa_handler = ask, .sa_flags = SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* Under nohup, SIGHUP stays ignored. */
    struct sigaction hangup;
    action.sa_flags = 0; /* not SA_RESETHAND: the shell and the kernel may both send SIGHUP when a terminal closes */
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
}

bool cli_stop_asked(void)
{
    return asked;
}

#include "sweep_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "cli.h"
#include "stop.h"

enum { CANNOT_START = 127 };

static void end_with(pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent)
        _exit(CANNOT_START);
}

/* Runs in its own process group: the terminal's Ctrl-C goes to the sweep, which forwards it once. A second SIGINT would
 * end the child immediately. */
static void become(const char *const *arguments, pid_t parent, const sigset_t *mask)
{
    end_with(parent);
    setpgid(0, 0);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    int in = open("/dev/null", O_RDONLY), out = open("/dev/null", O_WRONLY);
    if (in < 0 || out < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(CANNOT_START);
    execv("/proc/self/exe", (char *const *)arguments);
    _exit(CANNOT_START);
}

static int wait_for(pid_t child)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    bool passed_on = false;
    int status;
    for (;;) {
        pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child)
            break;
        if (ended < 0 && errno != EINTR)
            return cli_failure("a child could not be waited for: %s", strerror(errno));
        if (cli_stop_asked() && !passed_on) {
            kill(child, SIGINT);
            passed_on = true;
        }
        nanosleep(&pause, NULL);
    }
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    return WTERMSIG(status) == SIGINT ? CLI_STOPPED : 128 + WTERMSIG(status);
}

int sweep_child(const char *const *arguments)
{
    sigset_t ours, held;
    pid_t parent = getpid();
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigprocmask(SIG_BLOCK, &held, &ours);
    pid_t child = fork();
    if (child == 0)
        become(arguments, parent, &ours);
    int reason = errno;
    sigprocmask(SIG_SETMASK, &ours, NULL);
    if (child < 0)
        return cli_failure("a child could not be started: %s", strerror(reason));
    int code = wait_for(child);
    if (code == CANNOT_START)
        return cli_failure("this program could not be started again");
    return code;
}

#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
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

static void die_with_parent(pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent)
        _exit(CANNOT_START);
}

/* Runs in its own process group: the terminal's Ctrl-C goes to the parent, which forwards it once. A second SIGINT
 * would end the child immediately. */
static void exec_child(const char *const *arguments, pid_t parent, const sigset_t *mask)
{
    die_with_parent(parent);
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

static int wait_for(pid_t child, bool (*keep)(const void *user), const void *user)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    bool forwarded = false;
    int status;
    for (;;) {
        pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child)
            break;
        if (ended < 0 && errno != EINTR)
            return cli_failure("waiting for a child process failed: %s", strerror(errno));
        if (cli_stop_asked() && !forwarded) {
            kill(child, SIGINT);
            forwarded = true;
        }
        if (keep && !keep(user))
            kill(child, SIGKILL);
        nanosleep(&pause, NULL);
    }
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    return WTERMSIG(status) == SIGINT ? CLI_STOPPED : 128 + WTERMSIG(status);
}

int cli_child(const char *const *arguments, bool (*keep)(const void *user), const void *user)
{
    sigset_t previous, blocked;
    pid_t parent = getpid();
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, &previous);
    pid_t child = fork();
    if (child == 0)
        exec_child(arguments, parent, &previous);
    int reason = errno;
    sigprocmask(SIG_SETMASK, &previous, NULL);
    if (child < 0)
        return cli_failure("a child process could not be started: %s", strerror(reason));
    int code = wait_for(child, keep, user);
    if (code == CANNOT_START)
        return cli_failure("this program could not be started again");
    return code;
}

/* bench_job.c - child processes of attscope bench: this program again, with a pipe to send results through. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "stop.h"

enum { MOST_ARGUMENTS = 512 };

/* Records are shorter than PIPE_BUF, so the pipe never splits them. */
void bench_send(const bench_call *call, const bench_record *record)
{
    if (write(call->settings->measure.report_to, record, sizeof *record) != (ssize_t)sizeof *record)
        cli_say("bench: the result could not be sent to the parent process");
}

static void receive(int fd, bench_records *records)
{
    bench_record r;
    for (;;) {
        ssize_t size = read(fd, &r, sizeof r);
        if (size < 0 && errno == EINTR)
            continue;
        if (size != (ssize_t)sizeof r)
            return;
        if (records->count < BENCH_RECORDS)
            records->items[records->count++] = r;
    }
}

/* Executes "attscope bench" with the flags of the job and the pipe, followed by the user's arguments. */
static void exec_child(const char *job, int fd)
{
    char report[32], self[] = "/proc/self/exe";
    FILE *file = fopen("/proc/self/cmdline", "rb");
    static char line[1 << 16];
    char *arguments[MOST_ARGUMENTS];
    size_t length = file ? fread(line, 1, sizeof line - 1, file) : 0;
    int count = 0;
    snprintf(report, sizeof report, "%d", fd);
    for (size_t at = 0; at < length && count < MOST_ARGUMENTS - 1; at += strlen(line + at) + 1) {
        arguments[count++] = line + at;
        if (count != 2)
            continue;
        arguments[count++] = (char *)"--report-to";
        arguments[count++] = report;
        arguments[count++] = (char *)"--only";
        arguments[count++] = (char *)job;
    }
    arguments[count] = NULL;
    execv(self, arguments);
}

static void become_child(const char *job, bool quiet, int fd)
{
    int nothing = quiet ? open("/dev/null", O_WRONLY) : -1;
    if (nothing >= 0)
        dup2(nothing, STDERR_FILENO);
    exec_child(job, fd);
    cli_say("bench: this program could not be started again: %s", strerror(errno));
    _exit(CLI_FAILURE);
}

static int wait_for(pid_t child, const char *job)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (cli_stop_asked())
        return CLI_STOPPED;
    if (WIFSIGNALED(status))
        return cli_failure("%s ended by signal %d", job, WTERMSIG(status));
    return WEXITSTATUS(status);
}

int bench_run_cases(const bench_call *call, const char *standard, const char *first, void (*head)(const bench_call *),
                    int (*show)(const bench_call *, const bench_case *, const bench_records *))
{
    bench_case c;
    int code = CLI_OK, index = 0;
    bench_records *records = malloc(sizeof *records);
    if (!records)
        return cli_failure("out of memory");
    for (; code == CLI_OK && bench_case_at(call->settings, standard, index, &c); index++) {
        if (call->prints && head && index == 0)
            head(call);
        code = bench_run_job(c.name, false, records);
        if (code == CLI_OK)
            code = show(call, &c, records);
        fflush(stdout);
    }
    free(records);
    return code == CLI_OK && index == 0 ? bench_nothing(call->settings, first) : code;
}

static int time_point(bench_point *p, double *seconds)
{
    *seconds = 0;
    for (int i = 0; i < p->runs; i++) {
        double once;
        int code = cli_check(p->app, att_bench_time(p->bench, p->batch, &once));
        if (code != CLI_OK)
            return code;
        *seconds += once / p->runs;
    }
    return CLI_OK;
}

int bench_take_turns(const bench_call *call, bench_point *points, int count)
{
    const bench_measure *m = &call->settings->measure;
    for (int turn = -m->warmup; turn < m->repeats; turn++)
        for (int i = 0; i < count; i++) {
            double seconds = 0;
            int code = points[i].bench ? time_point(&points[i], &seconds) : CLI_OK;
            if (code != CLI_OK)
                return code;
            if (turn >= 0)
                points[i].seconds[turn] = seconds;
        }
    return CLI_OK;
}

int bench_run_job(const char *job, bool quiet, bench_records *records)
{
    int ends[2];
    records->count = 0;
    if (pipe(ends) != 0)
        return cli_failure("bench: the pipe could not be created: %s", strerror(errno));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        become_child(job, quiet, ends[1]);
    }
    close(ends[1]);
    if (child > 0)
        receive(ends[0], records);
    close(ends[0]);
    if (child < 0)
        return cli_failure("bench: the process could not be created: %s", strerror(errno));
    int code = wait_for(child, job);
    if (code != CLI_OK)
        return code;
    return records->count > 0 ? CLI_OK : cli_failure("%s gave no result", job);
}

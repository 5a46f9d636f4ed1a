#include "lab/runs/sweep/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ENDED = -2, UNKNOWN = -1 };

/* Reads the beginning of a file of the system. Returns the number of bytes; `text` is NUL-terminated. */
static size_t read_text(const char *path, char *text, size_t size)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = descriptor < 0 ? 0 : read(descriptor, text, size - 1);
    if (descriptor >= 0)
        close(descriptor);
    text[got > 0 ? got : 0] = '\0';
    return strlen(text);
}

/* Finds the start time in /proc/NUMBER/stat. Returns ENDED for a process that has ended and that its parent has not
 * waited for; UNKNOWN if the file cannot be read. */
static int64_t start_of(int64_t number)
{
    enum { STATE = 3, START = 22 }; /* fields, counted from 1; field 2, the name in parentheses, may have spaces */
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", number);
    read_text(path, text, sizeof text);
    const char *at = strrchr(text, ')');
    int64_t start = UNKNOWN;
    if (!at || strlen(at) < 3)
        return UNKNOWN;
    if (at[2] == 'Z' || at[2] == 'X')
        return ENDED;
    for (int field = STATE - 1; at && field < START; field++)
        at = strchr(at + 1, ' ');
    return at && sscanf(at, " %" SCNd64, &start) == 1 ? start : UNKNOWN;
}

static void find_machine(char machine[ATT_PROCESS_MACHINE])
{
    char boot[64], space[48];
    ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    size_t size = read_text("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    *machine = '\0';
    if (length <= 0 || size == 0)
        return;
    space[length] = '\0';
    boot[strcspn(boot, "\n")] = '\0';
    snprintf(machine, ATT_PROCESS_MACHINE, "%s %s", boot, space);
}

att_process att_process_self(void)
{
    att_process self = {.number = getpid()};
    char host[64] = "";
    if (gethostname(host, sizeof host - 1) != 0 || !*host)
        snprintf(host, sizeof host, "unknown host");
    snprintf(self.name, sizeof self.name, "%s:%" PRId64, host, self.number);
    find_machine(self.machine);
    self.started = start_of(self.number);
    return self;
}

bool att_process_has_ended(const att_process *process)
{
    char machine[ATT_PROCESS_MACHINE];
    find_machine(machine);
    if (!*machine || strcmp(machine, process->machine) != 0 || process->number <= 0 || process->number > INT32_MAX)
        return false;
    if (kill((pid_t)process->number, 0) != 0 && errno == ESRCH)
        return true;
    const int64_t start = start_of(process->number);
    return start == ENDED || (start >= 0 && process->started >= 0 && start != process->started);
}

void att_process_make_token(char token[ATT_PROCESS_TOKEN])
{
    uint64_t value = 0;
    if (getentropy(&value, sizeof value) != 0) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        value = (uint64_t)now.tv_nsec * 0x9E3779B97F4A7C15u ^ (uint64_t)now.tv_sec ^ (uint64_t)getpid() << 32;
    }
    snprintf(token, ATT_PROCESS_TOKEN, "%016" PRIx64, value);
}

#include "result_source.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Copies the value of a line such as "model name : AMD EPYC 7763". Returns false for other lines. */
static bool is_model(const char *line, char *name, size_t size)
{
    static const char key[] = "model name";
    const char *value = strncmp(line, key, sizeof key - 1) == 0 ? strchr(line, ':') : NULL;
    if (!value)
        return false;
    value += 1 + strspn(value + 1, " \t");
    snprintf(name, size, "%.*s", (int)strcspn(value, "\n"), value);
    return true;
}

/* The name of the processor; "unknown processor" where Linux does not give it. */
static void name_processor(char *name, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file))
        found = is_model(line, name, size);
    if (file)
        fclose(file);
    if (!found)
        snprintf(name, size, "unknown processor");
}

void result_source_describe(att_result_source *source)
{
    char processor[96];
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    const time_t today = time(NULL);
    struct tm day;
    name_processor(processor, sizeof processor);
    snprintf(source->machine, sizeof source->machine, "%s, %ld processor%s", processor, count, cli_plural(count));
    snprintf(source->version, sizeof source->version, "%s", att_version());
    if (gmtime_r(&today, &day))
        strftime(source->date, sizeof source->date, "%Y-%m-%d", &day);
}

const char *result_record_note(att_record_state state)
{
    return state == ATT_RECORD_OUTDATED     ? " (outdated: the run has other commands or another recipe now)"
           : state == ATT_RECORD_INCOMPLETE ? " (incomplete: lacks figures of criteria that came later)"
                                            : "";
}

#include "metrics.h"

#include <math.h>
#include <string.h>

bool cli_metric_is_share(const att_metric *metric)
{
    return strcmp(metric->unit, "%") == 0;
}

char *cli_metric_format(const att_metric *metric, double value, char *text, size_t size)
{
    if (isnan(value))
        snprintf(text, size, "%s -", metric->label);
    else if (cli_metric_is_share(metric))
        snprintf(text, size, "%s %.2f %%", metric->label, value);
    else
        snprintf(text, size, "%s %.4f", metric->label, value);
    return text;
}

void cli_metrics_print(const att_task_info *task, const double *metrics)
{
    char text[64];
    const char *between = "";
    for (int shares = 1; shares >= 0; shares--)
        for (int i = 0; i < task->metric_count; i++) {
            if (cli_metric_is_share(&task->metrics[i]) != (shares == 1))
                continue;
            cli_print("%s%s", between, cli_metric_format(&task->metrics[i], metrics[i], text, sizeof text));
            between = "   ";
        }
}

void cli_metrics_json(att_json_writer *writer, const att_task_info *task, const char *prefix, const double *metrics)
{
    for (int i = 0; i < task->metric_count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", prefix, task->metrics[i].name);
        att_json_put_number(writer, name, metrics[i]);
    }
}

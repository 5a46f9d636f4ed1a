/* attscope report: runs as one page that can be shown. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "paths.h"

typedef struct settings {
    const char *output, *title;
    int64_t map_bytes;
} settings;

static const cli_option page_options[] = {
    {"output", .letter = 'o', .kind = CLI_TEXT, .value = "FILE", .help = "where the page goes",
     CLI_AT(settings, output), .once = true},
    {"title", .kind = CLI_TEXT, .value = "TEXT", .help = "the page's heading", CLI_AT(settings, title), .once = true},
    {"map-bytes", .kind = CLI_LONG, .value = "N", .help = "most bytes of attention maps on the page",
     CLI_AT(settings, map_bytes), .low = 0, .high = 1e9, .once = true},
};

static void page_defaults(void *values)
{
    settings *s = values;
    s->output = "report.html";
    s->map_bytes = (int64_t)att_report_options_defaults().map_bytes;
}

static const cli_group page_group = {"Page", page_options, sizeof page_options / sizeof *page_options,
                                     .defaults = page_defaults};
static const cli_use uses[] = {{&page_group, 0}};

static bool same_folder(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* A run counts once, however often it is named. Returns how many there are. */
static int leave_out_repeated(cli_app *cli, const char *const *folders, int count, const char **runs)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        int earlier = 0;
        while (earlier < kept && !same_folder(runs[earlier], folders[i]))
            earlier++;
        if (earlier == kept)
            runs[kept++] = folders[i];
        else
            cli_note(cli, "%s is the same folder as %s and counts once", folders[i], runs[earlier]);
    }
    return kept;
}

static bool holds_run(const char *folder)
{
    char path[CLI_PATH];
    return cli_exists(cli_join(folder, "metrics.jsonl", path, sizeof path)) ||
           cli_exists(cli_join(folder, "measure.jsonl", path, sizeof path));
}

/* Names the runs in each folder that is none itself, as OUTPUT is. */
static void say_runs_below(cli_app *cli, const char *const *folders, int count)
{
    for (int i = 0; i < count; i++) {
        struct dirent **entries;
        int found = holds_run(folders[i]) ? 0 : scandir(folders[i], &entries, NULL, alphasort);
        for (int e = 0; e < found; e++) {
            char path[CLI_PATH];
            if (entries[e]->d_name[0] != '.' && holds_run(cli_join(folders[i], entries[e]->d_name, path, sizeof path)))
                cli_note(cli, "a run in it: %s", path);
            free(entries[e]);
        }
        if (found > 0)
            free(entries);
    }
}

static int run(cli_app *cli, void *user, const char *const *folders, int count)
{
    const settings *s = user;
    int code = cli_open(cli, 1);
    if (code != CLI_OK)
        return code;
    const char *runs[ATT_REPORT_MAX_RUNS];
    count = leave_out_repeated(cli, folders, count, runs);
    att_report_options options = att_report_options_defaults();
    options.title = s->title;
    options.map_bytes = (size_t)s->map_bytes;
    att_report_result result;
    char target[CLI_PATH];
    code = cli_check(
        cli, att_report_write(cli->context, runs, count, &options, cli_file_target(s->output, target), &result));
    if (code != CLI_OK) {
        say_runs_below(cli, runs, count);
        return code;
    }
    if (result.images < result.images_wanted)
        cli_note(cli, "attention maps of %lld of %lld images; --map-bytes gives room for more",
                 (long long)result.images, (long long)result.images_wanted);
    cli_print("%s: %d run%s, %.1f MB\n", s->output, result.runs, result.runs == 1 ? "" : "s",
              1e-6 * (double)result.bytes);
    return CLI_OK;
}

const cli_command cli_command_report = {
    .name = "report",
    .summary = "shows runs on one page of HTML",
    .operands = "RUN...",
    .least_operands = 1,
    .most_operands = ATT_REPORT_MAX_RUNS,
    .about =
        "RUN: the folder of a training, of a measurement or of a sweep, which stands for\n"
        "its runs. The page is one file that opens from disk and needs no network. It\n"
        "shows what each folder has:\n"
        "  metrics.jsonl      training curves, and how measured figures developed\n"
        "                     (attscope train --measure)\n"
        "  measure.jsonl      figures by depth (attscope measure)\n"
        "  maps.safetensors   attention maps to hover over (attscope measure --maps)\n"
        "Several runs are laid over each other. Runs that differ in nothing but the seed\n"
        "count as one configuration: the page gives mean and deviation over its seeds.",
    .example = "  attscope report output/train/plain output/train/broadcast -o report.html",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};

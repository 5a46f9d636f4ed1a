/* attscope report: shows runs on one HTML page. */
#include <attscope/lab/report.h>

#include "cli.h"

typedef struct settings {
    const char *output, *title, *reference;
    int64_t map_bytes;
} settings;

static const att_flag page_options[] = {
    {"output", .letter = 'o', .kind = ATT_FLAG_TEXT, .value = "FILE", .start = "report.html",
     .help = "file of the page", ATT_FLAG_AT(settings, output), .once = true},
    {"title", .kind = ATT_FLAG_TEXT, .value = "TEXT", .help = "the page's heading", ATT_FLAG_AT(settings, title),
     .once = true},
    {"reference", .kind = ATT_FLAG_TEXT, .value = "RUN",
     .help = "folder of a run: show how far the trajectories of the others (nsi) are from its trajectory, by block and "
             "accumulated",
     ATT_FLAG_AT(settings, reference), .once = true},
    {"map-bytes", .kind = ATT_FLAG_LONG, .value = "N", .help = "maximum bytes of attention maps on the page",
     ATT_FLAG_AT(settings, map_bytes), .low = 0, .high = 1e9, .once = true},
};

static void page_defaults(att_context *context, void *values)
{
    (void)context;
    ((settings *)values)->map_bytes = (int64_t)att_report_options_defaults().map_bytes;
}

static const att_flag_group page_group = {"Page", page_options, sizeof page_options / sizeof *page_options,
                                          .defaults = page_defaults};
static const att_flag_use uses[] = {{&page_group, 0}};

static int run(cli_app *cli, void *user, const char *const *folders, int count)
{
    const settings *s = user;
    int code = cli_open(cli, 1);
    if (code != CLI_OK)
        return code;
    att_report_options options = att_report_options_defaults();
    options.title = s->title;
    options.reference = s->reference;
    options.map_bytes = (size_t)s->map_bytes;
    att_report_result result;
    char target[CLI_PATH];
    code = cli_check(
        cli, att_report_write(cli->context, folders, count, &options, cli_file_target(s->output, target), &result));
    if (code != CLI_OK)
        return code;
    if (result.images < result.images_wanted)
        cli_note(cli, "attention maps of %lld of %lld images; a larger --map-bytes shows more",
                 (long long)result.images, (long long)result.images_wanted);
    cli_print("%s: %d run%s, %.1f MB\n", s->output, result.runs, cli_plural(result.runs), 1e-6 * (double)result.bytes);
    return CLI_OK;
}

const cli_command cli_command_report = {
    .name = "report",
    .summary = "shows runs on one HTML page",
    .operands = "RUN...",
    .least_operands = 1,
    .most_operands = ATT_REPORT_MAX_RUNS,
    .about =
        "RUN: the folder of a run, a measurement, an experiment, or a sweep with all\n"
        "its runs; or a folder that contains folders of runs, such as output/train.\n"
        "The page is a single file that opens from disk and needs no network. It shows\n"
        "the files of each folder:\n"
        "  metrics.jsonl      training curves, and figures measured during training\n"
        "                     (attscope train --measure)\n"
        "  measure.jsonl      figures by depth (attscope measure), or an experiment's\n"
        "                     (attscope experiment)\n"
        "  maps.safetensors   interactive attention maps (attscope measure --maps)\n"
        "Several runs share the charts. Runs that differ only in the seed count as one\n"
        "configuration: the page gives mean and deviation over its seeds.",
    .example = "  attscope report output/train/plain output/train/broadcast -o report.html",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};

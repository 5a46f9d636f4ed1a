/* attscope correlate: rank correlations of figures over all measured runs of a database. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include <attscope/lab/collection.h>

#include "correlation_table.h"
#include "flags.h"
#include "pairs.h"
#include "paths.h"

typedef struct settings {
    att_texts correlate; /* "X,Y" each */
    const char *runs;
    cli_output output;
} settings;

typedef struct job {
    cli_app *cli;
    const settings *settings;
    cli_pairs pairs;
    char database[CLI_PATH];
    att_collection *collection;
} job;

static const att_flag options[] = {
    {"correlate", .kind = ATT_FLAG_TEXTS, .value = "X,Y", .help = CLI_CORRELATE_HELP, ATT_FLAG_AT(settings, correlate),
     .once = true},
    {"runs", .kind = ATT_FLAG_TEXT, .value = "PATTERN",
     .help = "only runs whose folder, as the database names it, matches, such as 'modules=*'; * and ? are wildcards",
     ATT_FLAG_AT(settings, runs)},
};

static const att_flag_group group = {"Correlations", .rows = options, .row_count = sizeof options / sizeof *options};
static const att_flag_use uses[] = {{&group, 0}, {&cli_group_output, offsetof(settings, output)}};

/* A folder stands for its database. */
static void find_database(const char *operand, char path[CLI_PATH])
{
    if (cli_is_folder(operand))
        cli_join(operand, "runs.sqlite", path, CLI_PATH);
    else
        snprintf(path, CLI_PATH, "%s", operand);
}

static int make_sweep(const job *j, int part, att_sweep **sweep)
{
    return cli_check(j->cli, att_collection_sweep(j->collection, part, j->pairs.pairs, j->pairs.count, 0, sweep));
}

/* --- table -------------------------------------------------------------------------------------------------------- */

enum { NAME = 100 }; /* bytes shown of a setting's name */

static void print_settings(const att_sweep *sweep)
{
    for (int i = 0; i < att_sweep_setting_count(sweep); i++) {
        att_sweep_setting s = att_sweep_setting_at(sweep, i);
        bool is_long = strlen(s.name) > NAME;
        cli_print("  %.*s%s (%d run%s)\n", is_long ? NAME : INT_MAX, s.name, is_long ? " ..." : "", s.runs,
                  cli_plural(s.runs));
    }
}

static int instrument_length(const char *figure)
{
    return (int)strcspn(figure, "/");
}

/* Says which figures no run has together, and how to measure them. */
static void print_missing(const cli_pairs *pairs)
{
    putchar('\n');
    for (int i = 0; i < pairs->count; i++) {
        const char *x = pairs->pairs[i].x, *y = pairs->pairs[i].y;
        cli_print("  No run has both \"%s\" and \"%s\": measure with --with %.*s,%.*s.\n", x, y, instrument_length(x),
                  x, instrument_length(y), y);
    }
    if (pairs->count == 0)
        cli_print(
            "  No run has both tns and accuracy, which are correlated by default: measure with --with tns,accuracy.\n");
}

static void print_part(const job *j, const att_collection_part *part, const att_sweep *sweep)
{
    cli_print("%s%s%s: %d run%s of %d setting%s, ", *part->data ? part->data : "unknown data", *part->split ? ", " : "",
              part->split, part->runs, cli_plural(part->runs), part->settings, cli_plural(part->settings));
    cli_print(isnan(part->images) ? "an unknown number of images\n" : "%.0f images\n", part->images);
    print_settings(sweep);
    if (att_sweep_correlation_count(sweep) == 0)
        print_missing(&j->pairs);
    correlation_table_print(sweep, true);
}

static int print_parts(const job *j)
{
    int code = CLI_OK;
    for (int i = 0; code == CLI_OK && i < att_collection_count(j->collection); i++) {
        att_sweep *sweep = NULL;
        att_collection_part part = att_collection_at(j->collection, i);
        code = make_sweep(j, i, &sweep);
        if (code == CLI_OK)
            code = cli_pairs_find(&j->pairs, sweep, "the report of the runs");
        if (i > 0)
            putchar('\n');
        if (code == CLI_OK)
            print_part(j, &part, sweep);
        att_sweep_destroy(&sweep);
    }
    return code;
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static int write_part(const job *j, int index, att_json_writer *writer)
{
    att_sweep *sweep = NULL;
    att_collection_part part = att_collection_at(j->collection, index);
    int code = make_sweep(j, index, &sweep);
    if (code != CLI_OK)
        return code;
    att_json_begin_object(writer);
    att_json_put_string(writer, "data", part.data);
    att_json_put_string(writer, "split", part.split);
    att_json_put_number(writer, "images", part.images);
    att_json_put_integer(writer, "runs", part.runs);
    att_sweep_write_json(sweep, writer);
    att_json_end_object(writer);
    att_sweep_destroy(&sweep);
    return CLI_OK;
}

static int write_json(const job *j)
{
    att_json_writer *writer = NULL;
    int code = cli_json_begin_list(j->cli, j->settings->output.json, &writer);
    for (int i = 0; code == CLI_OK && writer && i < att_collection_count(j->collection); i++)
        code = write_part(j, i, writer);
    return cli_json_end_list(j->cli, writer, j->settings->output.json, code);
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int show(const job *j)
{
    if (att_collection_count(j->collection) == 0)
        return cli_failure("%s has no measured runs%s%s", j->database, j->settings->runs ? " that match " : "",
                           j->settings->runs ? j->settings->runs : "");
    int code = cli_prints(j->settings->output.json) ? print_parts(j) : CLI_OK;
    return code == CLI_OK ? write_json(j) : code;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    const settings *s = user;
    job j = {.cli = cli, .settings = s};
    (void)count;
    find_database(operands[0], j.database);
    int code = cli_pairs_read(&s->correlate, NULL, &j.pairs);
    if (code == CLI_OK)
        code = cli_output_check(s->output.json);
    if (code == CLI_OK)
        code = cli_open(cli, 1);
    if (code == CLI_OK)
        code = cli_check(cli, att_collection_read(cli->context, j.database, s->runs, &j.collection));
    if (code == CLI_OK)
        code = show(&j);
    att_collection_destroy(&j.collection);
    return code;
}

const cli_command cli_command_correlate = {
    .name = "correlate",
    .summary = "shows rank correlations of figures over all measured runs",
    .operands = "OUTPUT",
    .least_operands = 1,
    .most_operands = 1,
    .about =
        "OUTPUT: a folder of runs with the database runs.sqlite, or the database itself.\n"
        "The database names the runs; their figures are read from their folders.\n\n"
        "Runs that differ in nothing but the seed are one setting. The seeds of a setting\n"
        "are not exchangeable with those of another, so permutations and resamples are of\n"
        "whole settings. Runs measured on different images are not comparable; each data\n"
        "set has a table of its own. If there are several networks, correlations within\n"
        "each architecture follow.",
    .example =
        "  attscope correlate output/sweep/modules\n"
        "  attscope correlate output --correlate 'tns/mu unit,accuracy/loss'",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};

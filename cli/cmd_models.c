/* attscope models: lists the networks. */
#include <fnmatch.h>
#include <string.h>

#include "cli.h"
#include "flags.h"
#include "model_costs.h"
#include "network.h"

typedef struct choice {
    bool tags;
} choice;

typedef struct settings {
    choice choice;
    att_recipe_network network;
    cli_comparison comparison;
    cli_output output;
} settings;

static const att_flag choice_options[] = {
    {"tags", .kind = ATT_FLAG_SWITCH, .help = "list timm's pretrained tags too, with their preprocessing",
     ATT_FLAG_AT(choice, tags)},
};
static const att_flag_group group_choice = {.title = "Models", .rows = choice_options, .row_count = 1};

static const att_flag_use uses[] = {{&group_choice, offsetof(settings, choice)},
                                    {&cli_group_comparison, offsetof(settings, comparison)},
                                    {&att_recipe_options_group, offsetof(settings, network)},
                                    {&cli_group_output, offsetof(settings, output)}};

enum { MOST_PATTERNS = 64 };

typedef struct listing {
    cli_app *cli;
    const settings *settings;
    att_json_writer *writer; /* NULL: no JSON */
    const char *names[MOST_PATTERNS];
    att_network_name found[MOST_PATTERNS]; /* resolved names that the list lacks: with a tag, or deprecated */
    int count;
} listing;

static bool is_wanted(const listing *l, const char *name)
{
    bool wanted = l->count == 0;
    for (int i = 0; i < l->count; i++)
        wanted = wanted || fnmatch(l->names[i], name, 0) == 0;
    return wanted;
}

static bool matches_any(const char *pattern)
{
    for (int i = 0; i < att_model_count(); i++)
        if (fnmatch(pattern, att_model_at(i).name, 0) == 0)
            return true;
    return false;
}

static int read_patterns(listing *l, const char *const *patterns, int count)
{
    for (int i = 0; i < count; i++) {
        l->names[i] = patterns[i];
        if (matches_any(patterns[i]))
            continue;
        if (strpbrk(patterns[i], "*?["))
            return cli_failure("no model matches \"%s\"; attscope models lists all", patterns[i]);
        int code = cli_check(l->cli, att_model_resolve(l->cli->context, patterns[i], &l->found[i]));
        if (code != CLI_OK)
            return code;
        l->names[i] = l->found[i].network;
    }
    l->count = count;
    return CLI_OK;
}

/* --- tags --------------------------------------------------------------------------------------------------------- */

static void print_channels(const char *title, const double *values)
{
    cli_print("  %s", title);
    for (int i = 0; i < 3; i++)
        cli_print("%c%g", i ? ',' : ' ', values[i]);
}

static void print_tag(const att_model_tag *tag)
{
    const att_preprocess *p = &tag->preprocess;
    char classes[16] = "no", size[CLI_SIDES_TEXT];
    if (tag->num_classes)
        snprintf(classes, sizeof classes, "%d", tag->num_classes);
    cli_print("  .%-24s %6s classes  size %3s  crop %g %s  %s", tag->name, classes,
              cli_sides_text(p->height, p->width, size), p->crop_pct, p->crop_mode, p->interpolation);
    print_channels("mean", p->mean);
    print_channels("std", p->std);
    cli_print("\n");
}

static void write_tag(att_json_writer *w, const att_model_tag *tag)
{
    const att_preprocess *p = &tag->preprocess;
    att_json_begin_object(w);
    att_json_put_string(w, "tag", tag->name);
    att_json_put_integer(w, "num_classes", tag->num_classes);
    cli_json_sides(w, "img_size", p->height, p->width);
    cli_json_preprocess(w, p);
    att_json_end_object(w);
}

static int list_tags(const listing *l, const char *network)
{
    att_model_tag tag = {.name = "-"};
    int code = CLI_OK;
    if (l->writer) {
        att_json_put_array(l->writer, "tags");
    }
    for (int i = 0; code == CLI_OK; i++) {
        code = cli_check(l->cli, att_model_tag_at(l->cli->context, network, i, &tag));
        if (code != CLI_OK || !*tag.name)
            break;
        if (l->writer)
            write_tag(l->writer, &tag);
        if (cli_prints(l->settings->output.json))
            print_tag(&tag);
    }
    if (l->writer)
        att_json_end_array(l->writer);
    return code;
}

/* --- the list ----------------------------------------------------------------------------------------------------- */

static int list_model(const listing *l, att_model_info *info)
{
    char size[CLI_SIDES_TEXT];
    int code = cli_check(l->cli, att_model_count_cost(l->cli->context, info));
    if (code != CLI_OK)
        return code;
    if (cli_prints(l->settings->output.json))
        cli_print("%-28s %8.2f %8.2f %5s  %s\n", info->name, 1e-6 * (double)info->parameters, info->gmacs,
                  cli_sides_text(info->height, info->width, size), info->summary);
    if (l->writer) {
        att_json_begin_object(l->writer);
        att_json_put_string(l->writer, "model", info->name);
        cli_json_sides(l->writer, "img_size", info->height, info->width);
        att_json_put_integer(l->writer, "param_count", info->parameters);
        att_json_put_number(l->writer, "infer_gmacs", info->gmacs);
        att_json_put_string(l->writer, "summary", info->summary);
    }
    if (l->settings->choice.tags)
        code = list_tags(l, info->name);
    if (l->writer)
        att_json_end_object(l->writer);
    return code;
}

/* Shows what each network costs, and what the options of the command line add. */
static int list_costs(const listing *l)
{
    const settings *s = l->settings;
    int code = CLI_OK;
    if (cli_prints(s->output.json))
        cli_costs_print_head();
    for (int i = 0; code == CLI_OK && i < att_model_count(); i++)
        if (is_wanted(l, att_model_at(i).name))
            code = cli_costs_list(l->cli, att_model_at(i).name, &s->network.options, &s->comparison, l->writer,
                                  cli_prints(s->output.json));
    return code;
}

static int list_models(const listing *l)
{
    int code = CLI_OK;
    if (cli_prints(l->settings->output.json))
        cli_print("%-28s %8s %8s %5s\n", "model", "params M", "GMACs", "size");
    for (int i = 0; code == CLI_OK && i < att_model_count(); i++) {
        att_model_info info = att_model_at(i);
        if (is_wanted(l, info.name))
            code = list_model(l, &info);
    }
    return code;
}

static int run(cli_app *cli, void *user, const char *const *patterns, int count)
{
    const settings *s = user;
    listing l = {.cli = cli, .settings = s};
    int code = cli_open(cli, 1);
    if (code == CLI_OK)
        code = read_patterns(&l, patterns, count);
    if (code == CLI_OK)
        code = cli_json_begin_list(cli, s->output.json, &l.writer);
    if (code == CLI_OK)
        code = s->network.options.count + s->comparison.modules.count > 0 ? list_costs(&l) : list_models(&l);
    return cli_json_end_list(cli, l.writer, s->output.json, code);
}

const cli_command cli_command_models = {
    .name = "models",
    .summary = "lists the available networks, and what their options cost",
    .operands = "[PATTERN...]",
    .most_operands = MOST_PATTERNS,
    .about =
        "PATTERN: a name, with wildcards * and ?. Without a pattern, all are listed.\n"
        "Columns: millions of parameters; billions of multiply-adds for one image\n"
        "(GMACs); height and width of the images in pixels (size).\n"
        "\n"
        "With options of the network, each network is shown as named, and below what the\n"
        "options add: parameters, and millions of floating-point operations (MFLOP) for\n"
        "one image forward, and for forward and backward pass of one image in training.\n"
        "With --compare, each network is shown with the options, and below what the\n"
        "compared modules add to it. A multiply-add counts as two operations; all other\n"
        "operations count, too. The optimiser is not counted. Networks without a head\n"
        "are not trained: \"-\".",
    .example =
        "  attscope models 'vit*'\n"
        "  attscope models --tags resnet50\n"
        "  attscope models vit_small_patch16_224 --compare cb --compare cb_s --compare se",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};

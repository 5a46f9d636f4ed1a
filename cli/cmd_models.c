/* attscope models: which networks there are. */
#include <fnmatch.h>

#include "cli.h"
#include "flags.h"

typedef struct settings {
    cli_output output;
} settings;

static const cli_use uses[] = {{&cli_group_output, offsetof(settings, output)}};

static const char *model_name(const void *user, int index)
{
    (void)user;
    return att_model_at(index).name;
}

static bool is_wanted(const char *name, const char *const *patterns, int count)
{
    bool wanted = count == 0;
    for (int i = 0; i < count; i++)
        wanted = wanted || fnmatch(patterns[i], name, 0) == 0;
    return wanted;
}

static int refuse_idle_patterns(const char *const *patterns, int count)
{
    for (int i = 0; i < count; i++) {
        bool matches = false;
        for (int m = 0; !matches && m < att_model_count(); m++)
            matches = is_wanted(att_model_at(m).name, &patterns[i], 1);
        if (matches)
            continue;
        const char *nearest = att_text_nearest(patterns[i], model_name, NULL, att_model_count());
        if (nearest)
            return cli_failure("no model is called \"%s\"; did you mean %s?", patterns[i], nearest);
        return cli_failure("no model is called \"%s\"; attscope models lists all, '*' stands for any letters",
                           patterns[i]);
    }
    return CLI_OK;
}

static void write_model(att_json_writer *writer, const att_model_info *info)
{
    att_json_begin_object(writer);
    cli_json_text(writer, "model", info->name);
    cli_json_integer(writer, "img_size", info->img_size);
    cli_json_integer(writer, "param_count", info->parameters);
    cli_json_number(writer, "infer_gmacs", info->gmacs);
    cli_json_text(writer, "summary", info->summary);
    att_json_end_object(writer);
}

static int list_models(cli_app *cli, att_json_writer *writer, bool prints, const char *const *patterns, int count)
{
    if (prints)
        printf("%-28s %8s %8s %5s\n", "model", "params M", "GMACs", "size");
    for (int i = 0; i < att_model_count(); i++) {
        att_model_info info = att_model_at(i);
        if (!is_wanted(info.name, patterns, count))
            continue;
        int code = cli_check(cli, att_model_measure(cli->context, &info));
        if (code != CLI_OK)
            return code;
        if (prints)
            printf("%-28s %8.2f %8.2f %5d  %s\n", info.name, 1e-6 * (double)info.parameters, info.gmacs, info.img_size,
                   info.summary);
        if (writer)
            write_model(writer, &info);
    }
    return CLI_OK;
}

static int run(cli_app *cli, void *user, const char *const *patterns, int count)
{
    const settings *s = user;
    int code = refuse_idle_patterns(patterns, count);
    if (code == CLI_OK)
        code = cli_open(cli, 1);
    att_json_writer *writer = NULL;
    if (code == CLI_OK && s->output.json)
        code = cli_check(cli, att_json_writer_create(cli->context, true, &writer));
    if (writer)
        att_json_begin_array(writer);
    if (code == CLI_OK)
        code = list_models(cli, writer, cli_prints(s->output.json), patterns, count);
    if (writer)
        att_json_end_array(writer);
    if (code == CLI_OK && writer)
        return cli_json_write(cli, writer, s->output.json);
    att_json_writer_destroy(&writer);
    return code;
}

const cli_command cli_command_models = {
    .name = "models",
    .summary = "lists the networks there are",
    .operands = "[PATTERN...]",
    .most_operands = 64,
    .about = "PATTERN: a name, * and ? allowed. Without one: all.",
    .example = "  attscope models 'vit*'",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};

/* attscope tour: the explorer on a small network and pictures that come with attscope. */
#include <limits.h>
#include <stdlib.h>

#include "cli.h"
#include "paths.h"
#include "server.h"

typedef struct settings {
    int port;
} settings;

static const att_flag page_options[] = {
    {"port", .kind = ATT_FLAG_INT, .value = "N",
     .help = "port on 127.0.0.1; default: 8765 or, if that is in use, the next free one", ATT_FLAG_AT(settings, port),
     .low = 1, .high = 65535, .open = true, .once = true},
};
static const att_flag_group page_group = {"Server", page_options, sizeof page_options / sizeof *page_options,
                                          .defaults = NULL};
static const att_flag_use uses[] = {{&page_group, 0}};

/* Writes the tour's folder: share/attscope/tour beside the folder of the command. */
static bool find_tour(char folder[PATH_MAX])
{
    char program[PATH_MAX], bin[PATH_MAX], prefix[PATH_MAX];
    if (!realpath("/proc/self/exe", program))
        return false;
    cli_folder_of(cli_folder_of(program, bin, sizeof bin), prefix, sizeof prefix);
    return cli_is_folder(cli_join(prefix, "share/attscope/tour", folder, PATH_MAX));
}

static int run(cli_app *cli, void *user, const char *const *paths, int count)
{
    (void)paths, (void)count;
    const settings *s = user;
    char folder[PATH_MAX] = "", weights[PATH_MAX], pictures[PATH_MAX];
    int code = cli_open(cli, 1);
    if (code != CLI_OK)
        return code;
    if (!find_tour(folder))
        return cli_failure(
            "%s does not exist: releases have the tour; in a clone, tools/make-tour makes it in five "
            "minutes. attscope serve CHECKPOINT --images FOLDER shows a network and photographs of yours",
            folder);
    cli_join(folder, "shapes.safetensors", weights, sizeof weights);
    cli_join(folder, "pictures", pictures, sizeof pictures);
    att_serve_options options = att_serve_options_defaults();
    options.paths = (const char *const[]){weights};
    options.path_count = 1;
    options.images = pictures;
    options.port = s->port;
    cli_note(cli,
             "A small ViT that names shapes. Point at a place of the picture: the maps show where each head of each "
             "layer looks from there. Change parts of the network, and watch its answer.");
    return cli_run_server(cli, &options, "/explore");
}

const cli_command cli_command_tour = {
    .name = "tour",
    .summary = "explores attention of a small network that comes with attscope",
    .operands = "",
    .least_operands = 0,
    .most_operands = 0,
    .about =
        "Opens the explorer of attscope serve on a small vision transformer and eight pictures\n"
        "of shapes. Nothing is downloaded. The server listens on 127.0.0.1 only and prints an\n"
        "address that contains a random token; it writes no files.",
    .example = "  attscope tour",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};

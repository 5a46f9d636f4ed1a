#include "drawings.h"

#include <stdlib.h>
#include <string.h>

#include "paths.h"

/* --- files -------------------------------------------------------------------------------------------------------- */

static int place(const cli_drawings *drawings, const char *name, const char *ending, char path[CLI_PATH])
{
    char file[CLI_PATH];
    if (snprintf(file, sizeof file, "%s%s", name, ending) < CLI_PATH &&
        *cli_join(drawings->folder, file, path, CLI_PATH))
        return CLI_OK;
    return cli_failure("%s: the path of its drawing is too long", name);
}

/* --- legend ------------------------------------------------------------------------------------------------------- */

/* Prints the lines, which name a class by its number if it has no name. */
static void print_legend(FILE *out, const att_network *network, int classes)
{
    const uint8_t *colours = att_network_class_colours(network);
    for (int c = 0; c < classes; c++) {
        const char *name = att_network_class_name(network, c);
        if (name)
            fprintf(out, "%s", name);
        else
            fprintf(out, "%d", c);
        fprintf(out, " %d %d %d\n", colours[3 * c], colours[3 * c + 1], colours[3 * c + 2]);
    }
}

static int write_legend(const cli_drawings *drawings)
{
    char path[CLI_PATH], *text = NULL;
    size_t size = 0;
    const int classes = att_model_classes(att_network_model(drawings->network));
    FILE *out = open_memstream(&text, &size);
    if (out)
        print_legend(out, drawings->network, classes);
    int code = out && fclose(out) == 0 ? place(drawings, CLI_DRAWINGS_LEGEND, "", path)
                                       : cli_failure("out of memory for a legend");
    if (code == CLI_OK)
        code = cli_check(drawings->cli, att_file_replace(drawings->cli->context, path, text, size));
    free(text);
    return code;
}

/* --- drawings ----------------------------------------------------------------------------------------------------- */

int cli_drawings_check(const char *flag, const char *folder, const char *const *photographs, int count)
{
    char parent[CLI_PATH];
    if (!*folder)
        return cli_failure("%s is empty; expected a folder for the drawings", flag);
    for (int i = 0; i < count; i++) {
        const bool is_folder = cli_is_folder(photographs[i]);
        if (is_folder ? cli_is_within(photographs[i], folder)
                      : cli_is_same_file(cli_folder_of(photographs[i], parent, sizeof parent), folder))
            return cli_failure(
                "%s %s: the folder %s %s, so that drawings and photographs would mix; choose another "
                "folder",
                flag, folder, is_folder ? "is, or lies in, that of the photographs" : "holds the photograph",
                photographs[i]);
    }
    return CLI_OK;
}

int cli_drawings_open(cli_app *cli, const char *folder, const att_network *network, cli_drawings *drawings)
{
    *drawings = (cli_drawings){.cli = cli, .folder = folder, .network = network};
    if (!att_network_draws(network))
        return cli_failure("--draw: predictions of the task \"%s\" cannot be drawn",
                           att_model_task(att_network_model(network)).name);
    int code = cli_check(cli, att_picture_names_create(cli->context, &drawings->names));
    if (code == CLI_OK)
        code = cli_check(cli, att_file_make_folders(cli->context, folder));
    return code == CLI_OK ? write_legend(drawings) : code;
}

void cli_drawings_close(cli_drawings *drawings)
{
    att_picture_names_destroy(&drawings->names);
}

static att_status write_files(const cli_drawings *drawings, const att_drawing *drawing, cli_drawn *drawn)
{
    const att_status status = att_drawing_write_image(drawings->cli->context, drawing, drawn->image);
    if (status != ATT_OK || !drawing->classes.classes) {
        *drawn->index = '\0';
        return status;
    }
    return att_drawing_write_index(drawings->cli->context, drawing, drawn->index);
}

int cli_drawings_add(cli_drawings *drawings, const char *name, const att_image *photograph, const att_batch *answer,
                     cli_drawn *drawn)
{
    const char *taken;
    att_drawing drawing = {0};
    int code = cli_check(drawings->cli, att_picture_names_take(drawings->names, name, &taken));
    if (code == CLI_OK)
        code = place(drawings, taken, ".drawn.png", drawn->image);
    if (code == CLI_OK)
        code = place(drawings, taken, ".classes.png", drawn->index);
    if (code != CLI_OK)
        return code;
    att_status status = att_network_draw(drawings->network, answer, NULL, photograph, &drawing);
    if (status == ATT_OK)
        status = write_files(drawings, &drawing, drawn);
    att_drawing_free(drawings->cli->context, &drawing);
    return cli_check(drawings->cli, status);
}

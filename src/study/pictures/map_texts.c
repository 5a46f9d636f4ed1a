/* Maps of texts as SVG 1.1: the words of the text, each on a field in the colour of its number. Letters are text in a
 * font of fixed width, which the viewer has. PNG and PDF would need a font of ours for every script. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/file.h>

#include "base/core/error.h"
#include "data/text/unicode.h"
#include "study/pictures/maps.h"
#include "study/pictures/picture.h"

enum { LINE = 72, FONT = 8 }; /* columns of a line; pixels of the font at zoom 1 */

/* A word's place in its block, in columns and rows. */
typedef struct word {
    const char *piece;
    int row;
    double column, width;
} word;

/* The words of a text, which all its pictures share. */
typedef struct block {
    att_map_files *files;
    word *words;
    int count;
    double columns;
    int rows;
    double font, column, row; /* pixels */
} block;

/* --- layout ------------------------------------------------------------------------------------------------------- */

static int columns_of(const char *text)
{
    int columns = 0;
    uint32_t code;
    for (size_t length; *text && (length = att_utf8_decode(text, &code)) > 0; text += length)
        columns += att_code_columns(code);
    return columns;
}

static bool begins(const char *piece, const char *mark)
{
    return strncmp(piece, mark, strlen(mark)) == 0;
}

/* Whether a piece goes on with the word before it. marks: the vocabulary marks the beginnings of words. */
static bool joins(const att_token_ids *text, int token, const char *piece, bool marks)
{
    if (token == 0 || text->special[token] || text->special[token - 1])
        return false;
    return marks ? !begins(piece, ATT_WORD_MARK) : begins(piece, "##");
}

static bool has_marks(const att_map_files *files)
{
    for (int i = 0; i < files->text->count; i++)
        if (begins(att_tokenizer_piece(files->tokenizer, files->text->tokens[i]), ATT_WORD_MARK))
            return true;
    return false;
}

static void lay_out(block *b)
{
    const att_token_ids *text = b->files->text;
    const bool marks = has_marks(b->files);
    double column = 0;
    for (int i = 0; i < b->count; i++) {
        word *w = &b->words[i];
        w->piece = att_tokenizer_piece(b->files->tokenizer, text->tokens[i]);
        w->width = columns_of(w->piece) + 1;
        column += i > 0 && !joins(text, i, w->piece, marks) ? 0.5 : 0;
        if (column > 0 && column + w->width > LINE) {
            b->rows++;
            column = 0;
        }
        w->row = b->rows;
        w->column = column;
        column += w->width;
        b->columns = fmax(b->columns, column);
    }
    b->rows++;
}

/* --- SVG ---------------------------------------------------------------------------------------------------------- */

/* The colour of a number on white, and whether letters on it are white (ITU-R BT.601). */
static bool colour_of(const att_map_style *style, double low, double high, double value, uint8_t colour[3])
{
    uint8_t full[3] = {UINT8_MAX, UINT8_MAX, UINT8_MAX};
    if (!isnan(value))
        att_colour_of(style->colours, high > low ? (value - low) / (high - low) : 0.5, full);
    for (int c = 0; c < 3; c++)
        colour[c] = (uint8_t)lround(style->opacity * full[c] + (1 - style->opacity) * UINT8_MAX);
    return 299 * colour[0] + 587 * colour[1] + 114 * colour[2] < 128000;
}

static void append_word(const block *b, const word *w, const uint8_t colour[3], bool white, double value, double x,
                        double y, att_text *out)
{
    char number[ATT_NUMBER_TEXT];
    x += w->column * b->column;
    y += w->row * b->row;
    att_text_append(out,
                    "<g><title>%s</title><rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" rx=\"2\" "
                    "fill=\"#%02x%02x%02x\" stroke=\"#999\" stroke-width=\"0.5\"/><text x=\"%.2f\" y=\"%.2f\" "
                    "textLength=\"%.2f\" lengthAdjust=\"spacingAndGlyphs\" fill=\"#%s\">",
                    isnan(value) ? "not seen" : att_format_number(value, number), x, y, w->width * b->column,
                    b->row - 4, colour[0], colour[1], colour[2], x + 0.5 * b->column, y + 0.72 * b->row,
                    (w->width - 1) * b->column, white ? "fff" : "000");
    att_picture_svg_escape(out, w->piece);
    att_text_append(out, "</text></g>\n");
}

static void append_map(const block *b, const att_listed_map *map, double x, double y, att_text *out)
{
    const att_map_style style = att_map_style_of(b->files, map);
    double low, high;
    att_map_scale(&map->map, &style, &low, &high);
    for (int i = 0; i < b->count; i++) {
        uint8_t colour[3];
        const double value = map->map.values[i];
        const bool white = colour_of(&style, low, high, value, colour);
        append_word(b, &b->words[i], colour, white, value, x, y, out);
    }
}

static void append_label(const block *b, const char *label, double x, double y, att_text *out)
{
    att_text_append(out, "<text x=\"%.2f\" y=\"%.2f\">", x, y);
    att_picture_svg_escape(out, label);
    att_text_append(out, "</text>\n");
    (void)b;
}

/* Rows of maps, one for each layer, of which each has its name above it; a single map has none. */
static void append_maps(const block *b, const att_listed_map *maps, int count, att_text *out)
{
    const double label = count > 1 ? 1.6 * b->font : 0, width = b->columns * b->column + b->font,
                 height = b->rows * b->row + label;
    int rows = 1, columns = 1;
    for (int i = 1, column = 1; i < count; i++) {
        const bool begins_row = maps[i].row != maps[i - 1].row;
        rows += begins_row;
        column = begins_row ? 1 : column + 1;
        columns = column > columns ? column : columns;
    }
    att_text_append(out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.2f\" height=\"%.2f\" font-size=\"%.2f\" "
                    "font-family=\"DejaVu Sans Mono,Menlo,Consolas,monospace\">\n"
                    "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                    columns * width, rows * height + 4, b->font);
    for (int i = 0, row = 0, column = 0; i < count; i++) {
        const bool begins_row = i > 0 && maps[i].row != maps[i - 1].row;
        row += begins_row;
        column = begins_row || i == 0 ? 0 : column + 1;
        const double x = column * width + 2, y = row * height + 2;
        if (count > 1)
            append_label(b, maps[i].name, x, y + 1.1 * b->font, out);
        append_map(b, &maps[i], x, y + label, out);
    }
    att_text_append(out, "</svg>\n");
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static att_status write_maps(const block *b, const att_listed_map *maps, int count, const char *name, const char *what)
{
    char path[ATT_MAP_PATH];
    att_context *context = b->files->context;
    att_text out = {.context = context};
    ATT_TRY(att_map_path(b->files, name, what, "svg", path));
    append_maps(b, maps, count, &out);
    const att_status status = out.failed ? att_fail_memory(context, out.length, "a picture")
                                         : att_file_replace(context, path, out.data, out.length);
    b->files->written += status == ATT_OK;
    att_text_free(&out);
    return status;
}

/* One picture for each map, or in the form "grid" for each item of `show`. */
static att_status write_all(const block *b, const char *name)
{
    const att_map_list *list = &b->files->list;
    const bool grid = strcmp(b->files->options.form, "grid") == 0;
    char what[ATT_MAP_NAME];
    for (int i = 0, next; i < list->count; i = next) {
        for (next = i + 1; grid && next < list->count && list->items[next].item == list->items[i].item;)
            next++;
        snprintf(what, sizeof what, "%.*s", (int)(grid ? strcspn(list->items[i].name, ".") : sizeof what - 1),
                 list->items[i].name);
        ATT_TRY(write_maps(b, &list->items[i], next - i, name, what));
    }
    return ATT_OK;
}

att_status att_map_texts_write(att_map_files *files, const char *name)
{
    const double font = FONT * files->options.zoom;
    block b = {.files = files, .count = files->text->count, .font = font, .column = 0.6 * font, .row = 1.7 * font + 4};
    ATT_TRY(att_new(files->context, &b.words, (size_t)b.count, "the words of a text"));
    lay_out(&b);
    const att_status status = write_all(&b, name);
    att_free(files->context, b.words);
    return status;
}

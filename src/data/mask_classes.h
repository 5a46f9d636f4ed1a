/* data/mask_classes.h - the lists of classes beside masks. */
#ifndef ATT_DATA_MASK_CLASSES_H
#define ATT_DATA_MASK_CLASSES_H

#include "data/classes.h"

/* Reads classes from the contents of a file with one on each line, `name` or `name R G B`; `text` ends in a NUL and is
 * modified. If the last three words of a line are whole numbers, they are the colour of the class, and every other line
 * must have one too. Errors: ERR_FORMAT (no classes; a line without a name; a name twice; a colour that is missing, or
 * not three numbers in 0..255), ERR_MEMORY. */
att_status att_mask_classes_parse(att_context *context, const char *path, char *text, size_t size,
                                  att_class_list *list);
/* As above, for ADE20K's objectInfo150.txt, a table with a heading and one class on each line, whose last column has
 * the class's names, separated by commas; the first is taken. If all 150 are there, they have ADE20K's colours. */
att_status att_mask_classes_parse_table(att_context *context, const char *path, char *text, size_t size,
                                        att_class_list *list);

/* Cuts the colours off lines "name R G B", as above. The arena holds *colours; NULL if there are none. */
att_status att_take_colours(att_arena *arena, const char *path, char *const *lines, int count, uint8_t (**colours)[3]);

#endif

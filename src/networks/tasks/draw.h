/* tasks/draw.h - answers painted into photographs. */
#ifndef ATT_TASKS_DRAW_H
#define ATT_TASKS_DRAW_H

#include "networks/tasks/task.h"

/* As att_network_draw(), for an answer of the task `task` of a network with `classes` classes. geometry: the map from
 * the photograph to the network's input; NULL: the photograph is the input. Errors: also ERR_NOT_FOUND (no such task).
 */
ATT_FOR_LAB att_status att_task_draw(att_context *context, const char *task, int classes, const att_batch *answer,
                                     const att_answer_options *options, const att_image *photograph,
                                     const att_geometry *geometry, att_drawing *drawing);
/* Whether answers of the task can be drawn. */
bool att_task_draws(const att_context *context, const char *task);

enum { ATT_COLOUR_TEXT = sizeof "#0060ff" };
/* Writes the colour of a class as text, "#0060ff". Returns `text`. */
ATT_FOR_LAB char *att_colour_text(const uint8_t *colours, int class_number, char text[static ATT_COLOUR_TEXT]);
/* Reads such a text, which may be followed by anything. Returns false if it is not one; *colour is then undefined. */
ATT_FOR_LAB bool att_colour_read(const char *text, uint8_t colour[static 3]);

#endif

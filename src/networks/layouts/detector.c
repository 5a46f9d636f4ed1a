/* What layouts of Faster R-CNN have in common. */
#include "networks/layouts/detector.h"

#include "base/core/error.h"
#include "base/core/names.h"
#include "base/core/text.h"
#include "networks/heads/heads.h"
#include "networks/models/checkpoint.h"
#include "networks/tasks/task.h"

#define ROI "detector.roi_heads."
static const char outputs_name[] = ROI "box_predictor.cls_score.weight";

double att_layout_rows_of(const att_layout_source *source, const char *name, int rank)
{
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(source->file, name, rank, &shape);
    return dims ? (double)dims[0] : 0;
}

att_status att_layout_complete_detector(const att_layout_source *source, const char *classifier, att_config *config)
{
    const att_task *task = att_task_of_parameter(source->context, ROI "box_predictor.bbox_pred.weight");
    const bool is_v2 = att_checkpoint_has(source->file, "detector.fpn.inner_blocks.0.1.weight");
    const double outputs = att_layout_rows_of(source, outputs_name, 2);
    att_option_values *options = &config->options;
    if (outputs < 2)
        return att_fail(source->context, ATT_ERR_FORMAT,
                        "%s: %s must have rows for the background and at least one class", source->path, classifier);
    if (task)
        att_options_set_text(options, "task", task->info.name);
    att_options_set_text(options, "head", is_v2 ? ATT_HEAD_RCNN_V2 : ATT_HEAD_RCNN);
    att_options_set(options, "num_classes", outputs - 1);
    att_options_set(options, "head_channels", att_layout_rows_of(source, "detector.fpn.layer_blocks.0.0.weight", 4));
    att_options_set(options, "box_channels",
                    att_layout_rows_of(source, is_v2 ? ROI "box_head.5.weight" : ROI "box_head.fc6.weight", 2));
    return ATT_OK;
}

att_status att_layout_name_objects(att_tensors *file, const char *list, int first)
{
    const att_known_classes *known = att_known_classes_find(list);
    const att_layout_source source = {.context = file->context, .file = file};
    att_text names = {.context = file->context};
    if (att_tensors_metadata(file, ATT_TENSORS_CLASSES) ||
        att_layout_rows_of(&source, outputs_name, 2) - 1 != known->count - first)
        return ATT_OK;
    for (int c = first; c < known->count; c++)
        att_text_append(&names, "%s\n", att_known_classes_label(known, c));
    att_status status = names.failed ? att_fail_memory(file->context, names.length, "the names of classes")
                                     : att_tensors_add_metadata(file, ATT_TENSORS_CLASSES, names.data);
    att_text_free(&names);
    return status;
}

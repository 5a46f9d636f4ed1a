/* What layouts of UPerNet have in common. */
#include "networks/heads/heads.h"
#include "networks/layouts/layout.h"
#include "networks/models/checkpoint.h"
#include "networks/tasks/task.h"

/* Outputs of the convolution `name`; 0: there is none. */
static double outputs_of(const att_layout_source *source, const char *name)
{
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(source->file, name, 4, &shape);
    return dims ? (double)dims[0] : 0;
}

att_status att_layout_complete_uper(const att_layout_source *source, att_config *config)
{
    static const char classifier[] = "segmenter.conv_seg.weight";
    const att_task *task = att_task_of_parameter(source->context, classifier);
    att_option_values *options = &config->options;
    if (task)
        att_options_set_text(options, "task", task->info.name);
    att_options_set_text(options, "head", ATT_HEAD_UPER);
    att_options_set(options, "num_classes", outputs_of(source, classifier));
    att_options_set(options, "head_channels", outputs_of(source, "segmenter.fpn_bottleneck.conv.weight"));
    att_options_set(options, "aux_channels", outputs_of(source, "segmenter.auxiliary_head.convs.0.conv.weight"));
    return ATT_OK;
}

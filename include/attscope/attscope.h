/* attscope/attscope.h - includes every header of libattscope. attscope/lab.h includes those of libattscope-lab.
 *
 * In all headers, a pointer must not be NULL unless the description of the parameter or member says what NULL means.
 */
#ifndef ATTSCOPE_ATTSCOPE_H
#define ATTSCOPE_ATTSCOPE_H

#include <attscope/checkpoint.h>
#include <attscope/coco.h>
#include <attscope/comm.h>
#include <attscope/context.h>
#include <attscope/convert.h>
#include <attscope/data.h>
#include <attscope/drawing.h>
#include <attscope/embed.h>
#include <attscope/encoder.h>
#include <attscope/evaluate.h>
#include <attscope/event.h>
#include <attscope/explore.h>
#include <attscope/field.h>
#include <attscope/file.h>
#include <attscope/gradient.h>
#include <attscope/graph.h>
#include <attscope/hub.h>
#include <attscope/image.h>
#include <attscope/map_files.h>
#include <attscope/maps.h>
#include <attscope/measure.h>
#include <attscope/models.h>
#include <attscope/network.h>
#include <attscope/nn.h>
#include <attscope/npz.h>
#include <attscope/ops.h>
#include <attscope/options.h>
#include <attscope/picture.h>
#include <attscope/plan.h>
#include <attscope/position_heads.h>
#include <attscope/probe.h>
#include <attscope/progress.h>
#include <attscope/relevance.h>
#include <attscope/safetensors.h>
#include <attscope/status.h>
#include <attscope/store.h>
#include <attscope/task.h>
#include <attscope/tensor.h>
#include <attscope/tensors.h>
#include <attscope/text.h>
#include <attscope/tokenizer.h>
#include <attscope/train.h>
#include <attscope/update.h>
#include <attscope/version.h>
#include <attscope/weights.h>

#endif

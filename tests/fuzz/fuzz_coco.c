/* COCO's evaluation: the first byte says whether the other bytes are the annotations or the detections. */
#include <attscope/coco.h>

#include "fuzz.h"

static const char truth[] =
    "{\"images\": [{\"id\": 1}], \"categories\": [{\"id\": 3, \"name\": \"dog\"}], \"annotations\": [{\"id\": 1, "
    "\"image_id\": 1, \"category_id\": 3, \"bbox\": [0, 0, 10, 10], \"area\": 100, \"iscrowd\": 0}]}";
static const char results[] = "[{\"image_id\": 1, \"category_id\": 3, \"bbox\": [0, 0, 10, 6], \"score\": 0.5}]";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t before = fuzz_begin();
    const bool is_truth = size > 0 && *data % 2;
    char path[512];
    att_coco_evaluation *evaluation = NULL;
    const size_t rest = size > 0 ? size - 1 : 0;
    const char *other = is_truth ? fuzz_file("results.json", results, sizeof results - 1)
                                 : fuzz_file("truth.json", truth, sizeof truth - 1);
    snprintf(path, sizeof path, "%s", other);
    const char *own = fuzz_file(is_truth ? "truth.json" : "results.json", data + (size > 0), rest);
    if (att_coco_evaluate(fuzz_context(), is_truth ? own : path, is_truth ? path : own, &evaluation) == ATT_OK)
        for (int i = 0; i < ATT_COCO_FIGURES; i++) {
            const double figure = att_coco_evaluation_figure(evaluation, i);
            fuzz_require(figure == -1 || (figure >= 0 && figure <= 1), "a figure from 0 to 1, or -1");
        }
    att_coco_evaluation_destroy(&evaluation);
    fuzz_end(before);
    return 0;
}

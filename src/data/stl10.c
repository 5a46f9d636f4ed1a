/* STL-10's labelled images, binary version (cs.stanford.edu/~acoates/stl10): 96 x 96 pixels, stored column by column;
 * labels 1 to 10 in separate files. */
#include "data/packed.h"

static const att_packed_layout stl10 = {
    .kind = "stl10",
    .versions = {{"stl10_binary.tar.gz", "stl10_binary", "class_names.txt", .unique_names = true}},
    .splits = {{"train", {"train_X.bin"}, "train_y.bin"}, {"test", {"test_X.bin"}, "test_y.bin"}},
    .side = 96,
    .classes = 10,
    .first_label = 1,
    .column_major = true,
};

static bool accepts(const att_dataset *dataset)
{
    return att_packed_accepts(&stl10, dataset);
}

static att_status open_stl10(att_dataset *dataset, const att_dataset_options *options)
{
    return att_packed_open(&stl10, dataset, options);
}

const att_data_format att_data_stl10 = {.accepts = accepts,
                                        .open = open_stl10,
                                        .close = att_packed_close,
                                        .name = att_packed_name,
                                        .read = att_packed_read};

/* CIFAR-10 and CIFAR-100, binary and Python versions (www.cs.toronto.edu/~kriz/cifar.html): 32 x 32 pixels. A CIFAR-10
 * record has one label; a CIFAR-100 record has the superclass, then the class. */
#include "data/packed.h"

static const att_packed_layout cifar10 = {
    .kind = "cifar10",
    .versions = {{"cifar-10-binary.tar.gz", "cifar-10-batches-bin", "batches.meta.txt", .unique_names = true},
                 {"cifar-10-python.tar.gz", "cifar-10-batches-py", "batches.meta", .unique_names = false}},
    .labels_key = "labels",
    .names_key = "label_names",
    .splits = {{"train",
                {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
                NULL},
               {"test", {"test_batch.bin"}, NULL}},
    .side = 32,
    .classes = 10,
    .label_bytes = 1,
};

static const att_packed_layout cifar100 = {
    .kind = "cifar100",
    .versions = {{"cifar-100-binary.tar.gz", "cifar-100-binary", "fine_label_names.txt", .unique_names = false},
                 {"cifar-100-python.tar.gz", "cifar-100-python", "meta", .unique_names = false}},
    .labels_key = "fine_labels",
    .names_key = "fine_label_names",
    .splits = {{"train", {"train.bin"}, NULL}, {"test", {"test.bin"}, NULL}},
    .side = 32,
    .classes = 100,
    .label_bytes = 2,
    .label_at = 1,
};

/* Used only after cifar100 has recognised the data set by its fine labels. */
static const att_packed_layout cifar100_coarse = {
    .kind = "cifar100",
    .versions = {{"cifar-100-binary.tar.gz", "cifar-100-binary", "coarse_label_names.txt", .unique_names = true},
                 {"cifar-100-python.tar.gz", "cifar-100-python", "meta", .unique_names = false}},
    .labels_key = "coarse_labels",
    .names_key = "coarse_label_names",
    .splits = {{"train", {"train.bin"}, NULL}, {"test", {"test.bin"}, NULL}},
    .side = 32,
    .classes = 20,
    .label_bytes = 2,
};

static bool accepts_cifar10(const att_dataset *dataset)
{
    return att_packed_accepts(&cifar10, dataset);
}

static att_status open_cifar10(att_dataset *dataset, const att_dataset_options *options)
{
    return att_packed_open(&cifar10, dataset, options);
}

static bool accepts_cifar100(const att_dataset *dataset)
{
    return att_packed_accepts(&cifar100, dataset);
}

static att_status open_cifar100(att_dataset *dataset, const att_dataset_options *options)
{
    return att_packed_open(options->coarse ? &cifar100_coarse : &cifar100, dataset, options);
}

const att_data_format att_data_cifar10 = {.accepts = accepts_cifar10,
                                          .open = open_cifar10,
                                          .close = att_packed_close,
                                          .name = att_packed_name,
                                          .read = att_packed_read};
const att_data_format att_data_cifar100 = {.accepts = accepts_cifar100,
                                           .open = open_cifar100,
                                           .close = att_packed_close,
                                           .name = att_packed_name,
                                           .read = att_packed_read};

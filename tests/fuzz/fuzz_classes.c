/* Class maps of data sets, and the labels of `attscope predict`. The first byte says how many classes there are. */
#include "fuzz.h"

#include "data/classes.h"
#include "labels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t before = fuzz_begin();
    const char *path = fuzz_file("classes.txt", data + 1, size - 1);
    att_class_list list = {.count = 0};
    if (att_class_list_read(fuzz_context(), path, &list) == ATT_OK)
        for (int i = 0; i < list.count; i++) {
            fuzz_require(att_class_list_find(&list, list.names[i]) == i, "a class is found by its name");
            fuzz_require(att_natural_compare(list.names[i], list.names[0]) ==
                                 -att_natural_compare(list.names[0], list.names[i]) ||
                             (att_natural_compare(list.names[i], list.names[0]) < 0) ==
                                 (att_natural_compare(list.names[0], list.names[i]) > 0),
                         "the order of names is one");
        }
    att_class_list_free(&list);
    cli_app cli = {0};
    cli_labels labels = {0};
    int classes = data[0] + 1;
    if (cli_labels_choose(&cli, path, NULL, classes, &labels) == 0)
        for (int i = 0; i < classes; i++)
            fuzz_require(cli_label_of(&labels, i) != NULL, "every class has a label");
    cli_labels_free(&labels);
    fuzz_end(before);
    return 0;
}

/* Class maps of data sets, and class names given to a network. */
#include "fuzz.h"

#include <attscope/network.h>

#include "data/classes.h"

enum { CLASSES = 3 };

static att_network *small_network(void)
{
    static att_network *network;
    att_option_values shape = att_options_none();
    att_network_options options = att_network_options_defaults();
    if (network)
        return network;
    att_options_set(&shape, "num_classes", CLASSES);
    att_options_set(&shape, "img_size", 4);
    att_options_set(&shape, "patch_size", 4);
    att_options_set(&shape, "embed_dim", 2);
    att_options_set(&shape, "depth", 1);
    att_options_set(&shape, "num_heads", 1);
    options.options = &shape;
    fuzz_require(att_network_open(fuzz_context(), "vit_tiny_patch16_224", &options, &network) == ATT_OK, "a network");
    return network;
}

static void name_classes(const char *path)
{
    att_network *network = small_network();
    int count = 0;
    if (att_network_name_classes(network, path) != ATT_OK)
        return;
    (void)att_network_class_names(network, &count);
    fuzz_require(count == CLASSES, "every class has a name");
    fuzz_require(att_network_class_name(network, CLASSES - 1) != NULL, "the last class has a name");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)small_network();
    const char *path = fuzz_file("classes.txt", data, size);
    name_classes(path); /* the network keeps its class names */
    size_t before = fuzz_begin();
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
    fuzz_end(before);
    return 0;
}

/* Names, addresses and image sizes: torchvision 0.29, torchvision/models/resnet.py. */
#include "networks/models/torchvision.h"

#include <string.h>

#include "base/core/text.h"

static const char V1[] = "IMAGENET1K_V1", V2[] = "IMAGENET1K_V2";

/* 224 of 256 pixels, and 224 of 232. */
#define OF_256 0.875
#define OF_232 0.965

const att_torchvision att_torchvision_all[] = {
    {"resnet18", V1, "resnet18-f37072fd.pth", OF_256},
    {"resnet34", V1, "resnet34-b627a593.pth", OF_256},
    {"resnet50", V2, "resnet50-11ad3fa6.pth", OF_232},
    {"resnet50", V1, "resnet50-0676ba61.pth", OF_256},
    {"resnet101", V2, "resnet101-cd907fc2.pth", OF_232},
    {"resnet101", V1, "resnet101-63fe2227.pth", OF_256},
    {"resnet152", V2, "resnet152-f82ba261.pth", OF_232},
    {"resnet152", V1, "resnet152-394f9c45.pth", OF_256},
    {"resnext50_32x4d", V2, "resnext50_32x4d-1a0047aa.pth", OF_232},
    {"resnext50_32x4d", V1, "resnext50_32x4d-7cdf4587.pth", OF_256},
    {"resnext101_32x8d", V2, "resnext101_32x8d-110c445d.pth", OF_232},
    {"resnext101_32x8d", V1, "resnext101_32x8d-8ba56ff5.pth", OF_256},
    {"resnext101_64x4d", V1, "resnext101_64x4d-173b62eb.pth", OF_232},
    {"wide_resnet50_2", V2, "wide_resnet50_2-9ba9bcbe.pth", OF_232},
    {"wide_resnet50_2", V1, "wide_resnet50_2-95faca4d.pth", OF_256},
    {"wide_resnet101_2", V2, "wide_resnet101_2-d733dc28.pth", OF_232},
    {"wide_resnet101_2", V1, "wide_resnet101_2-32ee1156.pth", OF_256},
};
const int att_torchvision_count = sizeof att_torchvision_all / sizeof *att_torchvision_all;

const att_torchvision *att_torchvision_of_file(const char *path)
{
    for (int i = 0; i < att_torchvision_count; i++)
        if (strcmp(att_torchvision_all[i].file, att_path_last(path)) == 0)
            return &att_torchvision_all[i];
    return NULL;
}

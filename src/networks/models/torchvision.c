/* Names, addresses and image sizes: torchvision 0.29,
 * torchvision/models/{resnet,vision_transformer,swin_transformer,detection/faster_rcnn}.py. */
#include "networks/models/torchvision.h"

#include <string.h>

#include "base/core/text.h"

static const char V1[] = "IMAGENET1K_V1", V2[] = "IMAGENET1K_V2", COCO[] = "COCO_V1";

static const char SWAG[] = "IMAGENET1K_SWAG_E2E_V1", SWAG_LINEAR[] = "IMAGENET1K_SWAG_LINEAR_V1";

/* 224 of 256 pixels, and so on; 256 of 260 and of 272. */
#define OF_256 0.875, "bilinear"
#define OF_232 0.965, "bilinear"
#define OF_242 0.925, "bilinear"
#define BICUBIC_OF_232 0.965, "bicubic"
#define BICUBIC_OF_246 0.91, "bicubic"
#define BICUBIC_OF_238 0.941, "bicubic"
#define BICUBIC_OF_260 0.984, "bicubic"
#define BICUBIC_OF_272 0.941, "bicubic"
#define BICUBIC_OF_ALL 1, "bicubic"

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
    {"vit_b_16", V1, "vit_b_16-c867db91.pth", OF_256},
    {"vit_b_16", SWAG, "vit_b_16_swag-9ac1b537.pth", BICUBIC_OF_ALL},
    {"vit_b_16", SWAG_LINEAR, "vit_b_16_lc_swag-4e70ced5.pth", BICUBIC_OF_ALL},
    {"vit_b_32", V1, "vit_b_32-d86f8d99.pth", OF_256},
    {"vit_l_16", V1, "vit_l_16-852ce7e3.pth", OF_242},
    {"vit_l_16", SWAG, "vit_l_16_swag-4f3808c9.pth", BICUBIC_OF_ALL},
    {"vit_l_16", SWAG_LINEAR, "vit_l_16_lc_swag-4d563306.pth", BICUBIC_OF_ALL},
    {"vit_l_32", V1, "vit_l_32-c7638314.pth", OF_256},
    {"vit_h_14", SWAG, "vit_h_14_swag-80465313.pth", BICUBIC_OF_ALL},
    {"vit_h_14", SWAG_LINEAR, "vit_h_14_lc_swag-c1eb923e.pth", BICUBIC_OF_ALL},
    {"swin_t", V1, "swin_t-704ceda3.pth", BICUBIC_OF_232},
    {"swin_s", V1, "swin_s-5e29d889.pth", BICUBIC_OF_246},
    {"swin_b", V1, "swin_b-68c6b09e.pth", BICUBIC_OF_238},
    {"swin_v2_t", V1, "swin_v2_t-b137f0e2.pth", BICUBIC_OF_260},
    {"swin_v2_s", V1, "swin_v2_s-637d8ceb.pth", BICUBIC_OF_260},
    {"swin_v2_b", V1, "swin_v2_b-781e5279.pth", BICUBIC_OF_272},
    {"fasterrcnn_resnet50_fpn", COCO, "fasterrcnn_resnet50_fpn_coco-258fb6c6.pth", 1, "bilinear_plain"},
    {"fasterrcnn_resnet50_fpn_v2", COCO, "fasterrcnn_resnet50_fpn_v2_coco-dd69338a.pth", 1, "bilinear_plain"},
};
const int att_torchvision_count = sizeof att_torchvision_all / sizeof *att_torchvision_all;

const att_torchvision *att_torchvision_of_file(const char *path)
{
    for (int i = 0; i < att_torchvision_count; i++)
        if (strcmp(att_torchvision_all[i].file, att_path_last(path)) == 0)
            return &att_torchvision_all[i];
    return NULL;
}

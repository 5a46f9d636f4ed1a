/* attscope/data.h - data sets of images, transforms, and the loader, which makes batches.
 *
 * A data set is opened once; several threads can read from it. A loader decodes and transforms images on threads of its
 * own and returns batches of named tensors: the images, and targets made by the caller's rules. Batches depend only on
 * the data set, the options, the epoch and the seed, never on the number of threads.
 */
#ifndef ATTSCOPE_DATA_H
#define ATTSCOPE_DATA_H

#include <attscope/comm.h>
#include <attscope/field.h>
#include <attscope/image.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- data sets --------------------------------------------------------------------------------------------------- */

typedef struct att_dataset att_dataset;

/* What a sample has besides its image; several are joined by "|". */
enum { ATT_ANNOTATION_CLASS = 1, ATT_ANNOTATION_MASK = 2, ATT_ANNOTATION_BOXES = 4 };

/* The value of options about masks that stands for what the data set's layout says. */
enum { ATT_BY_LAYOUT = -1 };

typedef struct att_dataset_options {
    /* "train", "training", "val", "validation", "valid", "test" or "testing"; NULL: the first that exists. Or a text
     * that ends in ".tar": a tar, or a pattern of tars, in the folder that is opened. */
    const char *split;
    const char *class_map; /* path of a file with one class per line. The whole line is the class's name; its number is
                              the line's index, from 0. A byte order mark, the carriage returns of Windows' line ends
                              and blank lines at the end are left out */
    /* Class names of the training that a network comes from, by number. If every class folder has one of these names,
     * they give the folders their numbers, unless there is a class map. If names of the training and of folders are
     * numbers, a folder without such a name is refused (ERR_FORMAT). NULL: none. */
    const char *const *trained;
    int trained_count;
    /* Number of classes of a network. If every class folder is named by a number below it, without leading zeros, that
     * is its number (ImageNet-V2), unless the options above number the folders. Without a folder "0", the numbers could
     * as well begin at 1: ERR_FORMAT. 0: unknown. */
    int classes;
    /* The annotation that the caller needs, such as ATT_ANNOTATION_MASK; 0: a class. A data set without it is refused
     * (ERR_MISMATCH). */
    unsigned annotations;
    /* Masks: 1: the stored label 0 means "no class", and the label n stands for class n - 1; 0: the label is the class.
     * ATT_BY_LAYOUT: see att_dataset_open(). */
    int reduce_zero_label;
    int ignore_label;   /* masks: this stored label means "no class", beside those of the layout; ATT_BY_LAYOUT: only
                           those */
    bool unlabelled;    /* ignore annotations: take every image below the path, in any folder and split, with label -1.
                           Data sets whose images are not files of their own (idx, CIFAR, STL-10) are opened as usual */
    bool coarse;        /* CIFAR-100: the 20 superclasses instead of the 100 classes. ERR_ARGUMENT for other data */
    size_t cache_bytes; /* largest memory for the members of a .tar.gz, which allows no random access */
    att_image_limits limits; /* limits for each image file */
} att_dataset_options;

/* No split, no class map, labelled by classes, masks as their layout says, 4 GiB, default limits. */
ATT_API att_dataset_options att_dataset_options_defaults(void);

/* Opens the data set at `path`. These formats are recognised:
 *
 * "idx": a folder (or its subfolder "raw") with train-images-idx3-ubyte, train-labels-idx1-ubyte and the t10k- pair,
 * each plain or .gz. Every split except train is t10k. Classes are named by their numbers; those of Fashion-MNIST,
 * which is recognised by its labels, have their names.
 *
 * "folder": a folder of class folders, or of split folders that hold class folders. Split folders are named "train",
 * "training", "val", "validation", "valid", "test" or "testing", in lower or upper case; or, if there are none of
 * these, by names that differ only in such a word ("seg_train", "seg_test"). If such a folder holds only a folder of
 * the same name, that one is used ("seg_train/seg_train").
 *
 * "tar", "tar.gz", "zip": an archive of such a folder, which may lie inside other folders of the archive; or a folder
 * with one archive per split, named after it (train.tar.gz, Test.zip), of which the requested split is opened.
 *
 * "tar" is also a set of plain tars, which are read in place: a tar for each class, named after it, in a folder or in
 * one tar, such as ImageNet's ILSVRC2012_img_train.tar; or tars of class folders. "shards": WebDataset shards, tars in
 * which the files of a sample follow each other and have the same name up to its first dot: the image (.jpg, .jpeg,
 * .png, .webp), and its label, a number or the name of a class, as text in .cls or as {"label": 7} in .json. Numbers
 * and names together are refused (ERR_FORMAT). With numbers, images come in the order of the shards, and classes are
 * named by their numbers, by a class map, or by the training's names if it has as many classes or more; the log warns
 * if no label is 0. With names, or if names of the training are numbers other than those of their classes, classes and
 * images are sorted as those of class folders. The log warns about samples without an image or a label, with a label
 * that is no class ("-1", "3.0"), with different numbers or different names in .cls and .json, or with the same file
 * twice, and about further images of samples, which are left out; if nothing is left, opening fails (ERR_FORMAT).
 * Such a set is
 *  - a folder of tars;
 *  - a folder in which the splits are folders of tars (train/n01440764.tar). Splits with class folders can lie beside
 *    them;
 *  - a folder in which the names of the tars have the name of a split as a word (imagenet-train-000000.tar,
 *    ILSVRC2012_img_val.tar), or whose _info.json lists the tars of each split, as timm's does;
 *  - a path with braces: "train-{000000..000146}.tar", "{cat,dog}.tar". All the tars must exist.
 * Tars of tars of tars, compressed tars in such a set, and links and sparse files in tars are not read.
 *
 * The list of the files in tars is kept, if there are 1000 files or more, in a hidden file beside the first tar, or in
 * the folder attscope of $XDG_CACHE_HOME (~/.cache) if that folder cannot be written. It is made again if a tar has
 * another size or modification time. The tars must not change while the data set is open: att_dataset_read() then fails
 * with ERR_IO.
 *
 * ImageNet's validation images, ILSVRC2012_val_00000001.JPEG and so on, in one tar or folder without classes: their
 * classes come from ILSVRC2012_devkit_t12.tar.gz, .tar or the unpacked folder, which must lie beside that tar or folder
 * (ERR_NOT_FOUND). Classes are named by their WordNet identifiers, as in the training images.
 *
 * Folders and archives in the layout of Tiny-ImageNet: the images of val lie in one folder, val/images, and
 * val/val_annotations.txt gives their classes ("<image> <class>" on each line). Classes are numbered by their WordNet
 * identifiers, as in train. test has no labels; val is used in its place.
 *
 * "cifar10", "cifar100", "stl10": the files of the binary version, in a folder, in the official folder inside it
 * (cifar-10-batches-bin, cifar-100-binary, stl10_binary) or in the official archive, plain or gzipped. Class names come
 * from batches.meta.txt, fine_label_names.txt (coarse_label_names.txt) and class_names.txt; without these files classes
 * are named by their numbers. CIFAR's Python version is read too (cifar-10-batches-py, cifar-100-python; names from
 * batches.meta, meta); its pickles are parsed without running code. STL-10's unlabelled images are not read. Every
 * split except train is test. A class map renumbers the classes by name. The images of the split are kept in memory.
 *
 * "image": a single image file, only with `unlabelled`.
 *
 * "masks", if the options ask for masks: a folder of photographs with a PNG mask beside each of them, whose pixels hold
 * labels as grey values of 1 to 16 bits or as palette indices. A mask has the path of its photograph below another
 * folder, but for the end of its name. The first of these layouts is taken, below the path or below the only folder in
 * it (at most three deep); S stands for the name of a split, as above, also as a word ("train2017"):
 *
 *   ADE20K          images/S/ADE_*  annotations/S              150 classes; label 0 is none, label n class n - 1
 *   Cityscapes      leftImg8bit/S   gtFine/S, gtCoarse/S       19 classes; only masks ending in _labelTrainIds
 *   Pascal VOC      JPEGImages      SegmentationClass          21 classes; ImageSets/Segmentation/S.txt lists the
 *                                                              photographs, the first word of each line; `split` may
 *                                                              be the name of any such list
 *   Pascal Context  JPEGImages      SegmentationClassContext   as Pascal VOC, with ImageSets/SegmentationContext/S.txt
 *   Oxford Pets     images          annotations/trimaps        label n is class n - 1; annotations/S.txt
 *   CamVid          S               Sannot                     11 classes; the label after the last class is none
 *   BDD100K         images/10k/S    labels/sem_seg/masks/S     19 classes, as Cityscapes
 *   Roboflow        S               S                          names of masks end in _mask
 *   pairs           images/S        masks/S
 *                   S/images        S/masks
 *                   S               S_masks
 *                   S_images        S_masks
 *                   images_S        masks_S
 *                   images          masks                      no splits
 *
 * Of pairs, "images" and "masks" may be other usual words ("imgs", "labels"; docs/train.md), and names of masks may end
 * in one of "_mask", "_label", "_gt" and the like. Every photograph needs a mask, and every mask a photograph.
 *
 * Classes are those of the class map; else of classes.txt beside the folders or in the path, with a name on each line,
 * or a name and a colour (three numbers) on each line; else of ADE20K's objectInfo150.txt; else those of the layout;
 * else `trained`; else `classes` numbers; else the numbers up to the largest label of all masks, which are then read.
 * If `trained` has all names of the data set, its numbers are used. A label without a class is an error of
 * att_dataset_read_mask(), except 255, 65535 and those of the layout and of ignore_label, which mean "no class".
 *
 * "boxes", if the options ask for boxes: a folder of photographs with COCO's JSON, Pascal VOC's XML files or YOLO's
 * text files, below the path or below the only folder in it (at most three deep). docs/detect.md lists the layouts. The
 * split may be the name of any list, such as "trainval" or "train2014". Photographs come in the order of COCO's ids, of
 * Pascal VOC's list, or of their paths. Classes are COCO's categories in the order of their ids; the sorted names in
 * all of Pascal VOC's files; YOLO's numbers with the names of data.yaml or classes.txt, else those of `trained`, else
 * `classes` numbers, else the numbers up to the largest. If the annotations have names, the class map or `trained`
 * number them, and a training run that knows only some of the names is refused (ERR_MISMATCH). Warnings count
 * annotations that are left out. att_dataset_read() fails (ERR_FORMAT) for a photograph of another size than the
 * annotations say, and for one that EXIF says to turn if nothing tells whether its boxes are turned.
 *
 * Class folders: images are files ending in .jpg, .jpeg, .png or .webp, also in subfolders, in timm's order (lower
 * case, runs of digits compared as numbers). Hidden files and folders (".ipynb_checkpoints") do not count. Other files
 * are skipped; the log counts them by ending and names class folders without images. Images beside the class folders
 * have no class: they are skipped, and the log counts them. Symbolic links are followed unless the link lies inside the
 * folder that it points to. Folders nested more than 32 deep are skipped. The log counts the skipped links and folders.
 * Unless the options number them, the class folders that hold images are numbered in timm's order. A data set without
 * split folders is opened whole for every split: see att_dataset_split(). If only one of "val" and "test" exists it
 * serves for both; for folders and archives with classes the log then has a warning.
 *
 * Archives: one layer of gzip is decompressed, to at most 100 times the file's size or 1 GiB, whichever is more
 * (ERR_FORMAT or ERR_UNSUPPORTED beyond). Images in a zip archive must be stored or deflated, and not encrypted
 * (ERR_UNSUPPORTED).
 *
 * options: NULL means the defaults; copied. On success the caller owns *dataset and frees it with att_dataset_close().
 *
 * Errors: ERR_NOT_FOUND (no such path or split: the message says if the split's images lie in no class folders),
 * ERR_ARGUMENT (`path` is NULL; `split` is not one of the names above; `coarse` for data other than CIFAR-100),
 * ERR_FORMAT (no images; corrupt; two folders for one split; images in folders that are all named as splits; a class
 * name with a line break; numbers of classes that can be read in two ways, or are none of the training's names),
 * ERR_MISMATCH (other annotations than those that the options ask for; a photograph without a mask, or a mask without a
 * photograph; a list that names a photograph which does not exist; images and labels differ in number; the class map
 * lacks a class: the message names the nearest), ERR_UNSUPPORTED, ERR_IO, ERR_MEMORY, ERR_STOPPED (att_settings.stop).
 */
ATT_API ATT_MUST_CHECK att_status att_dataset_open(att_context *context, const char *path,
                                                   const att_dataset_options *options, att_dataset **dataset);
ATT_API void att_dataset_close(att_dataset **dataset);

/* Opens images without classes: each path is an image file, or a folder or archive of images. The images of paths[0]
 * come first, then those of paths[1], and so on; those of a folder or archive are in timm's order. Every label is -1.
 * Only the options cache_bytes and limits are used; NULL means the defaults. On success the caller owns *dataset and
 * frees it with att_dataset_close(). Errors: ERR_ARGUMENT (count less than 1; a path is NULL), and those of
 * att_dataset_open() for each path. */
ATT_API ATT_MUST_CHECK att_status att_dataset_open_images(att_context *context, const char *const *paths, int count,
                                                          const att_dataset_options *options, att_dataset **dataset);

/* The format of a single image file. */
#define ATT_FORMAT_IMAGE "image"
/* Returns the split that was opened, in lower case ("train", "t10k", "test"); "" if there are no splits. If the split
 * was given as tars: the split that is a word of their names, or "tars". */
ATT_API const char *att_dataset_split(const att_dataset *dataset);
ATT_API int64_t att_dataset_count(const att_dataset *dataset);
ATT_API int att_dataset_class_count(const att_dataset *dataset);
/* Where the numbers of the classes come from. */
typedef enum att_numbering {
    ATT_NUMBERED_BY_FOLDERS,  /* the sorted names of the class folders, or the sorted labels of shards */
    ATT_NUMBERED_BY_NAMES,    /* the names of the class folders, which are numbers: att_dataset_options.classes */
    ATT_NUMBERED_BY_TRAINING, /* att_dataset_options.trained */
    ATT_NUMBERED_BY_MAP,      /* att_dataset_options.class_map */
    ATT_NUMBERED_BY_LABELS    /* the data set's own label files */
} att_numbering;
ATT_API att_numbering att_dataset_numbering(const att_dataset *dataset);
/* Names of the classes, by number. They live as long as the data set. */
ATT_API const char *const *att_dataset_class_names(const att_dataset *dataset);
/* Name of a class, 0..class_count-1; "" outside. */
ATT_API const char *att_dataset_class_name(const att_dataset *dataset, int class_index);
/* The colours of the classes in pictures, by number: red, green and blue of each; NULL if the data set does not say.
 * They live as long as the data set. */
ATT_API const uint8_t (*att_dataset_class_colours(const att_dataset *dataset))[3];
/* Class of image `index`; -1 without a class, and outside 0..count-1. Thread-safe. */
ATT_API int32_t att_dataset_label(const att_dataset *dataset, int64_t index);
/* Writes the name of an image ("train.tar/cat/7.png", "train-images-idx3-ubyte.gz[7]"), truncated to `size` bytes, and
 * returns `text`. A tar that is a class is named as a folder: "imagenet/n01440764/n01440764_18.JPEG". Thread-safe. */
ATT_API char *att_dataset_name(const att_dataset *dataset, int64_t index, char *text, size_t size);
/* As att_dataset_name(), without the path that was opened: "cat/7.png", "train-images-idx3-ubyte.gz[7]"; for an image
 * file that was opened by its own path, the file name. If images below different paths of att_dataset_open_images()
 * would have the same short name, all short names begin with as many of the last parts of their paths as distinguish
 * the paths: "a/0.png" and "b/0.png". */
ATT_API char *att_dataset_short_name(const att_dataset *dataset, int64_t index, char *text, size_t size);
/* The annotations that the samples have: 0 if none. */
ATT_API unsigned att_dataset_annotations(const att_dataset *dataset);
/* Bytes of a hash of a data set: of its list of images, or of its pixels. */
enum { ATT_DATASET_LISTING = 17, ATT_DATASET_CONTENTS = 17 };
/* Whether the first 8 images are grey (possibly stored as colour). Unknown if none of them can be decoded. */
typedef enum att_colours { ATT_COLOURS_UNKNOWN, ATT_COLOURS_GREY, ATT_COLOURS_ANY } att_colours;
ATT_API att_colours att_dataset_colours(const att_dataset *dataset, att_context *context);
/* Writes a description for people, truncated to `size` bytes: "data, train: 96 images, 4 classes, numbered by the
 * labels". Returns `text`. */
ATT_API char *att_dataset_describe(const att_dataset *dataset, char *text, size_t size);

/* Decodes image `index` to 1 or 3 channels. Thread-safe if every thread passes a context of its own: memory and message
 * come from `context`. The caller owns *image and frees it with att_image_free(context, image). Errors: those of
 * att_image_read(), ERR_ARGUMENT (index, channels). */
ATT_API ATT_MUST_CHECK att_status att_dataset_read(const att_dataset *dataset, att_context *context, int64_t index,
                                                   int channels, att_image *image);

/* Reads the sides of image `index` from the headers of its file; formats without headers are decoded. Thread-safe, and
 * with the errors of att_dataset_read(). */
ATT_API ATT_MUST_CHECK att_status att_dataset_image_size(const att_dataset *dataset, att_context *context,
                                                         int64_t index, int *width, int *height);

enum { ATT_MASK_NONE = 0xffff }; /* this pixel has no class; it counts neither in a loss nor in a metric */
/* The class of each pixel of an image: classes[height][width], in rows from the top. A zeroed struct is an empty mask.
 */
typedef struct att_mask {
    int width, height;
    uint16_t *classes; /* 0..class_count-1, or ATT_MASK_NONE */
} att_mask;

/* Reads the mask of image `index`, which has the size of the image, and maps stored labels to classes. Thread-safe in
 * the same way as att_dataset_read(). The caller owns *mask and frees it with att_mask_free(context, mask); on failure
 * *mask is unchanged. Errors: ERR_MISMATCH (the data set has no masks), ERR_FORMAT (no PNG; colours in place of labels;
 * another size than the photograph; a label that is no class; a photograph that EXIF says to turn, if the sizes do not
 * tell whether its mask is turned), ERR_UNSUPPORTED (beyond the limits), ERR_ARGUMENT (index), ERR_NOT_FOUND, ERR_IO,
 * ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_dataset_read_mask(const att_dataset *dataset, att_context *context, int64_t index,
                                                        att_mask *mask);
/* Frees the classes and makes the mask empty; an empty mask is allowed. context: the one that read the mask. */
ATT_API void att_mask_free(att_context *context, att_mask *mask);

/* The box of an object, in pixels of the photograph as it is stored, from its upper left corner: x .. x + width and y
 * .. y + height, as COCO's "bbox". A box can reach out of the photograph, but a part of it is inside. */
typedef struct att_true_box {
    double x, y, width, height;
    double area;   /* in pixels: of the object itself where COCO's file states it, else of the box */
    int64_t id;    /* COCO: that of the annotation; else the number of the object or line in its file, from 1 */
    int32_t label; /* 0..class_count-1 */
    bool crowd;    /* an ignored region: COCO's "iscrowd", Pascal VOC's "difficult". Detections in it count neither as
                      right nor as wrong */
} att_true_box;

/* Returns the boxes of image `index`; NULL if *count is 0. They live as long as the data set. Thread-safe. */
ATT_API const att_true_box *att_dataset_boxes(const att_dataset *dataset, int64_t index, int *count);
/* The id of an image with boxes: COCO's, or its index for other formats. -1: no boxes, or outside 0..count-1. */
ATT_API int64_t att_dataset_image_id(const att_dataset *dataset, int64_t index);
/* The id of a class of boxes: COCO's, or its number for other formats; -1 if COCO's file has no such category, and
 * outside 0..class_count-1. */
ATT_API int64_t att_dataset_class_id(const att_dataset *dataset, int class_index);
typedef struct att_box_counts {
    int64_t boxes, crowds;  /* crowds: those of `boxes` that are ignored regions */
    int64_t images_without; /* images without boxes */
    int most;               /* largest number of boxes of an image */
} att_box_counts;
/* All 0 if the data set has no boxes. */
ATT_API att_box_counts att_dataset_count_boxes(const att_dataset *dataset);

/* --- transforms -------------------------------------------------------------------------------------------------- */

typedef enum att_interpolation {
    ATT_BILINEAR,
    ATT_BICUBIC,
    ATT_RANDOM_INTERPOLATION, /* for transforms only: draw one of the two for each image */
    ATT_NEAREST,              /* the pixel at the place of the result's centre */
    /* Without rounding to bytes, as torchvision resizes float tensors with antialias=True. Where RandAugment,
     * 3-Augment, colour jitter or photometric distortion follow, which need bytes, values are rounded all the same. */
    ATT_BILINEAR_FLOAT,
    ATT_BICUBIC_FLOAT,
    /* In floats and without antialiasing, as torch.nn.functional.interpolate(mode="bilinear") */
    ATT_BILINEAR_PLAIN
} att_interpolation;

typedef enum att_crop {
    ATT_CROP_CENTER,         /* evaluation: resize so that the image covers the crop, take the central crop */
    ATT_CROP_RANDOM_RESIZED, /* training: resize a random box */
    ATT_CROP_PAD,    /* training: as ATT_CROP_CENTER, then shift by up to `pad` pixels along each axis; the uncovered
                        border is black */
    ATT_CROP_SQUASH, /* evaluation: resize both sides without keeping the aspect ratio, take the central crop */
    ATT_CROP_BORDER, /* evaluation: resize so that the image fits, take the central crop, pad with the mean */
    ATT_CROP_SIMPLE, /* training: DeiT III's simple random crop. The image covers the target size exactly, gets `pad`
                        reflected pixels at each side, and is cropped at a random position */
    ATT_CROP_KEEP,   /* evaluation: resize the whole image, keep its aspect ratio */
    ATT_CROP_SCALED, /* training: mmsegmentation's; resize by a random factor, keep the aspect ratio, crop at a random
                        position */
    ATT_CROP_FLOOR,  /* evaluation: as ATT_CROP_CENTER, the offsets of the crop rounded down, as by transformers */
    ATT_CROP_WITHIN  /* evaluation: as ATT_CROP_KEEP, the sides rounded down, as by torchvision's detectors */
} att_crop;

/* timm's RandAugment (Cubuk et al. 2019; timm/data/auto_augment.py). `layers` times, one of AutoContrast, Equalize,
 * Invert, Rotate, Posterize, Solarize, SolarizeAdd, Color, Contrast, Brightness, Sharpness, ShearX, ShearY,
 * TranslateXRel and TranslateYRel is drawn, and applied with `probability`. Its magnitude is drawn from N(magnitude,
 * deviation^2) and clipped to 0..most; 10 is full strength. Pixels equal those of Pillow. Pixels from outside the image
 * get the mean. */
typedef struct att_rand_augment {
    int layers;       /* 0: none */
    double magnitude; /* 0..100 */
    double deviation; /* INFINITY: the magnitude is drawn uniformly from 0..magnitude */
    double most;
    double probability;
    bool increasing; /* timm's "increasing" variants, whose effect grows with the magnitude */
} att_rand_augment;
/* Parses timm's notation: "rand", then in any order -mN (magnitude, default 10), -nN (layers, 2), -pP (probability,
 * 0.5), -mstdX (deviation, 0; above 100: uniform), -mmaxX (most, 10), -inc1 (increasing). Errors, *rand_augment
 * unchanged: ERR_UNSUPPORTED (another of timm's policies), ERR_ARGUMENT. */
ATT_API ATT_MUST_CHECK att_status att_rand_augment_parse(att_context *context, const char *text,
                                                         att_rand_augment *rand_augment);

/* Values of erased pixels, after normalisation: 0; one normal draw per channel of a box; one normal draw per value. */
typedef enum att_erase_mode { ATT_ERASE_CONST, ATT_ERASE_RAND, ATT_ERASE_PIXEL } att_erase_mode;

/* Settings that turn an 8-bit image into floats [height][width][channels]. Resizing gives Pillow's pixels exactly
 * (antialiased, two passes), but for interpolations in floats.
 *
 * ATT_CROP_CENTER, ATT_CROP_SQUASH and ATT_CROP_BORDER are timm's crop modes for evaluation. With the target size (H,
 * W), the scale size is s = floor(target / crop_pct). The image is resized to a size that depends on the mode (h, w:
 * sides of the image; s_h, s_w: scale size), then the central crop of the target size is taken (offsets rounded half to
 * even):
 *
 *   center   the image covers s and keeps its aspect ratio. Square target: shorter side s, longer side int(s * long /
 *            short). Other targets: sides divided by min(h / s_h, w / s_w), rounded half to even
 *   squash   exactly s
 *   border   the image fits into s and keeps its aspect ratio: sides divided by max(h / s_h, w / s_w), rounded half to
 *            even. If a side is smaller than the target's, floor((target - side) / 2) pixels are added before the image
 *            and the rest after it. Their colour is round(255 mean), rounded half to even, clipped to 0..255
 *
 * ATT_CROP_FLOOR is the mode "center" with offsets floor((side - target) / 2), as image processors of transformers
 * compute them.
 *
 * With a crop_pct above 1 the crop can be larger than the resized image, which then lies in its middle and is filled up
 * with black (with the mean: border). As in torchvision, floor((target - side) / 2) pixels are added before it and the
 * rest after it; ATT_CROP_FLOOR adds ceil((target - side) / 2) before it, as transformers does with NumPy.
 *
 * ATT_CROP_RANDOM_RESIZED is timm's: area U(scale), aspect ratio log-uniform in `ratio`, ten tries, then the largest
 * central box whose aspect ratio lies in `ratio`.
 *
 * ATT_CROP_KEEP multiplies both sides by r = min(longer / longer side of the image, shorter / its shorter side) and
 * rounds them to the nearest number, as mmcv's imrescale() does for mmsegmentation's Resize(keep_ratio=True).
 * ATT_CROP_WITHIN rounds them down, as torchvision's detection transform does; all else is the same. The image is the
 * upper left part of the result; rows below it and columns to its right are filled up with 0 after normalisation. The
 * sides of the result depend on the image if height and width are 0: they are then the smallest multiples of `divisor`
 * that hold the image. Only a loader takes such options; a batch holds images of one size. If height and width are
 * given and the image does not fit, r is min(width / w, height / h).
 *
 * ATT_CROP_SCALED is that of mmsegmentation's training (RandomResize, RandomCrop): `longer` and `shorter` are
 * multiplied by one U(factor) and truncated; the image is resized to them as by ATT_CROP_KEEP; then a box of at most
 * height x width is cropped at a random position. If cat_max_ratio is below 1, att_target_rules.choose_crop chooses one
 * of ATT_CROP_CHOICES positions. A smaller image is filled up with 0 to the right and below, as by ATT_CROP_KEEP.
 * mmsegmentation interpolates without antialiasing; here resizing is the same as for other crops.
 *
 * Then follow, if requested and in this order: flips; RandAugment; 3-Augment (Touvron et al. 2022, DeiT III: one of
 * three changes, with equal probability: grey values, solarisation from 128 on, Gaussian blur of radius U(0.1, 2) with
 * Pillow's pixels); colour jitter (torchvision's: brightness, contrast and saturation in random order, each by a factor
 * U(max(0, 1 - j), 1 + j)); photometric distortion (below); normalisation; random erasing (timm's: 1 to erase_count
 * boxes, together U(.02, 1/3) of the area, aspect ratios log-uniform in 0.3..1/0.3). They change the image only, not
 * the 0 to its right and below.
 *
 * Photometric distortion is mmsegmentation's: each of four changes with probability 1/2. Brightness adds U(-32, 32);
 * contrast multiplies by U(0.5, 1.5), with equal probability before or after the next two; saturation multiplies the
 * image's S in HSV by U(0.5, 1.5); hue adds a whole number of -18..17 to H in 0..179. Each change clips to 0..255 and
 * truncates. The conversions from and to HSV are OpenCV's of 8-bit images. Pixels equal OpenCV's, except for the
 * last columns of an image whose width is no multiple of its vectors' length: there OpenCV rounds to nearest, and
 * values can be larger by 1. An image with one channel keeps its saturation and hue.
 */
typedef struct att_transform_options {
    int height, width, channels; /* of the result; channels 1 or 3 */
    att_crop crop;
    att_interpolation interpolation;
    double crop_pct;           /* 0.01..10 (ATT_CROP_PAD: 0.01..1); not used by ATT_CROP_RANDOM_RESIZED */
    double scale[2], ratio[2]; /* ATT_CROP_RANDOM_RESIZED: ranges of area and of aspect ratio */
    int pad;                   /* ATT_CROP_PAD, ATT_CROP_SIMPLE (less than height and width): pixels */
    int longer, shorter;       /* ATT_CROP_KEEP, _WITHIN, _SCALED: largest sides to resize to; longer >= shorter */
    int divisor;      /* ATT_CROP_KEEP, _WITHIN: sides of the result are multiples of it, if height and width are 0 */
    double factor[2]; /* ATT_CROP_SCALED: range of the random factor */
    double cat_max_ratio; /* ATT_CROP_SCALED: largest share of one class in a crop's mask; 1: any */
    double flip;          /* probability of a left-right flip */
    double vertical_flip; /* probability of an upside-down flip */
    att_rand_augment rand_augment;
    bool three_augment;
    double color_jitter[3]; /* brightness, contrast, saturation: j in 0..10; 0: none */
    bool photometric;       /* mmsegmentation's photometric distortion */
    double erase;           /* probability of random erasing */
    att_erase_mode erase_mode;
    int erase_count;        /* 1..100; largest number of boxes */
    int occlude;            /* the centre occlude x occlude pixels of the result are black; 0: none */
    double mean[3], std[3]; /* (x / 255 - mean) / std per channel, in single precision */
} att_transform_options;

/* Centre crop with crop_pct 1, bicubic, nothing random, mean 0.5, std 0.5. Settings that take effect only with other
 * crops: scale .08-1, ratio 3/4-4/3, pad 4; longer and shorter are the sides; divisor 32, factor .5-2, cat_max_ratio 1.
 */
ATT_API att_transform_options att_transform_options_defaults(int height, int width, int channels);

/* Transforms one image, which has the options' number of channels, to `out`: height * width * channels floats. Random
 * choices depend on (seed, epoch, index). Errors: ERR_ARGUMENT (an option outside its range, another number of
 * channels, height and width 0), ERR_UNSUPPORTED (a side would have 0 or more than 2^31 - 1 pixels after resizing),
 * ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_transform_image(att_context *context, const att_transform_options *options,
                                                      const att_image *image, uint64_t seed, int64_t epoch,
                                                      int64_t index, float *out);

/* --- targets ----------------------------------------------------------------------------------------------------- */

enum { ATT_GEOMETRY_STAGES = 8 };
/* A result in the middle of a transform, to which `map` moves a point of the image. */
typedef struct att_geometry_stage {
    double map[2][3];
    int width, height;
} att_geometry_stage;
/* The affine map from the image in the data set to the transformed image: crop, resizing, shift, flips, and
 * RandAugment's rotations, shears and translations. Coordinates are pixels from the upper left corner; the centre of
 * the first pixel is (0.5, 0.5). The point (x, y) of the image moves to (map[0][0] x + map[0][1] y + map[0][2],
 * map[1][0] x + map[1][1] y + map[1][2]) in the result. If the point was cropped away, these coordinates lie outside
 * the result. Random erasing does not change the map. */
typedef struct att_geometry {
    double map[2][3];
    int from_width, from_height; /* sides of the image in the data set */
    int width, height;           /* sides of the result */
    /* The stages that cut off a part of the image which later steps could move back into the result, as two rotations
     * do. Only points that lie inside of every stage are in the result; the rest of it is filled. If there are more
     * than ATT_GEOMETRY_STAGES, the first ones. */
    int stage_count;
    att_geometry_stage stages[ATT_GEOMETRY_STAGES];
} att_geometry;
/* Maps the point (*x, *y) of the image to the result. */
ATT_API void att_geometry_move(const att_geometry *geometry, double *x, double *y);
/* Returns in *geometry where a transform without random choices puts an image of width x height pixels, which need not
 * be decoded. Random choices of other transforms are those of (seed, epoch, index) 0, without RandAugment. Errors:
 * ERR_ARGUMENT (an option outside its range; a side less than 1), ERR_UNSUPPORTED as for att_transform_image(). */
ATT_API ATT_MUST_CHECK att_status att_transform_geometry(att_context *context, const att_transform_options *options,
                                                         int width, int height, att_geometry *geometry);

/* Moves a mask as its image was moved. classes: [geometry->height][geometry->width]. A pixel of the result has the
 * class of the mask's pixel into which its centre falls, and -1 if that pixel has no class or the centre falls outside
 * of the image. The mask must have the size geometry->from_width x geometry->from_height. */
ATT_API void att_mask_move(const att_mask *mask, const att_geometry *geometry, int32_t *classes);

enum { ATT_BOX_COLUMNS = 5, ATT_BOX_IGNORED = -1 };
/* Moves the boxes of an image as the image was moved, for att_target_rules.fill of a task that finds objects. rows:
 * [most][ATT_BOX_COLUMNS]: left, upper, right and lower edge in pixels of the result, then the class, or
 * ATT_BOX_IGNORED for a crowd. Boxes are cut off at the borders of the image and of the result; those of which nothing
 * is left are dropped. A turned box becomes the smallest upright box around it. Returns the number of rows with a box:
 * the first `most`, crowds last. The other rows are 0. */
ATT_API int att_boxes_move(const att_true_box *boxes, int count, const att_geometry *geometry, int most, float *rows);

/* How a sample was mixed with another one. Mixup: every pixel is lambda own + (1 - lambda) other. CutMix: the pixels of
 * a box are the other sample's; lambda is the share of the area outside the box. */
typedef struct att_mixing {
    double lambda;                /* 0..1: weight of the sample's own target */
    bool cuts;                    /* CutMix */
    int top, bottom, left, right; /* CutMix: the box, rows top..bottom - 1 and columns left..right - 1 of the result */
    int width;                    /* CutMix: columns of the result */
    bool with_itself; /* the partner is the sample itself (the middle of an odd batch): its pixels are unchanged */
} att_mixing;

/* For att_target_rules.mix of masks as att_mask_move() writes them: copies the box of CutMix from `other` to `own`. */
ATT_API void att_mask_cut(const att_mixing *mixing, const int32_t *other, int32_t *own);

enum { ATT_CROP_CHOICES = 11 };
/* An att_target_rules.choose_crop for data sets with masks. user: not used. Errors: those of att_dataset_read_mask().
 */
ATT_API att_status att_mask_choose_crop(const void *user, att_context *context, const att_dataset *dataset,
                                        int64_t index, const att_geometry crops[ATT_CROP_CHOICES], double most,
                                        int *chosen);

enum { ATT_MAX_TARGETS = 16, ATT_IMAGE_HEIGHT = -1, ATT_IMAGE_WIDTH = -2 };

/* Rules by which a loader makes the targets of samples. The loader knows nothing else about targets. `fill` and `mix`
 * must not write to `user`: several threads call `fill` at the same time. */
typedef struct att_target_rules {
    /* Targets of a sample; the names must live as long as the loader. In their shapes, ATT_IMAGE_HEIGHT and
     * ATT_IMAGE_WIDTH stand for the sides of the transformed image. */
    const att_field *fields;
    int count; /* 0..ATT_MAX_TARGETS */
    /* Writes the targets of sample `index` of the data set to fields[0..count - 1]: one tensor each, uninitialised.
     * geometry: how the image was transformed. Memory and messages come from `context`, which belongs to the calling
     * thread. ERR_FORMAT and ERR_UNSUPPORTED are handled like an image that cannot be decoded (att_corrupt); other
     * errors end the epoch. */
    att_status (*fill)(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                       const att_geometry *geometry, void *const *fields);
    /* Chooses one of ATT_CROP_CHOICES random crops of a sample, before its image is decoded, so that no class has more
     * than the share `most` of the pixels: sets *chosen to the crop's number. mmsegmentation takes the first of ten
     * that shows at least two classes, none of them with this share or more, and otherwise the eleventh. Threads and
     * errors as for fill(). NULL: samples have nothing to choose by; att_loader_create() refuses a
     * cat_max_ratio below 1 (ERR_UNSUPPORTED). */
    att_status (*choose_crop)(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                              const att_geometry crops[ATT_CROP_CHOICES], double most, int *chosen);
    /* Turns `own` into the targets of the mixed sample. own, other: targets of both samples as fill() made them. Called
     * for every sample of a mixed batch whose lambda is not 1, on the thread that calls att_loader_next(). NULL: these
     * targets cannot be mixed; att_loader_create() refuses options that mix (ERR_UNSUPPORTED). */
    void (*mix)(const void *user, void *const *own, const void *const *other, const att_mixing *mixing);
    bool cuts_only;   /* the targets can be mixed by CutMix, but not by Mixup, which att_loader_create() refuses
                         (ERR_UNSUPPORTED): a pixel of a mask has one class */
    const void *user; /* must outlive the loader */
    bool local;       /* several processes: no process gets the targets of the others, which may be large */
} att_target_rules;

/* --- loader ------------------------------------------------------------------------------------------------------ */

typedef struct att_loader att_loader;

/* What to do with images that cannot be decoded (ERR_FORMAT, or ERR_UNSUPPORTED for images beyond the limits). A file
 * that cannot be read is always an error. */
typedef enum att_corrupt {
    ATT_CORRUPT_FATAL,    /* fail */
    ATT_CORRUPT_LEFT_OUT, /* leave them out; their batches are smaller */
    ATT_CORRUPT_REPLACED  /* use the next decodable image in the epoch's order, with its own targets but with the random
                             choices of the image that it replaces; ERR_FORMAT if too many in a row cannot be decoded */
} att_corrupt;

/* Mixup (Zhang et al. 2018) and CutMix (Yun et al. 2019) as in timm: image i of a batch of n is mixed with image n - 1
 * - i, after both were transformed. lambda is drawn from Beta(alpha, alpha). Mixup: lambda x_i + (1 - lambda) x_j.
 * CutMix: a box with 1 - lambda of the area, at a random position, is copied from x_j; lambda is then set to the share
 * of the area that still shows x_i. att_target_rules.mix mixes the targets. Draws depend on seed, epoch and the batch's
 * number. */
typedef enum att_mix_mode {
    ATT_MIX_BATCH, /* one draw per batch */
    ATT_MIX_PAIR,  /* one draw per pair i, n - 1 - i */
    ATT_MIX_ELEM   /* one draw per image */
} att_mix_mode;
typedef struct att_mix_options {
    double mixup, cutmix;    /* alphas; 0: off */
    double cutmix_minmax[2]; /* range of the sides of CutMix's box, as shares of the image's; replaces its alpha. 0, 0:
                                not used */
    double prob;             /* probability that a draw mixes at all */
    double switch_prob;      /* probability of CutMix if both are on */
    att_mix_mode mode;
    int off_epoch; /* no mixing from this epoch on; 0: never ends */
} att_mix_options;

typedef struct att_loader_options {
    att_transform_options transform;
    att_mix_options mix;
    const char *image;        /* name of the field of images; must live as long as the loader */
    att_target_rules targets; /* count 0: no targets. `fields` is copied */
    int repeats; /* 1..100; repeated augmentation (Hoffer et al. 2020): each image comes `repeats` times in a row, each
                    time with its own random choices, and an epoch takes correspondingly fewer images. As timm's
                    RepeatAugSampler in one process: with repeats > 1 an epoch has as many samples as the data set,
                    rounded down to a multiple of 256 if it has at least 256 */
    int64_t limit; /* an epoch has so many images of the data set, evenly spread: the image i count / limit of `count`,
                      i from 0; 0, or at least `count`: all. Not with repeats, shuffle or images of several sizes */
    int batch_size;
    int workers;    /* threads, fewer if the system starts no more (with a warning); 0: images are decoded inside
                       att_loader_next() */
    int prefetch;   /* most batches in memory, at least 2 (1 without workers) */
    bool shuffle;   /* draw an order for each epoch from (seed, epoch); else the data set's order */
    bool drop_last; /* drop the incomplete last batch */
    uint64_t seed;
    att_comm *comm; /* the processes that share each batch, see att_batch; must outlive the loader; NULL: this one */
    att_corrupt corrupt;
    /* Called inside att_loader_next() for each image that is left out or replaced, once per image in the loader's life,
     * in the order of the batches; `reason` names the image. If it fails, att_loader_next() returns its status. NULL:
     * the log gets a warning. */
    att_status (*corrupt_found)(void *user, int64_t index, const char *reason);
    void *corrupt_user;
} att_loader_options;

/* Batch 32, 2 workers, prefetch 4, corrupt images fatal, no repeats, no mixing (prob 1 and switch_prob 0.5 take effect
 * once mixup or cutmix is set), no targets, the images' field unnamed (""), everything else off or zero; the
 * transform's defaults at the given size. */
ATT_API att_loader_options att_loader_options_defaults(int height, int width, int channels);

/* Creates a loader at epoch 0, batch 0. Its threads and batches come to be when it is started. If the sides of
 * transformed images depend on the image (ATT_CROP_KEEP, ATT_CROP_WITHIN), it reads the headers of all image files.
 * Each batch then holds images of one size: the images of an epoch, in their order, are put into one bucket for each
 * size, and a full bucket is the next batch. What is left at the end of the epoch are short batches, the largest images
 * first, or, with drop_last, is dropped. Images that are not shuffled come size after size, the largest first, and
 * those of one size in the order of the data set. Repeated augmentation is refused for such images (ERR_ARGUMENT). The
 * data set must outlive it; options are copied. On success the caller owns *loader. Errors: ERR_ARGUMENT (an option
 * outside its range, two fields of one name), ERR_UNSUPPORTED (mixing targets that cannot be mixed), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_loader_create(att_context *context, const att_dataset *dataset,
                                                    const att_loader_options *options, att_loader **loader);
/* Stops the threads after their current image and frees the loader. Allowed at any time. */
ATT_API void att_loader_destroy(att_loader **loader);

/* Continues with batch `batch` (0..att_loader_batches()) of `epoch`. Earlier batches become invalid. att_loader_next()
 * starts a loader that was never started. Errors: ERR_ARGUMENT; the first time ERR_MEMORY, and ERR_INTERNAL (threads
 * could not be started). */
ATT_API ATT_MUST_CHECK att_status att_loader_start(att_loader *loader, int64_t epoch, int64_t batch);
/* Number of batches per epoch. */
ATT_API int64_t att_loader_batches(const att_loader *loader);
/* A size of images. */
typedef struct att_loader_shape {
    int height, width;
    int64_t images, batches; /* images of this size in the data set; batches of them per epoch */
} att_loader_shape;
/* Sizes of the images of batches, the largest area first: one, unless sizes depend on the image. index:
 * 0..att_loader_shape_count() - 1; all zero for another index. */
ATT_API int att_loader_shape_count(const att_loader *loader);
ATT_API att_loader_shape att_loader_shape_at(const att_loader *loader, int index);

/* Several processes (att_loader_options.comm) create loaders with the same options, and make the same calls in the same
 * order. The batches are those of one process. Process r of P prepares rows [size r / P, size (r + 1) / P) of a batch
 * of `size` samples: first_row and `rows` are what is left of them, and the images have these rows only. Indices and
 * targets have the rows of all processes; with att_target_rules.local, targets have only those of this one. With Mixup
 * or CutMix a process also decodes the partners of its images. If one process fails, att_loader_next() fails in all of
 * them. */
typedef struct att_batch {
    int64_t epoch, number;  /* position: batch `number` of the epoch */
    int count;              /* number of samples; 0: the epoch has ended, and all other members are unset */
    int first_row, rows;    /* the rows [first_row, first_row + rows) are this process's; one process: all */
    const int64_t *indices; /* [count]: indices in the data set */
    int field_count;
    const att_field *fields; /* the images, F32 [height, width, channels], then the targets; the shapes are those of
                                this batch */
    const void *const *data; /* by field: tensors [count, shape of the field], of the images [rows, shape] */
    bool local;              /* targets are [rows, shape], too */
} att_batch;
/* Returns the data of the field `name`; NULL if there is none. */
ATT_API const void *att_batch_field(const att_batch *batch, const char *name);
/* Returns this process's rows of the field `name`, [rows, shape of the field]; NULL if there is none. */
ATT_API const void *att_batch_rows(const att_batch *batch, const char *name);

/* Returns the next batch of the epoch, which is valid until the next call for the loader. A batch is full unless it is
 * the last one of its size or images were left out; a batch without any image left is skipped. Errors: those of
 * att_dataset_read() for the first bad image in the epoch's order, those of `fill` and `corrupt_found`. The loader then
 * stays at that batch; att_loader_start() can move it. */
ATT_API ATT_MUST_CHECK att_status att_loader_next(att_loader *loader, att_batch *batch);

typedef struct att_loader_stats {
    double wait_seconds; /* time spent in att_loader_next() since the loader was created */
    int64_t images;      /* images returned in batches */
    int64_t corrupt;     /* number of times that an image was left out or replaced */
} att_loader_stats;
ATT_API att_loader_stats att_loader_describe(const att_loader *loader);

#ifdef __cplusplus
}
#endif
#endif

/* attscope/data.h - labelled images from files, transformed, in batches.
 *
 * A data set is opened once and may be read from several threads. A loader decodes and transforms its images on threads
 * of its own and hands out batches of named tensors: the images, and the targets that the caller's rules make; what it
 * hands out depends on the data set, the options, the epoch and the seed, never on the number of threads.
 */
#ifndef ATTSCOPE_DATA_H
#define ATTSCOPE_DATA_H

#include <attscope/field.h>
#include <attscope/image.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- data sets --------------------------------------------------------------------------------------------------- */

typedef struct att_dataset att_dataset;

typedef struct att_dataset_options {
    const char *split;     /* "train", "val" ("validation") or "test"; NULL: the only one there is, else "train" */
    const char *class_map; /* file with one class a line, its first word; the line's number, from 0, is the class */
    const char *const *trained; /* names of a training's classes, by number: class folders that all have one of them are
                                   numbered by them, where no class map does that; NULL: none */
    int trained_count;
    bool unlabelled;         /* every image below, in any folder or none and of every split: without classes, labels -1;
                                sets without files of their own for the images are as ever */
    bool coarse;             /* of CIFAR-100 the 20 superclasses, not the 100 classes; ERR_ARGUMENT for other data */
    size_t cache_bytes;      /* the most memory for the files of a .tar.gz, which cannot be sought */
    att_image_limits limits; /* what one image may ask for */
} att_dataset_options;

/* No split, no map, labelled, 4 GiB, the limits' defaults. */
ATT_API att_dataset_options att_dataset_options_defaults(void);

/* Opens what lies at `path`.
 *
 * "idx": a folder (or its subfolder "raw") with train-images-idx3-ubyte, train-labels-idx1-ubyte and the t10k- pair,
 * each plain or .gz. Splits other than train are t10k. Classes are called by their numbers, but those of Fashion-MNIST,
 * which its labels tell, by their names.
 *
 * "folder": a folder of class folders, or of split folders (train, val, validation, test) of such.
 *
 * "tar", "tar.gz", "zip": an archive of such a folder, which may have folders around it; or a folder with an archive
 * for each split, named after it (train.tar.gz, test.tar.gz), of which the split's is opened.
 *
 * Folders and archives in Tiny-ImageNet's own layout: images of val lie in one folder, val/images, and have the classes
 * that val/val_annotations.txt gives them ("<image> <class>" on each line). Classes are numbered by their WordNet
 * identifiers, as those of train. test has no labels: val stands in for it.
 *
 * "cifar10", "cifar100", "stl10": the binary versions' files, in a folder, in the official folder inside it
 * (cifar-10-batches-bin, cifar-100-binary, stl10_binary) or in the official archive, plain or gzipped; names of classes
 * from batches.meta.txt, fine_label_names.txt (coarse_label_names.txt) and class_names.txt, else their numbers.
 * CIFAR's version for Python is read likewise (cifar-10-batches-py, cifar-100-python; batches.meta, meta); its pickles
 * run no code. STL-10's unlabelled images are left out. Splits other than train are test. A class map renumbers by
 * name. The images of the split are kept in memory.
 *
 * "image": one image file, only where unlabelled.
 *
 * Images of a class folder are files ending in .jpg, .jpeg, .png or .webp, in subfolders too, in timm's order (lower
 * case, runs of digits by value); others are left out, and the log counts them by their endings and says which folders
 * have no image. Images beside the class folders have no class: they are left out, and the log counts them. Symbolic
 * links are followed, but not to a folder that the link lies in; folders nested more than 32 deep are left out; the log
 * counts both. Without a class map or a training's classes the class folders that hold images are numbered in timm's
 * order. A data set without split folders is taken whole, whichever split is asked for: see att_dataset_split(). "val"
 * and "test" each stand in for the other where only that one exists, which a folder or archive with classes warns of in
 * the log.
 *
 * Archives: one layer of gzip is undone, and at most 100 times the file's size is unpacked, or 1 GiB where that is more
 * (ERR_FORMAT or ERR_UNSUPPORTED beyond). Images in a zip must be stored or deflated, and not encrypted
 * (ERR_UNSUPPORTED).
 *
 * options: NULL means the defaults; copied. On success *dataset is the caller's, freed by att_dataset_close().
 *
 * Errors: ERR_STOPPED (att_settings.stop); ERR_NOT_FOUND (nothing there, no such split), ERR_FORMAT (no images,
 * corrupt), ERR_MISMATCH (images and labels differ in number, a class is missing in the map: the message names the
 * nearest), ERR_UNSUPPORTED, ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_dataset_open(att_context *context, const char *path,
                                                   const att_dataset_options *options, att_dataset **dataset);
ATT_API void att_dataset_close(att_dataset **dataset);

/* Opens images without classes: each path is an image file, a folder or an archive of images. The data set has the
 * images of paths[0] first, then those of paths[1], and so on; those of a folder or archive are in timm's order. Every
 * label is -1. Of the options only cache_bytes and limits count. On success *dataset is the caller's, freed by
 * att_dataset_close(). Errors: ERR_ARGUMENT (count is less than 1), those of att_dataset_open() for each path. */
ATT_API ATT_MUST_CHECK att_status att_dataset_open_images(att_context *context, const char *const *paths, int count,
                                                          const att_dataset_options *options, att_dataset **dataset);

/* The format of a single image file. */
#define ATT_FORMAT_IMAGE "image"
/* "idx", "cifar10", "cifar100", "stl10", "image", "folder", "tar", "tar.gz", "zip"; "images" of several paths. */
ATT_API const char *att_dataset_format(const att_dataset *dataset);
/* The split folder or file that was taken ("train", "t10k", "test"); "" where there are none. */
ATT_API const char *att_dataset_split(const att_dataset *dataset);
ATT_API int64_t att_dataset_count(const att_dataset *dataset);
ATT_API int att_dataset_class_count(const att_dataset *dataset);
/* What gave the classes their numbers. */
typedef enum att_numbering {
    ATT_NUMBERED_BY_FOLDERS,  /* the sorted names of the class folders */
    ATT_NUMBERED_BY_TRAINING, /* att_dataset_options.trained */
    ATT_NUMBERED_BY_MAP,      /* att_dataset_options.class_map */
    ATT_NUMBERED_BY_LABELS    /* the data set's own files */
} att_numbering;
ATT_API att_numbering att_dataset_numbering(const att_dataset *dataset);
/* Names of the classes, by number; live as long as the data set. */
ATT_API const char *const *att_dataset_class_names(const att_dataset *dataset);
/* Name of class 0..class_count-1; "" outside. */
ATT_API const char *att_dataset_class_name(const att_dataset *dataset, int class_index);
/* Class of image `index`, -1 outside 0..count-1. Thread-safe. */
ATT_API int32_t att_dataset_label(const att_dataset *dataset, int64_t index);
/* Writes the image's name ("train.tar/cat/7.png", "train-images-idx3-ubyte.gz[7]"), truncated to fit, and returns
 * `text`. Thread-safe. */
ATT_API char *att_dataset_name(const att_dataset *dataset, int64_t index, char *text, size_t size);
/* The same without the path that was opened: "cat/7.png", "train-images-idx3-ubyte.gz[7]"; of an image file that was
 * opened by its own path, the file's name without folders. Where images from different paths would have one short name
 * (att_dataset_open_images()), all short names begin with as many of their path's last parts as tell the paths apart:
 * "a/0.png" and "b/0.png". */
ATT_API char *att_dataset_short_name(const att_dataset *dataset, int64_t index, char *text, size_t size);
/* What the data set lists, as 16 hexadecimal digits: for every image, in order, its class and, where it is a file of
 * its own, that file's name without folders. Not the pixels. Returns `text`. */
enum { ATT_DATASET_LISTING = 17 };
ATT_API char *att_dataset_listing(const att_dataset *dataset, char text[ATT_DATASET_LISTING]);
/* What the images are, as 16 hexadecimal digits, wherever they lie: the short names of all images, in any order, and
 * the pixels of 8 of them. Classes do not count. An image that cannot be decoded is no error. Errors: ERR_STOPPED,
 * ERR_MEMORY. Images and messages belong to `context`, as with att_dataset_read(). */
enum { ATT_DATASET_CONTENTS = 17 };
ATT_API ATT_MUST_CHECK att_status att_dataset_contents(const att_dataset *dataset, att_context *context,
                                                       char text[ATT_DATASET_CONTENTS]);
/* Whether the first 8 images are grey, although files may keep them in colour; unknown where none can be decoded. */
typedef enum att_colours { ATT_COLOURS_UNKNOWN, ATT_COLOURS_GREY, ATT_COLOURS_ANY } att_colours;
ATT_API att_colours att_dataset_colours(const att_dataset *dataset, att_context *context);
/* Writes what was opened, for people, truncated to fit: "data, train: 96 images, 4 classes, numbered by the labels".
 * Returns `text`. */
ATT_API char *att_dataset_describe(const att_dataset *dataset, char *text, size_t size);

/* Whether the classes of all images can be those of a network with `classes` outputs: each number is below that, and
 * there are as many classes, or a class map, a training or the data set's own files numbered them. */
ATT_API bool att_dataset_fits_classes(const att_dataset *dataset, int classes);
/* ERR_MISMATCH where the data set has another number of classes than the network, and sorted folder names alone gave
 * them their numbers: an evaluation would compare different classes. The message belongs to `context`. */
ATT_API att_status att_dataset_check_classes(const att_dataset *dataset, att_context *context, int classes);
/* The first of the data set's classes that is none of `names`; NULL: all are. */
ATT_API const char *att_dataset_unknown_class(const att_dataset *dataset, const char *const *names, int count);

/* Reads image `index` with 1 or 3 channels. Thread-safe; image and message belong to `context`, which must be the
 * calling thread's own. Errors: as att_image_read(); ERR_ARGUMENT. */
ATT_API ATT_MUST_CHECK att_status att_dataset_read(const att_dataset *dataset, att_context *context, int64_t index,
                                                   int channels, att_image *image);

/* --- transforms -------------------------------------------------------------------------------------------------- */

typedef enum att_interpolation {
    ATT_BILINEAR,
    ATT_BICUBIC,
    ATT_RANDOM_INTERPOLATION /* of transforms: one of the two for each image */
} att_interpolation;

typedef enum att_crop {
    ATT_CROP_CENTER,         /* evaluation: resize so that the image covers the crop, cut the middle out */
    ATT_CROP_RANDOM_RESIZED, /* a random box, resized */
    ATT_CROP_PAD,            /* as ATT_CROP_CENTER, then shifted by up to `pad` in both directions over black */
    ATT_CROP_SQUASH,         /* evaluation: resize both sides, whatever the aspect; cut the middle out */
    ATT_CROP_BORDER          /* evaluation: resize so that the image fits, cut the middle out, fill up with the mean */
} att_crop;

/* timm's RandAugment (Cubuk et al. 2019; timm/data/auto_augment.py): `layers` times one of AutoContrast, Equalize,
 * Invert, Rotate, Posterize, Solarize, SolarizeAdd, Color, Contrast, Brightness, Sharpness, ShearX, ShearY,
 * TranslateXRel, TranslateYRel is drawn and with `probability` done, by a magnitude from N(magnitude, deviation^2) cut
 * to 0..most, 10 being in full. Pixels are Pillow's to the byte; what comes from outside the image is the mean. */
typedef struct att_rand_augment {
    int layers;       /* 0: none */
    double magnitude; /* 0..100 */
    double deviation; /* INFINITY: the magnitude is uniform in 0..magnitude */
    double most;
    double probability;
    bool increasing; /* timm's variants that do more the greater the magnitude */
} att_rand_augment;
/* From timm's description: "rand", then in any order -mN (magnitude, 10), -nN (layers, 2), -pP (probability, 0.5),
 * -mstdX (deviation, 0; above 100 uniform), -mmaxX (most, 10), -inc1 (increasing). Errors: ERR_UNSUPPORTED (another of
 * timm's policies), ERR_ARGUMENT. */
ATT_API ATT_MUST_CHECK att_status att_rand_augment_parse(att_context *context, const char *text,
                                                         att_rand_augment *rand_augment);

/* What erased pixels become, after normalising: 0; a normal draw for each channel of a box; one for each value. */
typedef enum att_erase_mode { ATT_ERASE_CONST, ATT_ERASE_RAND, ATT_ERASE_PIXEL } att_erase_mode;

/* From an 8-bit image to floats [height][width][channels]. Resizing is Pillow's to the byte (antialiased, two passes).
 *
 * ATT_CROP_CENTER, ATT_CROP_SQUASH and ATT_CROP_BORDER are timm's crop modes of evaluation. The target is (H, W), the
 * scale size s = floor(target / crop_pct). The image is resized, then the middle is cut out (offsets rounded half to
 * even). Sizes after resizing:
 * center: the image covers s and keeps its aspect. Square targets: shorter side s, longer int(s * long / short);
 * others: sides divided by min(h / s_h, w / s_w) and rounded half to even. squash: s, whatever the image's aspect.
 * border: the image fits into s and keeps its aspect: sides divided by max(h / s_h, w / s_w) and rounded half to even.
 * Where a side is smaller than the target's, (target - side) / 2 pixels, rounded down, are added before the image and
 * the rest after it, of the colour round(255 mean), half to even, cut to 0..255.
 * Then follow, where asked for and in this order: flips, RandAugment, colour jitter (torchvision's: brightness,
 * contrast and saturation in random order, each by a factor U(max(0, 1 - j), 1 + j)), normalisation, random erasing
 * (timm's: 1 to erase_count boxes, together U(.02, 1/3) of the area, aspects log-uniform in 0.3..1/0.3).
 * ATT_CROP_RANDOM_RESIZED is timm's: area U(scale), aspect log-uniform in `ratio`, ten tries, then the largest
 * central box whose aspect lies in `ratio`. */
typedef struct att_transform_options {
    int height, width, channels; /* of the result; channels 1 or 3 */
    att_crop crop;
    att_interpolation interpolation;
    double crop_pct;           /* 0.01..1: all but ATT_CROP_RANDOM_RESIZED */
    double scale[2], ratio[2]; /* ATT_CROP_RANDOM_RESIZED */
    int pad;                   /* ATT_CROP_PAD, pixels */
    double flip;               /* probability of a left-right flip */
    double vertical_flip;      /* probability of an upside-down flip */
    att_rand_augment rand_augment;
    double color_jitter[3]; /* brightness, contrast, saturation: j in 0..10; 0: none */
    double erase;           /* probability of random erasing */
    att_erase_mode erase_mode;
    int erase_count;        /* 1..100, where there is erasing */
    double mean[3], std[3]; /* (x / 255 - mean) / std per channel, in single precision */
} att_transform_options;

/* Centre crop with crop_pct 1, bicubic, nothing random; scale .08-1, ratio 3/4-4/3 and pad 4 for those who choose them;
 * mean 0.5 and std 0.5. */
ATT_API att_transform_options att_transform_options_defaults(int height, int width, int channels);

/* Transforms one image of the options' channels to `out`, height * width * channels floats. seed, epoch and index key
 * the random choices. Errors: ERR_ARGUMENT (an option outside its range, channels differ), ERR_UNSUPPORTED (a side
 * would have no pixel or more than 2^31 - 1 after resizing), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_transform_image(att_context *context, const att_transform_options *options,
                                                      const att_image *image, uint64_t seed, int64_t epoch,
                                                      int64_t index, float *out);

/* --- targets ----------------------------------------------------------------------------------------------------- */

/* How a transform moved an image's pixels: crop, resizing, shift, flips, and RandAugment's rotations, shears and
 * translations. Points are counted in pixels from the upper left corner, so that the middle of the first pixel is
 * (0.5, 0.5). The point (x, y) of the image as the data set holds it lies at
 * (map[0][0] x + map[0][1] y + map[0][2], map[1][0] x + map[1][1] y + map[1][2]) of the result, and outside of it where
 * it was cut off. Pixels that are erased stay where they are. */
typedef struct att_geometry {
    double map[2][3];
    int from_width, from_height; /* of the image as the data set holds it */
    int width, height;           /* of the result */
} att_geometry;
/* Takes a point of the image to the same point of the result. */
ATT_API void att_geometry_move(const att_geometry *geometry, double *x, double *y);

/* How a sample was mixed with another one. Mixup: every pixel is lambda own + (1 - lambda) other. CutMix: the pixels of
 * a box are the other's, and lambda is the share of the area outside the box. */
typedef struct att_mixing {
    double lambda;                /* 0..1: weight of the sample's own target */
    bool cuts;                    /* CutMix */
    int top, bottom, left, right; /* where it cuts: rows top..bottom - 1, columns left..right - 1 of the result */
    bool with_itself; /* the middle sample of an odd batch is its own partner: its pixels stay as they are */
} att_mixing;

enum { ATT_MAX_TARGETS = 16 };

/* How the targets of samples are made. A loader knows no more about them. `fill` and `mix` only read `user`: a loader's
 * threads call `fill` at the same time. */
typedef struct att_target_rules {
    const att_field *fields; /* of a sample; names live as long as the loader */
    int count;               /* 0..ATT_MAX_TARGETS */
    /* Writes the targets of sample `index` of the data set into fields[0..count - 1], each with room for one sample's
     * tensor, of undefined contents. Messages belong to `context`, the calling thread's own. ERR_FORMAT and
     * ERR_UNSUPPORTED are treated as those of an image that cannot be decoded (att_corrupt), other errors end the
     * epoch. */
    att_status (*fill)(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                       const att_geometry *geometry, void *const *fields);
    /* Makes `own` the targets of the sample that was mixed from own and other; both are as fill() left them. Called for
     * every sample of a mixed batch whose lambda is not 1, on the thread of att_loader_next(). NULL: such targets
     * cannot be mixed, and a loader that mixes refuses them (ERR_UNSUPPORTED). */
    void (*mix)(const void *user, void *const *own, const void *const *other, const att_mixing *mixing);
    const void *user; /* outlives the loader */
} att_target_rules;

/* --- loader ------------------------------------------------------------------------------------------------------ */

typedef struct att_loader att_loader;

/* What becomes of images that cannot be decoded: ERR_FORMAT and ERR_UNSUPPORTED (beyond the limits). Files that cannot
 * be read at all are an error in any case. */
typedef enum att_corrupt {
    ATT_CORRUPT_FATAL,    /* an error */
    ATT_CORRUPT_LEFT_OUT, /* their batches are smaller */
    ATT_CORRUPT_REPLACED  /* the next image of the epoch's order that can be decoded stands in, with its own targets but
                             the random choices of the one it replaces; ERR_FORMAT where there are too many in a row */
} att_corrupt;

/* Mixup (Zhang et al. 2018) and CutMix (Yun et al. 2019) as timm's Mixup: image i of a batch of n is mixed with image
 * n - 1 - i, after each was transformed. lambda from Beta(alpha, alpha); Mixup: lambda x_i + (1 - lambda) x_j; CutMix:
 * a box of the share 1 - lambda around a random place is taken from x_j, and lambda becomes the share that is left.
 * What becomes of the targets is up to att_target_rules.mix. Draws depend on seed, epoch and the batch's number. */
typedef enum att_mix_mode {
    ATT_MIX_BATCH, /* one draw for all */
    ATT_MIX_PAIR,  /* one for each i and n - 1 - i */
    ATT_MIX_ELEM   /* one for each image */
} att_mix_mode;
typedef struct att_mix_options {
    double mixup, cutmix;    /* alphas; 0: none of it */
    double cutmix_minmax[2]; /* sides of CutMix's box as shares of the image's, instead of its alpha; 0, 0: none */
    double prob;             /* of a draw to mix at all */
    double switch_prob;      /* of CutMix where both are on */
    att_mix_mode mode;
    int off_epoch; /* from this epoch on nothing is mixed; 0: never */
} att_mix_options;

typedef struct att_loader_options {
    att_transform_options transform;
    att_mix_options mix;
    const char *image;        /* name of the images' field; lives as long as the loader */
    att_target_rules targets; /* count 0: there are none. `fields` is copied */
    int repeats; /* 1..100; images of an epoch come so many times in a row, each with random choices of its own, from
                    correspondingly fewer images (repeated augmentation, Hoffer et al. 2020): as timm's
                    RepeatAugSampler for one process, an epoch has as many places as there are images, rounded down to
                    a multiple of 256 where there are so many */
    int batch_size;
    int workers;    /* threads; 0: images are made in att_loader_next() */
    int prefetch;   /* batches held in memory at most, 2 or more (without workers one is held) */
    bool shuffle;   /* an order of its own for each epoch, from seed and epoch; otherwise the data set's */
    bool drop_last; /* leave out the incomplete last batch */
    uint64_t seed;
    att_corrupt corrupt;
    /* Called in att_loader_next() with each image that is left out or replaced, once in the loader's life, in the order
     * of the batches; `reason` names the image. What it returns, other than ATT_OK, att_loader_next() returns. NULL:
     * the log gets a warning. */
    att_status (*corrupt_found)(void *user, int64_t index, const char *reason);
    void *corrupt_user;
} att_loader_options;

/* Batch 32, 2 workers, prefetch 4, corrupt images fatal, one repeat, mixing with prob 1 and switch_prob 0.5 for those
 * who choose it, no targets, the images' field unnamed (""), everything else off or zero; the transform's defaults at
 * the given size. */
ATT_API att_loader_options att_loader_options_defaults(int height, int width, int channels);

/* Makes a loader and its threads, at epoch 0, batch 0. The data set must outlive it. options: copied. Errors:
 * ERR_ARGUMENT (an option outside its range, fields of one name), ERR_UNSUPPORTED (targets that cannot be mixed),
 * ERR_MEMORY, ERR_INTERNAL (no more threads). */
ATT_API ATT_MUST_CHECK att_status att_loader_create(att_context *context, const att_dataset *dataset,
                                                    const att_loader_options *options, att_loader **loader);
/* Stops the threads at their next image and frees; at any time. */
ATT_API void att_loader_destroy(att_loader **loader);

/* Goes to batch `batch` (0..att_loader_batches()) of an epoch; batches handed out become invalid. Errors: ERR_ARGUMENT.
 */
ATT_API ATT_MUST_CHECK att_status att_loader_start(att_loader *loader, int64_t epoch, int64_t batch);
/* Batches in each epoch. */
ATT_API int64_t att_loader_batches(const att_loader *loader);

typedef struct att_batch {
    int64_t epoch, number;  /* place: batch `number` of the epoch */
    int count;              /* samples in it; 0: the epoch is at its end and the rest is unset */
    const int64_t *indices; /* [count], in the data set */
    int field_count;
    const att_field *fields; /* the images, F32 [height, width, channels], then the targets */
    const void *const *data; /* by field: [count] and then its shape */
} att_batch;
/* The data of the field called `name`; NULL where there is none. */
ATT_API const void *att_batch_field(const att_batch *batch, const char *name);

/* The next batch of the epoch; valid until the next call on the loader. Batches are full but for the last one and for
 * images left out; a batch all of whose images were left out is passed over. Errors: those of att_dataset_read(), for
 * the first bad image in the epoch's order; the loader then stays at that batch and may be started elsewhere. */
ATT_API ATT_MUST_CHECK att_status att_loader_next(att_loader *loader, att_batch *batch);

typedef struct att_loader_stats {
    double wait_seconds; /* spent in att_loader_next() since the loader was made */
    int64_t images;      /* handed out */
    int64_t corrupt;     /* times that one was left out or replaced */
} att_loader_stats;
ATT_API att_loader_stats att_loader_describe(const att_loader *loader);

#ifdef __cplusplus
}
#endif
#endif

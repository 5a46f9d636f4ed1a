#include <attscope/text.h>

#include "base/core/context.h"
#include "base/core/names.h"
#include "base/core/text.h"
#include "test.h"

TEST(wildcards_match_whole_names)
{
    assert_true(att_text_matches("blocks.*.attn", "blocks.11.attn"));
    assert_true(att_text_matches("vit_*_patch?6_*", "vit_tiny_patch16_224"));
    assert_true(att_text_matches("*", ""));
    assert_true(att_text_matches("a*b*c", "aXbYbZc"));
    assert_false(att_text_matches("blocks.*.attn", "blocks.11.attn.qkv"));
    assert_false(att_text_matches("?", ""));
    assert_true(att_text_matches_any("blocks.0.attn, blocks.1*.attn", "blocks.11.attn"));
    assert_true(att_text_matches_any("blocks.0.attn ,blocks.1*.attn", "blocks.0.attn"));
    assert_false(att_text_matches_any("blocks.0.attn,blocks.1*.attn", "blocks.2.attn"));
    assert_false(att_text_matches_any("blocks.0,attn", "blocks.0,attn"));
    assert_false(att_text_matches_any("*.attn,*.mlp", "blocks.0.norm"));
    assert_true(att_text_matches_any("*", "a"));
    assert_false(att_text_matches_any("", "a"));
    assert_false(att_text_matches_any("a,", "b"));
}

TEST(distances_count_edits_and_transpositions)
{
    assert_int_equal(att_text_distance("", "abc"), 3);
    assert_int_equal(att_text_distance("kitten", "sitting"), 3);
    assert_int_equal(att_text_distance("epcohs", "epochs"), 1);
    assert_int_equal(att_text_distance("same", "same"), 0);
}

static const char *flag(const void *user, int index)
{
    return ((const char *const *)user)[index];
}

static void expect_printable(const char *text, bool keep_lines, const char *expected)
{
    char copy[64];
    snprintf(copy, sizeof copy, "%s", text);
    assert_string_equal(att_text_printable(copy, keep_lines), expected);
}

/* Writes a character above 0x7f in UTF-8. */
static void encode(uint32_t code, char text[8])
{
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    memset(text, 0, 8);
    for (size_t i = length - 1; i > 0; i--, code >>= 6)
        text[i] = (char)(0x80 | (code & 0x3f));
    text[0] = (char)((0xf00u >> length & 0xf0) | code);
}

TEST(printable_text_steers_no_terminal)
{
    expect_printable("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x88", false, "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x88");
    expect_printable("a\x1b[31mb\r\n\t\x7f", false, "a?[31mb????");
    expect_printable("a\x1b\nb\n", true, "a?\nb\n");
    expect_printable(
        "\xc2\x9b"
        "31m \xc2\xa0",
        false, "??31m \xc2\xa0");
    expect_printable(
        "\x9b"
        "31m caf\xe9 \xe2\x82",
        false, "?31m caf? ??");
    expect_printable("\xed\xa0\x80 \xe0\x80\x80 \xf4\x90\x80\x80", false, "??? ??? ????"); /* no characters */
}

TEST(printable_text_reads_as_its_letters)
{
    static const uint32_t hidden[] = {0xAD,   0x61C,  0x180E, 0x200B,  0x200E,  0x200F, 0x2028,
                                      0x2029, 0x202A, 0x202E, 0x2060,  0x2066,  0x2069, 0x206F,
                                      0xFEFF, 0xFFF9, 0xFFFB, 0xE0001, 0xE0020, 0xE007F};
    static const uint32_t letters[] = {0xAC,   0xAE,   0x61B,  0x61D,  0x200C, 0x200D, 0x2010,
                                       0x2027, 0x202F, 0x205F, 0x2070, 0xFFFC, 0xE0080};
    char text[8], marks[8];
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        encode(hidden[i], text);
        snprintf(marks, sizeof marks, "%.*s", (int)strlen(text), "????");
        expect_printable(text, true, marks);
    }
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++) {
        encode(letters[i], text);
        expect_printable(text, false, text);
    }
}

TEST(only_a_near_word_is_suggested)
{
    const char *const flags[] = {"epochs", "batch-size", "lr", "seed"};
    assert_string_equal(att_text_nearest("epoch", flag, flags, 4), "epochs");
    assert_string_equal(att_text_nearest("bacth-size", flag, flags, 4), "batch-size");
    assert_string_equal(att_text_nearest("lx", flag, flags, 4), "lr");
    assert_null(att_text_nearest("xx", flag, flags, 4));
    assert_null(att_text_nearest("zzzzzz", flag, flags, 4));
}

TEST(lists_of_numbers_are_read_and_written)
{
    int numbers[3];
    char text[8];
    assert_int_equal(att_text_to_list("2,18,2", 1, 18, numbers, 3), 3);
    assert_int_equal(numbers[1], 18);
    assert_int_equal(att_text_to_list("2,18,2", 1, 17, numbers, 3), 0);
    assert_int_equal(att_text_to_list("2,18,2,2", 1, 18, numbers, 3), 0);
    assert_int_equal(att_text_to_list("2,,2", 1, 18, numbers, 3), 0);
    assert_int_equal(att_text_to_list("", 0, 18, numbers, 3), 0);
    assert_true(att_format_list((const int[]){2, 18, 25}, 3, text, sizeof text));
    assert_string_equal(text, "2,18,25");
    assert_false(att_format_list((const int[]){2, 18, 256}, 3, text, sizeof text));
}

TEST(numbers_take_the_whole_string)
{
    int64_t whole;
    double real;
    assert_true(att_text_to_i64("-12", &whole) && whole == -12);
    assert_false(att_text_to_i64("12x", &whole));
    assert_false(att_text_to_i64("", &whole));
    assert_false(att_text_to_i64("99999999999999999999", &whole));
    assert_true(att_text_to_f64("1e-3", &real) && real == 1e-3);
    assert_false(att_text_to_f64("nan", &real));
    assert_false(att_text_to_f64("1e999", &real));
}

TEST(sizes_are_readable)
{
    char text[24];
    assert_string_equal(att_size_format(0, text, sizeof text), "0 bytes");
    assert_string_equal(att_size_format(1023, text, sizeof text), "1023 bytes");
    assert_string_equal(att_size_format(1536, text, sizeof text), "1.5 KiB");
    assert_string_equal(att_size_format((1 << 20) - 1, text, sizeof text), "1.0 MiB");
    assert_string_equal(att_size_format(SIZE_MAX, text, sizeof text), "16.0 EiB");
}

TEST(a_text_grows_as_it_is_appended_to)
{
    att_context *context;
    assert_int_equal(att_context_create_with(NULL, NULL, &context), ATT_OK);
    att_text text = {.context = context};
    for (int i = 0; i < 1000; i++)
        att_text_append(&text, "%03d,", i);
    assert_false(text.failed);
    assert_int_equal(text.length, 4000);
    assert_memory_equal(text.data + 3996, "999,", 5);
    att_text_free(&text);
    assert_int_equal(att_context_allocations(context).bytes_now > 0, 1); /* memory of the thread pool */
    att_context_destroy(&context);
    assert_null(context);
}

static int compare_labels(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void assert_labels_differ(const att_known_classes *known)
{
    const char **labels = malloc((size_t)known->count * sizeof *labels);
    for (int c = 0; c < known->count; c++)
        labels[c] = att_known_classes_label(known, c);
    qsort(labels, (size_t)known->count, sizeof *labels, compare_labels);
    for (int c = 1; c < known->count; c++)
        assert_string_not_equal(labels[c], labels[c - 1]);
    free(labels);
}

/* From timm's lists of synsets, the list of the scene parsing benchmark, and the numbers of COCO's categories. */
TEST(classes_have_the_numbers_of_their_data_sets)
{
    static const struct {
        const char *list, *synset, *label;
        int number;
    } cases[] = {
        {"imagenet-21k", "n01440764", "tench", 359},
        {"imagenet-22k", "n01440764", "tench", 359},
        {"imagenet-12k", "n01440764", "tench", 216},
        {"imagenet-21k-p", "n01440764", "tench", 209},
        {"imagenet-21k", "n12102133", "grass", 18665},
        {"imagenet-22k", "n12102133", "grass", 18663},
        {"imagenet-12k", "n12102133", "grass", 10446},
        {"imagenet-21k-p", "n12102133", "grass", 9934},
        {"imagenet-21k-p-w21", "n12102133", "grass", 9163},
        {"coco", NULL, "stop sign", 11},
        {"coco-91", NULL, "stop sign", 13},
        {"coco-91", NULL, "street sign", 12},
        {"ade20k", NULL, "person", 12},
        {"ade20k", NULL, "screen", 130},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const att_known_classes *known = att_known_classes_find(cases[i].list);
        assert_string_equal(att_known_classes_label(known, cases[i].number), cases[i].label);
        if (cases[i].synset)
            assert_string_equal(att_known_classes_synset(known, cases[i].number), cases[i].synset);
    }
    assert_int_equal(att_known_classes_with_synset(att_known_classes_find("imagenet-21k"), "n09859684"), 15027);
    assert_int_equal(att_known_classes_with_synset(att_known_classes_find("imagenet-22k"), "n09859684"), -1);
}

TEST(classes_of_data_sets_have_names)
{
    static const struct {
        const char *name;
        int count;
        const char *first, *last;
    } expected[] = {{"ade20k", 150, "wall", "flag"},
                    {"camvid", 11, "sky", "bicyclist"},
                    {"cifar10", 10, "airplane", "truck"},
                    {"cifar100", 100, "apple", "worm"},
                    {"cityscapes", 19, "road", "bicycle"},
                    {"coco-91", 91, "background", "toothbrush"},
                    {"coco", 80, "person", "toothbrush"},
                    {"fashion-mnist", 10, "T-shirt/top", "Ankle boot"},
                    {"imagenet-1k", 1000, "tench", "toilet tissue"},
                    {"imagenet-21k", 21843, "organism", "knothole"},
                    {"imagenet-22k", 21841, "organism", "knothole"},
                    {"imagenet-12k", 11821, "benthos", "knothole"},
                    {"imagenet-21k-p", 11221, "benthos", "knothole"},
                    {"imagenet-21k-p-w21", 10450, "benthos", "knothole"},
                    {"voc", 21, "background", "tvmonitor"}};
    const int count = sizeof expected / sizeof *expected;
    assert_int_equal(att_known_classes_count(), count);
    for (int i = 0; i < count; i++) {
        const att_known_classes *known = att_known_classes_find(expected[i].name);
        assert_non_null(known);
        assert_ptr_equal(known, att_known_classes_at(i));
        assert_int_equal(known->count, expected[i].count);
        assert_string_equal(att_known_classes_label(known, 0), expected[i].first);
        assert_string_equal(att_known_classes_label(known, known->count - 1), expected[i].last);
        assert_labels_differ(known);
        for (int c = 0; known->has_synsets && c < known->count; c++) {
            assert_int_equal(strspn(att_known_classes_synset(known, c), "n0123456789"), 9);
            assert_int_equal(att_known_classes_with_synset(known, att_known_classes_synset(known, c)), c);
        }
    }
    assert_memory_equal(att_known_classes_find("ade20k")->colours[149], ((uint8_t[]){92, 0, 255}), 3);
    assert_memory_equal(att_known_classes_find("cityscapes")->colours[6], ((uint8_t[]){250, 170, 30}), 3);
    assert_memory_equal(att_known_classes_find("voc")->colours, ((uint8_t[]){0, 0, 0, 128, 0, 0}), 6);
    assert_null(att_known_classes_find("coco")->colours);
    assert_null(att_known_classes_find("cifar"));
    assert_null(att_known_classes_synset(att_known_classes_find("cifar10"), 0));
    assert_int_equal(att_known_classes_with_synset(att_known_classes_find("cifar10"), "airplane"), -1);
    assert_string_equal(att_known_classes_synset(att_known_classes_find("imagenet-1k"), 134), "n02012849");
    assert_string_equal(att_synset_label("n02012849"), "crane bird");
    assert_string_equal(att_synset_label("n03126707"), "crane");
    assert_string_equal(att_synset_label("n01924916"), "flatworm"); /* of ImageNet-1k */
    assert_string_equal(att_synset_label("n00005787"), "benthos");  /* of ImageNet-21k only */
    assert_string_equal(att_synset_label("n02013177"), "whooping crane");
    assert_null(att_synset_label("n00000000"));
    assert_null(att_synset_label("n"));
    assert_null(att_synset_label(""));
    assert_null(att_synset_label("tench"));
}

/* Flags from arguments, files and programs: storing them in a struct, and writing them. */
#include <unistd.h>

#include <attscope/lab/flags.h>

#include "base/flags/flags.h"
#include "base/io/yaml.h"
#include "test.h"

typedef struct inner {
    att_option_values options;
} inner;

typedef struct settings {
    bool quick;
    int depth;
    int64_t bytes;
    uint64_t seed;
    double rate;
    att_reals betas;
    const char *name, *file;
    att_texts more;
    double range[2];
    int steps[4], step_count;
    inner of;
} settings;

typedef struct fixture {
    att_context *context;
    att_flags *flags;
    size_t bytes_at_first;
    int logged;
    char path[64];
} fixture;

static const att_flag rows[] = {
    {"range", .kind = ATT_FLAG_PAIR, .value = "X X", .help = "", ATT_FLAG_AT(settings, range), .high = 1, .open = true},
    {"steps", .kind = ATT_FLAG_INTS, .value = "N...", .help = "", ATT_FLAG_AT(settings, steps),
     .count_offset = offsetof(settings, step_count), .low = 1, .high = 9, .most = 4},
    {"quick", .kind = ATT_FLAG_SWITCH, .help = "", ATT_FLAG_AT(settings, quick)},
    {"tree-depth", .letter = 'd', .kind = ATT_FLAG_INT, .value = "N", .start = "3", .help = "",
     ATT_FLAG_AT(settings, depth), .low = 1, .high = 9},
    {"bytes", .kind = ATT_FLAG_SIZE, .value = "SIZE", .help = "", ATT_FLAG_AT(settings, bytes), .open = true},
    {"seed", .kind = ATT_FLAG_SEED, .value = "N", .help = "", ATT_FLAG_AT(settings, seed)},
    {"rate", .alias = "lr", .kind = ATT_FLAG_REAL, .value = "X", .start = "0.5", .help = "",
     ATT_FLAG_AT(settings, rate), .low = 0, .high = 1},
    {"betas", .kind = ATT_FLAG_REALS, .value = "X X", .start = "0.9 0.999", .help = "", ATT_FLAG_AT(settings, betas),
     .most = 2},
    {"name", .kind = ATT_FLAG_TEXT, .value = "NAME", .start = "alpha", .help = "",
     .choices = (const char *const[]){"alpha", "beta", NULL}, ATT_FLAG_AT(settings, name)},
    {"file", .kind = ATT_FLAG_TEXT, .value = "FILE", .help = "", ATT_FLAG_AT(settings, file), .once = true},
    {"more", .kind = ATT_FLAG_TEXTS, .value = "TEXT", .help = "", ATT_FLAG_AT(settings, more), .once = true},
};

static const att_option declared[] = {
    {.key = "patch_size", .kind = ATT_OPTION_SIDES, .low = 1, .high = 99},
    {.key = "wide_stem", .kind = ATT_OPTION_SWITCH, .high = 1},
};

static int make_rows(att_context *context, att_flag *made, int most)
{
    (void)context;
    for (int i = 0; i < 2 && i < most; i++)
        made[i] = att_flag_of_option(&declared[i], offsetof(inner, options));
    return 2;
}

/* Refuses betas that are not increasing. */
static att_status complete(att_context *context, void *values)
{
    const settings *s = values;
    (void)context;
    return s->betas.values[0] < s->betas.values[1] ? ATT_OK : ATT_ERR_ARGUMENT;
}

static const att_flag_group plain = {"Plain", rows, sizeof rows / sizeof *rows, .complete = complete, .owner = "plain"};
static const att_flag_group made = {"Made", .make_rows = make_rows};
static const att_flag_use parts[] = {{&plain, 0}, {&made, offsetof(settings, of)}};
static const att_flag_group whole = {.parts = parts, .part_count = 2};

static void count_lines(void *user, att_log_level level, const char *line)
{
    fixture *f = user;
    (void)level;
    f->logged += *line != '\0';
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    const att_flags_options options = {
        .uses = &(att_flag_use){&whole, 0}, .use_count = 1, .size = sizeof(settings), .command = "test"};
    att_settings how = att_settings_defaults();
    how.threads = 1;
    how.log = count_lines;
    how.log_user = f;
    assert_int_equal(att_context_create(&how, &f->context), ATT_OK);
    f->bytes_at_first = att_context_allocations(f->context).bytes_now;
    assert_int_equal(att_flags_create(f->context, &options, &f->flags), ATT_OK);
    strcpy(f->path, "/tmp/att_flags_XXXXXX");
    close(mkstemp(f->path));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    unlink(f->path);
    att_flags_destroy(&f->flags);
    assert_int_equal(att_context_allocations(f->context).bytes_now, f->bytes_at_first);
    att_context_destroy(&f->context);
    free(f);
    return 0;
}

#define FLAGS_TEST(name) TEST_WITH(name, fixture *f, setup, teardown)

static att_status parse(fixture *f, int count, const char *const *words, settings *s)
{
    const char *operands[16];
    int operand_count;
    return att_flags_parse(f->flags, count, (char **)words, s, operands, &operand_count, NULL);
}

#define PARSE(f, s, ...)                                                                                               \
    parse((f), (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)), (const char *const[]){__VA_ARGS__}, \
          (s))

static void assert_refused(const fixture *f, att_status status, const char *part)
{
    assert_int_equal(status, ATT_ERR_ARGUMENT);
    assert_message(f->context, part);
}

FLAGS_TEST(every_kind_is_stored)
{
    settings s;
    att_flags_default(f->flags, &s);
    assert_int_equal(PARSE(f, &s, "--quick", "-d", "4", "--bytes=1.5K", "--seed", "18446744073709551615", "--lr",
                           "0.25", "--betas", "0.5", "0.75", "--name", "beta", "--more", "a", "--more", "b",
                           "--patch-size", "4", "8", "--no-wide-stem"),
                     ATT_OK);
    assert_true(s.quick);
    assert_int_equal(s.depth, 4);
    assert_int_equal(s.bytes, 1536);
    assert_true(s.seed == UINT64_MAX);
    assert_true(s.rate == 0.25 && s.betas.count == 2 && s.betas.values[1] == 0.75);
    assert_string_equal(s.name, "beta");
    assert_int_equal(s.more.count, 2);
    const att_option_value *sides = att_options_find(&s.of.options, "patch_size");
    assert_true(sides && sides->numbers[0] == 4 && sides->numbers[1] == 8);
    assert_true(att_options_number(&s.of.options, "wide_stem", -1) == 0);
}

FLAGS_TEST(words_after_two_dashes_are_operands)
{
    settings s;
    static const char *const words[] = {"a", "--", "--quick", "--", "-d"};
    const char *operands[5];
    int count;
    att_flags_default(f->flags, &s);
    assert_int_equal(att_flags_parse(f->flags, 5, (char **)words, &s, operands, &count, NULL), ATT_OK);
    assert_int_equal(count, 4);
    assert_string_equal(operands[1], "--quick");
    assert_string_equal(operands[2], "--"); /* only the first separates */
    assert_false(s.quick);
}

FLAGS_TEST(a_program_sets_values_by_name)
{
    settings s;
    att_flags_default(f->flags, &s);
    assert_int_equal(att_flags_set(f->flags, "tree_depth", "7", &s), ATT_OK);
    assert_int_equal(att_flags_set(f->flags, "betas", "0.1 0.2", &s), ATT_OK);
    assert_int_equal(att_flags_set(f->flags, "patch-size", "2 3", &s), ATT_OK);
    assert_int_equal(att_flags_set(f->flags, "pin_mem", "true", &s), ATT_OK); /* a flag of timm without effect here */
    assert_true(s.depth == 7 && s.betas.values[1] == 0.2);
    assert_refused(f, att_flags_set(f->flags, "--tree-depth", "7", &s),
                   "\"--tree-depth\" is not the name of a flag: omit the leading dashes");
    assert_refused(f, att_flags_set(f->flags, NULL, "7", &s), "the name of a flag is missing");
    assert_refused(f, att_flags_set(f->flags, "depth", NULL, &s), "the value of a flag is missing");
    assert_refused(f, att_flags_set(f->flags, "depth", "7", NULL), "the struct for the values of flags is missing");
    att_flags *none = NULL;
    assert_refused(f, att_flags_create(f->context, NULL, &none), "the groups of a table of flags is missing");
    assert_refused(f, att_flags_set(f->flags, "depht", "7", &s), "unknown option --depht");
    assert_refused(f, att_flags_set(f->flags, "tree-detph", "7", &s), "did you mean --tree-depth?");
    assert_refused(f, att_flags_set(f->flags, "tree-depth", "12", &s), "\"12\" is not a whole number from 1 to 9");
    assert_refused(f, att_flags_set(f->flags, "name", "bata", &s), "did you mean beta?");
    assert_refused(f, att_flags_set(f->flags, "betas", "0.1 0.2 0.3", &s), "\"0.3\" is one too many");
    assert_int_equal(s.depth, 7);
    assert_int_equal(att_flags_complete(f->flags, &s), ATT_OK);
    assert_int_equal(att_flags_set(f->flags, "betas", "0.2 0.1", &s), ATT_OK);
    assert_int_equal(att_flags_complete(f->flags, &s), ATT_ERR_ARGUMENT);
}

FLAGS_TEST(lists_are_stored_in_plain_arrays)
{
    settings s, back;
    att_yaml *yaml = NULL;
    att_flags_default(f->flags, &s);
    assert_int_equal(PARSE(f, &s, "--range", "0.25", "0.5", "--steps", "2", "3.0", "5"), ATT_OK);
    assert_true(s.range[0] == 0.25 && s.range[1] == 0.5);
    assert_int_equal(s.step_count, 3);
    assert_true(s.steps[0] == 2 && s.steps[1] == 3 && s.steps[2] == 5);
    assert_refused(f, PARSE(f, &s, "--range", "0.25"), "--range: \"0.25\" is not two numbers from 0 to 1");
    assert_refused(f, PARSE(f, &s, "--range", "0.25", "2"), "--range: \"0.25 2\" is not two numbers from 0 to 1");
    assert_int_equal(PARSE(f, &s, "--steps", "3,4", "--range", "0.25", "0.5"), ATT_OK);
    assert_true(s.step_count == 2 && s.steps[0] == 3 && s.steps[1] == 4);
    assert_int_equal(PARSE(f, &s, "--steps=5, 6,7"), ATT_OK);
    assert_true(s.step_count == 3 && s.steps[0] == 5 && s.steps[2] == 7);
    assert_refused(f, PARSE(f, &s, "--steps", "1,x"), "\"x\" is one too many or out of range");
    att_flags_default(f->flags, &back);
    assert_refused(f, PARSE(f, &back, "--betas", "0,9"), "--betas: \"0,9\" is not a number"); /* a decimal comma? */
    assert_refused(f, PARSE(f, &s, "--steps", "1", "1.5"), "--steps: \"1.5\" is one too many or out of range");
    assert_refused(f, PARSE(f, &s, "--steps", "1", "2", "3", "4", "5"), "\"5\" is one too many");
    assert_int_equal(att_flags_set(f->flags, "steps", "7", &s), ATT_OK);
    assert_int_equal(att_flags_write(f->flags, &s, f->path), ATT_OK);
    assert_int_equal(att_yaml_read(f->context, f->path, &yaml), ATT_OK);
    att_flags_default(f->flags, &back);
    assert_int_equal(att_flags_read(f->flags, f->path, yaml, &back, NULL), ATT_OK);
    assert_true(att_flags_same(f->flags, &s, &back));
    assert_int_equal(back.step_count, 1);
    back.steps[0] = 8;
    assert_false(att_flags_same(f->flags, &s, &back));
    att_yaml_destroy(&yaml);
}

FLAGS_TEST(names_are_unique)
{
    static const char *const names[] = {"rate", "patch-size"}; /* the second is one of those that `made` makes */
    for (int n = 0; n < 4; n++) {
        const att_flag again = {names[n / 2], .kind = ATT_FLAG_REAL, .value = "X", .help = "",
                                ATT_FLAG_AT(settings, range)};
        const att_flag_group other = {.title = "Other", .rows = &again, .row_count = 1};
        const att_flag_use first = {&other, 0}, second = {&whole, 0};
        const att_flag_use both[] = {n % 2 ? first : second, n % 2 ? second : first};
        const att_flags_options options = {.uses = both, .use_count = 2, .size = sizeof(settings)};
        att_flags *none;
        assert_refused(f, att_flags_create(f->context, &options, &none), "there are two flags --");
        assert_refused(f, att_flags_create(f->context, &options, &none), names[n / 2]);
        assert_refused(f, att_flags_create(f->context, &options, &none), "\"Other\"");
        assert_null(none);
    }
}

FLAGS_TEST(wrong_values_are_not_written)
{
    settings good, s;
    char numbers[ATT_MOST_REALS][ATT_FLAG_VALUE_BYTES];
    const char *texts[ATT_MOST_REALS];
    const att_flag_place betas = att_flags_find(f->flags, "betas"), steps = att_flags_find(f->flags, "steps");
    att_flags_default(f->flags, &good);
    unlink(f->path);
    for (int i = 0; i < 2; i++) {
        s = good;
        s.betas.count = i ? -1 : 99;
        assert_refused(f, att_flags_write(f->flags, &s, f->path), "--betas (plain.betas): its count is");
        assert_int_equal(att_flag_format(&betas, &s, numbers, texts), i ? 0 : 2);
        assert_true(att_flags_same(f->flags, &s, &s));
        s = good;
        s.step_count = i ? -1 : 9;
        assert_refused(f, att_flags_write(f->flags, &s, f->path), "--steps (plain.steps): its count is");
        assert_int_equal(att_flag_format(&steps, &s, numbers, texts), i ? 0 : 4);
        assert_true(att_flags_same(f->flags, &s, &s));
    }
    s = good;
    s.rate = 2;
    assert_refused(f, att_flags_write(f->flags, &s, f->path), "--rate (plain.rate): \"2\" is not");
    assert_refused(f, att_flags_write(f->flags, &good, NULL), "the path of a YAML file is missing");
    assert_int_not_equal(access(f->path, F_OK), 0);
}

FLAGS_TEST(values_stored_by_a_program_are_checked)
{
    settings good, s;
    att_flags_default(f->flags, &good);
    s = good;
    s.name = NULL;
    assert_int_equal(att_flags_check(f->flags, &s), ATT_OK);
    assert_string_equal(s.name, "alpha");
    assert_null(s.file);
    s = good;
    s.depth = 12;
    s.name = NULL;
    assert_refused(f, att_flags_check(f->flags, &s),
                   "--tree-depth (plain.depth): \"12\" is not a whole number from 1 to 9");
    assert_null(s.name); /* unchanged */
    s = good;
    s.name = "bata";
    assert_refused(f, att_flags_check(f->flags, &s), "--name (plain.name): there is no \"bata\"; did you mean beta?");
    s = good;
    s.betas.count = -1;
    assert_refused(f, att_flags_check(f->flags, &s), "--betas (plain.betas): its count is -1, expected 0 to 2");
    s = good;
    s.step_count = 5;
    assert_refused(f, att_flags_check(f->flags, &s), "its count is 5, expected 0 to 4");
    s = good;
    s.more.count = 33;
    assert_refused(f, att_flags_check(f->flags, &s), "its count is 33, expected 0 to 32");
    s = good;
    s.range[1] = NAN;
    assert_refused(f, att_flags_check(f->flags, &s), "--range (plain.range): \"0 nan\" is not two numbers");
    s = good;
    s.rate = NAN;
    assert_refused(f, att_flags_check(f->flags, &s), "--rate (plain.rate): \"nan\" is not a number from 0 to 1");
    s = good;
    s.bytes = -1;
    assert_refused(f, att_flags_check(f->flags, &s), "--bytes (plain.bytes): \"-1\" is not a size");
    s = good;
    att_options_set_sides(&s.of.options, "patch_size", 0, 4);
    assert_refused(f, att_flags_check(f->flags, &s), "--patch-size: \"0 4\" is not");
}

FLAGS_TEST(written_values_are_read_back)
{
    settings s, back;
    att_yaml *yaml = NULL;
    att_flags_default(f->flags, &s);
    assert_int_equal(PARSE(f, &s, "--quick", "--betas", "0.1", "0.3", "--name", "beta", "--patch-size", "4", "8",
                           "--file", "elsewhere", "--rate", "0.30000000000000004"), /* needs 17 digits */
                     ATT_OK);
    assert_int_equal(att_flags_write(f->flags, &s, f->path), ATT_OK);
    assert_int_equal(att_yaml_read(f->context, f->path, &yaml), ATT_OK);
    att_flags_default(f->flags, &back);
    assert_int_equal(att_flags_read(f->flags, f->path, yaml, &back, NULL), ATT_OK);
    assert_true(att_flags_same(f->flags, &s, &back));
    assert_null(back.file); /* belongs to one call only */
    back.rate = 1e-8;
    assert_false(att_flags_same(f->flags, &s, &back));
    att_yaml_destroy(&yaml);
}

static att_status read_text(fixture *f, const char *text, settings *s)
{
    att_yaml *yaml = NULL;
    assert_int_equal(att_yaml_parse(f->context, "some.yaml", text, strlen(text), &yaml), ATT_OK);
    att_flags_default(f->flags, s);
    att_status status = att_flags_read(f->flags, "some.yaml", yaml, s, NULL);
    att_yaml_destroy(&yaml);
    return status;
}

FLAGS_TEST(errors_in_files_name_the_line)
{
    settings s;
    assert_refused(f, read_text(f, "quick: true\nrate: fast\n", &s),
                   "some.yaml, line 2: rate: \"fast\" is not a number");
    assert_refused(f, read_text(f, "tree_depth: [1, 2]\n", &s), "line 1: tree_depth: a list is not a whole number");
    assert_refused(f, read_text(f, "file: x\n", &s), "file belongs to a single call");
    assert_int_equal(f->logged, 0);
    assert_refused(f, read_text(f, "a: 1\nb: 2\n", &s), "some.yaml: 2 options are refused");
    assert_int_equal(f->logged, 2); /* one line for each flag */
}

FLAGS_TEST(the_table_lists_what_there_is)
{
    char numbers[ATT_MOST_REALS][ATT_FLAG_VALUE_BYTES];
    const char *texts[ATT_MOST_REALS];
    assert_int_equal(att_flags_count(f->flags), (int)(sizeof rows / sizeof *rows) + 2);
    att_flag_place last = att_flags_at(f->flags, att_flags_count(f->flags) - 1);
    assert_string_equal(last.group->title, "Made");
    assert_string_equal(last.flag->name, "wide-stem");
    att_flag_place betas = att_flags_find(f->flags, "betas");
    assert_int_equal(att_flag_format(&betas, att_flags_defaults(f->flags), numbers, texts), 2);
    assert_string_equal(texts[1], "0.999");
    assert_int_equal(att_flag_format(&last, att_flags_defaults(f->flags), numbers, texts), 0);
    assert_null(att_flags_find(f->flags, "nothing").flag);
    assert_null(att_flags_at(f->flags, -1).flag);
    assert_null(att_flags_at(f->flags, att_flags_count(f->flags)).flag);
}

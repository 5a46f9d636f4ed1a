/* The routes about checkpoints, of a network with random weights and one picture. */
#include "base/io/png_write.h"
#include "data/picture.h"
#include "lab/serve/client.h"
#include "lab/serve/list.h"

enum { LAYERS = 12, HEADS = 3, TOKENS = 197, SIDE = 224, GREY = 250 };

#define ZEROS "0,0,0,0,0,0,0,0,0,0,0,0"

typedef struct site {
    served served;
    char folder[64];
} site;

static void write_picture(const site *s, const char *name)
{
    char path[128];
    void *picture;
    size_t size;
    picture_make(GREY, &picture, &size);
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(picture, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    free(picture);
}

static int setup(void **state)
{
    static site s;
    static const char *const paths[] = {"deit_tiny_patch16_224"};
    strcpy(s.folder, "/tmp/attscope-serve-XXXXXX");
    assert_non_null(mkdtemp(s.folder));
    for (int i = 0; i < 3; i++)
        write_picture(&s, (const char *const[]){"a.png", "b.png", "c.png"}[i]);
    att_serve_options options = att_serve_options_defaults();
    options.paths = paths;
    options.path_count = 1;
    options.images = s.folder;
    served_start(&s.served, &options, NULL, NULL, 0);
    *state = &s;
    return 0;
}

static int teardown(void **state)
{
    site *s = *state;
    char command[128];
    served_stop(&s->served);
    snprintf(command, sizeof command, "rm -rf %s", s->folder);
    return system(command);
}

TEST_GROUP(setup, teardown)
#define SITE_TEST(name) TEST_WITH(name, const site *s, NULL, NULL)

static void expect(const site *s, const char *target, int status, const char *part)
{
    char line[3000];
    snprintf(line, sizeof line, "GET %s", target);
    const int found = ask(&s->served, line);
    if (found != status || !strstr(body(), part))
        fail_msg("%s: status %d, %s", target, found, body());
}

SITE_TEST(models_have_names_and_images_numbers)
{
    static const char *const missing[] = {"", "m0", "r0", "deit", "patch16_224", "deit_tiny_patch16_224x"};
    char target[128], part[64];
    expect(s, "/api/models", 200,
           "{\"models\":[{\"id\":\"deit_tiny_patch16_224\",\"name\":\"deit_tiny_patch16_224 (random weights)\","
           "\"path\":null,\"network\":\"deit_tiny_patch16_224\"}]}");
    expect(
        s, "/api/images?first=1&count=1", 200,
        "{\"images\":[{\"id\":\"d1\",\"name\":\"b.png\"}],\"count\":3,\"uploads\":[],\"texts\":[],\"text_count\":0}");
    expect(s, "/api/images?first=3&count=1", 200, "{\"images\":[],\"count\":3,\"uploads\":[],");
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        snprintf(target, sizeof target, "/api/model?model=%s", missing[i]);
        snprintf(part, sizeof part, "there is no checkpoint \\\"%s\\\"", missing[i]);
        expect(s, target, 404, part);
    }
    expect(s, "/api/model?model=deit_tiny_patch16_224", 200, "\"tokens\":197,\"classes\":1000");
    assert_non_null(strstr(body(), "{\"name\":\"entropy\",\"title\":\"Attention entropy\",\"reason\":null}"));
    assert_non_null(strstr(body(), "{\"name\":\"collapse\",\"title\":\"Rank collapse\",\"reason\":null}"));
    assert_non_null(
        strstr(body(), "\"reason\":\"instrument \\\"gate\\\" has nothing to observe: the network has no gate\""));
    assert_null(strstr(body(), "\"name\":\"density\"")); /* costly */
}

SITE_TEST(what_is_wrong_with_an_ablation_is_said)
{
#define LISTS(heads) "&heads=" heads "&branches=&tokens=&uniform=0&greedy=0&bound=0"
    expect(s, "/api/ablation?model=deit_tiny_patch16_224" LISTS("all"), 400, "images");
    expect(s, "/api/ablation?model=deit_tiny_patch16_224" LISTS("all") "&images=0", 400, "images");
    expect(s,
           "/api/ablation?model=deit_tiny_patch16_224&heads=all&branches=&tokens=&uniform=2&greedy=0&bound=0&images=1",
           400, "uniform");
    expect(s,
           "/api/ablation?model=deit_tiny_patch16_224&heads=all&branches=&tokens=&uniform=0&greedy=2&bound=0&images=1",
           400, "greedy");
    expect(s,
           "/api/ablation?model=deit_tiny_patch16_224&heads=all&branches=&tokens=&uniform=0&greedy=0&bound=x&images=1",
           400, "expected a number, in per cent");
    expect(s, "/api/ablation?model=deit_tiny_patch16_224&heads=all&uniform=0&greedy=0&bound=0&images=1", 400,
           "branches");
    expect(s, "/api/ablation?model=absent" LISTS("all") "&images=1", 404, "there is no checkpoint");
    expect(s, "/api/changed?model=deit_tiny_patch16_224" LISTS("all") "&images=1&part=-1", 400, "part");
#undef LISTS
}

/* The network's input is the picture again, whose grey is far from the means of all channels. */
SITE_TEST(the_input_has_the_colours_of_the_image)
{
    expect(s, "/api/input?model=deit_tiny_patch16_224&image=d0&changes=", 200, "");
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        assert_int_equal((uint8_t)body()[i], GREY);
}

#define WEIGHTS "/api/weights?model=deit_tiny_patch16_224&image=d0&changes="

SITE_TEST(queries_are_numbers)
{
    static const char *const bad[] = {"1,,0", "x", "-1", "2147483648", "4294967296", "0.5"};
    char target[3000];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(target, sizeof target, WEIGHTS "&way=row&terms=both&scores=0&queries=%s", bad[i]);
        expect(s, target, 400, "queries must be whole numbers");
    }
    int length = snprintf(target, sizeof target, WEIGHTS "&way=row&terms=both&scores=0&queries=0");
    for (int i = 0; i < 1024; i++)
        length += snprintf(target + length, sizeof target - (size_t)length, ",0");
    expect(s, target, 400, "queries must be whole numbers"); /* more than any network has */
    expect(s, WEIGHTS "&way=row&terms=both&scores=0&queries=0,0", 400, "2 queries, but the network has 12");
    expect(s, WEIGHTS "&way=rows&terms=both&scores=0&queries=0", 400, "expected row, mean or rollout");
}

/* The sum of the absolute numbers of an answer. */
static double sum_of_weights(const site *s, const char *target)
{
    double sum = 0;
    expect(s, target, 200, "");
    for (size_t i = 0; i < (size_t)LAYERS * HEADS * TOKENS; i++) {
        float value;
        memcpy(&value, body() + i * sizeof value, sizeof value);
        sum += fabs((double)value);
    }
    return sum;
}

/* The scores of DeiT have content only. */
SITE_TEST(terms_and_scores_are_chosen)
{
    const double both = sum_of_weights(s, WEIGHTS "&way=row&terms=both&scores=1&queries=" ZEROS);
    assert_true(both > 0);
    assert_true(sum_of_weights(s, WEIGHTS "&way=row&terms=content&scores=1&queries=" ZEROS) == both);
    assert_true(sum_of_weights(s, WEIGHTS "&way=row&terms=positions&scores=1&queries=" ZEROS) == 0);
    const double rows = sum_of_weights(s, WEIGHTS "&way=row&terms=both&scores=0&queries=" ZEROS);
    assert_true(fabs(rows - LAYERS * HEADS) < 1e-6); /* measured: 2e-8; each row adds up to 1 */
    print_message("rows add up to %d and %.2g\n", LAYERS * HEADS, rows - LAYERS * HEADS);
}

static int upload(const served *self, const void *bytes, size_t size, char answer[static ANSWER])
{
    char head[1024];
    snprintf(head, sizeof head,
             "POST /api/upload?name=my+cat%%2ejpg HTTP/1.1\r\nHost: localhost\r\nAuthorization: token %s\r\n"
             "Content-Length: %zu\r\nConnection: close\r\n\r\n",
             self->token, size);
    const int connection = dial(self);
    send_text(connection, head);
    send_bytes(connection, bytes, size);
    return status_in(receive_all(connection, answer));
}

/* A file that is no image is the client's mistake, not the server's. */
SITE_TEST(bad_uploads_are_refused)
{
    assert_int_equal(upload(&s->served, "", 0, received), 400);
    assert_int_equal(upload(&s->served, "no image", 8, received), 400);
    assert_non_null(strstr(body(), "{\"error\":\"my cat.jpg: not a JPEG, PNG or WebP image\"}"));
}

/* A black picture, whose file is small. It is decoded to 3 bytes for each pixel, twice: with and without its rows'
 * order in the file. */
static void make_black(int side, att_text *png)
{
    const size_t count = (size_t)side * (size_t)side * 3;
    uint8_t *pixels = calloc(count, 1);
    assert_non_null(pixels);
    assert_int_equal(att_png_write(png->context, &(att_image){side, side, 3, pixels}, png), ATT_OK);
    free(pixels);
}

static void start_with_memory(served *self, size_t memory)
{
    static const att_route_group *const groups[] = {&att_routes_explore};
    const att_serve_options options = att_serve_options_defaults();
    att_serve_limits limits = att_serve_limits_defaults();
    limits.memory = memory;
    served_start(self, &options, &limits, groups, 1);
}

/* The decoder learns from the header what it needs. */
SITE_TEST(uploads_without_memory_are_refused)
{
    served self;
    start_with_memory(&self, 4 << 20);
    att_text large = {.context = self.context}, small = {.context = self.context};
    make_black(1000, &large);
    make_black(100, &small);
    large.length /= 2; /* would be another error if pixels were decoded */
    assert_int_equal(upload(&self, large.data, large.length, received), 503);
    assert_non_null(strstr(body(), "for my cat.jpg ("));
    assert_int_equal(upload(&self, small.data, small.length, received), 200);
    att_text_free(&large);
    att_text_free(&small);
    served_stop(&self);
}

enum { UPLOADS = 12 };
typedef struct sender {
    const served *self;
    const att_text *png;
    int status;
    pthread_t thread;
} sender;

static void *send_upload(void *user)
{
    sender *s = user;
    char *answer = malloc(ANSWER);
    if (answer != NULL)
        s->status = upload(s->self, s->png->data, s->png->length, answer);
    free(answer);
    return NULL;
}

/* Two decoders together would exceed the limit. */
SITE_TEST(uploads_are_decoded_one_at_a_time)
{
    static served self;
    static sender senders[UPLOADS];
    start_with_memory(&self, 9 << 20);
    att_text png = {.context = self.context};
    make_black(1000, &png);
    for (int i = 0; i < UPLOADS; i++) {
        senders[i] = (sender){.self = &self, .png = &png};
        assert_int_equal(pthread_create(&senders[i].thread, NULL, send_upload, &senders[i]), 0);
    }
    for (int i = 0; i < UPLOADS; i++) {
        pthread_join(senders[i].thread, NULL);
        assert_int_equal(senders[i].status, 200);
    }
    att_text_free(&png);
    served_stop(&self);
}

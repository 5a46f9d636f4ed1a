/* Downloads from a Hub on this machine (server.py) that also breaks off, lies and redirects. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io/scratch.h"

#include "base/core/context.h"
#include "networks/hub/cache.h"
#include "networks/hub/download.h"
#include "networks/hub/hub.h"
#include "networks/models/torchvision.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
/* SHA-256 of the server's weights, 320,000 bytes. */
#define WEIGHTS "3970a7e6adccd7cc7d0c95698ab1dd942bb4dfe82c4b816da5b59d013356b66f"
enum { SIZE = 320000, HALF = SIZE / 2 };

static int port, server_input;
static pid_t server;

/* --- the server --------------------------------------------------------------------------------------------------- */

static int start(void **state)
{
    (void)state;
    int in[2], out[2];
    char script[512], text[32] = "";
    snprintf(script, sizeof script, "%s/../networks/hub/server.py", getenv("ATT_GOLDENS"));
    if (pipe(in) != 0 || pipe(out) != 0 || (server = fork()) < 0)
        return -1;
    if (server == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        close(out[0]);
        execlp("python3", "python3", script, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    server_input = in[1];
    fcntl(server_input, F_SETFD, FD_CLOEXEC);
    FILE *from = fdopen(out[0], "r");
    if (fgets(text, sizeof text, from))
        port = atoi(text);
    fclose(from);
    setenv("no_proxy", "127.0.0.1,localhost", 1);
    int status = 0;
    if (port > 0)
        return 0;
    return waitpid(server, &status, 0) == server && WEXITSTATUS(status) == 127 ? 0 : -1; /* 127: no python3 */
}

static int stop(void **state)
{
    (void)state;
    close(server_input);
    return port == 0 || waitpid(server, NULL, 0) == server ? 0 : -1;
}

TEST_GROUP(start, stop)

static void require_server(void)
{
    if (port > 0)
        return;
    print_message("skipped: no python3\n");
    skip();
}

/* --- helpers ------------------------------------------------------------------------------------------------------ */

static att_hub_settings settings_of(const scratch *self)
{
    static char torch_server[64];
    att_hub_settings settings = {.seconds = 1, .pause_ms = 1, .token = "hf_secret", .torch_server = torch_server};
    require_server();
    snprintf(torch_server, sizeof torch_server, "http://127.0.0.1:%d/torch", port);
    snprintf(settings.cache, sizeof settings.cache, "%s/hub", self->folder);
    snprintf(settings.torch, sizeof settings.torch, "%s/torch", self->folder);
    snprintf(settings.endpoint, sizeof settings.endpoint, "http://127.0.0.1:%d", port);
    return settings;
}

static att_status find_with(scratch *self, const att_hub_settings *settings, const char *name, char path[ATT_HUB_PATH])
{
    return att_hub_find_with(self->context, settings, name, path, ATT_HUB_PATH);
}

static att_status find(scratch *self, const char *name, char path[ATT_HUB_PATH])
{
    const att_hub_settings settings = settings_of(self);
    return find_with(self, &settings, name, path);
}

static void assert_finds(scratch *self, const char *name)
{
    char path[ATT_HUB_PATH];
    if (find(self, name, path) != ATT_OK)
        fail_msg("%s: %s", name, att_context_message(self->context));
    assert_true(access(path, R_OK) == 0);
}

/* Runs a command of the shell in the folder of the test. */
__attribute__((format(printf, 2, 3))) static void shell(const scratch *self, const char *format, ...)
{
    char command[1024];
    va_list arguments;
    int length = snprintf(command, sizeof command, "cd '%s' && ", self->folder);
    va_start(arguments, format);
    vsnprintf(command + length, sizeof command - (size_t)length, format, arguments);
    va_end(arguments);
    assert_int_equal(system(command), 0);
}

/* Fails unless the child ends with status 0. */
static void assert_succeeds(pid_t child)
{
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
}

static const char *below(const scratch *self, const char *path)
{
    static char full[512];
    snprintf(full, sizeof full, "%s/hub/%s", self->folder, path);
    return full;
}

static long size_of(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (long)info.st_size : -1;
}

/* Returns the server's list of requests since the last call. */
static const char *requests(void)
{
    static const char request[] = "GET /log HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    static char text[1 << 18];
    static size_t before;
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int client = socket(AF_INET, SOCK_STREAM, 0);
    size_t length = 0;
    assert_int_equal(connect(client, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(write(client, request, sizeof request - 1), sizeof request - 1);
    for (ssize_t got; (got = read(client, text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)got;
    close(client);
    text[length] = '\0';
    const char *body = strstr(text, "\r\n\r\n");
    assert_non_null(body);
    const char *fresh = body + 4 + before;
    before = strlen(body + 4);
    return fresh;
}

static int count(const char *text, const char *part)
{
    int found = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        found++;
    return found;
}

/* Writes the beginning of an earlier download, or other bytes in its place. */
static void leave_part(const scratch *self, const char *repository, size_t size, bool right)
{
    char path[512];
    char *bytes = calloc(1, size);
    shell(self, "mkdir -p hub/%s/blobs", repository);
    snprintf(path, sizeof path, "%s/hub/%s/blobs/" WEIGHTS ".incomplete", self->folder, repository);
    if (right) {
        FILE *from = fopen(below(self, "models--good--vit/blobs/" WEIGHTS), "rb");
        assert_non_null(from);
        assert_int_equal(fread(bytes, 1, size, from), size);
        fclose(from);
    }
    FILE *to = fopen(path, "wb");
    assert_int_equal(fwrite(bytes, 1, size, to), size);
    fclose(to);
    free(bytes);
}

/* --- what is downloaded ------------------------------------------------------------------------------------------- */

SCRATCH_TEST(a_repository_is_downloaded_into_the_hubs_layout)
{
    char target[256] = "", path[ATT_HUB_PATH];
    assert_finds(self, "hf-hub:good/vit");
    assert_text_file(below(self, "models--good--vit/refs/main"), COMMIT);
    assert_true(readlink(below(self, "models--good--vit/snapshots/" COMMIT "/model.safetensors"), target, 255) > 0);
    assert_string_equal(target, "../../blobs/" WEIGHTS);
    assert_int_equal(size_of(below(self, "models--good--vit/blobs/" WEIGHTS)), SIZE);
    assert_int_equal(size_of(below(self, "models--good--vit/blobs/" WEIGHTS ".incomplete")), -1);
    assert_true(size_of(below(self, "models--good--vit/snapshots/" COMMIT "/config.json")) > 0);
    requests();
    assert_int_equal(find(self, "hf-hub:good/vit@main", path), ATT_OK); /* from the cache, without a request */
    assert_int_equal(find(self, "hf-hub:good/vit@" COMMIT, path), ATT_OK);
    assert_string_equal(path, below(self, "models--good--vit/snapshots/" COMMIT "/model.safetensors"));
    assert_string_equal(requests(), "");
}

SCRATCH_TEST(the_token_stays_with_the_endpoint)
{
    require_server();
    requests();
    assert_finds(self, "hf-hub:good/vit@refs/pr/1");
    const char *log = requests();
    assert_int_equal(count(log, "HEAD 127.0.0.1 /good/vit/resolve/refs%2Fpr%2F1/config.json - Bearer hf_secret\n"), 1);
    assert_int_equal(count(log, "GET 127.0.0.1 /good/vit/resolve/" COMMIT "/model.safetensors - Bearer hf_secret\n"),
                     1);
    assert_int_equal(count(log, "GET localhost /cdn/good/vit/model.safetensors - -\n"), 1);
    assert_int_equal(count(log, "hf_secret"), count(log, " 127.0.0.1 "));
    assert_text_file(below(self, "models--good--vit/refs/refs/pr/1"), COMMIT);
}

SCRATCH_TEST(other_kinds_of_repositories_are_found)
{
    assert_finds(self, "hf-hub:renamed/vit");
    assert_finds(self, "hf-hub:hops9/vit"); /* the weights have a tenth redirect */
    assert_finds(self, "hf-hub:busy/vit");
    assert_finds(self, "hf-hub:samehost/vit");
    assert_finds(self, "hf-hub:pickle/vit");
    assert_true(size_of(below(self, "models--pickle--vit/snapshots/" COMMIT "/pytorch_model.bin")) == SIZE);
    assert_finds(self, "hf-hub:sharded/vit");
    assert_true(size_of(below(self, "models--sharded--vit/snapshots/" COMMIT "/model-2.safetensors")) == 2000);
    assert_finds(self, "hf-hub:pickles/vit");
    assert_true(size_of(below(self, "models--pickles--vit/snapshots/" COMMIT "/pytorch_model-1.bin")) == 5000);
    assert_finds(self, "hf-hub:noconfig/vit");
    assert_int_equal(size_of(below(self, "models--noconfig--vit/.no_exist/" COMMIT "/config.json")), 0);
    requests();
    assert_finds(self, "hf-hub:noconfig/vit");
    assert_finds(self, "hf-hub:sharded/vit");
    assert_string_equal(requests(), "");
    /* An index whose files are not all there is no hit. */
    unlink(below(self, "models--sharded--vit/snapshots/" COMMIT "/model-2.safetensors"));
    assert_finds(self, "hf-hub:sharded/vit");
    assert_int_equal(count(requests(), "HEAD 127.0.0.1 /sharded/vit/resolve/" COMMIT "/model-2.safetensors"), 1);
}

/* --- transfers that break off ------------------------------------------------------------------------------------- */

SCRATCH_TEST(side_files_decide_before_weights_are_requested)
{
    static const char *const refused[][3] = {{"hf-hub:wav/vit", "wav2vec2", "/wav/vit/"},
                                             {"hf-hub:cait/vit", "cait_s24_224", "/cait/vit/"}};
    char path[ATT_HUB_PATH];
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_fails(self->context, find(self, refused[i][0], path), ATT_ERR_UNSUPPORTED, refused[i][1]);
        const char *log = requests();
        assert_int_equal(count(log, refused[i][2]), 2); /* HEAD and GET of config.json */
    }
    assert_finds(self, "hf-hub:transformers/vit");
    assert_true(size_of(below(self, "models--transformers--vit/snapshots/" COMMIT "/preprocessor_config.json")) > 0);
    assert_finds(self, "hf-hub:good/vit");
    assert_int_equal(size_of(below(self, "models--good--vit/snapshots/" COMMIT "/preprocessor_config.json")), -1);

    /* What transformers writes for images and texts. */
    assert_finds(self, "hf-hub:processor/clip");
    assert_true(size_of(below(self, "models--processor--clip/snapshots/" COMMIT "/processor_config.json")) > 0);
    requests();
    assert_finds(self, "hf-hub:transformers/vit");
    assert_finds(self, "hf-hub:processor/clip");
    assert_string_equal(requests(), "");

    /* Another program has left the weights without the preprocessing. */
    shell(self, "rm hub/models--transformers--vit/snapshots/" COMMIT "/preprocessor_config.json");
    assert_finds(self, "hf-hub:transformers/vit");
    assert_true(size_of(below(self, "models--transformers--vit/snapshots/" COMMIT "/preprocessor_config.json")) > 0);
    shell(self, "rm hub/models--processor--clip/snapshots/" COMMIT "/processor_config.json");
    assert_finds(self, "hf-hub:processor/clip");
    assert_true(size_of(below(self, "models--processor--clip/snapshots/" COMMIT "/processor_config.json")) > 0);
}

#define OF_BERT "models--bert--minilm/snapshots/" COMMIT "/"
#define OF_VOCABULARY "models--vocabulary--distil/snapshots/" COMMIT "/"
SCRATCH_TEST(networks_for_texts_come_with_their_tokenizer)
{
    assert_finds(self, "hf-hub:bert/minilm");
    assert_true(size_of(below(self, OF_BERT "tokenizer.json")) > 0);
    assert_true(size_of(below(self, OF_BERT "tokenizer_config.json")) > 0);
    assert_true(size_of(below(self, OF_BERT "sentence_bert_config.json")) > 0);
    assert_int_equal(size_of(below(self, OF_BERT "vocab.txt")), -1); /* tokenizer.json has the pieces */
    assert_int_equal(size_of(below(self, OF_BERT "preprocessor_config.json")), -1);
    assert_finds(self, "hf-hub:vocabulary/distil");
    assert_true(size_of(below(self, OF_VOCABULARY "vocab.txt")) > 0);
    assert_true(size_of(below(self, OF_VOCABULARY "special_tokens_map.json")) > 0);
    assert_true(size_of(below(self, OF_VOCABULARY "tokenizer_config.json")) > 0);
    assert_int_equal(size_of(below(self, OF_VOCABULARY "tokenizer.json")), -1);
    requests();
    assert_finds(self, "hf-hub:bert/minilm");
    assert_finds(self, "hf-hub:vocabulary/distil");
    assert_string_equal(requests(), "");

    /* The weights are there from an earlier version, which left the tokenizer out. */
    shell(self, "rm hub/" OF_BERT "tokenizer.json hub/" OF_BERT "tokenizer_config.json");
    assert_finds(self, "hf-hub:bert/minilm");
    assert_true(size_of(below(self, OF_BERT "tokenizer.json")) > 0);
    assert_true(size_of(below(self, OF_BERT "tokenizer_config.json")) > 0);
}

SCRATCH_TEST(a_transfer_that_breaks_off_is_continued)
{
    static const char *const names[] = {"broken", "stall"};
    for (int i = 0; i < 2; i++) {
        char name[32], request[128];
        snprintf(name, sizeof name, "hf-hub:%s/vit", names[i]);
        snprintf(request, sizeof request, "GET localhost /cdn/%s/vit/model.safetensors bytes=%d- -\n", names[i], HALF);
        assert_finds(self, name);
        assert_int_equal(count(requests(), request), 1);
    }
    assert_finds(self, "hf-hub:norange/vit"); /* from the beginning */
}

SCRATCH_TEST(a_part_of_an_earlier_call_is_continued)
{
    assert_finds(self, "hf-hub:good/vit");
    leave_part(self, "models--good--again", 1000, true);
    requests();
    assert_finds(self, "hf-hub:good/again");
    assert_int_equal(count(requests(), "/cdn/good/again/model.safetensors bytes=1000- "), 1);
    /* A part that has all bytes needs no request for them. */
    leave_part(self, "models--good--whole", SIZE, true);
    assert_finds(self, "hf-hub:good/whole");
    assert_int_equal(count(requests(), "/cdn/good/whole"), 0);
    /* A part with other bytes is replaced, and so is one that is too long. */
    leave_part(self, "models--good--other", 1000, false);
    leave_part(self, "models--good--long", SIZE + 1, false);
    assert_finds(self, "hf-hub:good/other");
    assert_finds(self, "hf-hub:good/long");
}

typedef struct shown {
    int files, calls;
    int64_t last, whole;
    double speed; /* MB/s, at the end */
} shown;

static bool show(void *user, const att_progress *progress)
{
    shown *s = user;
    assert_string_equal(progress->stage, "download");
    assert_string_equal(progress->unit, "MB");
    s->files += progress->batch == 0;
    s->calls++;
    assert_true(progress->batch == 0 || progress->batch >= s->last);
    s->last = progress->batch;
    s->whole = progress->batches;
    s->speed = progress->images_per_second;
    return true;
}

SCRATCH_TEST(progress_goes_from_nothing_to_all_bytes)
{
    shown s = {.files = 0};
    struct timespec begin, end;
    att_hub_show_progress(self->context, show, &s);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    assert_finds(self, "hf-hub:broken/progress");
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    assert_true(s.speed * seconds > SIZE / 1e6); /* the transfer took no longer than the call */
    assert_int_equal(s.files, 2);                /* config.json and the weights */
    assert_true(s.calls > 4);
    assert_int_equal(s.last, SIZE);
    assert_int_equal(s.whole, SIZE);
    s = (shown){.files = 0};
    assert_finds(self, "hf-hub:broken/progress"); /* from the cache */
    assert_int_equal(s.calls, 0);
}

static bool stop_at_half(void *user, const att_progress *progress)
{
    int *calls = user;
    (*calls)++;
    return progress->batch < HALF;
}

SCRATCH_TEST(a_download_that_is_stopped_is_continued_later)
{
    char path[ATT_HUB_PATH];
    int calls = 0;
    att_hub_show_progress(self->context, stop_at_half, &calls);
    assert_int_equal(find(self, "hf-hub:slow/vit", path), ATT_ERR_STOPPED);
    assert_true(calls > 2);
    const long part = size_of(below(self, "models--slow--vit/blobs/" WEIGHTS ".incomplete"));
    assert_true(part >= HALF && part < SIZE);
    assert_int_equal(size_of(below(self, "models--slow--vit/blobs/" WEIGHTS)), -1);
    att_hub_show_progress(self->context, NULL, NULL);
    requests();
    assert_finds(self, "hf-hub:slow/vit");
    char request[80];
    snprintf(request, sizeof request, "/cdn/slow/vit/model.safetensors bytes=%ld- ", part);
    assert_int_equal(count(requests(), request), 1);
    /* The stop function of the context ends a download, too. */
    self->questions_left = 0;
    assert_int_equal(find(self, "hf-hub:slow/other", path), ATT_ERR_STOPPED);
    self->questions_left = -1;
}

SCRATCH_TEST(a_full_disk_leaves_a_part)
{
    char path[ATT_HUB_PATH];
    require_server();
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {100000, 100000};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        att_status status = find(self, "hf-hub:good/vit", path);
        const char *message = att_context_message(self->context);
        _exit(status == ATT_ERR_IO && strstr(message, ".incomplete could not be appended to: File too large") ? 0 : 1);
    }
    assert_succeeds(child);
    assert_int_equal(size_of(below(self, "models--good--vit/blobs/" WEIGHTS)), -1);
    assert_true(size_of(below(self, "models--good--vit/blobs/" WEIGHTS ".incomplete")) > 0);
    assert_finds(self, "hf-hub:good/vit");
}

SCRATCH_TEST(of_two_processes_one_downloads)
{
    require_server();
    requests();
    pid_t child = fork();
    if (child == 0) {
        char path[ATT_HUB_PATH];
        _exit(find(self, "hf-hub:slow/vit", path) == ATT_OK ? 0 : 1);
    }
    assert_finds(self, "hf-hub:slow/vit");
    assert_succeeds(child);
    assert_int_equal(count(requests(), "GET localhost /cdn/slow/vit/model.safetensors"), 1);
}

/* --- lies --------------------------------------------------------------------------------------------------------- */

SCRATCH_TEST(hostile_replies_end_in_one_sentence)
{
    static const struct {
        const char *name;
        att_status status;
        const char *message;
    } cases[] = {
        {"hf-hub:missing/vit", ATT_ERR_NOT_FOUND, "missing/vit: there is no repository of this name"},
        {"hf-hub:gated/vit", ATT_ERR_NOT_FOUND, "accept them at http://127.0.0.1"},
        {"hf-hub:norevision/vit@v2", ATT_ERR_NOT_FOUND, "norevision/vit has no revision \"v2\""},
        {"hf-hub:empty/vit", ATT_ERR_NOT_FOUND, "empty/vit has no weights"},
        {"hf-hub:teapot/vit", ATT_ERR_IO, "HTTP status 418"},
        {"hf-hub:down/vit", ATT_ERR_IO, "HTTP status 503"},
        {"hf-hub:nocommit/vit", ATT_ERR_FORMAT, "it has no X-Repo-Commit"},
        {"hf-hub:nohash/vit", ATT_ERR_FORMAT, "states no hash"},
        {"hf-hub:nosize/vit", ATT_ERR_FORMAT, "states no size"},
        {"hf-hub:headers/vit", ATT_ERR_FORMAT, "the server sends headers of more than 262144 bytes"},
        {"hf-hub:header/vit", ATT_ERR_FORMAT, "the server sends a header of more than 102400 bytes"},
        {"hf-hub:toolarge/vit", ATT_ERR_IO, "does not fit on the disk"},
        {"hf-hub:huge/vit", ATT_ERR_FORMAT, "expected at most 16777216"},
        {"hf-hub:dead/vit", ATT_ERR_IO, "model.safetensors of dead/vit: localhost: "},
        {"hf-hub:seesaw/vit", ATT_ERR_IO, "model.safetensors of seesaw/vit: localhost: "},
        {"hf-hub:short/vit", ATT_ERR_FORMAT, "the server sends 160000 bytes; expected 320000"},
        {"hf-hub:long/vit", ATT_ERR_FORMAT, "the server sends 320004 bytes; expected 320000"},
        {"hf-hub:endless/vit", ATT_ERR_FORMAT, "the server sends more than 320000 bytes"},
        {"hf-hub:onemore/vit", ATT_ERR_FORMAT, "the server sends more than 320000 bytes"},
        {"hf-hub:damaged/vit", ATT_ERR_FORMAT, "is damaged: its SHA-256 is not " WEIGHTS},
        {"hf-hub:wrongrange/vit", ATT_ERR_FORMAT, "the server sends bytes from 5 of 320000; expected from 160000"},
        {"hf-hub:plain/vit", ATT_ERR_UNSUPPORTED, "redirected to http://www.example.org, which is not encrypted"},
        {"hf-hub:file/vit", ATT_ERR_UNSUPPORTED, "redirected to \"file:///etc/passwd\""},
        {"hf-hub:user/vit", ATT_ERR_UNSUPPORTED, "redirected to \"https://127.0.0.1@example.org/model\""},
        {"hf-hub:loop/vit", ATT_ERR_FORMAT, "more than 10 redirects"},
        {"hf-hub:hops10/vit", ATT_ERR_FORMAT, "more than 10 redirects"}, /* the weights have an eleventh */
        {"hf-hub:evil/vit", ATT_ERR_FORMAT, "names \"../../../evil.safetensors\"; expected a file of the same"},
        {"hf-hub:absolute/vit", ATT_ERR_FORMAT, "names \"/tmp/evil.safetensors\"; expected a file of the same"},
        {"hf-hub:nojson/vit", ATT_ERR_FORMAT, "model.safetensors.index.json"},
        {"hf-hub:holes/vit", ATT_ERR_FORMAT, "names model-2.safetensors, which it does not have"},
        {"timm/vit_tiny_patch16_225", ATT_ERR_NOT_FOUND, "did you mean \"vit_tiny_patch16_224\"?"},
        {"timm/vit_tiny_patch16_224.augreg", ATT_ERR_NOT_FOUND, "its tags are augreg_in21k_ft_in1k, augreg_in21k"},
        {"timm/cait_s24_224.fb_dist_in1k", ATT_ERR_UNSUPPORTED, "attscope does not support it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[ATT_HUB_PATH] = "unchanged", blob[128];
        const size_t before = att_context_allocations(self->context).bytes_now;
        att_status status = find(self, cases[i].name, path);
        if (status != cases[i].status || !strstr(att_context_message(self->context), cases[i].message))
            fail_msg("%s: status %d, \"%s\"", cases[i].name, status, att_context_message(self->context));
        assert_null(strchr(att_context_message(self->context), '\n'));
        assert_null(strstr(att_context_message(self->context), "model \"\""));
        assert_string_equal(path, "unchanged");
        assert_int_equal(att_context_allocations(self->context).bytes_now, before);
        snprintf(blob, sizeof blob, "models--%.*s--vit/blobs/" WEIGHTS, (int)strcspn(cases[i].name + 7, "/"),
                 cases[i].name + 7);
        assert_int_equal(size_of(below(self, blob)), -1);
    }
    assert_int_equal(size_of(below(self, "models--damaged--vit/blobs/" WEIGHTS ".incomplete")), -1);
}

SCRATCH_TEST(a_request_is_sent_five_times)
{
    static const struct {
        const char *name, *request;
    } cases[] = {
        {"down", "HEAD 127.0.0.1 /down/count/resolve/main/config.json "},
        {"dead", "GET localhost /cdn/dead/count/model.safetensors "},
        {"seesaw", "GET localhost /cdn/seesaw/count/model.safetensors "}, /* bytes that come again are no progress */
    };
    require_server();
    requests();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[32], path[ATT_HUB_PATH];
        snprintf(name, sizeof name, "hf-hub:%s/count", cases[i].name);
        assert_int_equal(find(self, name, path), ATT_ERR_IO);
        assert_int_equal(count(requests(), cases[i].request), 5);
    }
}

/* A token that could not be read matters only if the Hub wants one. */
SCRATCH_TEST(an_unreadable_token_is_named_by_refusals_only)
{
    char path[ATT_HUB_PATH];
    att_hub_settings settings = settings_of(self);
    *settings.token = '\0';
    snprintf(settings.token_fault, sizeof settings.token_fault, "/x/token could not be opened");
    requests();
    assert_int_equal(find_with(self, &settings, "hf-hub:good/vit", path), ATT_OK);
    assert_int_equal(count(requests(), "Bearer"), 0);
    assert_fails(self->context, find_with(self, &settings, "hf-hub:missing/vit", path), ATT_ERR_NOT_FOUND,
                 "a private one needs your access token, which cannot be read: /x/token could not be");
    assert_fails(self->context, find_with(self, &settings, "hf-hub:gated/vit", path), ATT_ERR_NOT_FOUND,
                 "the present one cannot be read: /x/token could not be opened");
    *settings.token_fault = '\0';
    assert_fails(self->context, find_with(self, &settings, "hf-hub:missing/vit", path), ATT_ERR_NOT_FOUND,
                 "a private one needs HF_TOKEN");
}

/* --- the cache ---------------------------------------------------------------------------------------------------- */

SCRATCH_TEST(offline_only_the_cache_is_used)
{
    char path[ATT_HUB_PATH];
    assert_finds(self, "hf-hub:good/vit");
    att_hub_settings settings = settings_of(self);
    settings.offline = true;
    requests();
    assert_int_equal(find_with(self, &settings, "hf-hub:good/vit", path), ATT_OK);
    unlink(below(self, "models--good--vit/snapshots/" COMMIT "/config.json"));
    assert_int_equal(find_with(self, &settings, "hf-hub:good/vit", path), ATT_OK);
    assert_fails(self->context, find_with(self, &settings, "hf-hub:good/other", path), ATT_ERR_NOT_FOUND,
                 "good/other: not in the cache");
    assert_message_has(self, "HF_HUB_OFFLINE");
    assert_string_equal(requests(), "");
    /* With a connection, a configuration that is missing is downloaded; without one, the weights are used. */
    assert_finds(self, "hf-hub:good/vit");
    assert_int_equal(count(requests(), "model.safetensors"), 0);
    assert_true(size_of(below(self, "models--good--vit/snapshots/" COMMIT "/config.json")) > 0);
    unlink(below(self, "models--good--vit/snapshots/" COMMIT "/config.json"));
    settings.offline = false;
    snprintf(settings.endpoint, sizeof settings.endpoint, "http://127.0.0.1:1");
    const int warnings = self->warnings;
    assert_int_equal(find_with(self, &settings, "hf-hub:good/vit", path), ATT_OK);
    assert_int_equal(self->warnings, warnings + 1);
    self->questions_left = 0; /* a stop is no lack of a connection */
    assert_int_equal(find_with(self, &settings, "hf-hub:good/vit", path), ATT_ERR_STOPPED);
    self->questions_left = -1;
}

static void write_ref(const scratch *self, const char *text)
{
    FILE *ref = fopen(below(self, "models--good--vit/refs/main"), "w");
    assert_non_null(ref);
    fputs(text, ref);
    fclose(ref);
}

/* Runs as a user whom the modes of files bind: `allowed` may be found, `refused` may not be downloaded. */
static int use_read_only(scratch *self, const char *allowed, const char *refused, const char *message)
{
    char path[ATT_HUB_PATH];
    const int warnings = self->warnings;
    if (getuid() == 0 && setuid(65534) != 0)
        return 2;
    if (find(self, allowed, path) != ATT_OK || access(path, R_OK) != 0 || self->warnings != warnings)
        return 3;
    if (find(self, "hf-hub:good/vit@v2", path) != ATT_OK) /* another name of the same commit, which is not recorded */
        return 4;
    if (find(self, refused, path) != ATT_ERR_IO || !strstr(att_context_message(self->context), message))
        return 5;
    return 0;
}

SCRATCH_TEST(a_cache_without_write_permission_is_used)
{
    assert_finds(self, "hf-hub:good/vit");
    shell(self, "chmod -R a+rX,a-w .");
    pid_t child = fork();
    if (child == 0)
        _exit(use_read_only(self, "hf-hub:good/vit", "hf-hub:good/other",
                            "config.json of good/other cannot be downloaded into the cache: "));
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    shell(self, "chmod -R u+w .");
    assert_int_equal(code, 0);
}

SCRATCH_TEST(a_damaged_cache_is_mended)
{
    assert_finds(self, "hf-hub:good/vit");
    unlink(below(self, "models--good--vit/blobs/" WEIGHTS)); /* the link leads nowhere */
    assert_finds(self, "hf-hub:good/vit");
    /* A branch that has moved since the cache knew it. */
    static const char old[] = "fedcba9876543210fedcba9876543210fedcba98";
    write_ref(self, old);
    assert_finds(self, "hf-hub:good/vit");
    assert_text_file(below(self, "models--good--vit/refs/main"), COMMIT);
}

/* A ref of 40 characters that leads to weights in another folder. */
SCRATCH_TEST(a_ref_that_leads_out_of_the_cache_is_not_followed)
{
    static const char evil[] = "../../../evill/././././././././././././.";
    char path[ATT_HUB_PATH];
    assert_int_equal(strlen(evil), 40);
    assert_finds(self, "hf-hub:good/vit");
    shell(self, "cp -rL hub/models--good--vit/snapshots/" COMMIT " evill");
    write_ref(self, evil);
    assert_int_equal(find(self, "hf-hub:good/vit", path), ATT_OK);
    assert_string_equal(path, below(self, "models--good--vit/snapshots/" COMMIT "/model.safetensors"));
}

SCRATCH_TEST(nothing_is_written_through_links_in_the_cache)
{
    static const struct {
        const char *name, *folder;
        att_status status; /* ATT_OK: the cache works without the file */
    } cases[] = {
        {"hf-hub:good/vit", "models--good--vit", ATT_ERR_IO},
        {"hf-hub:good/vit", "models--good--vit/blobs", ATT_ERR_IO},
        {"hf-hub:good/vit", "models--good--vit/snapshots", ATT_ERR_IO},
        {"hf-hub:good/vit", "models--good--vit/snapshots/" COMMIT, ATT_ERR_IO},
        {"hf-hub:good/vit", ".locks", ATT_ERR_IO},
        {"hf-hub:good/vit", ".locks/models--good--vit", ATT_ERR_IO},
        {"hf-hub:good/vit", "models--good--vit/refs", ATT_OK},
        {"hf-hub:noconfig/vit", "models--noconfig--vit/.no_exist", ATT_OK},
        {"hf-hub:noconfig/vit", "models--noconfig--vit/.no_exist/" COMMIT, ATT_OK},
    };
    char path[ATT_HUB_PATH];
    require_server();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *folder = cases[i].folder; /* of an empty cache: a link to the folder "mine" outside of it */
        shell(self, "rm -rf hub && mkdir -p mine hub/%s && rmdir hub/%s && ln -s \"$PWD/mine\" hub/%s", folder, folder,
              folder);
        assert_fails(self->context, find(self, cases[i].name, path), cases[i].status, below(self, folder));
        assert_message_has(self, "is a symbolic link, which is not followed for writing: remove it");
        shell(self, "rmdir mine"); /* empty */
    }
    /* The user may link the whole cache, and weights are read through links. */
    shell(self, "rm -rf hub && mkdir mine && ln -s mine hub");
    assert_finds(self, "hf-hub:good/vit");
    shell(self, "cd hub/models--good--vit && mv snapshots kept && ln -s kept snapshots");
    assert_finds(self, "hf-hub:good/vit");
}

SCRATCH_TEST(a_pipe_in_place_of_a_lock_is_refused)
{
    char path[ATT_HUB_PATH];
    require_server();
    shell(self, "mkdir -p hub/.locks/models--good--vit");
    assert_int_equal(mkfifo(below(self, ".locks/models--good--vit/" WEIGHTS ".lock"), 0600), 0);
    alarm(60); /* ends the test if it blocks */
    assert_int_equal(find(self, "hf-hub:good/vit", path), ATT_ERR_IO);
    alarm(0);
    assert_message_has(self, ".lock is not a regular file");
}

static att_status find_good(scratch *self)
{
    char path[ATT_HUB_PATH];
    shell(self, "rm -rf hub");
    return find(self, "hf-hub:good/vit", path);
}

SCRATCH_TEST(lack_of_memory_is_survived)
{
    require_server();
    assert_survives_lack_of_memory(self, find_good);
}

/* --- torchvision -------------------------------------------------------------------------------------------------- */

SCRATCH_TEST(torchvisions_files_are_found_in_the_cache_of_torch)
{
    char path[ATT_HUB_PATH], folder[128], file[256];
    const att_hub_settings settings = settings_of(self);
    snprintf(folder, sizeof folder, "%s/torch", self->folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    static const char *const names[] = {"resnet50.IMAGENET1K_V2", "resnet50", "resnet50.DEFAULT"};
    snprintf(file, sizeof file, "%s/resnet50-11ad3fa6.pth", folder);
    fclose(fopen(file, "w"));
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "torchvision/%s", names[i]);
        assert_int_equal(find_with(self, &settings, name, path), ATT_OK);
        assert_string_equal(path, file);
    }
    static const struct {
        const char *name, *message;
        att_status status;
    } refused[] = {
        {"torchvision/resnet50.IMAGENET1K_V3", "no weights \"IMAGENET1K_V3\"; it has IMAGENET1K_V2 and IMAGENET1K_V1",
         ATT_ERR_NOT_FOUND},
        {"torchvision/resnet18.IMAGENET1K_V2", "it has IMAGENET1K_V1", ATT_ERR_NOT_FOUND},
        {"torchvision/resnt50", "did you mean \"resnet50\"?", ATT_ERR_NOT_FOUND},
        {"torchvision/convolutional", "these are resnet18, resnet34, ", ATT_ERR_NOT_FOUND},
        {"torchvision/", "these are resnet18, resnet34, ", ATT_ERR_NOT_FOUND},
        /* The server has other bytes under this name. */
        {"torchvision/resnet18", "torchvision's resnet18-f37072fd.pth: what the server sent is damaged: its SHA-256",
         ATT_ERR_FORMAT},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_fails(self->context, find_with(self, &settings, refused[i].name, path), refused[i].status,
                     refused[i].message);
    }
    snprintf(file, sizeof file, "%s/resnet18-f37072fd.pth", folder);
    assert_int_equal(size_of(file), -1);
    snprintf(file, sizeof file, "%s/resnet18-f37072fd.pth.lock", folder);
    assert_int_equal(size_of(file), -1);
}

SCRATCH_TEST(a_short_hash_is_enough_for_torchvision)
{
    const att_hub_settings settings = settings_of(self);
    char hash[9], url[128];
    att_hub_session session;
    snprintf(hash, sizeof hash, "%.8s", WEIGHTS);
    snprintf(url, sizeof url, "%s/weights.pth", settings.torch_server);
    att_hub_file file = {
        .shown = "weights", .url = url, .size = SIZE, .kind = ATT_SHA256, .hash = hash, .path = self->path};
    assert_int_equal(att_hub_session_open(self->context, &settings, "weights", &session), ATT_OK);
    assert_int_equal(att_hub_download(&session, &file), ATT_OK);
    assert_int_equal(size_of(self->path), SIZE);
    unlink(self->path);
    hash[7] ^= 1;
    assert_int_equal(att_hub_download(&session, &file), ATT_ERR_FORMAT);
    assert_int_equal(size_of(self->path), -1);
    att_hub_session_close(&session);
}

/* The path of the part must have less than ATT_HUB_PATH bytes; here no such file can be made. */
SCRATCH_TEST(a_path_that_is_too_long_is_refused)
{
    const att_hub_settings settings = settings_of(self);
    const size_t most = ATT_HUB_PATH - 1 - strlen(".incomplete");
    char path[ATT_HUB_PATH] = "";
    att_hub_session session;
    const att_hub_file file = {
        .shown = "weights", .url = "", .size = SIZE, .kind = ATT_SHA256, .hash = WEIGHTS, .path = path};
    assert_int_equal(att_hub_session_open(self->context, &settings, "weights", &session), ATT_OK);
    memset(path, 'p', most);
    assert_int_equal(att_hub_download(&session, &file), ATT_ERR_IO);
    path[most] = 'p';
    assert_fails(self->context, att_hub_download(&session, &file), ATT_ERR_ARGUMENT,
                 "the path of the cache is too long");
    att_hub_session_close(&session);
}

TEST(torchvisions_table_is_in_order)
{
    for (int i = 0; i < att_torchvision_count; i++) {
        const att_torchvision *entry = &att_torchvision_all[i];
        const size_t length = strlen(entry->network);
        assert_int_equal(strncmp(entry->file, entry->network, length), 0);
        const char *dash = strrchr(entry->file, '-');
        assert_true(dash && (dash == entry->file + length || entry->file[length] == '_'));
        assert_int_equal(strspn(dash + 1, "0123456789abcdef"), 8);
        assert_string_equal(dash + 9, ".pth");
        assert_ptr_equal(att_torchvision_of_file(entry->file), entry);
    }
    assert_null(att_torchvision_of_file("resnet50.pth"));
}

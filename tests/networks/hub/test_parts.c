/* Hashes, addresses, names and settings of downloads. */
#include "base/io/scratch.h"

#include <attscope/hub.h>

#include "networks/hub/certificates.h"
#include "networks/hub/digest.h"
#include "networks/hub/hub.h"
#include "networks/hub/name.h"
#include "networks/hub/settings.h"
#include "networks/hub/transport.h"
#include "networks/hub/url.h"

/* --- hashes ------------------------------------------------------------------------------------------------------- */

static void assert_hash(att_digest_kind kind, const char *text, size_t times, size_t piece, const char *expected)
{
    char hash[ATT_DIGEST_TEXT];
    att_digest digest;
    size_t length = strlen(text), size = length * times;
    char *all = malloc(size + 1);
    for (size_t i = 0; i < times; i++)
        memcpy(all + i * length, text, length);
    att_digest_begin(&digest, kind, size);
    for (size_t at = 0; at < size; at += piece)
        att_digest_add(&digest, all + at, size - at < piece ? size - at : piece);
    att_digest_end(&digest, hash);
    assert_string_equal(hash, expected);
    free(all);
}

/* FIPS 180-4's examples, a million letters, and lengths around a block; git hash-object gave the SHA-1. */
TEST(hashes_are_those_of_the_standards)
{
    static const char empty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    static const char million[] = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
    assert_hash(ATT_SHA256, "", 0, 1, empty);
    assert_hash(ATT_SHA256, "abc", 1, 64, abc);
    assert_hash(ATT_SHA256, "a", 1000000, 1 << 16, million);
    assert_hash(ATT_SHA256, "a", 1000000, 63, million);
    assert_hash(ATT_GIT_SHA1, "hello\n", 1, 64, "ce013625030ba8dba906f756967f9e9ca394464a");
    assert_hash(ATT_GIT_SHA1, "", 0, 1, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    assert_hash(ATT_SHA256, "a", 55, 7, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    assert_hash(ATT_SHA256, "a", 56, 7, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
    assert_hash(ATT_SHA256, "a", 64, 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

/* --- addresses ---------------------------------------------------------------------------------------------------- */

TEST(only_plain_addresses_are_parsed)
{
    static const char *const refused[] = {"",
                                          "huggingface.co",
                                          "ftp://a.b",
                                          "file:///etc/passwd",
                                          "https://",
                                          "https:///x",
                                          "https://a@b/",
                                          "https://a:b@c/",
                                          "https://a.b:0/",
                                          "https://a.b:65536/",
                                          "https://a.b:/",
                                          "https://a.b:80x/",
                                          "https://a b/",
                                          "https://a.b/\nX",
                                          "https://a.b/\\x",
                                          "https://a.b\\@c/",
                                          "https://a.b#x",
                                          "https://[::2]/",
                                          "https://a_b/",
                                          "https://\xc3\xa4.de/",
                                          "HTTPS://a.b/"};
    att_origin origin;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (att_url_parse(refused[i], &origin))
            fail_msg("\"%s\" is parsed as %s", refused[i], origin.host);
    assert_true(att_url_parse("https://Cdn-lfs.HF.co/a/b?c=d&e=%20", &origin));
    assert_true(origin.secure);
    assert_string_equal(origin.host, "cdn-lfs.hf.co");
    assert_int_equal(origin.port, 443);
    assert_true(att_url_parse("http://127.0.0.1:8080", &origin));
    assert_false(origin.secure);
    assert_int_equal(origin.port, 8080);
    assert_true(att_url_parse("http://[::1]/x", &origin));
    assert_int_equal(origin.port, 80);
}

static bool is_allowed(const char *endpoint, const char *to)
{
    att_origin a, b;
    assert_true(att_url_parse(endpoint, &a));
    assert_true(att_url_parse(to, &b));
    return att_origin_allowed(&a, &b);
}

TEST(http_is_allowed_within_this_machine_only)
{
    assert_true(is_allowed("https://huggingface.co", "https://cdn-lfs.hf.co"));
    assert_true(is_allowed("http://localhost:1", "http://127.0.0.1:2"));
    assert_true(is_allowed("http://[::1]", "https://a.b"));
    assert_false(is_allowed("https://huggingface.co", "http://localhost"));
    assert_false(is_allowed("http://localhost", "http://a.b"));
    assert_false(is_allowed("http://localhost", "http://localhost.evil.com"));
    assert_false(is_allowed("http://a.b", "http://a.b"));
    assert_false(is_allowed("http://a.b", "http://localhost"));
}

static bool is_same(const char *one, const char *other)
{
    att_origin a, b;
    return att_url_parse(one, &a) && att_url_parse(other, &b) && att_origin_same(&a, &b);
}

TEST(the_same_server_has_scheme_host_and_port)
{
    assert_true(is_same("https://a.b/x", "https://A.b:443/y"));
    assert_false(is_same("https://a.b", "http://a.b:443"));
    assert_false(is_same("https://a.b", "https://a.b:444"));
    assert_false(is_same("https://a.b", "https://a.b.c"));
}

/* --- headers ------------------------------------------------------------------------------------------------------ */

static att_reply reply_of(const char *line)
{
    att_reply reply;
    att_reply_clear(&reply);
    att_reply_add(&reply, line);
    return reply;
}

TEST(headers_are_read_or_left_out)
{
    assert_string_equal(reply_of("ETag: \"abc\"\r\n").etag, "abc");
    assert_string_equal(reply_of("etag:W/\"abc\"").etag, "abc");
    assert_string_equal(reply_of("ETag: \"").etag, "\"");
    assert_string_equal(reply_of("X-Linked-ETag: \"abc\" \r\n").linked_etag, "abc");
    assert_string_equal(reply_of("X-Repo-Commit:  abc\t\r\n").commit, "abc");
    assert_string_equal(reply_of("X-Error-Code: GatedRepo\r\n").error, "GatedRepo");
    assert_int_equal(reply_of("X-Linked-Size: 12\r\n").linked_size, 12);
    assert_int_equal(reply_of("X-Linked-Size: 12 or so\r\n").linked_size, -1);
    assert_int_equal(reply_of("Content-Length: -5\r\n").length, -1);
    assert_int_equal(reply_of("Content-Length: 99999999999999999999\r\n").length, -1);
    assert_int_equal(reply_of("Content-Range: bytes 5-9/10\r\n").range_begin, 5);
    assert_int_equal(reply_of("Content-Range: bytes 5-9/10\r\n").range_total, 10);
    static const char *const wrong[] = {"bytes 5-10/10", "bytes 9-5/10",  "bytes 5-9/*", "bytes -5-9/10",
                                        "5-9/10",        "bytes 5-9/10x", "bytes */10"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[64];
        snprintf(line, sizeof line, "Content-Range: %s\r\n", wrong[i]);
        assert_int_equal(reply_of(line).range_begin, -1);
    }
    char line[300] = "X-Repo-Commit: "; /* too long for a commit */
    memset(line + 15, 'a', 200);
    assert_string_equal(reply_of(line).commit, "");
    assert_string_equal(reply_of("X-Repo-Commit").commit, "");
    const size_t most = sizeof reply_of("").etag - 1;
    memset(line, 'a', sizeof line);
    memcpy(line, "ETag: ", 6);
    line[6 + most] = '\0';
    assert_int_equal(strlen(reply_of(line).etag), most);
    line[6 + most] = 'a';
    line[7 + most] = '\0';
    assert_string_equal(reply_of(line).etag, "");
}

/* --- names -------------------------------------------------------------------------------------------------------- */

SCRATCH_TEST(names_have_a_repository_and_a_revision)
{
    static const struct {
        const char *text, *repository, *revision, *network;
    } cases[] = {
        {"hf-hub:org/name", "org/name", "main", ""},
        {"hf_hub:org/name@v1.0", "org/name", "v1.0", ""},
        {"hf-hub:org/name@refs/pr/3", "org/name", "refs/pr/3", ""},
        {"timm/vit_tiny_patch16_224.augreg_in21k", "timm/vit_tiny_patch16_224.augreg_in21k", "main",
         "vit_tiny_patch16_224.augreg_in21k"},
        {"hf-hub:timm/resnet18.a1_in1k@main", "timm/resnet18.a1_in1k", "main", "resnet18.a1_in1k"},
        {"timm/vit_tiny_patch16_224", "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k", "main",
         "vit_tiny_patch16_224.augreg_in21k_ft_in1k"},
        {"timm/new_network.tag", "timm/new_network.tag", "main", "new_network.tag"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_hub_name name;
        if (att_hub_name_parse(self->context, cases[i].text, &name) != ATT_OK)
            fail_msg("%s: %s", cases[i].text, att_context_message(self->context));
        assert_string_equal(name.repository, cases[i].repository);
        assert_string_equal(name.revision, cases[i].revision);
        assert_string_equal(name.network, cases[i].network);
    }
}

SCRATCH_TEST(names_that_would_leave_the_cache_are_refused)
{
    static const char *const refused[] = {"hf-hub:",          "hf-hub:name",       "hf-hub:/name",
                                          "hf-hub:org/",      "hf-hub:org/a/b",    "hf-hub:../name",
                                          "hf-hub:org/..",    "hf-hub:org/a..b",   "hf-hub:org/a--b",
                                          "hf-hub:-org/name", "hf-hub:org/.name",  "hf-hub:org/n\nb",
                                          "hf-hub:org/n b",   "hf-hub:org/n@",     "hf-hub:org/n@../x",
                                          "hf-hub:org/n@/x",  "hf-hub:org/n@a//b", "hf-hub:org/n@a/../b",
                                          "hf-hub:org/n@a?b", "hf-hub:org/n@.git", "timm/",
                                          "timm/a/b",         "hf-hub:org/n@a@b"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        att_hub_name name;
        if (att_hub_name_parse(self->context, refused[i], &name) != ATT_ERR_ARGUMENT)
            fail_msg("\"%s\" is taken as %s @ %s", refused[i], name.repository, name.revision);
        assert_message_has(self, "is no name of pretrained weights");
    }
    char text[400] = "hf-hub:org/";
    memset(text + 11, 'a', 300);
    att_hub_name name;
    assert_int_equal(att_hub_name_parse(self->context, text, &name), ATT_ERR_ARGUMENT);
}

TEST(files_lie_in_one_folder)
{
    assert_true(att_hub_is_file("model-00001-of-00002.safetensors"));
    assert_false(att_hub_is_file("../x"));
    assert_false(att_hub_is_file(".git"));
    assert_false(att_hub_is_file(""));
    assert_false(att_hub_is_file("a/b"));
    assert_true(att_hub_is_commit("0123456789abcdef0123456789abcdef01234567"));
    assert_false(att_hub_is_commit("0123456789ABCDEF0123456789abcdef01234567"));
    assert_false(att_hub_is_commit("main"));
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

static const char *const variables[] = {"HF_HUB_CACHE",
                                        "HF_HOME",
                                        "HF_ENDPOINT",
                                        "HF_TOKEN",
                                        "HF_TOKEN_PATH",
                                        "HF_HUB_OFFLINE",
                                        "TORCH_HOME",
                                        "XDG_CACHE_HOME",
                                        "HF_HUB_DOWNLOAD_TIMEOUT",
                                        "HF_HUB_DISABLE_IMPLICIT_TOKEN"};

static void clear(const scratch *self)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    setenv("HOME", self->folder, 1);
}

static att_hub_settings settings_of(const scratch *self)
{
    att_hub_settings settings;
    CHECK(self->context, att_hub_settings_read(self->context, &settings));
    return settings;
}

static void assert_path(const scratch *self, const char *path, const char *below)
{
    char expected[256];
    snprintf(expected, sizeof expected, "%s%s", self->folder, below);
    assert_string_equal(path, expected);
}

SCRATCH_TEST(caches_are_where_python_has_them)
{
    clear(self);
    att_hub_settings settings = settings_of(self);
    assert_path(self, settings.cache, "/.cache/huggingface/hub");
    assert_path(self, settings.torch, "/.cache/torch/hub/checkpoints");
    assert_string_equal(settings.endpoint, "https://huggingface.co");
    assert_string_equal(settings.token, "");
    assert_false(settings.offline);
    setenv("XDG_CACHE_HOME", "/x", 1);
    assert_string_equal(settings_of(self).cache, "/x/huggingface/hub");
    assert_string_equal(settings_of(self).torch, "/x/torch/hub/checkpoints");
    setenv("HF_HOME", "~/hf", 1);
    setenv("TORCH_HOME", "/t", 1);
    assert_path(self, settings_of(self).cache, "/hf/hub");
    assert_string_equal(settings_of(self).torch, "/t/hub/checkpoints");
    setenv("HF_HUB_CACHE", "/c", 1);
    assert_string_equal(settings_of(self).cache, "/c");
}

/* Only what lies below the home folder needs it. */
SCRATCH_TEST(a_home_folder_is_not_required)
{
    char path[ATT_HUB_PATH];
    clear(self);
    unsetenv("HOME");
    setenv("HF_HUB_CACHE", self->folder, 1);
    setenv("HF_HUB_OFFLINE", "1", 1);
    assert_string_equal(settings_of(self).cache, self->folder);
    assert_string_equal(settings_of(self).token, "");
    assert_fails(self->context, att_hub_find(self->context, "hf-hub:org/name", path, sizeof path), ATT_ERR_NOT_FOUND,
                 "org/name: not in the cache");
    assert_fails(self->context, att_hub_find(self->context, "torchvision/resnet18", path, sizeof path),
                 ATT_ERR_ARGUMENT, "HOME is not set, and TORCH_HOME names no folder");
    setenv("HF_HUB_CACHE", "~/hub", 1);
    setenv("TORCH_HOME", self->folder, 1);
    assert_fails(self->context, att_hub_find(self->context, "hf-hub:org/name", path, sizeof path), ATT_ERR_ARGUMENT,
                 "HOME is not set, and HF_HUB_CACHE names no folder");
    assert_int_equal(att_hub_find(self->context, "torchvision/resnet18", path, sizeof path), ATT_ERR_NOT_FOUND);
    unsetenv("HF_HUB_CACHE");
    setenv("HF_HOME", "/hf", 1);
    assert_string_equal(settings_of(self).cache, "/hf/hub");
    unsetenv("HF_HUB_OFFLINE");
}

SCRATCH_TEST(the_token_is_one_word)
{
    att_hub_settings settings;
    clear(self);
    setenv("HF_TOKEN_PATH", self->path, 1);
    scratch_write(self, "hf_file\n", 8);
    assert_string_equal(settings_of(self).token, "hf_file");
    setenv("HF_TOKEN", " hf_word\n", 1);
    assert_string_equal(settings_of(self).token, "hf_word");
    setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "yes", 1);
    assert_string_equal(settings_of(self).token, "");
    unsetenv("HF_HUB_DISABLE_IMPLICIT_TOKEN");
    char word[sizeof settings.token + 1];
    memset(word, 'x', sizeof word);
    word[sizeof word - 2] = '\0';
    setenv("HF_TOKEN", word, 1);
    assert_string_equal(settings_of(self).token, word);
    word[sizeof word - 2] = 'x';
    word[sizeof word - 1] = '\0';
    setenv("HF_TOKEN", word, 1);
    assert_fails(self->context, att_hub_settings_read(self->context, &settings), ATT_ERR_ARGUMENT, "too long");
    setenv("HF_TOKEN", "hf\r\nHost: evil", 1);
    assert_fails(self->context, att_hub_settings_read(self->context, &settings), ATT_ERR_ARGUMENT,
                 "HF_TOKEN holds no access token");
}

/* Weights that are cached or public need no token. */
SCRATCH_TEST(a_token_file_that_cannot_be_read_is_remembered)
{
    clear(self);
    setenv("HF_TOKEN_PATH", self->folder, 1);
    assert_string_equal(settings_of(self).token, "");
    assert_non_null(strstr(settings_of(self).token_fault, self->folder));
    setenv("HF_TOKEN_PATH", self->path, 1);
    scratch_write(self, "two words\n", 10);
    assert_string_equal(settings_of(self).token, "");
    assert_non_null(strstr(settings_of(self).token_fault, "holds no access token: expected one word"));
    setenv("HF_TOKEN", "hf_word", 1);
    assert_string_equal(settings_of(self).token, "hf_word");
    assert_string_equal(settings_of(self).token_fault, "");
}

SCRATCH_TEST(endpoints_are_encrypted)
{
    att_hub_settings settings;
    static const char *const refused[] = {"http://huggingface.co", "huggingface.co", "https://a@b", "https://a.b?c"};
    clear(self);
    setenv("HF_ENDPOINT", "https://hub.example.org/", 1);
    assert_string_equal(settings_of(self).endpoint, "https://hub.example.org");
    setenv("HF_ENDPOINT", "http://127.0.0.1:8080", 1);
    assert_string_equal(settings_of(self).endpoint, "http://127.0.0.1:8080");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        setenv("HF_ENDPOINT", refused[i], 1);
        assert_fails(self->context, att_hub_settings_read(self->context, &settings), ATT_ERR_ARGUMENT,
                     "HF_ENDPOINT is");
    }
    unsetenv("HF_ENDPOINT");
    setenv("HF_HUB_OFFLINE", "True", 1);
    assert_true(settings_of(self).offline);
    setenv("HF_HUB_OFFLINE", "0", 1);
    assert_false(settings_of(self).offline);
    setenv("HF_HUB_DOWNLOAD_TIMEOUT", "x", 1);
    assert_int_equal(att_hub_settings_read(self->context, &settings), ATT_ERR_ARGUMENT);
}

/* --- certificates ------------------------------------------------------------------------------------------------- */

SCRATCH_TEST(certificates_are_those_of_the_user_or_of_the_system)
{
    static const char *const variables_of_certificates[] = {"SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
                                                            "SSL_CERT_FILE"};
    const char *const files[] = {"/absent/1", self->path, "/absent/2", NULL}, *const none[] = {"/absent/1", NULL};
    for (int i = 0; i < 4; i++)
        unsetenv(variables_of_certificates[i]);
    scratch_write(self, "x", 1);
    assert_null(att_certificates_find(self->path, files).file); /* libcurl's own file is there */
    assert_ptr_equal(att_certificates_find("/absent", files).file, self->path);
    assert_ptr_equal(att_certificates_find(NULL, files).file, self->path);
    assert_null(att_certificates_find("/absent", none).file);
    assert_null(att_certificates_find("/absent", none).folder);
    for (int i = 0; i < 4; i++) { /* each has precedence over those before it, also if the file does not exist */
        char path[32];
        snprintf(path, sizeof path, "/mine/%d", i);
        setenv(variables_of_certificates[i], path, 1);
        assert_string_equal(att_certificates_find(self->path, files).file, path);
        assert_null(att_certificates_find(self->path, files).folder);
    }
    setenv("SSL_CERT_FILE", "", 1);
    setenv("REQUESTS_CA_BUNDLE", self->folder, 1);
    assert_string_equal(att_certificates_find(self->path, files).folder, self->folder);
    assert_null(att_certificates_find(self->path, files).file);
    for (int i = 0; i < 4; i++)
        unsetenv(variables_of_certificates[i]);
}

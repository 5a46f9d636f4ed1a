#include "base/io/base64.h"

#include "base/io/scratch.h"

/* The examples of RFC 4648, section 10, and all bytes. */
SCRATCH_TEST(bytes_are_encoded_and_decoded)
{
    static const char *const examples[][2] = {{"", ""},
                                              {"f", "Zg=="},
                                              {"fo", "Zm8="},
                                              {"foo", "Zm9v"},
                                              {"foob", "Zm9vYg=="},
                                              {"fooba", "Zm9vYmE="},
                                              {"foobar", "Zm9vYmFy"}};
    uint8_t decoded[1024], all[1000];
    size_t count;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        assert_true(att_base64_decode(examples[i][1], strlen(examples[i][1]), decoded, &count));
        assert_int_equal(count, strlen(examples[i][0]));
        assert_memory_equal(decoded, examples[i][0], count);
    }
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (uint8_t)(i * 7);
    for (size_t size = 990; size <= sizeof all; size++) {
        att_text text = {.context = self->context};
        att_base64_append(&text, all, size);
        assert_true(att_base64_decode(text.data, text.length, decoded, &count));
        assert_int_equal(count, size);
        assert_memory_equal(decoded, all, size);
        att_text_free(&text);
    }
}

SCRATCH_TEST(other_text_is_not_base64)
{
    static const char *const others[] = {
        "Z", "Zg", "Zg=", "Zm9v\n", "Zm9 ", "=g==", "Z===", "Zg=a", "====", "Zg==Zm9v", "Zm8=Zm9v", "Zm-v", "Zm_v"};
    uint8_t decoded[64];
    size_t count;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (att_base64_decode(others[i], strlen(others[i]), decoded, &count))
            fail_msg("\"%s\" is decoded", others[i]);
}

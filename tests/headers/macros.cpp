/* The macros of the public headers, used in C++17 under -Wpedantic. Compiling is the test. */
#include <attscope/attscope.h>
#include <attscope/lab.h>

att_status use_macros(att_context *context)
{
    const size_t columns = 3;
    const att_shape matrix = att_shape_of(2, columns), vector = att_shape_of(int64_t{4});
    static_assert(ATT_VERSION_AT_LEAST(0, 1, 0), "the version of the headers");
    return att_fail(context, ATT_ERR_ARGUMENT, "%d", matrix.rank + vector.rank);
}

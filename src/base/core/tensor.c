#include <stdio.h>
#include <string.h>

#include <attscope/field.h>

#define NAME(name, value, meaning) {ATT_##name, #name, meaning},
static const struct {
    att_status status;
    const char *name, *meaning;
} statuses[] = {ATT_STATUS_LIST(NAME)};
#undef NAME

const char *att_status_name(att_status status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status)
            return statuses[i].name;
    return "ERR_UNKNOWN";
}

const char *att_status_meaning(att_status status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status)
            return statuses[i].meaning;
    return "unknown status";
}

#define DTYPE(name, bytes, text) {bytes, text},
static const struct {
    size_t bytes;
    const char *name;
} dtypes[] = {ATT_DTYPE_LIST(DTYPE)};
#undef DTYPE

size_t att_dtype_size(att_dtype dtype)
{
    return (unsigned)dtype < sizeof dtypes / sizeof *dtypes ? dtypes[dtype].bytes : 0;
}

const char *att_dtype_name(att_dtype dtype)
{
    return (unsigned)dtype < sizeof dtypes / sizeof *dtypes ? dtypes[dtype].name : "unknown";
}

int64_t att_shape_count(att_shape shape)
{
    const int64_t limit = INT64_MAX / 16;
    int64_t count = 1;
    if (shape.rank > ATT_MAX_RANK)
        return -1;
    for (int i = 0; i < shape.rank; i++) {
        int64_t dim = shape.dims[i];
        if (dim < 0 || (dim > 0 && count > limit / dim))
            return -1;
        count *= dim;
    }
    return count;
}

size_t att_field_bytes(const att_field *field)
{
    int64_t count = att_shape_count(field->shape);
    return count < 0 ? 0 : (size_t)count * att_dtype_size(field->dtype);
}

bool att_shape_equal(att_shape a, att_shape b)
{
    return a.rank == b.rank && a.rank <= ATT_MAX_RANK &&
           (a.rank <= 0 || memcmp(a.dims, b.dims, (size_t)a.rank * sizeof *a.dims) == 0);
}

char *att_shape_format(att_shape shape, char *text, size_t size)
{
    if (shape.rank > ATT_MAX_RANK) {
        snprintf(text, size, "of rank %d", shape.rank);
        return text;
    }
    size_t used = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < shape.rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, i ? ", %lld" : "%lld", (long long)shape.dims[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
    return text;
}

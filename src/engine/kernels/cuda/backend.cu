/* The backend "cuda": its memory, its device, and its list of kernels. */
#include <mutex>
#include <thread>

#include "engine/kernels/cuda/cuda.cuh"
#include "engine/kernels/cuda/list.h"

extern "C" {
#include "engine/backend/plugin.h"
}
#include <attscope/version.h>

#include <cstdio>

att_cuda cuda;

att_status att_cuda_check(att_context *context, cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return ATT_OK;
    return att_fail(context, error == cudaErrorMemoryAllocation ? ATT_ERR_MEMORY : ATT_ERR_UNSUPPORTED,
                    "CUDA: %s failed: %s", what, cudaGetErrorString(error));
}

static bool is_narrow(const att_desc *desc)
{
    return !att_desc_present(desc) || desc->dtype != ATT_F64;
}

bool att_cuda_accepts(const att_problem *problem)
{
    for (int i = 0; i < problem->in_count; i++)
        if (!is_narrow(&problem->in[i]))
            return false;
    for (int i = 0; i < problem->out_count; i++)
        if (!is_narrow(&problem->out[i]))
            return false;
    return true;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* Copies to the device travel through pinned memory, in pieces. Several threads fill it, because one alone is slower
 * than the device's bus, each with buffers of its own: while the device reads one, the thread fills the other. */
enum { COPY_THREADS = 8, COPY_BUFFERS = 2 };
static const size_t piece_bytes = (size_t)2 << 20;

struct staging_buffer {
    void *host;
    cudaEvent_t free; /* recorded behind the copy that reads the buffer */
};
static staging_buffer staging[COPY_THREADS][COPY_BUFFERS];
static std::mutex staging_lock;

/* Memory of less than this many bytes is left free for the libraries and the display of errors. */
static const size_t reserved_bytes = (size_t)256 << 20;

static void *cuda_allocate(att_context *context, size_t bytes)
{
    (void)context;
    void *block = nullptr;
    if (cudaMalloc(&block, bytes) != cudaSuccess) {
        cudaGetLastError();
        return nullptr;
    }
    if (cudaMemsetAsync(block, 0, bytes, cuda.stream) == cudaSuccess)
        return block;
    cudaFree(block);
    return nullptr;
}

static void cuda_release(att_context *context, void *block, size_t bytes)
{
    (void)context;
    (void)bytes;
    cudaFree(block); /* waits for the device */
}

/* Copies pieces `thread`, thread + threads, ... */
static void copy_pieces(char *to, const char *from, size_t bytes, int thread, int threads)
{
    int turn = 0;
    for (size_t first = (size_t)thread * piece_bytes; first < bytes; first += (size_t)threads * piece_bytes) {
        size_t size = bytes - first < piece_bytes ? bytes - first : piece_bytes;
        staging_buffer *buffer = &staging[thread][turn];
        turn = (turn + 1) % COPY_BUFFERS;
        cudaEventSynchronize(buffer->free);
        memcpy(buffer->host, from + first, size);
        cudaMemcpyAsync(to + first, buffer->host, size, cudaMemcpyHostToDevice, cuda.stream);
        cudaEventRecord(buffer->free, cuda.stream);
    }
}

static bool is_pinned(const void *host)
{
    cudaPointerAttributes attributes;
    return cudaPointerGetAttributes(&attributes, host) == cudaSuccess && attributes.type == cudaMemoryTypeHost;
}

static void cuda_copy_in(void *block, const void *host, size_t bytes)
{
    std::lock_guard<std::mutex> hold(staging_lock);
    if (is_pinned(host)) {
        cudaMemcpyAsync(block, host, bytes, cudaMemcpyHostToDevice, cuda.stream);
        cudaStreamSynchronize(cuda.stream); /* the caller may change its memory */
        return;
    }
    std::thread others[COPY_THREADS];
    size_t pieces = (bytes + piece_bytes - 1) / piece_bytes;
    int threads = (int)(pieces < COPY_THREADS ? pieces : (size_t)COPY_THREADS),
        most = (int)std::thread::hardware_concurrency();
    threads = most > 0 && most < threads ? most : threads;
    for (int thread = 1; thread < threads; thread++)
        others[thread] = std::thread(copy_pieces, (char *)block, (const char *)host, bytes, thread, threads);
    if (threads > 0)
        copy_pieces((char *)block, (const char *)host, bytes, 0, threads);
    for (int thread = 1; thread < threads; thread++)
        others[thread].join();
}

static void cuda_copy_out(void *host, const void *block, size_t bytes)
{
    cudaMemcpyAsync(host, block, bytes, cudaMemcpyDeviceToHost, cuda.stream);
    cudaStreamSynchronize(cuda.stream);
}

static void cuda_clear(void *block, size_t bytes)
{
    cudaMemsetAsync(block, 0, bytes, cuda.stream);
}

static void cuda_wait(void)
{
    cudaStreamSynchronize(cuda.stream);
}

static size_t cuda_left(const att_context *context)
{
    (void)context;
    size_t left = 0, total = 0;
    if (cudaMemGetInfo(&left, &total) != cudaSuccess)
        return 0;
    return left > reserved_bytes ? left - reserved_bytes : 0;
}

/* Handles of the libraries are used by one thread at a time. */
static std::mutex calls;

static void cuda_enter(void)
{
    calls.lock();
}

static void cuda_leave(void)
{
    calls.unlock();
}

/* --- recordings: CUDA graphs -------------------------------------------------------------------------------------- */

static att_status begin_recording(att_context *context)
{
    return att_cuda_check(context, cudaStreamBeginCapture(cuda.stream, cudaStreamCaptureModeThreadLocal),
                          "beginning a graph");
}

static att_status end_recording(att_context *context, void **recording)
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    *recording = nullptr;
    att_status status = att_cuda_check(context, cudaStreamEndCapture(cuda.stream, &graph), "recording a graph");
    if (status == ATT_OK)
        status = att_cuda_check(context, cudaGraphInstantiate(&executable, graph, 0), "preparing a graph");
    if (graph)
        cudaGraphDestroy(graph);
    if (status == ATT_OK)
        *recording = executable;
    return status;
}

static att_status replay(att_context *context, void *recording)
{
    return att_cuda_check(context, cudaGraphLaunch((cudaGraphExec_t)recording, cuda.stream), "running a graph");
}

static void release_recording(void *recording)
{
    cudaStreamSynchronize(cuda.stream);
    cudaGraphExecDestroy((cudaGraphExec_t)recording);
}

static const att_recorder recorder = {begin_recording, end_recording, replay, release_recording};

static const att_memory memory = {cuda_allocate, cuda_release, cuda_copy_in, cuda_copy_out, cuda_clear, cuda_wait,
                                  cuda_left,     false,        cuda_enter,   cuda_leave,    &recorder};

/* --- starting ----------------------------------------------------------------------------------------------------- */

static att_status open_staging(att_context *context)
{
    char *host = nullptr;
    ATT_TRY(att_cuda_check(context, cudaMallocHost(&host, COPY_THREADS * COPY_BUFFERS * piece_bytes),
                           "allocating pinned memory"));
    for (int i = 0; i < COPY_THREADS * COPY_BUFFERS; i++) {
        staging_buffer *buffer = &staging[i / COPY_BUFFERS][i % COPY_BUFFERS];
        buffer->host = host + (size_t)i * piece_bytes;
        ATT_TRY(att_cuda_check(context, cudaEventCreateWithFlags(&buffer->free, cudaEventDisableTiming),
                               "creating an event"));
    }
    return ATT_OK;
}

static att_status open_libraries(att_context *context)
{
    cuda.workspace_bytes = (size_t)64 << 20;
    ATT_TRY(att_cuda_check(context, cudaMalloc(&cuda.workspace, cuda.workspace_bytes), "allocating a workspace"));
    if (cublasLtCreate(&cuda.blas) != CUBLAS_STATUS_SUCCESS)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "cuBLASLt does not start on this device");
    return ATT_OK;
}

static att_status open_device(att_context *context)
{
    int count = 0, major = 0, minor = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "the backend \"cuda\" finds no NVIDIA GPU: %s",
                        error == cudaSuccess ? "there is none" : cudaGetErrorString(error));
    ATT_TRY(att_cuda_check(context, cudaSetDevice(0), "opening the device"));
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
    if (major < 8)
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "the backend \"cuda\" needs a GPU of compute capability 8.0 or later; this one has %d.%d",
                        major, minor);
    cudaDeviceGetAttribute(&cuda.multiprocessors, cudaDevAttrMultiProcessorCount, 0);
    ATT_TRY(
        att_cuda_check(context, cudaStreamCreateWithFlags(&cuda.stream, cudaStreamNonBlocking), "creating a stream"));
    ATT_TRY(open_staging(context));
    return open_libraries(context);
}

static std::mutex starting;
static bool started;

static att_status att_cuda_start(att_context *context)
{
    std::lock_guard<std::mutex> hold(starting);
    if (started)
        return att_cuda_check(context, cudaSetDevice(0), "opening the device");
    ATT_TRY(open_device(context));
    started = true;
    return ATT_OK;
}

/* --- the backend -------------------------------------------------------------------------------------------------- */

#define DECLARE(name) extern "C" const att_kernel att_cuda_##name;
ATT_CUDA_KERNELS(DECLARE)
#define ADDRESS(name) &att_cuda_##name,
static const att_kernel *const kernels[] = {ATT_CUDA_KERNELS(ADDRESS) nullptr};

/* Groups are as large as the memory for their activations allows: small maps at the end of a network must fill the
 * device, too. */
static const att_grouping grouping = {1 << 21, 1 << 21, 512, (size_t)4 << 30, (size_t)1 << 30, 1};

static const char *version(void)
{
    static char text[64];
    snprintf(text, sizeof text, "cublaslt-%zu", cublasLtGetVersion());
    return text;
}

/* The covariance of the input is computed in f32, which takes longer than a convolution on bf16 tensor cores. */
static const char *const unwanted_patterns[] = {"affine_norm", nullptr};

static const att_backend backend = {"cuda", &memory, kernels, &grouping, version, unwanted_patterns};

extern "C" __attribute__((visibility("default"))) const att_backend_plugin att_backend_plugin_descriptor;
extern "C" __attribute__((visibility("default")))
const att_backend_plugin att_backend_plugin_descriptor = {ATT_VERSION, &backend, att_cuda_start};

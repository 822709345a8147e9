/* One device per process: opened by the first call that needs it, its streams,
 * scratch, the numbers of a step, and what failed.
 *
 * A step may be captured as a CUDA graph (KITH_CUDA_GRAPH=1): whatever lies
 * between two points where the host must wait is a segment; segment i of a step
 * updates the graph of segment i of the step before, whose kernels are the
 * same with other arguments, and is launched as one. */
#include "state.cuh"

#include <dlfcn.h>
#include <mutex>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vector>

namespace gpu
{
struct block {
    void *memory = nullptr;
    size_t bytes = 0;
};

static struct {
    std::recursive_mutex lock;
    bool opened, good;
    cudaStream_t compute;
    unsigned processors;
    numbers *device, *pinned;
    block scratch[SCRATCH_COUNT];
    bool step, capture, capturing;
    size_t segment;
    std::vector<cudaGraphExec_t> graphs;
} self;

/* ---- failure: the first one stays */

static std::mutex failure_lock;
static char failure[512], device_name[300] = "the GPU";
static bool failed_;

void fail(const char *text)
{
    const std::lock_guard<std::mutex> hold(failure_lock);
    if (failed_)
        return;
    snprintf(failure, sizeof failure, "%s", text);
    failed_ = true;
}

bool has_failed()
{
    const std::lock_guard<std::mutex> hold(failure_lock);
    return failed_;
}

const char *failed()
{
    return has_failed() ? failure : nullptr;
}

/* ---- slower ways: the first of each kind stays */

static std::mutex notice_lock;
static struct {
    char text[256];
    bool taken, told;
} notices[SLOW_COUNT];

void took(slow way, const char *format, ...)
{
    const std::lock_guard<std::mutex> hold(notice_lock);
    if (notices[way].taken)
        return;
    va_list list;
    va_start(list, format);
    (void)vsnprintf(notices[way].text, sizeof notices[way].text, format, list);
    va_end(list);
    notices[way].taken = true;
}

const char *notice()
{
    const std::lock_guard<std::mutex> hold(notice_lock);
    for (auto &n : notices) {
        if (!n.taken || n.told)
            continue;
        n.told = true;
        return n.text;
    }
    return nullptr;
}

static const char *advice(cudaError_t code)
{
    switch ((int)code) {
    case cudaErrorECCUncorrectable:
        return "; the device's memory is faulty: see nvidia-smi -q -d ECC";
    case cudaErrorMemoryAllocation:
        return "; lower train.batch or free the device";
    default:
        return "; the process must end to use the device again: see nvidia-smi "
               "and the kernel's log";
    }
}

bool check(cudaError_t code, const char *doing)
{
    if (code == cudaSuccess)
        return true;
    char text[sizeof failure];
    snprintf(text, sizeof text, "%s on %s: %s (CUDA error %d)%s", doing,
             device_name, cudaGetErrorString(code), (int)code, advice(code));
    fail(text);
    return false;
}

void launched(const char *kernel)
{
    check(cudaGetLastError(), kernel);
}

/* ---- the thread's current device */

int device_number()
{
    static const int number = [] {
        const char *const text = getenv("KITH_CUDA_DEVICE");
        return text == nullptr ? 0 : (int)strtoul(text, nullptr, 10);
    }();
    return number;
}

/* A device that nothing has used must not be opened by going back to it: that
 * takes hundreds of MB there. */
static bool is_in_use(int which)
{
#ifndef __CUDACC__
    return emulate::is_in_use(which);
#else
    typedef int (*driver_state)(int which, unsigned *flags, int *active);
    static void *const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    static const driver_state state =
        driver == nullptr
            ? nullptr
            : (driver_state)dlsym(driver, "cuDevicePrimaryCtxGetState");
    unsigned flags = 0;
    int active = 0;
    return state != nullptr && state(which, &flags, &active) == 0 &&
           active != 0;
#endif
}

current::current()
{
    int before;
    if (check(cudaGetDevice(&before), "opening the device") &&
        before != device_number() &&
        check(cudaSetDevice(device_number()), "opening the device") &&
        is_in_use(before))
        theirs_ = before;
}

current::~current()
{
    if (theirs_ >= 0)
        check(cudaSetDevice(theirs_), "leaving the device");
}

/* ---- opening */

/* As nvidia-smi calls it. */
static void learn_name(int which)
{
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, which) == cudaSuccess)
        snprintf(device_name, sizeof device_name, "GPU %d (%s)", which,
                 properties.name);
    else
        (void)cudaGetLastError();
}

static bool open_device()
{
    int many = 0, count = 0;
    void *device = nullptr, *pinned = nullptr;
    const int which = device_number();
    if (!check(cudaGetDeviceCount(&many), "counting devices"))
        return false;
    if (which >= many) {
        fail("KITH_CUDA_DEVICE names a device that is not there");
        return false;
    }
    const char *const graph = getenv("KITH_CUDA_GRAPH");
    self.capture = graph != nullptr && strcmp(graph, "1") == 0;
    const current here;
    if (has_failed() ||
        !check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount,
                                      which),
               "opening the device") ||
        !check(cudaStreamCreateWithFlags(&self.compute, cudaStreamNonBlocking),
               "opening a stream") ||
        !check(cudaMalloc(&device, sizeof(numbers)), "taking memory") ||
        !check(cudaHostAlloc(&pinned, sizeof(numbers), cudaHostAllocPortable),
               "taking pinned memory"))
        return false;
    learn_name(which);
    self.processors = (unsigned)count;
    self.device = (numbers *)device;
    self.pinned = (numbers *)pinned;
    return open_memory() &&
           check(cudaMemsetAsync(device, 0, sizeof(numbers), self.compute),
                 "clearing memory");
}

static void begin_segment();

call::call()
{
    self.lock.lock();
    if (!self.opened) {
        self.opened = true;
        self.good = open_device();
    }
    if (self.good)
        current_.emplace();
    well_ = self.good && !has_failed();
    if (well_ && self.step && self.capture && !self.capturing)
        begin_segment();
}

call::~call()
{
    current_.reset();
    self.lock.unlock();
}

cudaStream_t stream()
{
    return self.compute;
}

unsigned processors()
{
    return self.processors;
}

numbers *found()
{
    return self.device;
}

/* ---- scratch */

void *scratch_of(scratch kind, size_t bytes)
{
    block *const have = &self.scratch[kind];
    if (have->bytes >= bytes && have->memory != nullptr)
        return have->memory;
    end_segment();
    /* Kernels that use the old one may still run. */
    if (!check(cudaStreamSynchronize(self.compute), "waiting"))
        return nullptr;
    check(cudaFree(have->memory), "giving scratch back");
    have->memory = nullptr;
    have->bytes = 0;
    const size_t whole = (bytes + ((size_t)1 << 20)) >> 20 << 20;
    if (!check(cudaMalloc(&have->memory, whole), "taking scratch memory")) {
        have->memory = nullptr;
        return nullptr;
    }
    have->bytes = whole;
    return have->memory;
}

/* ---- steps and their segments */

static void begin_segment()
{
    self.capturing = check(
        cudaStreamBeginCapture(self.compute, cudaStreamCaptureModeThreadLocal),
        "capturing a step");
}

static bool launch_segment(cudaGraph_t graph)
{
    if (self.segment == self.graphs.size())
        self.graphs.push_back(nullptr);
    cudaGraphExec_t *const run = &self.graphs[self.segment++];
    if (*run != nullptr) {
        cudaGraphExecUpdateResultInfo result;
        if (cudaGraphExecUpdate(*run, graph, &result) == cudaSuccess)
            return check(cudaGraphLaunch(*run, self.compute),
                         "launching a step");
        (void)cudaGetLastError(); /* another shape: begin again */
        check(cudaGraphExecDestroy(*run), "dropping a graph");
        *run = nullptr;
    }
    return check(cudaGraphInstantiate(run, graph, 0), "preparing a step") &&
           check(cudaGraphLaunch(*run, self.compute), "launching a step");
}

static void finish_segment()
{
    cudaGraph_t graph = nullptr;
    if (!self.capturing)
        return;
    self.capturing = false;
    if (!check(cudaStreamEndCapture(self.compute, &graph), "capturing a step"))
        return;
    launch_segment(graph);
    check(cudaGraphDestroy(graph), "dropping a graph");
}

/* What the caller waits for or allocates comes first; the next segment begins
 * with the next call of the step. */
void end_segment()
{
    if (self.capturing)
        finish_segment();
}

bool in_step()
{
    return self.step;
}

void forget_numbers()
{
    check(cudaMemsetAsync(self.device, 0, sizeof(numbers), self.compute),
          "clearing memory");
}

bool collect(numbers *out)
{
    end_segment();
    if (has_failed() ||
        !check(cudaMemcpyAsync(self.pinned, self.device, sizeof(numbers),
                               cudaMemcpyDefault, self.compute),
               "reading results") ||
        !check(cudaStreamSynchronize(self.compute), "computing"))
        return false;
    *out = *self.pinned;
    return true;
}

/* Holds the lock until step_end: a step has the device to itself. */
void step_begin()
{
    self.lock.lock();
    const call c;
    if (!c.well())
        return;
    self.step = true;
    self.segment = 0;
    forget_numbers();
}

void step_end(struct kith_found *out)
{
    numbers got;
    *out = (struct kith_found){(double)NAN, (double)NAN, 0, false};
    {
        const call c;
        if (c.well() && self.step && collect(&got)) {
            out->loss = got.loss;
            out->norm = got.norm;
            out->correct = got.correct;
            out->finite = got.bad == 0;
        }
        self.step = false;
    }
    self.lock.unlock();
}

/* ---- may it run here */

typedef int (*nvml_call)();
typedef int (*nvml_count)(unsigned *count);

/* Counted by NVML, which leaves a process able to fork and its children able
 * to use CUDA; cuInit would not. */
static const char *count_devices()
{
    const char *const visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible != nullptr && (*visible == '\0' || *visible == '-'))
        return "CUDA_VISIBLE_DEVICES hides every GPU";
#ifndef __CUDACC__
    int emulated = 0;
    return cudaGetDeviceCount(&emulated) == cudaSuccess ? nullptr : "no GPU";
#else
    if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) == nullptr)
        return "no NVIDIA driver here: libcuda.so.1 does not load";
    void *const nvml = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (nvml == nullptr) /* some containers leave it out */
        return access("/dev/nvidia0", F_OK) == 0 ||
                       access("/dev/dxg", F_OK) == 0
                   ? nullptr
                   : "no GPU: neither NVML nor /dev/nvidia0 is here";
    const nvml_call begin = (nvml_call)dlsym(nvml, "nvmlInit_v2");
    const nvml_call end = (nvml_call)dlsym(nvml, "nvmlShutdown");
    const nvml_count count = (nvml_count)dlsym(nvml, "nvmlDeviceGetCount_v2");
    unsigned devices = 0;
    if (begin == nullptr || end == nullptr || count == nullptr || begin() != 0)
        return "the NVIDIA driver does not answer";
    const int code = count(&devices);
    end();
    return code != 0 || devices == 0 ? "the NVIDIA driver finds no GPU"
                                     : nullptr;
#endif
}

const char *missing()
{
    static std::once_flag once;
    static const char *why;
    std::call_once(once, [] {
        why = count_devices();
        if (why == nullptr)
            why = products_missing();
    });
    return why;
}
} // namespace gpu

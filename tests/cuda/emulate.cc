/* See emulate.h. Fibers live as long as the program and are switched by
 * _setjmp and _longjmp, which leave the signal mask alone. */
#include "emulate.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <csetjmp>
#include <deque>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

namespace emulate
{
place here;
unsigned char *dynamic_shared;

enum state { RUN, BARRIER, EXCHANGE, DONE };
enum { STACK = 256 * 1024, THREADS_MAX = 1024, SHARED_MAX = 228 * 1024 };

struct fiber {
    jmp_buf at;
    ucontext_t first;
    char *stack;
    bool begun;
    state waits;
    place where;
    unsigned mask;
};

static fiber fibers[THREADS_MAX];
static uint64_t handed[THREADS_MAX / 32][32], given[THREADS_MAX / 32][32];
static jmp_buf scheduler;
static ucontext_t scheduler_context;
static unsigned running;
static const std::function<void()> *work;

[[noreturn]] static void end(const char *what)
{
    fprintf(stderr, "emulated kernel: block %u, thread %u: %s\n",
            fibers[running].where.block.x, running, what);
    abort();
}

static void pause(state why)
{
    fiber &f = fibers[running];
    f.waits = why;
    f.where = here;
    if (_setjmp(f.at) == 0)
        _longjmp(scheduler, 1);
    here = fibers[running].where;
}

static void forever()
{
    for (;;) {
        (*work)();
        pause(DONE);
    }
}

static void resume(unsigned index)
{
    fiber &f = fibers[index];
    running = index;
    if (_setjmp(scheduler) != 0)
        return;
    here = f.where;
    if (f.begun)
        _longjmp(f.at, 1);
    f.begun = true;
    f.stack = (char *)mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    getcontext(&f.first);
    f.first.uc_stack.ss_sp = f.stack;
    f.first.uc_stack.ss_size = STACK;
    f.first.uc_link = nullptr;
    makecontext(&f.first, forever, 0);
    swapcontext(&scheduler_context, &f.first);
}

unsigned lane()
{
    return running % 32;
}

void barrier()
{
    pause(BARRIER);
}

const uint64_t *exchange(unsigned mask, uint64_t value)
{
    if (!(mask >> lane() & 1u))
        end("exchanges values under a mask that leaves it out");
    handed[running / 32][lane()] = value;
    fibers[running].mask = mask;
    pause(EXCHANGE);
    return given[running / 32];
}

/* Runs a warp until each thread waits at a barrier or is done. */
static void run_warp(unsigned first, unsigned last)
{
    for (;;) {
        unsigned exchanging = 0;
        for (unsigned i = first; i < last; i++) {
            if (fibers[i].waits == RUN)
                resume(i);
            if (fibers[i].waits == EXCHANGE)
                exchanging |= 1u << i % 32;
        }
        if (exchanging == 0)
            return;
        for (unsigned i = first; i < last; i++) {
            running = i;
            if (fibers[i].waits == EXCHANGE &&
                (fibers[i].mask & ~exchanging) != 0)
                end("waits for lanes of its warp that are elsewhere");
        }
        memcpy(given[first / 32], handed[first / 32], sizeof given[0]);
        for (unsigned i = first; i < last; i++)
            if (fibers[i].waits == EXCHANGE)
                fibers[i].waits = RUN;
    }
}

static void run_block(unsigned threads)
{
    for (;;) {
        unsigned waiting = 0;
        for (unsigned i = 0; i < threads; i += 32)
            run_warp(i, i + 32 < threads ? i + 32 : threads);
        for (unsigned i = 0; i < threads; i++) {
            if (fibers[i].waits == BARRIER) {
                fibers[i].waits = RUN;
                waiting++;
            }
        }
        if (waiting == 0)
            return;
        if (waiting != threads)
            end("some threads have left before a barrier");
    }
}

static bool may_launch();
static void open_memory(bool open);

static void run(dim3 grid, dim3 block, size_t shared,
                const std::function<void()> &kernel)
{
    static std::mutex one;
    const std::lock_guard<std::mutex> lock(one);
    static unsigned char *memory =
        (unsigned char *)aligned_alloc(1024, (SHARED_MAX + 1023) / 1024 * 1024);
    const unsigned threads = block.x * block.y * block.z;
    if (threads == 0 || threads > THREADS_MAX || shared > SHARED_MAX ||
        grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 ||
        grid.z > 65535) {
        fprintf(stderr,
                "emulated launch: %u threads, %zu bytes, grid %u %u %u\n",
                threads, shared, grid.x, grid.y, grid.z);
        abort();
    }
    if (!may_launch())
        return;
    open_memory(true);
    work = &kernel;
    dynamic_shared = memory;
    for (unsigned b = 0; b < grid.x * grid.y * grid.z; b++) {
        /* NaN in every format: what nobody wrote must not be read. */
        memset(memory, 0xff, shared);
        for (unsigned i = 0; i < threads; i++) {
            fibers[i].waits = RUN;
            fibers[i].where = {
                dim3(i % block.x, i / block.x % block.y, i / block.x / block.y),
                dim3(b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y),
                block, grid};
        }
        run_block(threads);
    }
    open_memory(false);
}
} // namespace emulate

static float wide(uint32_t bits)
{
    return __uint_as_float(bits << 16);
}

static uint32_t narrow(float value)
{
    const uint32_t bits = __float_as_uint(value);
    if (value != value)
        return 0x7fffu;
    return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

uint32_t bf16_pair(float low, float high)
{
    return narrow(high) << 16 | narrow(low);
}

/* PTX ISA, fragments of m16n8k16: register r of A holds row lane / 4 + 8 (r %
 * 2), columns 2 (lane % 4) + 8 (r / 2) and the next; register r of B holds
 * column lane / 4, rows 2 (lane % 4) + 8 r and the next. */
void mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    float left[16][16], right[16][8];
    for (int r = 0; r < 4; r++) {
        const uint64_t *all = emulate::exchange(0xffffffffu, a[r]);
        for (int l = 0; l < 32; l++) {
            const int row = l / 4 + 8 * (r % 2), column = l % 4 * 2 + r / 2 * 8;
            left[row][column] = wide((uint32_t)all[l] & 0xffffu);
            left[row][column + 1] = wide((uint32_t)all[l] >> 16);
        }
    }
    for (int r = 0; r < 2; r++) {
        const uint64_t *all = emulate::exchange(0xffffffffu, b[r]);
        for (int l = 0; l < 32; l++) {
            const int row = l % 4 * 2 + 8 * r;
            right[row][l / 4] = wide((uint32_t)all[l] & 0xffffu);
            right[row + 1][l / 4] = wide((uint32_t)all[l] >> 16);
        }
    }
    const int l = (int)emulate::lane();
    for (int i = 0; i < 4; i++) {
        const int row = l / 4 + i / 2 * 8, column = l % 4 * 2 + i % 2;
        for (int k = 0; k < 16; k++)
            d[i] += left[row][k] * right[k][column];
    }
}

static void matrices(uint32_t r[4], const void *row, bool transposed)
{
    const uint64_t *all = emulate::exchange(0xffffffffu, (uintptr_t)row);
    const unsigned l = emulate::lane();
    if ((uintptr_t)row % 16 != 0)
        abort();
    for (unsigned m = 0; m < 4; m++) {
        uint32_t word = 0;
        for (unsigned e = 0; e < 2; e++) {
            const unsigned i = transposed ? l % 4 * 2 + e : l / 4;
            const unsigned j = transposed ? l / 4 : l % 4 * 2 + e;
            const uint16_t *from = (const uint16_t *)(uintptr_t)all[m * 8 + i];
            word |= (uint32_t)from[j] << 16 * e;
        }
        r[m] = word;
    }
    __syncwarp();
}

void load_matrices(uint32_t r[4], const void *row)
{
    matrices(r, row, false);
}

void load_transposed(uint32_t r[4], const void *row)
{
    matrices(r, row, true);
}

/* ---- the runtime: device memory is one region, handed out first fit */

static const size_t region_bytes = (size_t)8 << 30;
static char *region;
static size_t region_used, memory_limit = region_bytes;
static std::map<size_t, size_t> blocks; /* offset -> bytes */
static std::recursive_mutex guard;
static long fails_after = -1, late_queries;
static int fails_with;
static cudaError_t error, lasting;
static unsigned long launches, commands;
static unsigned opened;
static int order;
static std::map<void *, size_t> pinned;
static size_t pinned_bytes, pinnable_bytes;

extern "C" void kith_emulate_fail(long after, int code)
{
    fails_after = after;
    fails_with = code;
    lasting = error = cudaSuccess;
}

extern "C" void kith_emulate_late(long queries)
{
    const std::lock_guard<std::recursive_mutex> lock(guard);
    late_queries = queries;
}

/* LAUNCHES:CODE, for a whole program that is to meet it. */
static void read_failure()
{
    const char *const text = getenv("KITH_EMULATE_FAIL");
    char *end = nullptr;
    if (text == nullptr)
        return;
    const long after = strtol(text, &end, 10);
    if (*end != ':')
        abort();
    kith_emulate_fail(after, (int)strtol(end + 1, nullptr, 10));
}

extern "C" void kith_emulate_memory(size_t bytes)
{
    memory_limit = bytes == 0 ? region_bytes : bytes;
}

extern "C" void kith_emulate_pinnable(size_t bytes)
{
    pinnable_bytes = bytes;
}

extern "C" size_t kith_emulate_pinned(void)
{
    return pinned_bytes;
}

extern "C" unsigned long kith_emulate_launches(void)
{
    return launches;
}

extern "C" unsigned long kith_emulate_commands(void)
{
    return commands;
}

/* KITH_EMULATE_OPEN: tests of host backends that look into vectors directly. */
static bool always_open()
{
    static const bool open = getenv("KITH_EMULATE_OPEN") != nullptr;
    return open;
}

static bool emulate::may_launch()
{
    static std::once_flag once;
    std::call_once(once, read_failure);
    launches++;
    if (fails_after >= 0 && fails_after-- == 0)
        lasting = error = fails_with;
    return lasting == cudaSuccess;
}

static void emulate::open_memory(bool open)
{
    const std::lock_guard<std::recursive_mutex> lock(guard);
    opened += open ? 1 : -1;
    if (always_open() || region_used == 0 || opened != (open ? 1u : 0u))
        return;
    mprotect(region, region_used, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

struct opening {
    opening()
    {
        guard.lock();
        emulate::open_memory(true);
    }
    ~opening()
    {
        emulate::open_memory(false);
        guard.unlock();
    }
};

/* What is still to be done, in order. */
struct command {
    std::function<void()> run;
    long queries;
};
struct emulate_stream {
    std::deque<command> waiting;
    unsigned long told = 0, made = 0;
};
struct emulate_event {
    emulate_stream *stream = nullptr;
    unsigned long after = 0;
};
static emulate_stream default_stream;
static std::vector<emulate_stream *> streams = {&default_stream};

/* Guarded. A command may be to wait for another stream. */
static void carry_out(emulate_stream *stream, unsigned long up_to)
{
    while (stream != nullptr && stream->made < up_to) {
        const command next = stream->waiting.front();
        stream->waiting.pop_front();
        next.run();
        stream->made++;
    }
}

static void carry_out_all()
{
    for (emulate_stream *stream : streams)
        carry_out(stream, stream->told);
}

/* Guarded. `late`: not before something waits for it. */
static void tell(emulate_stream *stream, bool late, std::function<void()> what)
{
    stream = stream == nullptr ? &default_stream : stream;
    stream->told++;
    stream->waiting.push_back({std::move(what), late_queries});
    if (!late && (order == KITH_EMULATE_EARLY || stream->waiting.size() == 1))
        carry_out(stream, stream->told);
}

extern "C" void kith_emulate_order(int when)
{
    const std::lock_guard<std::recursive_mutex> lock(guard);
    carry_out_all();
    order = when;
}

/* A kernel of one device is not launched while another is current. */
static thread_local int chosen;
static std::atomic<int> another{-1};

void emulate::submit(emulate_stream *stream, dim3 grid, dim3 block,
                     size_t shared, const std::function<void()> &kernel)
{
    if (chosen != 0) {
        error = cudaErrorInvalidResourceHandle;
        return;
    }
    commands++;
    if (order == KITH_EMULATE_EARLY) {
        run(grid, block, shared, kernel);
        return;
    }
    const std::lock_guard<std::recursive_mutex> lock(guard);
    tell(stream, true, [=] { run(grid, block, shared, kernel); });
}

static bool is_of_the_device(const void *memory)
{
    return region != nullptr && (const char *)memory >= region &&
           (const char *)memory < region + region_bytes;
}

static cudaError_t answer(cudaError_t code)
{
    if (lasting != cudaSuccess)
        return lasting;
    if (code != cudaSuccess)
        error = code;
    return code;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = getenv("KITH_EMULATE_NONE") == nullptr;
    return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = chosen;
    return answer(cudaSuccess);
}

cudaError_t cudaSetDevice(int device)
{
    chosen = device;
    return answer(cudaSuccess);
}

bool emulate::is_in_use(int device)
{
    return device == 0 || device == another;
}

extern "C" void kith_emulate_choose(int device)
{
    chosen = device;
    another = device;
}

extern "C" int kith_emulate_chosen(void)
{
    return chosen;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int)
{
    snprintf(properties->name, sizeof properties->name, "emulated");
    return answer(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr what, int)
{
    *value = what == cudaDevAttrMultiProcessorCount ? 2 : 9;
    return answer(cudaSuccess);
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    const std::lock_guard<std::recursive_mutex> lock(guard);
    *memory = nullptr;
    if (region == nullptr)
        region =
            (char *)mmap(nullptr, region_bytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes > memory_limit)
        return answer(cudaErrorMemoryAllocation);
    const size_t page = 4096, need = (bytes + page) / page * page;
    size_t at = 0;
    for (const auto &block : blocks) {
        if (block.first - at >= need)
            break;
        at = block.first + block.second;
    }
    if (at + need > memory_limit)
        return answer(cudaErrorMemoryAllocation);
    blocks[at] = need;
    if (at + need > region_used)
        region_used = at + need;
    const int open = always_open() || opened > 0;
    mprotect(region, region_used, PROT_READ | PROT_WRITE);
    memset(region + at, 0xff, need);
    if (!open)
        mprotect(region, region_used, PROT_NONE);
    *memory = region + at;
    return answer(cudaSuccess);
}

cudaError_t cudaFree(void *memory)
{
    const std::lock_guard<std::recursive_mutex> lock(guard);
    if (order != KITH_EMULATE_EARLY)
        carry_out_all();
    if (memory != nullptr &&
        blocks.erase((size_t)((char *)memory - region)) == 0)
        return answer(cudaErrorInvalidValue);
    return answer(cudaSuccess);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned)
{
    const std::lock_guard<std::recursive_mutex> lock(guard);
    const bool room =
        pinnable_bytes == 0 || pinned_bytes + bytes <= pinnable_bytes;
    *memory =
        room ? aligned_alloc(4096, (bytes + 4096) / 4096 * 4096) : nullptr;
    if (*memory == nullptr)
        return answer(cudaErrorMemoryAllocation);
    pinned[*memory] = bytes;
    pinned_bytes += bytes;
    return answer(cudaSuccess);
}

cudaError_t cudaFreeHost(void *memory)
{
    const std::lock_guard<std::recursive_mutex> lock(guard);
    if (order != KITH_EMULATE_EARLY)
        carry_out_all();
    if (memory != nullptr) {
        pinned_bytes -= pinned[memory];
        pinned.erase(memory);
    }
    free(memory);
    return answer(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t bytes,
                            cudaMemcpyKind, cudaStream_t stream)
{
    const std::lock_guard<std::recursive_mutex> lock(guard);
    const bool out = is_of_the_device(source) && !is_of_the_device(target);
    const bool in = !is_of_the_device(source) && is_of_the_device(target);
    const bool late = order == KITH_EMULATE_EARLY  ? late_queries > 0 && out
                      : order == KITH_EMULATE_LATE ? true
                                                   : !in;
    commands++;
    tell(stream, late, [=] {
        const opening open;
        if (lasting == cudaSuccess)
            memmove(target, source, bytes);
    });
    return answer(cudaSuccess);
}

cudaError_t cudaMemsetAsync(void *target, int byte, size_t bytes,
                            cudaStream_t stream)
{
    const std::lock_guard<std::recursive_mutex> lock(guard);
    commands++;
    tell(stream, order != KITH_EMULATE_EARLY, [=] {
        const opening open;
        if (lasting == cudaSuccess)
            memset(target, byte, bytes);
    });
    return answer(cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    const std::lock_guard<std::recursive_mutex> lock(guard);
    *stream = new emulate_stream;
    streams.push_back(*stream);
    return answer(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    const std::lock_guard<std::recursive_mutex> lock(guard);
    carry_out(stream, stream->told);
    return answer(cudaSuccess);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *found,
                                     const void *memory)
{
    const std::lock_guard<std::recursive_mutex> lock(guard);
    *found = {is_of_the_device(memory) ? cudaMemoryTypeDevice
                                       : cudaMemoryTypeUnregistered,
              0};
    return answer(cudaSuccess);
}

extern "C" void *kith_emulate_allocate(size_t bytes)
{
    void *memory;
    (void)cudaMalloc(&memory, bytes);
    return memory;
}

extern "C" void *kith_emulate_stream(void)
{
    cudaStream_t stream;
    (void)cudaStreamCreateWithFlags(&stream, 0);
    return stream;
}

extern "C" void kith_emulate_copy(void *stream, void *target,
                                  const void *source, size_t bytes)
{
    (void)cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault,
                          (cudaStream_t)stream);
}

extern "C" void kith_emulate_synchronise(void *stream)
{
    (void)cudaStreamSynchronize((cudaStream_t)stream);
}

/* What follows in the stream must find it done: now, where all is. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned)
{
    const std::lock_guard<std::recursive_mutex> lock(guard);
    emulate_stream *const other = event->stream;
    const unsigned long after = event->after;
    if (order == KITH_EMULATE_EARLY)
        carry_out(other, after);
    else if (other != nullptr && other->made < after)
        tell(stream, true, [=] { carry_out(other, after); });
    return answer(cudaSuccess);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = new emulate_event;
    return answer(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return answer(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    const std::lock_guard<std::recursive_mutex> lock(guard);
    event->stream = stream == nullptr ? &default_stream : stream;
    event->after = event->stream->told;
    return answer(cudaSuccess);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    const std::lock_guard<std::recursive_mutex> lock(guard);
    emulate_stream *const stream = event->stream;
    if (lasting == cudaSuccess && stream != nullptr &&
        stream->made < event->after && stream->waiting.front().queries-- > 0)
        return cudaErrorNotReady;
    carry_out(stream, event->after);
    return answer(cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    const std::lock_guard<std::recursive_mutex> lock(guard);
    carry_out(event->stream, event->after);
    return answer(cudaSuccess);
}

cudaError_t cudaGetLastError()
{
    const cudaError_t last = lasting != cudaSuccess ? lasting : error;
    error = cudaSuccess;
    return last;
}

const char *cudaGetErrorString(cudaError_t code)
{
    switch (code) {
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorECCUncorrectable:
        return "uncorrectable ECC error encountered";
    case cudaErrorIllegalAddress:
        return "an illegal memory access was encountered";
    default:
        return "an error of the emulation";
    }
}

/* Capturing runs things at once, so replaying must not. */
cudaError_t cudaStreamBeginCapture(cudaStream_t, int)
{
    return answer(cudaSuccess);
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph)
{
    *graph = (cudaGraph_t)&region;
    return answer(cudaSuccess);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *run, cudaGraph_t,
                                 unsigned long long)
{
    *run = (cudaGraphExec_t)&region;
    return answer(cudaSuccess);
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t, cudaGraph_t,
                                cudaGraphExecUpdateResultInfo *)
{
    return answer(cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t)
{
    return answer(cudaSuccess);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t)
{
    return answer(cudaSuccess);
}

cudaError_t cudaGraphDestroy(cudaGraph_t)
{
    return answer(cudaSuccess);
}

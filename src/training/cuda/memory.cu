/* Memory. What is not shared lies on the device. A shared vector is pinned
 * memory of the host with a mirror on the device:
 *
 *   the backend writes it   the mirror, in stream order; then the copy-out
 *                           stream brings it home while training goes on, and
 *                           `settled` says when. Later reads use the mirror.
 *   the host writes it      `arrived` lets the copy-in stream fetch what has
 *                           come; a merge waits for that and reads the mirror.
 *                           What was not fetched is read across the bus.
 *
 * Where the device has no memory for the mirror both go across the bus: slower,
 * and nothing is lost. No other want of memory can be gone on from, for it
 * comes in the middle of a step.
 *
 * A span is what was written or fetched in one go: one slot of a peer. */
#include "state.cuh"

#include <map>
#include <mutex>
#include <vector>

namespace gpu
{
enum direction { NOWHERE, OUT, IN };

struct span {
    size_t offset, bytes;
    direction way;
    cudaEvent_t done; /* of the copy out or in */
    uint64_t turn;    /* of the copy out: one is made after the other */
};

struct shared_block {
    size_t bytes;
    char *mirror; /* NULL: not needed yet, or no room for it */
    bool refused; /* there was no room */
    std::vector<span> spans;
    uint64_t turns; /* copies out, so far */
};

/* Guards the table; never held while waiting for the device. */
static std::mutex table_lock;
static std::map<uintptr_t, shared_block> table;
static std::map<uintptr_t, size_t> device_blocks;
static cudaStream_t copy_out, copy_in;
static cudaEvent_t order;
static char *bounce; /* pinned, for read and write */
static const size_t bounce_bytes = (size_t)1 << 22;

bool open_memory()
{
    void *memory = nullptr;
    const bool good =
        check(cudaStreamCreateWithFlags(&copy_out, cudaStreamNonBlocking),
              "opening a stream") &&
        check(cudaStreamCreateWithFlags(&copy_in, cudaStreamNonBlocking),
              "opening a stream") &&
        check(cudaEventCreateWithFlags(&order, cudaEventDisableTiming),
              "opening a stream") &&
        check(cudaHostAlloc(&memory, bounce_bytes, cudaHostAllocPortable),
              "taking pinned memory");
    bounce = (char *)memory;
    return good;
}

static void *alloc_shared(size_t bytes)
{
    void *memory = nullptr;
    if (cudaHostAlloc(&memory, bytes,
                      cudaHostAllocPortable | cudaHostAllocMapped) !=
        cudaSuccess) {
        (void)cudaGetLastError();
        return nullptr;
    }
    memset(memory, 0, bytes);
    const std::lock_guard<std::mutex> hold(table_lock);
    table[(uintptr_t)memory] = {bytes, nullptr, false, {}, 0};
    return memory;
}

void *alloc(size_t bytes, bool shared)
{
    const call c;
    void *memory = nullptr;
    if (!c.well() || bytes > SIZE_MAX / 2)
        return nullptr;
    end_segment();
    const size_t whole = bytes < 64 ? 64 : (bytes + 63) / 64 * 64;
    if (shared)
        return alloc_shared(whole);
    if (cudaMalloc(&memory, whole) != cudaSuccess) {
        (void)cudaGetLastError();
        return nullptr;
    }
    check(cudaMemsetAsync(memory, 0, whole, stream()), "clearing memory");
    return memory;
}

static bool release_shared(void *memory)
{
    shared_block gone;
    {
        const std::lock_guard<std::mutex> hold(table_lock);
        const auto at = table.find((uintptr_t)memory);
        if (at == table.end())
            return false;
        gone = at->second;
        table.erase(at);
    }
    check(cudaStreamSynchronize(copy_out), "waiting");
    check(cudaStreamSynchronize(copy_in), "waiting");
    for (const span &s : gone.spans)
        check(cudaEventDestroy(s.done), "giving memory back");
    check(cudaFree(gone.mirror), "giving memory back");
    check(cudaFreeHost(memory), "giving memory back");
    return true;
}

void release(void *memory)
{
    const call c;
    if (memory == nullptr)
        return;
    end_segment();
    if (c.well())
        check(cudaStreamSynchronize(stream()), "waiting");
    if (!release_shared(memory))
        check(cudaFree(memory), "giving memory back");
}

/* The block that holds the address, with table_lock held; NULL: not shared. */
static shared_block *block_of(const void *memory, size_t *offset)
{
    auto after = table.upper_bound((uintptr_t)memory);
    if (after == table.begin())
        return nullptr;
    --after;
    *offset = (uintptr_t)memory - after->first;
    return *offset < after->second.bytes ? &after->second : nullptr;
}

static span *span_of(shared_block *block, size_t offset)
{
    for (span &s : block->spans)
        if (offset >= s.offset && offset < s.offset + s.bytes)
            return &s;
    return nullptr;
}

/* The span that begins at `offset`, made where it is not. */
static span *span_at(shared_block *block, size_t offset, size_t bytes)
{
    for (span &s : block->spans) {
        if (s.offset == offset) {
            s.bytes = bytes;
            return &s;
        }
    }
    span made = {offset, bytes, NOWHERE, nullptr, 0};
    if (!check(cudaEventCreateWithFlags(&made.done, cudaEventDisableTiming),
               "opening a stream"))
        return nullptr;
    block->spans.push_back(made);
    return &block->spans.back();
}

/* What is sent may be written in pieces, a span each, and is out when the last
 * of them is. */
static const span *last_out(const shared_block *block)
{
    const span *last = nullptr;
    for (const span &s : block->spans)
        if (s.way == OUT && (last == nullptr || s.turn > last->turn))
            last = &s;
    return last;
}

/* Where an address stands in the table, which is locked meanwhile. */
struct held {
    const std::lock_guard<std::mutex> hold{table_lock};
    size_t offset = 0;
    shared_block *const block; /* NULL: not shared */
    explicit held(const void *memory) : block(block_of(memory, &offset))
    {
    }
};

static bool mirror_of(shared_block *block)
{
    void *memory = nullptr;
    if (block->mirror == nullptr && !block->refused) {
        const cudaError_t code = cudaMalloc(&memory, block->bytes);
        block->refused = code == cudaErrorMemoryAllocation;
        if (block->refused)
            (void)cudaGetLastError();
        else if (!check(code, "taking memory for what is exchanged"))
            return false;
        block->mirror = (char *)memory;
    }
    return block->mirror != nullptr;
}

bool of_the_host(const void *memory)
{
    const held at(memory);
    const span *const s =
        at.block == nullptr ? nullptr : span_of(at.block, at.offset);
    return at.block != nullptr && (s == nullptr || s->way != OUT);
}

const void *readable(const void *memory, size_t bytes)
{
    const held at(memory);
    if (at.block == nullptr)
        return memory;
    span *const s = span_of(at.block, at.offset);
    if (s == nullptr || s->way == NOWHERE)
        return memory;
    if (at.offset + bytes > s->offset + s->bytes) {
        if (s->way == OUT) {
            end_segment();
            check(cudaStreamWaitEvent(stream(), last_out(at.block)->done, 0),
                  "waiting");
        }
        return memory;
    }
    if (s->way == IN) {
        end_segment();
        check(cudaStreamWaitEvent(stream(), s->done, 0), "waiting");
    }
    return at.block->mirror == nullptr ? memory : at.block->mirror + at.offset;
}

void *writable(void *memory, size_t bytes)
{
    const held at(memory);
    if (at.block == nullptr)
        return memory;
    end_segment();
    const bool mirrored = mirror_of(at.block);
    span *const s = span_at(at.block, at.offset, bytes);
    /* The last copy of it must be out before it changes. */
    if (s != nullptr && s->way != NOWHERE)
        check(cudaStreamWaitEvent(stream(), s->done, 0), "waiting");
    return mirrored ? at.block->mirror + at.offset : memory;
}

void *changeable(void *memory, size_t bytes)
{
    /* Before writable, which takes all of it for written by the device. */
    const void *const from = readable(memory, bytes);
    void *const to = writable(memory, bytes);
    if (to != from)
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream()),
              "fetching a shared vector");
    return to;
}

void wrote(void *memory, size_t bytes)
{
    const held at(memory);
    span *const s =
        at.block == nullptr ? nullptr : span_at(at.block, at.offset, bytes);
    if (s == nullptr || has_failed())
        return;
    s->way = OUT;
    s->turn = ++at.block->turns;
    if (at.block->mirror == nullptr) { /* it was written there already */
        check(cudaEventRecord(s->done, stream()), "ordering a copy");
        return;
    }
    check(cudaEventRecord(order, stream()), "ordering a copy");
    check(cudaStreamWaitEvent(copy_out, order, 0), "ordering a copy");
    check(cudaMemcpyAsync(memory, at.block->mirror + at.offset, bytes,
                          cudaMemcpyDefault, copy_out),
          "copying a snapshot out");
    check(cudaEventRecord(s->done, copy_out), "ordering a copy");
}

bool settled(const void *shared, bool wait)
{
    cudaEvent_t done = nullptr;
    {
        const held at(shared);
        const span *const s =
            at.block == nullptr ? nullptr : span_of(at.block, at.offset);
        if (s == nullptr || s->way != OUT || has_failed())
            return true;
        done = last_out(at.block)->done;
    }
    const cudaError_t code =
        wait ? cudaEventSynchronize(done) : cudaEventQuery(done);
    if (code == cudaErrorNotReady)
        return false;
    check(code, "copying a snapshot out");
    return true;
}

void arrived(const void *shared, size_t bytes)
{
    const current here;
    const held at(shared);
    if (at.block == nullptr || bytes == 0 || has_failed() ||
        !mirror_of(at.block))
        return;
    span *const s = span_at(at.block, at.offset, bytes);
    if (s == nullptr)
        return;
    s->way = IN;
    /* Nothing reads what was here before: see of_the_host. */
    check(cudaMemcpyAsync(at.block->mirror + at.offset, shared, bytes,
                          cudaMemcpyDefault, copy_in),
          "fetching a received model");
    check(cudaEventRecord(s->done, copy_in), "ordering a copy");
}

void copy(size_t n, void *target, const void *source)
{
    const call c;
    const size_t bytes = n * sizeof(float);
    if (!c.well() || n == 0)
        return;
    const bool waits = of_the_host(source);
    if (waits)
        end_segment();
    const void *const from = readable(source, bytes);
    void *const to = writable(target, bytes);
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream()),
          "copying");
    wrote(target, bytes);
    if (waits)
        check(cudaStreamSynchronize(stream()), "copying");
}

void clear(size_t n, void *x)
{
    const call c;
    const size_t bytes = n * sizeof(float);
    if (!c.well() || n == 0)
        return;
    check(cudaMemsetAsync(writable(x, bytes), 0, bytes, stream()),
          "clearing memory");
    wrote(x, bytes);
}

void read(size_t n, const void *x, double *out)
{
    const call c;
    for (size_t i = 0; i < n; i++)
        out[i] = (double)NAN;
    if (!c.well() || n == 0)
        return;
    end_segment();
    const char *const from = (const char *)readable(x, n * sizeof(float));
    const size_t most = bounce_bytes / sizeof(float);
    for (size_t at = 0; at < n; at += most) {
        const size_t count = n - at < most ? n - at : most;
        const float *const values = (const float *)(void *)bounce;
        if (!check(cudaMemcpyAsync(bounce, from + at * sizeof(float),
                                   count * sizeof(float), cudaMemcpyDefault,
                                   stream()),
                   "reading") ||
            !check(cudaStreamSynchronize(stream()), "reading"))
            return;
        for (size_t i = 0; i < count; i++)
            out[at + i] = (double)values[i];
    }
}

void write(size_t n, const double *in, void *x)
{
    const call c;
    if (!c.well() || n == 0)
        return;
    end_segment();
    char *const to = (char *)writable(x, n * sizeof(float));
    const size_t most = bounce_bytes / sizeof(float);
    for (size_t at = 0; at < n; at += most) {
        const size_t count = n - at < most ? n - at : most;
        float *const values = (float *)(void *)bounce;
        for (size_t i = 0; i < count; i++)
            values[i] = (float)in[at + i];
        if (!check(cudaMemcpyAsync(to + at * sizeof(float), bounce,
                                   count * sizeof(float), cudaMemcpyDefault,
                                   stream()),
                   "writing") ||
            !check(cudaStreamSynchronize(stream()), "writing"))
            return;
    }
    wrote(x, n * sizeof(float));
}
} // namespace gpu

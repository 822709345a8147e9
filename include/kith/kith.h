/* libkith: a training loop of yours becomes a peer.
 *
 *   struct kith_options options = {.size = sizeof options};
 *   kith_peer *peer = kith_open("peer.yaml", vectors, count, &options,
 *                               error, sizeof error);
 *   for (...) {
 *       a step of your own on the vectors
 *       if (kith_step(peer, loss, 1000) == KITH_OVER)
 *           break;
 *   }
 *   kith_close(peer, error, sizeof error);
 *
 * peer.yaml is that of `kith peer`; the experiment that it names has
 * `model: {kind: program}`. Vectors stay yours: kith reads and writes them
 * within kith_open(), kith_step(), kith_wait() and kith_close() alone, and none
 * of these keeps what `error` points to.
 *
 * Threads: one handle, one thread at a time, else the call that comes second
 * fails; several handles in a process have nothing in common. A handle that was
 * closed is known as such, until kith_open() returns the same one again. After
 * fork() it is the parent's: in the child, where kith's sockets are closed and
 * its keys wiped, every call says that it is not open. SIGPIPE is ignored from
 * the first kith_open() on.
 *
 * Stability: within soname libkith.so.0 symbols are added, none is taken away
 * or changed. Structs begin with their size and grow at their end.
 *
 * Test: tests/integration/test_python.sh, test_libkith.sh (names, sizes,
 * values: libkith.abi) */
#ifndef KITH_KITH_H
#define KITH_KITH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kith_handle kith_peer;

enum { KITH_FLOAT32, KITH_BFLOAT16, KITH_FLOAT16 };

/* `count` values at `data`. All peers have the same ones in the same order, and
 * BUFFERs behind all others: running statistics, which are averaged plainly
 * whatever the method does with what is trained. */
enum { KITH_TRAINED, KITH_BUFFER };
struct kith_vector {
    void *data;
    uint64_t count;
    uint32_t dtype; /* KITH_FLOAT32, ... */
    uint32_t role;  /* KITH_TRAINED, KITH_BUFFER */
};

enum { KITH_MEMORY_HOST, KITH_MEMORY_CUDA };
enum { KITH_START_AUTO, KITH_START_OWN, KITH_START_ADOPT };
struct kith_options {
    uint32_t size; /* of this struct */
    /* AUTO: the vectors as they are at a peer's first start; at any later one,
     * which its save folder counts, those of its own last save, with its count
     * of steps, and then a neighbour's model where one is there. ADOPT: the
     * neighbour's at the first start, too. OWN: the vectors as they are; no
     * save is read, and steps count from 0. */
    uint32_t start;
    /* Lines for a log, on a thread of kith's; NULL: none. */
    void (*log)(void *user, const char *line);
    void *user;
    /* A hash of what is not averaged and has to be the same everywhere, as the
     * weights that a fine-tuning leaves as they are; 0: nothing. Peers of
     * another one refuse each other. */
    uint64_t base;
    /* Where all of the vectors lie. CUDA: on the device that kith-cuda.so
     * computes on (KITH_CUDA_DEVICE), each at a multiple of its value's size,
     * with `train.backend: cuda` in the experiment; what kith_read_from() names
     * lies there, too. `stream` (a cudaStream_t; NULL: the default one) is the
     * one whose steps change them: kith reads behind what it was told before a
     * call, and it waits for what kith writes. Without the module the
     * error says where it was looked for, beside libkith.so.0 first. Test:
     * unit/test_outside_device.c, integration/test_python_device.sh, on an
     * emulation: no GPU has run it. */
    uint32_t memory;
    uint32_t reserved; /* 0 */
    void *stream;
};

/* What a call says. Below 0 is a failure; kith_close() says which. */
enum {
    KITH_GOES_ON = 0, /* the next step is yours */
    KITH_LATE = 1,    /* time is up: go on with kith_wait() */
    KITH_OVER = 2,    /* the share of steps is done, or the run has ended */
    KITH_FAILED = -1
};

/* peer_file NULL: the place that `kith lab` has given to this process, by
 * model.run; it waits until all of the lab are ready.
 * NULL: failed, and `error` says what was attempted, found and to do. Listens
 * and dials from then on; it does not wait for neighbours. NULL options: all
 * zero. */
kith_peer *kith_open(const char *peer_file, const struct kith_vector *vectors,
                     uint32_t count, const struct kith_options *options,
                     char *error, size_t error_size);

/* A step of yours is done; `loss`: the mean of its batch, NaN if not known.
 * What is due is carried out. Methods that wait for their exchanges, and the
 * first steps where a neighbour's model is adopted or `wait:` counts members,
 * are waited for, up to timeout_ms. A call without an exchange costs a lock and
 * at most a wake-up, whatever the vectors' size. */
int kith_step(kith_peer *peer, double loss, uint32_t timeout_ms);
/* Each step that comes is of so many examples, until the next such call; 0: of
 * train.batch, as at first. Rows of the run count them. 0, or KITH_FAILED. */
int kith_samples(kith_peer *peer, uint32_t samples);
/* Goes on where a call was late, and before the first step; after KITH_OVER it
 * answers neighbours that still train. Late is a run that ends, too, until its
 * last save is written. */
int kith_wait(kith_peer *peer, uint32_t timeout_ms);

/* No step will come for a while, as of an evaluation that takes minutes: what
 * is under way ends, up to timeout_ms; KITH_LATE: again. From KITH_GOES_ON to
 * the next kith_step() or kith_wait() neighbours are told that this peer is
 * busy, and ask others; the vectors stay as they are. Rounds go on without
 * it. KITH_OVER: the same, of a peer whose share is done; or the run has
 * ended. */
int kith_pause(kith_peer *peer, uint32_t timeout_ms);

/* For arrays that nothing changes in place: the vectors' values are those at
 * data[i] now, of as many values and the type that vector i was opened with.
 * They stay yours, and as they are, until the next such call, kith_close() or
 * until kith writes the vectors, which it does where they were opened: from
 * then on their values are there again. NULL: they are there now. Nothing is
 * copied. 0, or KITH_FAILED. */
int kith_read_from(kith_peer *peer, const void *const *data, uint32_t count);
/* How often kith has written the vectors; 0 where the handle is not open. */
uint64_t kith_writes(kith_peer *peer);

/* Beside a checkpoint of yours, between two steps: kith's own state and the
 * vectors as they are become the file `path`: count of steps, what the method
 * keeps (an outer momentum), and a hash over all. Written anew and renamed, so
 * that a crash or a full disk leaves the file before. KITH_GOES_ON: it is on
 * the disk, and the vectors are as they were, but where a late step has ended.
 * KITH_LATE: that one is late still after timeout_ms; again. KITH_FAILED:
 * `error` says why, and the peer goes on.
 * Test: integration/test_python_saves.sh */
int kith_save(kith_peer *peer, const char *path, uint32_t timeout_ms,
              char *error, size_t error_size);
/* kith_open() that goes on from such a file: the vectors become its own, and no
 * neighbour's model is adopted unless options.start is KITH_START_ADOPT. Its
 * hash, experiment, rank and sizes are checked; what does not fit is refused by
 * name. Where all peers load files of the same step, a method whose steps wait
 * for their rounds goes on to the same bytes as without the interruption. */
kith_peer *kith_load(const char *peer_file, const char *path,
                     const struct kith_vector *vectors, uint32_t count,
                     const struct kith_options *options, char *error,
                     size_t error_size);

/* How good the vectors are now, by a test of the caller's: `accuracy` a share,
 * 0 to 1, or NaN; `loss` or NaN. A lab keeps it as a row of the peer's. Where
 * it has given this process the averaged model instead, for which no step is to
 * be done (the first kith_wait() is over), of that. 0, or KITH_FAILED. */
int kith_report(kith_peer *peer, double loss, double accuracy);

/* One JSON object: rank, peers, steps, exchanges, waits, seconds; of vectors of
 * halves on the host "rounded" and "rounded_norm", the sum of what they are
 * less what averages had made them, and the square root of that of squares:
 * exchanges alone would leave the sum over all peers as it was. Returns its
 * length without the zero; >= size: it was cut. */
size_t kith_stats(kith_peer *peer, char *json, size_t size);

/* Ends in order: in a lab neighbours are answered first until their shares are
 * done, where one's own is; exchanges under way end, neighbours are told, the
 * model is saved in the peer file's folder. 0, with a warning in `error` where
 * there is one, as of a peer that has exchanged nothing, and else ""; or
 * KITH_FAILED with what had failed, then or before. The handle is gone. NULL is
 * none. */
int kith_close(kith_peer *peer, char *error, size_t error_size);

/* ---- The same training in virtual time: all peers of an experiment in this
 * process, with its topology, links and faults, as `kith sim` runs built-in
 * models. The file has `model: {kind: program}` and says what a step takes
 * (`compute: {step: 5ms}`). Same file, same steps: same trace hash.
 * Everything is called on the caller's thread, within kith_simulate(); what is
 * not 0 ends the run, and nothing but end() is called after it. */
struct kith_simulation {
    uint32_t size; /* of this struct */
    uint32_t setting_count;
    const char *experiment; /* the file */
    /* (setting_count) "gossip.every=4", over the file's. */
    const char *const *settings;
    const char *folder; /* of the run database; NULL: none is written */
    uint64_t count;     /* values of a peer's vector */
    uint64_t buffers;   /* the last of them are KITH_BUFFER */
    void *user;         /* handed to all of these */
    /* Peer `rank` begins; again when it restarts after a crash. Its vector,
     * (count) float32 at first values that all peers share, is 64-aligned,
     * yours, and lies there until end(): it is trained and averaged in place.
     * NULL: it failed. */
    float *(*begin)(void *user, uint32_t rank);
    /* One step of its training, in place. *loss comes as NaN, not known: the
     * mean of its batch goes there. */
    int (*step)(void *user, uint32_t rank, uint64_t step, double *loss);
    void (*end)(void *user, uint32_t rank); /* it crashes, or all is over */
    /* How good these (count) values are; accuracy NaN where there is none. Of
     * the average 20 times on the way (`evaluate:` of the file), of each
     * peer at the end. NULL: nobody knows. */
    int (*evaluate)(void *user, const float *values, double *loss,
                    double *accuracy);
    /* About five times a second: the share of steps that is done (NaN where a
     * time ends the run), virtual time, wall time. May be NULL. */
    int (*progress)(void *user, double share, double virtual_s, double wall_s);
    /* Where the file has no compute.step: 1 measures one, of a peer 0 of its
     * own that begins, steps for two seconds, and ends. The run database keeps
     * it; the run is then a function of what was measured. 0 refuses. */
    uint32_t calibrates;
    uint32_t reserved;
};

/* Runs to the end of the experiment. `json`: the summary, as `kith sim --json`
 * prints it; a size of 4096 holds it. 0, or KITH_FAILED with what was
 * attempted, found and to do in `error`.
 * Test: unit/test_simulate.c, integration/test_simulate.sh */
int kith_simulate(const struct kith_simulation *simulation, char *json,
                  size_t json_size, char *error, size_t error_size);

/* The build, as `kith --version` prints it. */
const char *kith_version(void);

#ifdef __cplusplus
}
#endif

#endif

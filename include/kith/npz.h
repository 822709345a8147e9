/* Writing NumPy's .npz: a zip of .npy arrays, stored without compression, so
 * that anybody's NumPy opens it.
 *
 * Arrays are laid out when the file is made, on room that is taken from the
 * disk at once; their elements are then written in any order, and what is not
 * written is 0. The file appears under its name when it is whole, or not at
 * all. The same elements give the same bytes.
 *
 * Source  numpy.lib.format, version 1; PKWARE's APPNOTE.TXT 6.3.
 * Test    unit/test_npz.c, integration/test_dump.sh. */
#ifndef KITH_NPZ_H
#define KITH_NPZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"

#define KITH_NPZ_ARRAYS_MAX 16u
#define KITH_NPZ_RANK_MAX 4u
/* Of a whole file: offsets of a plain zip have 32 bits. */
#define KITH_NPZ_BYTES_MAX UINT32_MAX

struct kith_npz_array {
    const char *name;                  /* up to 16 characters, kept */
    uint64_t sizes[KITH_NPZ_RANK_MAX]; /* (rank), C order */
    unsigned rank;                     /* >= 1 */
    bool wide;                         /* float64, else float32 */
};

struct kith_npz;

/* Makes PATH.partial with all arrays at 0. path is kept.
 * error: KITH_FILE_ERROR_BYTES. KITH_ELIMIT: larger than KITH_NPZ_BYTES_MAX,
 * and the words say how large; KITH_ENOSPC: the disk has no room for it;
 * others as kith_file_error. */
KITH_MUST_CHECK enum kith_err
kith_npz_create(const char *path, const struct kith_npz_array *arrays,
                unsigned count, struct kith_npz **npz, char *error);
/* Elements [first, first + count) of arrays[index]. An error sticks: commit
 * tells it. Cost: a system call for each 4096 elements. */
void kith_npz_write(struct kith_npz *npz, unsigned index, uint64_t first,
                    size_t count, const double *values);
/* Sums, directory, rename; closed whatever the answer. Cost: reads it once. */
KITH_MUST_CHECK enum kith_err kith_npz_commit(struct kith_npz *npz,
                                              char *error);
/* Nothing is left of it. NULL is allowed. */
void kith_npz_abandon(struct kith_npz *npz);

#endif

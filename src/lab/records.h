/* What a peer's process tells the launcher: records of fixed size over a pipe.
 *
 *   [version, kind, peer, incarnation, time_ns, field...]
 *
 * in msgpack, zeros behind it; time_ns since the common start. The fields of
 * each kind stand in tables of records.c, those of a ROW in kith/series.def. A
 * record is one atomic pipe write (512 bytes, under POSIX's PIPE_BUF), so a
 * killed writer leaves whole records behind it. The reader trusts nothing:
 * whatever does not decode ends that peer.
 * Test: unit/test_lab_rows.c. */
#ifndef KITH_LAB_RECORDS_H
#define KITH_LAB_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/data_store.h"
#include "kith/journal.h"
#include "kith/node.h"
#include "kith/rundb.h"
#include "kith/types.h"

#define LAB_RECORD_BYTES 512u
#define LAB_RECORD_VERSION 8u
/* Longer lines are cut; terminator included. */
#define LAB_TEXT_BYTES 360u

/* X(NAME): append only. */
#define LAB_RECORDS(X)                                                         \
    X(READY)   /* everything is open: waiting for `start` */                   \
    X(ROW)     /* one point of the series */                                   \
    X(MARK)    /* one line of the trace */                                     \
    X(LINE)    /* one line for people */                                       \
    X(FINAL)   /* the last one: how it ended */                                \
    X(SCORE)   /* from an evaluation: the averaged model */                    \
    X(JOURNAL) /* a part of the journal */                                     \
    X(PIECES)  /* where its data came from */                                  \
    X(QUIET)   /* its share is done; has it exchanges under way? */

enum lab_record_kind {
#define KITH_X(name) LAB_RECORD_##name,
    LAB_RECORDS(KITH_X)
#undef KITH_X
        LAB_RECORD_KINDS
};

struct lab_ready {
    uint64_t dim;     /* of the model */
    uint64_t buffers; /* the last values of a program's */
};

struct lab_final {
    enum kith_err err; /* what kith_peer_run returned */
    bool finished, interrupted, saved;
    uint64_t dropped;          /* records that found the pipe full */
    struct kith_speed speed;   /* over the run */
    uint32_t points, left_out; /* of its curve, on the way */
    uint32_t rows;             /* of the test set; 0: all */
    char text[LAB_TEXT_BYTES]; /* the error, "" */
};

struct lab_score {
    uint64_t step;  /* mean over the saves it was made of */
    uint32_t peers; /* how many there were */
    double loss, accuracy, consensus_distance, correlation;
};

struct lab_part {
    uint32_t part; /* 0, 1, ... of this incarnation */
    uint32_t size; /* 1 to KITH_JOURNAL_PART_BYTES */
    uint8_t bytes[KITH_JOURNAL_PART_BYTES];
};

struct lab_record {
    enum lab_record_kind kind;
    kith_id peer; /* the sender; a ROW's peer is the same */
    uint32_t incarnation;
    kith_ns time_ns;
    union {
        struct lab_ready ready;
        struct kith_row row;
        struct kith_mark mark;
        char line[LAB_TEXT_BYTES];
        struct lab_final final;
        struct lab_score score;
        struct lab_part journal;
        struct kith_piece_totals pieces;
        bool quiet; /* none */
    } as;
};

/* Cannot fail: text is cut and its control characters become spaces. */
void kith_lab_record_pack(const struct lab_record *record,
                          uint8_t bytes[LAB_RECORD_BYTES]);
/* KITH_EVERSION: another version. KITH_EPARSE: anything else that
 * kith_lab_record_pack() would not have written. */
KITH_MUST_CHECK enum kith_err
kith_lab_record_unpack(const uint8_t bytes[LAB_RECORD_BYTES],
                       struct lab_record *record);

#endif

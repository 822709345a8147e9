/* Files that a run goes on from: a head, a body of any length, hashes of both.
 * Written to PATH.partial, then published: PATH becomes PATH.previous, the new
 * one PATH. Read with suspicion: nothing of a body is given out before all of
 * it has been held against its hash. Of one machine's layout. */
#ifndef KITH_SIM_SAVE_FILE_H
#define KITH_SIM_SAVE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kith/err.h"
#include "kith/limits.h"

/* The hash of a sequence of bytes, however it was divided, that goes on. */
#define SIM_CHAIN_BLOCK 4096u
struct sim_chain {
    uint64_t hash, bytes;
    uint8_t block[SIM_CHAIN_BLOCK];
};
void sim_chain_start(struct sim_chain *chain);
void sim_chain_add(struct sim_chain *chain, const void *bytes, size_t size);
uint64_t sim_chain_hash(const struct sim_chain *chain);

#define SIM_SAVE_VERSION 4u
struct sim_save_head {
    char magic[16];
    uint32_t version, word; /* word: 0x01020304, as this machine has it */
    uint32_t ranks, rank;
    uint64_t build, experiment; /* hashes */
    uint64_t events;            /* before the save */
    int64_t time_ns;
    uint64_t trace; /* its hash then */
    uint64_t log_bytes, log_hash;
    uint64_t body_bytes, body_hash;
    char database[KITH_PATH_BYTES_MAX]; /* "": there was none */
    uint64_t hash;                      /* of all before it */
};

#define SIM_SAVE_PATH_BYTES (KITH_PATH_BYTES_MAX + 48)
#define SIM_SAVE_WHY_BYTES 256

struct sim_save_writer {
    FILE *file;
    struct sim_chain chain;
    int code; /* errno of the first failure; 0: none */
    char path[SIM_SAVE_PATH_BYTES], partial[SIM_SAVE_PATH_BYTES + 16];
};
/* 0, or errno. What fails later is kept for finish. */
int sim_save_write_open(struct sim_save_writer *writer, const char *path);
/* `arg` a writer; for kith_archive.move. */
bool sim_save_write(void *arg, void *bytes, size_t size);
/* On the disk, beside what it will replace; else gone, and errno. The head's
 * magic, sizes and hashes are filled in. */
int sim_save_write_finish(struct sim_save_writer *writer,
                          struct sim_save_head *head);
/* One of the two, after finish. What cannot be published leaves the files as
 * they were, and is gone; errno. */
int sim_save_publish(const struct sim_save_writer *writer);
void sim_save_abandon(const struct sim_save_writer *writer);
/* It was published, and another rank's could not be: the one before is the last
 * one again. */
void sim_save_withdraw(const struct sim_save_writer *writer);

struct sim_save_reader {
    FILE *file;
    uint64_t left; /* of the body */
};
/* The head alone; KITH_ENOENT: there is no such file; KITH_EPARSE,
 * KITH_EVERSION and what the system says, with a phrase in `why`
 * (SIM_SAVE_WHY_BYTES). */
KITH_MUST_CHECK enum kith_err
sim_save_head_read(const char *path, struct sim_save_head *head, char *why);
/* All of it is whole, and its body is read from the beginning. */
KITH_MUST_CHECK enum kith_err sim_save_read_open(struct sim_save_reader *reader,
                                                 const char *path,
                                                 struct sim_save_head *head,
                                                 char *why);
bool sim_save_read(void *arg, void *bytes, size_t size);
void sim_save_read_close(struct sim_save_reader *reader);

#endif

/* The log of a run as a file: what is put is written a part at a time, and read
 * again by a run that goes on. */
#ifndef KITH_SIM_SAVE_LOG_H
#define KITH_SIM_SAVE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/save_file.h"

#define SIM_LOG_PAGE_BYTES 65536u

struct sim_save_log {
    int fd;                 /* -1: none; locked: nobody else has it */
    struct sim_chain chain; /* of all that was put */
    uint64_t written;       /* bytes in the file */
    uint8_t *buffer;        /* (capacity) the rest of them */
    size_t used, capacity;
    bool is_given_up;
    uint64_t at; /* while it is read: the page's first byte */
    size_t page_used, page_size;
    uint8_t page[SIM_LOG_PAGE_BYTES];
};

/* Made where it is missing. 0, or errno; EWOULDBLOCK: somebody else has it. */
int sim_save_log_open(struct sim_save_log *log, const char *path);
void sim_save_log_close(struct sim_save_log *log);
/* What cannot be written now waits. false: for too long, and nothing is put any
 * more. */
bool sim_save_log_put(struct sim_save_log *log, const void *bytes, size_t size);
/* All of it is on the disk; 0, or errno. */
int sim_save_log_sync(struct sim_save_log *log);
/* The first bytes of it, as many as the head says: are they those of the save?
 * The chain is theirs then. With a phrase in `why` (SIM_SAVE_WHY_BYTES). */
KITH_MUST_CHECK enum kith_err
sim_save_log_check(struct sim_save_log *log, const struct sim_save_head *head,
                   char *why);
/* Reads on, up to byte `end`; false: there are not so many, and the rest is
 * zeros. */
bool sim_save_log_get(struct sim_save_log *log, uint64_t end, void *bytes,
                      size_t size);
/* Bytes that were read. */
uint64_t sim_save_log_read(const struct sim_save_log *log);
/* What stands behind byte `end` is gone, and what is put stands there; 0, or
 * errno. */
int sim_save_log_cut(struct sim_save_log *log, uint64_t end);

#endif

/* The open database, shared by store.c and reopen.c. */
#ifndef KITH_SRC_STORE_PRIVATE_H
#define KITH_SRC_STORE_PRIVATE_H

#include <sqlite3.h>

#include "kith/store.h"

enum statement { ROW, MARK, FAULT, VERDICT, SUMMARY, RUN, STATEMENT_COUNT };

struct kith_store {
    sqlite3 *database;
    sqlite3_stmt *prepared[STATEMENT_COUNT];
    kith_ns begun_ns; /* of the transaction */
    uint32_t rows;    /* in it; 0: none is open */
    enum kith_err err;
    char path[KITH_PATH_BYTES_MAX];
    char error[KITH_STORE_ERROR_BYTES];
};

/* The first failure is kept and rolled back. */
enum kith_err store_stick(struct kith_store *store, const char *what);
enum kith_err store_exec(struct kith_store *store, const char *sql,
                         const char *what);
/* Every statement of the table. */
enum kith_err store_prepare(struct kith_store *store);
void store_free(struct kith_store *store);
/* A row of the table run. */
enum kith_err store_run(struct kith_store *store, const char *key,
                        const char *format, ...) KITH_PRINTF(3, 4);

#endif

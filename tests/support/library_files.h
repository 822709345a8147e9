/* Two peers of a program's, each other's neighbours on this machine: their keys
 * and files in a folder that goes at the end. */
#ifndef KITH_TESTS_LIBRARY_FILES_H
#define KITH_TESTS_LIBRARY_FILES_H

enum { LIBRARY_PEERS = 2 };

/* FOLDER/peer-RANK.yaml, whose experiment "calls" has models of `dim` values
 * and ends after `steps`; saves go to FOLDER/save-RANK. */
struct library_files {
    char folder[64];
};
void library_files_make(struct library_files *files, unsigned dim,
                        unsigned steps);
void library_files_write(const struct library_files *files, const char *name,
                         const char *text);
void library_files_remove(const struct library_files *files);

#endif

/* Parts of the program that are loaded at run time, because they need libraries
 * that not every machine has: shared libraries of one symbol, a struct of
 * functions.
 *
 * One is looked for in this order, and the first that exists is the one:
 *   the file that the variable names   nothing else is tried
 *   the folder of libkith.so.0         where that is what was loaded
 *   LIBRARY/kith                       an installation of it
 *   the folder of the program          a build folder, or a folder unpacked
 *   PROGRAM/../lib/kith                an installation, wherever it was moved
 *   the library folder that configure was told
 *
 * A file is loaded only if all of it is there: a mapped file that ends too
 * early would end the program. */
#ifndef KITH_MODULE_H
#define KITH_MODULE_H

#include <stdbool.h>
#include <stddef.h>

struct kith_module {
    const char *file;     /* "kith-cuda.so" */
    const char *variable; /* of the environment: a file in its place */
    const char *symbol;
    const char *build; /* what makes one: "build it with ..." */
    bool is_global;    /* libraries that it loads look for its symbols */
};

#define KITH_MODULE_PATH_BYTES 1152u
/* The file that would be loaded, `path` of KITH_MODULE_PATH_BYTES; false: there
 * is none, `why` says where it was looked for. */
bool kith_module_find(const struct kith_module *module, char *path, char *why,
                      size_t size);
/* Loads it: what its symbol holds (NULL: no such symbol), and its path; false:
 * why not, in a line. */
bool kith_module_load(const struct kith_module *module, void **library,
                      const void **symbol, char *path, char *why, size_t size);
/* What was loaded is not what it should be. */
void kith_module_unload(void *library);

#endif

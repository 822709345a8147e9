/* Finding, checking and loading what is loaded at run time. See kith/module.h.
 */
#define _GNU_SOURCE /* dladdr, readlink */
#include "kith/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/limits.h"

#ifndef KITH_LIBRARY_FOLDER
#define KITH_LIBRARY_FOLDER "/usr/local/lib/kith"
#endif

_Static_assert(KITH_MODULE_PATH_BYTES >= KITH_PATH_BYTES_MAX + 32,
               "a folder and a file");

/* Something that lies where this code does. */
static const char anchor = 0;

static bool there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Cuts a file's path down to its folder, without a last '/'. */
static bool cut(char *path)
{
    char *const last = strrchr(path, '/');
    if (last == NULL)
        return false;
    *last = '\0';
    return true;
}

/* false: unknown, as below. */
static bool program_folder(char *folder, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", folder, size - 1);
    if (length <= 0 || (size_t)length >= size - 1)
        return false;
    folder[length] = '\0';
    return cut(folder);
}

/* Of libkith.so.0, where this code is part of it and of no program. */
static bool library_folder(char *folder, size_t size)
{
    Dl_info found;
    if (dladdr(&anchor, &found) == 0 || found.dli_fname == NULL ||
        strlen(found.dli_fname) >= size)
        return false;
    memcpy(folder, found.dli_fname, strlen(found.dli_fname) + 1);
    const char *const name = strrchr(folder, '/');
    return name != NULL && strstr(name, ".so") != NULL && cut(folder);
}

static const struct {
    bool (*folder)(char *folder, size_t size);
    const char *below;
} places[] = {{library_folder, ""},
              {library_folder, "/kith"},
              {program_folder, ""},
              {program_folder, "/../lib/kith"}};

bool kith_module_find(const struct kith_module *module, char *path, char *why,
                      size_t size)
{
    char folder[KITH_PATH_BYTES_MAX];
    const char *const told = getenv(module->variable);
    if (told != NULL && *told != '\0') {
        (void)snprintf(path, KITH_MODULE_PATH_BYTES, "%s", told);
        if (there(path))
            return true;
        (void)snprintf(why, size, "%s names %s, which is not there",
                       module->variable, told);
        return false;
    }
    size_t at = (size_t)snprintf(
        why, size, "no %s: %s, or name the file in %s; looked in %s",
        module->file, module->build, module->variable, KITH_LIBRARY_FOLDER);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!places[i].folder(folder, sizeof folder))
            continue;
        (void)snprintf(path, KITH_MODULE_PATH_BYTES, "%s%s/%s", folder,
                       places[i].below, module->file);
        if (there(path))
            return true;
        if (at < size)
            at += (size_t)snprintf(why + at, size - at, ", %s%s", folder,
                                   places[i].below);
    }
    (void)snprintf(path, KITH_MODULE_PATH_BYTES, "%s/%s", KITH_LIBRARY_FOLDER,
                   module->file);
    return there(path);
}

static bool within(uint64_t offset, uint64_t bytes, uint64_t size)
{
    return offset <= size && bytes <= size - offset;
}

/* Reads exactly these bytes of the file. */
static bool fetch(FILE *file, uint64_t offset, void *into, size_t bytes)
{
    return offset <= INT64_MAX && fseek(file, (long)offset, SEEK_SET) == 0 &&
           fread(into, 1, bytes, file) == bytes;
}

/* Is it a shared library of 64 bits, and is all that its headers name within
 * the file? The table of sections stands at the end of what linkers write. */
static bool whole(FILE *file)
{
    Elf64_Ehdr header;
    if (fseek(file, 0, SEEK_END) != 0)
        return false;
    const long end = ftell(file);
    if (end < 0 || !fetch(file, 0, &header, sizeof header))
        return false;
    const uint64_t size = (uint64_t)end;
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN ||
        header.e_phentsize != sizeof(Elf64_Phdr) ||
        !within(header.e_shoff, (uint64_t)header.e_shnum * header.e_shentsize,
                size))
        return false;
    for (uint64_t i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr part;
        if (!fetch(file, header.e_phoff + i * sizeof part, &part,
                   sizeof part) ||
            !within(part.p_offset, part.p_filesz, size))
            return false;
    }
    return true;
}

static bool check_file(const char *path, char *why, size_t size)
{
    FILE *const file = fopen(path, "rb");
    if (file == NULL) {
        (void)snprintf(why, size, "%s cannot be read", path);
        return false;
    }
    const bool good = whole(file);
    (void)fclose(file);
    if (!good)
        (void)snprintf(why, size,
                       "%s is damaged: not a whole shared library; build or "
                       "install it again",
                       path);
    return good;
}

bool kith_module_load(const struct kith_module *module, void **library,
                      const void **symbol, char *path, char *why, size_t size)
{
    if (!kith_module_find(module, path, why, size) ||
        !check_file(path, why, size))
        return false;
    *library =
        dlopen(path, RTLD_NOW | (module->is_global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (*library == NULL) {
        const char *const text = dlerror();
        (void)snprintf(why, size, "%s does not load: %s", path,
                       text == NULL ? "no reason given" : text);
        return false;
    }
    *symbol = dlsym(*library, module->symbol);
    return true;
}

void kith_module_unload(void *library)
{
    (void)dlclose(library);
}

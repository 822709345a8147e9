/* The folder of a run's saves, and of runs that were killed. See kith/lab.h.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kith/lab.h"

#define PREFIX "kith-lab-"
/* Between mkdtemp and flock a folder looks abandoned: leave young ones. */
#define STALE_SECONDS 60
/* Entries of $TMPDIR looked at. */
#define ENTRIES_MAX 10000

static bool ends_in(const char *name, const char *ending)
{
    const size_t length = strlen(name), tail = strlen(ending);
    return length >= tail && strcmp(name + length - tail, ending) == 0;
}

/* Our own names only, one level deep: nobody else can write there. Of a folder
 * that is kept go what writes that were cut short have left, and it itself
 * where nothing else is in it. */
static void remove_folder(int base_fd, const char *name, bool keep)
{
    const int fd =
        openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (entries == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *e = readdir(entries); e != NULL; e = readdir(entries))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            (!keep || ends_in(e->d_name, ".partial")))
            unlinkat(fd, e->d_name, 0);
    closedir(entries);
    unlinkat(base_fd, name, AT_REMOVEDIR);
}

/* Ours, a folder, not young, and nobody holds its lock. */
static bool is_abandoned(int base_fd, const char *name)
{
    struct stat status;
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0 ||
        fstatat(base_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
        time(NULL) - status.st_mtime < STALE_SECONDS)
        return false;
    const int fd =
        openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    const bool free_now = flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return free_now;
}

static void remove_abandoned(const char *base)
{
    DIR *entries = opendir(base);
    if (entries == NULL)
        return;
    struct dirent *e = readdir(entries);
    for (int i = 0; e != NULL && i < ENTRIES_MAX; i++) {
        if (is_abandoned(dirfd(entries), e->d_name))
            remove_folder(dirfd(entries), e->d_name, false);
        e = readdir(entries);
    }
    closedir(entries);
}

static enum kith_err open_named(struct kith_lab_folder *folder,
                                const char *named, char *error)
{
    /* Whole, for the processes of model.run stand in another folder. */
    char *whole = NULL;
    int why = 0;
    if ((mkdir(named, 0700) != 0 && errno != EEXIST) ||
        (whole = realpath(named, NULL)) == NULL)
        why = errno;
    /* Room for the names of saves below it. */
    else if (strlen(whole) + 64 >= sizeof folder->path)
        why = ENAMETOOLONG;
    if (why == 0) {
        folder->lock_fd = open(named, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        why = folder->lock_fd < 0 ? errno : 0;
    }
    if (why == 0 && flock(folder->lock_fd, LOCK_EX | LOCK_NB) != 0 &&
        errno == EWOULDBLOCK) {
        close(folder->lock_fd);
        free(whole);
        snprintf(error, KITH_LAB_ERROR_BYTES,
                 "the saves in %.300s belong to a kith lab that is running; "
                 "wait for it, or end it",
                 named);
        return KITH_EBUSY;
    }
    if (why == 0)
        memcpy(folder->path, whole, strlen(whole) + 1);
    free(whole);
    if (why == 0)
        return KITH_OK;
    snprintf(error, KITH_LAB_ERROR_BYTES,
             "cannot make the folder %.300s for saves: %s; choose another with "
             "--save",
             named, strerror(why));
    return why == ENOSPC ? KITH_ENOSPC : KITH_EPERM;
}

enum kith_err kith_lab_folder_open(struct kith_lab_folder *folder,
                                   const char *named, char *error)
{
    folder->lock_fd = -1;
    if (named != NULL)
        return open_named(folder, named, error);
    const char *base = getenv("TMPDIR");
    if (base == NULL || base[0] == 0)
        base = "/tmp";
    remove_abandoned(base);
    const int length = snprintf(folder->path, sizeof folder->path,
                                "%s/" PREFIX "XXXXXX", base);
    /* Room for the names of saves below it. */
    const bool fits = length > 0 && (size_t)length + 64 < sizeof folder->path;
    if (fits && mkdtemp(folder->path) != NULL) {
        folder->lock_fd =
            open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder->lock_fd >= 0)
            (void)flock(folder->lock_fd, LOCK_EX | LOCK_NB);
        return KITH_OK;
    }
    const int why = fits ? errno : ENAMETOOLONG;
    snprintf(error, KITH_LAB_ERROR_BYTES,
             "cannot make a private folder for saves in %s: %s; set "
             "TMPDIR to a folder with room that you may write",
             base, strerror(why));
    folder->path[0] = 0;
    return why == ENOSPC ? KITH_ENOSPC : KITH_EPERM;
}

void kith_lab_folder_close(struct kith_lab_folder *folder)
{
    if (folder->path[0] == 0)
        return;
    remove_folder(AT_FDCWD, folder->path, folder->keep);
    if (folder->lock_fd >= 0)
        close(folder->lock_fd);
    folder->path[0] = 0;
}

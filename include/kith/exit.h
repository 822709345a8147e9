/* Exit codes of `kith`, the same for every command; scripts may rely on them.
 * Documented for people in docs/kith.1. */
#ifndef KITH_EXIT_H
#define KITH_EXIT_H

enum kith_exit {
    KITH_EXIT_OK = 0,         /* it ran to its end, every assertion held */
    KITH_EXIT_FAILED = 1,     /* an assertion failed, or it did not complete */
    KITH_EXIT_USAGE = 2,      /* the command line */
    KITH_EXIT_EXPERIMENT = 3, /* the experiment or peer file, a checkpoint */
    KITH_EXIT_DATA = 4,       /* the data set is missing or malformed */
    KITH_EXIT_WRITE = 5,      /* cannot write: folder, permission, disk full */
    KITH_EXIT_NETWORK = 6,    /* an address is busy or cannot be reached */
    KITH_EXIT_KEYS = 7,       /* key files, certificates */
    KITH_EXIT_RESOURCES = 8,  /* memory, processes, descriptors, device */
    KITH_EXIT_ALONE = 9,      /* a peer that exchanged nothing with anybody */
    KITH_EXIT_INTERRUPTED = 130, /* Ctrl-C or SIGTERM; results are kept */
};

#endif

/* What this build is: its results belong to it, to the last bit. */
#ifndef KITH_BUILD_H
#define KITH_BUILD_H

/* Version, compiler and options, one line. */
const char *kith_build(void);

#endif

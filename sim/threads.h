/* Shares of one loop on threads that live for it. */
#ifndef KITH_SIM_THREADS_H
#define KITH_SIM_THREADS_H

/* share(context, i) for each i below `shares`, SIM_THREADS_MAX at most: the
 * first on this thread, each other on one of its own. A thread that cannot be
 * had leaves its share to this one. */
void sim_share_out(unsigned shares, void (*share)(void *context, unsigned i),
                   void *context);

#endif

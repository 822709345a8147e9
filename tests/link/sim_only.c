/* Goal: the simulator runs the floors base to sim without libuv. Method: this
 * program holds all of those archives, whole, and is linked without -luv; that
 * it exists is the proof. check_link.sh looks at what it loads. */
#include <stdio.h>

#include "kith/node.h"
#include "kith/topology.h"

int main(void)
{
    const struct kith_topology_kind *const kind = kith_topology_find("ring");
    printf("%s: %s\n", kind->name, kith_mark_name(KITH_MARK_STEP));
    return 0;
}

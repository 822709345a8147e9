/* What every page carries inside it; compiled in, so that `kith report` needs
 * no file beside the program. */
#ifndef KITH_RESULTS_REPORT_ASSETS_H
#define KITH_RESULTS_REPORT_ASSETS_H

#include <stddef.h>

struct kith_asset {
    const char *bytes; /* no terminator */
    size_t size;
};

struct kith_asset kith_asset_dygraph_script(void);
struct kith_asset kith_asset_dygraph_style(void);
struct kith_asset kith_asset_dygraph_licence(void);
struct kith_asset kith_asset_page_script(void);
struct kith_asset kith_asset_page_style(void);

#endif

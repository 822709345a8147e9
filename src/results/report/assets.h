/* What every page carries inside it, and its queries; compiled in, so that
 * `kith report` needs no file beside the program. */
#ifndef KITH_RESULTS_REPORT_ASSETS_H
#define KITH_RESULTS_REPORT_ASSETS_H

#include "kith/asset.h"

struct kith_asset kith_asset_dygraph_script(void);
struct kith_asset kith_asset_dygraph_style(void);
struct kith_asset kith_asset_dygraph_licence(void);
struct kith_asset kith_asset_page_script(void);
struct kith_asset kith_asset_page_style(void);
struct kith_asset kith_asset_report_queries(void);

#endif

/* The page's script and style, dygraphs, and the report's queries. */
#include "src/results/report/assets.h"

KITH_ASSET(dygraph_script, KITH_DYGRAPHS "/dygraph.min.js");
KITH_ASSET(dygraph_style, KITH_DYGRAPHS "/dygraph.min.css");
KITH_ASSET(dygraph_licence, KITH_REPORT_SOURCE "/dygraphs-licence.txt");
KITH_ASSET(page_script, KITH_REPORT_SOURCE "/page.js");
KITH_ASSET(page_style, KITH_REPORT_SOURCE "/page.css");
KITH_ASSET(report_queries, KITH_REPORT_SOURCE "/report.sql");

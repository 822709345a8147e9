/* The document of a page: what its script draws. */
#ifndef KITH_RESULTS_REPORT_DOCUMENT_H
#define KITH_RESULTS_REPORT_DOCUMENT_H

#include <stdbool.h>

#include "kith/report.h"

/* Of no databases, too: a page without a run. *document is the caller's.
 * running: a run has not come to its end. The errors of kith_report_write(). */
KITH_MUST_CHECK enum kith_err kith_report_document(const char *const *databases,
                                                   unsigned count,
                                                   struct kith_target target,
                                                   json_t **document,
                                                   bool *running, char *error);

#endif

/* The document of a page: what its script draws. */
#ifndef KITH_RESULTS_REPORT_DOCUMENT_H
#define KITH_RESULTS_REPORT_DOCUMENT_H

#include <stdbool.h>

#include "kith/report.h"

/* Of no databases, too: a page without a run. *document is the caller's.
 * wait_ms: so long a run that is writing is waited for, each file. running: a
 * run has not come to its end. The errors of kith_report_write(), and
 * KITH_EBUSY: a run was writing. */
KITH_MUST_CHECK enum kith_err kith_report_document(const char *const *databases,
                                                   unsigned count, int wait_ms,
                                                   struct kith_target target,
                                                   json_t **document,
                                                   bool *running, char *error);

#endif

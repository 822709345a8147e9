/* The frame of the page around the runs' data. */
#ifndef KITH_RESULTS_REPORT_PAGE_H
#define KITH_RESULTS_REPORT_PAGE_H

#include <stdio.h>

/* Everything up to the place of the JSON document, and all after it. */
void kith_page_begin(FILE *out);
void kith_page_end(FILE *out);

#endif

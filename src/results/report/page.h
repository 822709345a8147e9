/* The frame of the page around the runs' data. */
#ifndef KITH_RESULTS_REPORT_PAGE_H
#define KITH_RESULTS_REPORT_PAGE_H

#include <stdbool.h>
#include <stdio.h>

/* What a page may do: its own scripts by their hash, and nothing else; one that
 * follows its runs asks its server for what is new. */
void kith_page_policy(FILE *out, bool follows);
/* Everything up to the place of the JSON document, and all after it. */
void kith_page_begin(FILE *out, bool follows);
void kith_page_end(FILE *out);

#endif

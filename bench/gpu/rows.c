/* One result a line, for programs to read; everything else is a log. */
#include <stdio.h>

#include "bench_gpu.h"

static const char *current = "-";
static bool failed;

static const char *const verdicts[] = {"ok", "MISSED", "FAILED", "info"};

void rows_part(const char *part)
{
    current = part;
}

void row(const char *name, double value, const char *unit,
         const char *reference, enum verdict verdict)
{
    printf("ROW\t%s\t%s\t%.6g\t%s\t%s\t%s\n", current, name, value, unit,
           reference, verdicts[verdict]);
    (void)fflush(stdout);
    failed = failed || verdict == VERDICT_FAILED;
}

void row_target(const char *name, double value, const char *unit, char relation,
                double bound)
{
    char text[48];
    const bool met = relation == '<' ? value <= bound : value >= bound;
    (void)snprintf(text, sizeof text, "%c= %g", relation, bound);
    row(name, value, unit, text, met ? VERDICT_OK : VERDICT_MISSED);
}

void row_failed(const char *name, const char *why)
{
    printf("ROW\t%s\t%s\t-\t-\t%s\tFAILED\n", current, name, why);
    (void)fflush(stdout);
    failed = true;
}

bool rows_failed(void)
{
    return failed;
}

void row_rate(const char *name, double seconds, double rate, const char *unit,
              double ceiling, const char *of, bool written)
{
    char text[96];
    (void)snprintf(text, sizeof text, "%.1f %% of %s, %.4f ms",
                   100 * rate / ceiling, of, 1e3 * seconds);
    if (written)
        row(name, rate, unit, text, VERDICT_INFO);
    else
        row_failed(name, "an output holds values that were not written");
}

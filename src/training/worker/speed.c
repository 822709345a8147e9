/* Rates of a run: what was trained between two looks, through what it costs,
 * against the measured peak.
 *
 *   MFU = samples/s * 3 F / peak      F: FLOP of one sample's forward pass
 *
 * Source: Chowdhery et al., "PaLM", JMLR 2023, appendix B. */
#define _DEFAULT_SOURCE /* getrusage */
#include "kith/speed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "kith/assert.h"

void kith_meter_start(struct kith_meter *meter, const struct kith_model *model,
                      const struct kith_model_config *shape, double peak,
                      uint64_t samples, double seconds)
{
    const struct kith_model_size size = kith_model_size_of(model, shape);
    *meter = (struct kith_meter){
        .flop = size.training_flops,
        .tokens = model->input == KITH_INPUT_TOKENS ? (double)size.features : 0,
        .peak = peak,
        .samples = (double)samples,
        .seconds = seconds,
    };
}

void kith_meter_look(struct kith_meter *meter, uint64_t samples, double seconds,
                     struct kith_speed *speed)
{
    const double span = seconds - meter->seconds;
    const double count = (double)samples - meter->samples;
    KITH_ASSERT(count >= 0);
    const double rate = span > 0 ? count / span : NAN;
    *speed = (struct kith_speed){
        .measured = true,
        .samples_per_s = rate,
        .tokens_per_s = meter->tokens > 0 ? rate * meter->tokens : NAN,
        .flop_per_s = meter->flop > 0 ? rate * meter->flop : NAN,
        .mfu = meter->flop > 0 && meter->peak > 0
                   ? rate * meter->flop / meter->peak
                   : NAN,
        .data_wait_s = NAN,
        .exchange_overlap = NAN,
        .memory_bytes = kith_speed_memory(),
    };
    meter->samples = (double)samples;
    meter->seconds = seconds;
}

uint64_t kith_speed_memory(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0 || usage.ru_maxrss < 0)
        return 0;
    return (uint64_t)usage.ru_maxrss * 1024;
}

void kith_speed_text(const struct kith_speed *speed,
                     char text[KITH_SPEED_TEXT_BYTES])
{
    const bool tokens = isfinite(speed->tokens_per_s);
    char flop[32] = "", share[32] = "";
    text[0] = '\0';
    if (!speed->measured || !isfinite(speed->samples_per_s))
        return;
    if (isfinite(speed->flop_per_s))
        (void)snprintf(flop, sizeof flop, ", %.3g GFLOP/s",
                       1e-9 * speed->flop_per_s);
    if (isfinite(speed->mfu))
        (void)snprintf(share, sizeof share, " (%.3g %% of peak)",
                       100 * speed->mfu);
    (void)snprintf(text, KITH_SPEED_TEXT_BYTES, "%.0f %s/s%s%s",
                   tokens ? speed->tokens_per_s : speed->samples_per_s,
                   tokens ? "tokens" : "samples", flop, share);
}

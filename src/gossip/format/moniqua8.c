/* Format moniqua8: the lower eight bits of a grid's numbers (modular.h). */
#include "modular.h"

static size_t bytes(size_t n)
{
    return kith_modular_bytes(8, n);
}

static bool is_sane(size_t size, size_t offset, size_t length, const void *part)
{
    return kith_modular_is_sane(8, size, offset, length, part);
}

const struct kith_format kith_format_moniqua8 = {
    .name = "moniqua8",
    .paper = "Lu and De Sa, ICML 2020",
    .summary = "8 bits of a grid that follows how far models are apart, 1.016 "
               "bytes a value",
    .keeps = "of each block of 256 values how far models were apart; what was "
             "rounded of each snapshot that is under way",
    .residue_bits = 8,
    .bytes = bytes,
    .is_sane = is_sane,
};

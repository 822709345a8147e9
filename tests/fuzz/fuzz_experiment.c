/* Goal: no text makes the experiment loader misbehave. What is refused is one
 * line of error; what is accepted is within the limits, and the source kept
 * for the database means the same experiment again.
 *
 * Input: the file, and after a 0 byte one --set. Most runs have few peers, as
 * a million of them take long to expand. */
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/experiment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_atoms(const struct kith_experiment *experiment)
{
    kith_ns last = 0;
    KITH_ASSERT(experiment->atom_count <= KITH_ATOMS_MAX);
    for (uint32_t i = 0; i < experiment->atom_count; i++) {
        const struct kith_atom *atom = &experiment->atoms[i];
        KITH_ASSERT(atom->at_ns >= last);
        KITH_ASSERT(atom->peer < experiment->peers);
        KITH_ASSERT(
            atom->other == KITH_NOBODY ||
            (atom->other < experiment->peers && atom->other != atom->peer));
        KITH_ASSERT(atom->factor >= 1 || atom->lie > KITH_LIE_HUGE);
        last = atom->at_ns;
    }
}

static void check_again(const struct kith_experiment *first)
{
    struct kith_experiment second;
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    KITH_ASSERT(strlen(first->source) == first->source_bytes);
    KITH_ASSERT(kith_experiment_parse("again", first->source,
                                      first->source_bytes, NULL, 0, &second,
                                      error) == KITH_OK);
    KITH_ASSERT(kith_experiment_hash(first) == kith_experiment_hash(&second));
    KITH_ASSERT(first->atom_count == second.atom_count);
    for (uint32_t i = 0; i < first->atom_count; i++)
        KITH_ASSERT(first->atoms[i].at_ns == second.atoms[i].at_ns &&
                    first->atoms[i].peer == second.atoms[i].peer);
    kith_experiment_close(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char few[] = "peers=9";
    char *text = malloc(size + 1);
    KITH_ASSERT(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    const size_t length = strlen(text);

    const char *overrides[2];
    uint32_t count = 0;
    if (length < size)
        overrides[count++] = text + length + 1;
    if (size == 0 || data[size - 1] % 64 != 0)
        overrides[count++] = few;

    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    if (kith_experiment_parse("fuzz.yaml", text, length, overrides, count,
                              &experiment, error) != KITH_OK) {
        KITH_ASSERT(strlen(error) > 0 && strchr(error, '\n') == NULL);
    } else {
        KITH_ASSERT(experiment.peers >= 1 &&
                    experiment.peers <= KITH_PEERS_MAX);
        KITH_ASSERT(experiment.check_count <= KITH_CHECKS_MAX);
        check_atoms(&experiment);
        check_again(&experiment);
        kith_experiment_close(&experiment);
    }
    free(text);
    return 0;
}

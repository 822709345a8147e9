/* Defaults of what is a setting, and the names of refusals. */
#include <string.h>

#include "kith/peer.h"

/* The figures stand in docs/protocol.md with their reasons; test_transport.c
 * floods them. */
void kith_peer_limits_default(struct kith_peer_limits *limits)
{
    *limits = (struct kith_peer_limits){
        .half_open_max = 256,
        .half_open_free = 32,
        .half_open_per_network = 4,
        .handshake_rate = 20,
        .handshake_burst = 5,
        .handshakes_per_s = 250,
        .loopback_exempt = true,
        .sessions_max = 4096,
        .message_ns = 2 * KITH_S,
        .handshake_ns = 5 * KITH_S,
        .idle_ns = 90 * KITH_S,
        .alive_ns = 10 * KITH_S,
        .dial_first_ns = 50 * KITH_MS,
        .dial_max_ns = 5 * KITH_S,
        .revoked_ns = 10 * KITH_S,
        .renew_ns = 3600 * KITH_S,
        .renew_bytes = UINT64_C(1) << 40,
    };
}

/* -1 is "none" for descriptors, where 0 is a valid one. */
void kith_peer_options_default(struct kith_peer_options *options)
{
    memset(options, 0, sizeof *options);
    options->listen_fd = -1;
    options->control_fd = -1;
    options->row_ns = 500 * KITH_MS;
    kith_peer_limits_default(&options->limits);
}

static const struct {
    const char *word, *text;
} refusals[KITH_REFUSAL_COUNT] = {
#define KITH_X(name, word, text) {word, text},
    KITH_REFUSALS(KITH_X)
#undef KITH_X
};

/* For people. */
const char *kith_refusal_name(enum kith_refusal refusal)
{
    return refusal < KITH_REFUSAL_COUNT ? refusals[refusal].text : "?";
}

/* For grep: stable, one word. */
const char *kith_refusal_word(enum kith_refusal refusal)
{
    return refusal < KITH_REFUSAL_COUNT ? refusals[refusal].word : "?";
}

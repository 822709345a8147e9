/* Wire `full`: real sessions at both ends of every link. Owner: full_channel.c.
 */
#ifndef KITH_SIM_FULL_CHANNEL_H
#define KITH_SIM_FULL_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "kith/err.h"
#include "kith/types.h"

struct sim_world;

enum kith_err sim_channels_open(struct sim_world *world);
void sim_channels_close(struct sim_world *world);
/* Bytes of a whole handshake that the initiator, or the responder, sends. */
size_t sim_channel_handshake_bytes(const struct sim_world *world,
                                   bool initiator);
void sim_channel_dial(struct sim_world *world, uint32_t link, kith_id from,
                      kith_id to);
void sim_channel_reset(struct sim_world *world, uint32_t link);
/* Handshake: what the sender has to say becomes the packet's bytes; the
 * receiver's session reads them. */
void sim_channel_write_flight(struct sim_world *world, uint32_t packet);
void sim_channel_read_flight(struct sim_world *world, uint32_t packet);
/* Seals the packet's message and vector; returns the bytes on the wire. */
uint64_t sim_channel_seal(struct sim_world *world, uint32_t packet);
/* Opens the sealed bytes into the packet's message and vector. */
void sim_channel_open(struct sim_world *world, uint32_t packet);

#endif

/* What is under way between two machines: a pool of packets, and what some of
 * them carry. Owner: packets.c. */
#ifndef KITH_SIM_PACKETS_H
#define KITH_SIM_PACKETS_H

#include "kith/err.h"
#include "kith/message.h"
#include "kith/types.h"
#include "sim/huge_pages.h"

enum sim_packet_kind {
    SIM_PACKET_SYN,
    SIM_PACKET_SYNACK,
    SIM_PACKET_FIRST,  /* initiator: preface, message 1 */
    SIM_PACKET_SECOND, /* responder: preface, message 2 */
    SIM_PACKET_THIRD,  /* initiator: message 3, HELLO */
    SIM_PACKET_HELLO,  /* responder: HELLO */
    SIM_PACKET_MESSAGE,
    SIM_PACKET_RESET,   /* the other end is gone */
    SIM_PACKET_TIMEOUT, /* a dial took too long */
    SIM_PACKET_CENTRAL, /* of a central method: needs no connection */
};

#define SIM_PACKET_CANCELLED 1u /* its sender stopped sending it */
#define SIM_PACKET_DROPPED 2u   /* `drop_push` took it */
#define SIM_PACKET_LISTED 4u    /* stands in its sender's list of transfers */
#define SIM_PACKET_CARRIES 8u   /* has a payload; the other ones' is zero */
#define SIM_PACKET_HERE 16u     /* at its receiver's machine: no cut stops it */
#define SIM_PACKET_MOVES 32u    /* a model: counted as in flight */
#define SIM_PACKET_OPENED 64u   /* its receiver has taken the time for it */
#define SIM_PACKET_BOUND 128u   /* to the link that was up when it was said */
#define SIM_PACKET_STOOD 256u   /* at a cut: its last bit has left */

/* A message of a central method; what else it means is the method's. */
struct sim_central_message {
    uint32_t from, to;
    uint32_t kind;    /* the method's */
    uint32_t subject; /* a worker, a part: the method's */
    uint64_t bytes, version, clock;
    void *vector; /* a model copy that travels along, or NULL */
};

struct sim_packet {
    _Alignas(128) kith_id from;
    kith_id to;
    uint32_t link;       /* index */
    uint32_t generation; /* of the link when it left */
    uint64_t bytes;      /* on the wire */
    uint32_t next;       /* waiting list: 1 + index */
    uint8_t kind;        /* enum sim_packet_kind */
    uint16_t flags;      /* SIM_PACKET_CANCELLED... */
    union {
        struct kith_message message;
        struct sim_central_message central;
    };
};
_Static_assert(sizeof(struct sim_packet) == 128, "two cache lines");

/* What a packet carries beyond its message; same index. Only runs with
 * parameters or with real bytes have it. */
struct sim_payload {
    void *vector;    /* MODEL: a model copy, or NULL */
    uint8_t *sealed; /* wire `full`: the real bytes, malloc'd */
    size_t sealed_bytes;
    kith_ns left_ns; /* its last bit leaves the sender */
    uint32_t next_transfer;
    uint32_t number; /* of the run's MODELs: whatever its index */
};

/* Snapshots that a MODEL is sent from: exchanges' two, and the rounds'. */
#define SIM_SNAPSHOTS (1u + KITH_OVERLAP_MAX)

struct sim_packets {
    struct sim_packet *packets;   /* (capacity) */
    struct sim_payload *payloads; /* (capacity), or NULL */
    uint32_t *free;               /* (capacity) 1 + index; the last is next */
    uint32_t capacity, used, free_count;
    uint32_t models; /* sent so far */
    /* (peers): MODELs that can still be cancelled, by snapshot; or NULL. */
    uint32_t (*transfers)[SIM_SNAPSHOTS];
};

struct sim_world;

enum kith_err sim_packets_open(struct sim_world *world);
void sim_packets_close(struct sim_world *world);
/* 1 + index; 0 when memory ran out (the run is failed then). */
uint32_t sim_packet_take(struct sim_world *world);
void sim_packet_free(struct sim_world *world, uint32_t packet);
/* A packet leaves for another world of the run, and comes in there: 1 + index,
 * 0 when memory ran out. It carries nothing but its message. */
void sim_packet_leave(struct sim_world *world, uint32_t packet,
                      struct sim_packet *copy);
uint32_t sim_packet_enter(struct sim_world *world,
                          const struct sim_packet *copy);
uint32_t sim_packet_hand_over(struct sim_world *from, uint32_t packet,
                              struct sim_world *to);
/* Chains of packets, 1 + index each. */
void sim_packet_append(struct sim_world *world, uint32_t *first,
                       uint32_t packet);
uint32_t sim_packet_next(struct sim_world *world, uint32_t *first);
void sim_packet_free_all(struct sim_world *world, uint32_t *first);
/* The packet's last bit leaves then. A MODEL that can be cancelled until then
 * stands in its sender's list. */
void sim_transfer_list(struct sim_world *world, uint32_t packet,
                       kith_ns left_ns);
/* It stands there: SIM_PACKET_LISTED. */
void sim_transfer_unlist(struct sim_world *world, uint32_t packet);
/* MODELs of these slots that have not left yet are not delivered. */
void sim_cancel(struct sim_world *world, kith_id from, uint32_t slots);

/* In a save: the models under way, of which there are bytes here. */
struct kith_archive;
/* Of the next model that is sent, never 0: a save names it so. */
uint32_t sim_packet_number(struct sim_world *world);
void sim_packets_move(struct sim_world *world, struct kith_archive *archive);

#endif

/* Connections with the other members: listen, dial, prove, carry, close.
 *
 *   socket.c     bytes over TCP                   (socket.h)
 *   connection.c       one connection: handshake, records, closing
 *   connection_life.c  its beginning, time-outs and memory
 *   transfer.c, reception.c    messages and models over a link
 *   shared_burst.c, hand_over.c    models within a host, by shared memory
 *   sent_vectors.c    which vectors travel, from where
 *   identify.c   who a proved peer is
 *   guest.c      a visitor that measures the way here
 *   session_expiry.c    what is revoked, expired or old is closed
 *   piece_exchange.c  pieces of the data set
 *   revocation.c  the revocation list: kept, enforced, passed on
 *   member.c    what we know of one member: its link, dialling, back-off
 *   transport.c  listening, admission, members, revocation, counters
 *
 * All on the loop thread. Nothing below knows the node: the driver gives the
 * functions of kith_transport_user. */
#ifndef KITH_PEER_TRANSPORT_H
#define KITH_PEER_TRANSPORT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "address.h"
#include "half_open.h"
#include "hand_over.h"
#include "kith/backend.h"
#include "kith/channel_use.h"
#include "kith/experiment.h"
#include "kith/message.h"
#include "kith/peer.h"
#include "kith/session.h"
#include "kith/work.h"
#include "kith/worker.h"
#include "log_limit.h"
#include "piece_exchange.h"
#include "record_threads.h"
#include "sent_vectors.h"
#include "socket.h"

/* Messages that wait for a dial: one step's answers and their repeats. */
#define KITH_WAITING_MAX 32u
/* Models that wait for their turn on one link: a round's and both exchanges'.
 */
#define KITH_TRANSFERS_MAX 8u
/* One read of a link that brings no model: some hundred messages, a
 * millisecond. Where that much had piled up, the link then rests for this many
 * times as long as it took: a neighbour that talks without end gets a ninth of
 * the loop, and training goes on. */
#define KITH_CONTROL_READ_BYTES 16384u
#define KITH_CONTROL_THROTTLE 8
/* Control frames between two bursts of a model; more is talk. */
#define KITH_FRAMES_PER_BURST_MAX 32u
/* Models in a row that nobody here waited for; more is talk. */
#define KITH_UNREQUESTED_MAX 4u
/* Chunks on their way; a peer that reads nothing is cut off beyond that. */
#define KITH_CHUNKS_MAX 1024u
/* Sealed bursts in flight per link; more where the link is long. */
#define KITH_BURSTS_MIN 3u
#define KITH_BURSTS_MAX 64u
/* What a visitor that measures may send, in frames of at most so many bytes,
 * and how long it may stay. */
#define KITH_GUEST_FRAME_MAX 64u
#define KITH_GUEST_BYTES_MAX (UINT32_C(64) << 20)
#define KITH_GUEST_NS (15 * KITH_S)
/* A link that is being closed in order is given this long. */
#define KITH_DRAIN_NS (2 * KITH_S)
/* Refusals logged one by one per second; beyond that they are only counted. */
#define KITH_REFUSALS_PER_S 20u

struct kith_transport;
struct kith_link;

/* A model on its way out: header first, then bursts from its slot. */
struct kith_transfer {
    struct kith_message message;
    size_t offset;
    bool announced;
    bool sealed, outside; /* a burst was; though the other end has our memory */
};

struct kith_traffic {
    /* Out. The n-th MODEL header of a direction names transfer n, so that the
     * header needs no number of its own. */
    struct kith_transfer transfers[KITH_TRANSFERS_MAX];
    uint32_t transfer_first, transfer_count;
    uint64_t out_id;
    uint32_t bursts; /* sealed, not yet with the kernel */
    bool pumping;

    /* In. */
    bool receiving, in_burst;
    uint32_t in_frames;   /* control frames since the last burst */
    uint32_t unrequested; /* models since the last one that had an inbox */
    uint64_t quota_bytes; /* of models, in the exchange of `model` */
    struct kith_message model;
    uint64_t in_id;
    size_t in_offset;
    uint8_t *target; /* the inbox, NULL: discard */
    bool finite;
    /* Of a model of which some came by shared memory: 1 + the slot's count; 0:
     * none did. */
    uint64_t in_filled;
};

/* The revocation list on a link: see revocation.c. */
struct kith_list_traffic {
    uint64_t theirs;      /* the edition that the other side is known to have */
    uint64_t sent, asked; /* ours that was sent; theirs that was asked for */
    uint32_t size, at;    /* of the one that comes; size 0: none does */
    uint8_t *bytes;       /* (size), NULL: discarded */
};

enum kith_link_state {
    KITH_LINK_CONNECTING, /* TCP */
    KITH_LINK_HANDSHAKE,
    KITH_LINK_OPEN,
    KITH_LINK_CLOSED, /* handles are closing */
};

/* How far closing in order has come: all three, and the link is closed. */
enum kith_link_closing {
    KITH_CLOSING_BEGUN = 1,
    KITH_CLOSING_FIN_SENT = 2,
    KITH_CLOSING_FIN_RECEIVED = 4,
    KITH_CLOSING_BOTH_FINS = KITH_CLOSING_FIN_SENT | KITH_CLOSING_FIN_RECEIVED,
};

struct kith_link {
    struct kith_socket socket;
    uv_timer_t timer;
    uv_connect_t connect;
    struct kith_transport *transport;
    struct kith_link *next, **back; /* in transport->links */
    struct kith_session *session;
    void *session_memory;
    enum kith_link_state state;
    bool initiator, known, held;
    bool heard;       /* a message came */
    unsigned closing; /* enum kith_link_closing; 0: not yet */
    uint32_t ticket;  /* KITH_TICKET_NONE: not half-open */
    uint32_t handles; /* that libuv has not closed */
    kith_id rank;     /* dialled or verified, else KITH_NOBODY */
    kith_ns born_ns, progress_ns;
    uint8_t *partial; /* a record cut short, (partial_capacity) */
    size_t partial_size, partial_capacity;
    size_t read_limit; /* of the read under way, once open */
    struct kith_traffic traffic;
    struct kith_list_traffic list;
    struct kith_link_pieces pieces;
    struct kith_link_sharing sharing;
    char address[KITH_ADDRESS_BYTES];
};

/* What a member thinks of us, where it has told us no notice. */
#define KITH_STANDING_UNKNOWN 0u
#define KITH_STANDING_DIFFERS (UINT_MAX - 1) /* it has another experiment */
#define KITH_STANDING_GOOD UINT_MAX

/* One member as seen from here. */
struct kith_member_state {
    struct kith_transport *transport;
    kith_id rank;
    struct kith_link *link;    /* the open one that is used */
    struct kith_link *dialled; /* ours, not yet open */
    uv_getaddrinfo_t *lookup;
    struct addrinfo *found, *candidate; /* what the name stands for */
    struct kith_link_flow flow;         /* our bytes to it */
    bool is_up;                         /* what the driver was told last */
    bool down_due; /* to be told to the driver at the next turn */
    kith_ns backoff_ns, retry_ns;
    uint64_t failure, failures; /* why dials failed last (a hash), how often */
    struct kith_message *waiting; /* (KITH_WAITING_MAX), while dialling */
    uint32_t waiting_count;
    unsigned standing; /* KITH_STANDING_*, or the notice that it gave us */
    struct kith_bucket tokens;  /* to come, or to say something bad */
    uint32_t clipped, rejected; /* models of it, by the guard */
    bool has_all;               /* pieces of the data: it has said so */
    bool has_pin;
    uint8_t pin_key[KITH_KEY_BYTES]; /* under an allow-list */
};

struct kith_transport_user {
    void *arg;
    void (*up)(void *arg, kith_id peer);
    void (*down)(void *arg, kith_id peer);
    void (*message)(void *arg, kith_id from, const struct kith_message *m);
    /* Slot for the bytes of this header, KITH_SLOT_NONE to discard them. */
    uint32_t (*inbox)(void *arg, kith_id from, const struct kith_message *m);
    void *(*slot)(void *arg, uint32_t slot);
    /* May this snapshot leave? NULL: always. WAITS: asked again soon. */
    enum kith_outgoing (*outgoing)(void *arg, uint32_t slot);
    /* This inbox has been received whole, and is finite; NULL: no matter. */
    void (*arrived)(void *arg, uint32_t slot);
    /* The others will not have us, and trying again will not help; NULL: no
     * matter. Not from within a step, and the links must stand for now. */
    void (*hopeless)(void *arg, const char *why);
    /* Every other member has another experiment, and none was ever heard; as
     * hopeless(). */
    void (*differs)(void *arg, const char *why);
};

struct kith_transport_options {
    const struct kith_member *members; /* (peers), kept */
    uint32_t peers;
    kith_id self;
    uint64_t seed;
    const struct kith_identity *identity;
    const struct kith_trust *trust;
    const char *keys_folder; /* NULL: trust does not change */
    enum kith_suite suite;
    const struct kith_aead *aead;
    struct kith_hello hello;
    struct kith_peer_limits limits;
    struct kith_link_terms usual; /* of every link, but for faults */
    /* Whose links and lines differ; NULL: all are as usual. */
    const struct kith_experiment *experiment;
    const struct kith_backend *backend;
    size_t payload_bytes, model_bytes; /* of an exchange's message; a pull's */
    size_t slice_bytes; /* of a round that is not whole; 0: all are */
    bool opaque;        /* an exchange's message is not a vector of numbers */
    const struct kith_format *format; /* else its numbers'; NULL: raw */
    const char *congestion;
    uint32_t cores; /* that seal and open models; 0: one */
    /* Where slots lie, to share within a host; NULL: models go through TCP. */
    struct kith_shared *shared;
    struct kith_data_store *store; /* given to members; NULL: nothing is */
    void *log_user;
    void (*on_log)(void *user, const char *line);
    struct kith_transport_user user;
};

struct kith_transport {
    struct kith_transport_options options;
    uv_loop_t *loop;
    struct kith_net net;
    struct kith_channel_use use; /* by uv_hrtime() */
    struct kith_record_threads threads;
    uv_tcp_t listener;
    uv_timer_t tick; /* revocation, deferred LINK_DOWN */
    uv_timer_t poll; /* snapshots that are not there yet */
    uv_idle_t notify;
    bool stopping, held;
    bool heard;         /* a message of any member */
    uint8_t secret[32]; /* of this process: kith_session_config */
    struct kith_half_open_table half_open;
    struct kith_hand_over hand_over;
    struct kith_sent_vectors sent;
    struct kith_piece_exchange pieces;
    struct kith_link *links;
    struct kith_link *guest; /* the visitor that measures, or NULL */
    size_t guest_bytes;      /* that it has sent */
    struct kith_bucket guest_tokens;
    kith_ns guest_since_ns, guest_rests_ns; /* the last one's key: until then */
    uint8_t guest_key[KITH_KEY_BYTES];
    struct kith_member_state *members; /* (peers) */
    uint32_t session_count;
    /* In force: read again from the folder, lists from peers as well. */
    struct kith_trust trust;
    struct kith_identity identity;
    kith_ns renewed_ns;     /* sessions from before have our old certificate */
    uint64_t kept_sequence; /* of the list in the folder */
    uint32_t lists_coming;
    uint64_t refusals[KITH_REFUSAL_COUNT];
    uint64_t connected, closed, dial_failures;
    struct kith_log_limit log_limit; /* of refusals */
    kith_ns log_second_ns;
    uint32_t log_count, log_left_out;
};

/* transport.c. `fd` is a listening socket, taken over. */
KITH_MUST_CHECK enum kith_err
kith_transport_init(struct kith_transport *transport, uv_loop_t *loop,
                    const struct kith_transport_options *options, int fd);
/* While held, connections are proved but no message is delivered. */
void kith_transport_unhold(struct kith_transport *transport);
/* A message for a member; a MODEL's bytes follow from its slot. */
void kith_transport_send(struct kith_transport *transport, kith_id to,
                         const struct kith_message *message);
/* It will be sent to soon. */
void kith_transport_dial(struct kith_transport *transport, kith_id to);
/* Nothing more is sent from the slots whose bit is set. */
void kith_transport_cancel(struct kith_transport *transport, uint32_t slots);
/* An atom of a fault that acts on what we send to atom->other. */
void kith_transport_act(struct kith_transport *transport,
                        const struct kith_atom *atom);
/* Closes every session in order; after KITH_DRAIN_NS whatever is left. */
void kith_transport_leave(struct kith_transport *transport);
bool kith_transport_is_empty(const struct kith_transport *transport);
/* Closes all handles; free once the loop has run dry. */
void kith_transport_stop(struct kith_transport *transport);
void kith_transport_free(struct kith_transport *transport);
void kith_transport_log(struct kith_transport *transport, const char *format,
                        ...) KITH_PRINTF(2, 3);
/* Who has proved itself? Sets link->rank and known; false: it was refused. */
bool kith_transport_identify(struct kith_link *link);
/* Closes what the trust forbids or has expired, renews what is old. */
void kith_transport_enforce(struct kith_transport *transport);
/* Every revoked_ns: reads the revocation list again, closes what it forbids and
 * what is old. */
void kith_transport_tick(uv_timer_t *timer);
/* This member broke the protocol: it has tokens for a few such messages, then
 * its connection is closed. */
void kith_transport_charge(struct kith_transport *transport, kith_id peer);
/* A snapshot waits for its copy: all links try again in a moment. */
void kith_transport_poll(struct kith_transport *transport);
/* Something is to be told to the driver at the next turn of the loop. */
void kith_transport_notify_soon(struct kith_transport *transport);
/* Counts and logs why a connection from `address` was not kept. */
void kith_transport_refuse(struct kith_transport *transport,
                           enum kith_refusal refusal, const char *address,
                           const char *detail);

/* guest.c */
/* False: the link is closed, for there is one already. */
bool kith_guest_welcome(struct kith_link *link);
bool kith_link_is_guest(const struct kith_link *link);
void kith_guest_closed(struct kith_link *link);
/* Bytes that a read may ask for. */
size_t kith_guest_expected(const struct kith_link *link);
/* Anything that the session yields once it is open; false: the link is closed.
 */
bool kith_guest_event(struct kith_link *link,
                      const struct kith_session_event *event);

/* revocation.c */
/* 0xc1 begins no msgpack value. */
#define KITH_FRAME_EDITION 0xc1u
/* Bursts of this transfer are a list's. */
#define KITH_LIST_TRANSFER UINT64_MAX
/* Says which edition we hold. */
void kith_list_announce(struct kith_link *link);
/* An EDITION frame, a part of a list; false: the link was refused. */
bool kith_list_frame(struct kith_link *link, const uint8_t *frame, size_t size);
bool kith_list_event(struct kith_link *link,
                     const struct kith_session_event *event);
/* A newer list is in force, from `from`: keep it, enforce it, pass it on. */
void kith_list_adopted(struct kith_transport *transport, const char *from);
/* The list in force, to the folder. */
void kith_list_keep(struct kith_transport *transport);
void kith_list_forget(struct kith_link *link);

/* member.c */
void kith_member_send(struct kith_member_state *member,
                      const struct kith_message *message);
void kith_member_dial(struct kith_member_state *member);
/* A link has proved itself as this member's; false: it was refused. */
bool kith_member_opened(struct kith_member_state *member,
                        struct kith_link *link);
/* A link known to be this member's, or our dial, is gone. */
void kith_member_closed(struct kith_member_state *member,
                        struct kith_link *link, const char *why);
/* The peer said FIN on this link: it is used no more. */
void kith_member_finished(struct kith_member_state *member,
                          struct kith_link *link);
/* It has said something: we are wanted, and a failed dial is the first again.
 */
void kith_member_heard(struct kith_member_state *member);
/* Its HELLO is of another experiment: `why`. */
void kith_member_differs(struct kith_member_state *member, const char *why);
/* It has told us why it does not keep us. */
void kith_member_told(struct kith_member_state *member, enum kith_notice notice,
                      const char *address);
void kith_member_cancel(struct kith_member_state *member, uint32_t slots);
/* Sends what waited for a link. */
void kith_member_flush(struct kith_member_state *member);
/* Tells the driver of what could not be told at once. */
void kith_member_notify(struct kith_member_state *member);
/* Says UP where a link is there and that has not been said. */
void kith_member_tell_up(struct kith_member_state *member);
void kith_member_free(struct kith_member_state *member);

/* connection_life.c */
struct kith_link *kith_link_new(struct kith_transport *transport,
                                bool initiator);
/* TCP stands: start the handshake. */
void kith_link_start(struct kith_link *link);

/* connection.c */
/* Both return false, for a caller that then says the same. */
bool kith_link_refuse(struct kith_link *link, enum kith_refusal refusal,
                      const char *detail);
/* Refuses, and tells why one who has proved its key. */
bool kith_link_tell(struct kith_link *link, enum kith_refusal refusal,
                    enum kith_notice notice, const char *detail);
/* At once; `why` is logged for open links. */
bool kith_link_close(struct kith_link *link, const char *why);
/* In order: what is queued, then FIN, then the other side's FIN. */
void kith_link_leave(struct kith_link *link);
/* Goes on with FIN and closing when nothing is left to send. */
void kith_link_finish_closing(struct kith_link *link);
/* Reads on after the hold. */
void kith_link_unhold(struct kith_link *link);
/* Reads nothing more in this turn; and goes on in the next one. */
void kith_link_rest(struct kith_link *link);
void kith_link_wake(struct kith_link *link);
/* Seals one control frame and sends it; false when the link broke. */
bool kith_link_control(struct kith_link *link, const uint8_t *frame,
                       size_t size);

/* Seals one burst that is no model's and sends it: what fits the largest
 * model's bursts, or KITH_PIECE_BYTES_MAX where there is a store. The same. */
bool kith_link_bulk(struct kith_link *link, uint64_t transfer, uint64_t offset,
                    const uint8_t *payload, size_t length);

/* transfer.c */
#define KITH_FRAME_DROPPED 0xc0u /* msgpack's nil */
void kith_traffic_send(struct kith_link *link,
                       const struct kith_message *message);
void kith_traffic_cancel(struct kith_link *link, uint32_t slots);
/* Seals bursts while there is room for them. */
void kith_traffic_pump(struct kith_link *link);
bool kith_traffic_is_idle(const struct kith_link *link);

/* reception.c */
/* The link has closed: nothing comes in any more. */
void kith_traffic_close(struct kith_link *link);
/* Bytes that a read may ask for, of the model under way; 0 without one. */
size_t kith_traffic_expected(const struct kith_link *link);
/* Anything that the session yields once it is open; false: it was refused. */
bool kith_traffic_event(struct kith_link *link,
                        const struct kith_session_event *event);
/* The transfer's bytes go nowhere from now on. */
void kith_traffic_discard(struct kith_traffic *traffic);
/* Length of the burst that is due; its beginning, false: it was not announced;
 * does what has come of it pass the gate, if that is to be asked; its end. */
size_t kith_burst_next(const struct kith_traffic *traffic);
bool kith_burst_begins(struct kith_link *link, uint64_t transfer,
                       uint64_t offset, uint64_t length);
bool kith_burst_is_checked(const struct kith_link *link);
bool kith_burst_passes(const void *link, uint64_t record_at, size_t bytes);
void kith_burst_ends(struct kith_link *link);

/* shared_burst.c */
#define KITH_SHARED_BURST_BYTES 38u
/* Writes where the transfer's next `length` bytes lie; 0: they are to be sent,
 * for the other end cannot see them, or the link is shaped and has to carry
 * them itself. `source`: the slot's vector. */
size_t kith_shared_burst_place(const struct kith_link *link,
                               const struct kith_transfer *transfer,
                               const uint8_t *source, size_t length,
                               uint8_t frame[KITH_SHARED_BURST_BYTES]);
/* Such a frame has come; false: the link was refused. */
bool kith_shared_burst_comes(struct kith_link *link, const uint8_t *frame);

#endif

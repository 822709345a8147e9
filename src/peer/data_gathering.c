/* Before the run: the data set, in pieces, from the disk, the members and the
 * origin (kith/data_store.h).
 *
 *   others'    pieces of each home in turn, from the one behind this peer on;
 *              where it does not answer: of those behind it, of the origin
 *   own        pieces that nobody has asked for, of the origin, or of a member
 *              that has all
 *   COMPLETE   said to all; they are served until they have said it, too
 *
 * It has a transport of its own: what the run's is made of, the model and its
 * rows, is not known before the data are here. The run's goes on with giving,
 * to who comes later. Each piece is got at the top of the stack, which turns
 * the loop while it waits: members are served meanwhile.
 *
 * Nothing is waited for without end: MEMBERS_NS for members to come, or as the
 * peer file's `wait:` says; ASK_NS for an answer and for each part of it,
 * PIECE_NS for all of it, of a member in all as long as its pieces would take
 * at a least rate (kith_piece_patience); LINGER_NS for others to be complete,
 * of which QUIET_NS for those that are not here. A read of the origin takes as
 * long as its mount does.
 *
 * Test: integration/test_lab_pieces.sh, integration/test_peer_pieces.c */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "choose_suite.h"
#include "kith/assert.h"
#include "kith/text.h"
#include "transport.h"

#define MEMBERS_NS (10 * KITH_S)
#define ASK_NS (5 * KITH_S)
#define PIECE_NS (30 * KITH_S)
#define LINGER_NS (60 * KITH_S)
#define QUIET_NS (2 * KITH_S)
#define CLOSE_NS (500 * KITH_MS)
#define TURN_MS 5

struct gathering {
    const struct kith_peer_options *options;
    struct kith_data_store *store;
    char *error;
    uv_loop_t loop;
    uv_timer_t tick; /* ends a turn */
    struct kith_transport transport;
    kith_ns began_ns;
    kith_ns members_ns; /* members that are not here by then are not waited for
                         */
    struct kith_piece_patience *patience; /* (peers) */
    bool stopped, unwanted;
};

/* ---- the transport's user: members come to talk of pieces; one whose run has
 * begun finds no answer yet, as of a peer that is slow. */

static void nobody(void *arg, kith_id peer)
{
    (void)arg;
    (void)peer;
}

static void no_message(void *arg, kith_id from, const struct kith_message *m)
{
    (void)arg;
    (void)from;
    (void)m;
}

static uint32_t no_inbox(void *arg, kith_id from, const struct kith_message *m)
{
    (void)arg;
    (void)from;
    (void)m;
    return KITH_SLOT_NONE;
}

static void *no_slot(void *arg, uint32_t slot)
{
    (void)arg;
    (void)slot;
    return NULL;
}

/* Nobody will have us: the run will say so. */
static void not_wanted(void *arg, const char *why)
{
    struct gathering *gathering = arg;
    (void)why;
    gathering->unwanted = true;
}

/* ---- turns */

static void ticked(uv_timer_t *timer)
{
    (void)timer;
}

/* What the launcher or a signal says is the run's to read; that there is
 * something to read means stop. */
static void turn(struct gathering *gathering)
{
    struct pollfd control = {gathering->options->control_fd, POLLIN, 0};
    uv_run(&gathering->loop, UV_RUN_ONCE);
    gathering->stopped =
        gathering->stopped || (control.fd >= 0 && poll(&control, 1, 0) > 0);
}

/* By the clock of sockets and links. */
static bool is_before(kith_ns due_ns)
{
    return (kith_ns)uv_hrtime() < due_ns;
}

/* `wait:` of the peer file: fewer members are here, or were and have all, than
 * the run is to begin with. What they would ask, and be asked, is had now. */
static bool are_missing(const struct gathering *gathering)
{
    const struct kith_peer_options *const options = gathering->options;
    const struct kith_transport *const transport = &gathering->transport;
    uint32_t here = 1;
    for (kith_id i = 0; i < transport->options.peers; i++)
        here +=
            transport->members[i].link != NULL || transport->members[i].has_all;
    return here < options->wait_members && !gathering->unwanted &&
           is_before(gathering->began_ns + options->wait_ns);
}

/* The member's link, once it is there; NULL: it was not in time. A member that
 * has failed once is dialled again after a back-off, as in a run, and one that
 * comes by itself is as good. */
static struct kith_link *reach(struct gathering *gathering, uint32_t peer,
                               kith_ns due_ns)
{
    struct kith_transport *const transport = &gathering->transport;
    while (transport->members[peer].link == NULL && !gathering->stopped &&
           (are_missing(gathering) ||
            (is_before(gathering->members_ns) && is_before(due_ns) &&
             !gathering->unwanted))) {
        KITH_NET_SCOPE(&transport->net);
        kith_transport_dial(transport, peer);
        turn(gathering);
    }
    return transport->members[peer].link;
}

/* A piece on its way is waited for while records of it come: a home may be
 * asked by many, over a slow line. */
static bool is_patient(const struct kith_link *link, kith_ns asked_ns,
                       kith_ns left_ns)
{
    const kith_ns heard_ns = link->pieces.coming && link->progress_ns > asked_ns
                                 ? link->progress_ns
                                 : asked_ns;
    return is_before(heard_ns + ASK_NS) && is_before(asked_ns + PIECE_NS) &&
           is_before(asked_ns + left_ns);
}

/* What has come of the question; a link that breaks answers as well. */
static enum kith_err await_answer(struct gathering *gathering, kith_ns left_ns)
{
    struct kith_piece_exchange *const exchange = &gathering->transport.pieces;
    const kith_ns asked_ns = (kith_ns)uv_hrtime();
    while (exchange->link != NULL &&
           is_patient(exchange->link, asked_ns, left_ns) && !gathering->stopped)
        turn(gathering);
    if (exchange->link == NULL)
        return exchange->answer;
    KITH_NET_SCOPE(&gathering->transport.net);
    kith_piece_give_up(exchange);
    return KITH_ETIMEOUT;
}

/* The answer of an open link, as long as its member's patience lasts. */
static enum kith_err question(struct gathering *gathering,
                              struct kith_link *link, uint32_t piece,
                              size_t size)
{
    struct kith_transport *const transport = &gathering->transport;
    const uint32_t peer = link->rank;
    struct kith_piece_patience *const patience = &gathering->patience[peer];
    const kith_ns left_ns = kith_piece_patience_left(patience, size);
    const kith_ns began_ns = (kith_ns)uv_hrtime();
    if (left_ns == 0)
        return KITH_ETIMEOUT;
    {
        KITH_NET_SCOPE(&transport->net);
        if (!kith_piece_ask(link, piece))
            return KITH_ETIMEOUT;
    }
    const enum kith_err err = await_answer(gathering, left_ns);
    if (kith_piece_patience_took(patience, (kith_ns)uv_hrtime() - began_ns,
                                 err == KITH_OK ? size : 0))
        kith_transport_log(transport,
                           "pieces-slow rank=%u bytes=%llu seconds=%.1f "
                           "reason=\"slower than %u bytes a second; it is not "
                           "asked again\"",
                           peer, (unsigned long long)patience->bytes,
                           1e-9 * (double)patience->waited_ns,
                           KITH_PIECE_RATE_LEAST);
    return err;
}

/* kith_piece_peers.ask. Of two connections that were made at once one is
 * closed: the question is then asked again over the other. A home asks those
 * alone who have all: the others wait for it. */
static enum kith_err ask(void *owner, uint32_t peer, uint32_t piece,
                         size_t size, uint8_t *bytes)
{
    struct gathering *const gathering = owner;
    struct kith_transport *const transport = &gathering->transport;
    const kith_ns due_ns = (kith_ns)uv_hrtime() + ASK_NS;
    const struct kith_member_state *const member = &transport->members[peer];
    enum kith_err err;
    if (kith_piece_home(piece, gathering->store->peers.count) ==
            transport->options.self &&
        (member->link == NULL || !member->has_all))
        return KITH_ENOENT;
    do {
        struct kith_link *const link = reach(gathering, peer, due_ns);
        if (link == NULL)
            return KITH_ETIMEOUT;
        err = question(gathering, link, piece, size);
    } while (err == KITH_ECLOSED && is_before(due_ns));
    if (err == KITH_OK)
        memcpy(bytes, transport->pieces.bytes, size);
    return err;
}

/* kith_piece_peers.lied: for the log, once a member. The link stands: a bad
 * disk looks the same, and its models are the guard's to judge. */
static void lied(void *owner, uint32_t peer, uint32_t piece)
{
    struct gathering *const gathering = owner;
    kith_transport_log(
        &gathering->transport,
        "piece-refused rank=%u piece=%u reason=\"what it gave is "
        "not what data.manifest says; it is not asked again\"",
        peer, piece);
}

/* ---- the phases */

/* One piece, from wherever it is to be had; then others have their turn. */
static enum kith_err get(struct gathering *gathering, uint32_t piece)
{
    char why[KITH_PIECES_ERROR_BYTES];
    const void *bytes;
    const struct kith_data_config *const data =
        &gathering->options->experiment->data.config;
    if (gathering->stopped)
        return kith_text_fail(gathering->error, KITH_PEER_ERROR_BYTES,
                              KITH_ECLOSED,
                              "stopped while the data were gathered");
    const enum kith_err err =
        kith_pieces_get(gathering->store->pieces, piece, &bytes, why);
    uv_run(&gathering->loop, UV_RUN_NOWAIT); /* others ask meanwhile */
    return err == KITH_OK
               ? err
               : kith_text_fail(gathering->error, KITH_PEER_ERROR_BYTES,
                                err == KITH_EAUTH ? KITH_EPARSE : err,
                                "gathering the data of %.200s: %s", data->path,
                                why);
}

/* Homes in turn, so that peers who start together ask different ones; what they
 * ask this one for it reads meanwhile. */
static enum kith_err get_all(struct gathering *gathering)
{
    const uint32_t peers = gathering->store->peers.count;
    const uint32_t count = gathering->store->manifest.count;
    enum kith_err err = KITH_OK;
    for (uint32_t i = 1; i <= peers; i++)
        for (uint32_t piece = (gathering->options->self + i) % peers;
             piece < count && err == KITH_OK; piece += peers)
            err = get(gathering, piece);
    return err;
}

/* Others that are here and have not got all; *away: that are not here, and have
 * not said so before they went. */
static uint32_t incomplete(const struct gathering *gathering, uint32_t *away)
{
    const struct kith_transport *const transport = &gathering->transport;
    uint32_t count = 0;
    *away = 0;
    for (kith_id i = 0; i < transport->options.peers; i++) {
        const struct kith_member_state *const member = &transport->members[i];
        if (member->has_all || i == transport->options.self)
            continue;
        *away += member->link == NULL;
        count += member->link != NULL && !member->link->pieces.differs;
    }
    return count;
}

/* Members are told, and served until they have all. */
static void linger(struct gathering *gathering)
{
    struct kith_transport *const transport = &gathering->transport;
    const kith_ns began_ns = (kith_ns)uv_hrtime();
    uint32_t away;
    {
        KITH_NET_SCOPE(&transport->net);
        kith_piece_complete(transport);
    }
    while (!gathering->stopped &&
           (are_missing(gathering) || is_before(began_ns + LINGER_NS))) {
        const kith_ns given_ns = transport->pieces.given_ns;
        const kith_ns quiet_ns = given_ns > began_ns ? given_ns : began_ns;
        if (incomplete(gathering, &away) == 0 &&
            (away == 0 ||
             (!is_before(quiet_ns + QUIET_NS) && !are_missing(gathering))))
            return;
        for (kith_id i = 0; i < transport->options.peers && away > 0; i++) {
            KITH_NET_SCOPE(&transport->net);
            if (i != transport->options.self && !transport->members[i].has_all)
                kith_transport_dial(transport, i);
        }
        turn(gathering);
    }
}

/* One line for the log, and one more where the disk took not all: a start from
 * there will read them again. */
static void log_totals(struct gathering *gathering)
{
    const struct kith_piece_totals totals =
        kith_data_store_totals(gathering->store);
    kith_transport_log(
        &gathering->transport,
        "data pieces=%llu origin=%llu peers=%llu disk=%llu refused=%llu "
        "unkept=%llu given=%llu seconds=%.3f",
        (unsigned long long)totals.count, (unsigned long long)totals.origin,
        (unsigned long long)totals.peers, (unsigned long long)totals.disk,
        (unsigned long long)totals.refused, (unsigned long long)totals.unkept,
        (unsigned long long)gathering->transport.pieces.given,
        1e-9 * (double)((kith_ns)uv_hrtime() - gathering->began_ns));
    if (totals.unkept > 0)
        kith_transport_log(&gathering->transport,
                           "data-unkept pieces=%llu folder=\"%s\" "
                           "reason=\"data.cache takes them not: full, or not "
                           "writable; they stay in memory\"",
                           (unsigned long long)totals.unkept,
                           gathering->store->disk.folder);
}

/* ---- beginning and end */

/* The hello is the run's, so that a member whose run has begun is one, too: its
 * model's size is a matter of the file, not of the data. */
static enum kith_err open_transport(struct gathering *gathering)
{
    const struct kith_peer_options *const options = gathering->options;
    const struct kith_experiment *const experiment = options->experiment;
    struct kith_transport_options transport = {
        .members = options->members,
        .peers = experiment->peers,
        .self = options->self,
        .seed = experiment->seed,
        .identity = options->identity,
        .trust = options->trust,
        .keys_folder = options->keys_folder,
        .aead = options->aead,
        .hello = {.experiment_hash = kith_experiment_hash(experiment),
                  .dim = kith_model_size_of(experiment->model,
                                            &experiment->model_config)
                             .dim,
                  .incarnation = options->incarnation,
                  .rank = options->self},
        .limits = options->limits,
        .usual = experiment->network.link,
        .experiment = experiment,
        .backend = experiment->backend,
        .congestion = options->congestion,
        .store = gathering->store,
        .log_user = options->user,
        .on_log = options->on_log,
        .user = {.arg = gathering,
                 .up = nobody,
                 .down = nobody,
                 .message = no_message,
                 .inbox = no_inbox,
                 .slot = no_slot,
                 .hopeless = not_wanted,
                 .differs = not_wanted},
    };
    (void)snprintf(transport.hello.model, sizeof transport.hello.model, "%s",
                   experiment->model->name);
    enum kith_err err = kith_peer_suite(experiment, options->trust,
                                        &transport.suite, gathering->error);
    if (err != KITH_OK)
        return err;
    /* The socket listens on for the run. */
    const int fd = dup(options->listen_fd);
    err = fd < 0 ? KITH_EBUSY
                 : kith_transport_init(&gathering->transport, &gathering->loop,
                                       &transport, fd);
    if (err != KITH_OK)
        return kith_text_fail(gathering->error, KITH_PEER_ERROR_BYTES, err,
                              "opening the transport: %s", kith_err_text(err));
    gathering->transport.pieces.bytes =
        malloc(gathering->store->manifest.piece_bytes);
    return KITH_OK;
}

/* As a run ends: sessions get their FIN, so that the run's are new ones. */
static void close_transport(struct gathering *gathering)
{
    struct kith_transport *const transport = &gathering->transport;
    const kith_ns due_ns = (kith_ns)uv_hrtime() + CLOSE_NS;
    uint8_t *const bytes = transport->pieces.bytes;
    {
        KITH_NET_SCOPE(&transport->net);
        kith_transport_leave(transport);
    }
    while (!kith_transport_is_empty(transport) && is_before(due_ns))
        uv_run(&gathering->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&gathering->tick, NULL);
    kith_transport_stop(transport);
    uv_run(&gathering->loop, UV_RUN_DEFAULT);
    kith_transport_free(transport);
    free(bytes);
}

/* The transport is opened first and closed last; in between it may fail at any
 * piece, and what came is on the disk for the next start. */
static enum kith_err gather(struct gathering *gathering)
{
    gathering->began_ns = (kith_ns)uv_hrtime();
    enum kith_err err = open_transport(gathering);
    if (err != KITH_OK)
        return err;
    uv_timer_init(&gathering->loop, &gathering->tick);
    uv_timer_start(&gathering->tick, ticked, TURN_MS, TURN_MS);
    gathering->members_ns = gathering->began_ns + MEMBERS_NS;
    if (gathering->transport.pieces.bytes == NULL)
        err = KITH_ENOMEM;
    else {
        KITH_NET_SCOPE(&gathering->transport.net);
        kith_transport_unhold(&gathering->transport);
    }
    if (err == KITH_OK)
        err = get_all(gathering);
    if (err == KITH_OK)
        linger(gathering);
    log_totals(gathering);
    close_transport(gathering);
    return err;
}

/* The store asks through this transport, and through none after it. */
static enum kith_err gather_data(const struct kith_peer_options *options,
                                 struct kith_data_store *store, char *error)
{
    struct gathering *const gathering = calloc(1, sizeof *gathering);
    enum kith_err err = KITH_ENOMEM;
    signal(SIGPIPE, SIG_IGN);
    if (gathering != NULL)
        gathering->patience =
            calloc(options->experiment->peers, sizeof *gathering->patience);
    if (gathering != NULL && gathering->patience != NULL &&
        uv_loop_init(&gathering->loop) == 0) {
        gathering->options = options;
        gathering->store = store;
        gathering->error = error;
        store->peers.owner = gathering;
        store->peers.ask = ask;
        store->peers.lied = lied;
        err = gather(gathering);
        store->peers.ask = NULL; /* the run gives, and has all */
        const int left = uv_loop_close(&gathering->loop);
        KITH_ASSERT(left == 0);
    }
    if (gathering != NULL)
        free(gathering->patience);
    free(gathering);
    return err;
}

enum kith_err kith_peer_data_open(struct kith_peer_options *options,
                                  struct kith_peer_data *data, char *error)
{
    struct kith_data_config config = options->experiment->data.config;
    KITH_ASSERT(config.manifest[0] != '\0' && options->listen_fd >= 0);
    memset(data, 0, sizeof *data);
    (void)kith_text_copy(error, KITH_PEER_ERROR_BYTES, "out of memory");
    enum kith_err err =
        kith_data_store_open(&config, options->self, options->experiment->peers,
                             &data->store, error);
    if (err == KITH_OK)
        err = gather_data(options, &data->store, error);
    config.store = &data->store;
    if (err == KITH_OK)
        err = kith_dataset_open(&config, &data->dataset, error);
    if (err != KITH_OK) {
        kith_peer_data_close(data);
        return err;
    }
    options->store = &data->store;
    options->train = &data->dataset.train;
    options->test = &data->dataset.test;
    return KITH_OK;
}

void kith_peer_data_close(struct kith_peer_data *data)
{
    kith_dataset_close(&data->dataset);
    kith_data_store_close(&data->store);
}

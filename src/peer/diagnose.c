/* Which layer fails between here and another member?
 *
 *   name -> tcp -> preface -> handshake -> certificate -> model -> clock
 *   [-> link]
 *
 * One blocking dial per member, one check per layer, and for the first one that
 * fails what was found and what to do. It comes as a visitor: the sessions of a
 * peer that runs under the same identity stay as they are. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "address.h"
#include "kith/text.h"
#include "measure_link.h"
#include "transport.h"

/* A clock this far off is reported; certificates tolerate five minutes. */
#define CLOCK_NOTE_S 30
#define CLOCK_FAIL_S 300

/* One member under examination. */
struct diagnosis {
    const struct kith_doctor_options *options;
    kith_id rank;
    struct kith_visit visit;
    void *memory; /* of its session */
};

/* One layer at a time as it is known: a time-out takes seconds. */
static bool report_ok(const struct diagnosis *diagnosis, const char *layer,
                      const char *found)
{
    const struct kith_doctor_check check = {
        .rank = diagnosis->rank, .ok = true, .layer = layer, .found = found};
    if (diagnosis->options->on_check != NULL)
        diagnosis->options->on_check(diagnosis->options->user, &check);
    return true;
}

/* What was found and what to do about it: the person at the terminal can
 * change something, a log reader cannot. */
static bool report_failure(const struct diagnosis *diagnosis, const char *layer,
                           const char *found, const char *advice)
{
    const struct kith_doctor_check check = {.rank = diagnosis->rank,
                                            .layer = layer,
                                            .found = found,
                                            .advice = advice};
    if (diagnosis->options->on_check != NULL)
        diagnosis->options->on_check(diagnosis->options->user, &check);
    return false;
}

/* ---- name and TCP
 *
 * The layers that need no cryptography: most of what goes wrong in a
 * new cluster is a name, a port or a firewall. */

/* A refusal proves that the machine answers; silence is most often a firewall.
 */
static const char *connect_advice(int number)
{
    if (number == ECONNREFUSED)
        return "the machine answers, nothing listens: start kith there, or "
               "correct the port";
    if (number == ETIMEDOUT)
        return "no answer: open the port in the firewall or security group; "
               "behind NAT forward it";
    return "no route: check the address, and IPv6 on both sides";
}

/* Each address that the name stands for in turn, as a peer dials them (RFC
 * 6724 order, from getaddrinfo). */
static bool check_tcp(struct diagnosis *diagnosis, const struct addrinfo *found)
{
    char text[KITH_ADDRESS_BYTES + 32], address[KITH_ADDRESS_BYTES];
    int number = EHOSTUNREACH;
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        kith_address_print(at->ai_addr, address);
        const kith_ns began_ns = (kith_ns)uv_hrtime();
        number = kith_visit_connect(&diagnosis->visit, at,
                                    diagnosis->options->limits.message_ns);
        if (number == 0) {
            snprintf(text, sizeof text, "%s in %.1f ms", address,
                     1e-6 * (double)((kith_ns)uv_hrtime() - began_ns));
            return report_ok(diagnosis, "tcp", text);
        }
        if (diagnosis->visit.fd >= 0)
            close(diagnosis->visit.fd);
        diagnosis->visit.fd = -1;
    }
    snprintf(text, sizeof text, "%s: %s", address, strerror(number));
    return report_failure(diagnosis, "tcp", text, connect_advice(number));
}

/* The first two layers; the socket stays open for the session. */
static bool check_connection(struct diagnosis *diagnosis)
{
    const char *text = diagnosis->options->members[diagnosis->rank].address;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct kith_address address;
    struct addrinfo *found;
    if (kith_address_parse(text, &address) != KITH_OK)
        return report_failure(diagnosis, "name", "not HOST:PORT",
                              "write it like vm-3:7117 or [2001:db8::3]:7117");
    /* No AI_ADDRCONFIG here, unlike a peer: an address family that this machine
     * lacks should show as "no route", not vanish. */
    const int looked = getaddrinfo(address.host, address.port, &hints, &found);
    if (looked != 0)
        return report_failure(diagnosis, "name", gai_strerror(looked),
                              "correct the name, or use an address");
    const bool connected = report_ok(diagnosis, "name", address.host) &&
                           check_tcp(diagnosis, found);
    freeaddrinfo(found);
    return connected;
}

/* How many bytes had come tells how far the peer got before it went silent. */
static bool explain_silence(const struct diagnosis *diagnosis,
                            enum kith_err err)
{
    const char *found = err == KITH_ETIMEOUT
                            ? "connected, but nothing was said in time"
                            : "the peer closed the connection";
    if (diagnosis->visit.received < KITH_PREFACE_BYTES)
        return report_failure(
            diagnosis, "preface", found,
            "another program listens there, or it is overloaded; its "
            "log would say `refused kind=half_open`");
    report_ok(diagnosis, "preface", "kith");
    return report_failure(
        diagnosis, "handshake", found,
        "the other side refused us: its log says `refused kind=...` "
        "(another authority, another experiment)");
}

/* Of a program's model its loop alone knows the size and the base: what is left
 * to compare is the experiment, with the peer's size. */
static bool is_of_program(const struct diagnosis *diagnosis)
{
    const struct kith_hello *theirs =
        kith_session_peer_hello(diagnosis->visit.session);
    struct kith_experiment experiment = *diagnosis->options->experiment;
    if (!experiment.model->reports)
        return false;
    if (experiment.model_config.dim == 0)
        experiment.model_config.dim = (uint32_t)theirs->dim;
    return kith_experiment_hash(&experiment) == theirs->experiment_hash;
}

/* The peer's HELLO is of something else: all before it went well, and is said
 * to have, so that what is left to compare is the two files. Of a loop of
 * somebody's own the reason would name sizes that the visitor does not know. */
static bool explain_mismatch(const struct diagnosis *diagnosis,
                             const char *reason)
{
    const struct kith_experiment *experiment = diagnosis->options->experiment;
    report_ok(diagnosis, "preface", "kith");
    /* HELLO is sealed: who said it had proved himself before. */
    report_ok(diagnosis, "handshake", "keys agreed");
    report_ok(diagnosis, "certificate",
              kith_session_peer(diagnosis->visit.session)->name);
    return report_failure(
        diagnosis, "model",
        experiment->model->reports ? "the peer has another experiment" : reason,
        "give every peer the same experiment file, and start it "
        "again");
}

/* The session names its reason; which layer that is follows from the error and
 * from the bytes received. */
static bool explain_failure(const struct diagnosis *diagnosis,
                            enum kith_err err)
{
    const char *reason = kith_session_reason(diagnosis->visit.session);
    if (err == KITH_EVERSION)
        return report_failure(
            diagnosis, "preface", reason,
            "use the same release, the same `network.suite` and the same "
            "ca.pub, which has the authority's policy");
    /* Fewer bytes than a preface and message 2: it was not kith that spoke. */
    if (err == KITH_EPARSE &&
        diagnosis->visit.received <= KITH_PREFACE_BYTES + 40)
        return report_failure(diagnosis, "preface", reason,
                              "another program listens on that port");
    if (err == KITH_EMISMATCH)
        return explain_mismatch(diagnosis, reason);
    report_ok(diagnosis, "preface", "kith");
    if (err == KITH_EPERM)
        return report_failure(diagnosis, "certificate", reason,
                              "its log has the details: `refused kind=...`");
    const bool unsigned_by_ours =
        err == KITH_EAUTH && strncmp(reason, "handshake", 9) != 0;
    const char *const advice =
        err == KITH_EEXPIRED
            ? "set both clocks by NTP; if they are right, certify the node "
              "again with `kith keys certify`"
        : err == KITH_EREVOKED
            ? "this node was expelled: give it a new key, or leave it"
        : unsigned_by_ours
            ? "both need the same authority: compare ca.pub on both"
            : NULL;
    if (advice != NULL)
        return report_failure(diagnosis, "certificate", reason, advice);
    return report_failure(
        diagnosis, "handshake", reason,
        "compare the cluster id, the first line of ca.pub or allow");
}

/* HELLO carries the sender's clock. Certificates tolerate five minutes, so a
 * warning comes well before the refusal. */
static bool check_clock(const struct diagnosis *diagnosis)
{
    const struct kith_hello *hello =
        kith_session_peer_hello(diagnosis->visit.session);
    const long long apart =
        llabs((long long)hello->utc_s - (long long)time(NULL));
    char text[64];
    snprintf(text, sizeof text, "%lld s apart", apart);
    if (apart > CLOCK_FAIL_S)
        return report_failure(
            diagnosis, "clock", text,
            "set both by NTP, or certificates will be refused");
    return report_ok(
        diagnosis, "clock",
        apart > CLOCK_NOTE_S ? "more than 30 s apart: is NTP running?" : text);
}

/* Encrypted and certified; still it may be another member than the list says.
 */
static bool check_open(const struct diagnosis *diagnosis)
{
    const struct kith_certificate *peer =
        kith_session_peer(diagnosis->visit.session);
    const struct kith_hello *hello =
        kith_session_peer_hello(diagnosis->visit.session);
    const struct kith_member *member =
        &diagnosis->options->members[diagnosis->rank];
    uint8_t fingerprint[KITH_FINGERPRINT_BYTES];
    char text[160];
    report_ok(diagnosis, "preface", "kith");
    report_ok(diagnosis, "handshake", "keys agreed");
    kith_fingerprint(kith_session_peer_key(diagnosis->visit.session),
                     KITH_KEY_BYTES, fingerprint);
    if (hello->rank != diagnosis->rank ||
        (member->has_fingerprint &&
         memcmp(fingerprint, member->fingerprint, sizeof fingerprint) != 0)) {
        snprintf(text, sizeof text, "%s says it has rank %u", peer->name,
                 hello->rank);
        return report_failure(
            diagnosis, "certificate", text,
            "the member list gives this address or key to another "
            "rank: correct `members`");
    }
    report_ok(diagnosis, "certificate", peer->name);
    snprintf(text, sizeof text, "%s, %llu parameters", hello->model,
             (unsigned long long)hello->dim);
    report_ok(diagnosis, "model", text);
    return check_clock(diagnosis);
}

/* ---- sessions */

/* KITH_NOBODY in HELLO says that this is a visitor: the peer proves itself,
 * takes no place from anybody and closes, unless it is to be measured. False:
 * none could be made. */
static bool make_session(struct diagnosis *diagnosis,
                         const struct kith_hello *hello)
{
    const struct kith_doctor_options *options = diagnosis->options;
    struct kith_session_config config = {
        .initiator = true,
        .trust = options->trust,
        .identity = options->identity,
        .hello = *hello,
        .utc_s = (int64_t)time(NULL),
    };
    char why[KITH_PEER_ERROR_BYTES];
    config.hello.rank = KITH_NOBODY;
    snprintf(config.hello.model, sizeof config.hello.model, "%s",
             options->experiment->model->name);
    diagnosis->memory = malloc(kith_session_size());
    diagnosis->visit.until_ns =
        (kith_ns)uv_hrtime() + options->limits.handshake_ns;
    return diagnosis->memory != NULL &&
           kith_peer_suite(options->experiment, options->trust, &config.suite,
                           why) == KITH_OK &&
           uv_random(NULL, NULL, config.random, sizeof config.random, 0,
                     NULL) == 0 &&
           kith_session_init(diagnosis->memory, &config,
                             &diagnosis->visit.session) == KITH_OK;
}

static void end_session(struct diagnosis *diagnosis)
{
    if (diagnosis->visit.session != NULL)
        kith_session_close(diagnosis->visit.session);
    diagnosis->visit.session = NULL;
    free(diagnosis->memory);
    diagnosis->memory = NULL;
}

/* `theirs` <- the HELLO of a peer that is well. */
static bool check_session(struct diagnosis *diagnosis,
                          struct kith_hello *theirs)
{
    const struct kith_doctor_options *options = diagnosis->options;
    struct kith_session_event event;
    if (!make_session(diagnosis, &(struct kith_hello){
                                     .experiment_hash = kith_experiment_hash(
                                         options->experiment),
                                     .dim = options->dim})) {
        end_session(diagnosis);
        return report_failure(
            diagnosis, "handshake", "no session could be made here",
            "check network.suite and the files of `identity`");
    }
    enum kith_err err =
        kith_visit_await(&diagnosis->visit, KITH_SESSION_OPEN, &event);
    if (err == KITH_EMISMATCH && is_of_program(diagnosis))
        err = KITH_OK;
    const bool is_ok = err == KITH_OK ? check_open(diagnosis)
                       : err == KITH_ECLOSED || err == KITH_ETIMEOUT
                           ? explain_silence(diagnosis, err)
                           : explain_failure(diagnosis, err);
    if (is_ok)
        *theirs = *kith_session_peer_hello(diagnosis->visit.session);
    end_session(diagnosis);
    return is_ok;
}

/* ---- the way there, in visits of their own: of a program's model the peer
 * alone knows the size */

/* Somebody else's turn and, of the same identity, the rest after it. */
#define TURN_NS (2 * KITH_GUEST_NS)
#define PAUSE_MS 250u
#define PAUSE_MAX_MS 2000u

static enum kith_err measure_once(struct diagnosis *diagnosis,
                                  const struct kith_hello *theirs,
                                  struct kith_link_measure *link)
{
    const struct kith_hello hello = {.experiment_hash = theirs->experiment_hash,
                                     .dim = theirs->dim,
                                     .incarnation = KITH_VISIT_MEASURES};
    struct kith_session_event event;
    if (kith_visit_again(&diagnosis->visit,
                         diagnosis->options->limits.message_ns) != 0)
        return KITH_ECLOSED;
    enum kith_err err =
        make_session(diagnosis, &hello)
            ? kith_visit_await(&diagnosis->visit, KITH_SESSION_OPEN, &event)
            : KITH_ENOMEM;
    if (err == KITH_OK)
        err = kith_measure_link(&diagnosis->visit, link);
    end_session(diagnosis);
    return err;
}

/* All machines of a cluster may begin at once, with the same peer: whoever
 * finds it busy asks again until one that was let in just before is gone. */
static enum kith_err measure(struct diagnosis *diagnosis,
                             const struct kith_hello *theirs,
                             struct kith_link_measure *link)
{
    const kith_ns until_ns = kith_host_now() + TURN_NS;
    for (unsigned pause_ms = PAUSE_MS;;) {
        const enum kith_err err = measure_once(diagnosis, theirs, link);
        uint16_t chance = 0;
        if ((err != KITH_ECLOSED && err != KITH_EPERM) ||
            diagnosis->visit.fd < 0 || kith_host_now() >= until_ns)
            return err;
        (void)uv_random(NULL, NULL, &chance, sizeof chance, 0, NULL);
        uv_sleep(pause_ms / 2 + chance % pause_ms);
        pause_ms = pause_ms < PAUSE_MAX_MS / 2 ? 2 * pause_ms : PAUSE_MAX_MS;
    }
}

/* The last layer, where it was asked for. */
static bool check_link(struct diagnosis *diagnosis,
                       const struct kith_hello *theirs)
{
    struct kith_link_measure link;
    char text[160], latency[32], jitter[32];
    const enum kith_err err = measure(diagnosis, theirs, &link);
    if (err == KITH_ECLOSED || err == KITH_EPERM)
        return report_failure(
            diagnosis, "link", "the peer closed the connection",
            "others measure, or it is of a release that answers nobody: try "
            "again in a minute");
    if (err != KITH_OK)
        return report_failure(diagnosis, "link", kith_err_text(err),
                              "the line is slower than 64 kB in 9 s, or the "
                              "peer is overloaded");
    kith_text_from_time(link.latency_ns, latency, sizeof latency);
    kith_text_from_time(link.jitter_ns, jitter, sizeof jitter);
    snprintf(text, sizeof text,
             "latency %s, jitter %s, rate %.4gMbit, loss %.2g", latency, jitter,
             1e-6 * (double)link.rate_bits, link.loss);
    const struct kith_doctor_check check = {.rank = diagnosis->rank,
                                            .ok = true,
                                            .layer = "link",
                                            .found = text,
                                            .link = &link};
    if (diagnosis->options->on_check != NULL)
        diagnosis->options->on_check(diagnosis->options->user, &check);
    return true;
}

/* All layers, in order. */
static bool check_member(struct diagnosis *diagnosis)
{
    struct kith_hello theirs;
    return check_connection(diagnosis) && check_session(diagnosis, &theirs) &&
           (!diagnosis->options->links || check_link(diagnosis, &theirs));
}

/* Which suite the cluster uses, and whether this machine can. */
static bool check_suite(const struct diagnosis *self)
{
    const struct kith_doctor_options *options = self->options;
    enum kith_suite suite;
    char text[KITH_PEER_ERROR_BYTES];
    if (kith_peer_suite(options->experiment, options->trust, &suite, text) !=
        KITH_OK)
        return report_failure(self, "suite", text,
                              "kith list suites says what this machine has");
    snprintf(text, sizeof text, "%s by %s, %s%s", kith_suite_word(suite),
             options->trust->suite != KITH_SUITE_ANY ? "the authority's policy"
                                                     : "network.suite",
             kith_aead_name(kith_aead_best(suite)),
             kith_suite_facts(suite)->unaudited
                 ? "; unaudited, as kith list suites says"
                 : "");
    return report_ok(self, "suite", text);
}

/* Ourselves first: what nobody will accept needs no dial. */
static bool check_own(const struct kith_doctor_options *options)
{
    struct diagnosis self = {.options = options, .rank = options->self};
    const struct kith_identity *identity = options->identity;
    struct kith_certificate decoded;
    const enum kith_err err = kith_trust_check(
        options->trust, identity->certificate, identity->certificate_bytes,
        identity->key, (int64_t)time(NULL), &decoded);
    if (err == KITH_OK)
        return report_ok(&self, "certificate",
                         identity->certificate_bytes > 0 ? decoded.name
                                                         : "on the allow-list");
    return report_failure(
        &self, "certificate", kith_err_text(err),
        err == KITH_EEXPIRED
            ? "set the clock by NTP, or certify this node again"
            : "certify this node's request with the authority whose "
              "ca.pub lies here");
}

/* Members are asked one after another: the output is read from top to bottom,
 * and a cluster has few. */
enum kith_err kith_doctor_run(const struct kith_doctor_options *options,
                              uint32_t *failures, char *error)
{
    const uint32_t peers = options->experiment->peers;
    *failures = 0;
    error[0] = '\0';
    if (options->self >= peers)
        return kith_text_fail(
            error, KITH_PEER_ERROR_BYTES, KITH_EINVAL,
            "doctor: rank %u is not below %u peers; correct `rank`",
            options->self, peers);
    *failures += !check_own(options);
    *failures += !check_suite(
        &(struct diagnosis){.options = options, .rank = options->self});
    for (kith_id rank = 0; rank < peers; rank++) {
        if (rank == options->self)
            continue;
        struct diagnosis diagnosis = {
            .options = options, .rank = rank, .visit = {.fd = -1}};
        *failures += !check_member(&diagnosis);
        if (diagnosis.visit.fd >= 0)
            close(diagnosis.visit.fd);
    }
    return KITH_OK;
}

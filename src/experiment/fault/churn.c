/* churn: peers go and come back, over and over: crashes with restarts, drawn or
 * replayed.
 *
 *   up, down   sessions and absences are drawn for each peer, Weibull of shape
 *              k and that mean: mean / Gamma(1 + 1/k) * Exp(1)^(1/k); k = 1,
 *              the default, is exponential. They begin up to `for` after `at`,
 *              or up to the run's end
 *   diurnal    a day of T in which the time of sessions goes at 1 - s and that
 *              of absences at 1 + s, s = swing * sin(2 pi (t / T - phase)): by
 *              day peers come back sooner and stay longer. Where both are short
 *              beside T a peer is up with up (1 + s) / (up (1 + s) + down
 *              (1 - s)), with which it is at the beginning; (1 + s) / 2 where
 *              both means are the same
 *   trace      lines "MS,add|remove,NODE", ascending, of instances that were
 *              given and taken. A node that is added takes the lowest free
 *              place; the c-th peer of the target is up while place c mod P has
 *              a node, of P places in all. `speed` times as fast as the trace,
 *              and only what goes up to `for` after `at`, where that is given
 *
 * Atoms are those of crash: overlaps are merged with its own. Times are whole
 * microseconds, as libm's last bit is not everywhere the same. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/fault.h"
#include "kith/hash.h"
#include "kith/plain_file.h"
#include "kith/text.h"

#define PLACES_MAX 4096u
#define TRACE_BYTES_MAX (1u << 20)
#define MS_MAX 1000000000000u

extern const struct kith_fault kith_fault_crash, kith_fault_churn;

struct event {
    kith_ns at_ns; /* of the run */
    uint32_t place, order;
    bool adds;
};

struct churn {
    const struct kith_fault_statement *statement;
    struct kith_atoms *atoms;
    char *error; /* KITH_FAULT_ERROR_BYTES */
    kith_ns from_ns, to_ns;
    struct event *events; /* (count) of the trace, then by place */
    uint32_t count, places, line;
    uint32_t first[PLACES_MAX + 1]; /* of each place's */
    const char *nodes[PLACES_MAX];  /* in them now; NULL: free */
};

static enum kith_err KITH_PRINTF(3, 4)
    refuse(const struct churn *churn, enum kith_err err, const char *format,
           ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(churn->error, KITH_FAULT_ERROR_BYTES, format, list);
    va_end(list);
    return err;
}

/* An absence; KITH_NEVER: for good. */
static enum kith_err add_absence(const struct churn *churn, kith_id peer,
                                 kith_ns from_ns, kith_ns to_ns)
{
    struct kith_atom atom = {.at_ns = from_ns,
                             .fault = &kith_fault_crash,
                             .begins = true,
                             .peer = peer,
                             .other = KITH_NOBODY,
                             .factor = 1,
                             .statement = churn->statement->index};
    KITH_ASSERT(from_ns < to_ns);
    enum kith_err err = kith_atoms_add(churn->atoms, &atom);
    atom.begins = false;
    atom.at_ns = to_ns;
    if (err == KITH_OK && to_ns < KITH_NEVER)
        err = kith_atoms_add(churn->atoms, &atom);
    return err;
}

/* ---- a day */

#define TURN 6.283185307179586

/* cos(2 pi x), by its series: the same bits everywhere, as kith/exp_log.h. */
static double turn_cos(double x)
{
    x -= floor(x);
    if (x > 0.5)
        x = 1 - x;
    const bool is_back = x > 0.25;
    const double angle = TURN * (is_back ? 0.5 - x : x);
    double sum = 1;
    for (int i = 22; i > 0; i -= 2)
        sum = 1 - sum * angle * angle / (i * (i - 1));
    return is_back ? -sum : sum;
}

struct day {
    double us, swing, phase; /* its length; 0: there is none */
};

static struct day day_of(const struct kith_fault_statement *statement,
                         kith_id peer)
{
    struct day day = {(double)statement->diurnal_ns / KITH_US, statement->swing,
                      0};
    if (statement->diurnal_ns == 0)
        return day;
    KITH_ASSERT(day.swing > 0 && day.swing <= 1);
    if (statement->phase_by_zone)
        day.phase = (double)kith_zone_of(statement->zones, peer) /
                    statement->zones->count;
    else
        day.phase = (double)statement->phase_ns / (double)statement->diurnal_ns;
    return day;
}

/* The sine at a time. */
static double day_at(const struct day *day, double us)
{
    return day->swing * turn_cos(us / day->us - day->phase - 0.25);
}

/* How long a span lasts that begins at from_us: where its own time, the
 * integral of 1 - s or of 1 + s, has gone by. To a quarter of a microsecond, by
 * halving: the integral is within swing * T / pi of the time itself. */
static double day_span(const struct day *day, double from_us, double span_us,
                       bool is_up)
{
    const double depth = (is_up ? 1 : -1) * day->swing * day->us / TURN;
    const double begins = turn_cos(from_us / day->us - day->phase);
    double low = 0, high = span_us + 2 * fabs(depth) + 1;
    while (high - low > 0.25) {
        const double middle = low + (high - low) / 2;
        const double ends = turn_cos((from_us + middle) / day->us - day->phase);
        if (middle <= low || middle >= high)
            break; /* as near as these numbers are */
        if (middle + depth * (ends - begins) < span_us)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* ---- drawn */

/* Of a session or an absence that begins then. */
static kith_ns draw_span(const struct kith_fault_statement *statement,
                         const struct day *day, kith_ns from_ns, bool is_up,
                         struct kith_rng *rng)
{
    const kith_ns mean_ns = is_up ? statement->up_ns : statement->down_ns;
    const double one = 1.0 / statement->shape;
    /* Of mean 1: in 2^40ths. */
    const double x =
        (double)kith_rng_exponential(rng, INT64_C(1) << 40) / 0x1p40;
    double us = (double)mean_ns / KITH_US / tgamma(1 + one) * pow(x, one);
    if (day->us > 0 && us < (double)(KITH_TIME_MAX / 4 / KITH_US))
        us = day_span(day, (double)from_ns / KITH_US, us, is_up);
    if (us >= (double)(KITH_TIME_MAX / 4 / KITH_US))
        return KITH_TIME_MAX / 4;
    return us < 1 ? KITH_US : (kith_ns)us * KITH_US;
}

static bool begins_away(const struct kith_fault_statement *statement,
                        const struct day *day, kith_ns at_ns,
                        struct kith_rng *rng)
{
    const double s = day_at(day, (double)at_ns / KITH_US);
    const double up = (double)statement->up_ns * (1 + s);
    const double down = (double)statement->down_ns * (1 - s);
    KITH_ASSERT(up + down > 0);
    return kith_rng_double(rng) * (up + down) >= up;
}

static enum kith_err draw_peer(struct churn *churn, kith_id peer)
{
    const struct kith_fault_statement *statement = churn->statement;
    const struct day day = day_of(statement, peer);
    struct kith_rng rng;
    kith_ns now_ns = churn->from_ns;
    enum kith_err err = KITH_OK;
    kith_rng_init(&rng, statement->seed, KITH_STREAM_FAULT,
                  kith_hash_word(statement->entity, peer + UINT64_C(1)));
    if (day.us > 0 && begins_away(statement, &day, now_ns, &rng)) {
        now_ns += draw_span(statement, &day, now_ns, false, &rng);
        err = add_absence(churn, peer, churn->from_ns, now_ns);
    }
    while (err == KITH_OK) {
        const kith_ns left_ns =
            kith_ns_add(now_ns, draw_span(statement, &day, now_ns, true, &rng));
        if (left_ns >= churn->to_ns)
            break;
        now_ns = left_ns + draw_span(statement, &day, left_ns, false, &rng);
        err = add_absence(churn, peer, left_ns, now_ns);
    }
    return err;
}

/* ---- replayed */

static enum kith_err read_event(struct churn *churn, char *line)
{
    const double speed = churn->statement->speed;
    char shown[64];
    char *rest = line;
    uint64_t ms;
    (void)snprintf(shown, sizeof shown, "%s", line);
    const char *const when = strtok_r(rest, ",\r", &rest);
    const char *const what = strtok_r(rest, ",\r", &rest);
    const char *const node = strtok_r(rest, ",\r", &rest);
    const bool adds = what != NULL && strcmp(what, "add") == 0;
    if (node == NULL || strtok_r(rest, ",\r", &rest) != NULL ||
        kith_text_u64(when, &ms) != KITH_OK || ms > MS_MAX ||
        (!adds && strcmp(what, "remove") != 0))
        return refuse(churn, KITH_EPARSE,
                      "%.200s:%u: found \"%s\"; allowed: \"MS,add,NODE\" or "
                      "\"MS,remove,NODE\"",
                      churn->statement->trace, churn->line, shown);
    uint32_t place = 0;
    while (place < churn->places && (churn->nodes[place] == NULL ||
                                     strcmp(churn->nodes[place], node) != 0))
        place++;
    if ((place < churn->places) == adds)
        return refuse(churn, KITH_EINVAL,
                      "%.200s:%u: found \"%s\" of a node that is %s; allowed: "
                      "each added and removed in turn",
                      churn->statement->trace, churn->line, shown,
                      adds ? "there already" : "not there");
    for (place = adds ? 0 : place; adds && churn->nodes[place] != NULL;)
        if (++place == PLACES_MAX)
            return refuse(churn, KITH_ELIMIT,
                          "%.200s:%u: found more nodes at a time; allowed: up "
                          "to %u",
                          churn->statement->trace, churn->line, PLACES_MAX);
    churn->nodes[place] = adds ? node : NULL;
    churn->places += place == churn->places;
    /* What is later than any run is as late as that. */
    const double us =
        fmin((double)ms * 1000 / speed, (double)(KITH_TIME_MAX / 4 / KITH_US));
    const kith_ns at_ns = kith_ns_add(churn->from_ns, (kith_ns)us * KITH_US);
    if (churn->count > 0 && at_ns < churn->events[churn->count - 1].at_ns)
        return refuse(churn, KITH_EINVAL,
                      "%.200s:%u: found \"%s\" earlier than the line before; "
                      "allowed: ascending times",
                      churn->statement->trace, churn->line, shown);
    churn->events[churn->count] =
        (struct event){at_ns, place, churn->count, adds};
    churn->count++;
    return KITH_OK;
}

static int by_place(const void *x, const void *y)
{
    const struct event *a = x, *b = y;
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static enum kith_err read_events(struct churn *churn, char *text)
{
    enum kith_err err = KITH_OK;
    char *line;
    uint32_t lines = 1;
    for (const char *at = text; *at != '\0'; at++)
        lines += *at == '\n';
    churn->events = malloc(lines * sizeof *churn->events);
    if (churn->events == NULL)
        return KITH_ENOMEM;
    while (err == KITH_OK && text != NULL) {
        line = text;
        text = strchr(line, '\n');
        if (text != NULL)
            *text++ = '\0';
        churn->line++;
        if (line[strspn(line, " \r")] != '\0')
            err = read_event(churn, line);
    }
    if (err == KITH_OK && churn->count == 0)
        err = refuse(churn, KITH_EPARSE,
                     "%.200s: found nothing; allowed: lines \"MS,add,NODE\"",
                     churn->statement->trace);
    if (err != KITH_OK)
        return err;
    qsort(churn->events, churn->count, sizeof *churn->events, by_place);
    for (uint32_t i = 0; i < churn->count; i++)
        churn->first[churn->events[i].place + 1] = i + 1;
    return KITH_OK;
}

/* *text is malloc'd, also where it fails. */
static enum kith_err read_trace(struct churn *churn, char **text)
{
    char why[KITH_FILE_WHY_BYTES];
    size_t size;
    int fd;
    enum kith_err err =
        kith_file_open(churn->statement->trace, &fd, &size, why);
    if (err != KITH_OK)
        return refuse(churn, err, "%.300s cannot be opened: %s",
                      churn->statement->trace, why);
    FILE *stream = kith_file_stream(fd, "rb");
    if (stream == NULL)
        return KITH_ENOMEM;
    if (size > TRACE_BYTES_MAX)
        err = refuse(churn, KITH_ELIMIT,
                     "%.300s: found %zu bytes; allowed: at most %u",
                     churn->statement->trace, size, TRACE_BYTES_MAX);
    else if ((*text = calloc(1, size + 1)) == NULL)
        err = KITH_ENOMEM;
    else {
        const size_t got = fread(*text, 1, size, stream);
        if (ferror(stream) || memchr(*text, 0, got) != NULL)
            err = refuse(churn, KITH_EPARSE, "%.300s: is not text",
                         churn->statement->trace);
    }
    (void)fclose(stream);
    return err;
}

/* Down from the beginning until its place has a node. */
static enum kith_err replay_peer(struct churn *churn, kith_id peer,
                                 uint32_t place)
{
    const struct event *at = churn->events + churn->first[place];
    const struct event *const end = churn->events + churn->first[place + 1];
    kith_ns since_ns = churn->from_ns;
    enum kith_err err = KITH_OK;
    for (; err == KITH_OK && at < end; at++)
        if (!at->adds)
            since_ns = at->at_ns;
        else if (at->at_ns > since_ns && since_ns <= churn->to_ns)
            err = add_absence(churn, peer, since_ns, at->at_ns);
    if (err == KITH_OK && !end[-1].adds && since_ns <= churn->to_ns)
        err = add_absence(churn, peer, since_ns, KITH_NEVER);
    return err;
}

/* ---- the statement */

static enum kith_err check_keys(const struct churn *churn)
{
    const struct kith_fault_statement *statement = churn->statement;
    const bool has_phase = statement->phase_ns > 0 || statement->phase_by_zone;
    const bool is_drawn = statement->up_ns > 0 || statement->down_ns > 0 ||
                          statement->shape > 0 || statement->diurnal_ns > 0 ||
                          statement->swing > 0 || has_phase;
    const bool is_replayed =
        statement->trace[0] != '\0' || statement->speed > 0;
    if (is_drawn == is_replayed)
        return refuse(churn, KITH_EINVAL,
                      "found %s; allowed: up, down and for, with a shape; or a "
                      "trace, with a speed",
                      is_drawn ? "both drawn and replayed sessions"
                               : "no sessions");
    if (is_replayed && statement->trace[0] == '\0')
        return refuse(churn, KITH_EINVAL,
                      "trace: not given; allowed: a file of lines "
                      "\"MS,add,NODE\"");
    if (is_drawn && (statement->up_ns == 0 || statement->down_ns == 0))
        return refuse(churn, KITH_EINVAL,
                      "%s: not given; allowed: the mean time, such as 10m",
                      statement->up_ns == 0 ? "up" : "down");
    if (statement->diurnal_ns == 0 && (statement->swing > 0 || has_phase))
        return refuse(churn, KITH_EINVAL,
                      "%s: found without diurnal; allowed: beside a day such "
                      "as diurnal: 24h",
                      has_phase ? "phase" : "swing");
    if (statement->phase_by_zone && statement->zones->count == 0)
        return refuse(churn, KITH_EINVAL,
                      "phase: found zones, of which there are none; allowed: "
                      "with network.zones, matrix or coordinates");
    if (is_drawn && churn->to_ns == KITH_NEVER)
        return refuse(churn, KITH_EINVAL,
                      "for: not given; allowed: how long sessions are drawn, "
                      "or a stop.time, up to which they are");
    return KITH_OK;
}

static enum kith_err expand_each(struct churn *churn, const uint8_t *chosen)
{
    const bool is_drawn = churn->statement->trace[0] == '\0';
    char *text = NULL;
    uint32_t nth = 0;
    enum kith_err err = is_drawn ? KITH_OK : read_trace(churn, &text);
    if (err == KITH_OK && !is_drawn)
        err = read_events(churn, text);
    for (kith_id i = 0; err == KITH_OK && i < churn->statement->peers; i++)
        if (chosen[i])
            err = is_drawn ? draw_peer(churn, i)
                           : replay_peer(churn, i, nth++ % churn->places);
    free(churn->events);
    free(text);
    return err;
}

/* The run's, where `for` is not given; a trace's own is as good. */
static kith_ns end_of(const struct churn *churn, struct kith_rng *rng)
{
    const struct kith_fault_statement *statement = churn->statement;
    if (statement->length.kind != KITH_SPREAD_NONE)
        return churn->from_ns + kith_spread_draw(&statement->length, rng);
    return statement->stop_ns > 0 && statement->trace[0] == '\0'
               ? statement->stop_ns
               : KITH_NEVER;
}

static enum kith_err expand(const struct kith_fault_statement *statement,
                            struct kith_atoms *atoms, char *error)
{
    struct kith_fault_statement filled = *statement;
    struct churn *churn = calloc(1, sizeof *churn);
    uint8_t *chosen = malloc(statement->peers);
    struct kith_rng rng;
    enum kith_err err = KITH_ENOMEM;
    if (churn == NULL || chosen == NULL)
        goto out;
    *churn =
        (struct churn){.statement = statement, .atoms = atoms, .error = error};
    kith_rng_init(&rng, statement->seed, KITH_STREAM_FAULT, statement->entity);
    err = kith_selector_parse(statement->target, statement->peers, &rng, chosen,
                              error);
    if (err != KITH_OK)
        goto out;
    churn->from_ns = kith_spread_draw(&statement->at, &rng);
    churn->to_ns = end_of(churn, &rng);
    err = check_keys(churn);
    if (err != KITH_OK)
        goto out;
    filled.swing = statement->swing > 0 ? statement->swing : 1;
    filled.shape = statement->shape > 0 ? statement->shape : 1;
    filled.speed = statement->speed > 0 ? statement->speed : 1;
    churn->statement = &filled;
    err = expand_each(churn, chosen);
out:
    free(chosen);
    free(churn);
    return err;
}

const struct kith_fault kith_fault_churn = {
    .name = "churn",
    .summary = "peers crash and come back, by drawn times or by a trace",
    .paper = "Stutzbach, Rejaie, IMC 2006 (Weibull sessions); Thorpe et al., "
             "Bamboo, NSDI 2023 (traces)",
    .keys = KITH_FAULT_TAKES(FOR) | KITH_FAULT_TAKES(UP) |
            KITH_FAULT_TAKES(DOWN) | KITH_FAULT_TAKES(SHAPE) |
            KITH_FAULT_TAKES(TRACE) | KITH_FAULT_TAKES(SPEED) |
            KITH_FAULT_TAKES(DIURNAL) | KITH_FAULT_TAKES(PHASE) |
            KITH_FAULT_TAKES(SWING),
    .effect = KITH_EFFECT_STOP,
    .begin = {"crash", 0},
    .end = {"restart", 1},
    .expand = expand,
};

/* model.run: a lab's peers are processes of a program of the user's.
 *
 *   fork -> place into a descriptor -> output into a file -> exec
 *
 * The command is run as it stands, without a shell, where its words are plain;
 * one with any of the shell's own characters is `/bin/sh -c`'s, as make does
 * it. It runs in the experiment file's folder, as a process group of its own,
 * with signals as usual: a fault meets all of its processes.
 *
 * Test: integration/test_lab_program.sh */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kith/text.h"
#include "src/lab/child.h"
#include "src/lab/launcher.h"

#define WORDS_MAX 128u
/* What of a file's end is looked at for its last lines, and how many. */
#define TAIL_BYTES 2048
#define TAIL_LINES 3

bool kith_lab_is_program(const struct kith_experiment *experiment)
{
    return experiment->run.command[0] != '\0';
}

/* The database's name with another ending: NAME.peer-3.out. */
static void output_of(const char *database, kith_id peer, char *path)
{
    size_t length = strlen(database);
    char who[32] = "average";
    if (length > 3 && strcmp(database + length - 3, ".db") == 0)
        length -= 3;
    if (peer != KITH_NOBODY)
        (void)snprintf(who, sizeof who, "peer-%u", (unsigned)peer);
    const int written = snprintf(path, KITH_PATH_BYTES_MAX, "%.*s.%s.out",
                                 (int)length, database, who);
    if (written < 0 || (size_t)written >= KITH_PATH_BYTES_MAX)
        path[0] = '\0';
}

/* ---- in the forked process */

/* What it prints while the place is without a peer is to be found there, too.
 */
static bool send_output(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0 &&
           dup2(fd, STDERR_FILENO) >= 0;
}

static void default_signals(void)
{
    static const int ours[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        (void)signal(ours[i], SIG_DFL);
}

static void hand_on(int fd)
{
    if (fd >= 0)
        (void)fcntl(fd, F_SETFD, 0);
}

/* Returns where it cannot: errno. */
static void execute(char *command)
{
    char *words[WORDS_MAX + 1], *state = NULL;
    size_t count = 0;
    if (strpbrk(command, "\"'\\$`|&;<>()[]{}*?#~=!\n") != NULL) {
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        return;
    }
    char *word = strtok_r(command, " \t", &state);
    for (; word != NULL && count < WORDS_MAX; count++) {
        words[count] = word;
        word = strtok_r(NULL, " \t", &state);
    }
    words[count] = NULL;
    errno = word != NULL ? E2BIG : ENOENT;
    if (word == NULL && count > 0)
        (void)execvp(words[0], words);
}

/* Never returns where all goes well; else with what did not. */
static void become(const struct lab_child *child,
                   const struct kith_lab_place *place, kith_id named, char *why)
{
    const struct kith_experiment *experiment = child->experiment;
    char output[KITH_PATH_BYTES_MAX], number[16];
    char command[sizeof experiment->run.command];
    int fd = -1;
    output_of(child->output, named, output);
    if (!send_output(output)) {
        (void)snprintf(why, KITH_LAB_ERROR_BYTES,
                       "cannot write its output to %.300s: %s", output,
                       strerror(errno));
        return;
    }
    if (kith_lab_place_give(place, &fd) != KITH_OK) {
        (void)snprintf(why, KITH_LAB_ERROR_BYTES, "cannot make its place: %s",
                       strerror(errno));
        return;
    }
    hand_on(place->rows_fd);
    hand_on(place->control_fd);
    hand_on(place->listen_fd);
    hand_on(place->average_fd);
    default_signals();
    (void)snprintf(number, sizeof number, "%d", fd);
    (void)kith_text_copy(command, sizeof command, experiment->run.command);
    if (setenv(KITH_PLACE_VARIABLE, number, 1) == 0 &&
        chdir(experiment->run.folder) == 0)
        execute(command);
    (void)snprintf(why, KITH_LAB_ERROR_BYTES,
                   "cannot start model.run \"%.150s\" in %.150s: %s",
                   experiment->run.command, experiment->run.folder,
                   strerror(errno));
}

int kith_lab_program_peer(void *user, int rows_fd, int control_fd)
{
    const struct lab_child *child = user;
    struct kith_speaker *speaker;
    struct kith_lab_place place;
    const struct kith_peer_report nothing = {.finished = false};
    char why[KITH_LAB_ERROR_BYTES] = "";
    kith_lab_child_place(child, rows_fd, control_fd, &place);
    become(child, &place, child->self, why);
    if (kith_speaker_open(&place, NULL, &speaker) == KITH_OK) {
        kith_speaker_end(speaker, KITH_ENOENT, &nothing, why);
        kith_speaker_close(speaker);
    }
    return 127;
}

/* (dim) float32 of the average, in memory that outlives exec; -1: no room. */
static int average_file(const struct lab_average *average)
{
    const int fd = memfd_create("kith average", 0);
    FILE *file = fd < 0 ? NULL : fdopen(dup(fd), "w");
    bool whole = file != NULL;
    for (size_t k = 0; whole && k < average->dim; k++) {
        const float value = (float)average->mean[k];
        whole = fwrite(&value, sizeof value, 1, file) == 1;
    }
    if (file != NULL && fclose(file) != 0)
        whole = false;
    if (!whole && fd >= 0)
        (void)close(fd);
    return whole ? fd : -1;
}

/* It evaluates, and proves nothing to anybody: it gets no key. */
int kith_lab_program_score(void *user, int rows_fd, int control_fd)
{
    static const struct kith_identity nobody;
    const struct lab_child *child = user;
    struct lab_average own, *average = child->average;
    struct kith_lab_place place;
    char why[KITH_LAB_ERROR_BYTES] = "out of memory for the average";
    (void)control_fd;
    if (average == NULL && !kith_lab_child_average(child, &own))
        return 1;
    average = average == NULL ? &own : average;
    kith_lab_child_place(child, rows_fd, -1, &place);
    place.identity = &nobody;
    place.average = kith_lab_average_facts(average);
    place.average_fd = average_file(average);
    if (place.average_fd >= 0)
        become(child, &place, KITH_NOBODY, why);
    fprintf(stderr, "kith lab: %s\n", why);
    return 127;
}

/* ---- in the launcher */

/* The last lines of a text, as one: "a | b | c". Cuts it up. */
static void join_lines(char *text, char *line, size_t size)
{
    const char *last[TAIL_LINES] = {NULL};
    size_t count = 0, at = 0;
    char *state = NULL;
    for (char *one = strtok_r(text, "\n", &state); one != NULL;
         one = strtok_r(NULL, "\n", &state))
        if (one[strspn(one, " \t\r")] != '\0')
            last[count++ % TAIL_LINES] = one;
    line[0] = '\0';
    for (size_t i = count > TAIL_LINES ? count - TAIL_LINES : 0; i < count; i++)
        at = kith_text_add(line, size, at, "%s%.200s", at == 0 ? "" : " | ",
                           last[i % TAIL_LINES]);
}

/* "; /path/x.peer-3.out ends: a | b | c". */
static void add_tail(const struct lab *lab, kith_id peer, char *text,
                     size_t size)
{
    char path[KITH_PATH_BYTES_MAX], bytes[TAIL_BYTES + 1], line[640];
    output_of(lab->options->output, peer, path);
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return;
    if (fseek(file, -TAIL_BYTES, SEEK_END) != 0)
        rewind(file);
    const size_t got = fread(bytes, 1, TAIL_BYTES, file);
    (void)fclose(file);
    for (size_t i = 0; i < got; i++)
        if (bytes[i] == '\0')
            bytes[i] = ' ';
    bytes[got] = '\0';
    join_lines(bytes, line, sizeof line);
    (void)kith_text_add(text, size, strlen(text), "; %.300s %s%s", path,
                        line[0] == '\0' ? "is empty" : "ends: ", line);
}

bool kith_lab_program_ended(const struct lab_peer *peer, char *text,
                            size_t size)
{
    const struct lab *lab = peer->lab;
    const bool left = peer->process.status == 0 && peer->has_final &&
                      peer->final.err == KITH_OK;
    if (peer->process.status != 0)
        kith_lab_process_text(&peer->process, text, size);
    else if (peer->state == LAB_PEER_STARTED)
        (void)snprintf(text, size,
                       "its program ended without opening a peer (kith.Peer, "
                       "kith_open)");
    else if (!peer->has_final)
        (void)snprintf(text, size,
                       "its program ended without closing its peer");
    else if (left && !peer->final.finished && !lab->stopping)
        (void)snprintf(text, size,
                       "its program ended before its share of steps, after "
                       "%llu",
                       (unsigned long long)peer->last.step);
    else
        text[0] = '\0';
    if (peer->final.text[0] != '\0')
        (void)kith_text_add(text, size, strlen(text), ": %s", peer->final.text);
    else if (text[0] != '\0')
        add_tail(lab, peer->rank, text, size);
    return left;
}

void kith_lab_program_wait(struct lab *lab)
{
    if (!kith_lab_is_program(&lab->experiment) ||
        kith_host_now() < lab->remind_ns)
        return;
    lab->remind_ns = kith_host_now() + LAB_REMIND_NS;
    for (uint32_t i = 0; i < lab->peer_count; i++)
        if (lab->peers[i].state != LAB_PEER_READY) {
            char text[1024];
            (void)snprintf(text, sizeof text,
                           "waiting for peer %u: its program has not opened "
                           "its peer yet (kith.Peer, kith_open)",
                           (unsigned)i);
            add_tail(lab, i, text, sizeof text);
            kith_lab_say(lab, "%s", text);
            return;
        }
}

struct kith_score kith_lab_program_measure(struct lab *lab,
                                           struct lab_average *average)
{
    const uint32_t signals = lab->signals;
    lab->scored = (struct kith_score){(double)NAN, (double)NAN};
    bool any = false; /* a program that reports nothing is not asked */
    for (uint32_t i = 0; i < lab->peer_count; i++)
        any = any || isfinite(lab->peers[i].reported.accuracy) ||
              isfinite(lab->peers[i].reported.loss);
    if (!any)
        return lab->scored;
    kith_lab_process_end(&lab->score);
    lab->progress_ns = KITH_NEVER;
    kith_lab_score_start(lab, average);
    const kith_ns deadline_ns = kith_host_now() + LAB_MEASURE_NS;
    while (lab->scoring && lab->err == KITH_OK && lab->signals == signals &&
           kith_host_now() < deadline_ns)
        kith_lab_turn(lab, kith_host_now() + KITH_S);
    const bool in_order = !lab->scoring;
    kith_lab_process_end(&lab->score);
    lab->scoring = false;
    if (!isfinite(lab->scored.accuracy) && !isfinite(lab->scored.loss)) {
        char text[1024] = "";
        add_tail(lab, KITH_NOBODY, text, sizeof text);
        kith_lab_say(lab,
                     "the averaged model was not evaluated: the program %s "
                     "without peer.report() of it%s",
                     in_order ? "ended" : "ran on", text);
    }
    return lab->scored;
}

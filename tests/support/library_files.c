/* See library_files.h. */
#include "library_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <sys/socket.h>

#include "kith/keys.h"

enum { PATH = 128 };

void library_files_write(const struct library_files *files, const char *name,
                         const char *text)
{
    char path[PATH];
    (void)snprintf(path, sizeof path, "%s/%s", files->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static unsigned free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    (void)close(fd);
    return ntohs(address.sin_port);
}

static void make_keys(const struct library_files *files, unsigned rank)
{
    char ca[PATH], node[PATH], path[2 * PATH], out[2 * PATH],
        error[KITH_KEYS_ERROR_BYTES];
    (void)snprintf(ca, sizeof ca, "%s/ca", files->folder);
    (void)snprintf(node, sizeof node, "%s/%u", files->folder, rank);
    (void)snprintf(path, sizeof path, "%s/node.request", node);
    (void)snprintf(out, sizeof out, "%s/node.crt", node);
    assert_int_equal(kith_keys_new_node(node, rank ? "one" : "zero", error),
                     KITH_OK);
    assert_int_equal(
        kith_keys_certify(ca, path, out, 30, KITH_ROLE_TRAIN, rank, error),
        KITH_OK);
    (void)snprintf(path, sizeof path, "%s/ca.pub", ca);
    (void)snprintf(out, sizeof out, "%s/ca.pub", node);
    assert_int_equal(symlink(path, out), 0);
}

void library_files_make(struct library_files *files, unsigned dim,
                        unsigned steps)
{
    char text[800], ca[PATH], error[KITH_KEYS_ERROR_BYTES];
    (void)strcpy(files->folder, "/tmp/kith-library.XXXXXX");
    assert_non_null(mkdtemp(files->folder));
    (void)snprintf(ca, sizeof ca, "%s/ca", files->folder);
    assert_int_equal(kith_keys_new_authority(ca, KITH_SUITE_ANY, error),
                     KITH_OK);
    const unsigned ports[LIBRARY_PEERS] = {free_port(), free_port()};
    for (unsigned i = 0; i < LIBRARY_PEERS; i++) {
        char name[32];
        make_keys(files, i);
        (void)snprintf(name, sizeof name, "peer-%u.yaml", i);
        (void)snprintf(text, sizeof text,
                       "experiment: run.yaml\nidentity: \"%u\"\nrank: %u\n"
                       "listen: \"127.0.0.1:%u\"\nsave: save-%u\nmembers:\n"
                       "  - \"127.0.0.1:%u\"\n  - \"127.0.0.1:%u\"\n",
                       i, i, ports[i], i, ports[0], ports[1]);
        library_files_write(files, name, text);
    }
    (void)snprintf(text, sizeof text,
                   "name: calls\npeers: %d\nstop: {steps: %u}\n"
                   "model: {kind: program, dim: %u}\n"
                   "gossip: {algorithm: adpsgd, every: 2}\n",
                   LIBRARY_PEERS, steps, dim);
    library_files_write(files, "run.yaml", text);
}

void library_files_remove(const struct library_files *files)
{
    char command[PATH];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", files->folder);
    assert_int_equal(system(command), 0);
}

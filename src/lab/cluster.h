/* A throw-away cluster on loopback: an authority that lives for one run, a
 * certificate and an address for every peer, a private folder for their saves.
 *
 * Keys come from the operating system's random generator and are never written
 * to disk. The authority's secret is wiped as soon as it has signed. */
#ifndef KITH_LAB_CLUSTER_H
#define KITH_LAB_CLUSTER_H

#include <stdint.h>

#include "kith/err.h"
#include "kith/lab.h"
#include "kith/limits.h"
#include "kith/peer.h"
#include "kith/session.h"

struct lab_cluster {
    uint32_t peers;
    struct kith_trust trust;
    struct kith_identity *identities; /* (peers) */
    struct kith_member *members;      /* (peers) */
    uint16_t *ports;                  /* (peers) */
    int *reserved; /* (peers) bound, never listening: keeps a dead peer's port
                      while connections to it are refused */
    struct kith_lab_folder folder;
};

/* port 0: any free ones, else port + rank. saves: kith_lab_folder_open's.
 * KITH_EADDRINUSE, KITH_EBUSY, KITH_ENOMEM, KITH_EPERM and the like, with one
 * line in error (KITH_LAB_ERROR_BYTES); nothing needs closing then. */
KITH_MUST_CHECK enum kith_err
kith_lab_cluster_open(struct lab_cluster *cluster, uint32_t peers,
                      uint16_t port, const char *saves, char *error);
/* Wipes the keys, frees the ports, removes the folder and what is in it. */
void kith_lab_cluster_close(struct lab_cluster *cluster);
/* A fresh listening socket on this peer's port, for its next process. */
KITH_MUST_CHECK enum kith_err
kith_lab_cluster_listen(struct lab_cluster *cluster, kith_id peer, int *fd,
                        char *error);
/* FOLDER/peer-RANK.save, KITH_PATH_BYTES_MAX. */
void kith_lab_cluster_save_path(const struct lab_cluster *cluster, kith_id peer,
                                char *path);
/* Wipes every identity but one: what a peer's process does first. */
void kith_lab_cluster_keep_only(struct lab_cluster *cluster, kith_id peer);

#endif

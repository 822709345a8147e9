/* Every bound on what a peer, a file or a user can make us do, with its reason.
 * This screen is the threat surface: nothing is allocated past these numbers.
 */
#ifndef KITH_LIMITS_H
#define KITH_LIMITS_H

/* Peers of one run: ranks are 32-bit, a simulator of a million fits 1 GiB. */
#define KITH_PEERS_MAX (1u << 20)
/* Neighbours of one `round`: complete graph of 64; larger graphs are sparse. */
#define KITH_DEGREE_MAX 64u
/* Swaps that a peer asks for at a time, and as many that it answers; each has
 * two vectors. Exchanges under way at one end: */
#define KITH_EXCHANGES_LIMIT 4u
#define KITH_OVERLAP_MAX (2u * KITH_EXCHANGES_LIMIT)
/* Peers that one meets over all rounds of a schedule, where that is not
 * everybody: 8 rounds of 64, or 20 to and fro of one. */
#define KITH_LINKS_MAX 512u
/* An edge list: 64 neighbours for each of 10,000 peers, 20 bytes a line. */
#define KITH_GRAPH_BYTES_MAX (16u << 20)
/* Regions of a matrix of round trips, and its file: 8 bytes for each of their
 * pairs, 128 MiB. A matrix takes as much memory, twice with quantiles. */
#define KITH_REGIONS_MAX 4096u
#define KITH_LATENCIES_BYTES_MAX (128u << 20)
/* Zones: each two have a line each way, of 40 bytes. */
#define KITH_ZONES_MAX 256u
/* Statements of `classes`: one byte a peer says in which it is. */
#define KITH_MACHINE_CLASSES_MAX 64u
/* Scalars that travel with one model: push-sum's weight. Every idle peer holds
 * four times as many, 8 bytes each. */
#define KITH_SCALARS_MAX 1u
/* A model from which nobody can go on costs its receiver one vector more, of
 * the last good one: kept after so many good steps, gone back to where the loss
 * is so many times (1 + the first one). What is further from it an element is
 * not merged: honest models are within 1e3, values from 1e10 on end a step. */
#define KITH_KEEP_STEPS 16u
#define KITH_LOSS_WORSE 1e6
#define KITH_MODEL_FAR 1e6
/* Suspected neighbours a peer remembers; the oldest is forgotten. */
#define KITH_SUSPECTS_MAX 6u
/* A control frame: its headers are under 100 bytes, lists travel as bulk. */
#define KITH_CONTROL_BYTES_MAX 16384u
/* Noise: a transport message is at most 65,535 bytes, tag included. */
#define KITH_RECORD_BYTES_MAX 65535u
#define KITH_TAG_BYTES 16u
/* Payload of a bulk record: 1,023 cache lines, inside Noise's 65,519. */
#define KITH_BULK_BYTES 65472u
/* Records of one burst: control frames wait at most 1 MiB. */
#define KITH_BURST_RECORDS 16u
#define KITH_BURST_BYTES (KITH_BURST_RECORDS * KITH_BULK_BYTES)
/* Rekey per direction: 4 GiB under one key; AES-GCM stays 2^73 away from
 * trouble. */
#define KITH_REKEY_RECORDS (1u << 16)
/* A certificate in canonical TLV: names and keys of fixed length. */
#define KITH_CERTIFICATE_BYTES_MAX 512u
/* Fingerprints in a revocation list: 128 kB of them. */
#define KITH_REVOKED_MAX 4096u
/* Lines of an allow-list: small clusters without an authority. */
#define KITH_ALLOWED_MAX 4096u
/* Parameters of a model: 1.6 G (GPT-2 XL), 6.4 GB of float32. */
#define KITH_PARAMETERS_MAX (UINT64_C(1) << 31)
/* Classes that a model tells apart: ImageNet-21k has 21,841. */
#define KITH_CLASSES_MAX (1u << 16)
/* Height or width of an image. */
#define KITH_SIDE_MAX 4096u
/* Layers of an mlp, input and output included. */
#define KITH_LAYERS_MAX 16u
/* An experiment or peer file; a page of YAML is 4 kB. */
#define KITH_YAML_BYTES_MAX (1u << 20)
/* Fault statements in a file, and timed atoms they expand to; of partitions so
 * many begins and ends of links are told one by one, others by their sides. */
#define KITH_FAULTS_MAX 1024u
#define KITH_ATOMS_MAX (1u << 20)
/* Peers times partitions of a file: a byte says on which side each stands. */
#define KITH_SIDE_PEERS_MAX (1u << 26)
/* Workers of a central run: servers see them all, one by one. */
#define KITH_CENTRAL_PEERS_MAX 4096u
/* Assertions in a file. */
#define KITH_CHECKS_MAX 64u
/* An IDX file: rank <= 4, <= 2 GiB of data. */
#define KITH_IDX_RANK_MAX 4u
#define KITH_IDX_BYTES_MAX (UINT64_C(1) << 31)
/* A safetensors header: the format's own bound is 100 MB; 1,000 tensors with
 * two states each need 0.5 MB. */
#define KITH_SAFETENSORS_HEADER_MAX (4u << 20)
#define KITH_TENSORS_MAX 16384u
/* A tokenizer.json: GPT-2's has 2 MB; and the tokens it may name. */
#define KITH_TOKENIZER_BYTES_MAX (64u << 20)
#define KITH_VOCABULARY_MAX (1u << 20)
/* A mapped data file: 1 TiB of tokens or arrays. */
#define KITH_DATA_BYTES_MAX (UINT64_C(1) << 40)
/* Operations, tensors and views of one network: ResNet-50 has 161 views, GPT-2
 * XL 580. */
#define KITH_OPS_MAX 4096u
/* Names in files and on the wire, terminator included. */
#define KITH_NAME_MAX 64u
#define KITH_PATH_BYTES_MAX 1024u

#endif

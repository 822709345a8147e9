/* What connections cost a core of this machine: loopback and handshakes. */
#ifndef KITH_SRC_CLI_CHANNEL_COST_H
#define KITH_SRC_CLI_CHANNEL_COST_H

/* Bytes per second of a core that both sends and receives them, over TCP on
 * loopback; 0: no connection could be made, or not even some megabytes passed
 * in three seconds. Else a tenth of a second. */
double kith_cli_socket_rate(void);
/* Processor time of a whole handshake, both ends; 0: it failed. A few
 * milliseconds. */
double kith_cli_handshake_s(void);

#endif

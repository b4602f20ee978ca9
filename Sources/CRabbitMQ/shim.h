#ifndef CRABBITMQ_SHIM_H
#define CRABBITMQ_SHIM_H

#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>

/* amqp_login_with_properties is variadic, which Swift cannot call; we only ever use PLAIN. */
static inline amqp_rpc_reply_t crabbitmq_login_plain(amqp_connection_state_t state, const char *vhost,
                                                     int frame_max, int heartbeat,
                                                     const amqp_table_t *properties, const char *user,
                                                     const char *password) {
  return amqp_login_with_properties(state, vhost, 0, frame_max, heartbeat, properties, AMQP_SASL_METHOD_PLAIN,
                                    user, password);
}

#endif

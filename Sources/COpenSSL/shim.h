#ifndef COPENSSL_SHIM_H
#define COPENSSL_SHIM_H

/* Everything we call is plain C that Swift imports as it is. */
#include <openssl/evp.h>

#endif

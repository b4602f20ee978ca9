#ifndef CHIREDIS_SHIM_H
#define CHIREDIS_SHIM_H

/* Everything we call is plain C that Swift imports as it is; the variadic redisCommand is not used. */
#include <hiredis/hiredis.h>

#endif

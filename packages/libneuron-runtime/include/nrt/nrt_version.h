/* Version of the runtime library. */
#ifndef NRT_VERSION_H
#define NRT_VERSION_H

#include <stddef.h>
#include <stdint.h>

#include "nrt/nrt_status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define RT_VERSION_DETAIL_LEN 128
#define GIT_HASH_LEN 64

typedef struct nrt_version {
  uint64_t rt_major;
  uint64_t rt_minor;
  uint64_t rt_patch;
  uint64_t rt_maintenance;
  char rt_detail[RT_VERSION_DETAIL_LEN]; /* NUL-terminated */
  char git_hash[GIT_HASH_LEN];           /* NUL-terminated; empty when not built from a checkout */
} nrt_version_t;

/* Fills in the first `size` bytes of *version. May be called before nrt_init. NRT_INVALID: version is NULL. */
NRT_STATUS nrt_get_version(nrt_version_t* version, size_t size);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

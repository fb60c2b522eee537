/* Result codes of the NRT functions. */
#ifndef NRT_STATUS_H
#define NRT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum {
  NRT_SUCCESS = 0,
  NRT_FAILURE = 1,        /* none of the codes below fits */
  NRT_INVALID = 2,        /* a wrong argument or a malformed NEFF */
  NRT_INVALID_HANDLE = 3, /* a NULL or dead handle, or a core that does not exist */
  NRT_RESOURCE = 4,       /* memory exhausted */
  NRT_TIMEOUT = 5,
  NRT_HW_ERROR = 6,
  NRT_QUEUE_FULL = 7,
  NRT_LOAD_NOT_ENOUGH_NC = 9,
  NRT_UNSUPPORTED_NEFF_VERSION = 10, /* well formed, but not for this runtime */
  NRT_FAIL_HOST_MEM_ALLOC = 11,
  NRT_UNINITIALIZED = 13, /* before nrt_init */
  NRT_CLOSED = 14,        /* after nrt_close */
  NRT_QUEUE_EMPTY = 15,
  NRT_EXEC_UNIT_UNRECOVERABLE = 101,
  NRT_EXEC_BAD_INPUT = 1002,
  NRT_EXEC_COMPLETED_WITH_NUM_ERR = 1003,
  NRT_EXEC_COMPLETED_WITH_ERR = 1004,
  NRT_EXEC_NC_BUSY = 1005,
  NRT_EXEC_OOB = 1006, /* an index outside its tensor */
  NRT_COLL_PENDING = 1100,
  NRT_EXEC_HW_ERR_COLLECTIVES = 1200,
  NRT_EXEC_HW_ERR_HBM_UE = 1201,
  NRT_EXEC_HW_ERR_NC_UE = 1202,
  NRT_EXEC_HW_ERR_DMA_ABORT = 1203,
  NRT_EXEC_SW_NQ_OVERFLOW = 1204,
  NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE = 1205,
  NRT_NETWORK_PROXY_FAILURE = 1206
} NRT_STATUS;

/* Name of the enumerator, e.g. "NRT_INVALID"; "UNKNOWN STATUS" for any other number. Static storage. May be called at
 * any time. */
const char* nrt_get_status_as_str(NRT_STATUS status);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

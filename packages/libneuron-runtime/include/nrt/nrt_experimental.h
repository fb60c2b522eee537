/* Signature of a loaded model, and raw copies. */
#ifndef NRT_EXPERIMENTAL_H
#define NRT_EXPERIMENTAL_H

#include "nrt/nrt.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define NRT_TENSOR_NAME_MAX 256

typedef enum { NRT_TENSOR_USAGE_INPUT = 0, NRT_TENSOR_USAGE_OUTPUT = 1 } nrt_tensor_usage_t;

typedef struct nrt_tensor_info {
  char name[NRT_TENSOR_NAME_MAX]; /* NUL-terminated */
  nrt_tensor_usage_t usage;
  size_t size; /* bytes */
  nrt_dtype_t dtype;
  uint32_t* shape;
  uint32_t ndim;
} nrt_tensor_info_t;

typedef struct nrt_tensor_info_array {
  uint64_t tensor_count;
  nrt_tensor_info_t tensor_array[]; /* inputs, then outputs */
} nrt_tensor_info_array_t;

typedef struct {
  uint32_t vnc;
} nrt_model_info_t; /* grows at its end only */

/* One block that stays valid after nrt_unload; free it with nrt_free_model_tensor_info. NRT_INVALID: the model has
 * slots, so that its shapes are not known before nrtx_bind. */
NRT_STATUS nrt_get_model_tensor_info(nrt_model_t* model, nrt_tensor_info_array_t** tensor_info);
NRT_STATUS nrt_free_model_tensor_info(nrt_tensor_info_array_t* tensor_info);

NRT_STATUS nrt_get_model_instance_count(nrt_model_t* model, uint32_t* instance_count);
/* *info_size_out (may be NULL) is the number of bytes written: at most info_size_in. */
NRT_STATUS nrt_get_model_info(const nrt_model_t* model, nrt_model_info_t* info, size_t info_size_in,
                              size_t* info_size_out);

/* dest: an address from nrt_tensor_get_va. */
NRT_STATUS nrt_memcpy_to_device(void* dest, const void* src, size_t size);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

/* A plain C program against the headers: layouts that existing binaries rely on, and the shortest useful run. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neuron/launch.h"
#include "nrt/nrt.h"
#include "nrt/nrt_experimental.h"
#include "nrt/nrt_version.h"

_Static_assert(sizeof(NRT_STATUS) == 4, "NRT_STATUS");
_Static_assert(sizeof(nrt_tensor_info_t) == 296, "nrt_tensor_info_t");
_Static_assert(offsetof(nrt_tensor_info_t, usage) == 256, "usage");
_Static_assert(offsetof(nrt_tensor_info_t, size) == 264, "size");
_Static_assert(offsetof(nrt_tensor_info_t, dtype) == 272, "dtype");
_Static_assert(offsetof(nrt_tensor_info_t, shape) == 280, "shape");
_Static_assert(offsetof(nrt_tensor_info_t, ndim) == 288, "ndim");
_Static_assert(offsetof(nrt_tensor_info_array_t, tensor_array) == 8, "tensor_array");
_Static_assert(sizeof(nrt_version_t) == 224, "nrt_version_t");
_Static_assert(offsetof(nrt_version_t, git_hash) == 160, "git_hash");
_Static_assert(sizeof(nrt_instance_info_t) == 32, "nrt_instance_info_t");
_Static_assert(offsetof(nrt_instance_info_t, device_revision) == 24, "device_revision");
_Static_assert(sizeof(nrt_tensor_batch_op_t) == 24, "nrt_tensor_batch_op_t");
_Static_assert(sizeof(nrt_tensor_batch_t) == 24, "nrt_tensor_batch_t");
_Static_assert(sizeof(nrt_vnc_memory_stats_t) == 16, "nrt_vnc_memory_stats_t");
_Static_assert(sizeof(nrt_model_info_t) == 4, "nrt_model_info_t");
_Static_assert(NRT_DTYPE_FLOAT32 == 0xA && NRT_DTYPE_INT64 == 0xC && NRT_DTYPE_FP8_E5 == 0xF, "nrt_dtype_t");

#define CHECK(condition)                                                                     \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, nrtx_last_error()); \
      exit(1);                                                                               \
    }                                                                                        \
  } while (0)

int main(void) {
  CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS);
  nrt_tensor_t* tensor = NULL;
  CHECK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 16, "tensor", &tensor) == NRT_SUCCESS);
  char text[16] = {0};
  CHECK(nrt_tensor_write(tensor, "through the HBM", 0, 16) == NRT_SUCCESS);
  CHECK(nrt_tensor_read(tensor, text, 0, 16) == NRT_SUCCESS);
  CHECK(strcmp(text, "through the HBM") == 0);
  nrt_tensor_free(&tensor);
  nrt_model_t* model = NULL;
  CHECK(nrt_load("no NEFF", 7, -1, -1, &model) == NRT_INVALID);
  CHECK(strstr(nrtx_last_error(), "too few") != NULL);
  nrt_close();
  return 0;
}

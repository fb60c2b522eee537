// The vector kernels of one instruction set. Which set is used is decided once, when the first instruction is prepared.
#pragma once

#include <cstddef>
#include <cstdint>

#include "program_schema.h"

namespace neuron::engine {

// A stage is one micro-operation on a group of elements. Its vector arguments have the type of its instruction set, so
// that outside kernels/ it is an opaque pointer.
using Stage = void (*)();

// Where a stage finds its operands. A stage computes on `Isa::group` elements at a time; the value computed last
// travels in vector registers (the accumulator), all others are in memory.
enum class Form : uint8_t {
  A,   // accumulator (the only form of a unary stage on 32-bit kinds)
  AV,  // accumulator, vector in memory
  VA,
  AS,  // accumulator, one number in memory
  SA,
  VV,
  VS,
  SV,
  AA,  // both operands are the accumulator
};
inline constexpr int kForms = 9;

// One stage of a prepared sequence. Operands are numbers of slots (Context::slots); *_step is the distance in bytes
// between consecutive elements: the size of an element for data that lies in a row, 0 for a buffer that every group
// uses again.
struct Step {
  Stage stage = nullptr;
  uint16_t dst = 0, a = 0, b = 0, c = 0;
  uint8_t dst_step = 0, a_step = 0, b_step = 0, c_step = 0;
  uint16_t pad = 0;
  uint16_t aux = 0;
};

// What a sequence of stages works on: one per thread that runs an instruction.
struct Context {
  char** slots = nullptr;  // addresses of element 0
  const Step* first = nullptr;
  size_t n = 0;          // elements; the last group may be partial, its memory is not
  int64_t position = 0;  // index of element 0 within its row (ROW) or of its reduced index (COLUMN)
  uint32_t fault = 0;    // set when an integer was divided by zero
};

// Positions of dtypes in the tables below.
inline constexpr int kDtypeCount = 10;
constexpr int dtype_index(Dtype dtype) {
  switch (dtype) {
    case Dtype::UINT8:
      return 0;
    case Dtype::INT8:
      return 1;
    case Dtype::INT16:
      return 2;
    case Dtype::BF16:
      return 3;
    case Dtype::FP16:
      return 4;
    case Dtype::INT32:
      return 5;
    case Dtype::FP32:
      return 6;
    case Dtype::INT64:
      return 7;
    case Dtype::BOOL:
      return 8;
    case Dtype::FP64:
      return 9;
  }
  return 0;
}

// Whether a register of the dtype's kind has the same bits as the stored element.
constexpr bool is_native(Dtype dtype) { return dtype == Dtype::FP32 || dtype == Dtype::INT32 || dtype == Dtype::INT64; }
inline constexpr int kMicroCount = 118;
inline constexpr int kLanes =
    16;  // accumulators of a reduction along a row: part of the numerical contract (schema, tile_mode)

// Reductions, in the order of their micro-operations.
inline constexpr int kReductions = 8;
constexpr int reduction_index(Micro op) { return static_cast<int>(op) - static_cast<int>(Micro::REDUCE_SUM); }

inline constexpr int kFewRows = 4;
// Matrix multiplication on packed panels: `mr` rows of the left operand or `nr` columns of the right one side by side,
// k after k.
struct Gemm {
  int mr = 0, nr = 0;  // 0: not available
  int bytes = 0;       // of a packed element
  int k_multiple = 1;  // k of a panel is filled up to a multiple of this, with zeros
  int64_t k_block =
      0;  // elements summed in registers; part of the numerical contract: it must not depend on anything but the kind
  // Packs `count` <= width vectors of k elements into a panel of `width`, the rest zeros. Strides in elements.
  void (*pack)(void* panel, int width, const char* from, Dtype dtype, int64_t stride, int64_t k_stride, int64_t count,
               int64_t k) = nullptr;
  // As `tile`, for few rows (at most kFewRows) and any number of columns of an FP32 operand that is used where it lies:
  // one of its strides is 1. nullptr where there is no such kernel.
  void (*few_rows)(int64_t k, const void* a, const char* b, int64_t n_stride, int64_t k_stride, void* c,
                   int64_t c_stride, int rows, int64_t columns, bool accumulate) = nullptr;
  // c[rows][columns] = (accumulate: c +) a * b, for rows <= mr, columns <= nr. b_stride: elements from one k to the
  // next (nr when packed).
  void (*tile)(int64_t k, const void* a, const void* b, int64_t b_stride, void* c, int64_t c_stride, int rows,
               int columns, bool accumulate) = nullptr;
};

struct Isa {
  const char* name = nullptr;
  int group = 0;  // elements of a group

  // Runs the stages from element `start` on to the end of the context.
  void (*run)(Context*, size_t start) = nullptr;

  // Arithmetic by micro-operation, kind (of the record) and form.
  Stage micro[kMicroCount][3][kForms] = {};
  // SELECT on F32 and I32: condition in the accumulator; b and c are vectors (bit 0, bit 1 clear) or numbers (set).
  Stage select[4] = {};
  // SELECT on I64: condition a vector in memory.
  Stage select_wide[4] = {};
  // Accumulator from and to contiguous memory of a dtype (not INT64, which stays in memory).
  Stage load[kDtypeCount] = {};
  Stage store[kDtypeCount] = {};
  Stage store_streaming[kDtypeCount] = {};  // non-temporal; nullptr where there is no such store; needs aligned memory
  Stage prefetch = nullptr;        // fetches the group `aux` times 64 bytes behind a into the second-level cache
  Stage broadcast = nullptr;       // accumulator from a 4-byte number b
  Stage broadcast_wide = nullptr;  // vector dst from an 8-byte number b
  Stage copy_wide = nullptr;       // vector dst from vector a, 8-byte elements
  Stage convert[3][3] = {};        // [from][to]; I64 operands and results are vectors in memory (a, dst)
  // Reductions by operation and kind. Accumulators are at dst; those of ARG reductions have 32-bit indices beside them,
  // at c.
  Stage reduce_row[kReductions][3] = {};     // into kLanes accumulators
  Stage reduce_column[kReductions][3] = {};  // element by element
  Stage next = nullptr;                      // last stage of every sequence

  // Joins the kLanes accumulators of a row into one value; ARG: and its index.
  void (*fold[kReductions][3])(const char* lanes, const int32_t* indices, char* value, int64_t* index) = {};
  // The same reduction of many rows, `stride` elements apart, in memory with room for whole groups.
  void (*reduce_rows[kReductions][3])(const char* from, int64_t rows, int64_t stride, int64_t columns, char* values,
                                      int64_t* indices) = {};
  // accumulators[c] takes from[0][c], from[1][c], ...; row r has index position + r. Accumulators have room for whole
  // groups.
  void (*reduce_columns[kReductions][3])(const char* from, int64_t rows, int64_t columns, char* accumulators,
                                         int32_t* indices, int64_t position) = {};

  Gemm gemm_float;  // F32, from any dtype that loads into it
  Gemm gemm_bf16;   // both operands BF16, on processors with a dot product of bf16 pairs
  Gemm gemm_wide;   // I64, from any integer dtype

  // Copies rows x columns elements of 1 << index bytes; strides in elements. The two must not overlap, unless they are
  // identical.
  void (*copy[4])(char* to, int64_t to_row, int64_t to_column, const char* from, int64_t from_row, int64_t from_column,
                  int64_t rows, int64_t columns) = {};

  // memcpy with non-temporal stores.
  void (*stream)(char* to, const char* from, size_t bytes) = nullptr;

  // Running combination along up to scan_lines lines of 4-byte numbers, by Combine and for F32 or I32. A line of the
  // result may be the line itself.
  int scan_lines = 0;
  void (*scan[5][2])(const char* const* from, char* const* to, int lines, int64_t length, bool reverse) = {};

  // Philox4x32-10: word w of the block with counter + k * stride goes to words[w][k], for k < n; words that are nullptr
  // are left out.
  void (*philox)(uint64_t key, uint64_t counter, int64_t stride, int64_t n, uint32_t* const words[4]) = nullptr;
};

// The set named by NEURON_SIM_ISA, or the best that this processor has.
const Isa& isa();
// All sets that this processor can run, the best first. For tests.
struct IsaList {
  const Isa* sets[3];
  int count;
};
IsaList available_isas();
// Makes isa() return `set` for instructions prepared from now on. For tests.
void use_isa(const Isa& set);

}  // namespace neuron::engine

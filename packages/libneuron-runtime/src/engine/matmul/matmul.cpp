// MATMUL. Every element is a sum over K in order, in blocks of Gemm::k_block: inside a block the products are added one
// by one to a register that starts from 0, and the blocks' results are added in order. Nothing else about the shape,
// the strides or the threads enters.
#include "engine/matmul/matmul.h"

#include <algorithm>

#include "engine/fault.h"
#include "engine/fence.h"
#include "engine/matmul/epilogue.h"
#include "engine/matmul/shape.h"
#include "engine/pool.h"
#include "engine/tile/cost.h"

namespace neuron::engine {
namespace {

constexpr int64_t kTileRows = 144,
                  kTileColumns = 256;  // of a task: with two packed blocks it fills most of 1 MiB of cache
constexpr int64_t kOwnRows = 288;      // up to this many rows a task packs its own operands
constexpr int64_t kMostPacked = int64_t{128} << 20;  // bytes of packed operands that a launch may hold
constexpr double kNanosecondsPerProduct = 0.01;

int64_t round_up(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

const Gemm& choose_gemm(const BoundInstruction& i, const Isa& isa) {
  if (static_cast<Kind>(i.params[1]) == Kind::I64) return isa.gemm_wide;
  const bool bf16 = i.windows[0].dtype == Dtype::BF16 && i.windows[1].dtype == Dtype::BF16;
  return bf16 && isa.gemm_bf16.mr ? isa.gemm_bf16 : isa.gemm_float;
}

class MatmulKernel final : public Kernel {
 public:
  MatmulKernel(const BoundInstruction& original, int threads)
      : isa_(isa()),
        gemm_(choose_gemm(original, isa_)),
        shape_(original, gemm_.nr),
        left_(shape_.instruction.windows[0]),
        right_(shape_.instruction.windows[1]),
        m_(shape_.m()),
        n_(shape_.n()),
        k_(shape_.k()),
        size_(gemm_.bytes == 8 ? 8 : 4),
        debug_(original.debug) {
    for (int d = 0; d < shape_.batch; ++d) batches_ *= shape_.instruction.extents[d];
    k_blocks_ = (k_ + gemm_.k_block - 1) / gemm_.k_block;
    choose_tasks(threads);
    BoundInstruction without_k = shape_.instruction;
    without_k.rank -= 1;
    find_direct();
    if (!direct_) epilogue_ = std::make_unique<Epilogue>(without_k, isa_, tile_columns_);
  }

  void run(const Launch& launch) const override {
    if (batches_ == 0 || m_ == 0 || n_ == 0) return;
    Scratch scratch;
    char* shared = nullptr;
    if (epilogue_) {
      shared = scratch.take(epilogue_->shared_bytes());
      Scratch local;
      Epilogue::Frame frame;
      epilogue_->open(frame, local, shared);
      epilogue_->start(launch, frame, shared);
      check_fault(frame.context, debug_);
    }
    const int64_t tiles = row_tiles_ * column_tiles_;
    const double cost =
        static_cast<double>(tile_rows_ * tile_columns_ * std::max<int64_t>(k_, 1)) * kNanosecondsPerProduct + 200;
    const auto grain = static_cast<int64_t>(std::max(1.0, kTaskNanoseconds / cost));
    const auto tasks = [&](int64_t first, int64_t count, const Packed& packed) {
      parallel_for(count, grain, [&](int64_t begin, int64_t end) {
        Scratch local;
        Epilogue::Frame frame;
        if (epilogue_) epilogue_->open(frame, local, shared);
        for (int64_t t = begin; t < end; ++t) run_task(launch, frame, packed, first + t);
        if (epilogue_ && epilogue_->streams()) store_fence();
        if (epilogue_) check_fault(frame.context, debug_);
      });
    };
    if (own_) {
      tasks(0, batches_ * tiles, {});
      return;
    }
    const int64_t k_padded = round_up(k_, gemm_.k_multiple);
    Packed packed;
    packed.left = scratch.take(static_cast<size_t>(round_up(m_, gemm_.mr) * k_padded * gemm_.bytes + 64));
    packed.right = scratch.take(static_cast<size_t>(round_up(n_, gemm_.nr) * k_padded * gemm_.bytes + 64));
    for (int64_t b = 0; b < batches_; ++b) {
      pack_all(launch, b, packed);
      tasks(b * tiles, tiles, packed);
    }
  }

 private:
  struct Packed {
    char *left = nullptr, *right = nullptr;
  };

  // Whether the only thing to do with a result is to store it as it is.
  void find_direct() {
    const auto& micro = shape_.instruction.micro;
    if (micro.size() != 2 || micro[0].op != Micro::ACC || micro[1].op != Micro::STORE) return;
    const Window& w = shape_.instruction.windows[micro[1].dst];
    const Dtype same = size_ == 8 ? Dtype::INT64 : Dtype::FP32;
    if (w.dtype != same || (w.strides[shape_.n_dimension()] != 1 && n_ != 1)) return;
    direct_ = true;
    result_ = w;
  }

  void choose_tasks(int threads) {
    const int64_t packed =
        (round_up(m_, gemm_.mr) + round_up(n_, gemm_.nr)) * round_up(k_, gemm_.k_multiple) * gemm_.bytes;
    own_ = m_ <= kOwnRows || n_ <= gemm_.nr || packed > kMostPacked;
    const int64_t most_rows = own_ ? kOwnRows : kTileRows / gemm_.mr * gemm_.mr;
    row_tiles_ = std::max<int64_t>((m_ + most_rows - 1) / most_rows, 1);
    tile_rows_ = round_up((std::max<int64_t>(m_, 1) + row_tiles_ - 1) / row_tiles_, gemm_.mr);
    // As wide as the cache likes, but enough tasks for all threads when there is work for them.
    int64_t columns = std::min(round_up(std::max<int64_t>(n_, 1), gemm_.nr), own_ ? 2 * kTileColumns : kTileColumns);
    const double work = static_cast<double>(batches_ * m_ * n_) * static_cast<double>(k_) * kNanosecondsPerProduct;
    const int64_t wanted =
        threads == 1 ? 1 : std::min<int64_t>(4 * threads, static_cast<int64_t>(work / kTaskNanoseconds));
    while (columns > gemm_.nr && batches_ * row_tiles_ * ((n_ + columns - 1) / columns) < wanted)
      columns = round_up(columns / 2, gemm_.nr);
    tile_columns_ = columns;
    column_tiles_ = std::max<int64_t>((n_ + columns - 1) / columns, 1);
  }

  // Element offset of a window along the batch dimensions; index gets the position in them.
  void batch_index(int64_t b, int64_t* index) const {
    for (int d = shape_.batch - 1; d >= 0; --d) {
      index[d] = b % shape_.instruction.extents[d];
      b /= shape_.instruction.extents[d];
    }
  }
  int64_t batch_offset(const Window& w, const int64_t* index) const {
    int64_t offset = w.offset;
    for (int d = 0; d < shape_.batch; ++d) offset += index[d] * w.strides[d];
    return offset;
  }
  const char* address(const Launch& launch, const Window& w, const int64_t* index, int64_t vector, int dimension,
                      int64_t k) const {
    const int64_t offset = batch_offset(w, index) + vector * w.strides[dimension] + k * w.strides[shape_.k_dimension()];
    return static_cast<const char*>(launch.buffers[w.buffer]) + offset * bytes_of(w.dtype);
  }
  int64_t block_length(int64_t block) const { return std::min(gemm_.k_block, k_ - block * gemm_.k_block); }
  int64_t panel_bytes(int64_t block, int width) const {
    return round_up(block_length(block), gemm_.k_multiple) * width * gemm_.bytes;
  }
  // Where block and panel lie among all panels of an operand.
  int64_t panel_offset(int64_t block, int64_t panel, int64_t vectors, int width) const {
    return block * gemm_.k_block * round_up(vectors, width) * gemm_.bytes + panel * panel_bytes(block, width);
  }
  void pack_left(const Launch& launch, const int64_t* index, int64_t block, int64_t row, char* panel) const {
    gemm_.pack(panel, gemm_.mr, address(launch, left_, index, row, shape_.m_dimension(), block * gemm_.k_block),
               left_.dtype, left_.strides[shape_.m_dimension()], left_.strides[shape_.k_dimension()],
               std::min<int64_t>(gemm_.mr, m_ - row), block_length(block));
  }
  void pack_right(const Launch& launch, const int64_t* index, int64_t block, int64_t column, char* panel) const {
    gemm_.pack(panel, gemm_.nr, address(launch, right_, index, column, shape_.n_dimension(), block * gemm_.k_block),
               right_.dtype, right_.strides[shape_.n_dimension()], right_.strides[shape_.k_dimension()],
               std::min<int64_t>(gemm_.nr, n_ - column), block_length(block));
  }

  void pack_all(const Launch& launch, int64_t b, const Packed& packed) const {
    int64_t index[kMaxDims] = {};
    batch_index(b, index);
    const int64_t rows = (m_ + gemm_.mr - 1) / gemm_.mr, columns = (n_ + gemm_.nr - 1) / gemm_.nr;
    const double cost = 0.15 * static_cast<double>(gemm_.nr * std::clamp<int64_t>(k_, 1, gemm_.k_block));
    parallel_for(k_blocks_ * (rows + columns), static_cast<int64_t>(std::max(1.0, kTaskNanoseconds / cost)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t block = i / (rows + columns), panel = i % (rows + columns);
                     if (panel < rows) {
                       pack_left(launch, index, block, panel * gemm_.mr,
                                 packed.left + panel_offset(block, panel, m_, gemm_.mr));
                     } else {
                       pack_right(launch, index, block, (panel - rows) * gemm_.nr,
                                  packed.right + panel_offset(block, panel - rows, n_, gemm_.nr));
                     }
                   }
                 });
  }

  void run_task(const Launch& launch, Epilogue::Frame& frame, const Packed& packed, int64_t task) const {
    Scratch local;
    int64_t index[kMaxDims] = {};
    const int64_t tiles = row_tiles_ * column_tiles_;
    batch_index(task / tiles, index);
    const int64_t row = task % tiles / column_tiles_ * tile_rows_, column = task % column_tiles_ * tile_columns_;
    const int64_t rows = std::min(tile_rows_, m_ - row), columns = std::min(tile_columns_, n_ - column);
    if (rows <= 0 || columns <= 0) return;

    char* c;
    int64_t c_stride;
    if (direct_) {
      c_stride = result_.strides[shape_.m_dimension()];
      c = static_cast<char*>(launch.buffers[result_.buffer]) +
          (batch_offset(result_, index) + row * c_stride + column * result_.strides[shape_.n_dimension()]) * size_;
    } else {
      c_stride = round_up(columns, gemm_.nr);
      c = local.take(static_cast<size_t>((rows * c_stride + 2 * isa_.group) * size_));
    }
    if (k_ == 0) {
      for (int64_t r = 0; r < rows; ++r) std::memset(c + r * c_stride * size_, 0, static_cast<size_t>(columns * size_));
    }
    if (own_) {
      multiply_own(launch, local, index, row, rows, column, columns, c, c_stride);
    } else {
      multiply_packed(packed, row, rows, column, columns, c, c_stride);
    }
    if (direct_) return;
    for (int64_t r = 0; r < rows; ++r) {
      index[shape_.batch] = row + r;
      epilogue_->run(launch, frame, index, column, columns, c + r * c_stride * size_);
    }
  }

  void multiply_packed(const Packed& packed, int64_t row, int64_t rows, int64_t column, int64_t columns, char* c,
                       int64_t c_stride) const {
    for (int64_t block = 0; block < k_blocks_; ++block) {
      for (int64_t i = 0; i < rows; i += gemm_.mr) {
        const char* a = packed.left + panel_offset(block, (row + i) / gemm_.mr, m_, gemm_.mr);
        for (int64_t j = 0; j < columns; j += gemm_.nr) {
          const char* b = packed.right + panel_offset(block, (column + j) / gemm_.nr, n_, gemm_.nr);
          gemm_.tile(block_length(block), a, b, gemm_.nr, c + (i * c_stride + j) * size_, c_stride,
                     static_cast<int>(std::min<int64_t>(gemm_.mr, rows - i)),
                     static_cast<int>(std::min<int64_t>(gemm_.nr, columns - j)), block > 0);
        }
      }
    }
  }

  // Packs what it needs: all rows of a block, and the columns panel by panel.
  void multiply_own(const Launch& launch, Scratch& local, const int64_t* index, int64_t row, int64_t rows,
                    int64_t column, int64_t columns, char* c, int64_t c_stride) const {
    const int64_t longest = round_up(std::min(gemm_.k_block, k_), gemm_.k_multiple);
    char* left = local.take(static_cast<size_t>(round_up(rows, gemm_.mr) * longest * gemm_.bytes + 64));
    char* right = local.take(static_cast<size_t>(gemm_.nr * longest * gemm_.bytes + 64));
    const int64_t n_stride = right_.strides[shape_.n_dimension()], k_stride = right_.strides[shape_.k_dimension()];
    // A right operand that lies like a panel is used as it is when it is used few times.
    const bool in_place = gemm_.bytes == 4 && right_.dtype == Dtype::FP32 && n_stride == 1 && rows <= 2 * gemm_.mr;
    const bool few =
        gemm_.few_rows && rows <= kFewRows && right_.dtype == Dtype::FP32 && (n_stride == 1 || k_stride == 1);
    for (int64_t block = 0; block < k_blocks_; ++block) {
      const int64_t length = block_length(block), bytes = panel_bytes(block, gemm_.mr);
      for (int64_t i = 0; i < rows; i += gemm_.mr)
        pack_left(launch, index, block, row + i, left + i / gemm_.mr * bytes);
      if (few) {
        gemm_.few_rows(length, left,
                       address(launch, right_, index, column, shape_.n_dimension(), block * gemm_.k_block), n_stride,
                       k_stride, c, c_stride, static_cast<int>(rows), columns, block > 0);
        continue;
      }
      for (int64_t j = 0; j < columns; j += gemm_.nr) {
        const auto width = static_cast<int>(std::min<int64_t>(gemm_.nr, columns - j));
        const char* b = right;
        int64_t b_stride = gemm_.nr;
        if (in_place && width == gemm_.nr) {
          b = address(launch, right_, index, column + j, shape_.n_dimension(), block * gemm_.k_block);
          b_stride = k_stride;
        } else {
          pack_right(launch, index, block, column + j, right);
        }
        for (int64_t i = 0; i < rows; i += gemm_.mr) {
          gemm_.tile(length, left + i / gemm_.mr * bytes, b, b_stride, c + (i * c_stride + j) * size_, c_stride,
                     static_cast<int>(std::min<int64_t>(gemm_.mr, rows - i)), width, block > 0);
        }
      }
    }
  }

  const Isa& isa_;
  const Gemm& gemm_;
  MatmulShape shape_;
  Window left_, right_, result_;
  int64_t m_, n_, k_;
  int64_t size_;  // bytes of an accumulated element
  std::string debug_;
  std::unique_ptr<Epilogue> epilogue_;
  bool direct_ = false, own_ = false;
  int64_t batches_ = 1, k_blocks_ = 0;
  int64_t tile_rows_ = 0, tile_columns_ = 0, row_tiles_ = 0, column_tiles_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> prepare_matmul(const BoundInstruction& instruction, int count) {
  return std::make_unique<MatmulKernel>(instruction, count ? count : threads());
}

}  // namespace neuron::engine

// Medians of the engine's workloads: a tool for those who change it, not a test. bench_engine [filter]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include "builder.h"
#include "engine/isa.h"
#include "engine/pool.h"

namespace neuron::engine::test {
namespace {

const char* filter = "";

float* memory(size_t elements) {
  auto* p = static_cast<float*>(std::aligned_alloc(64, (elements * 4 + 63) / 64 * 64 + 4096));
  for (size_t i = 0; i < elements; ++i)
    p[i] = static_cast<float>(static_cast<int>(i * 2654435761u % 2001) - 1000) / 500;
  return p;
}

// Seconds: of the processor with one thread, so that others on the machine disturb less; of the wall with more.
double now() {
  timespec t;
  clock_gettime(threads() == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

template <class F>
void measure(const std::string& name, F&& body, double flops = 0) {
  if (name.find(filter) == std::string::npos) return;
  std::vector<double> times;
  body();
  double start = now();
  body();
  const double once = now() - start;
  const int inner = std::max(1, static_cast<int>(20e-6 / std::max(once, 1e-9)));
  const int outer = std::clamp(static_cast<int>(0.4 / (once * inner + 1e-9)), 5, 2000);
  for (int i = 0; i < outer; ++i) {
    start = now();
    for (int j = 0; j < inner; ++j) body();
    times.push_back((now() - start) / inner);
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2], best = times.front();
  std::printf("%-34s median %10.3f us  p10 %10.3f  best %10.3f", name.c_str(), median * 1e6,
              times[times.size() / 10] * 1e6, best * 1e6);
  if (flops > 0) std::printf("  %7.1f GF/s (best %.1f)", flops / median * 1e-9, flops / best * 1e-9);
  std::printf("\n");
}

void maps() {
  constexpr int64_t kBig = int64_t{4} << 20;
  float *x = memory(kBig), *y = memory(kBig), *out = memory(kBig), *w = memory(1024);
  void* buffers[] = {x, y, out, w};
  for (const int64_t n : {int64_t{16}, int64_t{256}, int64_t{4096}, int64_t{16384}, int64_t{65536}, kBig}) {
    Builder b = Builder::tile({n});
    b.store(b.f32(Micro::ADD, b.load(window(0, Dtype::FP32, {1})), b.load(window(1, Dtype::FP32, {1}))),
            window(2, Dtype::FP32, {1}));
    const auto kernel = b.prepare();
    measure("add " + std::to_string(n), [&] { kernel->run({buffers, nullptr}); });
    if (n == 256) measure("prepare add", [&] { b.prepare(); });
  }
  {
    Builder b = Builder::tile({256});
    int v = b.load(window(0, Dtype::FP32, {1}));
    for (int i = 0; i < 5; ++i) v = b.f32(i % 2 ? Micro::MUL : Micro::ADD, v, b.load(window(1, Dtype::FP32, {1})));
    b.store(v, window(2, Dtype::FP32, {1}));
    const auto kernel = b.prepare();
    measure("chain of 5, 256", [&] { kernel->run({buffers, nullptr}); });
  }
  {
    Builder b = Builder::tile({1024, 1024});
    b.store(b.load(window(0, Dtype::FP32, {1, 1024})), window(2, Dtype::FP32, {1024, 1}));
    const auto kernel = b.prepare();
    measure("transpose 1024x1024", [&] { kernel->run({buffers, nullptr}); });
  }
  for (const bool tanh : {false, true}) {  // gelu(x * w + b) + r
    Builder b = Builder::tile({4096, 1024});
    const Window rows = window(0, Dtype::FP32, {1024, 1}), row = window(3, Dtype::FP32, {0, 1});
    const int t = b.f32(Micro::ADD, b.f32(Micro::MUL, b.load(rows), b.load(row)), b.load(row));
    int g;
    if (!tanh) {
      const int e = b.f32(Micro::ADD, b.f32(Micro::ERF, b.f32(Micro::MUL, t, b.constant(0.70710678))), b.constant(1));
      g = b.f32(Micro::MUL, b.f32(Micro::MUL, t, b.constant(0.5)), e);
    } else {
      const int cube = b.f32(Micro::MUL, b.f32(Micro::MUL, t, t), t);
      const int inner = b.f32(Micro::MUL, b.f32(Micro::ADD, t, b.f32(Micro::MUL, cube, b.constant(0.044715))),
                              b.constant(0.7978845608));
      const int e = b.f32(Micro::ADD, b.f32(Micro::TANH, inner), b.constant(1));
      g = b.f32(Micro::MUL, b.f32(Micro::MUL, t, b.constant(0.5)), e);
    }
    b.store(b.f32(Micro::ADD, g, b.load(window(1, Dtype::FP32, {1024, 1}))), window(2, Dtype::FP32, {1024, 1}));
    const auto kernel = b.prepare();
    measure(tanh ? "gelu-tanh chain 4M" : "gelu-erf chain 4M", [&] { kernel->run({buffers, nullptr}); });
  }
}

void reductions() {
  float *x = memory(4096 * 1024), *y = memory(4096 * 1024), *w = memory(4096);
  void* buffers[] = {x, y, w};
  const Window in = window(0, Dtype::FP32, {1024, 1}), out = window(1, Dtype::FP32, {1024, 1});
  for (const int64_t rows : {128, 4096}) {
    const std::string size = std::to_string(rows) + "x1024";
    Builder b = Builder::tile({rows, 1024}, TileMode::ROW, 1);
    const int v = b.load(in), e = b.f32(Micro::EXP, b.f32(Micro::SUB, v, b.f32(Micro::REDUCE_MAX, v)));
    b.store(b.f32(Micro::DIV, e, b.f32(Micro::REDUCE_SUM, e)), out);
    const auto kernel = b.prepare();
    measure("softmax " + size, [&] { kernel->run({buffers, nullptr}); });
    measure("prepare softmax", [&] { b.prepare(); });
  }
  for (const int64_t rows : {128, 4096}) {
    const std::string size = std::to_string(rows) + "x1024";
    Builder b = Builder::tile({rows, 1024}, TileMode::ROW, 1);
    const int v = b.load(in), scale = b.constant(1.0 / 1024), weight = b.load(window(2, Dtype::FP32, {0, 1}));
    const int centred = b.f32(Micro::SUB, v, b.f32(Micro::MUL, b.f32(Micro::REDUCE_SUM, v), scale));
    const int variance = b.f32(Micro::MUL, b.f32(Micro::REDUCE_SUM, b.f32(Micro::MUL, centred, centred)), scale);
    const int norm = b.f32(Micro::MUL, centred, b.f32(Micro::RSQRT, b.f32(Micro::ADD, variance, b.constant(1e-5))));
    b.store(b.f32(Micro::ADD, b.f32(Micro::MUL, norm, weight), weight), out);
    const auto kernel = b.prepare();
    measure("layer norm " + size, [&] { kernel->run({buffers, nullptr}); });
  }
  const auto sum = [&](const char* name, int64_t kept, int64_t reduced, int64_t ks, int64_t rs, TileMode mode) {
    Builder b = Builder::tile({kept, reduced}, mode, 1);
    b.store(b.f32(Micro::REDUCE_SUM, b.load(window(0, Dtype::FP32, {ks, rs}))), window(1, Dtype::FP32, {1, 0}));
    const auto kernel = b.prepare();
    measure(name, [&] { kernel->run({buffers, nullptr}); });
  };
  sum("sum(0) 4096x1024", 1024, 4096, 1, 1024, TileMode::COLUMN);
  sum("sum(1) 4096x1024", 4096, 1024, 1024, 1, TileMode::ROW);
  sum("sum(1) 262144x16", 262144, 16, 16, 1, TileMode::ROW);
  sum("sum(0) 262144x16", 16, 262144, 1, 16, TileMode::COLUMN);
  sum("sum() 4M", 1, 4096 * 1024, 0, 1, TileMode::ROW);
  sum("sum 16x16", 16, 16, 16, 1, TileMode::ROW);
}

void moves() {
  float *x = memory(int64_t{5} << 20), *y = memory(int64_t{5} << 20);
  std::vector<int64_t> indices(8192);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int64_t>(i * 2654435761u % 8192);
  void* buffers[] = {x, indices.data(), y};
  const auto copy = [&](const std::string& name, std::initializer_list<int64_t> extents, Window from, Window to) {
    Builder d(Opcode::DMA, extents);
    d.add(from);
    d.add(to);
    const auto kernel = d.prepare();
    measure(name, [&] { kernel->run({buffers, nullptr}); });
  };
  const Dtype f = Dtype::FP32;
  copy("copy 2M", {2 << 20}, window(0, f, {1}), window(2, f, {1}));
  copy("copy 1K", {1024}, window(0, f, {1}), window(2, f, {1}));
  copy("permute 0213 32x128x8x64", {32, 8, 128, 64}, window(0, f, {65536, 64, 512, 1}),
       window(2, f, {65536, 8192, 64, 1}));
  copy("transpose 2048x2048", {2048, 2048}, window(0, f, {1, 2048}), window(2, f, {2048, 1}));
  copy("transpose 2048x2048 bf16", {2048, 2048}, window(0, Dtype::BF16, {1, 2048}), window(2, Dtype::BF16, {2048, 1}));
  copy("cast fp32 to bf16 4M", {4 << 20}, window(0, f, {1}), window(2, Dtype::BF16, {1}));
  const auto rows = [&](const std::string& name, Opcode opcode, int64_t count, int64_t size, int64_t width,
                        Combine combine) {
    Builder b(opcode, {count, width});
    b.instruction.params = {1, 1, 0, 0, static_cast<int64_t>(combine), 0};
    b.add(window(0, f, {0, 1}));
    b.add(window(1, Dtype::INT64, {1, 0}));
    b.add(window(2, f, {width, 1}));
    b.add(window(0, f, {width}));
    b.add(window(0, f, {size - 1}));
    const auto kernel = b.prepare();
    measure(name, [&] { kernel->run({buffers, nullptr}); });
  };
  rows("gather 8192 of 8192x512", Opcode::GATHER, 8192, 8192, 512, Combine::SET);
  rows("gather 8192 of 8192x1", Opcode::GATHER, 8192, 8192, 1, Combine::SET);
  rows("scatter-add 8192 of 8192x512", Opcode::SCATTER, 8192, 8192, 512, Combine::ADD);
  const auto scan = [&](const std::string& name, std::initializer_list<int64_t> extents, Window from, Window to) {
    Builder b(Opcode::SCAN, extents);
    b.instruction.params = {static_cast<int64_t>(Combine::ADD), 0, 0, 0, 0, 0};
    b.add(from);
    b.add(to);
    const auto kernel = b.prepare();
    measure(name, [&] { kernel->run({buffers, nullptr}); });
  };
  scan("cumsum(1) 4096x1024", {4096, 1024}, window(0, f, {1024, 1}), window(2, f, {1024, 1}));
  scan("cumsum(0) 4096x1024", {1024, 4096}, window(0, f, {1, 1024}), window(2, f, {1, 1024}));
}

void matmuls() {
  float *a = memory(int64_t{4} << 20), *b = memory(int64_t{8} << 20), *c = memory(int64_t{4} << 20);
  void* buffers[] = {a, b, c};
  const auto run = [&](const std::string& name, int64_t batch, int64_t m, int64_t n, int64_t k, Dtype dtype,
                       bool transposed) {
    Builder mm(Opcode::MATMUL, {batch, m, n, k});
    mm.instruction.params = {1, 0, 0, 0, 0, 0};
    mm.add(window(0, dtype, {m * k, k, 0, 1}));
    mm.add(transposed ? window(1, dtype, {n * k, 0, k, 1}) : window(1, dtype, {n * k, 0, 1, n}));
    mm.store(mm.f32(Micro::ACC, 0), window(2, dtype, {m * n, n, 1, 0}));
    const auto kernel = mm.prepare();
    measure(
        name,
        [&] {
          kernel->run({buffers, nullptr});
        },
        2.0 * static_cast<double>(batch * m) * static_cast<double>(n * k));
    if (batch * m == 64) measure("prepare mm", [&] { mm.prepare(); });
  };
  for (const Dtype dtype : {Dtype::FP32, Dtype::BF16}) {
    const std::string kind = dtype == Dtype::FP32 ? "mm fp32 " : "mm bf16 ";
    run(kind + "1024^3", 1, 1024, 1024, 1024, dtype, false);
    run(kind + "1024^3 nt", 1, 1024, 1024, 1024, dtype, true);
    run(kind + "64^3", 1, 64, 64, 64, dtype, false);
    run(kind + "16^3", 1, 16, 16, 16, dtype, false);
    run(kind + "1x1024x1024", 1, 1, 1024, 1024, dtype, false);
    run(kind + "1x1024x1024 nt", 1, 1, 1024, 1024, dtype, true);
    run(kind + "8x1024x1024 nt", 1, 8, 1024, 1024, dtype, true);
    run(kind + "128x128x512", 1, 128, 128, 512, dtype, false);
    run(kind + "32x4096x1024", 1, 32, 4096, 1024, dtype, false);
    run(kind + "32 of 256^3", 32, 256, 256, 256, dtype, false);
    run(kind + "32 of 512x512x64 nt", 32, 512, 512, 64, dtype, true);
  }
}

}  // namespace
}  // namespace neuron::engine::test

int main(int count, char** arguments) {
  using namespace neuron::engine;
  if (count > 1) test::filter = arguments[1];
  std::printf("isa %s, %d threads\n", isa().name, threads());
  test::maps();
  test::reductions();
  test::moves();
  test::matmuls();
  return 0;
}

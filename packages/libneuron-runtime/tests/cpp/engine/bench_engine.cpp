// Medians of the engine's workloads: a tool for those who change it, not a test. bench_engine [filter]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "builder.h"
#include "engine/isa.h"
#include "engine/pool.h"

namespace neuron::engine::test {
namespace {

const char* filter = "";

float* memory(size_t elements) {
  auto* p = static_cast<float*>(std::aligned_alloc(64, (elements * 4 + 63) / 64 * 64 + 4096));
  for (size_t i = 0; i < elements; ++i) p[i] = static_cast<float>(static_cast<int>(i * 2654435761u % 2001) - 1000) / 500;
  return p;
}

template <class F>
void measure(const std::string& name, F&& body, double flops = 0) {
  if (name.find(filter) == std::string::npos) return;
  using clock = std::chrono::steady_clock;
  std::vector<double> times;
  body();
  auto start = clock::now();
  body();
  const double once = std::chrono::duration<double>(clock::now() - start).count();
  const int inner = std::max(1, static_cast<int>(20e-6 / std::max(once, 1e-9)));
  const int outer = std::clamp(static_cast<int>(0.4 / (once * inner + 1e-9)), 5, 2000);
  for (int i = 0; i < outer; ++i) {
    start = clock::now();
    for (int j = 0; j < inner; ++j) body();
    times.push_back(std::chrono::duration<double>(clock::now() - start).count() / inner);
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2], best = times.front();
  std::printf("%-34s median %10.3f us  p10 %10.3f us", name.c_str(), median * 1e6, times[times.size() / 10] * 1e6);
  if (flops > 0) std::printf("  %7.1f GF/s (best %.1f)", flops / median * 1e-9, flops / best * 1e-9);
  std::printf("\n");
}

void maps() {
  constexpr int64_t kBig = int64_t{4} << 20;
  float *x = memory(kBig), *y = memory(kBig), *out = memory(kBig), *w = memory(1024);
  void* buffers[] = {x, y, out, w};
  for (const int64_t n : {int64_t{16}, int64_t{256}, int64_t{4096}, int64_t{16384}, int64_t{65536}, kBig}) {
    Builder b = Builder::tile({n});
    b.store(b.f32(Micro::ADD, b.load(window(0, Dtype::FP32, {1})), b.load(window(1, Dtype::FP32, {1}))), window(2, Dtype::FP32, {1}));
    const auto kernel = b.prepare();
    measure("add " + std::to_string(n), [&] { kernel->run({buffers, nullptr}); });
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
      const int inner = b.f32(Micro::MUL, b.f32(Micro::ADD, t, b.f32(Micro::MUL, cube, b.constant(0.044715))), b.constant(0.7978845608));
      const int e = b.f32(Micro::ADD, b.f32(Micro::TANH, inner), b.constant(1));
      g = b.f32(Micro::MUL, b.f32(Micro::MUL, t, b.constant(0.5)), e);
    }
    b.store(b.f32(Micro::ADD, g, b.load(window(1, Dtype::FP32, {1024, 1}))), window(2, Dtype::FP32, {1024, 1}));
    const auto kernel = b.prepare();
    measure(tanh ? "gelu-tanh chain 4M" : "gelu-erf chain 4M", [&] { kernel->run({buffers, nullptr}); });
  }
}

}  // namespace
}  // namespace neuron::engine::test

int main(int count, char** arguments) {
  using namespace neuron::engine;
  if (count > 1) test::filter = arguments[1];
  std::printf("isa %s, %d threads\n", isa().name, threads());
  test::maps();
  return 0;
}

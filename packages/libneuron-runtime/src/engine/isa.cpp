#include "engine/isa.h"

#include <atomic>
#include <string>

#include "base/environment.h"
#include "base/error.h"

namespace neuron::engine {

#define DECLARE_ISA(name) \
  namespace name {        \
  void fill(Isa&);        \
  }
#if defined(__x86_64__)
DECLARE_ISA(avx512)
DECLARE_ISA(avx2)
#elif defined(__aarch64__)
DECLARE_ISA(neon)
#endif
DECLARE_ISA(generic)

namespace {

#if defined(__clang__) && defined(__x86_64__)
// Older versions of clang do not know the levels by name.
bool supports_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2");
}
bool supports_v4() {
  return supports_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#elif defined(__x86_64__)
bool supports_v3() { return __builtin_cpu_supports("x86-64-v3"); }
bool supports_v4() { return __builtin_cpu_supports("x86-64-v4"); }
#endif

struct Choice {
  Isa sets[3];
  int count = 0;
  std::atomic<const Isa*> current{nullptr};

  void add(const char* name, void (*fill)(Isa&)) {
    Isa& set = sets[count++];
    set.name = name;
    fill(set);
  }
  Choice() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (supports_v4()) add("avx512", avx512::fill);
    if (supports_v3()) add("avx2", avx2::fill);
#elif defined(__aarch64__)
    add("neon", neon::fill);
#endif
    add("generic", generic::fill);
    current = &sets[0];
    if (const auto wanted = environment("NEURON_SIM_ISA")) {
      std::string names;
      const Isa* found = nullptr;
      for (int i = 0; i < count; ++i) {
        if (*wanted == sets[i].name) found = &sets[i];
        names += (i ? ", " : "") + std::string(sets[i].name);
      }
      if (!found) {
        throw Error(NRT_INVALID,
                    format("NEURON_SIM_ISA is \"%s\"; this processor can run %s", wanted->c_str(), names.c_str()));
      }
      current = found;
    }
  }
};

Choice& choice() {
  static Choice* instance = new Choice;  // never destroyed: threads may run at exit
  return *instance;
}

}  // namespace

const Isa& isa() { return *choice().current.load(std::memory_order_relaxed); }

IsaList available_isas() {
  IsaList list{};
  list.count = choice().count;
  for (int i = 0; i < list.count; ++i) list.sets[i] = &choice().sets[i];
  return list;
}

void use_isa(const Isa& set) { choice().current = &set; }

}  // namespace neuron::engine

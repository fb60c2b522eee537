#include "dispatch/programs.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <list>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "dispatch/fallback.h"
#include "dispatch/key.h"
#include "dispatch/python.h"
#include "runtime/device.h"

namespace torch_neuronx::dispatch {

Model::Model(const std::string& neff) : neff_bytes_(neff.size()) {
  ensure_ready();
  // Core -1: the runtime chooses; an executable names its core at each launch.
  check(nrt_load(neff.data(), neff.size(), -1, -1, &handle_), "Cannot load a NEFF");
  const NRT_STATUS status = nrtx_model_counts(handle_, &counts_);
  if (status != NRT_SUCCESS) {
    nrt_unload(handle_);
    fail(status, "Cannot read a NEFF's signature");
  }
}

Model::~Model() {
  if (!in_bad_fork()) {
    nrt_unload(handle_);
  }
}

std::shared_ptr<const Executable> Model::bind(c10::ArrayRef<int64_t> slots) const {
  nrtx_executable_t* executable = nullptr;
  int32_t failed_guard = -1;
  const NRT_STATUS status = nrtx_bind(handle_, slots.data(), slots.size(), &executable, &failed_guard);
  if (status == NRT_INVALID && failed_guard >= 0) {
    return nullptr;
  }
  check(status, "Cannot bind a program");
  return std::make_shared<const Executable>(executable);
}

uint32_t program_dtype(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Byte:
      return 0x3;
    case c10::ScalarType::Char:
      return 0x2;
    case c10::ScalarType::Short:
      return 0x4;
    case c10::ScalarType::BFloat16:
      return 0x6;
    case c10::ScalarType::Half:
      return 0x7;
    case c10::ScalarType::Int:
      return 0x8;
    case c10::ScalarType::Float:
      return 0xA;
    case c10::ScalarType::Long:
      return 0xC;
    case c10::ScalarType::Bool:
      return 0x20;
    case c10::ScalarType::Double:
      return 0x21;
    default:
      return 0;
  }
}

namespace {

// Programs of one class: more than one when they carry guards. The oldest goes when there are too many.
constexpr size_t kModelsPerClass = 8;
// Classes remembered, those that the compiler does not support included: a few hundred bytes each.
constexpr size_t kMaxClasses = 4096;
// Loaded programs: a few KB each. NEURON_EAGER_MODEL_CACHE_SIZE overrides it.
constexpr size_t kDefaultModels = 1024;

struct Class {
  std::mutex mutex;  // never held while compiling or binding
  std::condition_variable changed;
  std::vector<std::shared_ptr<const Model>> models;  // the newest last
  std::optional<std::string> refusal;                // the compiler does not support the class: why
  std::thread::id compiling;                         // the thread that compiles, if any
};

struct WordsHash {
  size_t operator()(const std::vector<uint64_t>& words) const {
    Key key;
    for (const uint64_t word : words) {
      key.add(word);
    }
    return key.hash();
  }
};

size_t model_limit() {
  static const size_t limit = [] {
    const char* text = std::getenv("NEURON_EAGER_MODEL_CACHE_SIZE");
    const long value = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
    return value > 0 ? static_cast<size_t>(value) : kDefaultModels;
  }();
  return limit;
}

// Classes by key, the most recently used first. Least recently used ones go, programs and all, when there are too many
// programs. Entries bound to a program keep it alive for themselves.
class Classes {
 public:
  std::shared_ptr<Class> find(const std::vector<uint64_t>& key) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_key_.find(key);
    if (found != by_key_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return found->second->second;
    }
    recent_.emplace_front(key, std::make_shared<Class>());
    by_key_[key] = recent_.begin();
    if (recent_.size() > kMaxClasses) {
      forget_oldest();
    }
    return recent_.front().second;
  }

  void add(const std::vector<uint64_t>& key, const std::shared_ptr<const Model>& model) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) {
      return;  // forgotten while it was compiled
    }
    Class& owner = *found->second->second;
    {
      std::lock_guard<std::mutex> class_lock(owner.mutex);
      owner.models.push_back(model);
      models_ += 1;
      bytes_ += model->neff_bytes();
      if (owner.models.size() > kModelsPerClass) {
        models_ -= 1;
        bytes_ -= owner.models.front()->neff_bytes();
        owner.models.erase(owner.models.begin());
      }
    }
    while (models_ > model_limit() && recent_.size() > 1) {
      forget_oldest();
    }
  }

  // Loaded programs and the bytes of their NEFFs.
  std::pair<uint64_t, uint64_t> sizes() {
    std::lock_guard<std::mutex> lock(mutex_);
    return {models_, bytes_};
  }

  void clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    by_key_.clear();
    recent_.clear();
    models_ = bytes_ = 0;
  }

 private:
  using Item = std::pair<std::vector<uint64_t>, std::shared_ptr<Class>>;

  void forget_oldest() {
    {
      Class& oldest = *recent_.back().second;
      std::lock_guard<std::mutex> class_lock(oldest.mutex);
      for (const auto& model : oldest.models) {
        models_ -= 1;
        bytes_ -= model->neff_bytes();
      }
    }
    by_key_.erase(recent_.back().first);
    recent_.pop_back();
  }

  std::mutex mutex_;  // taken before a class's
  std::list<Item> recent_;
  std::unordered_map<std::vector<uint64_t>, std::list<Item>::iterator, WordsHash> by_key_;
  size_t models_ = 0, bytes_ = 0;
};

Classes& classes() {
  static auto* instance = new Classes();  // never destroyed: operators may run in exit handlers
  return *instance;
}

std::atomic<uint64_t> compilations{0}, compile_nanoseconds{0};

// Ends a class's compilation, however it ended.
struct Compiling {
  Class& owner;
  ~Compiling() {
    std::lock_guard<std::mutex> lock(owner.mutex);
    owner.compiling = {};
    owner.changed.notify_all();
  }
};

std::shared_ptr<const Executable> bind_any(const std::vector<std::shared_ptr<const Model>>& models,
                                           const Request& request) {
  for (auto model = models.rbegin(); model != models.rend(); ++model) {
    if (auto executable = (*model)->bind(request.slots)) {
      return executable;
    }
  }
  return nullptr;
}

Bound refused(const std::string& reason) {
  return {nullptr, "its lowering does not support these arguments (" + reason + ")", true};
}

Bound compile_and_bind(const std::vector<uint64_t>& key, Class& owner, const Request& request) {
  const auto start = std::chrono::steady_clock::now();
  const auto [neff, reason] = compile(request);
  if (!neff) {
    std::lock_guard<std::mutex> lock(owner.mutex);
    owner.refusal = reason;
    return refused(reason);
  }
  const auto elapsed = std::chrono::steady_clock::now() - start;
  compilations.fetch_add(1, std::memory_order_relaxed);
  compile_nanoseconds.fetch_add(static_cast<uint64_t>(std::chrono::nanoseconds(elapsed).count()),
                                std::memory_order_relaxed);
  count(request.op.number, Outcome::kCompiled);
  const auto model = std::make_shared<const Model>(*neff);
  auto executable = model->bind(request.slots);
  TORCH_CHECK(executable != nullptr, "The op compiler gave a program for ", request.op.name,
              " whose guards do not hold for the call it was made for");
  classes().add(key, model);
  return {std::move(executable), {}};
}

Bound find_or_compile(const std::vector<uint64_t>& key, const Request& request) {
  const std::shared_ptr<Class> owner = classes().find(key);
  while (true) {
    std::vector<std::shared_ptr<const Model>> models;
    {
      std::lock_guard<std::mutex> lock(owner->mutex);
      if (owner->refusal) {
        return refused(*owner->refusal);
      }
      models = owner->models;
    }
    if (auto executable = bind_any(models, request)) {
      return {std::move(executable), {}};
    }
    {
      // The compiling thread needs the GIL.
      const WithoutGil released;
      std::unique_lock<std::mutex> lock(owner->mutex);
      if (owner->compiling == std::this_thread::get_id()) {
        return {nullptr, "the op compiler itself called it while compiling it"};
      }
      if (owner->compiling != std::thread::id{}) {
        owner->changed.wait(lock, [&] { return owner->compiling == std::thread::id{}; });
        continue;
      }
      if (owner->refusal || owner->models != models) {
        continue;
      }
      owner->compiling = std::this_thread::get_id();
    }
    const Compiling done{*owner};
    return compile_and_bind(key, *owner, request);
  }
}

}  // namespace

Bound bind_program(const std::vector<uint64_t>& key, const Request& request) {
  const bool stand_in = fallback_enabled() && !fallback_for_unimplemented_only();
  try {
    return find_or_compile(key, request);
  } catch (const CompilerError& error) {
    if (!stand_in) {
      std::rethrow_exception(error.cause);
    }
    return {nullptr, std::string("its compilation failed: ") + error.what()};
  } catch (const c10::Error& error) {  // of the runtime, about the program
    if (!stand_in) {
      throw;
    }
    return {nullptr, std::string("its program failed: ") + error.what_without_backtrace()};
  }
}

ProgramStats program_stats() {
  const auto [models, bytes] = classes().sizes();
  return {models, bytes, compilations.load(std::memory_order_relaxed),
          compile_nanoseconds.load(std::memory_order_relaxed)};
}

void clear_programs() { classes().clear(); }

}  // namespace torch_neuronx::dispatch

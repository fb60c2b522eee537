#include "dispatch/infer.h"

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>

#include "dispatch/arguments.h"
#include "dispatch/fallback.h"
#include "dispatch/shape_rule.h"

namespace torch_neuronx::dispatch {

namespace {

struct MetaArgument {
  at::Tensor tensor;
  size_t argument;
  bool listed;  // an entry of a list
};

at::Tensor meta_of(const at::Tensor& tensor) {
  at::Tensor meta = at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(), tensor.scalar_type());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    meta.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  return meta;
}

void run_meta_kernel(const Operator& op, c10::Stack& stack) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard below_autocast(c10::autocast_dispatch_keyset);
  if (!run_shape_rule(op.handle, op.name, &stack)) {
    op.handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
  }
}

std::string first_line(const std::exception& error) {
  const auto* ours = dynamic_cast<const c10::Error*>(&error);
  const std::string text = ours != nullptr ? ours->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

class Inference {
 public:
  Inference(const Operator& op, const Call& call) : op_(op), call_(call) {
    inferred_.entry = std::make_shared<Entry>();
  }

  Inferred run(c10::ArrayRef<c10::IValue> arguments) {
    c10::Stack stack(arguments.begin(), arguments.end());
    for (size_t i = 0; i < stack.size(); ++i) {
      if (stack[i].isDevice() && stack[i].toDevice().type() == kNeuron) {
        stack[i] = c10::Device(c10::kMeta);
      } else if (stack[i].isGenerator()) {
        stack[i] = c10::IValue();
      }
      replace_tensors(stack[i], [&](const at::Tensor& tensor) {
        // Meta kernels take 0-d CPU tensors as they are; those written in Python want wrapped numbers to be on the CPU.
        if (is_host_scalar(tensor) && !contains(op_.written, i)) {
          return tensor;
        }
        metas_.push_back({meta_of(tensor), i, arguments[i].isList()});
        return metas_.back().tensor;
      });
    }
    try {
      run_meta_kernel(op_, stack);
    } catch (const c10::NotImplementedError&) {
      return refuse("the sizes of its results are not known in advance");
    } catch (const std::exception& error) {
      if (!fallback_enabled()) {
        throw;
      }
      return refuse("torch refuses its arguments (" + first_line(error) + ")");
    }
    find_resized();
    if (!inferred_.entry->resized.empty()) {
      return std::move(inferred_);
    }
    for (size_t i = 0; i < stack.size() && inferred_.reason.empty(); ++i) {
      add_return(stack[i], op_.return_source[i]);
    }
    for (size_t i = 0; i < op_.arguments; ++i) {
      if (contains(op_.unreturned, i)) {
        add_written(i);
      }
    }
    return std::move(inferred_);
  }

 private:
  Inferred refuse(std::string reason) {
    inferred_.reason = std::move(reason);
    return std::move(inferred_);
  }

  void find_resized() {
    bool any = false;
    size_t out = 0;
    for (const MetaArgument& meta : metas_) {
      if (contains(op_.outs, meta.argument)) {
        any = any || !meta.tensor.sizes().equals(call_.outs[out].tensor->sizes());
        inferred_.entry->resized.push_back(spec_of(meta.tensor.unsafeGetTensorImpl()));
        ++out;
      }
    }
    if (!any) {
      inferred_.entry->resized.clear();
    }
  }

  const MetaArgument* argument_of(const at::Tensor& meta) const {
    for (const MetaArgument& argument : metas_) {
      if (argument.tensor.is_same(meta)) {
        return &argument;
      }
    }
    return nullptr;
  }

  bool shares_memory(const at::Tensor& meta) const {
    return std::any_of(metas_.begin(), metas_.end(), [&](const MetaArgument& argument) {
      return argument.tensor.storage().is_alias_of(meta.storage());
    });
  }

  void add_return(const c10::IValue& value, int source) {
    if (source >= 0) {
      add_written(static_cast<size_t>(source));
      inferred_.entry->results.push_back({Result::Kind::kArgument, static_cast<uint32_t>(source)});
    } else if (value.isTensorList()) {
      const auto first = static_cast<uint32_t>(inferred_.entry->created.size());
      for (const c10::IValue& entry : value.toListRef()) {
        add_created(entry.toTensor());
      }
      const auto count = static_cast<uint32_t>(inferred_.entry->created.size()) - first;
      inferred_.entry->results.push_back({Result::Kind::kList, count, first});
    } else if (value.isNone() || (value.isTensor() && !value.toTensor().defined())) {
      inferred_.entry->results.push_back({Result::Kind::kUndefined, 0});
    } else if (!value.isTensor()) {
      inferred_.reason = "it returns something that is not a tensor";
    } else if (const MetaArgument* argument = argument_of(value.toTensor()); argument != nullptr && !argument->listed) {
      // A functional operator that had nothing to do.
      inferred_.entry->results.push_back({Result::Kind::kArgument, static_cast<uint32_t>(argument->argument)});
    } else {
      inferred_.entry->results.push_back(
          {Result::Kind::kCreated, static_cast<uint32_t>(inferred_.entry->created.size())});
      add_created(value.toTensor());
    }
  }

  void add_created(const at::Tensor& meta) {
    if (!meta.defined() || !meta.is_meta() || meta.layout() != at::kStrided || shares_memory(meta)) {
      inferred_.reason = "it returns a tensor that the device cannot allocate";
      return;
    }
    inferred_.entry->outputs.push_back(
        {Output::Place::kCreated, static_cast<uint32_t>(inferred_.entry->created.size())});
    inferred_.entry->created.push_back(spec_of(meta.unsafeGetTensorImpl()));
    inferred_.specs.push_back(inferred_.entry->created.back());
  }

  // Outputs for the tensors of an argument that the operator writes.
  void add_written(size_t argument) {
    const bool is_out = contains(op_.outs, argument);
    const auto& buffers = is_out ? c10::ArrayRef<Call::Buffer>(call_.outs) : c10::ArrayRef<Call::Buffer>(call_.inputs);
    for (uint32_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i].argument != argument) {
        continue;
      }
      const TensorSpec spec = spec_of(buffers[i].tensor);
      if (!is_writable(spec.sizes, spec.strides)) {
        if (is_out || !fallback_enabled()) {  // some operators may write an expanded tensor in place
          at::assert_no_internal_overlap(buffers[i].tensor);
        }
        inferred_.reason = "it writes a tensor some of whose elements share memory";
      }
      inferred_.entry->outputs.push_back({is_out ? Output::Place::kOut : Output::Place::kInput, i});
      inferred_.specs.push_back(spec);
    }
  }

  const Operator& op_;
  const Call& call_;
  std::vector<MetaArgument> metas_;
  Inferred inferred_;
};

}  // namespace

TensorSpec spec_of(const c10::TensorImpl* tensor) {
  TensorSpec spec{c10::typeMetaToScalarType(tensor->dtype()), at::DimVector(tensor->sizes()),
                  at::DimVector(tensor->strides()), tensor->is_contiguous(), 0};
  if (spec.contiguous) {
    int64_t step = 1;
    for (size_t d = spec.sizes.size(); d-- > 0;) {
      spec.strides[d] = step;
      step *= std::max<int64_t>(spec.sizes[d], 1);
    }
  }
  spec.nbytes = at::detail::computeStorageNbytes(spec.sizes, spec.strides, tensor->itemsize());
  return spec;
}

Inferred infer(const Operator& op, c10::ArrayRef<c10::IValue> arguments, const Call& call) {
  return Inference(op, call).run(arguments);
}

}  // namespace torch_neuronx::dispatch

// The combination of two numbers in SCATTER and SCAN.
#pragma once

#include <type_traits>

#include "program_schema.h"

namespace neuron::engine {

template <Combine C, class T>
T combined(T a, T b) {
  if constexpr (C == Combine::SET) {
    return b;
  } else if constexpr (C == Combine::MIN) {
    return a < b || a != a ? a : b;  // NaN if either is NaN
  } else if constexpr (C == Combine::MAX) {
    return a > b || a != a ? a : b;
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(C == Combine::ADD ? static_cast<U>(a) + static_cast<U>(b)
                                            : static_cast<U>(a) * static_cast<U>(b));
  } else {
    return C == Combine::ADD ? a + b : a * b;
  }
}

// Calls f with a constant of the combination.
template <class F>
auto with_combine(Combine combine, F&& f) {
  switch (combine) {
    case Combine::ADD:
      return f(std::integral_constant<Combine, Combine::ADD>{});
    case Combine::MUL:
      return f(std::integral_constant<Combine, Combine::MUL>{});
    case Combine::MIN:
      return f(std::integral_constant<Combine, Combine::MIN>{});
    case Combine::MAX:
      return f(std::integral_constant<Combine, Combine::MAX>{});
    case Combine::SET:
      break;
  }
  return f(std::integral_constant<Combine, Combine::SET>{});
}

}  // namespace neuron::engine

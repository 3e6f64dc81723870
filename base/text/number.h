#pragma once
// A number as text and nothing else.

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace cm384::hw {

// `text` in base 10 as a whole; nothing where it is no number, goes on behind one, or does not fit into T.
// Digits do not depend on the locale; blanks and a leading + are refused, "inf" and "nan" are read where T is
// floating.
template <class T>
std::optional<T> number_of(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace cm384::hw

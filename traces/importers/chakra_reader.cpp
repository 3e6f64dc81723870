#include "traces/importers/chakra_reader.h"

#include <fmt/format.h>

#include "base/text/error.h"
#include "base/text/input_file.h"

namespace cm384::traces {
namespace {

constexpr std::uint64_t kMostMessage = std::uint64_t{64} << 20;

}  // namespace

ChakraReader::ChakraReader(const std::string& path) : path_(path), stream_(open_input(path)) {
  stream_.seekg(0, std::ios::end);
  size_ = static_cast<std::uint64_t>(stream_.tellg());
  stream_.seekg(0);
}

bool ChakraReader::next(google::protobuf::MessageLite& message, const char* what) {
  begin_ = offset_;
  if (offset_ == size_) return false;
  std::uint64_t length = 0;
  for (unsigned shift = 0;; shift += 7) {
    const int byte = stream_.get();
    if (byte < 0 || shift > 28) fail(fmt::format("{}: length: no whole number", what));
    ++offset_;
    length |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  if (length > size_ - offset_ || length > kMostMessage)
    fail(fmt::format("{}: length: {} B; the file has {} B left", what, length, size_ - offset_));
  bytes_.resize(length);
  stream_.read(bytes_.data(), static_cast<std::streamsize>(length));
  offset_ += length;
  if (!message.ParseFromString(bytes_)) fail(fmt::format("{}: no such protobuf message", what));
  return true;
}

void ChakraReader::fail(const std::string& what) const {
  throw InputError(fmt::format("{}: offset {}: {}", path_, begin_, what));
}

std::string ChakraReader::where() const {
  return fmt::format("{}: offset {}", path_, begin_);
}

std::optional<std::int64_t> integer_of(const chakra::Attribute& a) {
  switch (a.value_case()) {
    case chakra::Attribute::kInt32Val:
      return a.int32_val();
    case chakra::Attribute::kInt64Val:
      return a.int64_val();
    case chakra::Attribute::kUint32Val:
      return a.uint32_val();
    case chakra::Attribute::kUint64Val:
      return a.uint64_val() <= static_cast<std::uint64_t>(INT64_MAX)
                 ? std::optional(static_cast<std::int64_t>(a.uint64_val()))
                 : std::nullopt;
    case chakra::Attribute::kSint32Val:
      return a.sint32_val();
    case chakra::Attribute::kSint64Val:
      return a.sint64_val();
    case chakra::Attribute::kFixed32Val:
      return a.fixed32_val();
    case chakra::Attribute::kSfixed32Val:
      return a.sfixed32_val();
    case chakra::Attribute::kSfixed64Val:
      return a.sfixed64_val();
    default:
      return std::nullopt;
  }
}

}  // namespace cm384::traces

// Files of Chakra execution traces: protobuf messages, each behind its length.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "traces/importers/chakra.pb.h"

namespace cm384::traces {

class ChakraReader {
 public:
  // Throws InputError, as all others do, naming file, offset and what was read.
  explicit ChakraReader(const std::string& path);
  // False at the end.
  bool next(google::protobuf::MessageLite& message, const char* what);
  [[noreturn]] void fail(const std::string& what) const;
  std::string where() const;

 private:
  std::string path_;
  std::ifstream stream_;
  std::uint64_t size_ = 0, offset_ = 0, begin_ = 0;
  std::string bytes_;
};

// Of any whole-number type; nothing for others, and for what does not fit.
std::optional<std::int64_t> integer_of(const chakra::Attribute& attribute);

}  // namespace cm384::traces

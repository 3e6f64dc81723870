// Files of Chakra execution traces: protobuf messages, each behind its length; the same messages as JSON, one
// object behind the other; or the JSON of a whole graph that Chakra's feeder reads. Packed by gzip or not.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cm384::traces {

// A value of an attribute, of whichever type the file gives it.
struct ChakraValue {
  std::optional<std::int64_t> integer;  // of any whole-number type that it fits into; a bool is 0 or 1
  std::optional<std::string> text;
  bool partial = false;  // a list of bools that are not all true
};

struct ChakraNode {
  enum Type : int {
    kMetadata = 1,
    kLoad = 2,
    kStore = 3,
    kCompute = 4,
    kSend = 5,
    kReceive = 6,
    kCollective = 7
  };
  std::uint64_t id = 0;
  std::string name;
  int type = 0;
  std::vector<std::uint64_t> after;  // ids of nodes of the same file
  std::uint64_t duration_us = 0;     // 0: not told
  std::map<std::string, ChakraValue, std::less<>> attributes;
  std::string where;  // file and place in it

  // Of an attribute; nothing where the node has none. Throws InputError outside the limits.
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high) const;
  std::string text(std::string_view name) const;  // whole numbers too; empty: none
  [[noreturn]] void fail(const std::string& what) const;
};

class ChakraReader {
 public:
  // Throws InputError, as all others do, naming file, place and what was read.
  explicit ChakraReader(const std::string& path);
  ~ChakraReader();
  // False at the end.
  bool next(ChakraNode& node);
  const std::string& version() const { return version_; }  // of the schema; empty: not told

 private:
  bool next_message(const char* what);
  void read_json();
  bool next_of_json(ChakraNode& node);
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_, version_;
  std::unique_ptr<std::istream> stream_;
  std::uint64_t offset_ = 0, begin_ = 0;
  std::string bytes_;
  std::vector<nlohmann::json> objects_;  // of JSON
  std::size_t next_object_ = 0;
};

}  // namespace cm384::traces

#include "traces/importers/chakra_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text/error.h"
#include "base/text/number.h"
#include "base/text/unpacked_input.h"
#include "traces/importers/chakra.pb.h"

namespace cm384::traces {
namespace {

using ForeignJson = nlohmann::json;

constexpr std::uint64_t kMostMessage = std::uint64_t{64} << 20;
constexpr double kMostWholeDouble = 9e18;

std::optional<std::int64_t> whole(double value) {
  if (!(std::abs(value) < kMostWholeDouble) || std::floor(value) != value) return std::nullopt;
  return static_cast<std::int64_t>(value);
}
std::optional<std::int64_t> whole(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

ChakraValue value_of_attribute(const chakra::Attribute& a) {
  ChakraValue value;
  switch (a.value_case()) {
    case chakra::Attribute::kDoubleVal:
      value.integer = whole(a.double_val());
      break;
    case chakra::Attribute::kFloatVal:
      value.integer = whole(static_cast<double>(a.float_val()));
      break;
    case chakra::Attribute::kInt32Val:
      value.integer = a.int32_val();
      break;
    case chakra::Attribute::kInt64Val:
      value.integer = a.int64_val();
      break;
    case chakra::Attribute::kUint32Val:
      value.integer = a.uint32_val();
      break;
    case chakra::Attribute::kUint64Val:
      value.integer = whole(a.uint64_val());
      break;
    case chakra::Attribute::kSint32Val:
      value.integer = a.sint32_val();
      break;
    case chakra::Attribute::kSint64Val:
      value.integer = a.sint64_val();
      break;
    case chakra::Attribute::kFixed32Val:
      value.integer = a.fixed32_val();
      break;
    case chakra::Attribute::kFixed64Val:
      value.integer = whole(a.fixed64_val());
      break;
    case chakra::Attribute::kSfixed32Val:
      value.integer = a.sfixed32_val();
      break;
    case chakra::Attribute::kSfixed64Val:
      value.integer = a.sfixed64_val();
      break;
    case chakra::Attribute::kBoolVal:
      value.integer = a.bool_val() ? 1 : 0;
      break;
    case chakra::Attribute::kBoolList:
      value.partial = std::ranges::find(a.bool_list().values(), false) != a.bool_list().values().end();
      break;
    case chakra::Attribute::kStringVal:
      value.text = a.string_val();
      break;
    default:
      break;
  }
  return value;
}

// JSON has 64-bit numbers as texts, and lists as they are or as {"values": [...]}.
ChakraValue value_of_json(const ForeignJson& j) {
  ChakraValue value;
  if (j.is_boolean()) {
    value.integer = j.get<bool>() ? 1 : 0;
  } else if (j.is_number_unsigned()) {
    value.integer = whole(j.get<std::uint64_t>());
  } else if (j.is_number_integer()) {
    value.integer = j.get<std::int64_t>();
  } else if (j.is_number_float()) {
    value.integer = whole(j.get<double>());
  } else if (j.is_string()) {
    value.text = j.get<std::string>();
    value.integer = hw::number_of<std::int64_t>(*value.text);
  } else {
    const ForeignJson& list = j.is_object() && j.contains("values") ? j["values"] : j;
    value.partial = list.is_array() && std::ranges::any_of(list, [](const ForeignJson& one) {
                      return one.is_boolean() && !one.get<bool>();
                    });
  }
  return value;
}

constexpr std::array<std::string_view, 8> kTypeNames{"INVALID_NODE",   "METADATA_NODE", "MEM_LOAD_NODE",
                                                     "MEM_STORE_NODE", "COMP_NODE",     "COMM_SEND_NODE",
                                                     "COMM_RECV_NODE", "COMM_COLL_NODE"};

// "ctrlDeps", "ctrl_deps" and "Id" as one spelling.
std::string plain(std::string_view key) {
  std::string text;
  for (const char c : key) {
    if (c != '_') text.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return text;
}

// {"name": "comm_size", "int64Val": "4096"}
void read_json_attribute(const ForeignJson& j, ChakraNode& node) {
  if (!j.is_object() || !j.value("name", ForeignJson()).is_string()) node.fail("attr: no object with a name");
  for (const auto& [key, value] : j.items()) {
    if (key == "name" || plain(key) == "docstring") continue;
    node.attributes[j["name"].get<std::string>()] = value_of_json(value);
  }
}

void read_json_node(const ForeignJson& j, ChakraNode& node) {
  for (const auto& [key, value] : j.items()) {
    const std::string name = plain(key);
    const auto number = [&key = key, &value = value, &node]() -> std::uint64_t {
      const auto integer = value_of_json(value).integer;
      if (!integer || *integer < 0) node.fail(fmt::format("{}: allowed: a whole number from 0", key));
      return static_cast<std::uint64_t>(*integer);
    };
    if (name == "id") {
      node.id = number();
    } else if (name == "name") {
      node.name = value.is_string() ? value.get<std::string>() : "";
    } else if (name == "type" || name == "nodetype") {
      const auto* known =
          value.is_string() ? std::ranges::find(kTypeNames, value.get<std::string>()) : kTypeNames.end();
      node.type = known != kTypeNames.end() ? static_cast<int>(known - kTypeNames.begin())
                                            : static_cast<int>(std::min<std::uint64_t>(number(), 1000));
    } else if (name == "ctrldeps" || name == "datadeps") {
      if (!value.is_array()) node.fail(fmt::format("{}: allowed: a list of ids", key));
      for (const ForeignJson& one : value) {
        const auto id = value_of_json(one).integer;
        if (!id || *id < 0) node.fail(fmt::format("{}: allowed: a list of ids", key));
        node.after.push_back(static_cast<std::uint64_t>(*id));
      }
    } else if (name == "durationmicros" || name == "runtime") {
      node.duration_us = number();
    } else if (name == "attr") {
      if (!value.is_array()) node.fail("attr: allowed: a list of attributes");
      for (const ForeignJson& one : value) read_json_attribute(one, node);
    } else if (name != "starttimemicros" && name != "inputs" && name != "outputs") {
      node.attributes[key] = value_of_json(value);
    }
  }
}

// With a brace and a key. Of a protobuf message that would be a length of 123 B and a version of 34 letters.
bool begins_as_json(std::istream& stream) {
  std::string head(64, '\0');
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(stream.gcount()));
  if (head.starts_with("\xef\xbb\xbf")) head.erase(0, 3);
  const std::size_t brace = head.find_first_not_of(" \t\r\n");
  if (brace == std::string::npos || head[brace] != '{') return false;
  const std::size_t key = head.find_first_not_of(" \t\r\n", brace + 1);
  return key != std::string::npos && head[key] == '"';
}

}  // namespace

std::optional<std::int64_t> ChakraNode::integer(std::string_view attribute, std::int64_t low,
                                                std::int64_t high) const {
  const auto found = attributes.find(attribute);
  if (found == attributes.end()) return std::nullopt;
  const auto value = found->second.integer;
  if (!value || *value < low || *value > high)
    fail(fmt::format("{}: allowed: a whole number from {} to {}", attribute, low, high));
  return value;
}

std::string ChakraNode::text(std::string_view attribute) const {
  const auto found = attributes.find(attribute);
  if (found == attributes.end()) return "";
  if (found->second.text) return *found->second.text;
  return found->second.integer ? std::to_string(*found->second.integer) : "";
}

void ChakraNode::fail(const std::string& what) const {
  throw InputError(fmt::format("{}: node {}: {}", where, id, what));
}

ChakraReader::~ChakraReader() = default;

ChakraReader::ChakraReader(const std::string& path) : path_(path), stream_(open_unpacked(path)) {
  const bool is_json = begins_as_json(*stream_);
  stream_ = open_unpacked(path);
  if (is_json) {
    read_json();
    return;
  }
  chakra::GlobalMetadata metadata;
  if (!next_message("metadata")) fail("metadata: the file is empty");
  if (!metadata.ParseFromString(bytes_)) fail("metadata: no such protobuf message");
  version_ = metadata.version();
  for (const chakra::Attribute& a : metadata.attributes()) {
    if (a.name() == "schema" && version_.empty()) version_ = a.string_val();
  }
}

bool ChakraReader::next_message(const char* what) {
  begin_ = offset_;
  std::uint64_t length = 0;
  for (unsigned shift = 0;; shift += 7) {
    const int byte = stream_->get();
    if (byte < 0 && shift == 0) return false;
    if (byte < 0 || shift > 28) fail(fmt::format("{}: length: not a whole number", what));
    ++offset_;
    length |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  if (length > kMostMessage) fail(fmt::format("{}: length: {} B; allowed: {} B", what, length, kMostMessage));
  // Piece by piece: what a damaged file announces need not be there.
  constexpr std::size_t kPiece = std::size_t{256} << 10;
  bytes_.clear();
  while (bytes_.size() < length && *stream_) {
    const std::size_t got = bytes_.size();
    bytes_.resize(std::min<std::size_t>(length, got + kPiece));
    stream_->read(bytes_.data() + got, static_cast<std::streamsize>(bytes_.size() - got));
    bytes_.resize(got + static_cast<std::size_t>(stream_->gcount()));
  }
  offset_ += bytes_.size();
  if (bytes_.size() < length)
    fail(fmt::format("{}: length: {} B; the file has {} B left", what, length, bytes_.size()));
  return true;
}

bool ChakraReader::next(ChakraNode& node) {
  node = {};
  if (stream_ == nullptr) return next_of_json(node);
  if (!next_message("node")) return false;
  chakra::Node read;
  if (!read.ParseFromString(bytes_)) fail("node: no such protobuf message");
  node.id = read.id();
  node.name = read.name();
  node.type = read.type();
  node.after.assign(read.control_dependencies().begin(), read.control_dependencies().end());
  node.after.insert(node.after.end(), read.data_dependencies().begin(), read.data_dependencies().end());
  node.duration_us = read.duration_us();
  node.where = fmt::format("{}: offset {}", path_, begin_);
  for (const chakra::Attribute& a : read.attributes()) node.attributes[a.name()] = value_of_attribute(a);
  return true;
}

void ChakraReader::read_json() {
  try {
    while ((*stream_ >> std::ws).peek() != std::istream::traits_type::eof()) {
      ForeignJson document;
      *stream_ >> document;
      if (document.is_object() && document.contains("workload_graph")) {
        ForeignJson& graph = document["workload_graph"];
        if (!graph.is_array()) fail("workload_graph: allowed: a list of nodes");
        for (ForeignJson& node : graph) objects_.push_back(std::move(node));
        if (document.contains("schema") && document["schema"].is_string()) version_ = document["schema"];
      } else {
        objects_.push_back(std::move(document));
      }
    }
  } catch (const ForeignJson::exception& error) {
    throw InputError(fmt::format("{}: object {}: no JSON ({})", path_, objects_.size(), error.what()));
  }
  stream_.reset();
  // The metadata, which has no id.
  if (!objects_.empty() && objects_[0].is_object() && objects_[0].contains("version")) {
    version_ = objects_[0]["version"].is_string() ? objects_[0]["version"].get<std::string>() : "";
    ++next_object_;
  }
}

bool ChakraReader::next_of_json(ChakraNode& node) {
  if (next_object_ == objects_.size()) return false;
  ForeignJson object;
  std::swap(object, objects_[next_object_]);
  node.where = fmt::format("{}: object {}", path_, next_object_++);
  if (!object.is_object()) throw InputError(fmt::format("{}: not a JSON object; allowed: nodes", node.where));
  read_json_node(object, node);
  return true;
}

void ChakraReader::fail(const std::string& what) const {
  throw InputError(fmt::format("{}: offset {}: {}", path_, begin_, what));
}

}  // namespace cm384::traces

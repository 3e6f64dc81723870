#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text/error.h"
#include "base/text/unpacked_input.h"
#include "traces/routing/routing.h"

namespace cm384::traces {

namespace {

using RoutingJson = nlohmann::json;

constexpr int kMostExperts = 65536;
constexpr int kMostTopK = 1024;

// A value for a message: what is nested may be a megabyte, and so deep that writing it takes all stack.
std::string brief(const RoutingJson& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  const std::string text = value.dump(-1, ' ', true, RoutingJson::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

class Reader {
 public:
  Reader(const std::string& name, const RoutingReadOptions& options) : name_(name), options_(options) {
    routing_.experts = options.experts;
    if (options.experts < 0 || options.experts > kMostExperts) {
      throw InputError(fmt::format("routing: {} experts; allowed: 1 to {}", options.experts, kMostExperts));
    }
  }

  void line(const std::string& text) {
    ++number_;
    if (text.find_first_not_of(" \t\r") == std::string::npos) return;
    RoutingJson json = RoutingJson::parse(text, nullptr, false);
    if (json.is_discarded()) fail("", "is not JSON; allowed: one object per line");
    if (!json.is_object()) fail("", fmt::format("is {}; allowed: one object per line", json.type_name()));
    const auto type = json.find("type");
    if (type == json.end() || !type->is_string()) fail("type", "is missing; allowed: \"meta\" and \"route\"");
    if (*type == "meta") {
      meta(json);
    } else if (*type == "route") {
      route(json);
    } else {
      fail("type", fmt::format("is {}; allowed: \"meta\" and \"route\"", brief(*type)));
    }
  }

  Routing finish() {
    if (routing_.ids.empty()) throw InputError(fmt::format("{}: no route line", name_));
    if (routing_.experts == 0) {
      routing_.experts = *std::max_element(routing_.ids.begin(), routing_.ids.end()) + 1;
    }
    return std::move(routing_);
  }

 private:
  [[noreturn]] void fail(const std::string& field, const std::string& what) const {
    throw InputError(fmt::format("{}:{}: {}{}{}", name_, number_, field.empty() ? "line" : field,
                                 field.empty() ? " " : ": ", what));
  }

  // A whole number of the line, or `missing` where it is not there.
  int integer(const RoutingJson& json, const char* field, int lowest, int highest, int missing) const {
    const auto value = json.find(field);
    if (value == json.end()) return missing;
    if (!value->is_number_integer() || *value < lowest || *value > highest) {
      fail(field,
           fmt::format("is {}; allowed: a whole number from {} to {}", brief(*value), lowest, highest));
    }
    return value->get<int>();
  }

  void meta(const RoutingJson& json) {
    if (number_rows_ != 0) fail("type", "is \"meta\" after route lines; allowed: one meta line before them");
    routing_.top_k = integer(json, "top_k", 1, kMostTopK, routing_.top_k);
    const int experts = integer(json, "num_experts", 1, kMostExperts, 0);
    if (options_.experts == 0) routing_.experts = experts;
  }

  void route(const RoutingJson& json) {
    const int layer = integer(json, "layer", 0, 1 << 20, 0);
    if (layer_ < 0) layer_ = options_.layer >= 0 ? options_.layer : layer;
    const auto ids = json.find("topk_ids");
    if (ids == json.end() || !ids->is_array() || ids->empty()) {
      fail("topk_ids", "is missing; allowed: a list of expert numbers");
    }
    if (ids->size() > std::size_t{kMostTopK})
      fail("topk_ids", fmt::format("has {} experts; allowed: at most {}", ids->size(), kMostTopK));
    if (routing_.top_k == 0) routing_.top_k = static_cast<int>(ids->size());
    if (static_cast<int>(ids->size()) != routing_.top_k) {
      fail("topk_ids",
           fmt::format("has {} experts; allowed: {}, the trace's top-k", ids->size(), routing_.top_k));
    }
    const int highest = (routing_.experts != 0 ? routing_.experts : kMostExperts) - 1;
    row_.clear();
    for (std::size_t k = 0; k < ids->size(); ++k) {
      const RoutingJson& id = (*ids)[k];
      const auto field = [k] { return fmt::format("topk_ids[{}]", k); };
      if (!id.is_number_integer() || id < 0 || id > highest) {
        fail(field(), fmt::format("expert {} is out of range; allowed: a whole number from 0 to {}",
                                  brief(id), highest));
      }
      const auto value = id.get<std::int32_t>();
      if (std::find(row_.begin(), row_.end(), value) != row_.end()) {
        fail(field(), fmt::format("expert {} is named twice; allowed: different experts", value));
      }
      row_.push_back(value);
    }
    if (layer != layer_) return;
    if (options_.drop_repeats && number_rows_ != 0 && row_ == last_) return;
    ++number_rows_;
    last_ = row_;
    routing_.ids.insert(routing_.ids.end(), row_.begin(), row_.end());
  }

  const std::string& name_;
  const RoutingReadOptions& options_;
  Routing routing_;
  std::int64_t number_ = 0, number_rows_ = 0;
  int layer_ = -1;
  std::vector<std::int32_t> row_, last_;
};

}  // namespace

Routing read_routing(std::istream& in, const std::string& name, const RoutingReadOptions& options) {
  Reader reader(name, options);
  constexpr std::size_t kLongestLine = 4u << 20;
  std::string text;
  for (int c = in.get(); c >= 0; c = in.get()) {
    if (c != '\n') text.push_back(static_cast<char>(c));
    if (text.size() > kLongestLine) throw InputError(fmt::format("{}: a line of more than 4 MiB", name));
    if (c != '\n' && in.peek() >= 0) continue;
    reader.line(text);
    text.clear();
  }
  if (in.bad()) throw InputError(fmt::format("{}: reading failed", name));
  return reader.finish();
}

Routing read_routing(const std::string& path, const RoutingReadOptions& options) {
  const auto in = open_unpacked(path);
  // A byte order mark, with which some tools begin a text.
  if (in->peek() == 0xef) in->ignore(3);
  return read_routing(*in, path, options);
}

}  // namespace cm384::traces

#include "app/cli/replay_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <string_view>

#include "system/host/replay_engines.h"

namespace cm384::cli {

using observe::kMessageCauses;
using observe::MessageCause;
using traces::TrafficRecord;

namespace {

constexpr std::size_t kBlock = 1u << 20;

}  // namespace

ReplayMessages::ReplayMessages(const std::string& path) : file_(path, OutputFile::Compression::by_name) {
  text_ = "record,source,target,operation,bytes,ready_ps,start_ps,end_ps,unloaded_ps,slowdown,hops";
  for (std::size_t n = 0; n < kMessageCauses; ++n)
    fmt::format_to(std::back_inserter(text_), ",{}_ps", observe::name_of(static_cast<MessageCause>(n)));
  text_ += '\n';
}

void ReplayMessages::attach(supernode::Supernode& machine, const host::ReplayOptions& how) {
  times_ = std::make_unique<observe::MessageTimes>(machine);
  unloaded_ = std::make_unique<observe::UnloadedTime>(machine);
  path_ = how.path;
  cores_ = how.cores;
  piece_bytes_ = how.piece_bytes;
}

void ReplayMessages::leave_out(const host::ReplayedMessage& m) {
  if (m.recorded.target != m.recorded.source) times_->extract(m.transaction, m.ready, m.start, m.end);
}

void ReplayMessages::add(const host::ReplayedMessage& m, Time origin) {
  const TrafficRecord& recorded = m.recorded;
  if (recorded.target == recorded.source) return;
  observe::Message message;
  message.record = m.number;
  message.source = recorded.source;
  message.target = recorded.target;
  message.operation = recorded.operation;
  message.bytes = recorded.total_bytes();
  message.level = recorded.lane;
  message.ready = m.ready - origin;
  message.start = m.start - origin;
  message.end = m.end - origin;
  message.parts = times_->extract(m.transaction, m.ready, m.start, m.end);
  const std::uint64_t share = recorded.core == TrafficRecord::kAnyCore
                                  ? host::share_of_core(recorded.bytes, cores_, piece_bytes_)
                                  : recorded.bytes;
  const bool by_rdma = path_ == host::ReplayOptions::Path::rdma
                           ? !recorded.target.cpu
                           : path_ == host::ReplayOptions::Path::recorded && recorded.by_rdma;
  if (!by_rdma) message.unloaded = unloaded_->of(recorded, share);
  summary_.add(message);

  write_line(message);
  if (text_.size() < kBlock) return;
  file_.write(text_);
  text_.clear();
}

// Numbers by the standard library: a line has twenty of them.
void ReplayMessages::write_line(const observe::Message& message) {
  constexpr std::size_t kLongest = 512;
  std::array<char, kLongest> line;
  char* at = line.data();
  const auto number = [&](auto value) { at = std::to_chars(at, line.data() + kLongest, value).ptr; };
  const auto text = [&](std::string_view what) { at = std::ranges::copy(what, at).out; };
  const auto unit = [&](traces::Unit of) {
    text(of.cpu ? "cpu" : "die");
    number(of.number);
    *at++ = ',';
  };
  number(message.record);
  *at++ = ',';
  unit(message.source);
  unit(message.target);
  text(traces::name_of(message.operation));
  for (const std::int64_t value :
       {static_cast<std::int64_t>(message.bytes), message.ready.ps, message.start.ps, message.end.ps}) {
    *at++ = ',';
    number(value);
  }
  *at++ = ',';
  if (const auto slow = message.slowdown()) {
    number(message.unloaded->ps);
    *at++ = ',';
    at = std::to_chars(at, line.data() + kLongest, *slow, std::chars_format::fixed, 4).ptr;
  } else {
    *at++ = ',';
  }
  *at++ = ',';
  number(message.parts.hops);
  for (const std::int64_t ps : message.parts.ps) {
    *at++ = ',';
    number(ps);
  }
  *at++ = '\n';
  text_.append(line.data(), at);
}

void ReplayMessages::finish() {
  file_.write(text_);
  file_.finish();
}

std::string text_of_messages(const Json& all) {
  if (all["count"] == 0) return "messages: none to other memory\n";
  std::string text =
      fmt::format("\nmessages to other memory: {}\n{:<12}", all["count"].get<std::uint64_t>(), "");
  for (const auto& [name, value] : all["latency_us"].items()) {
    if (name != "count") text += fmt::format("{:>16}", name);
  }
  for (const char* what : {"latency_us", "slowdown"}) {
    if (all[what]["count"] == 0) continue;
    text += fmt::format("\n{:<12}", what);
    std::string intervals;
    for (const auto& [name, value] : all[what].items()) {
      if (name == "count") continue;
      text +=
          fmt::format("{:>16.3f}", value.is_object() ? value["value"].get<double>() : value.get<double>());
      if (!value.is_object()) {
        intervals += fmt::format("{:>16}", "");
        continue;
      }
      const auto end = [](const Json& at) {
        return at.is_null() ? "-" : fmt::format("{:.4g}", at.get<double>());
      };
      intervals += fmt::format("{:>16}", fmt::format("{}..{}", end(value["low"]), end(value["high"])));
    }
    text += fmt::format("\n{:<12}{}", "  95 %", intervals);
  }
  if (all.contains("by_level")) {
    for (const Json& level : all["by_level"]) {
      const Json& us = level["latency_us"];
      text += fmt::format(
          "\nlevel {:<2} {:>9} messages, {} B: mean {:.3f} us, p50 {:.3f}, p99 {:.3f}, max {:.3f}",
          level["level"].get<int>(), us["count"].get<std::uint64_t>(), level["bytes"].get<std::uint64_t>(),
          us["mean"].get<double>(), us["p50"].get<double>(), us["p99"].get<double>(),
          us["max"].get<double>());
    }
  }
  text += "\ntime: ";
  const char* between = "";
  for (const Json& cause : all["causes"]) {
    const double share = cause["share"].get<double>();
    if (share < 0.0005) continue;
    text += fmt::format("{}{} {:.1f} %", between, cause["name"].get<std::string>(), 100 * share);
    between = ", ";
  }
  return text + "\n";
}

}  // namespace cm384::cli

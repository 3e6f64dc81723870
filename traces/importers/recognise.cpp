#include "traces/importers/recognise.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text/error.h"
#include "base/text/unpacked_input.h"
#include "traces/import.h"

namespace cm384::traces {
namespace {

std::string head_of(const std::string& path) {
  const auto stream = open_unpacked(path);
  std::string head(65536, '\0');
  stream->read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(stream->gcount()));
  return head;
}

TraceKind kind_of_json(std::string_view begin) {
  const auto has = [&](std::string_view key) { return begin.find(key) != std::string_view::npos; };
  if (has("\"workload_graph\"") || has("\"durationMicros\"") || has("_NODE\"")) return TraceKind::chakra;
  if (has("\"traceEvents\"") || has("\"Communication Time Info\"") ||
      has("\"Communication Bandwidth Info\"") || has("\"schemaVersion\"") || has("\"ph\""))
    return TraceKind::timeline;
  if (has("\"version\"")) return TraceKind::chakra;
  if (has("\"device_expert\"") || has("\"moe_layer_count\"") || has("\"physical_to_logical_map\""))
    return TraceKind::experts;
  if (has("\"input_lens\"") || has("\"request_throughput\"")) return TraceKind::requests;
  if (has("\"input_length\"") || has("\"input_toks\"") || has("\"arrival_time_ns\"") || has("\"requests\""))
    return TraceKind::requests;
  return begin[0] == '{' ? TraceKind::routing : TraceKind::other;
}

}  // namespace

std::string text_of(TraceKind kind) {
  switch (kind) {
    case TraceKind::traffic:
      return "a trace of traffic";
    case TraceKind::routing:
      return "a routing of experts";
    case TraceKind::ns3ub:
      return "a traffic.csv of ns-3-UB";
    case TraceKind::messages:
      return "a list of messages";
    case TraceKind::chakra:
      return "a Chakra execution trace";
    case TraceKind::timeline:
      return "a profiler's timeline";
    case TraceKind::htsim:
      return "a connection matrix of htsim";
    case TraceKind::goal:
      return "a GOAL schedule";
    case TraceKind::simai:
      return "a workload of SimAI";
    case TraceKind::msccl:
      return "an algorithm of MSCCL";
    case TraceKind::log:
      return "a log of NCCL or HCCL";
    case TraceKind::requests:
      return "requests of a service";
    case TraceKind::experts:
      return "a map of experts";
    case TraceKind::other:
      break;
  }
  return "no trace that is known here";
}

void refuse_foreign(const std::string& path) {
  const TraceKind kind = recognise(path);
  if (kind == TraceKind::traffic || kind == TraceKind::other) return;
  const char* reader = kind == TraceKind::routing    ? "trace from-routing"
                       : kind == TraceKind::experts  ? "trace from-routing --placement"
                       : kind == TraceKind::timeline ? "trace from-timeline"
                       : kind == TraceKind::requests ? "run serve --requests"
                                                     : "trace convert";
  throw InputError(fmt::format("{}: looks like {}, which `cm384 {}` reads", path, text_of(kind), reader));
}

TraceKind recognise(const std::string& path) {
  const std::string head = head_of(path);
  std::string_view begin(head);
  if (begin.starts_with("CM384TRC") || begin.starts_with("id,kind,") || begin.starts_with("# shaped:"))
    return TraceKind::traffic;
  if (without_gz(path).ends_with(".et")) return TraceKind::chakra;
  if (begin.starts_with("\xef\xbb\xbf")) begin.remove_prefix(3);
  begin.remove_prefix(std::min(begin.find_first_not_of(" \t\r\n"), begin.size()));
  // "[INFO] HCCL(..", "[2026-01-02 ..", "[1,0]<stdout>:..": not a list of JSON.
  const bool text = !begin.starts_with('{') &&
                    (begin.size() < 2 || begin[0] != '[' || (begin[1] >= 'A' && begin[1] <= 'Z') ||
                     (begin[1] >= '0' && begin[1] <= '9'));
  if (text &&
      (begin.find(" NCCL INFO ") != std::string_view::npos || begin.find("HCCL(") != std::string_view::npos))
    return TraceKind::log;
  if (begin.starts_with('{') || begin.starts_with('[')) return kind_of_json(begin);
  const std::pair<std::string_view, TraceKind> kinds[] = {{"Nodes", TraceKind::htsim},
                                                          {"num_ranks", TraceKind::goal},
                                                          {"HYBRID_TRANSFORMER", TraceKind::simai},
                                                          {"MICRO", TraceKind::simai},
                                                          {"<algo", TraceKind::msccl},
                                                          {"TIMESTAMP,", TraceKind::requests},
                                                          {"Timestamp,", TraceKind::requests},
                                                          {"arrived_at,", TraceKind::requests}};
  for (const auto& [start, kind] : kinds) {
    if (begin.starts_with(start)) return kind;
  }
  if ((begin.starts_with("/*") || begin.starts_with("//")) &&
      begin.find("num_ranks") != std::string_view::npos)
    return TraceKind::goal;
  if ((begin.starts_with("<?xml") || begin.starts_with("<!--")) &&
      begin.find("<algo") != std::string_view::npos)
    return TraceKind::msccl;
  if (begin.starts_with("taskId,") && is_ns3ub(path)) return TraceKind::ns3ub;
  const std::string_view first = begin.substr(0, begin.find('\n'));
  // kernel_details.csv, op_summary.csv.
  if (first.find("Duration(us)") != std::string_view::npos) return TraceKind::timeline;
  if (first.find(',') != std::string_view::npos && is_message_list(path)) return TraceKind::messages;
  return TraceKind::other;
}

std::string beginning_of(const std::string& path) {
  const std::string head = head_of(path);
  if (head.empty()) return "is empty";
  const std::string_view first = std::string_view(head).substr(0, std::min<std::size_t>(head.find('\n'), 40));
  const bool text =
      std::ranges::all_of(first, [](char c) { return c == '\t' || c == '\r' || (c >= ' ' && c <= '~'); });
  return text ? fmt::format("begins with '{}'", first) : "holds no text and is of no known form";
}

}  // namespace cm384::traces

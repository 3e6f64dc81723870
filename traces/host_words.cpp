#include "traces/host_words.h"

#include <fmt/format.h>

#include <algorithm>

namespace cm384::traces {
namespace {

using Kind = TrafficRecord::Kind;

constexpr std::uint64_t kMostBlocks = 1u << 16;
constexpr std::uint64_t kMostLaunches = std::uint64_t{1} << 32;
constexpr std::uint64_t kMostCopies = std::uint64_t{1} << 31;

std::string too_large(std::string_view what, std::uint64_t value, std::uint64_t limit) {
  return value < limit ? "" : fmt::format("words: {} {}; allowed: below {}", what, value, limit);
}

// The first that is wrong.
std::string first_of(std::initializer_list<std::string> faults) {
  const auto* found = std::ranges::find_if(faults, [](const std::string& fault) { return !fault.empty(); });
  return found == faults.end() ? "" : *found;
}

std::string call_fault(std::span<const std::uint64_t> words) {
  switch (static_cast<HostCallKind>(words[0])) {
    case HostCallKind::submit:
    case HostCallKind::entry:
      return too_large("stream", words[1], kMostStreams);
    case HostCallKind::synchronize:
      return words[1] == kAllStreams ? "" : too_large("stream", words[1], kMostStreams);
    case HostCallKind::compute:
      return too_large("time", words[1], std::uint64_t{1} << 60);
    case HostCallKind::unfold:
      return too_large("entries", words[1], kMostCopies);
    case HostCallKind::barrier:
      return first_of(
          {too_large("die", words[1], kMostUnits), too_large("threads", words[3], kMostUnits + 1)});
  }
  return "";
}

// How many words there are to be; 0 where the first one is no call.
std::size_t words_of_call(std::uint64_t call) {
  constexpr std::size_t kWords[] = {2 + kEntryWords, 2, 2, 4, 2 + kEntryWords, 2};
  return call < std::size(kWords) ? kWords[call] : 0;
}

std::size_t words_wanted(const TrafficRecord& r) {
  switch (r.kind) {
    case Kind::transfer:
      return r.words.empty() || r.engine != TrafficRecord::Engine::sdma ? 0 : 2;
    case Kind::launch:
    case Kind::end:
      return r.words.empty() ? 0 : 2;
    case Kind::stream:
      return 4;
    case Kind::kernel:
      return std::clamp(r.words.size(), std::size_t{2}, kMostWords);
    case Kind::given:
      return 1 + kEntryWords;
    case Kind::call:
      return r.words.empty() ? 2 : words_of_call(r.words[0]);
    default:
      return 0;
  }
}

}  // namespace

std::span<const std::uint64_t> entry_of(const TrafficRecord& r) {
  const std::span words(r.words);
  if (r.kind == Kind::given) return words.subspan(1);
  if (r.kind != Kind::call) return {};
  const auto call = static_cast<HostCallKind>(words[0]);
  const bool submits = call == HostCallKind::submit || call == HostCallKind::entry;
  return submits ? words.subspan(2) : std::span<const std::uint64_t>();
}

std::string words_fault(const TrafficRecord& r) {
  if (const std::size_t wanted = words_wanted(r); r.words.size() != wanted)
    return fmt::format("words: {} of them; allowed: {}", r.words.size(), wanted);
  if (r.words.empty()) return "";
  const std::span words(r.words);
  switch (r.kind) {
    case Kind::transfer:
      return first_of(
          {too_large("stream", words[0], kMostStreams), too_large("copy", words[1], kMostCopies)});
    case Kind::launch:
    case Kind::end:
      return first_of(
          {too_large("launch", words[0], kMostLaunches), too_large("block", words[1], kMostBlocks)});
    case Kind::stream:
      return first_of(
          {too_large("stream", words[0], kMostStreams),
           too_large("offset", words[1], TrafficRecord::kMostOffset),
           too_large("offset", words[2], TrafficRecord::kMostOffset),
           words[1] % 64 != 0 || words[2] % 64 != 0 ? "words: an offset that is no multiple of 64" : "",
           too_large("depth", words[3], kMostBlocks + 1)});
    case Kind::kernel: {
      std::string fault =
          first_of({too_large("kernel", words[0], kMostBlocks), too_large("type", words[1], 3)});
      for (const std::uint64_t core : words.subspan(2)) {
        if (fault.empty()) fault = too_large("core", core, TrafficRecord::kMostCores);
      }
      return fault;
    }
    case Kind::given:
      return too_large("stream", words[0], kMostStreams);
    case Kind::call:
      return call_fault(words);
    default:
      return "";
  }
}

}  // namespace cm384::traces

#include "system/host/recording_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/engine/payload.h"
#include "base/text/content_hash.h"
#include "base/text/error.h"
#include "base/text/input_file.h"
#include "npu_core/pipes/pipe_instruction.h"

namespace cm384::host {
namespace {

using npu::Recording;
using Step = Recording::Step;

constexpr const char* kFormat = "cm384 recording 2";
constexpr const char* kUnchecked = "cm384 recording 1";  // without a checksum

constexpr std::size_t kLargestRecording = std::size_t{8} << 30;

// As it stands in a file.
struct PackedWait {
  std::uint32_t of = 0, on = 0;
  std::int64_t delay_ps = 0;
  std::uint64_t kind = 0;
};
static_assert(std::has_unique_object_representations_v<Step> &&
              std::has_unique_object_representations_v<PackedWait>);

template <class T>
void append(std::string& bytes, const std::vector<T>& values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

template <class T>
std::vector<T> read_array(std::istream& from, std::size_t count) {
  constexpr std::size_t kMost = std::size_t{1} << 26;
  if (count > kMost) throw InputError(fmt::format("an array of {} entries; allowed: up to {}", count, kMost));
  std::vector<T> values;
  // What a damaged header asks for is not made before it is there.
  constexpr std::size_t kTogether = 1u << 16;
  while (values.size() < count) {
    const std::size_t before = values.size(), more = std::min(count - before, kTogether);
    values.resize(before + more);
    if (!from.read(reinterpret_cast<char*>(values.data() + before),
                   static_cast<std::streamsize>(more * sizeof(T))))
      throw InputError("it is cut off");
  }
  return values;
}

// What a recording stands on; the rest is checked against what plays it.
void check(const std::vector<Step>& steps, const std::vector<PackedWait>& waits, std::size_t blocks) {
  std::vector<bool> begun(blocks), ended(blocks);
  for (const Step& s : steps) {
    const bool moves = s.kind == Step::Kind::transfer || s.kind == Step::Kind::fill;
    if (s.kind > Step::Kind::transfer || s.operation > Step::Operation::add || s.block >= blocks ||
        s.engine >= npu::kEngines || (moves && (s.burst_bytes == 0 || s.bursts == 0)))
      throw InputError("a step that does not exist");
    if (s.kind == Step::Kind::begin) {
      if (begun[s.block]) throw InputError("a block that begins twice");
      begun[s.block] = true;
    } else if (s.kind == Step::Kind::end) {
      if (ended[s.block]) throw InputError("a block that ends twice");
      ended[s.block] = true;
    } else if (s.kind != Step::Kind::join && !begun[s.block]) {
      throw InputError("a step before its block");
    }
  }
  if (std::ranges::find(begun, false) != begun.end() || std::ranges::find(ended, false) != ended.end())
    throw InputError("a block without begin or end");
  for (const PackedWait& w : waits) {
    if (w.of >= steps.size() || w.on >= w.of || w.kind > 2 || steps[w.of].kind == Step::Kind::begin)
      throw InputError("a wait that does not exist");
  }
}

Recordings recordings_in(std::istream& file, const std::string& key) {
  std::string line;
  std::getline(file, line);
  const auto header = nlohmann::json::parse(line);
  if (header.at("format") != kFormat && header.at("format") != kUnchecked)
    throw InputError(fmt::format("allowed: {}", kFormat));
  if (header.at("key") != key)
    throw InputError(fmt::format("recorded of {}; this run is {}", header.at("key").get<std::string>(), key));
  Recordings recordings;
  for (const nlohmann::json& launch : header.at("launches")) {
    const auto blocks = launch.at("blocks").get<std::size_t>();
    if (blocks == 0 || blocks > 1024) throw InputError("blocks: allowed: 1 to 1024");
    auto steps = read_array<Step>(file, launch.at("steps").get<std::size_t>());
    const auto packed = read_array<PackedWait>(file, launch.at("waits").get<std::size_t>());
    check(steps, packed, blocks);
    std::vector<Recording::Wait> waits;
    waits.reserve(packed.size());
    for (const PackedWait& w : packed)
      waits.push_back({w.of, w.on, static_cast<npu::DependencyKind>(w.kind), Time{w.delay_ps}});
    recordings.push_back(
        std::make_shared<const Recording>(Recording::of(blocks, std::move(steps), std::move(waits))));
  }
  if (file.peek() != std::istream::traits_type::eof()) throw InputError("more than its header says");
  return recordings;
}

}  // namespace

std::string bytes_of(const std::string& key, const Recordings& recordings) {
  nlohmann::json header{{"format", kFormat}, {"key", key}, {"launches", nlohmann::json::array()}};
  std::string arrays;
  for (const auto& recording : recordings) {
    std::vector<PackedWait> waits;
    for (std::uint32_t on = 0; on < recording->steps.size(); ++on) {
      for (std::uint32_t e = recording->first_edge[on]; e < recording->first_edge[on + 1]; ++e) {
        const Recording::Edge& edge = recording->edges[e];
        waits.push_back({edge.to, on, edge.delay.ps, static_cast<std::uint64_t>(edge.kind)});
      }
    }
    header["launches"].push_back(
        {{"blocks", recording->blocks}, {"steps", recording->steps.size()}, {"waits", waits.size()}});
    append(arrays, recording->steps);
    append(arrays, waits);
  }
  std::string bytes = header.dump() + "\n" + arrays;
  return bytes + hash_of(bytes);
}

Recordings load_recordings(const std::string& path, const std::string& key, bool* checked) {
  std::string bytes = read_input(path, kLargestRecording);
  const std::string_view begin(bytes.data(), std::min(bytes.find('\n'), bytes.size()));
  const bool old = begin.find(kUnchecked) != std::string_view::npos;
  if (checked != nullptr) *checked = !old;
  if (!old) {
    const std::size_t length = hash_of("").size(), end = bytes.size() - std::min(length, bytes.size());
    const std::string stated = bytes.substr(end);
    bytes.resize(end);
    if (stated != hash_of(bytes))
      throw InputError(
          fmt::format("{}: not a recording, or damaged: its checksum does not match; allowed: the file as it "
                      "was written, or no file, so that it is recorded again",
                      path));
  }
  std::istringstream file(std::move(bytes));
  try {
    return recordings_in(file, key);
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format("{}: not a recording", path));
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", path, error.what()));
  }
}

void check_fits(const Recording& recording, std::size_t blocks, std::span<const std::uint64_t> regions) {
  if (recording.blocks != blocks)
    throw InputError(fmt::format("recording: of {} cores; allowed: {}", recording.blocks, blocks));
  const auto fits = [&](const Step& s) {
    const bool own = s.region == Recording::kPrivate || s.region == Recording::kImage;
    if (s.kind == Step::Kind::fill && own) return s.burst_bytes <= sim::kRequestBytes;
    if (s.region >= regions.size()) return false;
    // A scalar unit fills whole lines.
    const std::uint64_t line = s.kind == Step::Kind::fill ? sim::kRequestBytes : 1;
    const std::uint64_t bytes = (regions[s.region] + line - 1) / line * line;
    if (s.burst_bytes > bytes || s.offset > bytes - s.burst_bytes) return false;
    // How far the other bursts may lie from the first.
    const std::uint64_t room = s.stride < 0 ? s.offset : bytes - s.burst_bytes - s.offset;
    const std::uint64_t step =
        s.stride < 0 ? 0 - static_cast<std::uint64_t>(s.stride) : static_cast<std::uint64_t>(s.stride);
    return step == 0 || s.bursts - std::uint64_t{1} <= room / step;
  };
  for (const Step& s : recording.steps) {
    const bool moves = s.kind == Step::Kind::transfer || s.kind == Step::Kind::fill;
    if (moves && !fits(s))
      throw InputError(
          fmt::format("recording: a transfer outside of the operator's memory: {} bursts of {} B, {} B "
                      "apart, from byte {} "
                      "of {} B of region {}",
                      s.bursts, s.burst_bytes, s.stride, s.offset,
                      s.region < regions.size() ? regions[s.region] : 0, s.region));
  }
}

}  // namespace cm384::host

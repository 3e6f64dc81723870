// One machine over several processes (base/engine/peers.h): who owns which part, and what is known to all.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/engine/peers.h"
#include "base/text/error.h"
#include "system/machine/supernode_parts.h"

namespace cm384::supernode {
namespace {

// A LaunchRecord without its image.
struct SentRecord {
  int die = 0;
  std::uint32_t launch = 0, blocks = 0;
  std::uint64_t arguments = 0;
  Time task_start, first_instruction, last_retired, task_end, fetch_stall;
  std::array<Time, npu::kPhases> phase_total{};
};

// Stands before a text that was printed.
struct Head {
  Time window;
  std::size_t place = 0, length = 0;
  int die = 0, core = 0;
};

// Name, pattern, unit and sentence of each, a line each.
constexpr std::size_t kTexts = 4;
std::string texts_of(const sim::Statistics& part) {
  std::string text;
  for (const sim::Statistic& s : part.list())
    text += fmt::format("{}\n{}\n{}\n{}\n", s.name, s.pattern, s.unit, s.sentence);
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::vector<std::uint64_t> words_of(const sim::Blob& blob) {
  std::vector<std::uint64_t> words(blob.size() / sizeof(std::uint64_t));
  if (!words.empty()) std::memcpy(words.data(), blob.data(), words.size() * sizeof words[0]);
  return words;
}

void declare(sim::Statistics& to, const std::string& name, const std::string& pattern, std::string_view unit,
             std::string_view sentence, const std::uint64_t& value) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return to.declare(name, unit, sentence, value);
  to.declare({name.substr(0, dot), pattern.substr(0, pattern.rfind('.'))}, name.substr(dot + 1), unit,
             sentence, value);
}

}  // namespace

Ownership::Ownership(const std::vector<int>& packages, const hw::Topology& topology)
    : self_(sim::peers().self()), processes_(sim::peers().count()) {
  if (!sim::peers().several()) return;
  dies_.resize(static_cast<std::size_t>(topology.dies()));
  std::vector<std::set<unsigned>> of_supernode(static_cast<std::size_t>(topology.supernodes));
  for (std::size_t n = 0; n < packages.size(); ++n) {
    for (const int die : {packages[n], packages[n] ^ 1}) {
      if (topology.in_one_package(packages[n], die))
        dies_[static_cast<std::size_t>(die)] = static_cast<unsigned>(n * processes_ / packages.size());
    }
    of_supernode[static_cast<std::size_t>(topology.supernode_of(packages[n]))].insert(of_die(packages[n]));
  }
  for (int plane = 0; plane < topology.planes(); ++plane) {
    const auto& own = of_supernode[static_cast<std::size_t>(plane / topology.sub_planes)];
    const auto turn = static_cast<unsigned>(plane % topology.sub_planes);
    const bool all = topology.supernodes == 1 || own.empty();
    planes_.push_back(all ? turn % processes_
                          : *std::next(own.begin(), static_cast<std::ptrdiff_t>(turn % own.size())));
  }
}

std::vector<int> packages_of(const std::vector<int>& dies, const hw::Topology& topology) {
  std::vector<int> packages;
  std::set<int> known;
  for (const int die : dies) {
    if (known.insert(die / topology.dies_per_package).second) packages.push_back(die);
  }
  return packages;
}

std::string of_owner(unsigned owner, const std::string& text) {
  if (!sim::peers().several()) return text;
  const sim::Blob theirs = sim::peers().from(owner, std::as_bytes(std::span(text)));
  return {reinterpret_cast<const char*>(theirs.data()), theirs.size()};
}

void visit_values(unsigned owner, const sim::Statistics& part,
                  const std::function<void(const sim::Statistics&)>& visit) {
  std::vector<std::uint64_t> mine;
  for (const sim::Statistic& statistic : part.list()) mine.push_back(statistic.value());
  const std::vector<sim::Blob> all = sim::peers().all(std::as_bytes(std::span(mine)));
  // A die has cores where it is owned, and counters of them.
  const std::vector<std::string> texts = lines_of(of_owner(owner, texts_of(part)));
  std::vector<std::uint64_t> values = words_of(all[owner]);
  sim::Statistics theirs;
  for (std::size_t n = 0; n < values.size(); ++n) {
    const std::string* const text = &texts[n * kTexts];
    // Whoever puts packets into a sub-plane counts them.
    for (unsigned p = 0; text->ends_with(".injected") && p < all.size(); ++p) {
      if (p != owner) values[n] += words_of(all[p])[n];
    }
    declare(theirs, text[0], text[1], text[2], text[3], values[n]);
  }
  visit(theirs);
}

std::vector<Supernode::Parts::Printed> Supernode::Parts::drain_printed() {
  std::vector<Printed> all;
  if (runner.peers() == nullptr || runner.control().apart) return all;
  sim::Blob mine;
  printed.each([&](std::vector<Printed>& texts) {
    for (const Printed& p : texts) {
      const Head head{p.window, p.place, p.text.size(), p.die, p.core};
      for (const auto bytes : {std::as_bytes(std::span(&head, 1)), std::as_bytes(std::span(p.text))})
        mine.insert(mine.end(), bytes.begin(), bytes.end());
    }
    texts.clear();
  });
  for (const sim::Blob& blob : sim::peers().all(mine)) {
    for (std::size_t at = 0; at < blob.size();) {
      Head head;
      std::memcpy(&head, blob.data() + at, sizeof head);
      at += sizeof head;
      all.push_back({head.window,
                     head.place,
                     head.die,
                     head.core,
                     {reinterpret_cast<const char*>(blob.data()) + at, head.length}});
      at += head.length;
    }
  }
  std::ranges::stable_sort(all, {}, [](const Printed& p) { return std::pair(p.window, p.place); });
  return all;
}

void Supernode::Parts::share_records(std::vector<std::vector<npu::LaunchRecord>>& records) {
  std::vector<SentRecord> mine;
  for (std::size_t die = 0; die < records.size(); ++die) {
    if (!owners.has_die(static_cast<int>(die))) continue;
    for (std::size_t& n = known_records[die]; n < records[die].size(); ++n) {
      const npu::LaunchRecord& r = records[die][n];
      mine.push_back({static_cast<int>(die), r.launch, r.blocks, r.arguments, r.task_start,
                      r.first_instruction, r.last_retired, r.task_end, r.fetch_stall, r.phase_total});
    }
  }
  const std::vector<sim::Blob>& all = sim::peers().all(std::as_bytes(std::span(mine)));
  for (unsigned p = 0; p < all.size(); ++p) {
    for (std::size_t at = 0; p != sim::peers().self() && at < all[p].size(); at += sizeof(SentRecord)) {
      SentRecord r;
      std::memcpy(&r, all[p].data() + at, sizeof r);
      auto& of_die = records[static_cast<std::size_t>(r.die)];
      if (of_die.size() <= r.launch) of_die.resize(r.launch + std::size_t{1});
      const auto image = images.extract({r.die, r.launch});
      of_die[r.launch] = {r.launch,
                          image ? image.mapped() : nullptr,
                          r.arguments,
                          r.task_start,
                          r.first_instruction,
                          r.last_retired,
                          r.task_end,
                          r.phase_total,
                          r.fetch_stall,
                          r.blocks};
    }
  }
}

}  // namespace cm384::supernode

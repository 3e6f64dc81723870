// When the parts of a batch run, where microbatches share a die: each follows its own order, each part needs
// units that it has alone, and parts that run side by side slow each other down. Composed of times; nothing
// is simulated.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace cm384::studies {

// Of a die: all of its cube cores, all of its vector cores, its way to other dies.
enum PrefillUnits : unsigned { kCubeUnit = 1, kVectorUnit = 2, kFabricUnit = 4 };

// What a part does, as far as others feel it. `rows`: on vector cores alone.
enum class PartKind : std::uint8_t { product, attention, rows, network, exchange };
inline constexpr std::size_t kPartKinds = 5;
std::string_view name_of(PartKind kind);

struct PlannedPart {
  double us = 0;       // alone
  unsigned units = 0;  // PrefillUnits
  PartKind kind = PartKind::product;
};

// How many times as long a part takes while one of another kind runs beside it; beside several, each in turn.
class Slowdowns {
 public:
  Slowdowns() {
    for (auto& row : of_) row.fill(1);
  }
  double of(PartKind part, PartKind beside) const { return of_[index(part)][index(beside)]; }
  void set(PartKind part, PartKind beside, double slowdown) { of_[index(part)][index(beside)] = slowdown; }

 private:
  static std::size_t index(PartKind kind) { return static_cast<std::size_t>(kind); }
  std::array<std::array<double, kPartKinds>, kPartKinds> of_{};
};

// Begin and end of each part of each microbatch, from time 0 on.
struct Schedule {
  std::vector<std::vector<double>> starts, ends;
};
// A part begins when the one before it has ended and its units are free; of those that could begin first, the
// one that has waited longest, then that of the earlier microbatch. No part is kept back for a later one.
Schedule schedule_of(const std::vector<std::vector<PlannedPart>>& microbatches,
                     const Slowdowns& slowdowns = {});

}  // namespace cm384::studies

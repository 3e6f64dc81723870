// Operators on an accelerator without cores, at grade formula: what takes longest of multiplying and of
// reading and writing memory, each at the share of its peak that kernels reach (section `processor` of the
// machine), between a launch and an end. Nothing moves; what would move is counted.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "workloads/frame/session.h"
#include "workloads/operators/operator.h"

namespace cm384::studies {

// What products are of: each format has a peak.
enum class NumberFormat : std::uint8_t { bf16, fp8, int8 };
std::string_view name_of(NumberFormat format);
// The format named "bf16", "fp8" or "int8".
NumberFormat format_of(std::string_view name);

struct UnitOperator {
  operators::Work work;
  NumberFormat format = NumberFormat::bf16;
  bool attention = false;
  int kernels = 1;  // one after another, each launched
};

struct UnitReading {
  double task_us = 0, kernel_us = 0;
  double peak_TOPS = 0;  // 0: multiplies nothing
  std::string bottleneck;
  double latency_us(bool kernel_time) const { return kernel_time ? kernel_us : task_us; }
};

// In closed form, without a machine. Throws InputError where it has no such format.
UnitReading unit_time_of(const UnitOperator& made, const hw::Machine& machine);
// Runs it on the first accelerator of a machine so many times; the accelerator counts the work. Empty:
// interrupted.
std::optional<UnitReading> run_on_units(const StudyContext& context, const std::string& what,
                                        const UnitOperator& made, int times, SimulatorCounts& counts);

// Throws InputError where the command line names one of these options, which cores alone have, or where
// someone is to look at what moves.
void refuse_beside_formula(const StudyContext& context, const char* study,
                           std::initializer_list<const char*> options);
// Puts what such rows have behind those of `row`, and the row into `result` with a note on its grade.
void add_unit_row(const StudyContext& context, StudyResult& result, Row row, const UnitOperator& made,
                  const UnitReading& reading, bool kernel_time);

inline constexpr Field kGradeField{"grade", FieldType::text, "formula: without cores, a time in closed form"};

}  // namespace cm384::studies

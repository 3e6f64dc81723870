#include "workloads/operators/sampling/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/text/error.h"

namespace cm384::operators {
namespace {

constexpr std::uint32_t kLeastPart = 1024;  // elements of a row that a core takes, where several do

}  // namespace

// Cores at a row.
std::uint32_t Sampling::parts(std::size_t cores) const {
  return std::max<std::uint32_t>(
      1, std::min(static_cast<std::uint32_t>(cores) / case_.rows, case_.width / kLeastPart));
}

std::vector<std::uint16_t> Sampling::cores() const {
  std::vector<std::uint16_t> cores = site().cores;
  cores.resize(std::min<std::uint64_t>(cores.size(), std::uint64_t{case_.rows} * parts(cores.size())));
  return cores;
}

void Sampling::lay_out(const Site& site) {
  const std::uint64_t most = CM384_SAMPLE_ROWS * site.cores.size();
  if (case_.top_k < 1 || case_.top_k > CM384_SAMPLE_TOP_K || case_.rows > most)
    throw InputError(fmt::format("sample: {} rows, the {} largest of each; allowed: {} rows, 1 to {}",
                                 case_.rows, case_.top_k, most, CM384_SAMPLE_TOP_K));
  const std::uint32_t shared = parts(site.cores.size()), part = (case_.width + shared - 1) / shared;
  cm384_sample& a = arguments_;
  a.rows = case_.rows;
  a.width = case_.width;
  a.chunk = std::min((part + 63) / 64 * 64, CM384_SAMPLE_CHUNK);
  a.top_k = case_.top_k;
  a.top_p = static_cast<float>(case_.top_p);
  inputs_ = reference::make_sample_inputs(case_);
  const auto put = [&](const std::vector<float>& values) {
    const std::uint64_t at = site.memory.allocate_lines(values.size() * 4);
    runtime().copy_in(at, std::as_bytes(std::span(values)));
    return at;
  };
  // The course depends on the shares, so they are there in payload mode control, too.
  a.shares = put(inputs_->shares);
  a.draws = put(inputs_->draws);
  a.lists = site.memory.allocate_lines(std::uint64_t{case_.rows} * shared * ((case_.top_k + 3) / 4 * 32));
  a.words = site.memory.allocate_lines(case_.rows * 4ull);
  a.chosen = site.memory.allocate_lines(case_.rows * 4ull);
  if (!site.full) inputs_.reset();
}

Work Sampling::work() const {
  return {0, false, 4.0 * case_.rows * case_.width};
}

std::string Sampling::size() const {
  return fmt::format("sample {} x {}, {} largest up to {}", case_.rows, case_.width, case_.top_k,
                     case_.top_p);
}

std::string Sampling::check() const {
  return reference::compare_sample(case_, *inputs_, runtime().get<std::int32_t>(arguments_.words, case_.rows),
                                   runtime().get<float>(arguments_.chosen, case_.rows));
}

}  // namespace cm384::operators

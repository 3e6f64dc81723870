#include "workloads/operators/rows/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"

namespace cm384::operators {
namespace {

using reference::RowOperation;

constexpr std::uint64_t kSpare = 1024;       // of it, for single values
constexpr std::uint32_t kLeastChunk = 1024;  // elements of add, softmax, sort that a core takes at a time
constexpr std::uint64_t kMostRepeats = 255;  // of a vector instruction
constexpr std::uint64_t kSingles = 1024;     // as quantise_tiles has it: bytes for a float of each row
constexpr std::uint64_t kScaleBlock = 8;     // scales in a block of 32 B

std::uint32_t up(std::uint64_t value, std::uint32_t to) {
  return static_cast<std::uint32_t>((value + to - 1) / to * to);
}

// Equal parts of at most `most`.
std::uint32_t chunk_of(std::uint64_t elements, std::uint32_t most) {
  const std::uint64_t chunks = (elements + most - 1) / most;
  return std::clamp(up((elements + chunks - 1) / chunks, 64), kLeastChunk, most);
}

bool by_chunk(RowOperation operation) {
  return operation == RowOperation::add || operation == RowOperation::softmax ||
         operation == RowOperation::sort;
}

struct Form {
  const char *kernel, *name;
  std::uint32_t in, out;   // bytes per element of the input
  std::uint32_t buffered;  // bytes of the UBuffer per element of out0, and per buffer each way
  std::uint32_t shared;    // bytes per element of out0, once
};
const Form& form_of(RowOperation operation) {
  static constexpr Form kForms[] = {
      {"add", "add", 4, 2, 6, 8},
      {"add_rms_norm", "rms-norm", 4, 4, 8, 10},
      {"quantise_rows", "quantise", 2, 1, 3, 8},
      {"quantise_rows", "static-quantise", 2, 1, 3, 12},
      {"swiglu_rows", "swiglu", 2, 1, 6, 12},
      {"softmax", "softmax", 4, 4, 8, 0},
      {"sort_rows", "sort", 4, 8, 12, 12},
      {"head_norm_rows", "head-norm", 2, 2, 4, 8},
  };
  return kForms[static_cast<std::size_t>(operation)];
}

}  // namespace

std::uint32_t rows_of_tile(const reference::RowCase& row_case, std::uint32_t buffers, std::size_t cores) {
  if (row_case.operation == RowOperation::head_norm) {
    // BF16 each way for each buffer, floats twice; a sum and a block of each row, and gamma.
    const std::uint64_t each = row_case.width * (4ull * buffers + 8) + 36;
    const std::uint64_t fit =
        std::min((CM384_UBUFFER_BYTES - kSpare - kScaleBlock * 36) / each, kMostRepeats);
    return static_cast<std::uint32_t>(fit / kScaleBlock * kScaleBlock);
  }
  const bool by_column = row_case.operation == RowOperation::static_quantise;
  if ((row_case.operation != RowOperation::quantise && !by_column) || row_case.rows <= cores) return 1;
  const std::uint64_t width = row_case.width;
  // Input and integers for each buffer; values twice as floats, an eighth of them once more, and a factor
  // that fills a block. Beside them areas of single floats: scales, factors, two constants.
  const std::uint64_t each = width * 3 * buffers + width * 8 + width / 2 + 32;
  const std::uint64_t room = CM384_UBUFFER_BYTES - (buffers + 3) * kSingles - (by_column ? width * 4 : 0);
  const std::uint64_t fit = std::min(room / each, kMostRepeats) / kScaleBlock * kScaleBlock;
  return fit == 0 ? 1 : static_cast<std::uint32_t>(fit);
}

const char* Rows::kernel() const {
  const bool quantises =
      case_.operation == RowOperation::quantise || case_.operation == RowOperation::static_quantise;
  return quantises && tile_ > 1 ? "quantise_tiles" : form_of(case_.operation).kernel;
}

std::uint32_t Rows::out_width() const {
  return case_.operation == RowOperation::swiglu ? case_.width / 2 : case_.width;
}

std::uint64_t Rows::ubuffer() const {
  const Form& form = form_of(case_.operation);
  return (form.buffered * std::uint64_t{buffers_} + form.shared) *
             (by_chunk(case_.operation) ? arguments_.chunk : out_width()) +
         1024;
}

std::string Rows::size() const {
  return fmt::format("{} {} x {}", form_of(case_.operation).name, case_.rows, case_.width);
}

Work Rows::work() const {
  const Form& form = form_of(case_.operation);
  const bool norms = case_.operation == RowOperation::rms_norm || case_.operation == RowOperation::head_norm;
  const double columns = norms                                              ? case_.width * 2.0
                         : case_.operation == RowOperation::static_quantise ? case_.width * 4.0
                                                                            : 0;
  return {0, false, static_cast<double>(case_.elements()) * (form.in + form.out) + columns,
          case_.operation == RowOperation::softmax ? 3
          : case_.operation == RowOperation::sort  ? 2
                                                   : 1};
}

// Cores that sort a row together.
std::uint32_t Rows::parts(std::size_t cores) const {
  return std::max<std::uint32_t>(
      1, std::min(static_cast<std::uint32_t>(cores) / case_.rows, case_.width / kLeastChunk));
}

// A row, or a chunk, is one core's; where there are fewer the other cores are left out.
std::vector<std::uint16_t> Rows::cores() const {
  std::vector<std::uint16_t> cores = site().cores;
  const std::uint64_t items =
      case_.operation == RowOperation::add    ? (case_.elements() + arguments_.chunk - 1) / arguments_.chunk
      : case_.operation == RowOperation::sort ? std::uint64_t{case_.rows} * parts(cores.size())
                                              : case_.rows;
  cores.resize(std::min<std::uint64_t>(cores.size(), items));
  return cores;
}

void Rows::lay_out(const Site& site) {
  const std::uint32_t unit = case_.operation == RowOperation::swiglu ? 128
                             : case_.operation == RowOperation::sort ? 1
                                                                     : 64;
  if (case_.width % unit != 0)
    throw InputError(fmt::format("{}: rows of {} elements; allowed: multiples of {}",
                                 form_of(case_.operation).name, case_.width, unit));
  if (case_.operation == RowOperation::head_norm && case_.width > 128)
    throw InputError(fmt::format("head-norm: rows of {} elements; allowed: 64 or 128", case_.width));
  cm384_rows& a = arguments_;
  a.rows = case_.rows;
  a.width = out_width();
  a.buffers = buffers_;
  a.epsilon = static_cast<float>(case_.epsilon);
  a.flags = case_.operation == RowOperation::static_quantise ? CM384_ROWS_STATIC : 0;
  // As much as fits.
  const Form& form = form_of(case_.operation);
  const auto most = static_cast<std::uint32_t>((CM384_UBUFFER_BYTES - kSpare) /
                                               (form.buffered * buffers_ + form.shared) / 64 * 64);
  a.chunk = chunk_of(case_.operation == RowOperation::add
                         ? std::max<std::uint64_t>(1, case_.elements() / site.cores.size())
                     : case_.operation == RowOperation::sort
                         ? (case_.width + parts(site.cores.size()) - 1) / parts(site.cores.size())
                         : case_.width,
                     most);
  if (case_.operation == RowOperation::sort && case_.width / a.chunk >= CM384_SORT_RUNS)
    throw InputError(fmt::format("sort: rows of {} elements; allowed: up to {}", case_.width,
                                 a.chunk * CM384_SORT_RUNS - 1));
  tile_ = rows_of_tile(case_, buffers_, site.cores.size());
  if (tile_ > 1) a.chunk = tile_ * case_.width;
  if (tile_ == 1 && ubuffer() > CM384_UBUFFER_BYTES)
    throw InputError(
        fmt::format("{}: a row of {} elements takes {} B of the UBuffer with {} buffers; allowed: {} B",
                    form_of(case_.operation).name, case_.width, ubuffer(), buffers_, CM384_UBUFFER_BYTES));
  const std::uint64_t elements = case_.elements();
  const bool two = case_.operation == RowOperation::add || case_.operation == RowOperation::rms_norm;
  const auto take = [&](std::uint64_t bytes, bool input) {
    const std::uint64_t at = site.memory.allocate_lines(bytes);
    if (input && !site.full && case_.operation != RowOperation::sort) runtime().mark_payload(at, bytes);
    return at;
  };
  a.in[0] = take(two ? elements * 2 : elements * form.in, true);
  if (two) a.in[1] = take(elements * 2, true);
  if (case_.operation == RowOperation::static_quantise) a.in[1] = take(case_.width * 4ull, true);
  if (case_.operation == RowOperation::rms_norm || case_.operation == RowOperation::head_norm)
    a.in[2] = take(case_.width * 2ull, true);
  if (case_.operation != RowOperation::sort)
    a.out[0] = take(case_.operation == RowOperation::rms_norm ? elements * 2 : elements * form.out, false);
  if (case_.operation == RowOperation::rms_norm) a.out[1] = take(elements * 2, false);
  if (case_.operation == RowOperation::quantise) a.out[1] = take(case_.rows * 4ull, false);
  if (case_.operation == RowOperation::sort) {
    a.out[0] = take(elements * 4, false);
    a.out[1] = take(elements * 4, false);
    for (std::uint64_t& room : std::span(a.in).subspan(1)) room = take(elements * 8, false);
  }
  // The course of a sort depends on its values.
  if (site.full || case_.operation == RowOperation::sort) write_inputs();
}

void Rows::write_inputs() {
  inputs_ = reference::make_row_inputs(case_);
  const auto put = [this](std::uint64_t at, const auto& values) {
    if (!values.empty()) runtime().copy_in(at, std::as_bytes(std::span(values)));
  };
  put(arguments_.in[0], inputs_->x);
  put(arguments_.in[0], inputs_->logits);
  put(arguments_.in[1], inputs_->y);
  put(arguments_.in[1], inputs_->factors);
  put(arguments_.in[2], inputs_->gamma);
}

std::string Rows::check() const {
  const std::uint64_t elements = std::uint64_t{case_.rows} * out_width();
  reference::RowOutputs out;
  switch (case_.operation) {
    case RowOperation::rms_norm:
      out.sums = runtime().get<std::uint16_t>(arguments_.out[1], elements);
      [[fallthrough]];
    case RowOperation::add:
    case RowOperation::swiglu:
    case RowOperation::head_norm:
      out.values = runtime().get<std::uint16_t>(arguments_.out[0], elements);
      break;
    case RowOperation::quantise:
      out.scales = runtime().get<float>(arguments_.out[1], case_.rows);
      [[fallthrough]];
    case RowOperation::static_quantise:
      out.integers = runtime().get<std::int8_t>(arguments_.out[0], elements);
      break;
    case RowOperation::softmax:
      out.shares = runtime().get<float>(arguments_.out[0], elements);
      break;
    case RowOperation::sort:
      out.sorted = runtime().get<float>(arguments_.out[0], elements);
      out.columns = runtime().get<std::uint32_t>(arguments_.out[1], elements);
      break;
  }
  return reference::compare_rows(case_, *inputs_, out);
}

}  // namespace cm384::operators
